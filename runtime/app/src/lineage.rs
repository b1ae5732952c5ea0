//! Looks up nodes of the lineage for a caller.
//!
//! In: the id of a node. Out: the node, or the ids of similar nodes that the caller may see. Not here: walks
//! (`terrane_lineage`), and formats.

use terrane_compiler::text::nearest::nearest;
use terrane_lineage::{Lineage, Sight};

/// The largest number of ids that an error proposes.
const MAX_NEAREST: usize = 10;
/// The largest number of characters of an unknown id in an error.
const MAX_ID_CHARS: usize = 200;

/// A node that does not exist for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown lineage node `{id}`")]
pub struct UnknownNode {
    pub id: String,
    /// Nodes of the same type with a similar id, nearest first.
    pub nearest: Vec<String>,
}

/// Finds a node. A node that the caller may not see does not exist.
///
/// # Errors
/// The node does not exist for the caller.
pub fn find(lineage: &Lineage, sight: &Sight, id: &str) -> Result<u32, UnknownNode> {
    let found = lineage.find(id).filter(|at| sight.sees(*at));
    found.ok_or_else(|| {
        let kind = id.split('.').next().unwrap_or_default();
        let seen = (0..).zip(&lineage.nodes).filter(|(at, _)| sight.sees(*at)).map(|(_, node)| &*node.id);
        let alike = seen.filter(|other| other.split('.').next() == Some(kind));
        let nearest = nearest(id, alike, MAX_NEAREST).into_iter().map(str::to_owned).collect();
        UnknownNode { id: id.chars().take(MAX_ID_CHARS).collect(), nearest }
    })
}
