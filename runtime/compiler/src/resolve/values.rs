//! Analyzes values: the metrics inside them, the cubes whose rows they need, and measures along the time axis.

use std::collections::HashSet;
use std::sync::Arc;

use crate::model::{CubeId, MeasureKind, MetricId, Model, Snippet, SqlPart};
use crate::query::resolved::{Operand, OrderKey, OrderTarget, Predicate, SelectedValue, ValueId};

/// Returns the values that are selected, filtered by, or ordered by.
pub(super) fn used_values(values: &[SelectedValue], filters: &[Predicate], order: &[OrderKey]) -> Vec<ValueId> {
    let mut used: Vec<ValueId> = values.iter().map(|v| v.value).collect();
    for filter in filters {
        filter.for_each_operand(&mut |operand| {
            if let Operand::Value(value) = operand {
                used.push(*value);
            }
        });
    }
    used.extend(order.iter().filter_map(|key| match key.target {
        OrderTarget::Value(value) => Some(value),
        _ => None,
    }));
    used
}

/// Adds the cubes whose rows a value is computed from, each once, in the order of first use.
pub(super) fn fact_cubes(model: &Model, value: ValueId, found: &mut Vec<CubeId>) {
    collect_facts(model, value, &mut HashSet::new(), found);
}

/// Collects the cubes of a value. Each value is visited once, because `number` measures may refer to one another many
/// times.
fn collect_facts(model: &Model, value: ValueId, seen: &mut HashSet<ValueId>, found: &mut Vec<CubeId>) {
    if !seen.insert(value) {
        return;
    }
    let (snippet, own) = match value {
        ValueId::Measure(id) => match &model.measure(id).kind {
            MeasureKind::Number(snippet) => (snippet, Some(id.cube)),
            MeasureKind::Aggregate(_) | MeasureKind::RunningTotal { .. } | MeasureKind::Rolling { .. } => {
                found.extend(Some(id.cube).filter(|own| !found.contains(own)));
                return;
            }
        },
        ValueId::Metric(id) => (&model.metric(id).body, None),
    };
    let mut parts = Vec::new();
    snippet.for_each(&mut |part| parts.push(part));
    for part in parts {
        match part {
            SqlPart::Measure(id) => collect_facts(model, ValueId::Measure(*id), seen, found),
            SqlPart::Metric(id) => collect_facts(model, ValueId::Metric(*id), seen, found),
            SqlPart::Aggregate(_) => found.extend(own.filter(|own| !found.contains(own))),
            _ => {}
        }
    }
}

pub(super) fn metrics_of(model: &Model, value: ValueId, found: &mut Vec<MetricId>) {
    let ValueId::Metric(id) = value else { return };
    if found.contains(&id) {
        return;
    }
    found.push(id);
    let mut inner = Vec::new();
    model.metric(id).body.for_each(&mut |part| {
        if let SqlPart::Metric(id) = part {
            inner.push(*id);
        }
    });
    inner.into_iter().for_each(|id| metrics_of(model, ValueId::Metric(id), found));
}

/// Returns the name of the first measure in a value that needs the time axis: a running total or a measure with a
/// rolling window.
pub(super) fn along_axis_in(model: &Model, value: ValueId) -> Option<Arc<str>> {
    let within = |snippet: &Snippet| {
        let mut inner = Vec::new();
        snippet.for_each(&mut |part| match part {
            SqlPart::Measure(id) => inner.push(ValueId::Measure(*id)),
            SqlPart::Metric(id) => inner.push(ValueId::Metric(*id)),
            _ => {}
        });
        inner.into_iter().find_map(|value| along_axis_in(model, value))
    };
    match value {
        ValueId::Measure(id) => match &model.measure(id).kind {
            MeasureKind::RunningTotal { .. } | MeasureKind::Rolling { .. } => {
                Some(format!("{}.{}", model.cube(id.cube).name, model.measure(id).name).into())
            }
            MeasureKind::Number(snippet) => within(snippet),
            MeasureKind::Aggregate(_) => None,
        },
        ValueId::Metric(id) => within(&model.metric(id).body),
    }
}
