//! Reads the words of a question from left to right.
//!
//! In: words. Out: an [`Interpretation`].
//!
//! ```text
//! question ─▶ token: words, numbers, quoted strings
//!               quantities: numbers with their units       sides: `more … than …`
//!          ─▶ items: the longest phrase, member, time, number or value at each place; typing mistakes are corrected
//!               times: ranges, ordinals, named days          values: whole values, parts of values
//!               codes: values that are written like words, such as `AS`
//!          ─▶ roles: a role for each item from the items around it
//!               members, conditions, known_values, hours, words, ranking, shares, rates, idioms, events, things
//!               alternatives: conditions that `or` joins     further: numbers behind `and`
//!               choice: one of several members, by the cube of the question, its role and its name
//!          ─▶ finish: the measure, the order, the times of the draft
//! ```
//! `by` makes a dimension a group, a comparison makes a member an operand, and so on. If several meanings of an item
//! remain, the caller is asked. Verbs that add nothing are reported as ignored. A word without a meaning is never
//! ignored, so a draft without clarifications answers the whole question. If a question contains words that may be
//! values, or a time without a year, the caller of this module looks them up and reads the question once more.

mod codes;
mod items;
mod names;
mod numbers;
mod place;
mod quantities;
mod roles;
mod sides;
mod split;
mod values;

use jiff::civil::Date;

use crate::draft::Interpretation;
use crate::language::Language;
use crate::members::{KnownValues, Vocabulary};
use crate::token::{QuestionError, tokens};

/// Interprets a question. `values` are the values of dimensions that were found for its otherwise unknown words.
/// `newest` is the date of the newest data or, if it is unknown, today: a time without a year means its latest
/// occurrence that began on or before this date.
///
/// # Errors
/// The question is empty or too long.
pub fn read(
    question: &str,
    vocabulary: &Vocabulary,
    values: &KnownValues,
    language: &Language,
    newest: Date,
) -> Result<Interpretation, QuestionError> {
    let tokens = quantities::joined(tokens(question, language)?, vocabulary, language);
    let tokens = sides::with_exceptions(sides::marked(tokens, language), language);
    let context = items::Context { vocabulary, values, language, newest };
    let items = split::items(&tokens, context);
    Ok(roles::Reader::new(context, items).read())
}
