//! The port to a tier of the result cache.
//!
//! A tier stores results by the digest of their statements. It may drop any of them at any time. It is fast: if it
//! cannot answer within a few milliseconds, it reports that the result is missing.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::sql::ResultColumn;

use super::warehouse::ResultSet;
use crate::data_versions::DataVersion;

/// A keyed digest of the statements of a query and their values, under a secret of the servers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey(pub [u8; 32]);

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..8]))
    }
}

/// The result of a query's statements.
#[derive(Debug)]
pub struct StoredResult {
    pub rows: ResultSet,
    /// The number of groups before paging, if the query asks for it.
    pub total_rows: Option<u64>,
    /// The row of totals, if the query asks for it.
    pub totals: Option<Vec<RecordBatch>>,
    /// The version of the data that the statements read.
    pub version: DataVersion,
    /// The time at which the version was read, before the statements ran.
    pub as_of: Timestamp,
    /// The time that the warehouse took.
    pub waited: Duration,
    pub encoded: EncodedRows,
}

/// A form in which rows were written: one of the writer's own forms, and the columns.
#[derive(Debug, Clone, PartialEq)]
pub struct RowEncoding {
    pub form: u8,
    pub columns: Vec<ResultColumn>,
}

/// The rows of a small result as they were written last, so that they need not be written again.
#[derive(Debug, Default)]
pub struct EncodedRows(Mutex<Option<(RowEncoding, Arc<[u8]>)>>);

impl EncodedRows {
    /// Returns the rows in this form, if they were written in it last.
    pub fn get(&self, form: u8, columns: &[ResultColumn]) -> Option<Arc<[u8]>> {
        let encoded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (encoding, bytes) = encoded.as_ref()?;
        (encoding.form == form && encoding.columns == columns).then(|| Arc::clone(bytes))
    }

    fn set(&self, encoding: RowEncoding, bytes: Arc<[u8]>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((encoding, bytes));
    }
}

impl StoredResult {
    /// Returns the memory that the result takes at most, in bytes: its columns and its written form.
    pub fn size(&self) -> u64 {
        (2 * self.columns_size() + 1_024) as u64
    }

    fn columns_size(&self) -> usize {
        let totals = self.totals.iter().flatten();
        self.rows.batches.iter().chain(totals).map(RecordBatch::get_array_memory_size).sum()
    }

    /// Keeps the written form of the rows, unless it is larger than their columns.
    pub fn encode_rows(&self, form: u8, columns: &[ResultColumn], bytes: &Arc<[u8]>) {
        if bytes.len() <= self.columns_size() {
            self.encoded.set(RowEncoding { form, columns: columns.to_vec() }, Arc::clone(bytes));
        }
    }
}

/// The counters of a tier since the start, and its present contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    /// The number of values that this tier had not stored in the requested form, or that could not be read or written.
    pub failures: u64,
    /// The size of the stored values; `None` if the tier does not know it.
    pub size_bytes: Option<u64>,
}

/// A tier of the result cache.
#[async_trait]
pub trait ResultCache: Send + Sync {
    /// Returns the tier's name: `memory` or `redis`.
    fn name(&self) -> &'static str;

    /// Returns the newest result that was stored under a key, whatever its version.
    async fn get(&self, key: &CacheKey) -> Option<Arc<StoredResult>>;

    /// Stores a result in the place of an older one. `max_age`: the time after which it is not used any more.
    async fn put(&self, key: CacheKey, result: Arc<StoredResult>, max_age: Option<Duration>);

    fn statistics(&self) -> CacheStatistics;

    /// Returns whether the tier answers.
    async fn ping(&self) -> bool {
        true
    }
}
