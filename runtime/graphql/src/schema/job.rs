//! Asynchronous queries.

use async_graphql::{ID, SimpleObject};
use terrane_app::ports::jobs::Job as StoredJob;
use terrane_wire::jobs::JobAnswer;

/// An asynchronous query. Its rows are read over REST, at `resultUrl`.
#[derive(Debug, Clone, PartialEq, SimpleObject)]
pub(crate) struct Job {
    id: ID,
    /// `query` or `profile`.
    kind: String,
    /// `pending`, `running`, `complete`, `failed`, `cancelled` or `expired`.
    status: String,
    created_at: String,
    started_at: Option<String>,
    completed_at: Option<String>,
    /// The time at which the result is deleted.
    expires_at: Option<String>,
    /// The written share of the rows in percent; null if it is unknown.
    progress: Option<u32>,
    row_count: Option<f64>,
    poll_url: String,
    result_url: Option<String>,
    error: Option<JobError>,
}

/// The reason for which a job failed.
#[derive(Debug, Clone, PartialEq, SimpleObject)]
pub(crate) struct JobError {
    code: String,
    message: String,
}

impl From<&StoredJob> for Job {
    fn from(job: &StoredJob) -> Self {
        let answer = JobAnswer::from(job);
        Job {
            id: answer.job_id.into(),
            kind: answer.kind.to_owned(),
            status: answer.status.to_owned(),
            created_at: answer.created_at,
            started_at: answer.started_at,
            completed_at: answer.completed_at,
            expires_at: answer.expires_at,
            progress: answer.progress,
            row_count: answer.row_count.map(|rows| rows as f64),
            poll_url: answer.poll_url,
            result_url: answer.result_url,
            error: answer.error.map(|error| JobError { code: error.code, message: error.message }),
        }
    }
}
