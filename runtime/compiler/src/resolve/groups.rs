//! Resolves group-by columns: their names and granularities, and the restrictions of metrics.

use std::sync::Arc;

use super::Resolver;
use super::values::metrics_of;
use crate::model::{CubeId, DimensionId, DimensionType, Member, Model, TimeKind};
use crate::query::resolved::{Group, GroupBy, ValueId, primary_time};
use crate::query::{ExpectedMember, MemberRef, QueryError, TimeDimension, TimeRange};
use crate::types::{Granularity, LogicalType, METRIC_TIME};

impl Resolver<'_> {
    pub(super) fn groups(&self, facts: &[CubeId]) -> Result<Vec<Group>, QueryError> {
        let mut groups: Vec<Group> = Vec::new();
        let mut push = |group: Group| {
            if !groups.iter().any(|g| g.key == group.key) {
                groups.push(group);
            }
        };
        for name in &self.query.dimensions {
            let by = self.names.group_by(name)?;
            self.check_granularity(name, by, name.granularity, facts)?;
            push(Group { key: name.text.clone(), by, granularity: name.granularity });
        }
        for TimeDimension { member, granularity, range } in &self.query.time_dimensions {
            let by = self.time_dimension(member)?;
            let requested = granularity.or(member.granularity);
            self.check_granularity(member, by, requested, facts)?;
            if requested.is_some() || range.is_none() {
                push(Group { key: keyed(member, requested), by, granularity: requested });
            }
        }
        if let Some(TimeRange { member, granularity: Some(granularity), .. }) = &self.query.time_range {
            let name = match member {
                Some(name) => name.clone(),
                None => self.shared_time(facts)?,
            };
            let by = self.time_dimension(&name)?;
            self.check_granularity(&name, by, Some(*granularity), facts)?;
            push(Group { key: keyed(&name, Some(*granularity)), by, granularity: Some(*granularity) });
        }
        self.check_metric_time(&groups, facts)?;
        Ok(groups)
    }

    pub(super) fn time_dimension(&self, name: &MemberRef) -> Result<GroupBy, QueryError> {
        let by = self.names.group_by(name)?;
        match by {
            GroupBy::Dimension(id) => match self.names.model.dimension(id).ty {
                DimensionType::Time => Ok(by),
                ty => Err(QueryError::WrongKind {
                    name: name.text.clone(),
                    expected: ExpectedMember::TimeDimension,
                    found: dimension_of(ty),
                }),
            },
            GroupBy::MetricTime => Ok(by),
        }
    }

    fn check_granularity(
        &self,
        name: &MemberRef,
        by: GroupBy,
        granularity: Option<Granularity>,
        facts: &[CubeId],
    ) -> Result<(), QueryError> {
        match by {
            GroupBy::Dimension(id) => self.names.check_granularity(name, id, granularity),
            GroupBy::MetricTime if facts.is_empty() => Err(QueryError::MetricTimeOfNothing),
            GroupBy::MetricTime => {
                facts.iter().try_for_each(|fact| self.names.check_granularity(name, self.own_time(*fact)?, granularity))
            }
        }
    }

    /// Refuses `metric_time` with a granularity shorter than a day, or without one, if the primary time of one fact is
    /// an instant and that of another is a wall-clock time. Such times can be compared only by day.
    fn check_metric_time(&self, groups: &[Group], facts: &[CubeId]) -> Result<(), QueryError> {
        let is_fine = |g: &Group| g.by == GroupBy::MetricTime && g.granularity.is_none_or(Granularity::is_sub_day);
        if !groups.iter().any(is_fine) {
            return Ok(());
        }
        let model = self.names.model;
        let of_kind = |kind: TimeKind| {
            let mut of_kind = facts
                .iter()
                .filter(|fact| primary_time(model, **fact).is_ok_and(|id| model.dimension(id).time == kind));
            of_kind.next().map(|fact| model.cube(*fact).name.clone())
        };
        match (of_kind(TimeKind::Utc), of_kind(TimeKind::WallClock)) {
            (Some(instant), Some(wall_clock)) => Err(QueryError::MixedMetricTime { instant, wall_clock }),
            _ => Ok(()),
        }
    }

    /// Returns a cube's primary time if the caller may see it.
    pub(super) fn own_time(&self, fact: CubeId) -> Result<DimensionId, QueryError> {
        let id = primary_time(self.names.model, fact)?;
        match self.names.access.can_name(Member::Dimension(id)) {
            true => Ok(id),
            false => Err(QueryError::NoPrimaryTime { cube: self.names.model.cube(fact).name.clone() }),
        }
    }

    pub(super) fn is_time(&self, group: &Group) -> bool {
        match group.by {
            GroupBy::Dimension(id) => self.names.model.dimension(id).ty == DimensionType::Time,
            GroupBy::MetricTime => true,
        }
    }

    /// Returns the time kind of the first time group.
    pub(super) fn time_kind(&self, groups: &[Group], facts: &[CubeId]) -> TimeKind {
        let model = self.names.model;
        let time = groups.iter().find(|group| group.granularity.is_some());
        let dimension = time.zip(facts.first()).and_then(|(group, fact)| group.dimension(model, *fact).ok());
        dimension.map_or(TimeKind::Utc, |id| model.dimension(id).time)
    }

    /// Returns the group of a `time_range` with a granularity and without a dimension: the primary time of the only
    /// fact, under its own name, or `metric_time` if there are several facts.
    fn shared_time(&self, facts: &[CubeId]) -> Result<MemberRef, QueryError> {
        let model = self.names.model;
        match facts {
            [] => Err(QueryError::AmbiguousTimeRange),
            [fact] => {
                let id = self.own_time(*fact)?;
                format!("{}.{}", model.cube(*fact).name, model.dimension(id).name).parse()
            }
            _ => METRIC_TIME.parse(),
        }
    }
}

/// Returns the key of a group in the result: `orders.created_at.month` for `orders.created_at` by month, in whichever
/// field of the query the granularity is.
fn keyed(member: &MemberRef, granularity: Option<Granularity>) -> Arc<str> {
    match granularity {
        Some(granularity) if member.granularity != Some(granularity) => {
            let cube = member.cube().map(|cube| format!("{cube}.")).unwrap_or_default();
            format!("{cube}{}.{granularity}", member.member()).into()
        }
        _ => member.text.clone(),
    }
}

/// Checks that no group is finer than the `time_grain` of a used metric, or of a metric that it refers to.
pub(super) fn check_time_grain(model: &Model, used: &[ValueId], groups: &[Group]) -> Result<(), QueryError> {
    let mut metrics = Vec::new();
    used.iter().for_each(|value| metrics_of(model, *value, &mut metrics));
    for metric in metrics.into_iter().map(|id| model.metric(id)) {
        let Some(finest) = metric.time_grain else { continue };
        for group in groups {
            let ungrouped = match group.by {
                GroupBy::Dimension(id) => match model.dimension(id) {
                    dimension if dimension.ty != DimensionType::Time => continue,
                    dimension if dimension.column_type == LogicalType::Date => Granularity::Day,
                    _ => Granularity::Second,
                },
                GroupBy::MetricTime => Granularity::Second,
            };
            let requested = group.granularity.unwrap_or(ungrouped);
            if requested < finest {
                return Err(QueryError::FinerThanTimeGrain { metric: metric.name.clone(), finest, requested });
            }
        }
    }
    Ok(())
}

/// Returns the phrase for a dimension of a type.
fn dimension_of(ty: DimensionType) -> &'static str {
    match ty {
        DimensionType::String => "string dimension",
        DimensionType::Number => "number dimension",
        DimensionType::Boolean => "boolean dimension",
        DimensionType::Time => "time dimension",
        DimensionType::Geo => "geo dimension",
    }
}
