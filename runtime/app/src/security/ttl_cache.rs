//! Caches the store's answers briefly, so that most requests do not read the store.
//!
//! An answer is valid for [`FRESH`], or for [`STALE`] while the store is down. A store that takes longer than
//! [`PATIENCE`] counts as down. It is then not called for [`PAUSE`], so that requests do not wait for it one after the
//! other. A change by this process removes the answer at once; a change by another process is seen after [`FRESH`]. The
//! cache has at most [`MAX_ENTRIES`] answers. It stores only answers about existing objects, so that invented ids do
//! not displace real ones.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::ports::clock::Clock;
use crate::ports::store::StoreError;

const FRESH: Duration = Duration::from_secs(2);
const STALE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_secs(1);
const MAX_ENTRIES: usize = 10_000;

pub(crate) struct TtlCache<T> {
    clock: Arc<dyn Clock>,
    entries: RwLock<HashMap<Arc<str>, (T, Duration)>>,
    /// The time of the store's last failure, in milliseconds of the clock's `elapsed`; 0 without a failure.
    failed_ms: AtomicU64,
    /// The number of removals. An answer that was being read during a removal is not stored.
    forgotten: AtomicU64,
}

impl<T: Clone> TtlCache<T> {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        TtlCache {
            clock,
            entries: RwLock::new(HashMap::new()),
            failed_ms: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
        }
    }

    /// Returns a recent answer from the cache, or else the answer of `read`.
    pub(super) async fn get<F>(&self, id: &str, read: F) -> Result<Option<T>, StoreError>
    where
        F: Future<Output = Result<Option<T>, StoreError>>,
    {
        let (now, era) = (self.clock.elapsed(), self.forgotten.load(Ordering::Acquire));
        let known = self.entries.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let age = known.as_ref().map(|(_, at)| now.saturating_sub(*at));
        if let (Some((value, _)), Some(age)) = (&known, age)
            && age <= FRESH
        {
            return Ok(Some(value.clone()));
        }
        match known.filter(|_| age.is_some_and(|age| age <= STALE)) {
            Some((stale, _)) if self.has_just_failed(now) => Ok(Some(stale)),
            Some((stale, _)) => match tokio::time::timeout(PATIENCE, read).await {
                Ok(Ok(answer)) => Ok(self.learn(id, answer, now, era)),
                Ok(Err(_)) | Err(_) => {
                    self.failed_ms.store(millis(self.clock.elapsed()).max(1), Ordering::Relaxed);
                    Ok(Some(stale))
                }
            },
            None => Ok(self.learn(id, read.await?, now, era)),
        }
    }

    /// Returns whether the cache has an entry, even if it is old.
    pub(super) fn has(&self, id: &str) -> bool {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    fn has_just_failed(&self, now: Duration) -> bool {
        let failed = self.failed_ms.load(Ordering::Relaxed);
        failed > 0 && millis(now).saturating_sub(failed) < millis(PAUSE)
    }

    fn learn(&self, id: &str, answer: Option<T>, now: Duration, era: u64) -> Option<T> {
        self.failed_ms.store(0, Ordering::Relaxed);
        match &answer {
            Some(value) => self.keep(id, value.clone(), now, era),
            None => drop(self.entries.write().unwrap_or_else(PoisonError::into_inner).remove(id)),
        }
        answer
    }

    pub(crate) fn forget(&self, id: &str) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        self.forgotten.fetch_add(1, Ordering::Release);
        entries.remove(id);
    }

    /// Removes all entries.
    pub(crate) fn forget_all(&self) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        self.forgotten.fetch_add(1, Ordering::Release);
        entries.clear();
    }

    fn keep(&self, id: &str, value: T, now: Duration, era: u64) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        // An entry was removed while this answer was being read. If it was the entry of this answer, the answer may be
        // outdated.
        if self.forgotten.load(Ordering::Acquire) != era {
            return;
        }
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, (_, at)| now.saturating_sub(*at) <= FRESH);
        }
        if entries.len() < MAX_ENTRIES {
            entries.insert(id.into(), (value, now));
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use jiff::Timestamp;

    use super::*;

    #[derive(Default)]
    struct Millis(AtomicU64);

    impl Clock for Millis {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
        fn elapsed(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::Relaxed))
        }
    }

    fn down<T>() -> Result<Option<T>, StoreError> {
        Err(StoreError { message: "down".to_owned() })
    }

    #[tokio::test(start_paused = true)]
    async fn callers_do_not_wait_for_a_slow_store_one_after_another() {
        let clock = Arc::new(Millis::default());
        let recent = TtlCache::new(clock.clone());
        let at = |millis: u64| clock.0.store(millis, Ordering::Relaxed);
        assert_eq!(recent.get("a", ready(Ok(Some(1)))).await.expect("read"), Some(1));
        at(1_000);
        assert_eq!(recent.get("a", pending()).await.expect("fresh"), Some(1));
        at(3_000);
        // The call waits for half a second. Further calls do not wait for a second.
        let began = tokio::time::timeout(Duration::from_millis(600), recent.get("a", pending()));
        assert_eq!(began.await.expect("in time").expect("stale"), Some(1));
        let at_once = tokio::time::timeout(Duration::from_millis(1), recent.get("a", pending()));
        assert_eq!(at_once.await.expect("at once").expect("stale"), Some(1));
        at(4_100);
        assert_eq!(recent.get("a", ready(down())).await.expect("stale"), Some(1));
        at(61_000);
        assert!(recent.get("a", ready(down())).await.is_err(), "a minute is over");
        assert!(recent.get("b", ready(down())).await.is_err(), "b is not cached");
        assert_eq!(recent.get("a", ready(Ok(Some(2)))).await.expect("back"), Some(2));
        at(64_000);
        assert_eq!(recent.get("a", ready(Ok(None))).await.expect("read"), None, "what is gone is gone");
        assert!(recent.get("a", ready(down())).await.is_err());
    }
}
