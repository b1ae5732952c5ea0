//! The facts of a query that hooks judge: names and typed values, no ids, nothing borrowed.
//!
//! In: nothing; made by `inspect`. Out: plain data for the host's adapter.

use std::sync::Arc;

use crate::query::Test;
use crate::types::LogicalType;

/// The members and conditions of a query, under the cubes' own names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryFacts {
    /// Every cube whose rows the query reads, also those it only joins through, those that a policy of the
    /// project joins, and those whose table is read under another cube's name. Sorted.
    pub cubes: Vec<Arc<str>>,
    /// One entry a member and usage.
    pub members: Vec<MemberUse>,
    /// The query's conditions on rows; ANDed.
    pub filters: Vec<Condition>,
    /// Rows of the page.
    pub limit: u64,
    /// Cubes that are aggregated, or listed, over all time: no condition gives a time of theirs a start.
    pub without_time_bound: Vec<Arc<str>>,
}

/// One use of one member; a member that is used in two ways comes twice.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberUse {
    pub cube: Arc<str>,
    pub member: Arc<str>,
    pub ty: LogicalType,
    pub is_measure: bool,
    pub usage: Usage,
    /// From the member's `meta`.
    pub tags: Vec<Arc<str>>,
    pub pii: bool,
    pub classification: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Usage {
    /// Shown, or grouped by.
    Selected,
    Filtered,
    Ordered,
    /// A condition of a join or of a policy reads it.
    Joined,
}

/// A condition of the query on rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Test(FilterFact),
}

/// One test of one dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterFact {
    /// `orders.status`
    pub member: Arc<str>,
    pub ty: LogicalType,
    pub test: Test,
}
