//! The reference of projects, `PROJECT.md`, holds every key that a file may have, and no other.

use super::{LISTS, cubes, metrics, policies, sources};

/// The text below a heading, up to the next one.
fn section(heading: &str) -> &'static str {
    let reference = include_str!("../../../PROJECT.md");
    let line = format!("{heading}\n");
    let rest = reference.strip_prefix(&*line).or_else(|| Some(reference.split_once(&format!("\n{line}"))?.1));
    let rest = rest.unwrap_or_else(|| panic!("no `{heading}`"));
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

fn up_to_subheading(section: &'static str) -> &'static str {
    section.split_once("\n### ").map_or(section, |(section, _)| section)
}

/// The names in the first cells of a section's tables.
fn first_cells(section: &str) -> Vec<&str> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|line| line.split('|').nth(1));
    cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim().trim_matches('`')).collect()
}

#[test]
fn every_key_is_documented() {
    for (heading, keys) in [
        ("## Sources", sources::SOURCE),
        ("## Sources", sources::TABLE),
        ("## Sources", sources::COLUMN),
        ("## Cubes", cubes::CUBE),
        ("### Measures", cubes::MEASURE),
        ("### Dimensions", cubes::DIMENSION),
        ("### Joins", cubes::JOIN),
        ("### Segments", cubes::SEGMENT),
        ("### Pre-aggregations", cubes::PRE_AGGREGATION),
        ("## Metrics", metrics::METRIC),
        ("## Policies", policies::POLICY),
        ("## Policies", policies::WHEN),
        ("# The project", LISTS),
    ] {
        let text = up_to_subheading(section(heading));
        let missing: Vec<_> = keys
            .iter()
            .filter(|key| !text.contains(&format!("`{key}`")) && !text.contains(&format!("`{key}:`")))
            .collect();
        assert!(missing.is_empty(), "`{heading}` of PROJECT.md does not name {missing:?}");
    }
}

#[test]
fn every_word_is_documented() {
    let words = [
        ("### Measures", cubes::MEASURE_TYPES.iter().map(|(word, _)| *word).collect::<Vec<_>>()),
        ("### Dimensions", cubes::DIMENSION_TYPES.iter().map(|(word, _)| *word).collect()),
        ("### Dimensions", cubes::GRANULARITIES.iter().map(|(word, _)| *word).collect()),
        ("### Joins", cubes::RELATIONSHIPS.iter().map(|(word, _)| *word).collect()),
        ("## Metrics", metrics::KINDS.iter().map(|(word, _)| *word).collect()),
    ];
    for (heading, words) in words {
        let text = up_to_subheading(section(heading));
        for word in words {
            assert!(text.contains(&format!("`{word}`")), "`{heading}` of PROJECT.md does not name `{word}`");
        }
    }
}

#[test]
fn what_is_documented_is_read() {
    let types = cubes::MEASURE_TYPES.iter().map(|(word, _)| *word);
    let measures: Vec<&str> = cubes::MEASURE.iter().copied().chain(types).collect();
    for (heading, keys) in [
        ("## Sources", sources::SOURCE),
        ("## Cubes", cubes::CUBE),
        ("### Measures", measures.as_slice()),
        ("### Dimensions", cubes::DIMENSION),
        ("### Joins", cubes::JOIN),
        ("### Segments", cubes::SEGMENT),
        ("## Metrics", metrics::METRIC),
    ] {
        for name in first_cells(up_to_subheading(section(heading))) {
            assert!(keys.contains(&name), "`{heading}` of PROJECT.md names `{name}`, which nothing reads");
        }
    }
}
