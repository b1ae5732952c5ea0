//! SQL as a tree. Text exists only in `print`.
//!
//! In: nothing; made by `lower`. Out: what `print` walks. Nodes borrow from the model and the plan.

use crate::model::{ColumnName, Cube};
use crate::sql::profile::Op;
use crate::types::{Granularity, LogicalType, Value};

/// One SELECT, or the union of several.
#[derive(Debug, Clone)]
pub(crate) enum Query<'a> {
    Select(Box<Select<'a>>),
    UnionAll(Vec<Select<'a>>),
}

#[derive(Debug, Clone)]
pub(crate) struct Select<'a> {
    pub items: Vec<(SqlExpr<'a>, Name<'a>)>,
    pub from: Source<'a>,
    pub joins: Vec<JoinClause<'a>>,
    /// ANDed.
    pub filters: Vec<SqlExpr<'a>>,
    /// Groups by the first so many items.
    pub group_by: usize,
    /// ANDed.
    pub having: Vec<SqlExpr<'a>>,
    pub order: Vec<OrderItem<'a>>,
    pub page: Option<Page>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub limit: u64,
    pub offset: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum Source<'a> {
    /// A cube's rows, under the cube's name.
    Cube(&'a Cube),
    Derived(Box<Query<'a>>, &'static str),
}

#[derive(Debug, Clone)]
pub(crate) struct JoinClause<'a> {
    pub cube: &'a Cube,
    pub is_inner: bool,
    /// ANDed.
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
    /// `g0`, `a1`: a group or an aggregate between two levels.
    Numbered(char, usize),
    Fixed(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeFunction {
    Trunc,
    TruncInstant,
}

#[derive(Debug, Clone)]
pub(crate) enum SqlExpr<'a> {
    /// The author's own syntax.
    Text(&'a str),
    /// The author's column, of a cube in scope.
    Column {
        cube: &'a Cube,
        name: &'a ColumnName,
    },
    /// A column of a derived table.
    Derived(&'static str, Name<'a>),
    Sequence {
        parts: Vec<SqlExpr<'a>>,
        is_atomic: bool,
    },
    Param(&'a Value),
    /// A string that the host vouches for: a zone's name.
    String(&'a str),
    Integer(u64),
    /// With a type where the engine would guess another.
    Null(Option<LogicalType>),
    /// The engine's name of a type, in a cast.
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
    InList {
        operand: Box<SqlExpr<'a>>,
        values: &'a [Value],
        is_negated: bool,
    },
    /// Only rows that pass are aggregated.
    FilteredAggregate {
        call: Box<SqlExpr<'a>>,
        filters: Vec<SqlExpr<'a>>,
    },
    /// `CASE WHEN all THEN value END`
    When {
        conditions: Vec<SqlExpr<'a>>,
        value: Box<SqlExpr<'a>>,
    },
    /// `count(*) OVER ()`
    CountOverAll,
}

impl<'a> SqlExpr<'a> {
    pub(crate) fn op(op: Op, args: Vec<SqlExpr<'a>>) -> Self {
        SqlExpr::Op { op, ty: None, args }
    }
}
