//! Splits typed text into the words of a question, and finds the parts of strings that match.

use std::ops::Range;

use crate::likeness::{Likeness, TypedWord};
use crate::words::words;

/// The largest number of characters of a question.
pub const MAX_CHARS: usize = 300;
/// The largest number of words of a question.
pub const MAX_WORDS: usize = 16;

/// Words that do not distinguish entries. They count only if a question has no other words.
const STOP_WORDS: &[&str] = &[
    "a", "all", "an", "and", "are", "by", "each", "for", "from", "in", "is", "me", "my", "of", "on", "or", "our",
    "per", "show", "than", "that", "the", "to", "what", "which", "with",
];

/// The words of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub(crate) words: Vec<TypedWord>,
}

/// The reason why a question cannot be searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    #[error("the text has no letters or digits")]
    NoWords,
    #[error("the text has {chars} characters; at most {MAX_CHARS} are searched for")]
    TooLong { chars: usize },
    #[error("the text has {words} words; at most {MAX_WORDS} are searched for")]
    TooManyWords { words: usize },
}

impl Question {
    /// Reads a question whose words are all complete.
    ///
    /// # Errors
    /// The text has no words, or is too long.
    pub fn new(text: &str) -> Result<Self, QuestionError> {
        Question::read(text, false)
    }

    /// Reads a question whose last word may be unfinished.
    ///
    /// # Errors
    /// The text has no words, or is too long.
    pub fn unfinished(text: &str) -> Result<Self, QuestionError> {
        Question::read(text, true)
    }

    fn read(text: &str, is_unfinished: bool) -> Result<Self, QuestionError> {
        // The check of the bytes comes first, because it avoids counting the characters of long strings.
        if text.len() > 4 * MAX_CHARS || text.chars().count() > MAX_CHARS {
            return Err(QuestionError::TooLong { chars: text.chars().count() });
        }
        let read = words(text);
        let last = read.len().saturating_sub(1);
        let typed = read.into_iter().enumerate().map(|(at, word)| {
            // The last word is finished if another character follows it.
            let is_open = is_unfinished && at == last && text.ends_with(char::is_alphanumeric);
            TypedWord { text: word.text, is_open }
        });
        let typed: Vec<TypedWord> = typed.collect();
        let says_something = |word: &TypedWord| word.is_open || !STOP_WORDS.contains(&word.text.as_str());
        let mut meaningful: Vec<TypedWord> = typed.iter().filter(|word| says_something(word)).cloned().collect();
        if meaningful.is_empty() {
            meaningful = typed;
        }
        match meaningful.len() {
            0 => Err(QuestionError::NoWords),
            words if words > MAX_WORDS => Err(QuestionError::TooManyWords { words }),
            _ => Ok(Question { words: meaningful }),
        }
    }

    /// Returns the ranges of a string that words of the question match, in characters. The ranges do not overlap.
    pub fn marks(&self, text: &str) -> Vec<Range<usize>> {
        let marked = words(text).into_iter().filter_map(|word| {
            let likenesses = self.words.iter().filter_map(|typed| Some((Likeness::of(typed, &word.text)?, typed)));
            let (likeness, typed) = likenesses.max_by_key(|(likeness, _)| *likeness)?;
            let is_same_length = word.text.chars().count() == word.place.len();
            match likeness {
                Likeness::Beginning if is_same_length => {
                    let start = word.place.start;
                    Some(start..start + typed.text.chars().count())
                }
                _ => Some(word.place),
            }
        });
        marked.collect()
    }

    /// Returns the number of words of the question that match a word of the text.
    pub fn matched_words(&self, text: &str) -> usize {
        let found = words(text);
        self.words.iter().filter(|typed| found.iter().any(|word| Likeness::of(typed, &word.text).is_some())).count()
    }

    /// Returns the number of words.
    pub fn word_count(&self) -> usize {
        self.words.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(question: &Question) -> Vec<&str> {
        question.words.iter().map(|word| word.text.as_str()).collect()
    }

    #[test]
    fn stop_words_match_only_without_other_words() {
        assert_eq!(typed(&Question::new("the delay by carrier").unwrap()), ["delay", "carrier"]);
        assert_eq!(typed(&Question::new("by the").unwrap()), ["by", "the"]);
    }

    #[test]
    fn last_word_is_open_until_another_character_follows() {
        assert!(Question::unfinished("avg del").unwrap().words[1].is_open);
        assert!(!Question::unfinished("avg del ").unwrap().words[1].is_open);
        assert!(!Question::new("avg del").unwrap().words[1].is_open);
    }

    #[test]
    fn questions_without_words_and_long_questions_are_rejected() {
        assert_eq!(Question::new("").unwrap_err(), QuestionError::NoWords);
        assert_eq!(Question::new("\u{202e} -- '\u{7}").unwrap_err(), QuestionError::NoWords);
        assert_eq!(Question::new(&"x".repeat(10_000)).unwrap_err(), QuestionError::TooLong { chars: 10_000 });
        let many = "word ".repeat(20);
        assert_eq!(Question::new(&many).unwrap_err(), QuestionError::TooManyWords { words: 20 });
    }

    #[test]
    fn marks_cover_what_was_typed() {
        let question = Question::new("dep dealy").unwrap();
        assert_eq!(question.marks("Departure delay, minutes"), [0..3, 10..15]);
        assert_eq!(question.matched_words("Departure delay, minutes"), 2);
        assert_eq!(question.marks("nothing"), Vec::<Range<usize>>::new());
    }
}
