//! Parts that are shared by the adapters that build models: markers of built relations, and the number of running
//! builds.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray as _, StringArray};
use terrane_app::ports::builder::{BuildError, BuiltRelation, Marker, NewRelation};
use terrane_app::ports::warehouse::ResultSet;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest number of builds that run at once. Others wait.
const MAX_RUNNING: u32 = 64;
/// The longest time to wait for the end of an interrupted build.
const SETTLING: Duration = Duration::from_secs(5);

/// Reads rows of schema, name, `view` or `table`, and comment.
pub(crate) fn relations(rows: &ResultSet) -> Vec<BuiltRelation> {
    let mut found = Vec::new();
    for batch in &rows.batches {
        let texts: Option<Vec<&StringArray>> = batch.columns().iter().map(|column| column.as_string_opt()).collect();
        let Some([schemas, names, kinds, comments]) = texts.as_deref() else { continue };
        for at in 0..batch.num_rows() {
            let Some(marker) = Marker::parse(comments.value(at)) else { continue };
            let (schema, name) = (schemas.value(at).into(), names.value(at).into());
            found.push(BuiltRelation { schema, name, is_view: kinds.value(at) == "view", marker });
        }
    }
    found
}

/// Checks that the existing relation was built for the same project and may be replaced.
pub(crate) fn may_replace(comment: Option<&str>, new: &NewRelation<'_>) -> Result<(), BuildError> {
    let relation = || new.to_string();
    match comment.and_then(Marker::parse) {
        None => Err(BuildError::Foreign { relation: relation() }),
        Some(marker) if marker.project == new.marker.project => Ok(()),
        Some(marker) => Err(BuildError::OtherProject { relation: relation(), project: marker.project }),
    }
}

/// Returns a name quoted for both engines.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns a string literal for both engines.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Counts running builds, including those whose caller has gone.
#[derive(Debug, Clone)]
pub(crate) struct Running(Arc<Semaphore>);

impl Running {
    pub(crate) fn new() -> Self {
        Running(Arc::new(Semaphore::new(MAX_RUNNING as usize)))
    }

    /// Returns a permit to hold until the engine has finished. It is never `None`: the semaphore is never closed.
    pub(crate) async fn begin(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }

    /// Waits until no build runs, for a limited time.
    pub(crate) async fn settle(&self) {
        // A build that still runs then is abandoned: it commits nothing.
        let _ = tokio::time::timeout(SETTLING, self.0.acquire_many(MAX_RUNNING)).await;
    }
}
