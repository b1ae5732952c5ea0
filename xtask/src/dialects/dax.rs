//! DAX in the dialects: statements that are parsed, and random queries on an engine.
//!
//! In: the queries of `tests/oracle`. Out: files with the statements of each dialect and the result of parsing them; or
//! the report of a random comparison. Not here: the queries, and starting the engines, which `tests/system` does.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use super::output;
use crate::context::Context;
use crate::duckdb;

/// The dialects, under the names that the parser has for them.
const DIALECTS: [&str; 10] =
    ["duckdb", "postgres", "mysql", "sqlite", "clickhouse", "spark", "snowflake", "trino", "bigquery", "redshift"];

/// Writes the statements of DAX in each dialect, `DIALECT.json`, and whether each can be parsed,
/// `DIALECT-answers.json`.
pub(super) fn parse_statements(context: &Context, python: &Path, folder: &Path) -> Result<()> {
    duckdb::prepare(context)?;
    fs::create_dir_all(folder)?;
    let mut print = context.cargo();
    print.args(["run", "--quiet", "--package", "terrane-oracle-tests", "--example", "dax_statements", "--"]);
    output(print.arg(folder))?;
    for dialect in DIALECTS {
        let statements = folder.join(format!("{dialect}.json"));
        let mut ask = Command::new(python);
        ask.arg(context.root.join("xtask/dialects/ask.py")).arg(format!("parse:{dialect}"));
        let answers = output(ask.arg(&statements).arg(folder))?;
        fs::write(folder.join(format!("{dialect}-answers.json")), answers)?;
    }
    Ok(())
}

/// Starts an engine and compares random queries on it with the evaluator.
pub(super) fn run_on(context: &Context, engine: &str, cases: usize, seed: u64) -> Result<ExitCode> {
    duckdb::prepare(context)?;
    let mut command = context.cargo();
    command.args(["run", "--quiet", "--package", "terrane-system-tests", "--example", "dax_on_engine", "--", engine]);
    let status = command.arg(cases.to_string()).arg(seed.to_string()).status().context("starting the comparison")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
