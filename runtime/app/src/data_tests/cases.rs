//! The cases of a project's `tests/*.yml`, which a run of data tests includes.
//!
//! In: the use cases that a case needs. Out: one result for each case. Not here: the cases themselves, whose format and
//! comparison belong to the expectations of a project.

use std::time::Duration;

use async_trait::async_trait;

use crate::ports::clock::Clock;
use crate::ports::data_tests::TestResult;
use crate::ports::warehouse::Warehouse;
use crate::query::QueryService;

/// The use cases that a case needs.
#[derive(Clone, Copy)]
pub struct CaseContext<'c> {
    pub queries: &'c QueryService,
    /// Runs the SQL of cases, with the operator's rights.
    pub warehouse: &'c dyn Warehouse,
    pub clock: &'c dyn Clock,
    /// The longest time that the SQL of a case may take.
    pub timeout: Duration,
}

/// Runs the cases of the served project.
#[async_trait]
pub trait ProjectCases: Send + Sync {
    /// Reads the cases, and runs them one after the other. A case that cannot be read is unchecked.
    async fn run(&self, context: CaseContext<'_>) -> Vec<TestResult>;
}

/// The cases of a project that has none.
pub struct NoCases;

#[async_trait]
impl ProjectCases for NoCases {
    async fn run(&self, _: CaseContext<'_>) -> Vec<TestResult> {
        Vec::new()
    }
}
