//! The root of queries.
//!
//! In: the state of a request. Out: the model, rows, statements, lineage, search, jobs and pre-aggregations,
//! and the fields of modules. Each field calls the use case of its REST route.

use std::sync::Arc;

use async_graphql::{Context, ID, MergedObject, Object, Result, SimpleObject};
use terrane_app::governance::Badges;
use terrane_app::metadata;
use terrane_app::query::QueryKind;
use terrane_app::questions::WordedQuestion;
use terrane_compiler::{Access, model};
use terrane_wire::Audience;
use terrane_wire::ErrorBody;
use terrane_wire::explanation::Explanation;
use terrane_wire::json::write_value;
use terrane_wire::preaggregations::PreaggregationStatus;

use super::anomaly_fields::AnomalyFields;
use super::ask::{self, AskMethod, QuestionReading};
use super::cost_fields::{CheckGuardrailsField, CostFields, PredictCostField};
use super::cube::{Cube, Metric, selects_badges};
use super::governance_fields::GovernanceFields;
use super::inputs::Question;
use super::job::Job;
use super::json::Json;
use super::lineage::{self, LineageResult, Start};
use super::modules::has_search;
use super::preaggregation::PreAggregation;
use super::profile_fields::ProfileFields;
use super::question::question_field;
use super::request::{RequestState, state};
use super::result::QueryResult;
use super::search::{self, SearchFilter, SearchResult};
use crate::enums::{CertificationStatus, LineageDirection, SearchType};
use crate::failure::Failure;

/// Reads.
#[derive(Default, MergedObject)]
pub(crate) struct Query(
    Reads,
    RowsField,
    SqlField,
    ExplainField,
    GovernanceFields,
    ProfileFields,
    CostFields,
    PredictCostField,
    CheckGuardrailsField,
    AnomalyFields,
);

/// The SQL of a query, and the values of its parameters.
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
        let state = state(context);
        let badges = badges(context, state).await;
        let access = state.parts.access();
        state.count_items(names.as_ref().map_or(0, |names| names.len() as u64))?;
        let found: Vec<_> = match &names {
            Some(names) => cubes_named(&access, names),
            None => metadata::cubes(&access).collect(),
        };
        let selected = context.look_ahead();
        let cubes: Vec<Cube> = found.into_iter().map(|cube| Cube::new(&access, &badges, cube, &selected)).collect();
        state.count(context, cubes.len(), &|list| super::cube::items(&cubes, list))?;
        Ok(cubes)
    }

    /// One cube; null if the caller may see none of this name.
    async fn cube(&self, context: &Context<'_>, name: String) -> Result<Option<Cube>> {
        let state = state(context);
        let badges = badges(context, state).await;
        let access = state.parts.access();
        state.count_items(0)?;
        let cube = metadata::cube(&access, &name).map(|cube| Cube::new(&access, &badges, cube, &context.look_ahead()));
        state.count(context, cube.iter().len(), &|list| super::cube::items(cube.as_slice(), list))?;
        Ok(cube)
    }

    /// The metrics that the caller may see.
    async fn metrics(&self, context: &Context<'_>) -> Result<Vec<Metric>> {
        let state = state(context);
        let badges = badges(context, state).await;
        let access = state.parts.access();
        state.count_items(0)?;
        let metrics: Vec<Metric> =
            metadata::metrics(&access).map(|metric| Metric::new(&access, &badges, metric)).collect();
        let cubes = metrics.iter().map(Metric::cube_count).sum();
        state.count(context, metrics.len(), &|list| (list == "cubes").then_some(cubes))?;
        Ok(metrics)
    }

    /// The columns, members and policies that a node is made of, or that are made of it.
    async fn lineage(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "A measure, such as `orders.revenue`.")] measure: Option<String>,
        #[graphql(desc = "A column, such as `source.raw.orders.column.amount`.")] column: Option<String>,
        #[graphql(desc = "The id of any node.")] node: Option<String>,
        #[graphql(default_with = "Some(LineageDirection::Upstream)")] direction: Option<LineageDirection>,
        #[graphql(desc = "The maximum number of edges from the start.")] depth: Option<i64>,
    ) -> Result<LineageResult> {
        let start = Start { measure, column, node };
        let direction = direction.unwrap_or(LineageDirection::Upstream);
        Ok(lineage::walk(context, start, direction, depth).await?)
    }

    /// All that a change of a column affects.
    async fn impact(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "A column, such as `source.raw.orders.column.amount`.")] column: String,
    ) -> Result<LineageResult> {
        let start = Start { column: Some(column), ..Start::default() };
        Ok(lineage::walk(context, start, LineageDirection::Downstream, None).await?)
    }

    /// The cubes, members, metrics and values of dimensions that words find, best first.
    #[graphql(visible = "has_search")]
    #[expect(clippy::too_many_arguments, reason = "the arguments of the field")]
    async fn search(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Words to find in names, titles, synonyms, tags, owners, units, descriptions and values.")]
        query: String,
        #[graphql(desc = "Only results of these types.")] types: Option<Vec<SearchType>>,
        #[graphql(desc = "Only this cube, its members and their values, and metrics that are computed from it.")]
        cube: Option<String>,
        #[graphql(desc = "Only artifacts with all of these tags.")] tags: Option<Vec<String>>,
        #[graphql(desc = "Only artifacts with this state of certification.")] certification_status: Option<
            CertificationStatus,
        >,
        #[graphql(desc = "The maximum number of results, 1 to 100. Default: 20.")] limit: Option<i64>,
    ) -> Result<Vec<SearchResult>> {
        let filter = SearchFilter { types, cube, tags, status: certification_status };
        Ok(search::search(context, query, filter, limit).await?)
    }

    /// Suggestions for what a user types, best first.
    #[graphql(visible = "has_search")]
    #[expect(clippy::too_many_arguments, reason = "the arguments of the field")]
    async fn autocomplete(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "The text so far; the last word may be incomplete.")] query: String,
        #[graphql(desc = "Only members that a query of this cube can use.")] cube: Option<String>,
        #[graphql(desc = "Only suggestions of these types.")] types: Option<Vec<SearchType>>,
        #[graphql(desc = "Only artifacts with all of these tags.")] tags: Option<Vec<String>>,
        #[graphql(desc = "Only artifacts with this state of certification.")] certification_status: Option<
            CertificationStatus,
        >,
        #[graphql(desc = "The maximum number of suggestions, 1 to 100. Default: 10.")] limit: Option<i64>,
    ) -> Result<Vec<SearchResult>> {
        let filter = SearchFilter { types, cube, tags, status: certification_status };
        Ok(search::suggestions(context, query, filter, limit).await?)
    }

    /// Reads a question in words as a query.
    #[graphql(visible = "has_search")]
    async fn ask(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "The question, at most 500 characters.")] question: String,
        #[graphql(desc = "`en` or `de`. Default: `en`.")] language: Option<String>,
        #[graphql(desc = "The reader of the question.", default_with = "AskMethod::Auto")] method: AskMethod,
        #[graphql(desc = "True to run the query and to add its rows.", default)] run: bool,
    ) -> Result<QuestionReading> {
        let asked = WordedQuestion { text: question, language, method: method.into(), runs: run };
        Ok(ask::ask(context, asked).await?)
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
        let state = state(context);
        let (parts, request) = (&state.parts, &state.parts.context.request);
        state.count_items(0)?;
        let found = parts.server()?.preaggregations.status(request).await;
        let found = found.map_err(|error| Failure::from(ErrorBody::from_store(&error)))?;
        let audience = Audience::of(request.scopes);
        let found: Vec<PreAggregation> =
            found.iter().map(|status| PreaggregationStatus::new(status, audience).into()).collect();
        let partitions = found.iter().map(PreAggregation::partition_count).sum();
        state.count(context, found.len(), &|list| (list == "partitions").then_some(partitions))?;
        Ok(found)
    }
}

/// Returns certifications and descriptions, or nothing if the document selects neither.
async fn badges(context: &Context<'_>, state: &RequestState) -> Badges {
    match selects_badges(&context.look_ahead()) {
        true => state.parts.badges().await,
        false => Badges::default(),
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

/// Returns those of the named cubes that the caller may see, each once and in the order of the project.
fn cubes_named<'m>(access: &Access<'m>, names: &[String]) -> Vec<&'m model::Cube> {
    let mut cubes: Vec<_> = names.iter().filter_map(|name| metadata::cube(access, name)).collect();
    cubes.sort_unstable_by_key(|cube| cube.id.0);
    cubes.dedup_by_key(|cube| cube.id);
    cubes
}

/// Runs a query.
async fn rows(state: &RequestState, question: Question) -> Result<QueryResult, Failure> {
    let cube = question.cube.clone();
    let (answer, is_repeated) = state.run(question.into_query()?).await?;
    Ok(QueryResult::new(answer, Arc::clone(&state.parts), cube, is_repeated))
}

/// Returns the statement of a query. If `inline` is true, the SQL contains the values as literals.
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
    // Serialization cannot fail, because the value contains only strings and numbers.
    Ok(Json::text(serde_json::to_vec(&Explanation::from(&explained)).unwrap_or_default()))
}
