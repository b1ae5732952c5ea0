//! Reads queries that a server refuses in any project, and reports each of their problems.
//!
//! In: the query of a case. Out: the part of the query that can be read, and a diagnostic for each other part. The
//! query is parsed again without each refused part, so that one problem does not hide another. A problem that such a
//! change causes is not reported. Not here: names (`parts`).

use std::sync::Arc;

use serde_json::Value;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::yaml::mapping::unknown_key;
use terrane_compiler::project::yaml::{Key, Node, NodeValue, Plain};
use terrane_compiler::query::{Filter, MemberRef, SemanticQuery};

use crate::expected::refused;
use crate::json_of_yaml::json;
use crate::refusal::{Refusal, parse};

/// The part of a query that can be read.
#[derive(Debug, Clone)]
pub(crate) struct ReadableQuery {
    pub(crate) query: SemanticQuery,
    /// True if a part was left out on which the meaning of other parts or the keys of the result depend.
    pub(crate) is_partial: bool,
}

/// The largest number of problems that are reported for one query.
const MAX_PROBLEMS: usize = 40;
/// The name of a member that replaces an invalid part of a query.
const LEFT_OUT: &str = "\u{0}.\u{0}";
/// Fields of a query without which the other fields have the same meaning and the result has the same keys.
const SEPARATE: [&str; 12] = [
    "filters", "segments", "order", "order_by", "limit", "offset", "timezone", "total", "numbers", "cache", "max_age",
    "stale",
];

/// Reads a query. Returns `None` if no part of it can be read.
pub(crate) fn read_query(label: &str, query: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<ReadableQuery> {
    let mut node = query.clone();
    let (mut is_partial, mut changed) = (false, Vec::<String>::new());
    for _ in 0..MAX_PROBLEMS {
        let refusal = match parse(&json(&node)) {
            Ok(query) => return Some(ReadableQuery { query: without_left_out(query), is_partial }),
            Err(error) => Refusal::from(error),
        };
        let path = refusal.body.field("field").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !changed.contains(&path) {
            diagnostics.push(problem(label, &node, &path, &refusal));
        }
        let field = path.split(['.', '[']).next().unwrap_or_default();
        is_partial |= !SEPARATE.contains(&field);
        if path.is_empty() || !leave_out(&mut node, "", &path) {
            return None;
        }
        let parent = path.rfind(['.', '[']).map_or("", |end| &path[..end]);
        changed.extend([parent.to_owned(), path]);
    }
    None
}

/// Returns the diagnostic for a refused part of a query.
fn problem(label: &str, query: &Node, path: &str, refusal: &Refusal) -> Diagnostic {
    let (key, value) = at_path(query, path);
    if let (Some(key), Some(Value::Array(known))) = (key, refusal.body.field("known_fields")) {
        let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
        return unknown_key(key, &known, &format_args!("the query of {label}"));
    }
    refused(label, refusal).at(value.origin.span())
}

/// Follows a path such as `filters[0].operator` to its last key that the query contains. Returns the last key and its
/// value.
fn at_path<'n>(query: &'n Node, path: &str) -> (Option<&'n Key>, &'n Node) {
    let (mut key, mut node, mut rest) = (None, query, path);
    loop {
        let step = match &node.value {
            NodeValue::Map(map) => map.iter().find_map(|(name, value)| {
                let rest = after_key(name, rest)?;
                Some((Some(name), value, rest))
            }),
            NodeValue::List(items) => item_of(rest).and_then(|(index, rest)| Some((None, items.get(index)?, rest))),
            _ => None,
        };
        let Some(next) = step else { return (key, node) };
        (key, node, rest) = next;
    }
}

/// Returns the rest of a path that begins with a key.
fn after_key<'p>(key: &Key, path: &'p str) -> Option<&'p str> {
    let rest = path.trim_start_matches('.').strip_prefix(&*key.text)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

/// Splits a path such as `[0].operator` into its index 0 and the rest `.operator`.
fn item_of(path: &str) -> Option<(usize, &str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest))
}

/// Changes the part of a query at a path, so that its siblings can be read. `field` is the key of the list or mapping
/// that contains the node. Returns false if the part is the node itself, and the node cannot be changed.
fn leave_out(node: &mut Node, field: &str, path: &str) -> bool {
    match &mut node.value {
        NodeValue::Map(map) => {
            let found = map.iter().enumerate().find_map(|(at, (key, _))| Some((at, after_key(key, path)?.to_owned())));
            match found {
                Some((at, rest)) => {
                    let key = Arc::clone(&map[at].0.text);
                    if rest.is_empty() || !leave_out(&mut map[at].1, &key, &rest) {
                        leave_out_key(node, field, at);
                    }
                    true
                }
                None => complete(node, field),
            }
        }
        NodeValue::List(items) => {
            let Some((index, rest)) = item_of(path) else { return false };
            let Some(item) = items.get_mut(index) else { return false };
            let is_changed = !rest.is_empty() && leave_out(item, field, rest);
            is_changed || complete(item, field)
        }
        NodeValue::Null | NodeValue::Scalar { .. } => false,
    }
}

/// Removes a key of a mapping, or replaces its value if the mapping needs the key.
fn leave_out_key(node: &mut Node, field: &str, at: usize) {
    let NodeValue::Map(map) = &mut node.value else { return };
    let key = Arc::clone(&map[at].0.text);
    match (Shape::of(field), &*key) {
        (Shape::Filter, "operator" | "value" | "values") => any_value(map),
        (Shape::Filter, "dimension" | "member") | (Shape::Order, "field") | (Shape::Time, "dimension") => {
            map[at].1.value = text(LEFT_OUT);
        }
        (Shape::Filter, "and" | "or" | "not") => {
            map.clear();
            complete(node, field);
        }
        _ => {
            map.remove(at);
        }
    }
}

/// Changes a filter so that it has a valid operator.
fn any_value(filter: &mut Vec<(Key, Node)>) {
    filter.retain(|(key, _)| matches!(&*key.text, "dimension" | "member"));
    let Some((key, member)) = filter.first() else { return };
    let (key, origin) = (Key { text: "operator".into(), ..key.clone() }, member.origin.clone());
    filter.push((key, Node { origin, value: text("set") }));
}

/// Changes an item that lacks a key, has contradictory keys, or has a different type, to one that can be read.
fn complete(node: &mut Node, field: &str) -> bool {
    let shape = Shape::of(field);
    let key = |name: &str| Key { text: name.into(), origin: node.origin.clone() };
    let entry = |name: &str, value: &str| (key(name), Node { origin: node.origin.clone(), value: text(value) });
    let member_key = match shape {
        Shape::Member => {
            node.value = text(LEFT_OUT);
            return true;
        }
        Shape::Range => {
            let start = entry("start", "2000-01-01");
            return match &mut node.value {
                NodeValue::Map(map) if !map.iter().any(|(key, _)| &*key.text == "start") => {
                    map.push(start);
                    true
                }
                _ => false,
            };
        }
        Shape::Other => return false,
        Shape::Filter | Shape::Time => "dimension",
        Shape::Order => "field",
    };
    let left_out = entry(member_key, LEFT_OUT);
    let mut map = match std::mem::replace(&mut node.value, NodeValue::Null) {
        NodeValue::Map(map) => map,
        _ => Vec::new(),
    };
    let is_member = |key: &Key| &*key.text == member_key || (shape == Shape::Filter && &*key.text == "member");
    let has_branches = map.iter().any(|(key, _)| matches!(&*key.text, "and" | "or" | "not"));
    let members = map.iter().filter(|(key, value)| is_member(key) && !matches!(value.value, NodeValue::Null)).count();
    match members {
        _ if has_branches => map = vec![left_out],
        0 => map.push(left_out),
        1 => {}
        _ => map.retain(|(key, _)| &*key.text != "member"),
    }
    if shape == Shape::Filter && members <= 1 && (members == 1 || has_branches || map.len() == 1) {
        any_value(&mut map);
    }
    node.value = NodeValue::Map(map);
    true
}

fn text(text: &str) -> NodeValue {
    NodeValue::Scalar { text: text.into(), plain: Plain::Text }
}

/// The kind of the items of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Member,
    Filter,
    Order,
    Time,
    Range,
    Other,
}

impl Shape {
    fn of(field: &str) -> Self {
        match field {
            "metrics" | "measures" | "dimensions" | "segments" => Shape::Member,
            "filters" | "and" | "or" | "not" => Shape::Filter,
            "order" | "order_by" => Shape::Order,
            "time_dimensions" => Shape::Time,
            "time_range" => Shape::Range,
            _ => Shape::Other,
        }
    }
}

/// Removes the items that were left out.
fn without_left_out(mut query: SemanticQuery) -> SemanticQuery {
    let is_in = |member: &MemberRef| &*member.text != LEFT_OUT;
    query.values.retain(is_in);
    query.dimensions.retain(is_in);
    query.segments.retain(is_in);
    query.time_dimensions.retain(|dimension| is_in(&dimension.member));
    query.order.retain(|order| is_in(&order.member));
    query.filters = query.filters.into_iter().filter_map(readable).collect();
    query
}

/// Returns a filter without the conditions that were left out; `None` if no condition remains.
fn readable(filter: Filter) -> Option<Filter> {
    let branches = |filters: Vec<Filter>| {
        let count = filters.len();
        let filters: Vec<Filter> = filters.into_iter().filter_map(readable).collect();
        (count == 0 || !filters.is_empty()).then_some(filters)
    };
    match filter {
        Filter::Condition { ref member, .. } => (&*member.text != LEFT_OUT).then_some(filter),
        Filter::And(filters) => branches(filters).map(Filter::And),
        Filter::Or(filters) => branches(filters).map(Filter::Or),
        Filter::Not(filter) => readable(*filter).map(|filter| Filter::Not(Box::new(filter))),
        Filter::NoRow { .. } => Some(filter),
    }
}
