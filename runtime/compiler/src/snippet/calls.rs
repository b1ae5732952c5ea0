//! Corrects calls that the parser interprets differently from the warehouse.
//!
//! In: a tree as it was parsed. Out: a corrected tree of the same SQL. In DuckDB, `f(a = 1)` is a comparison and not a
//! named argument; `a -> b` reads a field of a document, unless the function takes a lambda there. Without the
//! correction, the search for columns would miss `a`, and masks would not apply to it.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments, Ident,
    LambdaFunction, LambdaFunctionParameter, LambdaSyntax, ObjectName, OneOrManyWithParens, VisitMut, VisitorMut,
};
use sqlparser::dialect::{Dialect, DuckDbDialect, MySqlDialect, PostgreSqlDialect, RedshiftSqlDialect, SQLiteDialect};

/// The schemas of the warehouse itself: in `main.f(x)`, `main` is not a column.
const SCHEMAS: [&str; 3] = ["main", "pg_catalog", "system"];

/// Corrects all calls of a tree to match how the warehouse reads them.
pub fn read_as_engine(tree: &mut impl VisitMut, dialect: &dyn Dialect) {
    let is_duckdb = dialect.is::<DuckDbDialect>();
    let looks_into_documents = is_duckdb
        || dialect.is::<PostgreSqlDialect>()
        || dialect.is::<RedshiftSqlDialect>()
        || dialect.is::<MySqlDialect>()
        || dialect.is::<SQLiteDialect>();
    let reading = if !looks_into_documents {
        Arrows::Lambdas
    } else if is_duckdb {
        Arrows::Both
    } else {
        Arrows::Documents
    };
    let _ = tree.visit(&mut Settle { arrows: reading, lambdas: HashSet::new() });
}

/// Returns whether the dialect reads `email.upper()` as `upper(email)`.
pub(crate) fn has_methods(dialect: &dyn Dialect) -> bool {
    dialect.is::<DuckDbDialect>()
}

/// Returns the names before a method's name. `None` if there are none, or if the first is a schema of the warehouse.
pub fn method_of(name: &ObjectName) -> Option<Vec<&Ident>> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    let (_, of) = parts.split_last().filter(|(_, of)| !of.is_empty())?;
    let is_schema =
        of[0].quote_style.is_none() && SCHEMAS.iter().any(|schema| of[0].value.eq_ignore_ascii_case(schema));
    (!is_schema).then(|| of.to_vec())
}

/// Returns whether a function selects columns by a pattern.
pub fn picks_columns(name: &ObjectName) -> bool {
    name.0.last().and_then(|part| part.as_ident()).is_some_and(|name| name.value.eq_ignore_ascii_case("columns"))
}

/// The meaning of `a -> b`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrows {
    Lambdas,
    Documents,
    /// A lambda after the first argument of a function that takes one, else a field of a document.
    Both,
}

struct Settle {
    arrows: Arrows,
    /// The addresses of lambdas in the tree, which does not move during the visit.
    lambdas: HashSet<usize>,
}

impl Settle {
    fn call(&mut self, function: &mut Function) {
        let name = function.name.0.last().and_then(|part| part.as_ident());
        let takes_lambda = name.is_some_and(|name| takes_lambda(&name.value.to_ascii_lowercase()));
        let FunctionArguments::List(list) = &mut function.args else { return };
        for (index, arg) in list.args.iter_mut().enumerate() {
            if let FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(value),
                operator: FunctionArgOperator::Equals,
            } = arg
            {
                let nothing = Expr::Identifier(Ident::new(""));
                let compared = compared(name.clone(), std::mem::replace(value, nothing));
                *arg = FunctionArg::Unnamed(FunctionArgExpr::Expr(compared));
            }
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else { continue };
            if !takes_lambda || index == 0 {
                continue;
            }
            if self.arrows == Arrows::Lambdas {
                to_lambda(expr);
            }
            if matches!(expr, Expr::Lambda(_)) {
                self.lambdas.insert(std::ptr::from_ref(expr) as usize);
            }
        }
    }
}

impl VisitorMut for Settle {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let at = std::ptr::from_ref(expr) as usize;
        match expr {
            Expr::Function(function) => self.call(function),
            Expr::Lambda(lambda)
                if self.arrows == Arrows::Both
                    && lambda.syntax == LambdaSyntax::Arrow
                    && !self.lambdas.contains(&at) =>
            {
                *expr = to_arrow(lambda);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Corrects `a = b AND c`, which was parsed as a named argument `a` with the value `b AND c`.
fn compared(name: Ident, value: Expr) -> Expr {
    let (mut rest, mut first) = (Vec::new(), value);
    loop {
        match first {
            Expr::BinaryOp {
                left,
                op: op @ (BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor),
                right,
            } => {
                rest.push((op, right));
                first = *left;
            }
            other => {
                first = other;
                break;
            }
        }
    }
    let left = Box::new(Expr::Identifier(name));
    let compared = Expr::BinaryOp { left, op: BinaryOperator::Eq, right: Box::new(first) };
    rest.into_iter().rev().fold(compared, |left, (op, right)| Expr::BinaryOp { left: Box::new(left), op, right })
}

fn to_arrow(lambda: &mut LambdaFunction) -> Expr {
    let name = |parameter: &LambdaFunctionParameter| Expr::Identifier(parameter.name.clone());
    let left = match &lambda.params {
        OneOrManyWithParens::One(parameter) => name(parameter),
        OneOrManyWithParens::Many(parameters) => Expr::Tuple(parameters.iter().map(name).collect()),
    };
    let body = std::mem::replace(&mut *lambda.body, Expr::Identifier(Ident::new("")));
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Arrow, right: Box::new(body) }
}

/// Turns `x -> …` into a lambda. The parser gives the arrow the highest precedence: it reads `x -> x + 1` as
/// `(x -> x) + 1`, so the parameters are at the leftmost leaf.
fn to_lambda(expr: &mut Expr) {
    let mut at = &mut *expr;
    let params = loop {
        match at {
            Expr::BinaryOp { left, op: BinaryOperator::Arrow, right } => {
                let Some(params) = parameters(left) else { return };
                let body = std::mem::replace(&mut **right, Expr::Identifier(Ident::new("")));
                *at = body;
                break params;
            }
            Expr::BinaryOp { left, .. } => at = left,
            _ => return,
        }
    };
    let body = Box::new(std::mem::replace(expr, Expr::Identifier(Ident::new(""))));
    *expr = Expr::Lambda(LambdaFunction { params, body, syntax: LambdaSyntax::Arrow });
}

fn parameters(names: &Expr) -> Option<OneOrManyWithParens<LambdaFunctionParameter>> {
    let parameter = |name: &Expr| match name {
        Expr::Identifier(name) => Some(LambdaFunctionParameter { name: name.clone(), data_type: None }),
        _ => None,
    };
    match names {
        Expr::Tuple(names) => names.iter().map(parameter).collect::<Option<_>>().map(OneOrManyWithParens::Many),
        Expr::Nested(name) => parameter(name).map(|name| OneOrManyWithParens::Many(vec![name])),
        name => parameter(name).map(OneOrManyWithParens::One),
    }
}

/// Returns whether an argument of the function may be a lambda. The function's name is in lower case.
fn takes_lambda(function: &str) -> bool {
    const TAKE_LAMBDA: [&str; 22] = [
        "any_match",
        "all_match",
        "apply",
        "array_apply",
        "array_filter",
        "array_reduce",
        "array_sort",
        "array_transform",
        "exists",
        "filter",
        "forall",
        "list_apply",
        "list_filter",
        "list_reduce",
        "list_transform",
        "map_filter",
        "none_match",
        "reduce",
        "transform",
        "transform_keys",
        "transform_values",
        "zip_with",
    ];
    TAKE_LAMBDA.contains(&function)
}

#[cfg(test)]
mod tests {
    use sqlparser::parser::Parser;

    use super::*;
    use crate::snippet::grammar;

    /// Returns the corrected SQL, and the names in it that are not parameters.
    fn settled(sql: &str, warehouse: &str) -> (String, Vec<String>) {
        let dialect = grammar(warehouse);
        let mut expr = Parser::new(&*dialect).try_with_sql(sql).unwrap().parse_expr().unwrap();
        read_as_engine(&mut expr, &*dialect);
        let mut names = Vec::new();
        let _ = sqlparser::ast::visit_expressions(&expr, |expr| {
            if let Expr::Identifier(ident) = expr {
                names.push(ident.value.clone());
            }
            ControlFlow::<()>::Continue(())
        });
        (expr.to_string(), names)
    }

    #[test]
    fn rewritten_calls_keep_their_text_and_columns() {
        for (warehouse, sql, names) in [
            ("duckdb", "if(status = 'paid', amount, 0)", &["status", "amount"][..]),
            ("duckdb", "if(a = 1 AND b = 2 OR c, d, e = f)", &["a", "b", "c", "d", "e", "f"]),
            ("duckdb", "coalesce(\"A\" = 'x', false)", &["A"]),
            ("duckdb", "struct_pack(a := b)", &["b"]),
            ("duckdb", "j -> '$.k'", &["j"]),
            ("duckdb", "upper(j -> '$.k')", &["j"]),
            ("duckdb", "list_filter(j -> '$.k', x -> x > rate)", &["j", "x", "rate"]),
            ("duckdb", "list_reduce(items, (a, b) -> a + b + c)", &["items", "a", "b", "c"]),
            ("duckdb", "list_transform(items, x -> upper(j -> '$.k'))", &["items", "j"]),
            ("postgres", "filter(items, j -> 'k')", &["items", "j"]),
            ("trino", "transform(items, x -> x + rate)", &["items", "x", "rate"]),
            ("trino", "reduce(items, (s, x) -> s + x)", &["items", "s", "x"]),
        ] {
            let (text, found) = settled(sql, warehouse);
            assert_eq!((text.as_str(), found), (sql, names.iter().map(|name| (*name).to_owned()).collect()), "{sql}");
        }
    }

    #[test]
    fn arrows_are_lambdas_only_in_functions_that_take_them() {
        let is_lambda = |sql: &str, warehouse: &str, index: usize| {
            let dialect = grammar(warehouse);
            let mut expr = Parser::new(&*dialect).try_with_sql(sql).unwrap().parse_expr().unwrap();
            read_as_engine(&mut expr, &*dialect);
            let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = expr else { panic!("{sql}") };
            matches!(list.args[index], FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Lambda(_))))
        };
        assert!(is_lambda("list_filter(items, x -> x > 1)", "duckdb", 1));
        assert!(!is_lambda("list_filter(j -> 'k', x -> x > 1)", "duckdb", 0));
        assert!(!is_lambda("coalesce(1, j -> 'k')", "duckdb", 1));
        assert!(is_lambda("transform(items, x -> x + 1 > 2)", "trino", 1));
        assert!(!is_lambda("filter(items, x -> 'k')", "postgres", 1));
    }
}
