//! Every file in `cases/` through resolve, plan, secure, lower and print, against its snapshot.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::path::Path;

use terrane_golden_tests::case::{model, stages};
use terrane_golden_tests::duckdb_profile;

#[test]
fn each_stage_makes_of_a_query_what_its_snapshot_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let model = model(&read("projects/shop.yml"), &read("projects/shop.types.yml"));
    let profile = duckdb_profile();
    let mut names: Vec<String> = std::fs::read_dir(root.join("cases"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| file.strip_suffix(".yml").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 60, "cases went missing");
    for name in names {
        let case: serde_json::Value = serde_saphyr::from_str(&read(&format!("cases/{name}.yml"))).unwrap();
        let about = case["about"].as_str().unwrap();
        insta::with_settings!({ description => about, omit_expression => true, snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name.as_str(), stages(&model, &profile, &case["query"], &case["as"]));
        });
    }
}
