//! Column types, as the warehouse told, into a model.
//!
//! In: types by member. Out: the model with them. A DATE column has no time of day, so its dimension
//! is a wall clock whatever the author wrote (semantics, rule 16).

use std::collections::HashMap;

use super::{CubeId, DimensionId, DimensionType, MeasureId, MeasureKind, Model, Snippet, TimeKind};
use crate::types::LogicalType;

/// What a probe of the warehouse found; a member that is missing stays `Unknown`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnTypes {
    pub dimensions: HashMap<DimensionId, LogicalType>,
    /// Types of the arguments of aggregating measures.
    pub measures: HashMap<MeasureId, LogicalType>,
    /// Types of what policies compare a caller's values with.
    pub compared: HashMap<ComparedId, LogicalType>,
}

/// The n-th of a caller's values in a policy's row filter on one cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComparedId {
    pub policy: u32,
    pub effect: u32,
    pub index: u32,
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
        for (policy, definition) in (0u32..).zip(&mut self.policies) {
            for (effect, cube) in (0u32..).zip(&mut definition.cubes) {
                let parts = cube.row_filter.iter_mut().flat_map(Snippet::user_parts_mut);
                for (index, part) in (0u32..).zip(parts) {
                    let ty = types.compared.get(&ComparedId { policy, effect, index });
                    if let (Some(ty), Some(compared)) = (ty, &mut part.compared) {
                        compared.ty = *ty;
                    }
                }
            }
        }
        self
    }

    /// What policies compare a caller's values with, over the rows of one cube.
    pub fn compared_of(&self, cube: CubeId) -> impl Iterator<Item = (ComparedId, &Snippet)> {
        (0u32..).zip(&self.policies).flat_map(move |(policy, definition)| {
            let effects = (0u32..).zip(&definition.cubes).filter(move |(_, of)| of.cube == cube);
            effects.flat_map(move |(effect, of)| {
                let parts = of.row_filter.iter().flat_map(Snippet::user_parts);
                (0u32..).zip(parts).filter_map(move |(index, part)| {
                    let compared = part.compared.as_ref()?;
                    Some((ComparedId { policy, effect, index }, &compared.sql))
                })
            })
        })
    }
}
