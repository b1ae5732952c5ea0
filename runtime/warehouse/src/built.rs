//! Code that all adapters that build models share: markers of built relations, and the number of running builds.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray as _, StringArray};
use terrane_app::ports::builder::{BuiltRelation, Marker};
use terrane_app::ports::warehouse::ResultSet;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest number of builds that run at once. Further builds wait.
const MAX_RUNNING: u32 = 64;
/// The longest time to wait for the end of interrupted builds.
const SETTLING: Duration = Duration::from_secs(5);

/// Reads built relations from rows with four columns: the schema, the name, the kind (`view` or `table`), and the
/// comment.
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

/// Quotes an identifier for both DuckDB and PostgreSQL.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a string literal for both DuckDB and PostgreSQL.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The limit of running builds. Builds whose caller has disconnected count until they end.
#[derive(Debug, Clone)]
pub(crate) struct Running(Arc<Semaphore>);

impl Running {
    pub(crate) fn new() -> Self {
        Running(Arc::new(Semaphore::new(MAX_RUNNING as usize)))
    }

    /// Returns a permit that must be held until the engine has finished. It is never `None`, because the semaphore is
    /// never closed.
    pub(crate) async fn begin(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }

    /// Waits until no build runs, for at most [`SETTLING`].
    pub(crate) async fn settle(&self) {
        // A build that still runs after this time is abandoned. It commits nothing.
        let _ = tokio::time::timeout(SETTLING, self.0.acquire_many(MAX_RUNNING)).await;
    }
}
