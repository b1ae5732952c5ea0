//! Finds the names in `tests/*.yml`: in queries, in the keys of expected rows, and in the column names of SQL.

use std::sync::Arc;

use terrane_compiler::project::yaml::{self, Key, Node, NodeValue};
use terrane_compiler::project::{SourceFile, SqlText, Text};

use super::Builder;
use crate::position::BYTE_ORDER_MARK;

/// The keys of a query whose values are names without a cube.
const BARE: [&str; 8] = ["measures", "metrics", "dimensions", "segments", "order", "member", "dimension", "field"];

/// Adds the occurrences in one file, if it is a YAML file in `tests`.
pub(super) fn collect(path: &Arc<str>, text: &Arc<str>, builder: &mut Builder<'_>) {
    if !path.starts_with("tests/") || path.ends_with(".sql") {
        return;
    }
    let text = text.strip_prefix(BYTE_ORDER_MARK).map_or_else(|| Arc::clone(text), Arc::from);
    let file = Arc::new(SourceFile { path: Arc::clone(path), text });
    let Ok(root) = yaml::parse(&file) else { return };
    let Some(NodeValue::List(cases)) = entry(&root, "tests").map(|node| &node.value) else { return };
    for case in cases {
        if let Some(query) = entry(case, "query") {
            let cube = entry(query, "cube").and_then(text_of);
            if let Some(cube) = &cube {
                builder.add(builder.scope.cube_symbol(&cube.value), place(cube, 0, &cube.value));
            }
            walk(query, cube.as_ref().map(|cube| &*cube.value), false, builder);
        }
        if let Some(rows) = entry(case, "rows") {
            walk(rows, None, false, builder);
        }
        if let Some(sql) = entry(case, "sql").and_then(text_of) {
            columns(&sql, builder);
        }
    }
}

fn entry<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let NodeValue::Map(entries) = &node.value else { return None };
    entries.iter().find(|(key, _)| &*key.text == name).map(|(_, node)| node)
}

fn text_of(node: &Node) -> Option<Text> {
    match &node.value {
        NodeValue::Scalar { text, .. } => Some(Text { value: Arc::clone(text), origin: node.origin.clone() }),
        _ => None,
    }
}

fn place(text: &Text, offset: usize, name: &str) -> terrane_compiler::diagnostic::Span {
    SqlText::plain(text).locate(offset, name.chars().count())
}

/// Visits the keys and values below a node. The recursion is bounded, because the parser limits the depth.
fn walk(node: &Node, cube: Option<&str>, is_bare: bool, builder: &mut Builder<'_>) {
    match &node.value {
        NodeValue::Null => {}
        NodeValue::Scalar { .. } => {
            if let Some(text) = text_of(node) {
                name(&text, cube, is_bare, builder);
            }
        }
        NodeValue::List(items) => items.iter().for_each(|item| walk(item, cube, is_bare, builder)),
        NodeValue::Map(entries) => {
            for (Key { text, origin }, value) in entries {
                let key = Text { value: Arc::clone(text), origin: origin.clone() };
                name(&key, cube, is_bare, builder);
                walk(value, cube, BARE.contains(&&**text), builder);
            }
        }
    }
}

/// Adds `cube.member`, with or without a granularity. A name without a cube is added only where names are expected.
fn name(text: &Text, cube: Option<&str>, is_bare: bool, builder: &mut Builder<'_>) {
    let value = &*text.value;
    let Some((of, _)) = value.split_once('.') else {
        if is_bare {
            let member = cube.and_then(|cube| builder.scope.member(cube, value));
            builder.add(member.or_else(|| builder.scope.metric(value)), place(text, 0, value));
        } else if cube.is_none() {
            // A key of an expected row may be the name of a metric.
            builder.add(builder.scope.metric(value), place(text, 0, value));
        }
        return;
    };
    if builder.scope.cube(of).is_some() {
        builder.member_name(None, text);
    }
}

/// Adds the names in double quotes, as in `AS "flights.count"`.
fn columns(sql: &Text, builder: &mut Builder<'_>) {
    let text = &sql.value;
    let mut at = 0;
    while let Some(open) = text[at..].find('"').map(|found| at + found + 1) {
        let Some(length) = text[open..].find('"') else { return };
        let quoted = &text[open..open + length];
        let (cube, rest) = quoted.split_once('.').unwrap_or((quoted, ""));
        let member = rest.split('.').next().unwrap_or_default();
        if rest.is_empty() {
            builder.add(builder.scope.metric(cube), place(sql, open, cube));
        } else if let Some(symbol) = builder.scope.member(cube, member) {
            builder.add(builder.scope.cube_symbol(cube), place(sql, open, cube));
            builder.add(Some(symbol), place(sql, open + cube.len() + 1, member));
        }
        at = open + length + 1;
    }
}
