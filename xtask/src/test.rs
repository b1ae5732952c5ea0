//! `cargo xtask test`: runs every check and test, and ends with the summary of the test runner.
//!
//! In: the clone. Out: the exit code of the first step that failed, after all steps ran. With `--fast`, only crates
//! without an engine are tested, so that nothing has to be prepared. No list of test crates is needed, because the
//! whole workspace is tested.

use std::env;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::context::Context;

#[derive(clap::Args)]
pub(crate) struct TestArguments {
    /// Run only the light tests: structure, compiler, golden and conformance; under two minutes on a warm build.
    #[arg(long)]
    fast: bool,
    /// Leave out rustfmt and clippy.
    #[arg(long)]
    no_lints: bool,
    /// Arguments of the test runner, for example a part of a test's name.
    #[arg(last = true)]
    runner: Vec<String>,
}

/// The crates whose tests need neither an engine nor components.
const LIGHT: [&str; 5] = [
    "terrane-structure-tests",
    "terrane-compiler",
    "terrane-lineage",
    "terrane-golden-tests",
    "terrane-conformance-tests",
];

pub(crate) fn run(context: &Context, arguments: &TestArguments) -> Result<ExitCode> {
    if arguments.fast {
        return run_steps(fast_steps(context, arguments), |_| ());
    }
    let toolchain = crate::set_up(context)?;
    crate::databases::prepare();
    crate::schemathesis::prepare(context);
    crate::npm::prepare(context, "oidc-provider", "tests/system/provider", "oidc-provider");
    crate::clients::prepare(context);
    crate::adbc::prepare(context);
    // In CI, a missing mdBook is a failure, like a missing tool of a test.
    let with_docs = crate::docs::prepare(context) || env::var_os("CI").is_some();
    run_steps(steps(context, arguments, with_docs), |command| toolchain.configure_authors(command))
}

fn run_steps(steps: Vec<Step>, configure: impl Fn(&mut Command)) -> Result<ExitCode> {
    let mut failed = None;
    for mut step in steps {
        println!("\n==> {}", step.name);
        let started = Instant::now();
        configure(&mut step.command);
        let status = step.command.stdin(Stdio::null()).status().with_context(|| format!("starting {}", step.name))?;
        if !status.success() {
            let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
            failed.get_or_insert((step.name, code));
        }
        // The last step prints nothing after the runner's summary, so that the summary is at the end of the output.
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

fn fast_steps(context: &Context, arguments: &TestArguments) -> Vec<Step> {
    let mut steps = Vec::new();
    if !arguments.no_lints && has(context, "fmt") {
        let mut command = context.cargo();
        command.args(["fmt", "--all", "--check"]);
        steps.push(Step { name: "cargo fmt --all --check", command, is_last: false });
    }
    let mut command = context.cargo();
    let name = if has(context, "nextest") {
        command.args(["nextest", "run"]);
        "cargo nextest run"
    } else {
        command.args(["test", "--tests"]);
        "cargo test"
    };
    command.arg("--no-fail-fast").args(LIGHT.iter().flat_map(|package| ["--package", package]));
    command.args(&arguments.runner);
    steps.push(Step { name, command, is_last: true });
    steps
}

fn steps(context: &Context, arguments: &TestArguments, with_docs: bool) -> Vec<Step> {
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
    if with_docs && arguments.runner.is_empty() {
        step("cargo xtask docs", &["xtask", "docs"], &[], false);
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

/// Returns whether cargo has this subcommand on this machine.
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
