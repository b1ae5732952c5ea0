//! The words of a language: phrases that introduce a group, a comparison or a time.
//!
//! In: a data file with one line for each meaning, `meaning: phrase | phrase`. Out: phrases, indexed by their first
//! word. Phrases are compared by the stems of their words.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use crate::draft::Desired;
use crate::spelling::{nearest, nearest_short};

mod kinds;
mod parse;

pub(crate) use kinds::{Meaning, WordList};

/// The smallest number of characters of a word's root.
const MIN_ROOT_CHARS: usize = 4;

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
    /// The direction for measures in units of time, if the adjective also orders them: the slowest delivery takes the
    /// longest time.
    pub(crate) is_descending_in_time: Option<bool>,
}

/// A day that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedDay {
    /// A month and a day.
    Fixed(i8, i8),
    /// A month, the number of a weekday in it (negative from its end), and the weekday from 1 for Monday.
    Weekday(i8, i8, i8),
}

/// The words of a language.
#[derive(Debug)]
pub struct Language {
    name: &'static str,
    /// Endings of words, the longest first, with their replacements.
    endings: Vec<(String, String)>,
    /// Endings that derive a word from its root, the longest first.
    derivations: Vec<String>,
    numbers: HashMap<String, f64>,
    decimal_sign: char,
    thousands_sign: char,
    /// True if dates are written as day, month and year with points between them.
    has_dates_with_points: bool,
    /// Numbers that order periods, such as `second`.
    ordinals: HashMap<String, u8>,
    lists: HashMap<WordList, Vec<String>>,
    superlatives: Vec<Superlative>,
    /// The words of comparisons such as `older`, with the stems of the words for their qualities.
    comparatives: HashMap<String, Vec<String>>,
    /// The verbs before comparisons such as `cost more than`, with the stems of the words for their qualities.
    compared_verbs: HashMap<String, Vec<String>>,
    /// The verbs that ask for a sum, such as `sold`, with the stems of the words for it in the names of measures.
    sum_verbs: HashMap<String, Vec<String>>,
    /// The abbreviations of units after a number, such as `h`, with the stem of the unit.
    unit_suffixes: HashMap<String, String>,
    /// The words that multiply the number before them, such as `million`.
    scales: HashMap<String, f64>,
    /// The units that have a sign, by the stem of their word, such as `degree`.
    unit_names: HashMap<String, Vec<String>>,
    named_days: Vec<NamedDay>,
    /// The roots of words in the names of measures for which high or low values are desired.
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

    /// Returns the sign before the fraction of a number.
    pub(crate) fn decimal_sign(&self) -> char {
        self.decimal_sign
    }

    /// Returns the sign between the thousands of a number.
    pub(crate) fn thousands_sign(&self) -> char {
        self.thousands_sign
    }

    /// Returns whether `03.05.2024` is a date.
    pub(crate) fn has_dates_with_points(&self) -> bool {
        self.has_dates_with_points
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
        self.has(WordList::Links, word)
    }

    /// Returns whether a word announces the unit of an answer, as in `in miles`.
    pub(crate) fn is_unit_word(&self, word: &str) -> bool {
        self.has(WordList::UnitWords, word)
    }

    /// Returns whether a list contains a word in lower case.
    pub(crate) fn has(&self, list: WordList, word: &str) -> bool {
        self.lists.get(&list).is_some_and(|words| words.iter().any(|known| known == word))
    }

    /// Returns the words of a list.
    pub(crate) fn words(&self, list: WordList) -> &[String] {
        self.lists.get(&list).map_or(&[], Vec::as_slice)
    }

    /// Returns the stems of the words for the quality that a verb before a comparison compares; `None` for other words.
    pub(crate) fn compared_verb(&self, word: &str) -> Option<&[String]> {
        self.compared_verbs.get(word).map(Vec::as_slice)
    }

    /// Returns the stems of the words for the sum that a verb in lower case asks for, as in `how much did we sell`.
    pub(crate) fn sum_verb(&self, word: &str) -> Option<&[String]> {
        self.sum_verbs.get(word).map(Vec::as_slice)
    }

    /// Returns the stem of the unit that an abbreviation in lower case stands for after a number, such as `hour` for
    /// `h`.
    pub(crate) fn unit_suffix(&self, word: &str) -> Option<&str> {
        self.unit_suffixes.get(word).map(String::as_str)
    }

    /// Returns the factor of a word in lower case that multiplies the number before it, such as `million`.
    pub(crate) fn scale(&self, word: &str) -> Option<f64> {
        self.scales.get(word).copied()
    }

    /// Returns the stem of a word with a meaning.
    pub(crate) fn word_for(&self, meaning: Meaning) -> Option<&str> {
        let words = self.phrases.keys().map(String::as_str);
        words.filter(|stem| self.phrase(&[stem]) == Some((1, meaning))).min()
    }

    /// Returns the shortest phrase of several words with a meaning, such as `month on month`.
    pub(crate) fn phrase_for(&self, meaning: Meaning) -> Option<String> {
        let phrases = self.phrases.values().flatten();
        let own = phrases.filter(|(stems, own)| *own == meaning && stems.len() > 1);
        own.map(|(stems, _)| (stems.len(), stems.join(" "))).min().map(|(_, phrase)| phrase)
    }

    /// Returns the stems of the words that name a unit, such as `degree` for `°F`.
    pub(crate) fn words_for_unit(&self, unit: &str) -> impl Iterator<Item = &str> {
        let is_named = move |names: &Vec<String>| names.iter().any(|name| name.eq_ignore_ascii_case(unit));
        self.unit_names.iter().filter(move |(_, names)| is_named(names)).map(|(stem, _)| stem.as_str())
    }

    pub(crate) fn superlative(&self, index: u16) -> Option<&Superlative> {
        self.superlatives.get(usize::from(index))
    }

    /// Returns the stems of the words for the quality that a comparison such as `older than` or `or older` compares;
    /// none for others.
    pub(crate) fn compared_quality(&self, phrase: &str) -> &[String] {
        let lower = phrase.to_lowercase();
        lower.split(' ').find_map(|word| self.comparatives.get(word)).map_or(&[], Vec::as_slice)
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

    /// Returns whether a verb in lower case has the form of a participle, such as `paid`, which can describe a noun.
    pub(crate) fn is_participle(&self, word: &str) -> bool {
        self.lists
            .get(&WordList::Participles)
            .is_some_and(|endings| endings.iter().any(|ending| word.ends_with(&**ending)))
    }

    /// Returns whether a word is another word with an ending, as a plural is.
    pub(crate) fn is_inflected(&self, word: &str, of: &str) -> bool {
        let ending = word.strip_prefix(of).filter(|ending| !ending.is_empty());
        ending.is_some_and(|ending| self.endings.iter().any(|(known, _)| known == ending))
    }

    /// Returns whether a stem is a word of any phrase.
    pub(crate) fn has_word(&self, stem: &str) -> bool {
        self.phrases.values().flatten().any(|(stems, _)| stems.iter().any(|known| known == stem))
    }

    /// Returns the word of a phrase that is nearest to a word with a typing mistake, if there is exactly one.
    /// Verbs are no correction, because they are ignored: `employers` is not `employed`.
    pub(crate) fn corrected(&self, stem: &str) -> Option<&str> {
        let has_meaning = |phrases: &[(Vec<String>, Meaning)]| phrases.iter().any(|(_, own)| *own != Meaning::Verb);
        let words = self.phrases.iter().filter(|(_, phrases)| has_meaning(phrases));
        nearest(stem, words.map(|(stem, _)| stem.as_str()))
    }

    /// Returns the only word with one of several meanings from which a short word differs by one typing mistake. The
    /// caller checks the words around it, because short words resemble many others.
    pub(crate) fn corrected_short(&self, stem: &str, is_meant: impl Fn(Meaning) -> bool) -> Option<&str> {
        let is_word = |(stems, own): &(Vec<String>, Meaning)| stems.len() == 1 && is_meant(*own);
        let words = self.phrases.iter().filter(|(_, phrases)| phrases.iter().any(is_word));
        nearest_short(stem, words.map(|(word, _)| word.as_str()))
    }

    /// Returns a stem and its forms with the endings that a word has.
    pub(crate) fn forms(&self, stem: &str, word: &str) -> impl Iterator<Item = String> {
        let endings = self.endings.iter().filter(|(ending, _)| word.ends_with(&**ending));
        let inflected =
            endings.filter_map(|(ending, replacement)| Some(format!("{}{ending}", stem.strip_suffix(&**replacement)?)));
        inflected.chain([stem.to_owned()])
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

    use super::parse::{LISTS, MEANINGS};
    use super::*;

    #[test]
    fn word_lists_cover_every_meaning() {
        for code in Language::CODES {
            let language = Language::named(code).unwrap();
            for (name, meaning) in MEANINGS {
                let has_meaning = language.phrases.values().flatten().any(|(_, known)| *known == meaning);
                assert!(has_meaning, "{code}: {name}");
            }
            for (name, list) in LISTS {
                assert!(language.lists.get(&list).is_some_and(|words| !words.is_empty()), "{code}: {name}");
            }
            for month in 1..=12 {
                let is_named =
                    language.phrases.values().flatten().any(|(_, known)| *known == Meaning::MonthName(month));
                assert!(is_named, "{code}: month {month}");
            }
        }
    }

    #[test]
    fn related_words_share_a_root() {
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
