//! The columns that the condition of a join compares.
//!
//! In: a condition. Out: its operands, and its pairs if it is a conjunction of equalities. Not here: comparisons of
//! other expressions (`sql::join_comparison`).

use super::{ColumnName, CubeId, DimensionId, Snippet, SqlPart};

/// One operand of an equality in a join's condition.
#[derive(Debug, Clone, Copy)]
pub(crate) enum JoinOperand<'m> {
    Column(CubeId, &'m ColumnName),
    Dimension(DimensionId),
}

impl JoinOperand<'_> {
    pub(crate) fn cube(&self) -> CubeId {
        match self {
            JoinOperand::Column(cube, _) => *cube,
            JoinOperand::Dimension(id) => id.cube,
        }
    }
}

/// Returns the columns and dimensions that a condition reads, in reading order.
pub(crate) fn operands(on: &Snippet) -> Vec<JoinOperand<'_>> {
    let mut found = Vec::new();
    on.for_each(&mut |part| match part {
        SqlPart::Column { cube, name } => found.push(JoinOperand::Column(*cube, name)),
        SqlPart::Dimension(id) => found.push(JoinOperand::Dimension(*id)),
        _ => {}
    });
    found
}

/// Returns `a = b AND c = d` as pairs, the target's operand first; `None` for any other condition.
pub(crate) fn equalities(on: &Snippet, target: CubeId) -> Option<Vec<[JoinOperand<'_>; 2]>> {
    #[derive(PartialEq)]
    enum Word {
        Operand,
        Equals,
        And,
    }
    let mut words = Vec::new();
    for part in &on.parts {
        match part {
            SqlPart::Column { .. } | SqlPart::Dimension(_) => words.push(Word::Operand),
            SqlPart::Text(text) => {
                let pieces = text.split(|c: char| c.is_whitespace() || c == '(' || c == ')');
                for word in pieces.filter(|word| !word.is_empty()) {
                    words.push(match word {
                        "=" => Word::Equals,
                        and if and.eq_ignore_ascii_case("and") => Word::And,
                        _ => return None,
                    });
                }
            }
            _ => return None,
        }
    }
    let is_equality = |words: &[Word]| matches!(words, [Word::Operand, Word::Equals, Word::Operand]);
    if !words.split(|word| *word == Word::And).all(is_equality) {
        return None;
    }
    let pairs = operands(on);
    let pairs = pairs.chunks_exact(2).map(|pair| match (pair[0].cube() == target, pair[1].cube() == target) {
        (true, false) => Some([pair[0], pair[1]]),
        (false, true) => Some([pair[1], pair[0]]),
        _ => None,
    });
    pairs.collect()
}
