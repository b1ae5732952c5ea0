//! Column types, as the warehouse told, into a model.
//!
//! In: types by member. Out: the model with them. A DATE column has no time of day, so its dimension
//! is a wall clock whatever the author wrote (semantics, rule 16).

use std::collections::HashMap;

use super::{CubeId, DimensionId, DimensionType, MeasureId, MeasureKind, Model, TimeKind};
use crate::types::LogicalType;

/// What a probe of the warehouse found; a member that is missing stays `Unknown`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnTypes {
    pub dimensions: HashMap<DimensionId, LogicalType>,
    /// Types of the arguments of aggregating measures.
    pub measures: HashMap<MeasureId, LogicalType>,
}

impl Model {
    /// The model with its column types. An alias without types of its own takes its target's.
    #[must_use]
    pub fn with_types(mut self, types: &ColumnTypes) -> Model {
        for cube in &mut self.cubes {
            let also = |own: CubeId| cube.alias_of.unwrap_or(own);
            for (index, dimension) in (0u32..).zip(&mut cube.dimensions) {
                let find = |cube| types.dimensions.get(&DimensionId { cube, index });
                let Some(ty) = find(cube.id).or_else(|| find(also(cube.id))) else { continue };
                dimension.column_type = *ty;
                if *ty == LogicalType::Date && dimension.ty == DimensionType::Time {
                    dimension.time = TimeKind::WallClock;
                }
            }
            for (index, measure) in (0u32..).zip(&mut cube.measures) {
                let find = |cube| types.measures.get(&MeasureId { cube, index });
                let Some(ty) = find(cube.id).or_else(|| find(also(cube.id))) else { continue };
                match &mut measure.kind {
                    MeasureKind::Aggregate(aggregate) | MeasureKind::RunningTotal { aggregate, .. } => {
                        aggregate.argument_type = *ty;
                    }
                    MeasureKind::Number(_) => {}
                }
            }
        }
        self
    }
}
