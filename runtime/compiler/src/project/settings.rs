//! The part of `service_project.yml` that defines the project: name, version, folders, model defaults, vars. The
//! settings of the server (warehouse, server, …) are read by the program that serves the project.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::Value;

use super::definitions::Materialization;
use super::fields::{Fields, wrong_type};
use super::keys::{Key, Kind, MappingKeys, NAME, Words};
use super::yaml::{self, Node, NodeValue, Plain};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::text::{Origin, SourceFile, Text};

pub(super) const FILE: &str = "service_project.yml";

const FOLDERS: [&str; 5] = ["sources", "models", "cubes", "metrics", "policies"];

pub(super) static PROJECT: MappingKeys = MappingKeys::new(
    "the project",
    "The project: its name, its folders and values for its SQL.",
    &[
        Key { example: "my_project", about: "The project's name.", ..NAME },
        Key::optional("version", Kind::Text, "\"1.4\"", "Free text for people."),
        Key::optional("paths", Kind::Mapping(&PATHS), "{models: models}", "Folders, relative to this file."),
        Key::optional("models", Kind::Mapping(&MODELS), "{materialization: view}", "Defaults for all models."),
        Key::optional("vars", Kind::ByName, "{first_year: 2020}", "Values for `var('name')` in SQL.")
            .also(&["variables"]),
    ],
);

static PATHS: MappingKeys = MappingKeys::new(
    "`paths`",
    "Folders, relative to this file. Each may contain any list except models.",
    &[
        Key::optional("sources", Kind::Text, "sources", "The folder of sources. Default: sources."),
        Key::optional("models", Kind::Text, "models", "The folder of SQL models. Default: models."),
        Key::optional("cubes", Kind::Text, "cubes", "The folder of cubes. Default: cubes."),
        Key::optional("metrics", Kind::Text, "metrics", "The folder of metrics. Default: metrics."),
        Key::optional("policies", Kind::Text, "policies", "The folder of policies. Default: policies."),
    ],
);

static MODELS: MappingKeys = MappingKeys::new(
    "`models`",
    "Defaults for models without their own values in `config(…)`.",
    &[
        Key::optional(
            "materialization",
            Kind::Word(&MATERIALIZATIONS),
            "view",
            "The relation that `terrane run` builds for a model. Default: view.",
        )
        .also(&["materialized"]),
        Key::optional("schema", Kind::Text, "marts", "The schema in which models are built. Default: analytics."),
    ],
);

pub(super) static MATERIALIZATIONS: Words<Materialization> = Words {
    list: &[
        ("view", Materialization::View),
        ("table", Materialization::Table),
        ("ephemeral", Materialization::Ephemeral),
    ],
    also: &[],
};

pub(super) struct Settings {
    pub(super) name: Arc<str>,
    pub(super) version: Option<Arc<str>>,
    pub(super) model_folder: String,
    /// The folders of YAML files, the models' folder included.
    pub(super) folders: Vec<String>,
    pub(super) materialization: Materialization,
    pub(super) schema: Option<Arc<str>>,
    pub(super) vars: BTreeMap<Arc<str>, Value>,
    /// True if the file, or its `vars`, could not be read, so that the variables are unknown.
    pub(super) has_unread_vars: bool,
    /// True if the file, or its `paths`, could not be read, so that some folders may not be searched.
    pub(super) has_unread_paths: bool,
    /// The folder of policies, if the project names one.
    pub(super) policy_folder: Option<Text>,
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
            has_unread_vars: false,
            has_unread_paths: false,
            policy_folder: None,
        }
    }
}

pub(super) fn read(file: Option<&Arc<SourceFile>>, diagnostics: &mut Vec<Diagnostic>) -> Settings {
    let Some(file) = file else {
        diagnostics.push(
            Diagnostic::error(Code::MissingProject, format!("the folder has no {FILE}"))
                .hint(format!("Create {FILE} with `name: my_project`."))
                .at(Span { file: FILE.into(), line: 1, column: 1, length: 1 }),
        );
        return Settings::default();
    };
    match yaml::parse(file) {
        Ok(node) => settings(&node, diagnostics),
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            readable_settings(file, diagnostics)
        }
    }
}

/// Reads a settings file that has a syntax error: each setting that can be parsed separately.
fn readable_settings(file: &Arc<SourceFile>, diagnostics: &mut Vec<Diagnostic>) -> Settings {
    let node = yaml::readable_part(file);
    let has_vars =
        matches!(&node.value, NodeValue::Map(entries) if entries.iter().any(|(key, _)| &*key.text == "vars"));
    let mut found = Vec::new();
    let settings = settings(&node, &mut found);
    // A missing key may be behind the error.
    found.retain(|diagnostic| diagnostic.code != Code::MissingField);
    diagnostics.append(&mut found);
    Settings { has_unread_vars: settings.has_unread_vars || !has_vars, has_unread_paths: true, ..settings }
}

fn settings(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Settings {
    let mut settings = Settings::default();
    if matches!(node.value, NodeValue::Null) {
        diagnostics.push(
            Diagnostic::error(Code::MissingField, format!("{FILE} has no `name`"))
                .hint("Add `name: my_project`.")
                .at(node.origin.span()),
        );
        return settings;
    }
    // Keys of the server's configuration are accepted. Only mistakes in keys of the project are reported.
    let Some(mut fields) = Fields::open_partly(node, &PROJECT, diagnostics) else {
        settings.has_unread_paths = true;
        return settings;
    };
    if let Some(name) = fields.name() {
        settings.name = name.value;
    }
    settings.version = fields.words("version");
    let count_before = fields.diagnostics().len();
    if let Some(node) = fields.node("paths") {
        paths(node, &mut settings, fields.diagnostics());
    }
    settings.has_unread_paths = fields.diagnostics().len() > count_before;
    if let Some(node) = fields.node("models") {
        model_defaults(node, &mut settings, fields.diagnostics());
    }
    if let Some(node) = fields.node("vars") {
        match &node.value {
            NodeValue::Map(map) => {
                settings.vars = map.iter().map(|(key, node)| (key.text.clone(), jinja_value(node))).collect();
            }
            _ => {
                settings.has_unread_vars = true;
                let hint = format!("Write names and values, as in `{}`.", fields.example("vars"));
                fields.report(wrong_type(&"`vars` of the project", "a mapping", node).hint(hint));
            }
        }
    }
    settings
}

fn paths(node: &Node, settings: &mut Settings, diagnostics: &mut Vec<Diagnostic>) {
    let Some(mut fields) = Fields::open(node, &PATHS, diagnostics) else { return };
    for (index, key) in FOLDERS.into_iter().enumerate() {
        let Some(path) = fields.text(key) else { continue };
        match inside(key, &path.value, &path.origin) {
            Ok(folder) => {
                if key == "models" {
                    settings.model_folder.clone_from(&folder);
                }
                // Only a folder whose name is not the default must exist.
                if key == "policies" && folder != key {
                    settings.policy_folder = Some(Text { value: folder.as_str().into(), origin: path.origin.clone() });
                }
                settings.folders[index] = folder;
            }
            Err(diagnostic) => fields.report(diagnostic),
        }
    }
}

/// Returns a folder inside the project, without a leading `./` and a trailing slash.
fn inside(key: &str, path: &str, origin: &Origin) -> Result<String, Diagnostic> {
    let is_outside =
        path.starts_with(['/', '\\', '~']) || path.contains(':') || path.split(['/', '\\']).any(|part| part == "..");
    if is_outside {
        let message = format!("the path `{path}` leaves the project");
        let hint = format!("Name a folder beside {FILE} or below it, as in `{key}: {key}`.");
        return Err(Diagnostic::error(Code::PathOutside, message).hint(hint).at(origin.span()));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    Ok(parts.join("/"))
}

fn model_defaults(node: &Node, settings: &mut Settings, diagnostics: &mut Vec<Diagnostic>) {
    let Some(mut fields) = Fields::open(node, &MODELS, diagnostics) else { return };
    if let Some(word) = fields.choice("materialization", &MATERIALIZATIONS) {
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
