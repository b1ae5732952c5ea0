//! Reads `tests` of dimensions.
//!
//! In: the items of the list, which are words or mappings of one key. Out: rules for the values of the dimension, each
//! with its place. Not here: the dimension that a `relationships` names, and the values' types (model).

use super::cube_keys::{DIMENSION_TEST, DIMENSION_TEST_WORDS, DimensionTestWord};
use super::definitions::{DimensionTestDefinition, DimensionTestRule};
use super::fields::{Fields, choice_of, text_of, wrong_type};
use super::values::values;
use super::yaml::{Node, NodeValue};
use crate::diagnostic::{Code, Diagnostic};

const HINT: &str = "write `not_null`, `unique`, `{accepted_values: [paid, open]}` or `{relationships: customers.id}`";

/// Reads the tests of a dimension. An item that cannot be read is reported and left out.
pub(super) fn dimension_tests(fields: &mut Fields) -> Vec<DimensionTestDefinition> {
    let label = format!("an item of `tests` of {}", fields.what());
    let mut tests = Vec::new();
    for item in fields.list("tests") {
        let rule = match &item.value {
            NodeValue::Scalar { .. } => word(item, &label, fields.diagnostics()),
            NodeValue::Map(_) => mapping(item, &label, fields.diagnostics()),
            NodeValue::Null | NodeValue::List(_) => {
                fields.report(wrong_type(&label, "a word or a mapping", item).hint(HINT));
                None
            }
        };
        tests.extend(rule.map(|rule| DimensionTestDefinition { rule, place: item.origin.span() }));
    }
    tests
}

fn word(item: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<DimensionTestRule> {
    let word = text_of(item, &label, diagnostics)?;
    if DIMENSION_TEST.key(&word.value).is_some() {
        let message = format!("{label} is `{}` without a value", word.value);
        diagnostics.push(Diagnostic::error(Code::MissingValue, message).hint(HINT).at(word.span()));
        return None;
    }
    match choice_of(&word, &label, &DIMENSION_TEST_WORDS) {
        Ok(DimensionTestWord::NotNull) => Some(DimensionTestRule::NotNull),
        Ok(DimensionTestWord::Unique) => Some(DimensionTestRule::Unique),
        Err(problem) => {
            diagnostics.push(problem);
            None
        }
    }
}

fn mapping(item: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<DimensionTestRule> {
    let mut fields = Fields::open_as(item, &DIMENSION_TEST, label.to_owned(), diagnostics)?;
    if fields.conflicting().is_some() {
        let message = format!("{label} has two tests");
        fields.report(
            Diagnostic::error(Code::ConflictingFields, message).hint("write one item for each").at(item.origin.span()),
        );
        return None;
    }
    if let Some(target) = fields.text("relationships") {
        return Some(DimensionTestRule::Relationship(target));
    }
    let node = fields.node("accepted_values")?;
    let count_before = fields.diagnostics().len();
    let accepted = values(node, fields.diagnostics());
    if fields.diagnostics().len() > count_before {
        return None;
    }
    if accepted.is_empty() {
        let message = format!("`accepted_values` of {label} has no values");
        fields.report(Diagnostic::error(Code::MissingValue, message).hint(HINT).at(node.origin.span()));
        return None;
    }
    Some(DimensionTestRule::AcceptedValues(accepted))
}
