//! The lists of values that a search examines.
//!
//! In: searchable dimensions and a caller. Out: the values of each dimension, within a time limit. A caller without row
//! filters on the cubes of a dimension shares an indexed list with all callers whose statement is equal. The key of a
//! list is the digest of this statement, which contains the policies, so a list never reaches a caller whose statement
//! differs. For callers with row filters, with guardrails of their own, or with governance hooks, the values are a
//! query of the caller, whose result is cached as all results are.
//!
//! A list is reloaded when the version of the data has changed. Loads run in the background, one for each list, so that
//! a search that stops waiting does not stop them. The number of lists, values and bytes is bounded. Not here: the
//! matches of a search.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use terrane_compiler::Access;
use terrane_compiler::model::{CubeId, DimensionId};
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::rollup::ReadyRollups;
use terrane_search::{Field, Index, IndexBuilder, Question, score_of};

use super::lookup;
use crate::catalog::Snapshot;
use crate::data_versions::{DataVersions, VersionReading};
use crate::domain::{QueryKind, RequestContext};
use crate::ports::clock::Clock;
use crate::query::{CacheControl, QueryService, QuerySession, statement_digest_of};

/// The largest number of values of one dimension that are searched.
pub(crate) const MAX_VALUES: usize = 5_000;
/// The largest number of bytes of the values of one dimension.
const MAX_LIST_BYTES: usize = 1024 * 1024;
/// The largest number of bytes of a value that is searched.
const MAX_VALUE_BYTES: usize = 500;
/// The largest number of shared lists, and of the bytes of their values.
const MAX_LISTS: usize = 256;
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// The number of lists that are loaded at the same time.
const MAX_LOADS: usize = 2;
/// The shortest time for which a list is used if its data has no version.
const MIN_AGE: Duration = Duration::from_secs(1);
/// The time after a failed load in which the list is not loaded again.
const RETRY: Duration = Duration::from_secs(5);

/// A dimension whose values are searched.
#[derive(Debug, Clone)]
pub(crate) struct SearchedDimension {
    pub(crate) id: DimensionId,
    /// The name in queries, such as `airlines.name`.
    pub(crate) member: Arc<str>,
}

/// The values of a dimension for one caller.
#[derive(Debug, Clone)]
pub(crate) enum DimensionValues {
    /// An indexed list, which callers share.
    Shared(Arc<ValueList>),
    /// The values that a query of this caller returned.
    Own(Values),
    /// The caller may not query the values.
    Denied,
    /// The warehouse did not respond in time.
    Unavailable,
}

/// Values in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    values: Vec<Arc<str>>,
    /// True if the dimension has no further values.
    is_complete: bool,
}

/// Values with an index over their words.
#[derive(Debug)]
pub(crate) struct ValueList {
    values: Values,
    index: Index,
    bytes: usize,
}

/// A value that matches a question.
#[derive(Debug)]
pub(crate) struct MatchedValue {
    pub(crate) value: Arc<str>,
    pub(crate) score: u32,
}

/// Loads and stores lists of values.
pub(crate) struct ValueLists {
    queries: Arc<QueryService>,
    versions: Arc<DataVersions>,
    clock: Arc<dyn Clock>,
    slots: Mutex<HashMap<ListKey, Arc<Slot>>>,
    /// The number of lists that were requested, as the time of their last use.
    uses: AtomicU64,
    /// The statements for callers without any policy.
    open_statements: Mutex<OpenStatements>,
    loads: tokio::sync::Semaphore,
}

/// The tenant and the digest of the statement of a list.
type ListKey = (Option<Arc<str>>, Arc<str>);

/// The statement of a dimension's list.
#[derive(Debug, Clone)]
struct ListStatement {
    digest: Arc<str>,
    cubes: Arc<[CubeId]>,
}

#[derive(Default)]
struct OpenStatements {
    snapshot: Weak<Snapshot>,
    rollups: Weak<ReadyRollups>,
    known: HashMap<DimensionId, ListStatement>,
}

#[derive(Default)]
struct Slot {
    state: Mutex<Option<SlotState>>,
    /// The lock that is held while the list is loaded.
    loading: Arc<tokio::sync::Mutex<()>>,
    used: AtomicU64,
}

#[derive(Clone)]
struct SlotState {
    /// The version of the data before the load; `None` if it is unknown.
    reading: Option<VersionReading>,
    loaded: Duration,
    values: DimensionValues,
}

/// The source of a dimension's values for one caller.
enum Plan {
    Shared(ListStatement),
    Own,
    Denied,
}

impl Values {
    /// Creates a list from the rows of a query for at most `limit` values.
    fn new(found: Vec<Option<Arc<str>>>, limit: usize) -> Self {
        let mut is_complete = found.len() < limit;
        let (mut bytes, mut values) = (0, Vec::with_capacity(found.len()));
        for value in found.into_iter().flatten().filter(|value| !value.is_empty()) {
            bytes += value.len();
            if value.len() > MAX_VALUE_BYTES || bytes > MAX_LIST_BYTES {
                is_complete = false;
            } else {
                values.push(value);
            }
        }
        Values { values, is_complete }
    }
}

impl ValueList {
    fn new(values: Values) -> Self {
        let mut builder = IndexBuilder::default();
        for value in &values.values {
            builder.add([(Field::Value, &**value)]);
        }
        let bytes = values.values.iter().map(|value| value.len()).sum();
        ValueList { values, index: builder.build(), bytes }
    }
}

impl ValueList {
    pub(crate) fn len(&self) -> usize {
        self.values.values.len()
    }

    /// Returns the values that equal one of several spellings.
    pub(crate) fn equal(&self, spellings: &[String]) -> Vec<Arc<str>> {
        let equals = |value: &&Arc<str>| spellings.iter().any(|spelling| **spelling == ***value);
        self.values.values.iter().filter(equals).map(Arc::clone).collect()
    }

    /// Returns the values that contain one of several spellings, ignoring case, at most `limit`.
    pub(crate) fn containing(&self, spellings: &[String], limit: usize) -> Vec<Arc<str>> {
        let spellings: Vec<String> = spellings.iter().map(|spelling| spelling.to_lowercase()).collect();
        let contains = |value: &&Arc<str>| {
            let value = value.to_lowercase();
            spellings.iter().any(|spelling| value.contains(spelling))
        };
        self.values.values.iter().filter(contains).take(limit).map(Arc::clone).collect()
    }
}

impl DimensionValues {
    /// Returns all values of the dimension, if callers share their list. A caller with row filters has none.
    pub(crate) fn complete(&self) -> Option<&Arc<ValueList>> {
        match self {
            DimensionValues::Shared(list) if list.values.is_complete => Some(list),
            _ => None,
        }
    }

    /// Returns the best values that match a question, at most `limit`, best first.
    pub(crate) fn find(&self, question: &Question, limit: usize) -> Vec<MatchedValue> {
        match self {
            DimensionValues::Shared(list) => {
                let found = list.index.find(question).take(limit);
                let value = |entry: u32| Arc::clone(&list.values.values[entry as usize]);
                found.map(|found| MatchedValue { value: value(found.entry), score: found.score }).collect()
            }
            DimensionValues::Own(values) => {
                let scored = values.values.iter().filter_map(|value| {
                    let score = score_of(question, Field::Value, value)?;
                    Some(MatchedValue { value: Arc::clone(value), score })
                });
                let mut found: Vec<MatchedValue> = scored.collect();
                // The sort is stable, so equal values stay in their order.
                found.sort_by_key(|found| std::cmp::Reverse(found.score));
                found.truncate(limit);
                found
            }
            DimensionValues::Denied | DimensionValues::Unavailable => Vec::new(),
        }
    }

    /// Returns whether all values of the dimension are searched that the caller may see.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            DimensionValues::Shared(list) => list.values.is_complete,
            DimensionValues::Own(values) => values.is_complete,
            DimensionValues::Denied => true,
            DimensionValues::Unavailable => false,
        }
    }

    fn bytes(&self) -> usize {
        if let DimensionValues::Shared(list) = self { list.bytes } else { 0 }
    }
}

impl ValueLists {
    pub(crate) fn new(queries: Arc<QueryService>, versions: Arc<DataVersions>, clock: Arc<dyn Clock>) -> Self {
        ValueLists {
            queries,
            versions,
            clock,
            slots: Mutex::default(),
            uses: AtomicU64::new(0),
            open_statements: Mutex::default(),
            loads: tokio::sync::Semaphore::new(MAX_LOADS),
        }
    }

    /// Returns the values of each dimension. The dimensions must exist for the caller. Those whose values are not known
    /// after `limit` are unavailable.
    pub(crate) async fn values(
        self: &Arc<Self>,
        wanted: &[SearchedDimension],
        snapshot: &Arc<Snapshot>,
        request: &RequestContext,
        limit: Duration,
    ) -> Vec<DimensionValues> {
        self.values_of(wanted, snapshot, request, limit, true).await
    }

    /// Returns the stored lists of dimensions, which callers share. Other dimensions are unavailable or denied: their
    /// values must be a query of this caller.
    pub(crate) async fn stored(
        self: &Arc<Self>,
        wanted: &[SearchedDimension],
        snapshot: &Arc<Snapshot>,
        request: &RequestContext,
        limit: Duration,
    ) -> Vec<DimensionValues> {
        self.values_of(wanted, snapshot, request, limit, false).await
    }

    async fn values_of(
        self: &Arc<Self>,
        wanted: &[SearchedDimension],
        snapshot: &Arc<Snapshot>,
        request: &RequestContext,
        limit: Duration,
        runs_own: bool,
    ) -> Vec<DimensionValues> {
        let mut found = vec![DimensionValues::Unavailable; wanted.len()];
        if !wanted.is_empty() {
            let fill = self.fill(wanted, snapshot, request, runs_own, &mut found);
            // The values that were found before the limit remain.
            let _ = tokio::time::timeout(limit, fill).await;
        }
        found
    }

    async fn fill(
        self: &Arc<Self>,
        wanted: &[SearchedDimension],
        snapshot: &Arc<Snapshot>,
        request: &RequestContext,
        runs_own: bool,
        found: &mut [DimensionValues],
    ) {
        let context = request.with_kind(QueryKind::Rest);
        let session = self.queries.session_over(&context, Arc::clone(snapshot), self.clock.now());
        let (mut loading, mut own) = (Vec::new(), Vec::new());
        for (place, dimension) in wanted.iter().enumerate() {
            let limit = list_limit(&session);
            let Ok(query) = lookup::all(&dimension.member, limit as u64) else { continue };
            match self.plan(&session, dimension, &query) {
                Plan::Denied => found[place] = DimensionValues::Denied,
                Plan::Own if runs_own => own.push((place, query, limit)),
                Plan::Own => {}
                Plan::Shared(statement) => {
                    let slot = self.slot((request.tenant.clone(), Arc::clone(&statement.digest)));
                    match self.current(&slot, &statement, &session).await {
                        Some(values) => found[place] = values,
                        None => {
                            self.start_load(&slot, &statement, query, snapshot, &context);
                            loading.push((place, slot));
                        }
                    }
                }
            }
        }
        for (place, query, limit) in own {
            found[place] = match lookup::run(&session, &query, CacheControl::default()).await {
                Ok(Some(answer)) => DimensionValues::Own(Values::new(lookup::texts(&answer), limit)),
                Ok(None) => DimensionValues::Denied,
                // The session has logged the failure.
                Err(_) => DimensionValues::Unavailable,
            };
        }
        for (place, slot) in loading {
            drop(slot.loading.lock().await);
            if let Some(state) = slot.state() {
                found[place] = state.values;
            }
        }
    }

    /// Returns the source of the values for the caller.
    fn plan(&self, session: &QuerySession<'_>, dimension: &SearchedDimension, query: &SemanticQuery) -> Plan {
        let access = Access::of(&session.snapshot().model, session.caller());
        if access.mask(dimension.id).is_some() {
            return Plan::Denied;
        }
        // A later decision of a hook may differ from an earlier one.
        if self.queries.has_hooks() || session.has_own_guardrails() {
            return Plan::Own;
        }
        let statement = match access.is_open() {
            true => self.open_statement(session, dimension, query),
            false => list_statement(session, query),
        };
        let Some(statement) = statement else { return Plan::Denied };
        let is_filtered = |cube: &CubeId| access.row_filters(*cube).next().is_some();
        match std::iter::once(&dimension.id.cube).chain(&*statement.cubes).any(is_filtered) {
            true => Plan::Own,
            false => Plan::Shared(statement),
        }
    }

    /// Returns the statement for a caller without policies, from memory if it was compiled before.
    fn open_statement(
        &self,
        session: &QuerySession<'_>,
        dimension: &SearchedDimension,
        query: &SemanticQuery,
    ) -> Option<ListStatement> {
        let (snapshot, rollups) = (session.shared_snapshot(), self.queries.ready_rollups());
        let mut statements = lock(&self.open_statements);
        let is_current = std::ptr::eq(statements.snapshot.as_ptr(), Arc::as_ptr(&snapshot))
            && std::ptr::eq(statements.rollups.as_ptr(), Arc::as_ptr(&rollups));
        if !is_current {
            let (snapshot, rollups) = (Arc::downgrade(&snapshot), Arc::downgrade(&rollups));
            *statements = OpenStatements { snapshot, rollups, known: HashMap::new() };
        }
        if let Some(known) = statements.known.get(&dimension.id) {
            return Some(known.clone());
        }
        let statement = list_statement(session, query)?;
        statements.known.insert(dimension.id, statement.clone());
        Some(statement)
    }

    fn slot(&self, key: ListKey) -> Arc<Slot> {
        let slot = Arc::clone(lock(&self.slots).entry(key).or_default());
        slot.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot
    }

    /// Returns the values of a slot if they are those of the current data, or if their last load failed just now.
    async fn current(
        &self,
        slot: &Slot,
        statement: &ListStatement,
        session: &QuerySession<'_>,
    ) -> Option<DimensionValues> {
        let state = slot.state()?;
        let age = self.clock.elapsed().saturating_sub(state.loaded);
        if matches!(state.values, DimensionValues::Unavailable) {
            return (age < RETRY).then_some(state.values);
        }
        let Some(before) = state.reading else { return (age < MIN_AGE).then_some(state.values) };
        let tenant = session.context().tenant.as_ref();
        let now = self.versions.read(&session.snapshot().model, &statement.cubes, tenant).await.ok()?;
        let is_fresh = before.max_age.is_none_or(|max_age| age < max_age.max(MIN_AGE));
        (is_fresh && before.version == now.version).then_some(state.values)
    }

    /// Starts to load a list, unless it is being loaded.
    fn start_load(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        statement: &ListStatement,
        query: SemanticQuery,
        snapshot: &Arc<Snapshot>,
        context: &RequestContext,
    ) {
        let Ok(guard) = Arc::clone(&slot.loading).try_lock_owned() else { return };
        let (lists, slot, snapshot) = (Arc::clone(self), Arc::clone(slot), Arc::clone(snapshot));
        let (cubes, context) = (Arc::clone(&statement.cubes), context.clone());
        tokio::spawn(async move {
            let _guard = guard;
            let state = lists.load(&query, &cubes, &snapshot, &context).await;
            *lock(&slot.state) = Some(state);
            lists.evict();
        });
    }

    /// Loads a list. The caller has no row filters on its cubes.
    async fn load(
        &self,
        query: &SemanticQuery,
        cubes: &[CubeId],
        snapshot: &Arc<Snapshot>,
        context: &RequestContext,
    ) -> SlotState {
        let _permit = self.loads.acquire().await;
        let session = self.queries.session_over(context, Arc::clone(snapshot), self.clock.now());
        let load = async {
            // The version is read before the rows. An outdated result of the cache would belong to an older version.
            let reading = self.versions.read(&snapshot.model, cubes, context.tenant.as_ref()).await.ok();
            let cache = CacheControl { stale: Some(Duration::ZERO), ..CacheControl::default() };
            (reading, lookup::run(&session, query, cache).await)
        };
        let done = tokio::time::timeout(session.timeout(), load).await;
        let (reading, answer) = done.unwrap_or_else(|_| (None, Err(session.overdue())));
        let values = match answer {
            Ok(Some(answer)) => indexed(Values::new(lookup::texts(&answer), list_limit(&session))).await,
            Ok(None) => DimensionValues::Denied,
            Err(_) => DimensionValues::Unavailable,
        };
        SlotState { reading, loaded: self.clock.elapsed(), values }
    }

    /// Removes the lists that were unused for the longest time until the bounds are met.
    fn evict(&self) {
        let mut slots = lock(&self.slots);
        let size = |slot: &Slot| slot.state().map_or(0, |state| state.values.bytes());
        let mut bytes: usize = slots.values().map(|slot| size(slot)).sum();
        while slots.len() > MAX_LISTS || bytes > MAX_BYTES {
            let oldest = slots.iter().min_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed));
            let Some((key, freed)) = oldest.map(|(key, slot)| (key.clone(), size(slot))) else { return };
            slots.remove(&key);
            bytes -= freed;
        }
    }
}

impl Slot {
    fn state(&self) -> Option<SlotState> {
        lock(&self.state).clone()
    }
}

/// Returns the number of values that are searched in a session.
fn list_limit(session: &QuerySession<'_>) -> usize {
    usize::try_from(session.max_rows()).unwrap_or(usize::MAX).min(MAX_VALUES)
}

fn list_statement(session: &QuerySession<'_>, query: &SemanticQuery) -> Option<ListStatement> {
    let sql = session.statement(query).ok()?;
    Some(ListStatement { digest: statement_digest_of(&sql), cubes: sql.cubes.into() })
}

/// Indexes values on a blocking thread.
async fn indexed(values: Values) -> DimensionValues {
    let made = tokio::task::spawn_blocking(move || Arc::new(ValueList::new(values))).await;
    DimensionValues::Shared(made.unwrap_or_else(|broken| std::panic::resume_unwind(broken.into_panic())))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
