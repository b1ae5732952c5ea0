//! Finds the values of dimensions in a question.
//!
//! In: words of a question, and the values that were looked up. Out: the values that the words mean: a whole value, its
//! first words, words inside it, or a word with the same root. Not here: the lookup, and the choice of the dimension.

use crate::language::Language;
use crate::members::{KnownValue, KnownValues};
use crate::spelling::{is_apostrophe, is_misspelled, spelled};
use crate::token::{Token, TokenKind};

/// The largest number of words of a value.
const MAX_VALUE_WORDS: usize = 8;
/// The shortest word that is compared by its root.
const MIN_ROOT_CHARS: usize = 4;

/// The match between words of a question and a value, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quality {
    Equal,
    /// The first words of the value.
    Beginning,
    /// Other words of the value.
    Inside,
    /// A word with the same root as a word of the value, such as `snowed` for `snow`.
    Root,
    /// A word of the value with a typing mistake.
    Misspelled,
}

/// The known values, with the language of the question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'w> {
    pub(super) values: &'w KnownValues,
    pub(super) language: &'w Language,
}

/// The values that words of a question mean.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueMatch {
    /// The number of words.
    pub(super) length: usize,
    pub(super) values: Vec<KnownValue>,
    /// The best quality of the values.
    pub(super) quality: Quality,
}

/// Returns the values that are named by as many of the next words as possible.
pub(super) fn matched(tokens: &[Token], words: &Words<'_>) -> Option<ValueMatch> {
    let known = &words.values.values;
    if known.is_empty() {
        return None;
    }
    let end = tokens.iter().take_while(|token| token.kind != TokenKind::Comma).count();
    (1..=end.min(MAX_VALUE_WORDS)).rev().find_map(|length| {
        let text = tokens[..length].iter().map(|token| &*token.text).collect::<Vec<_>>().join(" ");
        let qualities = known.iter().filter_map(|known| Some((quality(&text, &known.value, words.language)?, known)));
        let found: Vec<(Quality, &KnownValue)> = qualities.collect();
        let counted = found.iter().filter(|(own, known)| *own == Quality::Equal || known.rows != Some(0));
        let quality = counted.map(|(quality, _)| *quality).min()?;
        let is_exact = found.iter().any(|(_, known)| *known.value == text);
        let is_meant =
            |own, known| is_meant(own, quality, &text, is_exact, known) || is_rival(own, quality, known, &found);
        let meant = found.iter().filter(|(own, known)| is_meant(*own, known));
        let mut values: Vec<KnownValue> = meant.map(|(_, known)| (*known).clone()).collect();
        values.sort_by(|one, other| (&one.member, &one.value).cmp(&(&other.member, &other.value)));
        values.dedup();
        (!values.is_empty()).then_some(ValueMatch { length, values, quality })
    })
}

/// Returns whether a value is meant, given the best quality of all values. All parts of values have the same quality.
/// If a value equals the word except for its case (`AIRBUS` and `Airbus`), the values that begin with the word are
/// meant as well.
fn is_meant(own: Quality, best: Quality, text: &str, is_exact: bool, known: &KnownValue) -> bool {
    // A part of a value that does not occur is a coincidence.
    let is_counted = known.rows != Some(0);
    if own != Quality::Equal && !is_counted {
        return false;
    }
    match best {
        Quality::Equal if is_exact || text.chars().all(|c| !c.is_uppercase()) => own == Quality::Equal,
        Quality::Equal => own == Quality::Equal || (own == Quality::Beginning && is_capitals(&known.value)),
        Quality::Beginning | Quality::Inside => own <= Quality::Inside,
        Quality::Root => own <= Quality::Root,
        Quality::Misspelled => true,
    }
}

/// Returns whether a value without rows and a value with rows both contain a word after their beginning. The word then
/// names neither of them: `Florida` is not the name of `Southwest Florida Intl`.
fn is_rival(own: Quality, best: Quality, known: &KnownValue, found: &[(Quality, &KnownValue)]) -> bool {
    let is_inside = |(own, other): &(Quality, &KnownValue)| {
        *own == Quality::Inside && other.member == known.member && other.rows != Some(0)
    };
    best == Quality::Inside && own <= Quality::Inside && found.iter().any(is_inside)
}

/// Returns whether a word in lower case is a whole word of a value.
pub(super) fn has_word(values: &[KnownValue], word: &str) -> bool {
    let word = spelled(word);
    values.iter().any(|known| spelled(&known.value).split(' ').any(|own| own == word))
}

fn is_capitals(text: &str) -> bool {
    !text.chars().any(char::is_lowercase)
}

/// Returns where a value contains a string; `None` if it does not contain it.
fn quality(text: &str, value: &str, language: &Language) -> Option<Quality> {
    let (text, value) = (spelled(text), spelled(value));
    if text.is_empty() {
        return None;
    }
    // `LaGuardia` is also written `La Guardia`.
    if text == value || text.replace(' ', "") == value.replace(' ', "") || is_plural(&text, &value, language) {
        return Some(Quality::Equal);
    }
    let padded = format!(" {value} ");
    match padded.find(&format!(" {text} ")) {
        Some(0) => return Some(Quality::Beginning),
        Some(_) => return Some(Quality::Inside),
        None => {}
    }
    let root = root(&text, language);
    let is_related = !text.contains(' ')
        && root.chars().count() >= MIN_ROOT_CHARS
        && value.split(' ').any(|word| self::root(word, language) == root);
    if is_related {
        return Some(Quality::Root);
    }
    (!text.contains(' ') && is_misspelled(&text, &value)).then_some(Quality::Misspelled)
}

/// Returns whether several words are the plural of a value, such as `follow ups` for `follow up`.
fn is_plural(text: &str, value: &str, language: &Language) -> bool {
    let (Some((first, last)), Some((start, end))) = (text.rsplit_once(' '), value.rsplit_once(' ')) else {
        return false;
    };
    first == start && language.is_inflected(last, end)
}

fn root(word: &str, language: &Language) -> String {
    language.root(&language.stem(word))
}

/// Returns the spellings of words under which their values are looked up: as they are, without apostrophes, the root,
/// and the parts of `LaGuardia`.
pub(super) fn spellings(text: &str, language: &Language) -> Vec<String> {
    let mut found = vec![text.to_owned()];
    if text.contains(is_apostrophe) {
        found.push(text.chars().filter(|c| !is_apostrophe(*c)).collect());
    }
    if !text.contains(' ') {
        let root = root(&text.to_lowercase(), language);
        if root.chars().count() >= MIN_ROOT_CHARS && text.to_lowercase().starts_with(&root) {
            found.push(root);
        }
        let parts = parts_of(text);
        if parts.contains(' ') {
            found.push(parts);
        }
    }
    found.dedup_by(|one, other| one.to_lowercase() == other.to_lowercase());
    found
}

/// Returns a word with a space before each capital letter that follows a lower one.
fn parts_of(word: &str) -> String {
    let mut parts = String::new();
    let mut was_lower = false;
    for c in word.chars() {
        if was_lower && c.is_uppercase() {
            parts.push(' ');
        }
        was_lower = c.is_lowercase();
        parts.push(c);
    }
    parts
}
