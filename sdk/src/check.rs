//! The check role: the trait to implement, and the macro that exports it.
//!
//! In: a type that implements [`Check`]. Out: a component of the world `check-plugin`.
//!
//! ```
//! use terrane_sdk::check::{Aggregate, Answer, Answers, Check, Column, Finding, Plan, Planner, QualityDimension, Severity};
//! use terrane_sdk::{CallContext, LogicalType, PluginError, PluginInfo};
//!
//! struct Filled;
//!
//! impl Check for Filled {
//!     const INFO: PluginInfo = PluginInfo::new("check-filled", "1.0.0", "Filled columns");
//!
//!     fn make_plan(_: &CallContext, columns: &[Column]) -> Result<Plan, PluginError> {
//!         let mut planner = Planner::default();
//!         for column in 0..columns.len() {
//!             planner.ask(column, Aggregate::RowCount);
//!             planner.ask(column, Aggregate::NullCount);
//!         }
//!         Ok(planner.plan())
//!     }
//!
//!     fn evaluate(context: &CallContext, columns: &[Column], answers: &[Answer]) -> Result<Vec<Finding>, PluginError> {
//!         let plan = Self::make_plan(context, columns)?;
//!         let answers = Answers::new(&plan, answers);
//!         let finding = |column: usize| {
//!             let rows = answers.number(column, &Aggregate::RowCount)?;
//!             let nulls = answers.number(column, &Aggregate::NullCount)?;
//!             let dimension = QualityDimension::Completeness;
//!             (nulls > 0.0).then(|| {
//!                 Finding::new(column, dimension, Severity::Medium, "not_filled", "there are nulls").with_score(1.0 - nulls / rows)
//!             })
//!         };
//!         Ok((0..columns.len()).filter_map(finding).collect())
//!     }
//! }
//!
//! terrane_sdk::export_check!(Filled);
//!
//! let columns = [Column::for_tests("status", LogicalType::Text)];
//! let answers = [Answer::for_tests(0, 8), Answer::for_tests(1, 2)];
//! let found = Filled::evaluate(&CallContext::for_tests(), &columns, &answers).unwrap();
//! assert_eq!(found[0].score, Some(0.75));
//! ```

mod build;

pub use build::{Answers, Planner, number};

pub use crate::bindings::check::exports::terrane::profiling::check::{
    Aggregate, Answer, Column, Finding, Plan, QualityDimension, Request,
};
pub use crate::bindings::terrane::types::common::Severity;
pub use crate::bindings::terrane::types::ir::{Arena, Scalar};

use crate::bindings::check::exports::terrane::profiling::check as wire;
use crate::{CallContext, Issue, PluginError, PluginInfo};

/// A check that evaluates columns by aggregates that the warehouse computes.
pub trait Check {
    const INFO: PluginInfo;

    /// Returns the aggregates to compute (phase 1).
    ///
    /// # Errors
    /// The columns or the settings are invalid.
    fn make_plan(context: &CallContext, columns: &[Column]) -> Result<Plan, PluginError>;

    /// Returns findings about the answers (phase 2). The answers are in the order of the plan's requests.
    ///
    /// # Errors
    /// The answers are invalid.
    fn evaluate(context: &CallContext, columns: &[Column], answers: &[Answer]) -> Result<Vec<Finding>, PluginError>;

    /// Checks the configuration, a JSON object or empty.
    ///
    /// # Errors
    /// Returns every problem of the configuration.
    fn check_config(config_json: &str) -> Result<(), Vec<Issue>> {
        crate::plugin::takes_no_config(Self::INFO.id, config_json)
    }
}

impl<C: Check> wire::Guest for C {
    fn make_plan(context: CallContext, columns: Vec<Column>) -> Result<Plan, PluginError> {
        <C as Check>::make_plan(&context, &columns)
    }

    fn evaluate(context: CallContext, columns: Vec<Column>, answers: Vec<Answer>) -> Result<Vec<Finding>, PluginError> {
        <C as Check>::evaluate(&context, &columns, &answers)
    }
}

/// Exports a type that implements [`Check`](crate::check::Check) as a component. On targets other than
/// WebAssembly, the macro does nothing.
#[macro_export]
macro_rules! export_check {
    ($check:ident) => {
        $crate::export_role!($check, check::Check, export_check_role, check);
    };
}
