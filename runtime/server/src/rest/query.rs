//! Queries: run one, show its SQL, or explain it.

use axum::response::Response;
use terrane_app::ports::governance::Surface;
use terrane_app::query::{QueryKind, RequestContext, log_unreadable};
use terrane_wire::answer::{QueryAnswer, Sql, sql_to_wire};
use terrane_wire::explanation::Explanation;
use terrane_wire::query::{self, Query, QueryRequest, SqlQuery};
use terrane_wire::rows::RowFormat;
use terrane_wire::{Code, schema};

use super::conditional::{ConditionalHeaders, UNCHANGED};
use super::{answer, format};
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer, json_response};
use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, RequestBody, ResponseDoc};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .post("/api/v1/query", READ, &RUN_BODY, run_body)
        .get("/api/v1/query", READ, &RUN_PARAMETERS, run_parameters)
        .post("/api/v1/query/sql", READ, &SHOW_SQL, show_sql)
        .post("/api/v1/query/explain", READ, &EXPLAIN, explain)
}

async fn run_body(app: App, call: Call) -> Result<Response, ApiError> {
    let (context, format) = (call.context.clone(), format::accepted(call.headers())?);
    let headers = ConditionalHeaders::of(call.headers());
    let request = read_body(&app, call, query::from_wire).await?;
    run(&app, context, &request, format, &headers).await
}

async fn run_parameters(app: App, call: Call) -> Result<Response, ApiError> {
    let format = format::accepted(call.headers())?;
    let headers = ConditionalHeaders::of(call.headers());
    let request = query::from_parameters(call.query_string()).map_err(|error| unreadable(error.into()))?;
    run(&app, call.context, &request, format, &headers).await
}

/// Reads a body and the query in it. A query that cannot be read is logged as failed.
async fn read_body<Q, E: Into<ApiError>>(
    app: &App,
    call: Call,
    from_wire: impl FnOnce(&[u8]) -> Result<Q, E>,
) -> Result<Q, ApiError> {
    let body = call.json_body(app).await.map_err(unreadable)?;
    from_wire(&body).map_err(|error| unreadable(error.into()))
}

fn unreadable(error: ApiError) -> ApiError {
    log_unreadable(error.message());
    error
}

async fn run(
    app: &App,
    context: RequestContext,
    request: &QueryRequest,
    format: RowFormat,
    headers: &ConditionalHeaders,
) -> Result<Response, ApiError> {
    let kind = match format {
        RowFormat::Json => QueryKind::Rest,
        RowFormat::Csv | RowFormat::Arrow => QueryKind::Export,
    };
    let context = RequestContext { kind, ..context };
    let session = app.services.queries.session(&context);
    let cache = headers.cache_control(request.cache);
    let opened = async { session.prepare(&request.query).await?.with_cache(cache).open().await }.await;
    let opened = opened.map_err(|error| ApiError::from_run(error, context.scopes))?;
    answer::respond(opened, request, format, headers).await
}

async fn show_sql(app: App, call: Call) -> Result<Response, ApiError> {
    let context = RequestContext { surface: Surface::SqlOnly, kind: QueryKind::Sql, ..call.context.clone() };
    let refused = |error| ApiError::from_run(error, context.scopes);
    let request = read_body(&app, call, query::from_wire_for_sql).await?;
    let session = app.services.queries.session(&context);
    let prepared = session.prepare(&request.query).await.map_err(refused)?;
    if request.inline {
        let sql = prepared.inline_sql().await.map_err(refused)?;
        return Ok(json_response(sql_to_wire(&sql, &[])));
    }
    let sql = prepared.sql().await.map_err(refused)?;
    Ok(json_response(sql_to_wire(&sql.text, &sql.params)))
}

async fn explain(app: App, call: Call) -> Result<Response, ApiError> {
    let context = RequestContext { surface: Surface::SqlOnly, kind: QueryKind::Explain, ..call.context.clone() };
    let refused = |error| ApiError::from_run(error, context.scopes);
    let QueryRequest { query, .. } = read_body(&app, call, query::from_wire).await?;
    let session = app.services.queries.session(&context);
    let explained = session.explain(&query).await.map_err(refused)?;
    Ok(json_answer(&Explanation::from(&explained)))
}

const TAG: &str = "query";
const CACHE_CONTROL: Parameter =
    Parameter::header("Cache-Control", ParameterKind::String, "`no-cache` or `no-store` to compute the rows now");
const ROWS: &[ResponseDoc] = &[
    ResponseDoc {
        status: 200,
        description: "the rows; with CSV and Arrow, the headers `x-terrane-*` contain the values of `meta` in JSON",
        content: &[
            Content::Json(schema::of::<QueryAnswer>()),
            Content::Text("text/csv"),
            Content::Binary("application/vnd.apache.arrow.stream"),
        ],
        compression: Compression::Accepted,
    },
    UNCHANGED,
];
const OF_QUERIES: &[Code] = &[
    Code::InvalidQuery,
    Code::InvalidMeasure,
    Code::InvalidDimension,
    Code::InvalidFilter,
    Code::NoJoinPath,
    Code::UnsupportedMediaType,
];
const OF_RUNS: &[Code] = &[
    Code::InvalidQuery,
    Code::InvalidMeasure,
    Code::InvalidDimension,
    Code::InvalidFilter,
    Code::NoJoinPath,
    Code::UnsupportedMediaType,
    Code::GuardrailExceeded,
    Code::QueryTimeout,
    Code::WarehouseError,
    Code::WarehouseUnavailable,
];

static RUN_BODY: Doc = Doc {
    id: "query",
    tag: TAG,
    summary: "Run a query",
    parameters: &[CACHE_CONTROL],
    body: Some(RequestBody::required(schema::of::<Query>())),
    answers: ROWS,
    errors: OF_RUNS,
    detail_errors: &[],
};

static RUN_PARAMETERS: Doc = Doc {
    id: "query_by_address",
    tag: TAG,
    summary: "Run a query from the parameters of the URL",
    parameters: &[
        Parameter::query("query", ParameterKind::String, "the whole query as JSON, instead of all other parameters"),
        Parameter::query("metrics", ParameterKind::Members, "metrics and measures"),
        Parameter::query("measures", ParameterKind::Members, "an alias of `metrics`"),
        Parameter::query("dimensions", ParameterKind::Members, "the dimensions to group by"),
        Parameter::query("segments", ParameterKind::Members, "named filters"),
        Parameter::query("limit", ParameterKind::Integer(0), "the maximum number of rows"),
        Parameter::query("offset", ParameterKind::Integer(0), "the number of rows to skip"),
        Parameter::query(
            "time_range",
            ParameterKind::String,
            "the range of time: a period such as `last 7 days` or `2024-Q3`, or the JSON value of the body",
        ),
        Parameter::query(
            "compare_range",
            ParameterKind::String,
            "the range to compare with: a period such as `2023`, or the JSON value of the body",
        ),
        Parameter::query("fill_gaps", ParameterKind::Boolean, "true to add a row for each step of time without data"),
        Parameter::query("ungrouped", ParameterKind::Boolean, "true to return the rows of one cube without grouping"),
        Parameter::query("cube", ParameterKind::String, "the cube of members that are written without a cube"),
        Parameter::query("timezone", ParameterKind::String, "a time zone of the IANA database"),
        Parameter::query("total", ParameterKind::Boolean, "false to skip the computation of `meta.total_rows`"),
        Parameter::query(
            "totals",
            ParameterKind::Boolean,
            "true to add each measure without dimensions as `meta.totals`",
        ),
        Parameter::query("cache", ParameterKind::Boolean, "false to compute the rows now"),
        Parameter::query("max_age", ParameterKind::Integer(0), "the maximum age of cached rows in seconds"),
        Parameter::query(
            "stale",
            ParameterKind::Integer(0),
            "the number of seconds for which outdated rows are accepted; 0 for never",
        ),
        Parameter::query(
            "pre_aggregations",
            ParameterKind::String,
            "the use of pre-aggregations: `off`, `auto` or `only`",
        ),
        CACHE_CONTROL,
    ],
    body: None,
    answers: ROWS,
    errors: OF_RUNS,
    detail_errors: &[],
};

static SHOW_SQL: Doc = Doc {
    id: "query_sql",
    tag: TAG,
    summary: "Compile a query to SQL without executing it",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<SqlQuery>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "the statement and its values, or with `inline: true` one statement that contains them",
        content: &[Content::Json(schema::of::<Sql>())],
        compression: Compression::Accepted,
    }],
    errors: OF_QUERIES,
    detail_errors: &[],
};

static EXPLAIN: Doc = Doc {
    id: "query_explain",
    tag: TAG,
    summary: "Explain how a query is compiled to SQL",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<Query>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "members, joins with their reasons, policies, plan and statement; for `admin`, also the plan of the warehouse",
        content: &[Content::Json(schema::of::<Explanation>())],
        compression: Compression::Accepted,
    }],
    errors: OF_RUNS,
    detail_errors: &[],
};
