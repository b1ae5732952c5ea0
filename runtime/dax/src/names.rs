//! The tables, columns and measures that a caller may name.
//!
//! In: the compiler's [`Access`]. Out: ids by name, and the nearest names for an unknown one. Names are compared
//! case-insensitively. A table is a cube, a column is a dimension, and a measure is a measure or a metric. Queries can
//! name hidden members; denied members do not exist for their callers.

use std::cell::Cell;
use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::{Cube, CubeId, DimensionId, MeasureId, Member, MetricId, Model};
use terrane_compiler::text::nearest::nearest;

use crate::bound::MeasureSource;
use crate::problem::{MAX_NEAREST, MAX_PROBLEMS, ProblemKind};

/// A member of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableMember {
    Column(DimensionId),
    Measure(MeasureId),
}

pub(crate) struct Names<'a> {
    access: &'a Access<'a>,
    /// The number of searches so far for names near to unknown ones. Each search reads all names.
    searches: Cell<usize>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(access: &'a Access<'a>) -> Self {
        Names { access, searches: Cell::new(0) }
    }

    pub(crate) fn model(&self) -> &'a Model {
        self.access.model()
    }

    fn is_visible(&self, cube: &Cube) -> bool {
        cube.public && !self.access.is_closed(cube)
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &'a Cube> {
        self.model().cubes.iter().filter(|cube| self.is_visible(cube))
    }

    /// Returns the table with this name. If the names of several tables differ only in case, the one with exactly this
    /// spelling is returned.
    pub(crate) fn table(&self, name: &Arc<str>) -> Result<&'a Cube, ProblemKind> {
        if let Some(cube) = self.model().cube_named(name).filter(|cube| self.is_visible(cube)) {
            return Ok(cube);
        }
        let mut found = self.tables().filter(|cube| equal_names(&cube.name, name));
        match (found.next(), found.next()) {
            (Some(cube), None) => Ok(cube),
            (Some(one), Some(two)) => {
                Err(ambiguous(name, [one, two].into_iter().chain(found).map(|cube| Arc::clone(&cube.name))))
            }
            (None, _) => Err(ProblemKind::UnknownTable { name: Arc::clone(name), nearest: self.nearest_tables(name) }),
        }
    }

    pub(crate) fn nearest_tables(&self, name: &str) -> Vec<Arc<str>> {
        self.nearest(name, self.tables().map(|cube| &cube.name))
    }

    /// Returns the column or the measure of a table that has this name.
    pub(crate) fn member(&self, cube: &'a Cube, name: &Arc<str>) -> Result<TableMember, ProblemKind> {
        if let Some(found) = cube.member(name).and_then(|member| self.nameable(member)) {
            return Ok(found);
        }
        let mut alike = self.members(cube).filter(|(found, _)| equal_names(found, name));
        match (alike.next(), alike.next()) {
            (Some((_, member)), None) => Ok(member),
            (Some((one, _)), Some((two, _))) => Err(ambiguous(name, [Arc::clone(one), Arc::clone(two)].into_iter())),
            (None, _) => {
                let listed = self.members(cube).filter(|(_, member)| self.is_listed(*member));
                let nearest = self.nearest(name, listed.map(|(name, _)| name));
                Err(ProblemKind::UnknownMember { table: Arc::clone(&cube.name), name: Arc::clone(name), nearest })
            }
        }
    }

    fn nameable(&self, member: Member) -> Option<TableMember> {
        let found = match member {
            Member::Dimension(id) => TableMember::Column(id),
            Member::Measure(id) => TableMember::Measure(id),
            Member::Segment(_) => return None,
        };
        self.access.can_name(member).then_some(found)
    }

    /// Returns the columns and measures of a table that the caller may name, in the order of their declaration.
    pub(crate) fn members(&self, cube: &'a Cube) -> impl Iterator<Item = (&'a Arc<str>, TableMember)> {
        let columns = self.columns(cube).map(|id| (&self.model().dimension(id).name, TableMember::Column(id)));
        let measures = ids(cube.id, cube.measures.len()).map(|(cube, index)| MeasureId { cube, index });
        let measures = measures.filter(|id| self.access.can_name(Member::Measure(*id)));
        columns.chain(measures.map(|id| (&self.model().measure(id).name, TableMember::Measure(id))))
    }

    pub(crate) fn columns(&self, cube: &'a Cube) -> impl Iterator<Item = DimensionId> {
        let ids = ids(cube.id, cube.dimensions.len()).map(|(cube, index)| DimensionId { cube, index });
        ids.filter(|id| self.access.can_name(Member::Dimension(*id)))
    }

    /// Returns the columns of a table that the caller may read. Columns that a policy closes are not returned. A query
    /// that names such a column is refused, with the policy as the reason.
    pub(crate) fn open_columns(&self, cube: &'a Cube) -> impl Iterator<Item = DimensionId> {
        self.columns(cube).filter(|id| self.access.offers(Member::Dimension(*id)))
    }

    /// Returns whether metadata lists a member.
    pub(crate) fn is_listed(&self, member: TableMember) -> bool {
        let (hidden, member) = match member {
            TableMember::Column(id) => (self.model().dimension(id).presentation.hidden, Member::Dimension(id)),
            TableMember::Measure(id) => (self.model().measure(id).presentation.hidden, Member::Measure(id)),
        };
        !hidden && self.access.offers(member)
    }

    /// Returns the metrics that metadata lists.
    pub(crate) fn listed_metrics(&self) -> impl Iterator<Item = MetricId> {
        let ids = (0..self.model().metrics.len() as u32).map(MetricId);
        ids.filter(|id| !self.model().metric(*id).presentation.hidden && self.access.offers_metric(*id))
    }

    /// Returns the metric with this name, or the measure if only one table has a measure with this name.
    pub(crate) fn measure(&self, name: &Arc<str>) -> Result<MeasureSource, ProblemKind> {
        if let Some(metric) = self.metric(name) {
            return Ok(MeasureSource::Metric(metric));
        }
        let exact: Vec<MeasureId> = self.tables().filter_map(|cube| self.measure_of(cube, name)).collect();
        let found = if exact.is_empty() { self.measures_alike(name) } else { exact };
        // An alias has the same measures as its cube. A bare name refers to the cube's measure.
        let is_alias = |id: &MeasureId| self.model().cube(id.cube).alias_of.is_some();
        let own: Vec<MeasureId> = found.iter().filter(|id| !is_alias(id)).copied().collect();
        match (&own[..], &found[..]) {
            ([only], _) | ([], [only]) => Ok(MeasureSource::Model(*only)),
            ([], []) => {
                let nearest = self.nearest(name, self.bare_names());
                Err(ProblemKind::UnknownBareMember { name: Arc::clone(name), nearest })
            }
            _ => {
                let all = if own.is_empty() { found } else { own };
                let tables = all.iter().map(|id| Arc::clone(&self.model().cube(id.cube).name)).collect();
                Err(ProblemKind::AmbiguousMeasure { name: Arc::clone(name), tables })
            }
        }
    }

    fn metric(&self, name: &str) -> Option<MetricId> {
        let exact = self.model().metric_named(name);
        let alike =
            || (0..).map(MetricId).zip(&self.model().metrics).find(|(_, metric)| equal_names(&metric.name, name));
        let found = exact.or_else(|| alike().map(|(id, _)| id))?;
        (!self.model().metric(found).presentation.is_private && self.access.sees_metric(found)).then_some(found)
    }

    fn measure_of(&self, cube: &'a Cube, name: &str) -> Option<MeasureId> {
        match cube.member(name).and_then(|member| self.nameable(member)) {
            Some(TableMember::Measure(id)) => Some(id),
            _ => None,
        }
    }

    fn measures_alike(&self, name: &str) -> Vec<MeasureId> {
        let members = self.tables().flat_map(|cube| self.members(cube));
        let alike = members.filter(|(found, _)| equal_names(found, name));
        alike
            .filter_map(|(_, member)| match member {
                TableMember::Measure(id) => Some(id),
                TableMember::Column(_) => None,
            })
            .collect()
    }

    fn bare_names(&self) -> impl Iterator<Item = &'a Arc<str>> {
        let measures = self.tables().flat_map(|cube| self.members(cube));
        let is_shown = |member: TableMember| matches!(member, TableMember::Measure(_)) && self.is_listed(member);
        let measures = measures.filter(move |(_, member)| is_shown(*member)).map(|(name, _)| name);
        self.listed_metrics().map(|id| &self.model().metric(id).name).chain(measures)
    }

    /// Returns the known names that are nearest to an unknown one. Returns nothing after [`MAX_PROBLEMS`] searches,
    /// because a query reports no more problems.
    pub(crate) fn nearest<'n>(&self, name: &str, names: impl Iterator<Item = &'n Arc<str>>) -> Vec<Arc<str>> {
        let searches = self.searches.get();
        if searches >= MAX_PROBLEMS {
            return Vec::new();
        }
        self.searches.set(searches + 1);
        nearest(name, names.map(|name| &**name), MAX_NEAREST).into_iter().map(Arc::from).collect()
    }

    /// Returns whether `to` is the table `from`, or a table that the joins of `from` reach on the one side.
    pub(crate) fn is_to_one(&self, from: CubeId, to: CubeId) -> bool {
        self.model().join_paths(from).is_to_one(to)
    }
}

fn ids(cube: CubeId, count: usize) -> impl Iterator<Item = (CubeId, u32)> {
    (0..count as u32).map(move |index| (cube, index))
}

fn ambiguous(name: &Arc<str>, names: impl Iterator<Item = Arc<str>>) -> ProblemKind {
    ProblemKind::AmbiguousName { name: Arc::clone(name), names: names.collect() }
}

/// Compares names case-insensitively.
pub(crate) fn equal_names(one: &str, two: &str) -> bool {
    if one.is_ascii() && two.is_ascii() {
        return one.eq_ignore_ascii_case(two);
    }
    one.to_lowercase() == two.to_lowercase()
}
