//! The routes of lineage: the columns that measures are computed from, and the impact of a change of a column.

use axum::response::Response;
use terrane_app::lineage::find;
use terrane_compiler::Access as Visible;
use terrane_lineage::Sight;
use terrane_wire::lineage::{self, LineageImpact, column_from_wire};
use terrane_wire::{Code, ErrorBody, schema};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, RequestBody, ResponseDoc};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/api/v1/lineage/graph", READ, &GRAPH, graph)
        .get("/api/v1/lineage/measure/{cube}/{measure}", READ, &MEASURE, measure)
        .post("/api/v1/lineage/impact", READ, &IMPACT, impact)
}

async fn graph(app: App, call: Call) -> Result<Response, ApiError> {
    let snapshot = app.services.catalog.snapshot();
    let lineage = snapshot.lineage(&*app.services.warehouse).await;
    let sight = Sight::of(lineage, &Visible::of(&snapshot.model, &call.context.caller));
    Ok(json_answer(&lineage::graph(lineage, &sight)))
}

async fn measure(app: App, mut call: Call) -> Result<Response, ApiError> {
    let (cube, measure) = call.path_parameters().await?;
    let snapshot = app.services.catalog.snapshot();
    let lineage = snapshot.lineage(&*app.services.warehouse).await;
    let sight = Sight::of(lineage, &Visible::of(&snapshot.model, &call.context.caller));
    let start = find(lineage, &sight, &format!("measure.{cube}.{measure}")).map_err(ErrorBody::from)?;
    Ok(json_answer(&lineage::upstream(lineage, start, &sight)))
}

async fn impact(app: App, call: Call) -> Result<Response, ApiError> {
    let caller = call.context.caller.clone();
    let id = column_from_wire(&call.json_body(&app).await?)?;
    let snapshot = app.services.catalog.snapshot();
    let lineage = snapshot.lineage(&*app.services.warehouse).await;
    let sight = Sight::of(lineage, &Visible::of(&snapshot.model, &caller));
    let start = find(lineage, &sight, &id).map_err(ErrorBody::from)?;
    Ok(json_answer(&lineage::impact(lineage, start, &sight)))
}

const TAG: &str = "lineage";

static GRAPH: Doc = Doc::simple(
    "lineage_graph",
    TAG,
    "Read the lineage graph of columns, members, metrics and policies",
    &[ResponseDoc {
        status: 200,
        description: "nodes, and edges from each input to its dependents",
        content: &[Content::Json(schema::of::<lineage::LineageGraph>())],
        compression: Compression::Accepted,
    }],
);

static MEASURE: Doc = Doc {
    id: "lineage_of_measure",
    tag: TAG,
    summary: "List the inputs of a measure, down to columns",
    parameters: &[Parameter::path("cube", "a cube's name"), Parameter::path("measure", "a measure's name")],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "all nodes upstream of the measure",
        content: &[Content::Json(schema::of::<lineage::Upstream>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

static IMPACT: Doc = Doc {
    id: "lineage_impact",
    tag: TAG,
    summary: "List the dependents of a column",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<LineageImpact>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "all nodes downstream of the column, and the affected nodes by type",
        content: &[Content::Json(schema::of::<lineage::Impact>())],
        compression: Compression::Accepted,
    }],
    errors: &[Code::NotFound],
    detail_errors: &[],
};
