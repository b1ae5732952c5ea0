//! The reasons why a request about a job fails.

use crate::ports::jobs::JobState;
use crate::ports::results::ResultsError;
use crate::ports::store::StoreError;
use crate::profiling::ProfileError;
use crate::query::QueryRunError;

/// The reason why a result is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoneReason {
    Expired,
    /// With the reader's policies and the current definitions, the query compiles to a different statement from the one
    /// that ran.
    PolicyChanged,
}

impl GoneReason {
    pub fn as_str(self) -> &'static str {
        match self {
            GoneReason::Expired => "expired",
            GoneReason::PolicyChanged => "policy_changed",
        }
    }
}

/// The reason why a request about a job fails.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JobError {
    #[error(transparent)]
    Query(#[from] QueryRunError),
    /// The query requests totals, but the rows of a job are stored without totals.
    #[error("asynchronous queries do not support `totals`; omit it")]
    HasTotals,
    /// No job of this caller has this id.
    #[error("the job does not exist")]
    Unknown,
    #[error("the job has no result: it is {}", state.as_str())]
    NoResult { state: JobState },
    #[error("the result is gone: {}", match reason {
        GoneReason::Expired => "it expired or was deleted; submit the query again",
        GoneReason::PolicyChanged => {
            "policies or definitions have changed since the job ran; submit the query again"
        }
    })]
    Gone { reason: GoneReason },
    #[error("the idempotency key was used for another query")]
    OtherRequest,
    #[error("this caller has {open} open jobs, which is the maximum; wait for one, or cancel one")]
    CallerFull { open: u64 },
    #[error("the callers of this tenant have {open} open jobs, which is the maximum; wait for one, or cancel one")]
    TenantFull { open: u64 },
    #[error("there are {open} open jobs, which is the maximum; try again later")]
    Full { open: u64 },
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
