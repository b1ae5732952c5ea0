//! The dimensions by which a root cause compares the step with the history.
//!
//! In: the cube of a measure, and the access of its reader. Out: the dimensions of the cube and of the cubes that
//! to-one joins reach from it, nearest first, and the omitted dimensions with the reason. Not here: queries.

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::{Cube, DimensionType};

use crate::domain::qualified;
use crate::metadata;
use crate::ports::monitors::MonitorDefinition;

/// The largest number of dimensions that are examined.
const MAX_DIMENSIONS: usize = 20;

/// The dimensions of a root cause.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) looked_at: Vec<Arc<str>>,
    pub(super) left_out: Vec<(Arc<str>, &'static str)>,
}

/// Returns the dimensions that the reader may see, without those of the series.
pub(super) fn of(access: &Access<'_>, cube: &Cube, definition: &MonitorDefinition) -> Choice {
    let mut choice = Choice::default();
    // If the key is a single column, it is left out, because each of its values is one row. If the key has several
    // columns, rows can be grouped by each of them. A key of a joined cube has many rows for each of its values.
    let is_single_key = cube.dimensions.iter().filter(|dimension| dimension.primary_key).count() == 1;
    let joined = access.model().join_paths(cube.id).order.iter().map(|id| access.model().cube(*id));
    let joined = joined.filter(|joined| metadata::is_shown(access, joined));
    for (of, is_joined) in std::iter::once((cube, false)).chain(joined.map(|joined| (joined, true))) {
        for dimension in metadata::dimensions(access, of) {
            let is_key = dimension.primary_key && is_single_key && !is_joined;
            let name = qualified(&of.name, &dimension.name);
            let is_of_series = definition.dimensions.iter().any(|own| definition.value.dimension(own) == name);
            match dimension.ty {
                _ if is_of_series => {}
                DimensionType::String | DimensionType::Boolean | DimensionType::Number if is_key => {
                    choice.left_out.push((name, "it is the key of the cube"));
                }
                DimensionType::String | DimensionType::Boolean | DimensionType::Number => choice.looked_at.push(name),
                DimensionType::Time | DimensionType::Geo => {
                    choice.left_out.push((name, "dimensions of this type are not compared"))
                }
            }
        }
    }
    for name in choice.looked_at.split_off(choice.looked_at.len().min(MAX_DIMENSIONS)) {
        choice.left_out.push((name, "more dimensions are not looked at"));
    }
    choice
}
