//! Closes what properties with unknown names may replace in JavaScript.
//!
//! In: the properties or items that precede a property such as `...x` or `[x]: 1`, which may have any name. Out: the
//! same ones, closed or with unknown values.

use terrane_authoring::names::snake;
use terrane_compiler::project::yaml::{Key, Node, NodeValue};

use crate::entry::is_template;

/// The consequence of a property whose name is unknown, such as `...x` or `[x]: 1`, for the properties before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    /// The cube is closed, because the property may be `public: false` or an access policy.
    ClosesCube,
    ClosesView,
    /// The member is closed, because the property may be `public: false` or a mask.
    ClosesMember,
    /// The view is left out, because the property may exclude members of one of its cubes.
    ClosesPart,
    /// Their values are unknown.
    Replaces,
}

/// Returns the name of an item of a collection.
pub(super) fn name_of(item: &Node) -> Option<&str> {
    let NodeValue::Map(entries) = &item.value else { return None };
    match entries.first().map(|(_, value)| &value.value) {
        Some(NodeValue::Scalar { text, .. }) => Some(text),
        _ => None,
    }
}

/// Changes the properties that precede a property with an unknown name. `computed` is the value for unknown values.
pub(super) fn replace_unknown(entries: &mut Vec<(Key, Node)>, spread: Spread, computed: &Node) {
    let closing: &[&str] = match spread {
        Spread::ClosesCube => &["public", "access_policy"],
        Spread::ClosesView => &["public"],
        Spread::ClosesMember => &["public", "mask"],
        Spread::ClosesPart => &["excludes"],
        Spread::Replaces => {
            return entries.iter_mut().for_each(|(_, value)| *value = computed.clone());
        }
    };
    let replaced: &[&str] = match spread {
        Spread::ClosesPart => &["includes", "excludes", "prefix", "alias"],
        _ => &["public", "shown", "mask"],
    };
    let is_computed = |value: &Node| matches!(&value.value, NodeValue::Scalar { text, .. } if is_template(text));
    entries.retain(|(key, value)| is_computed(value) || !replaced.contains(&snake(&key.text).as_str()));
    for key in closing {
        if !entries.iter().any(|(known, _)| snake(&known.text) == **key) {
            let key = Key { text: (*key).into(), origin: computed.origin.clone() };
            entries.push((key, computed.clone()));
        }
    }
}

/// Changes the items that precede a property with an unknown name in a collection, and adds an item for it.
pub(super) fn replace_unknown_items(items: &mut Vec<Node>, spread: Spread, computed: Node) {
    for item in items.iter_mut() {
        if let NodeValue::Map(entries) = &mut item.value {
            let name = entries.remove(0);
            replace_unknown(entries, spread, &computed);
            entries.insert(0, name);
        }
    }
    items.push(computed);
}
