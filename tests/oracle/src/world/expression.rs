//! Expressions over rows: printed as an author's SQL, and evaluated by SQL's three-valued logic.
//!
//! In: an [`Expr`]. Out: SQL for the project, or a value for one row. Printing and evaluation share only the tree.

use serde::{Deserialize, Serialize};

use super::tables::{literal, quoted};
use super::{Cell, ColumnType, Cube, World};
use crate::value::{Number, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// A column of a cube; `None` for the expression's own cube.
    Column {
        cube: Option<String>,
        column: usize,
    },
    /// A dimension in SQL: `{dimension}` or `{cube.dimension}`.
    Member {
        cube: Option<String>,
        name: String,
    },
    Literal(Cell),
    Coalesce(Box<Expr>, Cell),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    IsNull(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    /// `CASE WHEN … THEN … ELSE … END`
    Case(Box<Expr>, Box<Expr>, Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The joined rows over which an expression is evaluated.
pub trait Rows {
    /// Returns the row of a cube, or of the expression's own cube for `None`. Returns `None` if no row joins.
    fn row(&self, cube: Option<&str>) -> Option<(&Cube, &[Cell])>;
    /// Returns the same rows for the expressions of another cube.
    fn of(&self, cube: Option<&str>) -> Box<dyn Rows + '_>;
}

impl Arithmetic {
    pub fn as_str(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
        }
    }

    pub fn apply(self, left: Number, right: Number) -> Number {
        match self {
            Arithmetic::Add => left.plus(right),
            Arithmetic::Subtract => left.minus(right),
            Arithmetic::Multiply => left.times(right),
        }
    }
}

impl Comparison {
    pub const ALL: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Expr {
    pub fn own(column: usize) -> Expr {
        Expr::Column { cube: None, column }
    }

    /// Returns the SQL of the expression in the files of the cube `own`.
    pub fn sql(&self, world: &World, own: &Cube) -> String {
        let two = |left: &Expr, word: &str, right: &Expr| {
            format!("({} {word} {})", left.sql(world, own), right.sql(world, own))
        };
        match self {
            Expr::Column { cube: None, column } => {
                let name = quoted(&own.columns[*column].name);
                // The three notations of a column are used in turn.
                match column % 3 {
                    0 => name,
                    1 => format!("{{CUBE}}.{name}"),
                    _ => format!("{{{}}}.{name}", own.name),
                }
            }
            Expr::Column { cube: Some(cube), column } => {
                let columns = world.behind(cube).map(|target| &target.columns);
                let name = columns.and_then(|columns| columns.get(*column)).map_or("?", |column| &column.name);
                format!("{{{cube}}}.{}", quoted(name))
            }
            Expr::Member { cube: None, name } => format!("{{{name}}}"),
            Expr::Member { cube: Some(cube), name } => format!("{{{cube}.{name}}}"),
            Expr::Literal(cell) => literal(cell),
            Expr::Coalesce(inner, cell) => format!("COALESCE({}, {})", inner.sql(world, own), literal(cell)),
            Expr::Arithmetic(op, left, right) => two(left, op.as_str(), right),
            Expr::Compare(op, left, right) => two(left, op.as_str(), right),
            Expr::IsNull(inner) => format!("({} IS NULL)", inner.sql(world, own)),
            Expr::And(left, right) => two(left, "AND", right),
            Expr::Or(left, right) => two(left, "OR", right),
            Expr::Not(inner) => format!("(NOT {})", inner.sql(world, own)),
            Expr::Case(condition, then, other) => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                condition.sql(world, own),
                then.sql(world, own),
                other.sql(world, own)
            ),
        }
    }

    /// Returns the operands of the expression.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Column { .. } | Expr::Member { .. } | Expr::Literal(_) => Vec::new(),
            Expr::Coalesce(inner, _) | Expr::IsNull(inner) | Expr::Not(inner) => vec![inner],
            Expr::Arithmetic(_, left, right)
            | Expr::Compare(_, left, right)
            | Expr::And(left, right)
            | Expr::Or(left, right) => vec![left, right],
            Expr::Case(condition, then, other) => vec![condition, then, other],
        }
    }

    pub fn eval(&self, rows: &dyn Rows) -> Value {
        let truth = |value: Option<bool>| value.map_or(Value::Null, Value::Bool);
        match self {
            Expr::Column { cube, column } => match rows.row(cube.as_deref()) {
                Some((of, row)) => row[*column].value(of.columns[*column].ty, of.is_utc(*column)),
                None => Value::Null,
            },
            Expr::Member { cube, name } => match rows.row(cube.as_deref()) {
                // If no row of a cube joins, its dimensions are null, whatever their SQL is.
                Some((of, _)) => of.dimension(name).map_or(Value::Null, |d| d.sql.eval(&*rows.of(cube.as_deref()))),
                None => Value::Null,
            },
            Expr::Literal(cell) => cell.value(ColumnType::Timestamp, false),
            Expr::Coalesce(inner, cell) => match inner.eval(rows) {
                Value::Null => cell.value(ColumnType::Timestamp, false),
                value => value,
            },
            Expr::Arithmetic(op, left, right) => match (left.eval(rows), right.eval(rows)) {
                (Value::Number(left), Value::Number(right)) => Value::Number(op.apply(left, right)),
                _ => Value::Null,
            },
            Expr::Compare(op, left, right) => match (left.eval(rows), right.eval(rows)) {
                (Value::Null, _) | (_, Value::Null) => Value::Null,
                // SQL of an author compares times as they are stored.
                (left, right) => Value::Bool(op.holds(match (left.micros(), right.micros()) {
                    (Some(left), Some(right)) => left.cmp(&right),
                    _ => left.cmp(&right),
                })),
            },
            Expr::IsNull(inner) => Value::Bool(inner.eval(rows).is_null()),
            Expr::And(left, right) => truth(match (left.truth(rows), right.truth(rows)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            }),
            Expr::Or(left, right) => truth(match (left.truth(rows), right.truth(rows)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            }),
            Expr::Not(inner) => truth(inner.truth(rows).map(|truth| !truth)),
            Expr::Case(condition, then, other) => match condition.truth(rows) {
                Some(true) => then.eval(rows),
                _ => other.eval(rows),
            },
        }
    }

    fn truth(&self, rows: &dyn Rows) -> Option<bool> {
        match self.eval(rows) {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Evaluates the expression as a condition, which null does not meet.
    pub fn passes(&self, rows: &dyn Rows) -> bool {
        self.truth(rows) == Some(true)
    }
}
