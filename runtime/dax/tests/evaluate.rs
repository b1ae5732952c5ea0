//! Tests which semantic queries an evaluation requests, its warnings, and the constructs that it refuses.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::OnceLock;

use terrane_compiler::model::Model;
use terrane_compiler::query::{RowFunction, SemanticQuery};
use terrane_compiler::{Access, SecurityContext};
use terrane_dax::Problem;
use terrane_dax::evaluate::{Budget, Datum, FetchedData, FetchedRows, FinishedTable, MAX_STEPS, Step, evaluate};
use terrane_dax::plan::Parameters;
use terrane_golden_tests::case::models;

fn shop() -> &'static Model {
    static SHOP: OnceLock<Model> = OnceLock::new();
    SHOP.get_or_init(|| models().remove("shop").unwrap())
}

/// Evaluates a query whose semantic queries all have one row of ones. Returns the requested queries, and the result.
fn evaluated(text: &str) -> (Vec<SemanticQuery>, Result<FinishedTable, Problem>) {
    let caller = SecurityContext::default();
    let access = Access::of(shop(), &caller);
    let bound = terrane_dax::read(text, &access);
    assert_eq!(bound.problems, [], "{text}");
    let (parameters, budget) = (Parameters::new(), Budget::new(MAX_STEPS));
    let now = jiff::civil::datetime(2024, 1, 1, 0, 0, 0, 0);
    let (mut data, mut requested) = (FetchedData::default(), Vec::new());
    loop {
        let evaluation = &bound.query.evaluations[0];
        match evaluate(&bound.query, evaluation, &access, &parameters, now, &data, &budget) {
            Err(problem) => return (requested, Err(problem)),
            Ok(Step::Done(table)) => return (requested, Ok(table)),
            Ok(Step::Needs(queries)) => {
                for query in queries {
                    let width = query.dimensions.len() + query.values.len() + query.computed.len();
                    data.add(query.clone(), FetchedRows { rows: vec![vec![Datum::Integer(1); width]] });
                    requested.push(query);
                }
            }
        }
    }
}

fn names(query: &SemanticQuery) -> (Vec<String>, Vec<String>) {
    let list = |members: &[terrane_compiler::query::MemberRef]| members.iter().map(ToString::to_string).collect();
    (list(&query.values), list(&query.dimensions))
}

/// Returns the functions that the warehouse computes over rows.
fn computed(queries: &[SemanticQuery]) -> Vec<RowFunction> {
    queries.iter().flat_map(|query| &query.computed).map(|one| one.function).collect()
}

#[test]
fn aggregates_of_columns_are_computed_by_the_warehouse() {
    for (function, expected) in [
        ("SUM", RowFunction::Sum),
        ("AVERAGE", RowFunction::Average),
        ("COUNT", RowFunction::Count),
        ("COUNTA", RowFunction::Count),
    ] {
        let (queries, result) = evaluated(&format!("EVALUATE ROW(\"x\", {function}(orders[id]))"));
        assert!(result.is_ok(), "{function}: {result:?}");
        assert_eq!((queries.len(), computed(&queries)), (1, vec![expected]), "{function}");
        assert_eq!(names(&queries[0]), (Vec::new(), Vec::new()), "{function}");
    }
    let (queries, _) = evaluated("EVALUATE {COUNTROWS(FILTER(orders, orders[id] > 1))}");
    assert_eq!(names(&queries[0]), (vec!["orders.count".to_owned()], Vec::new()));
    assert_eq!((queries.len(), queries[0].filters.len()), (1, 1));
}

#[test]
fn different_values_are_counted_by_the_warehouse() {
    for (column, function, expected) in [
        ("orders[id]", "DISTINCTCOUNT", &[RowFunction::CountDistinct, RowFunction::Count][..]),
        ("orders[status]", "DISTINCTCOUNT", &[RowFunction::CountDistinct, RowFunction::Count]),
        ("orders[status]", "DISTINCTCOUNTNOBLANK", &[RowFunction::CountDistinct]),
        ("orders[created_at]", "DISTINCTCOUNT", &[]),
    ] {
        let (queries, result) = evaluated(&format!("EVALUATE ROW(\"x\", {function}({column}))"));
        assert!(result.is_ok(), "{function}: {result:?}");
        assert_eq!((queries.len(), &computed(&queries)[..]), (1, expected), "{function}({column})");
    }
}

#[test]
fn blanks_of_a_column_are_values_with_their_number_of_rows() {
    let (queries, result) = evaluated("EVALUATE ROW(\"x\", COUNTBLANK(orders[id]))");
    assert!(result.is_ok(), "{result:?}");
    let [query] = &queries[..] else { panic!("{queries:?}") };
    assert!(!query.ungrouped);
    assert_eq!(names(query), (vec!["orders.count".to_owned()], vec!["orders.id".to_owned()]));
}

#[test]
fn iterators_over_columns_read_no_rows() {
    for expression in [
        "SUMX(orders, orders[id] * (1 - orders[id]))",
        "SUMX(FILTER(orders, orders[id] > orders[id] / 2), IF(orders[status] = \"paid\", orders[id], 0))",
        "SUMX(orders, SWITCH(orders[status], \"paid\", 1, BLANK(), 2))",
        "SUMX(orders, VAR x = orders[id] + 1 RETURN x * x)",
        "SUMX(orders, DIVIDE(orders[id], orders[id] - 1, 0))",
        "COUNTROWS(FILTER(orders, orders[id] > orders[id] - 1))",
        "SUMX(CALCULATETABLE(orders, orders[status] = \"paid\"), ABS(orders[id]))",
    ] {
        let (queries, result) = evaluated(&format!("EVALUATE {{{expression}}}"));
        assert!(result.is_ok(), "{expression}: {result:?}");
        assert_eq!((queries.len(), computed(&queries).len()), (1, 1), "{expression}: {queries:?}");
    }
}

#[test]
fn iterators_that_could_differ_read_rows() {
    for expression in [
        "SUMX(orders, 1 / orders[id])",
        "SUMX(orders, LEN(orders[status]))",
        "SUMX(orders, orders[count] + 1)",
        "SUMX(VALUES(orders[id]), orders[id] * 2)",
        "SUMX(orders, orders[id] ^ 2)",
    ] {
        let (queries, result) = evaluated(&format!("EVALUATE {{{expression}}}"));
        assert!(result.is_ok(), "{expression}: {result:?}");
        assert_eq!(computed(&queries), [], "{expression}: {queries:?}");
    }
}

#[test]
fn large_conditions_are_computed_from_rows() {
    let condition = "orders[id] - orders[id] / 2 > 0";
    let wide = |count: usize| format!("FILTER(orders, {})", vec![condition; count].join(" && "));
    let nested =
        |count: usize| (0..count).fold("orders".to_owned(), |table, _| format!("FILTER({table}, {condition})"));
    for (table, expected) in
        [(wide(20), &[RowFunction::Sum][..]), (wide(60), &[]), (nested(20), &[RowFunction::Sum]), (nested(60), &[])]
    {
        let (queries, result) = evaluated(&format!("EVALUATE {{SUMX({table}, orders[id] + 1)}}"));
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(computed(&queries), expected, "{table}");
    }
}

#[test]
fn long_decimals_are_computed_from_rows() {
    for (number, expected) in [("0.123456789", &[RowFunction::Sum][..]), ("0.1234567891", &[])] {
        let (queries, result) = evaluated(&format!("EVALUATE {{SUMX(orders, orders[id] + {number})}}"));
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(computed(&queries), expected, "{number}");
    }
}

#[test]
fn refused_values_are_computed_from_rows() {
    let caller = SecurityContext::default();
    let access = Access::of(shop(), &caller);
    let bound = terrane_dax::read("EVALUATE {SUMX(orders, orders[id] * 2)}", &access);
    let (parameters, budget) = (Parameters::new(), Budget::new(MAX_STEPS));
    let now = jiff::civil::datetime(2024, 1, 1, 0, 0, 0, 0);
    let mut data = FetchedData::default();
    let needs = |data: &FetchedData| match evaluate(
        &bound.query,
        &bound.query.evaluations[0],
        &access,
        &parameters,
        now,
        data,
        &budget,
    )
    .unwrap()
    {
        Step::Needs(queries) => queries,
        Step::Done(table) => panic!("{table:?}"),
    };
    let queries = needs(&data);
    assert_eq!(computed(&queries), [RowFunction::Sum]);
    queries.into_iter().for_each(|query| data.refuse(query));
    let queries = needs(&data);
    assert_eq!((computed(&queries), queries[0].ungrouped), (Vec::new(), true));
}

#[test]
fn ratio_of_a_total_reads_its_table_once() {
    let (queries, result) = evaluated(
        "EVALUATE SUMMARIZECOLUMNS(orders[status], \"x\", SUMX(orders, orders[id] * 2), \"y\", SUMX(orders, orders[id] * 3), \
         \"z\", CALCULATE(SUMX(orders, orders[id] * 2), ALL(orders)))",
    );
    assert!(result.is_ok(), "{result:?}");
    let aggregating: Vec<_> = queries.iter().filter(|query| !query.computed.is_empty()).collect();
    let [query] = &aggregating[..] else { panic!("{queries:?}") };
    assert_eq!((query.computed.len(), names(query).1), (2, vec!["orders.status".to_owned()]));
}

#[test]
fn filters_that_do_not_reach_a_measure_have_a_warning() {
    let of = |filter: &str, measure: &str| format!("the filter of {filter} does not reach {measure}, which ignores it");
    let paid = || vec![of("orders[status]", "customers[count]")];
    for (query, expected) in [
        ("ROW(\"n\", CALCULATE(customers[count], orders[status] = \"paid\"))", paid()),
        ("SUMMARIZECOLUMNS(customers[region], \"n\", CALCULATE(customers[count], orders[status] = \"paid\"))", paid()),
        ("ROW(\"n\", CALCULATE(customers[count] + orders[count], TREATAS({\"paid\"}, orders[status])))", paid()),
        ("CALCULATETABLE(ROW(\"n\", customers[count] + 0), orders[status] = \"paid\")", paid()),
        (
            "ROW(\"n\", CALCULATE(SUM(customers[id]), orders[status] = \"paid\"))",
            vec![of("orders[status]", "customers[id]")],
        ),
        (
            "ROW(\"n\", CALCULATE(refunds[count], orders[status] = \"paid\"))",
            vec![of("orders[status]", "refunds[count]")],
        ),
        ("ROW(\"n\", CALCULATE(orders[count] + 0, customers[region] = \"US\"))", Vec::new()),
        // The rows of orders restrict their customers.
        ("ROW(\"n\", CALCULATE(customers[count] + 0, FILTER(orders, orders[status] = \"paid\")))", Vec::new()),
        ("CALCULATETABLE(VALUES(customers[region]), orders[status] = \"paid\")", Vec::new()),
    ] {
        let (_, result) = evaluated(&format!("EVALUATE {query}"));
        assert_eq!(result.unwrap().warnings, expected, "{query}");
    }
}

#[test]
fn summarize_evaluates_expressions_over_the_rows_of_its_table() {
    let (queries, result) = evaluated(
        "EVALUATE SUMMARIZE(FILTER(orders, orders[status] = \"paid\"), customers[region], \"n\", COUNTROWS(orders))",
    );
    assert!(result.is_ok(), "{result:?}");
    let counting = queries.iter().find(|query| !query.values.is_empty()).unwrap();
    assert_eq!(names(counting), (vec!["orders.count".to_owned()], vec!["customers.region".to_owned()]));
    assert_eq!(counting.filters.len(), 1);
}

#[test]
fn other_forms_of_summarize_have_a_suggestion() {
    for (query, message) in [
        (
            "SUMMARIZE(orders, \"n\", COUNTROWS(orders))",
            "line 1, column 10: SUMMARIZE without group columns is not supported. \
             Use ROW, or SUMMARIZECOLUMNS with the table as a filter.",
        ),
        (
            "SUMMARIZE(VALUES(orders[status]), orders[status], \"n\", COUNTROWS(orders))",
            "line 1, column 20: SUMMARIZE of this table with expressions is not supported. \
             Use SUMMARIZECOLUMNS with the table as a filter, before the names and expressions.",
        ),
    ] {
        let text = format!("EVALUATE {query}");
        let problem = evaluated(&text).1.unwrap_err();
        assert_eq!(problem.in_text(&text).to_string(), message);
    }
}
