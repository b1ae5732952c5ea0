//! `terrane cost`: reports and predicts the costs of queries, recommends changes, and shows and changes guardrails, in
//! the state database.
//!
//! In: arguments. Out: a table or JSON. Servers write the history.

mod guardrails;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use jiff::Timestamp;
use terrane_app::cost::{CostPorts, CostService, ExecutionLog, PredictionAccuracy, PredictionError};
use terrane_app::domain::{RequestContext, Scope, Scopes};
use terrane_app::ports::clock::Clock as _;
use terrane_app::ports::executed_queries::{ExecutedQueries as _, HistoryFilter, StatementTotals};
use terrane_app::ports::guardrails::GuardrailRecord;
use terrane_identity::OsRandomness;
use terrane_terminal::{TerminalText, Tree};
use terrane_wire::ErrorBody;
use terrane_wire::cost::{
    CostPrediction, CostReport, GuardrailLimits, GuardrailList, Recommendation, Recommendations, StatementCost,
};

use super::module::{CallerArguments, ReadArguments, Requester, enabled, with_services};
use super::query::{query_text, refused, refused_query};
use super::{json_line, print, print_error};
use crate::clock::SystemClock;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring::{self, WarehouseUse};
use crate::{caller, wire};

/// The number of newest queries whose times are compared with their predictions.
const COMPARED: u32 = 10_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane cost report
  terrane cost report my-project --days 30 --limit 5
  terrane cost report --json | jq '.statements[0]'
  terrane cost recommend my-project --days 30
  terrane cost predict my-project '{\"measures\": [\"orders.count\"]}'
  terrane cost history my-project --user ada --limit 20
  terrane cost guardrails my-project
  terrane cost check-guardrails my-project '{\"measures\": [\"orders.count\"]}' --as ada.json
  terrane cost budget my-project --user ada --period current_day
  terrane cost set-guardrails '{\"max_rows_returned\": 10000}' my-project --user ada
  terrane cost set-guardrails @limits.yml my-project --group analyst --if-match 3
  terrane cost remove-guardrails my-project --group analyst

A server with `optimization.enabled` records each query that it answered, without its values and rows, for
`optimization.history_days`. The statement of a hash is in the server's log: event `query_compiled`, field `sql_hash`.
Costs need a price: `optimization.prices`.")]
pub struct CostArguments {
    #[command(subcommand)]
    pub action: CostAction,
}

#[derive(Debug, Subcommand)]
pub enum CostAction {
    /// List the statements that took the most time on the warehouse
    Report {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// The number of days before now
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=3_650))]
        days: u32,
        /// The maximum number of statements
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Recommend pre-aggregations, filters and indexes for the costliest queries of all callers
    Recommend {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// The number of days before now; default: `optimization.recommendation_window_days`
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=366))]
        days: Option<u16>,
        /// Recommend for the queries of this user alone
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// Print the response of GET /api/v1/optimization/recommendations
        #[arg(long)]
        json: bool,
    },
    /// Predict the bytes, the time and the cost of a query, without running it
    Predict {
        /// The project folder, which contains service_project.yml
        dir: PathBuf,
        /// The query as JSON; `@FILE` reads a file, `-` standard input
        query: String,
        #[command(flatten)]
        caller: CallerArguments,
        /// Print the response of POST /api/v1/optimization/predict-cost
        #[arg(long)]
        json: bool,
    },
    /// List the guardrails of users and groups
    Guardrails(ReadArguments),
    /// List executed queries, newest first
    History(guardrails::HistoryArguments),
    /// Show the limits of a caller's queries, with their sources
    EffectiveGuardrails(guardrails::EffectiveArguments),
    /// Check a query against guardrails and budgets, without running it
    CheckGuardrails(guardrails::CheckArguments),
    /// Show the costs of a user in the current day or month, and the budget
    Budget(guardrails::BudgetArguments),
    /// Show the guardrails of a user or a group
    ShowGuardrails(guardrails::ShowArguments),
    /// Replace the guardrails of a user or a group
    SetGuardrails(guardrails::SetArguments),
    /// Remove the guardrails of a user or a group
    RemoveGuardrails(guardrails::RemoveArguments),
}

impl CostAction {
    /// Returns the path of the project.
    pub fn dir(&self) -> &PathBuf {
        match self {
            CostAction::Report { dir, .. } | CostAction::Recommend { dir, .. } | CostAction::Predict { dir, .. } => dir,
            CostAction::Guardrails(arguments) => &arguments.place.dir,
            CostAction::History(arguments) => &arguments.place.dir,
            CostAction::EffectiveGuardrails(arguments) => &arguments.place.dir,
            CostAction::CheckGuardrails(arguments) => &arguments.dir,
            CostAction::Budget(arguments) => &arguments.place.dir,
            CostAction::ShowGuardrails(arguments) => &arguments.place.dir,
            CostAction::SetGuardrails(arguments) => &arguments.place.dir,
            CostAction::RemoveGuardrails(arguments) => &arguments.place.dir,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The state database cannot be read or written, or the request is refused.
pub async fn run(arguments: &CostArguments, project: &Project) -> Result<(), Failure> {
    match &arguments.action {
        CostAction::Report { days, limit, json, .. } => report(*days, *limit, *json, project).await,
        CostAction::Recommend { days, user, json, .. } => recommend(*days, user.as_deref(), *json, project).await,
        CostAction::Predict { query, caller, json, .. } => predict(query, caller, *json, project).await,
        CostAction::Guardrails(arguments) => guardrails(arguments, project).await,
        CostAction::History(arguments) => guardrails::history(arguments, project).await,
        CostAction::EffectiveGuardrails(arguments) => guardrails::effective(arguments, project).await,
        CostAction::CheckGuardrails(arguments) => guardrails::check(arguments, project).await,
        CostAction::Budget(arguments) => guardrails::budget(arguments, project).await,
        CostAction::ShowGuardrails(arguments) => guardrails::show(arguments, project).await,
        CostAction::SetGuardrails(arguments) => guardrails::set(arguments, project).await,
        CostAction::RemoveGuardrails(arguments) => guardrails::remove(arguments, project).await,
    }
}

async fn report(days: u32, limit: u32, json: bool, project: &Project) -> Result<(), Failure> {
    let store = wiring::state(project).await?;
    let length = Duration::from_secs(u64::from(days) * 86_400);
    let since = SystemClock::default().now().checked_sub(length).unwrap_or(Timestamp::MIN);
    let totals = store.statement_totals(since, limit).await.map_err(|error| Failure::new(error.to_string()))?;
    let newest = HistoryFilter { is_computed: true, since: Some(since), limit: COMPARED, ..HistoryFilter::default() };
    let queries = store.executed(&newest).await.map_err(|error| Failure::new(error.to_string()))?;
    let accuracy = PredictionAccuracy::of(&queries);
    if json {
        print(&json_line(&CostReport::new(since, &totals, accuracy)));
    } else if totals.is_empty() {
        print_error("no queries\n");
    } else {
        print(&format!("{}\n", table(&totals)));
        if let Some(PredictionAccuracy { queries, median, p90, p99, covered }) = accuracy {
            print(&format!(
                "\npredicted seconds of {}: q-error {median:.2} (median), {p90:.2} (p90), {p99:.2} (p99); \
                 {:.0} % took at most their predicted p90\n",
                if queries == 1 { "1 query".to_owned() } else { format!("{queries} queries") },
                covered * 100.0,
            ));
        }
    }
    Ok(())
}

async fn recommend(days: Option<u16>, user: Option<&str>, json: bool, project: &Project) -> Result<(), Failure> {
    let store = wiring::state(project).await?;
    let (services, _) = wiring::load(project, WarehouseUse::Read).await?;
    let place = wiring::rollup_place(project, &store).await?;
    let preaggregations = place
        .map(|place| Arc::new(wiring::preaggregations(project, &services, &store, wiring::tables_elsewhere(&place))));
    let prices = project.config.optimization.prices;
    let clock = Arc::new(SystemClock::default());
    let ports = CostPorts {
        log: Arc::new(ExecutionLog::new(store.clone(), clock.clone(), &OsRandomness, prices)),
        history: store,
        catalog: services.catalog,
        access: services.access,
        clock,
        preaggregations,
    };
    let service = CostService::new(ports, project.config.optimization.recommendation_days);
    let days = days.unwrap_or(service.recommendation_days());
    // A user who can open the state database can read all of it, so this request has all rights.
    let request = RequestContext { scopes: Scopes::default().with(Scope::Admin), ..caller::read(None)? };
    let found = service.recommendations(&request, user.map(Into::into), days).await;
    let found = found.map_err(|error| Failure::new(error.to_string()))?;
    let body = Recommendations::new(days, &found);
    if json {
        print(&json_line(&body));
    } else if found.is_empty() {
        print_error("no recommendations\n");
    } else {
        body.recommendations.iter().for_each(|one| print(&recommendation_tree(one).to_string()));
    }
    Ok(())
}

fn recommendation_tree(found: &Recommendation<'_>) -> Tree {
    let mut tree = Tree::new(format!("{}: {}", found.kind, TerminalText::spaced(&found.message)));
    let cost = found.evidence.cost.map_or_else(String::new, |cost| format!(", cost {cost:.6}"));
    tree.push(Tree::new(format!("took: {:.3} s on the warehouse{cost}", found.evidence.warehouse_seconds)));
    if let Some(saving) = &found.expected_saving {
        let most = if saving.basis == "upper_bound" { "at most " } else { "" };
        tree.push(Tree::new(format!("saves: {most}{:.3} s", saving.warehouse_seconds)));
    }
    for line in found.definition.iter().flat_map(|definition| definition.lines()) {
        tree.push(Tree::new(TerminalText::spaced(line).into_string()));
    }
    tree
}

async fn predict(query: &str, caller: &CallerArguments, json: bool, project: &Project) -> Result<(), Failure> {
    let text = query_text(query)?;
    let query = wire::parse(&text).map_err(|error| refused(error.into()))?;
    let requester = Requester::new(caller.caller.as_deref())?;
    let predicted = with_services(project, async |services| {
        let predictor = enabled(services.predictor.as_ref(), "costs are", "optimization.enabled")?;
        predictor.predict(&requester.request, &query).await.map_err(|error| match error {
            PredictionError::Query(error) => refused_query(error, &text),
            error => refused(ErrorBody::from_prediction(error, requester.request.scopes)),
        })
    })
    .await?;
    let body = CostPrediction::new(&predicted, true);
    if json {
        print(&json_line(&body));
    } else {
        print(&prediction_tree(&body).to_string());
    }
    Ok(())
}

fn prediction_tree(body: &CostPrediction<'_>) -> Tree {
    let number = |number: Option<f64>| number.map_or_else(|| "unknown".to_owned(), |number| format!("{number:.6}"));
    let range = |low, median, high, basis| format!("{} ({} to {}), {basis}", number(median), number(low), number(high));
    let (low, high, bases) = (&body.low, &body.high, &body.bases);
    let mut tree = Tree::new(format!("statement {}", body.query_hash));
    tree.push(Tree::new(format!("predicted from: {} queries", body.samples)));
    let bytes = body.scan_bytes_formatted.as_deref().unwrap_or("unknown");
    tree.push(Tree::new(format!("bytes: {bytes}, {}", bases.scan_bytes)));
    let seconds = range(low.estimated_seconds, body.estimated_seconds, high.estimated_seconds, bases.estimated_seconds);
    tree.push(Tree::new(format!("seconds: {seconds}")));
    let cost = range(low.estimated_cost, body.estimated_cost, high.estimated_cost, bases.estimated_cost);
    tree.push(Tree::new(format!("cost: {cost}")));
    if let Some(name) = body.preagg_match.as_ref().and_then(|found| found.preagg_name) {
        tree.push(Tree::new(format!("pre-aggregation: {}", TerminalText::spaced(name))));
    }
    let lines = body.guardrail_status.warnings.iter().chain(&body.optimization_hints).chain(&body.warnings);
    for line in lines {
        tree.push(Tree::new(TerminalText::spaced(line).into_string()));
    }
    tree
}

async fn guardrails(arguments: &ReadArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.caller.caller.as_deref())?;
    let records = with_services(project, async |services| {
        let service = enabled(services.guardrails.as_ref(), "costs are", "optimization.enabled")?;
        service.all(&requester.request).await.map_err(|error| refused(ErrorBody::from(&error)))
    })
    .await?;
    let records: Vec<GuardrailRecord> = records.iter().map(|record| GuardrailRecord::clone(record)).collect();
    if arguments.place.json {
        print(&json_line(&GuardrailList::from(records.as_slice())));
    } else if records.is_empty() {
        print_error("no guardrails of users and groups\n");
    } else {
        print(&format!("{}\n", guardrail_table(&records)));
    }
    Ok(())
}

fn guardrail_table(records: &[GuardrailRecord]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    let header = ["OF", "NAME", "SECONDS", "ROWS", "FILTERS", "COST", "DAY", "MONTH", "BY", "AT"];
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    for record in records {
        let limits = GuardrailLimits::from(&record.limits.unwrap_or_default());
        table.add_row([
            record.subject.kind().to_owned(),
            TerminalText::spaced(record.subject.name()).into_string(),
            limits.max_execution_seconds.map_or_else(String::new, |limit| limit.to_string()),
            limits.max_rows_returned.map_or_else(String::new, |rows| rows.to_string()),
            [(limits.require_time_filter, "time"), (limits.require_partition_filter, "partition")]
                .into_iter()
                .filter_map(|(is_required, filter)| is_required.then_some(filter))
                .collect::<Vec<_>>()
                .join(", "),
            limits.max_cost_per_query.map_or_else(String::new, |cost| cost.to_string()),
            limits.daily_budget.map_or_else(String::new, |amount| amount.to_string()),
            limits.monthly_budget.map_or_else(String::new, |amount| amount.to_string()),
            TerminalText::spaced(&record.updated_by).into_string(),
            record.updated_at.to_string(),
        ]);
    }
    table
}

fn table(totals: &[StatementTotals]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    let header = ["STATEMENT", "CUBE", "QUERIES", "CACHED", "ROWS", "SECONDS", "LONGEST", "COST", "LAST"];
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    for statement in totals.iter().map(StatementCost::from) {
        table.add_row([
            statement.query_hash.to_owned(),
            TerminalText::spaced(statement.cube).into_string(),
            statement.queries.to_string(),
            statement.cached.to_string(),
            statement.rows.to_string(),
            format!("{:.3}", statement.warehouse_seconds),
            format!("{:.3}", statement.longest_seconds),
            statement.cost.map_or_else(String::new, |cost| format!("{cost:.6}")),
            statement.last_at,
        ]);
    }
    table
}
