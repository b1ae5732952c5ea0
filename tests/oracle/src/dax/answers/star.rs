//! Queries over the star schema with their answers.
//!
//! This is one file, because it is one list. Each difference that the evaluator finds becomes an answer here.

/// Queries over the rows of [`super::star_rows`] with answers that were computed by hand from the definitions.
pub(super) const ANSWERS: &[(&str, &str)] = &[
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
    // The rows of the table are a filter of the groups: orders without a customer belong to no row of `customers`.
    (
        "EVALUATE SUMMARIZE(customers, customers[region], \"n\", [orders]) ORDER BY customers[region]",
        r#"[[null, 1], ["APAC", null], ["EU", 1], ["US", 2]]"#,
    ),
    (
        "EVALUATE SUMMARIZE(customers, customers[region], \"n\", [orders] + 0) ORDER BY customers[region]",
        r#"[[null, 1], ["APAC", 0], ["EU", 1], ["US", 2]]"#,
    ),
    // The groups of ADDCOLUMNS are filters of their columns only, and orders without a customer have no region.
    (
        "EVALUATE ADDCOLUMNS(SUMMARIZE(customers, customers[region]), \"n\", [orders]) ORDER BY customers[region]",
        r#"[[null, 3], ["APAC", null], ["EU", 1], ["US", 2]]"#,
    ),
    (
        "EVALUATE SUMMARIZE(orders, customers[region], \"n\", [orders], \"r\", [refunded]) ORDER BY customers[region]",
        r#"[[null, 3, 1], ["EU", 1, null], ["US", 2, 2]]"#,
    ),
    // A variable stands for the rows of its table, with the related columns.
    (
        "EVALUATE VAR t = orders RETURN SUMMARIZE(t, customers[region]) ORDER BY customers[region]",
        r#"[[null], ["EU"], ["US"]]"#,
    ),
    (
        "EVALUATE VAR t = orders RETURN SUMMARIZE(t, customers[region], \"n\", [orders] + 1) ORDER BY customers[region]",
        r#"[[null, 4], ["EU", 2], ["US", 3]]"#,
    ),
    (
        "EVALUATE VAR t = FILTER(orders, orders[amount] > 6) RETURN SUMMARIZE(t, customers[region], \
         \"n\", COUNTROWS(orders)) ORDER BY customers[region]",
        r#"[[null, 1], ["US", 2]]"#,
    ),
    ("DEFINE VAR t = orders EVALUATE {SUMX(t, RELATED(customers[credit]))}", "[[300]]"),
    (
        "EVALUATE VAR t = FILTER(orders, RELATED(customers[region]) = \"US\") VAR u = t \
         RETURN {COUNTROWS(FILTER(u, RELATED(customers[credit]) > 60))}",
        "[[2]]",
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
    // IFERROR detects failed conversions, and divisions by 0, whose results are infinite or undefined.
    (
        "EVALUATE {(IFERROR(INT(\"abc\"), -1), IFERROR(1 / 0, -2), IFERROR(0 / 0, -3), ISERROR(1 / 0), ISERROR(4 / 2), \
         IFERROR(4 / 2, -4))}",
        "[[-1, -2, -3, true, false, 2.0]]",
    ),
    // Dates become ISO 8601 strings. COUNTBLANK counts BLANK, and not empty strings.
    ("EVALUATE {(\"d\" & DATE(2024, 1, 31), COUNTBLANK(orders[status]))}", r#"[["d2024-01-31", 1]]"#),
    // ALLEXCEPT with a table keeps the filters of all columns of the table.
    (
        "EVALUATE CALCULATETABLE(ADDCOLUMNS(VALUES(customers[region]), \"r\", CALCULATE([revenue], \
         ALLEXCEPT(orders, customers))), orders[status] = \"paid\") ORDER BY customers[region]",
        r#"[[null, 4.0], ["APAC", null], ["EU", 5.0], ["US", 30.5]]"#,
    ),
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
    // A filter that replaces one column of a filter of two leaves the values of the other one. In the first query, 7 is
    // not one of the amounts; in the second one, 70 is not one of the credits.
    (
        "EVALUATE CALCULATETABLE({(CALCULATE([revenue], orders[status] = \"open\"), \
         CALCULATE([revenue], ISBLANK(orders[status])), CALCULATE([revenue], ALL(orders[status])))}, \
         orders[status] = \"paid\" || orders[amount] < 6)",
        "[[5.0, null, 32.5]]",
    ),
    (
        "EVALUATE CALCULATETABLE({(CALCULATE([revenue], ISBLANK(customers[region])), \
         CALCULATE([revenue], customers[region] = \"EU\"), CALCULATE([revenue], ALL(customers[region])))}, \
         customers[region] = \"US\" || customers[credit] < 60)",
        "[[4.0, null, 34.5]]",
    ),
    (
        "EVALUATE CALCULATETABLE(SUMMARIZECOLUMNS(orders[status], \"r\", [revenue]), \
         orders[status] = \"paid\" || orders[amount] < 6) ORDER BY orders[status]",
        r#"[["", -3.0], ["open", 5.0], ["paid", 30.5]]"#,
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
    // The query names no key, and the rows are still a filter of the expressions.
    (
        "EVALUATE SUMMARIZE(FILTER(orders, orders[status] = \"paid\"), orders[status], \"r\", [revenue])",
        r#"[["paid", 30.5]]"#,
    ),
    (
        "EVALUATE SUMMARIZE(CALCULATETABLE(orders, orders[status] = \"open\"), orders[status], \"n\", [orders])",
        r#"[["open", 2]]"#,
    ),
    // Rows that were selected without the filter of the group replace this filter.
    (
        "EVALUATE VAR t = orders RETURN SUMMARIZECOLUMNS(orders[status], \"r\", CALCULATE([revenue], t), \
         \"k\", CALCULATE([revenue], KEEPFILTERS(t))) ORDER BY orders[status]",
        r#"[[null, 39.5, 7.0], ["", 39.5, -3.0], ["open", 39.5, 5.0], ["paid", 39.5, 30.5]]"#,
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(customers[region], \"c\", CALCULATE([total_credit], CALCULATETABLE(customers, \
         ALL(customers)))) ORDER BY customers[region]",
        r#"[[null, 750], ["APAC", 750], ["EU", 750], ["US", 750]]"#,
    ),
    // The forms that BI clients write: KEEPFILTERS around a table, and one subtotal for several columns.
    (
        "DEFINE VAR f = FILTER(KEEPFILTERS(VALUES(orders[amount])), orders[amount] > 6) \
         EVALUATE SUMMARIZECOLUMNS(ROLLUPADDISSUBTOTAL(ROLLUPGROUP(customers[region], orders[status]), \"t\"), f, \
         \"r\", [revenue]) ORDER BY [t] DESC, customers[region]",
        r#"[[null, null, true, 37.5], [null, null, false, 7.0], ["US", "paid", false, 30.5]]"#,
    ),
    (
        "EVALUATE SELECTCOLUMNS(FILTER(KEEPFILTERS(orders), orders[amount] > 6), orders[id], \"s\", orders[status]) \
         ORDER BY orders[id]",
        r#"[[1, "paid"], [2, "paid"], [4, null]]"#,
    ),
    ("EVALUATE {MAX(-1, BLANK())}", "[[0]]"),
    ("EVALUATE {MIN(1, BLANK())}", "[[0]]"),
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
    // The warehouse computes iterators that read only the columns of a row. BLANK counts as 0 in sums and comparisons, and
    // makes products BLANK.
    ("EVALUATE {SUMX(orders, orders[amount] + 1)}", "[[45.5]]"),
    ("EVALUATE {SUMX(orders, orders[amount] * RELATED(customers[credit]))}", "[[3610]]"),
    ("EVALUATE {SUMX(orders, IF(orders[amount] > 0, orders[amount], 1))}", "[[44.5]]"),
    ("EVALUATE {COUNTX(orders, IF(orders[amount] < 6, orders[id]))}", "[[3]]"),
    ("EVALUATE {MINX(orders, ABS(orders[amount]))}", "[[3]]"),
    ("EVALUATE {(SUMX(orders, MAX(orders[amount], 8)), SUMX(orders, MIN(orders[amount], 8)))}", "[[62.5, 25]]"),
    ("EVALUATE {SUMX(orders, SWITCH(orders[status], \"paid\", orders[amount], BLANK(), 100, -1))}", "[[127.5]]"),
    ("EVALUATE {SUMX(orders, SWITCH(TRUE(), orders[amount] > 9, 2, orders[amount] < 0, 3, 1))}", "[[10]]"),
    ("EVALUATE {AVERAGEX(orders, COALESCE(orders[amount], 4))}", "[[7.25]]"),
    ("EVALUATE {SUMX(orders, DIVIDE(orders[amount], orders[id] - 2, 100))}", "[[97.75]]"),
    ("EVALUATE {COUNTROWS(FILTER(orders, orders[amount] > orders[id] * 2))}", "[[2]]"),
    ("EVALUATE {SUMX(orders, IF(RELATED(customers[region]) = \"US\", orders[amount], 0))}", "[[30.5]]"),
    ("EVALUATE {SUMX(orders, VAR a = orders[amount] + 1 RETURN a * a)}", "[[688.25]]"),
    ("EVALUATE {SUMX(orders, IF(ISBLANK(orders[amount]), 1000, 0))}", "[[1000]]"),
    (
        "EVALUATE {SUMX(FILTER(FILTER(orders, orders[status] = \"paid\"), orders[amount] > orders[id]), orders[id])}",
        "[[3]]",
    ),
    ("EVALUATE {SUMX(CALCULATETABLE(orders, orders[status] = \"open\"), orders[id] + 0)}", "[[8]]"),
    (
        "EVALUATE SUMMARIZECOLUMNS(customers[region], \"x\", \
         SUMX(FILTER(orders, orders[amount] <> orders[id]), orders[amount] * 2)) ORDER BY customers[region]",
        r#"[[null, 8], ["EU", 10], ["US", 61]]"#,
    ),
    (
        "EVALUATE SELECTCOLUMNS(FILTER(customers, customers[id] < 4), \"x\", SUMX(RELATEDTABLE(orders), orders[amount] + 0)) \
         ORDER BY [x]",
        "[[null], [5], [30.5]]",
    ),
    // The revenue of each day's year up to that day.
    (
        "EVALUATE SELECTCOLUMNS(VALUES(orders[day]), \"y\", TOTALYTD([revenue], orders[day])) ORDER BY [y]",
        "[[-3], [10], [30.5], [35.5], [42.5], [42.5]]",
    ),
];
