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

use crate::draft::{Interpretation, Piece};
use crate::language::{Language, Meaning, WordList};
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
    let whole = read_sentence(question, vocabulary, values, language, newest)?;
    if whole.interpretation.clarifications.is_empty() {
        return Ok(whole.interpretation);
    }
    let Some((first, request)) = split_request(question) else { return Ok(whole.interpretation) };
    // The request must be complete, and the question before it must have no conditions.
    let request = read_sentence(request, vocabulary, values, language, newest)?.interpretation;
    let is_complete = request.clarifications.is_empty() && !request.draft.values.is_empty();
    let is_aside = is_complete && read_sentence(first, vocabulary, values, language, newest)?.is_plain_question;
    if !is_aside {
        return Ok(whole.interpretation);
    }
    let meaning = "not read, because a request follows it".to_owned();
    let aside = Piece { text: first.to_owned(), meaning, alternatives: Vec::new() };
    // The words of the question before it may still be values, which select rows.
    let lookups = whole.interpretation.lookups;
    Ok(Interpretation { pieces: [aside].into_iter().chain(request.pieces).collect(), lookups, ..request })
}

/// A sentence that was read.
struct Sentence {
    interpretation: Interpretation,
    /// True for a question for yes or no without times, numbers and values.
    is_plain_question: bool,
}

fn read_sentence(
    question: &str,
    vocabulary: &Vocabulary,
    values: &KnownValues,
    language: &Language,
    newest: Date,
) -> Result<Sentence, QuestionError> {
    let tokens = quantities::joined(tokens(question, language)?, vocabulary, language);
    let tokens = sides::with_exceptions(sides::marked(tokens, language), language);
    let context = items::Context { vocabulary, values, language, newest };
    let items = split::items(&tokens, context);
    let is_plain_question = is_plain_question(&items, language);
    Ok(Sentence { interpretation: roles::Reader::new(context, items).read(), is_plain_question })
}

/// Splits a question after the question mark of its first sentence, if another sentence follows.
fn split_request(question: &str) -> Option<(&str, &str)> {
    let at = question.find('?')? + 1;
    let (first, rest) = question.split_at(at);
    (rest.starts_with(' ') && rest.contains(char::is_alphanumeric)).then_some((first, rest.trim()))
}

/// Returns whether items are a question for yes or no whose words select no rows.
fn is_plain_question(items: &[items::Item], language: &Language) -> bool {
    use items::ItemKind;
    let is_verb = |item: &items::Item| {
        item.kind == ItemKind::Word(Meaning::Equals) || language.has(WordList::Auxiliaries, &item.text.to_lowercase())
    };
    let selects = |item: &items::Item| {
        matches!(item.kind, ItemKind::Time(_) | ItemKind::Number(..) | ItemKind::Value(_) | ItemKind::Quoted)
    };
    items.first().is_some_and(is_verb) && !items.iter().any(selects)
}
