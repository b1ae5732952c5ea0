//! Runs the documents as a reader would: every `sh` block of a page, in order, in one empty folder.
//!
//! In: Markdown pages. Out: a failure for each block that fails or has another output. A `text` block after a block is
//! its whole standard output; a `stderr` block contains words of its standard error. Not here: `console` blocks, which
//! need a network or build the workspace, and the templates of plugins, which the tests of the kit build and run.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]
#![allow(clippy::disallowed_methods, reason = "the shell of the tutorial needs the tools of the user")]

mod answers;
mod graphql_clients;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use terrane_system_tests::{Scratch, free_port, path};

use crate::BINARY;

/// A block of commands and its expected output.
#[derive(Default)]
struct Step {
    script: String,
    stdout: Option<String>,
    stderr: Vec<String>,
}

fn steps(markdown: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = markdown.lines();
    let mut is_followed = false;
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: String = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        match (kind, steps.last_mut().filter(|_| is_followed)) {
            ("sh", _) => steps.push(Step { script: block, ..Step::default() }),
            ("text", Some(step)) => step.stdout = Some(block),
            ("stderr", Some(step)) => step.stderr.extend(block.lines().map(str::to_owned)),
            _ => {}
        }
        // An output belongs to the block directly before it, which may be in another language.
        is_followed = matches!(kind, "sh" | "text" | "stderr") && (kind == "sh" || is_followed);
    }
    steps
}

/// Runs a block in the folder and with the exported variables in which the previous block ended, checks its output,
/// and returns the output.
fn run_in(step: &Step, home: &Path) -> String {
    let (place, variables) = (home.join("place"), home.join("variables"));
    let (place, variables) = (place.display(), variables.display());
    let before = format!("set -e\ncd \"$(cat {place})\"\n[ ! -e {variables} ] || . {variables}");
    let script = format!("{before}\n{}\npwd > {place}\nexport -p > {variables}\n", step.script);
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env_clear().env("HOME", home).env("TMPDIR", home).env("CARGO_NET_OFFLINE", "true");
    let system = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{system}", home.join("bin").display()));
    command.env("TERRANE", path(".").canonicalize().unwrap());
    let real_home = std::env::var("HOME").unwrap_or_default();
    for (name, usual) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        command.env(name, std::env::var(name).unwrap_or_else(|_| format!("{real_home}/{usual}")));
    }
    let output = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", step.script);
    if step.stdout.is_some() || !step.stderr.is_empty() {
        assert_eq!(stdout, step.stdout.clone().unwrap_or_default(), "{}\n{stderr}", step.script);
    }
    for words in &step.stderr {
        assert!(stderr.to_lowercase().contains(&words.to_lowercase()), "{words} is not in\n{stderr}");
    }
    stdout.into_owned()
}

/// Adds the program to the search path of a home folder.
fn with_program(home: &Path) {
    if !home.join("bin").exists() {
        fs::create_dir_all(home.join("bin")).unwrap();
        std::os::unix::fs::symlink(BINARY, home.join("bin/terrane")).unwrap();
        fs::write(home.join("place"), home.display().to_string()).unwrap();
    }
}

/// Runs all blocks in one folder, in which the program is on the search path.
fn run_all(steps: &[Step], scratch: &Scratch) {
    with_program(scratch.path());
    for step in steps {
        run_in(step, scratch.path());
    }
}

/// The pages that run without preparation, each with the number of its blocks and the number of its outputs.
const PAGES: &[(&str, usize, usize)] = &[
    ("examples/flights/MODULES.md", 8, 8),
    ("examples/flights/PREAGGREGATIONS.md", 6, 5),
    ("runtime/docs/explanation/concepts.md", 1, 1),
    ("runtime/docs/explanation/scaling.md", 1, 1),
    ("runtime/docs/getting-started.md", 7, 6),
    ("runtime/docs/how-to/connect-bi-clients.md", 2, 2),
    ("runtime/docs/how-to/control-access.md", 5, 3),
    ("runtime/docs/how-to/cost.md", 9, 7),
    ("runtime/docs/how-to/create-a-project.md", 2, 2),
    ("runtime/docs/how-to/deploy.md", 1, 1),
    ("runtime/docs/how-to/find-anomalies.md", 5, 2),
    ("runtime/docs/how-to/governance.md", 11, 10),
    ("runtime/docs/how-to/import-models.md", 2, 1),
    ("runtime/docs/how-to/monitors.md", 9, 9),
    ("runtime/docs/how-to/profiling.md", 5, 3),
    ("runtime/docs/how-to/questions.md", 3, 3),
    ("runtime/docs/how-to/search.md", 4, 4),
    ("runtime/docs/how-to/share-a-project.md", 6, 2),
    ("runtime/docs/how-to/test-a-project.md", 7, 6),
    ("runtime/docs/reference/dax.md", 2, 2),
    ("runtime/docs/reference/detectors-and-checks.md", 2, 0),
    ("runtime/docs/reference/settings.md", 1, 1),
    ("runtime/docs/tutorials/graphql.md", 5, 5),
];

/// The pages that other tests run, because they need preparation.
const PREPARED: &[&str] = &[
    "README.md",
    "examples/flights/README.md",
    "examples/policy-region/README.md",
    "runtime/deploy/RUNBOOK.md",
    "sdk/README.md",
    "sdk/python/README.md",
    "sdk/typescript/README.md",
];

fn page(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

/// Runs a page with a free port instead of 8000.
fn run_page(name: &str, counts: (usize, usize)) {
    let port = free_port().unwrap().to_string();
    let steps = steps(&page(name).replace("8000", &port));
    assert_eq!((steps.len(), steps.iter().filter(|step| step.stdout.is_some()).count()), counts, "{name}");
    let scratch = Scratch::empty();
    let _end = ServerEnd(scratch.path().to_path_buf());
    run_all(&steps, &scratch);
}

#[test]
fn commands_of_pages_work_as_written() {
    let works = |tool: &str| Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if let Some(tool) = ["curl", "jq"].into_iter().find(|tool| !works(tool)) {
        return crate::skip("the commands of the pages", &format!("`{tool}` is not installed"));
    }
    // A few pages run at once, because most of them start a server.
    let pages = Mutex::new(PAGES.iter());
    let next = || pages.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((name, blocks, outputs)) = next() {
                    run_page(name, (*blocks, *outputs));
                }
            });
        }
    });
}

#[test]
fn every_page_with_commands_is_run() {
    let mut found = pages_with_commands(&path("."));
    found.sort();
    let mut listed: Vec<String> =
        PAGES.iter().map(|(name, ..)| *name).chain(PREPARED.iter().copied()).map(str::to_owned).collect();
    listed.sort();
    assert_eq!(found, listed);
}

/// Returns the Markdown files below a folder that contain an `sh` block, by their paths from the root.
fn pages_with_commands(folder: &Path) -> Vec<String> {
    let root = path(".").canonicalize().unwrap();
    let mut pages = Vec::new();
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().canonicalize().unwrap()) {
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        let is_hidden = |part: &std::ffi::OsStr| part.to_string_lossy().starts_with('.') || part == "node_modules";
        let is_hidden = file.file_name().is_some_and(is_hidden);
        if file.is_dir() && !is_hidden && !["target", "sdk/templates"].contains(&name.as_str()) {
            pages.extend(pages_with_commands(&file));
        } else if name.ends_with(".md") && fs::read_to_string(&file).unwrap().contains("\n```sh\n") {
            pages.push(name);
        }
    }
    pages
}

#[test]
fn policy_tutorial_works_as_written() {
    if !crate::plugin_kit::has_guest_target() {
        return crate::skip("the tutorial of the policy", crate::plugin_kit::NO_GUEST_TARGET);
    }
    let example = path("examples/policy-region");
    let steps = steps(&page("examples/policy-region/README.md"));
    assert!(steps.len() > 10 && steps.iter().filter(|step| step.stdout.is_some()).count() > 4);
    let scratch = Scratch::empty();
    run_all(&steps, &scratch);
    let home = scratch.path();
    // The folder of the example must equal the files that the tutorial creates.
    for file in ["service_project.yml", "cubes/orders.yml", "data/orders.csv", "callers/ann.json", "callers/eve.json"] {
        let made = fs::read_to_string(home.join("shop").join(file)).unwrap();
        assert_eq!(made, fs::read_to_string(example.join(file)).unwrap(), "{file}");
    }
    let manifest = fs::read_to_string(home.join("shop/policy/plugin.toml")).unwrap();
    assert_eq!(manifest, fs::read_to_string(example.join("plugin/plugin.toml")).unwrap());
}

/// Stops the server of a page when this value is dropped, because the run of the page may have been interrupted.
struct ServerEnd(PathBuf);

impl Drop for ServerEnd {
    fn drop(&mut self) {
        let folder = fs::read_to_string(self.0.join("place")).unwrap_or_default();
        if let Ok(process) = fs::read_to_string(Path::new(folder.trim()).join("server.pid")) {
            // If the run was complete, the page itself has already stopped the server.
            let _ = Command::new("kill").arg(process.trim()).output();
        }
    }
}
