//! The reference of the command line, `command-line.md`, compared with the program's own help.
//!
//! In: the definition of all commands. Out: a failure if the page differs; the new page is then written beside the old
//! one. Not here: wording that the help does not have; the page is the help as one document.

use std::fmt::Write as _;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _};

const PAGE: &str = include_str!("../../docs/reference/command-line.md");
const INTRODUCTION: &str = "\
# Command line
This page lists all commands of `terrane` with their arguments, as `--help` prints them. [Getting started](../getting-started.md) uses the most common ones.

A command exits with 0 if it succeeded, 1 if the project, its settings or its data have a problem, and 2 if its arguments are wrong. On the command line the caller is the operator, who has no id, roles, groups or attributes; `--as FILE` runs a command as another caller.
";

#[test]
fn page_lists_all_commands() {
    let mut page = INTRODUCTION.to_owned();
    let mut program = super::Arguments::command();
    program.build();
    program.get_subcommands_mut().for_each(|command| describe(command, &mut page));
    if page != PAGE {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/command-line.md.new");
        std::fs::write(&path, page).unwrap();
        panic!("the page differs from the help: review {} and move it over the page", path.display());
    }
}

/// Appends a command, or all commands of a group.
fn describe(command: &mut Command, page: &mut String) {
    if command.has_subcommands() {
        command
            .get_subcommands_mut()
            .filter(|command| command.get_name() != "help")
            .for_each(|part| describe(part, page));
        return;
    }
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let name = command.get_bin_name().unwrap_or_default();
    let about = text(command.get_long_about().or_else(|| command.get_about()));
    let _ = write!(page, "\n## {name}\n{about}.\n\n```\n{usage}\n```\n");
    let arguments: Vec<_> = command.get_arguments().filter(|argument| argument.get_id() != "help").collect();
    if !arguments.is_empty() {
        page.push_str("| argument | meaning | default |\n|---|---|---|\n");
        arguments.into_iter().for_each(|argument| page.push_str(&row(argument)));
    }
    if let Some(notes) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        let _ = write!(page, "\n```\n{}\n```\n", text(Some(notes)).trim_end());
    }
}

/// Returns the row of an argument in the table of its command.
fn row(argument: &Arg) -> String {
    let mut name = argument.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    if let Some(short) = argument.get_short() {
        name = format!("-{short}, {name}");
    }
    let values: Vec<_> =
        argument.get_value_names().unwrap_or_default().iter().map(|value| format!("<{value}>")).collect();
    if argument.get_action().takes_values() {
        let is_optional = argument.get_num_args().is_some_and(|count| count.min_values() == 0);
        name = match argument.is_require_equals_set() && is_optional {
            true => format!("{name}[={}]", values.join(" ")),
            false => format!("{name} {}", values.join(" ")).trim().to_owned(),
        };
    }
    let mut meaning =
        text(argument.get_long_help().or_else(|| argument.get_help())).replace('\n', " ").replace('|', "\\|");
    let possible: Vec<_> =
        argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if !possible.is_empty() && argument.get_action().takes_values() {
        let separator = if meaning.is_empty() { "" } else { ": " };
        let _ = write!(meaning, "{separator}{}", possible.join(", "));
    }
    let is_flag = !argument.get_action().takes_values();
    let defaults = argument.get_default_values().iter().filter(|value| !is_flag && !value.is_empty());
    let defaults = defaults.map(|value| format!("`{}`", value.to_string_lossy()));
    let default =
        if argument.is_required_set() { "required".to_owned() } else { defaults.collect::<Vec<_>>().join(", ") };
    format!("| `{name}` | {meaning} | {default} |\n")
}

fn text(styled: Option<&StyledStr>) -> String {
    styled.map(ToString::to_string).unwrap_or_default()
}
