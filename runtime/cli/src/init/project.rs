//! The files around the cubes: the project file, and what an empty project begins with.
//!
//! In: a name and a warehouse's settings. Out: texts. No secret is among them.

use crate::authoring::yaml::{Yaml, document};

/// `warehouse` of the project file.
#[derive(Debug, Clone, Default)]
pub struct WarehouseSettings {
    pub kind: String,
    /// Inside the project.
    pub path: Option<String>,
    /// Without a secret; `${NAME}` in it is a variable.
    pub url: Option<String>,
    pub init: Vec<String>,
}

const OPENING: &str = "\
A project of Terrane. `terrane check .` finds what is wrong with it, `terrane config show .` shows every setting.";

const CLOSING: &str = "
# `terrane serve .` asks callers for a key (`terrane auth create-key .`) unless anybody on this machine may read:
# security: {anonymous: {scopes: [read], roles: []}}
";

/// The project file.
pub fn settings(name: &str, warehouse: &WarehouseSettings) -> String {
    let mut of_warehouse = Yaml::map([("type", Yaml::text(&*warehouse.kind))]);
    if let Some(path) = &warehouse.path {
        of_warehouse.set("path", verbatim(path));
    }
    if let Some(url) = &warehouse.url {
        of_warehouse.set("url", Yaml::text(url));
    }
    if !warehouse.init.is_empty() {
        let mut statements = warehouse.init.iter().map(|statement| verbatim(statement));
        let first = statements.next().map(|first| {
            let why = "Views, not copies: a query reads only what it needs. They are made anew at each start.";
            Yaml::Noted(why.to_owned(), Box::new(first))
        });
        of_warehouse.set("init", Yaml::List(first.into_iter().chain(statements).collect()));
    }
    let file = Yaml::map([("name", Yaml::text(name))]);
    let warehouse = Yaml::map([("warehouse", of_warehouse)]);
    format!("{}\n{}{CLOSING}", document(OPENING, &file), document("", &warehouse))
}

/// A text of the project file that names no variable, whatever stands in it.
fn verbatim(text: &str) -> Yaml {
    Yaml::Text(text.replace("${", "$${"))
}

/// An empty project: it loads, and says what can be put where.
pub fn empty(name: &str) -> Vec<(String, String)> {
    let warehouse = format!(
        "\
{}
warehouse:
  type: duckdb                      # or postgres, mysql, sqlite
  path: \":memory:\"                  # or a file of the project: data/shop.duckdb
  # Runs at each start. A folder of Parquet or CSV files becomes tables like this:
  # init:
  #   - CREATE SCHEMA IF NOT EXISTS raw
  #   - CREATE OR REPLACE VIEW raw.orders AS SELECT * FROM read_parquet('data/orders.parquet')
  # A server has a URL, and its password comes from the environment:
  # url: postgres://user:${{WAREHOUSE_PASSWORD}}@host:5432/database
{CLOSING}",
        document(OPENING, &Yaml::map([("name", Yaml::text(name))]))
    );
    let text = |file: &str, text: &str| (file.to_owned(), text.to_owned());
    vec![
        ("service_project.yml".to_owned(), warehouse),
        text("cubes/orders.yml", CUBE),
        text("metrics/metrics.yml", METRIC),
        text("tests/expectations.yml", EXPECTATION),
    ]
}

const CUBE: &str = "\
# A cube is a table with its measures and dimensions. Take the signs away and put your own names in; a file may
# hold several cubes, and files may lie in folders.
# cubes:
#   - name: orders
#     sql_table: raw.orders
#     joins:
#       - {name: customers, relationship: many_to_one, sql: \"{CUBE}.customer_id = {customers}.id\"}
#     dimensions:
#       - {name: id, type: number, sql: id, primary_key: true}
#       - {name: status, type: string, sql: status}
#       - {name: created_at, type: time, sql: created_at}
#     measures:
#       - {name: count, type: count}
#       - {name: revenue, type: sum, sql: amount, format: currency}
#       - {name: average_order, type: number, sql: \"{revenue} / {count}\", format: currency}
";

const METRIC: &str = "\
# A metric is a number with a name of its own, made of measures of any cube.
# metrics:
#   - {name: revenue, type: simple, expression: orders.revenue}
#   - {name: revenue_per_customer, type: ratio, numerator: orders.revenue, denominator: customers.count}
";

const EXPECTATION: &str = "\
# What the project expects of itself, for `terrane test .`: a query, and its rows or SQL that gives them.
# tests:
#   - name: orders_by_status
#     query: {measures: [orders.count], dimensions: [orders.status]}
#     sql: SELECT status AS \"orders.status\", count(*) AS \"orders.count\" FROM raw.orders GROUP BY 1 ORDER BY 2 DESC
";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use terrane_compiler::project::{self, Inputs, SourceTree};

    use super::*;

    fn problems(files: Vec<(String, String)>) -> Vec<String> {
        let files = files.into_iter().map(|(path, text)| (Arc::from(path), Arc::from(text))).collect();
        let (definitions, mut problems) = project::read(&SourceTree { files }, &Inputs::default());
        problems.extend(terrane_compiler::model::build(&definitions).1);
        // That there is no cube yet is worth a warning of `check`.
        let told = problems.iter().filter(|problem| problem.code != terrane_compiler::diagnostic::Code::NoCubes);
        told.map(ToString::to_string).collect()
    }

    #[test]
    fn what_a_file_is_called_is_no_variable() {
        let init = vec!["SELECT * FROM read_csv('${HOME}.csv')".to_owned()];
        let warehouse = WarehouseSettings { kind: "duckdb".to_owned(), init, ..WarehouseSettings::default() };
        let written = settings("shop", &warehouse);
        assert!(written.contains("read_csv('$${HOME}.csv')"), "{written}");
    }

    #[test]
    fn an_empty_project_has_no_problem_and_neither_has_what_it_shows() {
        let files = empty("shop");
        assert_eq!(problems(files.clone()), Vec::<String>::new());
        let customers =
            "cubes:\n  - name: customers\n    sql_table: raw.customers\n    measures: [{name: count, type: count}]\n";
        // What stands behind the signs, from the list's name on.
        let uncommented = |text: &str| {
            let lines = text.lines().skip_while(|line| !line.ends_with(':')).filter_map(|line| line.strip_prefix("# "));
            lines.collect::<Vec<_>>().join("\n")
        };
        let of_compiler = files.into_iter().filter(|(path, _)| path != "tests/expectations.yml");
        let shown = of_compiler.map(|(path, text)| {
            let text = if path == "service_project.yml" { text } else { uncommented(&text) };
            (path, text)
        });
        let shown: Vec<(String, String)> =
            shown.chain([("cubes/customers.yml".to_owned(), customers.to_owned())]).collect();
        assert_eq!(problems(shown), Vec::<String>::new());
    }
}
