//! A project in which tables join further tables, and queries over it with their answers.

/// A project in which customers join regions, and orders join customers twice and a table of dates.
pub(super) const CUBES: &str = r#"
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

/// Returns the statements that create the tables. `time` is the type of local times in the warehouse.
pub(super) fn statements(time: &str) -> Vec<String> {
    let tables = [
        ("areas", "code VARCHAR(20), label VARCHAR(20)".to_owned(), AREAS),
        ("buyers", "id INTEGER, region_code VARCHAR(20), segment VARCHAR(20)".to_owned(), BUYERS),
        ("days", format!("day {time}, year INTEGER"), DAYS),
        ("sales", format!("id INTEGER, customer_id INTEGER, payer_id INTEGER, day {time}, amount INTEGER"), SALES),
    ];
    let of_table = |(table, columns, rows): (&str, String, &str)| {
        [
            format!("DROP TABLE IF EXISTS {table}"),
            format!("CREATE TABLE {table} ({columns})"),
            format!("INSERT INTO {table} VALUES {rows}"),
        ]
    };
    tables.into_iter().flat_map(of_table).collect()
}

const AREAS: &str = "('EU', 'Europe'), ('US', 'America'), ('AP', 'Asia'), ('AF', NULL)";
const BUYERS: &str = "(1, 'EU', 'retail'), (2, 'US', 'retail'), (3, 'US', 'corp'), (4, 'AP', NULL), (5, NULL, 'corp')";
const DAYS: &str = "('2023-01-15 00:00:00', 2023), ('2023-06-01 00:00:00', 2023), ('2024-01-15 00:00:00', 2024), \
                    ('2024-06-01 00:00:00', 2024)";
const SALES: &str = "(1, 1, 2, '2023-01-15 00:00:00', 10), (2, 2, 3, '2023-06-01 00:00:00', 20), \
                     (3, 2, 2, '2024-01-15 00:00:00', 5), (4, 3, 4, '2024-06-01 00:00:00', 7)";

/// Queries over [`CUBES`] with answers that were computed by hand.
pub(super) const ANSWERS: &[(&str, &str)] = &[
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
