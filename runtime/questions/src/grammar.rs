//! Reads the words of a question from left to right.
//!
//! In: words. Out: an [`Interpretation`]. First, the words become items: phrases of the language, members, times,
//! numbers, values and quoted strings. At each place, the longest match wins. Then each item gets a role from the items
//! around it: `by` makes a dimension a group, a comparison makes a member an operand, and so on. If an item can mean
//! several members, the one in the cube of the rest of the question is chosen. If several remain, the caller is asked.
//! A word without a meaning is never ignored, so a draft without clarifications answers the whole question.

mod items;
mod roles;

use jiff::civil::Date;

use crate::draft::Interpretation;
use crate::language::Language;
use crate::members::{KnownValues, Vocabulary};
use crate::token::{QuestionError, tokens};

/// Interprets a question. `values` are the values of dimensions that were found for its otherwise unknown words.
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
