//! Reads the words of a question from left to right.
//!
//! In: words. Out: an [`Interpretation`].
//!
//! ```text
//! question ─▶ token: words, numbers, quoted strings
//!          ─▶ items: the longest phrase, member, time, number or value at each place; typing mistakes are corrected
//!               times: ranges, ordinals, named days          values: whole values, parts of values
//!          ─▶ roles: a role for each item from the items around it
//!               members, conditions, known_values, hours, words, ranking, shares, rates, idioms
//!               choice: one of several members, by the cube of the question, its role and its name
//!          ─▶ finish: the measure, the order, the times of the draft
//! ```
//! `by` makes a dimension a group, a comparison makes a member an operand, and so on. If several meanings of an item
//! remain, the caller is asked. Verbs that add nothing are reported as ignored. A word without a meaning is never
//! ignored, so a draft without clarifications answers the whole question. If a question contains words that may be
//! values, or a time without a year, the caller of this module looks them up and reads the question once more.

mod items;
mod names;
mod numbers;
mod place;
mod roles;
mod split;
mod values;

use jiff::civil::Date;

use crate::draft::Interpretation;
use crate::language::{Language, Meaning};
use crate::members::{KnownValues, Vocabulary};
use crate::token::{QuestionError, Token, TokenKind, tokens};

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
    let tokens = numbers_with_units(tokens(question, language)?, vocabulary, language);
    let context = items::Context { vocabulary, values, language, newest };
    let items = split::items(&tokens, context);
    Ok(roles::Reader::new(context, items).read())
}

/// Splits words such as `5-star` and `30-minute` into a number and its unit.
fn numbers_with_units(tokens: Vec<Token>, vocabulary: &Vocabulary, language: &Language) -> Vec<Token> {
    let split = |token: &Token| {
        let (digits, unit) = token.text.split_once('-').filter(|_| token.kind == TokenKind::Word)?;
        let number = digits.parse::<f64>().ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))?;
        let stem = language.stem(&unit.to_lowercase());
        let is_of_time = matches!(
            language.phrase(&[&stem]),
            Some((1, Meaning::Second | Meaning::Minute | Meaning::Hour | Meaning::Day))
        );
        let part = |text: &str, kind| Token {
            text: text.to_owned(),
            lower: text.to_lowercase(),
            stem: language.stem(&text.to_lowercase()),
            kind,
        };
        let is_unit = is_of_time || vocabulary.unit(&stem).is_some();
        is_unit.then(|| vec![part(digits, TokenKind::Number(number)), part(unit, TokenKind::Word)])
    };
    tokens.into_iter().flat_map(|token| split(&token).unwrap_or_else(|| vec![token])).collect()
}
