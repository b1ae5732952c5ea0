//! Adds the column types that the warehouse reports to a model.
//!
//! In: types by member. Out: the model with these types. A DATE column has no time of day, so its dimension is a wall
//! clock, whatever the project declares.

use std::collections::HashMap;

use super::{Cube, CubeId, DimensionId, DimensionType, MeasureId, MeasureKind, Model, Snippet, TimeKind};
use crate::ids::JoinOperandId;
use crate::types::LogicalType;

/// The types that probes of the warehouse found. A member that is not among them stays `Unknown`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnTypes {
    pub dimensions: HashMap<DimensionId, LogicalType>,
    /// Types of the arguments of aggregating measures.
    pub measures: HashMap<MeasureId, LogicalType>,
    /// The types of the expressions that policies compare a caller's values with.
    pub compared: HashMap<ComparedId, LogicalType>,
    /// The types of columns that joins compare and that no dimension shows.
    pub joined: HashMap<JoinOperandId, LogicalType>,
}

/// Identifies a use of a caller's value by indexes: the policy, its effect on one cube, and the position in the row
/// filter of that effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComparedId {
    pub policy: u32,
    pub effect: u32,
    pub index: u32,
}

/// Returns the reported type of a dimension; for an alias, that of its target.
fn dimension_type(cube: &Cube, index: u32, types: &ColumnTypes) -> Option<LogicalType> {
    let find = |cube| types.dimensions.get(&DimensionId { cube, index }).copied();
    find(cube.id).or_else(|| cube.alias_of.and_then(find))
}

fn measure_type(cube: &Cube, index: u32, types: &ColumnTypes) -> Option<LogicalType> {
    let find = |cube| types.measures.get(&MeasureId { cube, index }).copied();
    find(cube.id).or_else(|| cube.alias_of.and_then(find))
}

fn set_types(cube: &mut Cube, types: &ColumnTypes) {
    for index in 0..cube.dimensions.len() {
        let Some(ty) = dimension_type(cube, index as u32, types) else { continue };
        let dimension = &mut cube.dimensions[index];
        dimension.column_type = ty;
        if ty == LogicalType::Date && dimension.ty == DimensionType::Time {
            dimension.time = TimeKind::WallClock;
        }
    }
    for index in 0..cube.measures.len() {
        let Some(ty) = measure_type(cube, index as u32, types) else { continue };
        match &mut cube.measures[index].kind {
            MeasureKind::Aggregate(aggregate)
            | MeasureKind::RunningTotal { aggregate, .. }
            | MeasureKind::Rolling { aggregate, .. } => {
                aggregate.argument_type = ty;
            }
            MeasureKind::Number(_) => {}
        }
    }
}

impl Model {
    /// Returns the model with its column types. An alias without types of its own takes those of its target.
    #[must_use]
    pub fn with_types(mut self, types: &ColumnTypes) -> Model {
        for cube in &mut self.cubes {
            set_types(cube, types);
        }
        self.set_rollup_states();
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

    /// Returns the expressions that policies compare a caller's values with, over the rows of one cube.
    pub fn compared_of(&self, cube: CubeId) -> impl Iterator<Item = (ComparedId, &Snippet)> {
        (0u32..).zip(&self.policies).flat_map(move |(policy, definition)| {
            // An effect that closes the cube compares nothing.
            let is_compared = move |of: &super::CubePolicy| of.cube == cube && !of.is_closed;
            let effects = (0u32..).zip(&definition.cubes).filter(move |(_, of)| is_compared(of));
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
