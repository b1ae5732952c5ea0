//! Changes and shows guardrails of users and groups.
//!
//! In: a subject and its limits. Out: its record, with a version. A change is computed from all records up to a
//! sequence number, and written only if no other change was made in the meantime. Its audit record is part of the same
//! transaction. Callers read the limits that apply to them; `admin` reads and changes all. Not here: the check of
//! queries (`guardrail_check`, and the path of a query).

use std::sync::Arc;

use terrane_compiler::SecurityContext;

use super::budget_ledger::BudgetLedger;
use super::guardrail_table::{GuardrailSource, GuardrailTable};
use super::guardrails::guardrail_details;
use crate::domain::{Precondition, PreconditionError, RequestContext, Scope};
use crate::ports::clock::Clock;
use crate::ports::guardrails::{GuardrailRecord, GuardrailRecords, GuardrailSubject, Guardrails};
use crate::ports::store::StoreError;
use crate::query::QueryService;
use crate::security::{AccessRecorder, ScopeError};

/// The maximum number of attempts of a change that conflicts with changes of other replicas.
const ATTEMPTS: usize = 8;
/// The number of users and groups that can have guardrails.
const MAX_RECORDS: usize = 50_000;
const MAX_NAME_CHARS: usize = 256;

/// The reason why guardrails are not shown or changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GuardrailError {
    /// The caller lacks `admin`, which all changes and the guardrails of others require.
    #[error(transparent)]
    Other(#[from] ScopeError),
    #[error("{} `{}` has no guardrails", subject.kind(), subject.name())]
    Unknown { subject: GuardrailSubject },
    #[error("`{field}` must have 1 to {MAX_NAME_CHARS} characters without control characters")]
    InvalidName { field: &'static str },
    #[error("`{field}` needs a price of the warehouse: `optimization.prices.second`")]
    NoPrice { field: &'static str },
    #[error("the limit of {max} users and groups with guardrails is reached")]
    TooMany { max: usize },
    #[error(transparent)]
    Precondition(#[from] PreconditionError),
    #[error("the guardrails were changed by others at the same time")]
    Contended,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports and use cases that guardrails need.
pub struct GuardrailPorts {
    pub table: Arc<GuardrailTable>,
    pub records: Arc<dyn GuardrailRecords>,
    pub queries: Arc<QueryService>,
    pub access: Arc<AccessRecorder>,
    pub clock: Arc<dyn Clock>,
    pub budgets: Arc<BudgetLedger>,
}

/// The use cases of guardrails.
pub struct GuardrailService {
    table: Arc<GuardrailTable>,
    records: Arc<dyn GuardrailRecords>,
    pub(super) queries: Arc<QueryService>,
    access: Arc<AccessRecorder>,
    clock: Arc<dyn Clock>,
    pub(super) budgets: Arc<BudgetLedger>,
    /// The limits from the settings, which apply to every query.
    defaults: Guardrails,
    /// A lock that is held while this process decides about a change and writes it.
    changing: tokio::sync::Mutex<()>,
}

impl GuardrailService {
    pub fn new(ports: GuardrailPorts, defaults: Guardrails) -> Self {
        let GuardrailPorts { table, records, queries, access, clock, budgets } = ports;
        let changing = tokio::sync::Mutex::default();
        GuardrailService { table, records, queries, access, clock, budgets, defaults, changing }
    }

    pub fn budgets(&self) -> &Arc<BudgetLedger> {
        &self.budgets
    }

    /// Returns the table of guardrails that this process checks its queries against.
    pub fn table(&self) -> &Arc<GuardrailTable> {
        &self.table
    }

    /// Returns the guardrails of a subject.
    ///
    /// # Errors
    /// The subject has no guardrails; or it is neither the caller nor one of the caller's roles and groups, and the
    /// caller lacks `admin`.
    pub async fn guardrails(
        &self,
        request: &RequestContext,
        subject: &GuardrailSubject,
    ) -> Result<Arc<GuardrailRecord>, GuardrailError> {
        let caller = &request.caller;
        let is_own = match subject {
            GuardrailSubject::User(name) => *name == caller.user_id && !name.is_empty(),
            GuardrailSubject::Group(name) => caller.roles.contains(name) || caller.groups.contains(name),
        };
        if !is_own {
            self.access.require(request, Scope::Admin).await?;
        }
        let state = self.table.current().await?;
        let record = state.record(subject).filter(|record| record.limits.is_some());
        record.cloned().ok_or_else(|| GuardrailError::Unknown { subject: subject.clone() })
    }

    /// Returns the guardrails of all users and groups, by subject.
    ///
    /// # Errors
    /// The caller lacks `admin`, or the state database is unavailable.
    pub async fn all(&self, request: &RequestContext) -> Result<Vec<Arc<GuardrailRecord>>, GuardrailError> {
        self.access.require(request, Scope::Admin).await?;
        Ok(self.table.current().await?.in_force())
    }

    /// Replaces the guardrails of a subject; `None` removes them. When this returns, queries of this process are
    /// checked against the new guardrails.
    ///
    /// # Errors
    /// The caller lacks `admin`, the record has a different version, there is nothing to remove, a cost is limited
    /// although no price is configured, or the state database is unavailable.
    pub async fn change(
        &self,
        request: &RequestContext,
        subject: &GuardrailSubject,
        limits: Option<Guardrails>,
        precondition: &Precondition,
    ) -> Result<GuardrailRecord, GuardrailError> {
        self.access.require(request, Scope::Admin).await?;
        check_name(subject)?;
        if let Some(field) = limits.as_ref().and_then(Guardrails::limit_of_costs).filter(|_| !self.budgets.has_price())
        {
            return Err(GuardrailError::NoPrice { field });
        }
        let _changing = self.changing.lock().await;
        for _ in 0..ATTEMPTS {
            let state = self.table.current().await?;
            let before = state.record(subject);
            let is_present = before.is_some_and(|record| record.limits.is_some());
            // To clients, a removed record has version 0. Versions are not reused: a new record continues from the last
            // version of the removed one.
            precondition.check(before.filter(|_| is_present).map_or(0, |record| record.version), false)?;
            if limits.is_none() && !is_present {
                return Err(GuardrailError::Unknown { subject: subject.clone() });
            }
            if before.is_none() && state.len() >= MAX_RECORDS {
                return Err(GuardrailError::TooMany { max: MAX_RECORDS });
            }
            let record = GuardrailRecord {
                subject: subject.clone(),
                limits,
                version: before.map_or(0, |record| record.version) + 1,
                updated_by: Arc::clone(&request.caller.user_id),
                updated_at: self.clock.now(),
            };
            let event = if limits.is_some() { "guardrails_changed" } else { "guardrails_removed" };
            let mut entry = self.access.entry(event, request, format!("guardrails:{subject}"));
            entry.before = before.and_then(|record| record.limits).as_ref().map(guardrail_details);
            entry.after = limits.as_ref().map(guardrail_details);
            if self.records.write_guardrails(state.sequence, record.clone(), entry).await? {
                self.table.refresh().await?;
                return Ok(record);
            }
        }
        Err(GuardrailError::Contended)
    }

    /// Returns the limits of the caller's queries, or of another user's queries, with their sources. The groups of
    /// another user are unknown here, so their limits are left out.
    ///
    /// # Errors
    /// The user is not the caller, and the caller lacks `admin`.
    pub async fn sources(
        &self,
        request: &RequestContext,
        user_id: Option<&Arc<str>>,
    ) -> Result<Vec<GuardrailSource>, GuardrailError> {
        let other = user_id.filter(|user_id| **user_id != request.caller.user_id);
        let other = match other {
            None => None,
            Some(user_id) => {
                self.access.require(request, Scope::Admin).await?;
                Some(SecurityContext { user_id: Arc::clone(user_id), ..SecurityContext::default() })
            }
        };
        self.table.refresh().await?;
        let of_project = GuardrailSource { subject: None, limits: self.defaults };
        let mut sources = vec![of_project];
        sources.extend(self.table.sources_of(other.as_ref().unwrap_or(&request.caller)));
        Ok(sources)
    }
}

/// Returns the narrowest limit of each kind, which satisfies all sources.
pub fn effective(sources: &[GuardrailSource]) -> Guardrails {
    sources.iter().map(|source| source.limits).fold(Guardrails::default(), Guardrails::narrowed_by)
}

fn check_name(subject: &GuardrailSubject) -> Result<(), GuardrailError> {
    let name = subject.name();
    let is_valid = (1..=MAX_NAME_CHARS).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    let field = match subject {
        GuardrailSubject::User(_) => "user_id",
        GuardrailSubject::Group(_) => "role",
    };
    if is_valid { Ok(()) } else { Err(GuardrailError::InvalidName { field }) }
}
