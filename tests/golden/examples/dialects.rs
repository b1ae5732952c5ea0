//! The conformance suite of the first-party dialects, for `cargo xtask dialects`.
//!
//! `cases DIALECT` prints a dialect's cases as JSON; `compare FOLDER` reads the engines' answers, and those of the
//! statements of DAX in the folder `dax`, and prints the tables of plugins/DIALECTS.md, and the differences on standard
//! error. Not here: engines.

#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use terrane_golden_tests::first_party_profiles;
use terrane_sdk::conformance::{self, Case};

/// The engines in the order of the table, and the dialect of each.
const ENGINES: &[(&str, &str)] = &[
    ("duckdb", "duckdb"),
    ("postgres", "postgres"),
    ("mariadb", "mysql"),
    ("sqlite", "sqlite"),
    ("clickhouse", "clickhouse"),
    ("spark", "spark"),
    ("spark-cluster", "spark"),
    ("snowflake", "snowflake"),
    ("trino", "trino"),
    ("bigquery", "bigquery"),
    ("redshift", "redshift"),
];

/// The group of the statements of DAX.
const DAX: &str = "statements of DAX, parsed";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cases", engine] => {
            let cases: Vec<Value> =
                cases_of(engine).iter().map(|c| json!({"group": c.group, "name": c.name, "sql": c.sql})).collect();
            println!("{}", Value::Array(cases));
            ExitCode::SUCCESS
        }
        ["compare", folder] => compare(Path::new(folder)),
        _ => {
            eprintln!("usage: dialects cases ENGINE | dialects compare FOLDER");
            ExitCode::from(2)
        }
    }
}

fn dialect_of(engine: &str) -> &'static str {
    ENGINES.iter().find(|(name, _)| *name == engine).map_or_else(|| panic!("no engine {engine}"), |(_, d)| d)
}

fn cases_of(engine: &str) -> Vec<Case> {
    let dialect = dialect_of(engine);
    let profile = first_party_profiles().into_iter().find(|profile| profile.name == dialect);
    conformance::cases(&profile.unwrap_or_else(|| panic!("no dialect {dialect}")))
}

/// A known exception of an engine, written as `group: start of the case's name = reason`.
struct Exception {
    group: String,
    name: String,
    reason: String,
    hits: usize,
}

/// The comparison of one engine's answers.
struct Comparison {
    title: String,
    /// The number of passed, excepted and failed cases of each group.
    groups: Vec<(&'static str, [usize; 3])>,
    exceptions: Vec<Exception>,
}

fn compare(folder: &Path) -> ExitCode {
    let mut comparison = Vec::new();
    let mut is_sound = true;
    for (engine, dialect) in ENGINES {
        let path = folder.join(format!("{engine}.json"));
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let answers: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if let Some(why) = answers["absent"].as_str() {
            eprintln!("{engine} is not here: {why}");
            continue;
        }
        let (mut found, sound) = compare_engine(engine, dialect, &answers);
        is_sound &= sound & add_dax(&folder.join("dax"), engine, dialect, &mut found);
        comparison.push(found);
    }
    println!("{}", tables(&comparison));
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn compare_engine(engine: &str, dialect: &str, answers: &Value) -> (Comparison, bool) {
    let title = answers["engine"].as_str().unwrap_or(engine).to_owned();
    let mut comparison = Comparison { title, groups: Vec::new(), exceptions: exceptions(engine, dialect) };
    let mut is_sound = true;
    let none = Vec::new();
    let answers = answers["answers"].as_array().unwrap_or(&none);
    for (index, case) in cases_of(engine).into_iter().enumerate() {
        let verdict = answers.get(index).map_or(Err("no answer".to_owned()), |answer| verdict(&case, answer));
        let outcome = match &verdict {
            Ok(()) => 0,
            Err(found) => match comparison.exceptions.iter_mut().find(|e| e.covers(&case)) {
                Some(exception) => {
                    exception.hits += 1;
                    1
                }
                None => {
                    eprintln!(
                        "{engine}: {}: {}\n    {}\n    {found}; expected {:?}",
                        case.group, case.name, case.sql, case.expected
                    );
                    is_sound = false;
                    2
                }
            },
        };
        match comparison.groups.iter_mut().find(|(group, _)| *group == case.group) {
            Some((_, counts)) => counts[outcome] += 1,
            None => {
                let mut counts = [0; 3];
                counts[outcome] = 1;
                comparison.groups.push((case.group, counts));
            }
        }
    }
    for stale in comparison.exceptions.iter().filter(|exception| exception.hits == 0) {
        eprintln!("{engine}: the exception `{}: {}` is unused", stale.group, stale.name);
        is_sound = false;
    }
    let totals = comparison.totals();
    eprintln!("{}: {} passed, {} excepted, {} failed", comparison.title, totals[0], totals[1], totals[2]);
    (comparison, is_sound)
}

/// Adds the statements of DAX, which the grammar of the dialect must accept.
fn add_dax(folder: &Path, engine: &str, dialect: &str, comparison: &mut Comparison) -> bool {
    let Ok(text) = std::fs::read_to_string(folder.join(format!("{dialect}-answers.json"))) else { return true };
    let answers: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{dialect}: {e}"));
    let statements = std::fs::read_to_string(folder.join(format!("{dialect}.json"))).unwrap_or_default();
    let statements: Value = serde_json::from_str(&statements).unwrap_or_default();
    let all = statements.as_array().into_iter().flatten().zip(answers["answers"].as_array().into_iter().flatten());
    let mut counts = [0; 3];
    for (statement, answer) in all {
        if answer["parsed"].as_bool() == Some(true) {
            counts[0] += 1;
        } else {
            eprintln!("{engine}: {DAX}:\n    {}\n    {answer}", statement["sql"]);
            counts[2] += 1;
        }
    }
    let is_sound = counts[0] > 0 && counts[2] == 0;
    comparison.groups.push((DAX, counts));
    is_sound
}

fn verdict(case: &Case, answer: &Value) -> Result<(), String> {
    if answer["parsed"].as_bool() == Some(true) {
        return Ok(());
    }
    let rows = match (&answer["error"], answer["rows"].as_array()) {
        (Value::String(error), _) => Err(error.clone()),
        (_, Some(rows)) => Ok(rows.iter().map(cells).collect()),
        _ => Err("no answer".to_owned()),
    };
    case.compare(&rows)
}

fn cells(row: &Value) -> conformance::Row {
    let cells = row.as_array().map(Vec::as_slice).unwrap_or_default();
    cells.iter().map(|cell| cell.as_str().map(str::to_owned)).collect()
}

impl Comparison {
    /// Returns the number of passed, excepted and failed cases that the engine ran.
    fn totals(&self) -> [usize; 3] {
        self.groups.iter().fold([0; 3], |all, (_, counts)| [0, 1, 2].map(|i| all[i] + counts[i]))
    }
}

impl Exception {
    fn covers(&self, case: &Case) -> bool {
        self.group == case.group && case.name.starts_with(&self.name)
    }
}

fn exceptions(engine: &str, dialect: &str) -> Vec<Exception> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../plugins/dialect-{dialect}/cases"));
    let text = std::fs::read_to_string(folder.join(format!("exceptions-{engine}.txt"))).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let read = |line: &str| {
        let (case, reason) = line.rsplit_once(" = ")?;
        let (group, name) = case.split_once(':')?;
        let [group, name, reason] = [group, name, reason].map(|part| part.trim().to_owned());
        Some(Exception { group, name, reason, hits: 0 })
    };
    lines.map(|line| read(line).unwrap_or_else(|| panic!("not `group: name = reason`: {line}"))).collect()
}

fn tables(comparison: &[Comparison]) -> String {
    let mut out = String::from("| |");
    for engine in comparison {
        let _ = write!(out, " {} |", engine.title);
    }
    let _ = write!(out, "\n|---|{}", "---|".repeat(comparison.len()));
    let mut groups: Vec<&str> = Vec::new();
    for (group, _) in comparison.iter().flat_map(|engine| &engine.groups) {
        if !groups.contains(group) {
            groups.push(group);
        }
    }
    for group in &groups {
        let _ = write!(out, "\n| {group} |");
        for engine in comparison {
            let counts = engine.groups.iter().find(|(name, _)| name == group).map(|(_, counts)| *counts);
            let _ = write!(out, " {} |", counts.map_or("–".to_owned(), cell));
        }
    }
    out.push_str("\n| **all** |");
    for engine in comparison {
        let all = engine.totals();
        let _ = write!(out, " {} |", cell(all));
    }
    out.push_str("\n\n## Named exceptions\n");
    for engine in comparison.iter().filter(|engine| !engine.exceptions.is_empty()) {
        let _ = write!(out, "\n**{}**\n", engine.title);
        let reasons: BTreeSet<&str> = engine.exceptions.iter().map(|e| e.reason.as_str()).collect();
        for reason in reasons {
            let of_reason: Vec<&Exception> = engine.exceptions.iter().filter(|e| e.reason == reason).collect();
            let cases: usize = of_reason.iter().map(|e| e.hits).sum();
            let groups: BTreeSet<&str> = of_reason.iter().map(|e| e.group.as_str()).collect();
            let groups: Vec<&str> = groups.into_iter().collect();
            let _ = writeln!(out, "- {reason} ({}: {cases})", groups.join(", "));
        }
    }
    out
}

/// Returns a table cell such as `12` or `10 + 2 excepted`, with the number of failed cases if any failed.
fn cell([passed, excepted, failed]: [usize; 3]) -> String {
    let mut text = passed.to_string();
    if excepted > 0 {
        let _ = write!(text, " + {excepted} excepted");
    }
    if failed > 0 {
        let _ = write!(text, ", **{failed} failed**");
    }
    text
}
