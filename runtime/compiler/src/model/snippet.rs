//! A project author's own SQL as a typed node.
//!
//! In: `sql:` text whose Jinja is rendered. Out: a [`Snippet`]: pieces of syntax between resolved
//! references, so that no later stage reads names in text. Bare columns are qualified with their
//! cube, divisions are nodes of their own (they are real and null on zero), comments are gone.

use std::sync::Arc;

use super::{Aggregate, CubeId, DimensionId, MeasureId, MetricId};
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
    pub is_total: bool,
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
    /// What a comparison sets it beside; `None` inside a call, or beside another of the caller's values.
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

/// What of a caller a policy speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UserValue {
    Id,
    Email,
    Roles,
    Groups,
    AuthMethod,
    Attribute(Arc<str>),
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
    pub(super) fn user_parts_mut(&mut self) -> impl Iterator<Item = &mut UserPart> {
        self.parts.iter_mut().filter_map(|part| match part {
            SqlPart::User(user) => Some(user),
            _ => None,
        })
    }
}
