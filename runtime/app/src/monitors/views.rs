//! Views of monitors: the digests of the statements that policies and hooks allow to callers.
//!
//! In: a caller and a monitor. Out: a digest; none for a caller who may not query the value. A digest is computed once
//! per project snapshot and caller, and callers with the same facts share it. If hooks are configured, a digest is
//! computed again after [`FRESH`], because hooks may depend on more than the project. Failures of the warehouse or the
//! state database are not stored.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use terrane_compiler::query::SemanticQuery;

use super::error::MonitorError;
use super::{MonitorService, scoring};
use crate::catalog::Snapshot;
use crate::domain::RequestContext;
use crate::ports::monitors::{Monitor, MonitorDefinition};
use crate::query::{Prepared, QueryRunError, QuerySession, statement_digest_of};

/// The lifetime of a digest if hooks decide about queries.
const FRESH: Duration = Duration::from_secs(2);
/// The lifetime of a digest without hooks. It is limited because statements also depend on settings outside the
/// project.
const LIFETIME: Duration = Duration::from_secs(60);
/// The largest number of digests. When it is reached, all digests are removed.
const MAX_ENTRIES: usize = 50_000;

/// A digest of all facts about a caller that policies and hooks may use.
pub(super) type CallerKey = [u8; 32];

/// The digests of views by caller and monitor.
#[derive(Default)]
pub(super) struct ViewCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// The project that the digests belong to.
    snapshot: Weak<Snapshot>,
    views: HashMap<ViewKey, CachedView>,
}

/// A caller, and the id and the version of a monitor.
type ViewKey = (CallerKey, Arc<str>, u64);

#[derive(Clone)]
struct CachedView {
    /// The digest; `None` if the caller may not query the value.
    digest: Option<Arc<str>>,
    made_at: Duration,
}

/// The views of one caller over one snapshot of the project.
pub(super) struct ViewReader<'r> {
    session: QuerySession<'r>,
    caller: CallerKey,
}

impl ViewReader<'_> {
    pub(super) fn request(&self) -> &RequestContext {
        self.session.context()
    }
}

impl ViewCache {
    /// Returns the entries for a snapshot. Entries of another snapshot are removed.
    fn entries(&self, snapshot: &Arc<Snapshot>) -> MutexGuard<'_, Entries> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::ptr::eq(entries.snapshot.as_ptr(), Arc::as_ptr(snapshot)) {
            *entries = Entries { snapshot: Arc::downgrade(snapshot), views: HashMap::new() };
        }
        entries
    }

    fn get(&self, snapshot: &Arc<Snapshot>, key: &ViewKey) -> Option<CachedView> {
        self.entries(snapshot).views.get(key).cloned()
    }

    fn insert(&self, snapshot: &Arc<Snapshot>, key: ViewKey, view: CachedView) {
        let mut entries = self.entries(snapshot);
        if entries.views.len() >= MAX_ENTRIES {
            entries.views.clear();
        }
        entries.views.insert(key, view);
    }
}

impl MonitorService {
    /// Returns a reader of a caller's views, over the current snapshot.
    pub(super) fn view_reader<'r>(&'r self, request: &'r RequestContext) -> ViewReader<'r> {
        ViewReader { session: self.ports.queries.session(request), caller: caller_key(request) }
    }

    /// Returns the digest of the caller's view of a monitor; `None` if the caller may not query its value.
    pub(super) async fn view_of(&self, reader: &ViewReader<'_>, monitor: &Monitor) -> Option<Arc<str>> {
        let snapshot = reader.session.shared_snapshot();
        let key = (reader.caller, Arc::clone(&monitor.id), monitor.version);
        let now = self.ports.clock.elapsed();
        let lifetime = if self.ports.queries.has_hooks() { FRESH } else { LIFETIME };
        let cached = self.views.get(&snapshot, &key);
        if let Some(cached) = cached.filter(|cached| now.saturating_sub(cached.made_at) < lifetime) {
            return cached.digest;
        }
        let view = view_in(&reader.session, &monitor.definition).await;
        if view.as_ref().err().is_none_or(is_final) {
            let digest = view.as_ref().ok().cloned();
            self.views.insert(&snapshot, key, CachedView { digest, made_at: now });
        }
        view.ok()
    }

    /// Computes the digest of the statement of a monitor's series as policies and hooks allow it to a caller now.
    pub(super) async fn view(
        &self,
        request: &RequestContext,
        definition: &MonitorDefinition,
    ) -> Result<Arc<str>, MonitorError> {
        view_in(&self.ports.queries.session(request), definition).await
    }
}

/// Computes the digest of a view. The range of the statement is fixed, so that the digest does not depend on the time.
async fn view_in(session: &QuerySession<'_>, definition: &MonitorDefinition) -> Result<Arc<str>, MonitorError> {
    let query: SemanticQuery = scoring::view_query(session, definition).await?;
    let sql = match session.prepare(&query).await {
        Ok(prepared) => {
            let dimensions = definition.dimensions.iter().map(|name| definition.value.dimension(name));
            let masked = masked(&prepared, dimensions);
            let sql = prepared.sql().await;
            if let Some(dimension) = masked {
                return Err(MonitorError::MaskedDimension { dimension });
            }
            sql
        }
        Err(error) => Err(error),
    };
    match sql {
        Ok(sql) => {
            definition.value.check_numbers(&sql.columns)?;
            Ok(statement_digest_of(&sql))
        }
        Err(error) => Err(definition.value.disclosed(session, error).await.into()),
    }
}

/// Returns the first of these dimensions that is masked for the caller of a query. The series of a masked dimension would
/// not be those of its values.
fn masked(prepared: &Prepared<'_>, mut dimensions: impl Iterator<Item = Arc<str>>) -> Option<Arc<str>> {
    dimensions.find(|name| prepared.masks(name))
}

/// Returns whether the same caller would get the same error again, so that it can be stored.
fn is_final(error: &MonitorError) -> bool {
    matches!(
        error,
        MonitorError::MaskedDimension { .. } | MonitorError::Query(QueryRunError::Query(_) | QueryRunError::Denied(_))
    )
}

/// Returns the digest of the facts about a request that policies and hooks may use.
pub(super) fn caller_key(request: &RequestContext) -> CallerKey {
    let RequestContext { caller, tenant, scopes, surface, kind, client, .. } = request;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{:?}", (caller, tenant, scopes, surface, kind, client));
    Sha256::digest(text.as_bytes()).into()
}
