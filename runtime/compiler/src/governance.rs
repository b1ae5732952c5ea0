//! The facts of a query that governance hooks see, and the obligations that hooks impose.
//!
//! In: a query and its caller; then the [`Obligations`] of each hook's response. Out: [`QueryFacts`] for the hooks,
//! and an [`Authorized`](crate::Authorized): the caller with everything that narrows the query, which every function
//! that produces SQL takes. Obligations only narrow: filters are ANDed, the strictest mask and the lowest limit win.
//! Not here: plugins, the choice of hooks, and the error that a denied caller sees.

mod check;
mod condition;
mod facts;
mod inspect;

use std::sync::Arc;

pub use check::{Checked, MAX_CONDITION_DEPTH, MAX_CONDITION_NODES, ObligationFault};
pub use facts::{Condition, FilterFact, MemberUse, QueryFacts, Usage};
pub use inspect::{Inspection, inspect};

use crate::types::{Granularity, Value};

/// The obligations of one hook, with the names that the hook used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Obligations {
    pub row_filters: Vec<RowFilter>,
    pub masks: Vec<MemberMask>,
    pub max_rows: Option<u64>,
    /// True if the query must bound a time of every cube that it aggregates.
    pub require_time_filter: bool,
}

/// A filter: the caller sees only rows of `cube` that meet the condition.
#[derive(Debug, Clone, PartialEq)]
pub struct RowFilter {
    pub cube: Arc<str>,
    pub condition: HookCondition,
}

/// A condition in two-valued logic over dimensions of one cube.
#[derive(Debug, Clone, PartialEq)]
pub enum HookCondition {
    All(Vec<HookCondition>),
    Any(Vec<HookCondition>),
    Not(Box<HookCondition>),
    Always(bool),
    Test {
        /// A dimension of the cube, with or without the cube's name as a prefix.
        member: Arc<str>,
        operator: TestOperator,
        values: Vec<Value>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestOperator {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Lower and upper bound, both inclusive.
    Between,
    InList,
    IsNull,
    IsNotNull,
    Contains,
    StartsWith,
    EndsWith,
}

impl TestOperator {
    /// Returns the name of the operator in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            TestOperator::Eq => "eq",
            TestOperator::Ne => "ne",
            TestOperator::Lt => "lt",
            TestOperator::Le => "le",
            TestOperator::Gt => "gt",
            TestOperator::Ge => "ge",
            TestOperator::Between => "between",
            TestOperator::InList => "in-list",
            TestOperator::IsNull => "is-null",
            TestOperator::IsNotNull => "is-not-null",
            TestOperator::Contains => "contains",
            TestOperator::StartsWith => "starts-with",
            TestOperator::EndsWith => "ends-with",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct MemberMask {
    pub cube: Arc<str>,
    pub member: Arc<str>,
    pub mask: HookMask,
}

/// The replacement of a value, strictest first.
#[derive(Debug, Clone, PartialEq)]
pub enum HookMask {
    /// The member does not exist for the caller.
    DropColumn,
    Nullify,
    /// A constant of the member's type; null if the constant does not fit the type.
    Fixed(Arc<str>),
    Hash,
    Partial,
    /// Truncates a time; null for members of other types.
    TruncateDate(Granularity),
}
