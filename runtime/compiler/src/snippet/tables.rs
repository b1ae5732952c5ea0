//! The tables and files that SQL names.
//!
//! In: SQL and the warehouse's grammar. Out: canonical names (`table_names`), including those that functions in FROM
//! read (`table_functions`). Names that a WITH gives to its own queries are left out. `None` means that the SQL may
//! read anything. Not here: the tables of models and views behind the names (`model::tables`).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Cte, Expr, FunctionArg, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, SetExpr, SetOperator,
    Statement, TableFactor, Visit, Visitor, With, visit_relations,
};
use sqlparser::dialect::Dialect;
use sqlparser::parser::Parser;

use super::grammar::tokenize;
use super::table_functions::{Reads, is_reading_scalar, literals, main_texts, texts};
use super::table_names::{of_directory, of_file, of_parts, of_table};

/// The largest number of tokens. On longer input, the parser could recurse too deeply.
const MAX_TOKENS: usize = 4_000;

/// A view or table that a statement creates from a query.
pub(crate) struct CreatedView {
    pub(crate) name: String,
    /// The names that its query reads; `None` if it may read anything.
    pub(crate) named: Option<BTreeSet<String>>,
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Returns the views and tables that a statement creates from a query; none if the statement cannot be parsed.
pub(crate) fn created_views(statement: &str, dialect: &dyn Dialect) -> Vec<CreatedView> {
    let parsed = Parser::new(dialect).with_recursion_limit(60).try_with_sql(statement);
    let Ok(statements) = parsed.and_then(|mut parser| parser.parse_statements()) else { return Vec::new() };
    let created = statements.iter().filter_map(|created| match created {
        Statement::CreateView(view) => Some((&view.name, &view.query)),
        Statement::CreateTable(table) => table.query.as_ref().map(|query| (&table.name, query)),
        _ => None,
    });
    created
        .map(|(name, query)| CreatedView {
            name: folded(name),
            named: in_tree(&**query, has_escapes(statement, dialect), dialect),
        })
        .collect()
}

/// Returns the canonical names of tables and files, without names that an enclosing WITH gives to its queries. `None`
/// if the SQL may read anything.
pub(crate) fn names_in(text: &str, dialect: &dyn Dialect) -> Option<BTreeSet<String>> {
    let statements = Parser::new(dialect).with_recursion_limit(60).try_with_sql(text).ok()?.parse_statements().ok()?;
    in_tree(&statements, has_escapes(text, dialect), dialect)
}

fn in_tree(tree: &impl Visit, has_escapes: bool, dialect: &dyn Dialect) -> Option<BTreeSet<String>> {
    let mut names = Names { has_escapes, ..Names::default() };
    let _ = tree.visit(&mut names);
    for query in std::mem::take(&mut names.nested) {
        names.found.extend(names_in(&query, dialect)?);
    }
    (!names.is_unknown).then_some(names.found)
}

/// Returns whether string literals may contain escaped characters.
fn has_escapes(text: &str, dialect: &dyn Dialect) -> bool {
    dialect.supports_string_literal_backslash_escape() && text.contains('\\')
}

/// Returns the tables that SQL names; none if it cannot be parsed or is very long.
pub fn tables_named_in(text: &str, dialect: &dyn Dialect) -> BTreeSet<String> {
    let is_short = tokenize(text, dialect).is_ok_and(|tokens| tokens.len() <= MAX_TOKENS);
    if is_short { names_in(text, dialect).unwrap_or_default() } else { BTreeSet::new() }
}

#[derive(Default)]
struct Names {
    found: BTreeSet<String>,
    /// The names that each enclosing query defines.
    bound: Vec<BTreeSet<String>>,
    /// Queries in string literals, such as `query('SELECT …')`.
    nested: Vec<String>,
    /// True if the name of a table is computed, so that the table is unknown.
    is_unknown: bool,
    has_escapes: bool,
    /// True if the relation that is visited next is a function call.
    is_call: bool,
}

impl Names {
    fn function(&mut self, name: &ObjectName, args: &[FunctionArg]) {
        let reads = Reads::of(last_part(&folded(name)));
        if reads == Reads::Nothing {
            return;
        }
        let named = match reads {
            Reads::TableInFile | Reads::RemoteTable | Reads::Query => None,
            _ => main_texts(args),
        };
        match (reads, named) {
            (Reads::Files { is_directory }, Some(paths)) if !self.has_escapes => {
                let name = if is_directory { of_directory } else { of_file };
                self.found.extend(paths.iter().map(|path| name(path)));
            }
            (Reads::Tables, Some(tables)) if !self.has_escapes => {
                self.found.extend(tables.iter().map(|table| of_table(table)));
            }
            (Reads::TableInFile | Reads::RemoteTable | Reads::Query, _) if !self.has_escapes => self.texts(reads, args),
            _ => self.is_unknown = true,
        }
    }

    /// Adds the tables, files and queries that a call reads, if all of its arguments together determine them. For
    /// example, the arguments are a file and the name of a table in this file.
    fn texts(&mut self, reads: Reads, args: &[FunctionArg]) {
        let texts: Option<Vec<Vec<String>>> = texts(args).into_iter().collect();
        let texts = texts.unwrap_or_default().concat();
        match (reads, texts.as_slice()) {
            (Reads::Query, [query] | [_, query]) => self.nested.push(query.clone()),
            (Reads::TableInFile, [file, table]) => self.found.extend([of_file(file), of_table(table)]),
            (Reads::RemoteTable, [_, .., table]) => {
                self.found.insert(of_table(table));
            }
            _ => self.is_unknown = true,
        }
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.bound.push(query.with.as_ref().map(bound_by).unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.bound.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: Some(args), .. } => {
                self.is_call = true;
                self.function(name, &args.args);
            }
            TableFactor::Function { name, args, .. } => self.function(name, args),
            TableFactor::TableFunction { expr: Expr::Function(function), .. } => match &function.args {
                FunctionArguments::List(list) => self.function(&function.name, &list.args),
                _ => self.function(&function.name, &[]),
            },
            // PostgreSQL's and DuckDB's `FROM ONLY orders`: the parser takes the table for an alias.
            TableFactor::Table { name, alias: Some(_), .. } if is_only(name) => self.is_unknown = true,
            // Snowflake's `TABLE('raw.orders')`.
            TableFactor::TableFunction { expr, .. } => match literals(expr).filter(|_| !self.has_escapes) {
                Some(names) => self.found.extend(names.iter().map(|name| of_table(name))),
                None => self.is_unknown = true,
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            self.is_unknown |= is_reading_scalar(last_part(&folded(&function.name)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if std::mem::take(&mut self.is_call) {
            return ControlFlow::Continue(());
        }
        let own = match relation.0.as_slice() {
            [part] => part.as_ident().map(key),
            _ => None,
        };
        if !own.is_some_and(|own| self.bound.iter().any(|names| names.contains(&own))) {
            let (name, others) = of_parts(&parts_of(relation));
            self.found.extend(others.into_iter().chain([name]));
        }
        ControlFlow::Continue(())
    }
}

/// Returns the names of a WITH that always refer to its own queries. A name that is used before its definition may be a
/// table there, so it counts as a table everywhere.
fn bound_by(with: &With) -> BTreeSet<String> {
    let alias = |cte: &Cte| cte.alias.name.value.to_lowercase();
    let mut before: BTreeSet<String> = BTreeSet::new();
    for (at, cte) in with.cte_tables.iter().enumerate() {
        let first_unknown = if with.recursive && is_recursive(cte) { at + 1 } else { at };
        let unknown: BTreeSet<String> = with.cte_tables[first_unknown..].iter().map(alias).collect();
        let _ = visit_relations(&cte.query, |relation| {
            before.extend(Some(folded(relation)).filter(|name| unknown.contains(name)));
            ControlFlow::<()>::Continue(())
        });
    }
    let bound = with.cte_tables.iter().filter(|cte| !before.contains(&alias(cte)));
    bound.map(|cte| key(&cte.alias.name)).collect()
}

/// Returns whether a query of a WITH names itself only in the second part of a UNION, where the name refers to the
/// query's own rows. Elsewhere the name may refer to a table, even after RECURSIVE.
fn is_recursive(cte: &Cte) -> bool {
    let own = cte.alias.name.value.to_lowercase();
    match cte.query.body.as_ref() {
        SetExpr::SetOperation { op: SetOperator::Union, left, .. } => {
            let names_itself = |relation: &ObjectName| match folded(relation) == own {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            visit_relations(left, names_itself).is_continue()
        }
        _ => false,
    }
}

/// Returns a key of a name. A quoted name keeps its case and differs from the unquoted one, because only some engines
/// treat the two as equal.
fn key(name: &Ident) -> String {
    if name.quote_style.is_some() { format!("\"{}", name.value) } else { name.value.to_lowercase() }
}

fn is_only(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [ObjectNamePart::Identifier(only)]
        if only.quote_style.is_none() && only.value.eq_ignore_ascii_case("only"))
}

fn parts_of(relation: &ObjectName) -> Vec<String> {
    let part = |part: &ObjectNamePart| part.as_ident().map_or_else(|| part.to_string(), |ident| ident.value.clone());
    relation.0.iter().map(part).collect()
}

fn folded(relation: &ObjectName) -> String {
    relation.to_string().to_lowercase().replace(['"', '`', '[', ']'], "")
}

#[cfg(test)]
mod tests {
    use super::super::table_names::is_same;
    use super::*;

    #[test]
    fn names_that_leave_out_database_or_schema_may_be_the_same() {
        for (a, b) in [("t", "db.main.t"), ("main.t", "db.main.t"), ("db.t", "db.main.t"), ("db.main.t", "db.main.t")] {
            assert!(is_same(a, b) && is_same(b, a), "{a} {b}");
        }
        for (a, b) in [("other.t", "db.main.t"), ("db.x", "db.main.t"), ("t", "db.main.at")] {
            assert!(!is_same(a, b) && !is_same(b, a), "{a} {b}");
        }
    }

    #[test]
    fn cte_names_are_not_tables_within_their_scope() {
        for (text, tables) in [
            ("SELECT * FROM a JOIN s.b ON true", "a s.b"),
            ("WITH x AS (SELECT * FROM payments) SELECT * FROM x", "payments"),
            ("WITH x AS (SELECT * FROM p), y AS (SELECT * FROM x) SELECT * FROM y WHERE k IN (SELECT k FROM x)", "p"),
            ("WITH x AS (SELECT * FROM x) SELECT * FROM x", "x"),
            ("WITH y AS (SELECT * FROM x), x AS (SELECT 1) SELECT * FROM y, x", "x"),
            ("WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT * FROM x) SELECT * FROM x", ""),
            ("SELECT * FROM (WITH x AS (SELECT * FROM p) SELECT * FROM x) AS a JOIN x ON true", "p x"),
            ("WITH x AS (SELECT * FROM p) SELECT * FROM s.x", "p s.x"),
            ("WITH \"X\" AS (SELECT * FROM p) SELECT * FROM x, \"X\"", "p x"),
            ("WITH X AS (SELECT * FROM p) SELECT * FROM x", "p"),
            ("SELECT * FROM query_table('Raw.orders')", "raw.orders"),
            ("SELECT * FROM query_table(['a', 'b']) AS t JOIN c ON true", "a b c"),
            ("SELECT * FROM query('SELECT * FROM a JOIN b ON true')", "a b"),
            ("SELECT 1 WHERE EXISTS (FROM query_table('a'))", "a"),
            ("SELECT * FROM \"data/Customers.csv\"", "/data/customers.csv"),
            ("SELECT * FROM 'data/../data/x.csv'", "/data/x.csv"),
            ("SELECT * FROM read_csv('./data/x.csv', header = true)", "/data/x.csv"),
            ("SELECT * FROM read_csv_auto(['a.csv', 'file:b.csv'])", "/a.csv /b.csv"),
            ("SELECT * FROM read_csv(list_value('a.csv'), header := true)", "/a.csv"),
            ("SELECT * FROM read_parquet('d/*/x.parquet', hive_partitioning = true)", "/d/*/x.parquet"),
            ("SELECT 1 WHERE EXISTS (SELECT 1 FROM read_text('a.txt'))", "/a.txt"),
            ("SELECT * FROM delta_scan('lake/t')", "/lake/t/"),
            ("SELECT * FROM sqlite_scan('shop.db', 'Emp')", "/shop.db emp"),
            ("SELECT * FROM postgres_query('db', 'SELECT * FROM emp')", "emp"),
            ("SELECT * FROM range(10) AS r(i), generate_series(1, 3), unnest([1, 2])", ""),
            ("SELECT * FROM a, json_each(a.j)", "a"),
        ] {
            let found = names_in(text, &sqlparser::dialect::DuckDbDialect {}).unwrap();
            assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), tables, "{text}");
        }
        for text in [
            "SELECT * FROM query_table('a' || 'b')",
            "SELECT * FROM query('SELECT')",
            "SELECT * FROM query(x)",
            "SELECT * FROM query_table(['a', b])",
            "SELECT * FROM read_csv('data/' || 'x.csv')",
            "SELECT * FROM read_csv(getvariable('f'))",
            "SELECT * FROM t, read_csv(t.path)",
            "SELECT * FROM read_csv($1)",
            "SELECT * FROM read_csv(['a.csv', concat('b', '.csv')])",
            "SELECT * FROM read_csv()",
            "SELECT * FROM a_macro(1)",
            "SELECT * FROM s3_list('x')",
            "SELECT (SELECT max(x) FROM a_macro(1))",
            "SELECT pg_read_file('/etc/passwd')",
            "SELECT query_to_xml('SELECT * FROM emp', true, true, '')",
        ] {
            assert_eq!(names_in(text, &sqlparser::dialect::DuckDbDialect {}), None, "{text}");
        }
    }

    #[test]
    fn paths_and_functions_of_other_engines_are_found() {
        use sqlparser::dialect::{
            BigQueryDialect, ClickHouseDialect, DatabricksDialect, GenericDialect, PostgreSqlDialect, SnowflakeDialect,
        };
        let cases: [(&dyn Dialect, &str, Option<&str>); 12] = [
            (&SnowflakeDialect {}, "SELECT * FROM TABLE('raw.orders')", Some("raw.orders")),
            (&SnowflakeDialect {}, "SELECT * FROM TABLE(secret_rows())", None),
            (&SnowflakeDialect {}, "SELECT * FROM @files/orders.csv", Some("/files/orders.csv/")),
            (&DatabricksDialect {}, "SELECT * FROM parquet.`/lake/orders`", Some("/lake/orders/")),
            (&DatabricksDialect {}, "SELECT * FROM delta.`s3://b/orders`", Some("/b/orders/")),
            (&BigQueryDialect {}, "SELECT * FROM `p.ds.events_*`", Some("p.ds.events_*")),
            (&ClickHouseDialect {}, "SELECT * FROM file('orders.csv')", Some("/orders.csv")),
            (&ClickHouseDialect {}, "SELECT * FROM merge('db', '.*')", None),
            (&PostgreSqlDialect {}, "SELECT * FROM ONLY orders", None),
            (&PostgreSqlDialect {}, "SELECT * FROM dblink('db', 'SELECT 1') AS t(a int)", None),
            (&GenericDialect {}, "SELECT * FROM TABLE(system.query(query => 'SELECT * FROM orders'))", Some("orders")),
            (&GenericDialect {}, "WITH RECURSIVE x AS (SELECT * FROM x) SELECT * FROM x", Some("x")),
        ];
        for (dialect, text, expected) in cases {
            let found = names_in(text, dialect);
            let found = found.map(|names| names.into_iter().collect::<Vec<_>>());
            match expected {
                // SQL that the parser refuses may read anything.
                None => assert_eq!(found, None, "{text}"),
                Some(name) => assert!(found.is_none_or(|names| names.iter().any(|own| own == name)), "{text}"),
            }
        }
    }
}
