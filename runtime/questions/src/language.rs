//! The words of a language: phrases that introduce a group, a comparison or a time.
//!
//! In: a data file with one line for each meaning, `meaning: phrase | phrase`. Out: phrases, indexed by their first
//! word. Phrases are compared by the stems of their words.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use crate::draft::{Aggregation, Desired};

/// The smallest number of characters of a word's root.
const MIN_ROOT_CHARS: usize = 4;

/// The meanings of phrases that do not name members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Meaning {
    Group,
    And,
    Top,
    Bottom,
    Best,
    Worst,
    /// An adjective that ranks by a quality, such as `fastest`: its index in the superlatives of the language.
    Superlative(u16),
    /// A word for an aggregation, such as `average`.
    Aggregate(Aggregation),
    Ascending,
    Descending,
    Sort,
    Rank,
    More,
    AtLeast,
    Less,
    AtMost,
    Between,
    Equals,
    Not,
    Contains,
    StartsWith,
    EndsWith,
    Missing,
    Since,
    Until,
    Before,
    After,
    From,
    To,
    Last,
    This,
    Today,
    Yesterday,
    Versus,
    Compare,
    PreviousPeriod,
    YearOverYear,
    Share,
    Which,
    HowMany,
    /// `how much`: a measure follows, and rows are not counted.
    HowMuch,
    /// `how did`: a measure follows.
    How,
    /// A verb such as `change`, which needs a step of time or a comparison.
    Change,
    /// A question for a quality, such as `how old`: its index in the superlatives of the language.
    Quality(u16),
    /// A season, which has no fixed months.
    Season,
    Weekday,
    /// A word that holds a sentence together, such as `the`.
    Ignore,
    /// A verb that adds nothing to the members around it, such as `have` and `go`.
    Verb,
    Percent,
    Half,
    /// A day with a name, such as Christmas Day: its index in the named days of the language.
    NamedDay(u16),
    /// A part of the day: its first and last hour.
    PartOfDay(u8, u8),
    Am,
    Pm,
    OClock,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Daily,
    Weekly,
    Monthly,
    Quarterly,
    Yearly,
    Hourly,
    OverTime,
    MonthName(u8),
}

/// The two ends of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    From,
    To,
}

/// An adjective that ranks by a quality.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Superlative {
    /// The stems of the words for the quality, the most specific first: `speed` for `fastest`. If it is empty, the
    /// number of rows ranks.
    pub(crate) qualities: Vec<String>,
    pub(crate) is_descending: bool,
}

/// A day that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedDay {
    /// A month and a day.
    Fixed(i8, i8),
    /// A month, the number of a weekday in it (negative from its end), and the weekday from 1 for Monday.
    Weekday(i8, i8, i8),
}

const MEANINGS: [(&str, Meaning); 70] = [
    ("group", Meaning::Group),
    ("and", Meaning::And),
    ("top", Meaning::Top),
    ("bottom", Meaning::Bottom),
    ("best", Meaning::Best),
    ("worst", Meaning::Worst),
    ("average", Meaning::Aggregate(Aggregation::Average)),
    ("total", Meaning::Aggregate(Aggregation::Sum)),
    ("maximum", Meaning::Aggregate(Aggregation::Maximum)),
    ("minimum", Meaning::Aggregate(Aggregation::Minimum)),
    ("distinct", Meaning::Aggregate(Aggregation::CountDistinct)),
    ("ascending", Meaning::Ascending),
    ("descending", Meaning::Descending),
    ("sort", Meaning::Sort),
    ("rank", Meaning::Rank),
    ("more", Meaning::More),
    ("at_least", Meaning::AtLeast),
    ("less", Meaning::Less),
    ("at_most", Meaning::AtMost),
    ("between", Meaning::Between),
    ("equals", Meaning::Equals),
    ("not", Meaning::Not),
    ("contains", Meaning::Contains),
    ("starts_with", Meaning::StartsWith),
    ("ends_with", Meaning::EndsWith),
    ("missing", Meaning::Missing),
    ("since", Meaning::Since),
    ("until", Meaning::Until),
    ("before", Meaning::Before),
    ("after", Meaning::After),
    ("from", Meaning::From),
    ("to", Meaning::To),
    ("last", Meaning::Last),
    ("this", Meaning::This),
    ("today", Meaning::Today),
    ("yesterday", Meaning::Yesterday),
    ("versus", Meaning::Versus),
    ("compare", Meaning::Compare),
    ("previous_period", Meaning::PreviousPeriod),
    ("year_over_year", Meaning::YearOverYear),
    ("share", Meaning::Share),
    ("which", Meaning::Which),
    ("how_many", Meaning::HowMany),
    ("how_much", Meaning::HowMuch),
    ("how", Meaning::How),
    ("change", Meaning::Change),
    ("seasons", Meaning::Season),
    ("weekdays", Meaning::Weekday),
    ("ignore", Meaning::Ignore),
    ("verbs", Meaning::Verb),
    ("percent", Meaning::Percent),
    ("half", Meaning::Half),
    ("am", Meaning::Am),
    ("pm", Meaning::Pm),
    ("o_clock", Meaning::OClock),
    ("second", Meaning::Second),
    ("minute", Meaning::Minute),
    ("hour", Meaning::Hour),
    ("day", Meaning::Day),
    ("week", Meaning::Week),
    ("month", Meaning::Month),
    ("quarter", Meaning::Quarter),
    ("year", Meaning::Year),
    ("daily", Meaning::Daily),
    ("weekly", Meaning::Weekly),
    ("monthly", Meaning::Monthly),
    ("quarterly", Meaning::Quarterly),
    ("yearly", Meaning::Yearly),
    ("hourly", Meaning::Hourly),
    ("over_time", Meaning::OverTime),
];

/// The words of a language.
#[derive(Debug)]
pub struct Language {
    name: &'static str,
    /// Endings of words, the longest first, with their replacements.
    endings: Vec<(String, String)>,
    /// Endings that derive a word from its root, the longest first.
    derivations: Vec<String>,
    numbers: HashMap<String, f64>,
    /// Numbers that order periods, such as `second`.
    ordinals: HashMap<String, u8>,
    /// The words that link the words of a name, such as `of`.
    links: Vec<String>,
    /// The words before the unit of an answer, such as `in`.
    unit_words: Vec<String>,
    superlatives: Vec<Superlative>,
    /// The words of comparisons such as `older`, with the stems of the words for their qualities.
    comparatives: HashMap<String, Vec<String>>,
    named_days: Vec<NamedDay>,
    /// The roots of words in the names of measures of which high or low values are desired.
    desired: Vec<(Vec<String>, Desired)>,
    /// The stems of words that mark a member as an origin (`from`) or a destination (`to`).
    directions: HashMap<String, Direction>,
    /// The stems of abbreviations and other synonyms, with the stem that they stand for.
    same: HashMap<String, String>,
    /// The phrases that begin with a stem, the longest first.
    phrases: HashMap<String, Vec<(Vec<String>, Meaning)>>,
}

impl Language {
    /// Returns a language by its code, `en` or `de`.
    pub fn named(code: &str) -> Option<&'static Language> {
        static ENGLISH: OnceLock<Language> = OnceLock::new();
        static GERMAN: OnceLock<Language> = OnceLock::new();
        match code {
            "en" => Some(ENGLISH.get_or_init(|| Language::parse("en", include_str!("words/english.txt")))),
            "de" => Some(GERMAN.get_or_init(|| Language::parse("de", include_str!("words/german.txt")))),
            _ => None,
        }
    }

    /// The codes of all languages.
    pub const CODES: [&'static str; 2] = ["en", "de"];

    pub fn code(&self) -> &'static str {
        self.name
    }

    fn parse(name: &'static str, text: &str) -> Language {
        let mut language = Language {
            name,
            endings: Vec::new(),
            derivations: Vec::new(),
            numbers: HashMap::new(),
            ordinals: HashMap::new(),
            links: Vec::new(),
            unit_words: Vec::new(),
            superlatives: Vec::new(),
            comparatives: HashMap::new(),
            named_days: Vec::new(),
            desired: Vec::new(),
            directions: HashMap::new(),
            same: HashMap::new(),
            phrases: HashMap::new(),
        };
        let lines = || text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "));
        // Stems depend on the endings, and roots on the derivations.
        for first in ["endings", "same", "derivations"] {
            lines().filter(|(key, _)| *key == first).for_each(|(key, list)| language.add_line(key, list));
        }
        lines().for_each(|(key, list)| language.add_line(key, list));
        for phrases in language.phrases.values_mut() {
            phrases.sort_by_key(|(stems, _)| std::cmp::Reverse(stems.len()));
        }
        language
    }

    /// Adds a line of the data file. Unknown keys are ignored; a test compares the keys with the meanings.
    fn add_line(&mut self, key: &str, list: &str) {
        let parts: Vec<&str> = list.split('|').map(str::trim).collect();
        match key {
            "endings" => self.add_endings(&parts),
            "same" => self.add_synonyms(&parts),
            "derivations" => {
                self.derivations = parts.iter().map(|part| (*part).to_owned()).collect();
                self.derivations.sort_by_key(|ending| std::cmp::Reverse(ending.len()));
            }
            "numbers" => {
                let named = (0_u32..).zip(parts);
                self.numbers.extend(named.map(|(number, word)| (word.to_owned(), f64::from(number))));
            }
            "ordinals" => {
                let words =
                    (1_u8..).zip(parts).flat_map(|(number, words)| words.split(' ').map(move |of| (of, number)));
                self.ordinals.extend(words.map(|(word, number)| (word.to_owned(), number)));
            }
            "from_names" => self.add_directions(&parts, Direction::From),
            "to_names" => self.add_directions(&parts, Direction::To),
            "desired_high" => self.add_desired(&parts, Desired::High),
            "desired_low" => self.add_desired(&parts, Desired::Low),
            "superlatives_high" => parts.iter().for_each(|part| self.add_superlative(part, true, Meaning::Superlative)),
            "superlatives_low" => parts.iter().for_each(|part| self.add_superlative(part, false, Meaning::Superlative)),
            "how_qualities" => parts.iter().for_each(|part| self.add_superlative(part, true, Meaning::Quality)),
            "comparatives" => parts.iter().for_each(|part| self.add_comparative(part)),
            "unit_words" => self.unit_words = parts.iter().map(|part| (*part).to_owned()).collect(),
            "links" => self.links = parts.iter().map(|part| (*part).to_owned()).collect(),
            "verbs" => list.split_whitespace().for_each(|verb| self.add(verb, Meaning::Verb)),
            "named_days" => parts.iter().for_each(|part| self.add_named_day(part)),
            "parts_of_day" => parts.iter().for_each(|part| self.add_part_of_day(part)),
            "months" => {
                for (number, names) in (1_u8..).zip(parts) {
                    names.split(' ').for_each(|month| self.add(month, Meaning::MonthName(number)));
                }
            }
            _ => {
                let found = MEANINGS.into_iter().find(|(known, _)| *known == key);
                if let Some((_, meaning)) = found {
                    parts.iter().for_each(|phrase| self.add(phrase, meaning));
                }
            }
        }
    }

    fn add_endings(&mut self, parts: &[&str]) {
        let pairs = parts.iter().map(|ending| ending.split_once('>').unwrap_or((ending, "")));
        self.endings = pairs.map(|(ending, replacement)| (ending.to_owned(), replacement.to_owned())).collect();
        self.endings.sort_by_key(|(ending, _)| std::cmp::Reverse(ending.len()));
    }

    fn add_synonyms(&mut self, parts: &[&str]) {
        for (word, same) in parts.iter().filter_map(|pair| pair.split_once('>')) {
            let (word, same) = (self.without_ending(word), self.without_ending(same));
            self.same.insert(word, same);
        }
    }

    fn add_directions(&mut self, parts: &[&str], direction: Direction) {
        let stems: Vec<String> = parts.iter().map(|word| self.stem(word)).collect();
        self.directions.extend(stems.into_iter().map(|stem| (stem, direction)));
    }

    fn add_desired(&mut self, parts: &[&str], desired: Desired) {
        let roots_of = |phrase: &&str| phrase.split(' ').map(|word| self.root(&self.stem(word))).collect();
        let phrases: Vec<Vec<String>> = parts.iter().map(roots_of).collect();
        self.desired.extend(phrases.into_iter().map(|roots| (roots, desired)));
    }

    /// Adds a line part such as `fastest>speed velocity` or `how fast>speed velocity`.
    fn add_superlative(&mut self, part: &str, is_descending: bool, meaning: fn(u16) -> Meaning) {
        let (phrases, qualities) = part.split_once('>').unwrap_or((part, ""));
        let qualities = qualities.split_whitespace().map(|word| self.stem(word)).collect();
        let Ok(index) = u16::try_from(self.superlatives.len()) else { return };
        self.superlatives.push(Superlative { qualities, is_descending });
        phrases.split('/').for_each(|phrase| self.add(phrase, meaning(index)));
    }

    /// Adds a line part such as `older>age`.
    fn add_comparative(&mut self, part: &str) {
        let (words, qualities) = part.split_once('>').unwrap_or((part, ""));
        let qualities: Vec<String> = qualities.split_whitespace().map(|word| self.stem(word)).collect();
        self.comparatives.extend(words.split('/').map(|word| (word.to_owned(), qualities.clone())));
    }

    /// Adds a day such as `christmas day=12-25`, or `labor day=09-1-1` for the first Monday of September.
    fn add_named_day(&mut self, part: &str) {
        let Some((name, date)) = part.split_once('=') else { return };
        let numbers: Vec<i8> = date.split('/').filter_map(|number| number.parse().ok()).collect();
        let day = match numbers[..] {
            [month, day] => NamedDay::Fixed(month, day),
            [month, nth, weekday] => NamedDay::Weekday(month, nth, weekday),
            _ => return,
        };
        let Ok(index) = u16::try_from(self.named_days.len()) else { return };
        self.named_days.push(day);
        self.add(name, Meaning::NamedDay(index));
    }

    /// Adds a part of the day such as `morning=5-11`.
    fn add_part_of_day(&mut self, part: &str) {
        if let Some((name, hours)) = part.split_once('=')
            && let Some((first, last)) = hours.split_once('-')
            && let (Ok(first), Ok(last)) = (first.parse(), last.parse())
        {
            name.split('/').for_each(|name| self.add(name, Meaning::PartOfDay(first, last)));
        }
    }

    fn add(&mut self, phrase: &str, meaning: Meaning) {
        let stems: Vec<String> = phrase.split_whitespace().map(|word| self.stem(word)).collect();
        if let Some(first) = stems.first().cloned() {
            self.phrases.entry(first).or_default().push((stems, meaning));
        }
    }

    /// Returns the stem of a word in lower case: the word without its ending. Synonyms have the same stem.
    pub(crate) fn stem(&self, word: &str) -> String {
        let stem = self.without_ending(word);
        self.same.get(&stem).cloned().unwrap_or(stem)
    }

    fn without_ending(&self, word: &str) -> String {
        for (ending, replacement) in &self.endings {
            if let Some(stem) = word.strip_suffix(&**ending)
                && stem.chars().count() >= 3
            {
                return format!("{stem}{replacement}");
            }
        }
        word.to_owned()
    }

    /// Returns the root that a word shares with related words: `cancel` for `cancelled` and `cancellation`.
    pub(crate) fn root(&self, stem: &str) -> String {
        let shorter = self.derivations.iter().find_map(|ending| stem.strip_suffix(&**ending));
        let root = shorter.filter(|root| root.chars().count() >= MIN_ROOT_CHARS).unwrap_or(stem);
        let mut ends = root.chars().rev();
        match (ends.next(), ends.next()) {
            (Some(last), Some(before)) if last == before => root[..root.len() - last.len_utf8()].to_owned(),
            _ => root.to_owned(),
        }
    }

    /// Returns the direction that a word in a name expresses: origin or destination. Other words have none.
    pub(crate) fn direction(&self, stem: &str) -> Option<Direction> {
        self.directions.get(stem).copied()
    }

    pub(crate) fn number(&self, word: &str) -> Option<f64> {
        self.numbers.get(word).copied()
    }

    /// Returns the number that an ordinal such as `second` or `2nd` stands for.
    pub(crate) fn ordinal(&self, word: &str) -> Option<u8> {
        self.ordinals.get(word).copied()
    }

    /// Returns whether a word links the words of a name, as in `hour of departure`.
    pub(crate) fn is_link(&self, word: &str) -> bool {
        self.links.iter().any(|link| link == word)
    }

    /// Returns whether a word announces the unit of an answer, as in `in miles`.
    pub(crate) fn is_unit_word(&self, word: &str) -> bool {
        self.unit_words.iter().any(|known| known == word)
    }

    pub(crate) fn superlative(&self, index: u16) -> Option<&Superlative> {
        self.superlatives.get(usize::from(index))
    }

    /// Returns the stems of the words for the quality that a comparison such as `older than` compares; none for others.
    pub(crate) fn compared_quality(&self, phrase: &str) -> &[String] {
        let first = phrase.split(' ').next().map(str::to_lowercase).unwrap_or_default();
        self.comparatives.get(&first).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn named_day(&self, index: u16) -> Option<NamedDay> {
        self.named_days.get(usize::from(index)).copied()
    }

    /// Returns whether high or low values of a measure are desired, according to the roots of the words in its name.
    /// `None` if no word shows it, or if words contradict each other.
    pub(crate) fn desired(&self, roots: &HashSet<String>) -> Option<Desired> {
        let is_named = |words: &[String]| words.iter().all(|word| roots.contains(word));
        let mut found = self.desired.iter().filter(|(words, _)| is_named(words)).map(|(_, desired)| *desired);
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }

    /// Returns whether a word has an ending, as plurals have.
    pub(crate) fn has_ending(&self, word: &str) -> bool {
        self.without_ending(word) != word
    }

    /// Returns whether a stem is a word of any phrase.
    pub(crate) fn has_word(&self, stem: &str) -> bool {
        self.phrases.values().flatten().any(|(stems, _)| stems.iter().any(|known| known == stem))
    }

    /// Returns the word of a phrase that is nearest to a word with a typing mistake, if there is exactly one.
    pub(crate) fn corrected(&self, stem: &str) -> Option<&str> {
        nearest(stem, self.phrases.keys().map(String::as_str))
    }

    /// Returns the longest phrase that the stems begin with, and its length.
    pub(crate) fn phrase(&self, stems: &[&str]) -> Option<(usize, Meaning)> {
        let phrases = self.phrases.get(*stems.first()?)?;
        let is_at_start = |(phrase, _): &&(Vec<String>, Meaning)| {
            phrase.len() <= stems.len() && phrase.iter().zip(stems).all(|(one, other)| one == other)
        };
        phrases.iter().find(is_at_start).map(|(phrase, meaning)| (phrase.len(), *meaning))
    }
}

/// The shortest word that may have a typing mistake.
const MIN_FUZZY_CHARS: usize = 5;
/// The shortest word that may have two typing mistakes.
const MIN_TWICE_FUZZY_CHARS: usize = 8;

/// Returns the known word that is nearest to a word with a typing mistake, if there is exactly one.
pub(crate) fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let length = word.chars().count();
    if length < MIN_FUZZY_CHARS {
        return None;
    }
    let allowed = if length >= MIN_TWICE_FUZZY_CHARS { 2 } else { 1 };
    // A short word may be near to a long one only by its ending.
    let is_comparable = |other: &&str| {
        let others = other.chars().count();
        others >= MIN_FUZZY_CHARS - 1 && others.abs_diff(length) <= allowed
    };
    let distances = known.filter(is_comparable).map(|other| (strsim::osa_distance(word, other), other));
    let mut near: Vec<(usize, &str)> = distances.filter(|(distance, _)| *distance <= allowed).collect();
    near.sort_unstable();
    match near[..] {
        [(_, only)] => Some(only),
        [(first, nearest), (second, _), ..] if first < second => Some(nearest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    #[test]
    fn lists_have_every_meaning() {
        for code in Language::CODES {
            let language = Language::named(code).unwrap();
            for (name, meaning) in MEANINGS {
                let has_meaning = language.phrases.values().flatten().any(|(_, known)| *known == meaning);
                assert!(has_meaning, "{code}: {name}");
            }
            for month in 1..=12 {
                let is_named =
                    language.phrases.values().flatten().any(|(_, known)| *known == Meaning::MonthName(month));
                assert!(is_named, "{code}: month {month}");
            }
        }
    }

    #[test]
    fn related_words_have_one_root() {
        for (code, one, other, is_related) in [
            ("en", "cancellations", "cancelled", true),
            ("en", "departures", "departed", true),
            ("en", "rate", "rated", false),
            ("en", "station", "state", false),
            ("de", "stornierung", "storniert", true),
        ] {
            let language = Language::named(code).unwrap();
            let root = |word: &str| language.root(&language.stem(word));
            assert_eq!(root(one) == root(other), is_related, "{one}, {other}");
        }
    }

    #[test]
    fn plurals_have_the_stem_of_their_singular() {
        let english = Language::named("en").unwrap();
        for (plural, singular) in [("flights", "flight"), ("cities", "city"), ("classes", "class"), ("delays", "delay")]
        {
            assert_eq!(english.stem(plural), english.stem(singular), "{plural}");
        }
    }
}
