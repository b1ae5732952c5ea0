//! The effects of policies on cubes, ready to be applied to a caller.
//!
//! In: nothing; made by `policies`. Out: what `security::Access` matches with a caller. A policy stands
//! once for each cube that it reaches: those it names, their aliases, and cubes over the same table.

use std::sync::Arc;

use super::{CubeId, DimensionId, Member, Snippet, SqlPart};
use crate::diagnostic::Span;
use crate::project::PolicyCondition;
use crate::types::{Granularity, Value};

#[derive(Debug, PartialEq)]
pub struct Policy {
    pub name: Arc<str>,
    /// `None`: everyone.
    pub when: Option<PolicyCondition>,
    pub cubes: Vec<CubePolicy>,
    /// The place of its row filter.
    pub row_filter_span: Option<Span>,
    /// The place of each masked member's name.
    pub mask_spans: Vec<(Arc<str>, Span)>,
}

/// A policy's effect on one cube.
#[derive(Debug, PartialEq)]
pub struct CubePolicy {
    pub cube: CubeId,
    /// The cube reads what the policy protects in a way that it can't be applied to.
    pub is_closed: bool,
    /// Only rows that pass exist for the caller.
    pub row_filter: Option<Snippet>,
    pub masks: Vec<(DimensionId, Mask)>,
    pub denied: Vec<Member>,
    /// Measures over masked columns stay open.
    pub allow_aggregate: bool,
}

/// The replacement of a value for a caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Mask {
    Null,
    Constant(Value),
    Hash,
    Partial,
    /// A time's bucket; only hooks say it.
    Truncate(Granularity),
    Sql(Snippet),
}

impl Mask {
    /// Returns whether all rows get the same value.
    pub fn is_constant(&self) -> bool {
        match self {
            Mask::Null | Mask::Constant(_) => true,
            Mask::Hash | Mask::Partial | Mask::Truncate(_) => false,
            Mask::Sql(sql) => {
                let is_same = |part: &SqlPart| matches!(part, SqlPart::Text(_) | SqlPart::User(_));
                !sql.has_query && sql.parts.iter().all(is_same)
            }
        }
    }

    /// The strictest of several wins: null, constant, hash, partial, a coarser bucket, sql.
    pub fn strictness(&self) -> u8 {
        match self {
            Mask::Null => 23,
            Mask::Constant(_) => 22,
            Mask::Hash => 21,
            Mask::Partial => 20,
            Mask::Truncate(granularity) => 1 + *granularity as u8,
            Mask::Sql(_) => 0,
        }
    }
}
