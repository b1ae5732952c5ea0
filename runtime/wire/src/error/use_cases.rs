//! Errors of use cases as errors of the interface.
//!
//! In: an error of a use case. Out: its code and fields, the same on every surface. Failures of the state database are
//! logged here, since callers must not see their causes.

use terrane_app::cost::HistoryError;
use terrane_app::domain::Scopes;
use terrane_app::invalidation::InvalidationError;
use terrane_app::jobs::JobError;
use terrane_app::lineage::UnknownNode;
use terrane_app::live::LiveError;
use terrane_app::ports::store::StoreError;
use terrane_app::preaggregations::RefreshError;
use terrane_app::security::ScopeError;

use super::{Code, ErrorBody};

impl ErrorBody {
    /// Reports and logs that the state database does not answer.
    pub fn from_store(error: &StoreError) -> Self {
        tracing::error!(event = "state_unavailable", error_message = %error);
        ErrorBody::new(Code::StateUnavailable, "the state database cannot be reached")
    }

    /// Reports an error of a job. Text of the warehouse is disclosed to callers with the scope `admin`.
    pub fn from_job(error: JobError, scopes: Scopes) -> Self {
        let message = error.to_string();
        match error {
            JobError::Query(error) => ErrorBody::from_run(error, scopes),
            JobError::HasTotals => ErrorBody::new(Code::InvalidQuery, message).detail("field", "totals"),
            JobError::Unknown => ErrorBody::new(Code::NotFound, message),
            JobError::NoResult { state } => ErrorBody::new(Code::Conflict, message).detail("state", state.as_str()),
            JobError::Gone { reason } => ErrorBody::new(Code::Gone, message).detail("reason", reason.as_str()),
            JobError::OtherRequest => ErrorBody::new(Code::ValidationError, message).detail("field", "Idempotency-Key"),
            JobError::CallerFull { .. } => ErrorBody::new(Code::RateLimited, message),
            JobError::Full { .. } => ErrorBody::new(Code::Overloaded, message),
            JobError::Results(error) => {
                tracing::error!(event = "job_results_unavailable", error_message = %error);
                let message = "the result cannot be read now; it is not lost while the job exists";
                ErrorBody::new(Code::ResultsUnavailable, message)
            }
            JobError::Store(error) => ErrorBody::from_store(&error),
        }
    }
}

impl From<&RefreshError> for ErrorBody {
    fn from(error: &RefreshError) -> Self {
        let message = error.to_string();
        match error {
            RefreshError::Disabled => ErrorBody::new(Code::Conflict, message),
            RefreshError::UnknownCube { nearest, .. } | RefreshError::UnknownRollup { nearest, .. } => {
                ErrorBody::new(Code::NotFound, message).detail("nearest", nearest.clone())
            }
            RefreshError::UnknownBuild { .. } => ErrorBody::new(Code::NotFound, message),
            RefreshError::NoCube { .. } => ErrorBody::new(Code::InvalidQuery, message).detail("field", "cube"),
            RefreshError::NotPartitioned { .. }
            | RefreshError::InvalidPartition { .. }
            | RefreshError::TooManyPartitions => {
                ErrorBody::new(Code::InvalidQuery, message).detail("field", "partitions")
            }
            RefreshError::Store(error) => ErrorBody::from_store(error),
        }
    }
}

impl From<HistoryError> for ErrorBody {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::OtherUser(error) => error.into(),
            HistoryError::Store(error) => ErrorBody::from_store(&error),
        }
    }
}

impl From<&InvalidationError> for ErrorBody {
    fn from(error: &InvalidationError) -> Self {
        match error {
            InvalidationError::UnknownCube { nearest, .. } => {
                ErrorBody::new(Code::NotFound, error.to_string()).detail("nearest", nearest.clone())
            }
            InvalidationError::Store(error) => ErrorBody::from_store(error),
        }
    }
}

impl From<LiveError> for ErrorBody {
    fn from(error: LiveError) -> Self {
        let code = match error {
            LiveError::CallerFull { .. } => Code::RateLimited,
            LiveError::Full { .. } => Code::Overloaded,
        };
        ErrorBody::new(code, error.to_string())
    }
}

impl From<UnknownNode> for ErrorBody {
    fn from(error: UnknownNode) -> Self {
        ErrorBody::new(Code::NotFound, error.to_string()).detail("nearest", error.nearest)
    }
}

impl From<ScopeError> for ErrorBody {
    fn from(error: ScopeError) -> Self {
        match error {
            ScopeError::Missing { scope } => ErrorBody::missing_scope(scope),
            ScopeError::Store(error) => ErrorBody::from_store(&error),
        }
    }
}
