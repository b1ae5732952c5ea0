//! The use cases of governance over the ports.
//!
//! Every change is decided on all records up to a sequence number, and written only if no other change was made in the
//! meantime; otherwise it is decided again on the new records. So rules over several records, such as unique names and
//! links without cycles, hold on all replicas. A read first fetches the records that changed, and takes the others from
//! memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use jiff::tz::TimeZone;

use super::approvals::ApprovalService;
use super::artifacts::Sight;
use super::definition::{DefinitionFormat, definition_of};
use super::error::GovernanceError;
use super::state::GovernanceState;
use crate::catalog::{Catalog, Snapshot};
use crate::domain::RequestContext;
use crate::ports::audit::AuditEntry;
use crate::ports::clock::Clock;
use crate::ports::governance::{Artifact, MetadataChange, Transition};
use crate::ports::governance_records::{
    ArtifactRef, Definition, GovernanceRecords, HistoryEntry, HistoryFilter, RecordChange,
};
use crate::ports::store::StoreError;
use crate::ports::tokens::Randomness;
use crate::security::{AccessRecorder, access};

/// The maximum number of attempts of a change that conflicts with changes of other replicas.
const ATTEMPTS: usize = 8;

/// The effect of a changed definition on a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnChange {
    /// The artifact stays certified and is marked as changed.
    #[default]
    Warn,
    /// The artifact becomes a draft.
    Revoke,
}

/// The operator's settings of governance.
#[derive(Debug, Clone)]
pub struct GovernanceSettings {
    /// True if changes of existing records must name a version.
    pub require_if_match: bool,
    pub on_change: OnChange,
    /// The number of days from the end of a certificate until the artifact is deprecated; `None` for never.
    pub auto_deprecate_after_days: Option<i64>,
    /// True if the caller who submitted an artifact may certify it.
    pub allow_self_certification: bool,
    /// The roles whose callers may certify and deprecate artifacts and assign stewards.
    pub reviewer_roles: Vec<Arc<str>>,
    /// The zone in which the last day of a certificate ends.
    pub timezone: TimeZone,
}

impl Default for GovernanceSettings {
    fn default() -> Self {
        GovernanceSettings {
            require_if_match: false,
            on_change: OnChange::Warn,
            auto_deprecate_after_days: None,
            allow_self_certification: false,
            reviewer_roles: ["data_steward", "reviewer"].map(Into::into).to_vec(),
            timezone: TimeZone::UTC,
        }
    }
}

/// The ports of the use cases.
pub struct GovernancePorts {
    pub records: Arc<dyn GovernanceRecords>,
    pub catalog: Arc<Catalog>,
    pub access: Arc<AccessRecorder>,
    pub approvals: ApprovalService,
    pub randomness: Arc<dyn Randomness>,
    pub clock: Arc<dyn Clock>,
}

/// The use cases of governance.
pub struct GovernanceService {
    pub(super) ports: GovernancePorts,
    pub(super) settings: GovernanceSettings,
    state: RwLock<Arc<GovernanceState>>,
    /// The lock that is held while this process validates and writes a change.
    pub(super) changing: tokio::sync::Mutex<()>,
    pub(super) definitions: DefinitionCache,
}

/// A decided change, and the question to hooks about it.
pub(super) struct Decided<T> {
    pub(super) changes: Vec<RecordChange>,
    pub(super) question: Option<Question>,
    pub(super) result: T,
}

impl<T> Decided<T> {
    /// Returns a decision that changes nothing.
    pub(super) fn nothing(result: T) -> Self {
        Decided { changes: Vec::new(), question: None, result }
    }
}

/// A question for governance hooks.
pub(super) enum Question {
    Step { item: Artifact, step: Transition, notes: String },
    Change(MetadataChange),
}

impl GovernanceService {
    pub fn new(ports: GovernancePorts, settings: GovernanceSettings) -> Self {
        GovernanceService {
            ports,
            settings,
            state: RwLock::default(),
            changing: tokio::sync::Mutex::default(),
            definitions: DefinitionCache::default(),
        }
    }

    /// Reads the records that changed, and returns all records.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn state(&self) -> Result<Arc<GovernanceState>, StoreError> {
        let known = self.known_state();
        let changed = self.ports.records.changed_since(known.sequence).await?;
        if changed.is_empty() {
            return Ok(known);
        }
        let mut state = GovernanceState::clone(&known);
        state.apply(changed);
        let state = Arc::new(state);
        let mut current = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // Another request may have read later changes.
        if current.sequence < state.sequence {
            *current = Arc::clone(&state);
        }
        Ok(state)
    }

    /// Returns all records. If the state database cannot be read, returns the records that this process read last.
    pub(crate) async fn latest_state(&self) -> Arc<GovernanceState> {
        match self.state().await {
            Ok(state) => state,
            Err(error) => {
                tracing::warn!(event = "state_unavailable", error_message = %error);
                self.known_state()
            }
        }
    }

    /// Returns the records that this process read last, without reading new ones.
    pub fn known_state(&self) -> Arc<GovernanceState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn read<T>(
        &self,
        request: &RequestContext,
        read: impl Fn(&Sight<'_>, &GovernanceState) -> Result<T, GovernanceError> + Send,
    ) -> Result<T, GovernanceError> {
        let state = self.state().await?;
        let snapshot = self.ports.catalog.snapshot();
        read(&self.sight(&snapshot, request), &state)
    }

    /// Returns the part of the project that the caller of a request may see now.
    pub(crate) fn sight<'a>(&'a self, snapshot: &'a Arc<Snapshot>, request: &'a RequestContext) -> Sight<'a> {
        Sight::new(snapshot, request, &self.settings, self.ports.clock.now(), &self.definitions)
    }

    /// Decides a change on the current records, asks the hooks, and writes the change. If the change is denied, writes
    /// an audit record of the denial before the error is returned.
    pub(super) async fn change<T: Send>(
        &self,
        request: &RequestContext,
        decide: impl Fn(&Sight<'_>, &GovernanceState) -> Result<Decided<T>, GovernanceError> + Send + Sync,
    ) -> Result<T, GovernanceError> {
        let changed = self.decide_and_write(request, decide).await;
        let is_denial = matches!(
            &changed,
            Err(GovernanceError::NotReviewer { .. }
                | GovernanceError::OwnSubmission
                | GovernanceError::StewardChange { .. }
                | GovernanceError::OwnStewardship
                | GovernanceError::Refused { .. })
        );
        if is_denial {
            self.ports.access.denied(request, access::POLICY).await?;
        }
        changed
    }

    async fn decide_and_write<T: Send>(
        &self,
        request: &RequestContext,
        decide: impl Fn(&Sight<'_>, &GovernanceState) -> Result<Decided<T>, GovernanceError> + Send + Sync,
    ) -> Result<T, GovernanceError> {
        let _changing = self.changing.lock().await;
        for _ in 0..ATTEMPTS {
            let state = self.state().await?;
            let Decided { changes, question, result } = {
                let snapshot = self.ports.catalog.snapshot();
                decide(&self.sight(&snapshot, request), &state)?
            };
            if changes.is_empty() {
                return Ok(result);
            }
            if let Some(question) = &question {
                self.ask(request, question).await?;
            }
            if self.ports.records.write(state.sequence, changes).await? {
                return Ok(result);
            }
        }
        Err(GovernanceError::Contended)
    }

    async fn ask(&self, request: &RequestContext, question: &Question) -> Result<(), GovernanceError> {
        let approvals = &self.ports.approvals;
        let approval = match question {
            Question::Step { item, step, notes } => approvals.certify(request, item, *step, notes).await,
            Question::Change(change) => approvals.change(request, change).await,
        };
        if approval.is_open() { Ok(()) } else { Err(GovernanceError::Refused { approval }) }
    }

    pub(super) async fn history_page(&self, filter: &HistoryFilter) -> Result<Vec<HistoryEntry>, StoreError> {
        self.ports.records.history(filter).await
    }

    /// Returns an audit record, without details, of a change that is made now.
    pub(super) fn entry(&self, event: &'static str, request: &RequestContext, resource: String) -> AuditEntry {
        self.ports.access.entry(event, request, resource)
    }

    /// Returns 128 random bits as a string.
    pub(super) fn new_id(&self) -> Arc<str> {
        let mut random = [0; 16];
        self.ports.randomness.fill(&mut random);
        hex::encode(random).into()
    }
}

/// The definitions of one snapshot that have been computed.
#[derive(Debug, Default)]
pub(super) struct DefinitionCache(Mutex<CachedDefinitions>);

#[derive(Debug, Default)]
struct CachedDefinitions {
    of: Weak<Snapshot>,
    known: HashMap<(ArtifactRef, DefinitionFormat), Option<Arc<Definition>>>,
}

impl DefinitionCache {
    /// Returns the definition of an artifact; `None` if the project does not have it.
    pub(super) fn get(&self, snapshot: &Arc<Snapshot>, artifact: &ArtifactRef) -> Option<Arc<Definition>> {
        self.get_in(snapshot, artifact, DefinitionFormat::Complete)
    }

    /// Returns the definition of an artifact in the format of a stored definition.
    pub(super) fn get_like(
        &self,
        snapshot: &Arc<Snapshot>,
        artifact: &ArtifactRef,
        stored: &Definition,
    ) -> Option<Arc<Definition>> {
        self.get_in(snapshot, artifact, DefinitionFormat::of(stored))
    }

    fn get_in(
        &self,
        snapshot: &Arc<Snapshot>,
        artifact: &ArtifactRef,
        format: DefinitionFormat,
    ) -> Option<Arc<Definition>> {
        let key = (artifact.clone(), format);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut cached = lock();
            if !std::ptr::eq(cached.of.as_ptr(), Arc::as_ptr(snapshot)) {
                *cached = CachedDefinitions { of: Arc::downgrade(snapshot), known: HashMap::new() };
            }
            if let Some(known) = cached.known.get(&key) {
                return known.clone();
            }
        }
        let definition = definition_of(snapshot, artifact, format).map(Arc::new);
        let mut cached = lock();
        if std::ptr::eq(cached.of.as_ptr(), Arc::as_ptr(snapshot)) {
            cached.known.insert(key, definition.clone());
        }
        definition
    }
}
