//! Reads the entries of `metrics:`.
//!
//! In: the YAML nodes of one list. Out: [`MetricDefinition`]s. Not here: resolving the names in expressions.

use super::cube_keys::GRANULARITIES;
use super::cubes::wording;
use super::definitions::{MetricBody, MetricDefinition, MetricFilterDefinition};
use super::fields::Fields;
use super::jinja::Renderer;
use super::keys::{DESCRIPTION, FORMAT, HIDDEN, Key, Kind, META, MappingKeys, NAME, TITLE, WordList, Words};
use super::values::values;
use super::yaml::Node;
use crate::diagnostic::{Code, Diagnostic};
use crate::text::SqlText;
use crate::types::{MetricKind, Operator};

pub(super) static METRIC: MappingKeys = MappingKeys {
    called: "metric",
    about: "A business value, computed from measures of any cubes.",
    one_of: &["expression", "numerator"],
    apart: &["expression", "numerator"],
    keys: &[
        NAME,
        Key::required("type", Kind::Word(&KINDS), "simple", "The kind of computation.").also(&["kind"]),
        Key::optional(
            "expression",
            Kind::Text,
            "orders.revenue",
            "For `simple`, one measure as `cube.measure`, or one metric. For `derived`, arithmetic between measures and metrics.",
        )
        .also(&["expr", "sql", "formula", "measure", "value"]),
        Key::optional("numerator", Kind::Text, "orders.revenue", "For `ratio`, the dividend."),
        Key::optional("denominator", Kind::Text, "orders.count", "For `ratio`, the divisor. Division by 0 returns null."),
        Key::optional("filters", Kind::List(&FILTER), "[]", "Conditions on dimensions, all of which a row must meet.")
            .also(&["where", "filter"]),
        Key::optional(
            "time_grain",
            Kind::Word(&GRANULARITIES),
            "day",
            "The finest granularity that queries may use. Default: any.",
        )
        .also(&["grain", "granularity"]),
        TITLE,
        DESCRIPTION,
        FORMAT,
        HIDDEN,
        META,
    ],
};

static FILTER: MappingKeys = MappingKeys::new(
    "filter",
    "A condition on a dimension.",
    &[
        Key::required("member", Kind::Text, "orders.status", "The dimension, as `cube.dimension`.").also(&[
            "dimension",
            "field",
            "column",
        ]),
        Key::required("operator", Kind::Word(&OperatorWords), "equals", "The operator of the comparison.")
            .also(&["op"]),
        Key::optional("value", Kind::Values, "paid", "The value or the list of values to compare with.")
            .also(&["values"]),
    ],
);

pub(super) static KINDS: Words<MetricKind> = Words {
    list: &[("simple", MetricKind::Simple), ("ratio", MetricKind::Ratio), ("derived", MetricKind::Derived)],
    also: &[
        ("number", "derived"),
        ("expression", "derived"),
        ("calculated", "derived"),
        ("measure", "simple"),
        ("rate", "ratio"),
    ],
};

/// Returns the word of a metric's type in a project's files.
pub fn metric_kind_word(kind: MetricKind) -> &'static str {
    KINDS.word(&kind)
}

/// The operators of queries.
struct OperatorWords;

impl WordList for OperatorWords {
    fn words(&self) -> Vec<&'static str> {
        Operator::ALL.iter().map(|operator| operator.as_str()).collect()
    }
}

pub(super) fn metric(node: &Node, renderer: &Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<MetricDefinition> {
    let mut fields = Fields::open(node, &METRIC, diagnostics)?;
    let (name, is_usable) = fields.name_or_place();
    let wording = wording(&mut fields);
    let kind = fields.choice("type", &KINDS);
    let time_grain = fields.choice("time_grain", &GRANULARITIES);
    let items = fields.list("filters");
    let mut filters = Vec::new();
    for item in items {
        let label = format!("filter of {}", fields.what());
        filters.extend(filter(item, label, fields.diagnostics()));
    }
    let likely = kind.or_else(|| fields.likely_choice("type", &KINDS));
    let is_ratio = likely.map_or(fields.has("numerator"), |kind| kind == MetricKind::Ratio);
    let placeholder = || SqlText::placeholder(&name.origin);
    let expression = if is_ratio { None } else { calculation(&mut fields, renderer) };
    let (body, is_read) = match expression {
        Some(expression) => (MetricBody::Expression(expression), true),
        None => {
            let sides = if is_ratio { ratio(&mut fields, renderer) } else { [None, None] };
            let is_read = sides.iter().all(Option::is_some);
            let [numerator, denominator] = sides.map(|side| side.unwrap_or_else(placeholder));
            (MetricBody::Ratio { numerator, denominator }, is_read)
        }
    };
    let is_complete = is_usable && kind.is_some() && is_read && filters.len() == items.len();
    let kind = likely.unwrap_or(if is_ratio { MetricKind::Ratio } else { MetricKind::Derived });
    Some(MetricDefinition { name, kind, body, time_grain, filters, wording, is_complete })
}

/// Returns the numerator and the denominator, each if it can be read.
fn ratio(fields: &mut Fields, renderer: &Renderer) -> [Option<SqlText>; 2] {
    let hint = "Write `type: derived`, or replace it by `numerator` and `denominator`.";
    let is_misplaced = misplaced(fields, "expression", hint);
    ["numerator", "denominator"]
        .map(|key| if is_misplaced && !fields.has(key) { None } else { expression(fields, key, renderer) })
}

/// Returns the expression, if it can be read and no key of a ratio is set.
fn calculation(fields: &mut Fields, renderer: &Renderer) -> Option<SqlText> {
    for key in ["numerator", "denominator"] {
        if misplaced(fields, key, "Write `type: ratio`, or replace it by an `expression`.") {
            return None;
        }
    }
    expression(fields, "expression", renderer)
}

/// Reports a key that belongs to another type of metric. Returns whether the mapping has this key. If so, a missing key
/// that this type requires is not reported as well.
fn misplaced(fields: &mut Fields, key: &str, hint: &str) -> bool {
    let Some(origin) = fields.key_origin(key) else { return false };
    let message = format!("{} has `{key}`, which its type does not use", fields.what());
    fields.report(Diagnostic::error(Code::MisplacedField, message).hint(hint).at(origin.span()));
    true
}

fn expression(fields: &mut Fields, key: &'static str, renderer: &Renderer) -> Option<SqlText> {
    if !fields.has(key) {
        fields.missing(key);
        return None;
    }
    let text = fields.text(key)?;
    renderer.snippet(&text, fields.diagnostics())
}

fn filter(node: &Node, label: String, diagnostics: &mut Vec<Diagnostic>) -> Option<MetricFilterDefinition> {
    let mut fields = Fields::open_as(node, &FILTER, label, diagnostics)?;
    let (member, operator) = (fields.text("member"), fields.text("operator"));
    let count_before = fields.diagnostics().len();
    let values = fields.nullable("value").map(|node| values(node, fields.diagnostics())).unwrap_or_default();
    let values = (fields.diagnostics().len() == count_before).then_some(values);
    Some(MetricFilterDefinition { member: member?, operator: operator?, values })
}
