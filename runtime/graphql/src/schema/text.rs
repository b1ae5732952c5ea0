//! The text of the schema without the fields of modules that are switched off.
//!
//! In: the complete text, as the library writes it: one definition after another, with one line for each field or one
//! for each argument, and tabs as indents. Out: the text without these fields, and without the types that only they
//! use.

use std::collections::{BTreeMap, BTreeSet};

use async_graphql::Positioned;
use async_graphql::parser::parse_schema;
use async_graphql::parser::types::{BaseType, FieldDefinition, Type, TypeKind, TypeSystemDefinition};

use super::modules::Modules;
use crate::operation::OperationKind;

const ROOTS: [OperationKind; 3] = [OperationKind::Query, OperationKind::Mutation, OperationKind::Subscription];
const QUOTES: &str = "\"\"\"";

/// Returns the text of the schema with the fields of these modules only.
pub(super) fn of_modules(complete: &str, modules: Modules) -> String {
    if modules == Modules::ALL {
        return complete.to_owned();
    }
    let mut text = String::new();
    for definition in definitions(complete) {
        let root = ROOTS.into_iter().find(|root| type_of(&definition) == Some(root.type_name()));
        match root {
            Some(root) => text.push_str(&without_fields(&definition, |field| modules.has(root, field))),
            None => text.push_str(&definition),
        }
    }
    let Some(used) = used_types(&text) else { return text };
    let is_used = |definition: &String| type_of(definition).is_none_or(|name| used.contains(name));
    definitions(&text).into_iter().filter(is_used).collect()
}

/// Divides a schema into its definitions. Each begins with its description, and ends before the next one.
fn definitions(text: &str) -> Vec<String> {
    let (mut found, mut open, mut is_complete) = (Vec::new(), String::new(), false);
    let mut is_described = false;
    for line in text.split_inclusive('\n') {
        let is_start = !is_described && !line.trim().is_empty() && !line.starts_with(['\t', '}']);
        if is_start && is_complete {
            found.push(std::mem::take(&mut open));
            is_complete = false;
        }
        if line.trim_end() == QUOTES {
            is_described = !is_described;
        } else if !is_described && is_start {
            // A directive or a scalar is one line; other definitions end with a brace.
            is_complete = !line.trim_end().ends_with('{');
        } else if line.starts_with('}') {
            is_complete = true;
        }
        open.push_str(line);
    }
    found.push(open);
    found
}

/// Returns the name of the type that a definition defines; `None` for directives and the list of roots.
fn type_of(definition: &str) -> Option<&str> {
    const KINDS: [&str; 6] = ["type", "enum", "input", "scalar", "interface", "union"];
    let mut parts = definition.split(QUOTES);
    let body = if definition.trim_start().starts_with(QUOTES) { parts.nth(2)? } else { definition };
    let mut words = body.split_whitespace();
    KINDS.contains(&words.next()?).then(|| words.next())?
}

/// Returns the definition of an object without some fields.
fn without_fields(definition: &str, is_shown: impl Fn(&str) -> bool) -> String {
    let (mut text, mut field) = (String::new(), String::new());
    let (mut is_described, mut is_wanted, mut is_inside) = (false, true, false);
    for line in definition.split_inclusive('\n') {
        let own = line.strip_prefix('\t').filter(|rest| !rest.starts_with('\t'));
        let Some(own) = own else {
            // A line outside of fields, or an argument of the open field.
            if is_described || is_inside {
                field.push_str(line)
            } else {
                text.push_str(line)
            }
            continue;
        };
        field.push_str(line);
        let own = own.trim_end();
        if own == QUOTES {
            is_described = !is_described;
            continue;
        }
        if is_described {
            continue;
        }
        if !is_inside {
            let name = own.split(['(', ':']).next().unwrap_or_default();
            (is_wanted, is_inside) = (is_shown(name), true);
        }
        // The first arguments may follow on the line of the field, and the type follows after the last one.
        if !own.contains('(') || own.contains("): ") {
            if is_wanted {
                text.push_str(&field);
            }
            field.clear();
            is_inside = false;
        }
    }
    text
}

/// Returns the names of the types that the roots use. Returns `None` if the text cannot be parsed.
fn used_types(text: &str) -> Option<BTreeSet<String>> {
    let mut below: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for definition in parse_schema(text).ok()?.definitions {
        let TypeSystemDefinition::Type(ty) = definition else { continue };
        let names = match &ty.node.kind {
            TypeKind::Object(object) => {
                let implemented = object.implements.iter().map(|name| name.node.to_string());
                implemented.chain(of_fields(&object.fields)).collect()
            }
            TypeKind::Interface(interface) => of_fields(&interface.fields).collect(),
            TypeKind::InputObject(input) => input.fields.iter().map(|field| named(&field.node.ty.node)).collect(),
            TypeKind::Union(union) => union.members.iter().map(|name| name.node.to_string()).collect(),
            TypeKind::Scalar | TypeKind::Enum(_) => Vec::new(),
        };
        below.insert(ty.node.name.node.to_string(), names);
    }
    let mut used = BTreeSet::new();
    let mut open: Vec<String> = ROOTS.iter().map(|root| root.type_name().to_owned()).collect();
    while let Some(name) = open.pop() {
        if used.insert(name.clone()) {
            open.extend(below.remove(&name).into_iter().flatten());
        }
    }
    Some(used)
}

fn of_fields(fields: &[Positioned<FieldDefinition>]) -> impl Iterator<Item = String> {
    fields.iter().flat_map(|field| {
        let arguments = field.node.arguments.iter().map(|argument| named(&argument.node.ty.node));
        std::iter::once(named(&field.node.ty.node)).chain(arguments)
    })
}

fn named(ty: &Type) -> String {
    match &ty.base {
        BaseType::Named(name) => name.to_string(),
        BaseType::List(items) => named(items),
    }
}
