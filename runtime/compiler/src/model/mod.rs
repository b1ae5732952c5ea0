//! The model: validated cubes, members, joins and metrics, as one immutable snapshot.
//!
//! In: definitions from `project`. Out: a [`Model`] whose references are all resolved to ids, made by
//! [`build`] only, together with every [`crate::diagnostic::Diagnostic`] found. A query never copies
//! the model or looks a name up more than once. Not here: YAML, Jinja, SQL text, wire types.

mod aggregate;
pub mod allowed;
mod assemble;
mod build;
pub(crate) mod calls;
mod column_types;
mod complaint;
mod cycles;
mod expansion;
mod grammar;
mod inherit;
mod kept;
mod kin;
mod metrics;
mod misfit;
pub mod nearest;
mod policies;
mod policy;
mod pre_aggregations;
mod prune;
mod reach;
mod read;
mod relation;
mod runnable;
mod scope;
mod snippet;
mod table_functions;
mod table_names;
mod tables;
mod total;
mod transfer;
mod walk;
mod written;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

pub(crate) use aggregate::is_aggregate;
pub use build::{build, build_again};
pub use column_types::{ColumnTypes, ComparedId, TypedCubes};
pub use complaint::place_of_complaint;
pub(crate) use complaint::{complained_of, shown_of};
pub(crate) use grammar::{column_name, grammar, is_space, offset_of, tokenize};
pub use kept::KeptCubes;
pub(crate) use kin::Kin;
pub use nearest::{likely, nearest};
pub use policy::{CubePolicy, Mask, Policy};
pub use reach::{Hop, Reach, Tie};
pub use runnable::{ModelQueries, RunnableModel, runnable_models};
pub use snippet::{ColumnName, Compared, Snippet, SqlPart, UserPart, UserValue};
pub(crate) use table_names::column_owners;
pub(crate) use tables::tables_named_in;
pub(crate) use walk::{is_unit, takes_unit};

use crate::diagnostic::Span;
use crate::types::{Granularity, LogicalType, Value};

/// Index of a cube (or a role-playing alias of one) in its [`Model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CubeId(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeasureId {
    pub cube: CubeId,
    pub index: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DimensionId {
    pub cube: CubeId,
    pub index: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId {
    pub cube: CubeId,
    pub index: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MetricId(pub u32);

/// What a name in a cube stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Member {
    Measure(MeasureId),
    Dimension(DimensionId),
    Segment(SegmentId),
}

/// One immutable snapshot of a project.
#[derive(Debug)]
pub struct Model {
    pub project: Arc<str>,
    /// Shared with the model before, where they are as they were.
    pub cubes: Vec<Arc<Cube>>,
    pub metrics: Vec<Metric>,
    pub policies: Vec<Policy>,
    /// A file could not be read, and every cube is closed for the policies that it may hold.
    pub(crate) has_unread_files: bool,
    pub(crate) cube_names: HashMap<Arc<str>, CubeId>,
    pub(crate) metric_names: HashMap<Arc<str>, MetricId>,
    pub(crate) reach: Vec<OnceLock<Reach>>,
    pub(crate) ties: Vec<OnceLock<Vec<Tie>>>,
    /// What each cube's relation reads.
    pub(crate) tables: Vec<Arc<tables::Tables>>,
    pub(crate) kin: Vec<OnceLock<Kin>>,
}

/// A cube, or a role-playing alias: an alias has members of its own whose SQL speaks of the alias.
#[derive(Debug, Clone, PartialEq)]
pub struct Cube {
    pub id: CubeId,
    pub name: Arc<str>,
    pub title: Arc<str>,
    pub description: Option<Arc<str>>,
    /// False: reachable by joins, not listed and not named in queries.
    pub public: bool,
    pub alias_of: Option<CubeId>,
    /// A policy that might speak of it could not be read: it is closed to everyone.
    pub is_guarded: bool,
    pub relation: Relation,
    pub measures: Vec<Measure>,
    pub dimensions: Vec<Dimension>,
    pub segments: Vec<Segment>,
    /// In the order of `joins:`; the position decides ties between paths.
    pub joins: Vec<Join>,
    /// Indexes into `dimensions`; several form one key.
    pub primary_key: Vec<u32>,
    /// The dimension that `time_range` without a dimension means.
    pub primary_time: Option<u32>,
    pub span: Option<Span>,
    pub(crate) members: HashMap<Arc<str>, Member>,
}

/// A table's name; it derefs to its parts as the author wrote them, outermost first: `raw.orders`.
#[derive(Debug, Clone, PartialEq)]
pub struct TableName {
    pub parts: Vec<ColumnName>,
    /// The full name by which the warehouse's catalog has the table, where it was looked up. It is what is
    /// printed: to some engines a name as written is a file or a function too.
    pub located: Option<Vec<ColumnName>>,
}

impl TableName {
    /// The parts to print in SQL.
    pub fn printed(&self) -> &[ColumnName] {
        self.located.as_deref().unwrap_or(&self.parts)
    }
}

impl Deref for TableName {
    type Target = [ColumnName];

    fn deref(&self) -> &[ColumnName] {
        &self.parts
    }
}

/// Where a cube's rows come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    Table(TableName),
    /// A query, with the models it refers to in dependency order, each once.
    Query {
        models: Vec<(Arc<str>, Arc<str>)>,
        sql: Arc<str>,
    },
    /// One model's rows as they are, by the name that `ref` rendered to; the models as for a query.
    Model {
        models: Vec<(Arc<str>, Arc<str>)>,
        name: Arc<str>,
    },
}

/// Text about a member that no computation depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Presentation {
    pub title: Arc<str>,
    pub description: Option<Arc<str>>,
    pub format: Option<Arc<str>>,
    /// Metadata does not list the member.
    pub hidden: bool,
    /// Queries can't name the member; other members, joins, metrics and policies can.
    pub is_private: bool,
    pub drill_members: Vec<Arc<str>>,
    pub governed: Governed,
}

/// What a member's `meta` says to governance hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Governed {
    pub tags: Vec<Arc<str>>,
    pub pii: bool,
    pub classification: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    pub name: Arc<str>,
    pub kind: MeasureKind,
    pub presentation: Presentation,
    pub span: Option<Span>,
    /// Where its `sql` is written; what is counted may have none.
    pub sql_span: Option<Span>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum MeasureKind {
    Aggregate(Aggregate),
    /// Computed from finished aggregates; its parts are measures and hidden aggregates.
    Number(Snippet),
    RunningTotal {
        aggregate: Aggregate,
        from_all: bool,
    },
}

/// An aggregation over the rows of the measure's own cube.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub function: AggregateFunction,
    /// `None` only for `count`: rows are counted.
    pub argument: Option<Snippet>,
    /// Only rows that pass all of these are measured.
    pub filters: Vec<Snippet>,
    /// Type of `argument`, as the warehouse told; `Unknown` until types are read.
    pub argument_type: LogicalType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    Count,
    CountDistinct,
    CountDistinctApprox,
    Sum,
    Avg,
    Min,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DimensionType {
    String,
    Number,
    Time,
    Boolean,
    Geo,
}

/// How a time dimension's values are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeKind {
    /// An instant; shown in the query's timezone.
    Utc,
    /// A wall clock, never shifted.
    WallClock,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    pub name: Arc<str>,
    pub ty: DimensionType,
    pub sql: Snippet,
    pub primary_key: bool,
    /// Only for [`DimensionType::Time`].
    pub time: TimeKind,
    /// Allowed granularities, finest first; all eight when the author named none. Empty unless time.
    pub granularities: Vec<Granularity>,
    /// As the warehouse told; `Unknown` until types are read.
    pub column_type: LogicalType,
    pub presentation: Presentation,
    pub span: Option<Span>,
    /// Where its `sql` is written.
    pub sql_span: Option<Span>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    pub name: Arc<str>,
    pub sql: Snippet,
    pub presentation: Presentation,
    /// Where its `sql` is written.
    pub sql_span: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relationship {
    ManyToOne,
    OneToMany,
    OneToOne,
}

impl Relationship {
    /// A hop that neither loses nor repeats rows.
    pub fn is_to_one(self) -> bool {
        !matches!(self, Relationship::OneToMany)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// The target under the name the author gave it: a cube or an alias.
    pub target: CubeId,
    pub relationship: Relationship,
    pub on: Snippet,
    /// Every row finds one, so an inner join is the same.
    pub always: bool,
    pub span: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetricKind {
    Simple,
    Ratio,
    Derived,
}

/// A metric: an expression over measures and other metrics, whatever its kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub name: Arc<str>,
    pub kind: MetricKind,
    /// Its parts are measures and metrics; a ratio is one [`SqlPart::Divide`].
    pub body: Snippet,
    /// ANDed into each aggregate.
    pub filters: Vec<MetricFilter>,
    /// The finest grain at which the metric makes sense.
    pub time_grain: Option<Granularity>,
    pub presentation: Presentation,
    pub span: Option<Span>,
}

/// One `{member, operator, value}` of a metric, as written; `query` resolves it like a query's own.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricFilter {
    pub member: Arc<str>,
    pub operator: Arc<str>,
    pub values: Vec<Value>,
}

impl Model {
    pub fn cube(&self, id: CubeId) -> &Cube {
        &self.cubes[id.0 as usize]
    }

    pub fn cube_named(&self, name: &str) -> Option<&Cube> {
        self.cube_names.get(name).map(|id| self.cube(*id))
    }

    /// What a closed cube is closed by. Which file can't be read, those learn who load the project.
    pub(crate) fn why_closed(&self) -> &'static str {
        if self.has_unread_files {
            "while a file of the project can't be read: it may hold policies"
        } else {
            "by a policy"
        }
    }

    pub fn measure(&self, id: MeasureId) -> &Measure {
        &self.cube(id.cube).measures[id.index as usize]
    }

    pub fn dimension(&self, id: DimensionId) -> &Dimension {
        &self.cube(id.cube).dimensions[id.index as usize]
    }

    pub fn segment(&self, id: SegmentId) -> &Segment {
        &self.cube(id.cube).segments[id.index as usize]
    }

    pub fn metric(&self, id: MetricId) -> &Metric {
        &self.metrics[id.0 as usize]
    }

    pub fn metric_named(&self, name: &str) -> Option<MetricId> {
        self.metric_names.get(name).copied()
    }

    /// The cubes that `from` reaches and the best path to each; computed at first use, then kept.
    pub fn reach(&self, from: CubeId) -> &Reach {
        self.reach[from.0 as usize].get_or_init(|| Reach::from(self, from))
    }

    /// Where two paths from a cube are equally good; computed at first use, then kept.
    pub fn ties(&self, from: CubeId) -> &[Tie] {
        self.ties[from.0 as usize].get_or_init(|| reach::ties(self, from))
    }
}

impl Cube {
    /// How the smallest or largest of a time is meant: like the time dimension over the same column.
    pub fn time_kind_of(&self, aggregate: &Aggregate) -> TimeKind {
        let is_same = |d: &&Dimension| d.ty == DimensionType::Time && Some(&d.sql) == aggregate.argument.as_ref();
        match (self.dimensions.iter().find(is_same), aggregate.argument_type) {
            (_, LogicalType::TimestampTz) => TimeKind::Utc,
            (_, LogicalType::Date) => TimeKind::WallClock,
            (same, _) => same.map_or(TimeKind::WallClock, |dimension| dimension.time),
        }
    }

    pub fn member(&self, name: &str) -> Option<Member> {
        self.members.get(name).copied()
    }
}
