//! Limits the number of sockets and live queries that callers have open.
//!
//! In: a subject that opens a socket or live query. Out: a permit, which counts until it is dropped, or [`QuotaFull`].
//! Subjects without an open permit use no memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Subject;

/// The largest number of permits at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaSettings {
    pub total: usize,
    pub per_subject: usize,
}

/// The bound that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaFull {
    Total { max: usize },
    Subject { max: usize },
}

/// Counts open permits. All clones share one count.
#[derive(Debug, Clone)]
pub struct Quota {
    settings: QuotaSettings,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_subject: HashMap<Subject, usize>,
}

/// The right to have one socket or live query open. Dropping it returns the permit.
#[derive(Debug)]
pub struct QuotaPermit {
    open: Arc<Mutex<Open>>,
    subject: Subject,
}

impl Quota {
    pub fn new(settings: QuotaSettings) -> Self {
        Quota { settings, open: Arc::default() }
    }

    /// Acquires a permit.
    ///
    /// # Errors
    /// [`QuotaFull`]
    pub fn take(&self, subject: Subject) -> Result<QuotaPermit, QuotaFull> {
        let QuotaSettings { total, per_subject } = self.settings;
        let mut open = lock(&self.open);
        if open.total >= total {
            return Err(QuotaFull::Total { max: total });
        }
        if open.by_subject.get(&subject).is_some_and(|count| *count >= per_subject) {
            return Err(QuotaFull::Subject { max: per_subject });
        }
        *open.by_subject.entry(subject.clone()).or_default() += 1;
        open.total += 1;
        drop(open);
        Ok(QuotaPermit { open: Arc::clone(&self.open), subject })
    }

    /// Returns the number of permits that are open.
    pub fn open(&self) -> usize {
        lock(&self.open).total
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        open.total -= 1;
        if let Some(count) = open.by_subject.get_mut(&self.subject) {
            *count -= 1;
            if *count == 0 {
                open.by_subject.remove(&self.subject);
            }
        }
    }
}

/// Locks the counts. They are valid even after a panic, because no change of them can panic halfway.
fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_bounded_for_each_subject_and_in_total() {
        let quota = Quota::new(QuotaSettings { total: 3, per_subject: 2 });
        let of = |name: &str| quota.take(Subject::Key(name.into()));
        let (first, second) = (of("a").unwrap(), of("a").unwrap());
        assert_eq!(of("a").unwrap_err(), QuotaFull::Subject { max: 2 });
        assert_eq!(quota.take(Subject::User("b".into())).map(|_| ()), Ok(()));
        let other = of("b").unwrap();
        assert_eq!(of("c").unwrap_err(), QuotaFull::Total { max: 3 });
        drop(first);
        let third = of("a").unwrap();
        assert_eq!(quota.open(), 3);
        drop((second, other, third));
        assert_eq!(quota.open(), 0);
        assert!(lock(&quota.open).by_subject.is_empty());
    }
}
