//! DAX queries on DuckDB, compared with answers that were computed by hand, and with an evaluator that follows the
//! definition of each function row by row.
//!
//! This is one file, because the answers and the random queries use the same project, and each difference that the
//! evaluator finds becomes an answer here.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod snowflake;

use serde_json::{Value as Json, json};
use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::run::{Run, on_duckdb, rows, run};
use terrane_oracle_tests::dax::star::{Data, Mask, Policies, RowPolicy, number, source_tree, statements};
use terrane_oracle_tests::hooks::WorldHooks;
use terrane_oracle_tests::product::{Product, Served};
use terrane_wire::Code;

fn serve<'p>(product: &'p Product, data: &Data) -> Served<'p> {
    statements(data).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    product.serve_tree(&source_tree(&Policies::default()), WorldHooks::default()).unwrap()
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
    // Order 5 has no amount. Its group is dropped, because its only expression is BLANK.
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[id], \"r\", [revenue]) ORDER BY orders[id]",
        r#"[[1, 10.0], [2, 20.5], [3, 5.0], [4, 7.0], [6, -3.0]]"#,
    ),
    // A table of one column and one row becomes its value. Without a row it is BLANK, with several rows an error.
    (
        "EVALUATE ROW(\"a\", IF(HASONEVALUE(customers[region]), VALUES(customers[region]), \"several\"), \"b\", {1} + {2}, \
         \"c\", CALCULATETABLE(VALUES(orders[status]), orders[status] = \"none\") & \"!\", \"d\", IFERROR({1, 2} + 0, -1))",
        r#"[["several", 3, "!", -1]]"#,
    ),
    (
        "EVALUATE ADDCOLUMNS(FILTER(VALUES(customers[region]), customers[region] <> \"US\"), \"same\", \
         CALCULATE(VALUES(customers[region]))) ORDER BY customers[region]",
        r#"[[null, null], ["APAC", "APAC"], ["EU", "EU"]]"#,
    ),
    // BLANK is ordered between -3 and 5.
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[id], \"r\", [revenue], \"n\", [orders]) ORDER BY [r]",
        r#"[[6, -3.0, 1], [5, null, 1], [3, 5.0, 1], [4, 7.0, 1], [1, 10.0, 1], [2, 20.5, 1]]"#,
    ),
    // BLANK and "" come before every other string, and `<>` includes BLANK.
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
    // Strings are compared by code point, as in queries by REST.
    (
        "EVALUATE {(\"a\" = \"A\", \"a\" == \"A\", \"a\" IN {\"A\"}, \"a\" > \"B\", LOWER(\"A\") = \"a\")}",
        "[[false, false, false, true, true]]",
    ),
    ("EVALUATE FILTER(VALUES(orders[status]), orders[status] = \"PAID\")", "[]"),
    ("EVALUATE FILTER(VALUES(orders[status]), UPPER(orders[status]) = \"PAID\")", r#"[["paid"]]"#),
    ("EVALUATE ROW(\"n\", CALCULATE([orders], orders[status] = \"Paid\"))", "[[null]]"),
    // TREATAS compares strictly. Orders without a customer belong to the BLANK region.
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[id], TREATAS({\"EU\", BLANK()}, customers[region]), \"n\", [orders]) ORDER BY orders[id]",
        "[[3, 1], [4, 1], [5, 1], [6, 1]]",
    ),
    // A filter that is a set of rows of `customers` also excludes the orders that belong to no customer (5 and 6).
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
    // No measure of the project is one of these aggregates.
    (
        "EVALUATE SUMMARIZECOLUMNS(customers[region], \"a\", AVERAGE(orders[amount]), \"n\", COUNT(orders[amount]), \
         \"t\", COUNTA(orders[status]), \"b\", COUNTBLANK(orders[amount]), \"i\", SUM(orders[id])) ORDER BY customers[region]",
        r#"[[null, 2.0, 2, 2, 1, 15], ["EU", 5.0, 1, 1, null, 3], ["US", 15.25, 2, 2, null, 3]]"#,
    ),
    (
        "EVALUATE {(SUM(orders[id]), CALCULATE(SUM(orders[id]), orders[status] = \"paid\"), COUNT(orders[day]), \
         CALCULATE(AVERAGE(orders[id]), orders[id] > 100), COUNTROWS(FILTER(orders, orders[id] > 2)))}",
        "[[21, 3, 6, null, 4]]",
    ),
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
    // A variable has the value of the place where it is defined.
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
    // Sets of rows. Duplicates of the first table stay.
    ("EVALUATE INTERSECT({1, 2, 2, 3}, {2, 3, 4}) ORDER BY [Value]", "[[2], [2], [3]]"),
    ("EVALUATE EXCEPT({1, 1, 2}, {2}) ORDER BY [Value]", "[[1], [1]]"),
    (
        "EVALUATE CROSSJOIN(SELECTCOLUMNS({1, 2}, \"a\", [Value]), SELECTCOLUMNS({3, 4}, \"b\", [Value])) ORDER BY [a], [b]",
        "[[1, 3], [1, 4], [2, 3], [2, 4]]",
    ),
    ("EVALUATE {COUNTROWS(CROSSJOIN(VALUES(orders[status]), VALUES(orders[is_gift])))}", "[[12]]"),
    (
        "EVALUATE GENERATE(VALUES(customers[region]), CALCULATETABLE(VALUES(orders[status]))) \
         ORDER BY customers[region], orders[status]",
        r#"[[null, null], [null, ""], [null, "open"], ["EU", "open"], ["US", "paid"]]"#,
    ),
    (
        "EVALUATE {CONCATENATEX(VALUES(orders[status]), orders[status], \"|\", orders[status], ASC)}",
        r#"[["||open|paid"]]"#,
    ),
    ("EVALUATE {CONCATENATEX(customers, customers[id], \",\", customers[credit], DESC)}", r#"[["5,1,3,2,4"]]"#),
    ("EVALUATE {CONCATENATEX(FILTER(orders, orders[id] > 100), orders[status])}", "[[null]]"),
    // ALLSELECTED restores the filters outside the rows, and ALL removes all filters of the column.
    (
        "EVALUATE CALCULATETABLE(ADDCOLUMNS(VALUES(orders[status]), \"r\", [revenue], \
         \"s\", CALCULATE([revenue], ALLSELECTED(orders[status])), \"a\", CALCULATE([revenue], ALL(orders[status]))), \
         orders[status] IN {\"paid\", \"open\"}) ORDER BY orders[status]",
        r#"[["open", 5.0, 35.5, 39.5], ["paid", 30.5, 35.5, 39.5]]"#,
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], FILTER(ALL(orders[status]), orders[status] IN {\"paid\", \"open\"}), \
         \"s\", CALCULATE([revenue], ALLSELECTED(orders[status]))) ORDER BY orders[status]",
        r#"[["open", 35.5], ["paid", 35.5]]"#,
    ),
    // Outside of rows, ALLSELECTED changes no filter.
    ("EVALUATE {CALCULATE(COUNTROWS(ALLSELECTED(orders[status])), orders[status] = \"open\")}", "[[1]]"),
    ("EVALUATE {COUNTROWS(ALLSELECTED(orders[status]))}", "[[4]]"),
    ("EVALUATE {CALCULATE(CALCULATE([revenue], ALLSELECTED(orders[status])), orders[status] = \"open\")}", "[[5.0]]"),
    (
        "EVALUATE CALCULATETABLE(SUMMARIZECOLUMNS(FILTER(ALLSELECTED(orders[status]), orders[status] <> \"paid\"), \
         \"r\", [revenue]), orders[status] IN {\"paid\", \"open\"})",
        "[[5.0]]",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], orders[is_gift], \"r\", CALCULATE([revenue], \
         ALLEXCEPT(orders, orders[status]))) ORDER BY orders[status], orders[is_gift]",
        r#"[[null, true, 7.0], ["", null, -3.0], ["open", null, 5.0], ["open", false, 5.0], ["paid", false, 30.5],
            ["paid", true, 30.5]]"#,
    ),
    (
        "EVALUATE ALLEXCEPT(orders, orders[id], orders[amount], orders[is_gift], orders[day]) ORDER BY orders[status]",
        r#"[[null], [""], ["open"], ["paid"]]"#,
    ),
    (
        "EVALUATE CALCULATETABLE(ROW(\"p\", CALCULATE([revenue], DATEADD(orders[day], -1, MONTH))), \
         DATESBETWEEN(orders[day], dt\"2024-02-01\", dt\"2024-02-29\"))",
        "[[30.5]]",
    ),
    (
        "EVALUATE CALCULATETABLE(ROW(\"p\", CALCULATE([revenue], DATEADD(orders[day], 1, DAY))), \
         orders[day] = DATE(2024, 1, 31))",
        "[[5.0]]",
    ),
    // The filters of CALCULATE are evaluated in the outer context, in which the current rows are not filters.
    (
        "EVALUATE ADDCOLUMNS(VALUES(orders[status]), \"r\", CALCULATE([revenue], FILTER(VALUES(orders[status]), \
         orders[status] <> \"paid\"))) ORDER BY orders[status]",
        r#"[[null, 9.0], ["", 9.0], ["open", 9.0], ["paid", 9.0]]"#,
    ),
    // ALL of a fact table also removes the filters of its customers.
    (
        "EVALUATE ADDCOLUMNS(VALUES(customers[region]), \"r\", CALCULATE([revenue], FILTER(ALL(orders), \
         orders[amount] > 6))) ORDER BY customers[region]",
        r#"[[null, 37.5], ["APAC", 37.5], ["EU", 37.5], ["US", 37.5]]"#,
    ),
    // A count of zero rows is BLANK.
    ("EVALUATE ROW(\"n\", CALCULATE([orders], orders[id] > 100))", "[[null]]"),
    ("EVALUATE SUMMARIZECOLUMNS(\"n\", CALCULATE([orders], orders[id] > 100))", "[]"),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], \"g\", [gifts]) ORDER BY orders[status]",
        r#"[[null, 1], ["paid", 1]]"#,
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], \"g\", [gifts], \"n\", [orders]) ORDER BY [g], orders[status]",
        r#"[["", null, 1], ["open", null, 2], [null, 1, 1], ["paid", 1, 2]]"#,
    ),
    (
        "EVALUATE FILTER(SUMMARIZECOLUMNS(orders[status], \"g\", [gifts], \"n\", [orders]), ISBLANK([g])) \
         ORDER BY orders[status]",
        r#"[["", null, 1], ["open", null, 2]]"#,
    ),
    // Dates.
    (
        "EVALUATE SELECTCOLUMNS(FILTER(orders, orders[day] >= DATE(2024, 2, 1)), \"i\", orders[id]) ORDER BY [i]",
        "[[3], [4], [5]]",
    ),
    ("EVALUATE {CALCULATE([orders], orders[day] = DATE(2024, 1, 31))}", "[[1]]"),
    ("EVALUATE {CALCULATE([orders], orders[day] IN {DATE(2024, 1, 31), dt\"2024-02-29\"})}", "[[2]]"),
    ("EVALUATE {CALCULATE([orders], DATE(2024, 1, 31) < orders[day])}", "[[3]]"),
    ("EVALUATE {COUNTROWS(VALUES(customers))}", "[[6]]"),
    ("EVALUATE {COUNTROWS(CALCULATETABLE(VALUES(customers), customers[credit] > 60))}", "[[3]]"),
    (
        "EVALUATE SELECTCOLUMNS(ADDCOLUMNS(orders, \"r\", RELATED(customers[region])), \"i\", orders[id], \"r\", [r]) ORDER BY [i]",
        r#"[[1, "US"], [2, "US"], [3, "EU"], [4, null], [5, null], [6, null]]"#,
    ),
    ("EVALUATE {MAX(1, 2), MIN(-1, BLANK())} ORDER BY [Value]", "[[-1], [2]]"),
    // BLANK ranks as 0, and with DENSE equal values take one rank.
    (
        "EVALUATE ADDCOLUMNS({-1, 0, BLANK(), 2}, \"r\", RANKX({-1, 0, BLANK(), 2}, [Value], [Value], DESC, DENSE)) \
         ORDER BY [r], [Value]",
        "[[2, 1], [null, 2], [0, 2], [-1, 3]]",
    ),
    (
        "EVALUATE CALCULATETABLE(ROW(\"p\", CALCULATE([revenue], PREVIOUSYEAR(orders[day], \"1-31\"))), \
         orders[day] = dt\"2024-02-01\")",
        "[[27.5]]",
    ),
    // A table is a filter of SUMMARIZECOLUMNS. The rows of customers leave out orders 5 and 6, which have no customer.
    ("EVALUATE SUMMARIZECOLUMNS(customers, \"r\", [revenue])", "[[42.5]]"),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], customers, \"r\", [revenue]) ORDER BY orders[status]",
        r#"[[null, 7.0], ["open", 5.0], ["paid", 30.5]]"#,
    ),
    // Nested filters: the inner one replaces the outer one, and KEEPFILTERS intersects both.
    (
        "EVALUATE ADDCOLUMNS(VALUES(orders[status]), \
         \"a\", CALCULATE(CALCULATE([revenue], orders[status] = \"open\"), orders[status] = \"paid\"), \
         \"b\", CALCULATE(CALCULATE([revenue], KEEPFILTERS(orders[status] = \"open\")), orders[status] = \"paid\"), \
         \"c\", CALCULATE(CALCULATE([revenue], KEEPFILTERS(orders[status] IN {\"open\", \"paid\"})), \
         KEEPFILTERS(orders[status] = \"paid\"))) ORDER BY orders[status]",
        r#"[[null, 5.0, null, null], ["", 5.0, null, null], ["open", 5.0, null, null], ["paid", 5.0, null, 30.5]]"#,
    ),
    (
        "EVALUATE ADDCOLUMNS(VALUES(customers[region]), \"a\", CALCULATE([revenue], ALL(customers)), \
         \"b\", CALCULATE([revenue], ALLEXCEPT(customers, customers[region])), \
         \"c\", CALCULATE([revenue], REMOVEFILTERS(customers[region]), KEEPFILTERS(customers[credit] > 60))) \
         ORDER BY customers[region]",
        r#"[[null, 39.5, 4.0, 35.5], ["APAC", 39.5, null, 35.5], ["EU", 39.5, 5.0, 35.5], ["US", 39.5, 30.5, 35.5]]"#,
    ),
    (
        "EVALUATE SELECTCOLUMNS(TOPN(2, orders, orders[status], ASC, orders[amount], DESC), \"i\", orders[id]) ORDER BY [i]",
        "[[4], [6]]",
    ),
    (
        "EVALUATE ADDCOLUMNS({1, 2, 2, 3}, \"s\", RANKX({1, 2, 2, 3}, [Value]), \
         \"d\", RANKX({1, 2, 2, 3}, [Value],,, DENSE), \"a\", RANKX({1, 2, 2, 3}, [Value],, ASC), \
         \"o\", RANKX({1, 2, 2, 3}, [Value], 2.5)) ORDER BY [Value]",
        "[[1, 4, 3, 1, 2], [2, 2, 2, 2, 2], [2, 2, 2, 2, 2], [3, 1, 1, 4, 2]]",
    ),
    // The BLANK region has one customer, the BLANK row of orders without a customer, and three orders.
    (
        "EVALUATE ADDCOLUMNS(VALUES(customers[region]), \"n\", COUNTROWS(RELATEDTABLE(orders)), \
         \"c\", CALCULATE(COUNTROWS(customers)), \"v\", CALCULATE(COUNTROWS(VALUES(customers[id])))) \
         ORDER BY customers[region]",
        r#"[[null, 3, 1, 2], ["APAC", null, 1, 1], ["EU", 1, 1, 1], ["US", 2, 2, 2]]"#,
    ),
    (
        "EVALUATE FILTER(VALUES(orders[amount]), orders[amount] IN {BLANK(), 0, 7}) ORDER BY orders[amount]",
        "[[null], [7.0]]",
    ),
    ("EVALUATE FILTER(VALUES(orders[amount]), orders[amount] = 0)", "[[null]]"),
    // Dates at the ends of the range, with the end of a fiscal year.
    (
        "EVALUATE ADDCOLUMNS(VALUES(orders[id]), \"t\", TOTALYTD([revenue], orders[day], \"1-31\"), \
         \"m\", CALCULATE([revenue], DATEADD(orders[day], -1, MONTH))) ORDER BY orders[id]",
        "[[1, 10.0, null], [2, 20.5, null], [3, 5.0, null], [4, 7.0, null], [5, null, null], [6, -3.0, null]]",
    ),
    (
        "EVALUATE {COUNTROWS(DATEADD(orders[day], 1, MONTH)), COUNTROWS(SAMEPERIODLASTYEAR(orders[day]))}",
        "[[4], [null]]",
    ),
    // The rows of the table are a filter of the expressions of SUMMARIZE.
    (
        "EVALUATE SUMMARIZE(FILTER(orders, orders[id] < 4), orders[status], \"n\", COUNTROWS(orders), \"r\", [revenue]) \
         ORDER BY orders[status]",
        r#"[["open", 1, 5.0], ["paid", 2, 30.5]]"#,
    ),
    (
        "EVALUATE SUMMARIZE(FILTER(orders, orders[amount] > 6), customers[region], \"n\", COUNTROWS(orders), \
         \"a\", CALCULATE(COUNTROWS(orders), ALL(orders[amount])), \"c\", COUNTROWS(customers)) ORDER BY customers[region]",
        r#"[[null, 1, 1, 1], ["US", 2, 2, 1]]"#,
    ),
    (
        "EVALUATE SUMMARIZE(TOPN(3, orders, orders[id]), orders[status], \"s\", SUM(orders[amount])) ORDER BY orders[status]",
        r#"[[null, 7.0], ["", -3.0], ["open", null]]"#,
    ),
    // Integers do not overflow.
    ("EVALUATE {9223372036854775807 + 1 > 9223372036854775807}", "[[true]]"),
    // FORMAT.
    ("EVALUATE {FORMAT(1234.567, \"#,##0.00\")}", r#"[["1,234.57"]]"#),
    ("EVALUATE {FORMAT([revenue], \"0.0\") & \" EUR\"}", r#"[["39.5 EUR"]]"#),
    ("EVALUATE {FORMAT(0.256, \"0.0%\")}", r#"[["25.6%"]]"#),
    ("EVALUATE {FORMAT(-5, \"0;(0);zero\")}", r#"[["(5)"]]"#),
    (
        "EVALUATE SELECTCOLUMNS(FILTER(orders, orders[id] = 4), \"d\", FORMAT(orders[day], \"dddd, d MMM yyyy\"))",
        r#"[["Thursday, 29 Feb 2024"]]"#,
    ),
    ("EVALUATE {FORMAT(BLANK(), \"0.00\")}", r#"[[""]]"#),
];

/// Runs queries and compares their rows with expected ones, which are JSON.
fn assert_answers(served: &Served<'_>, answers: &[(&str, &str)]) {
    let mut faults = Vec::new();
    for (query, expected) in answers {
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

#[test]
fn listed_queries_have_their_defined_results() {
    let product = Product::start(settings()).unwrap();
    let served = serve(&product, &fixed());
    assert_answers(&served, ANSWERS);
}

/// Returns a DAX table of the numbers below a thousand.
fn thousand() -> String {
    let numbers: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
    format!("{{{}}}", numbers.join(","))
}

#[test]
fn measures_are_evaluated_once_in_a_context() {
    let product = Product::start(settings()).unwrap();
    let served = serve(&product, &fixed());
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
    let served = serve(&product, &fixed());
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
        let message = served.run_dax(&query).unwrap_err();
        assert!(message.contains(": the query needs more than"), "{message}: {}", &query[query.len() - 60..]);
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
    let mut data = fixed();
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
    statements(&fixed()).iter().for_each(|statement| _ = product.execute(statement).unwrap());
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
    statements(&fixed()).iter().for_each(|statement| _ = product.execute(statement).unwrap());
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
    statements(&fixed()).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let policies = Policies { denied: vec![("orders", "id")], ..Policies::default() };
    let served = product.serve_tree(&source_tree(&policies), WorldHooks::default()).unwrap();
    let query = "EVALUATE SUMMARIZECOLUMNS(\"n\", CALCULATE([orders], FILTER(orders, orders[status] = \"paid\")))";
    let open = serve(&product, &fixed()).run_dax(query).unwrap();
    assert_eq!(served.run_dax(query).unwrap()["data"], open["data"]);
}

/// Callers of these tests are those of the command line, which has no audit log.
#[test]
fn policy_refuses_a_measure_on_the_command_line() {
    let product = Product::start(settings()).unwrap();
    statements(&fixed()).iter().for_each(|statement| _ = product.execute(statement).unwrap());
    let policies = Policies { masks: vec![(("orders", "amount"), Mask::Null)], ..Policies::default() };
    let served = product.serve_tree(&source_tree(&policies), WorldHooks::default()).unwrap();
    for query in ["EVALUATE ROW(\"r\", [revenue])", "EVALUATE ROW(\"r\", [revenue] + 0)"] {
        let error = served.dax(query).unwrap_err();
        assert_eq!(error.code, Code::Forbidden, "{query}: {}", error.message);
    }
}

#[test]
fn tables_of_one_value_are_values() {
    let product = Product::start(settings()).unwrap();
    let served = serve(&product, &fixed());
    for (query, expected) in [
        ("EVALUATE {VALUES(customers[region]) & \"\"}", json!(null)),
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
        match served.run_dax(query) {
            Ok(answer) => assert_eq!(json!(rows(&answer)), expected, "{query}"),
            Err(message) => {
                assert!(message.contains("expected a single value"), "{query}: {message}");
                assert_eq!(expected, json!(null), "{query}: {message}");
            }
        }
    }
    let error = served.run_dax("EVALUATE {orders}").unwrap_err();
    assert!(error.contains("expected a scalar expression"), "{error}");
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
