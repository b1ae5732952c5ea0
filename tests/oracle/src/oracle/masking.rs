//! The effects of masks and denied members on a query.
//!
//! In: the members that a query reads, and the world's mask policies. Out: masked values, and a problem for each
//! forbidden use. Joins, row filters of policies and distinct keys read raw values.

use sha2::{Digest as _, Sha256};

use super::{Code, Construct, Evaluation, Group};
use crate::value::Value;
use crate::world::{ColumnType, Mask};

/// Reports an explicit filter on a masked member, or on a member that reads a covered column.
pub(crate) fn filtered(evaluation: &Evaluation<'_>, cube: &str, dimension: &str) {
    let is_covered = || is_covered(evaluation, cube, dimension);
    if evaluation.world.mask(cube, dimension).is_some() || is_covered() {
        evaluation.refuse(Code::Forbidden);
    }
}

/// Checks the groups: a masked member may be selected, but not another member over its columns. `asked` contains the
/// indexes of the columns by which the query orders or filters, which must not be masked.
pub(crate) fn check_groups(evaluation: &Evaluation<'_>, facts: &[String], groups: &[Group], asked: &[usize]) {
    for group in facts.iter().flat_map(|fact| groups.iter().map(move |group| (fact, group))) {
        let (fact, group) = group;
        let Some(own) = group.of_fact(evaluation, fact) else { continue };
        match evaluation.world.mask(&own.cube, &own.dimension) {
            None if is_covered(evaluation, &own.cube, &own.dimension) => evaluation.refuse(Code::Forbidden),
            None => {}
            Some(_) => {
                evaluation.uses(Construct::Mask);
                if asked.iter().any(|index| groups[*index].key == group.key) {
                    evaluation.refuse(Code::Forbidden);
                }
            }
        }
    }
}

fn is_covered(evaluation: &Evaluation<'_>, cube: &str, dimension: &str) -> bool {
    let dimension = evaluation.dimension(cube, dimension);
    dimension.is_some_and(|dimension| evaluation.world.is_covered(cube, &dimension.sql, false))
}

/// Returns the value that replaces the value of an existing row.
pub(crate) fn masked(mask: &Mask, value: Value) -> Value {
    match (mask, value) {
        (Mask::Null, _) => Value::Null,
        (Mask::Constant(cell), _) => cell.value(ColumnType::Text, false),
        (Mask::Hash, Value::Text(text)) => Value::Text(hex::encode(Sha256::digest(text.as_bytes()))),
        (Mask::Partial, Value::Text(text)) => Value::Text(text.chars().take(1).chain("***".chars()).collect()),
        (Mask::Hash | Mask::Partial, _) => Value::Null,
    }
}
