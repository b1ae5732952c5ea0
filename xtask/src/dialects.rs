//! `cargo xtask dialects`: runs the conformance suite of the dialects on real engines.
//!
//! In: the cases that the SDK makes from each dialect's profile. Out: `plugins/DIALECTS.md`, and failure if an engine
//! returns a different result without a listed exception. The engines are Python packages in a virtual environment
//! under the target folder, except for PostgreSQL and MariaDB, which are those of the machine. It is not a step of
//! `cargo xtask test`, because the suite takes minutes, and needs a network the first time. With `--engine`, it starts
//! one engine and runs further suites on it.

use std::fs;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::context::{Context, shown};
use crate::spark::Parts;
use crate::{python, spark};

mod dax;

const ENGINES: [&str; 10] =
    ["duckdb", "postgres", "mariadb", "sqlite", "clickhouse", "spark", "snowflake", "trino", "bigquery", "redshift"];

const TABLE_BEGINS: &str = "<!-- Written by `cargo xtask dialects`. -->\n";

#[derive(clap::Args)]
pub(crate) struct DialectsArguments {
    /// Run only these engines; the last results of the others stay.
    #[arg(value_parser = ENGINES)]
    engines: Vec<String>,
    /// Start this engine and run all suites of Spark, or the random queries of DAX, on it.
    #[arg(long, value_enum, conflicts_with = "engines")]
    engine: Option<StartedEngine>,
    /// The number of random queries.
    #[arg(long, default_value_t = 2_000, requires = "engine")]
    cases: usize,
    /// The seed of the first random project.
    #[arg(long, default_value_t = 1, requires = "engine")]
    seed: u64,
    /// Also kill and freeze servers of the cluster in the middle of queries, and measure its limits.
    #[arg(long, requires = "engine")]
    faults: bool,
    /// Leave out the suites of queries.
    #[arg(long, requires = "faults")]
    only_faults: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StartedEngine {
    /// Apache Spark on this machine: a master, two workers and a Connect server.
    SparkCluster,
    /// Random queries of DAX on a PostgreSQL server.
    Postgres,
    /// Random queries of DAX on a MariaDB server.
    Mariadb,
    /// Random queries of DAX on SQLite.
    Sqlite,
}

pub(crate) fn run(context: &Context, arguments: &DialectsArguments) -> Result<ExitCode> {
    let (cases, seed) = (arguments.cases, arguments.seed);
    let (with_suites, with_faults) = (!arguments.only_faults, arguments.faults);
    match arguments.engine {
        None => run_cases(context, arguments),
        Some(StartedEngine::SparkCluster) => spark::run(context, Parts { cases, seed, with_suites, with_faults }),
        Some(StartedEngine::Postgres) => dax::run_on(context, "postgres", cases, seed),
        Some(StartedEngine::Mariadb) => dax::run_on(context, "mariadb", cases, seed),
        Some(StartedEngine::Sqlite) => dax::run_on(context, "sqlite", cases, seed),
    }
}

/// Runs the cases of the dialects and writes the table of their results.
fn run_cases(context: &Context, arguments: &DialectsArguments) -> Result<ExitCode> {
    let folder = context.target()?.join("dialects");
    let answers = folder.join("answers");
    fs::create_dir_all(&answers)?;
    let requirements = context.root.join("xtask/dialects/requirements.txt");
    let python = python::environment(context, &folder.join("venv"), &requirements, "the engines, about 1 GB")?;
    let is_chosen = |engine: &&str| arguments.engines.is_empty() || arguments.engines.iter().any(|e| e == engine);
    for engine in ENGINES.into_iter().filter(is_chosen) {
        println!("run   {engine}");
        let cases = folder.join(format!("{engine}-cases.json"));
        fs::write(&cases, output(suite(context).args(["cases", engine]))?)?;
        let driver = context.root.join("xtask/dialects/ask.py");
        let mut ask = Command::new(&python);
        ask.arg(driver).arg(engine).arg(&cases).arg(folder.join("servers")).current_dir(&folder);
        fs::write(answers.join(format!("{engine}.json")), output(&mut ask)?)?;
    }
    println!("run   statements of DAX");
    dax::parse_statements(context, &python, &answers.join("dax"))?;
    let compared = suite(context).arg("compare").arg(&answers).stderr(Stdio::inherit()).output()?;
    let document = context.root.join("plugins/DIALECTS.md");
    let text = fs::read_to_string(&document).with_context(|| format!("reading {}", shown(context, &document)))?;
    let (head, _) =
        text.split_once(TABLE_BEGINS).context("plugins/DIALECTS.md does not contain the marker of the table")?;
    fs::write(
        &document,
        format!("{head}{TABLE_BEGINS}\n{}", String::from_utf8(compared.stdout)?.trim_end().to_owned() + "\n"),
    )?;
    println!("wrote {}", shown(context, &document));
    Ok(if compared.status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the command of the program that prints cases and compares results.
fn suite(context: &Context) -> Command {
    let mut command = context.cargo();
    command.args(["run", "--quiet", "--package", "terrane-golden-tests", "--example", "dialects", "--"]);
    command
}

/// Returns the standard output of a program. Its standard error goes to the terminal.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    Ok(output.stdout)
}
