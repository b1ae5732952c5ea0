//! Text for display in a terminal: safe text, trees and counts.
//!
//! In: text from projects, databases, plugins and callers. Out: [`TerminalText`], which a terminal displays
//! and never executes; trees of lines; English counts. Not here: colors, tables and diagnostics (cli).

mod text;
mod tree;

pub use text::{TerminalText, is_unsafe};
pub use tree::Tree;

/// Returns a count with its noun, such as `1 cube` or `2 cubes`.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
