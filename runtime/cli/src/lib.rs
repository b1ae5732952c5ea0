//! The `terrane` program: commands, configuration, and the wiring of adapters to use cases.
//!
//! In: arguments, the environment, a project's folder. Out: an exit code: 0 for success, 1 for a problem of the
//! project, the configuration or the data, 2 for wrong arguments. The crate is also a library, so that the system tests
//! can run a project's expectations in process. Not here: the meaning of queries (compiler), HTTP (server).

mod allocator;
pub mod caller;
pub mod clock;
pub mod commands;
pub mod config;
mod data_source;
pub mod failure;
pub mod output;
pub mod output_file;
pub mod pictures;
mod plugin_lines;
pub mod project;
pub mod project_files;
mod query_place;
#[cfg(test)]
mod reference;
mod reload;
pub mod report;
mod shutdown_signal;
mod sql_text;
pub mod start_rules;
mod swapped;
mod table;
pub mod wire;
pub mod wiring;

use std::ffi::OsString;
use std::future::Future;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use clap::{Parser, Subcommand};

use commands::{
    Terminal, anomaly, ask, audit, auth, check, codegen, config as config_command, cost, dax, doctor, explain, export,
    governance, graph, graphql, import as import_command, init as init_command, jobs, lineage, list, lsp, plugin,
    preagg, print_error, print_problems, profile, query, report_page, run as run_command, schema, search, serve, state,
    test,
};
use config::Environment;
use failure::Failure;
use project::Project;
use report::Style;
use terrane_pictures::Glyphs;

/// The size of the stack of worker threads and of the thread that reads a project, in bytes. Deeply nested SQL must not
/// overflow the stack, because an overflow ends the process.
const STACK_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Parser)]
#[command(
    name = "terrane",
    version,
    about = "A semantic layer over your warehouse: metrics and dimensions in YAML, answers over HTTP",
    after_help = "\
A project is a folder:
  service_project.yml  name and settings
  cubes/**/*.yml       measures, dimensions, joins, segments
  metrics/**/*.yml     simple, ratio and derived metrics
  sources/*.yml        tables of the warehouse
  models/**/*.sql      SQL models
  policies/**/*.yml    row filters, masks, denied members
  tests/*.yml          queries with their expected results
runtime/docs/reference/project.md describes every key, runtime/docs/reference/query.md the queries.

First steps:
  terrane init shop --from exports/   a project of the tables of a folder, a DuckDB file or PostgreSQL
  terrane check examples/flights      what is wrong with the project, if anything
  terrane query examples/flights '{\"measures\": [\"flights.count\"], \"dimensions\": [\"flights.origin\"]}'
  terrane serve examples/flights      answers on http://127.0.0.1:8000

Every key of service_project.yml has an environment variable: SERVICE_ and the path in upper case, two
underscores between levels, as in SERVICE_SERVER__PORT or SERVICE_QUERY__TIMEOUT. `${NAME}` in a value of
the file is replaced from the environment. SQL of the project sees only variables that begin with
TERRANE_VAR_, by env_var('TERRANE_VAR_…').",
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a project, empty or from the tables of a warehouse
    Init(init_command::InitArguments),
    /// Create a project from the model of another tool
    Import(import_command::ImportArguments),
    /// Write a project in the format of another tool
    Export(export::ExportArguments),
    /// Write typed definitions of the members for TypeScript or Python
    Codegen(codegen::CodegenArguments),
    /// Serve a project over HTTP
    Serve(serve::ServeArguments),
    /// Report all problems of a project
    Check(check::CheckArguments),
    /// Run one query and print its rows
    Query(query::QueryArguments),
    /// Execute one GraphQL document on the terminal, or print the schema
    Graphql(graphql::GraphqlArguments),
    /// Run or check one DAX query
    Dax(dax::DaxArguments),
    /// Explain how a query becomes SQL
    Explain(explain::ExplainArguments),
    /// List cubes, their members, and metrics
    List(list::ListArguments),
    /// Draw the join graph of the cubes
    Graph(graph::GraphArguments),
    /// Draw the inputs of a member, or its dependents
    Lineage(lineage::LineageArguments),
    /// Build the project's models in the warehouse
    Run(run_command::RunArguments),
    /// Build pre-aggregations, and show which queries they answer
    Preagg(preagg::PreaggArguments),
    /// Report what queries cost
    Cost(cost::CostArguments),
    /// Convert a question in words to a query
    Ask(ask::AskArguments),
    /// Find cubes, members, metrics and values of dimensions by words
    Search(search::SearchArguments),
    /// Run a project's own expectations (tests/*.yml)
    Test(test::TestArguments),
    /// Find anomalies in a measure
    Anomaly(anomaly::AnomalyArguments),
    /// Profile the columns of a cube
    Profile(profile::ProfileArguments),
    /// Write a page about a project: catalogue, joins, lineage, profiles and anomalies
    Report(report_page::ReportArguments),
    /// Export and import governed records, and report on them
    Governance(governance::GovernanceArguments),
    /// Manage API keys, users and sessions
    Auth(auth::AuthArguments),
    /// Read and check the audit log
    Audit(audit::AuditArguments),
    /// List and cancel asynchronous queries
    Jobs(jobs::JobsArguments),
    /// Dump and restore the state database
    State(state::StateArguments),
    /// Serve an editor: diagnostics, completion, hover, navigation and rename
    Lsp(lsp::LspArguments),
    /// Print or write JSON Schemas of a project's files, for editors
    Schema(schema::SchemaArguments),
    /// Show the settings
    Config(config_command::ConfigArguments),
    /// Find problems that would prevent a server from starting or running
    Doctor(doctor::DoctorArguments),
    /// Create, test, sign and inspect plugins
    Plugin(plugin::PluginArguments),
}

/// Runs the program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    allocator::limit_retained_blocks();
    let words: Vec<OsString> = arguments.into_iter().collect();
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap also returns help and the version as errors; it chooses their stream and exit code.
            let _ = error.print();
            return ExitCode::from(error.exit_code().clamp(0, 255) as u8);
        }
    };
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let environment = Environment::of_process();
    let terminal = terminal(&environment);
    // A server has its own log, which contains these lines.
    if !matches!(arguments.command, Command::Serve(_)) {
        plugin_lines::install();
    }
    let outcome = on_large_stack(move || run(arguments.command, &words, &environment, terminal));
    match outcome {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        Ok(Ok(false)) => ExitCode::FAILURE,
        Ok(Err(failure)) => {
            print_failure(&failure, terminal);
            ExitCode::FAILURE
        }
        Err(failure) => {
            print_failure(&failure, terminal);
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command, words: &[String], environment: &Environment, terminal: Terminal) -> Result<bool, Failure> {
    let read = |dir: &Path| {
        Project::read(dir, environment).map_err(|failure| match swapped::hint(words, dir) {
            Some(hint) => failure.hint(hint),
            None => failure,
        })
    };
    match command {
        Command::Init(arguments) => in_runtime(None, init_command::run(&arguments, terminal))?.map(|()| true),
        Command::Import(arguments) => import_command::run(&arguments, terminal),
        Command::Export(arguments) => export::run(&arguments, &read(arguments.dir())?, terminal),
        Command::Codegen(arguments) => codegen::run(&arguments, &read(&arguments.dir)?).map(|()| true),
        Command::Serve(arguments) => {
            let project = read(&arguments.dir)?;
            let workers = project.config.server.workers;
            in_runtime(workers, serve::run(&arguments, project, terminal))?.map(|()| true)
        }
        Command::Check(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, check::run(&arguments, project, terminal))?
        }
        Command::Query(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, query::run(&arguments, project, terminal))?.map(|()| true)
        }
        Command::Graphql(arguments) => match arguments.dir.as_deref() {
            Some(dir) => {
                let project = read(dir)?;
                in_runtime(None, graphql::run(&arguments, project, terminal))?.map(|()| true)
            }
            None => {
                graphql::print_schema();
                Ok(true)
            }
        },
        Command::Dax(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, dax::run(&arguments, project, terminal))?
        }
        Command::Explain(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, explain::run(&arguments, project))?.map(|()| true)
        }
        Command::List(arguments) => list::run(&arguments, &read(&arguments.dir)?).map(|()| true),
        Command::Graph(arguments) => graph::run(&arguments, &read(&arguments.dir)?, terminal).map(|()| true),
        Command::Lineage(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, lineage::run(&arguments, project, terminal))?.map(|()| true)
        }
        Command::Run(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, run_command::run(&arguments, project, terminal))?
        }
        Command::Preagg(arguments) => {
            let project = read(arguments.action.dir())?;
            in_runtime(None, preagg::run(&arguments, project, terminal))?
        }
        Command::Cost(arguments) => {
            let project = read(arguments.action.dir())?;
            in_runtime(None, cost::run(&arguments, &project))?.map(|()| true)
        }
        Command::Ask(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, ask::run(&arguments, project, terminal))?
        }
        Command::Search(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, search::run(&arguments, project))?
        }
        Command::Test(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, test::run(&arguments, project, terminal))?
        }
        Command::Anomaly(arguments) => {
            let project = read(arguments.action.dir())?;
            in_runtime(None, anomaly::run(&arguments, project, terminal))?.map(|()| true)
        }
        Command::Profile(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, profile::run(&arguments, project, terminal))?.map(|()| true)
        }
        Command::Report(arguments) => {
            let project = read(&arguments.dir)?;
            in_runtime(None, report_page::run(&arguments, project))?.map(|()| true)
        }
        Command::Auth(arguments) => {
            let project = read(arguments.action.dir())?;
            in_runtime(None, auth::run(&arguments, &project))?.map(|()| true)
        }
        Command::Governance(arguments) => {
            let project = read(arguments.action.dir())?;
            in_runtime(None, governance::run(&arguments, &project))?.map(|()| true)
        }
        Command::Audit(arguments) => {
            let project = read(arguments.action.dir())?;
            in_runtime(None, audit::run(&arguments, &project))?
        }
        Command::Jobs(arguments) => {
            let project = read(arguments.action.dir())?;
            in_runtime(None, jobs::run(&arguments, &project))?.map(|()| true)
        }
        Command::State(arguments) => {
            let project = read(arguments.action.dir())?;
            in_runtime(None, state::run(&arguments, &project))?.map(|()| true)
        }
        Command::Config(arguments) => {
            let project = read(arguments.action.dir())?;
            config_command::run(&arguments, &project, terminal)
        }
        Command::Lsp(arguments) => lsp::run(&arguments, environment),
        Command::Schema(arguments) => schema::run(&arguments).map(|()| true),
        Command::Doctor(arguments) => in_runtime(None, doctor::run(&arguments, environment, terminal)),
        Command::Plugin(arguments) => plugin::run(&arguments, terminal),
    }
}

/// Runs a future to its end on this thread, with worker threads. Tasks that then still run are abandoned, for example a
/// statement whose engine ignores an interrupt.
fn in_runtime<T>(workers: Option<usize>, future: impl Future<Output = T>) -> Result<T, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().thread_name("terrane").thread_stack_size(STACK_BYTES);
    if let Some(workers) = workers {
        builder.worker_threads(workers);
    }
    let runtime = builder.build().map_err(|error| Failure::new(format!("could not start the threads: {error}")))?;
    let value = runtime.block_on(future);
    runtime.shutdown_background();
    Ok(value)
}

/// Runs a function on a new thread with a stack that is large enough for a project's SQL.
///
/// # Errors
/// The thread cannot be started, or it panicked.
pub fn on_large_stack<T: Send>(function: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("terrane-main".to_owned()).stack_size(STACK_BYTES);
        let running = thread
            .spawn_scoped(scope, function)
            .map_err(|error| Failure::new(format!("could not start a thread: {error}")))?;
        running.join().map_err(|_| {
            Failure::new("internal error; the lines above contain the source location").hint("Please report the error.")
        })
    })
}

fn terminal(environment: &Environment) -> Terminal {
    let wants_colour = environment.get("NO_COLOR").is_none_or(str::is_empty) && environment.get("TERM") != Some("dumb");
    let style = |is_terminal: bool| if is_terminal && wants_colour { Style::Coloured } else { Style::Plain };
    let (stdout, stderr) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
    let glyphs = if stdout && shows_blocks(environment) { Glyphs::Blocks } else { Glyphs::Ascii };
    Terminal {
        stdout: style(stdout),
        stderr: style(stderr),
        is_stdout_terminal: stdout,
        is_stderr_terminal: stderr,
        glyphs,
    }
}

/// Returns whether the locale is UTF-8 and the terminal is not a plain one. The first variable that is set decides, as
/// in POSIX.
fn shows_blocks(environment: &Environment) -> bool {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| environment.get(name).unwrap_or_default());
    let locale = variables.iter().find(|value| !value.is_empty()).map(|value| value.to_ascii_lowercase());
    let is_utf8 = locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"));
    is_utf8 && environment.get("TERM") != Some("dumb")
}

fn print_failure(failure: &Failure, terminal: Terminal) {
    match failure {
        Failure::Plain { message, hint } => {
            let label = terminal.stderr.paint("1;31", "error");
            let hint = hint.as_ref().map_or(String::new(), |hint| format!("  hint: {hint}\n"));
            print_error(&format!("{label}: {message}\n{hint}"));
        }
        Failure::Project { problems, tree } => {
            print_problems(problems, tree, terminal.stderr);
            print_error(&format!("{}\n", report::counts(problems)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_for_utf8_locales() {
        let environment = |pairs: &[(&str, &str)]| -> Environment {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        for (pairs, expected) in [
            (&[("LANG", "de_DE.UTF-8")][..], true),
            (&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")][..], true),
            (&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")][..], false),
            (&[("LANG", "en_US.UTF-8"), ("TERM", "dumb")][..], false),
            (&[][..], false),
        ] {
            assert_eq!(shows_blocks(&environment(pairs)), expected, "{pairs:?}");
        }
    }
}
