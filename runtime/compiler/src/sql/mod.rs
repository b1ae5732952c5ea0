//! From a secured plan to SQL text: the tree, the lowering, the printer, the dialect profile.

pub mod profile;
pub mod template;
