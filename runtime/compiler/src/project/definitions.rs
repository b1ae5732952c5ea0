//! The definitions in a project's files, with the place of every value.
//!
//! In: the files, which only [`read`](super::read) converts. Out: the input of [`build`](crate::model::build). Names
//! are not resolved yet. The structure of the files, the values of keys and Jinja have been checked. Not here: YAML
//! types.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::diagnostic::Span;
use crate::security::AuthMethod;
use crate::snippet::AggregateFunction;
use crate::text::{Origin, SqlText, Text};
use crate::types::{DimensionType, MetricKind, Relationship, RollingWindow, TimeKind};
use crate::types::{Granularity, Value};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Definitions {
    /// The project's name; empty if `service_project.yml` could not be read.
    pub project: Arc<str>,
    pub version: Option<Arc<str>>,
    /// Names the SQL grammar of snippets.
    pub warehouse: Arc<str>,
    /// The statements that each connection to the warehouse begins with.
    pub init: Vec<Arc<str>>,
    pub sources: Vec<SourceDefinition>,
    pub models: Vec<ModelDefinition>,
    /// Models that refer to one another in a cycle; nothing is built on them.
    pub cyclic_models: Vec<ModelDefinition>,
    pub cubes: Vec<CubeDefinition>,
    pub metrics: Vec<MetricDefinition>,
    pub policies: Vec<PolicyDefinition>,
    /// True if a policy could not be read in full, so that it is unknown which rows it hides.
    pub has_broken_policies: bool,
    /// The place of the first problem of each file that could not be read and may contain policies.
    pub unread_files: Vec<Span>,
    /// Models whose SQL could not be rendered.
    pub broken_models: Vec<Text>,
    /// Names in files or entries that could not be read: references to them are not reported as unknown.
    pub unread: BTreeSet<Arc<str>>,
    /// The part of `unread` that may be members of a cube in a readable file. Names from files that could not be parsed
    /// are not included, because all members of a cube are in one file.
    pub(crate) unread_members: BTreeSet<Arc<str>>,
    /// The cubes that stand for cubes that could not be read. Only definitions that are checked contain them.
    pub(crate) placeholders: BTreeSet<Arc<str>>,
    /// All definitions, if some are incomplete. They are only checked.
    pub(crate) recovered: Option<Box<Recovered>>,
    /// True if parts of the files were left out, so that a missing item may be in one of these parts.
    pub has_errors: bool,
    /// The models that the warehouse contains. The files do not set this field; the caller asks the warehouse and sets
    /// it.
    pub built: Built,
}

impl Definitions {
    /// Returns all cubes, including incomplete ones, which are not served. For tools that show where names are defined.
    pub fn every_cube(&self) -> &[CubeDefinition] {
        self.recovered.as_ref().map_or(&self.cubes, |recovered| &recovered.cubes)
    }

    /// Returns all metrics, including incomplete ones.
    pub fn every_metric(&self) -> &[MetricDefinition] {
        self.recovered.as_ref().map_or(&self.metrics, |recovered| &recovered.metrics)
    }

    /// Returns all policies, including incomplete ones.
    pub fn every_policy(&self) -> &[PolicyDefinition] {
        self.recovered.as_ref().map_or(&self.policies, |recovered| &recovered.policies)
    }
}

/// The definitions of a project including incomplete ones, which have placeholders for the parts that could not be
/// read. They are checked to find the problems of the remaining parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Recovered {
    pub(crate) cubes: Vec<CubeDefinition>,
    pub(crate) metrics: Vec<MetricDefinition>,
    pub(crate) policies: Vec<PolicyDefinition>,
}

/// The state of built models compared with their definitions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Built {
    /// Models that were built from their current definitions. They are read from their tables.
    pub current: BTreeSet<Arc<str>>,
    /// The tables that were built from definitions that have changed or were deleted, as `schema.name` in lower case.
    pub outdated: BTreeSet<String>,
    /// True if the warehouse did not report its built models, so that any table may be one.
    pub is_unknown: bool,
}

/// The largest number of cubes in a chain of `extends`, the derived cube included.
pub(crate) const MAX_ANCESTORS: usize = 32;

impl CubeDefinition {
    /// Returns the cube and the cubes that it extends, from itself to the most distant one. Unknown cubes end the list,
    /// and each cube of a cycle occurs once.
    pub fn line<'d>(&'d self, named: impl Fn(&str) -> Option<&'d CubeDefinition>) -> Vec<&'d CubeDefinition> {
        let mut line = vec![self];
        let mut at = self;
        while let Some(parent) = at.extends.as_ref().and_then(|name| named(&name.value)) {
            if line.len() == MAX_ANCESTORS || line.iter().any(|seen| seen.name.value == parent.name.value) {
                break;
            }
            line.push(parent);
            at = parent;
        }
        line
    }

    /// Returns the cube without its incomplete members and joins; `None` if the cube itself is incomplete.
    pub(crate) fn into_complete(mut self) -> Option<CubeDefinition> {
        self.measures.retain(|measure| measure.is_complete);
        self.dimensions.retain(|dimension| dimension.is_complete);
        self.segments.retain(|segment| segment.is_complete);
        self.joins.retain(|join| join.is_complete);
        self.pre_aggregations.retain(|rollup| rollup.is_complete);
        self.is_complete.then_some(self)
    }

    /// Returns whether the cube and all its members and joins are complete.
    pub(crate) fn is_all_complete(&self) -> bool {
        self.is_complete
            && self.measures.iter().all(|measure| measure.is_complete)
            && self.dimensions.iter().all(|dimension| dimension.is_complete)
            && self.segments.iter().all(|segment| segment.is_complete)
            && self.joins.iter().all(|join| join.is_complete)
            && self.pre_aggregations.iter().all(|rollup| rollup.is_complete)
    }

    /// Returns the names of measures, dimensions and segments.
    pub(crate) fn member_names(&self) -> impl Iterator<Item = &Arc<str>> {
        let measures = self.measures.iter().map(|measure| &measure.name.value);
        let dimensions = self.dimensions.iter().map(|dimension| &dimension.name.value);
        measures.chain(dimensions).chain(self.segments.iter().map(|segment| &segment.name.value))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SourceDefinition {
    pub name: Text,
    pub description: Option<Arc<str>>,
    pub database: Option<Text>,
    pub schema: Option<Text>,
    pub tables: Vec<TableDefinition>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TableDefinition {
    pub name: Text,
    pub description: Option<Arc<str>>,
    pub columns: Vec<ColumnDefinition>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefinition {
    pub name: Text,
    pub ty: Option<Arc<str>>,
    pub description: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Materialization {
    #[default]
    View,
    Table,
    Ephemeral,
}

impl Materialization {
    pub fn as_str(self) -> &'static str {
        match self {
            Materialization::View => "view",
            Materialization::Table => "table",
            Materialization::Ephemeral => "ephemeral",
        }
    }
}

/// The schema of built models that declare no schema.
pub const MODEL_SCHEMA: &str = "analytics";

#[derive(Debug, Clone, PartialEq)]
pub struct ModelDefinition {
    /// The stem of the file, with the place of the file's first character.
    pub name: Text,
    pub sql: SqlText,
    pub materialization: Materialization,
    pub schema: Option<Arc<str>>,
    pub refs: Vec<Reference>,
    /// The tables of sources that the model reads, as `(source, table)`.
    pub sources: Vec<(Arc<str>, Arc<str>)>,
}

impl ModelDefinition {
    /// Returns the schema and name of the table or view that the model is built as; `None` if it is never built.
    pub fn built_as(&self) -> Option<(&str, &str)> {
        let schema = self.schema.as_deref().filter(|schema| !schema.is_empty()).unwrap_or(MODEL_SCHEMA);
        (self.materialization != Materialization::Ephemeral).then_some((schema, &self.name.value))
    }
}

/// One `ref('m')`.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub name: Arc<str>,
    pub span: Span,
}

/// The title, description and other texts of a cube or member, for display. No computation depends on them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wording {
    pub title: Option<Arc<str>>,
    pub description: Option<Arc<str>>,
    pub format: Option<Arc<str>>,
    pub hidden: bool,
    /// True if queries cannot name the member.
    pub is_private: bool,
    pub governed: Governed,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CubeDefinition {
    pub name: Text,
    pub extends: Option<Text>,
    pub relation: Option<RelationDefinition>,
    pub wording: Wording,
    pub public: bool,
    pub measures: Vec<MeasureDefinition>,
    pub dimensions: Vec<DimensionDefinition>,
    pub segments: Vec<SegmentDefinition>,
    pub joins: Vec<JoinDefinition>,
    pub pre_aggregations: Vec<PreAggregationDefinition>,
    pub refresh: Option<RefreshDefinition>,
    /// False if a placeholder replaces a part that could not be read. Such a definition is only checked.
    pub is_complete: bool,
}

/// The times at which rows count as changed; at least one key is set.
#[derive(Debug, Clone, PartialEq)]
pub struct RefreshDefinition {
    pub every: Option<Duration>,
    /// A query whose result changes if the rows change.
    pub sql: Option<RelationDefinition>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RelationDefinition {
    pub sql: SqlText,
    /// True for `sql_table`, a name; false for `sql`, a query.
    pub is_table: bool,
    pub refs: Vec<Reference>,
    pub sources: Vec<(Arc<str>, Arc<str>)>,
    /// The full name of the table in the warehouse's catalog, if it was looked up.
    pub catalog_name: Option<Arc<[Arc<str>]>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureType {
    Aggregate(AggregateFunction),
    Number,
    RunningTotal,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MeasureDefinition {
    pub name: Text,
    pub ty: MeasureType,
    /// The measure's SQL; `None` for a count without an expression.
    pub sql: Option<SqlText>,
    pub filters: Vec<SqlText>,
    pub drill_members: Vec<Text>,
    /// True for a running total with `from: all`.
    pub from_all: bool,
    pub rolling_window: Option<RollingWindow>,
    pub wording: Wording,
    /// False if a placeholder replaces a part that could not be read. Such a definition is only checked.
    pub is_complete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DimensionDefinition {
    pub name: Text,
    pub ty: DimensionType,
    pub sql: SqlText,
    pub primary_key: bool,
    /// True if the table is partitioned by the dimension.
    pub is_partition: bool,
    pub primary_time: Option<Span>,
    pub time: TimeKind,
    /// The granularities, finest first; all eight if none is declared; empty for types other than time.
    pub granularities: Vec<Granularity>,
    pub tests: Vec<DimensionTestDefinition>,
    pub wording: Wording,
    /// False if a placeholder replaces a part that could not be read. Such a definition is only checked.
    pub is_complete: bool,
}

/// A rule for the values of a dimension, with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionTestDefinition {
    pub rule: DimensionTestRule,
    pub place: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DimensionTestRule {
    NotNull,
    Unique,
    AcceptedValues(Vec<LocatedValue>),
    /// The name of the dimension of another cube that must contain every value, such as `customers.id`.
    Relationship(Text),
}

#[derive(Debug, Clone, PartialEq)]
pub struct SegmentDefinition {
    pub name: Text,
    pub sql: SqlText,
    pub wording: Wording,
    /// False if a placeholder replaces a part that could not be read. Such a definition is only checked.
    pub is_complete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct JoinDefinition {
    pub name: Text,
    /// The target cube, if it has a different name than the join.
    pub cube: Option<Text>,
    pub relationship: Relationship,
    pub sql: SqlText,
    pub always: bool,
    /// False if a placeholder replaces a part that could not be read. Such a definition is only checked.
    pub is_complete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PreAggregationDefinition {
    pub name: Text,
    pub measures: Vec<Text>,
    pub dimensions: Vec<Text>,
    pub time_dimension: Option<Text>,
    pub granularity: Option<Granularity>,
    pub partition_granularity: Option<Granularity>,
    pub segments: Vec<Text>,
    pub filters: Vec<SqlText>,
    pub timezone: Option<Text>,
    pub refresh: Option<RefreshDefinition>,
    /// The value of `refresh.update_window`.
    pub update_window: Option<Duration>,
    /// The value of `refresh.incremental`.
    pub is_incremental: bool,
    pub max_staleness: Option<Duration>,
    /// The values of `build_range.start` and `build_range.end`.
    pub build_range: [Option<Text>; 2],
    /// The column or expression with the time at which a row arrived.
    pub arrival: Option<SqlText>,
    pub indexes: Vec<Text>,
    /// False if a placeholder replaces a part that could not be read. Such a definition is only checked.
    pub is_complete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MetricDefinition {
    pub name: Text,
    pub kind: MetricKind,
    pub body: MetricBody,
    pub time_grain: Option<Granularity>,
    pub filters: Vec<MetricFilterDefinition>,
    pub wording: Wording,
    /// False if a placeholder replaces a part that could not be read. Such a definition is only checked.
    pub is_complete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum MetricBody {
    Expression(SqlText),
    Ratio { numerator: SqlText, denominator: SqlText },
}

#[derive(Debug, Clone, PartialEq)]
pub struct MetricFilterDefinition {
    pub member: Text,
    pub operator: Text,
    /// The values; `None` if one of them could not be read, which was reported.
    pub values: Option<Vec<LocatedValue>>,
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedValue {
    pub value: Value,
    pub origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PolicyDefinition {
    pub name: Text,
    pub description: Option<Arc<str>>,
    /// The names of the cubes; `None` for all cubes.
    pub cubes: Option<Vec<Text>>,
    /// The condition that selects callers; `None` for all callers.
    pub when: Option<PolicyCondition>,
    /// The SQL of the row filter. `{{ user.… }}` in it is not rendered; it becomes a parameter.
    pub row_filter: Option<SqlText>,
    pub masks: Vec<(Text, MaskDefinition)>,
    pub deny: Vec<Text>,
    /// True if measures over masked members stay open.
    pub allow_aggregate: bool,
    /// False if a placeholder replaces a part that could not be read. Such a definition is only checked.
    pub is_complete: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicyCondition {
    pub roles: Vec<Arc<str>>,
    pub unless_roles: Vec<Arc<str>>,
    pub groups: Vec<Arc<str>>,
    pub unless_groups: Vec<Arc<str>>,
    pub auth_methods: Vec<AuthMethod>,
    pub unless_auth_methods: Vec<AuthMethod>,
    /// Attributes with lists of values. The caller must have one value of each list.
    pub attributes: Vec<(Arc<str>, Vec<Value>)>,
    pub unless_attributes: Vec<(Arc<str>, Vec<Value>)>,
    /// The effect of `attributes` on callers who lack one of these attributes.
    pub missing: MissingAttribute,
}

/// The effect of a condition on callers without the attribute that it names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingAttribute {
    /// The policy does not apply.
    #[default]
    Skips,
    /// The caller counts as having the value.
    Applies,
}

#[derive(Debug, Clone, PartialEq)]
pub enum MaskDefinition {
    Hash,
    Partial,
    Null,
    Constant(LocatedValue),
    Sql(SqlText),
}

/// The part of `meta` that governance and search read. Hooks see the tags, `pii` and the classification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Governed {
    pub tags: Vec<Arc<str>>,
    /// Other names by which a search finds the cube or member.
    pub synonyms: Vec<Arc<str>>,
    pub pii: bool,
    pub classification: Option<Arc<str>>,
    pub owner: Option<Arc<str>>,
    pub documentation_url: Option<Arc<str>>,
    pub refresh_frequency: Option<Arc<str>>,
    /// The unit of the member's numbers, such as `minutes`.
    pub unit: Option<Arc<str>>,
    /// True if questions in words may look up the values of the dimension.
    pub searchable: bool,
}
