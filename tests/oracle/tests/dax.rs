//! DAX queries on DuckDB, compared with an evaluator that follows the definition of each function row by row.
//!
//! The model is a star of two facts and a table that they share, with nulls, orphans, ties and empty strings. The
//! evaluator knows no SQL and no plans: a filter context is a list of predicates over the columns of a fact's rows.
//! One file: the evaluator is read next to the queries that it judges, and has no other user.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::cmp::Ordering;

use serde_json::{Map, Value as Json, json};
use terrane_compiler::project::SourceTree;
use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::hooks::WorldHooks;
use terrane_oracle_tests::product::{Product, Served};
use terrane_oracle_tests::random::Random;

const PROJECT: &str = r#"
cubes:
  - name: customers
    sql_table: customers
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: credit, type: number, sql: credit}
    measures:
      - {name: total_credit, type: sum, sql: credit}
  - name: orders
    sql_table: orders
    joins:
      - {name: customers, relationship: many_to_one, sql: "{orders}.customer_id = {customers}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: status, type: string, sql: status}
      - {name: amount, type: number, sql: amount}
      - {name: is_gift, type: boolean, sql: is_gift}
      - {name: day, type: time, timezone: none, sql: day}
    measures:
      - {name: orders, type: count}
      - {name: revenue, type: sum, sql: amount}
      - {name: smallest, type: min, sql: amount}
  - name: refunds
    sql_table: refunds
    joins:
      - {name: customers, relationship: many_to_one, sql: "{refunds}.customer_id = {customers}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
    measures:
      - {name: refunded, type: sum, sql: amount}
"#;

/// Rows as objects; a missing value is null.
#[derive(Default)]
struct Data {
    customers: Vec<Json>,
    orders: Vec<Json>,
    refunds: Vec<Json>,
}

fn tables(product: &Product, data: &Data) {
    let run = |sql: &str| _ = product.execute(sql).unwrap();
    run("CREATE OR REPLACE TABLE customers (id INTEGER, region VARCHAR, credit INTEGER)");
    run("CREATE OR REPLACE TABLE orders (id INTEGER, customer_id INTEGER, status VARCHAR, amount DECIMAL(9, 2), \
         is_gift BOOLEAN, day DATE)");
    run("CREATE OR REPLACE TABLE refunds (id INTEGER, customer_id INTEGER, amount INTEGER)");
    for (table, rows, columns) in [
        ("customers", &data.customers, &["id", "region", "credit"][..]),
        ("orders", &data.orders, &["id", "customer_id", "status", "amount", "is_gift", "day"]),
        ("refunds", &data.refunds, &["id", "customer_id", "amount"]),
    ] {
        for row in rows {
            let values: Vec<String> = columns
                .iter()
                .map(|column| match &row[column] {
                    Json::String(text) => format!("'{}'", text.replace('\'', "''")),
                    Json::Null => "NULL".to_owned(),
                    other => other.to_string(),
                })
                .collect();
            run(&format!("INSERT INTO {table} VALUES ({})", values.join(", ")));
        }
    }
}

fn serve<'p>(product: &'p Product, data: &Data) -> Served<'p> {
    tables(product, data);
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: star\n".into());
    tree.files.insert("cubes/star.yml".into(), PROJECT.into());
    product.serve_tree(&tree, WorldHooks::default()).unwrap()
}

fn fixed() -> Data {
    let customer = |id: i64, region: Json, credit: i64| json!({"id": id, "region": region, "credit": credit});
    let order = |id: i64, customer: Json, status: Json, amount: Json, is_gift: Json, day: &str| json!({"id": id, "customer_id": customer, "status": status, "amount": amount, "is_gift": is_gift, "day": day});
    Data {
        customers: vec![
            customer(1, json!("US"), 100),
            customer(2, json!("US"), 50),
            customer(3, json!("EU"), 70),
            customer(4, Json::Null, 30),
            customer(5, json!("APAC"), 500),
        ],
        orders: vec![
            order(1, json!(1), json!("paid"), json!(10), json!(true), "2024-01-01"),
            order(2, json!(1), json!("paid"), json!(20.5), json!(false), "2024-01-31"),
            order(3, json!(3), json!("open"), json!(5), Json::Null, "2024-02-01"),
            order(4, json!(4), Json::Null, json!(7), json!(true), "2024-02-29"),
            order(5, Json::Null, json!("open"), Json::Null, json!(false), "2024-03-01"),
            order(6, json!(99), json!(""), json!(-3), Json::Null, "2023-12-31"),
        ],
        refunds: vec![
            json!({"id": 1, "customer_id": 1, "amount": 2}),
            json!({"id": 2, "customer_id": 99, "amount": 1}),
        ],
    }
}

/// Queries with answers that were computed by hand from the definitions.
const ANSWERS: &[(&str, &str)] = &[
    (
        "EVALUATE SUMMARIZECOLUMNS(customers[region], \"r\", [revenue], \"n\", [orders]) ORDER BY [r] DESC",
        r#"[["US", 30.5, 2], ["EU", 5.0, 1], [null, 4.0, 3]]"#,
    ),
    // The order without an amount has a group of its own, which is dropped: its only expression is BLANK.
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[id], \"r\", [revenue]) ORDER BY orders[id]",
        r#"[[1, 10.0], [2, 20.5], [3, 5.0], [4, 7.0], [6, -3.0]]"#,
    ),
    // BLANK stands between -3 and 5.
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[id], \"r\", [revenue], \"n\", [orders]) ORDER BY [r]",
        r#"[[6, -3.0, 1], [5, null, 1], [3, 5.0, 1], [4, 7.0, 1], [1, 10.0, 1], [2, 20.5, 1]]"#,
    ),
    // BLANK and "" are less than every other string; `<>` keeps BLANK.
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], FILTER(ALL(orders[status]), orders[status] <> \"paid\"), \"n\", [orders]) \
         ORDER BY orders[status]",
        r#"[[null, 1], ["", 1], ["open", 2]]"#,
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[id], FILTER(ALL(orders[status]), orders[status] = \"\"), \"n\", [orders]) ORDER BY orders[id]",
        "[[4, 1], [6, 1]]",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[id], FILTER(ALL(orders[amount]), orders[amount] < 6), \"n\", [orders]) ORDER BY orders[id]",
        "[[3, 1], [5, 1], [6, 1]]",
    ),
    // TREATAS compares strictly; the orders without a customer are those of the BLANK region.
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[id], TREATAS({\"EU\", BLANK()}, customers[region]), \"n\", [orders]) ORDER BY orders[id]",
        "[[3, 1], [4, 1], [5, 1], [6, 1]]",
    ),
    // A filter by the rows of a table leaves out rows of other tables without a partner.
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[id], FILTER(customers, customers[region] <> \"US\"), \"n\", [orders]) ORDER BY orders[id]",
        "[[3, 1], [4, 1]]",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(customers[region], \"a\", [revenue], \"b\", [refunded]) ORDER BY customers[region]",
        r#"[[null, 4.0, 1], ["EU", 5.0, null], ["US", 30.5, 2]]"#,
    ),
    ("EVALUATE DISTINCT(customers[region]) ORDER BY customers[region] DESC", r#"[["US"], ["EU"], ["APAC"], [null]]"#),
    ("EVALUATE VALUES(orders[status]) ORDER BY orders[status]", r#"[[null], [""], ["open"], ["paid"]]"#),
    ("EVALUATE {[revenue]}", "[[39.5]]"),
    ("EVALUATE ROW(\"a\", CALCULATE([revenue], orders[is_gift] = FALSE, orders[id] <> 2))", "[[2.0]]"),
    ("EVALUATE SUMMARIZECOLUMNS(\"r\", CALCULATE([revenue], orders[id] > 100))", "[]"),
    ("EVALUATE ROW(\"r\", CALCULATE([revenue], orders[id] > 100))", "[[null]]"),
    (
        "EVALUATE SELECTCOLUMNS(FILTER(orders, orders[day] >= dt\"2024-02-01\"), \"r\", RELATED(customers[region]), \"i\", orders[id]) \
         ORDER BY [i]",
        r#"[["EU", 3], [null, 4], [null, 5]]"#,
    ),
    (
        "EVALUATE TOPN(2, SUMMARIZECOLUMNS(orders[status], \"n\", [orders]), [n]) ORDER BY orders[status]",
        r#"[["open", 2], ["paid", 2]]"#,
    ),
    (
        "EVALUATE TOPN(3, SUMMARIZECOLUMNS(orders[status], \"n\", [orders]), [n]) ORDER BY orders[status]",
        r#"[[null, 1], ["", 1], ["open", 2], ["paid", 2]]"#,
    ),
    ("EVALUATE TOPN(0, SUMMARIZECOLUMNS(orders[status], \"n\", [orders]), [n])", "[]"),
    (
        "EVALUATE ADDCOLUMNS(SUMMARIZE(orders, customers[region]), \"s\", [smallest]) ORDER BY [s], customers[region]",
        r#"[[null, -3.0], ["EU", 5.0], ["US", 10.0]]"#,
    ),
    (
        "EVALUATE FILTER(SUMMARIZECOLUMNS(orders[id], \"r\", [revenue], \"n\", [orders]), [r] < 5) ORDER BY orders[id]",
        "[[5, null, 1], [6, -3.0, 1]]",
    ),
    // Expressions over measures and groups.
    ("EVALUATE {[revenue] + 1}", "[[40.5]]"),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], \"a\", DIVIDE([revenue], [orders])) ORDER BY orders[status]",
        r#"[[null, 7.0], ["", -3.0], ["open", 2.5], ["paid", 15.25]]"#,
    ),
    (
        "EVALUATE ADDCOLUMNS(VALUES(orders[status]), \"s\", \
         ROUND(DIVIDE([revenue], CALCULATE([revenue], ALL(orders[status]))), 4)) ORDER BY orders[status]",
        r#"[[null, 0.1772], ["", -0.0759], ["open", 0.1266], ["paid", 0.7722]]"#,
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(ROLLUPADDISSUBTOTAL(orders[status], \"t\"), \"r\", [revenue]) ORDER BY [t], orders[status]",
        r#"[[null, false, 7.0], ["", false, -3.0], ["open", false, 5.0], ["paid", false, 30.5], [null, true, 39.5]]"#,
    ),
    // Aggregates and iterators over rows.
    ("EVALUATE {SUMX(orders, orders[amount] * 2)}", "[[79.0]]"),
    ("EVALUATE {COUNTROWS(FILTER(orders, orders[amount] > 6))}", "[[3]]"),
    ("EVALUATE {AVERAGEX(customers, [revenue])}", "[[14.166666666666666]]"),
    ("EVALUATE {SUMX(orders, RELATED(customers[credit]))}", "[[300]]"),
    (
        "EVALUATE CALCULATETABLE(ADDCOLUMNS(VALUES(customers[region]), \"n\", CALCULATE(COUNTROWS(customers))), \
         customers[credit] > 60) ORDER BY customers[region]",
        r#"[["APAC", 1], ["EU", 1], ["US", 1]]"#,
    ),
    (
        "EVALUATE ADDCOLUMNS(VALUES(orders[status]), \"v\", CALCULATE(SELECTEDVALUE(orders[id], -1))) ORDER BY orders[status]",
        r#"[[null, 4], ["", 6], ["open", -1], ["paid", -1]]"#,
    ),
    // A variable has the value of its place.
    (
        "EVALUATE VAR t = SUM(orders[amount]) RETURN ROW(\"a\", t, \"b\", CALCULATE(t, orders[status] = \"paid\"), \
         \"c\", CALCULATE(SUM(orders[amount]), orders[status] = \"paid\"))",
        "[[39.5, 39.5, 30.5]]",
    ),
    // The filter depends on the current row.
    (
        "EVALUATE SELECTCOLUMNS(orders, \"i\", orders[id], \"c\", VAR d = orders[day] RETURN \
         CALCULATE([revenue], FILTER(ALL(orders), orders[day] <= d))) ORDER BY [i]",
        "[[1, 7.0], [2, 27.5], [3, 32.5], [4, 39.5], [5, 39.5], [6, -3.0]]",
    ),
    ("EVALUATE {CALCULATE([revenue], TOPN(1, VALUES(orders[status]), [revenue]))}", "[[30.5]]"),
    (
        "EVALUATE ADDCOLUMNS(VALUES(orders[status]), \"r\", RANKX(ALL(orders[status]), [revenue])) ORDER BY [r]",
        r#"[["paid", 1], [null, 2], ["open", 3], ["", 4]]"#,
    ),
    ("EVALUATE UNION({1, 2}, {2, 3}) ORDER BY [Value]", "[[1], [2], [2], [3]]"),
    ("EVALUATE EXCEPT({1, 2, 3}, {2}) ORDER BY [Value]", "[[1], [3]]"),
    ("EVALUATE VALUES(orders[id]) ORDER BY orders[id] START AT 5", "[[5], [6]]"),
    // Time.
    ("EVALUATE {TOTALYTD([revenue], orders[day])}", "[[42.5]]"),
    ("EVALUATE {CALCULATE([revenue], PREVIOUSYEAR(orders[day]))}", "[[null]]"),
    ("EVALUATE {CALCULATE([revenue], DATESBETWEEN(orders[day], dt\"2024-01-01\", dt\"2024-01-31\"))}", "[[30.5]]"),
    ("EVALUATE {DATEDIFF(dt\"2023-12-31\", dt\"2024-01-01\", YEAR)}", "[[1]]"),
];

/// Returns the rows of an answer as lists of values.
fn rows(answer: &Json) -> Vec<Vec<Json>> {
    let objects = answer["data"].as_array().unwrap();
    objects.iter().map(|row| row.as_object().unwrap().values().map(number).collect()).collect()
}

/// Returns a value with numbers as doubles.
fn number(value: &Json) -> Json {
    value.as_f64().map_or_else(|| value.clone(), |number| json!(number))
}

#[test]
fn queries_answer_as_defined() {
    let product = Product::start(settings()).unwrap();
    let served = serve(&product, &fixed());
    let mut faults = Vec::new();
    for (query, expected) in ANSWERS {
        let expected: Vec<Vec<Json>> = serde_json::from_str(expected).unwrap();
        let expected: Vec<Vec<Json>> = expected.iter().map(|row| row.iter().map(number).collect()).collect();
        match served.run_dax(query) {
            Ok(answer) if rows(&answer) == expected => {}
            Ok(answer) => faults.push(format!("{query}\n  expected {expected:?}\n  found    {:?}", rows(&answer))),
            Err(message) => faults.push(format!("{query}\n  {message}")),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

// The evaluator

/// A column: its table and its name.
type Column = (&'static str, &'static str);

const GROUPS: &[Column] = &[
    ("customers", "region"),
    ("customers", "credit"),
    ("orders", "status"),
    ("orders", "is_gift"),
    ("orders", "amount"),
];

/// A measure of orders.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    Orders,
    Revenue,
    Smallest,
}

/// A comparison of a column with a constant, or a list.
#[derive(Debug, Clone)]
enum Condition {
    Compare(Column, &'static str, Json),
    In(Column, Vec<Json>),
    Blank(Column),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

/// Returns the value of a column in the row of an order, through its customer.
fn value(order: &Json, data: &Data, column: Column) -> Json {
    match column {
        ("orders", name) => number(&order[name]),
        (_, name) => {
            let partner =
                data.customers.iter().find(|c| !order["customer_id"].is_null() && c["id"] == order["customer_id"]);
            partner.map_or(Json::Null, |customer| number(&customer[name]))
        }
    }
}

/// Compares as DAX does: BLANK is the zero of the other side's type.
fn compare(left: &Json, right: &Json) -> Ordering {
    let zero = |other: &Json| match other {
        Json::String(_) => json!(""),
        Json::Bool(_) => json!(false),
        _ => json!(0.0),
    };
    let left = if left.is_null() { zero(right) } else { left.clone() };
    let right = if right.is_null() { zero(&left) } else { right.clone() };
    match (&left, &right) {
        (Json::String(one), Json::String(two)) => one.cmp(two),
        (Json::Bool(one), Json::Bool(two)) => one.cmp(two),
        _ => left.as_f64().unwrap().partial_cmp(&right.as_f64().unwrap()).unwrap(),
    }
}

impl Condition {
    fn holds(&self, of: &dyn Fn(Column) -> Json) -> bool {
        match self {
            Condition::Compare(column, operator, constant) => {
                let found = of(*column);
                let constant = number(constant);
                let ordering = compare(&found, &constant);
                match *operator {
                    "=" => ordering.is_eq(),
                    "<>" => ordering.is_ne(),
                    "<" => ordering.is_lt(),
                    "<=" => ordering.is_le(),
                    ">" => ordering.is_gt(),
                    ">=" => ordering.is_ge(),
                    _ => found == constant,
                }
            }
            Condition::In(column, values) => {
                let found = of(*column);
                values.iter().any(|value| number(value) == found)
            }
            Condition::Blank(column) => of(*column).is_null(),
            Condition::Not(inner) => !inner.holds(of),
            Condition::And(one, two) => one.holds(of) && two.holds(of),
            Condition::Or(one, two) => one.holds(of) || two.holds(of),
        }
    }

    fn dax(&self) -> String {
        let literal = |value: &Json| match value {
            Json::String(text) => format!("\"{}\"", text.replace('"', "\"\"")),
            Json::Bool(value) => value.to_string().to_uppercase(),
            Json::Null => "BLANK()".to_owned(),
            other => other.to_string(),
        };
        match self {
            Condition::Compare((table, column), operator, value) => {
                format!("{table}[{column}] {operator} {}", literal(value))
            }
            Condition::In((table, column), values) => {
                let values: Vec<String> = values.iter().map(literal).collect();
                format!("{table}[{column}] IN {{{}}}", values.join(", "))
            }
            Condition::Blank((table, column)) => format!("ISBLANK({table}[{column}])"),
            Condition::Not(inner) => format!("NOT ({})", inner.dax()),
            Condition::And(one, two) => format!("({} && {})", one.dax(), two.dax()),
            Condition::Or(one, two) => format!("({} || {})", one.dax(), two.dax()),
        }
    }
}

impl Measure {
    /// Evaluates over the rows that a filter context leaves. Over no rows it is BLANK.
    fn evaluate(self, orders: &[&Json]) -> Json {
        let amounts: Vec<f64> = orders.iter().filter_map(|order| order["amount"].as_f64()).collect();
        match self {
            Measure::Orders if orders.is_empty() => Json::Null,
            Measure::Orders => json!(orders.len() as f64),
            _ if amounts.is_empty() => Json::Null,
            Measure::Revenue => json!(amounts.iter().sum::<f64>()),
            Measure::Smallest => json!(amounts.iter().copied().fold(f64::INFINITY, f64::min)),
        }
    }

    fn dax(self) -> &'static str {
        match self {
            Measure::Orders => "[orders]",
            Measure::Revenue => "[revenue]",
            Measure::Smallest => "[smallest]",
        }
    }
}

/// A random query: SUMMARIZECOLUMNS with filters, under an order.
#[derive(Debug)]
struct Query {
    groups: Vec<Column>,
    filters: Vec<Condition>,
    measures: Vec<Measure>,
    descending: bool,
}

impl Query {
    fn random(random: &mut Random) -> Query {
        let mut groups: Vec<Column> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let group = *random.of(GROUPS);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        let all = [Measure::Orders, Measure::Revenue, Measure::Smallest];
        let measures = (0..1 + random.below(2)).map(|_| *random.of(&all)).collect();
        let filters = (0..random.below(3)).map(|_| {
            let column = *random.of(GROUPS);
            condition(random, column, 2)
        });
        let filters = filters.collect();
        Query { groups, filters, measures, descending: random.below(2) == 0 }
    }

    /// Returns the query in DAX. It is ordered by the first group; equal rows may have any order.
    fn dax(&self) -> String {
        let mut arguments: Vec<String> =
            self.groups.iter().map(|(table, column)| format!("{table}[{column}]")).collect();
        for filter in &self.filters {
            let (table, column) = filter.column();
            arguments.push(format!("FILTER(ALL({table}[{column}]), {})", filter.dax()));
        }
        for (at, measure) in self.measures.iter().enumerate() {
            arguments.push(format!("\"m{at}\", {}", measure.dax()));
        }
        let (table, column) = self.groups[0];
        let direction = if self.descending { "DESC" } else { "ASC" };
        format!("EVALUATE SUMMARIZECOLUMNS({}) ORDER BY {table}[{column}] {direction}", arguments.join(", "))
    }

    /// Evaluates every combination of values of the groups, and drops those in which all measures are BLANK.
    fn evaluate(&self, data: &Data) -> Vec<Vec<Json>> {
        let mut combinations: Vec<Vec<Json>> = vec![Vec::new()];
        for group in &self.groups {
            let mut values: Vec<Json> = Vec::new();
            let own: Vec<Json> = match group.0 {
                "orders" => data.orders.iter().map(|order| value(order, data, *group)).collect(),
                // The values of the table, and the BLANK of orders without a customer.
                _ => {
                    let own = data.customers.iter().map(|customer| number(&customer[group.1]));
                    own.chain(data.orders.iter().map(|order| value(order, data, *group))).collect()
                }
            };
            own.into_iter().for_each(|value| {
                if !values.contains(&value) {
                    values.push(value);
                }
            });
            combinations = combinations
                .iter()
                .flat_map(|row| values.iter().map(|value| [&row[..], std::slice::from_ref(value)].concat()))
                .collect();
        }
        let rows = combinations.into_iter().filter_map(|mut row| {
            let is_in = |order: &&Json| {
                let of = |column: Column| value(order, data, column);
                self.groups.iter().zip(&row).all(|(group, value)| of(*group) == *value)
                    && self.filters.iter().all(|filter| filter.holds(&of))
            };
            let orders: Vec<&Json> = data.orders.iter().filter(is_in).collect();
            let values: Vec<Json> = self.measures.iter().map(|measure| measure.evaluate(&orders)).collect();
            if values.iter().all(Json::is_null) {
                return None;
            }
            row.extend(values);
            Some(row)
        });
        rows.collect()
    }
}

impl Condition {
    fn column(&self) -> Column {
        match self {
            Condition::Compare(column, ..) | Condition::In(column, _) | Condition::Blank(column) => *column,
            Condition::Not(inner) | Condition::And(inner, _) | Condition::Or(inner, _) => inner.column(),
        }
    }
}

fn condition(random: &mut Random, column: Column, depth: usize) -> Condition {
    let constant = |random: &mut Random| constant(random, column);
    match random.below(if depth == 0 { 3 } else { 6 }) {
        0 => {
            let has_order = matches!(column.1, "amount" | "credit");
            let operators: &[&'static str] =
                if has_order { &["=", "<>", "<", "<=", ">", ">=", "=="] } else { &["=", "<>", "=="] };
            let operator = operators[random.below(operators.len())];
            Condition::Compare(column, operator, constant(random))
        }
        1 => Condition::In(column, (0..1 + random.below(3)).map(|_| constant(random)).collect()),
        2 => Condition::Blank(column),
        3 => Condition::Not(Box::new(condition(random, column, depth - 1))),
        4 => Condition::And(
            Box::new(condition(random, column, depth - 1)),
            Box::new(condition(random, column, depth - 1)),
        ),
        _ => Condition::Or(
            Box::new(condition(random, column, depth - 1)),
            Box::new(condition(random, column, depth - 1)),
        ),
    }
}

fn constant(random: &mut Random, column: Column) -> Json {
    match column.1 {
        _ if random.below(5) == 0 => Json::Null,
        "region" => json!(random.of(&["US", "EU", ""])),
        "status" => json!(random.of(&["paid", "open", ""])),
        "is_gift" => json!(random.below(2) == 0),
        _ => json!(random.below(7) as i64 - 3),
    }
}

/// Returns random tables with nulls, orphans and ties.
fn random_data(random: &mut Random) -> Data {
    let or_null = |random: &mut Random, value: Json| if random.below(4) == 0 { Json::Null } else { value };
    let mut data = Data::default();
    for id in 0..random.below(5) {
        let region = constant(random, ("customers", "region"));
        let credit = constant(random, ("customers", "credit"));
        data.customers.push(json!({"id": id, "region": region, "credit": credit}));
    }
    for id in 0..random.below(12) {
        let customer = random.below(7);
        let mut order = Map::new();
        order.insert("id".to_owned(), json!(id));
        order.insert("customer_id".to_owned(), or_null(random, json!(customer)));
        for name in ["status", "amount", "is_gift"] {
            order.insert(name.to_owned(), constant(random, ("orders", name)));
        }
        order.insert("day".to_owned(), json!("2024-01-01"));
        data.orders.push(Json::Object(order));
    }
    data
}

/// Sorts rows by their text, so that rows are compared as sets.
fn sorted(mut rows: Vec<Vec<Json>>) -> Vec<Vec<Json>> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

#[test]
fn random_queries_answer_as_defined() {
    let product = Product::start(settings()).unwrap();
    let mut random = Random::new(2026);
    for _ in 0..40 {
        let data = random_data(&mut random);
        let served = serve(&product, &data);
        for _ in 0..25 {
            let query = Query::random(&mut random);
            let text = query.dax();
            let found = rows(&served.run_dax(&text).unwrap_or_else(|message| panic!("{text}: {message}")));
            assert_eq!(sorted(found.clone()), sorted(query.evaluate(&data)), "{text}");
            let is_ordered = found.is_sorted_by(|one, two| {
                let ordering = order(&one[0], &two[0]);
                if query.descending { ordering.is_ge() } else { ordering.is_le() }
            });
            assert!(is_ordered, "{text}: {found:?}");
        }
    }
}

/// Returns the order of results: BLANK before every string and FALSE, and between negative numbers and 0.
fn order(one: &Json, two: &Json) -> Ordering {
    let key = |value: &Json| match value {
        Json::Null => (0.0, 1, String::new()),
        Json::Bool(value) => (f64::from(u8::from(*value)), 2, String::new()),
        Json::String(text) => (0.0, 2, text.clone()),
        other => {
            let number = other.as_f64().unwrap();
            (number, if number < 0.0 { 0 } else { 2 }, String::new())
        }
    };
    let ((one, one_class, one_text), (two, two_class, two_text)) = (key(one), key(two));
    one.partial_cmp(&two).unwrap().then(one_class.cmp(&two_class)).then(one_text.cmp(&two_text))
}

// General queries

/// Expressions for each value of a column: CALCULATE with a filter, a total, a sum, an iterator and a rank.
#[derive(Debug)]
struct General {
    group: Column,
    measures: [Measure; 2],
    filter: Condition,
    rows: Condition,
}

impl General {
    fn random(random: &mut Random) -> General {
        let all = [Measure::Orders, Measure::Revenue, Measure::Smallest];
        let own: Vec<Column> = GROUPS.iter().filter(|(table, _)| *table == "orders").copied().collect();
        let (filtered, iterated) = (*random.of(GROUPS), *random.of(&own));
        General {
            group: *random.of(GROUPS),
            measures: [*random.of(&all), *random.of(&all)],
            filter: condition(random, filtered, 2),
            rows: condition(random, iterated, 2),
        }
    }

    fn dax(&self) -> String {
        let group = format!("{}[{}]", self.group.0, self.group.1);
        let [one, two] = self.measures.map(Measure::dax);
        format!(
            "EVALUATE ADDCOLUMNS(VALUES({group}), \"a\", CALCULATE({one}, {}), \"b\", CALCULATE({one}, ALL({group})), \
             \"c\", {one} + {two}, \"d\", CALCULATE(SUMX(FILTER(orders, {}), orders[amount])), \
             \"e\", RANKX(ALL({group}), {two}), \"f\", CALCULATE(COUNTROWS(orders), KEEPFILTERS({})))",
            self.filter.dax(),
            self.rows.dax(),
            self.filter.dax(),
        )
    }

    fn evaluate(&self, data: &Data) -> Vec<Vec<Json>> {
        let mut values: Vec<Json> = Vec::new();
        let of_customers = data.customers.iter().filter(|_| self.group.0 == "customers");
        let own = of_customers.map(|customer| number(&customer[self.group.1]));
        for found in own.chain(data.orders.iter().map(|order| value(order, data, self.group))) {
            if !values.contains(&found) {
                values.push(found);
            }
        }
        let [one, two] = self.measures;
        let of_group = |wanted: &Json| -> Vec<&Json> {
            data.orders.iter().filter(|order| value(order, data, self.group) == *wanted).collect()
        };
        let holds = |condition: &Condition, order: &Json| condition.holds(&|column| value(order, data, column));
        let ranks: Vec<Json> = values.iter().map(|value| two.evaluate(&of_group(value))).collect();
        let row = |wanted: &Json| {
            let rows = of_group(wanted);
            // The filter of a column replaces the one of the row.
            let is_replaced = self.filter.column() == self.group;
            let in_context: Vec<&Json> = if is_replaced { data.orders.iter().collect() } else { rows.clone() };
            let filtered: Vec<&Json> = in_context.into_iter().filter(|order| holds(&self.filter, order)).collect();
            let iterated: Vec<&Json> = rows.iter().copied().filter(|order| holds(&self.rows, order)).collect();
            let counted: Vec<&Json> = rows.iter().copied().filter(|order| holds(&self.filter, order)).collect();
            let own = two.evaluate(&rows);
            let before = ranks.iter().filter(|other| compare(other, &own).is_gt()).count();
            vec![
                wanted.clone(),
                one.evaluate(&filtered),
                one.evaluate(&data.orders.iter().collect::<Vec<_>>()),
                sum(&one.evaluate(&rows), &own),
                Measure::Revenue.evaluate(&iterated),
                json!((before + 1) as f64),
                Measure::Orders.evaluate(&counted),
            ]
        };
        values.iter().map(row).collect()
    }
}

/// Adds as DAX does: BLANK is 0, but BLANK and BLANK are BLANK.
fn sum(one: &Json, two: &Json) -> Json {
    match (one.as_f64(), two.as_f64()) {
        (None, None) => Json::Null,
        (one, two) => json!(one.unwrap_or(0.0) + two.unwrap_or(0.0)),
    }
}

#[test]
fn random_general_queries_answer_as_defined() {
    let product = Product::start(settings()).unwrap();
    let mut random = Random::new(23);
    for _ in 0..25 {
        let data = random_data(&mut random);
        let served = serve(&product, &data);
        for _ in 0..20 {
            let query = General::random(&mut random);
            let text = query.dax();
            let found = rows(&served.run_dax(&text).unwrap_or_else(|message| panic!("{text}: {message}")));
            assert_eq!(sorted(found), sorted(query.evaluate(&data)), "{text}\n{:?}\n{:?}", data.customers, data.orders);
        }
    }
}
