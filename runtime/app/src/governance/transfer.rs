//! Export and import of all governed records.
//!
//! In: the records of one state database, or a set of records from an export. Out: the set in a fixed order; or, for an
//! import, the new and different records, written with their audit records in one transaction. A set with a problem
//! changes nothing. Records that the set lacks stay. Versions are counted per database, so a set has none: an import
//! gives each changed record its next version. Not here: formats (wire); policies, because only `admin` and operators
//! export and import; hooks, which were asked when the records were first written.

mod record_set;
mod validate;

use std::fmt;
use std::sync::Arc;

pub use self::record_set::{ImportError, ImportProblem, RecordProblem, RecordSet};
use super::certification::draft;
use super::details::{certification_details, metadata_details, ownership_details, term_details};
use super::service::GovernanceService;
use super::state::GovernanceState;
use crate::domain::RequestContext;
use crate::ports::audit::{AuditEntry, Details};
use crate::ports::governance_records::{
    ArtifactMetadata, Certification, GovernanceRecords, GovernedRecord, Ownership, RecordChange, Term, unique_name,
};
use crate::ports::store::StoreError;

/// The maximum number of attempts of an import that conflicts with changes of servers.
const ATTEMPTS: usize = 8;
/// The audit event of an imported record.
const EVENT: &str = "governance_record_imported";

impl RecordSet {
    fn of(state: &GovernanceState) -> Self {
        let mut terms: Vec<Arc<Term>> = state.terms.values().cloned().collect();
        terms.sort_by_cached_key(|term| (unique_name(term.category.as_deref(), &term.name), term.id.clone()));
        RecordSet {
            terms: terms.iter().map(|term| Arc::new(Term { version: 0, ..Term::clone(term) })).collect(),
            ownership: state
                .ownership
                .values()
                .map(|record| Arc::new(Ownership { version: 0, ..Ownership::clone(record) }))
                .collect(),
            certifications: state
                .certifications
                .values()
                .map(|record| Arc::new(Certification { version: 0, ..Certification::clone(record) }))
                .collect(),
            metadata: state
                .metadata
                .values()
                .map(|record| Arc::new(ArtifactMetadata { version: 0, ..ArtifactMetadata::clone(record) }))
                .collect(),
        }
    }
}

/// The effect of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportMode {
    /// Validates the records, and writes nothing.
    Check,
    Apply,
}

/// The numbers of records that an import creates, changes and leaves unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportSummary {
    pub created: usize,
    pub changed: usize,
    pub unchanged: usize,
}

impl GovernanceService {
    /// Returns all records, as [`export_records`] does.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn export(&self) -> Result<RecordSet, StoreError> {
        export_records(&*self.ports.records).await
    }

    /// Imports a set of records, as [`import_records`] does. The caller of the request is the actor of the audit records.
    ///
    /// # Errors
    /// [`ImportError`]; nothing is changed.
    pub async fn import(
        &self,
        set: &RecordSet,
        mode: ImportMode,
        request: &RequestContext,
    ) -> Result<ImportSummary, ImportError> {
        let _changing = self.changing.lock().await;
        import_records(&*self.ports.records, set, mode, |event, resource| self.entry(event, request, resource)).await
    }
}

/// Returns all records, in a fixed order.
///
/// # Errors
/// The state database cannot be read.
pub async fn export_records(records: &dyn GovernanceRecords) -> Result<RecordSet, StoreError> {
    Ok(RecordSet::of(&state_of(records).await?))
}

/// Validates a set of records, and writes the new and different ones in one transaction. `entry` creates the audit
/// record for an event and a resource.
///
/// # Errors
/// [`ImportError`]; nothing is changed.
pub async fn import_records(
    records: &dyn GovernanceRecords,
    set: &RecordSet,
    mode: ImportMode,
    entry: impl Fn(&'static str, String) -> AuditEntry + Send + Sync,
) -> Result<ImportSummary, ImportError> {
    for _ in 0..ATTEMPTS {
        let state = state_of(records).await?;
        let set = validate::validate(set, &state)?;
        let (changes, summary) = changes(set, &state, &entry);
        if changes.is_empty() || mode == ImportMode::Check || records.write(state.sequence, changes).await? {
            return Ok(summary);
        }
    }
    Err(ImportError::Contended)
}

async fn state_of(records: &dyn GovernanceRecords) -> Result<GovernanceState, StoreError> {
    let mut state = GovernanceState::default();
    state.apply(records.changed_since(0).await?);
    Ok(state)
}

/// Returns the changes after which the state has the records of a set.
fn changes(
    set: RecordSet,
    state: &GovernanceState,
    entry: impl Fn(&'static str, String) -> AuditEntry,
) -> (Vec<RecordChange>, ImportSummary) {
    let (mut changes, mut summary) = (Vec::new(), ImportSummary::default());
    let mut add = |record: GovernedRecord, present: u64, is_equal: bool, before: Option<Details>, after: Details| {
        match (present, is_equal) {
            (0, _) => summary.created += 1,
            (_, false) => summary.changed += 1,
            (_, true) => {
                summary.unchanged += 1;
                return;
            }
        }
        let resource = match &record {
            GovernedRecord::Term(term) => format!("term:{}", term.id),
            other => other.artifact().map(ToString::to_string).unwrap_or_default(),
        };
        let entry = AuditEntry { before, after: Some(after), ..entry(EVENT, resource) };
        changes.push(RecordChange { record, entry });
    };
    for term in set.terms {
        let present = state.terms.get(&term.id);
        let version = present.map_or(0, |present| present.version);
        let formula_by = present.filter(|present| present.formula == term.formula).map(|own| own.formula_by.clone());
        let term = Term { formula_by: formula_by.flatten(), ..Term::clone(&term) };
        let is_equal = present.is_some_and(|present| Term { version, ..Term::clone(&term) } == **present);
        let after = Term { version: version + 1, ..Term::clone(&term) };
        let details = (present.map(|present| term_details(present)), term_details(&after));
        add(GovernedRecord::Term(Arc::new(after)), version, is_equal, details.0, details.1);
    }
    for record in set.ownership {
        let present = state.ownership.get(&record.artifact);
        let version = present.map_or(0, |present| present.version);
        let is_equal = present.is_some_and(|present| Ownership { version, ..Ownership::clone(&record) } == **present);
        let after = Ownership { version: version + 1, ..Ownership::clone(&record) };
        let details = (present.map(|present| ownership_details(present)), ownership_details(&after));
        add(GovernedRecord::Ownership(Arc::new(after)), version, is_equal, details.0, details.1);
    }
    for record in set.certifications {
        let present = state.certifications.get(&record.artifact);
        let version = present.map_or(0, |present| present.version);
        let is_equal =
            present.is_some_and(|present| Certification { version, ..Certification::clone(&record) } == **present);
        let after = Certification { version: version + 1, ..Certification::clone(&record) };
        let before = match present {
            Some(present) => certification_details(present),
            None => certification_details(&draft(&record.artifact, record.updated_at)),
        };
        let after_details = certification_details(&after);
        add(GovernedRecord::Certification(Arc::new(after)), version, is_equal, Some(before), after_details);
    }
    for record in set.metadata {
        let present = state.metadata.get(&record.artifact);
        let version = present.map_or(0, |present| present.version);
        let is_equal = present
            .is_some_and(|present| ArtifactMetadata { version, ..ArtifactMetadata::clone(&record) } == **present);
        let after = ArtifactMetadata { version: version + 1, ..ArtifactMetadata::clone(&record) };
        let details = (present.map(|present| metadata_details(present)), metadata_details(&after));
        add(GovernedRecord::Metadata(Arc::new(after)), version, is_equal, details.0, details.1);
    }
    (changes, summary)
}

/// Writes `12 created, 1 changed, 30 unchanged`.
impl fmt::Display for ImportSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} created, {} changed, {} unchanged", self.created, self.changed, self.unchanged)
    }
}
