//! Tests arenas that are valid conditions, and arenas that are not.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::types::LogicalType;

use super::*;
use crate::bindings::common::LogicalType as WireType;
use crate::bindings::ir::{Node, Op, Scalar};

fn columns() -> Vec<ProfiledColumn> {
    let column = |member: &str, is_measure| ProfiledColumn {
        cube: "orders".into(),
        member: member.into(),
        ty: LogicalType::Text,
        is_measure,
        is_primary_key: false,
        tags: Vec::new(),
        pii: false,
    };
    vec![column("status", false), column("revenue", true)]
}

fn node(op: Op, first: u32, count: u32, aux: u32) -> Node {
    Node { op, ty: WireType::Unknown, first, count, aux }
}

/// Returns `test(status, 'a')`, with the column at node 0 and the literal at node 1.
fn arena(op: Op, literal: Scalar) -> Arena {
    Arena {
        nodes: vec![node(Op::Column, 0, 0, 0), node(Op::Literal, 0, 0, 0), node(op, 0, 2, 0)],
        args: vec![0, 1],
        columns: vec!["status".to_owned()],
        literals: vec![literal],
        names: Vec::new(),
        roots: vec![2],
    }
}

fn text() -> Scalar {
    Scalar::Text("a".to_owned())
}

fn read(arena: &Arena) -> Result<Vec<Filter>, String> {
    conditions(arena, &columns()).map_err(|fault| fault.to_string())
}

fn refused(arena: &Arena) -> String {
    read(arena).unwrap_err()
}

fn condition(operator: Operator, values: Vec<Value>) -> Filter {
    Filter::Condition { member: "orders.status".parse().unwrap(), operator, values }
}

#[test]
fn tests_of_columns_become_filters() {
    let cases = [
        (Op::Eq, Operator::Equals),
        (Op::Ne, Operator::NotEquals),
        (Op::Lt, Operator::Lt),
        (Op::Le, Operator::Lte),
        (Op::Gt, Operator::Gt),
        (Op::Ge, Operator::Gte),
        (Op::InList, Operator::InList),
        (Op::Contains, Operator::Contains),
        (Op::StartsWith, Operator::StartsWith),
        (Op::EndsWith, Operator::EndsWith),
    ];
    for (op, operator) in cases {
        let expected = condition(operator, vec![Value::Text("a".into())]);
        assert_eq!(read(&arena(op, text())), Ok(vec![expected]), "{op:?}");
    }
    let mut between = arena(Op::Between, Scalar::Integer(3));
    (between.args, between.nodes[2].count) = (vec![0, 1, 1], 3);
    let expected = condition(Operator::Between, vec![Value::Integer(3), Value::Integer(3)]);
    assert_eq!(read(&between), Ok(vec![expected]));
    let mut null = arena(Op::IsNull, text());
    null.nodes[2].count = 1;
    assert_eq!(read(&null), Ok(vec![condition(Operator::NotSet, vec![])]));
}

#[test]
fn trees_keep_their_shape_and_each_root_is_a_condition() {
    let mut tree = arena(Op::Eq, text());
    tree.columns[0] = "orders.status".to_owned();
    tree.nodes.extend([node(Op::Not, 2, 1, 0), node(Op::Or, 3, 2, 0)]);
    tree.args.extend([2, 2, 3]);
    tree.roots = vec![4, 2];
    let test = condition(Operator::Equals, vec![Value::Text("a".into())]);
    let tree = read(&tree).unwrap();
    assert_eq!(tree, [Filter::Or(vec![test.clone(), Filter::Not(Box::new(test.clone()))]), test]);
}

#[test]
fn literals_become_values_and_times_become_strings() {
    let value = |literal| match &read(&arena(Op::Eq, literal))?[0] {
        Filter::Condition { values, .. } => Ok(values[0].clone()),
        other => Err(format!("{other:?}")),
    };
    assert_eq!(value(Scalar::DateDays(-1)), Ok(Value::Text("1969-12-31".into())));
    assert_eq!(value(Scalar::TimestampUs(1_500_000)), Ok(Value::Text("1970-01-01T00:00:01.5".into())));
    assert_eq!(value(Scalar::Decimal("-1.50".to_owned())), Ok(Value::Decimal("-1.50".into())));
    assert!(value(Scalar::Decimal("1; DROP".to_owned())).is_err());
    assert!(value(Scalar::Float(f64::NAN)).is_err());
    assert!(value(Scalar::DateDays(i32::MAX)).is_err());
    assert!(value(Scalar::TimestampUs(i64::MIN)).is_err());
}

#[test]
fn only_dimensions_that_were_offered_are_tested() {
    for name in ["revenue", "customers.status", "orders.secret", "status.x", "1; DROP"] {
        let mut hostile = arena(Op::Eq, text());
        hostile.columns[0] = name.to_owned();
        assert!(refused(&hostile).contains("is not one of the columns of the call"), "{name}");
    }
}

#[test]
fn other_operators_and_other_numbers_of_arguments_are_refused() {
    for op in [Op::Add, Op::Call, Op::Cast, Op::Sum, Op::CaseWhen, Op::Param, Op::Star, Op::Collate] {
        assert!(read(&arena(op, text())).is_err(), "{op:?}");
    }
    assert!(refused(&arena(Op::Between, text())).contains("`between` cannot have 1 values"));
    assert!(refused(&arena(Op::IsNull, text())).contains("cannot have 1 values"));
    let mut none = arena(Op::InList, text());
    none.nodes[2].count = 1;
    assert!(refused(&none).contains("cannot have 0 values"));
}

#[test]
fn values_of_a_list_share_their_text_but_count_separately() {
    let mut list = arena(Op::InList, Scalar::Text("x".repeat(100_000)));
    list.args = std::iter::once(0).chain((0..1_000).map(|_| 1)).collect();
    list.nodes[2].count = 1_001;
    let read = read(&list).unwrap();
    let [Filter::Condition { values, .. }] = &read[..] else { panic!("{} filters", read.len()) };
    let [Value::Text(first), rest @ ..] = &values[..] else { panic!("no text") };
    assert_eq!(rest.len(), 999);
    assert!(rest.iter().all(|value| matches!(value, Value::Text(text) if Arc::ptr_eq(first, text))));
    assert_eq!(size(&read[0]), 1_002);
}

#[test]
fn true_and_false_are_conditions() {
    for (is_true, expected) in [(true, Filter::And(Vec::new())), (false, Filter::Or(Vec::new()))] {
        let mut always = arena(Op::Eq, Scalar::Boolean(is_true));
        always.roots = vec![1];
        assert_eq!(read(&always), Ok(vec![expected]));
    }
}
