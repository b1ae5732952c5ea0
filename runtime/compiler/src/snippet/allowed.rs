//! The allow-list of expressions for cubes that are registered while the server runs.
//!
//! In: the `sql` of a member of a registered cube, and the warehouse's grammar. Out: nothing, or the first construct
//! that is not allowed. The allow-list contains constructs that only compute from their row's own columns: names,
//! references in braces, literals, operators, CASE, CAST and the functions below. All others are refused: subqueries,
//! which would read other tables; functions that read files, settings or the network; windows. Names are resolved
//! later, when the cube is built.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Value, Visit, Visitor};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::aggregate;
use super::calls::read_as_engine;
use super::grammar::{grammar, tokenize};

const MAX_BYTES: usize = 8 * 1024;
const MAX_TOKENS: usize = 1_000;
const MAX_DEPTH: usize = 40;

/// The allowed functions, in lower case. On every warehouse, they read only their arguments and do not return much
/// larger values.
const FUNCTIONS: &[&str] = &[
    "abs",
    "avg",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "coalesce",
    "concat",
    "count",
    "date",
    "date_diff",
    "date_part",
    "date_trunc",
    "datediff",
    "day",
    "exp",
    "floor",
    "greatest",
    "hour",
    "if",
    "ifnull",
    "least",
    "left",
    "length",
    "ln",
    "log",
    "log10",
    "lower",
    "ltrim",
    "max",
    "min",
    "minute",
    "mod",
    "month",
    "nullif",
    "power",
    "quarter",
    "replace",
    "right",
    "round",
    "rtrim",
    "second",
    "sign",
    "split_part",
    "sqrt",
    "strpos",
    "substr",
    "substring",
    "sum",
    "trim",
    "trunc",
    "upper",
    "year",
];

/// The names of system schemas, in lower case.
const SYSTEM_SCHEMAS: &[&str] =
    &["information_schema", "mysql", "performance_schema", "pg_catalog", "pg_toast", "sys", "system"];
/// The prefixes of system tables that are found without a schema.
const SYSTEM_PREFIXES: &[&str] = &["duckdb_", "pg_", "pragma_", "sqlite_", "svl_", "stl_", "stv_"];

/// Schemas that engines like Spark read as a file format, with the table's name as a path. In lower case.
const FILE_FORMATS: &[&str] = &[
    "avro",
    "binaryfile",
    "cloudfiles",
    "csv",
    "delta",
    "deltasharing",
    "hudi",
    "iceberg",
    "image",
    "json",
    "libsvm",
    "orc",
    "parquet",
    "text",
    "xml",
];
/// The warehouses whose engines read the schemas in [`FILE_FORMATS`] as file formats.
const READS_PATHS: &[&str] = &["databricks", "spark"];

/// A reason to refuse SQL of a registered cube.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error("Jinja is not rendered here")]
    Jinja,
    #[error("the expression is longer than {MAX_BYTES} bytes or {MAX_TOKENS} words")]
    TooLong,
    #[error("the expression cannot be read: {message}")]
    Syntax { message: String },
    #[error("a registered expression may not contain `{found}`")]
    Construct { found: String },
    #[error("`{table}` is not a plain table name, such as `sales.orders`")]
    TableName { table: String },
    #[error("`{table}` is a system table of the warehouse")]
    SystemTable { table: String },
    #[error("`{table}` is read as a file by this warehouse")]
    FileTable { table: String },
    #[error("a registered expression may not call the function `{name}`")]
    Function { name: String },
}

/// Returns the names of the functions that [`check_expression`] accepts.
pub fn allowed_functions() -> &'static [&'static str] {
    FUNCTIONS
}

/// Checks one member's `sql`.
///
/// # Errors
/// [`NotAllowed`]
pub fn check_expression(sql: &str, warehouse: &str) -> Result<(), NotAllowed> {
    check_template(sql)?;
    if sql.len() > MAX_BYTES {
        return Err(NotAllowed::TooLong);
    }
    let syntax = |message: String| NotAllowed::Syntax { message };
    let dialect = grammar(warehouse);
    let text = without_braces(sql);
    let tokens = tokenize(&text, &*dialect).map_err(|problem| syntax(problem.message))?;
    if tokens.len() > MAX_TOKENS {
        return Err(NotAllowed::TooLong);
    }
    let mut parser = Parser::new(&*dialect).with_recursion_limit(MAX_DEPTH).with_tokens_with_locations(tokens);
    let mut expression = parser.parse_expr().map_err(|error| syntax(error.to_string()))?;
    if parser.peek_token_ref().token != Token::EOF {
        return Err(syntax(format!("unexpected `{}` after the expression", parser.peek_token_ref().token)));
    }
    read_as_engine(&mut expression, &*dialect);
    match expression.visit(&mut Check) {
        ControlFlow::Break(refusal) => Err(refusal),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Checks a string that is used without being rendered.
///
/// # Errors
/// The string contains Jinja.
pub fn check_template(text: &str) -> Result<(), NotAllowed> {
    if ["{{", "{%", "{#"].iter().any(|tag| text.contains(tag)) { Err(NotAllowed::Jinja) } else { Ok(()) }
}

/// Checks a `sql_table`: the plain name of a table that is not the warehouse's own. Only operators may use quoted
/// names, because some engines read them as files. Some engines also read plain names as files; therefore the
/// warehouse's catalog is searched for the table.
///
/// # Errors
/// [`NotAllowed`]
pub fn check_table(table: &str, warehouse: &str) -> Result<(), NotAllowed> {
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let parts: Vec<String> = table.trim().split('.').map(str::to_ascii_lowercase).collect();
    if parts.len() > 3 || !parts.iter().all(|part| is_word(part)) {
        return Err(NotAllowed::TableName { table: table.chars().take(200).collect() });
    }
    let is_system = parts.iter().any(|part| SYSTEM_SCHEMAS.contains(&part.as_str()))
        || parts.last().is_some_and(|name| SYSTEM_PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
    if is_system {
        return Err(NotAllowed::SystemTable { table: table.to_owned() });
    }
    let is_file = |format: &str| FILE_FORMATS.contains(&format) && READS_PATHS.contains(&warehouse);
    match parts.as_slice() {
        [format, _] if is_file(format) => Err(NotAllowed::FileTable { table: table.to_owned() }),
        _ => Ok(()),
    }
}

/// Returns whether a registered `sql_table` must be in the warehouse's catalog. This is the case if a caller without
/// `admin` may have written it, under the current checks or the weaker checks of earlier versions.
pub fn is_looked_up(table: &str, warehouse: &str) -> bool {
    matches!(check_table(table, warehouse), Ok(()) | Err(NotAllowed::FileTable { .. }))
}

/// Replaces references with names. The items that they refer to are checked where they are defined.
fn without_braces(sql: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(sql.len()), sql);
    while let Some((before, after)) = rest.split_once('{') {
        let Some((reference, after)) = after.split_once('}') else { break };
        text.push_str(before);
        let is_name = reference.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        // The parser refuses any other text in braces, here and when the cube is built.
        text.push_str(if is_name { "reference" } else { "{" });
        rest = after;
    }
    text.push_str(rest);
    text
}

struct Check;

impl Visitor for Check {
    type Break = NotAllowed;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<NotAllowed> {
        ControlFlow::Break(NotAllowed::Construct { found: "SELECT".to_owned() })
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<NotAllowed> {
        match expr {
            Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::TypedString(_)
            | Expr::Interval(_)
            | Expr::Nested(_)
            | Expr::UnaryOp { .. }
            | Expr::BinaryOp { .. }
            | Expr::Case { .. }
            | Expr::Cast { .. }
            | Expr::Between { .. }
            | Expr::InList { .. }
            | Expr::Like { .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..)
            | Expr::Extract { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. }
            | Expr::Position { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. } => ControlFlow::Continue(()),
            Expr::Value(value) if !matches!(value.value, Value::Placeholder(_)) => ControlFlow::Continue(()),
            Expr::Function(function) => {
                let name = aggregate::name(function).unwrap_or_default().to_ascii_lowercase();
                if function.over.is_some() {
                    return ControlFlow::Break(NotAllowed::Construct { found: "OVER".to_owned() });
                }
                if let Some(star) = star_of(function).filter(|star| name != "count" || star != "*") {
                    return ControlFlow::Break(NotAllowed::Construct { found: star });
                }
                if FUNCTIONS.binary_search(&name.as_str()).is_ok() {
                    return ControlFlow::Continue(());
                }
                ControlFlow::Break(NotAllowed::Function { name: function.name.to_string() })
            }
            other => {
                let found: String = other.to_string().chars().take(80).collect();
                ControlFlow::Break(NotAllowed::Construct { found })
            }
        }
    }
}

/// Returns a star among the arguments: it stands for whole rows, which masks of columns do not cover.
fn star_of(function: &Function) -> Option<String> {
    let FunctionArguments::List(list) = &function.args else { return None };
    list.args.iter().find_map(|argument| match argument {
        FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg) => {
            (!matches!(arg, FunctionArgExpr::Expr(_))).then(|| arg.to_string())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_in_order() {
        assert!(FUNCTIONS.is_sorted());
    }

    #[test]
    fn row_expressions_are_allowed() {
        for sql in [
            "amount",
            "{orders}.amount * 2",
            "{revenue} / NULLIF({count}, 0)",
            "CASE WHEN status = 'paid' THEN amount ELSE 0 END",
            "CAST(code AS INTEGER) BETWEEN 1 AND 5",
            "SUM(amount) FILTER (WHERE status IN ('a', 'b'))",
            "date_trunc('day', created_at)",
            "EXTRACT(year FROM created_at) + INTERVAL '1' DAY",
            "Lower(Trim(name)) LIKE 'a%' AND NOT (x IS NULL)",
            "\"Order\".\"Total\"",
        ] {
            assert_eq!(check_expression(sql, "duckdb"), Ok(()), "{sql}");
        }
    }

    #[test]
    fn expressions_that_read_other_data_are_rejected() {
        let construct = |sql: &str| matches!(check_expression(sql, "duckdb"), Err(NotAllowed::Construct { .. }));
        let function = |sql: &str| matches!(check_expression(sql, "postgres"), Err(NotAllowed::Function { .. }));
        assert!(construct("(SELECT password FROM users)"));
        assert!(construct("EXISTS (SELECT 1)"));
        assert!(construct("amount IN (SELECT 1)"));
        assert!(construct("SUM(amount) OVER ()"));
        assert!(construct("[x for x in y]") || check_expression("[x for x in y]", "duckdb").is_err());
        assert!(function("pg_read_file('/etc/passwd')"));
        assert!(function("pg_sleep(10)"));
        assert!(function("pg_catalog.lower(x)"));
        assert!(function("getenv('HOME')"));
        assert!(function("repeat('x', 1000000000)"));
        assert_eq!(check_expression("{{ env_var('X') }}", "duckdb"), Err(NotAllowed::Jinja));
        assert!(construct("concat(spy.*)") && construct("concat(*)") && construct("count(spy.*)"));
        assert_eq!(check_expression("count(*)", "postgres"), Ok(()));
        for (sql, warehouse) in [
            ("COALESCE(?, 0)", "sqlite"),
            ("COALESCE($1, 0)", "postgres"),
            ("amount + :amount", "sqlite"),
            ("amount + @amount", "sqlite"),
            ("amount + ?1", "sqlite"),
        ] {
            assert!(check_expression(sql, warehouse).is_err(), "{sql} on {warehouse}");
        }
        for sql in ["a, b", "a; DROP TABLE x", "", "a -- b\n c", "{a b}", "{x"] {
            assert!(matches!(check_expression(sql, "duckdb"), Err(NotAllowed::Syntax { .. })), "{sql}");
        }
    }

    #[test]
    fn registered_tables_are_plain_names() {
        for table in ["orders", "raw.orders", "db.raw.Orders_2"] {
            assert_eq!(check_table(table, "duckdb"), Ok(()), "{table}");
            assert!(is_looked_up(table, "duckdb"), "{table}");
        }
        for table in ["\"data/x.csv\"", "'x.parquet'", "read_csv('x')", "a b", "a.b.c.d", "", "raw."] {
            assert!(matches!(check_table(table, "duckdb"), Err(NotAllowed::TableName { .. })), "{table}");
        }
        for table in ["pg_catalog.pg_authid", "pg_stat_activity", "INFORMATION_SCHEMA.tables", "sqlite_master"] {
            assert!(matches!(check_table(table, "duckdb"), Err(NotAllowed::SystemTable { .. })), "{table}");
        }
    }

    #[test]
    fn path_tables_are_refused() {
        for warehouse in ["spark", "databricks"] {
            for table in ["parquet.x", "delta.x", "CSV.x", "json.x", "text.x", "orc.x", "binaryFile.x"] {
                let refused = matches!(check_table(table, warehouse), Err(NotAllowed::FileTable { .. }));
                assert!(refused && is_looked_up(table, warehouse), "{table} on {warehouse}");
            }
            assert_eq!(check_table("lake.json.orders", warehouse), Ok(()));
        }
        assert_eq!(check_table("json.orders", "postgres"), Ok(()));
        for table in ["events_*", "`events_*`", "@stage", "@stage/x", "parquet.`/x`", "delta.`s3://x`", "file('x')"] {
            for warehouse in ["bigquery", "snowflake", "spark", "clickhouse", "duckdb"] {
                let refused = matches!(check_table(table, warehouse), Err(NotAllowed::TableName { .. }));
                assert!(refused, "{table} on {warehouse}");
            }
        }
    }

    #[test]
    fn long_and_deep_expressions_are_rejected() {
        assert_eq!(check_expression(&"a".repeat(MAX_BYTES + 1), "duckdb"), Err(NotAllowed::TooLong));
        assert_eq!(check_expression(&"1+".repeat(900), "duckdb"), Err(NotAllowed::TooLong));
        let deep = format!("{}1{}", "(".repeat(300), ")".repeat(300));
        assert!(check_expression(&deep, "duckdb").is_err());
    }
}
