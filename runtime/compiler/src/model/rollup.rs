//! The compiled definition of a pre-aggregation.
//!
//! In: a definition that `pre_aggregations` resolves when a project loads. Out: the groups and aggregate states that
//! the table of the pre-aggregation stores, and the times of its builds. Not here: statements (`crate::rollup`), the
//! state of builds, policies.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{
    Aggregate, AggregateFunction, Cube, CubeId, DimensionId, MeasureId, MeasureKind, Model, Refresh, SegmentId,
    Snippet, SqlPart, TimeKind,
};
use crate::text::Span;
use crate::types::{Granularity, LogicalType};

/// A digest of everything that decides the rows of a rollup's table: definitions, models and the dialect. Two tables
/// with the same fingerprint have the same rows if their data is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    pub(crate) fn new(digest: [u8; 16]) -> Self {
        Fingerprint(digest)
    }

    /// Reads the form that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Fingerprint> {
        let bytes = text.as_bytes();
        if bytes.len() != 32 || !text.is_ascii() {
            return None;
        }
        let mut digest = [0; 16];
        for (at, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        Some(Fingerprint(digest))
    }
}

/// Writes 32 hexadecimal digits.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A table of groups and aggregate states that answers queries instead of a cube's rows.
#[derive(Debug, Clone, Default)]
pub struct Rollup {
    pub name: Arc<str>,
    /// The measures of the declaration.
    pub measures: Vec<MeasureId>,
    /// The dimensions of the stored groups: of the cube, or of cubes that it reaches by to-one joins.
    pub dimensions: Vec<DimensionId>,
    /// The segments of the stored groups. Each is a Boolean column: true for rows in the segment.
    pub segments: Vec<SegmentId>,
    /// The conditions of its rows, ANDed.
    pub filters: Vec<Snippet>,
    pub time: Option<RollupTime>,
    /// The rule for recomputing the rollup; `None` if the definition has no `refresh`.
    pub refresh: Option<Refresh>,
    /// The length of the period in which rows may still change. The period ends at the newest row.
    pub update_window: Option<Duration>,
    /// True if only partitions whose rows changed are rebuilt.
    pub is_incremental: bool,
    /// The greatest age at which a query reads the table.
    pub max_staleness: Option<Duration>,
    /// The first and the last day that are stored, in the rollup's time zone.
    pub build_range: [Option<Date>; 2],
    /// The column with the time at which a row arrived.
    pub arrival: Option<Snippet>,
    /// The positions of the indexed dimensions in `dimensions`.
    pub indexes: Vec<usize>,
    /// The stored aggregate states. The first is the number of rows.
    pub states: Vec<Aggregate>,
    pub span: Option<Span>,
    /// The fingerprint under one dialect profile, with the digest of that profile.
    pub(crate) fingerprint: OnceLock<(u64, Fingerprint)>,
}

/// Compares everything except the cached fingerprint.
impl PartialEq for Rollup {
    fn eq(&self, other: &Self) -> bool {
        let parts = |r: &Self| {
            (r.name.clone(), r.measures.clone(), r.dimensions.clone(), r.segments.clone(), r.indexes.clone())
        };
        parts(self) == parts(other)
            && self.filters == other.filters
            && self.time == other.time
            && self.refresh == other.refresh
            && (self.update_window, self.is_incremental) == (other.update_window, other.is_incremental)
            && self.max_staleness == other.max_staleness
            && (&self.build_range, &self.arrival) == (&other.build_range, &other.arrival)
            && (&self.states, &self.span) == (&other.states, &other.span)
    }
}

/// The time steps of a rollup.
#[derive(Debug, Clone, PartialEq)]
pub struct RollupTime {
    pub dimension: DimensionId,
    pub granularity: Granularity,
    /// The length of a partition; `None` if the rollup is one table.
    pub partition: Option<Granularity>,
    /// The time zone of steps of a day or more, if the dimension is an instant.
    pub zone: TimeZone,
}

impl RollupTime {
    /// Returns the granularity that is stored. It is at least a day if the dimension is a date.
    pub fn step(&self, model: &Model) -> Granularity {
        match model.dimension(self.dimension).column_type {
            LogicalType::Date => self.granularity.max(Granularity::Day),
            _ => self.granularity,
        }
    }

    /// Returns whether buckets are periods of local time in the zone, and not instants or wall-clock times as stored.
    pub fn is_local(&self, model: &Model) -> bool {
        model.dimension(self.dimension).time == TimeKind::Utc && !self.step(model).is_sub_day()
    }

    /// Returns the type of the stored bucket.
    pub fn stored_type(&self, model: &Model) -> LogicalType {
        match model.dimension(self.dimension).column_type {
            LogicalType::TimestampTz if !self.is_local(model) => LogicalType::TimestampTz,
            LogicalType::Date => LogicalType::Date,
            _ => LogicalType::Timestamp,
        }
    }
}

impl Rollup {
    /// Returns the number of stored groups: the time, the dimensions, then the segments.
    pub fn groups(&self) -> usize {
        usize::from(self.time.is_some()) + self.dimensions.len() + self.segments.len()
    }

    /// Returns the time of the rollup if a dimension is stored only as its buckets, and not as its own values.
    pub fn bucket_of(&self, id: DimensionId) -> Option<&RollupTime> {
        self.time.as_ref().filter(|time| time.dimension == id && !self.dimensions.contains(&id))
    }

    /// Returns the position in `states` of the state with this function, argument and filters.
    pub fn state(&self, function: AggregateFunction, argument: Option<&Snippet>, filters: &[Snippet]) -> Option<usize> {
        let is_it = |state: &Aggregate| {
            state.function == function && state.argument.as_ref() == argument && state.filters == filters
        };
        self.states.iter().position(is_it)
    }
}

/// Returns the type of a stored state.
pub(crate) fn state_type(state: &Aggregate) -> LogicalType {
    match state.function {
        AggregateFunction::Count | AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox => {
            LogicalType::Integer
        }
        AggregateFunction::Avg
        | AggregateFunction::Percentile(..)
        | AggregateFunction::StdDev(_)
        | AggregateFunction::Variance(_) => LogicalType::Float,
        AggregateFunction::Sum if state.argument_type == LogicalType::Integer => LogicalType::Decimal,
        AggregateFunction::Sum | AggregateFunction::Min | AggregateFunction::Max => state.argument_type,
    }
}

impl Model {
    /// Computes the states of all rollups from their measures, with the types that are known.
    pub(super) fn set_rollup_states(&mut self) {
        for at in 0..self.cubes.len() {
            let cube = &self.cubes[at];
            let states: Vec<Vec<Aggregate>> = cube.rollups.iter().map(|rollup| states_of(self, cube, rollup)).collect();
            for (rollup, states) in self.cubes[at].rollups.iter_mut().zip(states) {
                rollup.states = states;
                rollup.fingerprint = OnceLock::new();
            }
        }
    }
}

fn states_of(model: &Model, cube: &Cube, rollup: &Rollup) -> Vec<Aggregate> {
    let mut states = vec![Aggregate {
        function: AggregateFunction::Count,
        argument: None,
        filters: Vec::new(),
        argument_type: LogicalType::Unknown,
        is_converted: false,
    }];
    for id in &rollup.measures {
        for aggregate in aggregates_of(model, cube.id, &cube.measures[id.index as usize].kind, 0) {
            let functions = match aggregate.function {
                AggregateFunction::Avg => &[AggregateFunction::Sum, AggregateFunction::Count][..],
                _ => &[aggregate.function][..],
            };
            for function in functions {
                let state = Aggregate { function: *function, ..aggregate.clone() };
                if !states.contains(&state) {
                    states.push(state);
                }
            }
        }
    }
    states
}

/// The deepest nesting of `number` measures. The model contains no cycles here.
const MAX_DEPTH: usize = 100;

/// Returns the aggregates that a measure is computed from, without those of other cubes.
pub(crate) fn aggregates_of<'m>(
    model: &'m Model,
    cube: CubeId,
    kind: &'m MeasureKind,
    depth: usize,
) -> Vec<&'m Aggregate> {
    let mut found = Vec::new();
    match kind {
        MeasureKind::Aggregate(aggregate)
        | MeasureKind::RunningTotal { aggregate, .. }
        | MeasureKind::Rolling { aggregate, .. } => found.push(aggregate),
        MeasureKind::Number(sql) if depth < MAX_DEPTH => sql.for_each(&mut |part| match part {
            SqlPart::Aggregate(aggregate) => found.push(aggregate),
            SqlPart::Measure(id) if id.cube == cube => {
                found.extend(aggregates_of(model, cube, &model.measure(*id).kind, depth + 1));
            }
            _ => {}
        }),
        MeasureKind::Number(_) => {}
    }
    found
}
