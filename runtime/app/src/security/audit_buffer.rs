//! Collects the audit records of requests, so that not every request writes to the audit log.
//!
//! Changes write their own records, in the change's transaction. Authentications and denials are collected in batches,
//! in which equal events share one record with a count:
//! - Denials of authenticated callers are on disk before the answer ([`AuditBuffer::note_durably`]). Callers that
//!   arrive while a batch is written share the next batch.
//! - All other events are on disk with the next batch, at most one interval later ([`AuditBuffer::keep_writing`]).
//! - Failures of unauthenticated callers are unlimited and must not fill the disk. The first failure of a kind is in
//!   the next batch, and its repetitions share one record for each [`WINDOW`]. Above [`MAX_FAILING`] kinds, all further
//!   kinds share one record.
//!
//! If a process is killed, the events since its last batch are lost: those of at most one interval, and the counts of
//! repeated failures of at most one window. Memory is bounded: at [`MAX_OPEN`] kinds the next caller has to write the
//! batch first, and is refused while the store accepts none. A batch that the store refuses is retained. Not here: the
//! chain (`chain`) and the store.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::ports::audit::{AuditEntry, AuditLog};
use crate::ports::clock::Clock;
use crate::ports::observer::{Observer, TaskOutcome};
use crate::ports::store::StoreError;

/// The window in which repeated failures of unauthenticated callers are gathered.
pub const WINDOW: Duration = Duration::from_secs(5);
const MAX_OPEN: usize = 4_096;
/// The number of kinds of failures that have separate records within one window.
const MAX_FAILING: usize = 256;
/// The time that the writer of a batch waits for others to join: at most 100 batches a second.
const GATHER: Duration = Duration::from_millis(10);
/// The time between two attempts to write while the store refuses.
const RETRY: Duration = Duration::from_secs(1);

/// Gathers frequent audit events.
pub struct AuditBuffer {
    log: Arc<dyn AuditLog>,
    clock: Arc<dyn Clock>,
    open: Mutex<Open>,
    /// The lock of the writer.
    written: tokio::sync::Mutex<WriteProgress>,
    /// The number of attempts to write so far.
    tries: AtomicU64,
    noted: Notify,
}

/// The batch that events go into.
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

/// The progress of writing.
#[derive(Default)]
struct WriteProgress {
    /// The number of the first batch that is not on disk.
    below: u64,
    /// The last attempt that failed.
    failed: Option<(u64, StoreError)>,
}

/// The fields that are equal in events of the same kind.
type Kind = (Arc<str>, Arc<str>, Arc<str>, Option<Arc<str>>, Arc<str>, Option<Arc<str>>, Option<Arc<str>>);

impl AuditBuffer {
    pub fn new(log: Arc<dyn AuditLog>, clock: Arc<dyn Clock>) -> Self {
        AuditBuffer {
            log,
            clock,
            open: Mutex::default(),
            written: tokio::sync::Mutex::default(),
            tries: AtomicU64::new(0),
            noted: Notify::new(),
        }
    }

    /// Notes an event; the record is on disk with the next batch.
    ///
    /// # Errors
    /// Too many kinds are open, and the store doesn't take them.
    pub async fn note(&self, entry: AuditEntry) -> Result<(), StoreError> {
        self.push(entry).await?;
        self.noted.notify_one();
        Ok(())
    }

    /// Records that wait to be written.
    pub fn pending(&self) -> usize {
        let open = self.open();
        open.kinds.len() + open.failures.repeated.len()
    }

    /// Notes an event; the record is on disk when this returns.
    ///
    /// # Errors
    /// The store fails.
    pub async fn note_durably(&self, entry: AuditEntry) -> Result<(), StoreError> {
        let number = self.push(entry).await?;
        // Where its caller goes away before it is written, the task writes it.
        self.noted.notify_one();
        self.write_through(number).await
    }

    /// Writes what is open, repeated failures included.
    ///
    /// # Errors
    /// The store's; what it refuses stays open.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let number = {
            let mut open = self.open();
            open.gather_repeated();
            open.number
        };
        self.write_through(number).await
    }

    /// Writes a batch after each interval in which events were noted. Never returns.
    pub async fn keep_writing(&self, interval: Duration, observer: &dyn Observer) {
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
    async fn push(&self, entry: AuditEntry) -> Result<u64, StoreError> {
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

    /// Ensures that a batch is on disk: writes it, or finds it written. A caller who waited for a try
    /// that began after they came fails with it, so that no caller waits for more than two.
    async fn write_through(&self, number: u64) -> Result<(), StoreError> {
        let seen = self.tries.load(Ordering::Relaxed);
        let mut written = self.written.lock().await;
        if written.below > number {
            return Ok(());
        }
        if let Some((_, error)) = written.failed.as_ref().filter(|(tried, _)| *tried > seen) {
            return Err(error.clone());
        }
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
        let mut pending = PendingBatch { audit_buffer: self, batch: Some(batch) };
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

/// A batch on its way: what is not on disk when this is dropped is open again, also where the request
/// that wrote it went away.
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
    /// Returns false if the limit of kinds is reached.
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

/// Adds to the record of the kind, whose other facts are those of its first event.
fn gather(kinds: &mut HashMap<Kind, AuditEntry>, kind: Kind, entry: AuditEntry) {
    let count = entry.count;
    kinds.entry(kind).and_modify(|same| same.count += count).or_insert(entry);
}

/// Returns the record that stands for failures of too many kinds.
fn folded(entry: AuditEntry) -> AuditEntry {
    AuditEntry {
        client_ip: None,
        resource: "several".into(),
        after: None,
        reason: Some("failures of more kinds than are recorded separately".into()),
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
        // Details hold floats and have no hash; their debug text has every value.
        entry.after.as_ref().map(|after| format!("{after:?}").into()),
    )
}

#[cfg(test)]
mod tests;
