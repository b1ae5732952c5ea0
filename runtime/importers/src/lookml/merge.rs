//! Merges views and explores with their refinements, and with the views and explores that they extend.
//!
//! In: the views or explores of all files, in the order of the files. Out: each one with everything that it inherits. A
//! named block is merged key by key with the inherited block of that name; other values replace inherited values.

use std::collections::HashMap;

use terrane_compiler::diagnostic::Diagnostic;

use super::syntax::{Item, Value};
use crate::finding::{changed, left_out};

/// The largest length of a chain of `extends`.
const MAX_DEPTH: usize = 16;
/// The largest number of items in one merged view.
const MAX_ITEMS: usize = 100_000;
/// The keys that a block may have several times without names.
const REPEATED: [&str; 9] =
    ["filters", "when", "link", "action", "access_filter", "bind_filters", "column", "include", "user_attribute_param"];

/// A merged view or explore.
pub(super) struct Merged {
    pub(super) name: String,
    pub(super) item: Item,
}

/// Merges the items of one kind: `view` or `explore`.
pub(super) fn merge(items: Vec<Item>, findings: &mut Vec<Diagnostic>) -> Vec<Merged> {
    let mut order = Vec::new();
    let mut by_name: HashMap<String, Item> = HashMap::new();
    let (refinements, definitions): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| item.name().is_some_and(|name| name.starts_with('+')));
    for item in definitions {
        let name = item.name().unwrap_or_default().to_owned();
        if name.is_empty() || by_name.contains_key(&name) {
            let reason = if name.is_empty() { "it has no name" } else { "its name is not unique" };
            let what = format!("{} `{name}` is not imported: {reason}", item.key);
            findings.push(left_out(item.span.clone(), what, "Rename or remove one of them."));
            continue;
        }
        order.push(name.clone());
        by_name.insert(name, item);
    }
    for item in refinements {
        let name = item.name().unwrap_or_default().trim_start_matches('+').to_owned();
        match by_name.get_mut(&name) {
            Some(base) => {
                let what = format!("a refinement of {} `{name}` is merged in the order of the files", item.key);
                findings.push(changed(item.span.clone(), what, "Check it if several refinements change one key."));
                overlay(base, &item);
            }
            None => {
                let what =
                    format!("a refinement of {} `{name}` is not imported: the folder does not contain it", item.key);
                findings.push(left_out(item.span.clone(), what, "Import the folder of the whole project."));
            }
        }
    }
    let merged = |name: &String| {
        let item = extended(name, &by_name, 0, findings)?;
        Some(Merged { name: name.clone(), item })
    };
    order.iter().filter_map(merged).collect()
}

/// Returns a definition together with everything that it inherits.
fn extended(name: &str, by_name: &HashMap<String, Item>, depth: usize, findings: &mut Vec<Diagnostic>) -> Option<Item> {
    let item = by_name.get(name)?;
    let mut rejected = |reason: &str, cure: &str| {
        let what = format!("{} `{name}` is not imported: {reason}", item.key);
        findings.push(left_out(item.span.clone(), what, cure));
        None
    };
    let Some(parents) = parents(item) else {
        return rejected("its `extends` is neither a name nor a list of names", "Write `extends: [name]`.");
    };
    if parents.is_empty() {
        return Some(item.clone());
    }
    if depth > MAX_DEPTH {
        return rejected("it extends itself, or too many others", "Remove the cycle.");
    }
    let mut base: Option<Item> = None;
    for parent in &parents {
        let Some(parent) =
            by_name.contains_key(parent).then(|| extended(parent, by_name, depth + 1, findings)).flatten()
        else {
            let what =
                format!("{} `{name}` is not imported: it extends `{parent}`, which is not in the folder", item.key);
            findings.push(left_out(item.span.clone(), what, "Import the folder of the whole project."));
            return None;
        };
        match &mut base {
            None => base = Some(parent),
            Some(base) => overlay(base, &parent),
        }
    }
    let mut base = base?;
    // A base with `extension` is only a template. Views that extend it are not, so they must not inherit the key.
    if let Value::Block { items, .. } = &mut base.value {
        items.retain(|item| item.key != "extension");
    }
    overlay(&mut base, item);
    if let Value::Block { name: merged, items } = &mut base.value {
        *merged = Some(name.to_owned());
        items.truncate(MAX_ITEMS);
    }
    base.span = item.span.clone();
    Some(base)
}

/// Returns the names under `extends`: the names of a list such as `[a, b]`, or a single name. Returns `None` if the
/// value is a block.
fn parents(item: &Item) -> Option<Vec<String>> {
    let extends = item.items().iter().filter(|item| item.key == "extends" || item.key == "extends__all");
    let names = extends.map(|item| match &item.value {
        Value::List(entries) => Some(entries.iter().map(|entry| entry.text.clone()).collect()),
        Value::Text(name) => Some(vec![name.clone()]),
        Value::Block { .. } => None,
    });
    names.collect::<Option<Vec<Vec<String>>>>().map(|names| names.concat())
}

/// Adds the items of a block to another block. They replace items with the same key and name.
fn overlay(base: &mut Item, item: &Item) {
    let Value::Block { items, .. } = &mut base.value else { return };
    // New filters replace the inherited ones, while new access filters are added to the inherited ones.
    if item.items().iter().any(|new| new.key == "filters") {
        items.retain(|old| old.key != "filters");
    }
    for new in item.items() {
        if REPEATED.contains(&new.key.as_str()) {
            items.push(new.clone());
            continue;
        }
        let same = items.iter_mut().find(|old| old.key == new.key && old.name() == new.name());
        match (same, &new.value) {
            (Some(old), Value::Block { name: Some(_), .. }) => {
                overlay(old, new);
                old.span = new.span.clone();
            }
            (Some(old), _) => *old = new.clone(),
            (None, _) => items.push(new.clone()),
        }
    }
}
