//! From a secured plan to SQL text: the tree, the lowering, the printer, the dialect profile.

mod compiled;
pub mod profile;
mod profile_check;
pub mod template;

pub use compiled::{ColumnFormat, CompiledSql, ResultColumn};
