//! The columns of a result: their keys and the formats of their values.

use super::compiled::{ColumnFormat, ResultColumn};
use crate::model::{AggregateFunction, DimensionType, TimeKind};
use crate::plan::{LogicalPlan, PlannedAggregate, PlannedValue, ValueExpr};
use crate::query::Group;
use crate::types::{LogicalType, is_utc};

pub(crate) fn columns(plan: &LogicalPlan<'_>) -> Vec<ResultColumn> {
    let groups = plan.groups.iter().enumerate().map(|(index, group)| ResultColumn {
        key: group.key.clone(),
        is_measure: false,
        ty: plan.model.dimension(plan.facts[0].groups[index]).ty,
        format: group_format(plan, index, group),
    });
    let values = plan.values.iter().map(|value| ResultColumn {
        key: value.key.clone(),
        is_measure: true,
        ty: value_type(plan, value),
        format: value_format(plan, value),
    });
    groups.chain(values).collect()
}

fn group_format(plan: &LogicalPlan<'_>, index: usize, group: &Group) -> ColumnFormat {
    let dimension = plan.model.dimension(plan.facts[0].groups[index]);
    if dimension.ty != DimensionType::Time {
        return ColumnFormat::Plain;
    }
    match (group.granularity, dimension.time) {
        (Some(granularity), _) if !granularity.is_sub_day() => ColumnFormat::Date(granularity),
        (Some(granularity), TimeKind::Utc) if !is_utc(&plan.timezone) => {
            ColumnFormat::InstantBucket(granularity, plan.timezone.clone())
        }
        (Some(granularity), _) => ColumnFormat::Clock(granularity),
        (None, kind) => time_format(plan, kind),
    }
}

fn time_format(plan: &LogicalPlan<'_>, kind: TimeKind) -> ColumnFormat {
    match kind {
        TimeKind::Utc => ColumnFormat::Instant(plan.timezone.clone()),
        TimeKind::WallClock => ColumnFormat::WallClock,
    }
}

/// Returns the aggregate of a `min` or `max`; its result has the type of its argument.
fn extreme<'a>(plan: &'a LogicalPlan<'_>, value: &PlannedValue<'_>) -> Option<&'a PlannedAggregate<'a>> {
    let ValueExpr::Aggregate(index) = value.expression else { return None };
    let planned = &plan.aggregates[index];
    matches!(planned.aggregate.function, AggregateFunction::Min | AggregateFunction::Max).then_some(planned)
}

fn value_type(plan: &LogicalPlan<'_>, value: &PlannedValue<'_>) -> DimensionType {
    match extreme(plan, value).map(|planned| planned.aggregate.argument_type) {
        Some(ty) if ty.is_temporal() => DimensionType::Time,
        Some(LogicalType::Text) => DimensionType::String,
        Some(LogicalType::Boolean) => DimensionType::Boolean,
        _ => DimensionType::Number,
    }
}

fn value_format(plan: &LogicalPlan<'_>, value: &PlannedValue<'_>) -> ColumnFormat {
    let Some(planned) = extreme(plan, value) else { return ColumnFormat::Plain };
    match planned.aggregate.argument_type {
        LogicalType::TimestampTz | LogicalType::Timestamp => {
            let cube = plan.model.cube(plan.facts[planned.fact].tree.cube);
            time_format(plan, cube.time_kind_of(planned.aggregate))
        }
        _ => ColumnFormat::Plain,
    }
}
