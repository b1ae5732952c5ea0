//! The texts of stored jobs: requests and failures in their wire formats, which the crate `wire` implements.

use terrane_compiler::query::SemanticQuery;

use crate::domain::Scopes;
use crate::ports::jobs::JobFailure;
use crate::profiling::{ProfileError, RequestedProfile};
use crate::query::{CacheControl, QueryRunError};

/// Encodes and decodes the fields of a job that have a wire format.
pub trait JobTexts: Send + Sync {
    /// Parses the query of a stored job, and the caller's settings for cached results.
    ///
    /// # Errors
    /// The text is not a query of this version.
    fn query(&self, text: &str) -> Result<(SemanticQuery, CacheControl), JobFailure>;
    /// Reads the request of a stored job for a profile.
    ///
    /// # Errors
    /// The text is not a request of this version.
    fn profile(&self, text: &str) -> Result<RequestedProfile, JobFailure>;
    /// Returns the failure of a query, without details that its owner may not see.
    fn failure(&self, error: QueryRunError, scopes: Scopes) -> JobFailure;
    /// Returns the failure of a profile, without details that its owner may not see.
    fn profile_failure(&self, error: ProfileError, scopes: Scopes) -> JobFailure;
}
