//! The types that all roles share: contexts, values, names and conditions.
//!
//! In and out: the contract's types, and the app's or the compiler's. Values of guests are checked here, once for all
//! roles. Not here: the types of one role (`detector`, `check`, `governance`, `dialect`).

pub(crate) mod arena;
pub(crate) mod context;
pub(crate) mod names;
pub(crate) mod values;
