//! Projects: requests to load and compile, their results, and the dependency graph.
//!
//! In: bodies; results of the use cases. Out: requests; results for one [`Audience`]. Problems are listed twice: as
//! strings in `errors` and `warnings`, and as objects in `problems`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value as Json, json};
use terrane_app::builds::{ModelBuild, ModelOutcome};
use terrane_app::ports::builder::BuildError;
use terrane_app::projects::{CompileRequest, Compiled, LoadRequest, Loaded};
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::diagnostic::{self, Diagnostic};
use terrane_lineage::graph::DependencyGraph;

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};
use crate::schema;

/// The recipient of a result. Text of the warehouse is disclosed to operators only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    Operator,
    Caller,
}

impl Audience {
    pub fn of(scopes: Scopes) -> Self {
        if scopes.hold(Scope::Admin) { Audience::Operator } else { Audience::Caller }
    }

    /// Returns the value for operators, and `None` for other callers.
    pub(crate) fn see<T>(self, value: T) -> Option<T> {
        (self == Audience::Operator).then_some(value)
    }
}

/// The project to load.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProjectLoad {
    /// The folder of the project, relative to the one that is served.
    pub project_path: Option<String>,
    pub strict: Option<bool>,
}

/// The project to compile.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProjectCompile {
    /// The folder of the project, relative to the one that is served.
    pub project_path: Option<String>,
    pub models: Option<Vec<String>>,
    pub full: Option<bool>,
    /// True to build the models in the warehouse.
    pub build: Option<bool>,
}

pub(crate) const LOAD: &[&str] = &["project_path", "strict"];
pub(crate) const COMPILE: &[&str] = &["project_path", "models", "full", "build"];
const FOLDER: &str = "the path of a project's folder";
/// The largest number of problems in an answer.
const MAX_PROBLEMS: usize = 1_000;

/// Reads `{project_path?, strict?}`; an empty body is an empty object.
///
/// # Errors
/// Names the field that is invalid.
pub fn load_from_wire(body: &[u8]) -> Result<LoadRequest, FieldError> {
    let json = parse_or_empty(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", LOAD)?;
    Ok(LoadRequest {
        path: fields.string("project_path", FOLDER)?.map(str::to_owned),
        is_strict: fields.boolean("strict")?.unwrap_or(true),
        trusts_types: false,
    })
}

/// Reads `{project_path?, models?, full?, build?}`; an empty body is an empty object.
///
/// # Errors
/// Names the field that is invalid.
pub fn compile_from_wire(body: &[u8]) -> Result<CompileRequest, FieldError> {
    let json = parse_or_empty(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", COMPILE)?;
    let models = fields.list("models", "a list of models' names", |item, path| match item {
        Json::String(name) => Ok(name.clone()),
        other => Err(path.invalid_type(other, "a model's name")),
    })?;
    Ok(CompileRequest {
        path: fields.string("project_path", FOLDER)?.map(str::to_owned),
        models: fields.get("models").map(|_| models),
        is_full: fields.boolean("full")?.unwrap_or(false),
        builds_models: fields.boolean("build")?.unwrap_or(false),
    })
}

fn parse_or_empty(body: &[u8]) -> Result<Json, FieldError> {
    if body.trim_ascii().is_empty() { Ok(json!({})) } else { parse(body) }
}

/// Reads `project_path`.
///
/// # Errors
/// Names a parameter that is unknown.
pub fn path_from_parameters(query: &str) -> Result<Option<String>, FieldError> {
    let mut found = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "project_path" => found = Some(value.into_owned()),
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, &["project_path"])),
        }
    }
    Ok(found)
}

/// The contents of a loaded project.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProjectLoadResult<'a> {
    success: bool,
    project_name: &'a str,
    source_count: usize,
    model_count: usize,
    cube_count: usize,
    metric_count: usize,
    graph_nodes: usize,
    graph_edges: usize,
    errors: Vec<String>,
    warnings: Vec<String>,
    problems: Vec<Problem>,
    load_time_ms: f64,
}

impl<'a> ProjectLoadResult<'a> {
    pub fn new(loaded: &'a Loaded, audience: Audience) -> Self {
        let (errors, warnings) = strings(&loaded.diagnostics, audience);
        ProjectLoadResult {
            success: errors.is_empty(),
            project_name: &loaded.project,
            source_count: loaded.sources,
            model_count: loaded.models,
            cube_count: loaded.cubes,
            metric_count: loaded.metrics,
            graph_nodes: loaded.graph_nodes,
            graph_edges: loaded.graph_edges,
            errors,
            warnings,
            problems: problems(&loaded.diagnostics, audience),
            load_time_ms: loaded.elapsed.as_secs_f64() * 1e3,
        }
    }
}

/// The result of a compilation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CompileResult<'a> {
    success: bool,
    models: Vec<ModelResult<'a>>,
    cubes: Vec<CubeResult<'a>>,
    model_count: usize,
    cube_count: usize,
    metric_count: usize,
    errors: Vec<String>,
    warnings: Vec<String>,
    problems: Vec<Problem>,
    compile_time_ms: f64,
}

/// A compiled model.
#[derive(Debug, Serialize, JsonSchema)]
struct ModelResult<'a> {
    name: &'a str,
    unique_id: String,
    compiled_sql: &'a str,
    success: bool,
    errors: Vec<String>,
    warnings: Vec<String>,
    compile_time_ms: f64,
    build: Option<BuildResult<'a>>,
}

/// A compiled cube.
#[derive(Debug, Serialize, JsonSchema)]
struct CubeResult<'a> {
    name: &'a str,
    cube_id: String,
    measure_count: usize,
    dimension_count: usize,
    success: bool,
    errors: Vec<String>,
}

/// The build of a model in the warehouse.
#[derive(Debug, Serialize, JsonSchema)]
struct BuildResult<'a> {
    status: BuildStatus,
    #[schemars(schema_with = "materializations")]
    materialization: &'static str,
    relation: Option<&'a str>,
    rows: Option<u64>,
    build_time_ms: f64,
}

fn materializations(_: &mut SchemaGenerator) -> Schema {
    schema::words(&["view", "table", "ephemeral"])
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BuildStatus {
    Built,
    Inlined,
    Failed,
    Skipped,
}

impl<'a> CompileResult<'a> {
    pub fn new(compiled: &'a Compiled, audience: Audience) -> Self {
        let (mut errors, warnings) = strings(&compiled.diagnostics, audience);
        let builds = compiled.models.iter().filter_map(|model| model.build.as_ref());
        errors
            .extend(builds.filter_map(|build| Some(format!("model `{}`: {}", build.model, failure(build, audience)?))));
        let id = |kind: &str, name: &str| format!("{kind}.{}.{name}", compiled.project);
        let models = compiled.models.iter().map(|model| ModelResult {
            name: &model.name,
            unique_id: id("model", &model.name),
            compiled_sql: &model.sql,
            success: model.build.as_ref().is_none_or(ModelBuild::is_in_order),
            errors: model.build.as_ref().and_then(|build| failure(build, audience)).into_iter().collect(),
            warnings: strings(&model.warnings, audience).1,
            compile_time_ms: model.elapsed.as_secs_f64() * 1e3,
            build: model.build.as_ref().map(BuildResult::from),
        });
        let cubes = compiled.cubes.iter().map(|cube| CubeResult {
            name: &cube.name,
            cube_id: id("cube", &cube.name),
            measure_count: cube.measures,
            dimension_count: cube.dimensions,
            success: cube.errors.is_empty(),
            errors: strings(&cube.errors, audience).0,
        });
        CompileResult {
            success: compiled.is_whole() && compiled.is_built(),
            models: models.collect(),
            cubes: cubes.collect(),
            model_count: compiled.models.len(),
            cube_count: compiled.cubes.len(),
            metric_count: compiled.metrics,
            errors,
            warnings,
            problems: problems(&compiled.diagnostics, audience),
            compile_time_ms: compiled.elapsed.as_secs_f64() * 1e3,
        }
    }
}

impl<'a> From<&'a ModelBuild> for BuildResult<'a> {
    fn from(build: &'a ModelBuild) -> Self {
        let (status, rows) = match &build.outcome {
            ModelOutcome::Built { rows } => (BuildStatus::Built, *rows),
            ModelOutcome::Inlined => (BuildStatus::Inlined, None),
            ModelOutcome::Failed(_) => (BuildStatus::Failed, None),
            ModelOutcome::Skipped { .. } => (BuildStatus::Skipped, None),
        };
        BuildResult {
            status,
            materialization: build.materialization.as_str(),
            relation: build.relation.as_deref(),
            rows,
            build_time_ms: build.elapsed.as_secs_f64() * 1e3,
        }
    }
}

/// Returns the reason why a model was not built.
fn failure(build: &ModelBuild, audience: Audience) -> Option<String> {
    match &build.outcome {
        ModelOutcome::Built { .. } | ModelOutcome::Inlined => None,
        ModelOutcome::Skipped { because_of } => Some(format!("skipped, since `{because_of}` failed")),
        ModelOutcome::Failed(BuildError::Warehouse(error)) if audience == Audience::Caller => {
            tracing::warn!(event = "model_refused", model = &*build.model, error_message = %error);
            Some("the warehouse did not build it".to_owned())
        }
        ModelOutcome::Failed(error) => Some(match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        }),
    }
}

/// Returns the errors and the warnings, with one string for each diagnostic.
fn strings(diagnostics: &[Diagnostic], audience: Audience) -> (Vec<String>, Vec<String>) {
    let text = |diagnostic: &Diagnostic| {
        let message = message(diagnostic, audience);
        let placed = diagnostic.span.as_ref().map_or_else(|| message.to_string(), |span| format!("{span}: {message}"));
        match hint(diagnostic, audience) {
            Some(hint) => format!("{placed}; {hint}"),
            None => placed,
        }
    };
    let of = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).map(text).collect();
    (of(diagnostic::Severity::Error), of(diagnostic::Severity::Warning))
}

/// A problem of a project, with its place.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Problem {
    code: &'static str,
    severity: ProblemSeverity,
    message: String,
    hint: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    length: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ProblemSeverity {
    Error,
    Warning,
}

/// Returns at most 1,000 problems.
pub fn problems(diagnostics: &[Diagnostic], audience: Audience) -> Vec<Problem> {
    let problem = |diagnostic: &Diagnostic| {
        let span = diagnostic.span.as_ref();
        Problem {
            code: diagnostic.code.as_str(),
            severity: match diagnostic.severity {
                diagnostic::Severity::Error => ProblemSeverity::Error,
                diagnostic::Severity::Warning => ProblemSeverity::Warning,
            },
            message: message(diagnostic, audience).into_owned(),
            hint: hint(diagnostic, audience).map(str::to_owned),
            file: span.map(|span| span.file.to_string()),
            line: span.map(|span| span.line),
            column: span.map(|span| span.column),
            length: span.map(|span| span.length),
        }
    };
    diagnostics.iter().take(MAX_PROBLEMS).map(problem).collect()
}

/// Returns the hint that the audience may see.
fn hint(diagnostic: &Diagnostic, audience: Audience) -> Option<&str> {
    match audience {
        Audience::Operator => diagnostic.full_hint(),
        Audience::Caller => diagnostic.hint.as_deref(),
    }
}

/// Returns the message that the audience may see.
fn message(diagnostic: &Diagnostic, audience: Audience) -> Cow<'_, str> {
    match audience {
        Audience::Operator => diagnostic.full_message(),
        Audience::Caller => Cow::Borrowed(&diagnostic.message),
    }
}

/// The dependency graph of a project.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DependencyGraph")]
pub struct Graph<'a> {
    success: bool,
    nodes: Vec<GraphNode<'a>>,
    edges: Vec<GraphEdge<'a>>,
    /// The ids in an order in which each comes after its dependencies.
    execution_order: Vec<&'a str>,
    /// Ids that can be built together, batch after batch.
    parallel_batches: Vec<Vec<&'a str>>,
    node_count: usize,
    edge_count: usize,
}

/// A node of the dependency graph.
#[derive(Debug, Serialize, JsonSchema)]
struct GraphNode<'a> {
    unique_id: &'a str,
    #[schemars(schema_with = "node_types")]
    node_type: &'static str,
    name: &'a str,
    compiled: bool,
    error: Option<&'a str>,
}

fn node_types(_: &mut SchemaGenerator) -> Schema {
    schema::words(&["source", "source_table", "model", "cube", "measure", "dimension", "metric"])
}

/// An edge from what is read to what reads it.
#[derive(Debug, Serialize, JsonSchema)]
struct GraphEdge<'a> {
    from: &'a str,
    to: &'a str,
}

impl<'a> From<&'a DependencyGraph> for Graph<'a> {
    fn from(graph: &'a DependencyGraph) -> Self {
        let id = |index: u32| &*graph.nodes[index as usize].unique_id;
        let nodes = graph.nodes.iter().map(|node| GraphNode {
            unique_id: &node.unique_id,
            node_type: node.node_type.as_str(),
            name: &node.name,
            compiled: node.compiled,
            error: node.error.as_deref(),
        });
        let batches = graph.parallel_batches.iter().map(|batch| batch.iter().map(|at| id(*at)).collect());
        Graph {
            success: graph.nodes.iter().all(|node| node.error.is_none()),
            nodes: nodes.collect(),
            edges: graph.edges.iter().map(|edge| GraphEdge { from: id(edge.0), to: id(edge.1) }).collect(),
            execution_order: graph.execution_order().map(|node| &*node.unique_id).collect(),
            parallel_batches: batches.collect(),
            node_count: graph.nodes.len(),
            edge_count: graph.edges.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use terrane_app::ports::warehouse::{RefusalCause, WarehouseError, WarehouseErrorKind};
    use terrane_compiler::project::Materialization;

    use terrane_compiler::diagnostic::Code;

    use super::*;

    #[test]
    fn warehouse_error_is_for_operators() {
        let (warehouse, kind) = ("duckdb".to_owned(), WarehouseErrorKind::Refused);
        let message = "Binder Error: `salary` is not in `people`".to_owned();
        let error = WarehouseError { warehouse, kind, cause: RefusalCause::Other, message, retries: 0 };
        let build = ModelBuild {
            model: "clean".into(),
            materialization: Materialization::Table,
            relation: Some("analytics.clean".to_owned()),
            outcome: ModelOutcome::Failed(error.into()),
            elapsed: Duration::ZERO,
        };
        assert_eq!(failure(&build, Audience::Caller).as_deref(), Some("the warehouse did not build it"));
        assert!(failure(&build, Audience::Operator).is_some_and(|reason| reason.contains("salary")));
        let text = "dimension `people.salary` is a number, but its column is not";
        let diagnostic = Diagnostic::warning(Code::ColumnMismatch, text).detail("it is a string");
        assert_eq!(super::message(&diagnostic, Audience::Caller), text);
        assert_eq!(super::message(&diagnostic, Audience::Operator), format!("{text}: it is a string"));
    }
}
