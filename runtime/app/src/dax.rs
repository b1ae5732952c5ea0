//! DAX queries: checks them, plans them as semantic queries, runs these, and orders the rows.
//!
//! In: the DAX text of a query and its caller. Out: the rows of each `EVALUATE`, or all problems of the query. Rows
//! come from the query pipeline, so that hooks, limits, caches and pre-aggregations apply. Not here: formats and status
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
use jiff::Timestamp;
use terrane_compiler::Access;
use terrane_compiler::model::Model;
use terrane_compiler::sql::ResultColumn;
use terrane_dax::bound::MeasureSource;
use terrane_dax::plan::{OrderKey, SemanticPlan, plan};
use terrane_dax::{Bound, Problem, ProblemCode, Type};

use crate::blocking::{on_thread, over_rows};
use crate::domain::Surface;
use crate::query::{Answer, QueryKind, QueryRunError, QueryService, QuerySession, RequestContext};

pub use terrane_dax::plan::Parameters;

/// The largest number of rows of a result.
pub const MAX_ROWS: u64 = 200_000;

/// The rows of a DAX query.
#[derive(Debug)]
pub struct DaxAnswer {
    /// The columns of the batches. Their keys are the names in the DAX result.
    pub columns: Vec<ResultColumn>,
    /// The types of the columns.
    pub types: Vec<Type>,
    /// The formats of the columns, as the project declares them for clients: `currency`, `percent` and others.
    pub formats: Vec<Option<Arc<str>>>,
    pub batches: Vec<RecordBatch>,
    pub rows: u64,
    pub is_cached: bool,
    /// The time since which the data may have changed; `None` if no rows of cubes were read.
    pub as_of: Option<Timestamp>,
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
    /// A table that the result is computed from is too large.
    #[error("a table of the query has more than {limit} rows")]
    TooManyRowsRead { limit: u64 },
    #[error(transparent)]
    Run(#[from] QueryRunError),
    #[error("the evaluation needs more than {limit} bytes of rows")]
    TooManyBytes { limit: u64 },
    #[error("reading the rows: {0}")]
    Rows(#[from] ArrowError),
}

/// The way in which a query is answered.
enum Plan {
    Semantic(Box<SemanticPlan>),
    /// The query is evaluated in this process, over the rows of several semantic queries.
    Evaluated,
}

/// One `EVALUATE` of a query with values for its parameters.
#[derive(Clone, Copy)]
struct Request<'r> {
    text: &'r str,
    parameters: &'r Parameters,
    /// The index of the `EVALUATE` in the query.
    evaluation: usize,
}

/// Returns all problems of a query for a caller. A construct that is not supported is a problem too.
///
/// # Errors
/// Too many queries are being evaluated.
pub async fn check(queries: &QueryService, context: &RequestContext, text: &str) -> Result<Vec<Problem>, DaxError> {
    let _permit = evaluated::permit(context.tenant.as_ref()).await?;
    let (snapshot, caller) = (queries.session(context).shared_snapshot(), context.caller.clone());
    let text = text.to_owned();
    Ok(on_thread(move || problems(&text, &Access::of(&snapshot.model, &caller))).await)
}

fn problems(text: &str, access: &Access<'_>) -> Vec<Problem> {
    let Bound { query, problems } = terrane_dax::read(text, access);
    if !problems.is_empty() {
        return problems;
    }
    let planned = query.evaluations.iter().map(|one| match plan(&query, one, access, &Parameters::new()) {
        Err(problem) if problem.code() == ProblemCode::NotSupported => evaluated::check(&query, one, access),
        Err(problem) => Err(problem),
        Ok(_) => Ok(()),
    });
    // The values of parameters are given when the query runs, so a missing one is not a problem here.
    planned.filter_map(Result::err).filter(|problem| !problem.is_missing_value()).collect()
}

/// Runs the first `EVALUATE` of a query.
///
/// # Errors
/// [`DaxError`]
pub async fn execute(queries: &QueryService, context: &RequestContext, text: &str) -> Result<DaxAnswer, DaxError> {
    execute_with(queries, context, text, &Parameters::new()).await
}

/// Runs the first `EVALUATE` of a query with values for its parameters. If the query has further ones, the answer has a
/// warning that they were not run.
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
    let evaluations = evaluations(&session, &context, text)?;
    let mut answer = answer(&session, &context, Request { text, parameters, evaluation: 0 }).await?;
    session.check_result(answer.rows)?;
    if evaluations > 1 {
        answer.warnings.insert(0, "only the first EVALUATE is evaluated".to_owned());
    }
    Ok(answer)
}

/// Runs every `EVALUATE` of a query, one after the other. All results together have at most [`MAX_ROWS`] rows, and at
/// most the rows that the caller's guardrails allow.
///
/// # Errors
/// [`DaxError`] of the first `EVALUATE` that fails, or of too many rows.
pub async fn execute_all(
    queries: &QueryService,
    context: &RequestContext,
    text: &str,
    parameters: &Parameters,
) -> Result<Vec<DaxAnswer>, DaxError> {
    let context = dax_context(context);
    let session = queries.session(&context);
    let mut answers = Vec::new();
    let mut rows = 0;
    for evaluation in 0..evaluations(&session, &context, text)? {
        let answer = answer(&session, &context, Request { text, parameters, evaluation }).await?;
        rows += answer.rows;
        if rows > MAX_ROWS {
            return Err(DaxError::TooManyRows { limit: MAX_ROWS });
        }
        session.check_result(rows)?;
        answers.push(answer);
    }
    Ok(answers)
}

async fn answer(
    session: &QuerySession<'_>,
    context: &RequestContext,
    request: Request<'_>,
) -> Result<DaxAnswer, DaxError> {
    let Plan::Semantic(mut plan) = planned(session, context, request)? else {
        return evaluated::execute(session, context, request).await;
    };
    let limit = rows_of_plan(session, &plan);
    plan.query.limit = Some(limit);
    // The guardrail of returned rows applies to the result, which is checked when it is complete.
    let answer = async { session.prepare(&plan.query).await?.as_intermediate().run().await }.await?;
    // A policy may have cut the rows off below `limit`. Then the first rows of `TOPN` may be missing.
    let is_cut = answer.truncated != Some(false);
    let returned = answer.returned_rows;
    if is_cut && plan.top.is_some() {
        return Err(DaxError::TooManyRowsRead { limit: returned.min(MAX_ROWS) });
    }
    if is_cut && returned >= limit {
        session.check_result(returned)?;
        return Err(DaxError::TooManyRows { limit: returned.min(MAX_ROWS) });
    }
    let snapshot = session.shared_snapshot();
    over_rows(answer.returned_rows, move || finished(&plan, answer, &snapshot.model)).await
}

/// Returns the SQL statement of the first `EVALUATE`, with its values as literals.
///
/// # Errors
/// [`DaxError`]
pub async fn inline_sql(queries: &QueryService, context: &RequestContext, text: &str) -> Result<String, DaxError> {
    let context = dax_context(context);
    let session = queries.session(&context);
    let parameters = Parameters::new();
    let request = Request { text, parameters: &parameters, evaluation: 0 };
    let Plan::Semantic(mut plan) = planned(&session, &context, request)? else {
        return evaluated::statements(&session, &context, request).await;
    };
    plan.query.limit = Some(rows_of_plan(&session, &plan));
    Ok(async { session.prepare(&plan.query).await?.inline_sql().await }.await?)
}

/// Returns the number of rows to read of a query from whose rows a result is computed: one more than are allowed.
fn rows_to_read(session: &QuerySession<'_>) -> u64 {
    session.max_rows_read().min(MAX_ROWS + 1)
}

/// Returns the number of rows to read of a plan. Without `TOPN`, they are the rows of the result.
fn rows_of_plan(session: &QuerySession<'_>, plan: &SemanticPlan) -> u64 {
    let returned = session.guardrails().max_rows_returned.filter(|_| plan.top.is_none());
    rows_to_read(session).min(returned.map_or(u64::MAX, |most| most.saturating_add(1)))
}

fn dax_context(context: &RequestContext) -> RequestContext {
    let surface = match context.surface {
        // Requests of the command line need no audit log, which refusals and hooks of other surfaces write to.
        Surface::Xmla | Surface::Internal => context.surface,
        _ => Surface::Dax,
    };
    // A DAX result has no pages, so its size is limited as that of an export.
    RequestContext { surface, kind: QueryKind::Export, ..context.clone() }
}

/// Returns the number of `EVALUATE` of a query without problems.
fn evaluations(session: &QuerySession<'_>, context: &RequestContext, text: &str) -> Result<usize, DaxError> {
    let Bound { query, problems } = terrane_dax::read(text, &Access::of(&session.snapshot().model, &context.caller));
    if problems.is_empty() { Ok(query.evaluations.len()) } else { Err(DaxError::Problems(problems)) }
}

fn planned(session: &QuerySession<'_>, context: &RequestContext, request: Request<'_>) -> Result<Plan, DaxError> {
    let access = Access::of(&session.snapshot().model, &context.caller);
    let Bound { query, problems } = terrane_dax::read(request.text, &access);
    let (Some(evaluation), true) = (query.evaluations.get(request.evaluation), problems.is_empty()) else {
        return Err(DaxError::Problems(problems));
    };
    match plan(&query, evaluation, &access, &by_names_of_query(&query.parameters, request.parameters)) {
        Ok(plan) => Ok(Plan::Semantic(Box::new(plan))),
        Err(problem) if problem.code() == ProblemCode::NotSupported => Ok(Plan::Evaluated),
        Err(problem) => Err(DaxError::Problems(vec![problem])),
    }
}

/// Returns the values of parameters under the names that the query uses. Names are compared case-insensitively.
fn by_names_of_query(names: &[Arc<str>], values: &Parameters) -> Parameters {
    let value = |name: &Arc<str>| {
        let same = || values.iter().find(|(given, _)| given.to_lowercase() == name.to_lowercase());
        let found = values.get_key_value(name).or_else(same);
        found.map(|(_, value)| (Arc::clone(name), value.clone()))
    };
    names.iter().filter_map(value).collect()
}

/// Selects the first rows of `TOPN`, orders them, and names their columns.
fn finished(plan: &SemanticPlan, answer: Answer, model: &Model) -> Result<DaxAnswer, DaxError> {
    let sources: Vec<usize> = plan.columns.iter().map(|column| column.source).collect();
    let columns = plan.columns.iter().map(|column| {
        let found = answer.columns.get(column.source).ok_or_else(|| missing_column(column.source))?;
        let is_measure = column.measure.is_some();
        Ok(ResultColumn { key: Arc::from(column.name.as_str()), is_measure, ..found.clone() })
    });
    let columns = columns.collect::<Result<Vec<ResultColumn>, ArrowError>>()?;
    let counts: Vec<bool> = plan.columns.iter().map(|column| column.is_count).collect();
    let batches = answer.batches.iter().map(|batch| values::without_zeros(&batch.project(&sources)?, &counts));
    let batches = ordered(plan, batches.collect::<Result<Vec<_>, ArrowError>>()?)?;
    let mut types: Vec<Type> = plan.columns.iter().map(|column| column.ty).collect();
    values::widen(&mut types, &batches);
    Ok(DaxAnswer {
        columns,
        types,
        formats: plan.columns.iter().map(|column| format_of(model, column.measure)).collect(),
        rows: batches.iter().map(|batch| batch.num_rows() as u64).sum(),
        batches,
        is_cached: answer.freshness.is_cached,
        as_of: Some(answer.freshness.as_of),
        duration: answer.duration,
        warnings: answer.warnings,
    })
}

/// Returns the format that the project declares for a measure or metric.
fn format_of(model: &Model, measure: Option<MeasureSource>) -> Option<Arc<str>> {
    let presentation = match measure? {
        MeasureSource::Model(id) => &model.measure(id).presentation,
        MeasureSource::Metric(id) => &model.metric(id).presentation,
        MeasureSource::Query(_) => return None,
    };
    presentation.format.clone()
}

fn missing_column(index: usize) -> ArrowError {
    ArrowError::SchemaError(format!("the result has no column {index}"))
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

/// Returns the columns of an order, each with true if its order is descending.
fn keys(order: &[OrderKey]) -> impl Iterator<Item = (usize, bool)> {
    order.iter().map(|key| (key.column, key.descending))
}
