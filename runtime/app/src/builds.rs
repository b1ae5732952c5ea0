//! The use case of building models in the warehouse, in dependency order.
//!
//! In: a snapshot and a selection of its models. Out: the outcome of each model. A model reads the relations of models
//! that were built before it, and inlines models that were not built. If a model fails, the models that read it are
//! skipped. Under a lease, a project has at most one run on all servers; a run that loses the lease stops. Dropping a
//! run stops its statements and leaves the old relations in place. Not here: the replacement of a relation (the port's
//! adapters).

mod current;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use terrane_compiler::model::ModelQueries;
use terrane_compiler::project::{Definitions, Materialization};
use terrane_compiler::text::nearest::nearest;

pub(crate) use current::current_builds;
pub use current::fingerprint;

use crate::catalog::Snapshot;
use crate::ports::audit::{AuditEntry, AuditLog, Detail, Details};
use crate::ports::builder::{BuildError, Marker, ModelBuilder, NewRelation, NotReady};
use crate::ports::clock::Clock;
use crate::ports::invalidations::{InvalidationScope, Invalidations};
use crate::ports::leases::Leases;
use crate::ports::store::StoreError;
use crate::worker::{HeldLease, LeaseLoss, LeaseSettings};

/// The number of models of one batch that are built at the same time.
const AT_ONCE: usize = 4;

/// The ports and settings of a run.
#[derive(Clone)]
pub struct Builds {
    pub builder: Arc<dyn ModelBuilder>,
    pub leases: Arc<dyn Leases>,
    pub audit: Arc<dyn AuditLog>,
    /// The port that informs the other servers of finished runs.
    pub invalidations: Arc<dyn Invalidations>,
    pub clock: Arc<dyn Clock>,
    /// The id of this process among all replicas.
    pub holder: Arc<str>,
    /// The longest time that building one model may take.
    pub timeout: Duration,
}

/// The models to build, and the audit record of the request.
#[derive(Debug, Clone)]
pub struct BuildRequest<'a> {
    /// The names of the models; `None` for all models.
    pub models: Option<&'a [String]>,
    /// The actor and the origin of the request. The run adds the event and its details.
    pub entry: AuditEntry,
}

/// The outcome of a model's build.
#[derive(Debug, Clone)]
pub struct ModelBuild {
    pub model: Arc<str>,
    pub materialization: Materialization,
    /// The name of the relation as `schema.name`; `None` if the model is not built.
    pub relation: Option<String>,
    pub outcome: ModelOutcome,
    pub elapsed: Duration,
}

#[derive(Debug, Clone)]
pub enum ModelOutcome {
    /// The relation was built. `rows` is the number of rows if the relation is a table.
    Built {
        rows: Option<u64>,
    },
    /// The model is ephemeral: it has no relation, and models that read it inline its query.
    Inlined,
    Failed(BuildError),
    /// Another model failed, and this model reads it.
    Skipped {
        because_of: Arc<str>,
    },
}

impl ModelBuild {
    pub fn is_in_order(&self) -> bool {
        matches!(self.outcome, ModelOutcome::Built { .. } | ModelOutcome::Inlined)
    }
}

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub enum BuildProgress<'a> {
    Started {
        model: &'a str,
    },
    /// A model has ended, as number `place` of `of` models.
    Ended {
        build: &'a ModelBuild,
        place: usize,
        of: usize,
    },
}

/// The reason why a run built no model or only some.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BuildRunError {
    #[error("unknown model `{name}`")]
    UnknownModel { name: String, nearest: Vec<String> },
    #[error("another run is building models of this project")]
    Busy,
    #[error("the run was stopped; models that were not reported are unchanged")]
    Stopped,
    #[error("the run was stopped: another run took over its lease")]
    LeaseLost,
    #[error(transparent)]
    NotReady(#[from] NotReady),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<LeaseLoss> for BuildRunError {
    fn from(loss: LeaseLoss) -> Self {
        match loss {
            LeaseLoss::Expired => BuildRunError::LeaseLost,
            LeaseLoss::Store(error) => error.into(),
        }
    }
}

impl Builds {
    /// Builds all models or the named ones until `stop` ends, and calls `report` with the progress.
    ///
    /// # Errors
    /// [`BuildRunError`]; finished models remain. A failed model is an outcome, not an error.
    pub async fn run(
        &self,
        snapshot: &Snapshot,
        wanted: BuildRequest<'_>,
        report: &(dyn Fn(BuildProgress<'_>) + Send + Sync),
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Vec<ModelBuild>, BuildRunError> {
        let plan = Plan::of(snapshot, wanted.models)?;
        if plan.batches.is_empty() {
            return Ok(plan.inlined);
        }
        let name = format!("build:{}", snapshot.model.project);
        let settings = LeaseSettings::default();
        let lease =
            HeldLease::acquire(&self.leases, &name, &self.holder, settings).await?.ok_or(BuildRunError::Busy)?;
        let outcome = tokio::select! {
            outcome = self.build(&plan, &wanted.entry, report) => outcome,
            loss = lease.until_lost(&*self.clock, settings) => Err(loss.into()),
            () = stop => Err(BuildRunError::Stopped),
        };
        self.builder.settle().await;
        let invalidated = self.invalidations.invalidate(&[InvalidationScope::default()], None).await;
        if let Err(error) = lease.release().await {
            tracing::warn!(event = "lease_not_released", name, error_message = %error);
        }
        // An error in `invalidated` is returned too: the other servers, which were not informed, serve old rows until
        // their results expire.
        let builds = outcome?;
        invalidated?;
        Ok(builds)
    }

    async fn build(
        &self,
        plan: &Plan<'_>,
        entry: &AuditEntry,
        report: &(dyn Fn(BuildProgress<'_>) + Send + Sync),
    ) -> Result<Vec<ModelBuild>, BuildRunError> {
        let schemas: BTreeSet<&str> =
            plan.wanted().filter_map(|at| plan.built_as(at)).map(|(schema, _)| schema).collect();
        self.builder.prepare(&schemas.into_iter().collect::<Vec<_>>()).await?;
        // Writes the audit record before the first build, so that the log also shows a run that was killed.
        let names: Detail = plan.wanted().map(|at| &*plan.model(at).name.value).collect();
        self.note("build_begun", Details::fields([("models", names)]), entry).await?;
        let mut builds = plan.inlined.clone();
        let of = plan.wanted().count();
        let mut over = 0;
        // `there` contains the models whose relations can be read. `missing` contains the models that failed or were
        // skipped, each with the model that failed.
        let mut there = plan.current.clone();
        let mut missing: BTreeMap<usize, Arc<str>> = BTreeMap::new();
        for batch in &plan.batches {
            let one = |at: usize| {
                let cause = plan.queries.needs(at).iter().find_map(|need| missing.get(need)).cloned();
                let there = &there;
                async move {
                    match cause {
                        Some(because_of) => (at, plan.over(at, ModelOutcome::Skipped { because_of }, Duration::ZERO)),
                        None => {
                            report(BuildProgress::Started { model: &plan.model(at).name.value });
                            (at, self.one(plan, at, there).await)
                        }
                    }
                }
            };
            let mut running = stream::iter(batch.iter().copied().map(one)).buffer_unordered(AT_ONCE);
            let mut ended = Vec::new();
            while let Some((at, build)) = running.next().await {
                over += 1;
                log(&build);
                report(BuildProgress::Ended { build: &build, place: over, of });
                ended.push((at, build));
            }
            drop(running);
            for (at, build) in ended {
                match &build.outcome {
                    ModelOutcome::Built { .. } | ModelOutcome::Inlined => {
                        there.insert(at);
                    }
                    ModelOutcome::Failed(_) => {
                        missing.insert(at, Arc::clone(&build.model));
                    }
                    ModelOutcome::Skipped { because_of } => {
                        missing.insert(at, Arc::clone(because_of));
                    }
                }
                builds.push(build);
            }
        }
        self.note("models_built", summary(&builds), entry).await?;
        Ok(builds)
    }

    async fn note(&self, event: &'static str, after: Details, entry: &AuditEntry) -> Result<(), StoreError> {
        let (at, event, after) = (self.clock.now(), event.into(), Some(after));
        self.audit.append(vec![AuditEntry { at, event, after, ..entry.clone() }]).await
    }

    async fn one(&self, plan: &Plan<'_>, at: usize, there: &BTreeSet<usize>) -> ModelBuild {
        let started = self.clock.elapsed();
        let outcome = match plan.relation(at, there) {
            Some(ToBuild { query, marker, built_as: (schema, name), is_view }) => {
                let relation = NewRelation { schema, name, is_view, query: &query, marker: &marker };
                match self.builder.build(&relation, self.timeout).await {
                    Ok(rows) => ModelOutcome::Built { rows },
                    Err(error) => ModelOutcome::Failed(error),
                }
            }
            None => ModelOutcome::Inlined,
        };
        plan.over(at, outcome, self.clock.elapsed().saturating_sub(started))
    }
}

/// One model to build.
struct ToBuild<'s> {
    query: Arc<str>,
    marker: Marker,
    /// The schema and the name of the relation.
    built_as: (&'s str, &'s str),
    is_view: bool,
}

/// The models to build, and their order.
struct Plan<'s> {
    definitions: &'s Definitions,
    queries: ModelQueries,
    /// Indexes into the definitions' models. The models of a batch read only models of earlier batches.
    batches: Vec<Vec<usize>>,
    /// The ephemeral models that the request names.
    inlined: Vec<ModelBuild>,
    /// Models whose relations are current, so that they are not rebuilt.
    current: BTreeSet<usize>,
}

impl<'s> Plan<'s> {
    fn of(snapshot: &'s Snapshot, named: Option<&[String]>) -> Result<Self, BuildRunError> {
        let definitions = &*snapshot.definitions;
        let index: HashMap<&str, usize> =
            definitions.models.iter().enumerate().map(|(at, model)| (&*model.name.value, at)).collect();
        let mut wanted: BTreeSet<usize> = index.values().copied().collect();
        if let Some(named) = named {
            let found = |name: &String| {
                index.get(name.as_str()).copied().ok_or_else(|| BuildRunError::UnknownModel {
                    name: name.clone(),
                    nearest: nearest(name, index.keys().copied(), 5).into_iter().map(str::to_owned).collect(),
                })
            };
            wanted = named.iter().map(found).collect::<Result<_, _>>()?;
        }
        let is_stored = |at: &usize| definitions.models[*at].built_as().is_some();
        let batches = snapshot.model_batches().into_iter().map(|batch| {
            let models = batch.iter().filter_map(|name| index.get(&**name).copied());
            models.filter(|at| wanted.contains(at) && is_stored(at)).collect::<Vec<_>>()
        });
        let mut plan = Plan {
            definitions,
            queries: ModelQueries::new(definitions),
            batches: batches.filter(|batch| !batch.is_empty()).collect(),
            inlined: Vec::new(),
            current: BTreeSet::new(),
        };
        let current = definitions.built.current.iter().filter_map(|name| index.get(&**name).copied());
        plan.current = current.filter(|at| !wanted.contains(at)).collect();
        if named.is_some() {
            let inlined = wanted.iter().filter(|at| !is_stored(at));
            plan.inlined = inlined.map(|at| plan.over(*at, ModelOutcome::Inlined, Duration::ZERO)).collect();
        }
        Ok(plan)
    }

    fn wanted(&self) -> impl Iterator<Item = usize> {
        self.batches.iter().flatten().copied()
    }

    fn model(&self, at: usize) -> &'s terrane_compiler::project::ModelDefinition {
        &self.definitions.models[at]
    }

    fn built_as(&self, at: usize) -> Option<(&'s str, &'s str)> {
        self.model(at).built_as()
    }

    /// Returns the relation to build; `None` for a model that cannot be read. A project without errors has no such
    /// model.
    fn relation(&self, at: usize, there: &BTreeSet<usize>) -> Option<ToBuild<'s>> {
        let query = self.queries.over(at, there)?;
        let marker = Marker {
            project: Arc::clone(&self.definitions.project),
            model: Arc::clone(&self.model(at).name.value),
            fingerprint: fingerprint(self.definitions, &self.queries, at)?,
        };
        let is_view = self.model(at).materialization == Materialization::View;
        Some(ToBuild { query, marker, built_as: self.built_as(at)?, is_view })
    }

    fn over(&self, at: usize, outcome: ModelOutcome, elapsed: Duration) -> ModelBuild {
        let model = self.model(at);
        ModelBuild {
            model: Arc::clone(&model.name.value),
            materialization: model.materialization,
            relation: model.built_as().map(|(schema, name)| format!("{schema}.{name}")),
            outcome,
            elapsed,
        }
    }
}

/// Returns the details of a run for its audit record.
fn summary(builds: &[ModelBuild]) -> Details {
    let names = |is_it: &dyn Fn(&ModelOutcome) -> bool| -> Detail {
        builds.iter().filter(|build| is_it(&build.outcome)).map(|build| &*build.model).collect()
    };
    Details::fields([
        ("built", names(&|outcome| matches!(outcome, ModelOutcome::Built { .. }))),
        ("failed", names(&|outcome| matches!(outcome, ModelOutcome::Failed(_)))),
        ("skipped", names(&|outcome| matches!(outcome, ModelOutcome::Skipped { .. }))),
    ])
}

fn log(build: &ModelBuild) {
    let (model, materialization) = (&*build.model, build.materialization.as_str());
    let duration_ms = build.elapsed.as_secs_f64() * 1e3;
    match &build.outcome {
        ModelOutcome::Built { rows } => {
            tracing::info!(event = "model_built", model, materialization, rows, duration_ms);
        }
        ModelOutcome::Inlined => {}
        ModelOutcome::Failed(error) => {
            tracing::error!(event = "model_failed", model, materialization, duration_ms, error_message = %error);
        }
        ModelOutcome::Skipped { because_of } => {
            tracing::warn!(event = "model_skipped", model, materialization, because_of = &**because_of);
        }
    }
}
