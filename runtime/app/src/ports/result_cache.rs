//! The port to a tier of the result cache.
//!
//! A tier stores results by the digest of their statements. It may drop any result at any time. A tier is fast: if it
//! cannot answer within a few milliseconds, it reports the result as missing.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::sql::ResultColumn;

use super::warehouse::ResultSet;
use crate::domain::DataVersion;

/// The digest of a query's statements and their values, keyed with a secret of the servers.
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
    /// The number of groups before paging; `None` if the query does not request it.
    pub total_rows: Option<u64>,
    /// The row of totals; `None` if the query does not request it.
    pub totals: Option<Vec<RecordBatch>>,
    /// The version of the data that the statements read.
    pub version: DataVersion,
    /// The time at which the version was read, before the statements were run.
    pub as_of: Timestamp,
    /// The time that the warehouse took for the statements.
    pub waited: Duration,
    pub encoded: EncodedRows,
}

/// The format of encoded rows: a number, which the encoder defines, and the columns.
#[derive(Debug, Clone, PartialEq)]
pub struct RowEncoding {
    pub form: u8,
    pub columns: Vec<ResultColumn>,
}

/// The rows of a small result in the format in which they were encoded last, so that they need not be encoded again.
#[derive(Debug, Default)]
pub struct EncodedRows(Mutex<Option<(RowEncoding, Arc<[u8]>)>>);

impl EncodedRows {
    /// Returns the rows in this format, if they were last encoded in it.
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
    /// Returns an upper bound of the result's memory in bytes: its columns and its encoded rows.
    pub fn size(&self) -> u64 {
        (2 * self.columns_size() + 1_024) as u64
    }

    fn columns_size(&self) -> usize {
        let totals = self.totals.iter().flatten();
        self.rows.batches.iter().chain(totals).map(RecordBatch::get_array_memory_size).sum()
    }

    /// Stores the encoded rows, unless they take more memory than the columns.
    pub fn encode_rows(&self, form: u8, columns: &[ResultColumn], bytes: &Arc<[u8]>) {
        if bytes.len() <= self.columns_size() {
            self.encoded.set(RowEncoding { form, columns: columns.to_vec() }, Arc::clone(bytes));
        }
    }
}

/// The counters of a tier since the start, and its current contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    /// The number of values that could not be read or written, or that were stored in a different format than expected.
    pub failures: u64,
    /// The size of the stored values; `None` if the tier does not report it.
    pub size_bytes: Option<u64>,
}

/// A tier of the result cache.
#[async_trait]
pub trait ResultCache: Send + Sync {
    /// Returns the tier's name: `memory` or `redis`.
    fn name(&self) -> &'static str;

    /// Returns the newest result that was stored under a key, whatever the version of its data.
    async fn get(&self, key: &CacheKey) -> Option<Arc<StoredResult>>;

    /// Stores a result and replaces an older one. After `max_age`, the result expires.
    async fn put(&self, key: CacheKey, result: Arc<StoredResult>, max_age: Option<Duration>);

    fn statistics(&self) -> CacheStatistics;

    /// Returns whether the tier responds.
    async fn ping(&self) -> bool {
        true
    }
}
