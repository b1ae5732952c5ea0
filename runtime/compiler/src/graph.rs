//! TEMPORARY
use std::sync::Arc;
#[derive(Debug, Clone, Default)]
pub struct DependencyGraph { pub nodes: Vec<Node>, pub edges: Vec<Edge>, pub execution_order: Vec<u32>, pub parallel_batches: Vec<Vec<u32>> }
#[derive(Debug, Clone)]
pub struct Node { pub unique_id: Arc<str>, pub kind: NodeKind, pub name: Arc<str>, pub error: Option<Arc<str>> }
#[derive(Debug, Clone, Copy)]
pub struct Edge { pub from: u32, pub to: u32 }
#[derive(Debug, Clone, Copy)]
pub enum NodeKind { Cube }
impl NodeKind { pub fn as_str(self) -> &'static str { "cube" } }
impl DependencyGraph { pub fn build(_: &crate::project::Definitions, _: &[crate::diagnostic::Diagnostic]) -> Self { Self::default() } }
