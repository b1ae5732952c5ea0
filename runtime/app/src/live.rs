//! Live queries: an answer at once, and a new answer whenever its rows have changed.
//!
//! In: a query, its caller, and the interval for data without a version. Out: a stream of answers. Each answer is
//! authorized and compiled again for its caller, so a changed policy applies to the next answer. As for all queries,
//! equal statements share one execution and one stored result. A stream computes nothing until it is polled, so a slow
//! reader gets the newest answer without a queue. Not here: transports, and the end of credentials (server).
//!
//! # Changes
//! A query runs again if the project was replaced, or if the version of the data that it reads has changed
//! ([`DataVersions`]). A query over data without a version runs again after `refresh`. An answer is sent only if its
//! rows differ from those of the last answer. Of the last answer, only a digest is stored.

mod digest;

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use jiff::Timestamp;
use terrane_compiler::model::CubeId;
use terrane_compiler::query::SemanticQuery;

use crate::catalog::{Catalog, Snapshot};
use crate::data_versions::DataVersions;
use crate::domain::{DataVersion, RequestContext};
use crate::limits::Subject;
use crate::limits::quota::{Quota, QuotaFull, QuotaPermit, QuotaSettings};
use crate::ports::clock::Clock;
use crate::ports::result_cache::StoredResult;
use crate::query::{Answer, CacheControl, QueryRunError, QueryService};
use digest::AnswerDigest;

/// The time between two checks of the data's version. All live queries of a process share the versions that were read.
pub const TICK: Duration = Duration::from_secs(1);
/// The time after which a query over data without a version runs again, if its caller states no interval.
const DEFAULT_REFRESH: Duration = Duration::from_secs(60);

/// The default limits: the largest number of subscriptions of all callers, and of one caller.
pub const DEFAULT_QUOTA: QuotaSettings = QuotaSettings { total: 10_000, per_subject: 1_000 };

/// The reason why a live query does not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LiveError {
    #[error("too many subscriptions of this caller; allowed: {max}")]
    CallerFull { max: usize },
    #[error("too many subscriptions; retry later")]
    Full { max: usize },
}

/// A changed answer, and the project that it was computed with.
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
    quota: Quota,
}

impl LiveService {
    pub fn new(
        catalog: Arc<Catalog>,
        queries: Arc<QueryService>,
        versions: Arc<DataVersions>,
        clock: Arc<dyn Clock>,
        quota: QuotaSettings,
    ) -> Self {
        LiveService { catalog, queries, versions, clock, quota: Quota::new(quota) }
    }

    /// Admits a stream of a caller. The stream counts until the permit is dropped. `credential` is the id of the
    /// caller's key or session.
    ///
    /// # Errors
    /// [`LiveError`]
    pub fn admit(&self, request: &RequestContext, credential: &Arc<str>) -> Result<QuotaPermit, LiveError> {
        let subject = Subject::of(&request.caller, credential, request.client);
        self.quota.take(subject).map_err(|full| match full {
            QuotaFull::Total { max } => LiveError::Full { max },
            QuotaFull::Subject { max } => LiveError::CallerFull { max },
        })
    }

    /// Returns the number of open streams.
    pub fn open(&self) -> usize {
        self.quota.open()
    }

    /// Returns the answers of a query: the first one at once, and another answer for each change. An error of the query
    /// itself, or a denial, is the last item. Any other error is sent once, and the query continues.
    ///
    /// `refresh` is the interval at which a query over data without a version runs again, at least [`TICK`].
    pub fn query(
        self: &Arc<Self>,
        query: SemanticQuery,
        request: RequestContext,
        refresh: Option<Duration>,
    ) -> impl Stream<Item = Result<LiveAnswer, QueryRunError>> + Send + use<> {
        let followed = Followed {
            service: Arc::clone(self),
            query,
            request,
            refresh: refresh.map(|refresh| refresh.max(TICK)),
            last: None,
            last_error: None,
            is_over: false,
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
    /// The message of the last error that was sent; `None` once an answer has followed it.
    last_error: Option<String>,
    is_over: bool,
}

/// The last run of a live query.
struct LastRun {
    answer: Option<LastAnswer>,
    snapshot: Arc<Snapshot>,
    /// The version of the data that the answer was computed from; `None` if the data has none.
    version: Option<DataVersion>,
    /// The current time of the run, to which relative ranges such as `today` refer.
    now: Timestamp,
    ended: Duration,
}

/// The last answer of a live query, without its rows.
struct LastAnswer {
    /// The digest of the answer's rows; `None` if it cannot be computed. Then each further answer counts as changed.
    digest: Option<AnswerDigest>,
    cubes: Vec<CubeId>,
    shared: Weak<StoredResult>,
    /// True if another run over unchanged data may return different rows.
    is_changing: bool,
}

impl LastAnswer {
    async fn of(answer: &Arc<Answer>) -> Self {
        let shared = answer.shared.as_ref().map(Arc::downgrade).unwrap_or_default();
        let (cubes, is_changing) = (answer.cubes.clone(), answer.is_changing);
        LastAnswer { digest: AnswerDigest::of(answer).await, cubes, shared, is_changing }
    }

    /// Returns whether an answer has its rows from the same stored result as this one.
    fn is_of(&self, answer: &Answer) -> bool {
        answer.shared.as_ref().is_some_and(|stored| Weak::ptr_eq(&Arc::downgrade(stored), &self.shared))
    }
}

impl Followed {
    async fn next(&mut self) -> Option<Result<LiveAnswer, QueryRunError>> {
        while !self.is_over {
            self.wait_for_change().await;
            let (snapshot, now) = (self.service.catalog.snapshot(), self.service.clock.now());
            match self.run(&snapshot, now).await {
                Ok(answer) => {
                    let before = self.last.take().and_then(|last| last.answer);
                    let version = answer.version;
                    let (last, is_changed) = next_answer(before, &answer).await;
                    self.ran(Some(last), &snapshot, now, version);
                    let failed_before = self.last_error.take().is_some();
                    if failed_before || is_changed {
                        return Some(Ok(LiveAnswer { answer, snapshot, now }));
                    }
                }
                Err(error) => {
                    let before = self.last.take().and_then(|last| last.answer);
                    self.ran(before, &snapshot, now, None);
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

    fn ran(
        &mut self,
        answer: Option<LastAnswer>,
        snapshot: &Arc<Snapshot>,
        now: Timestamp,
        version: Option<DataVersion>,
    ) {
        let ended = self.service.clock.elapsed();
        self.last = Some(LastRun { answer, snapshot: Arc::clone(snapshot), version, now, ended });
    }

    async fn run(&self, snapshot: &Arc<Snapshot>, now: Timestamp) -> Result<Arc<Answer>, QueryRunError> {
        // An outdated cached answer would hide the change that causes the query to run.
        let stale = Some(Duration::ZERO);
        let cache = CacheControl { bypass: false, max_age: self.refresh, stale, reads_version: true };
        let session = self.service.queries.session_over(&self.request, Arc::clone(snapshot), now);
        let answer = session.prepare(&self.query).await?.with_cache(cache).run().await?;
        Ok(Arc::new(answer))
    }

    /// Waits until the rows may have changed. Before the first run, returns at once.
    async fn wait_for_change(&self) {
        let Some(last) = &self.last else { return };
        loop {
            tokio::time::sleep(TICK).await;
            if !Arc::ptr_eq(&self.service.catalog.snapshot(), &last.snapshot) {
                return;
            }
            if quarter_hour(self.service.clock.now()) != quarter_hour(last.now) {
                return;
            }
            let age = self.service.clock.elapsed().saturating_sub(last.ended);
            let refresh = self.refresh.unwrap_or(DEFAULT_REFRESH);
            match (&last.answer, last.version) {
                (Some(answer), Some(version)) => {
                    let (model, tenant) = (&last.snapshot.model, self.request.tenant.as_ref());
                    match self.service.versions.read(model, &answer.cubes, tenant).await {
                        Ok(reading) if reading.version != version => return,
                        // The version does not cover changes such as rows that changed in place, so the query also runs
                        // after `refresh`.
                        Ok(reading) if (reading.max_age.is_some() || answer.is_changing) && age >= refresh => return,
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

/// Returns the new last answer, and whether its rows differ from the rows of the previous answer.
async fn next_answer(before: Option<LastAnswer>, answer: &Arc<Answer>) -> (LastAnswer, bool) {
    match before {
        Some(before) if before.is_of(answer) => (before, false),
        before => {
            let last = LastAnswer::of(answer).await;
            let is_changed = before.is_none_or(|before| before.digest.is_none() || before.digest != last.digest);
            (last, is_changed)
        }
    }
}

/// Returns the number of the quarter of an hour that contains a time. A day begins with a quarter of an hour in every
/// zone, and the rows of a relative range such as `today` change when a day begins.
fn quarter_hour(time: Timestamp) -> i64 {
    time.as_second().div_euclid(15 * 60)
}
