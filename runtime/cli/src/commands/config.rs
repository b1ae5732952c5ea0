//! `terrane config show`: lists every setting with its value and source.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;
use terrane_compiler::diagnostic::Diagnostic;

use super::{Terminal, print, print_problems};
use crate::config::{Setting, Source};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::DiagnosticJson;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane config show
  terrane config show my-project --json | jq '.settings[] | select(.source != \"default\")'

Secrets are shown as ***, URLs without user and password. `(…)` describes a default without a fixed value.
Exit code: 0, or 1 if the configuration has errors, which `terrane check` reports too.")]
pub struct ConfigArguments {
    #[command(subcommand)]
    pub action: ConfigAction,
}

#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Show every setting with its value and source
    Show {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

impl ConfigAction {
    /// Returns the path of the project.
    pub fn dir(&self) -> &PathBuf {
        let ConfigAction::Show { dir, .. } = self;
        dir
    }
}

/// Shows the settings. Returns true if the configuration has no errors.
///
/// # Errors
/// The output cannot be encoded.
pub fn run(arguments: &ConfigArguments, project: &Project, terminal: Terminal) -> Result<bool, Failure> {
    let ConfigAction::Show { json, .. } = arguments.action;
    let settings = &project.config.settings;
    if json {
        let problems: Vec<DiagnosticJson<'_>> = project.problems.iter().map(DiagnosticJson::from).collect();
        let json = json!({"settings": settings.iter().map(to_json).collect::<Vec<_>>(), "problems": problems});
        let text = serde_json::to_string_pretty(&json).map_err(|error| Failure::new(error.to_string()))?;
        print(&format!("{text}\n"));
    } else {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING).set_header(["KEY", "VALUE", "FROM"]);
        for Setting { key, value, source } in settings {
            table.add_row([key, value.as_deref().unwrap_or("(not set)"), &source.to_string()]);
        }
        print(&format!("{table}\n"));
        print_problems(&project.problems, &project.tree, terminal.stderr);
    }
    Ok(!project.problems.iter().any(Diagnostic::is_error))
}

fn to_json(setting: &Setting) -> serde_json::Value {
    let Setting { key, value, source } = setting;
    let (kind, place) = match source {
        Source::Default => ("default", None),
        Source::File { .. } => ("file", Some(source.to_string())),
        Source::Variable(name) => ("environment", Some(name.clone())),
    };
    json!({"key": key, "value": value, "source": kind, "place": place})
}
