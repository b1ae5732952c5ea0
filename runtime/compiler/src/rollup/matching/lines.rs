//! The lines of YAML that a pre-aggregation lacks to serve a fact.
//!
//! In: a rollup that does not serve a fact, and the reason. Out: all keys of its definition that the fact needs, one
//! line per key, or a whole definition if the cube has none. Lines are for explanations and rejections only. Not here:
//! the reasons, and keys that would not help, such as a time that is stored for each row.

use std::fmt::Write as _;

use super::{Availability, Candidate, Matcher, is_same_zone};
use crate::model::{
    AggregateFunction, Cube, CubeId, DimensionId, DimensionType, Model, SegmentId, Snippet, SqlPart, aggregates_of,
};
use crate::plan::{Fact, RowGuard, StoredSegment};
use crate::query::{MissReason, Operand, Predicate, Test};
use crate::ready_rollups::Stretch;
use crate::rollup::coverage::Refusal;
use crate::snippet::ColumnName;
use crate::types::{Granularity, TimeKind, is_utc};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The keys of a definition that a fact needs, without those that it has.
#[derive(Default)]
struct MissingKeys {
    measures: Vec<String>,
    dimensions: Vec<String>,
    segments: Vec<String>,
    /// The time dimension, if the definition has none.
    time: Option<String>,
    granularity: Option<Granularity>,
    timezone: Option<String>,
}

impl MissingKeys {
    /// Returns one line per key; `None` without keys.
    fn lines(&self) -> Option<String> {
        let keys = self.keys();
        (!keys.is_empty()).then(|| keys.join("\n"))
    }

    fn keys(&self) -> Vec<String> {
        let lists = [("measures", &self.measures), ("dimensions", &self.dimensions), ("segments", &self.segments)];
        let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
        let mut keys: Vec<String> = lists.map(|(key, names)| format!("{key}: [{}]", names.join(", "))).collect();
        keys.extend(self.time.as_ref().map(|time| format!("time_dimension: {time}")));
        keys.extend(self.granularity.map(|granularity| format!("granularity: {granularity}")));
        keys.extend(self.timezone.as_ref().map(|zone| format!("timezone: {zone}")));
        keys
    }
}

fn add(names: &mut Vec<String>, name: String) {
    if !names.contains(&name) {
        names.push(name);
    }
}

impl<'p, 'm: 'p> Candidate<'_, 'p, 'm> {
    /// Adds the lines to a refusal, if the request shows them and if they help.
    pub(super) fn with_lines(&self, refusal: Refusal) -> Refusal {
        if !self.matcher.request.names_members() {
            return refusal;
        }
        let fix = match refusal.reason {
            MissReason::DimensionNotStored
            | MissReason::FilterNotStored
            | MissReason::SegmentNotStored
            | MissReason::MeasureNotStored
            | MissReason::GranularityTooFine
            | MissReason::GranularityNotNested => self.missing_keys().lines(),
            MissReason::NotAdditive | MissReason::SketchUnsupported => self.counted_dimensions().lines(),
            MissReason::TimeZone => self.zone_keys().lines(),
            MissReason::RangeNotAligned => self.aligned_step().map(|step| format!("granularity: {step}")),
            MissReason::Stale => self.refresh_line(),
            MissReason::Policy => self.policy_keys().lines(),
            _ => None,
        };
        Refusal { fix, ..refusal }
    }

    /// Returns the keys that the query itself needs. Policies are left out, because callers may not see them.
    fn missing_keys(&self) -> MissingKeys {
        let mut keys = MissingKeys::default();
        self.add_groups(&mut keys);
        for filter in self.fact.row_filters.iter().filter(|filter| self.range(filter).is_none()) {
            self.add_filter(&mut keys, filter);
        }
        let flags = self.add_segments(&mut keys);
        self.add_measures(&mut keys, &flags);
        keys
    }

    fn add_groups(&self, keys: &mut MissingKeys) {
        let plan = self.matcher.plan;
        for (group, id) in plan.groups.iter().zip(&self.fact.groups) {
            match (self.rollup.bucket_of(*id), group.granularity) {
                (Some(time), Some(wanted)) => {
                    let step = time.step(self.model());
                    // A step that divides both serves the queries of before as well.
                    let finer = if wanted.nests_in(step) { wanted } else { Granularity::Day };
                    let finer = Some(finer).filter(|_| !step.nests_in(wanted));
                    keys.granularity = [keys.granularity, finer].into_iter().flatten().min();
                    let is_local = time.is_local(self.model()) && !is_same_zone(&time.zone, &plan.timezone);
                    self.add_zone(keys, is_local);
                }
                (None, Some(wanted)) if self.rollup.time.is_none() && id.cube == self.cube.id => {
                    keys.time = Some(self.model().dimension(*id).name.to_string());
                    let step = self.filtered_step(*id).map_or(wanted, |step| step.min(wanted));
                    keys.granularity = [keys.granularity, Some(step)].into_iter().flatten().min();
                    let is_instant = self.model().dimension(*id).time == TimeKind::Utc;
                    self.add_zone(keys, is_instant && !step.is_sub_day() && !is_utc(&plan.timezone));
                }
                _ => self.add_dimension(keys, *id),
            }
        }
    }

    /// Returns the step of a time by which rows are filtered, if the filter is a range.
    fn filtered_step(&self, id: DimensionId) -> Option<Granularity> {
        let is_range = |filter: &Predicate| is_range_of(filter, id);
        self.fact.row_filters.iter().any(is_range).then_some(Granularity::Day)
    }

    /// Adds the zone of the query, if the steps of the definition are days of another one.
    fn add_zone(&self, keys: &mut MissingKeys, is_other: bool) {
        if is_other {
            keys.timezone = self.matcher.plan.timezone.iana_name().map(str::to_owned);
        }
    }

    fn add_dimension(&self, keys: &mut MissingKeys, id: DimensionId) {
        let is_time = self.model().dimension(id).ty == DimensionType::Time;
        if !is_time && self.dimension(self.cube.id, id) == Availability::Missing {
            add(&mut keys.dimensions, self.name_of(id));
        }
    }

    fn add_filter(&self, keys: &mut MissingKeys, filter: &Predicate) {
        if self.predicate(filter) != Availability::Stored {
            self.unstored(filter).into_iter().for_each(|id| self.add_dimension(keys, id));
        }
    }

    /// Adds the segments that are missing. Returns the stored ones.
    fn add_segments(&self, keys: &mut MissingKeys) -> Vec<StoredSegment> {
        let mut flags = Vec::new();
        for (node, sql) in &self.fact.segments {
            let cube = self.fact.tree.cube_of(*node);
            let of = self.model().cube(cube);
            let is_it = |segment: &SegmentId| segment.cube == cube && self.model().segment(*segment).sql == **sql;
            let stored = self.rollup.segments.iter().position(is_it);
            flags.extend(stored.map(StoredSegment::Flag));
            let is_met = stored.is_some()
                || (cube == self.cube.id && self.rollup.filters.contains(sql))
                || self.snippet(cube, sql) != Availability::Missing;
            if let Some(segment) = of.segments.iter().find(|segment| !is_met && segment.sql == **sql) {
                add(&mut keys.segments, format!("{}.{}", of.name, segment.name));
            }
        }
        flags
    }

    fn add_measures(&self, keys: &mut MissingKeys, flags: &[StoredSegment]) {
        let plan = self.matcher.plan;
        let is_single = self.has_single_rows(flags);
        for (index, aggregate) in self.aggregates() {
            for metric in &plan.aggregates[index].metrics {
                let filters = plan.metric_filters.iter().filter(|(id, _)| id == metric).flat_map(|(_, all)| all);
                filters.for_each(|filter| self.add_filter(keys, filter));
            }
            if let Err(refusal) = self.state(aggregate, is_single)
                && refusal.reason == MissReason::MeasureNotStored
            {
                refusal.members.into_iter().for_each(|name| add(&mut keys.measures, name));
            }
        }
    }

    /// Returns the dimensions whose values the query counts. If they are stored, counts can be computed for any groups.
    fn counted_dimensions(&self) -> MissingKeys {
        let mut keys = MissingKeys::default();
        for (_, aggregate) in self.aggregates() {
            let function = aggregate.function;
            let is_count =
                matches!(function, AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox);
            let Some(argument) = aggregate.argument.as_ref().filter(|_| is_count) else { continue };
            self.add_columns(&mut keys, argument);
            aggregate.filters.iter().for_each(|sql| self.add_columns(&mut keys, sql));
        }
        keys
    }

    /// Adds the dimensions that an expression of the cube reads.
    fn add_columns(&self, keys: &mut MissingKeys, sql: &Snippet) {
        for part in &sql.parts {
            match part {
                SqlPart::Dimension(id) => self.add_dimension(keys, *id),
                SqlPart::Column { cube, name } => {
                    if let Some(id) = dimension_of(self.model(), *cube, name) {
                        self.add_dimension(keys, id);
                    }
                }
                SqlPart::Divide(left, right) => {
                    self.add_columns(keys, left);
                    self.add_columns(keys, right);
                }
                _ => {}
            }
        }
    }

    /// Returns the zone of the query, or a step of which hours and days of the zone consist.
    fn zone_keys(&self) -> MissingKeys {
        let keys = self.missing_keys();
        if keys.timezone.is_some() {
            return keys;
        }
        let is_instant = |id: DimensionId| self.model().dimension(id).time == TimeKind::Utc;
        let has_hours = self.rollup.time.as_ref().is_some_and(|time| is_instant(time.dimension));
        MissingKeys { granularity: has_hours.then_some(Granularity::Minute), ..keys }
    }

    /// Returns the coarsest step, finer than the stored one, whose boundaries include the ends of the query's range.
    fn aligned_step(&self) -> Option<Granularity> {
        let time = self.rollup.time.as_ref()?;
        let Stretch { start, end } = self.stretch();
        let ends: Vec<i64> = [start, end].into_iter().flatten().collect();
        let is_instant = self.model().dimension(time.dimension).time == TimeKind::Utc;
        let step = time.step(self.model());
        let units = [
            (Granularity::Day, DAY),
            (Granularity::Hour, 3_600 * SECOND),
            (Granularity::Minute, 60 * SECOND),
            (Granularity::Second, SECOND),
        ];
        let is_aligned = |granularity: Granularity, unit: i64, end: i64| match is_instant && !is_utc(&time.zone) {
            true if granularity == Granularity::Day => {
                let instant = jiff::Timestamp::from_microsecond(end).ok();
                instant.is_some_and(|at| time.zone.to_datetime(at).time() == jiff::civil::Time::midnight())
            }
            _ => end.rem_euclid(unit) == 0,
        };
        let finer = units.into_iter().filter(|(granularity, _)| *granularity < step);
        let mut aligned =
            finer.filter(|(granularity, unit)| ends.iter().all(|end| is_aligned(*granularity, *unit, *end)));
        aligned.next().map(|(granularity, _)| granularity)
    }

    /// Returns a refresh that is frequent enough for the query, or for the definition.
    fn refresh_line(&self) -> Option<String> {
        let limits = [self.matcher.request.max_staleness, self.rollup.max_staleness];
        let seconds = limits.into_iter().flatten().min()?.as_secs();
        (seconds > 0).then(|| format!("refresh: {{every: {seconds} seconds}}"))
    }

    /// Returns the dimensions that the row filters of the fact's cube read. Only administrators see this miss.
    fn policy_keys(&self) -> MissingKeys {
        let mut keys = MissingKeys::default();
        if let Some(RowGuard::Filters { tree, all, predicates }) = self.matcher.protection.rows(self.cube.id)
            && tree.joins.is_empty()
        {
            let all = all.iter().filter(|sql| !self.rollup.filters.contains(*sql));
            all.for_each(|sql| self.add_columns(&mut keys, sql));
            predicates.iter().for_each(|predicate| self.add_filter(&mut keys, predicate));
        }
        keys
    }
}

impl<'m> Matcher<'_, 'm> {
    /// Returns the line that adds a pre-aggregation for a fact to its cube, if the request shows lines and such a
    /// pre-aggregation would serve the fact.
    pub(super) fn definition(&self, fact: &Fact<'m>, index: usize, cube: &Cube) -> Option<String> {
        let is_plain = fact.distinct.is_none() && fact.semi_joins.is_empty() && fact.period.window.is_none();
        let is_fanned_out = fact.tree.joins.iter().any(|join| join.is_to_many);
        if !self.request.names_members() || !is_plain || is_fanned_out || self.plan.ungrouped {
            return None;
        }
        let mut keys = MissingKeys::default();
        for planned in self.plan.aggregates.iter().filter(|planned| planned.fact == index) {
            let measure = cube.measures.iter().find(|measure| {
                let own = aggregates_of(self.model, fact.tree.cube, &measure.kind, 0);
                own.iter().any(|aggregate| std::ptr::eq(*aggregate, planned.aggregate))
            });
            add(&mut keys.measures, measure?.name.to_string());
        }
        for (group, id) in self.plan.groups.iter().zip(&fact.groups) {
            match group.granularity {
                Some(step) => self.add_time(&mut keys, fact, *id, step)?,
                None => add(&mut keys.dimensions, self.member(fact.tree.cube, *id)),
            }
        }
        for filter in &fact.row_filters {
            let mut ids = Vec::new();
            filter.for_each_operand(&mut |operand| ids.extend(dimension_of_operand(operand)));
            for id in ids {
                match self.model.dimension(id).ty {
                    DimensionType::Time if is_range_of(filter, id) => {
                        self.add_time(&mut keys, fact, id, Granularity::Day)?;
                    }
                    DimensionType::Time => return None,
                    _ => add(&mut keys.dimensions, self.member(fact.tree.cube, id)),
                }
            }
        }
        for (node, sql) in &fact.segments {
            let of = self.model.cube(fact.tree.cube_of(*node));
            let segment = of.segments.iter().find(|segment| segment.sql == **sql)?;
            add(&mut keys.segments, format!("{}.{}", of.name, segment.name));
        }
        let mut line = "pre_aggregations: [{name: ".to_owned();
        let name = keys.granularity.map_or("groups".to_owned(), |granularity| format!("by_{granularity}"));
        let _ = write!(line, "{name}, {}}}]", keys.keys().join(", "));
        Some(line)
    }

    /// Adds a time with a step. Returns `None` if the time is not one of the cube, or is not the only one.
    fn add_time(&self, keys: &mut MissingKeys, fact: &Fact<'m>, id: DimensionId, step: Granularity) -> Option<()> {
        let name = self.model.dimension(id).name.to_string();
        if id.cube != fact.tree.cube || keys.time.as_ref().is_some_and(|time| *time != name) {
            return None;
        }
        // Weeks are parts of no other step, and days are parts of all of them.
        let step = match keys.granularity.unwrap_or(step).min(step) {
            Granularity::Week => Granularity::Day,
            step => step,
        };
        (keys.time, keys.granularity) = (Some(name), Some(step));
        let zone = &self.plan.timezone;
        let is_local = self.model.dimension(id).time == TimeKind::Utc && !step.is_sub_day() && !is_utc(zone);
        keys.timezone = zone.iana_name().filter(|_| is_local).map(str::to_owned);
        Some(())
    }

    /// Returns the name of a dimension in a definition of a cube.
    fn member(&self, cube: CubeId, id: DimensionId) -> String {
        let name = &self.model.dimension(id).name;
        if id.cube == cube { name.to_string() } else { format!("{}.{name}", self.model.cube(id.cube).name) }
    }
}

fn dimension_of_operand(operand: &Operand) -> Option<DimensionId> {
    match operand {
        Operand::Dimension { id, .. } => Some(*id),
        _ => None,
    }
}

/// Returns whether a filter is a range of a time.
fn is_range_of(filter: &Predicate, id: DimensionId) -> bool {
    matches!(filter, Predicate::Test { operand, test: Test::Range { .. } } if dimension_of_operand(operand) == Some(id))
}

/// Returns the dimension that is a column of a cube.
fn dimension_of(model: &Model, cube: CubeId, name: &ColumnName) -> Option<DimensionId> {
    let dimensions = &model.cube(cube).dimensions;
    let position = dimensions.iter().position(|dimension| dimension.is_column(cube, name))?;
    Some(DimensionId { cube, index: u32::try_from(position).ok()? })
}
