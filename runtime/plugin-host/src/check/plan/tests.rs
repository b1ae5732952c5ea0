//! Tests the limits on all requests of a plan together.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::types::LogicalType;

use super::*;
use crate::bindings::common::LogicalType as WireType;
use crate::bindings::ir::{Arena, Node, Op, Scalar};

fn columns() -> Vec<ProfiledColumn> {
    let column = |index: usize| ProfiledColumn {
        cube: "orders".into(),
        member: format!("c{index}").into(),
        ty: LogicalType::Text,
        is_measure: false,
        is_primary_key: false,
        tags: Vec::new(),
        pii: false,
    };
    (0..64).map(column).collect()
}

/// Returns the condition `c0 in (…)`, whose list refers to one literal `references` times.
fn list(references: u32) -> Arena {
    let node = |op, count, aux| Node { op, ty: WireType::Unknown, first: 0, count, aux };
    Arena {
        nodes: vec![node(Op::Column, 0, 0), node(Op::Literal, 0, 0), node(Op::InList, references + 1, 0)],
        args: std::iter::once(0).chain((0..references).map(|_| 1)).collect(),
        columns: vec!["c0".to_owned()],
        literals: vec![Scalar::Text("x".repeat(256 * 1024))],
        names: Vec::new(),
        roots: vec![2],
    }
}

fn read(wishes: Vec<wire::Aggregate>, predicates: Arena) -> Result<usize, String> {
    let requests = wishes.into_iter().map(|agg| wire::Request { column: 0, agg }).collect();
    let requests = checked(wire::Plan { requests, predicates }, &columns(), Grants::default());
    requests.map(|requests| requests.len()).map_err(|fault| fault.to_string())
}

#[test]
fn conditions_are_counted_for_every_request_that_names_them() {
    let wishes = |count| vec![wire::Aggregate::CountWhere(0); count];
    // Each condition has 1,002 nodes and values.
    assert_eq!(read(wishes(65), list(1_000)), Ok(65));
    insta::assert_snapshot!(read(wishes(66), list(1_000)).unwrap_err(), @"returned an answer from `make-plan` that violates the contract: the conditions of the requests expand to more than 65536 nodes and values together");
    assert_eq!(read(wishes(4_096), list(1)), Ok(4_096));
}

#[test]
fn bins_quantiles_and_values_are_bounded_together() {
    let mut wishes = vec![wire::Aggregate::Histogram(1_000); 5];
    wishes.extend(vec![wire::Aggregate::TopK(979); 5]);
    let fractions: Vec<f64> = (0..100).map(|index| f64::from(index) / 100.0).collect();
    wishes.push(wire::Aggregate::Quantiles(fractions));
    wishes.push(wire::Aggregate::Histogram(5));
    assert_eq!(read(wishes.clone(), list(1)), Ok(12));
    wishes.push(wire::Aggregate::TopK(1));
    insta::assert_snapshot!(read(wishes, list(1)).unwrap_err(), @"returned an answer from `make-plan` that violates the contract: the bins, quantiles and values of the requests are more than 10000 together");
}
