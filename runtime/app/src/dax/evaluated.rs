//! Queries that do not have the shape of one semantic query: evaluated over the rows of several.
//!
//! In: the text of a query. Out: its rows. Each round evaluates as far as the rows that are known reach, and then runs
//! the semantic queries that are missing, each through the query pipeline. Evaluation runs on a thread of its own, since
//! it computes for as long as its limits allow.

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_compiler::types::{DimensionType, LogicalType};
use terrane_dax::bound::{BoundEvaluation, BoundQuery};
use terrane_dax::evaluate::{FetchedData, FinishedColumn, FinishedTable, Step, evaluate};
use terrane_dax::plan::Parameters;
use terrane_dax::{Problem, ProblemCode};

use super::{DaxAnswer, DaxError, MAX_ROWS, Request, as_written, values};
use crate::query::{QuerySession, RequestContext};

/// The rows of the semantic queries so far, and facts about them.
#[derive(Default)]
struct Progress {
    data: FetchedData,
    warnings: Vec<String>,
    statements: Vec<String>,
    is_cached: bool,
}

/// Returns the first construct that cannot be evaluated, as far as it shows without data.
pub(super) fn check(query: &BoundQuery, evaluation: &BoundEvaluation, access: &Access<'_>) -> Result<(), Problem> {
    let now = jiff::civil::datetime(2000, 1, 1, 0, 0, 0, 0);
    match evaluate(query, evaluation, access, &Parameters::new(), now, &FetchedData::default()) {
        Err(problem) if problem.code() == ProblemCode::NotSupported => Err(problem),
        _ => Ok(()),
    }
}

/// Runs the first `EVALUATE` of a query.
pub(super) async fn execute(
    session: &QuerySession<'_>,
    context: &RequestContext,
    request: Request<'_>,
    mut warnings: Vec<String>,
) -> Result<DaxAnswer, DaxError> {
    let started = session.elapsed();
    let (table, progress) = finished(session, context, request, false).await?;
    if table.rows.len() as u64 > MAX_ROWS {
        return Err(DaxError::TooManyRows { limit: MAX_ROWS });
    }
    let types: Vec<_> = table.columns.iter().map(|column| column.ty).collect();
    let is_date = |column: &FinishedColumn| {
        let dimension = column.lineage.map(|id| session.snapshot().model.dimension(id));
        dimension.is_some_and(|dimension| dimension.column_type == LogicalType::Date)
    };
    let dates: Vec<bool> = table.columns.iter().map(is_date).collect();
    let (batch, kinds) = values::batch(&types, &dates, &table.rows)?;
    let columns = table.columns.iter().zip(kinds).map(|(column, ty)| ResultColumn {
        key: Arc::from(column.name.as_str()),
        is_measure: column.lineage.is_none(),
        ty,
        format: match ty {
            DimensionType::Time => ColumnFormat::WallClock,
            _ => ColumnFormat::Plain,
        },
    });
    warnings.extend(table.warnings);
    warnings.extend(progress.warnings);
    Ok(DaxAnswer {
        columns: columns.collect(),
        types,
        rows: batch.num_rows() as u64,
        batches: vec![batch],
        is_cached: progress.is_cached,
        duration: session.elapsed().saturating_sub(started),
        warnings,
    })
}

/// Returns the statements of a query, with its values as literals. Later ones depend on the rows of earlier ones.
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
) -> Result<(FinishedTable, Progress), DaxError> {
    let mut progress = Progress { is_cached: true, ..Progress::default() };
    loop {
        match step(session, context, request, progress.data.clone()).await? {
            Step::Done(table) => return Ok((table, progress)),
            Step::Needs(queries) => {
                for query in queries {
                    fetch(session, query, &mut progress, with_sql).await?;
                }
            }
        }
    }
}

/// Evaluates as far as the known rows reach.
async fn step(
    session: &QuerySession<'_>,
    context: &RequestContext,
    request: Request<'_>,
    data: FetchedData,
) -> Result<Step, DaxError> {
    let (snapshot, caller) = (session.shared_snapshot(), context.caller.clone());
    let (text, parameters) = (request.text.to_owned(), request.parameters.clone());
    let now = session.now();
    let evaluation = tokio::task::spawn_blocking(move || {
        let access = Access::of(&snapshot.model, &caller);
        let bound = terrane_dax::read(&text, &access);
        match bound.query.evaluations.first() {
            Some(first) if bound.problems.is_empty() => {
                let parameters = as_written(&bound.query.parameters, &parameters);
                evaluate(&bound.query, first, &access, &parameters, now, &data).map_err(|problem| vec![problem])
            }
            _ => Err(bound.problems),
        }
    });
    match evaluation.await {
        Ok(result) => result.map_err(DaxError::Problems),
        Err(_) => Err(DaxError::Evaluation),
    }
}

async fn fetch(
    session: &QuerySession<'_>,
    query: SemanticQuery,
    progress: &mut Progress,
    with_sql: bool,
) -> Result<(), DaxError> {
    let limit = (MAX_ROWS + 1).min(session.max_rows());
    let limited = SemanticQuery { limit: Some(limit), ..query.clone() };
    if with_sql {
        let sql = async { session.prepare(&limited).await?.inline_sql().await }.await?;
        progress.statements.push(sql);
    }
    let answer = async { session.prepare(&limited).await?.run().await }.await?;
    // All rows are needed: a policy that leaves fewer would change sums.
    if answer.truncated != Some(false) {
        return Err(DaxError::TooManyRows { limit: answer.returned_rows.min(MAX_ROWS) });
    }
    progress.data.add(query, values::fetched(&answer)?);
    progress.is_cached &= answer.freshness.is_cached;
    for warning in answer.warnings {
        if !progress.warnings.contains(&warning) {
            progress.warnings.push(warning);
        }
    }
    Ok(())
}
