//! The query compiler: the text of a project and a query in, the warehouse's SQL out. It is pure: it uses no files, no
//! clock, no environment and no async code. Column types, the current time and the time zone tables are inputs.
//!
//! `SemanticQuery → resolve → ResolvedQuery → plan → LogicalPlan → secure → SecuredPlan → lower → print → CompiledSql`.
//! Each noun is one type, each arrow one public function.

mod access;
mod calendar;
pub mod column_statistics;
mod compile;
pub mod diagnostic;
mod environment;
mod explain;
pub mod explanation;
pub mod governance;
mod ids;
pub mod model;
mod parallel;
pub mod plan;
pub mod project;
pub mod query;
mod ready_rollups;
mod resolve;
pub mod rollup;
mod security;
pub mod snippet;
pub mod sql;
pub mod text;
pub mod types;

pub use access::{Access, Authorized, AuthorizedAccess, Closed, ColumnUse};
pub use compile::{compile, compile_count, compile_inline, compile_totals};
pub use environment::Environment;
pub use explain::{explain_plan, explain_query};
pub use resolve::{resolve, unknown_metric};
pub use security::{Attribute, AuthMethod, SecurityContext};
