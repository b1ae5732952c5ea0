//! The project: loading, compiling, and its dependency graph.

use axum::response::Response;
use terrane_app::projects::{ProjectError, Referrer};
use terrane_app::security::access;
use terrane_compiler::Access as Visible;
use terrane_wire::project::{
    CompileResult, Graph, ProjectCompile, ProjectLoad, ProjectLoadResult, compile_from_wire, load_from_wire,
    path_from_parameters, problems,
};
use terrane_wire::{Audience, Code, schema};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, deny, json_answer, to_json};
use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, RequestBody, ResponseDoc};

const WRITE: RouteAccess = RouteAccess::Scoped(Scope::Write);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .post("/api/v1/unified/load", WRITE, &LOAD, load)
        .post("/api/v1/unified/compile", WRITE, &COMPILE, compile)
        .get("/api/v1/unified/graph", RouteAccess::Scoped(Scope::Read), &GRAPH, graph)
}

async fn load(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let request = load_from_wire(&call.json_body_or_none(&app).await?)?;
    app.services.store.ping().await.map_err(|error| ApiError::from_store(&error))?;
    let loaded = app.services.projects.load(&request, &context).await;
    let audience = Audience::of(context.scopes);
    let loaded = loaded.map_err(|error| refusal(error, audience))?;
    Ok(json_answer(&ProjectLoadResult::new(&loaded, audience)))
}

async fn compile(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let request = compile_from_wire(&call.json_body_or_none(&app).await?)?;
    app.services.store.ping().await.map_err(|error| ApiError::from_store(&error))?;
    let compiled = app.services.projects.compile(&request, &context).await;
    let audience = Audience::of(context.scopes);
    let compiled = compiled.map_err(|error| refusal(error, audience))?;
    Ok(json_answer(&CompileResult::new(&compiled, audience)))
}

async fn graph(app: App, call: Call) -> Result<Response, ApiError> {
    let path = path_from_parameters(call.query_string())?;
    let Some(path) = path else {
        let snapshot = app.services.catalog.snapshot();
        let graph = snapshot.graph(&Visible::of(&snapshot.model, &call.context.caller));
        return Ok(json_answer(&Graph::from(&graph)));
    };
    if !call.scopes.hold(Scope::Write) {
        // The graph of another project requires the scope for loading, because its files are read.
        deny(&app, &call.context, access::MISSING_SCOPE).await?;
        return Err(ApiError::missing_scope(Scope::Write));
    }
    let audience = Audience::of(call.scopes);
    let snapshot = app.services.projects.read(&path).await.map_err(|error| refusal(error, audience))?;
    let graph = snapshot.graph(&Visible::of(&snapshot.model, &call.context.caller));
    Ok(json_answer(&Graph::from(&graph)))
}

fn refusal(error: ProjectError, audience: Audience) -> ApiError {
    let message = error.to_string();
    match error {
        ProjectError::NoProject(none) => {
            ApiError::new(Code::InvalidProjectPath, message).detail("project_path", none.path).detail("hint", none.hint)
        }
        ProjectError::Invalid { diagnostics, missing } => {
            let refusal = match missing {
                Some(missing) => {
                    let (kind, name, cube) = match missing.of {
                        Referrer::Model(name) => ("model", name, None),
                        Referrer::Cube(name) => ("cube", name.clone(), Some(name)),
                    };
                    let message = format!(
                        "{kind} `{name}` refers to unknown {} `{}`",
                        missing.kind.as_str(),
                        missing.missing_ref
                    );
                    // The interface defines that the detail `model` names the definition that contains the reference,
                    // even if this definition is a cube.
                    let refusal = ApiError::new(Code::ValidationError, message)
                        .detail("model", name)
                        .detail("missing_ref", missing.missing_ref);
                    match cube {
                        Some(cube) => refusal.detail("cube", cube),
                        None => refusal,
                    }
                }
                None => {
                    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
                    ApiError::new(
                        Code::ValidationError,
                        match errors {
                            1 => "the project has 1 error".to_owned(),
                            _ => format!("the project has {errors} errors"),
                        },
                    )
                }
            };
            refusal.detail("problems", to_json(&problems(&diagnostics, audience)))
        }
        ProjectError::Guarded => ApiError::missing_scope(Scope::Admin).detail("hint", message),
        ProjectError::Model { model, message, span, is_warehouse } => {
            let message = if is_warehouse && audience == Audience::Caller {
                tracing::warn!(event = "model_refused", model, error_message = message);
                format!("model `{model}` failed to compile: the warehouse rejects it")
            } else {
                format!("model `{model}` failed to compile: {message}")
            };
            let refusal = ApiError::new(Code::CompilationError, message).detail("model", model);
            match span {
                Some(span) => {
                    refusal.detail("file", &*span.file).detail("line", span.line).detail("column", span.column)
                }
                None => refusal.detail("line", 1).detail("column", 1),
            }
        }
        ProjectError::UnknownModel { name, nearest } => {
            ApiError::new(Code::ValidationError, message).detail("model", name).detail("available_models", nearest)
        }
        ProjectError::Plugin(error) => ApiError::from_plugin(&error),
        ProjectError::Store(error) => ApiError::from_store(&error),
        ProjectError::Broken => ApiError::new(Code::InternalError, "the project could not be read; see the server log"),
    }
}

const TAG: &str = "project";

static LOAD: Doc = Doc {
    id: "load_project",
    tag: TAG,
    summary: "Load the files of a project and serve the project",
    parameters: &[],
    body: Some(RequestBody::optional(schema::of::<ProjectLoad>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "the numbers of the project's definitions",
        content: &[Content::Json(schema::of::<ProjectLoadResult>())],
        compression: Compression::Accepted,
    }],
    errors: &[
        Code::InvalidProjectPath,
        Code::ValidationError,
        Code::PluginFault,
        Code::StateUnavailable,
        Code::InternalError,
    ],
    detail_errors: &[],
};

static COMPILE: Doc = Doc {
    id: "compile_project",
    tag: TAG,
    summary: "Compile the models and cubes of a project, and serve the project if none has an error",
    parameters: &[],
    body: Some(RequestBody::optional(schema::of::<ProjectCompile>())),
    answers: &[ResponseDoc {
        status: 200,
        description: "the result for each model and cube",
        content: &[Content::Json(schema::of::<CompileResult>())],
        compression: Compression::Accepted,
    }],
    errors: &[
        Code::InvalidProjectPath,
        Code::ValidationError,
        Code::CompilationError,
        Code::PluginFault,
        Code::StateUnavailable,
        Code::InternalError,
    ],
    detail_errors: &[],
};

static GRAPH: Doc = Doc {
    id: "project_graph",
    tag: TAG,
    summary: "Read the dependency graph of a project with a build order",
    parameters: &[Parameter::query(
        "project_path",
        ParameterKind::String,
        "the folder of another project, which needs `write`",
    )],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "nodes, edges, and a build order",
        content: &[Content::Json(schema::of::<Graph>())],
        compression: Compression::Accepted,
    }],
    errors: &[
        Code::InvalidQuery,
        Code::InvalidProjectPath,
        Code::PluginFault,
        Code::StateUnavailable,
        Code::InternalError,
    ],
    detail_errors: &[],
};
