//! The model: validated cubes, members, joins and metrics, as one immutable snapshot.
//!
//! In: definitions from `project`. Out: a [`Model`] whose references are all resolved to ids, made by
//! [`build`] only, together with every [`crate::diagnostic::Diagnostic`] found. A query never copies
//! the model or looks a name up more than once. Not here: YAML, Jinja, SQL text, wire types.

mod along_time;
mod assemble;
mod build;
mod column_types;
mod cycles;
mod dimension_tests;
mod expansion;
mod foreign_keys;
mod infallible;
mod inherit;
mod invalid_value;
mod join_columns;
mod join_graph;
mod metrics;
mod placeholders;
mod policies;
mod policy;
mod pre_aggregations;
mod prune;
mod read;
mod relation;
mod relationships;
mod rollup;
mod runnable;
mod scope;
mod shared_rows;
mod source_text;
mod tables;
mod transfer;
mod unread;
mod walk;
mod warehouse_error;

use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use build::build;
pub use column_types::{ColumnTypes, ComparedId, SpecialMember};
pub use foreign_keys::{CatalogNames, ForeignKey};
pub(crate) use join_columns::{JoinOperand, equalities, operands};
pub use join_graph::{Hop, JoinPaths, Tie};
pub use policy::{CubePolicy, Mask, Policy};
pub use rollup::{Fingerprint, Rollup, RollupTime};
pub(crate) use rollup::{aggregates_of, state_type};
pub use runnable::{ModelQueries, RunnableModel, runnable_models};
pub(crate) use shared_rows::SharedRows;
pub use warehouse_error::place_of_warehouse_error;
pub(crate) use warehouse_error::{named_in_error, shown_in_error};

pub use crate::ids::{CubeId, DimensionId, JoinOperandId, MeasureId, Member, MetricId, SegmentId};
pub use crate::project::Governed;
pub use crate::snippet::{
    Aggregate, AggregateFunction, ColumnName, Compared, Fraction, Precision, Snippet, Spread, SqlPart, UserPart,
    UserValue,
};
pub use crate::types::{DimensionType, MetricKind, Relationship, RollingWindow, TimeKind};

use crate::project::is_registered;
use crate::text::Span;
use crate::types::{Granularity, LogicalType, Value};

/// One immutable snapshot of a project.
#[derive(Debug)]
pub struct Model {
    pub project: Arc<str>,
    pub cubes: Vec<Cube>,
    pub metrics: Vec<Metric>,
    pub policies: Vec<Policy>,
    /// True if a file could not be read. Every cube is then closed, because the file may contain policies.
    pub(crate) has_unread_files: bool,
    pub(crate) cube_names: HashMap<Arc<str>, CubeId>,
    pub(crate) metric_names: HashMap<Arc<str>, MetricId>,
    pub(crate) join_paths: Vec<OnceLock<JoinPaths>>,
    pub(crate) ties: Vec<OnceLock<Vec<Tie>>>,
    /// The tables that each cube's relation reads.
    pub(crate) tables: Vec<tables::Tables>,
    pub(crate) shared_rows: Vec<OnceLock<SharedRows>>,
}

/// A cube, or a role-playing alias of one. An alias has its own members, whose SQL refers to the alias.
#[derive(Debug, Clone, PartialEq)]
pub struct Cube {
    pub id: CubeId,
    pub name: Arc<str>,
    pub title: Arc<str>,
    pub description: Option<Arc<str>>,
    /// False if only joins, metrics and policies may use the cube: it is not listed, and queries cannot name it.
    pub public: bool,
    pub alias_of: Option<CubeId>,
    /// True if the cube is closed to everyone, because a policy that may apply to it could not be read.
    pub is_guarded: bool,
    pub relation: Relation,
    /// The names and the SQL of the models that the relation refers to, if the relation reads tables that were built
    /// from some of them.
    pub(crate) built_from: Vec<(Arc<str>, Arc<str>)>,
    pub refresh: Option<Refresh>,
    pub measures: Vec<Measure>,
    pub dimensions: Vec<Dimension>,
    pub segments: Vec<Segment>,
    pub rollups: Vec<Rollup>,
    /// The joins, in the order of `joins:`. The position decides ties between paths.
    pub joins: Vec<Join>,
    /// Indexes into `dimensions`. Several dimensions form one key together.
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
    /// The full name of the table in the warehouse's catalog, if it was looked up. SQL then uses this name, because
    /// some engines may read the author's name as a file or a function.
    pub catalog_name: Option<Vec<ColumnName>>,
}

impl TableName {
    /// Returns the parts of the name that are printed in SQL.
    pub fn printed(&self) -> &[ColumnName] {
        self.catalog_name.as_deref().unwrap_or(&self.parts)
    }
}

impl Deref for TableName {
    type Target = [ColumnName];

    fn deref(&self) -> &[ColumnName] {
        &self.parts
    }
}

/// The source of a cube's rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    Table(TableName),
    /// A query, with the models it refers to in dependency order, each once.
    Query {
        models: Vec<(Arc<str>, Arc<str>)>,
        sql: Arc<str>,
    },
    /// All rows of one model. `name` is the name to which `ref` rendered; `models` are the same as those of a query.
    Model {
        models: Vec<(Arc<str>, Arc<str>)>,
        name: Arc<str>,
    },
}

/// The times at which a cube's rows count as changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refresh {
    pub every: Option<Duration>,
    /// A query whose result changes when the rows do.
    pub query: Option<RefreshQuery>,
}

/// A query whose result changes if the rows of a cube change.
#[derive(Debug, Clone, PartialEq)]
pub struct RefreshQuery {
    /// The models that the query refers to in dependency order, each once.
    pub(crate) models: Vec<(Arc<str>, Arc<str>)>,
    pub(crate) sql: Arc<str>,
    /// The complete statement that runs: the query after the models that it refers to.
    pub text: Arc<str>,
}

/// The title, description and other texts of a member, for display. No computation depends on them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Presentation {
    pub title: Arc<str>,
    pub description: Option<Arc<str>>,
    pub format: Option<Arc<str>>,
    /// True if metadata does not list the member.
    pub hidden: bool,
    /// True if queries cannot name the member. Other members, joins, metrics and policies can.
    pub is_private: bool,
    pub drill_members: Vec<Arc<str>>,
    pub governed: Governed,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    pub name: Arc<str>,
    pub kind: MeasureKind,
    pub presentation: Presentation,
    pub span: Option<Span>,
    /// The place of its `sql`; a `count` may have none.
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
    /// Aggregated over a range of time around each step of the query's time axis.
    Rolling {
        aggregate: Aggregate,
        window: RollingWindow,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    pub name: Arc<str>,
    pub ty: DimensionType,
    pub sql: Snippet,
    pub primary_key: bool,
    /// True if the table is partitioned by the dimension, so that a filter on it reads a part of the table.
    pub is_partition: bool,
    /// The kind of time. It has a meaning only for [`DimensionType::Time`].
    pub time: TimeKind,
    /// Allowed granularities, finest first. All eight if the author named none; empty for types other than time.
    pub granularities: Vec<Granularity>,
    pub tests: Vec<DimensionTest>,
    /// The type that the warehouse reports; `Unknown` until types are read.
    pub column_type: LogicalType,
    /// The type of the column, if it is not a string and the dimension's values are converted to strings.
    pub converted_from: Option<LogicalType>,
    pub presentation: Presentation,
    pub span: Option<Span>,
    /// The place of its `sql`.
    pub sql_span: Option<Span>,
}

/// A rule that a project states about the values of a dimension, and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionTest {
    pub rule: DimensionRule,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DimensionRule {
    NotNull,
    Unique,
    /// Each value that is not null is one of these.
    AcceptedValues(Vec<Value>),
    /// Each value that is not null is a value of this dimension.
    RefersTo(DimensionId),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    pub name: Arc<str>,
    pub sql: Snippet,
    pub presentation: Presentation,
    /// The place of its `sql`.
    pub sql_span: Option<Span>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// The target under the name the author gave it: a cube or an alias.
    pub target: CubeId,
    pub relationship: Relationship,
    pub on: Snippet,
    /// True if the author states that every row has a joined row (`always: true`).
    pub always: bool,
    /// True if a foreign key of the warehouse proves that every row has a joined row.
    pub is_enforced: bool,
    pub span: Option<Span>,
}

/// A metric of any kind: an expression over measures and other metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub name: Arc<str>,
    pub kind: MetricKind,
    /// The expression. It refers to measures and metrics; a ratio is one [`SqlPart::Divide`].
    pub body: Snippet,
    /// The filters that restrict each aggregate, combined with AND.
    pub filters: Vec<MetricFilter>,
    /// The finest grain at which the metric makes sense.
    pub time_grain: Option<Granularity>,
    pub presentation: Presentation,
    pub span: Option<Span>,
}

/// A filter of a metric, with names as the author wrote them. `resolve` resolves it like a filter of a query.
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

    /// Returns the reason why cubes are closed. It does not name the file that cannot be read: only the caller who
    /// loads the project may know it.
    pub(crate) fn why_closed(&self) -> &'static str {
        if self.has_unread_files {
            "while a file of the project cannot be read: it may contain policies"
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

    /// Returns the cubes whose rows a metric aggregates.
    pub fn facts_of_metric(&self, id: MetricId) -> BTreeSet<CubeId> {
        metrics::facts(self, &self.metric(id).body)
    }

    pub fn metric_named(&self, name: &str) -> Option<MetricId> {
        self.metric_names.get(name).copied()
    }

    /// Returns the best path from `from` to each cube that it reaches. The paths are computed on first use and then
    /// cached.
    pub fn join_paths(&self, from: CubeId) -> &JoinPaths {
        self.join_paths[from.0 as usize].get_or_init(|| JoinPaths::from(self, from))
    }

    /// Returns the equally good paths from a cube; computed at first use, then cached.
    pub fn ties(&self, from: CubeId) -> &[Tie] {
        self.ties[from.0 as usize].get_or_init(|| join_graph::ties(self, from))
    }
}

impl Join {
    /// Returns whether every row has a joined row. An inner join then returns the same rows as a left join.
    pub fn never_misses(&self) -> bool {
        self.always || self.is_enforced
    }
}

impl Dimension {
    /// Returns whether the dimension's SQL is only the given column of the cube `of`.
    pub fn is_column(&self, of: CubeId, column: &ColumnName) -> bool {
        matches!(&self.sql.parts[..], [SqlPart::Column { cube, name }] if *cube == of && name == column)
    }
}

impl Cube {
    /// Returns the type of a minimum or a maximum over a dimension of the cube: over a reference to it, or over the same
    /// column as a time or a number. `None` for other measures.
    pub fn extremum_type(&self, measure: &Measure) -> Option<DimensionType> {
        let (MeasureKind::Aggregate(aggregate) | MeasureKind::Rolling { aggregate, .. }) = &measure.kind else {
            return None;
        };
        if !matches!(aggregate.function, AggregateFunction::Min | AggregateFunction::Max) {
            return None;
        }
        let argument = aggregate.argument.as_ref()?;
        let dimension = match argument.parts[..] {
            [SqlPart::Dimension(id)] => self.dimensions.get(id.index as usize).filter(|_| id.cube == self.id),
            // A string dimension may convert its column, whose own type the measure has.
            _ => self.dimensions.iter().find(|dimension| {
                matches!(dimension.ty, DimensionType::Time | DimensionType::Number) && dimension.sql == *argument
            }),
        };
        dimension.map(|dimension| dimension.ty).filter(|ty| *ty != DimensionType::Geo)
    }

    /// Returns whether the cube was registered at run time. Its author may be a caller, so its members must not replace
    /// the members that a policy names.
    pub(crate) fn is_registered(&self) -> bool {
        self.span.as_ref().is_some_and(is_registered)
    }

    /// Returns the time kind of an aggregate that returns a time, such as a minimum. Unless the type of the argument
    /// decides, the kind is that of the time dimension over the same column.
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

    /// Returns the columns that the members name, each with its cube.
    pub fn referenced_columns(&self) -> Vec<(CubeId, &ColumnName)> {
        let mut found = Vec::new();
        for dimension in &self.dimensions {
            columns_in(&dimension.sql, &mut found);
        }
        for measure in &self.measures {
            match &measure.kind {
                MeasureKind::Number(sql) => columns_in(sql, &mut found),
                MeasureKind::Aggregate(aggregate)
                | MeasureKind::RunningTotal { aggregate, .. }
                | MeasureKind::Rolling { aggregate, .. } => {
                    columns_within(aggregate, &mut found);
                }
            }
        }
        found
    }
}

fn columns_in<'m>(sql: &'m Snippet, found: &mut Vec<(CubeId, &'m ColumnName)>) {
    sql.for_each(&mut |part| match part {
        SqlPart::Column { cube, name } => found.push((*cube, name)),
        SqlPart::Aggregate(aggregate) => columns_within(aggregate, found),
        _ => {}
    });
}

fn columns_within<'m>(aggregate: &'m Aggregate, found: &mut Vec<(CubeId, &'m ColumnName)>) {
    aggregate.argument.iter().chain(&aggregate.filters).for_each(|sql| columns_in(sql, found));
}
