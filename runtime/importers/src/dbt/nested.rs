//! Reads `semantic_model:` of dbt models, the newer specification, in which columns define entities and dimensions.
//!
//! In: an item of `models:`. Out: the semantic model and the metrics of the item, if it has a semantic model. Keys of
//! the dbt model itself, such as tests, are not read.

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::yaml::{Node, NodeValue};

use super::definition::{Dimension, Entity, Measure, Metric, ModelName, SemanticModel, Wording};
use super::legacy::{self, entity_kind, named, names, reject, wording};
use super::metric;
use super::relations::Relations;
use crate::entry::{Entry, is_template, yaml_of};
use crate::finding::left_out;

/// Adds the column types that a model declares.
pub(super) fn column_types(node: &Node, relations: &mut Relations) {
    let Some(model) = Entry::open(node, "") else { return };
    let Some(name) = model.word("name") else { return };
    for column in model.list("columns").iter().filter_map(|node| Entry::open(node, "")) {
        if let Some(column_name) = column.word("name") {
            relations.add_type(&name, &column_name, column.word("data_type").as_deref());
        }
    }
}

/// Returns the names of a model's metrics.
pub(super) fn metric_names(node: &Node) -> Vec<String> {
    Entry::open(node, "").map(|model| names(model.list("metrics")).collect()).unwrap_or_default()
}

/// Reports the custom granularities of a time spine, which no query of the project can name.
pub(super) fn time_spine(node: &Node, findings: &mut Vec<Diagnostic>) {
    let Some(model) = Entry::open(node, "") else { return };
    let Some(spine) = model.node("time_spine").and_then(|node| Entry::open(node, "")) else { return };
    for granularity in spine.list("custom_granularities") {
        let name = Entry::open(granularity, "").and_then(|entry| entry.word("name")).unwrap_or_default();
        let what = format!("custom granularity `{name}` is not imported");
        let cure = "Write a dimension with the column of the time spine, and group by it.";
        findings.push(left_out(granularity.origin.span(), what, cure));
    }
}

pub(super) fn semantic_model(node: &Node, findings: &mut Vec<Diagnostic>) -> Option<(SemanticModel, Vec<Metric>)> {
    let model = Entry::open(node, "")?;
    let config = model.node("config").and_then(|node| Entry::open(node, ""));
    let settings = [Some(&model), config.as_ref()].into_iter().flatten().find(|entry| entry.has("semantic_model"))?;
    let model_name = model.word("name")?;
    let head = head(settings, &model_name, findings)?;
    let name = head.name;
    let mut semantic = SemanticModel {
        name: name.clone(),
        span: model.text("name").map_or(model.span.clone(), |name| name.span()),
        model: ModelName { package: None, name: model_name },
        wording: Wording { description: description(&model, &name, findings), ..head.wording },
        primary_entity: model.word("primary_entity"),
        agg_time_dimension: model.text("agg_time_dimension").map(|text| (text.value.to_string(), text.span())),
        entities: Vec::new(),
        dimensions: Vec::new(),
        measures: Vec::new(),
        declared: Vec::new(),
    };
    for column in model.list("columns") {
        self::column(column, &mut semantic, findings);
    }
    derived(&model, &mut semantic, findings);
    let mut metrics = Vec::new();
    for item in model.list("metrics") {
        let (metric, measure) = metric::nested(item, &name, findings);
        metrics.extend(metric);
        semantic.measures.extend(measure);
    }
    semantic.declared.extend(names(model.list("metrics")));
    Some((semantic, metrics))
}

struct Head {
    name: String,
    wording: Wording,
}

/// Reads `semantic_model`, a mapping or a boolean, of a model or of its `config`. Returns `None` if it is not enabled.
fn head(model: &Entry<'_>, model_name: &str, findings: &mut Vec<Diagnostic>) -> Option<Head> {
    let node = model.node("semantic_model")?;
    let what = format!("semantic model of `{model_name}`");
    let Some(entry) = Entry::open(node, what.clone()) else {
        if model.boolean("semantic_model") == Some(true) {
            return Some(Head { name: model_name.to_owned(), wording: Wording::default() });
        }
        findings.push(left_out(
            node.origin.span(),
            format!("{what} is not imported: it is not enabled"),
            "Write `semantic_model: {enabled: true}`, and import again.",
        ));
        return None;
    };
    if !entry.has("enabled") || legacy::is_disabled(&entry, findings) {
        if !entry.has("enabled") {
            reject(&entry, "it is not enabled", "Write `enabled: true`, and import again.", findings);
        }
        return None;
    }
    let name = entry.word("name").unwrap_or_else(|| model_name.to_owned());
    if is_template(&name) {
        reject(&entry, "its name is a Jinja template", "Write the name that the template generates.", findings);
        return None;
    }
    let wording = wording(&entry, findings);
    entry.finish(findings);
    Some(Head { name, wording })
}

fn description(model: &Entry<'_>, name: &str, findings: &mut Vec<Diagnostic>) -> Option<String> {
    let text = model.word("description")?;
    if is_template(&text) {
        let what = format!("`description` of semantic model `{name}` is not imported: it is a Jinja template");
        findings.push(left_out(model.span_of("description"), what, "Write the text that the template generates."));
        return None;
    }
    Some(text)
}

/// Reads a column that defines an entity or a dimension. Other columns are not a part of the semantic model.
fn column(node: &Node, semantic: &mut SemanticModel, findings: &mut Vec<Diagnostic>) {
    let column = Entry::open(node, "").filter(|column| column.has("entity") || column.has("dimension"));
    if column.is_none() {
        return;
    }
    let of = format!(" of semantic model `{}`", semantic.name);
    let Some((column, column_name)) = named(node, "column", &of, findings) else { return };
    semantic.declared.push(column_name.clone());
    let own = Wording { label: None, description: description(&column, &column_name, findings), meta: None };
    if let Some(entity) = column.node("entity") {
        semantic.entities.extend(self::entity(entity, &column, &column_name, &own, &mut semantic.declared, findings));
    }
    if let Some(dimension) = column.node("dimension") {
        let read = self::dimension(dimension, &column, &column_name, &own, &mut semantic.declared, findings);
        semantic.dimensions.extend(read);
    }
}

/// Returns the type of an item, which is written as a word or as the key `type` of a mapping.
fn type_of(node: &Node, entry: Option<&Entry<'_>>) -> Option<String> {
    match &node.value {
        NodeValue::Scalar { text, .. } => Some(text.to_string()),
        _ => entry?.word("type"),
    }
}

/// Reads `entity: primary`, or a mapping with `type` and `name`.
fn entity(
    node: &Node,
    column: &Entry<'_>,
    column_name: &str,
    own: &Wording,
    declared: &mut Vec<String>,
    findings: &mut Vec<Diagnostic>,
) -> Option<Entity> {
    let entry = Entry::open(node, format!("entity of {}", column.what));
    let ty = type_of(node, entry.as_ref());
    let Some(kind) = ty.as_deref().and_then(entity_kind) else {
        reject(column, "the type of its entity is unknown", "Write primary, unique, natural or foreign.", findings);
        return None;
    };
    let name = entry.as_ref().and_then(|entry| entry.word("name")).unwrap_or_else(|| column_name.to_owned());
    declared.push(name.clone());
    let wording = merged(entry, own, findings);
    Some(Entity { name, span: column.span.clone(), kind, expr: Some(column_name.to_owned()), wording })
}

/// Reads `dimension: categorical`, or a mapping with `type` and `name`.
fn dimension(
    node: &Node,
    column: &Entry<'_>,
    column_name: &str,
    own: &Wording,
    declared: &mut Vec<String>,
    findings: &mut Vec<Diagnostic>,
) -> Option<Dimension> {
    let entry = Entry::open(node, format!("dimension of {}", column.what));
    let ty = type_of(node, entry.as_ref());
    let is_time = match ty.map(|ty| ty.to_lowercase()).as_deref() {
        Some("time") => true,
        Some("categorical") => false,
        _ => {
            reject(column, "the type of its dimension is unknown", "Write time or categorical.", findings);
            return None;
        }
    };
    let name = entry.as_ref().and_then(|entry| entry.word("name")).unwrap_or_else(|| column_name.to_owned());
    declared.push(name.clone());
    let is_partition = entry.as_ref().and_then(|entry| entry.boolean("is_partition")) == Some(true);
    if let Some(entry) = &entry {
        let cure = "Write the period as a condition of the joins to this cube.";
        entry.drop_key("validity_params", cure, findings);
    }
    let wording = merged(entry, own, findings);
    Some(Dimension {
        name,
        span: column.span.clone(),
        is_time,
        expr: Some(column_name.to_owned()),
        granularity: column.word("granularity"),
        is_partition,
        wording,
    })
}

/// Returns the wording of an entity or a dimension. Its column's wording replaces missing parts.
fn merged(entry: Option<Entry<'_>>, own: &Wording, findings: &mut Vec<Diagnostic>) -> Wording {
    let Some(entry) = entry else { return own.clone() };
    let read = wording(&entry, findings);
    entry.finish(findings);
    Wording { description: read.description.or_else(|| own.description.clone()), ..read }
}

/// Reads `derived_semantics`, which defines entities and dimensions that are not columns.
fn derived(model: &Entry<'_>, semantic: &mut SemanticModel, findings: &mut Vec<Diagnostic>) {
    let Some(node) = model.node("derived_semantics") else { return };
    let what = format!("`derived_semantics` of semantic model `{}`", semantic.name);
    let Some(entry) = Entry::open(node, what.clone()) else {
        let what = format!("{what} is not imported: expected a mapping");
        return findings.push(left_out(node.origin.span(), what, "Write `dimensions:` and `entities:` below it."));
    };
    let name = semantic.name.clone();
    semantic.declared.extend(names(entry.list("entities")));
    semantic.declared.extend(names(entry.list("dimensions")));
    semantic.entities.extend(entry.list("entities").iter().filter_map(|node| legacy::entity(node, &name, findings)));
    let dimensions = entry.list("dimensions").iter();
    semantic.dimensions.extend(dimensions.filter_map(|node| legacy::dimension(node, &name, findings)));
    entry.finish(findings);
}

/// Reads the measure that a simple metric defines.
pub(super) fn measure(entry: &Entry<'_>, name: &str, findings: &mut Vec<Diagnostic>) -> Option<Measure> {
    let measure = legacy::aggregated(entry, name.to_owned(), findings)?;
    let meta = measure.wording.meta.clone().or_else(|| entry.node("meta").map(yaml_of));
    Some(Measure { wording: Wording { meta, ..measure.wording }, ..measure })
}
