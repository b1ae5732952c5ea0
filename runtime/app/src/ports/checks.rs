//! The port to checks, which rate the quality of a cube's columns by aggregates that the warehouse computes.
//!
//! In: columns, then the warehouse's answers. Out: plans, then findings. Plans and findings are validated: indexes
//! exist, conditions use only the cube's own dimensions, and scores are between 0 and 1. Not here: SQL (compiler),
//! merging and running the aggregates (`profiling`), WebAssembly.

use std::sync::Arc;

use async_trait::async_trait;
use terrane_compiler::query::Filter;
use terrane_compiler::types::{LogicalType, Value};

use super::calls::{CallFacts, ComponentFault};
use super::severity::FindingSeverity;

/// The checks of this server.
#[async_trait]
pub trait Checks: Send + Sync {
    /// Asks each component for the aggregates that it needs. Returns the plans in the order of the components' ids; for
    /// a component that failed, returns its fault.
    async fn plans(&self, call: &CheckCall, columns: Arc<[ProfiledColumn]>) -> Vec<Result<CheckPlan, ComponentFault>>;

    /// Passes to a component the answers for its plan, one for each request in the order of the plan, and returns the
    /// findings.
    ///
    /// # Errors
    /// Returns the fault of the component.
    async fn evaluate(
        &self,
        call: &CheckCall,
        component: &str,
        columns: Arc<[ProfiledColumn]>,
        answers: Vec<CheckAnswer>,
    ) -> Result<Vec<Finding>, ComponentFault>;
}

/// The adapter of a process without checks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoChecks;

#[async_trait]
impl Checks for NoChecks {
    async fn plans(&self, _: &CheckCall, _: Arc<[ProfiledColumn]>) -> Vec<Result<CheckPlan, ComponentFault>> {
        Vec::new()
    }

    async fn evaluate(
        &self,
        _: &CheckCall,
        _: &str,
        _: Arc<[ProfiledColumn]>,
        _: Vec<CheckAnswer>,
    ) -> Result<Vec<Finding>, ComponentFault> {
        Ok(Vec::new())
    }
}

/// The request behind a profile, and the caller's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckCall {
    pub facts: CallFacts,
    /// The settings as a JSON object, with the names that runtime/docs/reference/detectors-and-checks.md lists.
    pub profile_config_json: Arc<str>,
}

/// A dimension, or the column that a measure aggregates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfiledColumn {
    pub cube: Arc<str>,
    pub member: Arc<str>,
    pub ty: LogicalType,
    pub is_measure: bool,
    pub is_primary_key: bool,
    pub tags: Vec<Arc<str>>,
    pub pii: bool,
}

/// An aggregate that the warehouse computes of one column. All aggregates except `Rows` and `Where` ignore nulls.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckAggregate {
    Rows,
    Nulls,
    Distinct,
    ApproxDistinct,
    Min,
    Max,
    Mean,
    /// The standard deviation of the population.
    Deviation,
    /// The third standardised moment of the population.
    Skewness,
    /// Quantiles of type 7 (linear interpolation) at fractions from 0 to 1.
    Quantiles(Vec<f64>),
    /// A histogram with this number of bins of equal width, from the smallest to the greatest value.
    Histogram(u32),
    /// The most frequent values, at most this number of them.
    Top(u32),
    /// The number of rows that meet the condition, independent of the column.
    Where(Filter),
    /// The number of values below the first number or above the second one.
    Outside(f64, f64),
    /// The number of values below Q1 - k·IQR or above Q3 + k·IQR.
    OutsideFences(f64),
}

#[derive(Debug, Clone, PartialEq)]
pub struct CheckRequest {
    /// The index of the column.
    pub column: usize,
    pub aggregate: CheckAggregate,
}

/// The aggregates that one component requests.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckPlan {
    pub component: Arc<str>,
    pub requests: Vec<CheckRequest>,
}

/// The warehouse's answer to one request. All fields are empty if the warehouse could not compute the aggregate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckAnswer {
    pub values: Vec<Value>,
    pub counts: Vec<u64>,
}

/// The aspects of quality. `Other` has no weight in the score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QualityDimension {
    Completeness,
    Validity,
    Uniqueness,
    Consistency,
    Accuracy,
    Other,
}

impl QualityDimension {
    pub fn as_str(self) -> &'static str {
        match self {
            QualityDimension::Completeness => "completeness",
            QualityDimension::Validity => "validity",
            QualityDimension::Uniqueness => "uniqueness",
            QualityDimension::Consistency => "consistency",
            QualityDimension::Accuracy => "accuracy",
            QualityDimension::Other => "other",
        }
    }
}

/// One finding of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub component: Arc<str>,
    /// The index of the column; `None` for the cube as a whole.
    pub column: Option<usize>,
    pub dimension: QualityDimension,
    pub severity: FindingSeverity,
    /// The score from 0 to 1; `None` for an observation without a score.
    pub score: Option<f64>,
    /// The code, which matches `[a-z][a-z0-9_]*`.
    pub code: Arc<str>,
    pub message: Arc<str>,
    pub evidence: Vec<(Arc<str>, Arc<str>)>,
}
