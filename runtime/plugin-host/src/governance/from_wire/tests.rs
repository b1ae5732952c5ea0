//! The size limits of a verdict.

use terrane_compiler::types::LogicalType;

use super::*;
use crate::bindings::ir::{Node, Op, Scalar};
use crate::wire::values::logical_type;

fn permit_with(audit: Vec<(String, String)>, warnings: Vec<String>) -> Result<Decision, String> {
    let (row_filters, masks) = (Vec::new(), Vec::new());
    let obligations =
        wire::Obligations { row_filters, masks, max_rows: None, require_time_filter: false, warnings, audit };
    decision(wire::Decision::Permit(obligations))
}

#[test]
fn audit_entries_of_a_verdict_are_bounded_together() {
    let entries = |count: usize, bytes: usize| vec![("key_".to_owned(), "x".repeat(bytes)); count];
    assert!(permit_with(entries(64, 60), Vec::new()).is_ok());
    insta::assert_snapshot!(permit_with(entries(64, 61), Vec::new()).unwrap_err(), @"the audit entries are 4160 bytes together; at most 4096");
    assert!(permit_with(entries(1, 4_092), Vec::new()).is_ok());
    insta::assert_snapshot!(permit_with(entries(1, 4_093), Vec::new()).unwrap_err(), @"the audit entries are 4097 bytes together; at most 4096");
    insta::assert_snapshot!(permit_with(entries(65, 1), Vec::new()).unwrap_err(), @"there are 65 audit entries; at most 64");
}

#[test]
fn warnings_are_bounded_in_length_and_number() {
    let warnings = |count: usize, bytes: usize| permit_with(Vec::new(), vec!["x".repeat(bytes); count]);
    assert!(warnings(32, 1_024).is_ok());
    insta::assert_snapshot!(warnings(33, 1).unwrap_err(), @"there are 33 warnings; at most 32");
    insta::assert_snapshot!(warnings(1, 1_025).unwrap_err(), @"a warning is 1025 bytes; at most 1024");
}

#[test]
fn row_filter_has_one_condition() {
    let filtered = |roots: Vec<u32>| {
        let literal = Node { op: Op::Literal, ty: logical_type(LogicalType::Boolean), first: 0, count: 0, aux: 0 };
        let mut predicate = crate::governance::to_wire::empty_arena();
        (predicate.nodes, predicate.literals, predicate.roots) = (vec![literal], vec![Scalar::Boolean(false)], roots);
        let row_filters = vec![wire::RowFilter { cube: "orders".to_owned(), predicate }];
        let (masks, warnings, audit) = (Vec::new(), Vec::new(), Vec::new());
        decision(wire::Decision::Permit(wire::Obligations {
            row_filters,
            masks,
            max_rows: None,
            require_time_filter: false,
            warnings,
            audit,
        }))
    };
    assert!(filtered(vec![0]).is_ok());
    assert!(filtered(Vec::new()).unwrap_err().contains("0 roots"));
    assert!(filtered(vec![0, 0]).unwrap_err().contains("2 roots"));
}
