//! The loaded project: one immutable snapshot, swapped whole.
//!
//! In: a source tree and the ports. Out: a [`Snapshot`] with every diagnostic found on the way. A
//! query takes one snapshot and sees nothing of a reload. Not here: reading files (cli).

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use terrane_compiler::Access;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::graph::{DependencyGraph, NodeType};
use terrane_compiler::lineage::{KnownColumns, Lineage};
use terrane_compiler::model::{self, KeptCubes, Model, TypedCubes};
use terrane_compiler::project::{self, Definitions, Inputs, KeptFiles, SourceTree, Work};
use terrane_compiler::sql::column_mistakes;
use terrane_compiler::sql::profile::DialectProfile;
use tokio::sync::OnceCell;

use crate::builds::current_builds;
use crate::described::{Described, Reading};
use crate::located::locate;
use crate::ports::builder::BuiltRelation;
use crate::ports::plugins::{PluginError, Plugins};
use crate::ports::warehouse::Warehouse;

/// A project as it is served.
#[derive(Debug)]
pub struct Snapshot {
    pub model: Model,
    /// What the model was built from.
    pub definitions: Arc<Definitions>,
    pub profile: Arc<DialectProfile>,
    /// All problems, warnings included; what is broken is left out of the model.
    pub diagnostics: Vec<Diagnostic>,
    described: Described,
    kept: Arc<Kept>,
    /// Made when it is first asked for.
    graph: OnceLock<DependencyGraph>,
    lineage: OnceCell<Lineage>,
}

/// What a load made of each file, model and cube, so that the next one does only what has changed. It is told by
/// content alone: a load that is given none, or another project's, comes to the same.
#[derive(Debug, Default)]
pub struct Kept {
    files: KeptFiles,
    cubes: KeptCubes,
    typed: TypedCubes,
}

impl Kept {
    /// How many files were read, and how many had been.
    pub fn files(&self) -> Work {
        self.files.work()
    }

    /// How many models were checked, and how many had been.
    pub fn models(&self) -> Work {
        self.cubes.models()
    }

    /// What was built of the definitions.
    pub fn built(&self) -> &KeptCubes {
        &self.cubes
    }

    /// How many cubes were built, and how many had been.
    pub fn cubes(&self) -> Work {
        self.cubes.cubes()
    }
}

/// What is known already when a project is loaded.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub described: &'a Described,
    pub kept: &'a Arc<Kept>,
}

impl Snapshot {
    /// A model whose column types are known already.
    pub fn new(model: Model, definitions: Definitions, profile: DialectProfile, diagnostics: Vec<Diagnostic>) -> Self {
        let (definitions, profile) = (Arc::new(definitions), Arc::new(profile));
        Snapshot {
            model,
            definitions,
            profile,
            diagnostics,
            described: Described::default(),
            kept: Arc::default(),
            graph: OnceLock::new(),
            lineage: OnceCell::new(),
        }
    }

    /// What depends on what, as far as a caller may see.
    pub fn graph(&self, access: &Access<'_>) -> DependencyGraph {
        self.whole_graph().seen_by(access)
    }

    /// Which column becomes which measure. Made when it is first asked for; the warehouse is asked for the
    /// columns of tables that sources don't declare completely.
    pub async fn lineage(&self, warehouse: &dyn Warehouse) -> &Lineage {
        let make = async {
            let mut known = KnownColumns::declared(&self.definitions);
            let lineage = Lineage::build(&self.definitions, &self.model, &known);
            if lineage.incomplete.is_empty() {
                return lineage;
            }
            self.described.inspected().add_to(&mut known, &lineage.incomplete, &self.profile, warehouse).await;
            Lineage::build(&self.definitions, &self.model, &known)
        };
        self.lineage.get_or_init(|| make).await
    }

    /// How many nodes and edges the whole graph has.
    pub fn graph_size(&self) -> (usize, usize) {
        let graph = self.whole_graph();
        (graph.nodes.len(), graph.edges.len())
    }

    /// The names of all models; each batch needs only what is before it.
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

    /// For a load that need not ask the warehouse again about what is the same.
    pub fn described(&self) -> &Described {
        &self.described
    }

    /// All of what the next load need not do again.
    pub fn known(&self) -> Known<'_> {
        Known { described: &self.described, kept: &self.kept }
    }

    /// For a load that need not do again what is the same.
    pub fn kept(&self) -> &Arc<Kept> {
        &self.kept
    }

    /// Makes errors of what the warehouse refuses of cubes that it could read in the same project `before`.
    pub(crate) fn harden(&mut self, before: &Snapshot) {
        let had = |cube: &str| before.model.cube_named(cube).is_some();
        self.described.harden(&mut self.diagnostics, &before.described, had);
    }

    /// Notes models that the warehouse could read.
    pub(crate) fn accept(&mut self, models: Vec<Arc<str>>) {
        self.described.accept(models);
    }
}

/// Loads a project: text to model, then the column types from the warehouse, but for what is `known`.
///
/// # Errors
/// [`PluginError`] when the warehouse's dialect can't be had. Problems of the project itself are
/// diagnostics.
pub async fn load(
    tree: &SourceTree,
    inputs: &Inputs,
    known: Known<'_>,
    plugins: &dyn Plugins,
    warehouse: &dyn Warehouse,
) -> Result<Snapshot, PluginError> {
    let profile = plugins.dialect(warehouse.name())?;
    let (inputs, located, unlocated) = locate(inputs, &known.described.located, warehouse).await;
    let held = warehouse.built().await.map_err(|error| {
        Diagnostic::error(BUILDS_UNKNOWN, "the warehouse can't be asked which models were built")
            .detail(error.to_string())
            .hint("load the project again when the warehouse answers")
    });
    let Texts { definitions, model, mut diagnostics, files, cubes } = read_texts(tree, inputs, held, known.kept).await;
    diagnostics.extend(unlocated);
    let reading = Reading::new(&model, &definitions, &profile, warehouse, known.described);
    let (types, mut described) = reading.types(&mut diagnostics).await;
    described.located = located;
    let plain = model.cubes.clone();
    let model = model.with_types_again(&types, &known.kept.typed);
    diagnostics.extend(column_mistakes(&model, &types, &profile));
    let typed = TypedCubes::of(plain, &model);
    Ok(Snapshot {
        model,
        definitions: Arc::new(definitions),
        profile,
        diagnostics,
        described,
        kept: Arc::new(Kept { files, cubes, typed }),
        graph: OnceLock::new(),
        lineage: OnceCell::new(),
    })
}

/// What texts alone come to.
struct Texts {
    definitions: Definitions,
    model: Model,
    diagnostics: Vec<Diagnostic>,
    files: KeptFiles,
    cubes: KeptCubes,
}

/// On a thread that may take its time: a large project takes longer than a query may wait for a worker.
async fn read_texts(
    tree: &SourceTree,
    inputs: Inputs,
    held: Result<Vec<BuiltRelation>, Diagnostic>,
    kept: &Arc<Kept>,
) -> Texts {
    let (tree, kept) = (tree.clone(), Arc::clone(kept));
    let read = move || {
        let (mut definitions, mut diagnostics, files) = project::read_again(&tree, &inputs, &kept.files);
        match held {
            Ok(held) => definitions.built = current_builds(&definitions, &held, &kept.cubes),
            Err(problem) => {
                definitions.built.is_unknown = true;
                diagnostics.push(problem);
            }
        }
        let (model, problems, cubes) = model::build_again(&definitions, &kept.cubes);
        diagnostics.extend(problems);
        Texts { definitions, model, diagnostics, files, cubes }
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(read) => read,
        Err(broken) => std::panic::resume_unwind(broken.into_panic()),
    }
}

/// The warehouse doesn't say what it holds of models.
pub const BUILDS_UNKNOWN: Code = Code::BuildsUnknown;

/// Holds the snapshot that is served now.
#[derive(Debug)]
pub struct Catalog {
    current: RwLock<Arc<Snapshot>>,
}

impl Catalog {
    pub fn new(snapshot: Snapshot) -> Self {
        Catalog { current: RwLock::new(Arc::new(snapshot)) }
    }

    /// The snapshot for one request; take it once.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        // A snapshot is replaced by one assignment, so a poisoned lock holds a whole one.
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn replace(&self, snapshot: Snapshot) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }
}
