//! Compares the spellings of words and values.
//!
//! In: words of a question, and values. Out: a common spelling, and the values that a word with a typing mistake means.

/// The shortest word that may have a typing mistake.
const MIN_CHARS: usize = 5;
/// The shortest word that may have two typing mistakes.
const MIN_CHARS_FOR_TWO: usize = 8;
/// The shortest part of a word that is looked up.
const MIN_FRAGMENT_CHARS: usize = 3;

/// Returns the words of a string in lower case, joined with single spaces. Apostrophes do not separate words.
pub(crate) fn spelled(text: &str) -> String {
    let text: String = text.chars().filter(|c| !is_apostrophe(*c)).collect();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

pub(crate) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}')
}

/// Returns whether a word is a word of a value with a typing mistake. The first character must be correct.
pub(crate) fn is_misspelled(word: &str, value: &str) -> bool {
    let word = spelled(word);
    let length = word.chars().count();
    if length < MIN_CHARS || !word.chars().all(char::is_alphabetic) {
        return false;
    }
    let allowed = if length < MIN_CHARS_FOR_TWO { 1 } else { 2 };
    let is_near = |other: &str| {
        other.chars().next() == word.chars().next()
            && other.chars().count().abs_diff(length) <= allowed
            && (1..=allowed).contains(&strsim::osa_distance(&word, other))
    };
    spelled(value).split(' ').any(is_near)
}

/// Returns the beginning and the end of a word. A typing mistake leaves one of them unchanged, unless it is in the middle.
pub(crate) fn fragments(word: &str) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    if chars.len() < MIN_CHARS || !chars.iter().all(|c| c.is_alphabetic()) {
        return Vec::new();
    }
    let half = (chars.len() / 2).max(MIN_FRAGMENT_CHARS);
    vec![chars[..half].iter().collect(), chars[chars.len() - half..].iter().collect()]
}
