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
An editor with a YAML language server completes keys, shows their descriptions and marks mistakes. Either a file names
its schema in its first line:

  # yaml-language-server: $schema=../.schemas/cubes.json

or the editor's settings name all schemas; for VS Code with its YAML extension, in .vscode/settings.json:

  {\"yaml.schemas\": {
    \".schemas/project.json\": \"service_project.yml\",
    \".schemas/definitions.json\": [\"sources/*.yml\", \"cubes/**/*.yml\", \"metrics/**/*.yml\", \"policies/**/*.yml\"],
    \".schemas/tests.json\": \"tests/*.yml\"
  }}

`terrane lsp` also reports problems across files, such as unknown cubes, while you type.

Examples:
  terrane schema
  terrane schema cubes
  terrane schema --out shop/.schemas

--out replaces existing schemas, so run it again after an upgrade.")]
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
        SchemaKind::Of(FileKind::Definitions) => "a file that lists sources, cubes, metrics and policies",
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
    Failure::new(format!("{} cannot be written: {error}", path.display())).hint("Name a writable folder: --out DIR.")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use boon::{Compiler, SchemaIndex, Schemas};
    use serde_json::{Map, Value};
    use terrane_compiler::project::SourceFile;
    use terrane_compiler::project::yaml::{Node, NodeValue, Plain, parse};

    use super::*;

    fn json(node: &Node) -> Value {
        match &node.value {
            NodeValue::Null => Value::Null,
            NodeValue::Scalar { plain: Plain::Boolean(value), .. } => Value::Bool(*value),
            NodeValue::Scalar { text, plain: Plain::Integer | Plain::Fraction } => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::from(&**text))
            }
            NodeValue::Scalar { text, .. } => Value::from(&**text),
            NodeValue::List(items) => items.iter().map(json).collect(),
            NodeValue::Map(map) => {
                Value::Object(map.iter().map(|(key, node)| (key.text.to_string(), json(node))).collect::<Map<_, _>>())
            }
        }
    }

    /// The schemas of the project file, of definitions and of tests.
    struct Checks {
        schemas: Schemas,
        indexes: [SchemaIndex; 3],
    }

    impl Checks {
        fn new() -> Checks {
            let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
            let kinds = [SchemaKind::Of(FileKind::Project), SchemaKind::Of(FileKind::Definitions), SchemaKind::Tests];
            let indexes = kinds.map(|kind| {
                let url = format!("https://terrane.example/{}.json", kind.name());
                let Ok(text) = text_of(kind) else { panic!("{} has a schema", kind.name()) };
                compiler.add_resource(&url, serde_json::from_str(&text).unwrap()).unwrap();
                compiler.compile(&url, &mut schemas).unwrap_or_else(|error| panic!("{url}: {error:#}"))
            });
            Checks { schemas, indexes }
        }

        fn refusal(&self, path: &str, text: &str) -> Option<String> {
            let node = parse(&Arc::new(SourceFile { path: path.into(), text: text.into() })).unwrap();
            let index = match path {
                PROJECT_FILE => self.indexes[0],
                path if path.starts_with("tests/") => self.indexes[2],
                _ => self.indexes[1],
            };
            self.schemas.validate(&json(&node), index).err().map(|error| format!("{error:#}"))
        }
    }

    #[test]
    fn examples_are_valid() {
        let checks = Checks::new();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut count = 0;
        for project in ["flights", "policy-region"] {
            let root = examples.join(project);
            let folders = ["", "sources", "cubes", "metrics", "policies", "tests"].map(|folder| root.join(folder));
            for entry in folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten()) {
                let path = entry.path();
                if path.extension().is_some_and(|ending| ending == "yml") {
                    let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                    assert_eq!(checks.refusal(&name, &fs::read_to_string(&path).unwrap()), None, "{project}/{name}");
                    count += 1;
                }
            }
        }
        assert!(count >= 18, "{count} files are too few");
    }

    #[test]
    fn wrong_files_are_invalid() {
        let checks = Checks::new();
        let case = |more: &str| format!("tests: [{{name: a, query: {{measures: [a.b]}}, rows: [], {more}}}]");
        for (path, text) in [
            (PROJECT_FILE, "name: a\nserver: {port: many}".to_owned()),
            (PROJECT_FILE, "name: a\nserver: {port: 70000}".to_owned()),
            (PROJECT_FILE, "name: a\nserver: {prot: 1}".to_owned()),
            (PROJECT_FILE, "name: a\nwarehouse: {file_access: some}".to_owned()),
            (PROJECT_FILE, "name: a\ncache: {enabled: perhaps}".to_owned()),
            (PROJECT_FILE, "name: a\nserver: {project_roots: {a: b}}".to_owned()),
            ("tests/a.yml", case("colour: red")),
            ("tests/a.yml", case("ordered: maybe")),
            ("tests/a.yml", "tests: [{name: a, rows: []}]".to_owned()),
            ("tests/a.yml", "tests: [{name: a, query: {mesures: []}, rows: []}]".to_owned()),
            ("tests/a.yml", "tests: [{name: a, query: {}, error: {code: NO_SUCH}}]".to_owned()),
            ("tests/a.yml", "tests: [{name: a, query: {}}]".to_owned()),
            ("cubes/a.yml", "cubes: [{name: a, sql_table: t, measures: [{name: b, type: summ}]}]".to_owned()),
        ] {
            assert!(checks.refusal(path, &text).is_some(), "{path}: {text}");
        }
        let of_environment = "name: a\nserver: {port: \"${PORT}\"}\ncache: {enabled: \"${CACHE}\"}";
        assert_eq!(checks.refusal(PROJECT_FILE, of_environment), None);
        assert_eq!(checks.refusal("tests/a.yml", &case("ordered: false")), None);
    }
}
