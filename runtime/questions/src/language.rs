//! The words of a language: phrases that introduce a group, a comparison or a time.
//!
//! In: a data file with one line for each meaning, `meaning: phrase | phrase`. Out: phrases, indexed by their first
//! word. Phrases are compared by the stems of their words.

use std::collections::HashMap;
use std::sync::OnceLock;

/// The smallest number of characters of a word's root.
const MIN_ROOT_CHARS: usize = 4;

/// The meanings of phrases that do not name members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Meaning {
    Group,
    And,
    Top,
    Bottom,
    Rated,
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
    Ignore,
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

const MEANINGS: [(&str, Meaning); 53] = [
    ("group", Meaning::Group),
    ("and", Meaning::And),
    ("top", Meaning::Top),
    ("bottom", Meaning::Bottom),
    ("rated", Meaning::Rated),
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
    ("ignore", Meaning::Ignore),
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
            directions: HashMap::new(),
            same: HashMap::new(),
            phrases: HashMap::new(),
        };
        let lines = || text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "));
        let parts = |list: &str| list.split('|').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
        for (key, list) in lines().filter(|(key, _)| *key == "endings") {
            debug_assert_eq!(key, "endings");
            for ending in parts(list) {
                let (ending, replacement) = ending.split_once('>').unwrap_or((&ending, ""));
                language.endings.push((ending.to_owned(), replacement.to_owned()));
            }
        }
        language.endings.sort_by_key(|(ending, _)| std::cmp::Reverse(ending.len()));
        for (_, list) in lines().filter(|(key, _)| *key == "same") {
            for pair in parts(list) {
                let Some((word, same)) = pair.split_once('>') else { continue };
                let pair = (language.stem(word), language.stem(same));
                language.same.insert(pair.0, pair.1);
            }
        }
        for (key, list) in lines() {
            match key {
                "endings" | "same" => {}
                "derivations" => {
                    language.derivations = parts(list);
                    language.derivations.sort_by_key(|ending| std::cmp::Reverse(ending.len()));
                }
                "numbers" => {
                    let named = (0_u32..).zip(parts(list));
                    language.numbers.extend(named.map(|(number, word)| (word, f64::from(number))));
                }
                "from_names" | "to_names" => {
                    let direction = if key == "from_names" { Direction::From } else { Direction::To };
                    let stems: Vec<String> = parts(list).iter().map(|word| language.stem(word)).collect();
                    language.directions.extend(stems.into_iter().map(|stem| (stem, direction)));
                }
                "months" => {
                    for (number, names) in (1_u8..).zip(parts(list)) {
                        for month in names.split(' ') {
                            language.add(month, Meaning::MonthName(number));
                        }
                    }
                }
                _ => {
                    let Some((_, meaning)) = MEANINGS.into_iter().find(|(known, _)| *known == key) else { continue };
                    parts(list).iter().for_each(|phrase| language.add(phrase, meaning));
                }
            }
        }
        for phrases in language.phrases.values_mut() {
            phrases.sort_by_key(|(stems, _)| std::cmp::Reverse(stems.len()));
        }
        language
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

    /// Returns the longest phrase that the stems begin with, and its length.
    pub(crate) fn phrase(&self, stems: &[&str]) -> Option<(usize, Meaning)> {
        let phrases = self.phrases.get(*stems.first()?)?;
        let is_at_start = |(phrase, _): &&(Vec<String>, Meaning)| {
            phrase.len() <= stems.len() && phrase.iter().zip(stems).all(|(one, other)| one == other)
        };
        phrases.iter().find(is_at_start).map(|(phrase, meaning)| (phrase.len(), *meaning))
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
