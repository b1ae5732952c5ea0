//! `terrane codegen`: writes the members of a project as definitions for a client package.
//!
//! In: a project and a caller. Out: a TypeScript or Python module. The warehouse is not used.

use std::fs;
use std::path::PathBuf;

use terrane_codegen::{Language, generate};
use terrane_compiler::Access;

use super::print;
use crate::caller;
use crate::failure::Failure;
use crate::output_file::OutputFile;
use crate::project::Project;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane codegen examples/flights --lang typescript --out src/project.ts
  terrane codegen examples/flights --lang python --out project.py
  terrane codegen . --lang python --out project.py --as analyst.json
  terrane codegen . --lang typescript --out src/project.ts --check

A misspelled cube, member or metric is then an error of the compiler, or of mypy and pyright. The packages in
sdk/typescript and sdk/python use the definitions. The same project always has the same file, byte by byte.

The file names what the caller may see. Cubes that are registered on a server are not in the project's files;
the npm command terrane-codegen of sdk/typescript reads them from the server.

Exit code: 0 if the definitions were written or are current; 1 if the project has errors or --check finds a
difference.")]
pub struct CodegenArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// The language of the definitions
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub lang: DefinitionLanguage,
    /// Write to this file instead of standard output; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: Option<OutputFile>,
    /// Write nothing, and fail if the file is outdated
    #[arg(long, requires = "out")]
    pub check: bool,
    /// Write what this caller may see: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
}

/// The languages of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DefinitionLanguage {
    #[value(name = "typescript")]
    TypeScript,
    Python,
}

impl From<DefinitionLanguage> for Language {
    fn from(language: DefinitionLanguage) -> Self {
        match language {
            DefinitionLanguage::TypeScript => Language::TypeScript,
            DefinitionLanguage::Python => Language::Python,
        }
    }
}

/// Writes or checks the definitions.
///
/// # Errors
/// The project has errors, the file is outdated, or it cannot be written.
pub fn run(arguments: &CodegenArguments, project: &Project) -> Result<(), Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    let model = project.model()?;
    let text = generate(&Access::of(&model, &caller.caller), arguments.lang.into());
    match &arguments.out {
        Some(file) if arguments.check => check(file, &text),
        Some(file) => file.write(text, "--out"),
        None => {
            print(&text);
            Ok(())
        }
    }
}

fn check(file: &OutputFile, text: &str) -> Result<(), Failure> {
    let found = fs::read_to_string(file.path()).map_err(|error| {
        Failure::new(format!("{file} cannot be read: {error}")).hint("Run the command without --check to write it.")
    })?;
    if found == text {
        return Ok(());
    }
    Err(Failure::new(format!("{file} is outdated")).hint("Run the command without --check to write it."))
}
