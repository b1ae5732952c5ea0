//! The tutorials of `examples/policy-region`, `examples/flights` and of GraphQL, literally: every command block is run, in order, in one empty
//! folder. A `text` block behind it is its whole standard output, a `stderr` block words of its standard error.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]
#![allow(clippy::disallowed_methods, reason = "the shell of the tutorial needs the tools of the user")]

use std::fs;
use std::path::Path;
use std::process::Command;

use terrane_system_tests::{Scratch, path};

use crate::BINARY;

/// One block of commands and what it shows.
#[derive(Default)]
struct Step {
    script: String,
    stdout: Option<String>,
    stderr: Vec<String>,
}

fn steps(markdown: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: String = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        match (kind, steps.last_mut()) {
            ("sh", _) => steps.push(Step { script: block, ..Step::default() }),
            ("text", Some(step)) => step.stdout = Some(block),
            ("stderr", Some(step)) => step.stderr.extend(block.lines().map(str::to_owned)),
            _ => {}
        }
    }
    steps
}

/// Runs one block where the one before it ended.
fn run(step: &Step, home: &Path) {
    let place = home.join("place");
    let script = format!("set -e\ncd \"$(cat {0})\"\n{1}\npwd > {0}\n", place.display(), step.script);
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env_clear().env("HOME", home).env("CARGO_NET_OFFLINE", "true");
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
}

/// Runs all blocks in an empty folder, which has the program.
fn run_all(steps: &[Step], scratch: &Scratch) {
    let home = scratch.path();
    fs::create_dir_all(home.join("bin")).unwrap();
    std::os::unix::fs::symlink(BINARY, home.join("bin/terrane")).unwrap();
    fs::write(home.join("place"), home.display().to_string()).unwrap();
    steps.iter().for_each(|step| run(step, home));
}

#[test]
fn the_tutorial_of_pre_aggregations_works_as_it_is_written() {
    let steps = steps(&fs::read_to_string(path("examples/flights/PREAGGREGATIONS.md")).unwrap());
    assert_eq!((steps.len(), steps.iter().filter(|step| step.stdout.is_some()).count()), (6, 5));
    run_all(&steps, &Scratch::empty());
}

#[test]
fn the_tutorial_of_the_policy_works_as_it_is_written() {
    if !crate::plugin_kit::has_guest_target() {
        return crate::skip("the tutorial of the policy", crate::plugin_kit::NO_GUEST_TARGET);
    }
    let example = path("examples/policy-region");
    let steps = steps(&fs::read_to_string(example.join("README.md")).unwrap());
    assert!(steps.len() > 10 && steps.iter().filter(|step| step.stdout.is_some()).count() > 4);
    let scratch = Scratch::empty();
    run_all(&steps, &scratch);
    let home = scratch.path();
    // The folder of the example is what the tutorial makes.
    for file in ["service_project.yml", "cubes/orders.yml", "data/orders.csv", "callers/ann.json", "callers/eve.json"] {
        let made = fs::read_to_string(home.join("shop").join(file)).unwrap();
        assert_eq!(made, fs::read_to_string(example.join(file)).unwrap(), "{file}");
    }
    let manifest = fs::read_to_string(home.join("shop/policy/plugin.toml")).unwrap();
    assert_eq!(manifest, fs::read_to_string(example.join("plugin/plugin.toml")).unwrap());
}

/// Ends the server of a tutorial that broke off.
struct ServerEnd<'a>(&'a Path);

impl Drop for ServerEnd<'_> {
    fn drop(&mut self) {
        if let Ok(process) = fs::read_to_string(self.0.join("server.pid")) {
            // The tutorial ends it too.
            let _ = Command::new("kill").arg(process.trim()).output();
        }
    }
}

#[test]
fn the_tutorial_of_graphql_works_as_it_is_written() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let text = fs::read_to_string(path("runtime/GRAPHQL-TUTORIAL.md")).unwrap().replace("8000", &port);
    let steps = steps(&text);
    assert_eq!((steps.len(), steps.iter().filter(|step| step.stdout.is_some()).count()), (5, 5));
    let scratch = Scratch::empty();
    let _end = ServerEnd(scratch.path());
    run_all(&steps, &scratch);
}
