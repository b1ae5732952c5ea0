//! A statement that shows the warehouse's types of a cube's members, for a `describe` at load.
//!
//! In: a cube. Out: one SELECT over its rows with a column per dimension and per measure's argument,
//! which is described and never run, so no row filter is needed. Types are inputs of the compiler.

use super::ast::{JoinClause, JoinKind, Name, Page, Query, Select, Source, SqlExpr};
use super::expression::RowScope;
use super::lower::Lowered;
use super::print::{Parameters, print};
use super::profile::DialectProfile;
use crate::model::{ComparedId, CubeId, DimensionId, MeasureId, MeasureKind, Model, Snippet};
use crate::plan::{Protection, joins_for};
use crate::query::QueryError;

/// What the n-th column of a [`TypeProbe`] tells the type of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbedMember {
    Dimension(DimensionId),
    /// The measure's argument.
    Measure(MeasureId),
    /// What a policy compares a caller's value with.
    Compared(ComparedId),
}

/// A statement to describe.
#[derive(Debug, Clone)]
pub struct TypeProbe {
    pub text: String,
    pub members: Vec<ProbedMember>,
}

/// The probe of one cube; `None` for a cube without members that have a type of their own.
///
/// # Errors
/// A join that can't be followed, or an operator that the dialect lacks.
pub fn type_probe(model: &Model, cube: CubeId, profile: &DialectProfile) -> Result<Option<TypeProbe>, QueryError> {
    let definition = model.cube(cube);
    let mut found: Vec<(ProbedMember, &Snippet)> = Vec::new();
    for (index, dimension) in (0..).zip(&definition.dimensions) {
        found.push((ProbedMember::Dimension(DimensionId { cube, index }), &dimension.sql));
    }
    for (index, measure) in (0..).zip(&definition.measures) {
        let (MeasureKind::Aggregate(aggregate) | MeasureKind::RunningTotal { aggregate, .. }) = &measure.kind else {
            continue;
        };
        if let Some(argument) = &aggregate.argument {
            found.push((ProbedMember::Measure(MeasureId { cube, index }), argument));
        }
    }
    found.extend(model.compared_of(cube).map(|(id, sql)| (ProbedMember::Compared(id), sql)));
    if found.is_empty() {
        return Ok(None);
    }
    let tree = joins_for(model, cube, found.iter().map(|(_, snippet)| *snippet))?;
    let protection = Protection::default();
    let scope = RowScope { model, tree: &tree, protection: &protection, root: None };
    let items = found.iter().enumerate();
    let items = items.map(|(index, (_, sql))| (scope.snippet(0, sql), Name::Numbered('t', index))).collect();
    let mut select = Select::new(items, Source::Cube { cube: definition, alias: scope.alias(0) });
    let joins = tree.joins.iter().enumerate();
    select.joins = joins
        .map(|(index, planned)| JoinClause {
            source: Source::Cube { cube: model.cube(planned.join.target), alias: &planned.alias },
            kind: JoinKind::Left,
            on: vec![scope.join_condition(index + 1)],
        })
        .collect();
    select.filters = vec![SqlExpr::Boolean(false)];
    select.page = Some(Page { limit: 1, offset: 0 });
    let lowered = Lowered { query: Query::Select(Box::new(select)), total_column: None, added_column: None };
    let (text, _) = print(&lowered, profile, Parameters::Inline)?;
    Ok(Some(TypeProbe { text, members: found.into_iter().map(|(member, _)| member).collect() }))
}
