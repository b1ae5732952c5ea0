//! DAX queries: checked, planned as semantic queries, run, ordered.
//!
//! In: the text of a query and its caller. Out: the rows of its first `EVALUATE`, or all of its problems. Rows come
//! through the query pipeline, so that hooks, limits, caches and pre-aggregations apply. Absent: formats and status
//! codes.

mod evaluated;
pub mod members;
mod order;
pub mod sessions;
mod values;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use terrane_compiler::Access;
use terrane_compiler::sql::ResultColumn;
use terrane_dax::plan::{OrderKey, SemanticPlan, plan};
use terrane_dax::{Bound, Problem, ProblemCode, Type};

use crate::domain::Surface;
use crate::query::{Answer, QueryKind, QueryRunError, QueryService, QuerySession, RequestContext};

pub use terrane_dax::plan::Parameters;

/// The most rows of a result.
pub const MAX_ROWS: u64 = 200_000;

/// The rows of a DAX query.
#[derive(Debug)]
pub struct DaxAnswer {
    /// The columns of the batches, by the names of the result.
    pub columns: Vec<ResultColumn>,
    /// The types of the columns.
    pub types: Vec<Type>,
    pub batches: Vec<RecordBatch>,
    pub rows: u64,
    pub is_cached: bool,
    pub duration: Duration,
    pub warnings: Vec<String>,
}

/// The reason why a DAX query has no rows.
#[derive(Debug, thiserror::Error)]
pub enum DaxError {
    #[error("the query has problems")]
    Problems(Vec<Problem>),
    #[error("the result has more than {limit} rows")]
    TooManyRows { limit: u64 },
    #[error(transparent)]
    Run(#[from] QueryRunError),
    #[error("the evaluation failed")]
    Evaluation,
    #[error("ordering the rows: {0}")]
    Order(#[from] ArrowError),
}

/// The way in which a query is answered.
enum Plan {
    Semantic(Box<SemanticPlan>),
    /// Its parts are semantic queries, over whose rows it is evaluated.
    Evaluated,
}

/// A planned query with its warnings.
struct Planned {
    plan: Plan,
    warnings: Vec<String>,
}

/// A query with values for its parameters.
#[derive(Clone, Copy)]
struct Request<'r> {
    text: &'r str,
    parameters: &'r Parameters,
}

/// Returns all problems of a query for a caller, the constructs that cannot run yet included.
pub fn check(text: &str, access: &Access<'_>) -> Vec<Problem> {
    let Bound { query, problems } = terrane_dax::read(text, access);
    if !problems.is_empty() {
        return problems;
    }
    let planned = query.evaluations.iter().map(|one| match plan(&query, one, access, &Parameters::new()) {
        Err(problem) if problem.code() == ProblemCode::NotSupported => evaluated::check(&query, one, access),
        Err(problem) => Err(problem),
        Ok(_) => Ok(()),
    });
    // A parameter gets its value when the query runs.
    planned.filter_map(Result::err).filter(|problem| !problem.is_missing_value()).collect()
}

/// Runs the first `EVALUATE` of a query.
///
/// # Errors
/// [`DaxError`]
pub async fn execute(queries: &QueryService, context: &RequestContext, text: &str) -> Result<DaxAnswer, DaxError> {
    execute_with(queries, context, text, &Parameters::new()).await
}

/// Runs the first `EVALUATE` of a query with values for its parameters.
///
/// # Errors
/// [`DaxError`]
pub async fn execute_with(
    queries: &QueryService,
    context: &RequestContext,
    text: &str,
    parameters: &Parameters,
) -> Result<DaxAnswer, DaxError> {
    let context = dax_context(context);
    let session = queries.session(&context);
    let Planned { plan, warnings } = planned(&session, &context, text, parameters)?;
    let Plan::Semantic(mut plan) = plan else {
        return evaluated::execute(&session, &context, Request { text, parameters }, warnings).await;
    };
    let limit = (MAX_ROWS + 1).min(session.max_rows());
    plan.query.limit = Some(limit);
    let answer = async { session.prepare(&plan.query).await?.run().await }.await?;
    // A policy may leave fewer rows than were asked for; the first rows of those would not be the first of all.
    let is_cut = answer.truncated != Some(false);
    if is_cut && (answer.returned_rows >= limit || plan.top.is_some()) {
        return Err(DaxError::TooManyRows { limit: answer.returned_rows.min(MAX_ROWS) });
    }
    finished(&plan, answer, warnings)
}

/// Returns the statement of the first `EVALUATE` with its values as literals.
///
/// # Errors
/// [`DaxError`]
pub async fn inline_sql(queries: &QueryService, context: &RequestContext, text: &str) -> Result<String, DaxError> {
    let context = dax_context(context);
    let session = queries.session(&context);
    let parameters = Parameters::new();
    let Planned { plan, .. } = planned(&session, &context, text, &parameters)?;
    let Plan::Semantic(mut plan) = plan else {
        return evaluated::statements(&session, &context, Request { text, parameters: &parameters }).await;
    };
    plan.query.limit = Some((MAX_ROWS + 1).min(session.max_rows()));
    Ok(async { session.prepare(&plan.query).await?.inline_sql().await }.await?)
}

fn dax_context(context: &RequestContext) -> RequestContext {
    let surface = match context.surface {
        Surface::Xmla => Surface::Xmla,
        _ => Surface::Dax,
    };
    // A result has no pages: its size is limited as that of an export.
    RequestContext { surface, kind: QueryKind::Export, ..context.clone() }
}

fn planned(
    session: &QuerySession<'_>,
    context: &RequestContext,
    text: &str,
    parameters: &Parameters,
) -> Result<Planned, DaxError> {
    let access = Access::of(&session.snapshot().model, &context.caller);
    let Bound { query, problems } = terrane_dax::read(text, &access);
    let (Some((first, others)), true) = (query.evaluations.split_first(), problems.is_empty()) else {
        return Err(DaxError::Problems(problems));
    };
    let plan = plan(&query, first, &access, &as_written(&query.parameters, parameters));
    let plan = match plan {
        Ok(plan) => Plan::Semantic(Box::new(plan)),
        Err(problem) if problem.code() == ProblemCode::NotSupported => Plan::Evaluated,
        Err(problem) => return Err(DaxError::Problems(vec![problem])),
    };
    let warning = "only the first EVALUATE is answered";
    let warnings = if others.is_empty() { Vec::new() } else { vec![warning.to_owned()] };
    Ok(Planned { plan, warnings })
}

/// Returns the values by the names that the query writes; names of parameters have no case.
fn as_written(names: &[Arc<str>], values: &Parameters) -> Parameters {
    let value = |name: &Arc<str>| {
        let same = || values.iter().find(|(given, _)| given.to_lowercase() == name.to_lowercase());
        let found = values.get_key_value(name).or_else(same);
        found.map(|(_, value)| (Arc::clone(name), value.clone()))
    };
    names.iter().filter_map(value).collect()
}

/// Takes the first rows, orders them, and names their columns.
fn finished(plan: &SemanticPlan, answer: Answer, mut warnings: Vec<String>) -> Result<DaxAnswer, DaxError> {
    let sources: Vec<usize> = plan.columns.iter().map(|column| column.source).collect();
    let columns: Vec<ResultColumn> = plan
        .columns
        .iter()
        .filter_map(|column| {
            let found = answer.columns.get(column.source)?;
            let key = Arc::from(column.name.as_str());
            Some(ResultColumn { key, is_measure: column.is_measure, ..found.clone() })
        })
        .collect();
    let batches = answer.batches.iter().map(|batch| batch.project(&sources)).collect::<Result<Vec<_>, _>>()?;
    let batches = ordered(plan, batches)?;
    warnings.extend(answer.warnings);
    Ok(DaxAnswer {
        columns,
        types: plan.columns.iter().map(|column| column.ty).collect(),
        rows: batches.iter().map(|batch| batch.num_rows() as u64).sum(),
        batches,
        is_cached: answer.freshness.is_cached,
        duration: answer.duration,
        warnings,
    })
}

fn ordered(plan: &SemanticPlan, batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>, ArrowError> {
    let (Some(first), true) = (batches.first(), plan.top.is_some() || !plan.order.is_empty()) else {
        return Ok(batches);
    };
    let mut rows = concat_batches(&first.schema(), &batches)?;
    if let Some(top) = &plan.top {
        rows = order::first_rows(&rows, top)?;
    }
    if !plan.order.is_empty() {
        rows = order::sorted(&rows, &plan.order)?;
    }
    Ok(vec![rows])
}

/// Returns the columns that an order compares.
fn keys(order: &[OrderKey]) -> impl Iterator<Item = (usize, bool)> {
    order.iter().map(|key| (key.column, key.descending))
}
