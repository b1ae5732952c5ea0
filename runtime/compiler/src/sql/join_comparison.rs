//! Comparisons in the condition of a join.
//!
//! In: a join's condition. Out: the operands of each comparison that stands between whole columns or dimensions.
//! Not here: the types of the operands (`probe`, `column_mistakes`).

use crate::model::{Dimension, DimensionId, Model, Snippet, SqlPart};

/// The operands of all comparisons in reading order: left, right, left, right.
pub(super) fn operands(on: &Snippet) -> Vec<&SqlPart> {
    let parts = &on.parts;
    let comparisons = parts.windows(3).enumerate().filter_map(|(at, window)| match window {
        [left, SqlPart::Text(operator), right] if is_comparison(operator) => {
            let before = at.checked_sub(1).and_then(|at| parts.get(at));
            (is_start(before) && is_end(parts.get(at + 3))).then_some([left, right])
        }
        _ => None,
    });
    comparisons.flatten().collect()
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

fn is_comparison(text: &str) -> bool {
    matches!(text.trim(), "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=")
}

/// Returns whether an operand can begin behind this part: nothing before binds to it.
fn is_start(before: Option<&SqlPart>) -> bool {
    match before {
        None => true,
        Some(SqlPart::Text(text)) => {
            let text = text.trim_end();
            text.is_empty() || text.ends_with('(') || words(text).next_back().is_some_and(is_connective)
        }
        Some(_) => false,
    }
}

/// Returns whether an operand can end before this part: nothing after binds to it.
fn is_end(after: Option<&SqlPart>) -> bool {
    match after {
        None => true,
        Some(SqlPart::Text(text)) => {
            let text = text.trim_start();
            text.is_empty() || text.starts_with(')') || words(text).next().is_some_and(is_connective)
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
