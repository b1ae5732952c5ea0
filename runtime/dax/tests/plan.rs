//! Tests plans of queries over the model of the golden tests' shop: the semantic query, or the refused construct.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_compiler::model::Model;
use terrane_compiler::query::{Filter, SemanticQuery};
use terrane_compiler::types::Value;
use terrane_compiler::{Access, Authorized, Environment, SecurityContext, compile};
use terrane_dax::parser::parse_query;
use terrane_dax::plan::{Parameters, SemanticPlan, plan};
use terrane_dax::{Problem, ProblemCode, bind};
use terrane_golden_tests::case::models;
use terrane_golden_tests::duckdb_profile;

fn shop() -> &'static Model {
    static SHOP: OnceLock<Model> = OnceLock::new();
    SHOP.get_or_init(|| models().remove("shop").expect("the shop"))
}

fn planned_with(text: &str, parameters: &Parameters) -> Result<SemanticPlan, Problem> {
    let caller = SecurityContext::default();
    let access = Access::of(shop(), &caller);
    let parsed = parse_query(text);
    let bound = bind(&parsed.tree, &access);
    let problems: Vec<String> =
        parsed.problems.iter().chain(&bound.problems).map(|problem| problem.in_text(text).to_string()).collect();
    assert_eq!(problems, Vec::<String>::new(), "{text}");
    plan(&bound.query, &bound.query.evaluations[0], &access, parameters)
}

fn planned(text: &str) -> Result<SemanticPlan, Problem> {
    planned_with(text, &Parameters::new())
}

fn filter(filter: &Filter) -> String {
    let joined = |all: &[Filter], word: &str| {
        format!("({})", all.iter().map(self::filter).collect::<Vec<_>>().join(&format!(" {word} ")))
    };
    match filter {
        Filter::And(all) => joined(all, "and"),
        Filter::Or(all) => joined(all, "or"),
        Filter::Not(inner) => format!("not {}", self::filter(inner)),
        Filter::NoRow { cube } => format!("no row of {cube}"),
        Filter::Condition { member, operator, values } => {
            let values: Vec<String> = values.iter().map(value).collect();
            format!("{member} {} {}", operator.as_str(), values.join(",")).trim_end().to_owned()
        }
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Decimal(text) | Value::Text(text) => text.to_string(),
        other => format!("{other:?}"),
    }
}

/// Returns a plan as one line, after checking that its query compiles.
fn shown(plan: &SemanticPlan) -> String {
    let query = &plan.query;
    let list = |members: &[terrane_compiler::query::MemberRef]| {
        members.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let mut text = String::new();
    if query.ungrouped {
        text.push_str("rows; ");
    }
    if let Some(cube) = &query.cube {
        let _ = write!(text, "cube {cube}; ");
    }
    let _ = write!(text, "[{}] by [{}]", list(&query.values), list(&query.dimensions));
    for one in &query.filters {
        let _ = write!(text, "; {}", filter(one));
    }
    let columns: Vec<String> = plan.columns.iter().map(|column| format!("{}={}", column.name, column.source)).collect();
    let _ = write!(text, " -> {}", columns.join(" "));
    let keys = |order: &[terrane_dax::plan::OrderKey]| {
        order.iter().map(|key| format!("{}{}", key.column, if key.descending { "-" } else { "+" })).collect::<String>()
    };
    if let Some(top) = &plan.top {
        let _ = write!(text, " top {} {}", top.rows, keys(&top.order));
    }
    if !plan.order.is_empty() {
        let _ = write!(text, " order {}", keys(&plan.order));
    }
    compiles(query);
    text
}

fn compiles(query: &SemanticQuery) {
    let caller = SecurityContext::default();
    let authorized = Authorized::without_hooks(shop(), &caller);
    let environment = environment();
    if let Err(error) = compile(&duckdb_profile(), query, &authorized, &environment) {
        panic!("{query:?}: {error}");
    }
}

fn environment() -> Environment {
    Environment {
        now: "2024-06-01T00:00:00Z".parse().expect("a time"),
        zones: TimeZoneDatabase::bundled(),
        default_timezone: TimeZone::UTC,
        default_limit: 1000,
        max_limit: 1000,
        limit_advice: "",
        rollups: Arc::default(),
    }
}

const PLANS: &[(&str, &str)] = &[
    (
        "EVALUATE SUMMARIZECOLUMNS(customers[region], \"Revenue\", [revenue])",
        "[revenue] by [customers.region]; (revenue set) -> customers[region]=0 [Revenue]=1",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], \"a\", orders[count], \"b\", orders[revenue], \"c\", orders[count]) \
         ORDER BY [b] DESC, orders[status]",
        "[orders.count orders.revenue] by [orders.status] -> orders[status]=0 [a]=1 [b]=2 [c]=1 order 2-0+",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], TREATAS({\"north\", BLANK()}, customers[region]), \"n\", orders[count])",
        "[orders.count] by [orders.status]; customers.region inList north,null -> orders[status]=0 [n]=1",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], FILTER(ALL(customers[region]), customers[region] <> \"a\"), \"n\", orders[count])",
        "[orders.count] by [orders.status]; customers.region notEquals a -> orders[status]=0 [n]=1",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], FILTER(customers, customers[region] <> \"a\"), \"n\", orders[count])",
        "[orders.count] by [orders.status]; not no row of customers; customers.region notEquals a -> orders[status]=0 [n]=1",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(\"r\", [revenue], \"m\", [net_revenue])",
        "[revenue net_revenue] by []; (revenue set or net_revenue set) -> [r]=0 [m]=1",
    ),
    ("EVALUATE {[revenue]}", "[revenue] by [] -> [Value]=0"),
    ("EVALUATE ROW(\"a\", [revenue], \"b\", orders[count])", "[revenue orders.count] by [] -> [a]=0 [b]=1"),
    (
        "EVALUATE ROW(\"a\", CALCULATE([revenue], orders[status] = \"paid\", orders[amount_in_cents] < 10))",
        "[revenue] by []; orders.status equals paid; (orders.amount_in_cents lt 10 or orders.amount_in_cents notSet) -> [a]=0",
    ),
    ("EVALUATE VALUES(orders[status])", "cube orders; [] by [orders.status] -> orders[status]=0"),
    ("EVALUATE DISTINCT(customers[region])", "cube customers; [] by [customers.region] -> customers[region]=0"),
    (
        "EVALUATE CALCULATETABLE(VALUES(orders[status]), orders[id] >= 4)",
        "cube orders; [] by [orders.status]; orders.id gte 4 -> orders[status]=0",
    ),
    (
        "EVALUATE FILTER(refunds, refunds[id] = 1 || 2 = refunds[id])",
        "rows; cube refunds; [] by [refunds.id refunds.refunded_at]; refunds.id inList 1,2 -> refunds[id]=0 refunds[refunded_at]=1",
    ),
    (
        "EVALUATE SELECTCOLUMNS(refunds, \"region\", RELATED(customers[region]), \"id\", refunds[id])",
        "rows; cube refunds; [] by [refunds.id customers.region] -> [region]=1 [id]=0",
    ),
    (
        "EVALUATE SUMMARIZE(orders, customers[region], \"r\", orders[revenue])",
        "[orders.revenue] by [customers.region] -> customers[region]=0 [r]=1",
    ),
    (
        "EVALUATE ADDCOLUMNS(SUMMARIZE(orders, customers[region]), \"r\", orders[revenue])",
        "[orders.revenue] by [customers.region] -> customers[region]=0 [r]=1",
    ),
    (
        "EVALUATE FILTER(SUMMARIZECOLUMNS(orders[status], \"r\", orders[revenue]), [r] > 10 && orders[status] IN {\"a\", \"b\"})",
        "[orders.revenue] by [orders.status]; (orders.revenue gt 10 and orders.status inList a,b); (orders.revenue set) \
         -> orders[status]=0 [r]=1",
    ),
    (
        "EVALUATE TOPN(3, SUMMARIZECOLUMNS(orders[status], \"n\", orders[count]), [n], DESC, orders[status], 1) ORDER BY [n]",
        "[orders.count] by [orders.status] -> orders[status]=0 [n]=1 top 3 1-0+ order 1+",
    ),
    (
        "EVALUATE SELECTCOLUMNS(SUMMARIZECOLUMNS(orders[status], \"a\", [revenue], \"b\", orders[last_order]), \"status\", orders[status], \"x\", [b])",
        "[revenue orders.last_order] by [orders.status]; (revenue set or orders.last_order set) -> [status]=0 [x]=2",
    ),
    (
        "DEFINE MEASURE orders[mine] = [revenue] VAR low = -2 EVALUATE FILTER(SUMMARIZECOLUMNS(orders[status], \"m\", [mine]), [m] <= low)",
        "[revenue] by [orders.status]; revenue lte -2; (revenue set) -> orders[status]=0 [m]=1",
    ),
];

#[test]
fn plans_are_semantic_queries() {
    for (text, expected) in PLANS {
        let plan = planned(text).unwrap_or_else(|problem| panic!("{}", problem.in_text(text)));
        assert_eq!(shown(&plan), expected.split_whitespace().collect::<Vec<_>>().join(" "), "{text}");
    }
}

/// Comparisons in which BLANK counts as zero, over columns such as `refunds[id]` and `orders[status]`.
const CONDITIONS: &[(&str, &str)] = &[
    ("orders[id] = 5", "orders.id equals 5"),
    ("orders[id] = 0", "(orders.id equals 0 or orders.id notSet)"),
    ("orders[id] = BLANK()", "(orders.id equals 0 or orders.id notSet)"),
    ("orders[id] == BLANK()", "orders.id notSet"),
    ("orders[id] == 0", "orders.id equals 0"),
    ("orders[id] <> 5", "orders.id notEquals 5"),
    ("orders[id] <> 0", "(orders.id notEquals 0 and orders.id set)"),
    ("orders[id] < 5", "(orders.id lt 5 or orders.id notSet)"),
    ("orders[id] < 0", "orders.id lt 0"),
    ("orders[id] <= 0.0", "(orders.id lte 0.0 or orders.id notSet)"),
    ("orders[id] > -1.5", "(orders.id gt -1.5 or orders.id notSet)"),
    ("orders[id] > 0", "orders.id gt 0"),
    ("5 > orders[id]", "(orders.id lt 5 or orders.id notSet)"),
    ("orders[status] = \"\"", "(orders.status equals or orders.status notSet)"),
    ("orders[status] <> \"\"", "(orders.status notEquals and orders.status set)"),
    ("orders[is_large] = FALSE", "(orders.is_large equals false or orders.is_large notSet)"),
    ("orders[is_large]", "orders.is_large equals true"),
    ("NOT orders[is_large]", "not orders.is_large equals true"),
    ("ISBLANK(orders[status])", "orders.status notSet"),
    ("orders[created_at] >= dt\"2024-01-31\"", "orders.created_at gte 2024-01-31T00:00:00"),
    ("orders[created_at] < dt\"2024-01-31\"", "(orders.created_at lt 2024-01-31T00:00:00 or orders.created_at notSet)"),
    ("orders[created_at] < dt\"1899-12-29\"", "orders.created_at lt 1899-12-29T00:00:00"),
    (
        "(orders[status], orders[id]) IN {(\"a\", 1), (\"b\", BLANK())}",
        "((orders.status equals a and orders.id equals 1) or (orders.status equals b and orders.id equals null))",
    ),
];

#[test]
fn conditions_take_blank_as_zero() {
    for (condition, expected) in CONDITIONS {
        let text = format!("EVALUATE FILTER(orders, {condition})");
        let plan = planned(&text).unwrap_or_else(|problem| panic!("{}", problem.in_text(&text)));
        let filters: Vec<String> = plan.query.filters.iter().map(filter).collect();
        assert_eq!(filters, [*expected], "{text}");
        compiles(&plan.query);
    }
}

/// Queries whose meaning differs from that of the semantic query that they resemble.
const REFUSED: &[(&str, &str)] = &[
    ("EVALUATE VALUES(customers[region])", "the blank row of a table on the one side"),
    ("EVALUATE SUMMARIZECOLUMNS(customers[region])", "the blank row of a table on the one side"),
    ("EVALUATE SUMMARIZECOLUMNS(orders[status], customers[region])", "groups of several tables without a measure"),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], \"c\", customers[credit])",
        "a group column that does not reach every measure",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(customers[region], TREATAS({\"a\"}, orders[status]), \"c\", customers[credit])",
        "a filter that does not reach every measure",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(customers[region], \"n\", orders[count], \"a\", refunds[amount])",
        "counts beside measures of another table",
    ),
    ("EVALUATE SUMMARIZECOLUMNS(orders[status], \"a\", orders[revenue_to_date])", "a running total"),
    ("EVALUATE SUMMARIZECOLUMNS(orders[status], \"a\", DIVIDE([revenue], 2))", "DIVIDE"),
    ("EVALUATE SUMMARIZECOLUMNS(orders[status], \"a\", [revenue] * 2)", "an expression over measures"),
    ("EVALUATE SUMMARIZECOLUMNS(orders[status], \"a\", SUM(orders[id]))", "an aggregate of a column"),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], \"a\", CALCULATE([revenue], orders[status] = \"paid\"))",
        "CALCULATE with a filter of a column that is filtered or grouped",
    ),
    (
        "EVALUATE SUMMARIZECOLUMNS(orders[status], \"a\", [revenue], \"b\", CALCULATE([revenue], orders[id] = 1))",
        "CALCULATE beside a measure with other filters",
    ),
    (
        "EVALUATE CALCULATETABLE(SUMMARIZECOLUMNS(orders[status], TREATAS({1}, orders[id]), \"a\", [revenue]), orders[id] = 2)",
        "nested filters of one column",
    ),
    ("EVALUATE {CALCULATE([revenue], ALL(orders))}", "ALL"),
    (
        "EVALUATE ADDCOLUMNS(VALUES(orders[status]), \"a\", customers[credit])",
        "measures of another table in the groups of a table",
    ),
    ("EVALUATE FILTER(orders, orders[status] = \"a\" & \"b\")", "a comparison of two expressions"),
    ("EVALUATE FILTER(orders, orders[status] < \"a\")", "an order of strings or Booleans"),
    ("EVALUATE FILTER(orders, YEAR(orders[created_at]) = 2024)", "a comparison of an expression"),
    ("EVALUATE TOPN(1, VALUES(orders[status]), [revenue])", "TOPN by an expression"),
    ("EVALUATE FILTER(TOPN(1, orders, orders[id]), orders[id] > 1)", "FILTER of TOPN"),
    ("EVALUATE orders ORDER BY orders[id] START AT 5", "START AT"),
    ("EVALUATE UNION(orders, orders)", "UNION"),
    ("EVALUATE CALCULATETABLE(VALUES(orders[status]), DATESYTD(orders[created_at]))", "a filter by this table"),
];

#[test]
fn other_meanings_are_refused() {
    for (text, construct) in REFUSED {
        let problem = planned(text).expect_err(text);
        assert_eq!(problem.code(), ProblemCode::NotSupported, "{text}");
        assert_eq!(problem.kind.to_string(), format!("{construct} is not supported"), "{text}");
    }
}

#[test]
fn parameters_are_values() {
    let text = "EVALUATE FILTER(orders, orders[status] = @status && orders[id] IN {@id})";
    let missing = planned(text).expect_err("no values");
    assert_eq!((missing.code(), missing.place.of(text)), (ProblemCode::UnknownName, "@status"));
    let values = [("status", Value::Text("' OR 1".into())), ("id", Value::Integer(7))];
    let plan = planned_with(text, &values.map(|(name, value)| (name.into(), value)).into()).expect("values");
    let filters: Vec<String> = plan.query.filters.iter().map(filter).collect();
    assert_eq!(filters, ["(orders.status equals ' OR 1 and orders.id inList 7)"]);
}
