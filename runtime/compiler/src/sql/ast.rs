//! The tree of a SQL statement. Text exists only in `print`.
//!
//! In: a plan, which `lower` converts. Out: the input of `print`. Nodes borrow from the model and the plan.

use crate::model::{ColumnName, Cube};
use crate::snippet::Fraction;
use crate::sql::dialect_profile::Op;
use crate::types::{Granularity, LogicalType, Value};

/// One SELECT, or the union of several.
#[derive(Debug, Clone)]
pub(crate) enum Query<'a> {
    Select(Box<Select<'a>>),
    UnionAll(Vec<Select<'a>>),
}

#[derive(Debug, Clone)]
pub(crate) struct Select<'a> {
    /// Named queries that the select may read from.
    pub with: Vec<(&'static str, Query<'a>)>,
    pub items: Vec<(SqlExpr<'a>, Name<'a>)>,
    pub from: Option<Source<'a>>,
    pub joins: Vec<JoinClause<'a>>,
    /// The conditions of WHERE, combined with AND.
    pub filters: Vec<SqlExpr<'a>>,
    /// The number of leading items to group by.
    pub group_by: usize,
    /// The conditions of HAVING, combined with AND.
    pub having: Vec<SqlExpr<'a>>,
    pub order: Vec<OrderItem<'a>>,
    pub page: Option<Page>,
}

impl<'a> Select<'a> {
    /// Selects all rows of a source without groups.
    pub(crate) fn new(items: Vec<(SqlExpr<'a>, Name<'a>)>, from: impl Into<Option<Source<'a>>>) -> Self {
        Select {
            with: Vec::new(),
            items,
            from: from.into(),
            joins: Vec::new(),
            filters: Vec::new(),
            group_by: 0,
            having: Vec::new(),
            order: Vec::new(),
            page: None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub limit: u64,
    pub offset: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum Source<'a> {
    /// A cube's rows.
    Cube {
        cube: &'a Cube,
        alias: &'a str,
    },
    /// The rows of a table, by the parts of its name.
    Table {
        name: &'a [ColumnName],
        alias: &'a str,
    },
    /// The rows of a query over a cube.
    Rows {
        query: Box<Query<'a>>,
        alias: &'a str,
    },
    /// Rows with an alias, and with a column that numbers them.
    Numbered {
        source: Box<Source<'a>>,
        alias: &'a str,
        column: &'static str,
    },
    Derived(Box<Query<'a>>, &'static str),
    /// A reference to a CTE of the statement, with an alias.
    Named {
        name: &'static str,
        alias: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Left,
    Inner,
    Cross,
}

#[derive(Debug, Clone)]
pub(crate) struct JoinClause<'a> {
    pub source: Source<'a>,
    pub kind: JoinKind,
    /// The conditions, combined with AND. A cross join has none.
    pub on: Vec<SqlExpr<'a>>,
}

#[derive(Debug, Clone)]
pub(crate) struct OrderItem<'a> {
    pub by: OrderBy<'a>,
    pub descending: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum OrderBy<'a> {
    /// The n-th item, from 1.
    Item(usize),
    Expression(SqlExpr<'a>),
}

/// A column's name in a select list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    /// The client's own key.
    Key(&'a str),
    /// `g0`, `a1`: a group or an aggregate that is passed from an inner query to an outer one.
    Numbered(char, usize),
    Fixed(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeFunction {
    Trunc,
    TruncInstant,
    /// The time that is a number of buckets later.
    Add,
}

#[derive(Debug, Clone)]
pub(crate) enum SqlExpr<'a> {
    /// The author's own syntax.
    Text(&'a str),
    /// An author's column, of rows in scope.
    Column {
        alias: &'a str,
        name: &'a ColumnName,
    },
    /// A function of the dialect, by the name of its template.
    Call {
        name: &'static str,
        args: Vec<SqlExpr<'a>>,
    },
    /// A column of a derived table.
    Derived(&'static str, Name<'a>),
    /// All columns of some rows.
    Star(&'a str),
    /// A column that the host added to a cube's rows.
    Added {
        alias: &'a str,
        column: &'static str,
    },
    Sequence {
        parts: Vec<SqlExpr<'a>>,
        is_atomic: bool,
    },
    Param(&'a Value),
    /// A value that the compiler computed. It is bound like any other.
    Value(Value),
    /// Bound values between commas, at least one. `is_compared`: strings are compared by code point.
    ParamList {
        values: &'a [Value],
        is_compared: bool,
    },
    /// A string that does not come from a caller, such as the name of a time zone.
    String(&'a str),
    Integer(i64),
    /// A number that is printed as a literal. It contains no string of a caller.
    Number(&'a Value),
    Fraction(Fraction),
    /// Null, with a type if the engine would infer a different type.
    Null(Option<LogicalType>),
    /// The engine's name of a type, for a cast.
    TypeName(LogicalType),
    Boolean(bool),
    CountRows,
    Op {
        op: Op,
        ty: Option<LogicalType>,
        args: Vec<SqlExpr<'a>>,
    },
    Time {
        granularity: Granularity,
        function: TimeFunction,
        args: Vec<SqlExpr<'a>>,
    },
    And(Vec<SqlExpr<'a>>),
    Or(Vec<SqlExpr<'a>>),
    /// `operand IN (query)`
    InQuery {
        operand: Box<SqlExpr<'a>>,
        query: Box<Query<'a>>,
    },
    InList {
        operand: Box<SqlExpr<'a>>,
        values: &'a [Value],
        is_negated: bool,
    },
    /// An aggregate of only those rows that pass the filters.
    FilteredAggregate {
        call: Box<SqlExpr<'a>>,
        filters: Vec<SqlExpr<'a>>,
    },
    /// `CASE WHEN all THEN value ELSE otherwise END`
    When {
        conditions: Vec<SqlExpr<'a>>,
        value: Box<SqlExpr<'a>>,
        otherwise: Option<Box<SqlExpr<'a>>>,
    },
    /// `sum(…) OVER (PARTITION BY … ORDER BY …)`: over all rows up to this one, or over all rows if there are no order
    /// keys.
    SumOver {
        argument: Box<SqlExpr<'a>>,
        partition: Vec<SqlExpr<'a>>,
        order: Vec<SqlExpr<'a>>,
    },
    /// `count(*) OVER ()`
    CountOverAll,
    /// `row_number() OVER (PARTITION BY … ORDER BY …)`
    RowNumber {
        partition: Vec<SqlExpr<'a>>,
        order: Vec<SqlExpr<'a>>,
    },
}

impl<'a> SqlExpr<'a> {
    pub(crate) fn op(op: Op, args: Vec<SqlExpr<'a>>) -> Self {
        SqlExpr::Op { op, ty: None, args }
    }

    pub(crate) fn when(conditions: Vec<SqlExpr<'a>>, value: SqlExpr<'a>, otherwise: Option<SqlExpr<'a>>) -> Self {
        SqlExpr::When { conditions, value: Box::new(value), otherwise: otherwise.map(Box::new) }
    }

    pub(crate) fn cast(self, ty: LogicalType) -> Self {
        SqlExpr::op(Op::Cast, vec![self, SqlExpr::TypeName(ty)])
    }

    /// Converts an expression of type `from` if `ty` is a different type. A dialect can have a template of its own for
    /// casts from `from`.
    pub(crate) fn cast_from(self, from: LogicalType, ty: LogicalType) -> Self {
        match from == ty {
            true => self,
            false => SqlExpr::Op { op: Op::Cast, ty: Some(from), args: vec![self, SqlExpr::TypeName(ty)] },
        }
    }
}
