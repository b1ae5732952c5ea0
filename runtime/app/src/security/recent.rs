//! What the store said a moment ago, so that a request needs no read of it.
//!
//! An answer is good for [`FRESH`]; while the store is down, for [`STALE`]. A change made through this
//! process is forgotten at once, one made elsewhere is seen after [`FRESH`]. At most [`MAX_ENTRIES`]
//! answers are kept, those of things that exist: made-up ids can't push out real ones.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::ports::clock::Clock;
use crate::ports::store::StoreError;

const FRESH: Duration = Duration::from_secs(2);
const STALE: Duration = Duration::from_secs(60);
const MAX_ENTRIES: usize = 10_000;

pub(super) struct Recent<T> {
    clock: Arc<dyn Clock>,
    entries: RwLock<HashMap<Arc<str>, (T, Duration)>>,
}

impl<T: Clone> Recent<T> {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Recent { clock, entries: RwLock::new(HashMap::new()) }
    }

    /// The answer of a moment ago, or `read`'s.
    pub(super) async fn get<F>(&self, id: &str, read: F) -> Result<Option<T>, StoreError>
    where
        F: Future<Output = Result<Option<T>, StoreError>>,
    {
        let now = self.clock.elapsed();
        let known = self.entries.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let age = known.as_ref().map(|(_, at)| now.saturating_sub(*at));
        if let (Some((value, _)), Some(age)) = (&known, age)
            && age <= FRESH
        {
            return Ok(Some(value.clone()));
        }
        match read.await {
            Ok(Some(value)) => {
                self.keep(id, value.clone(), now);
                Ok(Some(value))
            }
            Ok(None) => {
                self.forget(id);
                Ok(None)
            }
            Err(error) => match (known, age) {
                (Some((value, _)), Some(age)) if age <= STALE => Ok(Some(value)),
                _ => Err(error),
            },
        }
    }

    /// Whether it was there some time ago.
    pub(super) fn has(&self, id: &str) -> bool {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    pub(super) fn forget(&self, id: &str) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    fn keep(&self, id: &str, value: T, now: Duration) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, (_, at)| now.saturating_sub(*at) <= FRESH);
        }
        if entries.len() < MAX_ENTRIES {
            entries.insert(id.into(), (value, now));
        }
    }
}
