//! Column types, as the warehouse told, into a model.
//!
//! In: types by member. Out: the model with them. A DATE column has no time of day, so its dimension
//! is a wall clock whatever the author wrote (semantics, rule 16).

use std::collections::HashMap;
use std::sync::Arc;

use super::{
    Cube, CubeId, Dimension, DimensionId, DimensionType, Measure, MeasureId, MeasureKind, Model, Snippet, TimeKind,
};
use crate::sql::JoinOperandId;
use crate::types::LogicalType;

/// What a probe of the warehouse found; a member that is missing stays `Unknown`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnTypes {
    pub dimensions: HashMap<DimensionId, LogicalType>,
    /// Types of the arguments of aggregating measures.
    pub measures: HashMap<MeasureId, LogicalType>,
    /// Types of what policies compare a caller's values with.
    pub compared: HashMap<ComparedId, LogicalType>,
    /// Types of columns that joins compare and no dimension shows.
    pub joined: HashMap<JoinOperandId, LogicalType>,
}

/// The n-th of a caller's values in a policy's row filter on one cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComparedId {
    pub policy: u32,
    pub effect: u32,
    pub index: u32,
}

/// Cubes without types, as they were built, and the same with types, by number.
#[derive(Debug, Default)]
pub struct TypedCubes(Vec<(Arc<Cube>, Arc<Cube>)>);

impl TypedCubes {
    /// `plain`: the cubes of a model before it got its types.
    pub fn of(plain: Vec<Arc<Cube>>, typed: &Model) -> TypedCubes {
        TypedCubes(plain.into_iter().zip(typed.cubes.iter().cloned()).collect())
    }
}

/// The type that was told of a dimension or, of an alias, of its target's.
fn dimension_type(cube: &Cube, index: u32, types: &ColumnTypes) -> Option<LogicalType> {
    let find = |cube| types.dimensions.get(&DimensionId { cube, index }).copied();
    find(cube.id).or_else(|| cube.alias_of.and_then(find))
}

fn measure_type(cube: &Cube, index: u32, types: &ColumnTypes) -> Option<LogicalType> {
    let find = |cube| types.measures.get(&MeasureId { cube, index }).copied();
    find(cube.id).or_else(|| cube.alias_of.and_then(find))
}

/// Whether a cube has these types, and no others.
fn has_types(cube: &Cube, types: &ColumnTypes) -> bool {
    let has_dimension = |(index, dimension): (u32, &Dimension)| {
        dimension.column_type == dimension_type(cube, index, types).unwrap_or(LogicalType::Unknown)
    };
    let has_measure = |(index, measure): (u32, &Measure)| match &measure.kind {
        MeasureKind::Aggregate(aggregate) | MeasureKind::RunningTotal { aggregate, .. } => {
            aggregate.argument_type == measure_type(cube, index, types).unwrap_or(LogicalType::Unknown)
        }
        MeasureKind::Number(_) => true,
    };
    (0u32..).zip(&cube.dimensions).all(has_dimension) && (0u32..).zip(&cube.measures).all(has_measure)
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
            MeasureKind::Aggregate(aggregate) | MeasureKind::RunningTotal { aggregate, .. } => {
                aggregate.argument_type = ty;
            }
            MeasureKind::Number(_) => {}
        }
    }
}

impl Model {
    /// The model with its column types. An alias without types of its own takes its target's.
    #[must_use]
    pub fn with_types(self, types: &ColumnTypes) -> Model {
        self.with_types_again(types, &TypedCubes::default())
    }

    /// The same, where cubes may have got their types before: those that are as they were, with the same types,
    /// are shared.
    #[must_use]
    pub fn with_types_again(mut self, types: &ColumnTypes, before: &TypedCubes) -> Model {
        for (at, cube) in self.cubes.iter_mut().enumerate() {
            let typed = before.0.get(at).filter(|(plain, _)| Arc::ptr_eq(plain, cube)).map(|(_, typed)| typed);
            match typed.filter(|typed| has_types(typed, types)) {
                Some(typed) => *cube = Arc::clone(typed),
                None if has_types(cube, types) => {}
                None => set_types(Arc::make_mut(cube), types),
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
            // Of rows that are not the filter's own nothing is compared: the cube is closed.
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
