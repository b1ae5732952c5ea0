//! A semantic query that is being planned: its groups, values and filters, and the columns of the table.

use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId, Model};
use terrane_compiler::query::{Filter, MemberRef, SemanticQuery};
use terrane_compiler::types::{Operator, Value};

use super::measures::{Aggregates, applies, counts, is_never_blank};
use super::{OrderKey, ResultColumn, SemanticPlan, Top, not_supported};
use crate::bound::MeasureSource;
use crate::place::Place;
use crate::problem::Problem;
use crate::types::Type;

/// The filters around a table expression.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    pub filters: Vec<PlannedFilter>,
}

/// A filter that applies to rows before they are grouped.
#[derive(Debug, Clone)]
pub(super) struct PlannedFilter {
    pub filter: Filter,
    /// The columns that the filter compares.
    pub columns: Vec<DimensionId>,
    pub place: Place,
}

/// The part of the semantic query from which the values of a column come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Group(DimensionId),
    Value(MeasureSource),
}

#[derive(Debug, Clone)]
pub(super) struct ShapeColumn {
    pub name: String,
    pub ty: Type,
    pub source: Source,
}

/// The kind of rows that a semantic query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// The groups for which a measure has rows, without groups in which every value is BLANK.
    GroupsWithValues,
    /// The groups for which a measure has rows.
    Groups,
    /// The combinations of values that the columns have in the rows of a table.
    Distinct(CubeId),
    /// Every row of a table.
    All(CubeId),
}

/// A table expression that one semantic query answers.
#[derive(Debug, Clone)]
pub(super) struct SemanticTable {
    pub rows: Rows,
    pub columns: Vec<ShapeColumn>,
    /// The groups of the query, including those that are not columns of the table.
    pub groups: Vec<DimensionId>,
    /// The values of the query. They include values that are not columns of the table, because all values together
    /// decide which groups exist.
    pub values: Vec<MeasureSource>,
    pub filters: Vec<PlannedFilter>,
    /// Filters that apply to finished groups.
    pub group_filters: Vec<Filter>,
    pub top: Option<Top>,
    pub place: Place,
}

impl SemanticTable {
    /// Returns the plan, or a problem if a semantic query would have rows or values that differ from those of the
    /// table.
    pub(super) fn finish(self, model: &Model, order: Vec<OrderKey>) -> Result<SemanticPlan, Problem> {
        let facts = self.facts(model)?;
        for filter in &self.filters {
            let is_reached = |column: &DimensionId| facts.iter().all(|fact| applies(model, *column, *fact));
            if !filter.columns.iter().all(is_reached) {
                return Err(not_supported("a filter that does not reach every measure", filter.place));
            }
        }
        if !self.groups.iter().all(|group| facts.iter().all(|fact| applies(model, *group, *fact))) {
            return Err(not_supported("a group column that does not reach every measure", self.place));
        }
        let members = self.values.iter().map(|source| value_ref(model, *source)).collect::<Option<Vec<_>>>();
        let dimensions = self.groups.iter().map(|id| column_ref(model, *id)).collect::<Option<Vec<_>>>();
        let Some((members, dimensions)) = members.zip(dimensions) else {
            return Err(not_supported("a name with a dot", self.place));
        };
        let mut filters: Vec<Filter> = self.filters.iter().map(|filter| filter.filter.clone()).collect();
        filters.extend(self.group_filters.iter().cloned());
        let has_value = |source: &MeasureSource| !self.groups.is_empty() && is_never_blank(model, *source);
        if self.rows == Rows::GroupsWithValues && !self.values.iter().any(has_value) {
            let is_set = |(member, source): (&MemberRef, &MeasureSource)| {
                let (operator, values) = match counts(model, *source) {
                    true => (Operator::Gt, vec![Value::Integer(0)]),
                    false => (Operator::Set, Vec::new()),
                };
                Filter::Condition { member: member.clone(), operator, values }
            };
            filters.push(Filter::Or(members.iter().zip(&self.values).map(is_set).collect()));
        }
        let cube = match self.rows {
            Rows::Distinct(cube) | Rows::All(cube) if members.is_empty() => Some(Arc::clone(&model.cube(cube).name)),
            _ => None,
        };
        let columns = self.columns.iter().map(|column| {
            let (source, measure) = match column.source {
                Source::Group(id) => (self.groups.iter().position(|group| *group == id), None),
                Source::Value(source) => {
                    let at = self.values.iter().position(|value| *value == source);
                    (at.map(|at| at + self.groups.len()), Some(source))
                }
            };
            let is_count = measure.is_some_and(|measure| counts(model, measure));
            // The source of every column is a group or a value of the shape.
            let source = source.ok_or_else(|| not_supported("this column", self.place))?;
            Ok(ResultColumn { name: column.name.clone(), ty: column.ty, measure, is_count, source })
        });
        let columns = columns.collect::<Result<Vec<ResultColumn>, Problem>>()?;
        let query = SemanticQuery {
            cube,
            values: members,
            dimensions,
            filters,
            skip_total: true,
            ungrouped: matches!(self.rows, Rows::All(_)),
            ..SemanticQuery::default()
        };
        Ok(SemanticPlan { query, columns, top: self.top, order })
    }

    /// Returns the tables whose rows the query aggregates or lists.
    fn facts(&self, model: &Model) -> Result<Vec<CubeId>, Problem> {
        let mut aggregates = Aggregates::default();
        self.values.iter().for_each(|source| aggregates.add(model, *source));
        if let Some(what) = aggregates.along_time {
            return Err(not_supported(what, self.place));
        }
        if aggregates.facts.len() > 1 && aggregates.counts && !self.groups.is_empty() {
            // If a table has no rows for a group, its count is BLANK in DAX and 0 in a semantic query.
            return Err(not_supported("counts beside measures of another table", self.place));
        }
        match self.rows {
            Rows::Distinct(cube) | Rows::All(cube) => {
                let is_own = aggregates.facts.iter().all(|fact| *fact == cube);
                if !is_own {
                    return Err(not_supported("measures of another table in the groups of a table", self.place));
                }
                Ok(vec![cube])
            }
            Rows::GroupsWithValues | Rows::Groups if aggregates.facts.is_empty() => {
                Err(not_supported("groups without a measure", self.place))
            }
            Rows::GroupsWithValues | Rows::Groups => Ok(aggregates.facts),
        }
    }
}

pub(crate) fn column_ref(model: &Model, id: DimensionId) -> Option<MemberRef> {
    member_ref(&model.cube(id.cube).name, &model.dimension(id).name)
}

pub(crate) fn value_ref(model: &Model, source: MeasureSource) -> Option<MemberRef> {
    match source {
        MeasureSource::Model(id) => member_ref(&model.cube(id.cube).name, &model.measure(id).name),
        MeasureSource::Metric(id) => {
            let name = &model.metric(id).name;
            if name.contains('.') { None } else { name.parse().ok() }
        }
        MeasureSource::Query(_) => None,
    }
}

/// Returns the reference to a member, or `None` if a name contains a dot, which a reference uses as separator.
fn member_ref(cube: &str, member: &str) -> Option<MemberRef> {
    if cube.contains('.') || member.contains('.') { None } else { format!("{cube}.{member}").parse().ok() }
}
