//! The tier in the memory of this process: result columns as the warehouse returned them, up to a limit in bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter};
use terrane_app::ports::result_cache::{CacheKey, CacheStatistics, ResultCache, StoredResult};

/// The assumed size of an entry in bytes. It gives the initial capacity of the table, which can grow.
const ESTIMATED_ENTRY: u64 = 16 * 1024;

#[derive(Clone)]
struct ByBytes;

impl Weighter<CacheKey, Arc<StoredResult>> for ByBytes {
    fn weight(&self, _: &CacheKey, result: &Arc<StoredResult>) -> u64 {
        result.size()
    }
}

/// Counts evicted entries.
#[derive(Clone)]
struct CountEvictions(Arc<AtomicU64>);

impl Lifecycle<CacheKey, Arc<StoredResult>> for CountEvictions {
    type RequestState = ();

    fn on_evict(&self, _: &mut Self::RequestState, _: CacheKey, _: Arc<StoredResult>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Results in the memory of this process.
pub struct MemoryCache {
    results: Cache<CacheKey, Arc<StoredResult>, ByBytes, DefaultHashBuilder, CountEvictions>,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: Arc<AtomicU64>,
}

impl MemoryCache {
    /// Creates the tier. `max_size` is the largest size of all results, in bytes.
    pub fn new(max_size: u64) -> Self {
        let evictions = Arc::new(AtomicU64::new(0));
        let items = usize::try_from(max_size / ESTIMATED_ENTRY).unwrap_or(usize::MAX).max(16);
        let results = Cache::with(
            items,
            max_size,
            ByBytes,
            DefaultHashBuilder::default(),
            CountEvictions(Arc::clone(&evictions)),
        );
        MemoryCache { results, hits: AtomicU64::new(0), misses: AtomicU64::new(0), evictions }
    }
}

#[async_trait]
impl ResultCache for MemoryCache {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn get(&self, key: &CacheKey) -> Option<Arc<StoredResult>> {
        let found = self.results.get(key);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    async fn put(&self, key: CacheKey, result: Arc<StoredResult>, _: Option<Duration>) {
        self.results.insert(key, result);
    }

    fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            failures: 0,
            size_bytes: Some(self.results.weight()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use arrow::array::{Int64Array, RecordBatch};
    use jiff::Timestamp;
    use terrane_app::domain::DataVersion;
    use terrane_app::ports::result_cache::EncodedRows;
    use terrane_app::ports::warehouse::ResultSet;

    use super::*;

    fn result(rows: i64) -> Arc<StoredResult> {
        let values = Int64Array::from_iter_values(0..rows);
        let batch = RecordBatch::try_from_iter([("v", Arc::new(values) as _)]).unwrap();
        Arc::new(StoredResult {
            rows: ResultSet { schema: batch.schema(), batches: vec![batch] },
            total_rows: None,
            totals: None,
            version: DataVersion::from_bytes([1; 16]),
            as_of: Timestamp::UNIX_EPOCH,
            waited: Duration::ZERO,
            encoded: EncodedRows::default(),
        })
    }

    #[tokio::test]
    async fn memory_stays_within_its_bound() {
        let cache = MemoryCache::new(1024 * 1024);
        for number in 0..1_000u16 {
            let mut key = [0; 32];
            key[..2].copy_from_slice(&number.to_le_bytes());
            cache.put(CacheKey(key), result(1_000), None).await;
        }
        let statistics = cache.statistics();
        assert!(statistics.size_bytes.unwrap() <= 1024 * 1024, "{statistics:?}");
        assert!(statistics.evictions > 800, "{statistics:?}");
    }

    #[tokio::test]
    async fn newest_result_of_a_key_is_returned() {
        let cache = MemoryCache::new(1024 * 1024);
        let key = CacheKey([7; 32]);
        assert!(cache.get(&key).await.is_none());
        cache.put(key, result(1), None).await;
        cache.put(key, result(2), None).await;
        assert_eq!(cache.get(&key).await.unwrap().rows.batches[0].num_rows(), 2);
        let statistics = cache.statistics();
        assert_eq!((statistics.hits, statistics.misses), (1, 1));
    }
}
