//! Reads the state database once for all followers of a process.
//!
//! In: a function that reads. Out: its result once per interval, for all followers of a process. The function is called
//! only while a follower exists. Not here: the comparison with the previous result, because followers may not all see
//! the same part of a result.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::ports::store::StoreError;

/// The time between two reads of the state database while subscriptions are open.
const INTERVAL: Duration = Duration::from_secs(1);

/// The task that reads for all followers. The first follower starts it, and it ends with the last one.
pub(crate) struct SharedReader<T>(Mutex<Weak<Reader<T>>>);

/// The results for one follower.
pub(crate) struct Readings<T> {
    next: watch::Receiver<Option<PolledState<T>>>,
    /// The number of the last read that may have begun before the follower.
    before: u64,
    _reader: Arc<Reader<T>>,
}

#[derive(Clone)]
struct PolledState<T> {
    number: u64,
    result: Result<T, StoreError>,
}

struct Reader<T> {
    /// The last result; `None` before the first one.
    last: watch::Receiver<Option<PolledState<T>>>,
    /// The number of reads that have begun.
    begun: Arc<AtomicU64>,
    task: AbortHandle,
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<T> Default for SharedReader<T> {
    fn default() -> Self {
        SharedReader(Mutex::default())
    }
}

impl<T: Clone + Send + Sync + 'static> SharedReader<T> {
    /// Returns the results of reads that begin after this call. If no task is running, starts one that calls `read`;
    /// otherwise `read` is dropped.
    pub(crate) fn follow<F>(&self, read: impl Fn() -> F + Send + 'static) -> Readings<T>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = shared.upgrade().unwrap_or_else(|| {
            let reader = Arc::new(Reader::start(read));
            *shared = Arc::downgrade(&reader);
            reader
        });
        Readings { next: reader.last.clone(), before: reader.begun.load(Ordering::SeqCst), _reader: reader }
    }
}

impl<T: Send + Sync + 'static> Reader<T> {
    fn start<F>(read: impl Fn() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let (sender, last) = watch::channel(None);
        let begun = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&begun);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let result = read().await;
                if sender.send(Some(PolledState { number, result })).is_err() {
                    return;
                }
            }
        });
        Reader { last, begun, task: task.abort_handle() }
    }
}

impl<T: Clone> Readings<T> {
    /// Waits for the next result of a read that began after the follower, and returns it.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub(crate) async fn next(&mut self) -> Result<T, StoreError> {
        loop {
            let is_reading = self.next.changed().await.is_ok();
            let reading = self.next.borrow_and_update().clone().filter(|_| is_reading);
            let Some(PolledState { number, result }) = reading else {
                return Err(StoreError { message: "the state is not read any more".to_owned() });
            };
            if number > self.before {
                return result;
            }
        }
    }
}
