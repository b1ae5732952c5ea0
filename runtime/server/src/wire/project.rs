//! Projects as JSON (specification, "Project endpoints", "Project load result", "Compile result", "Dependency
//! graph").
//!
//! Problems are told twice: as texts in `errors` and `warnings`, and as objects in `problems`. What the
//! warehouse itself said of a cube is left to callers with `admin`.

use std::borrow::Cow;

use serde_json::{Value as Json, json};
use terrane_app::builds::{ModelBuild, ModelOutcome};
use terrane_app::ports::builder::BuildError;
use terrane_app::projects::{CompileRequest, Compiled, LoadRequest, Loaded};
use terrane_compiler::diagnostic::{Diagnostic, Severity};
use terrane_compiler::graph::DependencyGraph;

use super::body::parse;
use super::fields::{Fields, Misfit, Path};

pub(super) const LOAD: &[&str] = &["project_path", "strict"];
pub(super) const COMPILE: &[&str] = &["project_path", "models", "full", "build"];
const PATH_FITS: &str = "the path of a project's folder";

/// `{project_path?, strict?}`; an empty body is an empty object.
pub(crate) fn load_from_wire(body: &[u8]) -> Result<LoadRequest, Misfit> {
    let json = parse_or_empty(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", LOAD)?;
    Ok(LoadRequest {
        path: fields.text("project_path", PATH_FITS)?.map(str::to_owned),
        is_strict: fields.flag("strict")?.unwrap_or(true),
        trusts_types: false,
    })
}

/// `{project_path?, models?, full?, build?}`; an empty body is an empty object.
pub(crate) fn compile_from_wire(body: &[u8]) -> Result<CompileRequest, Misfit> {
    let json = parse_or_empty(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", COMPILE)?;
    let models = fields.list("models", "a list of models' names", |item, path| match item {
        Json::String(name) => Ok(name.clone()),
        other => Err(path.wrong_type(other, "a model's name")),
    })?;
    Ok(CompileRequest {
        path: fields.text("project_path", PATH_FITS)?.map(str::to_owned),
        models: fields.get("models").map(|_| models),
        is_full: fields.flag("full")?.unwrap_or(false),
        builds_models: fields.flag("build")?.unwrap_or(false),
    })
}

fn parse_or_empty(body: &[u8]) -> Result<Json, Misfit> {
    if body.trim_ascii().is_empty() { Ok(json!({})) } else { parse(body) }
}

/// `project_path`.
pub(crate) fn path_from_parameters(query: &str) -> Result<Option<String>, Misfit> {
    let mut found = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "project_path" => found = Some(value.into_owned()),
            // The caller's key.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, &["project_path"])),
        }
    }
    Ok(found)
}

pub(crate) fn loaded_to_wire(loaded: &Loaded, is_operator: bool) -> Json {
    let (errors, warnings) = texts(&loaded.diagnostics, is_operator);
    json!({
        "success": errors.is_empty(),
        "project_name": loaded.project,
        "source_count": loaded.sources,
        "model_count": loaded.models,
        "cube_count": loaded.cubes,
        "metric_count": loaded.metrics,
        "graph_nodes": loaded.graph_nodes,
        "graph_edges": loaded.graph_edges,
        "errors": errors,
        "warnings": warnings,
        "problems": problems_to_wire(&loaded.diagnostics, is_operator),
        "load_time_ms": loaded.elapsed.as_secs_f64() * 1e3,
    })
}

pub(crate) fn compiled_to_wire(compiled: &Compiled, is_operator: bool) -> Json {
    let (mut errors, warnings) = texts(&compiled.diagnostics, is_operator);
    let builds = compiled.models.iter().filter_map(|model| model.build.as_ref());
    errors
        .extend(builds.filter_map(|build| Some(format!("model `{}`: {}", build.model, failure(build, is_operator)?))));
    let id = |kind: &str, name: &str| format!("{kind}.{}.{name}", compiled.project);
    let models = compiled.models.iter().map(|model| {
        json!({
            "name": model.name,
            "unique_id": id("model", &model.name),
            "compiled_sql": model.sql,
            "success": model.build.as_ref().is_none_or(ModelBuild::is_in_order),
            "errors": model.build.as_ref().and_then(|build| failure(build, is_operator)).into_iter().collect::<Vec<_>>(),
            "warnings": texts(&model.warnings, is_operator).1,
            "compile_time_ms": model.elapsed.as_secs_f64() * 1e3,
            "build": model.build.as_ref().map(build_to_wire),
        })
    });
    let models: Vec<Json> = models.collect();
    let cubes = compiled.cubes.iter().map(|cube| {
        json!({
            "name": cube.name,
            "cube_id": id("cube", &cube.name),
            "measure_count": cube.measures,
            "dimension_count": cube.dimensions,
            "success": cube.errors.is_empty(),
            "errors": texts(&cube.errors, is_operator).0,
        })
    });
    let cubes: Vec<Json> = cubes.collect();
    json!({
        "success": compiled.is_whole() && compiled.is_built(),
        "model_count": models.len(),
        "cube_count": cubes.len(),
        "metric_count": compiled.metrics,
        "models": models,
        "cubes": cubes,
        "errors": errors,
        "warnings": warnings,
        "problems": problems_to_wire(&compiled.diagnostics, is_operator),
        "compile_time_ms": compiled.elapsed.as_secs_f64() * 1e3,
    })
}

/// What became of a model in the warehouse.
fn build_to_wire(build: &ModelBuild) -> Json {
    let (status, rows) = match &build.outcome {
        ModelOutcome::Built { rows } => ("built", *rows),
        ModelOutcome::Inlined => ("inlined", None),
        ModelOutcome::Failed(_) => ("failed", None),
        ModelOutcome::Skipped { .. } => ("skipped", None),
    };
    json!({
        "status": status,
        "materialization": build.materialization.as_str(),
        "relation": build.relation,
        "rows": rows,
        "build_time_ms": build.elapsed.as_secs_f64() * 1e3,
    })
}

/// Why a model was not built, the warehouse's own words for operators alone.
fn failure(build: &ModelBuild, is_operator: bool) -> Option<String> {
    match &build.outcome {
        ModelOutcome::Built { .. } | ModelOutcome::Inlined => None,
        ModelOutcome::Skipped { because_of } => Some(format!("skipped, since `{because_of}` failed")),
        ModelOutcome::Failed(BuildError::Warehouse(error)) if !is_operator => {
            tracing::warn!(event = "model_refused", model = &*build.model, error_message = %error);
            Some("the warehouse did not build it".to_owned())
        }
        ModelOutcome::Failed(error) => Some(match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        }),
    }
}

/// Errors and warnings, a text each.
fn texts(diagnostics: &[Diagnostic], is_operator: bool) -> (Vec<String>, Vec<String>) {
    let text = |told: &Diagnostic| {
        let message = message(told, is_operator);
        let placed = told.span.as_ref().map_or_else(|| message.to_string(), |span| format!("{span}: {message}"));
        match hint(told, is_operator) {
            Some(hint) => format!("{placed}; {hint}"),
            None => placed,
        }
    };
    let of = |severity| diagnostics.iter().filter(|told| told.severity == severity).map(text).collect();
    (of(Severity::Error), of(Severity::Warning))
}

/// Every problem with its place, at most 1,000.
pub(crate) fn problems_to_wire(diagnostics: &[Diagnostic], is_operator: bool) -> Json {
    let problem = |told: &Diagnostic| {
        let span = told.span.as_ref();
        json!({
            "code": told.code.as_str(),
            "severity": match told.severity { Severity::Error => "error", Severity::Warning => "warning" },
            "message": message(told, is_operator),
            "hint": hint(told, is_operator),
            "file": span.map(|span| &*span.file),
            "line": span.map(|span| span.line),
            "column": span.map(|span| span.column),
            "length": span.map(|span| span.length),
        })
    };
    diagnostics.iter().take(1_000).map(problem).collect()
}

/// Returns the hint that a caller may see: what the warehouse disclosed is for operators.
fn hint(told: &Diagnostic, is_operator: bool) -> Option<&str> {
    if is_operator { told.full_hint() } else { told.hint.as_deref() }
}

/// Returns the message that a caller may see: text of the warehouse is for operators.
fn message(told: &Diagnostic, is_operator: bool) -> Cow<'_, str> {
    if is_operator { told.full_message() } else { Cow::Borrowed(&told.message) }
}

pub(crate) fn graph_to_wire(graph: &DependencyGraph) -> Json {
    let id = |index: u32| &*graph.nodes[index as usize].unique_id;
    let nodes = graph.nodes.iter().map(|node| {
        json!({
            "unique_id": &*node.unique_id,
            "node_type": node.node_type.as_str(),
            "name": &*node.name,
            "compiled": node.compiled,
            "error": node.error.as_deref(),
        })
    });
    let batches = graph.parallel_batches.iter().map(|batch| batch.iter().map(|at| id(*at)).collect::<Vec<_>>());
    let edges = graph.edges.iter().map(|edge| json!({"from": id(edge.0), "to": id(edge.1)}));
    json!({
        "success": graph.nodes.iter().all(|node| node.error.is_none()),
        "nodes": nodes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "execution_order": graph.execution_order().map(|node| &*node.unique_id).collect::<Vec<_>>(),
        "parallel_batches": batches.collect::<Vec<_>>(),
        "node_count": graph.nodes.len(),
        "edge_count": graph.edges.len(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use terrane_app::ports::warehouse::{RefusalCause, WarehouseError, WarehouseErrorKind};
    use terrane_compiler::project::Materialization;

    use terrane_compiler::diagnostic::Code;

    use super::*;

    #[test]
    fn the_words_of_the_warehouse_are_for_operators() {
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
        assert_eq!(failure(&build, false).as_deref(), Some("the warehouse did not build it"));
        assert!(failure(&build, true).is_some_and(|told| told.contains("salary")));
        let text = "dimension `people.salary` is a number, and its column is not";
        let told = Diagnostic::warning(Code::ColumnMismatch, text).detail("it is a text");
        assert_eq!(super::message(&told, false), text);
        assert_eq!(super::message(&told, true), format!("{text}: it is a text"));
    }
}
