//! Breaking changes of certified artifacts against an export.

use terrane_app::governance::{RecordSet, breaking_changes, export_records};
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_conformance_tests::project;

use crate::{House, STOCK, world};

/// Returns the records after measures, and a metric, were certified.
async fn certified() -> RecordSet {
    let house = House::new().await;
    house.certified("stock.pieces").await;
    house.certified("orders.average_order").await;
    let submitted = house.step("writer", "submit", "orders.count", serde_json::json!({"notes": "x"})).await;
    assert_eq!(submitted.status, 200);
    export_records(&*house.store).await.unwrap()
}

/// Compares the project with the cube `stock` in a different form.
fn changes(set: &RecordSet, stock: &str) -> Vec<Diagnostic> {
    let mut files = world().files;
    files.insert("cubes/stock.yml".to_owned(), stock.to_owned());
    let changes = breaking_changes(set, &project::snapshot_with_files(&files));
    assert_eq!(changes.compared, 2, "a submitted artifact is not compared");
    changes.diagnostics
}

#[tokio::test]
async fn only_breaking_changes_are_reported() {
    let set = certified().await;
    for unchanged in [
        STOCK.to_owned(),
        STOCK.replace("All pieces.", "Every piece."),
        STOCK.replace("meta: {owner: ada}", "title: Pieces"),
        format!("{STOCK}      - {{name: heaviest, type: max, sql: weight}}\n"),
        STOCK.replace("name: keeper, type", "name: owner, type"),
        format!("# A line that moves all places.\n{STOCK}"),
    ] {
        assert_eq!(changes(&set, &unchanged), [], "{unchanged}");
    }
    let nothing = breaking_changes(&RecordSet::default(), &project::snapshot());
    assert_eq!((nothing.compared, nothing.diagnostics.len()), (0, 0));
}

#[tokio::test]
async fn changed_definition_is_reported_with_its_lines_and_place() {
    let set = certified().await;
    let changed = changes(&set, &STOCK.replace("sql: pieces", "sql: pieces * weight"));
    let [changed] = changed.as_slice() else { panic!("{changed:?}") };
    assert_eq!((changed.code, changed.is_error()), (Code::CertifiedChanged, true));
    assert!(changed.message.contains("`stock.pieces`"), "{changed:?}");
    let lines: Vec<&str> = changed.message.lines().skip(1).collect();
    assert_eq!(lines, ["  - sql: pieces", "  + sql: pieces * weight"]);
    let span = changed.span.clone().unwrap();
    assert_eq!((&*span.file, span.line), ("cubes/stock.yml", 9));
    assert!(changed.hint.is_some());
    // The rows below a measure are part of its definition.
    let moved = changes(&set, &STOCK.replace("raw.stock", "raw.stock_2024"));
    let lines: Vec<&str> = moved[0].message.lines().skip(1).collect();
    assert_eq!(lines, ["  - table: raw.stock", "  + table: raw.stock_2024"], "{moved:?}");
    let long: String = (0..40).map(|number| format!(" + c{number}\n        ")).collect();
    let long =
        changes(&set, &STOCK.replace("sql: pieces,", &format!("sql: \"pieces {}\",", long.replace('\n', "\\n"))));
    let lines: Vec<&str> = long[0].message.lines().collect();
    assert_eq!(lines.len(), 22, "{long:?}");
    // The last line counts the lines that are not shown.
    let more: String = lines[21].chars().filter(char::is_ascii_digit).collect();
    assert_eq!(more, "22", "{long:?}");
}

#[tokio::test]
async fn removed_and_renamed_artifacts_are_reported() {
    let set = certified().await;
    let renamed = changes(&set, &STOCK.replace("name: pieces, type", "name: items, type"));
    let [renamed] = renamed.as_slice() else { panic!("{renamed:?}") };
    assert_eq!(renamed.code, Code::CertifiedRenamed);
    let names: Vec<&str> = renamed.message.split('`').skip(1).step_by(2).collect();
    assert_eq!(names, ["stock.pieces", "stock.items"]);
    assert_eq!(renamed.span.as_ref().map(|span| span.line), Some(9));

    let other = STOCK.replace("name: pieces, type: sum, sql: pieces", "name: items, type: max, sql: pieces");
    let removed = changes(&set, &other);
    let [removed] = removed.as_slice() else { panic!("{removed:?}") };
    assert_eq!(removed.code, Code::CertifiedRemoved);
    assert!(removed.message.contains("`stock.pieces`"), "{removed:?}");
    assert_eq!(removed.span.as_ref().map(|span| span.line), Some(2), "the cube is its place");

    let mut files = world().files;
    files.remove("cubes/stock.yml");
    let gone = breaking_changes(&set, &project::snapshot_with_files(&files)).diagnostics;
    assert_eq!(
        gone.iter().map(|of| (of.code, of.span.is_some())).collect::<Vec<_>>(),
        [(Code::CertifiedRemoved, false)]
    );
}
