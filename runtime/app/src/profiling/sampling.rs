//! The rows that a profile reads: all rows of the cube, or a sample of them.
//!
//! In: the request for a sample, and the target of the profile. Out: [`ProfiledRows`]. The rows are counted within the
//! caller's policies before the sample is taken, so the size of the cube is exact. Not here: the SQL of samples
//! (compiler).

use terrane_compiler::column_statistics::{NoSample, RowSample, Statistic, StatisticsQuery};

use super::answers::Answers;
use super::{ProfileTarget, SampleRequest};
use crate::query::QueryRunError;

/// The rows that the statements of a profile read.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ProfiledRows {
    /// `None` for all rows.
    pub(super) sample: Option<RowSample>,
    /// The reason why a requested sample was not taken.
    pub(super) warning: Option<&'static str>,
}

/// Returns the rows to read for a request. A cube with at most the requested number of rows is read whole.
pub(super) async fn rows(target: ProfileTarget<'_>, request: &SampleRequest) -> Result<ProfiledRows, QueryRunError> {
    if request.size == 0 {
        return Ok(ProfiledRows::default());
    }
    let rows = target.query(vec![(None, Statistic::Rows)], None);
    if let Some(reason) = target.session.no_sample(&rows, &request.strategy).await? {
        let warning = request.is_explicit.then(|| warning(reason));
        return Ok(ProfiledRows { sample: None, warning });
    }
    let total = count(target, &rows).await?;
    let sample = RowSample { strategy: request.strategy.clone(), rows: request.size, total };
    Ok(ProfiledRows { sample: Some(sample).filter(|sample| sample.rows < total), warning: None })
}

/// Counts all rows of the cube that the caller may see.
async fn count(target: ProfileTarget<'_>, rows: &StatisticsQuery) -> Result<u64, QueryRunError> {
    let rows = target.session.profile(rows).await?;
    let mut answers = Answers::new(target.columns, false);
    answers.add(vec![(None, Statistic::Rows)], &rows.batches);
    Ok(answers.rows())
}

fn warning(reason: NoSample) -> &'static str {
    match reason {
        NoSample::Dialect => "all rows were counted: the dialect of the warehouse has no function for samples",
        NoSample::PrimaryKey => "all rows were counted: a sample needs a primary key of the cube",
        NoSample::HiddenKey => "all rows were counted: a sample needs a primary key that you may read",
        NoSample::Strata => {
            "all rows were counted: a stratified sample needs `stratify_by` or a primary time dimension of the cube"
        }
    }
}
