//! The reasons why a monitor, a detection or an alert is not shown or changed.

use std::sync::Arc;

use terrane_compiler::query::QueryError;

use super::alerts::AlertMove;
use crate::anomaly::AnomalyError;
use crate::cron_schedule::ScheduleError;
use crate::domain::PreconditionError;
use crate::ports::channels::ChannelError;
use crate::ports::monitors::AlertState;
use crate::ports::store::StoreError;
use crate::query::QueryRunError;

/// The reason why a monitor, a detection or an alert is not shown or changed.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// The monitor does not exist, or the caller may not see it.
    #[error("unknown monitor")]
    Unknown,
    #[error("unknown detection")]
    UnknownDetection,
    #[error("unknown alert")]
    UnknownAlert,
    /// The token of a link is forged or of another server. The caller gets the error of an unknown alert.
    #[error("unknown alert")]
    WrongLink,
    #[error("the link has expired")]
    ExpiredLink,
    #[error("the monitor belongs to another caller; its owner or a caller with `admin` can change it")]
    NotOwner,
    #[error("`{field}` {problem}")]
    Invalid { field: &'static str, problem: String },
    #[error("`dimensions` must not name `{dimension}`, which is masked for the owner of the monitor")]
    MaskedDimension { dimension: Arc<str> },
    #[error("`{field}`: {error}")]
    Channel { field: String, error: ChannelError },
    #[error("the channel is paused; try again in some seconds")]
    ChannelPaused,
    #[error("the limit of {most} test messages in a minute is reached; try again later")]
    TooManyTests { most: usize },
    #[error("unknown delivery")]
    UnknownDelivery,
    #[error("only failed deliveries can be sent again")]
    NotFailed,
    #[error("the root cause of metric `{metric}` cannot be computed: {}", reason.as_str())]
    NotExplained {
        metric: Arc<str>,
        reason: NotExplained,
        /// The measures of the metric that the caller may see.
        measures: Vec<Arc<str>>,
    },
    #[error("`{field}`: {error}", field = .0.field(), error = .0)]
    Schedule(#[from] ScheduleError),
    #[error("an alert in the state {} cannot be moved by `{}`", state.as_str(), step.as_str())]
    MoveNotAllowed { step: AlertMove, state: AlertState, allowed: Vec<AlertMove> },
    #[error("the limit of {most} monitors of one owner is reached; delete one first")]
    TooManyOfOwner { most: u32 },
    /// The limit is reached. The error does not state the number of monitors, because the caller may not see all of
    /// them.
    #[error("the server stores no more monitors; ask an administrator to delete some")]
    TooMany,
    #[error("it was changed by others at the same time")]
    Contended,
    #[error(transparent)]
    Precondition(#[from] PreconditionError),
    #[error(transparent)]
    Anomaly(#[from] AnomalyError),
    #[error(transparent)]
    Query(#[from] QueryRunError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The reason why a metric has no root cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotExplained {
    Calculation,
    SeveralCubes,
    PrivateCube,
}

impl NotExplained {
    fn as_str(self) -> &'static str {
        match self {
            NotExplained::Calculation => "it is neither one measure nor a ratio of two counts or sums",
            NotExplained::SeveralCubes => "its measures belong to several cubes",
            NotExplained::PrivateCube => "queries cannot group by the dimensions of its cube",
        }
    }
}

impl From<QueryError> for MonitorError {
    fn from(error: QueryError) -> Self {
        MonitorError::Query(error.into())
    }
}
