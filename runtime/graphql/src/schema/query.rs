//! The root of queries.
//!
//! In: the state of a request. Out: the model, rows, statements, lineage, jobs and pre-aggregations, each by the use
//! case of its REST route.

use std::sync::Arc;

use async_graphql::{Context, ID, MergedObject, Object, Result, SimpleObject};
use terrane_app::metadata;
use terrane_app::query::QueryKind;
use terrane_wire::Audience;
use terrane_wire::ErrorBody;
use terrane_wire::explanation::Explanation;
use terrane_wire::json::write_value;
use terrane_wire::preaggregations::PreaggregationStatus;

use super::cube::{Cube, Metric};
use super::inputs::Question;
use super::job::Job;
use super::json::Json;
use super::lineage::{self, LineageResult, Start};
use super::preaggregation::PreAggregation;
use super::question::question_field;
use super::request::{RequestState, state};
use super::result::QueryResult;
use crate::enums::LineageDirection;
use crate::failure::Failure;

/// Reads.
#[derive(Default, MergedObject)]
pub(crate) struct Query(Reads, RowsField, SqlField, ExplainField);

/// The SQL of a query, with its values.
#[derive(SimpleObject)]
pub(crate) struct SqlStatement {
    sql: String,
    /// The values of the placeholders, in their order.
    params: Json,
}

#[derive(Default)]
pub(crate) struct Reads;

#[Object]
impl Reads {
    /// The cubes that the caller may see.
    async fn cubes(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Only cubes with these names.")] names: Option<Vec<String>>,
    ) -> Result<Vec<Cube>> {
        let access = state(context).parts.access();
        let is_named = |name: &str| names.as_ref().is_none_or(|names| names.iter().any(|known| known == name));
        let cubes = metadata::cubes(&access).filter(|cube| is_named(&cube.name));
        let selected = context.look_ahead();
        Ok(cubes.map(|cube| Cube::new(&access, cube, &selected)).collect())
    }

    /// One cube; null if the caller may see none of this name.
    async fn cube(&self, context: &Context<'_>, name: String) -> Result<Option<Cube>> {
        let access = state(context).parts.access();
        let cube = metadata::cube(&access, &name);
        Ok(cube.map(|cube| Cube::new(&access, cube, &context.look_ahead())))
    }

    /// The metrics that the caller may see.
    async fn metrics(&self, context: &Context<'_>) -> Result<Vec<Metric>> {
        let access = state(context).parts.access();
        Ok(metadata::metrics(&access).map(|metric| Metric::new(&access, metric)).collect())
    }

    /// The columns, members and policies that a node is made of, or that are made of it.
    async fn lineage(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "A measure, such as `orders.revenue`.")] measure: Option<String>,
        #[graphql(desc = "A column, such as `source.raw.orders.column.amount`.")] column: Option<String>,
        #[graphql(desc = "The id of any node.")] node: Option<String>,
        #[graphql(default_with = "Some(LineageDirection::Upstream)")] direction: Option<LineageDirection>,
        #[graphql(desc = "The most edges from the start.")] depth: Option<u32>,
    ) -> Result<LineageResult> {
        let start = Start { measure, column, node };
        let direction = direction.unwrap_or(LineageDirection::Upstream);
        Ok(lineage::walk(&state(context).parts, start, direction, depth).await?)
    }

    /// All that a change of a column affects.
    async fn impact(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "A column, such as `source.raw.orders.column.amount`.")] column: String,
    ) -> Result<LineageResult> {
        let start = Start { column: Some(column), ..Start::default() };
        Ok(lineage::walk(&state(context).parts, start, LineageDirection::Downstream, None).await?)
    }

    /// One of the caller's own jobs.
    async fn job(&self, context: &Context<'_>, id: ID) -> Result<Option<Job>> {
        let parts = &state(context).parts;
        let job = parts.server()?.jobs.job(&parts.context.identity(), &id).await;
        let job = job.map_err(|error| Failure::from(ErrorBody::from_job(error, parts.context.request.scopes)))?;
        Ok(Some(Job::from(&job)))
    }

    /// The pre-aggregations whose cubes and members the caller may see.
    async fn pre_aggregations(&self, context: &Context<'_>) -> Result<Vec<PreAggregation>> {
        let parts = &state(context).parts;
        let request = &parts.context.request;
        let found = parts.server()?.preaggregations.status(request).await;
        let found = found.map_err(|error| Failure::from(ErrorBody::from_store(&error)))?;
        let audience = Audience::of(request.scopes);
        Ok(found.iter().map(|status| PreaggregationStatus::new(status, audience).into()).collect())
    }
}

question_field! {
    [async_graphql::Object]
    /// Runs a query.
    RowsField.query() -> QueryResult = rows
}

question_field! {
    [async_graphql::Object]
    /// The SQL of a query. Nothing is executed.
    SqlField.sql(inline: Option<bool>) -> SqlStatement = statement
}

question_field! {
    [async_graphql::Object]
    /// The reasons why a query becomes the SQL that it becomes, as `POST /api/v1/query/explain` sends them.
    ExplainField.explain() -> Json = explanation
}

/// Runs a query.
async fn rows(state: &RequestState, question: Question) -> Result<QueryResult, Failure> {
    let cube = question.cube.clone();
    let answer = state.run(question.into_query()?).await?;
    Ok(QueryResult::new(answer, Arc::clone(&state.parts), cube))
}

/// Returns the statement of a query; `inline`: one runnable text with its values.
async fn statement(state: &RequestState, question: Question, inline: Option<bool>) -> Result<SqlStatement, Failure> {
    let (parts, query) = (&state.parts, question.into_query()?);
    let request = parts.statement_request(QueryKind::Sql);
    let session = parts.services.queries.session_over(&request, Arc::clone(&parts.snapshot), parts.now);
    let refused = |error| parts.failure(error);
    let prepared = session.prepare(&query).await.map_err(refused)?;
    if inline == Some(true) {
        let sql = prepared.inline_sql().await.map_err(refused)?;
        return Ok(SqlStatement { sql, params: Json::list(bytes::Bytes::new()) });
    }
    let sql = prepared.sql().await.map_err(refused)?;
    let mut params = Vec::new();
    for (index, value) in sql.params.iter().enumerate() {
        if index > 0 {
            params.push(b',');
        }
        write_value(value, &mut params);
    }
    Ok(SqlStatement { sql: sql.text, params: Json::list(params.into()) })
}

async fn explanation(state: &RequestState, question: Question) -> Result<Json, Failure> {
    let (parts, query) = (&state.parts, question.into_query()?);
    let request = parts.statement_request(QueryKind::Explain);
    let session = parts.services.queries.session_over(&request, Arc::clone(&parts.snapshot), parts.now);
    let explained = session.explain(&query).await.map_err(|error| parts.failure(error))?;
    // Names, texts and numbers always serialise.
    Ok(Json::text(serde_json::to_vec(&Explanation::from(&explained)).unwrap_or_default()))
}
