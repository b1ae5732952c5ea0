//! Reads the entries of `policies:`.
//!
//! In: the YAML nodes of one list. Out: [`PolicyDefinition`]s. Every key is read, whatever is wrong with the others; a
//! policy with an error is marked as incomplete. `{{ user.… }}` in a row filter is not Jinja: it stays as it is and
//! becomes a parameter. Not here: the callers that a policy applies to (`secure`).

use super::definitions::{LocatedValue, MaskDefinition, MissingAttribute, PolicyCondition, PolicyDefinition};
use super::fields::{Fields, choice_of, is_snake_case, text_of, wrong_type};
use super::keys::{DESCRIPTION, Key, Kind, META, MappingKeys, NAME, Words};
use super::values::{value, values};
use super::yaml::{Node, NodeValue, Plain};
use crate::diagnostic::{Code, Diagnostic};
use crate::security::{AuthMethod, attribute_value};
use crate::text::{SqlText, Text};
use crate::types::Value;

pub(super) static POLICY: MappingKeys = MappingKeys {
    called: "policy",
    about: "Rows, values of dimensions or members that some callers may not see.",
    keys: &[
        NAME,
        Key::required("cubes", Kind::Texts, "[orders]", "The cubes that it protects, or `\"*\"` for all.")
            .also(&["cube"]),
        Key::optional(
            "when",
            Kind::Mapping(&WHEN),
            "{unless_roles: [admin]}",
            "The callers that it applies to. All conditions must hold. Default: all callers.",
        )
        .also(&["condition", "applies_to", "if"]),
        Key::optional(
            "row_filter",
            Kind::Text,
            "\"{CUBE}.region IN {{ user.attributes.regions }}\"",
            "A condition in SQL. The caller sees only rows that meet it. Values of the caller are `{{ user.… }}`.",
        )
        .also(&["filter", "sql", "where", "row_level"]),
        Key::optional(
            "mask",
            Kind::WordsByName(&MASKS, &MASK),
            "{email: hash}",
            "The replacement of each dimension's value: `null`, `hash`, `partial`, a constant or SQL.",
        )
        .also(&["masks", "column_mask", "masking"]),
        Key::optional("deny", Kind::Texts, "[tax_number]", "Members that do not exist for the caller. Default: none.")
            .also(&["denied", "hide", "exclude"]),
        Key::optional(
            "allow_aggregate",
            Kind::Boolean,
            "true",
            "True if callers may query measures over masked columns. Default: false.",
        ),
        DESCRIPTION,
        META,
    ],
    one_of: &["row_filter", "mask", "deny"],
    apart: &[],
};

pub(super) static WHEN: MappingKeys = MappingKeys::new(
    "`when`",
    "The callers that a policy applies to.",
    &[
        Key::optional("roles", Kind::Texts, "[analyst]", "Includes callers with one of these roles."),
        Key::optional("unless_roles", Kind::Texts, "[admin]", "Excludes callers with one of these roles.").also(&[
            "except_roles",
            "not_roles",
            "exclude_roles",
        ]),
        Key::optional("groups", Kind::Texts, "[sales]", "Includes callers in one of these groups."),
        Key::optional("unless_groups", Kind::Texts, "[finance]", "Excludes callers in one of these groups.").also(&[
            "except_groups",
            "not_groups",
            "exclude_groups",
        ]),
        Key::optional(
            "auth_methods",
            Kind::Words(&AUTH_METHODS),
            "[jwt]",
            "Includes callers who authenticated by one of these methods.",
        )
        .also(&["auth_method", "authentication_methods"]),
        Key::optional(
            "unless_auth_methods",
            Kind::Words(&AUTH_METHODS),
            "[api_key]",
            "Excludes callers who authenticated by one of these methods.",
        )
        .also(&["unless_auth_method", "except_auth_methods", "not_auth_methods", "exclude_auth_methods"]),
        Key::optional(
            "attributes",
            Kind::ValuesByName,
            "{region: [north, south]}",
            "Includes callers whose attribute has one of these values, for each attribute.",
        ),
        Key::optional(
            "unless_attributes",
            Kind::ValuesByName,
            "{region: [north, south]}",
            "Excludes callers whose attribute has one of these values.",
        )
        .also(&["except_attributes", "not_attributes"]),
        Key::optional(
            "missing",
            Kind::Word(&MISSING),
            "applies",
            "The effect on a caller without an attribute in `attributes`: `applies` or `skips`. Default: skips.",
        )
        .also(&["if_missing", "on_missing"]),
    ],
);

static AUTH_METHODS: Words<AuthMethod> = Words {
    list: &[
        (AuthMethod::Anonymous.as_str(), AuthMethod::Anonymous),
        (AuthMethod::ApiKey.as_str(), AuthMethod::ApiKey),
        (AuthMethod::Jwt.as_str(), AuthMethod::Jwt),
        (AuthMethod::Operator.as_str(), AuthMethod::Operator),
    ],
    also: &[
        ("none", "anonymous"),
        ("key", "api_key"),
        ("apikey", "api_key"),
        ("api-key", "api_key"),
        ("token", "jwt"),
        ("bearer", "jwt"),
        ("oauth", "jwt"),
        ("password", "jwt"),
        ("command_line", "operator"),
        ("cli", "operator"),
    ],
};

static MISSING: Words<MissingAttribute> = Words {
    list: &[("skips", MissingAttribute::Skips), ("applies", MissingAttribute::Applies)],
    also: &[
        ("apply", "applies"),
        ("deny", "applies"),
        ("match", "applies"),
        ("matches", "applies"),
        ("true", "applies"),
        ("skip", "skips"),
        ("ignore", "skips"),
        ("ignores", "skips"),
        ("false", "skips"),
    ],
};

static MASK: MappingKeys = MappingKeys {
    called: "mask",
    about: "The replacement of a value.",
    keys: &[
        Key::optional("constant", Kind::Anything, "hidden", "The same value for every row."),
        Key::optional("sql", Kind::Text, "\"left({CUBE}.email, 1)\"", "An expression over the row's columns."),
    ],
    one_of: &["constant", "sql"],
    apart: &["constant", "sql"],
};

static MASKS: Words<Word> = Words {
    list: &[("hash", Word::Hash), ("partial", Word::Partial), ("null", Word::Null)],
    also: &[("none", "null"), ("redact", "null"), ("sha256", "hash"), ("full", "null")],
};

#[derive(Clone, Copy)]
enum Word {
    Hash,
    Partial,
    Null,
}

pub(super) fn policy(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<PolicyDefinition> {
    let mut fields = Fields::open(node, &POLICY, diagnostics)?;
    let (name, is_usable) = fields.name_or_place();
    let description = fields.words("description");
    let cubes = cubes(&mut fields);
    let is_all = cubes.iter().any(|cube| &*cube.value == "*");
    let label = format!("`when` of {}", fields.what());
    let when = fields.node("when").map(|node| condition(node, label, fields.diagnostics()));
    let row_filter = fields.text("row_filter").map(|text| SqlText::plain(&text));
    let label = format!("`mask` of {}", fields.what());
    let masks = fields.node("mask").map(|node| masks(node, &label, fields.diagnostics()));
    let (masks, are_complete) = masks.unwrap_or((Vec::new(), true));
    let deny = fields.texts("deny");
    let has_effect = row_filter.is_some() || !masks.is_empty() || !deny.is_empty();
    if !has_effect {
        report_no_effect(&mut fields);
    }
    let allow_aggregate = fields.boolean("allow_aggregate", false);
    let is_conditional = !matches!(when, Some(None));
    let is_complete = is_usable && !cubes.is_empty() && is_conditional && are_complete && has_effect;
    let cubes = (!is_all).then_some(cubes);
    let when = when.flatten();
    Some(PolicyDefinition { name, description, cubes, when, row_filter, masks, deny, allow_aggregate, is_complete })
}

/// Reads the cubes that a policy protects. An empty list protects nothing, and is reported.
fn cubes(fields: &mut Fields) -> Vec<Text> {
    if let Some(Node { value: NodeValue::List(items), origin }) = fields.nullable("cubes")
        && items.is_empty()
    {
        let message = format!("`cubes` of {} names no cube", fields.what());
        let hint = format!("Write `{}`, or `cubes: \"*\"` for all.", fields.example("cubes"));
        fields.report(Diagnostic::error(Code::MissingValue, message).hint(hint).at(origin.span()));
    }
    fields.texts("cubes")
}

/// Reports a policy that restricts nothing, unless a value that is missing or of the wrong kind has been reported.
fn report_no_effect(fields: &mut Fields) {
    if ["row_filter", "mask", "deny"].iter().any(|key| fields.is_broken(key)) {
        return;
    }
    let message = format!("{} has no effect: it has neither `row_filter`, `mask` nor `deny`", fields.what());
    let hint = format!(
        "Add one of `{}`, `{}` and `{}`.",
        fields.example("row_filter"),
        fields.example("mask"),
        fields.example("deny")
    );
    let span = fields.origin().span();
    fields.report(Diagnostic::error(Code::MissingField, message).hint(hint).at(span));
}

/// Keys that authors of cubes may use to restrict access, which only policies can do.
const MISPLACED: [&str; 12] = [
    "access_policy",
    "column_mask",
    "deny",
    "mask",
    "masking",
    "masks",
    "policies",
    "policy",
    "rls",
    "row_filter",
    "row_level",
    "row_level_security",
];

/// Returns whether a cube of the file, or one of its members, has a key of [`MISPLACED`]. The key is reported as
/// unknown. In addition, cubes are closed, because they would show the values that the author meant to hide.
pub(super) fn is_misplaced(document: &Node) -> bool {
    let NodeValue::Map(lists) = &document.value else { return false };
    let mut cubes =
        lists.iter().filter(|(key, _)| matches!(&*key.text, "cubes" | "cube")).flat_map(|(_, list)| items(list));
    let speaks_of_access = |node: &Node| {
        let NodeValue::Map(keys) = &node.value else { return false };
        keys.iter().any(|(key, _)| MISPLACED.contains(&&*key.text))
    };
    cubes.any(|cube| {
        let NodeValue::Map(keys) = &cube.value else { return false };
        let members = keys.iter().filter(|(key, _)| matches!(&*key.text, "dimensions" | "measures" | "segments"));
        speaks_of_access(cube) || members.flat_map(|(_, list)| items(list)).any(speaks_of_access)
    })
}

fn items(list: &Node) -> &[Node] {
    match &list.value {
        NodeValue::List(items) => items,
        _ => std::slice::from_ref(list),
    }
}

/// Reads `when`. If a condition cannot be read, the policy is left out and its cubes are closed, because it must not be
/// applied to the wrong callers.
fn condition(node: &Node, label: String, diagnostics: &mut Vec<Diagnostic>) -> Option<PolicyCondition> {
    let errors = |all: &[Diagnostic]| all.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let before = errors(diagnostics);
    let mut fields = Fields::open_as(node, &WHEN, label, diagnostics)?;
    let condition = PolicyCondition {
        roles: words(&mut fields, "roles"),
        unless_roles: words(&mut fields, "unless_roles"),
        groups: words(&mut fields, "groups"),
        unless_groups: words(&mut fields, "unless_groups"),
        auth_methods: auth_methods(&mut fields, "auth_methods"),
        unless_auth_methods: auth_methods(&mut fields, "unless_auth_methods"),
        attributes: attributes(&mut fields, "attributes"),
        unless_attributes: attributes(&mut fields, "unless_attributes"),
        missing: fields.choice("missing", &MISSING).unwrap_or_default(),
    };
    check_contradictions(&mut fields, &condition);
    check_missing(&mut fields, &condition);
    (errors(diagnostics) == before).then_some(condition)
}

/// Reads a list of roles or groups.
fn words(fields: &mut Fields, key: &str) -> Vec<std::sync::Arc<str>> {
    fields.some_texts(key).into_iter().map(|text| text.value).collect()
}

/// Reads authentication methods. Reports each word that is not an authentication method of a request.
fn auth_methods(fields: &mut Fields, key: &str) -> Vec<AuthMethod> {
    let label = format!("`{key}` of {}", fields.what());
    let mut methods = Vec::new();
    for text in fields.some_texts(key) {
        match choice_of(&text, &label, &AUTH_METHODS) {
            Ok(method) => methods.push(method),
            Err(diagnostic) => fields.report(diagnostic),
        }
    }
    methods
}

fn attributes(fields: &mut Fields, key: &str) -> Vec<(std::sync::Arc<str>, Vec<Value>)> {
    let Some(node) = fields.node(key) else { return Vec::new() };
    let NodeValue::Map(map) = &node.value else {
        let label = format!("`{key}` of {}", fields.what());
        let hint = format!("Write names and values, as in `{}`.", fields.example(key));
        fields.report(wrong_type(&label, "a mapping", node).hint(hint));
        return Vec::new();
    };
    if map.is_empty() {
        let message = format!("`{key}` of {} names no attribute", fields.what());
        let hint = format!("Write names and values, as in `{}`, or remove the key.", fields.example(key));
        fields.report(Diagnostic::error(Code::MissingValue, message).hint(hint).at(node.origin.span()));
    }
    let mut conditions = Vec::with_capacity(map.len());
    for (name, node) in map {
        let label = format!("`{key}.{}` of {}", name.text, fields.what());
        if matches!(&node.value, NodeValue::List(items) if items.is_empty()) {
            let hint = format!("Write values, as in `{}`, or remove the attribute.", fields.example(key));
            let message = format!("{label} contains no value and never matches");
            fields.report(Diagnostic::error(Code::MissingValue, message).hint(hint).at(name.origin.span()));
        }
        for item in items(node) {
            if let Some(diagnostic) = unusable(&label, item) {
                fields.report(diagnostic);
            }
        }
        let values = values(node, fields.diagnostics()).into_iter();
        conditions.push((name.text.clone(), values.map(|LocatedValue { value, .. }| value).collect()));
    }
    conditions
}

/// Returns a diagnostic if an attribute's value never matches, or if it matches callers that its notation does not
/// suggest.
fn unusable(label: &str, node: &Node) -> Option<Diagnostic> {
    match &node.value {
        NodeValue::Null => {
            let message = format!("null in {label} never matches");
            let hint = "Write `missing: applies` in `when` to include callers without the attribute, or \
                        `\"null\"` for the string.";
            Some(Diagnostic::error(Code::NeverMatches, message).hint(hint).at(node.origin.span()))
        }
        NodeValue::Scalar { text, plain: Plain::Integer | Plain::Fraction } if attribute_value::is_ambiguous(text) => {
            let message = format!("{text} in {label} is a number that claims may contain as a string");
            let hint = format!("Write `\"{text}\"` for the string, or the number in plain decimal notation.");
            Some(Diagnostic::error(Code::AmbiguousValue, message).hint(hint).at(node.origin.span()))
        }
        _ => None,
    }
}

/// Reports conditions on roles, groups, authentication methods or attribute values if `unless_…` exempts all values
/// that the condition allows.
fn check_contradictions(fields: &mut Fields, condition: &PolicyCondition) {
    let mut contradictions = Vec::new();
    for (key, unless, wanted, exempt) in [
        ("roles", "unless_roles", &condition.roles, &condition.unless_roles),
        ("groups", "unless_groups", &condition.groups, &condition.unless_groups),
    ] {
        if !wanted.is_empty() && wanted.iter().all(|name| exempt.contains(name)) {
            contradictions.push((key, format!("`{key}`"), format!("`{unless}`")));
        }
    }
    let methods = &condition.auth_methods;
    if !methods.is_empty() && methods.iter().all(|method| condition.unless_auth_methods.contains(method)) {
        contradictions.push(("auth_methods", "`auth_methods`".to_owned(), "`unless_auth_methods`".to_owned()));
    }
    for (name, wanted) in &condition.attributes {
        let exempt = condition.unless_attributes.iter().filter(|(other, _)| other == name);
        let exempt: Vec<&Value> = exempt.flat_map(|(_, values)| values).collect();
        let is_exempt = |value: &Value| exempt.iter().any(|other| attribute_value::are_equal(value, other));
        let is_possible = condition.missing == MissingAttribute::Applies;
        if !is_possible && !wanted.is_empty() && wanted.iter().all(is_exempt) {
            let unless = format!("`unless_attributes.{name}`");
            contradictions.push(("attributes", format!("`attributes.{name}`"), unless));
        }
    }
    for (key, wanted, unless) in contradictions {
        let message = format!("{} never matches: {unless} contains every value of {wanted}", fields.what());
        let span = fields.key_origin(key).unwrap_or(fields.origin()).span();
        let hint = format!("Remove the values from {wanted} or from {unless}.");
        fields.report(Diagnostic::error(Code::NeverMatches, message).hint(hint).at(span));
    }
}

/// Reports a `missing` without effect, and conditions that do not restrict callers who lack an attribute.
fn check_missing(fields: &mut Fields, condition: &PolicyCondition) {
    let is_explicit = fields.has("missing");
    if is_explicit && !fields.has("attributes") {
        let message = format!("`missing` of {} has no effect without `attributes`", fields.what());
        let span = fields.key_origin("missing").unwrap_or(fields.origin()).span();
        fields.report(Diagnostic::warning(Code::UnusedField, message).hint("Remove `missing`.").at(span));
    }
    if let (false, [(name, _), ..]) = (is_explicit, &condition.attributes[..]) {
        let message = format!("{} does not match callers without the attribute `{name}`", fields.what());
        let hint = "Write `missing: applies` in `when` to restrict them too, or `missing: skips` to confirm that \
                    the policy does not apply to them.";
        let span = fields.key_origin("attributes").unwrap_or(fields.origin()).span();
        fields.report(Diagnostic::warning(Code::AttributeMayBeMissing, message).hint(hint).at(span));
    }
}

/// Reads the masks, and returns whether all of them can be read. A mask that cannot be read becomes `null`.
fn masks(node: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> (Vec<(Text, MaskDefinition)>, bool) {
    let NodeValue::Map(map) = &node.value else {
        let example = match &node.value {
            NodeValue::List(items) => items.iter().find_map(name_written).unwrap_or("email"),
            _ => name_written(node).unwrap_or("email"),
        };
        let hint = format!("Write a mask for each dimension, as in `{{{example}: hash}}`.");
        diagnostics.push(wrong_type(&label, "a mapping", node).hint(hint));
        return (Vec::new(), false);
    };
    let (mut masks, mut are_complete) = (Vec::new(), true);
    for (member, node) in map {
        let label = format!("the mask of `{}`", member.text);
        let member = Text { value: member.text.clone(), origin: member.origin.clone() };
        let mask = mask(node, &label, diagnostics);
        are_complete &= mask.is_some();
        masks.push((member, mask.unwrap_or(MaskDefinition::Null)));
    }
    (masks, are_complete)
}

fn name_written(node: &Node) -> Option<&str> {
    match &node.value {
        NodeValue::Scalar { text, .. } if is_snake_case(text) => Some(text),
        _ => None,
    }
}

fn mask(node: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<MaskDefinition> {
    match &node.value {
        NodeValue::Null => Some(MaskDefinition::Null),
        NodeValue::Map(_) => {
            let mut fields = Fields::open_as(node, &MASK, label.to_owned(), diagnostics)?;
            if let Some(second) = fields.conflicting() {
                let message = format!("{label} has both `constant` and `sql`");
                let hint = "Keep one of them.";
                fields.report(Diagnostic::error(Code::ConflictingFields, message).hint(hint).at(second.span()));
                return None;
            }
            if fields.lacks_all() {
                fields.missing("constant");
                return None;
            }
            if let Some(constant) = fields.nullable("constant") {
                return value(constant, fields.diagnostics()).map(MaskDefinition::Constant);
            }
            fields.text("sql").map(|text| MaskDefinition::Sql(SqlText::plain(&text)))
        }
        _ => {
            let text = text_of(node, &label, diagnostics)?;
            match choice_of(&text, &label, &MASKS) {
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
