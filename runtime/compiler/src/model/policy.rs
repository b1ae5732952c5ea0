//! The effects of policies on cubes, ready to be applied to a caller.
//!
//! In: effects that `policies` makes. Out: the effects that `Access` matches with a caller. A policy has one effect for
//! each cube that it applies to: the cubes that it names, their aliases, and cubes over the same table.

use std::sync::Arc;

use super::{CubeId, DimensionId, Member, Snippet, SqlPart};
use crate::diagnostic::Span;
use crate::project::PolicyCondition;
use crate::types::{Granularity, Value};

#[derive(Debug, PartialEq)]
pub struct Policy {
    pub name: Arc<str>,
    /// The condition that selects callers; `None` for all callers.
    pub when: Option<PolicyCondition>,
    pub cubes: Vec<CubePolicy>,
    /// The place of the policy's row filter.
    pub row_filter_span: Option<Span>,
    /// The place of each masked member's name.
    pub mask_spans: Vec<(Arc<str>, Span)>,
}

/// A policy's effect on one cube.
#[derive(Debug, PartialEq)]
pub struct CubePolicy {
    pub cube: CubeId,
    /// True if the policy cannot be applied to the way in which the cube reads the protected rows, so that the cube is
    /// closed.
    pub is_closed: bool,
    /// The condition that rows must meet to be visible to the caller.
    pub row_filter: Option<Snippet>,
    pub masks: Vec<(DimensionId, Mask)>,
    pub denied: Vec<Member>,
    /// True if measures over masked columns stay open.
    pub allow_aggregate: bool,
}

/// The replacement of a value for a caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Mask {
    Null,
    Constant(Value),
    Hash,
    Partial,
    /// The start of a time's bucket. Only hooks use this mask.
    Truncate(Granularity),
    Sql(Snippet),
}

impl Mask {
    /// Returns whether the mask gives all rows the same value.
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

    /// Returns the rank of the mask; of several masks, the one with the highest rank is used. From strict to weak:
    /// null, constant, hash, partial, a coarser bucket, sql.
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
