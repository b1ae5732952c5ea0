//! Pre-aggregations: their tables, the statements that fill and check them, and the tables that are ready.
//!
//! In: a model, a dialect profile, and the state of builds as plain data. Out: statements about the table of one
//! partition, the partitions of a time range, fingerprints, and the choice of a rollup for each fact of a query
//! (`matching`). Everything is pure: the builder of tables runs the statements and records the ready tables as
//! [`ReadyRollups`]. Not here: creating tables, schedules.

mod coverage;
mod matching;
mod partitions;
mod statements;

use std::sync::Arc;

pub(crate) use matching::{RollupRequest, match_rollups};
pub use partitions::{MAX_PARTITIONS, TooManyPartitions, moment_in_partition};
pub use statements::{ChangeMarks, RollupError, RollupStatement, RollupTotals, TotalColumn};

pub use crate::model::{Fingerprint, Rollup, RollupTime};
pub use crate::query::{FactMatch, Miss, MissReason, Served};
#[doc(hidden)]
pub use crate::ready_rollups::Flaw;
pub use crate::ready_rollups::{BucketRange, ReadyPartition, ReadyRollup, ReadyRollups};

use crate::model::{AggregateFunction, Cube, DimensionType, Model, state_type};
use crate::sql::collates;
use crate::sql::dialect_profile::DialectProfile;
use crate::types::LogicalType;

/// A rollup of a cube in its model.
#[derive(Debug, Clone, Copy)]
pub struct RollupOf<'m> {
    pub model: &'m Model,
    pub cube: &'m Cube,
    pub rollup: &'m Rollup,
}

/// A column of a rollup's table.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredColumn {
    /// Lower-case ASCII that needs no quotes.
    pub name: Arc<str>,
    pub kind: StoredKind,
    /// The type; `Unknown` for the type that the warehouse gives it.
    pub ty: LogicalType,
    /// True if the definition requests an index.
    pub is_indexed: bool,
}

/// The content of a stored column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredKind {
    /// The start of the time bucket.
    Time,
    Dimension,
    /// A string in a form that compares by code point. The string itself is stored as a dimension too.
    Key,
    /// 1 if a row passes a segment, else 0.
    Segment,
    /// An aggregate state. The first is the number of rows.
    State(AggregateFunction),
}

impl StoredKind {
    /// Returns whether the sum of the column equals the same aggregate over all rows from which the table was built.
    pub fn is_additive(self) -> bool {
        matches!(self, StoredKind::State(AggregateFunction::Count | AggregateFunction::Sum))
    }
}

impl<'m> RollupOf<'m> {
    /// Looks up a rollup by the name of its cube and its own name.
    pub fn named(model: &'m Model, cube: &str, name: &str) -> Option<RollupOf<'m>> {
        let cube = model.cube_named(cube)?;
        let rollup = cube.rollups.iter().find(|rollup| &*rollup.name == name)?;
        Some(RollupOf { model, cube, rollup })
    }

    /// Returns every rollup of a model, in the order of cubes and definitions.
    pub fn all(model: &'m Model) -> impl Iterator<Item = RollupOf<'m>> {
        let of_cube = move |cube: &'m Cube| cube.rollups.iter().map(move |rollup| RollupOf { model, cube, rollup });
        model.cubes.iter().flat_map(of_cube)
    }

    /// Returns the columns of the table, in the order of the build statement.
    pub fn columns(&self, profile: &DialectProfile) -> Vec<StoredColumn> {
        let column = |letter: char, index: usize, kind, ty| StoredColumn {
            name: format!("{letter}{index}").into(),
            kind,
            ty,
            is_indexed: false,
        };
        let rollup = self.rollup;
        let dimension = |index: usize| self.model.dimension(rollup.dimensions[index]);
        let has_key = |index: usize| collates(profile) && dimension(index).ty == DimensionType::String;
        let mut columns = Vec::new();
        columns.extend(rollup.time.iter().map(|time| column('t', 0, StoredKind::Time, time.stored_type(self.model))));
        let (keyed, plain): (Vec<usize>, Vec<usize>) = (0..rollup.dimensions.len()).partition(|index| has_key(*index));
        for index in 0..rollup.dimensions.len() {
            let is_indexed = rollup.indexes.contains(&index);
            let (letter, kind, ty) = match plain.contains(&index) {
                true => ('d', StoredKind::Dimension, dimension(index).column_type),
                false => ('k', StoredKind::Key, LogicalType::Unknown),
            };
            columns.push(StoredColumn { is_indexed, ..column(letter, index, kind, ty) });
        }
        let segments = 0..rollup.segments.len();
        columns.extend(segments.map(|index| column('s', index, StoredKind::Segment, LogicalType::Integer)));
        columns.extend(keyed.iter().map(|index| column('d', *index, StoredKind::Dimension, LogicalType::Text)));
        let states = rollup.states.iter().enumerate();
        columns.extend(
            states.map(|(index, state)| column('a', index, StoredKind::State(state.function), state_type(state))),
        );
        columns
    }
}
