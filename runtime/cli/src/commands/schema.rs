//! `terrane schema`: JSON Schemas of project files, for completion and checks in editors.

use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use terrane_compiler::project::schema::{FileKind, schema};
use terrane_expectations as expectations;

use super::print;
use crate::config::{PROJECT_FILE, project_schema};
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
An editor with a YAML language server completes keys, shows what they mean and marks slips. Either a file names
its schema in its first line:

  # yaml-language-server: $schema=../.schemas/cubes.json

or the editor's settings name all of them; for VS Code with its YAML extension, in .vscode/settings.json:

  {\"yaml.schemas\": {
    \".schemas/project.json\": \"service_project.yml\",
    \".schemas/definitions.json\": [\"sources/*.yml\", \"cubes/**/*.yml\", \"metrics/**/*.yml\", \"policies/**/*.yml\"],
    \".schemas/tests.json\": \"tests/*.yml\"
  }}

`terrane lsp` also reports what one file does not show, such as unknown cubes, while you type.

Examples:
  terrane schema
  terrane schema cubes
  terrane schema --out shop/.schemas

--out writes schemas that are there already anew, so that it can be run after an upgrade.")]
pub struct SchemaArguments {
    /// One kind of file; default: list or write all
    #[arg(value_parser = PossibleValuesParser::new(kinds().map(SchemaKind::name)))]
    pub kind: Option<String>,
    /// Write <kind>.json to this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// The kinds of files that have a schema.
#[derive(Debug, Clone, Copy)]
enum SchemaKind {
    Of(FileKind),
    /// `tests/*.yml`.
    Tests,
}

impl SchemaKind {
    fn name(self) -> &'static str {
        match self {
            SchemaKind::Of(kind) => kind.name(),
            SchemaKind::Tests => expectations::FOLDER,
        }
    }
}

fn kinds() -> impl Iterator<Item = SchemaKind> {
    FileKind::ALL.into_iter().map(SchemaKind::Of).chain([SchemaKind::Tests])
}

/// Lists, prints or writes schemas.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn run(arguments: &SchemaArguments) -> Result<(), Failure> {
    let is_asked = |kind: &SchemaKind| arguments.kind.as_deref().is_none_or(|name| name == kind.name());
    let kinds = || kinds().filter(is_asked);
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).map_err(|error| refused(folder, &error))?;
        for kind in kinds() {
            let path = folder.join(format!("{}.json", kind.name()));
            fs::write(&path, text_of(kind)?).map_err(|error| refused(&path, &error))?;
            print(&format!("wrote {}\n", path.display()));
        }
        return Ok(());
    }
    if arguments.kind.is_some() {
        for kind in kinds() {
            print(&text_of(kind)?);
        }
        return Ok(());
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(["KIND", "FILES"]);
    for kind in kinds() {
        table.add_row([kind.name(), files_of(kind)]);
    }
    print(&format!("{table}\n\nnext:\n  terrane schema cubes\n  terrane schema --out .schemas\n"));
    Ok(())
}

/// Returns the files to which a schema applies.
fn files_of(kind: SchemaKind) -> &'static str {
    match kind {
        SchemaKind::Of(FileKind::Project) => PROJECT_FILE,
        SchemaKind::Of(FileKind::Sources) => "sources/*.yml",
        SchemaKind::Of(FileKind::Cubes) => "cubes/**/*.yml",
        SchemaKind::Of(FileKind::Metrics) => "metrics/**/*.yml",
        SchemaKind::Of(FileKind::Policies) => "policies/**/*.yml",
        SchemaKind::Of(FileKind::Definitions) => "any of these four, where one file holds several lists",
        SchemaKind::Tests => "tests/*.yml",
    }
}

fn text_of(kind: SchemaKind) -> Result<String, Failure> {
    let text = match kind {
        SchemaKind::Of(FileKind::Project) => serde_json::to_string_pretty(&project_schema()),
        SchemaKind::Of(kind) => serde_json::to_string_pretty(&schema(kind)),
        SchemaKind::Tests => serde_json::to_string_pretty(&expectations::schema::schema()),
    };
    Ok(format!("{}\n", text.map_err(|error| Failure::new(error.to_string()))?))
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be written: {error}", path.display()))
        .hint("name a folder that is yours to write: --out DIR")
}
