//! One description of a project and its data. The project's files, the warehouse's tables and the oracle's rows are all
//! derived from it.
//!
//! In: worlds that `generate` makes, or that a case file contains. Out: plain data. References are names, so that
//! shrinking can remove parts. Not here: the meaning of a query (`oracle`).

mod expression;
mod mask_policies;
mod policies;
mod project;
mod rollups;
mod spark;
mod tables;
mod windows;

use serde::{Deserialize, Serialize};

pub use expression::{Arithmetic, Comparison, Expr, Rows};
pub use mask_policies::{Mask, MaskPolicy};
pub use policies::{BOOLEAN_ATTRIBUTES, NUMBER_ATTRIBUTES, Policy, RowPolicy, TEXT_ATTRIBUTES, attribute, is_list};
pub use project::{FileOrder, source_tree};
pub use rollups::{Rollup, RollupTime, TableState};
pub use spark::statements as spark_statements;
pub use tables::{cell_of, is_referenced, removal, statements, table};
pub use windows::{Length, Window};

use crate::value::{Number, Value};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct World {
    pub cubes: Vec<Cube>,
    pub metrics: Vec<Metric>,
    /// The policies, some of which apply to the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Policy>,
    /// Masks and denied members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mask_policies: Vec<MaskPolicy>,
    /// The pre-aggregations, which are built before the queries run. They must not change any answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollups: Vec<Rollup>,
    /// The cube whose last rows arrive after its pre-aggregations were built. No other cube joins this cube.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_cube: Option<String>,
    /// True if the tables are those of [`spark_statements`], which have no schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_on_spark: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cube {
    pub name: String,
    /// The table's name in the warehouse.
    pub table: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    pub dimensions: Vec<Dimension>,
    pub measures: Vec<Measure>,
    pub segments: Vec<Segment>,
    pub joins: Vec<Join>,
    /// True if the cube has `sql: SELECT * FROM …` instead of `sql_table`.
    #[serde(default)]
    pub is_query: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub ty: ColumnType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnType {
    Text,
    /// INTEGER, with values that are so small that arithmetic does not overflow.
    Small,
    /// BIGINT, with values up to its smallest and its largest one.
    Big,
    /// DECIMAL(18, 2). Its cells are in hundredths.
    Decimal,
    Double,
    Boolean,
    Date,
    Timestamp,
    TimestampTz,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    /// A decimal in hundredths.
    Cents(i64),
    Double(f64),
    Text(String),
    Day(i32),
    Micros(i64),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dimension {
    pub name: String,
    pub kind: DimensionKind,
    pub sql: Expr,
    #[serde(default)]
    pub primary_key: bool,
    #[serde(default)]
    pub primary_time: bool,
    /// The key `timezone:` of the file. `Some(true)` means `utc`.
    #[serde(default)]
    pub is_utc: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DimensionKind {
    String,
    Number,
    Boolean,
    Time,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    pub name: String,
    pub kind: MeasureKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum MeasureKind {
    Aggregate(Aggregate),
    Number(Formula),
    /// A running total along the query's time axis.
    RunningTotal(Aggregate),
    /// A running total that includes rows before the range: `from: all`.
    RunningTotalOfAll(Aggregate),
    /// An aggregate over a range of time around each step of the query's time.
    Rolling(Aggregate, Window),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    pub function: Function,
    pub argument: Option<Expr>,
    #[serde(default)]
    pub filters: Vec<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    Count,
    CountDistinct,
    CountDistinctApprox,
    Sum,
    Avg,
    Min,
    Max,
    Median,
    /// The percentile of the fraction [`NINTH`].
    Percentile,
    StdDev,
    Variance,
    /// The standard deviation of values that are a sample of a larger population.
    SampleStdDev,
    SampleVariance,
}

/// The fraction of [`Function::Percentile`].
pub const NINTH: f64 = 0.9;

/// An arithmetic expression over finished aggregates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Formula {
    /// A measure: `{measure}` of the same cube or `{cube.measure}`, and in a metric `cube.measure`.
    Measure {
        cube: Option<String>,
        name: String,
    },
    Metric(String),
    /// An aggregate such as `SUM(…)` in the SQL of a number.
    Aggregate(Box<Aggregate>),
    Constant(i64),
    Binary(Arithmetic, Box<Formula>, Box<Formula>),
    Divide(Box<Formula>, Box<Formula>),
    Coalesce(Box<Formula>, i64),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    pub name: String,
    pub sql: Expr,
}

/// A join with the condition `{own}.left = {name}.right`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Join {
    pub name: String,
    /// The joined cube, if `name` is an alias.
    pub cube: Option<String>,
    pub relationship: Relationship,
    pub left: usize,
    pub right: usize,
    /// True if the warehouse should have a foreign key for the join. The key is created only if every row finds a
    /// joined row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_enforced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Relationship {
    ManyToOne,
    OneToOne,
    OneToMany,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub name: String,
    pub kind: MetricKind,
    /// The filters as JSON: `{member, operator, value}`.
    #[serde(default)]
    pub filters: Vec<serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum MetricKind {
    Simple(Formula),
    Ratio(Formula, Formula),
    Derived(Formula),
}

impl Measure {
    /// Returns whether the measure is computed along the query's time axis.
    pub fn runs(&self) -> bool {
        use MeasureKind::{Rolling, RunningTotal, RunningTotalOfAll};
        matches!(self.kind, RunningTotal(_) | RunningTotalOfAll(_) | Rolling(..))
    }
}

impl Relationship {
    pub fn is_to_one(self) -> bool {
        self != Relationship::OneToMany
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Relationship::ManyToOne => "many_to_one",
            Relationship::OneToOne => "one_to_one",
            Relationship::OneToMany => "one_to_many",
        }
    }
}

impl Join {
    /// Returns the cube whose rows are joined.
    pub fn target(&self) -> &str {
        self.cube.as_deref().unwrap_or(&self.name)
    }
}

impl Function {
    pub fn as_str(self) -> &'static str {
        match self {
            Function::Count => "count",
            Function::CountDistinct => "count_distinct",
            Function::CountDistinctApprox => "count_distinct_approx",
            Function::Sum => "sum",
            Function::Avg => "avg",
            Function::Min => "min",
            Function::Max => "max",
            Function::Median => "median",
            Function::Percentile => "percentile",
            Function::StdDev | Function::SampleStdDev => "stddev",
            Function::Variance | Function::SampleVariance => "variance",
        }
    }

    /// Returns whether the result is a double that cannot be merged from the results for parts of the rows.
    pub fn is_of_distribution(self) -> bool {
        self.is_deviation() || matches!(self, Function::Median | Function::Percentile)
    }

    /// Returns whether the result is computed from squares.
    pub fn is_deviation(self) -> bool {
        use Function::{SampleStdDev, SampleVariance, StdDev, Variance};
        matches!(self, StdDev | Variance | SampleStdDev | SampleVariance)
    }

    /// Returns whether the values are a sample of a larger population.
    pub fn is_of_sample(self) -> bool {
        matches!(self, Function::SampleStdDev | Function::SampleVariance)
    }

    pub fn counts(self) -> bool {
        matches!(self, Function::Count | Function::CountDistinct | Function::CountDistinctApprox)
    }
}

impl Cell {
    /// Returns the cell's value in a column of a type. If `is_utc` is true, timestamps of the column are instants.
    pub fn value(&self, ty: ColumnType, is_utc: bool) -> Value {
        match self {
            Cell::Null => Value::Null,
            Cell::Bool(value) => Value::Bool(*value),
            Cell::Int(value) => Value::int(i128::from(*value)),
            Cell::Cents(value) => Value::Number(Number::Exact(i128::from(*value), 2)),
            Cell::Double(value) => Value::Number(Number::Double(*value)),
            Cell::Text(text) => Value::Text(text.clone()),
            Cell::Day(days) => Value::Day(*days),
            Cell::Micros(micros) if is_utc || ty == ColumnType::TimestampTz => Value::Instant(*micros),
            Cell::Micros(micros) => Value::Local(*micros),
        }
    }
}

impl World {
    /// Returns whether a formula of a cube or of a metric is computed along the query's time axis.
    pub fn runs(&self, own: Option<&str>, formula: &Formula) -> bool {
        match formula {
            Formula::Measure { cube, name } => {
                let Some(cube) = cube.as_deref().or(own) else { return false };
                match self.behind(cube).and_then(|of| of.measure(name)) {
                    Some(Measure { kind: MeasureKind::Number(inner), .. }) => self.runs(Some(cube), inner),
                    measure => measure.is_some_and(Measure::runs),
                }
            }
            Formula::Metric(name) => self.metric_runs(name),
            Formula::Binary(_, left, right) | Formula::Divide(left, right) => {
                self.runs(own, left) || self.runs(own, right)
            }
            Formula::Coalesce(inner, _) => self.runs(own, inner),
            Formula::Aggregate(_) | Formula::Constant(_) => false,
        }
    }

    pub fn metric_runs(&self, name: &str) -> bool {
        self.metrics.iter().filter(|metric| metric.name == name).any(|metric| match &metric.kind {
            MetricKind::Simple(formula) | MetricKind::Derived(formula) => self.runs(None, formula),
            MetricKind::Ratio(left, right) => self.runs(None, left) || self.runs(None, right),
        })
    }

    pub fn cube(&self, name: &str) -> Option<&Cube> {
        self.cubes.iter().find(|cube| cube.name == name)
    }
}

impl Cube {
    /// Returns whether a timestamp column contains instants rather than local times. The first time dimension over the
    /// column decides.
    pub fn is_utc(&self, column: usize) -> bool {
        let over = |d: &&Dimension| matches!(&d.sql, Expr::Column { cube: None, column: c } if *c == column);
        let dimension = self.dimensions.iter().find(over);
        dimension.is_some_and(|d| d.kind == DimensionKind::Time && d.is_utc != Some(false))
    }
}

impl World {
    /// Returns the cube with this name, or the cube to which this alias of a join refers.
    pub fn behind(&self, name: &str) -> Option<&Cube> {
        self.cube(name).or_else(|| {
            let joins = self.cubes.iter().flat_map(|cube| &cube.joins);
            joins.filter(|join| join.name == name).find_map(|join| self.cube(join.target()))
        })
    }
}

impl Cube {
    pub fn dimension(&self, name: &str) -> Option<&Dimension> {
        self.dimensions.iter().find(|dimension| dimension.name == name)
    }

    pub fn measure(&self, name: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.name == name)
    }

    pub fn segment(&self, name: &str) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.name == name)
    }
}
