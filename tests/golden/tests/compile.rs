//! Every file in `cases/` through resolve, plan, secure, lower and print, against its snapshot.

use terrane_golden_tests::case::{cases, models, stages};
use terrane_golden_tests::duckdb_profile;

#[test]
fn each_stage_makes_of_a_query_what_its_snapshot_says() {
    let (models, profile) = (models(), duckdb_profile());
    let cases = cases();
    assert!(cases.len() >= 346, "cases went missing");
    for case in cases {
        let model = &models[&case.project];
        let made = match &case.queries[..] {
            [query] => stages(model, &profile, query, &case.caller),
            queries => {
                let each =
                    queries.iter().map(|query| format!("## {query}\n{}", stages(model, &profile, query, &case.caller)));
                each.collect::<Vec<_>>().join("\n")
            }
        };
        insta::with_settings!({ description => case.about, omit_expression => true, snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(case.name.as_str(), made);
        });
    }
}
