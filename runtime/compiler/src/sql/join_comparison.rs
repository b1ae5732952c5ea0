//! Comparisons in the condition of a join.
//!
//! In: a join's condition. Out: the operands of each comparison that stands between whole columns or dimensions.
//! Not here: the types of the operands (`probe`, `column_mistakes`).

use crate::model::{Dimension, DimensionId, Model, Snippet, SqlPart};

/// The operands of all comparisons in reading order: left, right, left, right.
pub(super) fn operands(on: &Snippet) -> Vec<&SqlPart> {
    let parts = &on.parts;
    let comparisons = parts.windows(3).enumerate().filter_map(|(at, window)| match window {
        [left, SqlPart::Text(operator), right] => {
            let Brackets { closing, opening } = brackets_of_comparison(operator)?;
            let before = at.checked_sub(1).and_then(|at| parts.get(at));
            (is_start(before, closing) && is_end(parts.get(at + 3), opening)).then_some([left, right])
        }
        _ => None,
    });
    comparisons.flatten().collect()
}

/// The brackets around an operator: those that end its left operand, and those that begin its right one.
struct Brackets {
    closing: usize,
    opening: usize,
}

/// Returns the brackets of a comparison; `None` for any other text.
fn brackets_of_comparison(text: &str) -> Option<Brackets> {
    let is_bracket = |bracket: char| move |c: char| c == bracket || c.is_whitespace();
    let behind = text.trim_start_matches(is_bracket(')'));
    let operator = behind.trim_end_matches(is_bracket('('));
    let count = |text: &str, bracket: char| text.chars().filter(|c| *c == bracket).count();
    let brackets = Brackets {
        closing: count(&text[..text.len() - behind.len()], ')'),
        opening: count(&behind[operator.len()..], '('),
    };
    is_comparison(operator).then_some(brackets)
}

/// The dimension whose value an operand is.
pub(super) fn dimension_of(model: &Model, operand: &SqlPart) -> Option<DimensionId> {
    match operand {
        SqlPart::Dimension(id) => Some(*id),
        SqlPart::Column { cube, name } => {
            let is_column = |dimension: &Dimension| match &dimension.sql.parts[..] {
                [SqlPart::Column { cube: of, name: shown }] => of == cube && shown == name,
                _ => false,
            };
            let index = model.cube(*cube).dimensions.iter().position(is_column)?;
            Some(DimensionId { cube: *cube, index: index as u32 })
        }
        _ => None,
    }
}

fn is_comparison(operator: &str) -> bool {
    const SYMBOLS: [&str; 8] = ["=", "==", "<>", "!=", "<", "<=", ">", ">="];
    const WORDS: [&str; 4] = ["in", "not in", "is distinct from", "is not distinct from"];
    let words = operator.split_whitespace().collect::<Vec<_>>().join(" ");
    SYMBOLS.contains(&&*words) || WORDS.iter().any(|word| words.eq_ignore_ascii_case(word))
}

/// Returns whether an operand in so many brackets can begin behind this part: nothing before binds to it.
fn is_start(before: Option<&SqlPart>, brackets: usize) -> bool {
    match before {
        None => brackets == 0,
        Some(SqlPart::Text(text)) => {
            let text = (0..brackets).try_fold(text.trim_end(), |text, _| Some(text.strip_suffix('(')?.trim_end()));
            text.is_some_and(|text| {
                text.is_empty() || text.ends_with('(') || words(text).next_back().is_some_and(is_connective)
            })
        }
        Some(_) => false,
    }
}

/// Returns whether an operand in so many brackets can end before this part: nothing after binds to it.
fn is_end(after: Option<&SqlPart>, brackets: usize) -> bool {
    match after {
        None => brackets == 0,
        Some(SqlPart::Text(text)) => {
            let text = (0..brackets).try_fold(text.trim_start(), |text, _| Some(text.strip_prefix(')')?.trim_start()));
            text.is_some_and(|text| {
                text.is_empty() || text.starts_with(')') || words(text).next().is_some_and(is_connective)
            })
        }
        Some(_) => false,
    }
}

fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || c == '(' || c == ')').filter(|word| !word.is_empty())
}

fn is_connective(word: &str) -> bool {
    ["and", "or", "not"].iter().any(|connective| word.eq_ignore_ascii_case(connective))
}
