//! The part of `service_project.yml` that defines the project: name, version, folders, model
//! defaults, vars. The operator's keys (warehouse, server …) belong to the program that serves it.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::Value;

use super::definitions::Materialization;
use super::fields::Fields;
use super::source::{Origin, SourceFile};
use super::yaml::{self, Node, NodeValue, Plain};
use crate::diagnostic::{Diagnostic, Span};
use crate::model::nearest::likely;

pub(super) const FILE: &str = "service_project.yml";

const OURS: [&str; 5] = ["name", "version", "paths", "models", "vars"];
const FOLDERS: [&str; 5] = ["sources", "models", "cubes", "metrics", "policies"];

pub(super) struct Settings {
    pub(super) name: Arc<str>,
    pub(super) version: Option<Arc<str>>,
    pub(super) model_folder: String,
    /// Where YAML files are looked for, the models' folder included.
    pub(super) folders: Vec<String>,
    pub(super) materialization: Materialization,
    pub(super) schema: Option<Arc<str>>,
    pub(super) vars: BTreeMap<Arc<str>, Value>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            name: "".into(),
            version: None,
            model_folder: "models".to_owned(),
            folders: FOLDERS.map(str::to_owned).to_vec(),
            materialization: Materialization::View,
            schema: None,
            vars: BTreeMap::new(),
        }
    }
}

pub(super) fn read(file: Option<&Arc<SourceFile>>, diagnostics: &mut Vec<Diagnostic>) -> Settings {
    let Some(file) = file else {
        diagnostics.push(
            Diagnostic::error("missing-project", format!("the folder has no {FILE}"))
                .hint(format!("create {FILE} with `name: my_project`"))
                .at(Span { file: FILE.into(), line: 1, column: 1, length: 1 }),
        );
        return Settings::default();
    };
    match yaml::parse(file) {
        Ok(node) => settings(&node, diagnostics),
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            Settings::default()
        }
    }
}

fn settings(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Settings {
    let mut settings = Settings::default();
    let NodeValue::Map(map) = &node.value else {
        diagnostics.push(
            Diagnostic::error("missing-field", format!("{FILE} has no `name`"))
                .hint("add `name: my_project`")
                .at(node.origin.span()),
        );
        return settings;
    };
    // Every key of the operator's passes; only a slip in one of ours is told.
    let mut known: Vec<&str> = OURS.to_vec();
    for (key, _) in map {
        let is_ours = OURS.contains(&&*key.text);
        let is_slip = !is_ours
            && key.text.len() > 3
            && strsim::osa_distance(&key.text, likely(&key.text, OURS).unwrap_or("")) == 1;
        if !is_ours && !is_slip {
            known.push(&key.text);
        }
    }
    let Some(mut fields) = Fields::open(node, "the project", &known, diagnostics) else { return settings };
    if let Some(name) = fields.name() {
        settings.name = name.value;
    }
    settings.version = fields.words("version");
    if let Some(node) = fields.node("paths") {
        paths(node, &mut settings, fields.diagnostics());
    }
    if let Some(node) = fields.node("models") {
        model_defaults(node, &mut settings, fields.diagnostics());
    }
    if let Some(node) = fields.node("vars") {
        match &node.value {
            NodeValue::Map(map) => {
                settings.vars = map.iter().map(|(key, node)| (key.text.clone(), jinja_value(node))).collect();
            }
            _ => fields.report(
                Diagnostic::error("wrong-type", "`vars` of the project must be a mapping")
                    .hint("write names and values: {start_year: 2013}")
                    .at(node.origin.span()),
            ),
        }
    }
    settings
}

fn paths(node: &Node, settings: &mut Settings, diagnostics: &mut Vec<Diagnostic>) {
    let Some(mut fields) = Fields::open(node, "`paths`", &FOLDERS, diagnostics) else { return };
    for (index, key) in FOLDERS.into_iter().enumerate() {
        let Some(path) = fields.text(key) else { continue };
        match inside(&path.value, &path.origin) {
            Ok(folder) => {
                if key == "models" {
                    settings.model_folder.clone_from(&folder);
                }
                settings.folders[index] = folder;
            }
            Err(diagnostic) => fields.report(diagnostic),
        }
    }
}

/// A folder inside the project, without `./` and a slash at its end.
fn inside(path: &str, origin: &Origin) -> Result<String, Diagnostic> {
    let is_outside =
        path.starts_with(['/', '\\', '~']) || path.contains(':') || path.split(['/', '\\']).any(|part| part == "..");
    if is_outside {
        return Err(Diagnostic::error("path-outside", format!("the path `{path}` leaves the project"))
            .hint("name a folder inside the project, relative to service_project.yml")
            .at(origin.span()));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    Ok(parts.join("/"))
}

fn model_defaults(node: &Node, settings: &mut Settings, diagnostics: &mut Vec<Diagnostic>) {
    const WORDS: &[(&str, Materialization)] = &[
        ("view", Materialization::View),
        ("table", Materialization::Table),
        ("ephemeral", Materialization::Ephemeral),
    ];
    let Some(mut fields) = Fields::open(node, "`models`", &["materialization", "schema"], diagnostics) else { return };
    if let Some(word) = fields.choice("materialization", WORDS, &[]) {
        settings.materialization = word;
    }
    settings.schema = fields.words("schema");
}

fn jinja_value(node: &Node) -> Value {
    match &node.value {
        NodeValue::Null => Value::from(()),
        NodeValue::Scalar { text, plain } => match plain {
            Plain::Boolean(value) => Value::from(*value),
            Plain::Integer => text.parse::<i64>().map_or_else(|_| Value::from(&**text), Value::from),
            Plain::Fraction | Plain::Text => Value::from(&**text),
        },
        NodeValue::List(items) => items.iter().map(jinja_value).collect(),
        NodeValue::Map(map) => map.iter().map(|(key, node)| (key.text.to_string(), jinja_value(node))).collect(),
    }
}
