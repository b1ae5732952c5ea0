//! `terrane cost`: reports what queries cost, from the history in the state database.
//!
//! In: arguments. Out: a table or JSON. Servers write the history. Absent: single queries with their callers, which
//! `GET /api/v1/optimization/history` returns.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use jiff::Timestamp;
use terrane_app::ports::clock::Clock as _;
use terrane_app::ports::executed_queries::{ExecutedQueries as _, StatementTotals};
use terrane_terminal::TerminalText;
use terrane_wire::cost::{CostReport, StatementCost};

use super::{json_line, print, print_error};
use crate::clock::SystemClock;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane cost report
  terrane cost report my-project --days 30 --limit 5
  terrane cost report --json | jq '.statements[0]'

A server with `optimization.enabled` records each query that it answered, without its values and rows, for
`optimization.history_days`. The statement of a hash is in the server's log: event `query_compiled`, field `sql_hash`.
Costs need a price: `optimization.prices.second`.")]
pub struct CostArguments {
    #[command(subcommand)]
    pub action: CostAction,
}

#[derive(Debug, Subcommand)]
pub enum CostAction {
    /// List the statements that took the most time on the warehouse
    Report {
        /// The project: the folder that holds service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// The number of days up to now
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=3_650))]
        days: u32,
        /// The most statements to list
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl CostAction {
    /// Returns the path of the project.
    pub fn dir(&self) -> &PathBuf {
        let CostAction::Report { dir, .. } = self;
        dir
    }
}

/// Runs the command.
///
/// # Errors
/// The state database cannot be read.
pub async fn run(arguments: &CostArguments, project: &Project) -> Result<(), Failure> {
    let CostAction::Report { days, limit, json, .. } = &arguments.action;
    let store = wiring::state(project).await?;
    let length = Duration::from_secs(u64::from(*days) * 86_400);
    let since = SystemClock::default().now().checked_sub(length).unwrap_or(Timestamp::MIN);
    let totals = store.statement_totals(since, *limit).await.map_err(|error| Failure::new(error.to_string()))?;
    if *json {
        print(&json_line(&CostReport::new(since, &totals)));
    } else if totals.is_empty() {
        print_error("no queries\n");
    } else {
        print(&format!("{}\n", table(&totals)));
    }
    Ok(())
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
