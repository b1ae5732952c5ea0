//! `cargo xtask test`: every check and every test, ending with the runner's own summary.
//!
//! In: nothing but the clone. Out: the exit code of the first step that failed, after all steps
//! ran. Absent on purpose: a list of test crates; the workspace is what is tested.

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::context::Context;

#[derive(clap::Args)]
pub(crate) struct TestArguments {
    /// Leave out rustfmt and clippy.
    #[arg(long)]
    no_lints: bool,
    /// Handed to the test runner, for example a part of a test's name.
    #[arg(last = true)]
    runner: Vec<String>,
}

pub(crate) fn run(context: &Context, arguments: &TestArguments) -> Result<ExitCode> {
    let toolchain = crate::set_up(context)?;
    crate::databases::prepare();
    crate::schemathesis::prepare(context);
    crate::provider::prepare(context);
    let mut failed = None;
    for mut step in steps(context, arguments) {
        println!("\n==> {}", step.name);
        let started = Instant::now();
        toolchain.configure_authors(&mut step.command);
        let status = step.command.stdin(Stdio::null()).status().with_context(|| format!("starting {}", step.name))?;
        if !status.success() {
            let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
            failed.get_or_insert((step.name, code));
        }
        // Nothing is printed after the last step: the runner's summary is the last line.
        if !step.is_last {
            println!(
                "    {} after {} s",
                if status.success() { "done" } else { "FAILED" },
                started.elapsed().as_secs()
            );
        }
    }
    let Some((name, code)) = failed else { return Ok(ExitCode::SUCCESS) };
    eprintln!("failed: {name}");
    Ok(ExitCode::from(code))
}

struct Step {
    name: &'static str,
    command: Command,
    is_last: bool,
}

fn steps(context: &Context, arguments: &TestArguments) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut step = |name, words: &[&str], more: &[String], is_last| {
        let mut command = context.cargo();
        command.args(words).args(more);
        steps.push(Step { name, command, is_last });
    };
    if !arguments.no_lints {
        if has(context, "fmt") {
            step("cargo fmt --all --check", &["fmt", "--all", "--check"], &[], false);
        }
        if has(context, "clippy") {
            step(
                "cargo clippy",
                &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"],
                &[],
                false,
            );
        }
    }
    if has(context, "nextest") {
        if arguments.runner.is_empty() {
            step("cargo test --doc", &["test", "--quiet", "--workspace", "--doc"], &[], false);
        }
        step("cargo nextest run", &["nextest", "run", "--workspace", "--no-fail-fast"], &arguments.runner, true);
    } else {
        step("cargo test", &["test", "--workspace", "--no-fail-fast"], &arguments.runner, true);
    }
    steps
}

/// Whether cargo has this subcommand on this machine.
fn has(context: &Context, subcommand: &str) -> bool {
    let probe = context
        .cargo()
        .args([subcommand, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
}
