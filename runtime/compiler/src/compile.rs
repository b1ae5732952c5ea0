//! The whole pipeline as one call: `resolve → plan → secure → rules → lower → print`.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::model::Model;
use crate::query::{QueryError, SemanticQuery};
use crate::security::SecurityContext;
use crate::sql::CompiledSql;
use crate::sql::profile::DialectProfile;

/// What the compiler needs to know of the outside.
#[derive(Debug, Clone)]
pub struct Environment {
    pub now: Timestamp,
    pub zones: TimeZoneDatabase,
    /// The timezone of queries that name none.
    pub default_timezone: TimeZone,
    pub default_limit: u64,
    pub max_limit: u64,
}

/// Compiles a query for a caller.
///
/// # Errors
/// [`QueryError`]: what was asked can't be answered; nothing else fails.
pub fn compile(
    _model: &Model,
    _profile: &DialectProfile,
    _query: &SemanticQuery,
    _caller: &SecurityContext,
    _environment: &Environment,
) -> Result<CompiledSql, QueryError> {
    Err(QueryError::Empty)
}
