//! What crosses the border in every role: contexts, types, values, names and conditions.
//!
//! In and out: the contract's types and the app's or the compiler's. What comes from a guest is checked here
//! once for all roles. Not here: what one role alone has (`detector`, `check`, `governance`, `dialect`).

pub(crate) mod arena;
pub(crate) mod context;
pub(crate) mod names;
pub(crate) mod values;
