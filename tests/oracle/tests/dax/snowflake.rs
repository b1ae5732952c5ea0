//! DAX queries over tables that join further tables, with answers that were computed by hand.

use serde_json::json;
use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::answers::Suite;
use terrane_oracle_tests::dax::run::rows;
use terrane_oracle_tests::hooks::WorldHooks;
use terrane_oracle_tests::product::Product;

use crate::assert_answers;

#[test]
fn rows_restrict_the_tables_on_their_one_side() {
    let product = Product::start(settings()).unwrap();
    let suite = Suite::snowflake("TIMESTAMP");
    suite.statements.iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let served = product.serve_tree(&suite.tree, WorldHooks::default()).unwrap();
    assert_answers(&served, &suite);
    // A BLANK date plus a number of days is a date.
    let day = "EVALUATE {CALCULATE(MAX(orders[day]), orders[id] = 99) + 7}";
    let answer = served.run_dax(day).unwrap();
    assert!(rows(&answer)[0][0].as_str().unwrap().starts_with("1900-01-06"), "{answer}");
    for (query, part) in [
        ("EVALUATE {DATE(-1, 1, 1)}", "date out of range"),
        (
            "EVALUATE CALCULATETABLE(SUMMARIZE(orders, regions[label]), USERELATIONSHIP(orders[payer_id], customers[id]))",
            "USERELATIONSHIP for a column of a table behind the joined table",
        ),
        (
            "EVALUATE ADDCOLUMNS(customers, \"n\", CALCULATE([region_count], ALL(regions[label])))",
            "a filter by rows of a table on the many side",
        ),
    ] {
        let error = served.run_dax(query).unwrap_err();
        assert!(error.contains(part), "{query}: {error}");
    }
}

/// Filters of regions reach orders through the payer, who is the joined customer. An order without a payer belongs to
/// the BLANK region.
#[test]
fn filters_behind_the_joined_table_follow_its_relationship() {
    let product = Product::start(settings()).unwrap();
    let suite = Suite::snowflake("TIMESTAMP");
    suite.statements.iter().for_each(|statement| _ = product.execute(statement).unwrap());
    product.execute("INSERT INTO sales VALUES (5, 1, NULL, '2024-06-01 00:00:00', 3)").unwrap();
    let served = product.serve_tree(&suite.tree, WorldHooks::default()).unwrap();
    for (query, expected) in [
        (
            "EVALUATE SUMMARIZECOLUMNS(regions[label], \"n\", [order_count], \"p\", CALCULATE([order_count], \
             USERELATIONSHIP(orders[payer_id], customers[id]))) ORDER BY regions[label]",
            json!([[null, null, 1.0], ["America", 3.0, 3.0], ["Asia", null, 1.0], ["Europe", 2.0, null]]),
        ),
        ("EVALUATE {CALCULATE([p], regions[label] <> \"America\")}", json!([[2.0]])),
        ("EVALUATE {CALCULATE([p], regions[label] = \"America\", customers[segment] = \"corp\")}", json!([[1.0]])),
        ("EVALUATE {CALCULATE([p], FILTER(regions, regions[code] <> \"US\"))}", json!([[1.0]])),
        ("EVALUATE {CALCULATE([p], TREATAS({BLANK()}, regions[label]))}", json!([[1.0]])),
        (
            "EVALUATE ADDCOLUMNS(regions, \"p\", [p]) ORDER BY regions[code]",
            json!([["AF", null, null], ["AP", "Asia", 1.0], ["EU", "Europe", null], ["US", "America", 3.0]]),
        ),
    ] {
        let measure =
            "DEFINE MEASURE orders[p] = CALCULATE([order_count], USERELATIONSHIP(orders[payer_id], customers[id]))";
        let answer = served.run_dax(&format!("{measure} {query}")).unwrap_or_else(|error| panic!("{query}: {error}"));
        assert_eq!(json!(rows(&answer)), expected, "{query}");
    }
}
