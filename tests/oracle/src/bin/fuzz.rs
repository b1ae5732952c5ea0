//! Runs the fuzzer for many cases: `terrane-fuzz --cases N [--seed S]`.
//!
//! In: the number of cases and the first seed. Out: progress, counts, and every difference as a case file.
#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool measures its own time")]

use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Parser;
use terrane_compiler::rollup::Flaw;
use terrane_oracle_tests::case::{Case, flaw_named, settings};
use terrane_oracle_tests::dax::long_run::LongRun;
use terrane_oracle_tests::dax::run as dax;
use terrane_oracle_tests::fuzz::{Report, Run, run};
use terrane_oracle_tests::generate::Features;
use terrane_oracle_tests::invariants::cached::DataReport;
use terrane_oracle_tests::product::Product;

#[derive(Parser)]
#[command(about = "Compare the product with the oracle on random models, data and queries")]
struct Arguments {
    /// The total number of queries.
    #[arg(long, default_value_t = 1_000)]
    cases: usize,
    /// The seed of the first world. Each further world has the next number as its seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this number of differences.
    #[arg(long, default_value_t = 5)]
    differences: usize,
    /// Run one case file and show the statement.
    #[arg(long)]
    case: Option<std::path::PathBuf>,
    /// Features to add to the default ones. `--without` removes features. The names: to_many, steps, total_dimensions,
    /// policies, masks, metric_time, compare, totals, ungrouped, granularity_filters, hostile_names, rollups.
    #[arg(long, value_delimiter = ',')]
    with: Vec<String>,
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Compare DAX with known answers, and with an evaluator of its definitions. Each world has 40 random queries.
    #[arg(long)]
    dax: bool,
    /// Run DAX on the PostgreSQL server at this URL.
    #[arg(long, requires = "dax")]
    postgres: Option<String>,
    /// Run DAX on the MySQL or MariaDB server at this URL.
    #[arg(long, requires = "dax", conflicts_with = "postgres")]
    mysql: Option<String>,
    /// Run DAX on SQLite, in a new file for each world.
    #[arg(long, requires = "dax", conflicts_with_all = ["postgres", "mysql"])]
    sqlite: bool,
    /// Compare the answers of the Spark Connect server at this URL.
    #[arg(long, conflicts_with = "dax")]
    spark: Option<String>,
    /// A planted mistake of matching that the run must find, such as `OpenRows` or `NestedWeeks`.
    #[arg(long)]
    flaw: Option<FlawName>,
}

/// A [`Flaw`], parsed from its name.
#[derive(Debug, Clone, Copy)]
struct FlawName(Flaw);

impl FromStr for FlawName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        flaw_named(name).map(FlawName).ok_or_else(|| format!("unknown flaw `{name}`; known: {:?}", Flaw::ALL))
    }
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(path) = &arguments.case {
        let case: Case = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let mut product = match &arguments.spark {
            Some(url) => Product::on_spark(settings(), url)?,
            None => Product::start(settings())?,
        };
        product.flaw = arguments.flaw.map(|flaw| flaw.0);
        println!("{}\n", case.sql(&product));
        println!("{}", case.difference(&product)?.unwrap_or_else(|| "no difference".to_owned()));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.dax {
        return fuzz_dax(&arguments);
    }
    let mut features = Features::default();
    for (names, on) in [(&arguments.with, true), (&arguments.without, false)] {
        for name in names {
            match name.as_str() {
                "to_many" => features.to_many = on,
                "steps" => features.steps = on,
                "total_dimensions" => features.total_dimensions = on,
                "policies" => features.policies = on,
                "masks" => features.mask_policies = on,
                "metric_time" => features.metric_time = on,
                "compare" => features.compare = on,
                "totals" => features.totals = on,
                "ungrouped" => features.ungrouped = on,
                "granularity_filters" => features.granularity_filters = on,
                "rollups" => features.rollups = on,
                "hostile_names" => features.hostile_names = on,
                other => anyhow::bail!("unknown feature `{other}`"),
            }
        }
    }
    let started = Instant::now();
    let mut shown = started;
    let wanted = Run {
        cases: arguments.cases,
        seed: arguments.seed,
        features,
        max_differences: arguments.differences,
        flaw: arguments.flaw.map(|flaw| flaw.0),
        report: DataReport::Sent,
        spark: arguments.spark.clone(),
    };
    let mut saved = Ok(0);
    let report = run(&wanted, |report| {
        // Differences are saved at once, because a long run may be ended from outside.
        if let Ok(known) = saved {
            saved = report.differences[known..].iter().try_for_each(save).map(|()| report.differences.len());
        }
        if shown.elapsed().as_secs() >= 5 {
            shown = Instant::now();
            let rate = report.queries as f64 / started.elapsed().as_secs_f64();
            println!("{} queries, {} differences, {rate:.0} a second", report.queries, report.differences.len());
        }
    })?;
    print_report(&report, started.elapsed().as_secs_f64());
    saved?;
    Ok(if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs random queries of DAX.
fn fuzz_dax(arguments: &Arguments) -> Result<ExitCode> {
    let mut open: Box<dax::Open<'_>> = match (&arguments.postgres, &arguments.mysql) {
        (Some(url), _) => Box::new(dax::on_postgres(settings(), url.clone())),
        (_, Some(url)) => Box::new(dax::on_mysql(settings(), url.clone())),
        _ if arguments.sqlite => Box::new(dax::on_sqlite(settings())),
        _ => Box::new(dax::on_duckdb(Product::start(settings())?)),
    };
    let time = if arguments.mysql.is_some() || arguments.sqlite { "DATETIME" } else { "TIMESTAMP" };
    let Arguments { cases, seed, differences, .. } = *arguments;
    let long = LongRun { cases, seed, max_differences: differences, time };
    let report = long.run(&mut *open, |difference| println!("{difference}"))?;
    println!("{report}");
    Ok(if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_report(report: &Report, seconds: f64) {
    println!("worlds      {}", report.worlds);
    println!("queries     {} ({:.0} a second)", report.queries, report.queries as f64 / seconds);
    println!("answered    {} ({} with rows)", report.answered, report.with_rows);
    for (code, count) in &report.refused {
        println!("refused     {count} {code}");
    }
    for (construct, count) in &report.used {
        println!("with        {count} {construct}");
    }
    for (why, count) in &report.left_out {
        println!("left out    {count} {why}");
    }
    for (name, count) in &report.invariants {
        println!("invariant   {count} {name}");
    }
    println!("differences {}", report.differences.len());
}

fn save(case: &Case) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join("found");
    std::fs::create_dir_all(&folder)?;
    let text = serde_json::to_string_pretty(case)?;
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let path = folder.join(format!("{hash:016x}.json"));
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    println!("\nseed {}: {}\n  {}\n  {}", case.seed, case.about, case.query, path.display());
    Ok(())
}
