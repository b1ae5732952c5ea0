//! The sizes of the relations that statements scan, as the warehouse reports them.
//!
//! In: the shape of a compiled statement. Out: the bytes and rows of all its scans. The warehouse reads only metadata;
//! a size is reused as long as the data is unchanged, or for a limited time if the warehouse has no version of its
//! data. The number of sizes in memory and the time of a read are bounded. Sizes are those of whole relations, so they
//! do not depend on the caller's policies. Not here: the effect of other conditions than ranges of time, which can only
//! make a scan smaller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use terrane_compiler::sql::{ScannedRange, StatementShape, scan_statement};

use crate::catalog::Snapshot;
use crate::ports::clock::Clock;
use crate::ports::executed_queries::PlanSize;
use crate::ports::warehouse::{ScanSize, SizeBasis, Warehouse};

/// The time within which the warehouse must answer.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The age up to which a size is reused without a look at the version of the data.
const SETTLED: Duration = Duration::from_secs(2);
/// The age up to which a size is reused.
const MAX_AGE: Duration = Duration::from_secs(300);
/// The age up to which it counts as known that a size is unknown.
const MAX_AGE_UNKNOWN: Duration = Duration::from_secs(30);
/// The largest number of sizes in memory.
const MAX_SIZES: usize = 10_000;

/// Reads and remembers the sizes of scans.
pub struct ScanSizes {
    warehouse: Arc<dyn Warehouse>,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<ScanKey, KnownSize>>,
}

/// The text of a scan, and the ends of its range of time. The column of the range is one of those in the text.
type ScanKey = (Arc<str>, Option<(Arc<str>, Option<i64>, Option<i64>)>);

fn key(text: &str, range: Option<&ScannedRange>) -> ScanKey {
    (text.into(), range.map(|range| (Arc::clone(&range.column.text), range.low, range.high)))
}

#[derive(Clone, Copy)]
struct KnownSize {
    size: Option<ScanSize>,
    /// The version of the data when the size was read.
    version: Option<[u8; 32]>,
    /// The clock's `elapsed` when the size was read, and when its version was last compared.
    read: Duration,
    compared: Duration,
}

impl ScanSizes {
    pub fn new(warehouse: Arc<dyn Warehouse>, clock: Arc<dyn Clock>) -> Self {
        ScanSizes { warehouse, clock, known: Mutex::default() }
    }

    /// Returns the size of all scans of a statement within a second. `None` if the size of any scan is unknown.
    pub async fn of(&self, snapshot: &Snapshot, shape: &StatementShape) -> Option<ScanSize> {
        if shape.has_unknown_scans {
            return None;
        }
        tokio::time::timeout(TIMEOUT, self.all(snapshot, shape)).await.ok().flatten()
    }

    /// Returns the features of a statement, with the size of its scans if it is known.
    pub async fn plan_size(&self, snapshot: &Snapshot, shape: &StatementShape, row_bytes: u64) -> PlanSize {
        plan_size(shape, self.of(snapshot, shape).await, row_bytes)
    }

    /// Returns the size of all scans of a statement if it was read recently.
    pub fn remembered(&self, snapshot: &Snapshot, shape: &StatementShape) -> Option<ScanSize> {
        if shape.has_unknown_scans {
            return None;
        }
        let now = self.clock.elapsed();
        let mut total = NOTHING;
        for scan in &shape.scans {
            let text = scan_statement(&snapshot.model, &snapshot.profile, scan)?;
            let key = key(&text, scan.range.as_ref());
            let known = self.known().get(&key).copied().filter(|known| known.is_fresh(now));
            total = plus(total, known?.size?, scan.is_narrowed);
        }
        Some(total)
    }

    async fn all(&self, snapshot: &Snapshot, shape: &StatementShape) -> Option<ScanSize> {
        let mut total = NOTHING;
        for scan in &shape.scans {
            let text = scan_statement(&snapshot.model, &snapshot.profile, scan)?;
            total = plus(total, self.of_scan(&text, scan.range.as_ref()).await?, scan.is_narrowed);
        }
        Some(total)
    }

    async fn of_scan(&self, text: &str, range: Option<&ScannedRange>) -> Option<ScanSize> {
        let (key, now) = (key(text, range), self.clock.elapsed());
        let known = self.known().get(&key).copied();
        let is_settled = |known: &KnownSize| now.saturating_sub(known.compared) < SETTLED;
        if let Some(known) = known.filter(|known| is_settled(known) && known.is_fresh(now)) {
            return known.size;
        }
        // The version is read before the size: if the data change in between, the next comparison finds it.
        let version = self.warehouse.data_version().map(|version| version.digest);
        if let Some(known) = known.filter(|known| known.version == version && known.is_fresh(now)) {
            self.remember(key, KnownSize { compared: now, ..known });
            return known.size;
        }
        // A warehouse that cannot be asked now can be asked again at once.
        let size = self.warehouse.scan_size(text, range).await.ok()?;
        self.remember(key, KnownSize { size, version, read: now, compared: now });
        size
    }

    fn remember(&self, key: ScanKey, size: KnownSize) {
        let mut known = self.known();
        if known.len() >= MAX_SIZES && !known.contains_key(&key) {
            let now = self.clock.elapsed();
            known.retain(|_, size| size.is_fresh(now));
            if known.len() >= MAX_SIZES {
                known.clear();
            }
        }
        known.insert(key, size);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ScanKey, KnownSize>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownSize {
    fn is_fresh(&self, now: Duration) -> bool {
        let max = if self.size.is_some() { MAX_AGE } else { MAX_AGE_UNKNOWN };
        now.saturating_sub(self.read) < max
    }
}

/// The size of a statement without scans.
const NOTHING: ScanSize = ScanSize { bytes: 0, rows: Some(0), basis: SizeBasis::Exact };

/// Adds the size of a scan, which is an upper bound if conditions may narrow the scan.
fn plus(total: ScanSize, size: ScanSize, is_narrowed: bool) -> ScanSize {
    let narrowed = if is_narrowed { SizeBasis::UpperBound } else { SizeBasis::Exact };
    ScanSize {
        bytes: total.bytes.saturating_add(size.bytes),
        rows: total.rows.zip(size.rows).map(|(one, other)| one.saturating_add(other)),
        basis: total.basis.max(size.basis).max(narrowed),
    }
}

/// Returns the features of a statement.
pub(crate) fn plan_size(shape: &StatementShape, size: Option<ScanSize>, row_bytes: u64) -> PlanSize {
    PlanSize {
        table_bytes: size.map(|size| size.bytes),
        table_rows: size.and_then(|size| size.rows),
        facts: shape.facts,
        joins: shape.joins,
        groups: shape.groups,
        range_seconds: shape.range_seconds,
        row_bytes,
    }
}
