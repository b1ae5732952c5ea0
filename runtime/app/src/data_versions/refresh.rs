//! The results of `refresh: {sql: …}`: one read per interval and query in this process.
//!
//! In: the SQL of a query. Out: a digest of its rows. Callers that need a result while it is being read wait for it.
//! After a failure, callers get the same error for a second, without another statement on the warehouse.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sha2::{Digest as _, Sha256};

use crate::ports::clock::Clock;
use crate::ports::warehouse::{RefusalCause, ResultSet, Statement, Warehouse, WarehouseError, WarehouseErrorKind};

/// The interval of a refresh query whose definition has no `every`.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);
/// The time for which a failure is returned without another statement.
const FAILURE_INTERVAL: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest number of rows that a refresh query may return.
const MAX_ROWS: usize = 1_000;

type Digest = [u8; 32];

pub(super) struct RefreshReader {
    warehouse: Arc<dyn Warehouse>,
    clock: Arc<dyn Clock>,
    results: Mutex<HashMap<Arc<str>, Arc<RefreshResult>>>,
}

#[derive(Default)]
struct RefreshResult {
    /// The result of the last reading, and the clock's `elapsed` at its start.
    last: Mutex<Option<(Duration, Result<Digest, WarehouseError>)>>,
    /// The lock that is held while the query runs.
    reading: tokio::sync::Mutex<()>,
}

impl RefreshReader {
    pub(super) fn new(warehouse: Arc<dyn Warehouse>, clock: Arc<dyn Clock>) -> Self {
        RefreshReader { warehouse, clock, results: Mutex::default() }
    }

    /// Returns the digest of a query's rows, at most `every` old. Without `every`, [`DEFAULT_INTERVAL`] applies.
    pub(super) async fn read(&self, text: &Arc<str>, every: Option<Duration>) -> Result<Digest, WarehouseError> {
        let result = Arc::clone(self.results().entry(Arc::clone(text)).or_default());
        let interval = every.unwrap_or(DEFAULT_INTERVAL);
        if let Some(fresh) = self.fresh(&result, interval) {
            return fresh;
        }
        let _turn = result.reading.lock().await;
        if let Some(fresh) = self.fresh(&result, interval) {
            return fresh;
        }
        let started = self.clock.elapsed();
        let rows = self.warehouse.execute(Statement::plain(text), TIMEOUT).await;
        let digest = rows.and_then(|rows| digest(self.warehouse.name(), &rows));
        *result.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((started, digest.clone()));
        digest
    }

    /// Removes all results. Called when the served project changes, because its refresh keys change with it.
    pub(super) fn forget(&self) {
        self.results().clear();
    }

    fn fresh(&self, result: &RefreshResult, interval: Duration) -> Option<Result<Digest, WarehouseError>> {
        let last = result.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, digest) = last.as_ref()?;
        let limit = if digest.is_ok() { interval } else { FAILURE_INTERVAL.min(interval) };
        (self.clock.elapsed().saturating_sub(*at) < limit).then(|| digest.clone())
    }

    fn results(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<RefreshResult>>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a digest of all rows in their order.
fn digest(warehouse: &str, rows: &ResultSet) -> Result<Digest, WarehouseError> {
    let refused = |message: String| WarehouseError {
        warehouse: warehouse.to_owned(),
        kind: WarehouseErrorKind::Refused,
        cause: RefusalCause::Other,
        message,
        retries: 0,
    };
    let count: usize = rows.batches.iter().map(RecordBatch::num_rows).sum();
    if count > MAX_ROWS {
        return Err(refused(format!("a refresh query returned {count} rows; at most {MAX_ROWS} are allowed")));
    }
    let mut hash = Sha256::new();
    let options = FormatOptions::default().with_null("\0");
    for batch in &rows.batches {
        for column in batch.columns() {
            let texts = ArrayFormatter::try_new(column, &options).map_err(|error| refused(error.to_string()))?;
            for row in 0..batch.num_rows() {
                let text = texts.value(row).to_string();
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text.as_bytes());
            }
        }
        hash.update(b"|");
    }
    Ok(hash.finalize().into())
}
