//! Tests valid arenas, and arenas that are invalid in each possible way.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::types::LogicalType;

use super::*;
use crate::wire::values::logical_type;

fn node(op: Op, first: u32, count: u32, aux: u32) -> Node {
    Node { op, ty: logical_type(LogicalType::Unknown), first, count, aux }
}

/// Returns the arena of `region = 'EU'`.
fn equal() -> Arena {
    Arena {
        nodes: vec![node(Op::Column, 0, 0, 0), node(Op::Literal, 0, 0, 0), node(Op::Eq, 0, 2, 0)],
        args: vec![0, 1],
        columns: vec!["region".to_owned()],
        literals: vec![Scalar::Text("EU".to_owned())],
        names: Vec::new(),
        roots: vec![2],
    }
}

/// Returns the only condition of an arena with one root.
fn condition(arena: &Arena) -> Result<HookCondition, String> {
    conditions(arena, Room::PLAIN).map(|mut all| all.remove(0))
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Arena), expected: &str) {
    let mut arena = equal();
    change(&mut arena);
    let problem = condition(&arena).expect_err("a refusal");
    assert!(problem.contains(expected), "{problem}");
}

#[test]
fn test_is_read() {
    let values = vec![Value::Text("EU".into())];
    let expected = HookCondition::Test { member: "region".into(), operator: TestOperator::Eq, values };
    assert_eq!(condition(&equal()), Ok(expected));
}

#[test]
fn indexes_out_of_bounds_are_rejected() {
    refused(|arena| arena.roots = vec![3], "root 3 does not exist");
    refused(|arena| arena.roots = vec![2, u32::MAX], "does not exist");
    refused(|arena| arena.nodes[2].first = 1, "arguments");
    refused(|arena| arena.nodes[2].first = u32::MAX, "arguments");
    refused(|arena| arena.nodes[2].count = u32::MAX, "arguments");
    refused(|arena| arena.nodes[0].aux = 1, "column 1 does not exist");
    refused(|arena| arena.nodes[1].aux = 1, "literal 1 does not exist");
}

#[test]
fn children_after_their_parents_are_rejected() {
    refused(|arena| arena.args[0] = 2, "must precede their parent");
    refused(|arena| arena.args[1] = 9, "must precede their parent");
    // A node that cannot be reached from the root must be valid too.
    refused(
        |arena| {
            arena.nodes.push(node(Op::Not, 2, 1, 0));
            arena.args.push(3);
        },
        "must precede their parent",
    );
}

#[test]
fn only_tests_of_columns_against_literals_pass() {
    refused(|arena| arena.nodes[2].op = Op::Add, "operator");
    refused(|arena| arena.nodes[2].op = Op::Call, "operator");
    refused(|arena| arena.nodes[2].op = Op::Count, "operator");
    refused(|arena| arena.args = vec![1, 0], "something other than a literal");
    refused(|arena| arena.args = vec![1, 1], "is not a column");
    refused(|arena| arena.args[1] = 0, "something other than a literal");
    refused(|arena| arena.nodes[2].count = 0, "no arguments");
    refused(|arena| arena.nodes[2].op = Op::Not, "not one");
    refused(|arena| arena.roots = vec![1], "neither true nor false");
    refused(|arena| arena.roots = vec![0], "operator");
}

#[test]
fn malformed_literals_are_rejected() {
    for (literal, expected) in [
        (Scalar::Float(f64::NAN), "NaN"),
        (Scalar::Float(f64::INFINITY), "inf"),
        (Scalar::Decimal("1.2.3".to_owned()), "decimal literal is not valid"),
        (Scalar::Decimal("1); DROP".to_owned()), "decimal literal is not valid"),
        (Scalar::Decimal(String::new()), "decimal literal is not valid"),
        (Scalar::DateDays(i32::MAX), "outside"),
        (Scalar::TimestampUs(i64::MIN), "outside"),
        (Scalar::Text("x".repeat(MAX_LITERAL_BYTES + 1)), "bytes"),
    ] {
        refused(|arena| arena.literals[0] = literal, expected);
    }
}

#[test]
fn shared_nodes_count_towards_the_tree_limit() {
    // Each of the 24 new nodes has its predecessor twice as a child, so the tree has more than 2^24 nodes.
    refused(
        |arena| {
            for _ in 0..24 {
                let last = u32::try_from(arena.nodes.len() - 1).unwrap();
                let first = u32::try_from(arena.args.len()).unwrap();
                arena.args.extend([last, last]);
                arena.nodes.push(node(Op::And, first, 2, 0));
                arena.roots = vec![last + 1];
            }
        },
        "expand to more than",
    );
}

#[test]
fn depth_and_size_have_limits() {
    let deep = |levels: u32| {
        let mut arena = equal();
        for level in 0..levels {
            arena.args.push(2 + level);
            arena.nodes.push(node(Op::Not, 2 + level, 1, 0));
            arena.roots = vec![3 + level];
        }
        arena
    };
    assert!(condition(&deep(30)).is_ok());
    assert!(condition(&deep(31)).unwrap_err().contains("33 levels"));
    refused(|arena| arena.nodes.extend((0..MAX_NODES).map(|_| node(Op::Literal, 0, 0, 0))), "nodes");
}

/// Returns the arena of `region in (…)`, whose list refers to one literal `references` times.
fn list(text: String, references: u32) -> Arena {
    let mut arena = equal();
    arena.literals = vec![Scalar::Text(text)];
    arena.args = std::iter::once(0).chain((0..references).map(|_| 1)).collect();
    arena.nodes[2] = node(Op::InList, 0, references + 1, 0);
    arena
}

#[test]
fn roots_are_conditions_and_may_be_absent() {
    let mut arena = equal();
    arena.nodes.extend([node(Op::Not, 2, 1, 0), node(Op::Or, 3, 2, 0)]);
    arena.args.extend([2, 2, 3]);
    arena.roots = vec![4, 2];
    let test = condition(&equal()).expect("a condition");
    let either = HookCondition::Any(vec![test.clone(), HookCondition::Not(Box::new(test.clone()))]);
    assert_eq!(conditions(&arena, Room::PLAIN), Ok(vec![either, test]));
    arena.roots.clear();
    assert_eq!(conditions(&arena, Room::PLAIN), Ok(Vec::new()));
}

#[test]
fn references_to_a_literal_share_its_text() {
    let read = condition(&list("x".repeat(MAX_LITERAL_BYTES), 4_000)).expect("a condition");
    let HookCondition::Test { values, .. } = read else { panic!("{read:?}") };
    assert_eq!(values.len(), 4_000);
    let texts = values.iter().map(|value| match value {
        Value::Text(text) => text,
        other => panic!("{other:?}"),
    });
    let mut texts = texts.peekable();
    let first = *texts.peek().expect("a string");
    assert!(texts.all(|text| std::sync::Arc::ptr_eq(first, text)));
}

#[test]
fn references_to_literals_count_as_values() {
    let long = || "x".repeat(MAX_LITERAL_BYTES);
    // The column and the list itself count too.
    assert!(condition(&list(long(), 4_094)).is_ok());
    insta::assert_snapshot!(condition(&list(long(), 4_095)).unwrap_err(), @"the conditions expand to more than 4096 nodes and values");
    insta::assert_snapshot!(condition(&list(long(), 100_000)).unwrap_err(), @"the conditions have lists of more than 4096 entries");
    // Several roots share one tree.
    let mut roots = list(long(), 1_000);
    roots.roots = vec![2; 4];
    assert!(conditions(&roots, Room::PLAIN).is_ok());
    roots.roots = vec![2; 5];
    insta::assert_snapshot!(conditions(&roots, Room::PLAIN).unwrap_err(), @"the conditions expand to more than 4096 nodes and values");
    // One node has the same tree five times as a child.
    let mut shared = list(long(), 1_000);
    shared.nodes.push(node(Op::Or, 1_001, 5, 0));
    shared.args.extend([2; 5]);
    shared.roots = vec![3];
    insta::assert_snapshot!(condition(&shared).unwrap_err(), @"the conditions expand to more than 4096 nodes and values");
}

#[test]
fn long_list_of_distinct_values_is_read() {
    let mut arena = list("EU".to_owned(), 0);
    arena.nodes.truncate(1);
    arena.literals = (0..500).map(Scalar::Integer).collect();
    arena.nodes.extend((0..500).map(|slot| node(Op::Literal, 0, 0, slot)));
    arena.nodes.push(node(Op::InList, 0, 1_001, 0));
    arena.args = std::iter::once(0).chain(1..=500).chain(1..=500).collect();
    arena.roots = vec![501];
    let values = (0..500).chain(0..500).map(Value::Integer).collect();
    let expected = HookCondition::Test { member: "region".into(), operator: TestOperator::InList, values };
    assert_eq!(condition(&arena), Ok(expected));
}
