//! Tests that `project.md` and `policies.md` document every key that a file may have, and no other.

use super::keys::{Key, Kind, MappingKeys, WordList as _};
use super::{FILE, Inputs, SourceTree, cube_keys as cubes, metrics, policies, read, settings, sources};

const PAGES: [&str; 2] =
    [include_str!("../../../docs/reference/project.md"), include_str!("../../../docs/reference/policies.md")];

/// Returns the text below a heading, up to the next one.
fn section(heading: &str) -> &'static str {
    let line = format!("{heading}\n");
    let below =
        |page: &'static str| page.strip_prefix(&*line).or_else(|| Some(page.split_once(&format!("\n{line}"))?.1));
    let rest = PAGES.iter().find_map(|page| below(page)).unwrap_or_else(|| panic!("no `{heading}`"));
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

fn up_to_subheading(section: &'static str) -> &'static str {
    section.split_once("\n### ").map_or(section, |(section, _)| section)
}

/// Returns the names in the first cells of a section's tables.
fn first_cells(section: &str) -> Vec<&str> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|line| line.split('|').nth(1));
    cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim().trim_matches('`')).collect()
}

#[test]
fn every_key_is_documented() {
    let shapes: [(&str, &MappingKeys); 13] = [
        ("## Sources", &sources::SOURCE),
        ("## Sources", &sources::TABLE),
        ("## Sources", &sources::COLUMN),
        ("## Cubes", &cubes::CUBE),
        ("### Measures", &cubes::MEASURE),
        ("### Dimensions", &cubes::DIMENSION),
        ("### Joins", &cubes::JOIN),
        ("### Segments", &cubes::SEGMENT),
        ("### Pre-aggregations", &cubes::PRE_AGGREGATION),
        ("## Metrics", &metrics::METRIC),
        ("# Policies", &policies::POLICY),
        ("## Callers that a policy applies to", &policies::WHEN),
        ("# The project", &FILE),
    ];
    for (heading, shape) in shapes {
        let text = up_to_subheading(section(heading));
        let missing: Vec<_> = shape
            .names()
            .filter(|key| !text.contains(&format!("`{key}`")) && !text.contains(&format!("`{key}:`")))
            .collect();
        assert!(missing.is_empty(), "`{heading}` of project.md does not name {missing:?}");
    }
}

#[test]
fn every_type_and_granularity_is_documented() {
    let words = [
        ("### Measures", cubes::MEASURE_TYPES.list.iter().map(|(word, _)| *word).collect::<Vec<_>>()),
        ("### Dimensions", cubes::DIMENSION_TYPES.list.iter().map(|(word, _)| *word).collect()),
        ("### Dimensions", cubes::GRANULARITIES.list.iter().map(|(word, _)| *word).collect()),
        ("### Joins", cubes::RELATIONSHIPS.list.iter().map(|(word, _)| *word).collect()),
        ("## Metrics", metrics::KINDS.list.iter().map(|(word, _)| *word).collect()),
    ];
    for (heading, words) in words {
        let text = up_to_subheading(section(heading));
        for word in words {
            assert!(text.contains(&format!("`{word}`")), "`{heading}` of project.md does not name `{word}`");
        }
    }
}

#[test]
fn documented_keys_are_read() {
    let shapes: [(&str, &MappingKeys); 7] = [
        ("## Sources", &sources::SOURCE),
        ("## Cubes", &cubes::CUBE),
        ("### Measures", &cubes::MEASURE),
        ("### Dimensions", &cubes::DIMENSION),
        ("### Joins", &cubes::JOIN),
        ("### Segments", &cubes::SEGMENT),
        ("## Metrics", &metrics::METRIC),
    ];
    for (heading, shape) in shapes {
        let mut keys: Vec<&str> = shape.names().collect();
        if heading == "### Measures" {
            keys.extend(cubes::MEASURE_TYPES.words());
        }
        for name in first_cells(up_to_subheading(section(heading))) {
            assert!(keys.contains(&name), "`{heading}` of project.md names `{name}`, which nothing reads");
        }
    }
}

/// Returns a mapping with its required keys and one more, as YAML on one line.
fn mapping(shape: &MappingKeys, more: &str) -> String {
    let is_there = |key: &&Key| key.is_required && !more.starts_with(&format!("{}:", key.name));
    let wanted = shape.keys.iter().filter(is_there).map(|key| format!("{}: {}", key.name, sound(&key.kind)));
    let one_of = shape.one_of.first().filter(|_| !shape.one_of.iter().any(|key| more.starts_with(&format!("{key}:"))));
    let one_of = one_of.and_then(|name| shape.key(name)).map(|key| format!("{}: {}", key.name, sound(&key.kind)));
    let parts: Vec<String> = wanted.chain(one_of).chain((!more.is_empty()).then(|| more.to_owned())).collect();
    format!("{{{}}}", parts.join(", "))
}

fn sound(kind: &Kind) -> String {
    match kind {
        Kind::Word(words) | Kind::Words(words) => words.words()[0].to_owned(),
        Kind::Boolean => "true".to_owned(),
        Kind::Mapping(shape) => mapping(shape, ""),
        Kind::List(_) | Kind::ListOrNames(_) | Kind::WordsOrMappings(..) => "[]".to_owned(),
        Kind::ValuesByName | Kind::WordsByName(..) | Kind::ByName => "{}".to_owned(),
        Kind::Name | Kind::Text | Kind::Texts | Kind::Values | Kind::Anything => "a".to_owned(),
    }
}

/// Returns a value that readers of this kind must reject, or `None` if the kind accepts any value.
fn unsound(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::Name | Kind::Text | Kind::Boolean => Some("[[]]"),
        Kind::Word(_) => Some("no_such_word"),
        Kind::Words(_) => Some("[no_such_word]"),
        Kind::Texts | Kind::Values => Some("[[[]]]"),
        Kind::Mapping(_) | Kind::List(_) | Kind::ListOrNames(_) | Kind::WordsOrMappings(..) => Some("no_list"),
        Kind::ValuesByName | Kind::WordsByName(..) | Kind::ByName => Some("no_mapping"),
        Kind::Anything => None,
    }
}

/// Visits every key of a shape and of the shapes below it. `around` returns a file that contains the mapping.
fn each_key(shape: &'static MappingKeys, around: &dyn Fn(&str) -> String, check: &mut dyn FnMut(&Key, &str, &str)) {
    for key in shape.keys {
        if let Some(wrong) = unsound(&key.kind) {
            check(key, &around(&mapping(shape, &format!("{}: {wrong}", key.name))), wrong);
        }
        let within = |inner: &str| match &key.kind {
            Kind::List(_) | Kind::ListOrNames(_) | Kind::WordsOrMappings(..) => {
                around(&mapping(shape, &format!("{}: [{inner}]", key.name)))
            }
            Kind::WordsByName(..) => around(&mapping(shape, &format!("{}: {{a: {inner}}}", key.name))),
            _ => around(&mapping(shape, &format!("{}: {inner}", key.name))),
        };
        match &key.kind {
            Kind::Mapping(inner)
            | Kind::List(inner)
            | Kind::ListOrNames(inner)
            | Kind::WordsOrMappings(_, inner)
            | Kind::WordsByName(_, inner) => {
                each_key(inner, &within, check);
            }
            _ => {}
        }
    }
}

/// Checks that the readers read the keys that the tables list and schemas describe.
#[test]
fn every_key_of_the_tables_is_read() {
    let mut count = 0;
    let mut check = |path: &str, key: &Key, text: &str, wrong: &str| {
        count += 1;
        let mut tree = SourceTree::default();
        tree.files.insert("service_project.yml".into(), "name: a\n".into());
        tree.files.insert(path.into(), text.into());
        let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
        let (definitions, mut diagnostics) = read(&tree, &inputs);
        // Only `build` checks the operator of a metric's filter.
        diagnostics.extend(crate::model::build(&definitions).1);
        let entry = format!("{}: {wrong}", key.name);
        let place = text.find(&entry).expect("the key is there") as u32 + 1;
        let is_reported = diagnostics
            .iter()
            .filter_map(|diagnostic| diagnostic.span.as_ref())
            .any(|span| &*span.file == path && (place..=place + entry.len() as u32).contains(&span.column));
        assert!(is_reported, "nothing reads `{}` in {text}: {diagnostics:?}", key.name);
    };
    each_key(&FILE, &|file: &str| file.to_owned(), &mut |key, text, wrong| check("cubes/a.yml", key, text, wrong));
    each_key(&settings::PROJECT, &|file: &str| file.to_owned(), &mut |key, text, wrong| {
        check(settings::FILE, key, text, wrong);
    });
    assert!(count > 70, "{count} keys are too few");
}
