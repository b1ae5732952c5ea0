//! Decides whether a typed word matches a word of a string.
//!
//! [`Likeness::of`] defines the matches, and marks them in strings. The index finds the same words with automata.

use std::sync::LazyLock;

use levenshtein_automata::{DFA, LevenshteinAutomatonBuilder};

use crate::spelling::{allowed_mistakes, has_same_start, typing_mistakes};

/// The length from which a typed word may match the beginning of a longer word. The last word of an unfinished question
/// may match the beginning at any length.
const MIN_PREFIX_CHARS: usize = 3;

/// The way in which a typed word matches a word of a string. The best way is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// The typed word is a prefix of the word, except for typing mistakes.
    MistypedBeginning,
    /// The typed word is the word with mistakes: a character added, missing, replaced, or swapped with its neighbor.
    Mistyped,
    /// The typed word is a prefix of the word.
    Beginning,
    Equal,
}

/// A word that a user typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedWord {
    pub(crate) text: String,
    /// True if the user may still be typing the word.
    pub(crate) is_open: bool,
}

static AUTOMATA: LazyLock<[LevenshteinAutomatonBuilder; 2]> =
    LazyLock::new(|| [1, 2].map(|mistakes| LevenshteinAutomatonBuilder::new(mistakes, true)));

impl Likeness {
    /// Returns the factor for the weight of a field.
    pub(crate) fn factor(self) -> u32 {
        match self {
            Likeness::Equal => 10,
            Likeness::Beginning => 6,
            Likeness::Mistyped => 3,
            Likeness::MistypedBeginning => 2,
        }
    }

    /// Returns the likeness of a typed word and a word of a string, or `None` if they do not match.
    pub(crate) fn of(typed: &TypedWord, word: &str) -> Option<Likeness> {
        if typed.text == word {
            return Some(Likeness::Equal);
        }
        if typed.may_be_beginning() && word.starts_with(&typed.text) {
            return Some(Likeness::Beginning);
        }
        if typing_mistakes(&typed.text, word).is_some() {
            return Some(Likeness::Mistyped);
        }
        let mistakes = typed.mistakes();
        if mistakes == 0 || !typed.is_open || !typed.has_first_char_of(word) {
            return None;
        }
        let ends = word.char_indices().map(|(at, c)| at + c.len_utf8());
        let length = typed.text.chars().count();
        let mut beginnings = ends.take(length + mistakes).skip(length.saturating_sub(mistakes + 1));
        let is_mistyped = beginnings.any(|end| strsim::osa_distance(&typed.text, &word[..end]) <= mistakes);
        is_mistyped.then_some(Likeness::MistypedBeginning)
    }
}

impl TypedWord {
    pub(crate) fn may_be_beginning(&self) -> bool {
        self.is_open || self.text.chars().count() >= MIN_PREFIX_CHARS
    }

    /// Returns whether both words begin with the same character. The first character is assumed to be typed correctly.
    pub(crate) fn has_first_char_of(&self, word: &str) -> bool {
        has_same_start(&self.text, word)
    }

    /// Returns the largest number of typing mistakes that the word may have.
    pub(crate) fn mistakes(&self) -> usize {
        allowed_mistakes(&self.text)
    }

    /// Returns the automaton that accepts the word with typing mistakes. Returns `None` if the word is too short for a
    /// mistake.
    pub(crate) fn automaton(&self) -> Option<DFA> {
        let builder = AUTOMATA.get(self.mistakes().checked_sub(1)?)?;
        Some(if self.is_open { builder.build_prefix_dfa(&self.text) } else { builder.build_dfa(&self.text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(typed: &str, word: &str) -> Option<Likeness> {
        Likeness::of(&TypedWord { text: typed.to_owned(), is_open: false }, word)
    }

    fn likeness_of_beginning(typed: &str, word: &str) -> Option<Likeness> {
        Likeness::of(&TypedWord { text: typed.to_owned(), is_open: true }, word)
    }

    #[test]
    fn equal_words_and_beginnings_match() {
        assert_eq!(likeness("delay", "delay"), Some(Likeness::Equal));
        assert_eq!(likeness("del", "delay"), Some(Likeness::Beginning));
        assert_eq!(likeness("de", "delay"), None);
        assert_eq!(likeness_of_beginning("d", "delay"), Some(Likeness::Beginning));
    }

    #[test]
    fn longer_words_may_have_more_mistakes() {
        assert_eq!(likeness("dealy", "delay"), Some(Likeness::Mistyped));
        assert_eq!(likeness("dely", "delay"), Some(Likeness::Mistyped));
        assert_eq!(likeness("dly", "delay"), None);
        assert_eq!(likeness("daparture", "departure"), Some(Likeness::Mistyped));
        assert_eq!(likeness("daprture", "departure"), Some(Likeness::Mistyped));
        assert_eq!(likeness("dprtre", "departure"), None);
    }

    #[test]
    fn first_character_is_never_mistyped() {
        assert_eq!(likeness("felay", "delay"), None);
    }

    #[test]
    fn unfinished_word_may_have_mistakes() {
        assert_eq!(likeness_of_beginning("depra", "departure"), Some(Likeness::MistypedBeginning));
        assert_eq!(likeness("depra", "departure"), None);
    }
}
