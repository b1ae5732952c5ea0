//! Writes the project file, and the files of an empty project.
//!
//! In: a name and the warehouse's settings. Out: their contents, without secrets.

use crate::yaml::{Yaml, document};

/// The section `warehouse` of the project file.
#[derive(Debug, Clone, Default)]
pub struct WarehouseSettings {
    pub kind: String,
    /// A path inside the project.
    pub path: Option<String>,
    /// A URL without secrets. `${NAME}` stands for an environment variable.
    pub url: Option<String>,
    pub init: Vec<String>,
}

const OPENING: &str = "\
A Terrane project. `terrane check .` reports its problems, `terrane config show .` lists all settings.";

const CLOSING: &str = "
# `terrane serve .` requires an API key (`terrane auth create-key .`). To let everyone on this machine read:
# security: {anonymous: {scopes: [read], roles: []}}
";

/// Returns the text of the project file.
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
            let why = "Views instead of copies: queries read only the columns that they need. They are recreated at each start.";
            Yaml::Commented(why.to_owned(), Box::new(first))
        });
        of_warehouse.set("init", Yaml::List(first.into_iter().chain(statements).collect()));
    }
    let file = Yaml::map([("name", Yaml::text(name))]);
    let warehouse = Yaml::map([("warehouse", of_warehouse)]);
    format!("{}\n{}{CLOSING}", document(OPENING, &file), document("", &warehouse))
}

/// Escapes `${` in a string, so that the project file does not expand it as a variable.
fn verbatim(text: &str) -> Yaml {
    Yaml::Text(text.replace("${", "$${"))
}

/// Returns the files of an empty project, which loads and explains what to add.
pub fn empty(name: &str) -> Vec<(String, String)> {
    let warehouse = format!(
        "\
{}
warehouse:
  type: duckdb                      # or postgres, mysql, sqlite, spark; bigquery, snowflake … with `adbc`
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
# A cube is a table with its measures and dimensions. Remove the comment signs and use your own names. A file may
# contain several cubes, and files may be in subfolders.
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
# A metric is a named number computed from measures of any cubes.
# metrics:
#   - {name: revenue, type: simple, expression: orders.revenue}
#   - {name: revenue_per_customer, type: ratio, numerator: orders.revenue, denominator: customers.count}
";

const EXPECTATION: &str = "\
# Expectations for `terrane test .`: a query, and its rows or SQL that returns the same rows.
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
        // An empty project has no cubes, which is a warning.
        let relevant = problems.iter().filter(|problem| problem.code != terrane_compiler::diagnostic::Code::NoCubes);
        relevant.map(ToString::to_string).collect()
    }

    #[test]
    fn file_name_is_not_read_as_a_variable() {
        let init = vec!["SELECT * FROM read_csv('${HOME}.csv')".to_owned()];
        let warehouse = WarehouseSettings { kind: "duckdb".to_owned(), init, ..WarehouseSettings::default() };
        let written = settings("shop", &warehouse);
        assert!(written.contains("read_csv('$${HOME}.csv')"), "{written}");
    }

    #[test]
    fn empty_project_and_its_examples_have_no_problems() {
        let files = empty("shop");
        assert_eq!(problems(files.clone()), Vec::<String>::new());
        let customers =
            "cubes:\n  - name: customers\n    sql_table: raw.customers\n    measures: [{name: count, type: count}]\n";
        // Returns the text after the comment signs, beginning with the name of the list.
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
