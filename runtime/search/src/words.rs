//! Splits strings into words, and converts the words to the form in which they are compared.
//!
//! A word is a run of letters and digits. A capital letter can begin a word within a run, so `avgDelay` and `avg_delay`
//! have two words each. Words are compared in lower case and without accents.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The number of characters of a word that are compared. Further characters are ignored.
pub(crate) const MAX_WORD_CHARS: usize = 48;

/// A word of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The form in which the word is compared. It is never empty.
    pub(crate) text: String,
    /// The range of the word in the text, in characters.
    pub(crate) place: Range<usize>,
}

/// Splits a string into its words, each in the compared form and with its position.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let chars: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut start = 0;
    while start < chars.len() {
        if !is_part(chars[start]) {
            start += 1;
            continue;
        }
        let mut end = start + 1;
        while end < chars.len() && is_part(chars[end]) && !begins_word(&chars, end) {
            end += 1;
        }
        let text = folded(&chars[start..end]);
        if !text.is_empty() {
            words.push(Word { text, place: start..end });
        }
        start = end;
    }
    words
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// Returns whether a capital letter within a run begins a word, such as `D` in `avgDelay` and `S` in `HTTPServer`.
fn begins_word(chars: &[char], at: usize) -> bool {
    let (before, here) = (chars[at - 1], chars[at]);
    let is_before_small = || chars.get(at + 1).is_some_and(|next| next.is_lowercase());
    here.is_uppercase() && (!before.is_uppercase() || is_before_small())
}

fn folded(chars: &[char]) -> String {
    let lower = chars.iter().flat_map(|c| c.to_lowercase()).nfkd().filter(|c| !is_combining_mark(*c));
    let mut text = String::new();
    for c in lower.take(MAX_WORD_CHARS) {
        match c {
            'ß' => text.push_str("ss"),
            c => text.extend(c.to_lowercase()),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn names_are_split_at_underscores_dots_and_capitals() {
        assert_eq!(texts("flights.avg_delay"), ["flights", "avg", "delay"]);
        assert_eq!(texts("avgDelay2 HTTPServer"), ["avg", "delay2", "http", "server"]);
        assert_eq!(texts(" --- "), Vec::<String>::new());
    }

    #[test]
    fn case_and_accents_do_not_count() {
        assert_eq!(texts("Élan GRÖSSE größe cafe\u{301} ﬁn"), ["elan", "grosse", "grosse", "cafe", "fin"]);
        assert_eq!(texts("İstanbul"), ["istanbul"]);
    }

    #[test]
    fn places_are_counted_in_characters() {
        let found = words("é_delay");
        assert_eq!(found[1], Word { text: "delay".to_owned(), place: 2..7 });
    }

    #[test]
    fn long_words_are_compared_by_their_beginning() {
        assert_eq!(texts(&"x".repeat(10_000)), ["x".repeat(MAX_WORD_CHARS)]);
    }
}
