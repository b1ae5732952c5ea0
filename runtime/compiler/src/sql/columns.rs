//! What the columns of an answer mean: keys and how values are rendered.

use jiff::tz::TimeZone;

use super::compiled::{ColumnFormat, ResultColumn};
use crate::model::{AggregateFunction, DimensionType, TimeKind};
use crate::plan::{LogicalPlan, PlannedValue, ValueExpr};
use crate::query::Group;
use crate::types::LogicalType;

pub(crate) fn columns(plan: &LogicalPlan<'_>) -> Vec<ResultColumn> {
    let groups = plan.groups.iter().enumerate().map(|(index, group)| ResultColumn {
        key: group.key.clone(),
        is_measure: false,
        format: group_format(plan, index, group),
    });
    let values = plan.values.iter().map(|value| ResultColumn {
        key: value.key.clone(),
        is_measure: true,
        format: value_format(plan, value),
    });
    groups.chain(values).collect()
}

fn is_utc(zone: &TimeZone) -> bool {
    zone.iana_name().is_none_or(|name| matches!(name, "UTC" | "Etc/UTC" | "Etc/GMT"))
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

/// Only the smallest and the largest of a time are times themselves.
fn value_format(plan: &LogicalPlan<'_>, value: &PlannedValue<'_>) -> ColumnFormat {
    let ValueExpr::Aggregate(index) = value.expression else { return ColumnFormat::Plain };
    let planned = &plan.aggregates[index];
    let is_extreme = matches!(planned.aggregate.function, AggregateFunction::Min | AggregateFunction::Max);
    match planned.aggregate.argument_type {
        LogicalType::TimestampTz | LogicalType::Timestamp if is_extreme => {
            let cube = plan.model.cube(plan.facts[planned.fact].tree.cube);
            time_format(plan, cube.time_kind_of(planned.aggregate))
        }
        _ => ColumnFormat::Plain,
    }
}
