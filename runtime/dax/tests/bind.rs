//! Tests binding against the model of the golden tests' shop, as a caller sees it.

use std::sync::OnceLock;

use terrane_compiler::model::Model;
use terrane_compiler::{Access, SecurityContext};
use terrane_dax::bound::{BlankRule, ScalarKind, TableKind};
use terrane_dax::parser::parse_query;
use terrane_dax::{Bound, Problem, ProblemCode, bind};
use terrane_golden_tests::case::models;

fn shop() -> &'static Model {
    static SHOP: OnceLock<Model> = OnceLock::new();
    SHOP.get_or_init(|| models().remove("shop").expect("the shop"))
}

fn bound_for(text: &str, role: &str) -> Bound {
    let caller = SecurityContext { roles: vec![role.into()], ..SecurityContext::default() };
    let parsed = parse_query(text);
    assert_eq!(parsed.problems, [], "{text}");
    bind(&parsed.tree, &Access::of(shop(), &caller))
}

fn bound(text: &str) -> Bound {
    bound_for(text, "analyst")
}

fn shown(text: &str, problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|problem| problem.in_text(text).to_string()).collect()
}

/// Returns the result columns of the first evaluation with their types.
fn columns(text: &str) -> Vec<(String, &'static str)> {
    let bound = bound(text);
    assert_eq!(shown(text, &bound.problems), Vec::<String>::new(), "{text}");
    let columns = bound.query.evaluations[0].table.columns.iter();
    columns.map(|column| (column.name.in_result(shop()), column.ty.as_str())).collect()
}

#[test]
fn queries_bind() {
    for text in [
        "EVALUATE orders",
        "evaluate 'ORDERS' order by ORDERS[Id] desc",
        "EVALUATE VALUES(customers[region])",
        "EVALUATE SUMMARIZECOLUMNS(customers[region], orders[status], \"Revenue\", [revenue])",
        "EVALUATE SUMMARIZECOLUMNS(customers[region], FILTER(ALL(orders[status]), orders[status] <> \"new\"), \"n\", orders[count]) ORDER BY [n] DESC, customers[region]",
        "EVALUATE SUMMARIZECOLUMNS(customers[region], TREATAS({\"north\", \"south\"}, customers[region]), \"n\", orders[count])",
        "EVALUATE SUMMARIZECOLUMNS(ROLLUPADDISSUBTOTAL(customers[region], \"all\"), \"n\", orders[count])",
        "EVALUATE SUMMARIZE(orders, customers[region], orders[status], \"n\", [orders_measure]) ",
        "EVALUATE ADDCOLUMNS(VALUES(customers[region]), \"n\", [revenue], \"name\", customers[region] & \"!\")",
        "EVALUATE SELECTCOLUMNS(orders, \"id\", orders[id], \"region\", RELATED(customers[region]))",
        "EVALUATE FILTER(ADDCOLUMNS(VALUES(customers[region]), \"n\", [revenue]), [n] > 10 && customers[region] IN {\"a\"})",
        "EVALUATE TOPN(3, VALUES(customers[region]), [revenue], DESC, customers[region], ASC)",
        "EVALUATE ROW(\"a\", SUM(orders[amount_in_cents]), \"b\", SUMX(orders, orders[amount_in_cents] / 100))",
        "EVALUATE ROW(\"a\", CALCULATE([revenue], orders[status] = \"paid\", ALL(customers), KEEPFILTERS(customers[region] = \"a\")))",
        "EVALUATE ROW(\"a\", CALCULATE(COUNTROWS(orders), FILTER(ALL(orders), orders[amount_in_cents] > 5)))",
        "EVALUATE ROW(\"a\", TOTALYTD([revenue], orders[created_at]), \"b\", CALCULATE([revenue], SAMEPERIODLASTYEAR(orders[created_at])))",
        "EVALUATE ROW(\"a\", CALCULATE([revenue], DATEADD(orders[created_at], -1, MONTH)), \"b\", DATEDIFF(dt\"2024-01-01\", TODAY(), day))",
        "EVALUATE ROW(\"a\", SWITCH(TRUE(), [revenue] > 3, \"big\", \"small\"), \"b\", IF(ISBLANK([revenue]), 0, [revenue]))",
        "EVALUATE ROW(\"a\", RANKX(ALL(customers[region]), [revenue],, ASC, Dense), \"b\", MAX(1, 2), \"c\", MAX(orders[created_at]))",
        "EVALUATE ROW(\"a\", CONCATENATEX(VALUES(customers[region]), customers[region], \", \", [revenue], DESC))",
        "EVALUATE VAR top = TOPN(1, orders, orders[id]) VAR n = COUNTROWS(top) RETURN ROW(\"n\", n, \"t\", [revenue])",
        "DEFINE VAR limit = 10 MEASURE orders[Twice] = [revenue] * 2 MEASURE orders[Four] = [twice] * 2 \
         EVALUATE FILTER(VALUES(customers[region]), [four] > limit && orders[Twice] > @least)",
        "EVALUATE UNION(ROW(\"a\", 1), {2}) ",
        "EVALUATE GENERATE(VALUES(customers[region]), TOPN(1, VALUES(orders[status]), [revenue]))",
        "EVALUATE FILTER(orders, (orders[status], orders[is_large]) IN {(\"a\", TRUE)})",
        "EVALUATE ADDCOLUMNS(customers, \"n\", COUNTROWS(RELATEDTABLE(orders)), \"x\", CALCULATE(SUM(orders[amount_in_cents])))",
        "EVALUATE CALCULATETABLE(VALUES(customers[region]), orders[status] = \"paid\", orders[id] < 4)",
        "EVALUATE {[net_revenue], [paid_share]}",
    ] {
        let text = &text.replace("[orders_measure]", "[revenue]");
        let bound = bound(text);
        assert_eq!(shown(text, &bound.problems), Vec::<String>::new(), "{text}");
        assert!(!format!("{:?}", bound.query).contains("Invalid"), "{text}");
    }
}

#[test]
fn result_columns_have_names_and_types() {
    assert_eq!(
        columns("EVALUATE SUMMARIZECOLUMNS(Customers[Region], \"The revenue\", orders[REVENUE], \"n\", orders[count])"),
        [
            ("customers[region]".to_owned(), "String"),
            ("[The revenue]".to_owned(), "Decimal"),
            ("[n]".to_owned(), "Integer")
        ]
    );
    assert_eq!(columns("EVALUATE {1, 2.5}"), [("[Value]".to_owned(), "Decimal")]);
    assert_eq!(
        columns("EVALUATE {(1, \"a\"), (BLANK(), \"b\")}"),
        [("[Value1]".to_owned(), "Integer"), ("[Value2]".to_owned(), "String")]
    );
    assert_eq!(
        columns(
            "EVALUATE SELECTCOLUMNS(orders, \"a\", orders[id] + 1, \"b\", orders[created_at] - 1, \"c\", 1 / 2, \"d\", 1 & 2)"
        ),
        [
            ("[a]".to_owned(), "Integer"),
            ("[b]".to_owned(), "DateTime"),
            ("[c]".to_owned(), "Double"),
            ("[d]".to_owned(), "String")
        ]
    );
}

#[test]
fn renamed_columns_keep_their_lineage() {
    let bound = bound("EVALUATE SELECTCOLUMNS(customers, \"a\", customers[region], \"b\", customers[region] & \"\")");
    let columns = &bound.query.evaluations[0].table.columns;
    assert!(columns[0].lineage.is_some() && columns[1].lineage.is_none());
}

#[test]
fn blank_is_compared_by_the_type_of_the_other_side() {
    for (condition, rule) in [
        ("orders[id] < 10", BlankRule::Zero),
        ("orders[status] <> \"a\"", BlankRule::EmptyText),
        ("orders[is_large] = FALSE", BlankRule::False),
        ("orders[created_at] > dt\"2024-01-01\"", BlankRule::Zero),
        ("orders[status] == \"a\"", BlankRule::Strict),
        ("BLANK() = @x", BlankRule::ByValue),
    ] {
        let bound = bound(&format!("EVALUATE FILTER(orders, {condition})"));
        let TableKind::Filter { condition: found, .. } = &bound.query.evaluations[0].table.kind else {
            panic!("{condition}: {:?}", bound.problems)
        };
        assert!(matches!(found.kind, ScalarKind::Compare { blank, .. } if blank == rule), "{condition}: {found:?}");
    }
}

#[test]
fn measures_in_row_contexts_have_a_transition() {
    let transition = |text: &str| format!("{:?}", bound(text).query.evaluations).contains("has_transition: true");
    assert!(transition("EVALUATE ADDCOLUMNS(VALUES(customers[region]), \"n\", [revenue])"));
    assert!(transition("EVALUATE FILTER(VALUES(customers[region]), CALCULATE(COUNTROWS(orders)) > 1)"));
    assert!(!transition("EVALUATE SUMMARIZECOLUMNS(customers[region], \"n\", [revenue])"));
    assert!(!transition("EVALUATE FILTER(VALUES(customers[region]), COUNTROWS(orders) > 1)"));
}

/// Queries with one problem each: its code, its line and column, and a part of the text that is shown.
const PROBLEMS: &[(&str, ProblemCode, u32, u32, &str)] = &[
    ("EVALUATE ordrs", ProblemCode::UnknownName, 1, 10, "Did you mean `orders`?"),
    ("EVALUATE 'ordrs'", ProblemCode::UnknownName, 1, 10, "unknown table `ordrs`"),
    ("EVALUATE FILTER(orders, orders[status] = 'gold')", ProblemCode::UnknownName, 1, 42, "double quotes: `\"gold\"`"),
    (
        "EVALUATE FILTER(orders, orders[status] IN {'ordrs'})",
        ProblemCode::UnknownName,
        1,
        44,
        "double quotes: `\"ordrs\"`",
    ),
    ("EVALUATE FILTER('gold', TRUE)", ProblemCode::UnknownName, 1, 17, "unknown table `gold`"),
    ("EVALUATE VALUES(orders[statu])", ProblemCode::UnknownName, 1, 17, "Did you mean `status`?"),
    ("EVALUATE VALUES(orders[revenue])", ProblemCode::Type, 1, 17, "expected a column"),
    ("EVALUATE {[revenu]}", ProblemCode::UnknownName, 1, 11, "Did you mean `revenue`?"),
    ("EVALUATE {[count]}", ProblemCode::AmbiguousName, 1, 11, "orders"),
    ("EVALUATE {SUMM(orders[id])}", ProblemCode::NotSupported, 1, 11, "SUM"),
    ("EVALUATE {MEDIANX(orders, 1)}", ProblemCode::NotSupported, 1, 11, "MEDIANX"),
    ("EVALUATE [revenue]", ProblemCode::Type, 1, 10, "EVALUATE { [revenue] }"),
    ("EVALUATE SUM(orders[id])", ProblemCode::Type, 1, 10, "EVALUATE { SUM(orders[id]) }"),
    ("EVALUATE {orders}", ProblemCode::Type, 1, 11, "a scalar expression"),
    ("EVALUATE FILTER([revenue], TRUE)", ProblemCode::Type, 1, 17, "expected a table"),
    ("EVALUATE {orders[status]}", ProblemCode::Context, 1, 11, "SELECTEDVALUE(orders[status])"),
    ("EVALUATE FILTER(orders, customers[region] = \"a\")", ProblemCode::Context, 1, 25, "single value"),
    ("EVALUATE FILTER(orders, orders[status] = 1)", ProblemCode::Type, 1, 25, "a string with an integer"),
    ("EVALUATE FILTER(orders, orders[status] IN {1})", ProblemCode::Type, 1, 25, "cannot compare"),
    ("EVALUATE FILTER(orders, orders[status] IN {(\"a\", 1)})", ProblemCode::Type, 1, 43, "1 columns"),
    ("EVALUATE FILTER(orders, orders[status])", ProblemCode::Type, 1, 25, "TRUE or FALSE"),
    ("EVALUATE FILTER(orders, orders[is_large] && \"x\")", ProblemCode::Type, 1, 45, "TRUE or FALSE"),
    ("EVALUATE FILTER(orders)", ProblemCode::Type, 1, 10, "FILTER(<table>, <condition>)"),
    ("EVALUATE {AND(TRUE, TRUE, TRUE)}", ProblemCode::Type, 1, 11, "takes 2 arguments"),
    ("EVALUATE {DIVIDE(1,,2)}", ProblemCode::Type, 1, 20, "denominator"),
    ("EVALUATE ROW(orders, 1)", ProblemCode::Type, 1, 14, "as a string"),
    ("EVALUATE ROW(\"a\", 1, \"A\", 2)", ProblemCode::Context, 1, 22, "more than once"),
    ("EVALUATE {(1, 2), (3, 4, 5)}", ProblemCode::Type, 1, 19, "3 values"),
    ("EVALUATE {SUM(orders[status])}", ProblemCode::Type, 1, 15, "a column of numbers"),
    ("EVALUATE {SUM([revenue])}", ProblemCode::Type, 1, 15, "expected a column"),
    ("EVALUATE {SUM(orders)}", ProblemCode::Type, 1, 15, "expected a column"),
    ("EVALUATE {\"x\" * DIVIDE(\"a\", 2)}", ProblemCode::Type, 1, 24, "expected a number"),
    ("EVALUATE SUMMARIZECOLUMNS(orders[status], orders[STATUS])", ProblemCode::Context, 1, 43, "more than once"),
    ("EVALUATE SUMMARIZECOLUMNS(orders[status], orders[id] = 1)", ProblemCode::Context, 1, 43, "single value"),
    ("EVALUATE SUMMARIZECOLUMNS(orders)", ProblemCode::Type, 1, 10, "a table is a filter"),
    ("EVALUATE SUMMARIZECOLUMNS()", ProblemCode::Type, 1, 10, "Add group columns"),
    ("EVALUATE SUMMARIZECOLUMNS(customers, orders[id])", ProblemCode::Type, 1, 38, "before the filter tables"),
    ("EVALUATE SUMMARIZECOLUMNS(orders[status], \"a\")", ProblemCode::Type, 1, 43, "expression"),
    ("EVALUATE SUMMARIZE(customers, orders[status])", ProblemCode::Context, 1, 31, "not a column"),
    ("EVALUATE {CALCULATE([revenue], [revenue] > 3)}", ProblemCode::Context, 1, 32, "FILTER"),
    ("EVALUATE {CALCULATE([revenue], orders[id] = customers[id])}", ProblemCode::Context, 1, 32, "several tables"),
    ("EVALUATE {CALCULATE([revenue], 1 = 1)}", ProblemCode::Context, 1, 32, "without columns"),
    ("EVALUATE {REMOVEFILTERS(orders)}", ProblemCode::Context, 1, 11, "CALCULATE"),
    ("EVALUATE {RELATED(customers[region])}", ProblemCode::Context, 1, 19, "one side"),
    (
        "EVALUATE ADDCOLUMNS(customers, \"s\", RELATED(orders[status]))",
        ProblemCode::Context,
        1,
        45,
        "It is on the many side: use MAXX(RELATEDTABLE(orders), orders[status]).",
    ),
    (
        "EVALUATE SUMMARIZE(VALUES(customers[region]), orders[status])",
        ProblemCode::Context,
        1,
        47,
        "use SUMMARIZE(orders, orders[status])",
    ),
    ("EVALUATE ALLEXCEPT(orders, orders)", ProblemCode::NotSupported, 1, 10, "Leave out at least one column"),
    ("EVALUATE {DATEDIFF(1, 2, FORTNIGHT)}", ProblemCode::Type, 1, 26, "WEEK"),
    ("EVALUATE DATESYTD(orders[status])", ProblemCode::Type, 1, 19, "a column of dates"),
    ("EVALUATE UNION({1}, {(1, 2)})", ProblemCode::Type, 1, 21, "expected 1 columns, found 2"),
    ("EVALUATE CROSSJOIN(VALUES(orders[id]), VALUES(orders[id]))", ProblemCode::Context, 1, 10, "orders[id]"),
    ("EVALUATE TREATAS({1}, orders[id], orders[status])", ProblemCode::Type, 1, 18, "expected 2 columns"),
    ("EVALUATE ALL()", ProblemCode::Type, 1, 10, "is missing"),
    ("EVALUATE orders ORDER BY orders[id] START AT orders[id]", ProblemCode::Context, 1, 46, "single value"),
    ("EVALUATE orders ORDER BY orders[id] START AT [revenue]", ProblemCode::Type, 1, 46, "expected a constant"),
    ("EVALUATE orders ORDER BY orders[id] START AT \"a\"", ProblemCode::Type, 1, 46, "Give an integer"),
    (
        "EVALUATE orders ORDER BY orders[status], orders[id] START AT \"a\", TRUE",
        ProblemCode::Type,
        1,
        67,
        "an integer",
    ),
    ("EVALUATE orders ORDER BY orders[created_at] START AT \"2024-01-31\"", ProblemCode::Type, 1, 54, "dt\"2024"),
    (
        "DEFINE MEASURE orders[a] = [b] MEASURE orders[b] = [a] EVALUATE {1}",
        ProblemCode::Context,
        1,
        52,
        "[a] → [b] → [a]",
    ),
    ("DEFINE VAR x = 1 VAR X = 2 EVALUATE {x}", ProblemCode::Context, 1, 22, "variable `X`"),
    ("DEFINE MEASURE nowhere[a] = 1 EVALUATE {1}", ProblemCode::UnknownName, 1, 16, "unknown table"),
    (
        "EVALUATE ADDCOLUMNS(VALUES(orders[id]), \"a\", CALCULATE(orders[id]))",
        ProblemCode::Context,
        1,
        56,
        "single value",
    ),
];

#[test]
fn problems_have_code_place_and_suggestion() {
    let mut faults = Vec::new();
    for (text, code, line, column, part) in PROBLEMS {
        let bound = bound(text);
        let all = shown(text, &bound.problems).join("\n");
        let is_expected = match &bound.problems[..] {
            [only] => {
                let position = only.place.position(text);
                (only.code(), position.line, position.column) == (*code, *line, *column) && all.contains(part)
            }
            _ => false,
        };
        if !is_expected {
            faults.push(format!("{text}: expected {code:?} at {line}:{column} with `{part}`, found\n{all}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn conversions_that_iferror_detects_are_not_problems() {
    for text in [
        "EVALUATE {IFERROR(INT(\"abc\"), 0)}",
        "EVALUATE {ISERROR(1 + INT(\"abc\"))}",
        "EVALUATE VAR x = INT(\"abc\") RETURN {IFERROR(x, 0)}",
        "DEFINE MEASURE orders[m] = INT(\"abc\") EVALUATE {IFERROR([m], 0)}",
    ] {
        assert_eq!(bound(text).problems, [], "{text}");
    }
    for text in ["EVALUATE {INT(\"abc\")}", "EVALUATE {IFERROR(1, INT(\"abc\"))}"] {
        let codes: Vec<ProblemCode> = bound(text).problems.iter().map(Problem::code).collect();
        assert_eq!(codes, [ProblemCode::Type], "{text}");
    }
}

#[test]
fn all_problems_of_a_query_are_reported() {
    let text = "DEFINE MEASURE ordrs[a] = [nothing]\nEVALUATE FILTER(orders, orders[x] = 1 || XIRR(2) > 3)\n\
                EVALUATE orders ORDER BY [y]";
    let bound = bound(text);
    let lines: Vec<u32> = bound.problems.iter().map(|problem| problem.place.position(text).line).collect();
    assert_eq!(lines, [1, 1, 2, 2, 3], "{:?}", shown(text, &bound.problems));
}

#[test]
fn denied_members_do_not_exist() {
    let text = "EVALUATE {[credit], customers[credit]}";
    assert_eq!(bound(text).problems, []);
    let denied = bound_for(text, "guest");
    let codes: Vec<ProblemCode> = denied.problems.iter().map(Problem::code).collect();
    assert_eq!(codes, [ProblemCode::UnknownName, ProblemCode::UnknownName]);
    assert!(!shown(text, &denied.problems).join("").contains("`credit`?"));
}

#[test]
fn query_measures_override_those_of_the_model() {
    let text = "DEFINE MEASURE orders[revenue] = 1 EVALUATE {[revenue]} EVALUATE {orders[Revenue]} EVALUATE {[b]}";
    let bound = bound(&text.replace("EVALUATE {[b]}", ""));
    assert_eq!(bound.problems, []);
    assert_eq!(format!("{:?}", bound.query.evaluations).matches("Query(QueryMeasureId(0))").count(), 2);
}

#[test]
fn long_chains_of_query_measures_bind() {
    let mut text = "DEFINE MEASURE orders[m0] = 1".to_owned();
    for at in 1..1500 {
        text.push_str(&format!(" MEASURE orders[m{at}] = [m{}] + 1", at - 1));
    }
    let backwards: Vec<&str> = text["DEFINE ".len()..].split(" MEASURE").collect();
    let mut backwards: Vec<String> =
        backwards.into_iter().map(|one| format!("MEASURE{}", one.trim_start_matches("MEASURE"))).collect();
    backwards.reverse();
    for text in [format!("{text} EVALUATE {{[m1499]}}"), format!("DEFINE {} EVALUATE {{[m1499]}}", backwards.join(" "))]
    {
        let bound = bound(&text);
        assert_eq!(bound.problems, []);
        assert_eq!(bound.query.measures.len(), 1500);
    }
}

#[test]
fn deep_queries_bind() {
    for levels in [1, 60, 120, 190] {
        let text = format!("EVALUATE {{{}1{}}}", "IF(NOT 1 + ".repeat(levels), " > 2, 1)".repeat(levels));
        let bound = bound(&text);
        assert_eq!(bound.problems, [], "{levels}");
        drop(bound.query.clone());
    }
    let chain = format!("EVALUATE FILTER(orders, {})", vec!["orders[id] = 1"; 5000].join(" || "));
    assert_eq!(bound(&chain).problems, []);
}
