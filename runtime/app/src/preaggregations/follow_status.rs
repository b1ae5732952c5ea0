//! Followed states of rollups.
//!
//! In: a rollup and its caller. Out: a stream of its states. The state database is read once per interval for all
//! streams of a process, and only while one is open. Each state is that which its caller may see. Absent: comparison
//! with the state before, since a caller does not see all of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::stream::{self, Stream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::Preaggregations;
use super::requests::{RefreshError, RefreshRequest, named};
use super::status::{NewestBuilds, RollupStatus};
use crate::domain::RequestContext;
use crate::live::TICK;
use crate::ports::store::StoreError;

/// A reading of the state database, with its number.
#[derive(Clone)]
struct PolledBuilds {
    number: u64,
    builds: Result<Arc<NewestBuilds>, StoreError>,
}

/// The task that reads for all streams. It ends with the last of them.
#[derive(Default)]
pub(super) struct SharedReader(Mutex<Weak<Reader>>);

struct Reader {
    /// The last reading; `None` before the first one.
    readings: watch::Receiver<Option<PolledBuilds>>,
    /// The number of readings that have begun.
    begun: Arc<AtomicU64>,
    task: AbortHandle,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One stream of states.
struct Followed {
    service: Arc<Preaggregations>,
    request: RequestContext,
    wanted: RefreshRequest,
    /// `None` before the first state.
    readings: Option<PollReceiver>,
}

struct PollReceiver {
    next: watch::Receiver<Option<PolledBuilds>>,
    /// The number of the last reading that may be older than the stream.
    before: u64,
    _reader: Arc<Reader>,
}

impl Preaggregations {
    /// Returns the state of a rollup at once, and then periodically, changed or not. An error is the last item.
    pub fn follow_status(
        self: &Arc<Self>,
        request: RequestContext,
        cube: String,
        name: String,
    ) -> impl Stream<Item = Result<RollupStatus, RefreshError>> + Send + use<> {
        let wanted = RefreshRequest { cube: Some(cube), name: Some(name), partitions: Vec::new() };
        let followed = Followed { service: Arc::clone(self), request, wanted, readings: None };
        stream::unfold(Some(followed), |followed| async move {
            let mut followed = followed?;
            match followed.next().await {
                Ok(status) => Some((Ok(status), Some(followed))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// Returns the task that reads the state, which the first stream starts.
    fn reader(self: &Arc<Self>) -> Arc<Reader> {
        let mut shared = self.reader.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = shared.upgrade() {
            return reader;
        }
        let (sender, readings) = watch::channel(None);
        let (service, begun) = (Arc::clone(self), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&begun);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let builds = service.newest_builds().await.map(Arc::new);
                if sender.send(Some(PolledBuilds { number, builds })).is_err() {
                    return;
                }
            }
        });
        let reader = Arc::new(Reader { readings, begun, task: task.abort_handle() });
        *shared = Arc::downgrade(&reader);
        reader
    }
}

impl Followed {
    async fn next(&mut self) -> Result<RollupStatus, RefreshError> {
        let builds = match &mut self.readings {
            // A state of its own, so that it is not older than the stream.
            None => {
                let reader = self.service.reader();
                let (next, before) = (reader.readings.clone(), reader.begun.load(Ordering::SeqCst));
                self.readings = Some(PollReceiver { next, before, _reader: reader });
                Arc::new(self.service.newest_builds().await?)
            }
            Some(readings) => readings.next().await?,
        };
        let snapshot = self.service.ports.catalog.snapshot();
        let rollup = named(&snapshot, &self.wanted, &self.request)?;
        let status = rollup.first().map(|rollup| self.service.status_of(rollup, &snapshot, &builds));
        status.ok_or(RefreshError::Disabled)
    }
}

impl PollReceiver {
    async fn next(&mut self) -> Result<Arc<NewestBuilds>, StoreError> {
        loop {
            let is_reading = self.next.changed().await.is_ok();
            let reading = self.next.borrow_and_update().clone().filter(|_| is_reading);
            let Some(PolledBuilds { number, builds }) = reading else {
                return Err(StoreError { message: "the state is not read any more".to_owned() });
            };
            if number > self.before {
                return builds;
            }
        }
    }
}
