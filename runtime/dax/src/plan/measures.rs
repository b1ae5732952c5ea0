//! The measures of a semantic query: the tables that they aggregate, and whether they can be BLANK.

use std::collections::HashSet;

use terrane_compiler::model::{
    AggregateFunction, CubeId, DimensionId, MeasureId, MeasureKind, MetricId, Model, SqlPart,
};
use terrane_compiler::types::DimensionType;

use crate::bound::MeasureSource;

/// The aggregates from which a measure or metric is computed.
#[derive(Debug, Default)]
pub(crate) struct Aggregates {
    /// The tables whose rows are aggregated, each once.
    pub facts: Vec<CubeId>,
    /// True if one of the aggregates is a count, which is 0 for groups without rows.
    pub counts: bool,
    /// The kind of a measure that needs the time axis of a query. `None` if no measure needs it.
    pub along_time: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Measure(MeasureId),
    Metric(MetricId),
}

impl Aggregates {
    /// Adds the aggregates of a measure or metric of the model. A measure of the query adds none.
    pub(crate) fn add(&mut self, model: &Model, source: MeasureSource) {
        let mut open = match source {
            MeasureSource::Model(id) => vec![Part::Measure(id)],
            MeasureSource::Metric(id) => vec![Part::Metric(id)],
            MeasureSource::Query(_) => Vec::new(),
        };
        let mut seen = HashSet::new();
        while let Some(part) = open.pop() {
            if !seen.insert(part) {
                continue;
            }
            let (snippet, own) = match part {
                Part::Metric(id) => (&model.metric(id).body, None),
                Part::Measure(id) => match &model.measure(id).kind {
                    MeasureKind::Number(snippet) => (snippet, Some(id.cube)),
                    MeasureKind::Aggregate(aggregate) => {
                        self.aggregate(id.cube, aggregate.function);
                        continue;
                    }
                    MeasureKind::RunningTotal { aggregate, .. } => {
                        self.along_time = self.along_time.or(Some("a running total"));
                        self.aggregate(id.cube, aggregate.function);
                        continue;
                    }
                    MeasureKind::Rolling { aggregate, .. } => {
                        self.along_time = self.along_time.or(Some("a rolling window"));
                        self.aggregate(id.cube, aggregate.function);
                        continue;
                    }
                },
            };
            snippet.for_each(&mut |part| match part {
                SqlPart::Measure(id) => open.push(Part::Measure(*id)),
                SqlPart::Metric(id) => open.push(Part::Metric(*id)),
                SqlPart::Aggregate(aggregate) => {
                    own.into_iter().for_each(|cube| self.aggregate(cube, aggregate.function));
                }
                _ => {}
            });
        }
    }

    fn aggregate(&mut self, cube: CubeId, function: AggregateFunction) {
        if !self.facts.contains(&cube) {
            self.facts.push(cube);
        }
        self.counts |= matches!(
            function,
            AggregateFunction::Count | AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox
        );
    }
}

/// Returns whether a measure is a count, for which a semantic query returns 0 and DAX returns BLANK.
pub(crate) fn counts(model: &Model, source: MeasureSource) -> bool {
    let MeasureSource::Model(id) = source else { return false };
    matches!(&model.measure(id).kind, MeasureKind::Aggregate(aggregate) if matches!(
        aggregate.function,
        AggregateFunction::Count | AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox
    ))
}

/// Returns whether a measure is never BLANK in a group that has rows of its table, because it counts all rows.
pub(super) fn is_never_blank(model: &Model, source: MeasureSource) -> bool {
    let MeasureSource::Model(id) = source else { return false };
    matches!(&model.measure(id).kind, MeasureKind::Aggregate(aggregate) if
        aggregate.function == AggregateFunction::Count && aggregate.argument.is_none() && aggregate.filters.is_empty())
}

/// Returns whether rows of another table may lack a partner in a table. VALUES of the table then has a BLANK row.
pub(crate) fn may_lack_partners(model: &Model, table: CubeId) -> bool {
    let to_it = model.cubes.iter().flat_map(|cube| &cube.joins);
    let leads_here = to_it.filter(|join| join.target == table && join.relationship.is_to_one());
    let leads_away = model.cube(table).joins.iter().filter(|join| !join.relationship.is_to_one());
    leads_here.chain(leads_away).any(|join| !join.always)
}

/// Returns whether filters and groups of a column apply to the rows of a table. The column must be in that table, or in
/// a table that the joins of that table reach on the one side.
pub(crate) fn applies(model: &Model, column: DimensionId, fact: CubeId) -> bool {
    model.join_paths(fact).is_to_one(column.cube)
}

/// Returns the table of dates if these columns are its key. A table of dates has a time as its only key column, and
/// another table reaches it on the one side. A filter of this key replaces the filters of all columns of the table.
pub(crate) fn calendar_of(model: &Model, columns: &[DimensionId]) -> Option<CubeId> {
    let [DimensionId { cube, index }] = *columns else { return None };
    let is_time = model.dimension(columns[0]).ty == DimensionType::Time;
    (is_time && model.cube(cube).primary_key == [index] && is_on_one_side(model, cube)).then_some(cube)
}

/// Returns whether another table reaches a table on the one side.
pub(crate) fn is_on_one_side(model: &Model, table: CubeId) -> bool {
    model.cubes.iter().any(|cube| cube.id != table && model.join_paths(cube.id).is_to_one(table))
}
