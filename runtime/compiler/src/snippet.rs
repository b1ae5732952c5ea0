//! A project author's own SQL as a typed node.
//!
//! In: `sql:` text whose Jinja is rendered. Out: a [`Snippet`]: pieces of syntax between resolved
//! references, so that no later stage reads names in text. Bare columns are qualified with their
//! cube, divisions are nodes of their own (they are real and null on zero), comments are gone.

pub(crate) mod aggregate;
pub mod allowed;
mod calculation_words;
pub mod calls;
pub(crate) mod form;
pub(crate) mod grammar;
pub(crate) mod parser_error;
pub(crate) mod stand_in;
mod table_functions;
pub(crate) mod table_names;
mod tables;
mod units;

use std::sync::Arc;

pub use aggregate::is_aggregate;
pub(crate) use calculation_words::likely_word;
pub use grammar::{Problem, column_name, grammar, is_space, offset_of, tokenize};
pub use tables::tables_named_in;
pub(crate) use tables::{CreatedView, created_views, names_in};
pub use units::{is_unit, takes_unit};

use crate::ids::{CubeId, DimensionId, MeasureId, MetricId};
use crate::types::LogicalType;

/// A name of the warehouse as the author wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnName {
    pub text: Arc<str>,
    /// The author quoted it, so its case matters.
    pub quoted: bool,
}

/// An expression of the author's, ready to be printed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snippet {
    pub parts: Vec<SqlPart>,
    /// A column, a literal, a call: needs no parentheses as an operand.
    pub is_atomic: bool,
    /// By its form no row can make it fail, if its dimensions and the types of callers' values don't.
    pub is_infallible: bool,
    /// It holds a query of its own, which may read anything.
    pub has_query: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SqlPart {
    Text(Box<str>),
    /// `amount` or `{orders}.amount`.
    Column {
        cube: CubeId,
        name: ColumnName,
    },
    /// `{status}` or `{customers.region}`: that dimension's own expression.
    Dimension(DimensionId),
    /// `{revenue}`: only in `number` measures and metrics.
    Measure(MeasureId),
    /// `cost`: only in metrics.
    Metric(MetricId),
    /// `SUM(a)` inside a `number`: a hidden aggregate over the own cube.
    Aggregate(Box<Aggregate>),
    /// `{{ user.… }}`: only in policies. Bound when the caller is known; `is_list` behind `IN`.
    User(UserPart),
    /// `a / b`: real division, null where `b` is zero.
    Divide(Box<Snippet>, Box<Snippet>),
}

/// A caller's value inside a policy's condition.
#[derive(Debug, Clone, PartialEq)]
pub struct UserPart {
    pub value: UserValue,
    pub is_list: bool,
    /// The other operand of its comparison; `None` inside a call, or beside another value of the caller.
    pub compared: Option<Box<Compared>>,
}

/// The other side of a comparison. Its type is what the caller's value is read as, so that no engine
/// casts one of them as it likes (semantics, rule 13).
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    pub sql: Snippet,
    /// As the warehouse told.
    pub ty: LogicalType,
}

/// The property of a caller that a policy refers to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UserValue {
    Id,
    Email,
    Roles,
    Groups,
    AuthMethod,
    Attribute(Arc<str>),
}

/// An aggregation over the rows of the measure's own cube.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub function: AggregateFunction,
    /// `None` only for `count`: rows are counted.
    pub argument: Option<Snippet>,
    /// Only rows that pass all of these are measured.
    pub filters: Vec<Snippet>,
    /// Type of `argument`, as the warehouse told; `Unknown` until types are read.
    pub argument_type: LogicalType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    Count,
    CountDistinct,
    CountDistinctApprox,
    Sum,
    Avg,
    Min,
    Max,
}

impl Snippet {
    /// Visits every part, also inside divisions, in reading order.
    pub fn for_each<'a>(&'a self, visit: &mut impl FnMut(&'a SqlPart)) {
        for part in &self.parts {
            visit(part);
            if let SqlPart::Divide(left, right) = part {
                left.for_each(visit);
                right.for_each(visit);
            }
        }
    }

    /// The caller's values in it, in reading order; only conditions of policies have any.
    pub fn user_parts(&self) -> Vec<&UserPart> {
        let mut found = Vec::new();
        self.for_each(&mut |part| {
            if let SqlPart::User(user) = part {
                found.push(user);
            }
        });
        found
    }

    /// The same, to be typed. A condition has no divisions of ours to look into.
    pub(crate) fn user_parts_mut(&mut self) -> impl Iterator<Item = &mut UserPart> {
        self.parts.iter_mut().filter_map(|part| match part {
            SqlPart::User(user) => Some(user),
            _ => None,
        })
    }
}
