//! Updates the records of certificates after days have passed or the project was reloaded.
//!
//! In: the governed records and the served project. Out: a task of the worker. It records the time at which the
//! definition of a certified artifact was found to differ, and revokes the certificate if `governance.on_change` says
//! so. It deprecates artifacts whose certificate ended long enough ago. Readers of a record already see these changes,
//! because the state is computed on reading. So repeating or dropping a run does no harm.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use terrane_compiler::SecurityContext;

use super::artifacts::Sight;
use super::certification::is_over_since;
use super::details::certification_details;
use super::service::{GovernanceService, OnChange};
use crate::domain::RequestContext;
use crate::ports::audit::AuditEntry;
use crate::ports::governance_records::{Certification, CertificationStatus, GovernedRecord, RecordChange, Step};
use crate::ports::leases::Lease;
use crate::ports::store::StoreError;
use crate::worker::{Progress, Schedule, Task, TaskError};

/// The name of the task and of its lease.
const NAME: &str = "governance";
const PERIOD: Duration = Duration::from_secs(30);
/// The largest number of changes of one run; the next run makes the rest.
const MAX_CHANGES: usize = 500;
/// The actor of the changes.
const SERVER: &str = "server";

/// Periodically updates certificates.
pub struct GovernanceMaintenance {
    service: Arc<GovernanceService>,
}

impl GovernanceMaintenance {
    pub fn new(service: Arc<GovernanceService>) -> Self {
        GovernanceMaintenance { service }
    }
}

impl GovernanceService {
    /// Updates certificates once. Returns the number of changed records.
    ///
    /// # Errors
    /// The state database cannot be read or written.
    pub async fn maintain(&self) -> Result<usize, StoreError> {
        let state = self.state().await?;
        let changes = {
            let snapshot = self.ports.catalog.snapshot();
            let request = RequestContext::operator(SecurityContext::default());
            let now = self.ports.clock.now();
            let sight = Sight::new(&snapshot, &request, &self.settings, now, &self.definitions);
            let records = state.certifications.values();
            let records = records.filter(|record| record.status == CertificationStatus::Certified);
            let changes = records.filter_map(|record| self.due_change(&sight, record));
            changes.take(MAX_CHANGES).collect::<Vec<_>>()
        };
        let count = changes.len();
        if count == 0 || !self.ports.records.write(state.sequence, changes).await? {
            return Ok(0);
        }
        tracing::info!(event = "certificates_updated", count);
        Ok(count)
    }

    fn due_change(&self, sight: &Sight<'_>, record: &Certification) -> Option<RecordChange> {
        let certified = record.definition.as_ref();
        let present = match certified {
            Some(certified) => sight.definitions.get_like(sight.snapshot, &record.artifact, certified),
            None => sight.definitions.get(sight.snapshot, &record.artifact),
        };
        // If the project lacks the artifact now, the artifact may return, so no change of its definition is recorded.
        let is_present = present.is_some();
        let has_changed = present.zip(certified).is_some_and(|(now, then)| now.fingerprint != then.fingerprint);
        let version = record.version + 1;
        let updated = Certification { version, updated_at: sight.now, ..record.clone() };
        let ended_since =
            |days| record.valid_until.is_some_and(|day| is_over_since(day, days, sight.now, &self.settings.timezone));
        let (event, reason, after) = if has_changed && self.settings.on_change == OnChange::Revoke {
            let definition_changed_at = record.definition_changed_at.or(Some(sight.now));
            let status = CertificationStatus::Draft;
            let after = Certification { status, definition_changed_at, certified: None, valid_until: None, ..updated };
            ("certification_revoked", "the definition changed", after)
        } else if self.settings.auto_deprecate_after_days.is_some_and(ended_since) {
            let notes = Some("the certificate expired".into());
            let deprecated = Some(Step { by: SERVER.into(), at: sight.now, notes });
            let after = Certification { status: CertificationStatus::Deprecated, deprecated, ..updated };
            ("artifact_deprecated", "the certificate expired", after)
        } else if has_changed && record.definition_changed_at.is_none() {
            let after = Certification { definition_changed_at: Some(sight.now), ..updated };
            ("definition_changed", "the definition differs from the certified one", after)
        } else if is_present && !has_changed && record.definition_changed_at.is_some() {
            let after = Certification { definition_changed_at: None, ..updated };
            ("definition_restored", "the definition is the certified one again", after)
        } else {
            return None;
        };
        let entry = AuditEntry {
            at: sight.now,
            event: event.into(),
            actor: SERVER.into(),
            auth_method: "task".into(),
            resource: record.artifact.to_string().into(),
            reason: Some(reason.into()),
            before: Some(certification_details(record)),
            after: Some(certification_details(&after)),
            count: 1,
            ..AuditEntry::default()
        };
        Some(RecordChange { record: GovernedRecord::Certification(Arc::new(after)), entry })
    }
}

#[async_trait]
impl Task for GovernanceMaintenance {
    fn name(&self) -> &'static str {
        NAME
    }

    fn schedule(&self) -> Schedule {
        Schedule::Interval(PERIOD)
    }

    async fn run(&self, _: &Lease) -> Result<Progress, TaskError> {
        let changed = self.service.maintain().await?;
        Ok(if changed == MAX_CHANGES { Progress::Incomplete } else { Progress::Complete })
    }
}
