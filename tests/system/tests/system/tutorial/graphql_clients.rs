//! Runs the Python and TypeScript programs of the GraphQL tutorial, and compares their outputs with the page.
//!
//! In: the page, and libraries that `cargo xtask setup` installs at the versions that the page names. Out: a failure for
//! a program that fails or has another output. Not here: the installation of the libraries, which needs a network.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use terrane_system_tests::path;

use super::answers::flights;
use super::page;
use crate::clients::{prepared, tool};

const PAGE: &str = "runtime/docs/tutorials/graphql.md";

/// Returns the blocks of a page with a language, in order.
fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let texts = markdown.split(&opening).skip(1).filter_map(|rest| rest.split_once("```"));
    texts.map(|(text, _)| text.to_owned()).collect()
}

/// Returns a section of a page, by its heading. `server` replaces the page's server, which has port 8000.
fn section(heading: &str, server: &str) -> String {
    let text = page(PAGE).replace("127.0.0.1:8000", server);
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    section.split("\n## ").next().unwrap().to_owned()
}

#[test]
fn python_program_of_the_tutorial_prints_the_output_of_the_page() {
    let Some(python) = tool("graphql-client/bin/python") else {
        return crate::skip("the Python program of the tutorial", "`cargo xtask setup` installs gql with Python's pip");
    };
    let (server, _scratch) = flights();
    let section = section("Query from Python", &server.address.to_string());
    let ([program], [output]) = (&blocks(&section, "python")[..], &blocks(&section, "text")[..]) else {
        panic!("expected a program and its output: {section}")
    };
    assert_eq!(printed(Command::new(python).args(["-c", program])), *output);
}

#[test]
fn typescript_program_of_the_tutorial_prints_the_output_of_the_page() {
    let Some(modules) = prepared("graphql-clients/node_modules") else {
        return crate::skip("the TypeScript program of the tutorial", "`cargo xtask setup` installs its packages");
    };
    let (server, scratch) = flights();
    let section = section("Query from TypeScript, with generated types", &server.address.to_string());
    let ([install, commands], [output]) = (&blocks(&section, "console")[..], &blocks(&section, "text")[..]) else {
        panic!("expected two blocks of commands and an output: {section}")
    };
    assert_installed(install);
    let folder = scratch.path().join("typed");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&modules, folder.join("node_modules")).unwrap();
    fs::write(folder.join("package.json"), r#"{"type": "module"}"#).unwrap();
    for (language, file) in [("ts", "cubes.ts"), ("js", "codegen.mjs")] {
        fs::write(folder.join(file), &blocks(&section, language)[0]).unwrap();
    }
    let [steps @ .., last] = &commands.lines().collect::<Vec<_>>()[..] else { panic!("expected commands: {commands}") };
    assert!(!steps.is_empty(), "{commands}");
    steps.iter().for_each(|step| drop(run_in(&folder, step)));
    assert_eq!(run_in(&folder, last), *output);
}

/// Runs a command of the page. Programs of packages come from the folder, as `npx` finds them.
fn run_in(folder: &Path, command: &str) -> String {
    let script = command.replace("npx ", "node_modules/.bin/");
    printed(Command::new("bash").args(["-c", &script]).current_dir(folder))
}

/// Returns the standard output of a command.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Checks that the tests have every package that the page installs, at a version that the page allows.
fn assert_installed(commands: &str) {
    let manifest = fs::read_to_string(path("tests/system/graphql/package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let words = commands.split_whitespace().filter(|word| !["npm", "install", "--save-dev"].contains(word));
    for package in words {
        let (name, version) = match package.rsplit_once('@').filter(|(name, _)| !name.is_empty()) {
            Some((name, version)) => (name, format!("{version}.")),
            None => (package, String::new()),
        };
        let installed = manifest["dependencies"][name].as_str();
        assert!(installed.is_some_and(|installed| installed.starts_with(&version)), "{package}: {installed:?}");
    }
}
