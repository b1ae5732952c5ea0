//! Reads `tests` of dimensions.
//!
//! In: the items of the list, which are words or mappings of one key. Out: rules for the values of the dimension, each
//! once and with its place. Not here: the dimension that a `relationships` names, and the values' types (model).

use super::cube_keys::{DIMENSION_TEST, DIMENSION_TEST_WORDS, DimensionTestWord};
use super::definitions::{DimensionTestDefinition, DimensionTestRule};
use super::fields::{Fields, choice_of, text_of, wrong_type};
use super::values::values;
use super::yaml::{Node, NodeValue};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::nearest::likely;
use crate::text::shorten;

const HINT: &str = "Write `not_null`, `unique`, `{accepted_values: [paid, open]}` or `{relationships: customers.id}`.";
/// The names of all tests.
const WORDS: [&str; 4] = ["not_null", "unique", "accepted_values", "relationships"];

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
        let Some(rule) = rule else { continue };
        match tests.iter().find(|test: &&DimensionTestDefinition| is_same(&test.rule, &rule)) {
            Some(first) => {
                let problem = duplicate(&rule, first, &fields.what());
                fields.report(problem.at(item.origin.span()));
            }
            None => tests.push(DimensionTestDefinition { rule, place: item.origin.span() }),
        }
    }
    tests
}

/// Returns whether two rules check the same condition, regardless of their places.
fn is_same(one: &DimensionTestRule, other: &DimensionTestRule) -> bool {
    use DimensionTestRule::{AcceptedValues, NotNull, Relationship, Unique};
    match (one, other) {
        (NotNull, NotNull) | (Unique, Unique) => true,
        (Relationship(one), Relationship(other)) => one.value == other.value,
        (AcceptedValues(one), AcceptedValues(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.value == other.value)
        }
        (NotNull | Unique | Relationship(_) | AcceptedValues(_), _) => false,
    }
}

/// Returns the warning about a test that the dimension has already.
fn duplicate(rule: &DimensionTestRule, first: &DimensionTestDefinition, what: &str) -> Diagnostic {
    let name = match rule {
        DimensionTestRule::NotNull => "not_null",
        DimensionTestRule::Unique => "unique",
        DimensionTestRule::AcceptedValues(_) => "accepted_values",
        DimensionTestRule::Relationship(_) => "relationships",
    };
    let hint = format!("Remove it. The first is in line {}.", first.place.line);
    Diagnostic::warning(Code::DuplicateName, format!("duplicate test `{name}` of {what}")).hint(hint)
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
            let meant = likely(word.value.trim(), WORDS);
            let hint = meant.map_or_else(|| HINT.to_owned(), |meant| format!("Did you mean `{meant}`? {HINT}"));
            diagnostics.push(problem.hint(hint));
            None
        }
    }
}

/// Reports a mapping whose only key is not a test with a value: a test without a value, as in `{not_null: true}`, or an
/// unknown name. Keys that are probably misspelt are reported by [`Fields`].
fn is_without_test(item: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let NodeValue::Map(map) = &item.value else { return false };
    let [(key, _)] = &map[..] else { return false };
    let is_word = DIMENSION_TEST_WORDS.list.iter().any(|(word, _)| *word == &*key.text);
    let problem = if is_word {
        let message = format!("`{}` in {label} takes no value", key.text);
        Diagnostic::error(Code::MisplacedField, message)
            .hint(format!("Write `{}` without braces and a value.", key.text))
    } else if DIMENSION_TEST.key(&key.text).is_none() {
        let meant = likely(&key.text, WORDS);
        if meant.is_some_and(|meant| DIMENSION_TEST.key(meant).is_some()) {
            return false;
        }
        let message = format!("unknown key `{}` in {label}", shorten(&key.text));
        let hint = meant.map_or_else(|| HINT.to_owned(), |meant| format!("Did you mean `{meant}`? {HINT}"));
        Diagnostic::error(Code::UnknownKey, message).hint(hint)
    } else {
        return false;
    };
    diagnostics.push(problem.at(key.origin.span()));
    true
}

fn mapping(item: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<DimensionTestRule> {
    if is_without_test(item, label, diagnostics) {
        return None;
    }
    let mut fields = Fields::open_as(item, &DIMENSION_TEST, label.to_owned(), diagnostics)?;
    if fields.conflicting().is_some() {
        let message = format!("{label} has two tests");
        fields.report(
            Diagnostic::error(Code::ConflictingFields, message)
                .hint("Write one item for each test.")
                .at(item.origin.span()),
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
