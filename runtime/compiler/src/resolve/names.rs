//! Resolves the names in a query, and finds similar names for unknown ones.
//!
//! In: a [`MemberRef`] and the query's `cube`. Out: ids. A name without a dot is first a member of the query's cube,
//! then a metric.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::access::Access;
use crate::model::{Cube, CubeId, Dimension, DimensionId, Member, MetricId, Model, SegmentId, TimeKind};
use crate::query::resolved::{GroupBy, ValueId};
use crate::query::{ExpectedMember, MemberRef, QueryError, SemanticQuery};
use crate::text::nearest::{likely, nearest};
use crate::types::Granularity;

pub(super) struct Names<'a> {
    pub model: &'a Model,
    pub access: &'a Access<'a>,
    cube: Option<&'a Cube>,
    /// True for names in the project's own files, which may name cubes that are not public.
    is_internal: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new(access: &'a Access<'a>, query: &SemanticQuery) -> Result<Self, QueryError> {
        let model = access.model();
        let mut names = Names { model, access, cube: None, is_internal: false };
        if let Some(name) = &query.cube {
            names.cube = Some(names.public_cube(name)?);
        }
        Ok(names)
    }

    pub(super) fn public_cube(&self, name: &Arc<str>) -> Result<&'a Cube, QueryError> {
        public_cube(self.model, name).ok_or_else(|| QueryError::UnknownCube {
            name: name.clone(),
            nearest: suggest(name, public_cubes(self.model).map(|c| &c.name)),
        })
    }

    /// Resolves names in the project's own files.
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

    /// Resolves the name of a measure or a metric.
    pub(super) fn value(&self, name: &MemberRef) -> Result<ValueId, QueryError> {
        match self.any(name) {
            Some(NamedMember::Value(value)) if name.granularity.is_none() => Ok(value),
            Some(NamedMember::Value(value)) => Err(wrong_kind(name, ExpectedMember::PlainMeasure, value.kind())),
            Some(NamedMember::Dimension(_) | NamedMember::MetricTime) => {
                Err(wrong_kind(name, ExpectedMember::Measure, "dimension"))
            }
            Some(NamedMember::Segment(_)) => Err(wrong_kind(name, ExpectedMember::Measure, "segment")),
            None => Err(self.unknown_value(name)),
        }
    }

    pub(super) fn dimension(&self, name: &MemberRef) -> Result<DimensionId, QueryError> {
        match self.any(name) {
            Some(NamedMember::Dimension(id)) => Ok(id),
            Some(NamedMember::Value(value)) => Err(wrong_kind(name, ExpectedMember::Dimension, value.kind())),
            Some(NamedMember::Segment(_)) => Err(wrong_kind(name, ExpectedMember::Dimension, "segment")),
            Some(NamedMember::MetricTime) => {
                Err(wrong_kind(name, ExpectedMember::DimensionOfOneCube, "time of each measure's own"))
            }
            None => Err(self.unknown_dimension(name)),
        }
    }

    /// Resolves a group-by column.
    pub(super) fn group_by(&self, name: &MemberRef) -> Result<GroupBy, QueryError> {
        if name.is_metric_time() { Ok(GroupBy::MetricTime) } else { self.dimension(name).map(GroupBy::Dimension) }
    }

    /// Returns the dimension or value of a name in a filter or an order.
    pub(super) fn operand(&self, name: &MemberRef) -> Result<NamedMember, QueryError> {
        match self.any(name) {
            Some(NamedMember::Segment(_)) => Err(wrong_kind(name, ExpectedMember::DimensionOrMeasure, "segment")),
            Some(found) => Ok(found),
            None => Err(self.unknown_operand(name)),
        }
    }

    /// Returns the error for an unknown name that may be meant as a dimension or a value. The error is about the kind
    /// of member whose name was most likely misspelt.
    fn unknown_operand(&self, name: &MemberRef) -> QueryError {
        let is_likely = |error: &QueryError| {
            let names = error.nearest().iter().map(|name| &**name);
            let own = names.map(|known| match (name.cube(), known.split_once('.')) {
                (None, Some((_, member))) => member,
                _ => known,
            });
            likely(name.text.as_ref(), own.collect::<BTreeSet<_>>()).is_some()
        };
        let (value, dimension) = (self.unknown_value(name), self.unknown_dimension(name));
        match (is_likely(&dimension), is_likely(&value)) {
            (true, false) => dimension,
            (false, true) => value,
            _ if name.cube().is_none() => value,
            _ => dimension,
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

    /// Returns the member that a name refers to. A measure or metric that reads denied members does not exist for the
    /// caller.
    fn any(&self, name: &MemberRef) -> Option<NamedMember> {
        self.named(name).filter(|found| match found {
            NamedMember::Value(ValueId::Measure(id)) => self.is_internal || self.access.sees_parts(*id),
            NamedMember::Value(ValueId::Metric(id)) => self.is_internal || self.access.sees_metric(*id),
            NamedMember::Dimension(_) | NamedMember::Segment(_) | NamedMember::MetricTime => true,
        })
    }

    fn named(&self, name: &MemberRef) -> Option<NamedMember> {
        if name.is_metric_time() {
            return Some(NamedMember::MetricTime);
        }
        match self.member(name) {
            Some(Member::Measure(id)) => Some(NamedMember::Value(ValueId::Measure(id))),
            Some(Member::Dimension(id)) => Some(NamedMember::Dimension(id)),
            Some(Member::Segment(id)) => Some(NamedMember::Segment(id)),
            // A metric does not replace a member that is hidden from the caller: the name would then refer to
            // something else than in the facts that hooks saw.
            None if name.cube().is_none() && self.cube.is_none_or(|cube| cube.member(name.member()).is_none()) => {
                self.model.metric_named(name.member()).map(|id| NamedMember::Value(ValueId::Metric(id)))
            }
            None => None,
        }
    }

    /// Checks that the dimension has the granularity.
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
            let of_cube = self.cube.into_iter().flat_map(|cube| self.measure_names(cube));
            let all: Vec<Arc<str>> = of_cube.map(|(_, name)| name).chain(self.metric_names()).collect();
            // Measures with this name are suggested first, with their cubes.
            let measures = public_cubes(self.model).flat_map(|cube| self.measure_names(cube));
            let measures = measures.filter(|(_, own)| **own == *name.text).map(|(full, _)| full);
            let nearest = measures.take(MAX_SUGGESTIONS).chain(suggest(&name.text, all.iter())).collect();
            return QueryError::UnknownMetric { name: name.text.clone(), nearest };
        }
        let all = public_cubes(self.model)
            .flat_map(|cube| self.measure_names(cube))
            .map(|(full, _)| full)
            .collect::<Vec<_>>();
        QueryError::UnknownMeasure { name: name.text.clone(), nearest: suggest(&name.text, all.iter()) }
    }

    fn metric_names(&self) -> impl Iterator<Item = Arc<str>> {
        let metrics = (0..).map(MetricId).zip(&self.model.metrics);
        let shown = metrics.filter(|(id, metric)| !metric.presentation.hidden && self.access.offers_metric(*id));
        shown.map(|(_, metric)| Arc::clone(&metric.name))
    }

    fn unknown_dimension(&self, name: &MemberRef) -> QueryError {
        let all = public_cubes(self.model)
            .flat_map(|c| {
                let shown = c.dimensions.iter().filter(|d| !d.presentation.hidden && self.shows(c, &d.name));
                shown.map(move |d| qualified(c, &d.name))
            })
            .collect::<Vec<_>>();
        let mut nearest = suggest(&name.text, all.iter());
        if let Some(whole) = self.short_time(name) {
            nearest.insert(0, whole);
            nearest.truncate(MAX_SUGGESTIONS);
        }
        QueryError::UnknownDimension { name: name.text.clone(), nearest }
    }

    /// Returns the whole name for a time dimension of the query's cube and a granularity, such as `ordered_on.month`. A
    /// name with a dot begins with a cube, so the short name is not accepted.
    fn short_time(&self, name: &MemberRef) -> Option<Arc<str>> {
        let (cube, granularity) = (self.cube?, name.member().parse().ok()?);
        let is_meant = |dimension: &&Dimension| Some(&*dimension.name) == name.cube();
        let dimension = cube.dimensions.iter().find(is_meant)?;
        let is_shown = dimension.granularities.contains(&granularity) && self.shows(cube, &dimension.name);
        is_shown.then(|| qualified(cube, &name.text))
    }

    /// Returns whether a member may be suggested: it exists for the caller, and so does everything that it reads.
    fn shows(&self, cube: &Cube, member: &str) -> bool {
        !self.access.is_closed(cube)
            && cube.member(member).is_some_and(|member| self.access.can_name(member) && self.access.offers(member))
    }

    fn measure_names(&self, cube: &'a Cube) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
        let shown = cube.measures.iter().filter(|m| !m.presentation.hidden && self.shows(cube, &m.name));
        shown.map(|m| (qualified(cube, &m.name), m.name.clone()))
    }

    /// Returns the time kind of grouped values: buckets of a day or more are local times.
    pub(super) fn grouped_kind(&self, id: DimensionId, granularity: Option<Granularity>) -> TimeKind {
        match granularity {
            Some(g) if !g.is_sub_day() => TimeKind::WallClock,
            _ => self.model.dimension(id).time,
        }
    }
}

/// The member that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedMember {
    Value(ValueId),
    Dimension(DimensionId),
    Segment(SegmentId),
    MetricTime,
}

/// Returns the error of a name that is not the name of a metric which the caller may see.
pub fn unknown_metric(access: &Access<'_>, name: &Arc<str>) -> QueryError {
    let all: Vec<Arc<str>> = Names::internal(access).metric_names().collect();
    QueryError::UnknownMetric { name: Arc::clone(name), nearest: suggest(name, all.iter()) }
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

/// The largest number of names in a message.
const MAX_SUGGESTIONS: usize = 20;

fn suggest<'a>(name: &str, candidates: impl Iterator<Item = &'a Arc<str>>) -> Vec<Arc<str>> {
    nearest(name, candidates.map(|c| &**c), MAX_SUGGESTIONS).into_iter().map(Arc::from).collect()
}

fn wrong_kind(name: &MemberRef, expected: ExpectedMember, found: &'static str) -> QueryError {
    QueryError::WrongKind { name: name.text.clone(), expected, found }
}
