//! Mistakes of a project that is served all the same: whatever becomes of a policy, what it was to protect is
//! protected or closed, never open.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::diagnostic::Span;
use terrane_compiler::lineage::{KnownColumns, Lineage, Sight};
use terrane_compiler::model::{Model, build};
use terrane_compiler::project::{Definitions, Inputs, SourceTree, read};
use terrane_compiler::{Access, SecurityContext};

const CUBES: &str = r#"
cubes:
  - name: orders
    sql_table: raw.orders
    joins: [{name: customers, relationship: many_to_one, sql: "{orders}.customer_id = {customers}.id"}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: email, type: string, sql: email}
    measures: [{name: count, type: count}]
  - name: orders_again
    sql_table: raw.orders
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
    measures: [{name: count, type: count}]
  - name: customers
    sql_table: raw.customers
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
    measures: [{name: count, type: count}]
"#;

const FILTER: &str = "{name: own, cubes: [orders], row_filter: \"{CUBE}.region = 'north'\"}";

/// `unread`: a file that never became part of the tree.
fn served(files: &[(&str, &str)], unread: Option<&str>) -> (Definitions, Model, bool) {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    tree.files.insert("cubes/shop.yml".into(), CUBES.into());
    tree.files.extend(files.iter().map(|(path, text)| ((*path).into(), (*text).into())));
    let unread_files = unread.map(|file| Span { file: file.into(), line: 1, column: 1, length: 1 });
    let unread_files = unread_files.into_iter().collect();
    let inputs = Inputs { warehouse: "duckdb".into(), unread_files, ..Inputs::default() };
    let (definitions, mut diagnostics) = read(&tree, &inputs);
    let (model, more) = build(&definitions);
    diagnostics.extend(more);
    (definitions, model, unread.is_some() || diagnostics.iter().any(terrane_compiler::diagnostic::Diagnostic::is_error))
}

/// Nobody gets rows of the cube that a policy does not let through.
fn is_protected(model: &Model, name: &str) -> bool {
    let caller = SecurityContext::default();
    let access = Access::of(model, &caller);
    let Some(cube) = model.cube_named(name) else { return true };
    access.is_closed(cube) || access.row_filters(cube.id).next().is_some()
}

#[test]
fn without_a_mistake_the_policy_holds_and_the_rest_is_open() {
    let policy = format!("policies: [{FILTER}]");
    let (_, model, is_told) = served(&[("policies/a.yml", policy.as_str())], None);
    assert!(!is_told);
    assert!(is_protected(&model, "orders") && is_protected(&model, "orders_again"));
    assert!(!is_protected(&model, "customers"));
}

/// Each leaves `orders`, and what else reads its table, protected, and is told as an error.
#[test]
fn no_mistake_opens_what_a_policy_protects() {
    let policies: &[(&str, String)] = &[
        ("a second policy of the name", format!("policies: [{{name: own, cubes: [customers], deny: [id]}}, {FILTER}]")),
        ("no YAML", format!("policies: [{FILTER}\n")),
        ("a second document", format!("policies: []\n---\npolicies: [{FILTER}]")),
        ("a misspelt list", format!("polices: [{FILTER}]")),
        ("a list of another name", format!("access_rules: [{FILTER}]")),
        ("a list without its key", format!("- {FILTER}")),
        ("a mapping in place of a list", format!("policies: {FILTER}")),
        ("the list twice", format!("policies: []\npolicies: [{FILTER}]")),
        ("a text in place of a policy", "policies: [own]".to_owned()),
        ("no name", "policies: [{cubes: [orders], row_filter: \"{CUBE}.region = 'north'\"}]".to_owned()),
        ("a misspelt key", "policies: [{name: own, cubes: [orders], row_fliters: \"{CUBE}.region = 'n'\"}]".to_owned()),
        ("an unknown key", "policies: [{name: own, cubes: [orders], deny: [email], only_rows: \"true\"}]".to_owned()),
        ("no cubes", "policies: [{name: own, row_filter: \"{CUBE}.region = 'north'\"}]".to_owned()),
        (
            "an empty list of cubes",
            "policies: [{name: own, cubes: [], row_filter: \"{CUBE}.region = 'n'\"}]".to_owned(),
        ),
        ("an unknown cube", "policies: [{name: own, cubes: [order], row_filter: \"{CUBE}.region = 'n'\"}]".to_owned()),
        ("cubes in one text", "policies: [{name: own, cubes: \"orders, customers\", deny: [id]}]".to_owned()),
        ("an empty filter", "policies: [{name: own, cubes: [orders], row_filter: \"\"}]".to_owned()),
        ("a filter without a value", "policies: [{name: own, cubes: [orders], row_filter: }]".to_owned()),
        (
            "a filter that is no SQL",
            "policies: [{name: own, cubes: [orders], row_filter: \"{CUBE}.region = = 1\"}]".to_owned(),
        ),
        (
            "a filter with an unknown word",
            "policies: [{name: own, cubes: [orders], row_filter: \"{CUBE}.region IN {{ user.regions }}\"}]".to_owned(),
        ),
        (
            "a filter over an unknown member",
            "policies: [{name: own, cubes: [orders], row_filter: \"{CUBE.regoin} = 'n'\"}]".to_owned(),
        ),
        (
            "a filter twice",
            "policies: [{name: own, cubes: [orders], row_filter: \"true\", row_filter: \"{CUBE}.region = 'n'\"}]"
                .to_owned(),
        ),
        ("a mask of an unknown kind", "policies: [{name: own, cubes: [orders], mask: {email: blur}}]".to_owned()),
        ("a mask of an unknown member", "policies: [{name: own, cubes: [orders], mask: {e_mail: hash}}]".to_owned()),
        ("an unknown member to deny", "policies: [{name: own, cubes: [orders], deny: [e_mail]}]".to_owned()),
        ("a condition that is a list", format!("policies: [{}, when: [guest]}}]", &FILTER[..FILTER.len() - 1])),
        ("a misspelt condition", format!("policies: [{}, when: {{rolse: [guest]}}}}]", &FILTER[..FILTER.len() - 1])),
        (
            "an attribute of no value",
            format!("policies: [{}, when: {{attributes: {{region: []}}}}}}]", &FILTER[..FILTER.len() - 1]),
        ),
        (
            "two policies of one broken text",
            "policies: [{name: first, cubes: [customers], row_filter: &f \"{CUBE.nothing} = 1\"}, \
             {name: own, cubes: [orders], row_filter: *f}]"
                .to_owned(),
        ),
    ];
    let mut open = Vec::new();
    for (about, text) in policies {
        let (_, model, is_told) = served(&[("policies/a.yml", text.as_str())], None);
        if !is_told || !is_protected(&model, "orders") || !is_protected(&model, "orders_again") {
            open.push(format!("{about} (told: {is_told})"));
        }
    }
    assert!(open.is_empty(), "{open:#?}");
}

/// Mistakes in cubes and in the project file.
#[test]
fn no_mistake_around_a_policy_opens_what_it_protects() {
    let policy = format!("policies: [{FILTER}]");
    let cube = |from: &str, to: &str| {
        assert!(CUBES.contains(from), "{from}");
        CUBES.replacen(from, to, 1)
    };
    let a_filter_of_a_dimension = "policies: [{name: own, cubes: [orders], row_filter: \"{CUBE.region} = 'north'\"}]";
    let a_mask = "policies: [{name: own, cubes: [orders], mask: {email: hash}}]";
    let cases: &[(&str, String, String)] = &[
        ("a cube that is left out", cube("sql_table: raw.orders", "sql_table: \"raw.orders; x\""), policy.clone()),
        ("a cube without a source", cube("    sql_table: raw.orders\n", ""), policy.clone()),
        ("a cube whose parent is missing", cube("sql_table: raw.orders", "extends: nothing"), policy.clone()),
        ("a cube of another name", cube("name: orders\n", "name: order\n"), policy.clone()),
        ("a cube of no name", cube("- name: orders\n", "- nam: orders\n"), policy.clone()),
        (
            "a cube of another name, and a broken member of this one",
            cube("name: orders\n", "name: order\n").replacen(
                "{name: count, type: count}",
                "{name: orders, type: summ}",
                1,
            ),
            policy.clone(),
        ),
        (
            "a filter over a dimension that is left out",
            cube("{name: region, type: string, sql: region}", "{name: region, type: string, sql: \"lower(\"}"),
            a_filter_of_a_dimension.to_owned(),
        ),
        (
            "a filter over a dimension of an unknown type",
            cube("{name: region, type: string, sql: region}", "{name: region, type: word, sql: region}"),
            a_filter_of_a_dimension.to_owned(),
        ),
        (
            "a mask of a dimension that is left out",
            cube("{name: email, type: string, sql: email}", "{name: email, type: string}"),
            a_mask.to_owned(),
        ),
        (
            "a filter in the cube",
            cube("sql_table: raw.orders\n", "sql_table: raw.orders\n    row_filter: \"{CUBE}.region = 'n'\"\n"),
            String::new(),
        ),
        (
            "policies in the cube",
            cube("sql_table: raw.orders\n", "sql_table: raw.orders\n    access_policy: [{role: guest}]\n"),
            String::new(),
        ),
        ("a mask in the dimension", cube("sql: email}", "sql: email, mask: hash}"), String::new()),
    ];
    let mut open = Vec::new();
    for (about, cubes, policies) in cases {
        let (_, model, is_told) =
            served(&[("cubes/shop.yml", cubes.as_str()), ("policies/a.yml", policies.as_str())], None);
        if !is_told || !is_protected(&model, "orders") || !is_protected(&model, "orders_again") {
            open.push(format!("{about} (told: {is_told})"));
        }
    }
    for (about, project) in [
        ("a project file that is no YAML", "name: shop\npaths: {policies: security\n"),
        ("a project file that is a list", "- name: shop\n"),
        ("a misspelt path", "name: shop\npaths: {polices: security}\n"),
        ("a path without a value", "name: shop\npaths: {policies: }\n"),
        ("a path outside", "name: shop\npaths: {policies: ../security}\n"),
        ("a folder that is not there", "name: shop\npaths: {policies: securty}\n"),
    ] {
        let (_, model, is_told) =
            served(&[("service_project.yml", project), ("security/a.yml", policy.as_str())], None);
        if !is_told || !is_protected(&model, "orders") || !is_protected(&model, "orders_again") {
            open.push(format!("{about} (told: {is_told})"));
        }
    }
    // A file that is not text, too large, or not ours to read never becomes part of the tree.
    let (_, model, _) = served(&[], Some("policies/a.yml"));
    if !is_protected(&model, "orders") {
        open.push("a file that could not be read".to_owned());
    }
    let (_, model, _) = served(&[("policies/A.YML", policy.as_str())], None);
    if !is_protected(&model, "orders") {
        open.push("an ending in capitals".to_owned());
    }
    assert!(open.is_empty(), "{open:#?}");
}

/// What is closed to everyone is not shown by the lineage either, and neither is a column that only the
/// warehouse told of.
#[test]
fn lineage_shows_nothing_of_what_is_closed_and_no_name_that_no_text_has() {
    let (definitions, model, _) = served(&[("policies/a.yml", "policies: [{name: own")], None);
    let lineage = Lineage::build(&definitions, &model, &KnownColumns::declared(&definitions));
    let caller = SecurityContext::default();
    let sight = Sight::of(&lineage, &Access::of(&model, &caller));
    assert!((0..lineage.nodes.len() as u32).all(|at| !sight.sees(at)));

    let cubes = CUBES.replacen("sql_table: raw.orders", "sql: \"SELECT o, * FROM raw.orders AS o\"", 1);
    let cubes = cubes.replacen("{name: email, type: string, sql: email}", "{name: whole, type: string, sql: o}", 1);
    let policy = "policies: [{name: own, cubes: [orders], deny: [region]}]";
    let (definitions, model, is_told) = served(&[("cubes/shop.yml", cubes.as_str()), ("policies/a.yml", policy)], None);
    assert!(!is_told);
    let mut known = KnownColumns::declared(&definitions);
    known.inspected("raw.orders", ["id", "customer_id", "region", "salary"].map(std::sync::Arc::<str>::from).to_vec());
    let lineage = Lineage::build(&definitions, &model, &known);
    let salary = lineage.find("table.raw.orders.column.salary").unwrap();
    assert!(Sight::of_everything().sees(salary), "an operator sees it");
    let sight = Sight::of(&lineage, &Access::of(&model, &caller));
    let seen = (0u32..).zip(&lineage.nodes).filter(|(at, _)| sight.sees(*at)).map(|(_, node)| &*node.id);
    let seen: Vec<&str> = seen.collect();
    assert!(seen.contains(&"dimension.orders.whole") && seen.contains(&"table.raw.orders.column.id"), "{seen:?}");
    assert!(!seen.iter().any(|id| id.contains("salary") || id.contains("region")), "{seen:?}");
}

#[test]
fn a_file_that_cannot_be_read_closes_every_cube_and_is_named() {
    let (definitions, model, is_told) = served(&[("metrics/t.yml", "metrics:\n\t- name: x\n")], None);
    assert!(is_told);
    let caller = SecurityContext::default();
    let access = Access::of(&model, &caller);
    assert!(model.cubes.iter().all(|cube| access.is_closed(cube)));
    let files: Vec<&str> = definitions.unread_files.iter().map(|span| &*span.file).collect();
    assert_eq!(files, ["metrics/t.yml"]);
    let (definitions, model, _) = served(&[], Some("policies/a.yml"));
    let access = Access::of(&model, &caller);
    assert!(model.cubes.iter().all(|cube| access.is_closed(cube)));
    assert_eq!(&*definitions.unread_files[0].file, "policies/a.yml");
}

#[test]
fn an_empty_file_closes_nothing() {
    let (definitions, model, is_told) = served(&[("metrics/t.yml", "\n")], None);
    assert!(!is_told && definitions.unread_files.is_empty());
    assert!(!is_protected(&model, "orders"));
}

const JOINED: &str = r#"
cubes:
  - name: paid
    sql: "SELECT o.*, c.email FROM raw.orders AS o JOIN raw.customers AS c ON o.customer_id = c.id"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: email, type: string, sql: email}
    measures: [{name: count, type: count}]
  - name: heir
    extends: paid
  - name: twin
    sql: "SELECT o.*, c.email FROM raw.orders AS o JOIN raw.customers AS c ON o.customer_id = c.id"
    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: mail, type: string, sql: email}]
    measures: [{name: count, type: count}]
  - name: other
    extends: paid
    sql: "SELECT * FROM raw.others"
  - name: by_two
    sql_table: "{{ ref('two') }}"
    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: email, type: string, sql: email}]
    measures: [{name: count, type: count}]
  - name: by_two_again
    extends: by_two
  - name: sales
    sql_table: raw.sales
    joins: [{name: sold, cube: heir, relationship: many_to_one, sql: "{sales}.paid_id = {sold}.id"}]
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
    measures: [{name: count, type: count}]
"#;

/// No table stands for rows of several, so what is written does.
#[test]
fn a_policy_on_a_query_of_several_tables_reaches_whoever_reads_the_same() {
    let two = "{{ config(materialized='ephemeral') }} SELECT o.*, c.email FROM raw.orders AS o JOIN raw.customers AS c \
               ON o.customer_id = c.id";
    let of = |policy: &str| {
        let policy = format!("policies: [{policy}]");
        let files = [("cubes/joined.yml", JOINED), ("models/two.sql", two), ("policies/a.yml", policy.as_str())];
        let (_, model, is_told) = served(&files, None);
        assert!(!is_told);
        model
    };
    let model = of("{name: own, cubes: [paid], row_filter: \"{CUBE}.region = 'north'\"}");
    for (cube, is_reached) in
        [("paid", true), ("heir", true), ("twin", true), ("other", false), ("by_two", false), ("orders", false)]
    {
        assert_eq!(is_protected(&model, cube), is_reached, "{cube}");
    }
    let model = of("{name: own, cubes: [by_two], row_filter: \"{CUBE}.id = 1\"}");
    for (cube, is_reached) in [("by_two", true), ("by_two_again", true), ("paid", false), ("customers", false)] {
        assert_eq!(is_protected(&model, cube), is_reached, "{cube}");
    }
    let model = of("{name: own, cubes: [paid, heir], row_filter: \"{CUBE}.region = 'north'\"}");
    let (caller, sold) = (SecurityContext::default(), model.cube_named("sold").unwrap());
    let access = Access::of(&model, &caller);
    assert!(access.row_filters(sold.id).next().is_some() && !access.is_closed(sold), "a name of a cube that is named");
    for policy in ["mask: {email: hash}", "deny: [count]"] {
        let model = of(&format!("{{name: own, cubes: [paid], {policy}}}"));
        let caller = SecurityContext::default();
        let access = Access::of(&model, &caller);
        for (cube, is_closed) in [("paid", false), ("heir", true), ("twin", true), ("other", false)] {
            assert_eq!(access.is_closed(model.cube_named(cube).unwrap()), is_closed, "{cube}, {policy}");
        }
    }
}

/// DuckDB reads these otherwise than other engines, and than they look.
#[test]
fn a_masked_column_is_found_however_a_member_writes_it() {
    let served_with = |sql: &str| {
        let cube = format!(
            "cubes:\n  - name: mails\n    sql_table: raw.mails\n    dimensions:\n      \
             - {{name: id, type: number, sql: id, primary_key: true}}\n      - {{name: email, type: string, sql: email}}\n      \
             - name: other\n        type: string\n        sql: >-\n          {sql}\n    \
             measures:\n      - name: odd\n        type: max\n        sql: >-\n          {sql}\n"
        );
        let policy = "policies: [{name: own, cubes: [mails], mask: {email: \"null\"}}]";
        let (_, model, is_told) = served(&[("cubes/mails.yml", cube.as_str()), ("policies/a.yml", policy)], None);
        (model, is_told)
    };
    let caller = SecurityContext::default();
    for sql in [
        "upper(email)",
        "\"email\".upper().lower()",
        "if(email = 'a@x', 'y', 'n')",
        "if(\"email\" = 'a@x' AND id = 1 OR id = 2, 'y', 'n')",
        "coalesce(EMAIL = 'a@x', false)",
        "nullif({CUBE}.email = 'a@x', id = 1)",
        "email -> '$.k'",
        "upper(email -> '$.k' || 'x')",
        "coalesce(email ->> '$.k', 'x')",
        "list_filter(email -> '$.k', x -> x > 1)[1]",
        "list_transform([email], email -> email)[1]",
        "list_transform([id], x -> email)[1]",
        "list_transform([id], lambda x: email)[1]",
    ] {
        let (model, is_told) = served_with(sql);
        assert!(!is_told, "{sql}");
        let access = Access::of(&model, &caller);
        let cube = model.cube_named("mails").unwrap();
        let other = cube.dimensions.iter().find(|dimension| &*dimension.name == "other").unwrap();
        assert!(access.check(&other.sql, false).is_err(), "{sql}");
        assert!(!access.sees(cube.member("odd").unwrap()) || !access.offers(cube.member("odd").unwrap()), "{sql}");
    }
    for sql in [
        "email.upper()",
        "mails.email.upper()",
        "{CUBE}.email.upper()",
        "{email}.upper()",
        "COLUMNS('em.*')",
        "COLUMNS(*)",
        "upper(COLUMNS(c -> c = 'email'))",
    ] {
        assert!(served_with(sql).1, "{sql}");
    }
    for sql in ["main.upper('x')", "list_transform([id], x -> x + 1)[1]", "id -> '$.k'"] {
        let (model, is_told) = served_with(sql);
        let cube = model.cube_named("mails").unwrap();
        let other = cube.dimensions.iter().find(|dimension| &*dimension.name == "other").unwrap();
        assert!(!is_told && Access::of(&model, &caller).check(&other.sql, false).is_ok(), "{sql}");
    }
}
