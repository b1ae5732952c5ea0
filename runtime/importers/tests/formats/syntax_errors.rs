//! Tests imports of files with syntax errors. Each file that was not read has findings at the places of its errors,
//! also if no file of the folder was read.

use terrane_compiler::diagnostic::Code;
use terrane_importers::Format;

use crate::imported::Imported;

/// A file, and the line and the column of its first syntax error: the opening bracket or quote if
/// it is not closed.
type Broken = (&'static str, &'static str, (u32, u32));

const CUBE: &[Broken] = &[
    ("a.yml", "cubes:\n  - name: a\n    sql_table: [x\n", (3, 16)),
    ("b.js", "cube('b', {\n  sql_table: `b`,\n  joins { }\n});\n", (3, 9)),
    ("c/c.yml", "cubes:\n  {% for x in y %}\n  - name: c\n", (2, 3)),
];
const DBT: &[Broken] = &[
    ("models/a.yml", "semantic_models:\n  - name: a\n    model: \"ref('a')\n", (3, 12)),
    ("models/b.yml", "metrics:\n  - name: b\n   type: simple\n", (3, 4)),
];
const LOOKML: &[Broken] = &[
    ("a.view.lkml", "view: a {\n  dimension: id { sql: ${TABLE}.id }\n}\n", (2, 23)),
    ("b.view.lkml", "view: b {\n  measure count { type: count }\n}\n", (2, 11)),
];

#[test]
fn every_file_with_a_syntax_error_is_reported() {
    for (format, broken, readable) in [
        (Format::Cube, CUBE, ("ok.yml", "cubes: [{name: ok, sql_table: t, measures: [{name: count, type: count}]}]")),
        (
            Format::Dbt,
            DBT,
            ("ok.yml", "semantic_models: [{name: ok, model: \"ref('ok')\", entities: [{name: id, type: primary}]}]"),
        ),
        (Format::LookMl, LOOKML, ("ok.view.lkml", "view: ok { measure: count { type: count } }")),
    ] {
        for has_readable in [false, true] {
            let mut files: Vec<(&str, &str)> = broken.iter().map(|(path, text, _)| (*path, *text)).collect();
            files.extend(has_readable.then_some(readable));
            let imported = Imported::of(format, &files);
            assert_eq!(imported.report.counts.cubes, usize::from(has_readable), "{format:?}");
            for (path, _, place) in broken {
                let is_here = |code: Code, file: &str| code == Code::NotRead && file == *path;
                let found =
                    imported.report.findings.iter().filter_map(|finding| Some((finding, finding.span.as_ref()?)));
                let found: Vec<_> = found.filter(|(finding, span)| is_here(finding.code, &span.file)).collect();
                let places: Vec<(u32, u32)> = found.iter().map(|(_, span)| (span.line, span.column)).collect();
                assert_eq!(places, [*place], "{format:?} {path}: {:#?}", imported.report.findings);
                assert!(found[0].0.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "{path}");
                assert!(imported.report.tree.files.contains_key(*path), "{path}: findings show the line");
            }
        }
    }
}

/// A format, the name of a file, its text, and the line and the column of each error.
type FileWithErrors = (Format, &'static str, &'static str, &'static [(u32, u32)]);

/// A file of each format, and the places of its syntax errors.
const SEVERAL: &[FileWithErrors] = &[
    (
        Format::Cube,
        "a.yml",
        "cubes:\n  - name: a\n    sql_table: [x\n  - name: b\n    sql: \"open\n  - name: c\n    sql_table: c\n  - name: d\n   sql_table: d\n",
        &[(3, 16), (5, 10), (9, 4)],
    ),
    (
        Format::Dbt,
        "models/a.yml",
        "semantic_models:\n  - name: a\n    model: \"ref('a')\nmetrics:\n  - name: b\n   type: simple\n",
        &[(3, 12), (6, 4)],
    ),
    (
        Format::LookMl,
        "a.view.lkml",
        "view: a {\n  dimension: id { sql: ${TABLE}.id }\n  measure: count { type: }\n}\nview: b {\n  dimension: x { y }\n}\n",
        &[(2, 23), (3, 26), (6, 20)],
    ),
];

#[test]
fn every_syntax_error_of_a_file_is_reported() {
    for (format, path, text, places) in SEVERAL {
        let imported = Imported::of(*format, &[(path, text)]);
        let spans = imported.report.findings.iter().filter_map(|finding| finding.span.as_ref());
        let found: Vec<(u32, u32)> = spans.map(|span| (span.line, span.column)).collect();
        assert_eq!(found, *places, "{format:?}: {:#?}", imported.report.findings);
        assert!(imported.report.findings.iter().all(|finding| finding.code == Code::NotRead));
    }
}
