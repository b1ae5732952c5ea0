//! Tests imports of small LookML projects.
//!
//! In: project files as text. Out: the access that an anonymous caller has, the files, and the findings.

use terrane_compiler::diagnostic::Code;
use terrane_importers::Format;

use crate::imported::Imported;

const ORDERS: &str = "view: orders {
  sql_table_name: shop.orders ;;
  drill_fields: [id]
  dimension: id { primary_key: yes type: number sql: ${TABLE}.id ;; }
  dimension: user_id { type: number hidden: yes sql: ${TABLE}.user_id ;; }
  dimension: status { label: \"State\" sql: ${TABLE}.status ;; html: <b>{{ value }}</b> ;; }
  dimension: is_paid { type: yesno sql: ${status} = 'paid' ;; }
  dimension: amount { type: number sql: ${TABLE}.amount ;; value_format_name: usd }
  dimension: size { type: tier tiers: [0, 10, 100] style: interval sql: ${amount} ;; }
  dimension: kind { case: { when: { sql: ${amount} > 100 ;; label: \"big\" } else: \"small\" } }
  dimension: place { type: location sql_latitude: ${TABLE}.lat ;; sql_longitude: ${TABLE}.lon ;; }
  dimension: liquid { sql: {% if x %} a {% endif %} ;; }
  dimension_group: created { type: time timeframes: [raw, date, month, day_of_week] convert_tz: no sql: ${TABLE}.created_at ;; }
  dimension_group: age { type: duration intervals: [day] sql_start: ${created_raw} ;; sql_end: now() ;; }
  dimension: created_day { type: date sql: ${created_date} ;; }
  dimension: created_month_name { sql: ${created_month} ;; }
  measure: count { type: count drill_fields: [detail*, nothing] }
  measure: revenue { type: sum sql: ${amount} ;; filters: [is_paid: \"yes\", status: \"-test%\"] }
  measure: old_filter { type: sum sql: ${amount} ;; filters: { field: status value: \"paid,open\" } }
  measure: recent { type: count filters: [created_date: \"7 days\"] }
  measure: average { type: number sql: ${revenue} / NULLIF(${count}, 0) ;; }
  measure: middle { type: median sql: ${amount} ;; }
  measure: share { type: percent_of_total sql: ${revenue} ;; }
  parameter: grain { type: unquoted }
  set: detail { fields: [id, status, created_date] }
}
";

const USERS: &str = "view: users {
  sql_table_name: shop.users ;;
  dimension: id { primary_key: yes type: number sql: ${TABLE}.id ;; }
  dimension: region {}
  dimension: email { sql: ${TABLE}.email ;; }
  dimension: secret { required_access_grants: [hr] sql: ${TABLE}.secret ;; }
  dimension: shown_secret { sql: UPPER(${secret}) ;; }
  measure: count { type: count }
}
view: staff { extends: [users] dimension: email { hidden: yes } dimension: region { label: \"Area\" } }
view: unused { sql_table_name: shop.unused ;; measure: count { type: count } }
view: granted { required_access_grants: [hr] measure: count { type: count } }
view: template { extension: required dimension: x {} }
view: derived { derived_table: { sql: SELECT * FROM ${orders.SQL_TABLE_NAME} WHERE paid ;; datagroup_trigger: daily }
  dimension: id { primary_key: yes type: number } }
view: native { derived_table: { explore_source: orders { column: id {} } } dimension: id {} }
";

fn project(explores: &str) -> Imported {
    let files = [("orders.view.lkml", ORDERS), ("users.view.lkml", USERS), ("shop.model.lkml", explores)];
    Imported::of(Format::LookMl, &files)
}

const JOINED: &str = "explore: orders {
  join: users { relationship: many_to_one sql_on: ${orders.user_id} = ${users.id} ;; }
  join: sellers { from: users relationship: many_to_one type: inner sql_on: ${orders.seller_id} = ${sellers.id} ;; }
  join: buyers { from: users relationship: many_to_one sql_on: ${orders.user_id} = ${buyers.id} ;; }
  join: many { from: staff relationship: many_to_many sql_on: ${orders.id} = ${many.id} ;; }
  join: derived { foreign_key: id }
}
explore: users {}
explore: staff {}
explore: granted {}
";

#[test]
fn views_and_joins_become_cubes() {
    let imported = project(JOINED);
    let orders = imported.file("cubes/orders.yml");
    for line in [
        "sql_table: shop.orders",
        "{name: id, type: number, sql: \"{CUBE}.id\", primary_key: true}",
        "hidden: true",
        "sql: \"COALESCE({status} = 'paid', FALSE)\"",
        "format: currency",
        "WHEN ({amount}) < 10 THEN '[0, 10)'",
        "CASE WHEN {amount} > 100 THEN 'big' ELSE 'small' END",
        "timezone: \"none\", granularities: [day, month]",
        "CAST({created} AS DATE)",
        "drill_members: [id, status, created]",
        "{name: users, relationship: many_to_one, sql: \"{orders.user_id} = {users.id}\"}",
        "{name: buyers, cube: users, relationship: many_to_one, sql: \"{orders.user_id} = {buyers.id}\"}",
        "{name: derived, relationship: many_to_one, sql: \"{orders.id} = {derived.id}\"}",
        "filters: [{sql: \"{is_paid}\"}, {sql: \"(NOT ({status} LIKE 'test%') OR {status} IS NULL)\"}]",
        "({status} = 'paid' OR {status} = 'open')",
    ] {
        assert!(orders.contains(line), "{line}\n{orders}");
    }
    assert!(imported.file("cubes/derived.yml").contains("SELECT * FROM shop.orders WHERE paid"));
    let staff = imported.file("cubes/staff.yml");
    assert!(staff.contains("sql_table: shop.users") && staff.contains("{CUBE}.secret"), "{staff}");
    for member in ["place_latitude", "place_longitude", "average", "middle"] {
        assert!(imported.has(&format!("orders.{member}")), "{member}");
    }
}

#[test]
fn parts_without_a_counterpart_are_reported_at_their_place() {
    let imported = project(JOINED);
    for line in [3, 6, 12, 13, 14, 16, 17, 20, 23, 24] {
        assert_eq!(imported.codes("orders.view.lkml", line), [Code::NotCarriedOver], "{line}");
    }
    for line in [11, 21] {
        assert_eq!(imported.codes("orders.view.lkml", line), [Code::Changed], "{line}");
    }
    for line in [13, 16] {
        assert_eq!(imported.codes("users.view.lkml", line), [Code::NotCarriedOver], "{line}");
    }
    assert_eq!(
        imported.codes("shop.model.lkml", 3),
        [Code::NotCarriedOver, Code::Changed],
        "unknown field, inner join"
    );
    assert_eq!(imported.codes("shop.model.lkml", 5), [Code::NotCarriedOver]);
    let hints = imported.report.findings.iter().filter(|finding| finding.hint.as_deref().unwrap_or("").is_empty());
    assert_eq!(hints.count(), 0);
}

#[test]
fn includes_of_missing_files_are_reported_at_their_line() {
    let model = "include: \"/views/*.view\"
include: \"../views/orders.view.lkml\"
include: \"//block/views/users.view\"
include: \"/views/refunds.view\"
include: \"sales.dashboard\"
explore: orders {}
";
    let imported =
        Imported::of(Format::LookMl, &[("models/shop.model.lkml", model), ("views/orders.view.lkml", ORDERS)]);
    for (line, is_reported) in [(1, false), (2, false), (3, true), (4, true), (5, false)] {
        let expected = if is_reported { vec![Code::NotCarriedOver] } else { Vec::new() };
        assert_eq!(imported.codes("models/shop.model.lkml", line), expected, "{line}");
    }
    assert!(imported.messages("models/shop.model.lkml", 4)[0].contains("`include: \"/views/refunds.view\"`"));
}

#[test]
fn views_that_no_explore_shows_are_closed() {
    let imported = project(JOINED);
    assert!(imported.can_name("users.count") && imported.can_name("orders.count"));
    assert!(!imported.can_name("unused.count"));
    assert_eq!(imported.codes("users.view.lkml", 11), [Code::Closed]);
    assert!(imported.is_filtered("granted"));
    for hidden in ["explore: users { hidden: yes }", "explore: users { required_access_grants: [hr] }"] {
        assert!(!project(&format!("explore: orders {{}}\n{hidden}\n")).can_name("users.count"), "{hidden}");
    }
    let granted_join =
        "explore: orders { join: users { required_access_grants: [hr] sql_on: ${orders.user_id} = ${users.id} ;; } }";
    assert!(!project(granted_join).can_name("users.count"));
}

#[test]
fn fields_with_access_grants_are_closed_with_their_dependents() {
    let imported = project(JOINED);
    for member in ["users.secret", "users.shown_secret", "staff.secret", "staff.shown_secret"] {
        assert!(imported.has(member) && !imported.can_name(member), "{member}");
    }
    assert!(imported.can_name("users.email"));
}

#[test]
fn rules_of_explores_become_policies() {
    let imported = project(
        "explore: orders {
  access_filter: { field: users.region user_attribute: region }
  sql_always_where: ${orders.status} <> 'deleted' ;;
  join: users { relationship: many_to_one sql_on: ${orders.user_id} = ${users.id} ;; }
  join: derived { relationship: one_to_one sql_on: ${orders.id} = ${derived.id} ;; }
}
",
    );
    let policies = imported.file("policies/orders.yml");
    assert!(policies.contains("{users.region} IN {{ user.attributes.region }}"), "{policies}");
    assert!(policies.contains("{status} <> 'deleted'"), "{policies}");
    assert!(imported.file("policies/users.yml").contains("{region} IN {{ user.attributes.region }}"));
    assert!(imported.is_filtered("orders") && imported.is_filtered("users"));
    assert!(!imported.can_name("derived.id"), "the explore shows it for some rows only");
    assert_eq!(imported.codes("shop.model.lkml", 5), [Code::Closed]);
}

#[test]
fn rules_without_a_counterpart_close_the_base() {
    for rule in [
        "access_filter: { field: users.nothing user_attribute: region }",
        "access_filter: { field: status user_attribute: \"a b\" }",
        "access_filter: { field: status }",
        "sql_always_where: {% condition x %} status {% endcondition %} ;;",
        "sql_always_where: ${nothing} = 1 ;;",
        "sql_always_where: this is not SQL ( ;;",
        "sql_always_having: ${count} > 1 ;;",
    ] {
        let imported = project(&format!("explore: orders {{\n {rule}\n}}\n"));
        assert!(imported.is_filtered("orders"), "{rule}");
        assert!(imported.file("policies/orders.yml").contains("1 = 0"), "{rule}");
        assert!(
            imported.codes("shop.model.lkml", 2).contains(&Code::Closed),
            "{rule}: {:#?}",
            imported.report.findings
        );
    }
}

#[test]
fn fields_that_no_explore_shows_are_closed() {
    let imported = project("explore: orders { fields: [ALL_FIELDS*, -orders.amount, -orders.detail*] }\n");
    for member in ["orders.amount", "orders.id", "orders.status", "orders.created"] {
        assert!(imported.has(member) && !imported.can_name(member), "{member}");
    }
    assert!(imported.can_name("orders.revenue"));
    let imported = project(
        "explore: orders { join: users { fields: [users.email] sql_on: ${orders.user_id} = ${users.id} ;; } }\n",
    );
    assert!(imported.can_name("users.email") && !imported.can_name("users.region") && imported.can_name("orders.id"));
    let both =
        project("explore: orders { fields: [orders.id] }\nexplore: again { from: orders fields: [again.status] }\n");
    assert!(both.can_name("orders.id") && both.can_name("orders.status") && !both.can_name("orders.amount"));
}

#[test]
fn refinements_are_merged() {
    let imported = project(
        "explore: orders {}
view: +orders { dimension: status { required_access_grants: [hr] } measure: extra { type: max sql: ${amount} ;; } }
explore: +orders { access_filter: { field: status user_attribute: status } }
",
    );
    assert!(!imported.can_name("orders.status") && imported.has("orders.extra") && imported.is_filtered("orders"));
    assert_eq!(imported.codes("shop.model.lkml", 2)[0], Code::Changed);
}

#[test]
fn repeated_fields_are_left_out() {
    let view = "view: a {
  dimension: email { required_access_grants: [hr] sql: ${TABLE}.email ;; }
  dimension: email { sql: ${TABLE}.email ;; }
  measure: status { type: count }
  dimension: status { sql: ${TABLE}.status ;; }
  dimension: id {}
}
";
    let imported = Imported::of(Format::LookMl, &[("a.lkml", view)]);
    assert!(!imported.has("a.email") && !imported.has("a.status") && imported.can_name("a.id"));
    assert!([3, 4, 5].iter().all(|line| imported.codes("a.lkml", *line).contains(&Code::NotCarriedOver)));
}

#[test]
fn filters_of_an_extending_measure_replace_inherited_ones() {
    let views = "view: a {
  dimension: status {}
  measure: paid { type: count filters: [status: \"paid\"] }
}
view: b { extends: [a] sql_table_name: shop.b ;; measure: paid { filters: [status: \"open\"] } }
";
    let imported = Imported::of(Format::LookMl, &[("a.lkml", views)]);
    let text = imported.file("cubes/b.yml");
    assert!(text.contains("'open'") && !text.contains("'paid'"), "{text}");
}

#[test]
fn files_that_cannot_be_read_close_the_views_that_they_name() {
    let files = [
        ("orders.view.lkml", ORDERS),
        ("broken.lkml", "view: +orders { dimension: status { required_access_grants: [hr] }\n"),
        ("model.lkml", "explore: orders {}\n"),
        ("old.dashboard.lookml", "- dashboard: x\n"),
    ];
    let imported = Imported::of(Format::LookMl, &files);
    assert!(imported.is_filtered("orders"));
    assert_eq!(imported.codes("broken.lkml", 2), [Code::NotRead]);
    assert_eq!(imported.codes("old.dashboard.lookml", 1), [Code::NotRead]);
}

#[test]
fn older_files_are_read_if_they_have_the_new_syntax() {
    let files = [
        ("orders.view.lookml", ORDERS),
        ("model.lkml", "explore: orders {}\nexplore: people {}\n"),
        ("people.view.lkml", "view: people { dimension: id { type: number } }\n"),
        ("old/people.view.lookml", "# An older file.\n- view: people\n  fields:\n  - dimension: id\n"),
        ("old/model.lookml", "- connection: x\n- explore: people\n"),
    ];
    let imported = Imported::of(Format::LookMl, &files);
    assert!(imported.can_name("orders.status") && imported.has("people.id"));
    assert!(imported.is_filtered("people"), "an older file names it, and may restrict it");
    for file in ["old/people.view.lookml", "old/model.lookml"] {
        assert_eq!(imported.codes(file, 1), [Code::NotRead], "{file}");
        assert!(!imported.messages(file, 1)[0].contains("dashboard"), "{file}");
    }
}

#[test]
fn labels_of_groups_become_metadata() {
    let views = "view: a {
  dimension: ip { group_label: \"Asset\" group_item_label: \"Address\" tags: [\"net\"] }
  dimension: host { group_label: \"{{ _localization['asset'] }}\" }
  measure: count { type: count group_label: \"Counts\" }
}
explore: a {}
";
    let imported = Imported::of(Format::LookMl, &[("a.lkml", views)]);
    let text = imported.file("cubes/a.yml");
    assert!(text.contains("meta: {tags: [net], group_label: Asset, group_item_label: Address}"), "{text}");
    assert!(text.contains("meta: {group_label: Counts}") && !text.contains("_localization"), "{text}");
    assert_eq!(imported.codes("a.lkml", 3), [Code::NotCarriedOver]);
    assert_eq!(imported.report.findings.len(), 1, "{:#?}", imported.report.findings);
}

#[test]
fn raw_join_is_one_finding() {
    let views = "view: a { dimension: id {} }
view: a__items { dimension: id {} }
explore: a {
  join: a__items { sql: LEFT JOIN UNNEST(${a.items}) AS a__items ;; relationship: one_to_many }
}
";
    let imported = Imported::of(Format::LookMl, &[("a.lkml", views)]);
    assert_eq!(imported.codes("a.lkml", 4), [Code::NotCarriedOver]);
    assert!(imported.messages("a.lkml", 4)[0].contains("`sql`"), "{:?}", imported.messages("a.lkml", 4));
}

#[test]
fn views_that_extend_a_block_are_left_out() {
    let views = "view: a { dimension: id {} }
view: b { extends: { a: yes } dimension: id {} }
explore: a {}
explore: b {}
";
    let imported = Imported::of(Format::LookMl, &[("a.lkml", views)]);
    assert!(imported.model.cube_named("a").is_some() && imported.model.cube_named("b").is_none());
    assert!(imported.codes("a.lkml", 2).contains(&Code::NotCarriedOver));
}

#[test]
fn circular_definitions_end() {
    let imported = Imported::of(
        Format::LookMl,
        &[(
            "a.lkml",
            "view: a { extends: [b] }
view: b { extends: [a] }
view: c { derived_table: { sql: SELECT * FROM ${d.SQL_TABLE_NAME} ;; } dimension: id {} }
view: d { derived_table: { sql: SELECT * FROM ${c.SQL_TABLE_NAME} ;; } dimension: id {} }
view: e { measure: count { type: count drill_fields: [x*] } set: x { fields: [x*, y*] } set: y { fields: [x*, x*] } }
view: f { dimension: a { sql: ${b} ;; } dimension: b { sql: ${a} ;; } dimension: c {} }
",
        )],
    );
    assert!(imported.has("e.count") && imported.has("f.c") && !imported.has("f.a"));
    assert!(imported.model.cube_named("c").is_none());
}

const PETS: &str = "view: pets {
  dimension: id { primary_key: yes type: number }
  dimension_group: born { type: time timeframes: [date, month, year] sql: ${TABLE}.born ;; }
  dimension_group: died { type: time timeframes: [year] sql: ${TABLE}.died ;; }
  measure: count { type: count }
}
";

#[test]
fn times_are_closed_unless_all_timeframes_are_shown() {
    let imported = Imported::of(
        Format::LookMl,
        &[("a.lkml", PETS), ("m.lkml", "explore: pets { fields: [pets.id, pets.born_year, pets.died_year] }\n")],
    );
    assert!(imported.has("pets.born") && !imported.can_name("pets.born") && imported.can_name("pets.died"));
    assert_eq!(imported.codes("m.lkml", 1), [Code::Closed]);
    let imported = Imported::of(
        Format::LookMl,
        &[
            ("a.lkml", PETS),
            (
                "m.lkml",
                "explore: pets { fields: [pets.born_date, pets.born_month] }\nexplore: b { from: pets fields: [b.born_year] }\n",
            ),
        ],
    );
    assert!(imported.can_name("pets.born"), "together the explores show all timeframes");
}

#[test]
fn explores_in_files_that_cannot_be_read_count_as_explores() {
    let imported =
        Imported::of(Format::LookMl, &[("pets.lkml", PETS), ("m.lkml", "explore: orders { access_filter: { \n")]);
    assert!(!imported.can_name("pets.count"));
    let imported =
        Imported::of(Format::LookMl, &[("pets.lkml", PETS), ("m.lkml", "explore: orders { extends: [nothing] }\n")]);
    assert!(!imported.can_name("pets.count"));
}

#[test]
fn definitions_of_one_name_that_differ_are_closed() {
    let open =
        "view: users { dimension: id { primary_key: yes } dimension: ssn {} }\nview: child { extends: [users] }\n";
    let strict =
        "view: users { dimension: id { primary_key: yes } dimension: ssn { required_access_grants: [fin] } }\n";
    let explores = "explore: users {}\nexplore: child {}\n";
    let files = [("archive/users.lkml", open), ("m.lkml", explores), ("users.lkml", strict)];
    let imported = Imported::of(Format::LookMl, &files);
    assert!(imported.is_filtered("users") && imported.is_filtered("child"));
    let copy = "view: users { dimension: id { primary_key: yes }\n dimension: ssn {} }\n";
    let imported = Imported::of(Format::LookMl, &[files[0], files[1], ("users.lkml", copy)]);
    assert!(imported.can_name("users.ssn") && !imported.is_filtered("users"));
    let hidden = ("n.lkml", "explore: users { hidden: yes }\n");
    let imported = Imported::of(Format::LookMl, &[files[0], files[1], hidden]);
    assert!(!imported.can_name("users.ssn") && imported.can_name("child.ssn"));
}

#[test]
fn repeated_parents_and_sets_do_not_multiply() {
    let mut text = String::from(
        "view: v0 { dimension: id { primary_key: yes } measure: count { type: count drill_fields: [s12*] }\n set: s0 { fields: [id] }\n",
    );
    for level in 1..=12 {
        text.push_str(&format!(" set: s{level} {{ fields: [{}] }}\n", vec![format!("s{}*", level - 1); 10].join(", ")));
    }
    text.push_str("}\nexplore: e0 { view_name: v0 access_filter: { field: v0.id user_attribute: x } }\n");
    for level in 1..=30 {
        let below = level - 1;
        text.push_str(&format!("view: v{level} {{ extends: [{}] }}\n", vec![format!("v{below}"); 10].join(", ")));
        text.push_str(&format!("explore: e{level} {{ extends: [e{below}, e{below}, e0] }}\n"));
    }
    text.push_str("explore: v30 { fields: [s12*] }\n");
    let imported = Imported::of(Format::LookMl, &[("a.lkml", &text)]);
    assert!(imported.can_name("v30.id") && imported.file("cubes/v30.yml").contains("drill_members: [id]"));
    assert!(imported.report.findings.len() < 200, "{}", imported.report.findings.len());
}

#[test]
fn cycles_of_extends_have_one_finding_each() {
    let views =
        "view: a { extends: [a] }\nview: b { extends: [c] }\nview: c { extends: [b] }\nview: d { dimension: id {} }\n";
    let imported = Imported::of(Format::LookMl, &[("a.lkml", views)]);
    assert_eq!(imported.messages("a.lkml", 1), ["view `a` is not imported: it extends itself"]);
    assert_eq!([2, 3].map(|line| imported.codes("a.lkml", line).len()), [1, 1]);
}

#[test]
fn values_are_those_of_looker_or_left_out() {
    let view = "view: items {
  dimension: id { primary_key: yes type: number }
  dimension: order_id { type: number }
  dimension: status {}
  dimension: sold_on { type: date sql: ${TABLE}.sold_at ;; }
  dimension: paid_on { type: date datatype: date sql: ${TABLE}.paid_on ;; }
  measure: far { type: sum_distinct sql_distinct_key: ${orders.id} ;; sql: ${id} ;; }
  measure: middle { type: median_distinct sql_distinct_key: ${order_id} ;; sql: ${id} ;; }
  measure: own { type: average_distinct sql_distinct_key: ${items.id} ;; sql: ${order_id} ;; }
  measure: total { type: sum sql: ${id} ;; filters: [status: \"A_c\"] }
  measure: hundred { type: number sql: 100.0 * ${total} ;; value_format: \"0.0\\%\" }
  measure: spread { type: number sql: ${total} - ${orders.count} ;; }
}
view: orders { dimension: id { primary_key: yes type: number } measure: count { type: count } }
";
    let model = "case_sensitive: no\nexplore: items {\n join: orders { required_joins: [users] sql_on: ${items.order_id} = ${orders.id} ;; } }\n";
    let imported = Imported::of(Format::LookMl, &[("a.lkml", view), ("m.lkml", model)]);
    let items = imported.file("cubes/items.yml");
    assert!(items.contains("CAST({CUBE}.sold_at AS DATE)") && items.contains("sql: \"{CUBE}.paid_on\""), "{items}");
    assert!(items.contains("LOWER({status}) LIKE 'a_c'") && !items.contains("percent"), "{items}");
    assert!(!imported.has("items.far") && !imported.has("items.middle") && imported.has("items.own"));
    for (line, code) in [(5, Code::Changed), (7, Code::NotCarriedOver), (8, Code::NotCarriedOver), (12, Code::Changed)]
    {
        assert_eq!(imported.codes("a.lkml", line), [code], "{line}");
    }
    assert_eq!(imported.codes("m.lkml", 3), [Code::NotCarriedOver]);
}

#[test]
fn braces_in_strings_of_queries_are_preserved() {
    let view = "view: a { derived_table: { sql: SELECT 'a}b{c' AS x, '${b.SQL_TABLE_NAME}' AS y ;; } dimension: x {} }\nview: b { dimension: id {} }\nview: c { derived_table: { sql: SELECT }1 AS x ;; } dimension: x {} }\n";
    let imported = Imported::of(Format::LookMl, &[("a.lkml", view)]);
    assert!(imported.has("a.x") && imported.file("cubes/a.yml").contains("'a}b{c' AS x, 'b' AS y"));
    assert!(imported.model.cube_named("c").is_none());
}

#[test]
fn caching_of_explores_is_reported() {
    let explore = "explore: users {\n  persist_with: nightly\n  persist_for: \"1 hour\"\n}\n";
    let files = [("users.view.lkml", USERS), ("shop.model.lkml", explore)];
    let imported = Imported::of(Format::LookMl, &files);
    for line in [2, 3] {
        assert_eq!(imported.codes("shop.model.lkml", line), [Code::NotCarriedOver], "{line}");
    }
}
