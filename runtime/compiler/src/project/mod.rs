//! Project text to definitions: YAML and Jinja, from an in-memory source tree.
//!
//! In: a [`SourceTree`] and [`Inputs`] (no files, no environment). Out: [`Definitions`] with the place
//! of every value, and all diagnostics. Not here: resolving references between cubes (`model`).

mod cube_keys;
mod cubes;
mod definitions;
#[cfg(test)]
mod documented;
mod fields;
mod guard;
mod jinja;
mod keys;
mod metrics;
mod models;
mod policies;
mod registered;
pub mod schema;
mod settings;
mod source;
mod sources;
pub mod yaml;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use definitions::{
    ColumnDefinition, CubeDefinition, Definitions, DimensionDefinition, JoinDefinition, MaskDefinition,
    Materialization, MeasureDefinition, MeasureType, MetricBody, MetricDefinition, MetricFilterDefinition,
    ModelDefinition, PolicyCondition, PolicyDefinition, PreAggregationDefinition, Reference, RelationDefinition,
    SegmentDefinition, SourceDefinition, TableDefinition, Wording,
};
pub(crate) use jinja::quote as quote_name;
pub use registered::{RegisteredCube, SHADOWED, is_registered, soften_registered};
pub use source::{Origin, SourceFile, SqlText, Text};

use crate::diagnostic::{self, Diagnostic};
use fields::Fields;
use jinja::{Renderer, Surroundings};
use keys::{Key, Kind, Shape};
use yaml::{Node, NodeValue};

/// The texts of a project: path inside the project (forward slashes) to content.
#[derive(Debug, Clone, Default)]
pub struct SourceTree {
    pub files: BTreeMap<Arc<str>, Arc<str>>,
}

/// What the project's text may depend on besides itself.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The warehouse's type, which names the SQL grammar of snippets: `duckdb`, `postgres` …
    pub warehouse: Arc<str>,
    /// Environment variables that `env_var` may see, already allow-listed.
    pub env: BTreeMap<String, String>,
    /// Cubes that no file defines, oldest first.
    pub registered: Vec<RegisteredCube>,
    /// A file or a folder of the project could not be read: it may have held policies.
    pub is_partial: bool,
}

static FILE: Shape = Shape::new(
    "the file",
    "Definitions of a project. Any of the lists may stand in any file.",
    &[
        Key::optional("cubes", Kind::List(&cube_keys::CUBE), "[]", "Tables and queries that can be asked."),
        Key::optional("metrics", Kind::List(&metrics::METRIC), "[]", "Values of the business, over measures."),
        Key::optional("sources", Kind::List(&sources::SOURCE), "[]", "Tables of the warehouse."),
        Key::optional("policies", Kind::List(&policies::POLICY), "[]", "What some callers may not see."),
    ],
);

/// Reads every file of the tree. A file or an entry that can't be read is reported; the rest stays.
pub fn read(tree: &SourceTree, inputs: &Inputs) -> (Definitions, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let file_at = |path: &str| {
        let (path, text) = tree.files.get_key_value(path)?;
        // Some editors begin a file with a mark that no column should count.
        let text = text.strip_prefix('\u{FEFF}').map_or_else(|| Arc::clone(text), Arc::from);
        Some(Arc::new(SourceFile { path: Arc::clone(path), text }))
    };
    let settings = settings::read(file_at(settings::FILE).as_ref(), &mut diagnostics);
    let is_in = |path: &str, folder: &str| {
        folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    };
    let (mut yaml_files, mut sql_files) = (Vec::new(), Vec::new());
    for path in tree.files.keys() {
        let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let is_yaml = matches!(ending.as_deref(), Some("yml" | "yaml"));
        if is_yaml && &**path != settings::FILE && settings.folders.iter().any(|folder| is_in(path, folder)) {
            yaml_files.extend(file_at(path));
        } else if path.ends_with(".sql") && is_in(path, &settings.model_folder) {
            sql_files.extend(file_at(path));
        }
    }
    let mut unread = BTreeSet::new();
    let told = diagnostics.len();
    let documents = documents(&yaml_files, &mut unread, &mut diagnostics);
    let is_empty = |folder: &&Text| !tree.files.keys().any(|path| is_in(path, &folder.value));
    if let Some(folder) = settings.policy_folder.as_ref().filter(is_empty) {
        let message = format!("`paths.policies` names the folder `{}`, which holds no file", folder.value);
        let hint = "name the folder of the policies, or remove the key";
        diagnostics.push(Diagnostic::error("missing-folder", message).hint(hint).at(folder.span()));
    }
    // A file that can't be parsed, a list under an unknown key, or a folder that nobody can name may have held
    // policies.
    let is_all_read = diagnostics.len() == told && !settings.has_unread_paths && !inputs.is_partial;
    let dialect = crate::model::grammar(&inputs.warehouse);

    let mut sources: Vec<SourceDefinition> = Vec::new();
    each(&documents, "sources", &mut unread, &mut diagnostics, |node, _, diagnostics| {
        sources::source(node, diagnostics).map(|source| sources.push(source)).is_some()
    });
    unique(&mut sources, "source", |source| &source.name, &mut diagnostics);

    let model_names = models::names(&sql_files, &mut diagnostics);
    let mut renderer = Renderer::new(Surroundings {
        models: model_names
            .iter()
            .map(|(name, _)| (Arc::clone(&name.value), jinja::quote(&name.value, &*dialect)))
            .collect(),
        tables: printed_tables(&sources, &*dialect),
        vars: settings.vars.clone(),
        has_unread_vars: settings.has_unread_vars,
        env: inputs.env.clone(),
        unread: unread.clone(),
    });
    let (models, circular_models) = models::read(model_names, &settings, &mut renderer, &mut diagnostics);

    let (mut cubes, mut metrics, mut policies) = (Vec::new(), Vec::new(), Vec::new());
    let is_misplaced = documents.iter().any(|(document, _)| policies::is_misplaced(document));
    each(&documents, "cubes", &mut unread, &mut diagnostics, |node, unread, diagnostics| {
        cubes::cube(node, &mut renderer, unread, diagnostics).map(|cube| cubes.push(cube)).is_some()
    });
    each(&documents, "metrics", &mut unread, &mut diagnostics, |node, _, diagnostics| {
        metrics::metric(node, &mut renderer, diagnostics).map(|metric| metrics.push(metric)).is_some()
    });
    let before = diagnostics.len();
    each(&documents, "policies", &mut unread, &mut diagnostics, |node, _, diagnostics| {
        policies::policy(node, diagnostics).map(|policy| policies.push(policy)).is_some()
    });
    // Of two policies of one name the second is left out.
    unique(&mut policies, "policy", |policy: &PolicyDefinition| &policy.name, &mut diagnostics);
    let has_broken_policies = diagnostics.len() > before || !is_all_read || is_misplaced;
    unique(&mut cubes, "cube", |cube: &CubeDefinition| &cube.name, &mut diagnostics);
    registered::add(&inputs.registered, &mut unread, &mut cubes, &metrics, &mut renderer, &mut diagnostics);
    unique(&mut metrics, "metric", |metric: &MetricDefinition| &metric.name, &mut diagnostics);

    let definitions = Definitions {
        project: settings.name,
        version: settings.version,
        warehouse: Arc::clone(&inputs.warehouse),
        sources,
        models,
        circular_models,
        cubes,
        metrics,
        policies,
        has_broken_policies,
        unread,
    };
    diagnostic::sort(&mut diagnostics);
    (definitions, diagnostics)
}

/// A file that could be parsed, and the keys of its lists as they are and as they are written.
type Document = (Node, Vec<(&'static str, Arc<str>)>);

fn documents(
    files: &[Arc<SourceFile>],
    unread: &mut BTreeSet<Arc<str>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Document> {
    let mut documents = Vec::new();
    for file in files {
        match yaml::parse(file) {
            // An empty file, or one of comments only.
            Ok(Node { value: NodeValue::Null, .. }) => {}
            Ok(node) => {
                if let NodeValue::List(items) = &node.value {
                    diagnostics.push(list_without_key(file, &node));
                    unread.extend(items.iter().filter_map(cubes::name_of).map(|name| name.value));
                    continue;
                }
                let label = format!("the file {}", file.path);
                if let Some(lists) = Fields::open_as(&node, &FILE, label, diagnostics).map(|fields| fields.keys()) {
                    documents.push((node, lists));
                }
            }
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                unread.extend(names_in(&file.text));
            }
        }
    }
    documents
}

/// Entries whose list has no name; the folder tells what they most likely are.
fn list_without_key(file: &SourceFile, node: &Node) -> Diagnostic {
    let list = FILE.names().find(|list| file.path.starts_with(&format!("{list}/"))).unwrap_or("cubes");
    let message = format!("the file {} must be a mapping, found a list", file.path);
    let hint = format!("write `{list}:` in a line of its own above it");
    Diagnostic::error("wrong-type", message).hint(hint).at(node.origin.span())
}

/// Whatever looks like a name in a file that could not be parsed.
fn names_in(text: &str) -> impl Iterator<Item = Arc<str>> + '_ {
    text.match_indices("name:").filter_map(|(at, found)| {
        let name: &str =
            text[at + found.len()..].trim_start().split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        (!name.is_empty()).then(|| name.into())
    })
}

/// Every entry of one of the top-level lists; the names of those that could not be read are kept.
fn each(
    documents: &[Document],
    list: &'static str,
    unread: &mut BTreeSet<Arc<str>>,
    diagnostics: &mut Vec<Diagnostic>,
    mut read: impl FnMut(&Node, &mut BTreeSet<Arc<str>>, &mut Vec<Diagnostic>) -> bool,
) {
    for (document, lists) in documents {
        let NodeValue::Map(map) = &document.value else { continue };
        let Some((_, written)) = lists.iter().find(|(name, _)| *name == list) else { continue };
        let Some((_, node)) = map.iter().find(|(key, _)| key.text == *written) else { continue };
        // An empty list may be written without brackets.
        if matches!(node.value, NodeValue::Null) {
            continue;
        }
        let NodeValue::List(items) = &node.value else {
            diagnostics.push(
                fields::wrong_type(&format_args!("`{list}`"), "a list", node).hint(fields::list_example(node, None)),
            );
            continue;
        };
        for item in items {
            if !read(item, unread, diagnostics) {
                unread.extend(cubes::name_of(item).map(|name| name.value));
            }
        }
    }
}

fn unique<T>(items: &mut Vec<T>, what: &str, name: impl Fn(&T) -> &Text, diagnostics: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<Arc<str>, Origin> = HashMap::with_capacity(items.len());
    items.retain(|item| {
        let text = name(item);
        if let Some(first) = seen.get(&text.value) {
            diagnostics.push(
                Diagnostic::error("duplicate-name", format!("there are two {}s `{}`", plural_stem(what), text.value))
                    .hint(format!("rename one; the first is at {}", first.span()))
                    .at(text.span()),
            );
            return false;
        }
        seen.insert(Arc::clone(&text.value), text.origin.clone());
        true
    });
}

fn plural_stem(what: &str) -> &str {
    if what == "policy" { "policie" } else { what }
}

fn printed_tables(
    sources: &[SourceDefinition],
    dialect: &dyn sqlparser::dialect::Dialect,
) -> HashMap<Arc<str>, BTreeMap<Arc<str>, String>> {
    let tables_of = |source: &SourceDefinition| {
        let tables = source.tables.iter();
        tables.map(|table| (Arc::clone(&table.name.value), sources::printed_name(source, table, dialect))).collect()
    };
    sources.iter().map(|source| (Arc::clone(&source.name.value), tables_of(source))).collect()
}
