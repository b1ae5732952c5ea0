//! `policies:` entries to definitions.
//!
//! In: the YAML nodes of one list. Out: [`PolicyDefinition`]s. `{{ user.… }}` in a row filter is no
//! Jinja: it stays as it is and becomes a parameter. Not here: whose policies apply (`secure`).

use super::definitions::{MaskDefinition, PolicyCondition, PolicyDefinition};
use super::fields::{Fields, choice_of, text_of};
use super::metrics::{value, values};
use super::source::{SqlText, Text};
use super::yaml::{Node, NodeValue};
use crate::diagnostic::Diagnostic;
use crate::types::Value;

pub(super) const POLICY: &[&str] =
    &["name", "cubes", "when", "row_filter", "mask", "deny", "allow_aggregate", "description", "meta"];
pub(super) const WHEN: &[&str] =
    &["roles", "unless_roles", "groups", "unless_groups", "attributes", "unless_attributes"];

#[derive(Clone, Copy)]
enum Word {
    Hash,
    Partial,
    Null,
}

pub(super) fn policy(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<PolicyDefinition> {
    let mut fields = Fields::open(node, "policy", POLICY, diagnostics)?;
    let name = fields.name()?;
    let description = fields.words("description");
    if !fields.has("cubes") {
        fields.missing("cubes", "[orders]");
        return None;
    }
    let cubes = fields.texts("cubes");
    if cubes.is_empty() {
        fields.missing("cubes", "[orders]");
        return None;
    }
    let is_all = cubes.iter().any(|cube| &*cube.value == "*");
    let when = match fields.node("when") {
        Some(node) => {
            let label = format!("`when` of {}", fields.what());
            Some(condition(node, label, fields.diagnostics())?)
        }
        None => None,
    };
    let row_filter = fields.text("row_filter").map(|text| SqlText::plain(&text));
    let masks = match fields.node("mask") {
        Some(node) => {
            let label = format!("`mask` of {}", fields.what());
            masks(node, &label, fields.diagnostics())?
        }
        None => Vec::new(),
    };
    let deny = fields.texts("deny");
    if row_filter.is_none() && masks.is_empty() && deny.is_empty() {
        let message = format!("{} hides nothing", fields.what());
        let span = fields.origin().span();
        fields.report(Diagnostic::error("missing-field", message).hint("add `row_filter`, `mask` or `deny`").at(span));
        return None;
    }
    let allow_aggregate = fields.boolean("allow_aggregate", false);
    let cubes = (!is_all).then_some(cubes);
    Some(PolicyDefinition { name, description, cubes, when, row_filter, masks, deny, allow_aggregate })
}

/// A condition that can't be read drops its policy: applying it to the wrong callers would be worse.
fn condition(node: &Node, label: String, diagnostics: &mut Vec<Diagnostic>) -> Option<PolicyCondition> {
    let before = diagnostics.len();
    let mut fields = Fields::open(node, label, WHEN, diagnostics)?;
    let words = |fields: &mut Fields, key: &str| fields.texts(key).into_iter().map(|text| text.value).collect();
    let condition = PolicyCondition {
        roles: words(&mut fields, "roles"),
        unless_roles: words(&mut fields, "unless_roles"),
        groups: words(&mut fields, "groups"),
        unless_groups: words(&mut fields, "unless_groups"),
        attributes: attributes(&mut fields, "attributes"),
        unless_attributes: attributes(&mut fields, "unless_attributes"),
    };
    (diagnostics.len() == before).then_some(condition)
}

fn attributes(fields: &mut Fields, key: &str) -> Vec<(std::sync::Arc<str>, Vec<Value>)> {
    let Some(node) = fields.node(key) else { return Vec::new() };
    let NodeValue::Map(map) = &node.value else {
        let message = format!("`{key}` of {} must be a mapping", fields.what());
        let diagnostic = Diagnostic::error("wrong-type", message).hint("write {region: [north, south]}");
        fields.report(diagnostic.at(node.origin.span()));
        return Vec::new();
    };
    map.iter().map(|(name, node)| (name.text.clone(), values(node, fields.diagnostics()))).collect()
}

fn masks(node: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<(Text, MaskDefinition)>> {
    let NodeValue::Map(map) = &node.value else {
        diagnostics.push(
            Diagnostic::error("wrong-type", format!("{label} must be a mapping"))
                .hint("write {email: hash}")
                .at(node.origin.span()),
        );
        return None;
    };
    let mut masks = Vec::new();
    for (member, node) in map {
        let label = format!("the mask of `{}`", member.text);
        let member = Text { value: member.text.clone(), origin: member.origin.clone() };
        masks.push((member, mask(node, &label, diagnostics)?));
    }
    Some(masks)
}

fn mask(node: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<MaskDefinition> {
    const WORDS: &[(&str, Word)] = &[("hash", Word::Hash), ("partial", Word::Partial), ("null", Word::Null)];
    match &node.value {
        NodeValue::Null => Some(MaskDefinition::Null),
        NodeValue::Map(_) => {
            let mut fields = Fields::open(node, label.to_owned(), &["constant", "sql"], diagnostics)?;
            if let Some(text) = fields.text("sql") {
                return Some(MaskDefinition::Sql(SqlText::plain(&text)));
            }
            if let Some(constant) = fields.nullable("constant") {
                return value(constant, fields.diagnostics()).map(MaskDefinition::Constant);
            }
            if !fields.has("sql") {
                fields.missing("constant", "x");
            }
            None
        }
        _ => {
            let text = text_of(node, &label, diagnostics)?;
            match choice_of(&text, &label, WORDS, &[("none", "null"), ("redact", "null"), ("sha256", "hash")]) {
                Ok(Word::Hash) => Some(MaskDefinition::Hash),
                Ok(Word::Partial) => Some(MaskDefinition::Partial),
                Ok(Word::Null) => Some(MaskDefinition::Null),
                Err(diagnostic) => {
                    diagnostics.push(diagnostic);
                    None
                }
            }
        }
    }
}
