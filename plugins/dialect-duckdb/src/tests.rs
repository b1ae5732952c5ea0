//! Runs the files in `cases/`: a new case is a new line, no Rust.

use super::*;

/// The lines `left = right` of a case file.
fn cases(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once('=').map(|(left, right)| (left.trim(), right.trim())).unwrap())
}

/// `LogicalType::TimestampTz` as the contract writes it.
fn kebab(name: &str) -> String {
    let name = name.rsplit("::").next().unwrap();
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[test]
fn native_types_become_logical_ones() {
    for (native, expected) in cases(include_str!("../cases/map-types.txt")) {
        assert_eq!(kebab(&format!("{:?}", DuckDb::map_type(native))), expected, "{native}");
    }
}

#[test]
fn errors_are_sorted_and_never_repeat_the_warehouse() {
    for (class, message) in cases(include_str!("../cases/errors.txt")) {
        let classified = DuckDb::classify_error(&WarehouseError { code: String::new(), message: message.to_owned() });
        assert_eq!(kebab(&format!("{:?}", classified.class)), class, "{message}");
        assert!(!classified.public_message.contains("secret"), "{message}");
    }
}

#[test]
fn the_manifest_says_who_the_component_says_it_is() {
    let manifest = include_str!("../plugin.toml");
    for (key, value) in [
        ("id", DuckDb::INFO.id),
        ("version", DuckDb::INFO.version),
        ("display_name", DuckDb::INFO.display_name),
        ("api", terrane_sdk::API),
    ] {
        assert!(manifest.contains(&format!("{key} = \"{value}\"\n")), "{key}");
    }
}
