//! Evaluates DAX queries that do not have the shape of one semantic query, over the rows of several semantic queries.
//!
//! In: the DAX text of a query. Out: its rows. Each round evaluates the query until rows are missing, and then runs the
//! semantic queries that return these rows, each through the query pipeline. In the last round, no rows are missing. An
//! evaluation may compute for as long as its limits allow, so it runs on a thread of its own.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arrow::array::RecordBatch;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use terrane_compiler::Access;
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_compiler::types::DimensionType;
use terrane_dax::bound::{BoundEvaluation, BoundQuery};
use terrane_dax::evaluate::{
    Budget, Datum, FetchedData, FinishedTable, MAX_BYTES, MAX_STEPS, Step, TimeForm, evaluate, singles,
};
use terrane_dax::plan::Parameters;
use terrane_dax::{Problem, ProblemCode, Type};

use super::{DaxAnswer, DaxError, MAX_ROWS, Request, by_names_of_query, format_of, rows_to_read, values};
use crate::blocking::on_thread;
use crate::ports::warehouse::RefusalCause;
use crate::query::{
    Answer, ConcurrencyLimiter, LimiterSettings, Overloaded, Permit, QueryRunError, QuerySession, RequestContext,
};

/// The largest number of evaluations that run at once. Each uses at most 256 MiB.
const MAX_EVALUATIONS: usize = 4;
/// The largest number of evaluations that wait for a permit.
const MAX_WAITING: usize = 256;
/// The longest time that an evaluation waits for a permit.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest number of steps of a check, which evaluates without rows.
const CHECK_STEPS: u64 = 100_000;

/// Limits the evaluations of this process that run at once. One tenant cannot hold all permits.
static EVALUATIONS: LazyLock<ConcurrencyLimiter> = LazyLock::new(|| {
    ConcurrencyLimiter::new(LimiterSettings {
        running: MAX_EVALUATIONS,
        queued: MAX_WAITING,
        running_per_tenant: Some(MAX_EVALUATIONS - 1),
        queued_per_tenant: None,
    })
});

/// Waits for a permit to run an evaluation. Tenants take turns.
///
/// # Errors
/// No permit became free in time, or too many evaluations wait.
pub(super) async fn permit(tenant: Option<&Arc<str>>) -> Result<Permit, QueryRunError> {
    let permit = tokio::time::timeout(PATIENCE, EVALUATIONS.acquire(tenant)).await;
    let overloaded = || {
        let (running, queued) = EVALUATIONS.load();
        Overloaded { running, queued }
    };
    Ok(permit.unwrap_or_else(|_| Err(overloaded()))?)
}

/// Stops an evaluation whose caller no longer waits for it.
struct CancelOnDrop(Arc<Budget>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The rows of the semantic queries that have run, and facts about these queries.
#[derive(Default)]
struct Progress {
    data: FetchedData,
    warnings: Vec<String>,
    statements: Vec<String>,
    /// True if every query so far was answered from the cache, and so also before the first query.
    is_cached: bool,
    /// The time of the oldest data that was read.
    as_of: Option<Timestamp>,
}

/// Makes all checks of a query that need no rows. The error names the first construct that cannot be evaluated.
pub(super) fn check(query: &BoundQuery, evaluation: &BoundEvaluation, access: &Access<'_>) -> Result<(), Problem> {
    let now = jiff::civil::datetime(2000, 1, 1, 0, 0, 0, 0);
    let budget = Budget::new(CHECK_STEPS);
    match evaluate(query, evaluation, access, &Parameters::new(), now, &FetchedData::default(), &budget) {
        Err(problem) if problem.code() == ProblemCode::NotSupported => Err(problem),
        _ => Ok(()),
    }
}

/// Runs an `EVALUATE` of a query.
pub(super) async fn execute(
    session: &QuerySession<'_>,
    context: &RequestContext,
    request: Request<'_>,
) -> Result<DaxAnswer, DaxError> {
    let started = session.elapsed();
    let (result, progress) = finished(session, context, request, false).await?;
    let mut warnings = result.warnings;
    warnings.extend(progress.warnings);
    Ok(DaxAnswer {
        columns: result.columns,
        types: result.types,
        formats: result.formats,
        rows: result.batch.num_rows() as u64,
        batches: vec![result.batch],
        is_cached: progress.is_cached && !progress.data.is_empty(),
        as_of: progress.as_of,
        duration: session.elapsed().saturating_sub(started),
        warnings,
    })
}

/// Returns the SQL statements of a query, with its values as literals. Later statements depend on the rows of earlier
/// ones.
pub(super) async fn statements(
    session: &QuerySession<'_>,
    context: &RequestContext,
    request: Request<'_>,
) -> Result<String, DaxError> {
    let (_, progress) = finished(session, context, request, true).await?;
    Ok(progress.statements.join(";\n\n"))
}

async fn finished(
    session: &QuerySession<'_>,
    context: &RequestContext,
    request: Request<'_>,
    with_sql: bool,
) -> Result<(ResultTable, Progress), DaxError> {
    let _permit = permit(context.tenant.as_ref()).await?;
    let budget = Arc::new(Budget::new(MAX_STEPS));
    let _cancel = CancelOnDrop(Arc::clone(&budget));
    let timeout = session.timeout();
    let rounds = rounds(session, context, request, with_sql, &budget);
    let finished = tokio::time::timeout(timeout, rounds).await;
    finished.unwrap_or_else(|_| Err(session.overdue().into()))
}

/// Evaluates the query in rounds. Each round reports the queries whose rows it lacks; they are fetched before the next
/// round. The last round lacks none.
async fn rounds(
    session: &QuerySession<'_>,
    context: &RequestContext,
    request: Request<'_>,
    with_sql: bool,
    budget: &Arc<Budget>,
) -> Result<(ResultTable, Progress), DaxError> {
    let mut progress = Progress { is_cached: true, ..Progress::default() };
    let mut fetched: Vec<(SemanticQuery, Option<Answer>)> = Vec::new();
    let mut bytes = 0;
    loop {
        let data = std::mem::take(&mut progress.data);
        let (data, round) =
            evaluate_round(session, context, request, data, std::mem::take(&mut fetched), budget).await?;
        progress.data = data;
        match round {
            Round::Done(result) => return Ok((result, progress)),
            Round::Needs(queries) => {
                for query in queries {
                    let answers = answers(session, query, &mut progress, with_sql).await?;
                    let size =
                        |answer: &Answer| answer.returned_rows * (answer.columns.len() * size_of::<Datum>()) as u64;
                    bytes += answers.iter().filter_map(|(_, answer)| answer.as_ref()).map(size).sum::<u64>();
                    fetched.extend(answers);
                    if bytes > MAX_BYTES as u64 {
                        return Err(DaxError::TooManyBytes { limit: MAX_BYTES as u64 });
                    }
                }
            }
        }
    }
}

/// The state after a round of evaluation.
enum Round {
    Done(ResultTable),
    /// The queries whose rows are missing.
    Needs(Vec<SemanticQuery>),
}

/// The rows of a result with their columns.
struct ResultTable {
    columns: Vec<ResultColumn>,
    types: Vec<Type>,
    formats: Vec<Option<Arc<str>>>,
    batch: RecordBatch,
    warnings: Vec<String>,
}

/// Evaluates over the known rows, on a thread of its own. Returns the outcome, and the known rows for the next round.
async fn evaluate_round(
    session: &QuerySession<'_>,
    context: &RequestContext,
    request: Request<'_>,
    mut data: FetchedData,
    fetched: Vec<(SemanticQuery, Option<Answer>)>,
    budget: &Arc<Budget>,
) -> Result<(FetchedData, Round), DaxError> {
    let (snapshot, caller) = (session.shared_snapshot(), context.caller.clone());
    let (text, parameters, at) = (request.text.to_owned(), request.parameters.clone(), request.evaluation);
    let (now, zone, budget) = (session.now(), session.timezone().clone(), Arc::clone(budget));
    let evaluation = move || {
        for (query, answer) in fetched {
            match answer {
                Some(answer) => data.add(query, values::fetched(&answer)?),
                None => data.refuse(query),
            }
        }
        let access = Access::of(&snapshot.model, &caller);
        let bound = terrane_dax::read(&text, &access);
        let (Some(evaluation), true) = (bound.query.evaluations.get(at), bound.problems.is_empty()) else {
            return Err(DaxError::Problems(bound.problems));
        };
        let parameters = by_names_of_query(&bound.query.parameters, &parameters);
        let step = evaluate(&bound.query, evaluation, &access, &parameters, now, &data, &budget);
        let round = match step.map_err(|problem| DaxError::Problems(vec![problem]))? {
            Step::Needs(queries) => Round::Needs(queries),
            Step::Done(table) => Round::Done(result_table(&access, table, &zone)?),
        };
        Ok((data, round))
    };
    on_thread(evaluation).await
}

/// Returns the rows of an evaluation as a batch with columns. Instants are local times of `zone` in the evaluation.
fn result_table(access: &Access<'_>, table: FinishedTable, zone: &TimeZone) -> Result<ResultTable, DaxError> {
    if table.rows.len() as u64 > MAX_ROWS {
        return Err(DaxError::TooManyRows { limit: MAX_ROWS });
    }
    let mut types: Vec<_> = table.columns.iter().map(|column| column.ty).collect();
    let times: Vec<TimeForm> = table.columns.iter().map(|column| column.time).collect();
    let (batch, kinds) = values::batch(&types, &times, zone, &table.rows)?;
    values::widen(&mut types, std::slice::from_ref(&batch));
    let columns = table.columns.iter().zip(kinds).map(|(column, ty)| ResultColumn {
        key: Arc::from(column.name.as_str()),
        is_measure: column.lineage.is_none(),
        ty,
        format: match (ty, column.time) {
            (DimensionType::Time, TimeForm::Instant) => ColumnFormat::Instant(zone.clone()),
            (DimensionType::Time, _) => ColumnFormat::WallClock,
            _ => ColumnFormat::Plain,
        },
    });
    let formats = table.columns.iter().map(|column| format_of(access.model(), column.measure)).collect();
    Ok(ResultTable { columns: columns.collect(), types, formats, batch, warnings: table.warnings })
}

/// Runs a query. If its values are refused, runs a query for each value. The answer of a refused value is `None`.
async fn answers(
    session: &QuerySession<'_>,
    query: SemanticQuery,
    progress: &mut Progress,
    with_sql: bool,
) -> Result<Vec<(SemanticQuery, Option<Answer>)>, DaxError> {
    let statements = progress.statements.len();
    match fetch(session, &query, progress, with_sql).await {
        Err(error) if !query.computed.is_empty() && is_refusal(&error) => progress.statements.truncate(statements),
        answer => return Ok(vec![(query, Some(answer?))]),
    }
    let values = singles(&query);
    if values.len() == 1 {
        return Ok(vec![(query, None)]);
    }
    let mut all = Vec::with_capacity(values.len());
    for value in values {
        let answer = match fetch(session, &value, progress, with_sql).await {
            Err(error) if !value.computed.is_empty() && is_refusal(&error) => None,
            answer => Some(answer?),
        };
        all.push((value, answer));
    }
    Ok(all)
}

/// Returns whether a query was refused because of the values that it computes for each row: a policy closes a column to
/// such a use, the dialect cannot compute a value exactly, or a value overflows. The evaluation then reads the rows. Other
/// errors of the warehouse, such as too little memory, would only be repeated.
fn is_refusal(error: &DaxError) -> bool {
    match error {
        DaxError::Run(QueryRunError::Query(_)) => true,
        DaxError::Run(QueryRunError::Warehouse(error)) => error.cause == RefusalCause::Value,
        _ => false,
    }
}

async fn fetch(
    session: &QuerySession<'_>,
    query: &SemanticQuery,
    progress: &mut Progress,
    with_sql: bool,
) -> Result<Answer, DaxError> {
    let limit = rows_to_read(session);
    let limited = SemanticQuery { limit: Some(limit), ..query.clone() };
    if with_sql {
        let sql = async { session.prepare(&limited).await?.inline_sql().await }.await?;
        progress.statements.push(sql);
    }
    let mut answer = async { session.prepare(&limited).await?.as_intermediate().run().await }.await?;
    // A policy that returns fewer rows would change sums, so all rows are needed.
    if answer.truncated != Some(false) {
        return Err(DaxError::TooManyRowsRead { limit: answer.returned_rows.min(MAX_ROWS) });
    }
    progress.is_cached &= answer.freshness.is_cached;
    progress.as_of = [progress.as_of, Some(answer.freshness.as_of)].into_iter().flatten().min();
    for warning in std::mem::take(&mut answer.warnings) {
        if !progress.warnings.contains(&warning) {
            progress.warnings.push(warning);
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::warehouse::{WarehouseError, WarehouseErrorKind};

    #[test]
    fn errors_of_values_are_refusals() {
        for (cause, expected) in [(RefusalCause::Value, true), (RefusalCause::Other, false)] {
            let kind = WarehouseErrorKind::Refused;
            let error = WarehouseError { warehouse: "duckdb".into(), kind, cause, message: String::new(), retries: 0 };
            assert_eq!(is_refusal(&DaxError::Run(QueryRunError::Warehouse(error))), expected, "{cause:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn single_tenant_leaves_a_place_for_others() {
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let mut running = Vec::new();
        for _ in 1..MAX_EVALUATIONS {
            running.push(permit(Some(&one)).await.unwrap());
        }
        assert!(permit(Some(&one)).await.is_err());
        running.push(permit(Some(&other)).await.unwrap());
        assert!(permit(Some(&other)).await.is_err());
        // The waiting evaluation gets the place that becomes free.
        let first = tokio::spawn({
            let one = Arc::clone(&one);
            async move { permit(Some(&one)).await }
        });
        tokio::task::yield_now().await;
        running.remove(0);
        assert!(first.await.unwrap().is_ok());
    }
}
