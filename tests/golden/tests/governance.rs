//! Tests obligations of hooks: with the queries of every golden case, and each obligation alone.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::json;
use terrane_compiler::governance::{
    HookCondition, HookMask, MemberMask, ObligationFault, Obligations, RowFilter, TestOperator, Usage, inspect,
};
use terrane_compiler::model::Model;
use terrane_compiler::query::{QueryError, SemanticQuery};
use terrane_compiler::sql::CompiledSql;
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::types::{Granularity, LogicalType, Value};
use terrane_compiler::{SecurityContext, compile, compile_count, compile_inline, compile_totals};
use terrane_golden_tests::case::{cases, environment, model, models, read_caller, read_query};
use terrane_golden_tests::duckdb_profile;

/// A value that no golden case contains.
const MARKER: &str = "only-of-hooks";

fn test(member: &str, operator: TestOperator, values: Vec<Value>) -> HookCondition {
    HookCondition::Test { member: member.into(), operator, values }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn filtered(cube: &str, condition: HookCondition) -> Obligations {
    Obligations { row_filters: vec![RowFilter { cube: cube.into(), condition }], ..Obligations::default() }
}

fn masked(cube: &str, member: &str, mask: HookMask) -> Obligations {
    Obligations { masks: vec![MemberMask { cube: cube.into(), member: member.into(), mask }], ..Obligations::default() }
}

fn equal(member: &str, value: Value) -> HookCondition {
    test(member, TestOperator::Eq, vec![value])
}

/// Returns how often the SQL reads a table, and how often it filters rows by the marker in a WHERE or an ON. Markers in
/// a CASE or a selected column do not count.
fn reads(table: &str, sql: &CompiledSql) -> (usize, usize) {
    let text = sql.text.replace('"', "");
    let is_name =
        |at: usize| !text[at + table.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
    let reads = text.match_indices(table).filter(|(at, _)| is_name(*at)).count();
    let markers = sql.params.iter().enumerate().filter(|(_, param)| **param == text_of_marker());
    let hides = |index: usize| {
        let placeholder = format!("${}", index + 1);
        let is_whole = |at: &usize| !text[at + placeholder.len()..].starts_with(|c: char| c.is_ascii_digit());
        let at = text.match_indices(&placeholder).map(|(at, _)| at).find(is_whole).unwrap();
        let words = |word| text[..at].split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| *w == word).count();
        let line = text[at..].lines().next().unwrap();
        words("CASE") == words("END") && !line.contains(" AS terrane_passes")
    };
    (reads, markers.filter(|(index, _)| hides(*index)).count())
}

fn text_of_marker() -> Value {
    text(MARKER)
}

/// Returns every statement that the server may run for a query.
fn statements(
    model: &Model,
    profile: &DialectProfile,
    query: &SemanticQuery,
    caller: &SecurityContext,
    obligations: &[(&str, Obligations)],
) -> Result<Vec<CompiledSql>, QueryError> {
    let inspection = inspect(model, query, caller, &environment())?;
    let checked =
        obligations.iter().map(|(hook, obligations)| ((*hook).into(), inspection.check(obligations).unwrap()));
    let checked = checked.collect();
    let authorized = inspection.authorize(checked);
    let mut all = vec![
        compile(profile, query, &authorized, &environment())?,
        compile_count(profile, query, &authorized, &environment())?,
    ];
    all.extend(compile_totals(profile, query, &authorized, &environment())?);
    Ok(all)
}

#[test]
fn rows_are_filtered_at_every_read_of_a_cube() {
    let (models, profile) = (models(), duckdb_profile());
    let mut guarded = 0;
    for (cube, member, table) in [
        ("customers", "region", "raw.customers"),
        ("orders", "status", "raw.orders"),
        ("carriers", "name", "raw.carriers"),
        ("continents", "name", "raw.continents"),
    ] {
        for case in cases().iter().filter(|case| case.project == "shop") {
            for json in &case.queries {
                let (Ok(query), caller) = (read_query(json), read_caller(&case.caller)) else { continue };
                let model = &models["shop"];
                let Ok(inspection) = inspect(model, &query, &caller, &environment()) else { continue };
                if !inspection.facts().cubes.iter().any(|read| &**read == cube) {
                    // If the facts do not name the cube, no statement may read its table.
                    let all = statements(model, &profile, &query, &caller, &[]).unwrap();
                    assert!(all.iter().all(|sql| reads(table, sql).0 == 0), "{}: {json}", case.name);
                    continue;
                }
                let hook = ("hook", filtered(cube, equal(member, text(MARKER))));
                let all = statements(model, &profile, &query, &caller, &[hook]).unwrap();
                for sql in &all {
                    let (reads, filters) = reads(table, sql);
                    // If a policy of the project hides all rows (`FALSE`), the read needs no filter.
                    let hidden = sql.text.matches("FALSE").count();
                    assert!(filters <= reads && reads <= filters + hidden, "{}: {json}: {}", case.name, sql.text);
                    guarded += reads;
                }
            }
        }
    }
    assert!(guarded > 200, "only {guarded} reads were looked at");
}

/// A shop with an alias, two cubes over one table, a cube over a query, and a snippet that contains a query.
const RELATIVES: &str = r#"
cubes:
  - name: orders
    sql_table: raw.orders
    joins:
      - {name: buyer, cube: people, relationship: many_to_one, sql: "{orders}.buyer_id = {buyer}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: status, type: string, sql: status, meta: {tags: [state, public], pii: true, classification: internal}}
      - {name: at, type: time, sql: at, primary_time: true}
      - {name: day, type: time, timezone: none, sql: day}
      - {name: city, type: string, sql: "{buyer}.city"}
      - {name: same_status, type: string, sql: status}
      - {name: rank, type: number, sql: "(SELECT count(*) FROM raw.people AS p WHERE p.id = {orders}.buyer_id)"}
      - {name: is_paid, type: boolean, sql: is_paid}
      - {name: has_people, type: boolean, sql: "EXISTS (FROM raw.people)"}
    measures:
      - {name: count, type: count}
      - {name: states, type: count_distinct, sql: status}
  - name: people
    sql_table: raw.people
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: city, type: string, sql: city}
    measures:
      - {name: count, type: count}
  - name: same_orders
    sql_table: orders
    dimensions:
      - {name: state, type: string, sql: status}
      - {name: id, type: number, sql: id, primary_key: true}
    measures:
      - {name: count, type: count}
  - name: big_orders
    sql: "SELECT * FROM raw.orders WHERE amount > 10"
    dimensions:
      - {name: state, type: string, sql: status}
    measures:
      - {name: count, type: count}
metrics:
  - {name: states, type: simple, expression: people.count}
"#;
const TYPES: &str = "{orders.id: integer, orders.status: text, orders.at: timestamp-tz, orders.day: date, orders.city: text, \
                     orders.same_status: text, orders.is_paid: boolean, orders.has_people: boolean, people.id: integer, people.city: text, \
                     same_orders.state: text, same_orders.id: integer, big_orders.state: text}";

struct World {
    model: Model,
    profile: DialectProfile,
    caller: SecurityContext,
}

impl World {
    fn new() -> World {
        World { model: model(RELATIVES, TYPES), profile: duckdb_profile(), caller: SecurityContext::default() }
    }

    fn sql(&self, query: serde_json::Value, obligations: &[(&str, Obligations)]) -> Result<CompiledSql, QueryError> {
        let query = read_query(&query).unwrap();
        statements(&self.model, &self.profile, &query, &self.caller, obligations).map(|mut all| all.remove(0))
    }

    fn one(&self, query: serde_json::Value, obligations: Obligations) -> Result<CompiledSql, QueryError> {
        self.sql(query, &[("hook", obligations)])
    }

    fn fault(&self, query: serde_json::Value, obligations: Obligations) -> ObligationFault {
        let query = read_query(&query).unwrap();
        let inspection = inspect(&self.model, &query, &self.caller, &environment()).unwrap();
        inspection.check(&obligations).expect_err("a fault")
    }
}

#[test]
fn obligations_of_a_cube_apply_to_its_aliases() {
    let world = World::new();
    let query = json!({"measures": ["orders.count"], "dimensions": ["buyer.city"]});
    let sql = world.one(query.clone(), filtered("people", equal("city", text(MARKER)))).unwrap();
    assert_eq!(reads("raw.people", &sql), (1, 1), "{}", sql.text);
    let sql = world.one(query.clone(), masked("people", "city", HookMask::Nullify)).unwrap();
    assert!(sql.text.contains("NULL"), "{}", sql.text);
    let error = world.one(query, masked("people", "city", HookMask::DropColumn)).unwrap_err();
    assert!(matches!(error, QueryError::UnknownDimension { .. }), "{error}");
}

#[test]
fn filter_over_another_cube_adds_a_join() {
    let world = World::new();
    let query = json!({"measures": ["orders.count"], "dimensions": ["orders.status"]});
    let sql = world.one(query, filtered("orders", equal("city", text(MARKER)))).unwrap();
    assert_eq!(reads("raw.orders", &sql), (1, 1), "{}", sql.text);
    assert_eq!(reads("raw.people", &sql).0, 1, "{}", sql.text);
}

#[test]
fn cube_over_the_same_table_is_closed_unless_the_hook_names_it() {
    let world = World::new();
    for cube in ["same_orders", "big_orders"] {
        let query = json!({"measures": [format!("{cube}.count")]});
        let read = read_query(&query).unwrap();
        let inspection = inspect(&world.model, &read, &world.caller, &environment()).unwrap();
        let cubes = &inspection.facts().cubes;
        assert!(cubes.iter().any(|name| &**name == "orders"), "{cube}: {cubes:?}");
        let of_orders = || filtered("orders", equal("status", text("open")));
        let error = world.one(query.clone(), of_orders()).unwrap_err();
        assert!(matches!(error, QueryError::ClosedCube { .. }), "{cube}: {error}");
        let mut both = of_orders();
        both.row_filters.push(RowFilter { cube: cube.into(), condition: equal("state", text(MARKER)) });
        let sql = world.one(query.clone(), both).unwrap();
        assert!(sql.params.contains(&text(MARKER)), "{cube}: {}", sql.text);
        // A mask on the derived cube does not replace its row filter.
        let mut half = of_orders();
        half.masks = masked(cube, "state", HookMask::Nullify).masks;
        let error = world.one(query.clone(), half).unwrap_err();
        assert!(matches!(error, QueryError::ClosedCube { .. }), "{cube}: {error}");
        // An obligation without a row filter closes no cube.
        assert!(world.one(query, Obligations { max_rows: Some(5), ..Obligations::default() }).is_ok());
    }
}

#[test]
fn mask_covers_the_column_under_every_name() {
    let world = World::new();
    let mask = || masked("orders", "status", HookMask::Hash);
    for query in [
        json!({"measures": ["orders.count"], "dimensions": ["orders.same_status"]}),
        json!({"measures": ["orders.states"]}),
        json!({"measures": ["orders.count"], "filters": [{"member": "orders.status", "operator": "equals", "value": "x"}]}),
        json!({"measures": ["orders.count"], "dimensions": ["orders.status"], "order_by": [{"field": "orders.status"}]}),
        json!({"measures": ["same_orders.count"], "dimensions": ["same_orders.state"]}),
        json!({"measures": ["big_orders.count"], "dimensions": ["big_orders.state"]}),
        json!({"measures": ["orders.count"], "dimensions": ["orders.rank"]}),
    ] {
        let asked = read_query(&query);
        let Ok(_) = asked else { panic!("{query}") };
        let error = world.one(query.clone(), mask()).expect_err(&query.to_string());
        let is_refusal =
            matches!(error, QueryError::Covered { .. } | QueryError::Masked { .. } | QueryError::ClosedCube { .. });
        assert!(is_refusal, "{query}: {error:?}");
        assert!(world.sql(query.clone(), &[]).is_ok(), "{query}");
    }
}

#[test]
fn masks_are_printed_as_the_contract_specifies() {
    let world = World::new();
    let by = |member: &str| json!({"measures": ["orders.count"], "dimensions": [format!("orders.{member}")]});
    let shown = |member: &str, mask| {
        let sql = world.one(by(member), masked("orders", member, mask)).unwrap();
        (sql.text, sql.params)
    };
    assert!(shown("status", HookMask::Nullify).0.contains("NULL"));
    let (_, params) = shown("status", HookMask::Fixed("hidden".into()));
    assert!(params.contains(&text("hidden")), "{params:?}");
    let (_, params) = shown("id", HookMask::Fixed("7".into()));
    assert!(params.contains(&Value::Integer(7)), "{params:?}");
    let (sql, params) = shown("id", HookMask::Fixed("seven".into()));
    assert!(sql.contains("NULL") && !params.contains(&text("seven")), "{sql}");
    assert!(shown("status", HookMask::Hash).0.contains("sha256"));
    // Only strings can be hashed, so a number is masked as null.
    assert!(shown("id", HookMask::Hash).0.contains("NULL"));
    assert!(shown("status", HookMask::Partial).0.contains("***"));
    assert!(shown("day", HookMask::TruncateDate(Granularity::Year)).0.contains("'year'"));
    assert!(shown("at", HookMask::TruncateDate(Granularity::Month)).0.contains("'month'"));
    assert!(shown("status", HookMask::TruncateDate(Granularity::Month)).0.contains("NULL"));
}

#[test]
fn truncated_time_is_not_grouped_finer() {
    let world = World::new();
    for (asked, mask, expected, absent) in
        [("day", Granularity::Year, "'year'", "'day'"), ("year", Granularity::Month, "'year'", "'month'")]
    {
        let asked: Granularity = asked.parse().unwrap();
        let query = json!({"measures": ["orders.count"], "time_dimensions": [{"dimension": "orders.day", "granularity": asked.as_str()}]});
        let sql = world.one(query, masked("orders", "day", HookMask::TruncateDate(mask))).unwrap().text;
        assert!(sql.contains(expected) && !sql.contains(absent), "{asked} under {mask}: {sql}");
    }
}

#[test]
fn strictest_hook_applies() {
    let world = World::new();
    let query = || json!({"measures": ["orders.count"], "dimensions": ["orders.status"], "limit": 50});
    let limited = |most| Obligations { max_rows: Some(most), ..Obligations::default() };
    let sql = world.sql(query(), &[("a", limited(20)), ("b", limited(10)), ("c", limited(99))]).unwrap();
    assert_eq!(sql.limit, Some(10));
    // The limit applies to all pages together, so earlier pages reduce the rows that remain for a page.
    for (offset, rest) in [(7, 3), (10, 0), (1_000, 0)] {
        let page =
            json!({"measures": ["orders.count"], "dimensions": ["orders.status"], "limit": 50, "offset": offset});
        assert_eq!(world.one(page, limited(10)).unwrap().limit, Some(rest), "{offset}");
    }
    let masks = [HookMask::Partial, HookMask::Nullify, HookMask::Hash];
    let masks: Vec<_> = masks.into_iter().map(|mask| ("hook", masked("orders", "status", mask))).collect();
    let sql = world.sql(query(), &masks).unwrap().text;
    assert!(sql.contains("NULL") && !sql.contains("sha256") && !sql.contains("***"), "{sql}");
    let filters = [
        ("a", filtered("orders", equal("status", text("one")))),
        ("b", filtered("orders", equal("id", Value::Integer(2)))),
    ];
    let sql = world.sql(query(), &filters).unwrap();
    assert!(sql.params.contains(&text("one")) && sql.params.contains(&Value::Integer(2)), "{}", sql.text);
}

#[test]
fn unknown_names_in_obligations_are_a_fault_of_the_hook() {
    let world = World::new();
    let query = || json!({"measures": ["orders.count"]});
    let is_null = |member: &str| test(member, TestOperator::IsNull, Vec::new());
    let cube = |name: &str| world.fault(query(), filtered(name, is_null("id")));
    assert!(matches!(cube("ordres"), ObligationFault::UnknownCube { .. }));
    assert!(matches!(cube("people"), ObligationFault::NotRead { .. }));
    // A hook must name the cube, not a join to it.
    assert!(matches!(cube("buyer"), ObligationFault::UnknownCube { .. }));
    let fault = |condition| world.fault(query(), filtered("orders", condition));
    assert!(matches!(fault(is_null("nothing")), ObligationFault::UnknownMember { .. }));
    assert!(matches!(fault(is_null("people.id")), ObligationFault::UnknownMember { .. }));
    assert!(matches!(fault(is_null("count")), ObligationFault::NotADimension { .. }));
    let mask = |member: &str, mask| world.fault(query(), masked("orders", member, mask));
    assert!(matches!(mask("nothing", HookMask::Nullify), ObligationFault::UnknownMember { .. }));
    assert!(matches!(mask("count", HookMask::Hash), ObligationFault::NotADimension { .. }));
}

#[test]
fn values_have_the_type_of_the_compared_member() {
    let world = World::new();
    let fault = |member: &str, operator, values| {
        world.fault(json!({"measures": ["orders.count"]}), filtered("orders", test(member, operator, values)))
    };
    for (member, operator, value) in [
        ("id", TestOperator::Eq, text("five")),
        ("id", TestOperator::Eq, Value::Boolean(true)),
        ("id", TestOperator::Lt, Value::Null),
        ("id", TestOperator::Eq, Value::Float(f64::NAN)),
        ("id", TestOperator::Contains, text("1")),
        ("status", TestOperator::Eq, Value::Integer(1)),
        ("status", TestOperator::StartsWith, Value::Null),
        ("is_paid", TestOperator::Gt, Value::Boolean(false)),
        ("day", TestOperator::Eq, Value::Timestamp(1)),
        ("day", TestOperator::Eq, Value::Integer(1)),
    ] {
        let fault = fault(member, operator, vec![value.clone()]);
        assert!(matches!(fault, ObligationFault::WrongType { .. }), "{member} {value:?}: {fault}");
    }
    for (operator, values) in [
        (TestOperator::Eq, Vec::new()),
        (TestOperator::IsNull, vec![Value::Null]),
        (TestOperator::Between, vec![Value::Integer(1)]),
    ] {
        assert!(matches!(fault("id", operator, values), ObligationFault::ValueCount { .. }));
    }
    let deep = (0..32).fold(HookCondition::Always(true), |inner, _| HookCondition::Not(Box::new(inner)));
    let of = |condition| world.fault(json!({"measures": ["orders.count"]}), filtered("orders", condition));
    assert!(matches!(of(deep), ObligationFault::TooDeep { .. }));
    let wide = HookCondition::Any((0..600).map(|_| HookCondition::Always(true)).collect());
    assert!(matches!(of(wide), ObligationFault::TooLarge { .. }));
}

#[test]
fn conditions_are_two_valued_and_typed() {
    let world = World::new();
    let sql = |condition| {
        let query = json!({"measures": ["orders.count"]});
        world.one(query, filtered("orders", condition)).unwrap()
    };
    let not_equal = sql(test("status", TestOperator::Ne, vec![text("x")]));
    assert!(not_equal.text.contains("IS NULL"), "{}", not_equal.text);
    let never = sql(HookCondition::Always(false));
    assert!(never.text.to_lowercase().contains("false"), "{}", never.text);
    let listed = sql(test("id", TestOperator::InList, vec![Value::Integer(1), Value::Null]));
    assert!(listed.text.contains("IS NULL"), "{}", listed.text);
    let nothing = sql(test("id", TestOperator::InList, Vec::new()));
    assert!(nothing.text.to_lowercase().contains("false"), "{}", nothing.text);
    let since = sql(test("at", TestOperator::Ge, vec![Value::Date(1)]));
    assert!(since.params.contains(&Value::TimestampTz(86_400_000_000)), "{:?}", since.params);
}

#[test]
fn facts_list_the_members_of_a_query() {
    let world = World::new();
    let query = json!({
        "measures": ["orders.count"], "dimensions": ["orders.status", "buyer.city"],
        "filters": [{"member": "orders.is_paid", "operator": "equals", "value": true}],
        "order_by": [{"field": "orders.count"}],
        "time_range": {"start": "2024-01-01", "end": "2024-01-31", "dimension": "orders.at"},
    });
    let query = read_query(&query).unwrap();
    let inspection = inspect(&world.model, &query, &world.caller, &environment()).unwrap();
    let facts = inspection.facts();
    let cubes: Vec<&str> = facts.cubes.iter().map(|name| &**name).collect();
    // The facts also name `big_orders` and `same_orders`, which have rows of the same table.
    assert_eq!(cubes, ["big_orders", "orders", "people", "same_orders"]);
    let uses = |cube: &str, member: &str, usage| {
        facts.members.iter().find(|used| &*used.cube == cube && &*used.member == member && used.usage == usage)
    };
    let status = uses("orders", "status", Usage::Selected).unwrap();
    assert_eq!(status.tags.iter().map(|tag| &**tag).collect::<Vec<_>>(), ["state", "public"]);
    assert!(status.pii && status.classification.as_deref() == Some("internal"));
    assert_eq!(status.ty, LogicalType::Text);
    // The facts contain the name of the cube, not the name of the join.
    assert!(uses("people", "city", Usage::Selected).is_some());
    assert!(uses("people", "id", Usage::Joined).is_some());
    assert!(uses("orders", "is_paid", Usage::Filtered).is_some());
    assert!(uses("orders", "at", Usage::Filtered).is_some());
    assert!(uses("orders", "count", Usage::Ordered).is_some_and(|used| used.is_measure));
    assert_eq!(facts.filters.len(), 2);
    assert!(facts.without_time_bound.is_empty());
}

#[test]
fn time_range_with_a_start_is_bounded() {
    let world = World::new();
    let open = |extra: serde_json::Value| {
        let mut query = json!({"measures": ["orders.count"]});
        query.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let query = read_query(&query).unwrap();
        let inspection = inspect(&world.model, &query, &world.caller, &environment()).unwrap();
        inspection.facts().without_time_bound.len()
    };
    assert_eq!(open(json!({})), 1);
    assert_eq!(open(json!({"time_range": {"start": "2024-01-01", "end": "2024-02-01"}})), 0);
    assert_eq!(open(json!({"filters": [{"member": "orders.day", "operator": "afterDate", "value": "2024-01-01"}]})), 0);
    assert_eq!(
        open(json!({"filters": [{"member": "orders.day", "operator": "beforeDate", "value": "2024-01-01"}]})),
        1
    );
    assert_eq!(open(json!({"filters": [{"member": "orders.id", "operator": "gt", "value": 5}]})), 1);
}

#[test]
fn query_with_a_subquery_may_read_every_table() {
    let world = World::new();
    let query = json!({"measures": ["orders.count"], "dimensions": ["orders.rank"]});
    let read = read_query(&query).unwrap();
    let inspection = inspect(&world.model, &read, &world.caller, &environment()).unwrap();
    assert!(inspection.facts().cubes.iter().any(|name| &**name == "people"));
    let error = world.one(query, filtered("people", equal("city", text("x")))).unwrap_err();
    assert!(matches!(error, QueryError::Covered { .. }), "{error:?}");
    // In some engines, a condition reads another table without the word SELECT.
    let query = json!({"measures": ["orders.count"], "dimensions": ["orders.has_people"]});
    let error = world.one(query, filtered("people", equal("city", text("x")))).unwrap_err();
    assert!(matches!(error, QueryError::Covered { .. }), "{error:?}");
}

#[test]
fn dropped_member_is_not_replaced_by_an_equally_named_metric() {
    let world = World::new();
    let query = || json!({"cube": "orders", "metrics": ["states"]});
    let sql = world.sql(query(), &[]).unwrap();
    assert_eq!((reads("raw.orders", &sql).0, reads("raw.people", &sql).0), (1, 0), "{}", sql.text);
    let error = world.one(query(), masked("orders", "states", HookMask::DropColumn)).unwrap_err();
    assert!(matches!(error, QueryError::UnknownMetric { .. } | QueryError::UnknownMeasure { .. }), "{error:?}");
    let sql = world.sql(json!({"metrics": ["states"]}), &[]).unwrap();
    assert_eq!(reads("raw.people", &sql).0, 1, "{}", sql.text);
}

#[test]
fn column_is_reported_under_the_names_of_other_cubes_over_its_table() {
    let world = World::new();
    let reported = |query: serde_json::Value, member: &str| {
        let query = read_query(&query).unwrap();
        let inspection = inspect(&world.model, &query, &world.caller, &environment()).unwrap();
        let members = inspection.facts().members.clone();
        members.into_iter().find(|used| &*used.cube == "orders" && &*used.member == member)
    };
    let query = json!({"measures": ["same_orders.count"], "dimensions": ["same_orders.state"]});
    let status = reported(query.clone(), "status").unwrap();
    assert!(status.pii && status.usage == Usage::Selected, "{status:?}");
    assert!(reported(query, "day").is_none());
    let filter = json!({"member": "same_orders.state", "operator": "equals", "value": "x"});
    let status = reported(json!({"measures": ["same_orders.count"], "filters": [filter]}), "status").unwrap();
    assert_eq!(status.usage, Usage::Filtered);
}

#[test]
fn obligation_may_name_members_that_a_sibling_cube_lacks() {
    let world = World::new();
    // A hook with the same rules for all cubes names members that some cubes lack.
    let all = || {
        let mut all = filtered("orders", equal("status", text(MARKER)));
        all.row_filters.extend(filtered("same_orders", equal("status", text(MARKER))).row_filters);
        all.masks = masked("same_orders", "city", HookMask::DropColumn).masks;
        all
    };
    let sql = world.one(json!({"measures": ["orders.count"]}), all()).unwrap();
    assert_eq!(reads("raw.orders", &sql), (1, 1), "{}", sql.text);
    let fault = world.fault(json!({"measures": ["same_orders.count"]}), all());
    assert!(matches!(fault, ObligationFault::UnknownMember { .. }), "{fault:?}");
}

#[test]
fn zero_row_limit_hides_totals() {
    let world = World::new();
    let query = read_query(&json!({"measures": ["orders.count"]})).unwrap();
    let totals = |max_rows| {
        let obligations = Obligations { max_rows: Some(max_rows), ..Obligations::default() };
        statements(&world.model, &world.profile, &query, &world.caller, &[("hook", obligations)]).unwrap().len()
    };
    assert_eq!((totals(0), totals(1)), (2, 3));
}

#[test]
fn inlined_statements_are_filtered() {
    let world = World::new();
    let query = read_query(&json!({"measures": ["orders.count"]})).unwrap();
    let inspection = inspect(&world.model, &query, &world.caller, &environment()).unwrap();
    let checked = inspection.check(&filtered("orders", equal("status", text(MARKER)))).unwrap();
    let authorized = inspection.authorize(vec![("hook".into(), checked)]);
    let sql = compile_inline(&world.profile, &query, &authorized, &environment()).unwrap();
    assert!(sql.contains(MARKER), "{sql}");
}
