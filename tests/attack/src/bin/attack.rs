//! Runs the attack for many cases: `terrane-attack --cases N [--seed S] [--only I]`, or `--case FILE` for a saved case.
//!
//! In: the number of cases and the first seed. Out: progress, counts, and every fault as a case file. With the first
//! argument `--as-program`, this binary is the program under attack.
#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool reads its arguments and measures its own time")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use terrane_attack_tests::attack::{Report, Run, run};
use terrane_attack_tests::case::Case;
use terrane_attack_tests::scenario::{Constructs, Sabotage};
use terrane_attack_tests::server::{AS_PROGRAM, Stage};

/// The largest number of characters of a file that a report shows. The saved case contains all of them.
const MAX_SHOWN: usize = 3_000;

#[derive(Parser)]
#[command(about = "Compare two servers that a restricted caller must not be able to tell apart")]
struct Arguments {
    /// The total number of cases.
    #[arg(long, default_value_t = 1_000)]
    cases: usize,
    /// The seed of the first scenario; each further scenario uses the next number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run only the case of this number in the scenario of `--seed`.
    #[arg(long)]
    only: Option<usize>,
    /// Stop after this number of faults.
    #[arg(long, default_value_t = 10)]
    faults: usize,
    /// Run one case file and show both answers.
    #[arg(long)]
    case: Option<PathBuf>,
    /// Constructs to leave out: typed_conditions, star, files, derived, registrations.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Give both sides different rights or values, to test that differences are found.
    #[arg(long, value_enum)]
    sabotage: Option<SabotageName>,
}

#[derive(Clone, Copy, ValueEnum)]
enum SabotageName {
    NoPolicies,
    VisibleValues,
}

fn main() -> Result<ExitCode> {
    let mut words = std::env::args_os();
    let program = words.next();
    if words.next().is_some_and(|word| word == AS_PROGRAM) {
        return Ok(terrane_cli::main(program.into_iter().chain(words)));
    }
    let arguments = Arguments::parse();
    let stage = Stage::new(&std::env::current_exe()?)?;
    if let Some(path) = &arguments.case {
        return replay(&stage, path);
    }
    let wanted = Run {
        cases: arguments.only.map_or(arguments.cases, |only| only + 1),
        seed: arguments.seed,
        only: arguments.only,
        constructs: constructs(&arguments.without)?,
        sabotage: match arguments.sabotage {
            None => Sabotage::None,
            Some(SabotageName::NoPolicies) => Sabotage::NoPolicies,
            Some(SabotageName::VisibleValues) => Sabotage::VisibleValues,
        },
        max_faults: arguments.faults,
    };
    let started = Instant::now();
    let mut shown = started;
    let mut saved = 0;
    let report = run(&stage, &wanted, |report| {
        // Faults are saved at once, because a long run may be ended from outside.
        for case in &report.faults[saved..] {
            show(case);
        }
        saved = report.faults.len();
        if shown.elapsed().as_secs() >= 5 {
            shown = Instant::now();
            let rate = report.requests as f64 / started.elapsed().as_secs_f64();
            println!("{} cases, {} faults, {rate:.0} requests a second", report.cases, report.faults.len());
        }
    })?;
    print_counts(&report, started.elapsed().as_secs_f64());
    Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn constructs(without: &[String]) -> Result<Constructs> {
    let mut constructs = Constructs::default();
    for name in without {
        match name.as_str() {
            "typed_conditions" => constructs.typed_conditions = false,
            "star" => constructs.star = false,
            "files" => constructs.files = false,
            "derived" => constructs.derived = false,
            "registrations" => constructs.registrations = false,
            other => anyhow::bail!("unknown construct `{other}`"),
        }
    }
    Ok(constructs)
}

fn replay(stage: &Stage, path: &Path) -> Result<ExitCode> {
    let case = Case::read(path)?;
    let Some(finding) = case.replay(stage)? else {
        println!("no fault");
        return Ok(ExitCode::SUCCESS);
    };
    let [left, right] = &finding.answers;
    println!("{}\n\nleft: {left}\n\nright: {right}\n\n{}", finding.fault, finding.log.join("\n"));
    Ok(ExitCode::FAILURE)
}

fn show(case: &Case) {
    println!("\nseed {}, case {}: {}", case.seed, case.index, case.about);
    for request in &case.requests {
        let body = request.body.as_deref().unwrap_or_default();
        println!("  {:?} {} {} {body}", request.caller, request.method, request.path);
    }
    let [left, right] = &case.answers;
    println!("  left:  {}\n  right: {}", left.replace('\n', "\n         "), right.replace('\n', "\n         "));
    for (name, text) in &case.files {
        println!("  {name}: {}", text.chars().take(MAX_SHOWN).collect::<String>());
    }
    for line in &case.log {
        println!("  log: {line}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join("found");
    match case.save(&folder) {
        Ok(path) => println!("  saved as {}", path.display()),
        Err(error) => println!("  not saved: {error}"),
    }
}

fn print_counts(report: &Report, seconds: f64) {
    println!("scenarios    {} ({} not served)", report.scenarios, report.unserved.len());
    println!("cases        {}", report.cases);
    println!("requests     {} ({:.0} a second)", report.requests, report.requests as f64 / seconds);
    println!("hidden rows  {}; masked values that differ {}", report.differences.0, report.differences.1);
    for (status, count) in &report.statuses {
        println!("status       {count} {status}");
    }
    for (outcome, count) in &report.registrations {
        println!("registration {count} {outcome}");
    }
    for (why, count) in &report.left_out {
        println!("left out     {count} {why}");
    }
    for unserved in &report.unserved {
        println!("not served   {}", unserved.chars().take(1_500).collect::<String>());
    }
    println!("faults       {}", report.faults.len());
}
