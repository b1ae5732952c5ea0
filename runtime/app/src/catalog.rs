//! The loaded project as one immutable snapshot, which is replaced as a whole.
//!
//! In: a source tree and the ports. Out: a [`Snapshot`] with every diagnostic of the load. A query uses one snapshot
//! until it ends, so a reload does not affect it. Not here: reading files (cli).

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use terrane_compiler::Access;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::model::{self, Model};
use terrane_compiler::project::{self, Definitions, Inputs, SourceTree};
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::sql::{column_mistakes, missing_templates};
use terrane_lineage::graph::{DependencyGraph, NodeType};
use terrane_lineage::{KnownColumns, Lineage};
use tokio::sync::OnceCell;

use crate::builds::current_builds;
use crate::introspection::{Introspector, SchemaIntrospection};
use crate::ports::builder::BuiltRelation;
use crate::ports::plugins::{PluginError, Plugins};
use crate::ports::warehouse::Warehouse;
use crate::table_lookup::locate;

/// A served project.
#[derive(Debug)]
pub struct Snapshot {
    pub model: Model,
    /// The definitions that the model was built from.
    pub definitions: Arc<Definitions>,
    pub profile: Arc<DialectProfile>,
    /// All problems, including warnings. The model omits definitions with errors.
    pub diagnostics: Vec<Diagnostic>,
    introspection: SchemaIntrospection,
    /// The dependency graph, computed on first use.
    graph: OnceLock<DependencyGraph>,
    lineage: OnceCell<Lineage>,
}

impl Snapshot {
    /// Creates a snapshot of a model with known column types.
    pub fn new(model: Model, definitions: Definitions, profile: DialectProfile, diagnostics: Vec<Diagnostic>) -> Self {
        let (definitions, profile) = (Arc::new(definitions), Arc::new(profile));
        Snapshot {
            model,
            definitions,
            profile,
            diagnostics,
            introspection: SchemaIntrospection::default(),
            graph: OnceLock::new(),
            lineage: OnceCell::new(),
        }
    }

    /// Returns the dependency graph that a caller may see.
    pub fn graph(&self, access: &Access<'_>) -> DependencyGraph {
        self.whole_graph().seen_by(access)
    }

    /// Returns the lineage of columns and measures, which is computed on first use. If sources do not declare all
    /// columns of a table, the warehouse is asked for the columns.
    pub async fn lineage(&self, warehouse: &dyn Warehouse) -> &Lineage {
        let make = async {
            let mut known = KnownColumns::declared(&self.definitions);
            let lineage = Lineage::build(&self.definitions, &self.model, &known);
            if lineage.incomplete.is_empty() {
                return lineage;
            }
            self.introspection.inspected().add_to(&mut known, &lineage.incomplete, &self.profile, warehouse).await;
            Lineage::build(&self.definitions, &self.model, &known)
        };
        self.lineage.get_or_init(|| make).await
    }

    /// Returns the numbers of nodes and edges in the whole graph.
    pub fn graph_size(&self) -> (usize, usize) {
        let graph = self.whole_graph();
        (graph.nodes.len(), graph.edges.len())
    }

    /// Returns the names of all models in batches. The models of a batch read only models of earlier batches.
    pub fn model_batches(&self) -> Vec<Vec<Arc<str>>> {
        let graph = self.whole_graph();
        let names = graph.parallel_batches.iter().map(|batch| {
            let nodes = batch.iter().map(|at| &graph.nodes[*at as usize]);
            nodes.filter(|node| node.node_type == NodeType::Model).map(|node| Arc::clone(&node.name)).collect()
        });
        names.filter(|batch: &Vec<Arc<str>>| !batch.is_empty()).collect()
    }

    fn whole_graph(&self) -> &DependencyGraph {
        self.graph.get_or_init(|| DependencyGraph::build(&self.definitions, &self.model, &self.diagnostics))
    }

    /// Returns the warehouse's answers about columns. Another load can reuse them for unchanged definitions.
    pub fn introspection(&self) -> &SchemaIntrospection {
        &self.introspection
    }

    /// Turns warnings about cubes into errors if the warehouse could read these cubes when `before` was loaded.
    pub(crate) fn harden(&mut self, before: &Snapshot) {
        let had = |cube: &str| before.model.cube_named(cube).is_some();
        self.introspection.harden(&mut self.diagnostics, &before.introspection, had);
    }

    /// Records models that the warehouse could read.
    pub(crate) fn accept(&mut self, models: Vec<Arc<str>>) {
        self.introspection.accept(models);
    }
}

/// Loads a project: first the model from its files, then the column types from the warehouse. Answers in `known` are
/// reused; the warehouse is not asked for them.
///
/// # Errors
/// [`PluginError`] if the warehouse's dialect is not available. Problems of the project itself are diagnostics.
pub async fn load(
    tree: &SourceTree,
    inputs: &Inputs,
    known: &SchemaIntrospection,
    plugins: &dyn Plugins,
    warehouse: &dyn Warehouse,
) -> Result<Snapshot, PluginError> {
    let profile = plugins.dialect(warehouse.name())?;
    let profile = if warehouse.binds_parameters() { profile } else { Arc::new(profile.without_parameters()) };
    let (inputs, tables, unknown_tables) = locate(inputs, &known.tables, warehouse).await;
    let held = warehouse.built().await.map_err(|error| {
        Diagnostic::error(BUILDS_UNKNOWN, "the warehouse cannot be asked which models were built")
            .detail(error.to_string())
            .hint("Reload the project when the warehouse responds.")
    });
    let Texts { definitions, model, mut diagnostics } = read_texts(tree, inputs, held).await;
    diagnostics.extend(unknown_tables);
    let introspector = Introspector::new(&model, &definitions, &profile, warehouse, known);
    let (types, mut introspection) = introspector.types(&mut diagnostics).await;
    introspection.tables = tables;
    let model = with_foreign_keys(model.with_types(&types), &profile, warehouse).await;
    diagnostics.extend(column_mistakes(&model, &types, &profile));
    diagnostics.extend(missing_templates(&model, &profile));
    Ok(Snapshot {
        model,
        definitions: Arc::new(definitions),
        profile,
        diagnostics,
        introspection,
        graph: OnceLock::new(),
        lineage: OnceCell::new(),
    })
}

/// Marks the joins for which the warehouse's foreign keys prove that every row of the joining cube finds a row. If the
/// warehouse does not report its foreign keys, no join is marked; the results of queries are the same without marks.
async fn with_foreign_keys(model: Model, profile: &DialectProfile, warehouse: &dyn Warehouse) -> Model {
    if !model.has_joins_to_prove() {
        return model;
    }
    match warehouse.foreign_keys().await {
        Ok(keys) => model.with_foreign_keys(&keys, profile.quoting.folding),
        Err(error) => {
            tracing::warn!(event = "foreign_keys_unknown", warehouse = warehouse.name(), error_message = %error);
            model
        }
    }
}

/// The results of the part of a load that needs only the source text of the project.
struct Texts {
    definitions: Definitions,
    model: Model,
    diagnostics: Vec<Diagnostic>,
}

/// Reads a project on a blocking thread, because a large project would delay queries on an async worker.
async fn read_texts(tree: &SourceTree, inputs: Inputs, held: Result<Vec<BuiltRelation>, Diagnostic>) -> Texts {
    let tree = tree.clone();
    let read = move || {
        let (mut definitions, mut diagnostics) = project::read(&tree, &inputs);
        match held {
            Ok(held) => definitions.built = current_builds(&definitions, &held),
            Err(problem) => {
                definitions.built.is_unknown = true;
                diagnostics.push(problem);
            }
        }
        let (model, problems) = model::build(&definitions);
        diagnostics.extend(problems);
        Texts { definitions, model, diagnostics }
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(read) => read,
        Err(broken) => std::panic::resume_unwind(broken.into_panic()),
    }
}

/// The code of the diagnostic for a warehouse that does not report which models were built.
pub const BUILDS_UNKNOWN: Code = Code::BuildsUnknown;

/// Holds the served snapshot.
#[derive(Debug)]
pub struct Catalog {
    current: RwLock<Arc<Snapshot>>,
}

impl Catalog {
    pub fn new(snapshot: Snapshot) -> Self {
        Catalog { current: RwLock::new(Arc::new(snapshot)) }
    }

    /// Returns the served snapshot. A request should take it only once.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        // A writer replaces the snapshot in one assignment, so even a poisoned lock holds a whole snapshot.
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn replace(&self, snapshot: Snapshot) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }
}
