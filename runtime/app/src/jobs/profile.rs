//! Profiles as jobs: submission, and the text that a complete job stores as a result of one row.
//!
//! In: the request of a profile with its owner. Out: a job, and the profile's text. The rights are those of queries:
//! the runner applies the policies that are in force when it runs, and a reader gets the text only if its view of the
//! cube equals that of the job. Not here: making profiles (`profiling`).

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use futures_util::TryStreamExt as _;
use terrane_compiler::model::DimensionType;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};

use super::{GoneReason, JobError, JobService, JobText, check_view, job_context, owner_of};
use crate::domain::{Identity, RequestContext};
use crate::ports::jobs::{Job, JobKind, Manifest};
use crate::ports::results::ResultsError;
use crate::profiling::{ProfileArchive, ProfileError, RequestedProfile};
use crate::query::QueryRunError;

/// A request to make a profile as a job.
#[derive(Debug, Clone)]
pub struct ProfileSubmission<'a> {
    /// The request as it is stored.
    pub text: Arc<str>,
    pub requested: &'a RequestedProfile,
    pub idempotency_key: Option<Arc<str>>,
}

impl JobService {
    /// Checks a request for a profile and stores it as a job, like a query.
    ///
    /// # Errors
    /// [`JobError`]
    pub async fn submit_profile(
        &self,
        identity: &Identity,
        context: &RequestContext,
        submission: ProfileSubmission<'_>,
    ) -> Result<Job, JobError> {
        let context = job_context(&owner_of(identity), context);
        // A cube that is unknown or closed to the caller is refused at once.
        self.profiles()?.view(&context, submission.requested).await?;
        let text = JobText { text: submission.text, idempotency_key: submission.idempotency_key };
        let job = self.new_job(identity, &context, JobKind::Profile, self.ports.clock.now(), text);
        self.store(identity, &context, job).await
    }

    /// Returns the stored profile of a complete job. Fails if the caller's view of the cube differs from the view for
    /// which the profile was computed.
    pub(super) async fn profile(
        &self,
        context: &RequestContext,
        job: &Job,
        manifest: &Manifest,
        fingerprint: &str,
    ) -> Result<Arc<str>, JobError> {
        let requested = self.ports.texts.profile(&job.query);
        let requested = requested.map_err(|_| JobError::Gone { reason: GoneReason::PolicyChanged })?;
        let view = match self.profiles()?.view(context, &requested).await {
            Ok(view) => Some(view),
            // Closed to the reader, or no longer part of the model.
            Err(ProfileError::UnknownCube { .. } | ProfileError::UnknownDimension { .. }) => None,
            Err(ProfileError::Query(error)) if error.is_denial() || matches!(error, QueryRunError::Query(_)) => None,
            Err(error) => return Err(error.into()),
        };
        check_view(job, view.as_deref(), fingerprint)?;
        let page = self.ports.results.page(manifest, 0, 1).await?;
        let batches: Vec<RecordBatch> = page.rows.try_collect().await?;
        text_of(&batches).ok_or_else(|| damaged().into())
    }

    pub(super) fn profiles(&self) -> Result<&Arc<ProfileArchive>, JobError> {
        self.ports.profiles.as_ref().ok_or(JobError::Unknown)
    }
}

/// Returns the column and the row that store the text of a profile.
pub(super) fn row_of(text: &str) -> Result<(ResultColumn, RecordBatch), ResultsError> {
    let column = ResultColumn {
        key: "profile".into(),
        is_measure: false,
        ty: DimensionType::String,
        format: ColumnFormat::Plain,
    };
    let schema = Schema::new(vec![Field::new("profile", DataType::Utf8, false)]);
    let row = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(StringArray::from(vec![text]))]);
    Ok((column, row.map_err(|_| damaged())?))
}

fn text_of(batches: &[RecordBatch]) -> Option<Arc<str>> {
    let batch = batches.iter().find(|batch| batch.num_rows() > 0)?;
    let texts = batch.columns().first()?.as_string_opt::<i32>()?;
    texts.is_valid(0).then(|| texts.value(0).into())
}

fn damaged() -> ResultsError {
    ResultsError::Unavailable { message: "the result of a profile is not one row of text".into() }
}
