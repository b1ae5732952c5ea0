//! Tests imports of small Cube models. A model that is closed to some callers must not be open to them in the project,
//! and every difference has one finding at its place.
//!
//! In: model files as text. Out: the access that an anonymous caller has in the compiled project, and the findings.

use crate::imported::Imported;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_importers::Format;

/// Imports files of a Cube model.
fn of(files: &[(&str, &str)]) -> Imported {
    Imported::of(Format::Cube, files)
}

/// Imports a model with one cube `orders`, which has the given keys.
fn orders(keys: &str) -> Imported {
    of(&[("orders.yml", &format!("cubes:\n  - name: orders\n    sql_table: shop.orders\n{keys}"))])
}

#[test]
fn private_members_stay_private_and_serve_other_members() {
    let imported = orders(
        "    dimensions:
      - {name: id, sql: id, type: number, primary_key: true, public: false}
      - {name: email, sql: email, type: string, shown: false}
      - {name: status, sql: status, type: string}
    measures:
      - {name: paid, type: count, public: false, filters: [{sql: \"{CUBE}.status = 'paid'\"}]}
      - {name: count, type: count}
      - {name: paid_share, type: number, sql: \"{paid} / {count}\"}
    segments:
      - {name: big, sql: \"amount > 10\", public: false}
",
    );
    for member in ["orders.id", "orders.email", "orders.paid", "orders.big"] {
        assert!(imported.has(member) && !imported.can_name(member), "{member}");
    }
    for member in ["orders.status", "orders.count", "orders.paid_share"] {
        assert!(imported.can_name(member), "{member}");
    }
    let closed = imported.report.findings.iter().filter(|finding| finding.code == Code::Closed);
    assert_eq!(closed.count(), 0, "they are as they were");
}

#[test]
fn templates_and_other_values_of_public_close_a_member() {
    for value in ["\"{{ is_admin }}\"", "\"{% if x %}true{% endif %}\"", "[true]", "{a: true}", "maybe", "1", "\"\""] {
        let imported = orders(&format!(
            "    dimensions:\n      - name: email\n        sql: email\n        type: string\n        public: {value}\n"
        ));
        assert!(!imported.can_name("orders.email"), "{value}");
        assert_eq!(imported.codes_at(8), [Code::Closed], "{value}: {:#?}", imported.report.findings);
    }
    for value in ["true", "yes", "\"true\"", "null"] {
        let imported = orders(&format!(
            "    dimensions:\n      - name: email\n        sql: email\n        type: string\n        public: {value}\n"
        ));
        assert!(imported.can_name("orders.email"), "{value}");
    }
}

#[test]
fn unquoted_template_never_opens_a_member() {
    let model = "cubes:\n  - name: orders\n    sql_table: shop.orders\n    dimensions:\n      - name: email\n        sql: email\n        type: string\n        public: {{ is_admin }}\n";
    let other = "cubes:\n  - {name: other, sql_table: shop.other, measures: [{name: count, type: count}]}\n";
    let imported = of(&[("orders.yml", model), ("other.yml", other)]);
    assert!(!imported.can_name("orders.email"));
    assert!(!imported.report.findings.is_empty());
}

#[test]
fn masked_members_are_closed_with_one_finding() {
    let imported = orders(
        "    dimensions:
      - name: email
        sql: email
        type: string
        mask:
          sql: \"'***'\"
      - name: place
        type: geo
        latitude: {sql: lat}
        longitude: {sql: lon}
        mask: -1
    measures:
      - name: revenue
        sql: amount
        type: sum
        mask: -1
      - {name: count, type: count}
",
    );
    for member in ["orders.email", "orders.place_latitude", "orders.place_longitude", "orders.revenue"] {
        assert!(imported.has(member) && !imported.can_name(member), "{member}");
    }
    assert!(imported.can_name("orders.count"));
    assert_eq!([8, 14, 19].map(|line| imported.codes_at(line)), [[Code::Closed], [Code::Closed], [Code::Closed]]);
}

#[test]
fn members_that_read_masked_members_are_closed() {
    let imported = orders(
        "    dimensions:
      - {name: email, sql: email, type: string, mask: \"'***'\"}
      - {name: shown_email, sql: \"{email}\", type: string}
      - {name: upper_email, sql: \"UPPER({CUBE.shown_email})\", type: string}
      - {name: status, sql: status, type: string}
    measures:
      - {name: longest, sql: \"{email}\", type: max}
      - {name: statuses, sql: \"{status}\", type: count_distinct}
    segments:
      - {name: with_email, sql: \"{email} IS NOT NULL\"}
",
    );
    for member in ["email", "shown_email", "upper_email", "longest", "with_email"] {
        let member = format!("orders.{member}");
        assert!(imported.has(&member) && !imported.can_name(&member), "{member}");
    }
    assert!(imported.can_name("orders.status") && imported.can_name("orders.statuses"));
}

#[test]
fn private_cubes_and_cubes_with_unknown_visibility_are_closed() {
    for value in ["false", "\"{{ COMPILE_CONTEXT.x }}\"", "[a]"] {
        let imported = orders(&format!("    public: {value}\n    measures: [{{name: count, type: count}}]\n"));
        assert!(!imported.can_name("orders.count"), "{value}");
    }
}

#[test]
fn cubes_inherit_the_access_of_the_cube_that_they_extend() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - name: closed
    sql_table: shop.closed
    measures: [{name: count, type: count}]
    access_policy: [{role: admin}]
  - {name: child, extends: closed, sql_table: shop.child}
  - {name: grandchild, extends: child, sql_table: shop.grandchild}
  - {name: private, sql_table: shop.private, public: false, measures: [{name: count, type: count}]}
  - {name: hidden_child, extends: private, sql_table: shop.a}
  - {name: open_child, extends: private, sql_table: shop.b, public: true}
",
    )]);
    for cube in ["closed", "child", "grandchild"] {
        assert!(imported.is_filtered(cube), "{cube}");
    }
    assert!(!imported.can_name("hidden_child.count"));
    assert!(imported.can_name("open_child.count"));
    assert_eq!([6, 7, 9].map(|line| imported.codes_at(line)), [[Code::Closed], [Code::Closed], [Code::Closed]]);
}

#[test]
fn members_that_a_view_leaves_out_are_private_in_it() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - name: customers
    sql_table: shop.customers
    public: false
    dimensions:
      - {name: id, sql: id, type: number, primary_key: true}
      - {name: name, sql: name, type: string}
      - {name: ssn, sql: ssn, type: string}
      - {name: secret, sql: secret, type: string, public: false}
views:
  - {name: names, cubes: [{join_path: customers, includes: [name, secret]}]}
  - {name: others, cubes: [{join_path: customers, includes: \"*\", excludes: [ssn]}]}
  - {name: aliases, cubes: [{join_path: customers, includes: [{name: name, alias: label}]}]}
  - {name: unreadable, cubes: [{join_path: customers, includes: \"*\", excludes: \"{{ excluded() }}\"}]}
  - {name: mapped, cubes: [{join_path: customers, includes: \"*\", excludes: {ssn: true}}]}
  - {name: unclear, cubes: [{join_path: customers, includes: {a: b}}]}
",
    )]);
    assert!(imported.can_name("names.name") && imported.can_name("others.name") && imported.can_name("aliases.label"));
    for member in
        ["names.ssn", "names.id", "names.secret", "others.ssn", "others.secret", "aliases.name", "unclear.ssn"]
    {
        assert!(!imported.can_name(member), "{member}");
    }
    for view in ["unreadable", "mapped"] {
        assert!(imported.model.cube_named(view).is_none(), "{view}");
    }
    assert!(imported.codes_at(11).contains(&Code::Closed), "the view names a private member");
}

#[test]
fn repeated_names_are_left_out() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - name: orders
    sql_table: shop.orders
    dimensions:
      - {name: email, sql: email, type: string, public: false}
      - {name: email, sql: email, type: string}
      - {name: status, sql: status, type: string}
    access_policy: [{role: admin}]
  - name: orders
    sql_table: shop.orders
    measures: [{name: count, type: count}]
",
    )]);
    assert!(!imported.has("orders.email") && imported.has("orders.status") && !imported.has("orders.count"));
    assert!(imported.is_filtered("orders"));
    assert_eq!([5, 6, 9].map(|line| imported.codes_at(line)), [[Code::NotCarriedOver]; 3].map(|codes| codes.to_vec()));
}

#[test]
fn rolling_windows_are_carried_over() {
    let imported = orders(
        "    measures:
      - {name: active, sql: customer_id, type: count_distinct, rolling_window: {trailing: 28 day}}
      - {name: around, sql: amount, type: sum, rolling_window: {trailing: 1 month, leading: 7 days, offset: start}}
      - {name: ever, type: count, rolling_window: {trailing: unbounded, type: fixed}}
      - {name: old, sql: amount, type: running_total, rolling_window: {trailing: unbounded}}
      - {name: this_year, sql: amount, type: sum, rolling_window: {type: to_date, granularity: year}}
      - {name: two_units, sql: amount, type: sum, rolling_window: {trailing: 1 month 3 days}}
      - {name: empty, sql: amount, type: sum, rolling_window: {offset: end}}
      - {name: share, sql: \"{active} / 2\", type: number, rolling_window: {trailing: 7 day}}
",
    );
    let cube = imported.file("cubes/orders.yml");
    for measure in [
        "type: count_distinct, sql: customer_id, rolling_window: {trailing: \"28 day\"}}",
        "rolling_window: {trailing: \"1 month\", leading: \"7 day\", offset: start}",
        "type: count, rolling_window: {trailing: unbounded}}",
        "type: running_total, sql: amount, from: all}",
    ] {
        assert!(cube.contains(measure), "{measure} is not in {cube}");
    }
    for line in 9..=12 {
        assert_eq!(imported.codes_at(line), [Code::NotCarriedOver], "line {line}");
    }
    assert_eq!(imported.report.counts.measures, 4);
}

#[test]
fn names_that_are_templates_are_left_out() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - {name: \"{{ prefix }}_orders\", sql_table: shop.orders, measures: [{name: count, type: count}]}
  - name: other
    sql_table: shop.other
    measures:
      - {name: \"{{ name }}\", type: count}
      - {name: count, type: count}
",
    )]);
    assert_eq!(imported.report.counts.cubes, 1);
    assert_eq!(imported.report.counts.measures, 1);
    assert_eq!([imported.codes_at(2), imported.codes_at(6)], [[Code::NotCarriedOver], [Code::NotCarriedOver]]);
}

#[test]
fn files_with_variables_are_validated_too() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - name: orders
    sql_table: \"{{ env_var('A') }}.orders\"
    dimensions:
      - {name: broken, sql: \"upper({CUBE}.status\", type: string}
      - {name: status, sql: status, type: string}
      - {name: region, sql: \"{{ env_var('B') }}\", type: string}
    measures:
      - {name: rate, sql: \"amount * {{ env_var('A') }}\", type: sum}
      - {name: unknown, sql: \"{nothing} / 2\", type: number}
",
    )]);
    assert_eq!(imported.codes_at(5), [Code::NotCarriedOver], "{:#?}", imported.report.findings);
    assert!(imported.codes_at(10).contains(&Code::NotCarriedOver));
    for member in ["orders.status", "orders.region", "orders.rate"] {
        assert!(imported.can_name(member), "{member}");
    }
    assert!(!imported.has("orders.broken") && !imported.has("orders.unknown"));
}

#[test]
fn dependents_of_a_left_out_part_name_it() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - name: tenants
    sql: SELECT * FROM shop.tenants WHERE {SECURITY_CONTEXT.tenant.filter('tenant')}
    dimensions: [{name: id, sql: id, type: number, primary_key: true}, {name: name, sql: name, type: string}]
  - name: orders
    sql_table: shop.orders
    joins:
      - {name: tenants, relationship: many_to_one, sql: \"{CUBE}.tenant_id = {tenants}.id\"}
    dimensions:
      - {name: items, sub_query: true, sql: \"{lines.count}\", type: number}
      - {name: tenant, sql: \"{tenants.name}\", type: string}
      - {name: many, sql: \"{items} > 3\", type: boolean}
      - {name: very_many, sql: \"{many} AND true\", type: boolean}
    measures:
      - {name: count, type: count, drill_members: [items, nothing]}
  - {name: child, extends: tenants, sql_table: shop.child}
",
    )]);
    let text = |line: u32| imported.findings_at(line).iter().map(|f| f.message.clone()).collect::<Vec<_>>().join("\n");
    for (line, needed) in [
        (8, "cube `tenants`"),
        (11, "`tenants.name`"),
        (12, "`orders.items`"),
        (13, "`orders.many`"),
        (15, "`orders.items`"),
        (16, "cube `tenants`"),
    ] {
        assert!(text(line).contains(&format!("{needed}, which is not imported")), "{line}: {}", text(line));
        // Only the mistake of the author in line 15 is unknown.
        assert_eq!(text(line).matches("unknown").count(), usize::from(line == 15), "{line}: {}", text(line));
    }
    // A mistake of the author at the same place is still reported as such.
    assert_eq!(imported.codes_at(15), [Code::Changed, Code::NotCarriedOver], "{:#?}", imported.findings_at(15));
    assert!(imported.can_name("orders.count") && imported.model.cube_named("child").is_none());
}

#[test]
fn missing_join_is_the_reason_for_a_missing_path() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - {name: users, sql_table: shop.users, dimensions: [{name: city, sql: city, type: string}]}
  - name: orders
    sql_table: shop.orders
    joins:
      - {name: users, relationship: sometimes, sql: \"{CUBE}.user_id = {users}.id\"}
    dimensions:
      - {name: city, sql: \"{users.city}\", type: string}
      - {name: id, sql: id, type: number}
",
    )]);
    let findings = imported.findings_at(8);
    assert_eq!(findings.len(), 1);
    insta::assert_snapshot!(findings[0].message, @"dimension `city` of cube `orders` is not imported: it needs a join that is not imported");
}

#[test]
fn programs_that_may_restrict_access_are_reported() {
    let imported = of(&[
        ("orders.yml", "cubes:\n  - {name: orders, sql_table: shop.orders, measures: [{name: count, type: count}]}\n"),
        ("cube.js", "module.exports = {queryRewrite: (query) => query};"),
    ]);
    let file = |finding: &&Diagnostic| finding.span.as_ref().is_some_and(|span| &*span.file == "cube.js");
    let finding = imported.report.findings.iter().find(file).unwrap();
    assert_eq!(finding.code, Code::NotRead);
    assert!(finding.hint.as_deref().is_some_and(|hint| hint.contains("query_rewrite")), "{finding}");
}

#[test]
fn overrides_that_are_left_out_close_the_inherited_members() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - name: base
    sql_table: people
    public: false
    dimensions:
      - {name: id, sql: id, type: number, primary_key: true}
      - {name: ssn, sql: ssn, type: string}
      - {name: low, sql: \"LOWER({ssn})\", type: string}
      - {name: city, sql: city, type: string}
    measures:
      - {name: count, type: count}
      - {name: total, type: sum, sql: age}
  - name: people
    extends: base
    public: true
    dimensions:
      - {name: ssn, type: string, sql: \"{SECURITY_CONTEXT.role.unsafeValue()}\"}
      - {name: city, type: string, sql: \"upper({CUBE}.city\"}
    measures:
      - {name: total, type: sum, sql: age, rolling_window: {type: to_date, granularity: month}}
      - {name: average, type: number, sql: \"1.0 * {total} / {count}\"}
      - {name: percent, type: sum, sql: rate, format: percent}
views:
  - {name: directory, cubes: [{join_path: people, includes: [count, id]}]}
",
    )]);
    for member in ["people.ssn", "people.low", "people.total", "people.city", "directory.ssn", "directory.percent"] {
        assert!(!imported.can_name(member), "{member}");
    }
    assert!(imported.can_name("people.count") && imported.can_name("people.percent"));
    assert!(imported.can_name("directory.count") && imported.can_name("directory.id"));
    assert!(!imported.has("people.average"), "it would have the value of the extended cube");
    assert!(imported.codes_at(13).contains(&Code::Closed), "{:#?}", imported.report.findings);
    assert_eq!(imported.codes_at(22), [Code::NotCarriedOver], "`percent` is a fraction in the project");
    assert!(!imported.file("cubes/people.yml").contains("format: percent"));
}

#[test]
fn inherited_members_that_a_view_leaves_out_are_private_in_it() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - name: base
    sql_table: people
    dimensions:
      - {name: ssn, sql: ssn, type: string}
      - {name: city, sql: city, type: string}
  - {name: people, extends: base, public: false, measures: [{name: count, type: count}]}
views:
  - {name: directory, cubes: [{join_path: people, includes: [city, count]}]}
  - {name: others, cubes: [{join_path: people, includes: \"*\", excludes: [ssn]}]}
",
    )]);
    assert!(imported.can_name("directory.city") && imported.can_name("others.count"));
    assert!(!imported.can_name("directory.ssn") && !imported.can_name("others.ssn"));
    assert!(imported.codes_at(9).is_empty() && imported.codes_at(10).is_empty(), "{:#?}", imported.report.findings);
}

#[test]
fn inherited_joins_do_not_replace_joins_that_are_left_out() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - {name: users, sql_table: users, dimensions: [{name: id, sql: id, type: number, primary_key: true}]}
  - name: base
    sql_table: orders
    joins: [{name: users, relationship: many_to_one, sql: \"{CUBE}.buyer_id = {users.id}\"}]
    measures: [{name: count, type: count}]
  - {name: child, extends: base, joins: [{name: users, relationship: many_to_one, sql: \"{CUBE}.x = {{ y }}\"}]}
  - {name: other, extends: base, joins: [{name: users, relationship: many_to_one, sql: \"{CUBE}.seller_id = {users.id}\"}]}
",
    )]);
    assert!(imported.model.cube_named("child").is_none() && imported.can_name("other.count"));
    assert_eq!(imported.codes_at(7), [Code::NotCarriedOver, Code::NotCarriedOver]);
}

#[test]
fn numbers_over_measures_of_several_cubes_are_reported() {
    let imported = of(&[(
        "all.yml",
        "cubes:
  - name: orders
    sql_table: shop.orders
    joins: [{name: users, relationship: many_to_one, sql: \"{CUBE}.user_id = {users}.id\"}]
    measures:
      - {name: revenue, type: sum, sql: amount}
      - {name: count, type: count}
      - name: per_user
        type: number
        sql: \"1.0 * {revenue} / NULLIF({users.count}, 0)\"
      - name: average
        type: number
        sql: \"1.0 * {CUBE.revenue} / NULLIF({orders.count}, 0)\"
      - name: weighted
        type: number
        sql: \"SUM({CUBE}.amount * {users.weight}::float)\"
      - name: weight
        type: sum
        sql: \"{users.count}\"
      - name: of_vips
        type: number
        sql: \"{vips.count} + {vips.weight}\"
  - name: users
    sql_table: shop.users
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: weight, type: number, sql: weight}
    measures: [{name: count, type: count}]
  - {name: vips, extends: users, sql_table: shop.vips}
views:
  - {name: all_orders, cubes: [{join_path: orders, includes: '*'}]}
",
    )]);
    for measure in ["orders.per_user", "orders.average", "orders.weighted", "all_orders.per_user"] {
        assert!(imported.has(measure), "{measure}: {:#?}", imported.report.findings);
    }
    let found = imported.findings_at(10);
    assert_eq!((found.len(), found[0].code), (1, Code::Changed), "{found:#?}");
    assert!(found[0].message.contains("`per_user`") && found[0].message.contains("`orders`"), "{}", found[0].message);
    assert!(found[0].message.ends_with(": `users`"), "{}", found[0].message);
    assert!(found[0].hint.is_some());
    assert_eq!(imported.codes_at(13), [], "it reads measures of its own cube");
    assert_eq!(imported.codes_at(16), [], "it reads a dimension");
    assert_eq!(imported.codes_at(17), [Code::NotCarriedOver], "a sum cannot read a measure");
    assert!(!imported.has("orders.weight") && !imported.has("orders.of_vips"));
    assert_eq!(imported.codes_at(20), [Code::NotCarriedOver], "a number outside an aggregate is left out");
    assert_eq!(imported.codes_at(22), [Code::Changed], "the measure of another cube is named although it is inherited");
}
