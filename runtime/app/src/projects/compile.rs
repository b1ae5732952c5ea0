//! Compiles a project: the warehouse checks the SQL of every model, then the project replaces the served one.
//!
//! If the warehouse has accepted a model with the same text before, the model is not checked again. A full compilation
//! checks all models. On request, the models are also built (`build`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::model::{RunnableModel, place_of_warehouse_error, runnable_models};
use terrane_compiler::project::{Definitions, ModelDefinition, soften_registered};
use terrane_compiler::text::nearest::nearest;
use terrane_lineage::graph::{DependencyGraph, Node, NodeType};

use super::outcome::{ProjectError, ProjectSight, missing_ref};
use super::{ProjectService, contents};
use crate::builds::ModelBuild;
use crate::catalog::Snapshot;
use crate::domain::RequestContext;
use crate::introspection::{SchemaIntrospection, hint_to, without_excerpt};
use crate::ports::warehouse::{Statement, Warehouse, WarehouseErrorKind};

/// A request to compile models.
#[derive(Debug, Clone, Default)]
pub struct CompileRequest {
    /// The path of the project; `None` for the served project.
    pub path: Option<String>,
    /// The models to report; `None` for all models. The models that they read are checked too.
    pub models: Option<Vec<String>>,
    /// True to check everything again, without results from the served project.
    pub is_full: bool,
    /// True to build the compiled models in the warehouse.
    pub builds_models: bool,
}

/// The result of a compilation whose models compiled. Some of its cubes may have errors.
#[derive(Debug, Clone)]
pub struct Compiled {
    pub models: Vec<CompiledModel>,
    pub cubes: Vec<CompiledCube>,
    pub project: String,
    pub metrics: usize,
    pub diagnostics: Vec<Diagnostic>,
    pub elapsed: Duration,
}

/// The outcome of the compilation of one model.
#[derive(Debug, Clone)]
pub struct CompiledModel {
    pub name: String,
    /// The complete query, which runs without further definitions.
    pub sql: String,
    pub warnings: Vec<Diagnostic>,
    pub elapsed: Duration,
    /// The outcome of the model's build in the warehouse; `None` if no build was requested.
    pub build: Option<ModelBuild>,
}

/// One cube of the project's files, or a registered one.
#[derive(Debug, Clone)]
pub struct CompiledCube {
    pub name: String,
    /// The numbers of members that the caller may see.
    pub measures: usize,
    pub dimensions: usize,
    /// Errors of the cube and its members.
    pub errors: Vec<Diagnostic>,
}

impl Compiled {
    /// Returns whether the project has no errors.
    pub fn is_whole(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Returns whether all builds succeeded.
    pub fn is_built(&self) -> bool {
        self.models.iter().filter_map(|model| model.build.as_ref()).all(ModelBuild::is_in_order)
    }
}

impl ProjectService {
    /// Compiles a project. If it has no errors, serves it from now on.
    ///
    /// # Errors
    /// [`ProjectError`]: for example, a model does not compile, or refers to a model that does not exist. The previous
    /// project is still served.
    pub async fn compile(
        &self,
        compilation: &CompileRequest,
        request: &RequestContext,
    ) -> Result<Compiled, ProjectError> {
        let started = self.ports.clock.elapsed();
        let mut held = self.changing.lock().await;
        let texts = self.texts_at(compilation.path.as_deref()).await?;
        self.check_replacement(&texts, request).await?;
        let before = self.ports.catalog.snapshot();
        let nothing = SchemaIntrospection::default();
        let known = if compilation.is_full { &nothing } else { before.introspection() };
        let mut snapshot = self.snapshot_of(&texts, known).await?;
        soften_registered(&mut snapshot.diagnostics);
        if texts.folder == held.folder {
            snapshot.harden(&before);
        }
        let asked = requested_models(&snapshot.definitions, compilation.models.as_deref())?;
        // Only the requested models and the models that they read have to compile.
        let needed = compilation.models.is_some().then(|| read_by(&snapshot.definitions, &asked));
        let relevant = snapshot.diagnostics.iter().filter(|diagnostic| concerns(diagnostic, needed.as_ref()));
        let relevant: Vec<Diagnostic> = relevant.cloned().collect();
        if let Some(missing) = missing_ref(&relevant, &snapshot.definitions) {
            self.note_refusal(&snapshot.diagnostics);
            return Err(ProjectError::Invalid { diagnostics: snapshot.diagnostics, missing: Some(missing) });
        }
        // A model with an error was left out when the project was read, so its diagnostic is looked up by its file.
        if let Some(broken) = relevant.iter().find(|diagnostic| diagnostic.is_error() && is_of_model(diagnostic)) {
            self.note_refusal(&snapshot.diagnostics);
            return Err(failed(broken));
        }
        let models = match self.models(&snapshot, &asked, needed.as_ref(), known).await {
            Ok((models, accepted)) => {
                snapshot.accept(accepted);
                models
            }
            Err(error) => {
                self.note_refusal(&snapshot.diagnostics);
                return Err(error);
            }
        };
        let sight = ProjectSight::of(&snapshot, request);
        let mut compiled = Compiled {
            models,
            cubes: cubes(&snapshot, &sight),
            project: snapshot.model.project.to_string(),
            metrics: sight.metrics(),
            diagnostics: snapshot.diagnostics.clone(),
            elapsed: self.ports.clock.elapsed().saturating_sub(started),
        };
        if compiled.is_whole() {
            let mut record = self.record("project_compiled", request, format!("project:{}", texts.folder));
            record.after = Some(contents(&snapshot));
            self.ports.audit.append(vec![record]).await?;
            self.swap(&mut held, texts, snapshot).await;
            drop(held);
            if compilation.builds_models {
                self.build(&mut compiled, request).await?;
                compiled.elapsed = self.ports.clock.elapsed().saturating_sub(started);
            }
        } else {
            self.note_refusal(&snapshot.diagnostics);
        }
        Ok(compiled)
    }

    /// Checks the requested models. Returns them, and the SQL of all models that the warehouse has accepted.
    async fn models(
        &self,
        snapshot: &Snapshot,
        asked: &HashSet<&str>,
        needed: Option<&HashSet<&str>>,
        known: &SchemaIntrospection,
    ) -> Result<(Vec<CompiledModel>, Vec<Arc<str>>), ProjectError> {
        let definitions = &snapshot.definitions;
        let (mut models, mut accepted) = (Vec::new(), Vec::new());
        for RunnableModel { index, text, diagnostics } in runnable_models(definitions) {
            let model = &definitions.models[index];
            if needed.is_some_and(|needed| !needed.contains(&*model.name.value)) {
                continue;
            }
            let started = self.ports.clock.elapsed();
            let (warnings, errors): (Vec<_>, Vec<_>) =
                diagnostics.into_iter().partition(|diagnostic| !diagnostic.is_error());
            if let Some(error) = errors.first() {
                return Err(failed(error));
            }
            // Without `text`, a model that this model reads has a problem, which is reported for that model.
            let Some(text) = text else { continue };
            if !known.accepts(&text) {
                self.describe(model, &text, &warnings).await?;
            }
            accepted.push(Arc::clone(&text));
            if asked.contains(&*model.name.value) {
                let elapsed = self.ports.clock.elapsed().saturating_sub(started);
                models.push(CompiledModel {
                    name: model.name.value.to_string(),
                    sql: text.to_string(),
                    warnings,
                    elapsed,
                    build: None,
                });
            }
        }
        Ok((models, accepted))
    }

    /// Asks the warehouse whether it can read a model.
    async fn describe(&self, model: &ModelDefinition, text: &str, warnings: &[Diagnostic]) -> Result<(), ProjectError> {
        let Err(refusal) = self.ports.warehouse.describe(Statement::plain(text)).await else { return Ok(()) };
        // If the parser could not follow the SQL, the warehouse most likely fails for the same reason, and the parser's
        // warning has a place.
        let syntax = warnings.iter().find(|warning| warning.span.is_some());
        let span = match syntax.and_then(|warning| warning.span.clone()) {
            Some(span) => span,
            None => place_of_warehouse_error(model, &refusal.message),
        };
        let message = syntax.map_or_else(|| refusal.message.clone(), |warning| warning.message.clone());
        let model = model.name.value.to_string();
        Err(ProjectError::Model { model, message, span: Some(span), is_warehouse: syntax.is_none() })
    }
}

/// The models of a project that the warehouse cannot read.
#[derive(Debug, Default)]
pub struct RefusedModels {
    /// Errors, each at the place that the warehouse names. If a model is refused, the models that read it are not
    /// reported.
    pub diagnostics: Vec<Diagnostic>,
    /// The places of the names of cubes that read a refused model.
    pub cubes: HashSet<Span>,
    /// The files of the refused models.
    pub files: HashSet<Arc<str>>,
    /// The files of the models that the warehouse can read.
    pub accepted: HashSet<Arc<str>>,
}

/// The code of a model whose SQL the warehouse refuses.
pub const UNREADABLE_MODEL: Code = Code::ModelNotDescribed;

/// Asks the warehouse about every model that has no error of its own.
pub async fn refused_models(snapshot: &Snapshot, warehouse: &dyn Warehouse) -> RefusedModels {
    let definitions = &snapshot.definitions;
    let (mut refused, mut names): (RefusedModels, HashSet<&str>) = Default::default();
    for RunnableModel { index, text, diagnostics } in runnable_models(definitions) {
        let model = &definitions.models[index];
        let Some(text) = text.filter(|_| !diagnostics.iter().any(Diagnostic::is_error)) else { continue };
        let name = &*model.name.value;
        if read_by(definitions, &[name].into()).iter().any(|read| names.contains(read)) {
            continue;
        }
        let file = model.sql.span().file;
        let refusal = match warehouse.describe(Statement::plain(&text)).await {
            Ok(_) => {
                refused.accepted.insert(file);
                continue;
            }
            Err(refusal) if refusal.kind == WarehouseErrorKind::Refused => refusal,
            Err(_) => continue,
        };
        refused.files.insert(file);
        names.insert(name);
        let diagnostic = Diagnostic::error(UNREADABLE_MODEL, format!("the warehouse rejects model `{name}`"))
            .detail(without_excerpt(&refusal.message))
            .hint(hint_to(refusal.cause, "Check that the tables and columns that it names exist in the warehouse."))
            .at(place_of_warehouse_error(model, &refusal.message));
        refused.diagnostics.push(diagnostic);
    }
    refused.cubes = cubes_over(snapshot, &names);
    refused
}

/// Returns the places of the names of cubes that read one of the models, directly or through others.
fn cubes_over(snapshot: &Snapshot, models: &HashSet<&str>) -> HashSet<Span> {
    if models.is_empty() {
        return HashSet::new();
    }
    let graph = DependencyGraph::build(&snapshot.definitions, &snapshot.model, &[]);
    let mut needs: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes.len()];
    for (from, to) in &graph.edges {
        needs[*to as usize].push(*from);
    }
    let is_one = |node: &Node| node.node_type == NodeType::Model && models.contains(&*node.name);
    let mut reached: Vec<bool> = graph.nodes.iter().map(is_one).collect();
    for at in graph.parallel_batches.iter().flatten() {
        reached[*at as usize] |= needs[*at as usize].iter().any(|from| reached[*from as usize]);
    }
    let cubes =
        graph.nodes.iter().zip(&reached).filter(|(node, is_over)| **is_over && node.node_type == NodeType::Cube);
    cubes.filter_map(|(node, _)| snapshot.model.cube_named(&node.name)?.span.clone()).collect()
}

/// Returns the names of the models to report.
fn requested_models<'a>(
    definitions: &'a Definitions,
    models: Option<&[String]>,
) -> Result<HashSet<&'a str>, ProjectError> {
    let whole = definitions.models.iter().chain(&definitions.cyclic_models).map(|model| &*model.name.value);
    let names = whole.chain(definitions.broken_models.iter().map(|name| &*name.value));
    let Some(models) = models else { return Ok(names.collect()) };
    let known: HashMap<&str, &str> = names.map(|name| (name, name)).collect();
    models
        .iter()
        .map(|asked| {
            known.get(asked.as_str()).copied().ok_or_else(|| {
                let nearest = nearest(asked, known.keys().copied(), 5);
                ProjectError::UnknownModel {
                    name: asked.clone(),
                    nearest: nearest.into_iter().map(str::to_owned).collect(),
                }
            })
        })
        .collect()
}

/// Returns the names of models and of all models that they read, directly or through others.
fn read_by<'a>(definitions: &'a Definitions, asked: &HashSet<&'a str>) -> HashSet<&'a str> {
    let models = definitions.models.iter().chain(&definitions.cyclic_models);
    let refs: HashMap<&str, &ModelDefinition> = models.map(|model| (&*model.name.value, model)).collect();
    let mut needed = HashSet::new();
    let mut open: Vec<&str> = asked.iter().copied().collect();
    while let Some(name) = open.pop() {
        if needed.insert(name) {
            let model = refs.get(name).copied().into_iter();
            open.extend(model.flat_map(|model| &model.refs).map(|reference| &*reference.name));
        }
    }
    needed
}

/// Returns whether a diagnostic concerns the models that have to compile; with `None`, every diagnostic does.
fn concerns(diagnostic: &Diagnostic, needed: Option<&HashSet<&str>>) -> bool {
    let Some(needed) = needed else { return true };
    diagnostic.span.as_ref().is_some_and(|span| is_of_model(diagnostic) && needed.contains(&*model_of(span)))
}

fn is_of_model(diagnostic: &Diagnostic) -> bool {
    diagnostic.span.as_ref().is_some_and(|span| span.file.ends_with(".sql"))
}

fn failed(error: &Diagnostic) -> ProjectError {
    let span = error.span.clone();
    ProjectError::Model {
        model: span.as_ref().map(model_of).unwrap_or_default(),
        message: error.message.clone(),
        span,
        is_warehouse: false,
    }
}

/// Returns the name of the model of a file, which is the file's stem.
fn model_of(span: &Span) -> String {
    let file = span.file.rsplit('/').next().unwrap_or_default();
    file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned()
}

/// Returns every cube of the files, each with the errors between its beginning and the beginning of the next cube.
fn cubes(snapshot: &Snapshot, sight: &ProjectSight<'_>) -> Vec<CompiledCube> {
    let definitions = &snapshot.definitions.cubes;
    let mut beginnings: Vec<(Span, usize)> =
        definitions.iter().enumerate().map(|(at, cube)| (cube.name.span(), at)).collect();
    beginnings.sort();
    let mut errors: HashMap<usize, Vec<Diagnostic>> = HashMap::new();
    for error in snapshot.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()) {
        let Some(span) = &error.span else { continue };
        // An error on the line of a cube's name belongs to this cube.
        let next = beginnings.partition_point(|(begin, _)| (&begin.file, begin.line) <= (&span.file, span.line));
        let cube = next.checked_sub(1).map(|last| &beginnings[last]).filter(|(begin, _)| begin.file == span.file);
        if let Some((_, at)) = cube {
            errors.entry(*at).or_default().push(error.clone());
        }
    }
    let compiled = definitions.iter().enumerate().map(|(at, cube)| {
        let built = snapshot.model.cube_named(&cube.name.value);
        let (measures, dimensions) = built.map_or((0, 0), |cube| sight.members(cube));
        CompiledCube {
            name: cube.name.value.to_string(),
            measures,
            dimensions,
            errors: errors.remove(&at).unwrap_or_default(),
        }
    });
    compiled.collect()
}
