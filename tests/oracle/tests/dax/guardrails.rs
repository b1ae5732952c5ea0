//! Guardrails of DAX queries: the rows of a result, and bounds on time.

use serde_json::{Value as Json, json};
use terrane_app::cost::Guardrails;
use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::answers::star_rows;
use terrane_oracle_tests::dax::run::rows;
use terrane_oracle_tests::product::{Product, Served};
use terrane_wire::Code;

use crate::serve;

fn with_served(guardrails: Guardrails, test: impl FnOnce(&Served<'_>)) {
    let mut product = Product::start(settings()).unwrap();
    product.guardrails = guardrails;
    test(&serve(&product, &star_rows()));
}

fn assert_rows(served: &Served<'_>, query: &str, expected: &Json) {
    match served.run_dax(query) {
        Ok(answer) => assert_eq!(json!(rows(&answer)), *expected, "{query}"),
        Err(message) => panic!("{query}: {message}"),
    }
}

#[test]
fn returned_rows_are_limited_and_read_rows_are_not() {
    let guardrails = Guardrails { max_rows_returned: Some(2), ..Guardrails::default() };
    with_served(guardrails, |served| {
        for (query, expected) in [
            ("EVALUATE {SUMX(orders, orders[amount] * 2)}", json!([[79.0]])),
            ("EVALUATE {SUMX(FILTER(orders, [revenue] > 6), orders[amount])}", json!([[37.5]])),
            (
                "EVALUATE TOPN(2, SUMMARIZECOLUMNS(orders[id], \"r\", [revenue]), [r]) ORDER BY [r]",
                json!([[1.0, 10.0], [2.0, 20.5]]),
            ),
            (
                "EVALUATE TOPN(1, ADDCOLUMNS(VALUES(orders[status]), \"r\", [revenue] + 1), [r])",
                json!([["paid", 31.5]]),
            ),
            (
                "EVALUATE FILTER(SUMMARIZECOLUMNS(orders[id], \"r\", [revenue]), [r] > 8) ORDER BY [r]",
                json!([[1.0, 10.0], [2.0, 20.5]]),
            ),
            ("EVALUATE UNION({1}, {2}) ORDER BY [Value]", json!([[1.0], [2.0]])),
        ] {
            assert_rows(served, query, &expected);
        }
        for query in [
            "EVALUATE SUMMARIZECOLUMNS(orders[id], \"r\", [revenue])",
            "EVALUATE VALUES(orders[status])",
            "EVALUATE ADDCOLUMNS(VALUES(orders[status]), \"r\", [revenue] + 1)",
            "EVALUATE UNION({1, 2}, {3})",
            "EVALUATE TOPN(3, SUMMARIZECOLUMNS(orders[id], \"r\", [revenue]), [r])",
        ] {
            let error = served.dax(query).unwrap_err();
            assert_eq!(error.body.code, Code::GuardrailExceeded, "{query}: {}", error.body.message);
            assert!(error.body.message.contains("`max_rows_returned`"), "{}", error.body.message);
            assert_eq!(error.body.field("limit"), Some(&json!(2)));
            let suggestion = error.body.field("suggestion").unwrap().as_str().unwrap();
            assert!(suggestion.contains("TOPN") && !suggestion.contains("`limit`"), "{suggestion}");
        }
    });
}

#[test]
fn conditions_on_dates_are_bounds_on_time() {
    let guardrails = Guardrails { require_time_filter: true, ..Guardrails::default() };
    with_served(guardrails, |served| {
        for (query, expected) in [
            ("EVALUATE {CALCULATE([revenue], orders[day] >= DATE(2024, 2, 1))}", json!([[12.0]])),
            ("EVALUATE {CALCULATE([revenue] + 1, orders[day] >= DATE(2024, 2, 1))}", json!([[13.0]])),
            (
                "EVALUATE {CALCULATE([revenue], FILTER(ALL(orders[day]), orders[day] >= DATE(2024, 2, 1)))}",
                json!([[12.0]]),
            ),
            (
                "EVALUATE {CALCULATE([revenue], DATESBETWEEN(orders[day], dt\"2024-01-01\", dt\"2024-01-31\"))}",
                json!([[30.5]]),
            ),
            ("EVALUATE {CALCULATE([revenue], DATESBETWEEN(orders[day], DATE(2024, 2, 1), BLANK()))}", json!([[12.0]])),
            (
                "EVALUATE CALCULATETABLE(ADDCOLUMNS(SUMMARIZE(orders, orders[status]), \"r\", [revenue] + 1), \
                 DATESBETWEEN(orders[day], DATE(2024, 1, 1), DATE(2024, 1, 31)))",
                json!([["paid", 31.5]]),
            ),
            ("EVALUATE {SUMX(FILTER(orders, orders[day] >= DATE(2024, 2, 1)), orders[amount] * 2)}", json!([[24.0]])),
            (
                "EVALUATE {CALCULATE(TOTALYTD([revenue], orders[day]), orders[day] >= DATE(2024, 2, 1))}",
                json!([[42.5]]),
            ),
            (
                "EVALUATE CALCULATETABLE({CALCULATE([revenue], DATEADD(orders[day], -1, MONTH))}, \
                 DATESBETWEEN(orders[day], dt\"2024-02-01\", dt\"2024-02-29\"))",
                json!([[30.5]]),
            ),
        ] {
            assert_rows(served, query, &expected);
        }
        for query in [
            "EVALUATE {[revenue]}",
            "EVALUATE {CALCULATE([revenue], orders[day] <= DATE(2024, 2, 1))}",
            "EVALUATE {CALCULATE([revenue], DATESBETWEEN(orders[day], BLANK(), DATE(2024, 1, 31)))}",
            "EVALUATE {SUMX(orders, orders[amount] * 2)}",
        ] {
            let error = served.dax(query).unwrap_err();
            assert_eq!(error.body.code, Code::GuardrailExceeded, "{query}: {}", error.body.message);
            let suggestion = error.body.field("suggestion").unwrap().as_str().unwrap();
            assert!(suggestion.contains("DATESBETWEEN") && !suggestion.contains("time_range"), "{suggestion}");
        }
    });
}
