//! Reads the YAML files of a dbt project.
//!
//! In: its folder. Out: the semantic models and metrics of both specifications, and the relations of its models. A file
//! that cannot be parsed is reported. Other resources of dbt are not read.

use std::path::Path;

use terrane_authoring::AuthoringError;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceTree;
use terrane_compiler::project::yaml::{self, Node, NodeValue};

use super::definition::{Metric, SemanticModel};
use super::relations::Relations;
use super::{legacy, metric, nested};
use crate::entry::Entry;
use crate::finding::{left_out, unread_yaml};
use crate::folder::{FileSelection, ModelFolder, check_without_model};

/// The YAML files of a project. `dbt_project.yml` is not read, because it has settings under the same keys. The folder
/// `target` contains copies of the project, and `integration_tests` is a project of its own in each package.
const FILES: FileSelection = FileSelection {
    is_wanted: |name| (name.ends_with(".yml") || name.ends_with(".yaml")) && name != "dbt_project.yml",
    skipped: &["target", "logs", "node_modules", "integration_tests", "venv"],
};

pub(super) struct Project {
    pub(super) tree: SourceTree,
    pub(super) models: Vec<SemanticModel>,
    pub(super) metrics: Vec<Metric>,
    /// The names of all metrics, including those that are not imported.
    pub(super) metric_names: Vec<String>,
    pub(super) relations: Relations,
    pub(super) findings: Vec<Diagnostic>,
}

pub(super) fn read(dir: &Path) -> Result<Project, AuthoringError> {
    let mut folder = ModelFolder::open(dir, &FILES)?;
    let mut findings = Vec::new();
    let relations = Relations::read(&folder, &mut findings);
    let mut project = Project {
        tree: SourceTree::default(),
        models: Vec::new(),
        metrics: Vec::new(),
        metric_names: Vec::new(),
        relations,
        findings,
    };
    for path in folder.paths.clone() {
        project.file(&mut folder, &path);
    }
    project.tree = folder.tree;
    if project.models.is_empty() {
        let hint = "Name the folder of the dbt project, which contains dbt_project.yml.";
        check_without_model(dir, "semantic model of dbt", hint, &project.findings)?;
    }
    Ok(project)
}

impl Project {
    fn file(&mut self, folder: &mut ModelFolder, path: &str) {
        let Some(file) = folder.read(path, &mut self.findings) else { return };
        match yaml::parse(&file) {
            Ok(node) => self.document(&node, path),
            Err(_) => {
                let errors = yaml::syntax_errors(&file).into_iter();
                self.findings.extend(errors.map(|problem| unread_yaml(path, problem)));
            }
        }
    }

    fn document(&mut self, node: &Node, path: &str) {
        let Some(document) = Entry::open(node, path) else { return };
        for item in list(&document, "semantic_models", &mut self.findings) {
            let model = legacy::semantic_model(item, &mut self.findings);
            let created = model.iter().flat_map(|model| &model.measures).filter(|measure| measure.creates_metric);
            let created: Vec<Metric> = created.map(metric::of_measure).collect();
            self.metric_names.extend(created.iter().map(|metric| metric.name.clone()));
            self.metrics.extend(created);
            self.models.extend(model);
        }
        for item in list(&document, "models", &mut self.findings) {
            nested::column_types(item, &mut self.relations);
            nested::time_spine(item, &mut self.findings);
            if let Some((model, metrics)) = nested::semantic_model(item, &mut self.findings) {
                self.metric_names.extend(nested::metric_names(item));
                self.models.push(model);
                self.metrics.extend(metrics);
            }
        }
        for item in list(&document, "metrics", &mut self.findings) {
            self.metric_names.extend(Entry::open(item, "").and_then(|entry| entry.word("name")));
            self.metrics.extend(metric::metric(item, &mut self.findings));
        }
        for item in list(&document, "saved_queries", &mut self.findings) {
            let name = Entry::open(item, "").and_then(|entry| entry.word("name")).unwrap_or_default();
            let what = format!("saved query `{name}` is not imported");
            self.findings.push(left_out(item.origin.span(), what, "Send the query from a client."));
        }
    }
}

/// Returns the items of a list in a document. A value that is not a list is reported.
fn list<'n>(document: &Entry<'n>, key: &str, findings: &mut Vec<Diagnostic>) -> &'n [Node] {
    if document.node(key).is_some_and(|node| !matches!(node.value, NodeValue::List(_))) {
        let what = format!("`{key}` of {} is not imported: expected a list", document.what);
        findings.push(left_out(document.span_of(key), what, "Write `- name: …` for each."));
    }
    document.list(key)
}
