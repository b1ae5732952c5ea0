//! Reads `semantic_models:`, the older specification, and the parts that both specifications share.

use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::project::yaml::{Node, NodeValue};

use super::definition::{Dimension, Entity, EntityKind, Measure, ModelName, SemanticModel, Wording};
use crate::entry::{Entry, is_template, yaml_of};
use crate::finding::left_out;

const NAME_CURE: &str = "Add a `name` without Jinja.";

pub(super) fn semantic_model(node: &Node, findings: &mut Vec<Diagnostic>) -> Option<SemanticModel> {
    let (entry, name) = named(node, "semantic model", "", findings)?;
    if is_disabled(&entry, findings) {
        return None;
    }
    let Some(model) = entry.word("model").as_deref().and_then(model_name) else {
        let what = format!("{} is not imported: its `model` is not a `ref`", entry.what);
        findings.push(left_out(entry.span_of("model"), what, "Write `model: ref('orders')`."));
        return None;
    };
    let defaults = entry.node("defaults").and_then(|node| Entry::open(node, format!("`defaults` of {}", entry.what)));
    let agg_time_dimension = defaults
        .as_ref()
        .and_then(|defaults| defaults.text("agg_time_dimension"))
        .map(|t| (t.value.to_string(), t.span()));
    if let Some(defaults) = defaults {
        defaults.finish(findings);
    }
    let entities = entry.list("entities").iter().filter_map(|node| entity(node, &name, findings)).collect();
    let dimensions = entry.list("dimensions").iter().filter_map(|node| dimension(node, &name, findings)).collect();
    let measures = entry.list("measures").iter().filter_map(|node| measure(node, &name, findings)).collect();
    let model = SemanticModel {
        span: entry.span.clone(),
        declared: ["entities", "dimensions", "measures"].iter().flat_map(|key| names(entry.list(key))).collect(),
        model,
        wording: wording(&entry, findings),
        primary_entity: entry.word("primary_entity"),
        agg_time_dimension,
        entities,
        dimensions,
        measures,
        name,
    };
    entry.finish(findings);
    Some(model)
}

/// Returns the names of the items of a list.
pub(super) fn names(items: &[Node]) -> impl Iterator<Item = String> {
    items.iter().filter_map(|item| Entry::open(item, "")?.word("name"))
}

/// Opens an item that must have a name. `of` is the end of the item's description, such as
/// `` of semantic model `orders` ``.
pub(super) fn named<'n>(
    node: &'n Node,
    kind: &str,
    of: &str,
    findings: &mut Vec<Diagnostic>,
) -> Option<(Entry<'n>, String)> {
    let name = Entry::open(node, "").and_then(|entry| entry.text("name")).filter(|name| !is_template(&name.value));
    let Some(name) = name else {
        findings.push(left_out(node.origin.span(), format!("a {kind}{of} has no name"), NAME_CURE));
        return None;
    };
    let mut entry = Entry::open(node, format!("{kind} `{}`{of}", name.value))?;
    entry.text("name");
    entry.span = name.span();
    Some((entry, name.value.to_string()))
}

/// Returns true and adds a finding if the project disables an item.
pub(super) fn is_disabled(entry: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> bool {
    let config = entry.node("config").and_then(|node| Entry::open(node, ""));
    let enabled = config.and_then(|config| config.word("enabled")).or_else(|| entry.word("enabled"));
    let is_disabled = enabled.is_some_and(|word| !matches!(word.to_lowercase().as_str(), "true" | "yes"));
    if is_disabled {
        let what = format!("{} is not imported: it is not enabled", entry.what);
        findings.push(left_out(entry.span.clone(), what, "Enable it, and import again."));
    }
    is_disabled
}

/// Reads the label, the description and `meta`, which may also be below `config`.
pub(super) fn wording(entry: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> Wording {
    let config = entry.node("config").and_then(|node| Entry::open(node, format!("`config` of {}", entry.what)));
    let mut meta = entry.node("meta").map(yaml_of);
    if let Some(config) = config {
        config.word("enabled");
        meta = meta.or_else(|| config.node("meta").map(yaml_of));
        config.finish(findings);
    }
    let mut text = |key: &str| {
        let word = entry.word(key)?;
        if is_template(&word) {
            let what = format!("`{key}` of {} is not imported: it is a Jinja template", entry.what);
            findings.push(left_out(entry.span_of(key), what, "Write the text that the template generates."));
            return None;
        }
        Some(word)
    };
    Wording { label: text("label"), description: text("description"), meta }
}

/// Parses `ref('model')` or `ref('package', 'model')`, which may be in Jinja braces.
pub(super) fn model_name(text: &str) -> Option<ModelName> {
    let inner = text.trim().trim_start_matches("{{").trim_end_matches("}}").trim();
    let arguments = inner.strip_prefix("ref")?.trim().strip_prefix('(')?.strip_suffix(')')?;
    let word = |part: &str| {
        let part = part.trim();
        let quote = part.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let word = part.strip_prefix(quote)?.strip_suffix(quote)?;
        (!word.is_empty() && !word.contains(['\'', '"', '{'])).then(|| word.to_owned())
    };
    let parts: Vec<&str> = arguments.split(',').collect();
    match parts.as_slice() {
        [name] => Some(ModelName { package: None, name: word(name)? }),
        [package, name] if !name.contains('=') => Some(ModelName { package: Some(word(package)?), name: word(name)? }),
        _ => None,
    }
}

/// Reads an expression, which may be written as an integer. Returns `Err` and adds a finding if it is a template; the
/// item is then left out.
pub(super) fn expr(entry: &Entry<'_>, key: &str, findings: &mut Vec<Diagnostic>) -> Result<Option<String>, ()> {
    match entry.word(key) {
        Some(word) if is_template(&word) => {
            reject(entry, &format!("its `{key}` is a Jinja template"), "Write the SQL that it generates.", findings);
            Err(())
        }
        None if entry.has(key) => {
            reject(entry, &format!("its `{key}` is not SQL"), "Write it as a string.", findings);
            Err(())
        }
        word => Ok(word),
    }
}

/// Returns the word under a key in lower case, because projects write such words in upper or lower case.
pub(super) fn kind(entry: &Entry<'_>, key: &str) -> Option<String> {
    entry.word(key).map(|word| word.to_lowercase())
}

/// Reports that an item is not imported.
pub(super) fn reject(entry: &Entry<'_>, reason: &str, cure: &str, findings: &mut Vec<Diagnostic>) {
    findings.push(left_out(entry.span.clone(), format!("{} is not imported: {reason}", entry.what), cure));
}

pub(super) fn entity_kind(word: &str) -> Option<EntityKind> {
    Some(match word.to_lowercase().as_str() {
        "primary" => EntityKind::Primary,
        "unique" => EntityKind::Unique,
        "natural" => EntityKind::Natural,
        "foreign" => EntityKind::Foreign,
        _ => return None,
    })
}

pub(super) fn entity(node: &Node, model: &str, findings: &mut Vec<Diagnostic>) -> Option<Entity> {
    let (entry, name) = named(node, "entity", &of(model), findings)?;
    let Some(kind) = entry.word("type").as_deref().and_then(entity_kind) else {
        reject(&entry, "unknown type", "Write primary, unique, natural or foreign.", findings);
        return None;
    };
    let expr = expr(&entry, "expr", findings).ok()?;
    let wording = wording(&entry, findings);
    let span = entry.span.clone();
    entry.finish(findings);
    Some(Entity { name, span, kind, expr, wording })
}

pub(super) fn dimension(node: &Node, model: &str, findings: &mut Vec<Diagnostic>) -> Option<Dimension> {
    let (entry, name) = named(node, "dimension", &of(model), findings)?;
    let is_time = match kind(&entry, "type").as_deref() {
        Some("time") => true,
        Some("categorical") => false,
        _ => {
            reject(&entry, "unknown type", "Write time or categorical.", findings);
            return None;
        }
    };
    let parameters =
        entry.node("type_params").and_then(|node| Entry::open(node, format!("`type_params` of {}", entry.what)));
    let granularity = parameters.as_ref().and_then(|parameters| parameters.word("time_granularity"));
    if let Some(parameters) = parameters {
        drop_validity(&parameters, findings);
        parameters.finish(findings);
    }
    drop_validity(&entry, findings);
    let expr = expr(&entry, "expr", findings).ok()?;
    let dimension = Dimension {
        name,
        span: entry.span.clone(),
        is_time,
        expr,
        granularity: granularity.or_else(|| entry.word("granularity")),
        is_partition: entry.boolean("is_partition") == Some(true),
        wording: wording(&entry, findings),
    };
    entry.finish(findings);
    Some(dimension)
}

fn drop_validity(entry: &Entry<'_>, findings: &mut Vec<Diagnostic>) {
    let cure = "Write the period as a condition of the joins to this cube.";
    entry.drop_key("validity_params", cure, findings);
}

pub(super) fn measure(node: &Node, model: &str, findings: &mut Vec<Diagnostic>) -> Option<Measure> {
    let (entry, name) = named(node, "measure", &of(model), findings)?;
    let measure = aggregated(&entry, name, findings)?;
    let creates_metric = entry.boolean("create_metric") == Some(true);
    entry.finish(findings);
    Some(Measure { creates_metric, ..measure })
}

/// Reads the keys of an aggregation. Measures have these keys; in dbt's newer specification, simple metrics have them.
pub(super) fn aggregated(entry: &Entry<'_>, name: String, findings: &mut Vec<Diagnostic>) -> Option<Measure> {
    let Some(aggregation) = kind(entry, "agg") else {
        reject(entry, "it has no `agg`", "Write its aggregation: `agg: sum`.", findings);
        return None;
    };
    if entry.has("non_additive_dimension") {
        let cure = "Compute the rows of one time in a model (models/*.sql), and sum those.";
        reject(entry, "it is not additive over one of its dimensions", cure, findings);
        return None;
    }
    let parameters =
        entry.node("agg_params").and_then(|node| Entry::open(node, format!("`agg_params` of {}", entry.what)));
    let percentile = parameters.as_ref().and_then(|parameters| parameters.word("percentile"));
    let is_discrete = parameters.as_ref().and_then(|parameters| parameters.boolean("use_discrete_percentile"));
    if is_discrete == Some(true) || kind(entry, "percentile_type").is_some_and(|word| word != "continuous") {
        let cure = "Write a continuous percentile, which lies between two values, or a measure in the warehouse's SQL.";
        reject(entry, "its percentile is discrete: one of the values", cure, findings);
        return None;
    }
    let mut is_approximate = false;
    if let Some(parameters) = parameters {
        is_approximate = parameters.boolean("use_approximate_percentile") == Some(true);
        parameters.finish(findings);
    }
    Some(Measure {
        name,
        span: entry.span.clone(),
        aggregation,
        expr: expr(entry, "expr", findings).ok()?,
        agg_time_dimension: entry.word("agg_time_dimension"),
        percentile: percentile.or_else(|| entry.word("percentile")),
        is_approximate,
        creates_metric: false,
        is_private: false,
        wording: wording(entry, findings),
    })
}

fn of(model: &str) -> String {
    format!(" of semantic model `{model}`")
}

/// Returns the place of a value, for findings about items without a name.
pub(super) fn value_span(node: &Node) -> Span {
    node.origin.span()
}

/// Returns the filters under a key: one template, or a list of them.
///
/// # Errors
/// Returns the place of a value that has a different shape.
pub(super) fn filters(entry: &Entry<'_>, key: &str) -> Result<Vec<String>, Span> {
    let Some(node) = entry.node(key) else { return Ok(Vec::new()) };
    let one = |node: &Node| match &node.value {
        NodeValue::Scalar { text, .. } => Ok(text.trim().to_owned()),
        _ => Err(value_span(node)),
    };
    match &node.value {
        NodeValue::Scalar { .. } => Ok(vec![one(node)?]),
        NodeValue::List(items) => items.iter().map(one).collect(),
        _ => Err(value_span(node)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_models_are_read() {
        let name = |package: Option<&str>, name: &str| {
            Some(ModelName { package: package.map(str::to_owned), name: name.to_owned() })
        };
        assert_eq!(model_name("ref('orders')"), name(None, "orders"));
        assert_eq!(model_name("{{ ref(\"shop\", \"orders\") }}"), name(Some("shop"), "orders"));
        for text in ["orders", "ref()", "ref(x)", "source('a', 'b')", "ref('a', v=2)", "ref('a' || 'b')"] {
            assert_eq!(model_name(text), None, "{text}");
        }
    }
}
