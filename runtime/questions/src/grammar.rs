//! Reads the words of a question from left to right.
//!
//! In: words. Out: a [`Interpretation`]. First the words become items: words of the language, members, times, numbers and
//! texts; the longest match at a place wins. Then each item gets its role by the items around it: `by` makes a
//! dimension a group, a comparison makes a member an operand, and so on. A member with several candidates is the one of
//! the cube that the rest of the question is about; if several are left, the caller is asked. A word without a meaning
//! is never ignored, so a draft without clarifications answers the whole question.

mod items;
mod roles;

use jiff::civil::Date;

use crate::draft::Interpretation;
use crate::language::Language;
use crate::members::{KnownValues, Vocabulary};
use crate::token::{QuestionError, tokens};

/// Reads a question. `values` has what was looked up for its words that have no other meaning.
///
/// # Errors
/// The question is empty or too long.
pub fn read(
    question: &str,
    vocabulary: &Vocabulary,
    values: &KnownValues,
    language: &Language,
    today: Date,
) -> Result<Interpretation, QuestionError> {
    let tokens = tokens(question, language)?;
    let items = items::items(&tokens, vocabulary, values, language, today);
    Ok(roles::Reader::new(vocabulary, values, items).read())
}
