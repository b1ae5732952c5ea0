//! `metrics:` entries to definitions.
//!
//! In: the YAML nodes of one list. Out: [`MetricDefinition`]s. Not here: what an expression refers to.

use std::sync::Arc;

use super::cubes::{granularity, wording};
use super::definitions::{MetricBody, MetricDefinition, MetricFilterDefinition};
use super::fields::Fields;
use super::jinja::Renderer;
use super::source::SqlText;
use super::yaml::{Node, NodeValue, Plain};
use crate::diagnostic::Diagnostic;
use crate::model::MetricKind;
use crate::types::Value;

pub(super) const METRIC: &[&str] = &[
    "name",
    "type",
    "expression",
    "numerator",
    "denominator",
    "description",
    "title",
    "time_grain",
    "filters",
    "format",
    "hidden",
    "meta",
];
pub(super) const KINDS: &[(&str, MetricKind)] =
    &[("simple", MetricKind::Simple), ("ratio", MetricKind::Ratio), ("derived", MetricKind::Derived)];
const SYNONYMS: &[(&str, &str)] = &[
    ("number", "derived"),
    ("expression", "derived"),
    ("calculated", "derived"),
    ("measure", "simple"),
    ("rate", "ratio"),
];

pub(super) fn metric(
    node: &Node,
    renderer: &mut Renderer,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<MetricDefinition> {
    let mut fields = Fields::open(node, "metric", METRIC, diagnostics)?;
    let name = fields.name()?;
    let wording = wording(&mut fields);
    if !fields.has("type") {
        fields.missing("type", if fields.has("numerator") { "ratio" } else { "simple" });
    }
    let kind = fields.choice("type", KINDS, SYNONYMS);
    let time_grain = granularity(&mut fields, "time_grain");
    let mut filters = Vec::new();
    for item in fields.list("filters") {
        let label = format!("filter of {}", fields.what());
        filters.push(filter(item, label, fields.diagnostics())?);
    }
    let body = match kind? {
        MetricKind::Ratio => {
            misplaced(&mut fields, "expression", "a ratio has `numerator` and `denominator`");
            let numerator = expression(&mut fields, "numerator", "orders.revenue", renderer);
            let denominator = expression(&mut fields, "denominator", "orders.count", renderer);
            MetricBody::Ratio { numerator: numerator?, denominator: denominator? }
        }
        kind => {
            for key in ["numerator", "denominator"] {
                misplaced(&mut fields, key, "write `type: ratio`");
            }
            let example = if kind == MetricKind::Simple { "orders.revenue" } else { "\"revenue - cost\"" };
            MetricBody::Expression(expression(&mut fields, "expression", example, renderer)?)
        }
    };
    Some(MetricDefinition { name, kind: kind?, body, time_grain, filters, wording })
}

fn misplaced(fields: &mut Fields, key: &str, hint: &str) {
    if let Some(origin) = fields.key_origin(key) {
        let message = format!("{} has `{key}`, which its type doesn't use", fields.what());
        fields.report(Diagnostic::error("misplaced-field", message).hint(hint).at(origin.span()));
    }
}

fn expression(fields: &mut Fields, key: &'static str, example: &str, renderer: &mut Renderer) -> Option<SqlText> {
    let text = fields.required(key, example)?;
    renderer.snippet(&text, fields.diagnostics())
}

fn filter(node: &Node, label: String, diagnostics: &mut Vec<Diagnostic>) -> Option<MetricFilterDefinition> {
    let mut fields = Fields::open(node, label, &["member", "operator", "value"], diagnostics)?;
    let member = fields.required("member", "orders.status")?;
    let operator = fields.required("operator", "equals")?;
    let values = fields.nullable("value").map(|node| values(node, fields.diagnostics()));
    Some(MetricFilterDefinition { member, operator, values: values.unwrap_or_default() })
}

/// One value, or a list of them.
pub(super) fn values(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Vec<Value> {
    match &node.value {
        NodeValue::List(items) => items.iter().filter_map(|item| value(item, diagnostics)).collect(),
        _ => value(node, diagnostics).into_iter().collect(),
    }
}

pub(super) fn value(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<Value> {
    match &node.value {
        NodeValue::Null => Some(Value::Null),
        NodeValue::Scalar { text, plain } => Some(scalar(text, *plain)),
        NodeValue::List(_) | NodeValue::Map(_) => {
            diagnostics.push(
                Diagnostic::error("wrong-type", "a value must be a text, a number, true, false or null")
                    .hint("write one plain value, or a flat list of them")
                    .at(node.origin.span()),
            );
            None
        }
    }
}

/// Numbers keep their digits; what is neither a number nor a truth value is text.
fn scalar(text: &Arc<str>, plain: Plain) -> Value {
    let as_number = || {
        if let Ok(integer) = text.parse::<i64>() {
            return Some(Value::Integer(integer));
        }
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let is_decimal = !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && digits.matches('.').count() <= 1
            && digits.bytes().any(|b| b.is_ascii_digit());
        if is_decimal {
            return Some(Value::Decimal(text.strip_prefix('+').map_or_else(|| Arc::clone(text), Into::into)));
        }
        text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::Float)
    };
    match plain {
        Plain::Boolean(value) => Value::Boolean(value),
        Plain::Integer | Plain::Fraction => as_number().unwrap_or_else(|| Value::Text(Arc::clone(text))),
        Plain::Text => Value::Text(Arc::clone(text)),
    }
}
