//! Tests that the compiler's enums have the variants of the contract in the same order, because the host converts them
//! by position.

use std::fs;
use std::path::Path;

use terrane_compiler::sql::dialect_profile::Op;
use terrane_compiler::types::{Granularity, LogicalType};

/// Returns the cases of `enum <name>` in the contract.
fn cases(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/deps/types.wit");
    let text = fs::read_to_string(path).expect("the contract is there");
    let (_, rest) = text.split_once(&format!("enum {name} {{")).expect("the contract has the enum");
    let (body, _) = rest.split_once('}').expect("the enum ends");
    let lines = body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.map(|line| line.trim_end_matches(',').to_owned()).collect()
}

#[test]
fn operators_follow_the_order_of_the_contract() {
    let names: Vec<&str> = Op::ALL.iter().map(|op| op.name()).collect();
    assert_eq!(cases("op"), names);
}

#[test]
fn granularities_follow_the_order_of_the_contract() {
    let names: Vec<&str> = Granularity::ALL.iter().map(|granularity| granularity.as_str()).collect();
    assert_eq!(cases("granularity"), names);
}

#[test]
fn types_follow_the_order_of_the_contract() {
    let names = LogicalType::ALL.map(|ty| format!("{ty:?}").to_lowercase());
    let cases: Vec<String> = cases("logical-type").iter().map(|case| case.replace('-', "")).collect();
    assert_eq!(cases, names);
}
