//! Reads definitions from the text of a project: YAML and Jinja, from an in-memory source tree.
//!
//! In: a [`SourceTree`] and [`Inputs`] (no files, no environment). Out: [`Definitions`] with the place of every value,
//! and all diagnostics. Not here: resolving references between cubes (`model`).

mod cube_keys;
mod cubes;
mod definitions;
mod dimension_tests;
#[cfg(test)]
mod documented;
mod documents;
mod fields;
mod files;
mod jinja;
mod keys;
mod limits;
mod metrics;
mod models;
mod policies;
mod registered;
mod reserved;
mod rolling_window;
pub mod schema;
mod settings;
mod sources;
mod values;
pub mod yaml;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

pub use crate::text::{Origin, SourceFile, SqlText, Text};
pub use cube_keys::{dimension_type_word, measure_type_word};
pub use cubes::refresh_interval;
pub use definitions::{
    Built, ColumnDefinition, CubeDefinition, Definitions, DimensionDefinition, DimensionTestDefinition,
    DimensionTestRule, Governed, JoinDefinition, LocatedValue, MODEL_SCHEMA, MaskDefinition, Materialization,
    MeasureDefinition, MeasureType, MetricBody, MetricDefinition, MetricFilterDefinition, MissingAttribute,
    ModelDefinition, PolicyCondition, PolicyDefinition, PreAggregationDefinition, Reference, RefreshDefinition,
    RelationDefinition, SegmentDefinition, SourceDefinition, TableDefinition, Wording,
};
pub(crate) use definitions::{MAX_ANCESTORS, Recovered};
pub(crate) use fields::is_invalid_form_of;
pub use files::{may_read_files, project_may_read_files};
pub(crate) use jinja::{quote as quote_name, quoted};
pub use metrics::metric_kind_word;
pub use registered::{RegisteredCube, SHADOWED, is_registered, soften_registered};

use crate::diagnostic::{self, Code, Diagnostic, Span};
use jinja::{Renderer, TemplateContext};
use keys::{Key, Kind, MappingKeys};
use yaml::Node;

/// The files of a project: the content of each by its path in the project, with forward slashes.
#[derive(Debug, Clone, Default)]
pub struct SourceTree {
    pub files: BTreeMap<Arc<str>, Arc<str>>,
}

/// The inputs of a project besides its files.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The warehouse's type, which is also the name of the SQL grammar of snippets: `duckdb`, `postgres`, …
    pub warehouse: Arc<str>,
    /// The environment variables that `env_var` may read. They were checked against the allow-list.
    pub env: BTreeMap<String, String>,
    /// The statements that run on each new connection to the warehouse. Policies on tables also apply to the views that
    /// these statements create over them.
    pub init: Vec<Arc<str>>,
    /// Cubes that no file defines, oldest first.
    pub registered: Vec<RegisteredCube>,
    /// Places of files and folders of the project that could not be read and may contain policies.
    pub unread_files: Vec<Span>,
    /// The words in unread files that may be names of items.
    pub unread: BTreeSet<Arc<str>>,
    /// The schema of the tables of pre-aggregations, which the project's SQL must not name.
    pub reserved_schema: Option<Arc<str>>,
}

/// The code of an empty file. No definition is lost with it.
const EMPTY_FILE: Code = Code::EmptyFile;

static FILE: MappingKeys = MappingKeys::new(
    "the file",
    "Definitions of a project. Each file may contain any of the lists.",
    &[
        Key::optional("cubes", Kind::List(&cube_keys::CUBE), "[]", "Tables and queries that can be queried."),
        Key::optional("metrics", Kind::List(&metrics::METRIC), "[]", "Business values, computed from measures."),
        Key::optional("sources", Kind::List(&sources::SOURCE), "[]", "Tables of the warehouse."),
        Key::optional(
            "policies",
            Kind::List(&policies::POLICY),
            "[]",
            "Rows, values and members that some callers may not see.",
        ),
    ],
);

/// Reads every file of the tree. A file or an entry that cannot be read is reported and left out. The other parts of an
/// incomplete entry are still checked when the model is built.
pub fn read(tree: &SourceTree, inputs: &Inputs) -> (Definitions, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let settings_file = tree.files.get_key_value(settings::FILE).map(|(path, text)| documents::file_of(path, text));
    let settings = settings::read(settings_file.as_ref(), &mut diagnostics);
    let is_in = |path: &str, folder: &str| {
        folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    };
    let (mut yaml_files, mut sql_files) = (Vec::new(), Vec::new());
    for (path, text) in &tree.files {
        let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let is_yaml = matches!(ending.as_deref(), Some("yml" | "yaml"));
        if is_yaml && &**path != settings::FILE && settings.folders.iter().any(|folder| is_in(path, folder)) {
            yaml_files.push((path, text));
        } else if path.ends_with(".sql") && is_in(path, &settings.model_folder) {
            sql_files.push(documents::file_of(path, text));
        }
    }
    let mut yaml_files = documents::parse(&yaml_files);
    let mut unread = inputs.unread.clone();
    // Only entries of readable files can be members of cubes in readable files.
    let mut unread_members = BTreeSet::new();
    let count_before = diagnostics.len();
    for file in &mut yaml_files {
        diagnostics.append(&mut file.diagnostics);
        unread.append(&mut file.unread);
    }
    let is_empty = |folder: &&Text| !tree.files.keys().any(|path| is_in(path, &folder.value));
    if let Some(folder) = settings.policy_folder.as_ref().filter(is_empty) {
        let message = format!("`paths.policies` names the folder `{}`, which contains no file", folder.value);
        let hint = "Name the folder of the policies, or remove the key.";
        diagnostics.push(Diagnostic::error(Code::MissingFolder, message).hint(hint).at(folder.span()));
    }
    // A file that cannot be parsed, a list under an unknown key, or an unknown folder may have contained policies; so
    // may an unknown key of a cube.
    let unread_now = || diagnostics[count_before..].iter().filter(|diagnostic| diagnostic.code != EMPTY_FILE);
    let is_all_read = unread_now().next().is_none() && !settings.has_unread_paths && inputs.unread_files.is_empty();
    let spans =
        unread_now().filter_map(|diagnostic| diagnostic.span.clone()).filter(|span| &*span.file != settings::FILE);
    let mut unread_files: Vec<Span> = inputs.unread_files.iter().cloned().chain(spans).collect();
    unread_files.dedup_by(|a, b| a.file == b.file);
    let is_misplaced = yaml_files.iter().any(|file| file.has_misplaced_policies);
    let dialect = crate::snippet::grammar(&inputs.warehouse);

    let mut sources: Vec<SourceDefinition> = Vec::new();
    for file in &mut yaml_files {
        sources.append(&mut file.sources.items);
        diagnostics.append(&mut file.sources.diagnostics);
    }
    // Models may read tables of a source that is left out.
    unread.extend(second(&sources, |source| &source.name).map(|source| Arc::clone(&source.name.value)));
    unique(&mut sources, "source", |source| &source.name, &mut diagnostics);

    let model_names = models::names(&sql_files, &mut diagnostics);
    let context = Arc::new(TemplateContext {
        models: model_names
            .iter()
            .map(|name| (Arc::clone(&name.value), jinja::quote(&name.value, &*dialect)))
            .collect(),
        tables: printed_tables(&sources, &*dialect),
        vars: settings.vars.clone(),
        has_unread_vars: settings.has_unread_vars,
        env: inputs.env.clone(),
        unread: unread.clone(),
    });
    let renderer = Renderer::new(Arc::clone(&context));
    let (models, broken_models) = models::read(&model_names, &settings, &renderer, &mut diagnostics);
    let (models, cyclic_models) = models::in_order(models, &mut diagnostics);

    let entries = documents::read_entries(&yaml_files, &context);
    let mut has_broken_policies = entries.policies.diagnostics.iter().any(Diagnostic::is_error);
    let (mut cubes, mut metrics, mut policies) = (entries.cubes.items, entries.metrics.items, entries.policies.items);
    diagnostics.extend(entries.cubes.diagnostics);
    diagnostics.extend(entries.metrics.diagnostics);
    diagnostics.extend(entries.policies.diagnostics);
    unread_members.extend(entries.unread);
    // If two policies have one name, the second one is left out.
    let count_before = diagnostics.len();
    unique(&mut policies, "policy", |policy: &PolicyDefinition| &policy.name, &mut diagnostics);
    has_broken_policies |= diagnostics[count_before..].iter().any(Diagnostic::is_error) || !is_all_read || is_misplaced;
    // Other items may refer to members of a cube that is left out.
    for cube in second(&cubes, |cube: &CubeDefinition| &cube.name) {
        unread_members.extend(cube.member_names().cloned());
    }
    unique(&mut cubes, "cube", |cube: &CubeDefinition| &cube.name, &mut diagnostics);
    unique(&mut metrics, "metric", |metric: &MetricDefinition| &metric.name, &mut diagnostics);
    let mut recovered = separate(&mut cubes, &mut metrics, &mut policies);
    let count_of_files = cubes.len();
    unread.extend(unread_members.iter().cloned());
    let known = registered::Known { unread: &unread, metrics: &metrics };
    registered::add(&inputs.registered, &known, &mut unread_members, &mut cubes, &renderer, &mut diagnostics);
    unread.extend(unread_members.iter().cloned());
    if let Some(recovered) = &mut recovered {
        recovered.cubes.extend_from_slice(&cubes[count_of_files..]);
    }
    diagnostics.extend(reserved::uses(tree, inputs));

    let definitions = Definitions {
        project: settings.name,
        version: settings.version,
        warehouse: Arc::clone(&inputs.warehouse),
        init: inputs.init.clone(),
        sources,
        models,
        cyclic_models,
        cubes,
        metrics,
        policies,
        has_broken_policies,
        unread_files,
        broken_models,
        unread,
        unread_members,
        placeholders: BTreeSet::new(),
        recovered,
        has_errors: diagnostics.iter().any(Diagnostic::is_error),
        built: Built::default(),
    };
    diagnostic::sort(&mut diagnostics);
    (definitions, diagnostics)
}

/// Removes incomplete definitions. If there are any, returns all definitions, including the removed ones.
fn separate(
    cubes: &mut Vec<CubeDefinition>,
    metrics: &mut Vec<MetricDefinition>,
    policies: &mut Vec<PolicyDefinition>,
) -> Option<Box<Recovered>> {
    let are_complete = cubes.iter().all(CubeDefinition::is_all_complete)
        && metrics.iter().all(|metric| metric.is_complete)
        && policies.iter().all(|policy| policy.is_complete);
    if are_complete {
        return None;
    }
    let all = Recovered { cubes: cubes.clone(), metrics: metrics.clone(), policies: policies.clone() };
    *cubes = std::mem::take(cubes).into_iter().filter_map(CubeDefinition::into_complete).collect();
    metrics.retain(|metric| metric.is_complete);
    policies.retain(|policy| policy.is_complete);
    Some(Box::new(all))
}

/// Returns the diagnostic of a file that is a list without a key. The hint names the key that fits the file's folder.
fn list_without_key(file: &SourceFile, node: &Node) -> Diagnostic {
    let list = FILE.names().find(|list| file.path.starts_with(&format!("{list}/"))).unwrap_or("cubes");
    let message = format!("the file {} must be a mapping, found a list", file.path);
    let hint = format!("Write `{list}:` on its own line above it.");
    Diagnostic::error(Code::WrongType, message).hint(hint).at(node.origin.span())
}

/// Returns the words that look like names in a file that could not be parsed. Keys and names may be in quotes.
pub fn names_in(text: &str) -> impl Iterator<Item = Arc<str>> + '_ {
    let is_quote = |c: char| matches!(c, '"' | '\'');
    text.match_indices("name").filter_map(move |(at, found)| {
        let value = text[at + found.len()..].trim_start_matches(is_quote).trim_start_matches(' ').strip_prefix(':')?;
        let value = value.trim_start().trim_start_matches(is_quote);
        let name = value.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        (!name.is_empty()).then(|| name.into())
    })
}

/// Returns the items whose name an earlier item has.
fn second<T>(items: &[T], name: impl Fn(&T) -> &Text) -> impl Iterator<Item = &T> {
    let mut seen: HashSet<Arc<str>> = HashSet::with_capacity(items.len());
    items.iter().filter(move |item| !seen.insert(Arc::clone(&name(item).value)))
}

fn unique<T>(items: &mut Vec<T>, what: &str, name: impl Fn(&T) -> &Text, diagnostics: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<Arc<str>, Origin> = HashMap::with_capacity(items.len());
    items.retain(|item| {
        let text = name(item);
        if let Some(first) = seen.get(&text.value) {
            diagnostics.push(
                Diagnostic::error(Code::DuplicateName, format!("duplicate {what} `{}`", text.value))
                    .hint(format!("Rename one of them. The first is at {}.", first.span()))
                    .at(text.span()),
            );
            return false;
        }
        seen.insert(Arc::clone(&text.value), text.origin.clone());
        true
    });
}

fn printed_tables(
    sources: &[SourceDefinition],
    dialect: &dyn sqlparser::dialect::Dialect,
) -> BTreeMap<Arc<str>, BTreeMap<Arc<str>, String>> {
    let tables_of = |source: &SourceDefinition| {
        let tables = source.tables.iter();
        tables.map(|table| (Arc::clone(&table.name.value), sources::printed_name(source, table, dialect))).collect()
    };
    sources.iter().map(|source| (Arc::clone(&source.name.value), tables_of(source))).collect()
}
