//! Finding what a name in a query stands for, or the nearest names to it.
//!
//! In: a [`MemberRef`] and the query's `cube`. Out: ids. A name without a dot is first a member of the
//! query's cube, then a metric.

use std::sync::Arc;

use crate::access::Access;
use crate::model::{Cube, CubeId, DimensionId, Member, MetricId, Model, SegmentId, TimeKind};
use crate::query::resolved::{GroupBy, ValueId};
use crate::query::{ExpectedMember, MemberRef, QueryError, SemanticQuery};
use crate::text::nearest::nearest;
use crate::types::Granularity;

pub(super) struct Names<'a> {
    pub model: &'a Model,
    pub access: &'a Access<'a>,
    cube: Option<&'a Cube>,
    /// The names are the project's own, so cubes that are not public count.
    is_internal: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new(access: &'a Access<'a>, query: &SemanticQuery) -> Result<Self, QueryError> {
        let model = access.model();
        let cube = match &query.cube {
            Some(name) => Some(public_cube(model, name).ok_or_else(|| QueryError::UnknownCube {
                name: name.clone(),
                nearest: suggest(name, public_cubes(model).map(|c| &c.name)),
            })?),
            None => None,
        };
        Ok(Names { model, access, cube, is_internal: false })
    }

    /// For names that the project itself wrote.
    pub(super) fn internal(access: &'a Access<'a>) -> Self {
        Names { model: access.model(), access, cube: None, is_internal: true }
    }

    pub(super) fn cube_id(&self) -> Option<CubeId> {
        self.cube.map(|cube| cube.id)
    }

    fn member(&self, name: &MemberRef) -> Option<Member> {
        let cube = match name.cube() {
            Some(cube) => self.model.cube_named(cube).filter(|cube| cube.public || self.is_internal)?,
            None => self.cube?,
        };
        cube.member(name.member()).filter(|member| self.is_internal || self.access.can_name(*member))
    }

    /// A measure or a metric.
    pub(super) fn value(&self, name: &MemberRef) -> Result<ValueId, QueryError> {
        match self.any(name) {
            Some(Found::Value(value)) if name.granularity.is_none() => self.open(name, value),
            Some(Found::Value(_)) => Err(wrong_kind(name, ExpectedMember::PlainMeasure, "measure")),
            Some(Found::Dimension(_) | Found::MetricTime) => {
                Err(wrong_kind(name, ExpectedMember::Measure, "dimension"))
            }
            Some(Found::Segment(_)) => Err(wrong_kind(name, ExpectedMember::Measure, "segment")),
            None => Err(self.unknown_value(name)),
        }
    }

    /// A measure or metric made of one that does not exist for the caller can't be computed.
    fn open(&self, name: &MemberRef, value: ValueId) -> Result<ValueId, QueryError> {
        let is_open = match value {
            ValueId::Measure(id) => self.access.sees_parts(id),
            ValueId::Metric(id) => self.access.sees_metric(id),
        };
        if is_open { Ok(value) } else { Err(QueryError::Covered { member: name.text.clone() }) }
    }

    pub(super) fn dimension(&self, name: &MemberRef) -> Result<DimensionId, QueryError> {
        match self.any(name) {
            Some(Found::Dimension(id)) => Ok(id),
            Some(Found::Value(_)) => Err(wrong_kind(name, ExpectedMember::Dimension, "measure")),
            Some(Found::Segment(_)) => Err(wrong_kind(name, ExpectedMember::Dimension, "segment")),
            Some(Found::MetricTime) => {
                Err(wrong_kind(name, ExpectedMember::DimensionOfOneCube, "time of each measure's own"))
            }
            None => Err(self.unknown_dimension(name)),
        }
    }

    /// Resolves a group-by column.
    pub(super) fn group_by(&self, name: &MemberRef) -> Result<GroupBy, QueryError> {
        if name.is_metric_time() { Ok(GroupBy::MetricTime) } else { self.dimension(name).map(GroupBy::Dimension) }
    }

    /// A dimension or a value, for filters and orders.
    pub(super) fn operand(&self, name: &MemberRef) -> Result<Found, QueryError> {
        match self.any(name) {
            Some(Found::Segment(_)) => Err(wrong_kind(name, ExpectedMember::DimensionOrMeasure, "segment")),
            Some(Found::Value(value)) => self.open(name, value).map(Found::Value),
            Some(found) => Ok(found),
            None if name.cube().is_none() => Err(self.unknown_value(name)),
            None => Err(self.unknown_dimension(name)),
        }
    }

    pub(super) fn segment(&self, name: &MemberRef) -> Result<SegmentId, QueryError> {
        match self.member(name) {
            Some(Member::Segment(id)) => Ok(id),
            _ => {
                let all = public_cubes(self.model)
                    .flat_map(|c| c.segments.iter().map(move |s| (c, &s.name)))
                    .filter(|(c, name)| self.shows(c, name))
                    .map(|(c, name)| qualified(c, name))
                    .collect::<Vec<_>>();
                Err(QueryError::UnknownSegment { name: name.text.clone(), nearest: suggest(&name.text, all.iter()) })
            }
        }
    }

    fn any(&self, name: &MemberRef) -> Option<Found> {
        if name.is_metric_time() {
            return Some(Found::MetricTime);
        }
        match self.member(name) {
            Some(Member::Measure(id)) => Some(Found::Value(ValueId::Measure(id))),
            Some(Member::Dimension(id)) => Some(Found::Dimension(id)),
            Some(Member::Segment(id)) => Some(Found::Segment(id)),
            // A member that the caller can't see doesn't make way: the name would then mean something that no
            // hook was told of.
            None if name.cube().is_none() && self.cube.is_none_or(|cube| cube.member(name.member()).is_none()) => {
                self.model.metric_named(name.member()).map(|id| Found::Value(ValueId::Metric(id)))
            }
            None => None,
        }
    }

    /// The granularity is one that the dimension offers.
    pub(super) fn check_granularity(
        &self,
        name: &MemberRef,
        id: DimensionId,
        granularity: Option<Granularity>,
    ) -> Result<(), QueryError> {
        let dimension = self.model.dimension(id);
        match granularity {
            Some(granularity) if !dimension.granularities.contains(&granularity) => {
                Err(QueryError::GranularityNotAllowed {
                    member: name.text.clone(),
                    granularity,
                    allowed: dimension.granularities.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    fn unknown_value(&self, name: &MemberRef) -> QueryError {
        if name.cube().is_none() {
            let metrics = (0..).map(MetricId).zip(&self.model.metrics);
            let metrics = metrics.filter(|(id, m)| !m.presentation.hidden && self.access.offers_metric(*id));
            let metrics = metrics.map(|(_, m)| m.name.clone());
            let of_cube = self.cube.into_iter().flat_map(|cube| self.measure_names(cube));
            let all: Vec<Arc<str>> = of_cube.map(|(_, name)| name).chain(metrics).collect();
            return QueryError::UnknownMetric { name: name.text.clone(), nearest: suggest(&name.text, all.iter()) };
        }
        let all = public_cubes(self.model)
            .flat_map(|cube| self.measure_names(cube))
            .map(|(full, _)| full)
            .collect::<Vec<_>>();
        QueryError::UnknownMeasure { name: name.text.clone(), nearest: suggest(&name.text, all.iter()) }
    }

    fn unknown_dimension(&self, name: &MemberRef) -> QueryError {
        let all = public_cubes(self.model)
            .flat_map(|c| {
                let shown = c.dimensions.iter().filter(|d| !d.presentation.hidden && self.shows(c, &d.name));
                shown.map(move |d| qualified(c, &d.name))
            })
            .collect::<Vec<_>>();
        QueryError::UnknownDimension { name: name.text.clone(), nearest: suggest(&name.text, all.iter()) }
    }

    /// Returns the members to suggest. Those that don't exist for the caller, or read such, are left out.
    fn shows(&self, cube: &Cube, member: &str) -> bool {
        !self.access.is_closed(cube)
            && cube.member(member).is_some_and(|member| self.access.can_name(member) && self.access.offers(member))
    }

    fn measure_names(&self, cube: &'a Cube) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
        let shown = cube.measures.iter().filter(|m| !m.presentation.hidden && self.shows(cube, &m.name));
        shown.map(|m| (qualified(cube, &m.name), m.name.clone()))
    }

    /// Returns the time kind of grouped values: whole days and more are local.
    pub(super) fn grouped_kind(&self, id: DimensionId, granularity: Option<Granularity>) -> TimeKind {
        match granularity {
            Some(g) if !g.is_sub_day() => TimeKind::WallClock,
            _ => self.model.dimension(id).time,
        }
    }
}

/// The member that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Value(ValueId),
    Dimension(DimensionId),
    Segment(SegmentId),
    MetricTime,
}

fn public_cube<'a>(model: &'a Model, name: &str) -> Option<&'a Cube> {
    model.cube_named(name).filter(|cube| cube.public)
}

fn public_cubes(model: &Model) -> impl Iterator<Item = &Cube> {
    model.cubes.iter().filter(|cube| cube.public)
}

fn qualified(cube: &Cube, member: &str) -> Arc<str> {
    format!("{}.{member}", cube.name).into()
}

/// Names that a message lists at most.
const MAX_SUGGESTIONS: usize = 20;

fn suggest<'a>(name: &str, candidates: impl Iterator<Item = &'a Arc<str>>) -> Vec<Arc<str>> {
    nearest(name, candidates.map(|c| &**c), MAX_SUGGESTIONS).into_iter().map(Arc::from).collect()
}

fn wrong_kind(name: &MemberRef, expected: ExpectedMember, found: &'static str) -> QueryError {
    QueryError::WrongKind { name: name.text.clone(), expected, found }
}
