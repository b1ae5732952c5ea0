//! The guardrails of users and groups in memory, as of one sequence number.
//!
//! In: records of the state database. Out: the limits of a caller, from memory. Each server reads changes of other
//! servers every two seconds ([`GuardrailTable::follow`]), and its own changes at once. While the state database is
//! unavailable, the limits that were read last apply.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use terrane_compiler::SecurityContext;

use crate::ports::guardrails::{GuardrailRecord, GuardrailRecords, GuardrailSubject, Guardrails};
use crate::ports::store::StoreError;

/// The time between two reads of changes.
const INTERVAL: Duration = Duration::from_secs(2);

/// A set of limits that applies to a caller, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailSource {
    /// The subject that has the guardrails; `None` for the settings of the project.
    pub subject: Option<GuardrailSubject>,
    pub limits: Guardrails,
}

/// The records after a change.
#[derive(Debug, Clone, Default)]
pub(super) struct GuardrailState {
    pub(super) sequence: u64,
    users: HashMap<Arc<str>, Arc<GuardrailRecord>>,
    groups: HashMap<Arc<str>, Arc<GuardrailRecord>>,
}

/// The guardrails that queries of this process are checked against.
pub struct GuardrailTable {
    records: Arc<dyn GuardrailRecords>,
    state: RwLock<Arc<GuardrailState>>,
}

impl GuardrailTable {
    pub fn new(records: Arc<dyn GuardrailRecords>) -> Self {
        GuardrailTable { records, state: RwLock::default() }
    }

    /// Returns the narrowest limit of each kind among the limits of a caller and of the caller's roles and groups.
    pub fn guardrails_of(&self, caller: &SecurityContext) -> Guardrails {
        let state = self.known();
        let all = state.records_of(caller).filter_map(|record| record.limits);
        all.fold(Guardrails::default(), Guardrails::narrowed_by)
    }

    /// Returns the limits of a caller and of the caller's roles and groups, each with its source.
    pub(super) fn sources_of(&self, caller: &SecurityContext) -> Vec<GuardrailSource> {
        let state = self.known();
        let source = |record: &GuardrailRecord| {
            Some(GuardrailSource { subject: Some(record.subject.clone()), limits: record.limits? })
        };
        let mut sources: Vec<GuardrailSource> = Vec::new();
        for found in state.records_of(caller).filter_map(source) {
            if !sources.iter().any(|known| known.subject == found.subject) {
                sources.push(found);
            }
        }
        sources
    }

    /// Reads the changes since the last call.
    ///
    /// # Errors
    /// The state database is unavailable.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.current().await.map(|_| ())
    }

    /// Reads changes every two seconds. Never returns.
    pub async fn follow(&self) {
        let mut is_reported = false;
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.refresh().await {
                Ok(()) => is_reported = false,
                Err(error) if !is_reported => {
                    tracing::error!(event = "state_unavailable", error_message = %error);
                    is_reported = true;
                }
                Err(_) => {}
            }
        }
    }

    /// Reads the changes of the state database and returns all records.
    pub(super) async fn current(&self) -> Result<Arc<GuardrailState>, StoreError> {
        let known = self.known();
        let changed = self.records.guardrails_since(known.sequence).await?;
        if changed.is_empty() {
            return Ok(known);
        }
        let mut state = GuardrailState::clone(&known);
        state.apply(changed);
        let state = Arc::new(state);
        let mut current = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // Another request may have read later changes.
        if current.sequence < state.sequence {
            *current = Arc::clone(&state);
        }
        Ok(state)
    }

    fn known(&self) -> Arc<GuardrailState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl GuardrailState {
    fn apply(&mut self, changed: Vec<(u64, GuardrailRecord)>) {
        for (sequence, record) in changed {
            self.sequence = self.sequence.max(sequence);
            let records = match &record.subject {
                GuardrailSubject::User(_) => &mut self.users,
                GuardrailSubject::Group(_) => &mut self.groups,
            };
            records.insert(Arc::clone(record.subject.name()), Arc::new(record));
        }
    }

    /// Returns the record of a subject, even if its limits were removed.
    pub(super) fn record(&self, subject: &GuardrailSubject) -> Option<&Arc<GuardrailRecord>> {
        match subject {
            GuardrailSubject::User(name) => self.users.get(name),
            GuardrailSubject::Group(name) => self.groups.get(name),
        }
    }

    /// Returns the records that have limits, by subject.
    pub(super) fn in_force(&self) -> Vec<Arc<GuardrailRecord>> {
        let all = self.users.values().chain(self.groups.values());
        let mut records: Vec<_> = all.filter(|record| record.limits.is_some()).cloned().collect();
        records.sort_unstable_by(|one, other| one.subject.cmp(&other.subject));
        records
    }

    /// Returns the number of records, including records without limits.
    pub(super) fn len(&self) -> usize {
        self.users.len() + self.groups.len()
    }

    /// Returns the records of a caller's roles and groups, then the record of the caller. If a name is both a role and
    /// a group, its record occurs twice.
    fn records_of(&self, caller: &SecurityContext) -> impl Iterator<Item = &GuardrailRecord> {
        let groups = caller.roles.iter().chain(&caller.groups).filter_map(|name| self.groups.get(name));
        groups.chain(self.users.get(&caller.user_id)).map(|record| &**record)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn record(subject: GuardrailSubject, rows: Option<u64>) -> GuardrailRecord {
        let limits = rows.map(|rows| Guardrails { max_rows_returned: Some(rows), ..Guardrails::default() });
        GuardrailRecord { subject, limits, version: 1, updated_by: "root".into(), updated_at: Timestamp::UNIX_EPOCH }
    }

    fn rows(state: &GuardrailState, roles: &[&str], groups: &[&str], user: &str) -> Vec<Option<u64>> {
        let names = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
        let caller = SecurityContext {
            user_id: user.into(),
            roles: names(roles),
            groups: names(groups),
            ..SecurityContext::default()
        };
        state.records_of(&caller).map(|record| record.limits.and_then(|limits| limits.max_rows_returned)).collect()
    }

    #[test]
    fn records_of_roles_groups_and_the_user_hold() {
        let mut state = GuardrailState::default();
        state.apply(vec![
            (1, record(GuardrailSubject::User("ada".into()), Some(5))),
            (2, record(GuardrailSubject::Group("ada".into()), Some(6))),
            (3, record(GuardrailSubject::Group("analyst".into()), Some(7))),
        ]);
        assert_eq!(state.sequence, 3);
        assert_eq!(rows(&state, &[], &[], "ada"), [Some(5)]);
        assert_eq!(rows(&state, &["analyst"], &["ada"], "bob"), [Some(7), Some(6)]);
        assert_eq!(rows(&state, &["other"], &["analyst"], "ada"), [Some(7), Some(5)]);
        assert_eq!(rows(&state, &[], &[], ""), []);
        let names = |state: &GuardrailState| -> Vec<String> {
            state.in_force().iter().map(|record| record.subject.to_string()).collect()
        };
        assert_eq!(names(&state), ["user:ada", "group:ada", "group:analyst"]);
        state.apply(vec![(4, record(GuardrailSubject::User("ada".into()), None))]);
        assert_eq!(names(&state), ["group:ada", "group:analyst"]);
        assert_eq!(rows(&state, &[], &[], "ada"), [None]);
    }
}
