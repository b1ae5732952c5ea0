//! Tests that the JSON Schemas accept projects without mistakes and reject the mistakes of the cases.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Map, Value};
use terrane_compiler::project::schema::{FileKind, Schema, schema};
use terrane_compiler::project::yaml::{Node, NodeValue, Plain, parse};
use terrane_compiler::project::{SourceFile, SourceTree};

use crate::case::{areas, base, cases};

/// The compiled schemas. Compiling a schema checks it against the meta-schema of its dialect.
struct Checks {
    schemas: Schemas,
    project: SchemaIndex,
    definitions: SchemaIndex,
}

impl Checks {
    fn new() -> Checks {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let mut compile = |name: &str, schema: &Schema| {
            let url = format!("https://terrane.example/{name}.json");
            compiler.add_resource(&url, serde_json::to_value(schema).unwrap()).unwrap();
            compiler.compile(&url, &mut schemas).unwrap_or_else(|error| panic!("{name}: {error:#}"))
        };
        for kind in FileKind::ALL {
            compile(kind.name(), &schema(kind));
        }
        // The compiler does not know the keys in the operator's sections, so any value is accepted there.
        let mut project = schema(FileKind::Project).closed();
        for section in ["warehouse", "security", "query", "server", "pre_aggregations"] {
            project = project.with(section, Schema::default());
        }
        let definitions = compile("all", &schema(FileKind::Definitions));
        let project = compile("service_project", &project);
        Checks { schemas, project, definitions }
    }

    /// Returns the error of the schema for a file; `None` if the file is valid, or is not YAML.
    fn refusal(&self, path: &str, text: &str) -> Option<String> {
        let text = text.trim_start_matches('\u{FEFF}');
        let node = parse(&Arc::new(SourceFile { path: path.into(), text: text.into() })).ok()?;
        let index = if path == "service_project.yml" { self.project } else { self.definitions };
        self.schemas.validate(&json(&node), index).err().map(|error| format!("{error:#}"))
    }

    fn takes(&self, tree: &SourceTree) {
        for (path, text) in tree.files.iter().filter(|(path, _)| path.ends_with(".yml")) {
            assert_eq!(self.refusal(path, text), None, "{path}");
        }
    }
}

fn json(node: &Node) -> Value {
    match &node.value {
        NodeValue::Null => Value::Null,
        NodeValue::Scalar { text, plain } => match plain {
            Plain::Boolean(value) => Value::Bool(*value),
            Plain::Integer | Plain::Fraction => serde_json::from_str(text).unwrap_or(Value::String(text.to_string())),
            Plain::Text => Value::String(text.to_string()),
        },
        NodeValue::List(items) => Value::Array(items.iter().map(json).collect()),
        NodeValue::Map(entries) => {
            Value::Object(entries.iter().map(|(key, node)| (key.text.to_string(), json(node))).collect::<Map<_, _>>())
        }
    }
}

fn files_of(folder: &Path) -> SourceTree {
    fn add(root: &Path, folder: &Path, tree: &mut SourceTree) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // The folder `tests` contains expectations, which have keys of their own.
            if path.is_dir() && !path.ends_with("tests") {
                add(root, &path, tree);
            } else if path.extension().is_some_and(|extension| extension == "yml") {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
                tree.files.insert(name.into(), fs::read_to_string(&path).unwrap().into());
            }
        }
    }
    let mut tree = SourceTree::default();
    add(folder, folder, &mut tree);
    assert!(!tree.files.is_empty(), "{}", folder.display());
    tree
}

#[test]
fn valid_projects_match_the_schemas() {
    let checks = Checks::new();
    checks.takes(&base());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    checks.takes(&files_of(&root.join("../../examples/flights")));
    for entry in fs::read_dir(root.join("../../tests/golden/projects")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy();
        if !name.ends_with(".types.yml") && !name.ends_with(".keys.yml") {
            assert_eq!(
                checks.refusal("cubes/all.yml", &fs::read_to_string(&path).unwrap()),
                None,
                "{}",
                path.display()
            );
        }
    }
    for entry in fs::read_dir(root.join("tests/project/good")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yml") {
            let text = fs::read_to_string(&path).unwrap();
            let case: BTreeMap<String, Value> = serde_saphyr::from_str(&text).unwrap();
            let files = case["files"].as_object().unwrap();
            let files = files.iter().map(|(path, text)| (path.as_str().into(), text.as_str().unwrap().into()));
            checks.takes(&SourceTree { files: files.collect() });
        }
    }
}

#[test]
fn seeded_structural_mistakes_violate_the_schemas() {
    let checks = Checks::new();
    let mut count = 0;
    for area in areas() {
        for case in cases(&area) {
            let (tree, marks) = case.tree();
            for (expected, mark) in case.reported.iter().zip(&marks) {
                let is_of_shape = matches!(expected.code.as_str(), "unknown-key" | "unknown-value" | "wrong-type");
                if is_of_shape && mark.file.ends_with(".yml") {
                    count += 1;
                    let refusal = checks.refusal(&mark.file, &tree.files[&mark.file]);
                    assert!(refusal.is_some(), "{area}/{}: {} is taken", case.name, mark.file);
                }
            }
        }
    }
    assert!(count >= 40, "{count} mistakes are too few");
}
