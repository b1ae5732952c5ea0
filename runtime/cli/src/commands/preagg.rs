//! `terrane preagg`: shows and builds pre-aggregations, and shows what serves a query.
//!
//! In: arguments. Out: tables or JSON. If a server builds for the project, it also runs the builds of this command;
//! otherwise they run in this process. Not here: how tables are built (`terrane_app::preaggregations`).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value as Json, json};
use terrane_app::domain::{RequestContext, Scope, Scopes};
use terrane_app::ports::leases::Leases;
use terrane_app::ports::preaggregations::{BuildState, PreaggregationState as _, RollupBuild};
use terrane_app::ports::rollup_tables::RollupPlace;
use terrane_app::preaggregations::{
    BUILDING, Preaggregations, Recommendation, RefreshError, RefreshRequest, RollupStatus,
};
use terrane_app::services::Services;
use terrane_app::worker::{HeldLease, LeaseSettings};
use terrane_compiler::SecurityContext;
use terrane_compiler::rollup::MissReason;
use terrane_expectations::Rows;
use terrane_store::StateStore;
use terrane_terminal::Tree;
use terrane_wire::Audience;
use terrane_wire::preaggregations::{PreaggregationBuild, PreaggregationsStatus, definition_yaml};

use super::query::{query_text, refused, refused_query};
use super::{Terminal, json_line, operator, print, print_error, print_problems};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::plural;
use crate::shutdown_signal::ShutdownSignal;
use crate::wiring::{self, WarehouseUse};
use crate::{caller, table, wire};

/// The time between two checks of builds that a server runs.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
pub struct PreaggArguments {
    #[command(subcommand)]
    pub action: PreaggAction,
}

#[derive(Debug, Subcommand)]
pub enum PreaggAction {
    /// Show the state of each pre-aggregation and of its newest build
    Status(StatusArguments),
    /// Build pre-aggregations now, and wait until they are built
    Build(BuildArguments),
    /// Show which pre-aggregation answers a query, or why none does
    Explain(ExplainArguments),
    /// Recommend pre-aggregations for the queries that a server computed from rows
    Recommend(RecommendArguments),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane preagg status .
  terrane preagg status . --json | jq '.pre_aggregations[] | select(.state != \"ready\")'")]
pub struct StatusArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// Print the response of GET /api/v1/preaggregations/status
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane preagg build .
  terrane preagg build . orders.daily
  terrane preagg build . orders.daily --partitions 2026-01,2026-02

Without a name, all pre-aggregations of the project are built, even if their rows have not changed. While a server of
this project runs, it builds them, and the command waits for it. A new generation is published if its
totals equal those of its rows. Until then, and if the build fails, queries read the previous generation.

Exit code: 0 if every build succeeded, 1 otherwise.")]
pub struct BuildArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// A pre-aggregation, CUBE.NAME, or all of a cube, CUBE
    pub name: Option<String>,
    /// Build only the partitions with these dates, times or periods such as 2026-Q1, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "DATE")]
    pub partitions: Vec<String>,
    /// Print one JSON object for each build
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane preagg explain . '{\"measures\": [\"orders.revenue\"], \"dimensions\": [\"orders.region\"]}'
  terrane preagg explain . @question.json --json

For each cube whose rows the query aggregates, the output shows the pre-aggregation that answers, or the reasons why
none does, the closest match first, with the lines that its definition lacks. The query is not run.")]
pub struct ExplainArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The query as JSON; `@FILE` reads a file, `-` standard input
    pub query: String,
    /// Explain it for this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane preagg recommend .
  terrane preagg recommend . --json | jq -r '.recommendations[0].yaml'

A server with `pre_aggregations.enabled` records the members of each query that it computes from rows, and the time
that the warehouse took. Each recommendation is an entry for `pre_aggregations` of its cube, the smallest one that
could have answered its queries. Counts of distinct values cannot be merged and have no recommendation.")]
pub struct RecommendArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl PreaggAction {
    pub fn dir(&self) -> &Path {
        match self {
            PreaggAction::Status(arguments) => &arguments.dir,
            PreaggAction::Build(arguments) => &arguments.dir,
            PreaggAction::Explain(arguments) => &arguments.dir,
            PreaggAction::Recommend(arguments) => &arguments.dir,
        }
    }
}

/// Runs a command. Returns true if every requested table was built.
///
/// # Errors
/// The project has errors, pre-aggregations are switched off, or the state database is unavailable.
pub async fn run(arguments: &PreaggArguments, project: Project, terminal: Terminal) -> Result<bool, Failure> {
    let store = wiring::state(&project).await?;
    let place = wiring::rollup_place(&project, &store).await?.ok_or_else(|| {
        Failure::new("pre-aggregations are switched off")
            .hint("Set `pre_aggregations: {enabled: true}` in service_project.yml.")
    })?;
    match &arguments.action {
        PreaggAction::Status(arguments) => status(arguments, &project, &store, &place).await.map(|()| true),
        PreaggAction::Build(arguments) => build(arguments, &project, &store, &place, terminal).await,
        PreaggAction::Explain(arguments) => explain(arguments, &project, &store, &place).await.map(|()| true),
        PreaggAction::Recommend(arguments) => recommend(arguments, &project, &store, &place).await.map(|()| true),
    }
}

/// Returns the use cases of a command that reads the state of pre-aggregations and not their tables.
async fn load(
    project: &Project,
    store: &Arc<StateStore>,
    place: &RollupPlace,
) -> Result<(Services, Preaggregations), Failure> {
    let (services, _) = wiring::load(project, WarehouseUse::Read).await?;
    let service = wiring::preaggregations(project, &services, store, wiring::tables_elsewhere(place));
    Ok((services, service))
}

async fn status(
    arguments: &StatusArguments,
    project: &Project,
    store: &Arc<StateStore>,
    place: &RollupPlace,
) -> Result<(), Failure> {
    let (_, service) = load(project, store, place).await?;
    let found = service.status(&request()).await.map_err(|error| Failure::new(error.to_string()))?;
    if arguments.json {
        print(&json_line(&PreaggregationsStatus::new(true, &found, Audience::Operator)));
    } else {
        print(&format!("{}\n", table::draw(&rows(&found), None)));
    }
    Ok(())
}

fn rows(found: &[RollupStatus]) -> Rows {
    let columns = ["pre-aggregation", "state", "tables", "rows", "published", "next refresh", "newest build"];
    let row = |status: &RollupStatus| {
        let tables = status.publication.as_ref().map(|published| &published.tables);
        let build = status.build.as_ref().map(|build| match &build.error_code {
            Some(code) => format!("{}: {code}", build.state.as_str()),
            None => build.state.as_str().to_owned(),
        });
        vec![
            json!(format!("{}.{}", status.rollup.cube, status.rollup.name)),
            json!(status.state.as_str()),
            json!(tables.map_or(0, Vec::len)),
            json!(tables.map(|tables| tables.iter().map(|table| table.rows).sum::<u64>())),
            json!(status.publication.as_ref().map(|published| published.published_at.to_string())),
            json!(status.next_refresh_at.map(|at| at.to_string())),
            json!(build),
        ]
    };
    Rows {
        columns: columns.map(str::to_owned).to_vec(),
        is_double: vec![false; columns.len()],
        rows: found.iter().map(row).collect(),
    }
}

async fn build(
    arguments: &BuildArguments,
    project: &Project,
    store: &Arc<StateStore>,
    place: &RollupPlace,
    terminal: Terminal,
) -> Result<bool, Failure> {
    let builder = Builder { project, store, place, terminal };
    let mut shutdown = ShutdownSignal::listen()?;
    let requested = match builder.acquire().await? {
        Some(lease) => builder.run(lease, Work::Request(wanted(arguments)), &mut shutdown).await?,
        None => {
            let (services, problems) = wiring::load(project, WarehouseUse::Read).await?;
            print_problems(&problems, &project.tree, terminal.stderr);
            let service = wiring::preaggregations(project, &services, store, wiring::tables_elsewhere(place));
            let requested = service.refresh(&wanted(arguments), &request()).await;
            let requested = requested.map_err(|error| explain_refusal(&error))?;
            print_error("waiting for another process that builds pre-aggregations of this project\n");
            let lease = tokio::select! {
                lease = builder.wait(&requested) => lease?,
                () = shutdown.received() => {
                    let message = "stopped waiting; the build stays pending, and the next server or command runs it";
                    return Err(Failure::new(message));
                }
            };
            match lease {
                Some(lease) => builder.run(lease, Work::Requested(requested), &mut shutdown).await?,
                None => requested,
            }
        }
    };
    report(arguments, store, &requested).await
}

/// The builds that a command runs.
enum Work {
    Request(RefreshRequest),
    /// Builds that are in the queue already.
    Requested(Vec<RollupBuild>),
}

/// Runs builds in this process, or waits for the process that runs them.
struct Builder<'a> {
    project: &'a Project,
    store: &'a Arc<StateStore>,
    place: &'a RollupPlace,
    terminal: Terminal,
}

impl Builder<'_> {
    /// Acquires the lease of builds. Returns `None` while another process holds the lease. With DuckDB, that process
    /// also has the file of the tables open.
    async fn acquire(&self) -> Result<Option<HeldLease>, Failure> {
        let leases: Arc<dyn Leases> = self.store.clone();
        let lease = HeldLease::acquire(&leases, BUILDING, &wiring::process_id(), LeaseSettings::default()).await;
        lease.map_err(|error| Failure::new(error.to_string()))
    }

    /// Waits until builds have ended. Returns the lease if its holder releases it, or lets it expire, before the builds
    /// have ended.
    async fn wait(&self, requested: &[RollupBuild]) -> Result<Option<HeldLease>, Failure> {
        let renewal = LeaseSettings::default().renewal;
        let mut waited = Duration::ZERO;
        while !ended(self.store, requested).await? {
            tokio::time::sleep(PAUSE).await;
            waited += PAUSE;
            if waited >= renewal {
                waited = Duration::ZERO;
                if let Some(lease) = self.acquire().await? {
                    return Ok(Some(lease));
                }
            }
        }
        Ok(None)
    }

    /// Runs builds under the lease, and releases it even if they fail.
    async fn run(
        &self,
        lease: HeldLease,
        work: Work,
        shutdown: &mut ShutdownSignal,
    ) -> Result<Vec<RollupBuild>, Failure> {
        let outcome = self.run_under(&lease, work, shutdown).await;
        let released = lease.release().await;
        let requested = outcome?;
        released.map_err(|error| Failure::new(error.to_string()))?;
        Ok(requested)
    }

    async fn run_under(
        &self,
        lease: &HeldLease,
        work: Work,
        shutdown: &mut ShutdownSignal,
    ) -> Result<Vec<RollupBuild>, Failure> {
        let Builder { project, store, place, terminal } = *self;
        let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
        let usage = WarehouseUse::Rollups(place.clone());
        let (services, tables, problems) = wiring::load_with_tables(project, usage).await?;
        print_problems(&problems, &project.tree, terminal.stderr);
        let tables = tables.unwrap_or_else(|| wiring::tables_elsewhere(place));
        let service = wiring::preaggregations(project, &services, store, tables);
        let requested = match work {
            Work::Request(wanted) => {
                let requested = service.refresh(&wanted, &request()).await;
                requested.map_err(|error| explain_refusal(&error))?
            }
            Work::Requested(requested) => requested,
        };
        let working = async {
            // The service retries a failed build when its time has come.
            while !ended(store, &requested).await? {
                service.work(lease.lease()).await.map_err(|error| failed(&error))?;
                tokio::time::sleep(PAUSE).await;
            }
            Ok::<_, Failure>(())
        };
        tokio::select! {
            outcome = working => outcome?,
            _ = lease.until_lost(&*services.clock, LeaseSettings::default()) => {
                return Err(Failure::new("another process has taken over and continues the builds"));
            }
            () = shutdown.received() => return Err(Failure::new("stopped; a server or the next command continues the builds")),
        }
        Ok(requested)
    }
}

/// Prints the outcomes of builds. Returns whether all succeeded.
async fn report(arguments: &BuildArguments, store: &StateStore, requested: &[RollupBuild]) -> Result<bool, Failure> {
    let mut is_whole = true;
    for request in requested {
        let found = store.build(&request.id).await.map_err(|error| Failure::new(error.to_string()))?;
        let Some(build) = found else { continue };
        is_whole &= build.state == BuildState::Success;
        if arguments.json {
            print(&json_line(&PreaggregationBuild::new(&build, Audience::Operator)));
            continue;
        }
        let rows = build.rows.map(|rows| format!("  {}", plural(rows as usize, "row"))).unwrap_or_default();
        let error = build.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        let name = format!("{}.{}", build.rollup.cube, build.rollup.name);
        let tables = plural(build.tables_done as usize, "table");
        print(&format!("{name}  {}  {tables}{rows}{error}\n", build.state.as_str()));
    }
    Ok(is_whole)
}

/// Returns whether all builds have ended. A failure that is tried again later counts as an end.
async fn ended(store: &StateStore, requested: &[RollupBuild]) -> Result<bool, Failure> {
    let ids: HashSet<&str> = requested.iter().map(|build| &*build.id).collect();
    for id in ids {
        let build = store.build(id).await.map_err(|error| Failure::new(error.to_string()))?;
        let is_tried_again = |build: &RollupBuild| build.state == BuildState::Pending && build.error_code.is_some();
        if build.is_some_and(|build| !build.state.is_ended() && !is_tried_again(&build)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn wanted(arguments: &BuildArguments) -> RefreshRequest {
    let (cube, name) = match arguments.name.as_deref().map(|name| name.split_once('.').unwrap_or((name, ""))) {
        Some((cube, "")) => (Some(cube.to_owned()), None),
        Some((cube, name)) => (Some(cube.to_owned()), Some(name.to_owned())),
        None => (None, None),
    };
    RefreshRequest { cube, name, partitions: arguments.partitions.clone() }
}

fn explain_refusal(error: &RefreshError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        RefreshError::UnknownCube { nearest, .. } | RefreshError::UnknownRollup { nearest, .. }
            if !nearest.is_empty() =>
        {
            let what = match error {
                RefreshError::UnknownRollup { cube, .. } => format!("pre-aggregations of {cube}"),
                _ => "cubes with pre-aggregations".to_owned(),
            };
            failure.hint(format!("{what}: {}", nearest.join(", ")))
        }
        _ => failure,
    }
}

async fn recommend(
    arguments: &RecommendArguments,
    project: &Project,
    store: &Arc<StateStore>,
    place: &RollupPlace,
) -> Result<(), Failure> {
    let (_, service) = load(project, store, place).await?;
    let found = service.recommend().await.map_err(|error| Failure::new(error.to_string()))?;
    if arguments.json {
        let entry = |found: &Recommendation| {
            let milliseconds = found.warehouse.as_secs_f64() * 1_000.0;
            let yaml = definition_yaml(&found.definition);
            json!({"cube": &*found.cube, "queries": found.queries, "warehouse_ms": milliseconds, "yaml": yaml})
        };
        print(&json_line(&json!({ "recommendations": found.iter().map(entry).collect::<Vec<_>>() })));
        return Ok(());
    }
    if found.is_empty() {
        print_error("no recorded query can be answered from a pre-aggregation\n");
    }
    for found in &found {
        let (queries, seconds) = (found.queries, found.warehouse.as_secs_f64());
        let word = if queries == 1 { "query" } else { "queries" };
        let yaml = definition_yaml(&found.definition);
        print(&format!("# cube {}: {queries} {word}, {seconds:.1} s of the warehouse\n{yaml}\n", found.cube));
    }
    Ok(())
}

async fn explain(
    arguments: &ExplainArguments,
    project: &Project,
    store: &Arc<StateStore>,
    place: &RollupPlace,
) -> Result<(), Failure> {
    let text = query_text(&arguments.query)?;
    let query = wire::parse(&text).map_err(|error| refused(error.into()))?;
    let caller = caller::read(arguments.caller.as_deref())?;
    let (services, service) = load(project, store, place).await?;
    service.reload().await.map_err(|error| Failure::new(error.to_string()))?;
    let session = services.queries.session(&caller);
    let prepared = session.prepare(&query).await;
    let prepared = prepared.map_err(|error| refused_query(error, &text))?;
    let explanation = prepared.explain().await.map_err(|error| refused_query(error, &text))?;
    let facts = explanation.facts.iter().map(|fact| &fact.rollups);
    if arguments.json {
        let facts: Vec<Json> = facts.map(fact_json).collect();
        print(&json_line(&json!({ "facts": facts })));
    } else {
        let mut top = Tree::new("query");
        facts.map(fact_tree).for_each(|tree| top.push(tree));
        print(&top.to_string());
    }
    Ok(())
}

fn fact_json(fact: &terrane_compiler::rollup::FactMatch) -> Json {
    let served = fact.served.as_ref().map(|served| {
        json!({
            "pre_aggregation": &*served.rollup,
            "generation": served.generation,
            "tables": served.tables,
            "rows": served.rows,
            "built_at": served.built_at.to_string(),
            "is_split": served.is_split,
        })
    });
    let misses = fact.misses.iter().map(|miss| {
        json!({
            "pre_aggregation": miss.rollup.as_deref(),
            "reason": miss.reason.as_str(),
            "message": miss.reason.sentence(),
            "members": miss.members,
            "fix": miss.fix,
        })
    });
    json!({ "cube": &*fact.cube, "served": served, "misses": misses.collect::<Vec<_>>() })
}

fn fact_tree(fact: &terrane_compiler::rollup::FactMatch) -> Tree {
    let mut tree = Tree::new(&*fact.cube);
    if let Some(served) = &fact.served {
        let split = if served.is_split { ", and rows of the cube" } else { "" };
        let tables = plural(served.tables, "table");
        tree.push(Tree::new(format!("read from `{}`: {tables}, {} rows{split}", served.rollup, served.rows)));
        tree.push(Tree::new(format!("as old as {}", served.built_at)));
    }
    for miss in &fact.misses {
        let name = miss.rollup.as_deref().map(|name| format!("`{name}`: ")).unwrap_or_default();
        let members = match miss.members.is_empty() {
            true => String::new(),
            false => format!(" ({})", miss.members.join(", ")),
        };
        let mut line = Tree::new(format!("{name}{} {}{members}", miss.reason.as_str(), miss.reason.sentence()));
        let place = match (&miss.rollup, miss.reason) {
            (Some(rollup), _) => format!("`{rollup}`"),
            (None, MissReason::Disabled) => "service_project.yml".to_owned(),
            (None, _) => format!("cube `{}`", fact.cube),
        };
        miss.fix
            .iter()
            .flat_map(|fix| fix.lines())
            .for_each(|fix| line.push(Tree::new(format!("add to {place}: {fix}"))));
        tree.push(line);
    }
    tree
}

/// Returns the request of the operator of this machine, who may see every cube.
fn request() -> RequestContext {
    let caller = SecurityContext { user_id: operator().user_id, ..SecurityContext::default() };
    let scopes: Scopes = [Scope::Read, Scope::Write, Scope::Admin].into_iter().collect();
    RequestContext { scopes, ..RequestContext::operator(caller) }
}
