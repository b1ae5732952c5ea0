//! Collects the audit records of requests, so that not every request writes to the audit log.
//!
//! A change writes its own record, in its transaction. Authentications and denials are collected in batches. In a
//! batch, equal events share one record with a count:
//! - Denials of authenticated callers are on disk before the answer ([`AuditBuffer::note_durably`]). Callers that
//!   arrive while a batch is being written share the next batch.
//! - All other events are on disk with the next batch, at most one interval later ([`AuditBuffer::keep_writing`]).
//! - The number of failures of unauthenticated callers is unlimited, and must not fill the disk. The first failure of a
//!   kind is in the next batch. Its repetitions share one record for each [`WINDOW`]. If a window has more than
//!   [`MAX_FAILING`] kinds, all further kinds share one record.
//!
//! If a process is killed, it loses the events since its last batch: at most those of one interval, and the counts of
//! repeated failures of one window. Memory is bounded: at [`MAX_OPEN`] kinds, the next caller must write the batch
//! first, and is refused while the store accepts no batch. A batch that the store refuses stays in memory. Not here:
//! the chain (`chain`), and the store.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedMutexGuard};

use crate::ports::audit::{AuditEntry, AuditLog};
use crate::ports::clock::Clock;
use crate::ports::observer::{Observer, TaskOutcome};
use crate::ports::store::StoreError;

/// The time for which repeated failures of unauthenticated callers are collected in one record.
pub const WINDOW: Duration = Duration::from_secs(5);
const MAX_OPEN: usize = 4_096;
/// The largest number of kinds of failures with separate records within one window.
const MAX_FAILING: usize = 256;
/// The time for which the writer of a batch waits for other events to join. It limits writes to 100 batches a second.
const GATHER: Duration = Duration::from_millis(10);
/// The time between two attempts to write while the store refuses batches.
const RETRY: Duration = Duration::from_secs(1);

/// Collects frequent audit events.
pub struct AuditBuffer {
    log: Arc<dyn AuditLog>,
    clock: Arc<dyn Clock>,
    open: Mutex<Open>,
    /// The lock that is held while a batch is written.
    written: Arc<tokio::sync::Mutex<WriteProgress>>,
    /// The number of attempts to write so far.
    tries: AtomicU64,
    noted: Notify,
}

/// The batch to which events are added.
#[derive(Default)]
struct Open {
    number: u64,
    kinds: HashMap<Kind, AuditEntry>,
    failures: Failures,
}

/// Failures of unauthenticated callers within one window.
#[derive(Default)]
struct Failures {
    since: Duration,
    /// The kinds whose first event is in a batch.
    seen: HashSet<Kind>,
    repeated: HashMap<Kind, AuditEntry>,
}

#[derive(Default)]
struct WriteProgress {
    /// The number of the first batch that is not on disk.
    below: u64,
    /// The number of the last attempt that failed, and its error.
    failed: Option<(u64, StoreError)>,
}

/// The fields in which events of the same kind are equal.
type Kind = (Arc<str>, Arc<str>, Arc<str>, Option<Arc<str>>, Arc<str>, Option<Arc<str>>, Option<Arc<str>>);

impl AuditBuffer {
    pub fn new(log: Arc<dyn AuditLog>, clock: Arc<dyn Clock>) -> Self {
        AuditBuffer {
            log,
            clock,
            open: Mutex::default(),
            written: Arc::default(),
            tries: AtomicU64::new(0),
            noted: Notify::new(),
        }
    }

    /// Adds an event. Its record is on disk with the next batch.
    ///
    /// # Errors
    /// Too many kinds of events wait to be written, and the store does not accept the batch.
    pub async fn note(self: &Arc<Self>, entry: AuditEntry) -> Result<(), StoreError> {
        self.push(entry).await?;
        self.noted.notify_one();
        Ok(())
    }

    /// Returns the number of records that wait to be written.
    pub fn pending(&self) -> usize {
        let open = self.open();
        open.kinds.len() + open.failures.repeated.len()
    }

    /// Adds an event. Its record is on disk when this returns.
    ///
    /// # Errors
    /// The store fails.
    pub async fn note_durably(self: &Arc<Self>, entry: AuditEntry) -> Result<(), StoreError> {
        let number = self.push(entry).await?;
        // If the caller is dropped before the record is written, the task `keep_writing` writes it.
        self.noted.notify_one();
        self.write_through(number).await
    }

    /// Writes all waiting records, including the counts of repeated failures.
    ///
    /// # Errors
    /// The store refuses the batch; the records stay in memory.
    pub async fn flush(self: &Arc<Self>) -> Result<(), StoreError> {
        let number = {
            let mut open = self.open();
            open.gather_repeated();
            open.number
        };
        self.write_through(number).await
    }

    /// Writes a batch after each interval in which events were noted. Never returns.
    pub async fn keep_writing(self: &Arc<Self>, interval: Duration, observer: &dyn Observer) {
        let mut last_failed = false;
        loop {
            let is_waiting = self.open().failures.repeated.is_empty();
            if is_waiting && !last_failed {
                self.noted.notified().await;
            }
            tokio::time::sleep(if last_failed { RETRY } else { interval }).await;
            let number = {
                let mut open = self.open();
                open.end_window(self.clock.elapsed());
                open.number
            };
            let started = self.clock.elapsed();
            observer.task_started("audit_flush");
            let written = self.write_through(number).await;
            let outcome = if written.is_ok() { TaskOutcome::Success } else { TaskOutcome::Error };
            observer.task_ended("audit_flush", outcome, self.clock.elapsed().saturating_sub(started));
            last_failed = written.is_err();
            if let Err(error) = written {
                tracing::error!(event = "state_unavailable", error_message = %error);
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event to the open batch, and returns the number of the batch.
    async fn push(self: &Arc<Self>, entry: AuditEntry) -> Result<u64, StoreError> {
        loop {
            let full = {
                let mut open = self.open();
                if open.add(&entry, self.clock.elapsed()) {
                    return Ok(open.number);
                }
                open.number
            };
            self.write_through(full).await?;
        }
    }

    /// Ensures that a batch is on disk, and writes it if necessary. If an attempt that began after this call fails,
    /// this call fails with the same error. So no caller waits for more than two attempts.
    async fn write_through(self: &Arc<Self>, number: u64) -> Result<(), StoreError> {
        let seen = self.tries.load(Ordering::Relaxed);
        let written = Arc::clone(&self.written).lock_owned().await;
        if written.below > number {
            return Ok(());
        }
        if let Some((_, error)) = written.failed.as_ref().filter(|(tried, _)| *tried > seen) {
            return Err(error.clone());
        }
        // A commit whose caller is dropped can still take effect. So the batch is written by a task of its own, which
        // learns the result and adds the records to the open batch again only if they are not on disk.
        let writing = tokio::spawn(Arc::clone(self).write_batch(written));
        writing.await.unwrap_or_else(|error| Err(StoreError { message: error.to_string() }))
    }

    /// Writes the open batch.
    async fn write_batch(self: Arc<Self>, mut written: OwnedMutexGuard<WriteProgress>) -> Result<(), StoreError> {
        tokio::time::sleep(GATHER).await;
        let batch = {
            let mut open = self.open();
            open.number += 1;
            std::mem::take(&mut open.kinds)
        };
        if batch.is_empty() {
            *written = WriteProgress { below: self.open().number, failed: None };
            return Ok(());
        }
        let tried = self.tries.fetch_add(1, Ordering::Relaxed) + 1;
        let mut pending = PendingBatch { audit_buffer: &self, batch: Some(batch) };
        match self.log.append(pending.entries()).await {
            Ok(()) => {
                pending.batch = None;
                *written = WriteProgress { below: self.open().number, failed: None };
                Ok(())
            }
            Err(error) => {
                written.failed = Some((tried, error.clone()));
                Err(error)
            }
        }
    }
}

/// A batch that is being written. If it is dropped before it is on disk, its records are added to the open batch again.
struct PendingBatch<'a> {
    audit_buffer: &'a AuditBuffer,
    batch: Option<HashMap<Kind, AuditEntry>>,
}

impl PendingBatch<'_> {
    /// Returns the entries in the order of their first events.
    fn entries(&self) -> Vec<AuditEntry> {
        let mut entries: Vec<AuditEntry> = self.batch.iter().flat_map(HashMap::values).cloned().collect();
        entries.sort_by_key(|entry| entry.at);
        entries
    }
}

impl Drop for PendingBatch<'_> {
    fn drop(&mut self) {
        let mut open = self.audit_buffer.open();
        for (kind, entry) in self.batch.take().into_iter().flatten() {
            gather(&mut open.kinds, kind, entry);
        }
    }
}

impl Open {
    /// Adds an event. Returns false if the limit of kinds is reached.
    fn add(&mut self, entry: &AuditEntry, now: Duration) -> bool {
        let mut kind = kind(entry);
        let mut entry = AuditEntry { count: 1, ..entry.clone() };
        if entry.actor.is_empty() {
            self.end_window(now);
            let is_known = self.failures.seen.contains(&kind);
            if !is_known && self.failures.seen.len() >= MAX_FAILING {
                entry = folded(entry);
                kind = self::kind(&entry);
            }
            if is_known || self.failures.seen.contains(&kind) {
                gather(&mut self.failures.repeated, kind, entry);
                return true;
            }
        }
        if self.kinds.len() >= MAX_OPEN && !self.kinds.contains_key(&kind) {
            return false;
        }
        if entry.actor.is_empty() {
            self.failures.seen.insert(kind.clone());
        }
        gather(&mut self.kinds, kind, entry);
        true
    }

    fn end_window(&mut self, now: Duration) {
        if now.saturating_sub(self.failures.since) >= WINDOW {
            self.gather_repeated();
            self.failures.seen.clear();
            self.failures.since = now;
        }
    }

    fn gather_repeated(&mut self) {
        for (kind, entry) in std::mem::take(&mut self.failures.repeated) {
            gather(&mut self.kinds, kind, entry);
        }
    }
}

/// Adds an event to the record of its kind. The other fields of this record are those of the first event.
fn gather(kinds: &mut HashMap<Kind, AuditEntry>, kind: Kind, entry: AuditEntry) {
    let count = entry.count;
    kinds.entry(kind).and_modify(|same| same.count += count).or_insert(entry);
}

/// Returns the record that counts failures beyond the largest number of kinds.
fn folded(entry: AuditEntry) -> AuditEntry {
    AuditEntry {
        client_ip: None,
        resource: "several".into(),
        after: None,
        reason: Some("failures beyond the number of kinds that are recorded separately".into()),
        ..entry
    }
}

fn kind(entry: &AuditEntry) -> Kind {
    (
        entry.event.clone(),
        entry.actor.clone(),
        entry.auth_method.clone(),
        entry.client_ip.clone(),
        entry.resource.clone(),
        entry.reason.clone(),
        // Details contain floats, which cannot be hashed. Their debug format contains every value.
        entry.after.as_ref().map(|after| format!("{after:?}").into()),
    )
}

#[cfg(test)]
mod tests;
