//! DAX queries over tables that join further tables, with answers that were computed by hand.

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
            "EVALUATE SUMMARIZECOLUMNS(regions[label], \"n\", CALCULATE([order_count], \
             USERELATIONSHIP(orders[payer_id], customers[id])))",
            "USERELATIONSHIP for a table behind the joined table",
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
