//! Live queries: a result now, and again whenever its rows have changed.
//!
//! In: a query, its caller, and the interval for data without a version. Out: a stream of answers. Each answer is
//! authorized and compiled anew for its caller, so a changed policy applies to the next one. Equal statements share
//! one execution and one stored result, as all queries do. A stream computes nothing until it is polled, so a slow
//! reader gets the newest answer and no queue. Absent: transports, and the end of credentials (server).
//!
//! # Changes
//! A query runs again if the project was replaced, or if the version of the data that it reads has changed
//! ([`DataVersions`]). For data without a version it runs again after `refresh`. An answer with the rows of the last
//! one is not sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use jiff::Timestamp;
use terrane_compiler::query::SemanticQuery;

use crate::catalog::{Catalog, Snapshot};
use crate::data_versions::{DataVersion, DataVersions};
use crate::domain::RequestContext;
use crate::ports::clock::Clock;
use crate::query::{Answer, CacheControl, QueryRunError, QueryService};

/// The time between two looks at the versions of data. Readings are shared by all live queries of a process.
pub const TICK: Duration = Duration::from_secs(1);
/// The time after which a query over data without a version runs again, if its caller states none.
const DEFAULT_REFRESH: Duration = Duration::from_secs(60);

/// The most live queries at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSettings {
    pub total: usize,
    pub per_caller: usize,
}

impl Default for LiveSettings {
    fn default() -> Self {
        LiveSettings { total: 10_000, per_caller: 100 }
    }
}

/// The reason for which a live query does not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LiveError {
    #[error("this caller has {most} subscriptions, which is the maximum; end one")]
    CallerFull { most: usize },
    #[error("this server has {most} subscriptions, which is the maximum; retry later")]
    Full { most: usize },
}

/// A changed answer, and the project that it is of.
#[derive(Debug, Clone)]
pub struct LiveAnswer {
    pub answer: Arc<Answer>,
    pub snapshot: Arc<Snapshot>,
    pub now: Timestamp,
}

/// Runs live queries.
pub struct LiveService {
    catalog: Arc<Catalog>,
    queries: Arc<QueryService>,
    versions: Arc<DataVersions>,
    clock: Arc<dyn Clock>,
    settings: LiveSettings,
    open: Arc<Mutex<OpenStreams>>,
}

type CallerKey = (Option<Arc<str>>, Arc<str>);

/// The numbers of open streams.
#[derive(Debug, Default)]
struct OpenStreams {
    total: usize,
    by_caller: HashMap<CallerKey, usize>,
}

/// The right to one stream, until it is dropped.
#[derive(Debug)]
pub struct LivePermit {
    open: Arc<Mutex<OpenStreams>>,
    caller: CallerKey,
}

impl Drop for LivePermit {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        if let Some(count) = open.by_caller.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                open.by_caller.remove(&self.caller);
            }
        }
    }
}

impl LiveService {
    pub fn new(
        catalog: Arc<Catalog>,
        queries: Arc<QueryService>,
        versions: Arc<DataVersions>,
        clock: Arc<dyn Clock>,
        settings: LiveSettings,
    ) -> Self {
        LiveService { catalog, queries, versions, clock, settings, open: Arc::default() }
    }

    /// Admits a stream of a caller.
    ///
    /// # Errors
    /// [`LiveError`]
    pub fn admit(&self, request: &RequestContext) -> Result<LivePermit, LiveError> {
        let LiveSettings { total, per_caller } = self.settings;
        let caller = (request.tenant.clone(), Arc::clone(&request.caller.user_id));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= total {
            return Err(LiveError::Full { most: total });
        }
        let count = open.by_caller.entry(caller.clone()).or_default();
        if *count >= per_caller {
            return Err(LiveError::CallerFull { most: per_caller });
        }
        *count += 1;
        open.total += 1;
        drop(open);
        Ok(LivePermit { open: Arc::clone(&self.open), caller })
    }

    /// Returns the number of open streams.
    pub fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    /// Returns the answers of a query: one at once, and one for each change. An error of the query itself, or a
    /// denial, is the last item; other errors are sent once, and the query goes on.
    ///
    /// `refresh`: the interval in which a query over data without a version runs, at least [`TICK`].
    pub fn query(
        self: &Arc<Self>,
        query: SemanticQuery,
        request: RequestContext,
        refresh: Option<Duration>,
        permit: LivePermit,
    ) -> impl Stream<Item = Result<LiveAnswer, QueryRunError>> + Send + use<> {
        let followed = Followed {
            service: Arc::clone(self),
            query,
            request,
            refresh: refresh.map(|refresh| refresh.max(TICK)),
            last: None,
            last_error: None,
            is_over: false,
            _permit: permit,
        };
        stream::unfold(followed, |mut followed| async move {
            let item = followed.next().await?;
            Some((item, followed))
        })
    }
}

/// One live query.
struct Followed {
    service: Arc<LiveService>,
    query: SemanticQuery,
    request: RequestContext,
    refresh: Option<Duration>,
    last: Option<LastRun>,
    /// The text of the error that was sent last, if no answer followed.
    last_error: Option<String>,
    is_over: bool,
    _permit: LivePermit,
}

/// The last run of a live query.
struct LastRun {
    answer: Option<Arc<Answer>>,
    snapshot: Arc<Snapshot>,
    /// The version of the data that the answer is of; `None` if it has none.
    version: Option<DataVersion>,
    ended: Duration,
}

impl Followed {
    async fn next(&mut self) -> Option<Result<LiveAnswer, QueryRunError>> {
        while !self.is_over {
            self.wait_for_change().await;
            let (snapshot, now) = (self.service.catalog.snapshot(), self.service.clock.now());
            match self.run(&snapshot, now).await {
                Ok(answer) => {
                    let before = self.last.as_ref().and_then(|last| last.answer.clone());
                    let version = answer.shared.as_ref().map(|shared| shared.version);
                    self.ran(Some(Arc::clone(&answer)), &snapshot, version);
                    let failed_before = self.last_error.take().is_some();
                    if failed_before || before.is_none_or(|before| !has_same_rows(&before, &answer)) {
                        return Some(Ok(LiveAnswer { answer, snapshot, now }));
                    }
                }
                Err(error) => {
                    let before = self.last.take().and_then(|last| last.answer);
                    self.ran(before, &snapshot, None);
                    self.is_over = error.is_denial() || matches!(error, QueryRunError::Query(_));
                    let text = error.to_string();
                    if self.last_error.replace(text.clone()) != Some(text) {
                        return Some(Err(error));
                    }
                }
            }
        }
        None
    }

    fn ran(&mut self, answer: Option<Arc<Answer>>, snapshot: &Arc<Snapshot>, version: Option<DataVersion>) {
        let ended = self.service.clock.elapsed();
        self.last = Some(LastRun { answer, snapshot: Arc::clone(snapshot), version, ended });
    }

    async fn run(&self, snapshot: &Arc<Snapshot>, now: Timestamp) -> Result<Arc<Answer>, QueryRunError> {
        // Outdated rows would hide the change that the query runs for.
        let cache = CacheControl { bypass: false, max_age: self.refresh, stale: Some(Duration::ZERO) };
        let session = self.service.queries.session_over(&self.request, Arc::clone(snapshot), now);
        let answer = session.prepare(&self.query).await?.with_cache(cache).run().await?;
        Ok(Arc::new(answer))
    }

    /// Returns at once before the first run, and else when the rows may have changed.
    async fn wait_for_change(&self) {
        let Some(last) = &self.last else { return };
        loop {
            tokio::time::sleep(TICK).await;
            if !Arc::ptr_eq(&self.service.catalog.snapshot(), &last.snapshot) {
                return;
            }
            let age = self.service.clock.elapsed().saturating_sub(last.ended);
            let refresh = self.refresh.unwrap_or(DEFAULT_REFRESH);
            match (&last.answer, last.version) {
                (Some(answer), Some(version)) => {
                    let (model, tenant) = (&last.snapshot.model, self.request.tenant.as_ref());
                    match self.service.versions.read(model, &answer.cubes, tenant).await {
                        Ok(reading) if reading.version != version => return,
                        // The version says nothing about rows that changed in place.
                        Ok(reading) if reading.max_age.is_some() && age >= refresh => return,
                        Ok(_) => {}
                        Err(_) if age >= refresh => return,
                        Err(_) => {}
                    }
                }
                _ if age >= refresh => return,
                _ => {}
            }
        }
    }
}

/// Returns whether two answers have the same rows in the same columns.
fn has_same_rows(answer: &Answer, other: &Answer) -> bool {
    let is_shared = match (&answer.shared, &other.shared) {
        (Some(stored), Some(others)) => Arc::ptr_eq(stored, others),
        _ => false,
    };
    is_shared
        || answer.columns == other.columns
            && answer.total_rows == other.total_rows
            && answer.returned_rows == other.returned_rows
            && answer.batches == other.batches
}
