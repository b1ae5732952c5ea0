//! The choice of a pre-aggregation for each fact of a query.
//!
//! In: a secured plan, the definitions of its cubes, and the ready rollups. Out: the same plan, in which some facts
//! read tables of pre-aggregations, and for each fact the rollup that serves it or the reasons why none does. All
//! decisions are made on resolved expressions: a rollup serves a fact only if everything that the fact reads is a
//! function of stored columns along the same joins. The conditions are in one file, since their order decides which
//! miss is the nearest. Not here: SQL; policies, which were applied before and are met by stored columns or cause a
//! miss.

mod lines;

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::RollupOf;
use super::coverage::{Cost, Coverage, Refusal, cost_of, cover};
use crate::access::Access;
use crate::environment::Environment;
use crate::model::{
    Aggregate, AggregateFunction, Cube, CubeId, DimensionId, Mask, Measure, Model, Rollup, RollupTime, SegmentId,
    Snippet, SqlPart, aggregates_of,
};
use crate::plan::{
    ArgumentForm, Fact, LogicalPlan, Protection, RowGuard, SecuredPlan, StateSource, StoredRows, StoredSegment,
    StoredState, path,
};
use crate::query::{FactMatch, Miss, MissReason, Operand, PreAggregations, Predicate, QueryError, Served, Test};
use crate::ready_rollups::{Flaw, PlantedFlaw, ReadyRollups, ReadyTables, Stretch};
use crate::resolve::{after, first};
use crate::sql::dialect_profile::DialectProfile;
use crate::types::{Granularity, LogicalType, TimeKind, is_utc};

/// The requirements of a request for pre-aggregations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RollupRequest {
    pub(crate) mode: PreAggregations,
    pub(crate) max_staleness: Option<Duration>,
    /// True to report every pre-aggregation that does not match, with its members, even if another one matches. A query
    /// that requires pre-aggregations and matches none is then not refused.
    pub(crate) explains: bool,
}

impl RollupRequest {
    /// Returns whether misses contain members and missing lines of definitions. Explanations and rejections show both.
    fn names_members(&self) -> bool {
        self.explains || self.mode == PreAggregations::Only
    }
}

/// Lets facts of a plan read pre-aggregations.
///
/// # Errors
/// [`QueryError::NotPreAggregated`] if the request allows only pre-aggregations, and a fact matches none.
pub(crate) fn match_rollups<'m>(
    secured: SecuredPlan<'m>,
    access: &Access<'_>,
    profile: &DialectProfile,
    environment: &Environment,
    request: RollupRequest,
) -> Result<(SecuredPlan<'m>, Vec<FactMatch>), QueryError> {
    let mut found = Vec::new();
    let plan = secured.plan();
    let matcher = Matcher {
        model: plan.model,
        access,
        plan,
        protection: secured.protection(),
        profile,
        ready: &environment.rollups,
        now: environment.now,
        request,
    };
    for index in 0..plan.facts.len() {
        found.push(matcher.fact(index));
    }
    let (chosen, matches): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    if request.mode == PreAggregations::Only
        && !request.explains
        && let Some(unserved) = matches.iter().find(|fact: &&FactMatch| fact.served.is_none())
    {
        return Err(QueryError::NotPreAggregated { cube: Arc::clone(&unserved.cube), facts: matches });
    }
    let secured = secured.rewrite(|plan, _| {
        for (fact, rows) in plan.facts.iter_mut().zip(chosen) {
            fact.stored = rows.map(Box::new);
        }
    });
    Ok((secured, matches))
}

struct Matcher<'p, 'm> {
    model: &'m Model,
    access: &'p Access<'p>,
    plan: &'p LogicalPlan<'m>,
    protection: &'p Protection<'m>,
    profile: &'p DialectProfile,
    ready: &'p ReadyRollups,
    now: Timestamp,
    request: RollupRequest,
}

type Checked<T> = Result<T, Refusal>;

impl<'p, 'm> Matcher<'p, 'm> {
    fn fact(&self, index: usize) -> (Option<StoredRows<'m>>, FactMatch) {
        let fact = &self.plan.facts[index];
        let cube = self.model.cube(fact.tree.cube);
        let mut report = FactMatch { cube: Arc::clone(&cube.name), served: None, misses: Vec::new(), is_hidden: false };
        let general = if self.request.mode == PreAggregations::Off {
            Some(MissReason::Off)
        } else if cube.rollups.is_empty() {
            Some(MissReason::NoRollup)
        } else if self.ready.is_disabled {
            Some(MissReason::Disabled)
        } else if fact.period.window.is_some() {
            Some(MissReason::RollingWindow)
        } else if fact.distinct.is_some()
            || (!fact.semi_joins.is_empty() && !self.ready.planted().is(Flaw::ToManyFilter))
            || fact.tree.joins.iter().any(|join| join.is_to_many)
        {
            Some(MissReason::ToMany)
        } else if self.plan.ungrouped {
            Some(MissReason::DimensionNotStored)
        } else {
            None
        };
        // Only rollups that the caller may see are reported; the others may still serve the fact.
        let has_seen = cube.rollups.iter().any(|rollup| self.access.sees_rollup(rollup));
        if let Some(reason) = general {
            let reason = if has_seen || reason == MissReason::Off { reason } else { MissReason::NoRollup };
            let fix = match reason {
                MissReason::NoRollup => self.definition(fact, index, cube),
                MissReason::Disabled => Some("pre_aggregations: {enabled: true}".to_owned()),
                _ => None,
            };
            report.misses.push(self.miss(None, Refusal { fix, ..reason.into() }));
            return (None, report);
        }
        let ready = self.ready.of_cube(&cube.name);
        let candidates = cube.rollups.iter().map(|rollup| {
            let ready = ready.and_then(|rollups| rollups.get(&rollup.name));
            Candidate { matcher: self, fact, index, cube, rollup, ready }
        });
        let (best, refusals) = match self.request.explains {
            true => compared(candidates),
            false => cheapest(candidates),
        };
        let refusals = refusals.into_iter().filter(|(rollup, _)| self.access.sees_rollup(rollup));
        report.misses.extend(refusals.map(|(rollup, refusal)| self.miss(Some(rollup), refusal)));
        report.served = best.as_ref().map(|best| best.served(self.access, fact.tree.cube));
        if report.served.is_none() && !has_seen {
            let fix = self.definition(fact, index, cube);
            report.misses.push(self.miss(None, Refusal { fix, ..MissReason::NoRollup.into() }));
        }
        // The nearest miss, which fails the latest condition, comes first.
        report.misses.sort_by_key(|miss| std::cmp::Reverse(miss.reason));
        (best.map(Match::into_rows), report)
    }

    fn miss(&self, rollup: Option<&Rollup>, refusal: Refusal) -> Miss {
        let Refusal { reason, members, fix } = refusal;
        let fix = fix.filter(|_| self.request.names_members());
        Miss { rollup: rollup.map(|rollup| Arc::clone(&rollup.name)), reason, members, fix }
    }
}

/// The refusals, each with its rollup, in the order of the definitions.
type Refusals<'m> = Vec<(&'m Rollup, Refusal)>;

/// Checks every rollup. Returns the one with the lowest cost, and the refusals of all others.
fn compared<'c, 'p, 'm: 'p>(
    candidates: impl Iterator<Item = Candidate<'c, 'p, 'm>>,
) -> (Option<Match<'p, 'm>>, Refusals<'m>)
where
    'p: 'c,
{
    let mut best: Option<Match<'p, 'm>> = None;
    let mut refusals = Vec::new();
    for candidate in candidates {
        match candidate.matched() {
            Ok(found) if best.as_ref().is_none_or(|best| found.coverage.cost() < best.coverage.cost()) => {
                let other = best.replace(found);
                refusals.extend(other.map(|other| (other.rollup, MissReason::MoreExpensive.into())));
            }
            Ok(found) => refusals.push((found.rollup, MissReason::MoreExpensive.into())),
            Err(refusal) => refusals.push((candidate.rollup, candidate.with_lines(refusal))),
        }
    }
    (best, refusals)
}

/// Checks rollups in the order of their costs, until one serves the fact. Returns it without refusals, or the refusals
/// of all rollups. The order is the same as in a comparison of all of them: of equal costs, the first definition wins.
fn cheapest<'c, 'p, 'm: 'p>(
    candidates: impl Iterator<Item = Candidate<'c, 'p, 'm>>,
) -> (Option<Match<'p, 'm>>, Refusals<'m>)
where
    'p: 'c,
{
    let mut refusals: Vec<(usize, (&'m Rollup, Refusal))> = Vec::new();
    let mut ordered = Vec::new();
    for (position, candidate) in candidates.enumerate() {
        match candidate.groups() {
            // A rollup without a cost does not serve the fact. It is checked last, for the reason.
            Ok(()) => ordered.push((candidate.cost().map_or((1, (false, 0)), |cost| (0, cost)), position, candidate)),
            Err(refusal) => refusals.push((position, (candidate.rollup, candidate.with_lines(refusal)))),
        }
    }
    ordered.sort_unstable_by_key(|(cost, position, _)| (*cost, *position));
    for (_, position, candidate) in ordered {
        match candidate.matched() {
            Ok(found) => return (Some(found), Vec::new()),
            Err(refusal) => refusals.push((position, (candidate.rollup, candidate.with_lines(refusal)))),
        }
    }
    refusals.sort_by_key(|(position, _)| *position);
    (None, refusals.into_iter().map(|(_, refusal)| refusal).collect())
}

/// A rollup that serves a fact. Only the best one becomes [`StoredRows`].
struct Match<'p, 'm> {
    rollup: &'m Rollup,
    generation: u64,
    coverage: Coverage<'p>,
    filters: Vec<usize>,
    segments: Vec<StoredSegment>,
    states: Vec<Option<StoredState>>,
}

impl<'m> Match<'_, 'm> {
    fn served(&self, access: &Access<'_>, cube: CubeId) -> Served {
        Served {
            is_limited: access.row_filters(cube).next().is_some() || !access.row_predicates(cube).is_empty(),
            is_hidden: !access.sees_rollup(self.rollup),
            rollup: Arc::clone(&self.rollup.name),
            generation: self.generation,
            tables: self.coverage.tables,
            rows: self.coverage.rows,
            built_at: self.coverage.built_at,
            is_split: self.coverage.has_remainder,
        }
    }

    fn into_rows(self) -> StoredRows<'m> {
        let Match { rollup, generation, coverage, filters, segments, states } = self;
        StoredRows {
            rollup,
            generation,
            tables: coverage.stored_tables(),
            filters,
            segments,
            states,
            remainder: coverage.remainder(),
            rows: coverage.rows,
            built_at: coverage.built_at,
        }
    }
}

/// One rollup that may serve a fact.
struct Candidate<'c, 'p, 'm> {
    matcher: &'c Matcher<'p, 'm>,
    fact: &'c Fact<'m>,
    index: usize,
    cube: &'m Cube,
    rollup: &'m Rollup,
    ready: Option<&'p ReadyTables>,
}

/// The availability of an expression in stored columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Availability {
    Stored,
    Missing,
    /// The dimension is stored, but its values were found through other joins.
    OtherPath,
}

impl Availability {
    fn and(self, other: impl FnOnce() -> Availability) -> Availability {
        if self == Availability::Stored { other() } else { self }
    }

    fn or_refuse(self, reason: MissReason, member: impl FnOnce() -> Vec<String>) -> Checked<()> {
        match self {
            Availability::Stored => Ok(()),
            Availability::Missing => Err(Refusal::of(reason, member())),
            Availability::OtherPath => Err(Refusal::of(MissReason::OtherPath, member())),
        }
    }
}

impl<'p, 'm: 'p> Candidate<'_, 'p, 'm> {
    fn model(&self) -> &'m Model {
        self.matcher.model
    }

    fn planted(&self) -> PlantedFlaw {
        self.matcher.ready.planted()
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.planted().is(flaw)
    }

    fn matched(&self) -> Checked<Match<'p, 'm>> {
        self.groups()?;
        let filters = self.filters()?;
        let segments = self.segments()?;
        let states = self.states(&segments)?;
        self.policies()?;
        let (ready, coverage) = self.coverage(self.stretch())?;
        self.check_scan(&coverage)?;
        self.check_age(&coverage)?;
        self.check_offsets(&coverage, ready.rollup.extent)?;
        let counts_stored = states.iter().flatten().any(|state| state.source == StateSource::Distinct)
            && self.aggregates().any(|(_, aggregate)| is_distinct_count(aggregate.function));
        if coverage.has_remainder && counts_stored {
            let is_unbounded = self.stretch() == Stretch::default();
            let reason = if is_unbounded { MissReason::RangeNotCovered } else { MissReason::RangeNotAligned };
            return Err(reason.into());
        }
        let generation = ready.rollup.generation;
        Ok(Match { rollup: self.rollup, generation, coverage, filters, segments, states })
    }

    /// Refuses the tables if a query has no time range, they lack some of its rows, and the time dimension is computed.
    /// To find these rows, the warehouse would compute the time of every row of the cube, which takes longer than to
    /// aggregate all rows.
    fn check_scan(&self, coverage: &Coverage<'p>) -> Checked<()> {
        let reads_all = coverage.has_remainder && self.stretch() == Stretch::default();
        let is_computed = |time: &RollupTime| {
            !matches!(self.model().dimension(time.dimension).sql.parts[..], [SqlPart::Column { .. }])
        };
        let is_slow = reads_all && self.rollup.time.as_ref().is_some_and(is_computed);
        if is_slow && self.matcher.request.mode != PreAggregations::Only {
            return Err(MissReason::MoreExpensive.into());
        }
        Ok(())
    }

    /// Returns the cost of the rollup's tables; `None` if they do not serve the fact.
    fn cost(&self) -> Option<Cost> {
        let (of, ready) = self.current().ok()?;
        cost_of(of, ready, self.stretch(), self.planted())
    }

    /// Returns the tables that cover a stretch, if they were built from the rollup's current definition.
    fn coverage(&self, stretch: Stretch) -> Checked<(&'p ReadyTables, Coverage<'p>)> {
        let (of, ready) = self.current()?;
        Ok((ready, cover(of, ready, stretch, self.planted())?))
    }

    /// Returns the tables, if they were built from the rollup's current definition.
    fn current(&self) -> Checked<(RollupOf<'m>, &'p ReadyTables)> {
        let ready = self.ready.ok_or(MissReason::NotBuilt)?;
        let of = RollupOf { model: self.model(), cube: self.cube, rollup: self.rollup };
        let is_current = of.fingerprint(self.matcher.profile).is_ok_and(|own| own == ready.rollup.fingerprint);
        if !is_current && !self.has(Flaw::OtherDefinition) {
            return Err(MissReason::DefinitionChanged.into());
        }
        Ok((of, ready))
    }

    fn aggregates(&self) -> impl Iterator<Item = (usize, &'m Aggregate)> {
        let plan = self.matcher.plan;
        let own = plan.aggregates.iter().enumerate().filter(|(_, planned)| planned.fact == self.index);
        own.map(|(index, planned)| (index, planned.aggregate))
    }

    /// Returns the name of a member, if the request shows names.
    fn named(&self, name: impl FnOnce() -> String) -> Vec<String> {
        if self.matcher.request.names_members() { vec![name()] } else { Vec::new() }
    }

    /// Returns the dimensions of a filter that are not stored, if the request shows names.
    fn unstored(&self, filter: &Predicate) -> Vec<DimensionId> {
        let mut found = Vec::new();
        if !self.matcher.request.names_members() {
            return found;
        }
        filter.for_each_operand(&mut |operand| {
            if let Operand::Dimension { id, .. } = operand
                && self.dimension(self.cube.id, *id) != Availability::Stored
                && !found.contains(id)
            {
                found.push(*id);
            }
        });
        found
    }

    fn names_of(&self, ids: &[DimensionId]) -> Vec<String> {
        if self.matcher.request.names_members() { ids.iter().map(|id| self.name_of(*id)).collect() } else { Vec::new() }
    }

    fn name_of(&self, id: DimensionId) -> String {
        format!("{}.{}", self.model().cube(id.cube).name, self.model().dimension(id).name)
    }

    // Availability.

    /// Returns whether a dimension, as a member of `owner` refers to it, can be computed from stored columns.
    fn dimension(&self, owner: CubeId, id: DimensionId) -> Availability {
        if self.rollup.dimensions.contains(&id) {
            return self.along(owner, id.cube);
        }
        if id.cube == self.cube.id && owner == self.cube.id {
            if self.rollup.bucket_of(id).is_some() {
                return Availability::Missing;
            }
            return self.snippet(owner, &self.model().dimension(id).sql);
        }
        let twin = |stored: &DimensionId| {
            let origin = |cube: CubeId| self.model().cube(cube).alias_of.unwrap_or(cube);
            stored.index == id.index && origin(stored.cube) == origin(id.cube)
        };
        if self.rollup.dimensions.iter().any(twin) { Availability::OtherPath } else { Availability::Missing }
    }

    /// Returns whether the joins from `owner` to a cube find the same rows as the joins from the rollup's cube.
    fn along(&self, owner: CubeId, cube: CubeId) -> Availability {
        let root = self.cube.id;
        if owner == root || owner == cube || self.has(Flaw::OtherPath) {
            return Availability::Stored;
        }
        let (Some(mut through), Some(direct)) = (path(self.model(), root, owner), path(self.model(), root, cube))
        else {
            return Availability::OtherPath;
        };
        through.extend(path(self.model(), owner, cube).unwrap_or_default());
        if through == direct { Availability::Stored } else { Availability::OtherPath }
    }

    /// Returns whether an expression of a member of `owner` can be computed from stored columns.
    fn snippet(&self, owner: CubeId, sql: &Snippet) -> Availability {
        if sql.has_query {
            return Availability::Missing;
        }
        sql.parts.iter().fold(Availability::Stored, |so_far, part| {
            so_far.and(|| match part {
                SqlPart::Text(_) | SqlPart::User(_) => Availability::Stored,
                SqlPart::Dimension(id) => self.dimension(owner, *id),
                SqlPart::Column { cube, name } => {
                    let is_column = |id: &&DimensionId| self.model().dimension(**id).is_column(*cube, name);
                    match self.rollup.dimensions.iter().find(is_column) {
                        Some(_) => self.along(owner, *cube),
                        None => Availability::Missing,
                    }
                }
                SqlPart::Divide(left, right) => self.snippet(owner, left).and(|| self.snippet(owner, right)),
                SqlPart::Measure(_) | SqlPart::Metric(_) | SqlPart::Aggregate(_) => Availability::Missing,
            })
        })
    }

    fn predicate(&self, predicate: &Predicate) -> Availability {
        match predicate {
            Predicate::And(all) | Predicate::Or(all) => {
                all.iter().fold(Availability::Stored, |so_far, each| so_far.and(|| self.predicate(each)))
            }
            Predicate::Not(inner) => self.predicate(inner),
            Predicate::Test { operand: Operand::Dimension { id, .. }, test } => {
                // A stored bucket is null exactly if the time is null.
                let is_null_test =
                    self.rollup.bucket_of(*id).is_some() && (tests_null(test) || self.has(Flaw::RawTimes));
                if is_null_test { Availability::Stored } else { self.dimension(self.cube.id, *id) }
            }
            Predicate::Test { .. } => Availability::Missing,
        }
    }

    // Conditions, in the order in which they are checked.

    fn groups(&self) -> Checked<()> {
        let plan = self.matcher.plan;
        let mut missing = Vec::new();
        let mut is_stored = true;
        for (group, id) in plan.groups.iter().zip(&self.fact.groups) {
            let name = || self.named(|| self.name_of(*id));
            match (self.rollup.bucket_of(*id), group.granularity) {
                (Some(_), None) => return Err(Refusal::of(MissReason::RawTime, name())),
                (Some(time), Some(granularity)) => {
                    let step = time.step(self.model());
                    if granularity < step && !self.has(Flaw::FinerSteps) {
                        return Err(Refusal::of(MissReason::GranularityTooFine, name()));
                    }
                    if !step.nests_in(granularity) && !self.has(Flaw::NestedWeeks) && !self.has(Flaw::FinerSteps) {
                        return Err(Refusal::of(MissReason::GranularityNotNested, name()));
                    }
                    let is_other = time.is_local(self.model()) && !is_same_zone(&time.zone, &plan.timezone);
                    if is_other && !self.has(Flaw::OtherZone) {
                        return Err(Refusal::of(MissReason::TimeZone, name()));
                    }
                }
                (None, _) => match self.dimension(self.cube.id, *id) {
                    Availability::Missing => {
                        is_stored = false;
                        missing.extend(Some(*id).filter(|_| self.matcher.request.names_members()));
                    }
                    other => other.or_refuse(MissReason::DimensionNotStored, name)?,
                },
            }
        }
        if is_stored { Ok(()) } else { Err(Refusal::of(MissReason::DimensionNotStored, self.names_of(&missing))) }
    }

    /// Returns the range of time to which the fact's filters restrict its rows.
    fn stretch(&self) -> Stretch {
        let ranges = self.fact.row_filters.iter().filter_map(|filter| self.range(filter));
        ranges.fold(Stretch::default(), |all, range| Stretch {
            start: all.start.max(range.start),
            end: [all.end, range.end].into_iter().flatten().min(),
        })
    }

    /// Returns the stretch of time that a filter on the rollup's time admits; `None` for other filters.
    fn range(&self, filter: &Predicate) -> Option<Stretch> {
        let Predicate::Test { operand: Operand::Dimension { id, .. }, test: Test::Range { low, high } } = filter else {
            return None;
        };
        self.rollup.bucket_of(*id)?;
        let start = low.as_ref().and_then(first);
        let end = high.as_ref().and_then(after);
        if start.is_some() != low.is_some() || end.is_some() != high.is_some() {
            return None;
        }
        let is_date = self.model().dimension(*id).column_type == LogicalType::Date;
        let edge = |at: Option<i64>| if is_date { at.and_then(next_midnight) } else { at };
        Some(Stretch { start: edge(start), end: edge(end) })
    }

    /// Returns the positions of the row filters that apply to stored rows. Ranges of time are left out, because the
    /// choice of tables meets them.
    fn filters(&self) -> Checked<Vec<usize>> {
        let mut on_rows = Vec::new();
        for (index, filter) in self.fact.row_filters.iter().enumerate() {
            if self.range(filter).is_some() {
                continue;
            }
            match self.predicate(filter) {
                Availability::Stored => on_rows.push(index),
                _ if self.has(Flaw::MissingFilter) => {}
                availability => {
                    let mut reads_time = false;
                    filter.for_each_operand(&mut |operand| {
                        if let Operand::Dimension { id, .. } = operand {
                            reads_time |= self.rollup.bucket_of(*id).is_some();
                        }
                    });
                    let reason = if reads_time { MissReason::RawTime } else { MissReason::FilterNotStored };
                    if availability == Availability::Missing {
                        return Err(Refusal::of(reason, self.names_of(&self.unstored(filter))));
                    }
                    availability.or_refuse(reason, || self.names_of(&self.unstored(filter)))?;
                }
            }
        }
        Ok(on_rows)
    }

    fn segments(&self) -> Checked<Vec<StoredSegment>> {
        let mut segments = Vec::with_capacity(self.fact.segments.len());
        for (node, sql) in &self.fact.segments {
            let cube = self.fact.tree.cube_of(*node);
            let is_it = |id: &SegmentId| id.cube == cube && self.model().segment(*id).sql == **sql;
            let flag = self.rollup.segments.iter().position(is_it);
            let is_filter = cube == self.cube.id && self.rollup.filters.contains(sql);
            segments.push(match flag {
                _ if is_filter => StoredSegment::Passed,
                Some(index) => StoredSegment::Flag(index),
                None => match self.snippet(cube, sql) {
                    Availability::Stored => StoredSegment::Computed,
                    _ if self.has(Flaw::MissingSegment) => StoredSegment::Passed,
                    availability => {
                        let of = self.model().cube(cube);
                        let segment = of.segments.iter().find(|segment| segment.sql == **sql);
                        let name = || format!("{}.{}", of.name, segment.map_or("?", |segment| &segment.name));
                        availability.or_refuse(MissReason::SegmentNotStored, || self.named(name))?;
                        StoredSegment::Computed
                    }
                },
            });
        }
        let guarded = match self.matcher.protection.rows(self.cube.id) {
            Some(RowGuard::Filters { all, .. }) => &all[..],
            _ => &[],
        };
        let is_implied = |filter: &Snippet| {
            let is_segment = self.fact.segments.iter().any(|(node, sql)| *node == 0 && **sql == *filter);
            is_segment || guarded.iter().any(|sql| **sql == *filter)
        };
        if self.rollup.filters.iter().all(is_implied) || self.has(Flaw::FilteredRollup) {
            Ok(segments)
        } else {
            Err(MissReason::RollupIsFiltered.into())
        }
    }

    fn states(&self, segments: &[StoredSegment]) -> Checked<Vec<Option<StoredState>>> {
        let plan = self.matcher.plan;
        let mut states = vec![None; plan.aggregates.len()];
        let is_single = self.has_single_rows(segments);
        let mut missing: Option<Vec<String>> = None;
        for (index, aggregate) in self.aggregates() {
            let planned = &plan.aggregates[index];
            if planned.shape != ArgumentForm::Measure {
                return Err(MissReason::NotAdditive.into());
            }
            for metric in &planned.metrics {
                let filters = plan.metric_filters.iter().filter(|(id, _)| id == metric).flat_map(|(_, all)| all);
                for filter in filters {
                    match self.predicate(filter) {
                        Availability::Missing => {
                            let members = self.names_of(&self.unstored(filter));
                            return Err(Refusal::of(MissReason::FilterNotStored, members));
                        }
                        other => other.or_refuse(MissReason::FilterNotStored, Vec::new)?,
                    }
                }
            }
            match self.state(aggregate, is_single) {
                Ok(state) => states[index] = Some(state),
                Err(refusal) if refusal.reason == MissReason::MeasureNotStored => {
                    missing.get_or_insert_default().extend(refusal.members);
                }
                Err(refusal) => return Err(refusal),
            }
        }
        match missing {
            None => Ok(states),
            Some(mut members) => {
                members.dedup();
                Err(Refusal::of(MissReason::MeasureNotStored, members))
            }
        }
    }

    /// Returns whether each group of the query is one stored row.
    fn has_single_rows(&self, segments: &[StoredSegment]) -> bool {
        let plan = self.matcher.plan;
        let ignores_masks = self.has(Flaw::MaskedGroups);
        let is_unmasked = |id: &DimensionId| ignores_masks || self.matcher.protection.mask_of(*id).is_none();
        let groups = || plan.groups.iter().zip(&self.fact.groups);
        let has_dimension =
            |id: &DimensionId| groups().any(|(group, own)| own == id && group.granularity.is_none()) && is_unmasked(id);
        let has_time = self.rollup.time.as_ref().is_none_or(|time| {
            let step = Some(time.step(self.model()));
            groups().any(|(group, own)| *own == time.dimension && group.granularity == step)
                && is_unmasked(&time.dimension)
        });
        let has_segment = |index: usize| segments.contains(&StoredSegment::Flag(index));
        has_time
            && !self.fact.period.has_history
            && self.rollup.dimensions.iter().all(has_dimension)
            && (0..self.rollup.segments.len()).all(has_segment)
    }

    fn state(&self, aggregate: &Aggregate, is_single: bool) -> Checked<StoredState> {
        let argument = aggregate.argument.as_ref();
        let has_stored_filters =
            aggregate.filters.iter().all(|sql| self.snippet(self.cube.id, sql) == Availability::Stored);
        // Finds the state under the aggregate's own filters, or else the state without filters if the filters can be
        // evaluated on stored columns.
        let find = |function| {
            let own = self.rollup.state(function, argument, &aggregate.filters).map(|position| (position, false));
            let plain = || {
                let position = self.rollup.state(function, argument, &[]).filter(|_| has_stored_filters)?;
                Some((position, !aggregate.filters.is_empty()))
            };
            let flawed = || {
                let any = |state: &Aggregate| state.function == function && state.argument.as_ref() == argument;
                let position = self.rollup.states.iter().position(any);
                position.filter(|_| self.has(Flaw::OtherFilters)).map(|position| (position, false))
            };
            let other = || {
                let any = |state: &Aggregate| state.function == function && state.argument.is_some();
                let position = self.rollup.states.iter().position(any);
                position.filter(|_| self.has(Flaw::OtherArgument)).map(|position| (position, false))
            };
            let rows = || (function == AggregateFunction::Count && self.has(Flaw::RowsForValues)).then_some((0, false));
            own.or_else(plain).or_else(flawed).or_else(other).or_else(rows)
        };
        let is_function =
            has_stored_filters && argument.is_some_and(|sql| self.snippet(self.cube.id, sql) == Availability::Stored);
        let computed = StoredState { source: StateSource::Distinct, applies_filters: true };
        let function = aggregate.function;
        let found = match function {
            AggregateFunction::Avg => {
                let parts = find(AggregateFunction::Sum).zip(find(AggregateFunction::Count));
                parts.filter(|(sum, count)| sum.1 == count.1).map(|((sum, applies_filters), (count, _))| StoredState {
                    source: StateSource::Mean { sum, count: if self.has(Flaw::MeanOverRows) { 0 } else { count } },
                    applies_filters,
                })
            }
            AggregateFunction::Count | AggregateFunction::Sum => find(function).map(merged),
            AggregateFunction::Min | AggregateFunction::Max => {
                find(function).map(merged).or(is_function.then_some(computed))
            }
            AggregateFunction::Percentile(..) | AggregateFunction::StdDev(_) | AggregateFunction::Variance(_) => {
                match find(function) {
                    Some((position, applies_filters)) if is_single => {
                        Some(StoredState { source: StateSource::Single(position), applies_filters })
                    }
                    // If the measure is not stored, storing it would not help, unless each group is one stored row.
                    None if is_single => None,
                    _ => return Err(self.refused(MissReason::NotAdditive, aggregate)),
                }
            }
            AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox => {
                let own = find(function);
                match own {
                    Some((position, applies_filters)) if is_single => {
                        Some(StoredState { source: StateSource::Single(position), applies_filters })
                    }
                    _ if is_function => Some(computed),
                    Some(state) if self.has(Flaw::AddedDistinct) => Some(merged(state)),
                    None if is_single => None,
                    _ if function == AggregateFunction::CountDistinctApprox => {
                        return Err(self.refused(MissReason::SketchUnsupported, aggregate));
                    }
                    _ => return Err(self.refused(MissReason::NotAdditive, aggregate)),
                }
            }
        };
        found.ok_or_else(|| self.refused(MissReason::MeasureNotStored, aggregate))
    }

    fn refused(&self, reason: MissReason, aggregate: &Aggregate) -> Refusal {
        if !self.matcher.request.names_members() {
            return reason.into();
        }
        let is_it = |measure: &&Measure| {
            aggregates_of(self.model(), self.cube.id, &measure.kind, 0).iter().any(|own| std::ptr::eq(*own, aggregate))
        };
        let measure = self.cube.measures.iter().find(is_it);
        let members = measure.map(|measure| format!("{}.{}", self.cube.name, measure.name)).into_iter().collect();
        Refusal::of(reason, members)
    }

    /// Checks that row filters and masks can be applied to stored rows.
    fn policies(&self) -> Checked<()> {
        let protection = self.matcher.protection;
        for node in 1..=self.fact.tree.joins.len() {
            let cube = self.fact.tree.cube_of(node);
            if protection.rows(cube).is_some() && !self.has(Flaw::OpenJoins) {
                let members = self.named(|| self.model().cube(cube).name.to_string());
                return Err(Refusal::of(MissReason::Policy, members));
            }
        }
        match protection.rows(self.cube.id) {
            None => {}
            Some(RowGuard::Filters { tree, all, predicates }) if tree.joins.is_empty() => {
                let all = all.iter().map(|sql| match self.rollup.filters.contains(sql) {
                    true => Availability::Stored,
                    false => self.snippet(self.cube.id, sql),
                });
                let mut met = all.chain(predicates.iter().map(|predicate| self.predicate(predicate)));
                if !met.all(|each| each == Availability::Stored) && !self.has(Flaw::OpenRows) {
                    return Err(MissReason::Policy.into());
                }
            }
            Some(_) => return Err(MissReason::Policy.into()),
        }
        for id in &self.fact.groups {
            let is_own = id.cube == self.cube.id;
            let is_met = match protection.mask_of(*id) {
                None | Some(Mask::Null | Mask::Hash | Mask::Partial) => true,
                Some(Mask::Constant(_)) => is_own,
                Some(Mask::Truncate(_)) => self.rollup.bucket_of(*id).is_none(),
                Some(Mask::Sql(sql)) => is_own && self.snippet(id.cube, sql) == Availability::Stored,
            };
            // A mask of a time may combine values differently from the stored buckets.
            let is_bucket = self.rollup.bucket_of(*id).is_some() && protection.mask_of(*id).is_some();
            if (!is_met || is_bucket) && !self.has(Flaw::AnyMask) {
                return Err(Refusal::of(MissReason::Policy, self.named(|| self.name_of(*id))));
            }
        }
        Ok(())
    }

    fn check_age(&self, coverage: &Coverage<'_>) -> Checked<()> {
        let limits = [self.matcher.request.max_staleness, self.rollup.max_staleness];
        let Some(most) = limits.into_iter().flatten().min() else { return Ok(()) };
        let age = self.matcher.now.duration_since(coverage.built_at);
        let is_stale = SignedDuration::try_from(most).is_ok_and(|most| age > most);
        if is_stale && !self.has(Flaw::AnyAge) { Err(MissReason::Stale.into()) } else { Ok(()) }
    }

    /// Checks that stored hours can be combined to local hours and days: in the covered range, the zone's offsets must
    /// be whole hours.
    fn check_offsets(&self, coverage: &Coverage<'_>, extent: Option<[i64; 2]>) -> Checked<()> {
        let plan = self.matcher.plan;
        let Some(time) = &self.rollup.time else { return Ok(()) };
        let is_grouped = self.fact.groups.iter().any(|id| self.rollup.bucket_of(*id).is_some());
        let is_instant = self.model().dimension(time.dimension).time == TimeKind::Utc;
        if !is_grouped || !is_instant || time.is_local(self.model()) || is_utc(&plan.timezone) {
            return Ok(());
        }
        let unit = match time.step(self.model()) {
            Granularity::Second => 1,
            Granularity::Minute => 60,
            _ => 3_600,
        };
        let start = coverage.stretch.start.or(extent.map(|[start, _]| start));
        let end = coverage.stretch.end.or(extent.map(|[_, end]| end));
        let is_whole = start.zip(end).is_some_and(|(start, end)| has_whole_offsets(&plan.timezone, unit, start, end));
        if is_whole || self.has(Flaw::BrokenHours) { Ok(()) } else { Err(MissReason::TimeZone.into()) }
    }
}

fn merged((position, applies_filters): (usize, bool)) -> StoredState {
    StoredState { source: StateSource::Merged(position), applies_filters }
}

fn is_distinct_count(function: AggregateFunction) -> bool {
    matches!(function, AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox)
}

/// Returns the first midnight at or after a moment. A date is before the moment exactly if it is before this midnight.
fn next_midnight(micros: i64) -> Option<i64> {
    const DAY: i64 = 86_400_000_000;
    micros.checked_add(DAY - 1).map(|micros| micros.div_euclid(DAY) * DAY)
}

fn tests_null(test: &Test) -> bool {
    match test {
        Test::IsNull | Test::NoRow | Test::Never => true,
        Test::Not(inner) => tests_null(inner),
        Test::AnyOf(tests) => tests.iter().all(tests_null),
        Test::Equals(_) | Test::Match { .. } | Test::InList { .. } | Test::Range { .. } => false,
    }
}

fn is_same_zone(one: &TimeZone, other: &TimeZone) -> bool {
    (is_utc(one) && is_utc(other)) || (one.iana_name().is_some() && one.iana_name() == other.iana_name())
}

/// Returns whether all offsets of a zone between two moments are multiples of a number of seconds.
fn has_whole_offsets(zone: &TimeZone, unit: i32, start: i64, end: i64) -> bool {
    let (Ok(start), Ok(end)) = (Timestamp::from_microsecond(start), Timestamp::from_microsecond(end)) else {
        return false;
    };
    let is_whole = |seconds: i32| seconds % unit == 0;
    let mut changes = zone.following(start).take_while(|change| change.timestamp() <= end);
    is_whole(zone.to_offset(start).seconds()) && changes.all(|change| is_whole(change.offset().seconds()))
}
