//! Adds the column types that the warehouse reports to a model.
//!
//! In: types by member. Out: the model with these types. A DATE column has no time of day, so its dimension is a wall
//! clock, whatever the project declares.

use std::collections::{HashMap, HashSet};

use super::{
    AggregateFunction, Cube, CubeId, DimensionId, DimensionType, MeasureId, MeasureKind, Model, Snippet, TimeKind,
};
use crate::ids::JoinOperandId;
use crate::types::LogicalType;

/// The types that probes of the warehouse found. A member that is not among them stays `Unknown`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnTypes {
    pub dimensions: HashMap<DimensionId, LogicalType>,
    /// Types of the arguments of aggregating measures.
    pub measures: HashMap<MeasureId, LogicalType>,
    /// Dimensions, and arguments of measures, whose type exists only in the engine, such as an enum, a UUID or a time
    /// of day. A cast converts their values to strings.
    pub special: HashSet<SpecialMember>,
    /// The types of the expressions that policies compare a caller's values with.
    pub compared: HashMap<ComparedId, LogicalType>,
    /// The types of columns that joins compare and that no dimension shows.
    pub joined: HashMap<JoinOperandId, LogicalType>,
}

/// A member whose type exists only in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpecialMember {
    Dimension(DimensionId),
    /// The measure's argument.
    Measure(MeasureId),
}

/// Identifies a use of a caller's value by indexes: the policy, its effect on one cube, and the position in the row
/// filter of that effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComparedId {
    pub policy: u32,
    pub effect: u32,
    pub index: u32,
}

/// Returns the reported type of a dimension, and whether the type is the engine's own; for an alias, that of its target.
fn dimension_type(cube: &Cube, index: u32, types: &ColumnTypes) -> Option<(LogicalType, bool)> {
    let find = |cube| {
        let id = DimensionId { cube, index };
        Some((*types.dimensions.get(&id)?, types.special.contains(&SpecialMember::Dimension(id))))
    };
    find(cube.id).or_else(|| cube.alias_of.and_then(find))
}

fn measure_type(cube: &Cube, index: u32, types: &ColumnTypes) -> Option<(LogicalType, bool)> {
    let find = |cube| {
        let id = MeasureId { cube, index };
        Some((*types.measures.get(&id)?, types.special.contains(&SpecialMember::Measure(id))))
    };
    find(cube.id).or_else(|| cube.alias_of.and_then(find))
}

/// Returns whether values of a string dimension are converted: its column has a different type that is known.
fn is_converted(ty: LogicalType, is_special: bool) -> bool {
    use LogicalType::{Binary, Geo, Text, Unknown};
    is_special || !matches!(ty, Text | Unknown | Geo | Binary)
}

fn set_types(cube: &mut Cube, types: &ColumnTypes) {
    for index in 0..cube.dimensions.len() {
        let Some((ty, is_special)) = dimension_type(cube, index as u32, types) else { continue };
        let dimension = &mut cube.dimensions[index];
        dimension.converted_from = None;
        dimension.column_type = ty;
        if dimension.ty == DimensionType::String && is_converted(ty, is_special) {
            dimension.converted_from = Some(ty);
            dimension.column_type = LogicalType::Text;
        }
        if ty == LogicalType::Date && dimension.ty == DimensionType::Time {
            dimension.time = TimeKind::WallClock;
        }
    }
    for index in 0..cube.measures.len() {
        let Some((ty, is_special)) = measure_type(cube, index as u32, types) else { continue };
        match &mut cube.measures[index].kind {
            MeasureKind::Aggregate(aggregate)
            | MeasureKind::RunningTotal { aggregate, .. }
            | MeasureKind::Rolling { aggregate, .. } => {
                let is_extreme = matches!(aggregate.function, AggregateFunction::Min | AggregateFunction::Max);
                aggregate.is_converted = is_special && is_extreme;
                aggregate.argument_type = if aggregate.is_converted { LogicalType::Text } else { ty };
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
