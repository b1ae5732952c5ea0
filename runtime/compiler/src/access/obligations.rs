//! The obligations of all governance hooks, merged and resolved to ids.
//!
//! Made by `governance`. Out: the restrictions that `Access` applies. Not here: checking and merging obligations.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ids::{CubeId, DimensionId, Member};
use crate::model::Mask;
use crate::query::Predicate;

/// The obligations of all hooks.
#[derive(Debug, Default)]
pub(crate) struct MergedObligations {
    /// The hooks with obligations.
    pub(crate) hooks: Vec<Arc<str>>,
    pub(crate) filters: HashMap<CubeId, Vec<Predicate>>,
    pub(crate) masks: HashMap<DimensionId, Mask>,
    pub(crate) denied: HashSet<Member>,
    /// Cubes that are closed, without their aliases.
    pub(crate) closed: HashSet<CubeId>,
    pub(crate) max_rows: Option<u64>,
}

impl MergedObligations {
    /// Returns whether some rows or values are hidden from the caller.
    pub(crate) fn hides_something(&self) -> bool {
        !(self.filters.is_empty() && self.masks.is_empty() && self.denied.is_empty() && self.closed.is_empty())
    }
}
