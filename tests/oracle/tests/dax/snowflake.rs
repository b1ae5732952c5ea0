//! DAX queries over tables that join further tables, with answers that were computed by hand.

use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::run::rows;
use terrane_oracle_tests::dax::star::{Policies, source_tree};
use terrane_oracle_tests::hooks::WorldHooks;
use terrane_oracle_tests::product::Product;

use crate::assert_answers;

/// A project in which customers join regions, and orders join customers twice and a table of dates.
const CUBES: &str = r#"
cubes:
  - name: regions
    sql_table: areas
    dimensions:
      - {name: code, type: string, sql: code, primary_key: true}
      - {name: label, type: string, sql: label}
    measures: [{name: region_count, type: count}]
  - name: customers
    sql_table: buyers
    joins:
      - {name: regions, relationship: many_to_one, sql: "{customers}.region_code = {regions}.code"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region_code, type: string, sql: region_code}
      - {name: segment, type: string, sql: segment}
    measures: [{name: customer_count, type: count}]
  - name: calendar
    sql_table: days
    dimensions:
      - {name: day, type: time, sql: day, timezone: none, primary_key: true}
      - {name: year, type: number, sql: year}
  - name: orders
    sql_table: sales
    joins:
      - {name: customers, relationship: many_to_one, sql: "{orders}.customer_id = {customers}.id"}
      - {name: payer, cube: customers, relationship: many_to_one, sql: "{orders}.payer_id = {payer}.id"}
      - {name: calendar, relationship: many_to_one, sql: "{orders}.day = {calendar}.day"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: customer_id, type: number, sql: customer_id}
      - {name: payer_id, type: number, sql: payer_id}
      - {name: day, type: time, sql: day, timezone: none}
      - {name: amount, type: number, sql: amount}
    measures:
      - {name: order_count, type: count}
      - {name: revenue, type: sum, sql: amount}
"#;

const DATA: &[&str] = &[
    "CREATE TABLE areas AS SELECT * FROM (VALUES ('EU', 'Europe'), ('US', 'America'), ('AP', 'Asia'), ('AF', NULL)) \
     AS areas(code, label)",
    "CREATE TABLE buyers AS SELECT * FROM (VALUES (1, 'EU', 'retail'), (2, 'US', 'retail'), (3, 'US', 'corp'), \
     (4, 'AP', NULL), (5, NULL, 'corp')) AS buyers(id, region_code, segment)",
    "CREATE TABLE days AS SELECT day::TIMESTAMP AS day, year(day) AS year FROM (VALUES (DATE '2023-01-15'), \
     (DATE '2023-06-01'), (DATE '2024-01-15'), (DATE '2024-06-01')) AS days(day)",
    "CREATE TABLE sales AS SELECT id, customer_id, payer_id, day::TIMESTAMP AS day, amount FROM (VALUES \
     (1, 1, 2, DATE '2023-01-15', 10), (2, 2, 3, DATE '2023-06-01', 20), (3, 2, 2, DATE '2024-01-15', 5), \
     (4, 3, 4, DATE '2024-06-01', 7)) AS sales(id, customer_id, payer_id, day, amount)",
];

/// Queries over [`CUBES`] with answers that were computed by hand.
const ANSWERS: &[(&str, &str)] = &[
    // A row of customers restricts its region.
    (
        "EVALUATE SELECTCOLUMNS(VALUES(customers), \"id\", customers[id], \"n\", [region_count]) ORDER BY [id]",
        "[[1, 1], [2, 1], [3, 1], [4, 1], [5, null]]",
    ),
    (
        "EVALUATE SELECTCOLUMNS(customers, \"id\", customers[id], \"n\", [region_count]) ORDER BY [id]",
        "[[1, 1], [2, 1], [3, 1], [4, 1], [5, null]]",
    ),
    ("EVALUATE {CALCULATE([region_count], VALUES(customers))}", "[[3]]"),
    ("EVALUATE {CALCULATE([region_count], FILTER(VALUES(customers), customers[id] = 1))}", "[[1]]"),
    ("EVALUATE {CALCULATE([region_count], FILTER(customers, customers[segment] = \"retail\"))}", "[[2]]"),
    ("EVALUATE {COUNTROWS(FILTER(ALL(customers), [region_count] = 1))}", "[[4]]"),
    ("EVALUATE {COUNTROWS(TOPN(2, DISTINCT(customers), [region_count], DESC))}", "[[4]]"),
    ("EVALUATE {SUMX(orders, [customer_count])}", "[[4]]"),
    ("EVALUATE {CALCULATE([customer_count], orders)}", "[[3]]"),
    // A filter of columns does not restrict the region.
    ("EVALUATE {CALCULATE([region_count], VALUES(customers[id]))}", "[[4]]"),
    // A row of orders or of all customers replaces the filters around it.
    (
        "EVALUATE ADDCOLUMNS(VALUES(customers[segment]), \"n\", SUMX(orders, [order_count])) ORDER BY customers[segment]",
        r#"[[null, 4], ["corp", 4], ["retail", 4]]"#,
    ),
    ("DEFINE VAR t = customers EVALUATE {CALCULATE(SUMX(t, [revenue]), customers[segment] = \"corp\")}", "[[42]]"),
    ("EVALUATE {CALCULATE(SUMX(ALL(customers), [revenue]), regions[label] = \"Asia\")}", "[[42]]"),
    // Without the key, a row still has its other columns.
    (
        "EVALUATE SELECTCOLUMNS(customers, \"id\", customers[id], \"s\", SUMX(ALL(customers[id]), [order_count]), \
         \"d\", CALCULATE([order_count], ALL(customers[id])), \
         \"e\", CALCULATE([order_count], ALLEXCEPT(customers, customers[region_code]))) ORDER BY [id]",
        "[[1, 1, 1, 1], [2, 2, 2, 3], [3, 1, 1, 3], [4, null, null, null], [5, null, null, null]]",
    ),
    // Functions of time see the current row, and replace the filters of the whole table of dates.
    (
        "EVALUATE ADDCOLUMNS(VALUES(calendar[year]), \"y\", TOTALYTD([revenue], calendar[day])) ORDER BY calendar[year]",
        "[[2023, 30], [2024, 12]]",
    ),
    (
        "EVALUATE SELECTCOLUMNS(VALUES(calendar[day]), \"y\", TOTALYTD([revenue], calendar[day])) ORDER BY [y]",
        "[[5], [10], [12], [30]]",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(calendar[year], \"p\", CALCULATE([revenue], SAMEPERIODLASTYEAR(calendar[day])))",
        "[[2024, 30]]",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(calendar[year], \"p\", CALCULATE([revenue], calendar[day] = DATE(2023, 1, 15))) \
         ORDER BY calendar[year]",
        "[[2023, 10], [2024, 10]]",
    ),
    ("EVALUATE {ROUND(1.005, 2) * 100, ROUND(5.015, 2) * 100, ROUND(0.285, 2) * 100}", "[[101], [502], [29]]"),
    (
        "EVALUATE ADDCOLUMNS(EXCEPT(VALUES(customers[segment]), {\"corp\"}), \"n\", [order_count]) ORDER BY customers[segment]",
        r#"[[null, null], ["retail", 3]]"#,
    ),
    ("EVALUATE {CALCULATE([order_count], VAR t = FILTER(orders, orders[amount] > 6) RETURN t)}", "[[3]]"),
    (
        "EVALUATE ADDCOLUMNS(VALUES(customers[segment]), \"n\", COUNTROWS(RELATEDTABLE(customers))) ORDER BY customers[segment]",
        r#"[[null, 1], ["corp", 2], ["retail", 2]]"#,
    ),
    (
        "EVALUATE CALCULATETABLE(SUMMARIZE(orders, customers[segment], \"n\", [order_count]), \
         USERELATIONSHIP(orders[payer_id], customers[id])) ORDER BY customers[segment]",
        r#"[[null, 1], ["corp", 1], ["retail", 2]]"#,
    ),
    (
        "EVALUATE CALCULATETABLE(SELECTCOLUMNS(orders, \"id\", orders[id], \"s\", RELATED(customers[segment])), \
         USERELATIONSHIP(orders[payer_id], customers[id])) ORDER BY [id]",
        r#"[[1, "retail"], [2, "corp"], [3, "retail"], [4, null]]"#,
    ),
];

#[test]
fn rows_restrict_the_tables_on_their_one_side() {
    let product = Product::start(settings()).unwrap();
    DATA.iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let mut tree = source_tree(&Policies::default());
    tree.files.insert("cubes/star.yml".into(), CUBES.into());
    let served = product.serve_tree(&tree, WorldHooks::default()).unwrap();
    assert_answers(&served, ANSWERS);
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
