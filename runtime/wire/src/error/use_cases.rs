//! Errors of use cases as errors of the interface.
//!
//! In: an error of a use case. Out: its code and fields, the same on every surface. Failures of the state database are
//! logged here, since callers must not see their causes.

use terrane_app::anomaly::AnomalyError;
use terrane_app::cost::{GuardrailCheckError, GuardrailError, HistoryError, PredictionError};
use terrane_app::domain::{PreconditionError, Scope, Scopes};
use terrane_app::governance::{Approval, GovernanceError};
use terrane_app::invalidation::InvalidationError;
use terrane_app::jobs::JobError;
use terrane_app::lineage::UnknownNode;
use terrane_app::live::LiveError;
use terrane_app::monitors::MonitorError;
use terrane_app::ports::detectors::DetectorError;
use terrane_app::ports::store::StoreError;
use terrane_app::preaggregations::RefreshError;
use terrane_app::profiling::ProfileError;
use terrane_app::query::QueryRunError;
use terrane_app::questions::AskError;
use terrane_app::search::SearchError;
use terrane_app::security::ScopeError;
use terrane_compiler::query::QueryError;

use super::{Code, ErrorBody, Finding};

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
            JobError::Profile(error) => ErrorBody::from_profile(error, scopes),
            JobError::HasTotals => ErrorBody::new(Code::InvalidQuery, message).detail("field", "totals"),
            JobError::Unknown => ErrorBody::new(Code::NotFound, message),
            JobError::NoResult { state } => ErrorBody::new(Code::Conflict, message).detail("state", state.as_str()),
            JobError::Gone { reason } => ErrorBody::new(Code::Gone, message).detail("reason", reason.as_str()),
            JobError::OtherRequest => ErrorBody::new(Code::ValidationError, message).detail("field", "Idempotency-Key"),
            JobError::CallerFull { .. } | JobError::TenantFull { .. } => ErrorBody::new(Code::RateLimited, message),
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

/// Reports an invalid range of a profile by the name of its field. The field is the only part of the query that the
/// caller writes.
fn from_profiled_range(error: QueryError, scopes: Scopes) -> ErrorBody {
    const FIELD: &str = "filters.date_range";
    match error {
        QueryError::NoPrimaryTime { cube } => {
            let message = format!("`{FIELD}` needs a primary time dimension, and cube `{cube}` has none");
            ErrorBody::new(Code::InvalidQuery, message).detail("field", FIELD)
        }
        QueryError::ValueDoesNotFit { value, expected, .. } => {
            let message = format!("value `{value}` does not fit `{FIELD}`: expected {expected}");
            ErrorBody::new(Code::InvalidFilter, message).detail("field", FIELD).detail("expected", expected)
        }
        error => ErrorBody::from_run(error.into(), scopes),
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

impl ErrorBody {
    /// Reports the error of a natural-language question.
    pub fn from_question(error: AskError, scopes: Scopes) -> Self {
        let message = error.to_string();
        match error {
            AskError::Question(_) => ErrorBody::new(Code::InvalidQuery, message).detail("field", "query"),
            AskError::UnknownLanguage { .. } => ErrorBody::new(Code::InvalidQuery, message).detail("field", "language"),
            AskError::NoModel => ErrorBody::new(Code::InvalidQuery, message).detail("field", "method"),
            AskError::Query(error) => ErrorBody::from_run(error, scopes),
        }
    }

    /// Reports the failure of a profile.
    pub fn from_profile(error: ProfileError, scopes: Scopes) -> Self {
        let message = error.to_string();
        match error {
            ProfileError::UnknownCube { nearest, .. } => {
                ErrorBody::new(Code::NotFound, message).detail("field", "cube_name").detail("nearest", nearest)
            }
            ProfileError::UnknownDimension { nearest, .. } => {
                ErrorBody::new(Code::NotFound, message).detail("field", "dimension").detail("nearest", nearest)
            }
            ProfileError::NotProfiled { cube } => {
                let route = format!("POST /api/v1/profiling/cubes/{cube}/profile");
                ErrorBody::new(Code::NotFound, format!("{message} for your view of it; compute one with `{route}`"))
            }
            ProfileError::Query(QueryRunError::Query(error)) => from_profiled_range(error, scopes),
            ProfileError::Query(error) => ErrorBody::from_run(error, scopes),
            ProfileError::Store(error) => ErrorBody::from_store(&error),
        }
    }

    /// Reports a change that governance hooks do not allow.
    pub fn from_approval(message: String, approval: &Approval) -> Self {
        let findings: Vec<Finding> = approval
            .findings
            .iter()
            .map(|found| Finding {
                hook: found.hook.to_string(),
                rule: found.finding.rule.clone(),
                message: found.finding.message.clone(),
            })
            .collect();
        let findings = serde_json::to_value(&findings).unwrap_or_default();
        let refusal = ErrorBody::new(Code::Forbidden, message).detail("findings", findings);
        if approval.unavailable.is_empty() { refusal } else { refusal.detail("reason", "policy_unavailable") }
    }
}

impl ErrorBody {
    fn from_precondition(error: &PreconditionError) -> Self {
        let message = error.to_string();
        match error {
            PreconditionError::Stale { current } => {
                ErrorBody::new(Code::PreconditionFailed, message).detail("current_version", *current)
            }
            PreconditionError::Required => {
                let header = "send the `ETag` of the record in `If-Match`";
                ErrorBody::new(Code::PreconditionRequired, format!("{message}; {header}"))
            }
        }
    }
}

impl ErrorBody {
    /// Reports an error of a prediction.
    pub fn from_prediction(error: PredictionError, scopes: Scopes) -> Self {
        match error {
            PredictionError::Query(error) => ErrorBody::from_run(error, scopes),
            PredictionError::Store(error) => ErrorBody::from_store(&error),
        }
    }

    /// Reports an error of a check against guardrails.
    pub fn from_guardrail_check(error: GuardrailCheckError, scopes: Scopes) -> Self {
        match error {
            GuardrailCheckError::Guardrails(error) => ErrorBody::from(&error),
            GuardrailCheckError::Query(error) => ErrorBody::from_run(error, scopes),
        }
    }
}

impl From<&GuardrailError> for ErrorBody {
    fn from(error: &GuardrailError) -> Self {
        match error {
            GuardrailError::Other(error) => error.clone().into(),
            GuardrailError::Unknown { .. } => ErrorBody::new(Code::NotFound, error.to_string()),
            GuardrailError::InvalidName { field } | GuardrailError::NoPrice { field } => {
                ErrorBody::new(Code::InvalidQuery, error.to_string()).detail("field", *field)
            }
            GuardrailError::TooMany { .. } | GuardrailError::Contended => {
                ErrorBody::new(Code::Conflict, error.to_string())
            }
            GuardrailError::Precondition(error) => ErrorBody::from_precondition(error),
            GuardrailError::Store(error) => ErrorBody::from_store(error),
        }
    }
}

impl From<&GovernanceError> for ErrorBody {
    fn from(error: &GovernanceError) -> Self {
        let message = error.to_string();
        match error {
            GovernanceError::UnknownArtifact { field, nearest, .. } => {
                ErrorBody::new(Code::NotFound, message).detail("field", *field).detail("nearest", nearest.clone())
            }
            GovernanceError::UnknownTerm { field, .. } => {
                let body = ErrorBody::new(Code::NotFound, message);
                field.map_or(body.clone(), |field| body.detail("field", field))
            }
            GovernanceError::UnknownChange { .. } => ErrorBody::new(Code::NotFound, message).detail("field", "before"),
            GovernanceError::UnknownLink | GovernanceError::UnknownOwner { .. } => {
                ErrorBody::new(Code::NotFound, message)
            }
            GovernanceError::Invalid { field, .. } => {
                ErrorBody::new(Code::InvalidQuery, message).detail("field", *field)
            }
            GovernanceError::NothingToChange => ErrorBody::new(Code::InvalidQuery, message),
            GovernanceError::NotAllowed { status, allowed, .. } => {
                let allowed: Vec<&str> = allowed.iter().map(|transition| transition.as_str()).collect();
                ErrorBody::new(Code::Conflict, message)
                    .detail("state", status.as_str())
                    .detail("allowed_moves", allowed)
            }
            GovernanceError::NotReviewer { .. } => ErrorBody::new(Code::Forbidden, message)
                .detail("reason", "reviewer_required")
                .detail("hint", "Ask a caller with a role of `governance.reviewer_roles` or with `admin`."),
            GovernanceError::OwnSubmission => {
                ErrorBody::new(Code::Forbidden, message).detail("reason", "own_submission").detail(
                    "hint",
                    "Ask another reviewer, or ask the operator to set `governance.allow_self_certification`.",
                )
            }
            GovernanceError::StewardChange { .. } => {
                let hint = "Ask a data steward, the owner that the project's files name, or a caller with a role of \
                            `governance.reviewer_roles` or with `admin`.";
                ErrorBody::new(Code::Forbidden, message).detail("reason", "reviewer_required").detail("hint", hint)
            }
            GovernanceError::OwnStewardship => ErrorBody::new(Code::Forbidden, message)
                .detail("reason", "own_stewardship")
                .detail("hint", "Ask a reviewer or a caller with `admin` to assign the role."),
            GovernanceError::Refused { approval } => ErrorBody::from_approval(message, approval),
            GovernanceError::TermExists { id, .. } => {
                ErrorBody::new(Code::Conflict, message).detail("existing_id", &**id)
            }
            GovernanceError::Cycle { names } => ErrorBody::new(Code::Conflict, message).detail("cycle", names.clone()),
            GovernanceError::ArchivedTerm
            | GovernanceError::LinkExists
            | GovernanceError::OwnerExists { .. }
            | GovernanceError::TooMany { .. }
            | GovernanceError::Contended => ErrorBody::new(Code::Conflict, message),
            GovernanceError::Precondition(error) => ErrorBody::from_precondition(error),
            GovernanceError::Store(error) => ErrorBody::from_store(error),
        }
    }
}

impl ErrorBody {
    /// Reports the failure of an anomaly run.
    pub fn from_anomaly(error: AnomalyError, scopes: Scopes) -> Self {
        let message = error.to_string();
        let invalid = |field: &'static str| ErrorBody::new(Code::InvalidQuery, message.clone()).detail("field", field);
        match error {
            AnomalyError::Run(error) => ErrorBody::from_run(error, scopes),
            AnomalyError::Detector(DetectorError::Unknown { known, .. }) => {
                let known: Vec<&str> = known.iter().map(|kind| &**kind).collect();
                ErrorBody::new(Code::NotFound, message).detail("field", "detector_type").detail("known", known)
            }
            AnomalyError::Detector(DetectorError::Fault { fault, .. }) | AnomalyError::Fault { fault, .. } => {
                ErrorBody::new(Code::PluginFault, message).detail("component", &*fault.component)
            }
            AnomalyError::NoTimeDimension { .. } => invalid("cube_name"),
            AnomalyError::Moment { .. } | AnomalyError::ReversedRange { .. } => invalid("from"),
            AnomalyError::NoTimeAxis { .. } => {
                let hint = "Set `primary_time: true` on a time dimension of each cube that the metric reads.";
                invalid("metric_name").detail("hint", hint)
            }
            AnomalyError::NotNumbers { .. } => {
                let hint = "Choose a measure or metric whose values are numbers, such as a count or a sum.";
                ErrorBody::new(Code::InvalidQuery, message.clone()).detail("hint", hint)
            }
            AnomalyError::Sensitivity { .. } => invalid("sensitivity"),
            AnomalyError::TrainingSize { .. } => invalid("training_size"),
            AnomalyError::Unreadable(_)
            | AnomalyError::Detector(DetectorError::TooLong { .. })
            | AnomalyError::FewerRows { .. }
            | AnomalyError::TooManyPoints { .. }
            | AnomalyError::NothingToEvaluate { .. } => ErrorBody::new(Code::InvalidQuery, message),
        }
    }

    /// Reports why a monitor, a detection or an alert is not shown or changed.
    pub fn from_monitor(error: MonitorError, scopes: Scopes) -> Self {
        let message = error.to_string();
        match error {
            MonitorError::Unknown
            | MonitorError::UnknownDetection
            | MonitorError::UnknownAlert
            | MonitorError::WrongLink
            | MonitorError::UnknownDelivery => ErrorBody::new(Code::NotFound, message),
            MonitorError::ExpiredLink => ErrorBody::new(Code::Gone, message).detail("reason", "link_expired"),
            MonitorError::NotOwner => {
                ErrorBody::new(Code::Forbidden, message).detail("required_scope", Scope::Admin.as_str())
            }
            MonitorError::NotExplained { measures, .. } => {
                let hint = "Ask for the root cause of a monitor of one of its measures.";
                let measures: Vec<&str> = measures.iter().map(|name| &**name).collect();
                ErrorBody::new(Code::InvalidQuery, message).detail("hint", hint).detail("measures", measures)
            }
            MonitorError::Invalid { field, .. } => ErrorBody::new(Code::InvalidQuery, message).detail("field", field),
            MonitorError::MaskedDimension { .. } => {
                ErrorBody::new(Code::InvalidQuery, message).detail("field", "dimensions")
            }
            MonitorError::Schedule(error) => ErrorBody::new(Code::InvalidQuery, message).detail("field", error.field()),
            MonitorError::MoveNotAllowed { state, allowed, .. } => {
                let allowed: Vec<&str> = allowed.iter().map(|step| step.as_str()).collect();
                ErrorBody::new(Code::Conflict, message).detail("state", state.as_str()).detail("allowed_moves", allowed)
            }
            MonitorError::Channel { field, .. } => ErrorBody::new(Code::InvalidQuery, message).detail("field", field),
            MonitorError::TooManyTests { .. } => ErrorBody::new(Code::RateLimited, message),
            MonitorError::TooManyOfOwner { .. }
            | MonitorError::TooMany
            | MonitorError::Contended
            | MonitorError::ChannelPaused
            | MonitorError::NotFailed => ErrorBody::new(Code::Conflict, message),
            MonitorError::Precondition(error) => ErrorBody::from_precondition(&error),
            // The route names a monitor, so an unknown detector is an invalid field of its definition and not a missing
            // resource.
            MonitorError::Anomaly(AnomalyError::Detector(DetectorError::Unknown { known, .. })) => {
                let message = format!("{message}; expected one of {}", known.join(", "));
                ErrorBody::new(Code::InvalidQuery, message).detail("field", "detector_type")
            }
            MonitorError::Anomaly(error) => ErrorBody::from_anomaly(error, scopes),
            MonitorError::Query(error) => ErrorBody::from_run(error, scopes),
            MonitorError::Store(error) => ErrorBody::from_store(&error),
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

impl From<SearchError> for ErrorBody {
    fn from(error: SearchError) -> Self {
        let message = error.to_string();
        match error {
            SearchError::Question(_) => ErrorBody::new(Code::InvalidQuery, message).detail("field", "query"),
            SearchError::UnknownCube { nearest, .. } => {
                ErrorBody::new(Code::NotFound, message).detail("nearest", nearest)
            }
        }
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
