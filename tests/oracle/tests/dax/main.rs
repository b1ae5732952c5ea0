//! DAX queries on DuckDB, compared with answers that were computed by hand, and with an evaluator that follows the
//! definition of each function row by row.
//!
//! The answers are in the library, because the system tests compare them on other engines as well.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod guardrails;
mod snowflake;

use serde_json::{Value as Json, json};
use terrane_dax::{ExpressionForm, ProblemKind};
use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::answers::{Suite, star_rows};
use terrane_oracle_tests::dax::run::{Run, on_duckdb, rows, run};
use terrane_oracle_tests::dax::star::{Data, Mask, Policies, RowPolicy, source_tree, statements};
use terrane_oracle_tests::hooks::WorldHooks;
use terrane_oracle_tests::product::{Product, Served};
use terrane_wire::Code;

fn serve<'p>(product: &'p Product, data: &Data) -> Served<'p> {
    statements(data).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    product.serve_tree(&source_tree(&Policies::default()), WorldHooks::default()).unwrap()
}

/// Runs the queries of a suite and compares their rows with the expected ones.
fn assert_answers(served: &Served<'_>, suite: &Suite) {
    let differences: Vec<String> = suite.differences(served).into_iter().map(|difference| difference.text).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn listed_queries_have_their_defined_results() {
    let product = Product::start(settings()).unwrap();
    let served = serve(&product, &star_rows());
    assert_answers(&served, &Suite::star());
}

/// Returns a DAX table of the numbers below a thousand.
fn thousand() -> String {
    let numbers: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
    format!("{{{}}}", numbers.join(","))
}

#[test]
fn measures_are_evaluated_once_in_a_context() {
    let product = Product::start(settings()).unwrap();
    let served = serve(&product, &star_rows());
    let measures: String = (1..40).map(|at| format!(" MEASURE orders[m{at}] = [m{0}] + [m{0}]", at - 1)).collect();
    let query = format!("DEFINE MEASURE orders[m0] = [revenue]{measures} EVALUATE ROW(\"z\", [m39] / 549755813888)");
    assert_eq!(rows(&served.run_dax(&query).unwrap()), [[json!(39.5)]]);
    let variables: String = (1..40).map(|at| format!(" VAR v{at} = v{0} + v{0}", at - 1)).collect();
    let query = format!("EVALUATE VAR v0 = [revenue]{variables} RETURN ROW(\"z\", v39 / 549755813888)");
    assert_eq!(rows(&served.run_dax(&query).unwrap()), [[json!(39.5)]]);
    let chain: String = (1..1_500).map(|at| format!(" VAR v{at} = FILTER(v{}, 1 = 1)", at - 1)).collect();
    let query = format!("EVALUATE VAR v0 = orders{chain} RETURN ROW(\"n\", COUNTROWS(v1499))");
    assert_eq!(rows(&served.run_dax(&query).unwrap()), [[json!(6.0)]]);
}

#[test]
fn work_and_memory_of_an_evaluation_are_bounded() {
    let product = Product::start(settings()).unwrap();
    let served = serve(&product, &star_rows());
    let columns = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("SELECTCOLUMNS(k, \"{name}\", [Value])")).collect()
    };
    let million = format!("CROSSJOIN({})", columns(&["a", "b"]).join(", "));
    let with = |query: &str| format!("DEFINE VAR k = {} VAR x = {million} EVALUATE {query}", thousand());
    for query in [
        with("GENERATE(SELECTCOLUMNS(k, \"c\", [Value]), x)"),
        with("ROW(\"n\", COUNTROWS(UNION(x, x, x, x, x, x)))"),
        with("ROW(\"n\", SUMX(x, CALCULATE(COUNTROWS(CROSSJOIN(x, SELECTCOLUMNS({1, 2}, \"c\", [Value]))))))"),
        with("ROW(\"n\", COUNTROWS(FILTER(x, (1, 2) IN FILTER(x, [a] < 999))))"),
        "EVALUATE VAR a = \"0123456789\" VAR b = a&a&a&a&a&a&a&a&a&a VAR c = b&b&b&b&b&b&b&b&b&b \
         VAR d = c&c&c&c&c&c&c&c&c&c VAR e = d&d&d&d&d&d&d&d&d&d VAR f = e&e&e&e&e&e&e&e&e&e \
         VAR g = f&f&f&f&f&f&f&f&f&f RETURN ROW(\"n\", LEN(g))"
            .to_owned(),
    ] {
        let problem = served.dax(&query).unwrap_err().problem;
        assert!(matches!(problem, Some(ProblemKind::TooLarge { .. })), "{problem:?}: {}", &query[query.len() - 60..]);
    }
    // The same work over cached rows is within the limit.
    let ranks = format!("EVALUATE {{MAXX({0}, RANKX({0}, [Value], [Value], DESC, DENSE))}}", thousand());
    assert_eq!(rows(&served.run_dax(&ranks).unwrap()), [[json!(1_000.0)]]);
    let found = with("ROW(\"n\", COUNTROWS(FILTER(x, [a] IN k)))");
    assert_eq!(rows(&served.run_dax(&found).unwrap()), [[json!(1_000_000.0)]]);
}

/// Tests answers for callers who may see the keys, who may not see them, and who see masks of them.
#[test]
fn anonymous_callers_see_no_restricted_rows() {
    let product = Product::start(settings()).unwrap();
    let mut data = star_rows();
    // This customer has the same visible values as the first customer.
    data.customers.push(json!({"id": 6, "region": "US", "credit": 100}));
    data.orders
        .push(json!({"id": 7, "customer_id": 6, "status": "paid", "amount": 1, "is_gift": true, "day": "2024-01-01"}));
    statements(&data).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let keys = [("customers", "id"), ("orders", "id")];
    let open = Policies::default();
    let denied = Policies { denied: keys.to_vec(), ..Policies::default() };
    let masked = Policies { masks: keys.map(|key| (key, Mask::Null)).to_vec(), ..Policies::default() };
    let answers = |policies: &Policies, query: &str| -> Result<Vec<Vec<Json>>, String> {
        let served = product.serve_tree(&source_tree(policies), WorldHooks::default()).unwrap();
        served.run_dax(query).map(|answer| rows(&answer))
    };
    // These answers are the same for all three callers, because they do not depend on the key.
    for (query, expected) in [
        ("EVALUATE VALUES(customers[region]) ORDER BY customers[region]", json!([[null], ["APAC"], ["EU"], ["US"]])),
        ("EVALUATE {HASONEVALUE(customers[region])}", json!([[false]])),
        ("EVALUATE {CALCULATE(HASONEVALUE(customers[region]), customers[region] = \"US\")}", json!([[true]])),
        ("EVALUATE {COUNTROWS(VALUES(customers))}", json!([[7.0]])),
        ("EVALUATE {COUNTROWS(ALL(customers))}", json!([[7.0]])),
        ("EVALUATE {SUMX(orders, orders[amount])}", json!([[40.5]])),
        ("EVALUATE {(AVERAGE(orders[amount]), COUNTBLANK(orders[amount]))}", json!([[6.75, 1.0]])),
        ("EVALUATE {COUNTROWS(FILTER(orders, orders[amount] > 6))}", json!([[3.0]])),
        ("EVALUATE {CALCULATE([revenue] + 0, FILTER(customers, customers[credit] < 71))}", json!([[12.0]])),
        (
            "EVALUATE ADDCOLUMNS(FILTER(orders, orders[amount] > 6), \"r\", [revenue]) ORDER BY [r]",
            json!([["paid", 10.0, true, 10.0], [null, 7.0, true, 7.0], ["paid", 20.5, false, 20.5]]),
        ),
    ] {
        for policies in [&open, &denied, &masked] {
            let mut found = answers(policies, query).unwrap_or_else(|message| panic!("{query}: {message}"));
            if query.contains("ADDCOLUMNS") {
                // The expected rows lack the day, and the key that only some of the callers see.
                let width = found[0].len();
                found.iter_mut().for_each(|row| {
                    row.remove(width - 2);
                    if width > 5 {
                        let key = row.remove(0);
                        assert!(key.is_null() || policies.masks.is_empty(), "{query}: {key}");
                    }
                });
                found.sort_by_key(|row| row[1].as_f64().map(|amount| (amount * 10.0) as i64));
                let mut expected = expected.as_array().unwrap().clone();
                expected.sort_by_key(|row| row[1].as_f64().map(|amount| (amount * 10.0) as i64));
                assert_eq!(json!(found), json!(expected), "{query}, {policies:?}");
                continue;
            }
            assert_eq!(json!(found), expected, "{query}, {policies:?}");
        }
    }
    // A row consists of the values that the caller sees. If a caller cannot distinguish two customers, the caller does
    // not see their orders separately.
    let by_customer =
        "EVALUATE SELECTCOLUMNS(FILTER(customers, customers[credit] = 100), \"r\", [revenue]) ORDER BY [r]";
    assert_eq!(json!(answers(&open, by_customer).unwrap()), json!([[1.0], [30.5]]));
    for policies in [&denied, &masked] {
        assert_eq!(json!(answers(policies, by_customer).unwrap()), json!([[31.5], [31.5]]), "{policies:?}");
    }
    let blind = Policies { denied: [&keys[..], &[("customers", "credit")]].concat(), ..Policies::default() };
    // A denied key cannot be named, a masked key cannot be compared, and a single column of a row cannot be removed.
    for (policies, query, part) in [
        (&denied, "EVALUATE VALUES(customers[id])", "id"),
        (&masked, "EVALUATE FILTER(customers, customers[id] = 1)", ""),
        (
            &denied,
            "EVALUATE ADDCOLUMNS(customers, \"r\", CALCULATE([revenue], ALL(customers[region])))",
            "one column of a row is not supported",
        ),
        (
            &blind,
            "EVALUATE {CALCULATE([revenue] + 0, FILTER(customers, [revenue] < 10))}",
            "a row without visible values is not supported",
        ),
    ] {
        let error = answers(policies, query).unwrap_err();
        assert!(error.contains(part), "{query}: {error}");
    }
}

/// The row filter of orders reads customers as the caller sees them, so a hidden customer has no region to compare.
#[test]
fn filters_through_a_join_see_the_rows_of_the_caller() {
    let product = Product::start(settings()).unwrap();
    statements(&star_rows()).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let masks = vec![(("customers", "region"), Mask::Null)];
    for (of_orders, expected) in [("EU", json!([])), ("US", json!([[null, 30.5, 2.0]]))] {
        for masks in [Vec::new(), masks.clone()] {
            let row_filters = vec![RowPolicy::OrdersOfRegion(of_orders), RowPolicy::CustomersOfRegion("US")];
            let policies = Policies { row_filters, masks, ..Policies::default() };
            let served = product.serve_tree(&source_tree(&policies), WorldHooks::default()).unwrap();
            let query = "EVALUATE SUMMARIZECOLUMNS(customers[region], \"r\", [revenue], \"n\", [orders])";
            let mut found = rows(&served.run_dax(query).unwrap());
            if policies.masks.is_empty() {
                found.iter_mut().for_each(|row| assert_eq!(std::mem::take(&mut row[0]), "US"));
            }
            assert_eq!(json!(found), expected, "{policies:?}");
        }
    }
}

#[test]
fn tables_leave_out_columns_that_a_policy_closes() {
    let product = Product::start(settings()).unwrap();
    statements(&star_rows()).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let policies = Policies { masks: vec![(("customers", "region"), Mask::Constant("hidden"))], ..Policies::default() };
    let mut tree = source_tree(&policies);
    let derived = "      - {name: region, type: string, sql: region}\n      - {name: area, type: string, sql: \"lower(region)\"}\n";
    let source = tree.files["cubes/star.yml"].replace("      - {name: region, type: string, sql: region}\n", derived);
    tree.files.insert("cubes/star.yml".into(), source.into());
    let served = product.serve_tree(&tree, WorldHooks::default()).unwrap();
    let answer = served.run_dax("EVALUATE customers ORDER BY customers[id]").unwrap();
    let first = answer["data"][0].as_object().unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["customers[id]", "customers[region]", "customers[credit]"]);
    assert_eq!(first["customers[region]"], "hidden");
    assert!(served.run_dax("EVALUATE VALUES(customers[area])").is_err());
}

#[test]
fn rows_are_filters_for_callers_who_do_not_see_their_key() {
    let product = Product::start(settings()).unwrap();
    statements(&star_rows()).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let policies = Policies { denied: vec![("orders", "id")], ..Policies::default() };
    let served = product.serve_tree(&source_tree(&policies), WorldHooks::default()).unwrap();
    let query = "EVALUATE SUMMARIZECOLUMNS(\"n\", CALCULATE([orders], FILTER(orders, orders[status] = \"paid\")))";
    let open = serve(&product, &star_rows()).run_dax(query).unwrap();
    assert_eq!(served.run_dax(query).unwrap()["data"], open["data"]);
}

/// Callers of these tests are those of the command line, which has no audit log.
#[test]
fn policy_refuses_a_measure_on_the_command_line() {
    let product = Product::start(settings()).unwrap();
    statements(&star_rows()).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let policies = Policies { masks: vec![(("orders", "amount"), Mask::Null)], ..Policies::default() };
    let served = product.serve_tree(&source_tree(&policies), WorldHooks::default()).unwrap();
    for query in ["EVALUATE ROW(\"r\", [revenue])", "EVALUATE ROW(\"r\", [revenue] + 0)"] {
        let error = served.dax(query).unwrap_err();
        assert_eq!(error.body.code, Code::Forbidden, "{query}: {}", error.body.message);
    }
}

/// Policies hold for values that the warehouse computes, as for the rows that an evaluation reads.
#[test]
fn computed_values_obey_policies() {
    let product = Product::start(settings()).unwrap();
    statements(&star_rows()).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let masks = vec![(("customers", "credit"), Mask::Null)];
    let of_region = vec![RowPolicy::CustomersOfRegion("US")];
    let open = Policies::default();
    let masked = Policies { masks: masks.clone(), ..Policies::default() };
    let filtered = Policies { row_filters: of_region.clone(), ..Policies::default() };
    let both = Policies { masks, row_filters: of_region, ..Policies::default() };
    for (query, expected) in [
        ("EVALUATE {SUMX(customers, customers[credit] * 2)}", [json!(1500.0), json!(null), json!(300.0), json!(null)]),
        (
            "EVALUATE {SUMX(orders, RELATED(customers[credit]) + 0)}",
            [json!(300.0), json!(0.0), json!(200.0), json!(0.0)],
        ),
        (
            "EVALUATE {SUMX(customers, IF(customers[region] = \"EU\", customers[credit], 1))}",
            [json!(74.0), json!(4.0), json!(2.0), json!(2.0)],
        ),
        (
            "EVALUATE {COUNTROWS(FILTER(customers, customers[credit] > customers[id]))}",
            [json!(5.0), json!(null), json!(2.0), json!(null)],
        ),
    ] {
        for (policies, expected) in [&open, &masked, &filtered, &both].into_iter().zip(expected) {
            let served = product.serve_tree(&source_tree(policies), WorldHooks::default()).unwrap();
            let found = served.run_dax(query).unwrap_or_else(|message| panic!("{query}: {message}"));
            assert_eq!(rows(&found), [[expected]], "{query}, {policies:?}");
        }
    }
    let denied = Policies { denied: vec![("customers", "credit")], ..Policies::default() };
    let served = product.serve_tree(&source_tree(&denied), WorldHooks::default()).unwrap();
    let error = served.run_dax("EVALUATE {SUMX(customers, customers[credit] * 2)}").unwrap_err();
    assert!(error.contains("credit"), "{error}");
}

#[test]
fn tables_of_one_value_are_values() {
    let product = Product::start(settings()).unwrap();
    let served = serve(&product, &star_rows());
    for (query, expected) in [
        ("EVALUATE {{1} + 1}", json!([[2.0]])),
        ("EVALUATE {CALCULATE([revenue], FILTER(ALL(orders[id]), orders[id] = {2}))}", json!([[20.5]])),
        ("EVALUATE {CALCULATE([revenue], orders[amount] = {5})}", json!([[5.0]])),
        (
            "EVALUATE ADDCOLUMNS({\"US\"}, \"same\", CALCULATE(VALUES(customers[region]), TREATAS({[Value]}, customers[region])))",
            json!([["US", "US"]]),
        ),
        ("EVALUATE {ISBLANK(FILTER(VALUES(customers[region]), FALSE()))}", json!([[true]])),
        ("EVALUATE {MAXX(SELECTCOLUMNS(orders, \"a\", orders[amount]), [a])}", json!([[20.5]])),
        ("EVALUATE {MAXX(orders, TOPN(1, {1, 2}, [Value]))}", json!([[2.0]])),
        ("DEFINE VAR t = TOPN(1, {1, 2}, [Value]) EVALUATE {t * 3}", json!([[6.0]])),
        ("EVALUATE {IF(HASONEVALUE(customers[region]), VALUES(customers[region]), \"several\")}", json!([["several"]])),
        ("EVALUATE {IFERROR(VALUES(customers[region]), \"several\")}", json!([["several"]])),
    ] {
        assert_eq!(served.run_dax(query).map(|answer| json!(rows(&answer))), Ok(expected), "{query}");
    }
    let several = served.run_dax("EVALUATE {VALUES(customers[region]) & \"\"}").unwrap_err();
    insta::assert_snapshot!(several, @"line 1, column 11: expected a single value, found a table of 4 rows");
    let table = served.dax("EVALUATE {orders}").unwrap_err().problem;
    assert!(matches!(table, Some(ProblemKind::WrongShape { expected: ExpressionForm::Scalar, .. })), "{table:?}");
}

/// A project in which deals join people twice: as the buyer and as the seller.
const DEALS: &str = r#"
cubes:
  - name: people
    sql_table: people
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: name, type: string, sql: name}
  - name: deals
    sql_table: deals
    joins:
      - {name: buyer, cube: people, relationship: many_to_one, sql: "{deals}.buyer_id = {buyer}.id"}
      - {name: seller, cube: people, relationship: many_to_one, sql: "{deals}.seller_id = {seller}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: buyer_id, type: number, sql: buyer_id}
      - {name: seller_id, type: number, sql: seller_id}
    measures:
      - {name: total, type: sum, sql: price}
"#;

#[test]
fn filters_follow_the_relationship_that_a_query_names() {
    let product = Product::start(settings()).unwrap();
    for statement in [
        "CREATE TABLE people AS SELECT * FROM (VALUES (1, 'Ada'), (2, 'Bob')) AS people(id, name)",
        "CREATE TABLE deals AS SELECT * FROM (VALUES (1, 1, 2, 10), (2, 2, 1, 5), (3, 1, 1, 3)) \
         AS deals(id, buyer_id, seller_id, price)",
    ] {
        product.execute(statement).unwrap();
    }
    let mut tree = source_tree(&Policies::default());
    tree.files.insert("cubes/star.yml".into(), DEALS.into());
    let served = product.serve_tree(&tree, WorldHooks::default()).unwrap();
    let answers = |query: &str| rows(&served.run_dax(query).unwrap_or_else(|message| panic!("{query}: {message}")));
    let by_person = "EVALUATE ADDCOLUMNS(VALUES(people[name]), \
                     \"bought\", CALCULATE([total], USERELATIONSHIP(deals[buyer_id], people[id])), \
                     \"sold\", CALCULATE([total], USERELATIONSHIP(people[id], deals[seller_id]))) ORDER BY people[name]";
    assert_eq!(answers(by_person), [[json!("Ada"), json!(13.0), json!(8.0)], [json!("Bob"), json!(5.0), json!(10.0)]]);
    let filtered =
        "EVALUATE {CALCULATE([total], people[name] = \"Bob\", USERELATIONSHIP(deals[seller_id], people[id]))}";
    assert_eq!(answers(filtered), [[json!(10.0)]]);
    // Filters of an alias apply to the alias only.
    let both = "EVALUATE {CALCULATE([total], people[name] = \"Ada\", buyer[name] = \"Ada\", \
                USERELATIONSHIP(deals[seller_id], people[id]))}";
    assert_eq!(answers(both), [[json!(3.0)]]);
}

/// Runs a limited part of the comparisons of `terrane-fuzz --dax`.
fn random_queries(seed: u64, worlds: u64) {
    let mut open = on_duckdb(Product::start(settings()).unwrap());
    let report = run(Run { seed, worlds, queries: 40 }, &mut open).unwrap();
    assert!(report.differences.is_empty(), "{}", report.differences.join("\n"));
    // Most queries must have an answer, even under policies.
    assert!(report.answered * 3 > report.queries * 2, "{report:?}");
    assert!(report.by_rest * 8 > report.queries, "{report:?}");
}

#[test]
fn random_queries_agree_with_the_evaluator() {
    random_queries(2026, 20);
}

#[test]
fn more_random_queries_agree_with_the_evaluator() {
    random_queries(23, 20);
}
