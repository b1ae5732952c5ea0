//! The reports of changes, as this process last read them.
//!
//! In: the port [`Invalidations`]. Out: the newest sequence for a cube and a tenant. Reports are stored in the state
//! database only, not in a cache. So a cache that loses its content, or returns to an older state, cannot restore an
//! old version. A process that has been unable to read reports for a second returns an error instead of versions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Sequences;
use crate::ports::audit::AuditEntry;
use crate::ports::clock::Clock;
use crate::ports::invalidations::{InvalidationScope, Invalidations};
use crate::ports::store::StoreError;

/// The age from which reports are reloaded in the background, while callers use the known ones.
const REREAD: Duration = Duration::from_millis(300);
/// The age from which callers wait until the reports are reloaded.
const MAX_AGE: Duration = Duration::from_millis(800);
/// The time that a reading may take.
const TIMEOUT: Duration = Duration::from_millis(800);

pub(super) struct Reports {
    invalidations: Option<Arc<dyn Invalidations>>,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
    /// The lock that is held while reports are read.
    reading: tokio::sync::Mutex<()>,
    is_reading: AtomicBool,
    /// The number of changes that were not recorded in the state database. It is a part of every version.
    local: AtomicU64,
}

#[derive(Default)]
struct Known {
    newest: Sequences,
    last: u64,
    /// The clock's `elapsed` when the last read of the reports started, and the error if that read failed.
    read: Option<(Duration, Option<StoreError>)>,
}

/// A background read of the reports. Dropping it, even during a panic, allows the next one to begin.
struct BackgroundRead(Arc<Reports>);

impl Drop for BackgroundRead {
    fn drop(&mut self) {
        self.0.is_reading.store(false, Ordering::Release);
    }
}

impl Reports {
    pub(super) fn new(invalidations: Option<Arc<dyn Invalidations>>, clock: Arc<dyn Clock>) -> Self {
        Reports {
            invalidations,
            clock,
            known: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            is_reading: AtomicBool::new(false),
            local: AtomicU64::new(0),
        }
    }

    /// Makes sure that the known reports are at most a second old.
    pub(super) async fn update(self: &Arc<Self>) -> Result<(), StoreError> {
        if self.invalidations.is_none() {
            return Ok(());
        }
        let (age, failure) = self.age();
        if age < REREAD {
            return failure.map_or(Ok(()), Err);
        }
        if age < MAX_AGE && failure.is_none() {
            if !self.is_reading.swap(true, Ordering::AcqRel) {
                let reports = Arc::clone(self);
                let reading = BackgroundRead(reports);
                tokio::spawn(async move {
                    // The error is stored; callers who need the reports later get it.
                    let _ = reading.0.read(REREAD).await;
                });
            }
            return Ok(());
        }
        self.read(REREAD).await
    }

    /// Returns the newest sequence that concerns a cube and a tenant.
    pub(super) fn newest(&self, cube: &Arc<str>, tenant: Option<&Arc<str>>) -> u128 {
        let known = self.known();
        let of = |cube: Option<&Arc<str>>, tenant: Option<&Arc<str>>| {
            let scope = InvalidationScope { cube: cube.cloned(), tenant: tenant.cloned() };
            known.newest.get(&scope).copied().unwrap_or_default()
        };
        let mut newest = of(None, None).max(of(Some(cube), None));
        if tenant.is_some() {
            newest = newest.max(of(None, tenant)).max(of(Some(cube), tenant));
        }
        u128::from(newest) | u128::from(self.local.load(Ordering::Acquire)) << 64
    }

    pub(super) async fn invalidate(
        &self,
        scopes: &[InvalidationScope],
        entry: Option<AuditEntry>,
    ) -> Result<(), StoreError> {
        let Some(invalidations) = &self.invalidations else {
            self.change_locally();
            return Ok(());
        };
        invalidations.invalidate(scopes, entry).await?;
        // If the report cannot be read back, the next caller who needs a version waits until the reports are read.
        if self.read(Duration::ZERO).await.is_err() {
            self.known().read = None;
        }
        Ok(())
    }

    /// Changes all versions of this process.
    pub(super) fn change_locally(&self) {
        self.local.fetch_add(1, Ordering::AcqRel);
    }

    /// Reads the new reports, unless another caller has read them less than `fresh` ago.
    async fn read(&self, fresh: Duration) -> Result<(), StoreError> {
        let Some(invalidations) = &self.invalidations else { return Ok(()) };
        let _turn = self.reading.lock().await;
        let (age, failure) = self.age();
        if age < fresh {
            return failure.map_or(Ok(()), Err);
        }
        let started = self.clock.elapsed();
        let after = self.known().last;
        let read = tokio::time::timeout(TIMEOUT, invalidations.invalidations(after)).await;
        let read = read.unwrap_or_else(|_| Err(StoreError { message: "no response in time".to_owned() }));
        let mut known = self.known();
        known.read = Some((started, read.as_ref().err().cloned()));
        for report in read? {
            known.last = known.last.max(report.sequence);
            known.newest.insert(report.scope, report.sequence);
        }
        Ok(())
    }

    /// Returns the age of the known reports, and the error of the last reading.
    fn age(&self) -> (Duration, Option<StoreError>) {
        let known = self.known();
        match &known.read {
            Some((at, failure)) => (self.clock.elapsed().saturating_sub(*at), failure.clone()),
            None => (Duration::MAX, None),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Each assignment replaces a whole value, so the state is valid even after a panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
