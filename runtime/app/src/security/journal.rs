//! Audit records of what happens on every request, without a write on every request.
//!
//! Changes are written at once, by whoever makes them. Authentications and denials are frequent: alike
//! ones within [`WINDOW`] become one record with a count, written by one task. At most [`MAX_OPEN`] kinds
//! are open at a time; more are written at once. Not here: the chain (`chain`) and the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::ports::audit::{AuditEntry, AuditLog};
use crate::ports::store::StoreError;

/// How long alike events are gathered.
pub const WINDOW: Duration = Duration::from_secs(5);
const MAX_OPEN: usize = 4_096;

/// Gathers frequent audit events.
pub struct Journal {
    log: Arc<dyn AuditLog>,
    open: Mutex<HashMap<Key, AuditEntry>>,
}

/// What makes events alike.
type Key = (Arc<str>, Arc<str>, Arc<str>, Option<Arc<str>>, Arc<str>, Option<Arc<str>>);

impl Journal {
    pub fn new(log: Arc<dyn AuditLog>) -> Self {
        Journal { log, open: Mutex::new(HashMap::new()) }
    }

    /// Notes an event; the record is on disk after [`WINDOW`] at the latest.
    ///
    /// # Errors
    /// Too many kinds are open, and the store doesn't take them.
    pub async fn note(&self, entry: AuditEntry) -> Result<(), StoreError> {
        let full = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let entry_count = open.len();
            open.entry(key(&entry)).and_modify(|same| same.count += 1).or_insert(AuditEntry { count: 1, ..entry });
            (entry_count >= MAX_OPEN).then(|| std::mem::take(&mut *open))
        };
        match full {
            Some(all) => self.write(all).await,
            None => Ok(()),
        }
    }

    /// Records that wait to be written.
    pub fn pending(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Writes what is open. What the store refuses stays open.
    ///
    /// # Errors
    /// The store's.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let all = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        if all.is_empty() { Ok(()) } else { self.write(all).await }
    }

    async fn write(&self, all: HashMap<Key, AuditEntry>) -> Result<(), StoreError> {
        let mut entries: Vec<AuditEntry> = all.values().cloned().collect();
        entries.sort_by_key(|entry| entry.at);
        let outcome = self.log.append(entries).await;
        if outcome.is_err() {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, entry) in all {
                let count = entry.count;
                if open.len() < MAX_OPEN {
                    open.entry(key).and_modify(|same| same.count += count).or_insert(entry);
                }
            }
        }
        outcome
    }
}

fn key(entry: &AuditEntry) -> Key {
    (
        entry.event.clone(),
        entry.actor.clone(),
        entry.auth_method.clone(),
        entry.client_ip.clone(),
        entry.resource.clone(),
        entry.reason.clone(),
    )
}
