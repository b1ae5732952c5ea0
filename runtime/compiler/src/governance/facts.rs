//! The facts of a query that hooks decide on: names and typed values, without ids and borrowed data.
//!
//! In: facts that `inspect` collects. Out: plain data for the host's adapter.

use std::sync::Arc;

use crate::query::Test;
use crate::types::LogicalType;

/// The members and conditions of a query. Aliases appear under the names of their cubes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryFacts {
    /// Every cube whose rows the query reads, sorted. This includes cubes that it only joins through, cubes that a
    /// policy joins, and other cubes over the tables that it reads.
    pub cubes: Vec<Arc<str>>,
    /// One entry for each member and usage.
    pub members: Vec<MemberUse>,
    /// The query's conditions on rows, which are ANDed.
    pub filters: Vec<Condition>,
    /// The number of rows of a page.
    pub limit: u64,
    /// The cubes that are aggregated or listed without a lower bound on any of their time dimensions.
    pub without_time_bound: Vec<Arc<str>>,
    /// The partitioned cubes that are aggregated or listed without a filter on a partition, with their partitions as
    /// `cube.dimension`.
    pub without_partition_filter: Vec<Arc<str>>,
}

/// One use of one member. A member that is used in two ways occurs twice.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberUse {
    pub cube: Arc<str>,
    pub member: Arc<str>,
    pub ty: LogicalType,
    pub is_measure: bool,
    pub usage: Usage,
    /// The tags from the member's `meta`.
    pub tags: Vec<Arc<str>>,
    pub pii: bool,
    pub classification: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Usage {
    /// The query shows the member, or groups by it.
    Selected,
    Filtered,
    Ordered,
    /// A condition of a join or a policy reads the member.
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
    /// The member, such as `orders.status`.
    pub member: Arc<str>,
    pub ty: LogicalType,
    pub test: Test,
}
