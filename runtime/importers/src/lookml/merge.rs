//! Merges views and explores with their refinements, and with the views and explores that they extend.
//!
//! In: the views or explores of all files, in the order of the files. Out: each one with everything that it inherits. A
//! named block is merged key by key with the inherited block of that name; other values replace inherited values.

use std::collections::{BTreeSet, HashMap, HashSet};

use terrane_compiler::diagnostic::Diagnostic;

use super::syntax::{Item, Value};
use crate::finding::{changed, left_out};

/// The largest length of a chain of `extends`.
const MAX_DEPTH: usize = 64;
/// The largest number of items in one merged view, and of all items that extending views and explores inherit.
const MAX_ITEMS: usize = 20_000;
const MAX_INHERITED: usize = 1_000_000;
/// The keys that a block may have several times without names.
const REPEATED: [&str; 9] =
    ["filters", "when", "link", "action", "access_filter", "bind_filters", "column", "include", "user_attribute_param"];

/// A merged view or explore.
pub(super) struct Merged {
    pub(super) name: String,
    pub(super) item: Item,
    /// The names of everything that it extends, and its own name.
    pub(super) lineage: BTreeSet<String>,
    /// True if other definitions of its name, or of one in its lineage, differ. Any of them may be the stricter one.
    pub(super) is_ambiguous: bool,
}

/// Merges the items of one kind: `view` or `explore`.
pub(super) fn merge(items: Vec<Item>, findings: &mut Vec<Diagnostic>) -> Vec<Merged> {
    let mut order = Vec::new();
    let mut by_name: HashMap<String, Item> = HashMap::new();
    let mut ambiguous: HashSet<String> = HashSet::new();
    let (refinements, definitions): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| item.name().is_some_and(|name| name.starts_with('+')));
    for item in definitions {
        let name = item.name().unwrap_or_default().to_owned();
        let known = by_name.get(&name);
        if name.is_empty() || known.is_some() {
            let reason = if name.is_empty() { "it has no name" } else { "its name is not unique" };
            let what = format!("{} `{name}` is not imported: {reason}", item.key);
            findings.push(left_out(item.span.clone(), what, "Rename or remove one of them."));
            if known.is_some_and(|known| !known.is_same(&item)) {
                ambiguous.insert(name);
            }
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
    let mut merger = Merger { by_name: &by_name, ready: HashMap::new(), open: Vec::new(), inherited: 0, findings };
    for name in &order {
        merger.extended(name);
    }
    let mut ready = merger.ready;
    let merged = |name: String| {
        let (item, lineage) = ready.remove(&name).flatten()?;
        let is_ambiguous = lineage.iter().any(|name| ambiguous.contains(name));
        Some(Merged { name, item, lineage, is_ambiguous })
    };
    order.into_iter().filter_map(merged).collect()
}

/// A definition with everything that it inherits, and the names of all definitions in it.
type Extended = (Item, BTreeSet<String>);

struct Merger<'m> {
    by_name: &'m HashMap<String, Item>,
    /// The merged definitions, or `None` for those that were rejected.
    ready: HashMap<String, Option<Extended>>,
    /// The names of the definitions that are being merged.
    open: Vec<String>,
    /// The number of items that were copied so far.
    inherited: usize,
    findings: &'m mut Vec<Diagnostic>,
}

impl Merger<'_> {
    /// Merges a definition with everything that it inherits, unless that is done already.
    fn extended(&mut self, name: &str) {
        let Some(item) = self.by_name.get(name).filter(|_| !self.ready.contains_key(name)) else { return };
        self.open.push(name.to_owned());
        let merged = self.merged(name, item);
        self.open.pop();
        let merged = merged.map_err(|(reason, cure)| {
            let what = format!("{} `{name}` is not imported: {reason}", item.key);
            self.findings.push(left_out(item.span.clone(), what, cure));
        });
        self.ready.insert(name.to_owned(), merged.ok());
    }

    /// Returns a definition merged with those that it extends.
    ///
    /// # Errors
    /// Returns the reason why the definition has no counterpart, and an action.
    fn merged(&mut self, name: &str, item: &Item) -> Result<Extended, (String, &'static str)> {
        let Some(parents) = parents(item) else {
            let reason = "its `extends` is neither a name nor a list of names".to_owned();
            return Err((reason, "Write `extends: [name]`."));
        };
        let mut lineage = BTreeSet::from([name.to_owned()]);
        let mut base: Option<Item> = None;
        for parent in &parents {
            let parent = self.parent(parent)?;
            lineage.extend(parent.1.iter().cloned());
            self.inherited += parent.0.items().len();
            match &mut base {
                None => base = Some(parent.0),
                Some(base) => overlay(base, &parent.0),
            }
        }
        let Some(mut base) = base else { return Ok((item.clone(), lineage)) };
        // A base with `extension` is only a template. Views that extend it are not, so they must not inherit the key.
        if let Value::Block { items, .. } = &mut base.value {
            items.retain(|item| item.key != "extension");
        }
        overlay(&mut base, item);
        if let Value::Block { name: merged, .. } = &mut base.value {
            *merged = Some(name.to_owned());
        }
        base.span = item.span.clone();
        match base.items().len() > MAX_ITEMS {
            true => Err(("it inherits too many fields".to_owned(), "Extend fewer definitions.")),
            false => Ok((base, lineage)),
        }
    }

    fn parent(&mut self, name: &str) -> Result<Extended, (String, &'static str)> {
        const CYCLE: &str = "Remove the cycle.";
        if self.open.iter().any(|open| open == name) {
            return Err(("it extends itself".to_owned(), CYCLE));
        }
        if self.open.len() > MAX_DEPTH || self.inherited > MAX_INHERITED {
            return Err(("it extends too many others".to_owned(), "Extend fewer definitions."));
        }
        if !self.by_name.contains_key(name) {
            let reason = format!("it extends `{name}`, which is not in the folder");
            return Err((reason, "Import the folder of the whole project."));
        }
        self.extended(name);
        let reason =
            || (format!("it extends `{name}`, which is not imported"), "Solve the problems of that one first.");
        self.ready.get(name).cloned().flatten().ok_or_else(reason)
    }
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
    let names = names.collect::<Option<Vec<Vec<String>>>>()?.concat();
    // The last one of several equal parents replaces the keys of the others, so the earlier ones have no effect.
    let mut unique: Vec<String> = Vec::new();
    for name in names.into_iter().rev() {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique.reverse();
    Some(unique)
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
            // Several parents may inherit one item of the same ancestor.
            if !items.contains(new) {
                items.push(new.clone());
            }
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
