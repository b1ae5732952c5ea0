//! Reads values that members are compared with.
//!
//! In: nodes. Out: values with their places. Numbers have all their digits. Not here: whether a value fits the type of
//! its member (model).

use std::sync::Arc;

use super::definitions::LocatedValue;
use super::yaml::{Node, NodeValue, Plain};
use crate::diagnostic::{Code, Diagnostic};
use crate::types::Value;

/// Reads one value or a list of values.
pub(super) fn values(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Vec<LocatedValue> {
    match &node.value {
        NodeValue::List(items) => items.iter().filter_map(|item| value(item, diagnostics)).collect(),
        _ => value(node, diagnostics).into_iter().collect(),
    }
}

pub(super) fn value(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<LocatedValue> {
    let located = |value| Some(LocatedValue { value, origin: node.origin.clone() });
    match &node.value {
        NodeValue::Null => located(Value::Null),
        NodeValue::Scalar { text, plain } => located(scalar(text, *plain)),
        NodeValue::List(_) | NodeValue::Map(_) => {
            diagnostics.push(
                Diagnostic::error(Code::WrongType, "a value must be a string, a number, true, false or null")
                    .hint("Write one plain value, or a list of plain values.")
                    .at(node.origin.span()),
            );
            None
        }
    }
}

/// Returns a scalar as a value. Numbers keep their digits; a scalar that is neither a number nor a boolean is a string.
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
