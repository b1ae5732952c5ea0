//! Tests projects that are served in spite of mistakes: if a policy has a mistake, the data that it was meant to
//! protect stays protected or is closed.
//!
//! The cases are in one file: they change one project, and a reviewer reads them as the list of all such mistakes.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::model::{DimensionId, Member, Model, SqlPart, build};
use terrane_compiler::project::{Definitions, Inputs, RegisteredCube, SourceTree, read};
use terrane_compiler::{Access, ColumnUse, SecurityContext};
use terrane_lineage::{KnownColumns, Lineage, Sight};

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

/// Loads a project and returns whether an error was reported. `unread` is a file that could not be read.
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

/// Returns whether a caller without attributes gets no rows of the cube, or only rows that a policy allows.
fn is_protected(model: &Model, name: &str) -> bool {
    let caller = SecurityContext::default();
    let access = Access::of(model, &caller);
    let Some(cube) = model.cube_named(name) else { return true };
    access.is_closed(cube) || access.row_filters(cube.id).next().is_some()
}

#[test]
fn valid_policy_applies_and_other_cubes_are_open() {
    let policy = format!("policies: [{FILTER}]");
    let (_, model, is_reported) = served(&[("policies/a.yml", policy.as_str())], None);
    assert!(!is_reported);
    assert!(is_protected(&model, "orders") && is_protected(&model, "orders_again"));
    assert!(!is_protected(&model, "customers"));
}

/// Columns of a query cannot be matched with the columns of its table. A mask on `orders`, which is a query here,
/// therefore closes `orders_again`, which reads the table.
#[test]
fn masks_of_a_query_close_cubes_over_its_table() {
    let cubes = CUBES.replacen("sql_table: raw.orders", "sql: \"SELECT * FROM raw.orders\"", 1);
    for rule in ["mask: {email: hash}", "deny: [email]"] {
        let policy = format!("policies: [{{name: own, cubes: [orders], {rule}}}]");
        let files = [("cubes/shop.yml", cubes.as_str()), ("policies/a.yml", policy.as_str())];
        let (_, model, has_errors) = served(&files, None);
        let caller = SecurityContext::default();
        let is_closed = |name| Access::of(&model, &caller).is_closed(model.cube_named(name).unwrap());
        assert!(!has_errors && is_closed("orders_again") && !is_closed("orders") && !is_closed("customers"), "{rule}");
    }
}

/// Engines may take a quoted name with a slash for a file, so the table has several canonical names. The filter on the
/// query `orders` must still reach `orders_again`, which reads the table through a model.
#[test]
fn row_filters_of_a_query_reach_models_over_a_table_with_several_names() {
    for table in ["\"raw\".\"/x\"", "\"raw\".\"a\\x\"", "\"raw\".\"/*x*/\"", "\"raw\".\"[x]\""] {
        let cubes = CUBES.replacen("sql_table: raw.orders", &format!("sql: 'SELECT * FROM {table}'"), 1);
        let cubes = cubes.replacen("sql_table: raw.orders", "sql: \"SELECT * FROM {{ ref('copied') }}\"", 1);
        let policy = format!("policies: [{FILTER}]");
        let copied = format!("SELECT * FROM {table}");
        let files = [
            ("cubes/shop.yml", cubes.as_str()),
            ("models/copied.sql", copied.as_str()),
            ("policies/a.yml", policy.as_str()),
        ];
        let (_, model, has_errors) = served(&files, None);
        assert!(!has_errors, "{table}");
        assert!(is_protected(&model, "orders") && is_protected(&model, "orders_again"), "{table}");
        assert!(!is_protected(&model, "customers"), "{table}");
    }
}

/// A policy file with warnings is read in full.
#[test]
fn warnings_of_a_policy_close_no_other_cube() {
    let policy = FILTER.replace("row_filter", "when: {attributes: {tier: [1]}}, row_filter");
    let policy = format!("policies: [{policy}, {{name: rows, cubes: [orders], row_filter: \"{{CUBE}}.id > 0\"}}]");
    let (_, model, has_errors) = served(&[("policies/a.yml", policy.as_str())], None);
    assert!(!has_errors);
    assert!(is_protected(&model, "orders") && !is_protected(&model, "customers"));
    let caller = SecurityContext::default();
    assert!(!Access::of(&model, &caller).is_closed(model.cube_named("orders").unwrap()));
}

/// Each mistake leaves `orders`, and every cube over the same table, protected, and is reported as an error.
#[test]
fn mistakes_in_policies_never_open_protected_cubes() {
    let policies: &[(&str, String)] = &[
        ("a second policy of the name", format!("policies: [{{name: own, cubes: [customers], deny: [id]}}, {FILTER}]")),
        ("no YAML", format!("policies: [{FILTER}\n")),
        ("a second document", format!("policies: []\n---\npolicies: [{FILTER}]")),
        ("a misspelt list", format!("polices: [{FILTER}]")),
        ("a list of another name", format!("access_rules: [{FILTER}]")),
        ("a list without its key", format!("- {FILTER}")),
        ("a mapping in place of a list", format!("policies: {FILTER}")),
        ("the list twice", format!("policies: []\npolicies: [{FILTER}]")),
        ("a string instead of a policy", "policies: [own]".to_owned()),
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
            "a filter that is not SQL",
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
        let (_, model, is_reported) = served(&[("policies/a.yml", text.as_str())], None);
        if !is_reported || !is_protected(&model, "orders") || !is_protected(&model, "orders_again") {
            open.push(format!("{about} (reported: {is_reported})"));
        }
    }
    assert!(open.is_empty(), "{open:#?}");
}

/// Mistakes in cubes and in the project file leave `orders` protected as well.
#[test]
fn mistakes_around_policies_never_open_protected_cubes() {
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
        let (_, model, is_reported) =
            served(&[("cubes/shop.yml", cubes.as_str()), ("policies/a.yml", policies.as_str())], None);
        if !is_reported || !is_protected(&model, "orders") || !is_protected(&model, "orders_again") {
            open.push(format!("{about} (reported: {is_reported})"));
        }
    }
    for (about, project) in [
        ("a project file that is not YAML", "name: shop\npaths: {policies: security\n"),
        ("a project file that is a list", "- name: shop\n"),
        ("a misspelt path", "name: shop\npaths: {polices: security}\n"),
        ("a path without a value", "name: shop\npaths: {policies: }\n"),
        ("a path outside", "name: shop\npaths: {policies: ../security}\n"),
        ("a folder that is not there", "name: shop\npaths: {policies: securty}\n"),
    ] {
        let (_, model, is_reported) =
            served(&[("service_project.yml", project), ("security/a.yml", policy.as_str())], None);
        if !is_reported || !is_protected(&model, "orders") || !is_protected(&model, "orders_again") {
            open.push(format!("{about} (reported: {is_reported})"));
        }
    }
    // A file that is not text, is too large, or may not be read never becomes part of the tree.
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

/// Lineage does not show cubes and columns that are closed to everyone, nor columns that only the warehouse reported.
#[test]
fn lineage_hides_closed_and_undeclared_names() {
    let (definitions, model, _) = served(&[("policies/a.yml", "policies: [{name: own")], None);
    let lineage = Lineage::build(&definitions, &model, &KnownColumns::declared(&definitions));
    let caller = SecurityContext::default();
    let sight = Sight::of(&lineage, &Access::of(&model, &caller));
    assert!((0..lineage.nodes.len() as u32).all(|at| !sight.sees(at)));

    let cubes = CUBES.replacen("sql_table: raw.orders", "sql: \"SELECT o, * FROM raw.orders AS o\"", 1);
    let cubes = cubes.replacen("{name: email, type: string, sql: email}", "{name: whole, type: string, sql: o}", 1);
    let policy = "policies: [{name: own, cubes: [orders], deny: [region]}]";
    let (definitions, model, is_reported) =
        served(&[("cubes/shop.yml", cubes.as_str()), ("policies/a.yml", policy)], None);
    assert!(!is_reported);
    let mut known = KnownColumns::declared(&definitions);
    known.inspected("raw.orders", ["id", "customer_id", "region", "salary"].map(std::sync::Arc::<str>::from).to_vec());
    let lineage = Lineage::build(&definitions, &model, &known);
    let salary = lineage.find("table.raw.orders.column.salary").unwrap();
    assert!(Sight::of_everything().sees(salary), "an operator sees it");
    let sight = Sight::of(&lineage, &Access::of(&model, &caller));
    let seen = (0u32..).zip(&lineage.nodes).filter(|(at, _)| sight.sees(*at)).map(|(_, node)| &*node.id);
    let seen: Vec<&str> = seen.collect();
    assert!(seen.contains(&"dimension.orders.whole"), "{seen:?}");
    assert!(seen.contains(&"table.raw.orders.column.customer_id"), "{seen:?}");
    assert!(!seen.iter().any(|id| id.contains("salary") || id.contains("region")), "{seen:?}");
}

#[test]
fn file_that_cannot_be_read_closes_every_cube_and_is_named() {
    let (definitions, model, is_reported) = served(&[("metrics/t.yml", "metrics:\n\t- name: x\n")], None);
    assert!(is_reported);
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
fn empty_file_closes_nothing() {
    let (definitions, model, is_reported) = served(&[("metrics/t.yml", "\n")], None);
    assert!(!is_reported && definitions.unread_files.is_empty());
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
  - name: derived
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
    joins: [{name: sold, cube: derived, relationship: many_to_one, sql: "{sales}.paid_id = {sold}.id"}]
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
    measures: [{name: count, type: count}]
"#;

/// Tests a cube over a join. No single table has its rows, so the text of its SQL identifies them.
#[test]
fn policy_on_a_query_of_several_tables_applies_to_all_readers_of_the_same() {
    let two = "{{ config(materialized='ephemeral') }} SELECT o.*, c.email FROM raw.orders AS o JOIN raw.customers AS c \
               ON o.customer_id = c.id";
    let of = |policy: &str| {
        let policy = format!("policies: [{policy}]");
        let files = [("cubes/joined.yml", JOINED), ("models/two.sql", two), ("policies/a.yml", policy.as_str())];
        let (_, model, is_reported) = served(&files, None);
        assert!(!is_reported);
        model
    };
    let model = of("{name: own, cubes: [paid], row_filter: \"{CUBE}.region = 'north'\"}");
    for (cube, is_reached) in
        [("paid", true), ("derived", true), ("twin", true), ("other", false), ("by_two", false), ("orders", false)]
    {
        assert_eq!(is_protected(&model, cube), is_reached, "{cube}");
    }
    let model = of("{name: own, cubes: [by_two], row_filter: \"{CUBE}.id = 1\"}");
    for (cube, is_reached) in [("by_two", true), ("by_two_again", true), ("paid", false), ("customers", false)] {
        assert_eq!(is_protected(&model, cube), is_reached, "{cube}");
    }
    let model = of("{name: own, cubes: [paid, derived], row_filter: \"{CUBE}.region = 'north'\"}");
    let (caller, sold) = (SecurityContext::default(), model.cube_named("sold").unwrap());
    let access = Access::of(&model, &caller);
    assert!(access.row_filters(sold.id).next().is_some() && !access.is_closed(sold), "a name of a cube that is named");
    for policy in ["mask: {email: hash}", "deny: [count]"] {
        let model = of(&format!("{{name: own, cubes: [paid], {policy}}}"));
        let caller = SecurityContext::default();
        let access = Access::of(&model, &caller);
        for (cube, is_closed) in [("paid", false), ("derived", true), ("twin", true), ("other", false)] {
            assert_eq!(access.is_closed(model.cube_named(cube).unwrap()), is_closed, "{cube}, {policy}");
        }
    }
}

/// DuckDB reads these expressions differently from other engines, and differently from what their text suggests.
#[test]
fn masked_column_is_recognized_in_every_expression() {
    let served_with = |sql: &str| {
        let cube = format!(
            "cubes:\n  - name: mails\n    sql_table: raw.mails\n    dimensions:\n      \
             - {{name: id, type: number, sql: id, primary_key: true}}\n      - {{name: email, type: string, sql: email}}\n      \
             - name: other\n        type: string\n        sql: >-\n          {sql}\n    \
             measures:\n      - name: odd\n        type: max\n        sql: >-\n          {sql}\n"
        );
        let policy = "policies: [{name: own, cubes: [mails], mask: {email: \"null\"}}]";
        let (_, model, is_reported) = served(&[("cubes/mails.yml", cube.as_str()), ("policies/a.yml", policy)], None);
        (model, is_reported)
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
        let (model, is_reported) = served_with(sql);
        assert!(!is_reported, "{sql}");
        let access = Access::of(&model, &caller);
        let cube = model.cube_named("mails").unwrap();
        let other = cube.dimensions.iter().find(|dimension| &*dimension.name == "other").unwrap();
        assert!(access.check(&other.sql, ColumnUse::Row).is_err(), "{sql}");
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
        let (model, is_reported) = served_with(sql);
        let cube = model.cube_named("mails").unwrap();
        let other = cube.dimensions.iter().find(|dimension| &*dimension.name == "other").unwrap();
        assert!(!is_reported && Access::of(&model, &caller).check(&other.sql, ColumnUse::Row).is_ok(), "{sql}");
    }
}

fn registered(name: &str, table: &str, dimensions: &str) -> RegisteredCube {
    let entry = format!(
        "{{\"name\": \"{name}\", \"sql_table\": \"{table}\", \"dimensions\": [{dimensions}], \
         \"measures\": [{{\"name\": \"count\", \"type\": \"count\"}}]}}"
    );
    RegisteredCube::new(name, &entry)
}

/// Builds a project of only these files, and fails if it has errors.
fn sound(files: &[(&str, &str)], registered: Vec<RegisteredCube>, init: &[&str]) -> (Model, Vec<Diagnostic>) {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    tree.files.extend(files.iter().map(|(path, text)| ((*path).into(), (*text).into())));
    let init = init.iter().map(|statement| (*statement).into()).collect();
    let inputs = Inputs { warehouse: "duckdb".into(), registered, init, ..Inputs::default() };
    let (definitions, mut diagnostics) = read(&tree, &inputs);
    let (model, more) = build(&definitions);
    diagnostics.extend(more);
    let errors: Vec<_> = diagnostics.iter().filter(|found| found.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}\n{files:?}");
    (model, diagnostics)
}

fn is_closed(model: &Model, name: &str) -> bool {
    let caller = SecurityContext::default();
    Access::of(model, &caller).is_closed(model.cube_named(name).unwrap())
}

fn cube_over(name: &str, relation: &str) -> String {
    format!(
        "  - name: {name}\n    {relation}\n    dimensions:\n      \
         - {{name: id, type: number, sql: id, primary_key: true}}\n    measures: [{{name: count, type: count}}]\n"
    )
}

/// Tests that a policy on `own` closes or filters a cube that names the same file with a different spelling.
#[test]
fn policy_on_a_file_applies_to_every_spelling_of_it() {
    let spellings: &[(&str, bool)] = &[
        ("sql_table: '\"./data/customers.csv\"'", true),
        ("sql_table: '\"data//CUSTOMERS.csv\"'", true),
        ("sql_table: '\"/srv/p/data/customers.csv\"'", true),
        ("sql_table: '\"data/*.csv\"'", true),
        ("sql: \"SELECT * FROM 'data/customers.csv'\"", true),
        ("sql: \"SELECT * FROM read_csv('data/customers.csv')\"", true),
        (
            "sql: \"SELECT * FROM read_csv_auto(['data/orders.csv', 'data/../data/customers.csv'], header = true)\"",
            true,
        ),
        ("sql: \"SELECT * FROM read_csv('file:data/customers.csv', header = true)\"", true),
        ("sql: \"SELECT * FROM read_text('data/c*.csv')\"", true),
        ("sql: \"SELECT * FROM read_csv('**/*.csv')\"", true),
        ("sql: \"SELECT * FROM read_csv('data/' || 'customers.csv')\"", true),
        ("sql: \"SELECT * FROM read_csv(getenv('F'))\"", true),
        ("sql: \"SELECT * FROM some_macro(1)\"", true),
        ("sql: \"SELECT 1 AS id WHERE EXISTS (SELECT 1 FROM read_blob('data/customers.csv'))\"", true),
        ("sql: \"SELECT * FROM query('FROM read_csv(''data/customers.csv'')')\"", true),
        ("sql: \"SELECT * FROM the_view\"", true),
        ("sql_table: raw.the_view", true),
        ("sql: \"SELECT * FROM read_csv('data/orders.csv')\"", false),
        ("sql: \"SELECT * FROM read_parquet('data/*.parquet')\"", false),
        ("sql: \"SELECT range AS id FROM range(10)\"", false),
        ("sql_table: raw.customers", false),
    ];
    let view = "CREATE OR REPLACE VIEW raw.the_view AS SELECT * FROM read_csv('data/customers.csv')";
    let owners = [
        "sql_table: '\"data/customers.csv\"'",
        "sql: \"SELECT * FROM read_csv('data/customers.csv')\"",
        "sql_table: raw.the_view",
    ];
    let policies = ["row_filter: \"{CUBE}.id = 1\"", "mask: {id: hash}", "deny: [id]"];
    let mut wrong = Vec::new();
    for owner in owners {
        for (spelling, is_reached) in spellings {
            for policy in policies {
                let cubes = format!("cubes:\n{}{}", cube_over("own", owner), cube_over("reader", spelling));
                let policy = format!("policies: [{{name: p, cubes: [own], {policy}}}]");
                let files = [("cubes/c.yml", cubes.as_str()), ("policies/p.yml", policy.as_str())];
                let (model, _) = sound(&files, Vec::new(), &[view]);
                let caller = SecurityContext::default();
                let access = Access::of(&model, &caller);
                let reader = model.cube_named("reader").unwrap();
                let is_covered = access.check(&reader.dimensions[0].sql, ColumnUse::Row).is_err();
                let is_reader_protected = is_protected(&model, "reader") || is_covered;
                if is_reader_protected != *is_reached {
                    wrong.push(format!("{owner} {spelling} {policy}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const EMPLOYEES: &str = r#"
cubes:
  - name: emp
    sql_table: raw.emp
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: tenant, type: string, sql: tenant_id}
      - {name: email, type: string, sql: email}
    measures: [{name: count, type: count}]
  - name: twin
    sql_table: emp
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: mail, type: string, sql: email}
    measures: [{name: count, type: count}]
  - name: derived
    sql: "SELECT id, email AS mail FROM raw.emp"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: mail, type: string, sql: mail}
    measures: [{name: count, type: count}]
  - name: by_model
    sql_table: "{{ ref('clean') }}"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: tenant, type: string, sql: tenant_id}
      - {name: mail, type: string, sql: mail}
    measures: [{name: count, type: count}]
  - name: depts
    sql_table: raw.depts
    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: tenant, type: string, sql: tenant_id}]
    measures: [{name: count, type: count}]
"#;
const CLEAN: &str = "{{ config(materialized='table') }} SELECT id, tenant_id, email AS mail FROM raw.emp";

fn employees(policy: &str, registered: Vec<RegisteredCube>) -> (Model, Vec<Diagnostic>) {
    let policy = format!("policies: [{policy}]");
    let files = [("cubes/emp.yml", EMPLOYEES), ("models/clean.sql", CLEAN), ("policies/p.yml", policy.as_str())];
    sound(&files, registered, &[])
}

#[test]
fn mask_for_all_cubes_closes_cubes_that_show_the_column_under_another_name() {
    for what in ["mask: {email: \"null\"}", "deny: [email]"] {
        for cubes in ["\"*\"", "[emp]"] {
            let (model, found) = employees(&format!("{{name: p, cubes: {cubes}, {what}}}"), Vec::new());
            let caller = SecurityContext::default();
            for (cube, closed) in
                [("emp", false), ("twin", false), ("derived", true), ("by_model", true), ("depts", false)]
            {
                assert_eq!(is_closed(&model, cube), closed, "{cube}, {what}, {cubes}");
            }
            let twin = model.cube_named("twin").unwrap();
            assert!(Access::of(&model, &caller).check(&twin.dimensions[1].sql, ColumnUse::Row).is_err());
            let warned: Vec<&str> =
                found.iter().filter(|found| found.code == Code::ClosedCube).map(|found| &*found.message).collect();
            assert_eq!(warned.len(), 2, "{warned:?}");
        }
    }
}

/// A caller may not register a cube that reads what a denied measure adds up, unless a dimension shows the column.
#[test]
fn registered_cubes_do_not_read_the_columns_of_denied_measures() {
    let staff = "cubes: [{name: staff, sql_table: hr.staff, \
                 dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: grade, type: string, sql: grade}], \
                 measures: [{name: count, type: count}, {name: pay, type: sum, sql: salary, filters: [{sql: \"grade > 'a'\"}]}, \
                 {name: highest, type: max, sql: salary}, {name: mean, type: number, sql: \"{pay} / {count}\"}]}]";
    let columns = ["salary", "lower(salary)", "grade"];
    let dimensions = columns.iter().enumerate();
    let dimensions: Vec<String> = dimensions
        .map(|(index, sql)| format!("{{\"name\": \"d{index}\", \"type\": \"string\", \"sql\": \"{sql}\"}}"))
        .collect();
    let mine = registered("mine", "hr.staff", &dimensions.join(", "));
    for (policy, closed) in [
        ("{name: p, cubes: [staff], deny: [pay]}", [true, true, false]),
        ("{name: p, cubes: [staff], deny: [mean, highest]}", [true, true, false]),
        ("{name: p, cubes: [staff], deny: [pay, grade]}", [true, true, true]),
        ("{name: p, cubes: [staff], deny: [mean]}", [false, false, false]),
        ("{name: p, cubes: [staff], deny: [count]}", [false, false, false]),
        ("{name: p, cubes: [staff], when: {roles: [hr]}, deny: [pay]}", [false, false, false]),
    ] {
        let policies = format!("policies: [{policy}]");
        let files = [("cubes/staff.yml", staff), ("policies/p.yml", policies.as_str())];
        let (model, _) = sound(&files, vec![mine.clone()], &[]);
        let caller = SecurityContext::default();
        let access = Access::of(&model, &caller);
        let cube = model.cube_named("mine").unwrap();
        let found = [0, 1, 2].map(|index| access.check(&cube.dimensions[index].sql, ColumnUse::Aggregate).is_err());
        assert_eq!(found, closed, "{policy}");
        // The members of the project's files stay open, unless denied: their author has decided what they show.
        let own = model.cube_named("staff").unwrap();
        let is_offered = access.offers(own.member("highest").unwrap());
        assert_eq!(is_offered, !policy.contains("highest"), "{policy}");
    }
}

#[test]
fn filter_for_all_cubes_filters_each_cube_by_its_own_rows() {
    let policy = "{name: p, cubes: \"*\", row_filter: \"{CUBE}.tenant_id = {{ user.attributes.tenant }}\"}";
    let (model, found) = employees(policy, Vec::new());
    let caller = SecurityContext::default();
    let access = Access::of(&model, &caller);
    for cube in &model.cubes {
        assert!(!access.is_closed(cube) && access.row_filters(cube.id).count() == 1, "{}", cube.name);
    }
    assert!(found.iter().all(|found| found.code != Code::ClosedCube));
}

/// Tests registered cubes over a protected table. Their author gives members the names that the policy's SQL uses.
#[test]
fn registered_members_do_not_replace_policy_columns() {
    let shadows = "{\"name\": \"tenant\", \"type\": \"string\", \"sql\": \"'mine'\"}, \
                   {\"name\": \"tenant_id\", \"type\": \"string\", \"sql\": \"'mine'\"}, \
                   {\"name\": \"id\", \"type\": \"number\", \"sql\": \"id\"}";
    for cubes in ["\"*\"", "[emp, depts, by_model]"] {
        for filter in ["{tenant} = {{ user.attributes.tenant }}", "{CUBE}.tenant_id = {{ user.attributes.tenant }}"] {
            if cubes == "\"*\"" && filter.starts_with("{tenant}") {
                // `twin` and `derived` have no such member.
                continue;
            }
            let policy = format!("{{name: p, cubes: {cubes}, row_filter: \"{filter}\"}}");
            let (model, _) = employees(
                &policy,
                vec![
                    registered("mine", "raw.emp", shadows),
                    registered("short", "emp", shadows),
                    registered("built", "analytics.clean", shadows),
                ],
            );
            let caller = SecurityContext::default();
            let access = Access::of(&model, &caller);
            for name in ["mine", "short"] {
                let cube = model.cube_named(name).unwrap();
                assert!(access.row_filters(cube.id).next().is_some(), "{name} {cubes} {filter}");
                for sql in access.row_filters(cube.id) {
                    let has_column = sql.parts.iter().any(
                        |part| matches!(part, SqlPart::Column { name, cube: of } if &*name.text == "tenant_id" && *of == cube.id),
                    );
                    let has_member = sql.parts.iter().any(|part| matches!(part, SqlPart::Dimension(_)));
                    assert!(has_column && !has_member, "{name} {cubes} {filter} {sql:?}");
                }
            }
            assert!(is_closed(&model, "built"), "{cubes} {filter}");
        }
    }
}

#[test]
fn policy_reads_a_registered_member_only_as_the_equally_named_column() {
    let cubes = "cubes:\n  - name: depts\n    sql_table: raw.depts\n    dimensions: [{name: id, type: number, sql: id, \
                 primary_key: true}, {name: tenant, type: string, sql: tenant_id}]\n    measures: [{name: count, type: count}]\n";
    let policy = "policies: [{name: p, cubes: \"*\", row_filter: \"{tenant} = {{ user.attributes.tenant }}\"}]";
    let tenant = |sql: &str| format!("{{\"name\": \"tenant\", \"type\": \"string\", \"sql\": \"{sql}\"}}");
    let of = |dimension: &str| {
        let files = [("cubes/c.yml", cubes), ("policies/p.yml", policy)];
        let (model, _) = sound(&files, vec![registered("mine", "raw.other", dimension)], &[]);
        assert!(!is_closed(&model, "depts"));
        is_closed(&model, "mine")
    };
    assert!(!of(&tenant("tenant")));
    assert!(of(&tenant("'mine'")));
    assert!(of(&tenant("tenant_id")));
    assert!(of("{\"name\": \"id\", \"type\": \"number\", \"sql\": \"id\"}"), "the member does not exist");
}

#[test]
fn cubes_whose_tables_cannot_be_determined_are_warned_of() {
    let cubes = format!(
        "cubes:\n{}{}",
        cube_over("own", "sql_table: raw.own"),
        cube_over("reader", "sql: \"SELECT * FROM read_csv(getenv('F'))\"")
    );
    let policy = "policies: [{name: p, cubes: [own], deny: [id]}, {name: q, cubes: [own], mask: {id: hash}}]";
    let (model, found) = sound(&[("cubes/c.yml", cubes.as_str()), ("policies/p.yml", policy)], Vec::new(), &[]);
    assert!(is_closed(&model, "reader") && !is_closed(&model, "own"));
    assert_eq!(found.iter().filter(|found| found.code == Code::UnresolvedTables).count(), 1);
}

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// Generates a random project with cubes over tables, files, queries and models, with aliases of joins, and with
    /// registered cubes.
    fn project(&mut self) -> (String, Vec<RegisteredCube>, Vec<String>) {
        const RELATIONS: [&str; 14] = [
            "sql_table: raw.emp",
            "sql_table: emp",
            "sql_table: raw.depts",
            "sql_table: '\"data/emp.csv\"'",
            "sql_table: analytics.clean",
            "sql_table: raw.seen",
            "sql_table: \"{{ ref('clean') }}\"",
            "sql: \"SELECT * FROM raw.emp\"",
            "sql: \"SELECT id, email, tenant_id FROM raw.emp WHERE id > 1\"",
            "sql: \"SELECT e.* FROM raw.emp AS e JOIN raw.depts AS d ON e.id = d.id\"",
            "sql: \"SELECT * FROM read_csv('./data/*.csv')\"",
            "sql: \"SELECT * FROM {{ ref('clean') }}\"",
            "sql: \"SELECT * FROM raw.seen\"",
            "sql: \"SELECT * FROM a_macro(1)\"",
        ];
        let mut text = "cubes:\n".to_owned();
        let mut holders = Vec::new();
        for at in 0..2 + self.below(5) {
            let has_email = self.below(2) == 0;
            let name = format!("c{at}");
            text.push_str(&format!("  - name: {name}\n    {}\n    dimensions:\n", self.one_of(&RELATIONS)));
            text.push_str("      - {name: id, type: number, sql: id, primary_key: true}\n");
            text.push_str("      - {name: mail, type: string, sql: email}\n");
            if has_email {
                text.push_str(&format!(
                    "      - {{name: email, type: string, sql: {}}}\n",
                    self.one_of(&["email", "mail"])
                ));
                holders.push(name);
            }
            text.push_str("    measures: [{name: count, type: count}]\n");
            if at > 0 && self.below(3) == 0 {
                text.push_str(&format!(
                    "    joins: [{{name: a{at}, cube: c{}, relationship: many_to_one, sql: \"{{c{at}}}.id = {{a{at}}}.id\"}}]\n",
                    self.below(at)
                ));
            }
        }
        let tables = ["raw.emp", "emp", "analytics.clean", "raw.seen", "raw.depts"];
        let members = ["email", "mail"];
        let registered = (0..self.below(3)).map(|at| {
            let dimension = format!(
                "{{\"name\": \"{}\", \"type\": \"string\", \"sql\": \"{}\"}}",
                self.one_of(&members),
                self.one_of(&members)
            );
            registered(&format!("r{at}"), self.one_of(&tables), &dimension)
        });
        (text, registered.collect(), holders)
    }
}

/// Tests that a policy for `"*"` hides and closes at least as much as two alternatives: one policy that names all cubes
/// with the masked or denied member, and one such policy for each of these cubes.
#[test]
fn policy_for_all_cubes_hides_at_least_what_policies_for_each_cube_hide() {
    let mut random = Random(7);
    let mut hidden = 0;
    for case in 0..300 {
        let (cubes, registered, holders) = random.project();
        if holders.is_empty() {
            continue;
        }
        let what =
            random.one_of(&["mask: {email: hash}", "deny: [email]", "mask: {email: partial}, allow_aggregate: true"]);
        let single = holders.iter().map(|name| format!("{{name: p_{name}, cubes: [{name}], {what}}}"));
        let singles = single.collect::<Vec<_>>().join(", ");
        let list = format!("{{name: p, cubes: [{}], {what}}}", holders.join(", "));
        let view = ["CREATE VIEW raw.seen AS SELECT id, email FROM raw.emp"];
        let of = |policies: &str| {
            let policies = format!("policies: [{policies}]");
            let clean = "{{ config(materialized='table') }} SELECT id, email, email AS mail FROM raw.emp";
            let files =
                [("cubes/c.yml", cubes.as_str()), ("models/clean.sql", clean), ("policies/p.yml", policies.as_str())];
            sound(&files, registered.clone(), &view).0
        };
        let all = of(&format!("{{name: p, cubes: \"*\", {what}}}"));
        let caller = SecurityContext::default();
        let star = Access::of(&all, &caller);
        for by_name in [of(&singles), of(&list)] {
            let named = Access::of(&by_name, &caller);
            for cube in &by_name.cubes {
                let place = format!("case {case}, {}: {what}\n{cubes}\n{registered:?}", cube.name);
                if star.is_closed(cube) {
                    continue;
                }
                assert!(!named.is_closed(cube), "{place}");
                for dimension in (0..cube.dimensions.len() as u32).map(|index| DimensionId { cube: cube.id, index }) {
                    let member = Member::Dimension(dimension);
                    let is_shown = |access: &Access<'_>| access.offers(member) && access.mask(dimension).is_none();
                    hidden += usize::from(!is_shown(&named));
                    assert!(is_shown(&named) || !is_shown(&star), "{place}");
                    let strictness = |access: &Access<'_>| access.mask(dimension).map(|mask| mask.strictness());
                    assert!(strictness(&named) <= strictness(&star), "{place}");
                }
            }
        }
    }
    assert!(hidden > 100, "{hidden}");
}

/// Tests that a row filter for `"*"` filters or closes every cube, including registered ones. A cube that it does not
/// close has at least as many filters as under a policy that names all cubes of the files.
#[test]
fn row_filter_for_all_cubes_filters_at_least_what_one_for_each_cube_filters() {
    let mut random = Random(11);
    let mut filtered = 0;
    for case in 0..300 {
        let (cubes, registered, _) = random.project();
        let names: Vec<String> =
            cubes.lines().filter_map(|line| Some(line.strip_prefix("  - name: ")?.to_owned())).collect();
        let what = random.one_of(&["row_filter: \"{CUBE}.id > 1\"", "row_filter: \"{id} > 1\""]);
        let of = |named: &str| {
            let policies = format!("policies: [{{name: p, cubes: {named}, {what}}}]");
            let clean = "{{ config(materialized='table') }} SELECT id, email, email AS mail FROM raw.emp";
            let files =
                [("cubes/c.yml", cubes.as_str()), ("models/clean.sql", clean), ("policies/p.yml", policies.as_str())];
            sound(&files, registered.clone(), &["CREATE VIEW raw.seen AS SELECT id, email FROM raw.emp"]).0
        };
        let (all, listed) = (of("\"*\""), of(&format!("[{}]", names.join(", "))));
        let caller = SecurityContext::default();
        let (star, named) = (Access::of(&all, &caller), Access::of(&listed, &caller));
        for cube in &listed.cubes {
            let place = format!("case {case}, {}: {what}\n{cubes}\n{registered:?}", cube.name);
            let filters = star.row_filters(cube.id).count();
            assert!(star.is_closed(cube) || filters > 0, "{place}");
            if !star.is_closed(cube) {
                assert!(!named.is_closed(cube) && named.row_filters(cube.id).count() <= filters, "{place}");
                filtered += 1;
            }
        }
    }
    assert!(filtered > 100, "{filtered}");
}
