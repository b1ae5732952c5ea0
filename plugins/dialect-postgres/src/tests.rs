//! Runs the files in `cases/`. To add a case, add a line to a file.

use terrane_sdk::dialect::case_files;

use super::*;

#[test]
fn native_types_become_logical_ones() {
    case_files::check_types::<Postgres>(include_str!("../cases/map-types.txt"));
}

#[test]
fn errors_are_sorted_and_never_repeat_the_warehouse() {
    case_files::check_errors::<Postgres>(include_str!("../cases/errors.txt"));
}

#[test]
fn manifest_matches_the_component() {
    case_files::check_manifest::<Postgres>(include_str!("../plugin.toml"));
}
