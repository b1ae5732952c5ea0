//! Resolves the parts of a query separately, so that a mistake in one part does not hide a mistake in another.
//!
//! In: a query and the part of a model that a caller sees. Out: the errors of single parts, and the query without these
//! parts. A part is resolved together with a valid member. Not here: errors of several parts together (`check`).

use std::cell::RefCell;

use terrane_compiler::model::{Cube, Model};
use terrane_compiler::query::{Filter, MemberRef, OrderBy, QueryError, SemanticQuery, TimeDimension};
use terrane_compiler::{Access, Environment, resolve};

/// The valid part of a query, and the errors of the rest.
pub(crate) struct Separated {
    pub(crate) errors: Vec<QueryError>,
    pub(crate) rest: SemanticQuery,
    /// True if a part was left out on which other parts or the keys of the result depend.
    pub(crate) is_partial: bool,
}

/// A part of a query that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Limit,
    Offset,
    Timezone,
    Order(usize),
    Segment(usize),
    Filter(usize),
    FillGaps,
    Compare,
    TimeRange,
    TimeDimension(usize),
    Dimension(usize),
    Value(usize),
}

impl Part {
    /// Returns the parts of a query. Those that other parts depend on are last.
    pub(crate) fn all(query: &SemanticQuery) -> Vec<Part> {
        let mut parts = vec![Part::Limit, Part::Offset, Part::Timezone];
        parts.extend((0..query.order.len()).map(Part::Order));
        parts.extend((0..query.segments.len()).map(Part::Segment));
        parts.extend((0..query.filters.len()).map(Part::Filter));
        parts.extend([Part::FillGaps, Part::Compare, Part::TimeRange]);
        parts.extend((0..query.time_dimensions.len()).map(Part::TimeDimension));
        parts.extend((0..query.dimensions.len()).map(Part::Dimension));
        parts.extend((0..query.values.len()).map(Part::Value));
        parts
    }

    /// Returns the query without this part.
    pub(crate) fn left_out(self, query: &SemanticQuery) -> SemanticQuery {
        let mut query = query.clone();
        match self {
            Part::Limit => query.limit = None,
            Part::Offset => query.offset = 0,
            Part::Timezone => query.timezone = None,
            Part::FillGaps => query.fill_gaps = false,
            Part::Compare => query.compare = None,
            Part::TimeRange => query.time_range = None,
            Part::Order(index) => drop(query.order.remove(index)),
            Part::Segment(index) => drop(query.segments.remove(index)),
            Part::Filter(index) => drop(query.filters.remove(index)),
            Part::TimeDimension(index) => drop(query.time_dimensions.remove(index)),
            Part::Dimension(index) => drop(query.dimensions.remove(index)),
            Part::Value(index) => drop(query.values.remove(index)),
        }
        query
    }

    /// Returns whether other parts or the keys of the result depend on this part.
    pub(crate) fn is_needed(self) -> bool {
        use Part::{Compare, Dimension, TimeDimension, TimeRange, Value};
        matches!(self, Compare | TimeRange | TimeDimension(_) | Dimension(_) | Value(_))
    }
}

/// Returns whether an error is about one part alone.
pub(crate) fn is_of_one_part(error: &QueryError) -> bool {
    matches!(
        error,
        QueryError::MalformedMember { .. }
            | QueryError::UnknownOperator { .. }
            | QueryError::UnknownGranularity { .. }
            | QueryError::UnknownCube { .. }
            | QueryError::UnknownMetric { .. }
            | QueryError::UnknownMeasure { .. }
            | QueryError::UnknownDimension { .. }
            | QueryError::UnknownSegment { .. }
            | QueryError::UnknownTimezone { .. }
            | QueryError::WrongKind { .. }
            | QueryError::GranularityNotAllowed { .. }
            | QueryError::OperatorNotAllowed { .. }
            | QueryError::NotSearchable { .. }
            | QueryError::ValueDoesNotFit { .. }
            | QueryError::ValueCount { .. }
            | QueryError::ReversedRange { .. }
            | QueryError::LimitTooLarge { .. }
            | QueryError::TooMany { .. }
            | QueryError::MalformedShift { .. }
            | QueryError::Masked { .. }
            | QueryError::Covered { .. }
    )
}

/// Returns whether an error may be the consequence of a part that was left out.
pub(crate) fn may_follow(error: &QueryError) -> bool {
    !is_of_one_part(error)
        && !matches!(
            error,
            QueryError::FinerThanTimeGrain { .. }
                | QueryError::NoJoinPath { .. }
                | QueryError::NeedsPrimaryKey { .. }
                | QueryError::Ungrouped { .. }
                | QueryError::MixedMetricTime { .. }
                | QueryError::ShiftLeavesCalendar { .. }
        )
}

/// Resolves each part of a query.
pub(crate) fn separate(access: &Access<'_>, query: &SemanticQuery, environment: &Environment) -> Separated {
    let parts = Parts { access, environment, cube: query.cube.clone(), errors: RefCell::default() };
    parts.separate(query.clone())
}

struct Parts<'a> {
    access: &'a Access<'a>,
    environment: &'a Environment,
    /// The cube of names without a dot.
    cube: Option<std::sync::Arc<str>>,
    errors: RefCell<Vec<QueryError>>,
}

impl Parts<'_> {
    fn separate(mut self, mut rest: SemanticQuery) -> Separated {
        let needed = |rest: &SemanticQuery| rest.values.len() + rest.dimensions.len() + rest.time_dimensions.len();
        let mut is_partial = false;
        if self.cube.is_some() && !self.is_valid(&self.with_valid_member(None)) {
            // Without the cube, the names without a dot have no meaning.
            (self.cube, rest.cube, is_partial) = (None, None, true);
            leave_out_short_names(&mut rest);
        }
        let count = needed(&rest);
        rest.values.retain(|value| self.is_valid(&SemanticQuery { values: vec![value.clone()], ..self.empty() }));
        rest.dimensions
            .retain(|dimension| self.is_valid(&SemanticQuery { dimensions: vec![dimension.clone()], ..self.empty() }));
        rest.time_dimensions.retain(|dimension| self.is_time_dimension(dimension));
        is_partial |= needed(&rest) < count;
        rest.filters.retain(|filter| self.is_filter(filter));
        rest.segments.retain(|segment| {
            self.is_valid(&SemanticQuery { segments: vec![segment.clone()], ..self.with_valid_member(segment.cube()) })
        });
        rest.order.retain(|order| self.is_order(order));
        if rest.timezone.is_some()
            && !self.is_valid(&SemanticQuery { timezone: rest.timezone.clone(), ..self.with_valid_member(None) })
        {
            rest.timezone = None;
        }
        if rest.time_range.is_some() && !self.is_range(&rest) {
            (rest.time_range, is_partial) = (None, true);
        }
        Separated { errors: self.errors.into_inner(), rest, is_partial }
    }

    fn empty(&self) -> SemanticQuery {
        SemanticQuery { cube: self.cube.clone(), ..SemanticQuery::default() }
    }

    /// Returns whether a query of one part has no error of one part. Otherwise notes the error.
    fn is_valid(&self, query: &SemanticQuery) -> bool {
        let error = resolve(self.access, query, self.environment).err().filter(is_of_one_part);
        let is_valid = error.is_none();
        self.errors.borrow_mut().extend(error);
        is_valid
    }

    fn is_time_dimension(&self, dimension: &TimeDimension) -> bool {
        let time_dimensions = vec![dimension.clone()];
        self.is_valid(&SemanticQuery { time_dimensions, ..self.with_valid_member(dimension.member.cube()) })
    }

    fn is_order(&self, order: &OrderBy) -> bool {
        self.is_valid(&SemanticQuery { order: vec![order.clone()], ..self.with_valid_member(order.member.cube()) })
    }

    /// Checks each condition of a filter.
    fn is_filter(&self, filter: &Filter) -> bool {
        match filter {
            Filter::And(filters) | Filter::Or(filters) => {
                // Every condition is checked, also after an invalid one.
                let are_valid: Vec<bool> = filters.iter().map(|filter| self.is_filter(filter)).collect();
                !are_valid.contains(&false)
            }
            Filter::Not(filter) => self.is_filter(filter),
            Filter::NoRow { .. } => true,
            Filter::Condition { member, .. } => {
                self.is_valid(&SemanticQuery { filters: vec![filter.clone()], ..self.with_valid_member(member.cube()) })
            }
        }
    }

    /// Checks a range of the primary time dimension or of its own dimension, with the valid part of the query.
    fn is_range(&self, rest: &SemanticQuery) -> bool {
        let mut query = SemanticQuery {
            values: rest.values.clone(),
            dimensions: rest.dimensions.clone(),
            time_dimensions: rest.time_dimensions.clone(),
            ..self.empty()
        };
        if query.values.is_empty() && query.dimensions.is_empty() && query.time_dimensions.is_empty() {
            let member = rest.time_range.as_ref().and_then(|range| range.member.as_ref());
            query = self.with_valid_member(member.and_then(MemberRef::cube));
        }
        self.is_valid(&SemanticQuery { time_range: rest.time_range.clone(), ..query })
    }

    /// Returns a query of one valid member: of a cube, else of the query's cube, else of any cube.
    fn with_valid_member(&self, cube: Option<&str>) -> SemanticQuery {
        let model: &Model = self.access.model();
        let first = cube.or(self.cube.as_deref()).and_then(|name| model.cube_named(name));
        let cubes = first.into_iter().chain(&model.cubes);
        let is_valid = |query: &SemanticQuery| resolve(self.access, query, self.environment).is_ok();
        let mut queries = cubes.flat_map(members).map(|(name, is_measure)| {
            let mut query = SemanticQuery::default();
            let members = if is_measure { &mut query.values } else { &mut query.dimensions };
            members.extend(name.parse::<MemberRef>().ok());
            query
        });
        let found = queries.find(is_valid).unwrap_or_default();
        SemanticQuery { cube: self.cube.clone(), ..found }
    }
}

/// Returns the full names of a cube's dimensions and measures, with true for measures.
fn members(cube: &Cube) -> impl Iterator<Item = (String, bool)> {
    let dimensions = cube.dimensions.iter().map(|dimension| (&dimension.name, false));
    let measures = cube.measures.iter().map(|measure| (&measure.name, true));
    dimensions.chain(measures).map(|(name, is_measure)| (format!("{}.{name}", cube.name), is_measure))
}

fn leave_out_short_names(query: &mut SemanticQuery) {
    let is_full = |member: &MemberRef| member.cube().is_some();
    query.values.retain(is_full);
    query.dimensions.retain(is_full);
    query.segments.retain(is_full);
    query.time_dimensions.retain(|dimension| is_full(&dimension.member));
    query.order.retain(|order| is_full(&order.member));
    query.filters.retain(|filter| names(filter).into_iter().all(is_full));
}

/// Returns the members of a filter.
pub(crate) fn names(filter: &Filter) -> Vec<&MemberRef> {
    match filter {
        Filter::And(filters) | Filter::Or(filters) => filters.iter().flat_map(names).collect(),
        Filter::Not(filter) => names(filter),
        Filter::Condition { member, .. } => vec![member],
        Filter::NoRow { .. } => Vec::new(),
    }
}
