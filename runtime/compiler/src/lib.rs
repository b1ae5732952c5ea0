//! The query compiler: project text and a query in, warehouse SQL out. Pure: no files, no clock, no
//! environment, no async. Column types, the current time and the zone tables are inputs.
//!
//! `SemanticQuery → resolve → ResolvedQuery → plan → LogicalPlan → secure → SecuredPlan → lower →
//! print → CompiledSql`; each noun is one type, each arrow one public function.

mod compile;
pub mod diagnostic;
mod explain;
pub mod explanation;
pub mod governance;
pub mod graph;
pub mod lineage;
pub mod model;
mod parallel;
pub mod plan;
pub mod profile;
pub mod project;
pub mod query;
mod security;
pub mod sql;
pub mod types;

pub use compile::{Environment, compile, compile_count, compile_inline, compile_totals};
pub use explain::{explain_plan, explain_query};
pub use governance::{Authorized, AuthorizedAccess};
pub use security::{Access, Attribute, AuthMethod, Closed, SecurityContext};
