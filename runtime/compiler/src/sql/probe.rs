//! Statements from which the warehouse reports the types of a cube's members, and the members that it refuses.
//!
//! In: a cube. Out: one SELECT over its rows with a column for each of its expressions, or one SELECT for each
//! expression, to find out which are refused. The statements are described at load and never run, so they need no row
//! filter. Another statement returns all columns of a table, for lineage.

use std::borrow::Cow;
use std::sync::Arc;

use super::ast::{JoinClause, JoinKind, Name, Page, Query, Select, Source, SqlExpr};
use super::dialect_profile::DialectProfile;
use super::join_comparison::{comparisons, dimension_of};
use super::lower::Lowered;
use super::print::{Parameters, print};
use super::scope::{RowScope, Texts};
use crate::ids::JoinOperandId;
use crate::model::{
    ColumnName, ComparedId, CubeId, DimensionId, Mask, MeasureId, MeasureKind, Model, Snippet, SqlPart,
};
use crate::plan::{Protection, joins_for};
use crate::project::{Definitions, SourceDefinition, TableDefinition, Text, quote_name};
use crate::query::QueryError;
use crate::snippet::grammar;

/// The item whose type the n-th column of a [`TypeProbe`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbedMember {
    Dimension(DimensionId),
    /// The measure's argument.
    Measure(MeasureId),
    /// The expression that a policy compares a caller's value with.
    Compared(ComparedId),
    /// The argument of a hidden aggregate in a `number`. The probe only checks that the warehouse accepts it.
    WithinMeasure(MeasureId),
    /// A filter of a measure.
    Filter(MeasureId),
    /// The row filter that the n-th policy has for the cube.
    RowFilter(u32),
    /// The mask of a dimension in the n-th policy.
    Mask(u32, DimensionId),
    /// The cube's n-th segment.
    Segment(u32),
    /// The cube's n-th join.
    Join(u32),
    /// A value that a join compares and that no dimension shows.
    JoinOperand(JoinOperandId),
}

/// A statement from which the warehouse reports the types of its columns, and the member of each column.
#[derive(Debug, Clone)]
pub struct TypeProbe {
    pub text: String,
    pub members: Vec<ProbedMember>,
}

/// Returns the probe of one cube. If the cube has no expressions, the probe reads only its rows, to detect a missing
/// table.
///
/// # Errors
/// A join cannot be followed, or the dialect lacks an operator.
pub fn type_probe(model: &Model, cube: CubeId, profile: &DialectProfile) -> Result<TypeProbe, QueryError> {
    let members = expressions(model, cube).into_iter().map(|(member, sql)| (member, Cow::Borrowed(sql)));
    let found: Vec<Probed<'_>> = members.chain(join_operands(model, cube, profile)).collect();
    probe(model, cube, profile, &found)
}

/// Returns a statement whose columns are those of a table, in their order.
///
/// # Errors
/// The dialect lacks an operator.
pub fn columns_probe(table: &[ColumnName], profile: &DialectProfile) -> Result<String, QueryError> {
    star(Source::Table { name: table, alias: PROBED }, profile)
}

/// A table that the project declares, and the statement that returns its columns.
#[derive(Debug, Clone)]
pub struct SourceProbe<'d> {
    /// The name as `source.table`.
    pub name: String,
    pub table: &'d TableDefinition,
    pub text: String,
}

/// Returns a probe for each table of the sources, with the name that `source()` prints; none if the dialect has no such
/// statement.
pub fn source_probes<'d>(definitions: &'d Definitions, profile: &DialectProfile) -> Vec<SourceProbe<'d>> {
    let dialect = grammar(&definitions.warehouse);
    let part = |name: &Text| ColumnName {
        text: Arc::clone(&name.value),
        quoted: quote_name(&name.value, &*dialect) != *name.value,
    };
    let tables = definitions.sources.iter().flat_map(|source| source.tables.iter().map(move |table| (source, table)));
    let probe = |(source, table): (&'d SourceDefinition, &'d TableDefinition)| {
        let parts = [source.database.as_ref(), source.schema.as_ref(), Some(&table.name)];
        let parts: Vec<ColumnName> = parts.into_iter().flatten().map(part).collect();
        let text = columns_probe(&parts, profile).ok()?;
        Some(SourceProbe { name: format!("{}.{}", source.name.value, table.name.value), table, text })
    };
    tables.filter_map(probe).collect()
}

/// Returns a statement whose columns are those of a cube's rows.
///
/// # Errors
/// Returns the same errors as [`columns_probe`].
pub fn rows_probe(model: &Model, cube: CubeId, profile: &DialectProfile) -> Result<String, QueryError> {
    star(Source::Cube { cube: model.cube(cube), alias: PROBED }, profile)
}

const PROBED: &str = "probed";

fn star(source: Source<'_>, profile: &DialectProfile) -> Result<String, QueryError> {
    let items = vec![(SqlExpr::Star(PROBED), Name::Numbered('t', 0))];
    let mut select = Select::new(items, source);
    select.filters = vec![SqlExpr::Boolean(false)];
    select.page = Some(Page { limit: 1, offset: 0 });
    let lowered = Lowered { query: Query::Select(Box::new(select)), total_column: None, added_column: None };
    print(&lowered, profile, Parameters::Inline).map(|(text, _)| text)
}

/// Returns a probe of the cube's rows without expressions, and then a probe for each expression.
///
/// # Errors
/// Returns the same errors as [`type_probe`].
pub fn single_probes(model: &Model, cube: CubeId, profile: &DialectProfile) -> Result<Vec<TypeProbe>, QueryError> {
    let rows = probe(model, cube, profile, &[]);
    let single = |(member, sql)| probe(model, cube, profile, &[(member, Cow::Borrowed(sql))]);
    let singles = expressions(model, cube).into_iter().map(single);
    std::iter::once(rows).chain(singles).collect()
}

/// A column of a probe.
type Probed<'m> = (ProbedMember, Cow<'m, Snippet>);

/// Returns the values that the cube's joins compare and whose types no dimension shows.
fn join_operands<'m>(model: &'m Model, cube: CubeId, profile: &DialectProfile) -> Vec<Probed<'m>> {
    // The joins of an alias are the joins of its cube, whose probe contains them.
    let Some(definition) = Some(model.cube(cube)).filter(|cube| cube.alias_of.is_none()) else { return Vec::new() };
    let dialect = grammar(&profile.name);
    let is_shown = |sql: &Snippet| matches!(&sql.parts[..], [part] if dimension_of(model, part).is_some());
    let mut found: Vec<Probed<'m>> = Vec::new();
    for (join, definition) in (0u32..).zip(&definition.joins) {
        let comparisons = comparisons(&definition.on, &*dialect);
        let values = comparisons.probed().filter(|(_, sql)| !is_shown(sql));
        found.extend(
            values.map(|(operand, sql)| {
                (ProbedMember::JoinOperand(JoinOperandId { cube, join, operand }), Cow::Owned(sql))
            }),
        );
    }
    found.retain(|(_, sql)| joins_for(model, cube, std::iter::once(&**sql)).is_ok());
    found
}

/// Returns the expressions over a cube's rows that need only cubes that can be joined. All others have been reported.
fn expressions(model: &Model, cube: CubeId) -> Vec<(ProbedMember, &Snippet)> {
    let definition = model.cube(cube);
    let mut found: Vec<(ProbedMember, &Snippet)> = Vec::new();
    for (index, dimension) in (0..).zip(&definition.dimensions) {
        found.push((ProbedMember::Dimension(DimensionId { cube, index }), &dimension.sql));
    }
    for (index, measure) in (0..).zip(&definition.measures) {
        let id = MeasureId { cube, index };
        let within = |snippet| (ProbedMember::WithinMeasure(id), snippet);
        let filter = |snippet| (ProbedMember::Filter(id), snippet);
        match &measure.kind {
            MeasureKind::Aggregate(aggregate)
            | MeasureKind::RunningTotal { aggregate, .. }
            | MeasureKind::Rolling { aggregate, .. } => {
                found.extend(aggregate.argument.iter().map(|argument| (ProbedMember::Measure(id), argument)));
                found.extend(aggregate.filters.iter().map(filter));
            }
            MeasureKind::Number(snippet) => snippet.for_each(&mut |part| {
                if let SqlPart::Aggregate(aggregate) = part {
                    found.extend(aggregate.argument.iter().map(within));
                    found.extend(aggregate.filters.iter().map(filter));
                }
            }),
        }
    }
    found.extend(model.compared_of(cube).map(|(id, sql)| (ProbedMember::Compared(id), sql)));
    found.extend(policy_texts(model, cube));
    found.extend((0..).zip(&definition.segments).map(|(index, segment)| (ProbedMember::Segment(index), &segment.sql)));
    // The joins of an alias are the joins of its cube, whose probe contains them.
    if definition.alias_of.is_none() {
        found.extend((0..).zip(&definition.joins).map(|(index, join)| (ProbedMember::Join(index), &join.on)));
    }
    found.retain(|(_, snippet)| joins_for(model, cube, std::iter::once(*snippet)).is_ok());
    found
}

/// Returns the SQL of policies on the cube, except SQL that contains values of the caller. Such SQL cannot be
/// described; only the expressions that the values are compared with can.
fn policy_texts(model: &Model, cube: CubeId) -> impl Iterator<Item = (ProbedMember, &Snippet)> {
    let effects = (0u32..).zip(&model.policies).flat_map(move |(index, policy)| {
        policy.cubes.iter().filter(move |effect| effect.cube == cube && !effect.is_closed).map(move |of| (index, of))
    });
    let texts = effects.flat_map(|(index, effect)| {
        let filter = effect.row_filter.iter().map(move |sql| (ProbedMember::RowFilter(index), sql));
        let masks = effect.masks.iter().filter_map(move |(id, mask)| match mask {
            Mask::Sql(sql) => Some((ProbedMember::Mask(index, *id), sql)),
            _ => None,
        });
        filter.chain(masks)
    });
    texts.filter(|(_, sql)| sql.user_parts().is_empty())
}

fn probe(model: &Model, cube: CubeId, profile: &DialectProfile, found: &[Probed<'_>]) -> Result<TypeProbe, QueryError> {
    let tree = joins_for(model, cube, found.iter().map(|(_, snippet)| &**snippet))?;
    let protection = Protection::default();
    let scope = RowScope::new(model, &tree, &protection, Texts::default());
    let mut items: Vec<_> =
        found.iter().enumerate().map(|(index, (_, sql))| (scope.snippet(0, sql), Name::Numbered('t', index))).collect();
    if items.is_empty() {
        items.push((SqlExpr::Integer(1), Name::Numbered('t', 0)));
    }
    let mut select = Select::new(items, Source::Cube { cube: model.cube(cube), alias: scope.alias(0) });
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
    Ok(TypeProbe { text, members: found.iter().map(|(member, _)| *member).collect() })
}
