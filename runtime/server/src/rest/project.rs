//! The project: load it, compile it, and the graph of what depends on what.

use axum::response::Response;
use serde_json::Value as Json;
use terrane_app::projects::{ProjectError, Referrer};
use terrane_app::security::access;
use terrane_compiler::Access as Visible;

use crate::app::{App, Scope};
use crate::call::{Call, deny};
use crate::edge::json_response;
use crate::error::{ApiError, Code};
use crate::openapi::{Answer, Doc, Parameter, ParameterKind};
use crate::routes::{Access, Routes};
use crate::wire::project::{
    compile_from_wire, compiled_to_wire, graph_to_wire, load_from_wire, loaded_to_wire, path_from_parameters,
    problems_to_wire,
};

const WRITE: Access = Access::Scoped(Scope::Write);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .post("/api/v1/unified/load", WRITE, &LOAD, load)
        .post("/api/v1/unified/compile", WRITE, &COMPILE, compile)
        .get("/api/v1/unified/graph", Access::Scoped(Scope::Read), &GRAPH, graph)
}

async fn load(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let request = load_from_wire(&call.json_body_or_none(&app).await?)?;
    app.ports.store.ping().await.map_err(|error| ApiError::from_store(&error))?;
    let loaded = app.ports.projects.load(&request, &context).await;
    let is_operator = context.scopes.hold(Scope::Admin);
    let loaded = loaded.map_err(|error| refusal(error, is_operator))?;
    Ok(answer(&loaded_to_wire(&loaded, is_operator)))
}

async fn compile(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let request = compile_from_wire(&call.json_body_or_none(&app).await?)?;
    app.ports.store.ping().await.map_err(|error| ApiError::from_store(&error))?;
    let compiled = app.ports.projects.compile(&request, &context).await;
    let is_operator = context.scopes.hold(Scope::Admin);
    let compiled = compiled.map_err(|error| refusal(error, is_operator))?;
    Ok(answer(&compiled_to_wire(&compiled, is_operator)))
}

async fn graph(app: App, call: Call) -> Result<Response, ApiError> {
    let path = path_from_parameters(call.query_string())?;
    let Some(path) = path else {
        let snapshot = app.ports.catalog.snapshot();
        return Ok(answer(&graph_to_wire(&snapshot.graph(&Visible::of(&snapshot.model, &call.context.caller)))));
    };
    if !call.scopes.hold(Scope::Write) {
        // Reading another project's files is loading it.
        deny(&app, &call.context, access::MISSING_SCOPE).await?;
        return Err(ApiError::missing_scope(Scope::Write));
    }
    let is_operator = call.scopes.hold(Scope::Admin);
    let snapshot = app.ports.projects.read(&path).await.map_err(|error| refusal(error, is_operator))?;
    Ok(answer(&graph_to_wire(&snapshot.graph(&Visible::of(&snapshot.model, &call.context.caller)))))
}

fn answer(body: &Json) -> Response {
    json_response(body.to_string().into_bytes())
}

fn refusal(error: ProjectError, is_operator: bool) -> ApiError {
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
                    let message = format!("{kind} `{name}` refers to unknown model `{}`", missing.missing_ref);
                    // The interface names whatever holds the reference `model`.
                    let refusal = ApiError::new(Code::ValidationError, message)
                        .detail("model", name)
                        .detail("missing_ref", missing.missing_ref);
                    match cube {
                        Some(cube) => refusal.detail("cube", cube),
                        None => refusal,
                    }
                }
                None => {
                    let errors = diagnostics.iter().filter(|told| told.is_error()).count();
                    ApiError::new(
                        Code::ValidationError,
                        match errors {
                            1 => "the project has 1 error".to_owned(),
                            _ => format!("the project has {errors} errors"),
                        },
                    )
                }
            };
            refusal.detail("problems", problems_to_wire(&diagnostics, is_operator))
        }
        ProjectError::Guarded => ApiError::missing_scope(Scope::Admin).detail("hint", message),
        ProjectError::Model { model, message, span, is_warehouse } => {
            let message = if is_warehouse && !is_operator {
                tracing::warn!(event = "model_refused", model, error_message = message);
                format!("model `{model}` failed to compile: the warehouse can't read it")
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
        ProjectError::Broken => ApiError::new(Code::InternalError, "the project could not be read; the log says why"),
    }
}

const TAG: &str = "project";

static LOAD: Doc = Doc {
    id: "load_project",
    tag: TAG,
    summary: "Read a project's files and serve it from now on",
    parameters: &[],
    body: Some("ProjectLoad"),
    answers: &[Answer {
        status: 200,
        description: "what it holds",
        content: &[("application/json", Some("ProjectLoadResult"))],
    }],
    refusals: &[
        Code::InvalidProjectPath,
        Code::ValidationError,
        Code::PluginFault,
        Code::StateUnavailable,
        Code::InternalError,
    ],
};

static COMPILE: Doc = Doc {
    id: "compile_project",
    tag: TAG,
    summary: "Compile a project's models and cubes, and serve it if none has an error",
    parameters: &[],
    body: Some("ProjectCompile"),
    answers: &[Answer {
        status: 200,
        description: "what became of each model and cube",
        content: &[("application/json", Some("CompileResult"))],
    }],
    refusals: &[
        Code::InvalidProjectPath,
        Code::ValidationError,
        Code::CompilationError,
        Code::PluginFault,
        Code::StateUnavailable,
        Code::InternalError,
    ],
};

static GRAPH: Doc = Doc {
    id: "project_graph",
    tag: TAG,
    summary: "What depends on what, and in which order it can be built",
    parameters: &[Parameter::query("project_path", ParameterKind::Text, "another project's folder; needs `write`")],
    body: None,
    answers: &[Answer {
        status: 200,
        description: "nodes, edges, and an order",
        content: &[("application/json", Some("DependencyGraph"))],
    }],
    refusals: &[
        Code::InvalidQuery,
        Code::InvalidProjectPath,
        Code::PluginFault,
        Code::StateUnavailable,
        Code::InternalError,
    ],
};
