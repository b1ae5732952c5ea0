//! The port to guardrails of users and groups.
//!
//! In: changes that were decided on all records up to a sequence number. Out: the records. Records are never deleted.
//! When guardrails are removed, their record stays without limits, so that other replicas learn of the removal. Not
//! here: the rules of changes (`cost`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::audit::AuditEntry;
use super::store::StoreError;

/// The limits of single queries. A field that is `None` or false sets no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Guardrails {
    /// The longest time that a query may take, from its arrival to its last row.
    pub max_execution: Option<Duration>,
    /// The largest number of rows of an answer.
    pub max_rows_returned: Option<u64>,
    /// True if every cube whose rows are read needs a lower bound on one of its time dimensions.
    pub require_time_filter: bool,
    /// True if every partitioned cube whose rows are read needs a filter on one of its partition dimensions.
    pub require_partition_filter: bool,
    /// The highest predicted cost of a query, in millionths.
    pub max_cost_micros: Option<u64>,
    /// The largest number of bytes that a query may scan. It is stored and not checked, because no warehouse reports the
    /// bytes of a query.
    pub max_scan_bytes: Option<u64>,
    /// The budget of a user for a day, in millionths.
    pub daily_budget_micros: Option<u64>,
    /// The budget of a user for a month, in millionths.
    pub monthly_budget_micros: Option<u64>,
    /// The spent share of a budget at which an alert is logged, in percent, 1–100.
    pub alert_at_percent: Option<u8>,
}

/// The callers that guardrails apply to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GuardrailSubject {
    /// The user with this id, in all tenants.
    User(Arc<str>),
    /// All callers with this role or group.
    Group(Arc<str>),
}

impl GuardrailSubject {
    /// Returns `user` or `group`.
    pub fn kind(&self) -> &'static str {
        match self {
            GuardrailSubject::User(_) => "user",
            GuardrailSubject::Group(_) => "group",
        }
    }

    pub fn name(&self) -> &Arc<str> {
        match self {
            GuardrailSubject::User(name) | GuardrailSubject::Group(name) => name,
        }
    }

    /// Parses the format of [`fmt::Display`], such as `user:ada`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("user", name) => Some(GuardrailSubject::User(name.into())),
            ("group", name) => Some(GuardrailSubject::Group(name.into())),
            _ => None,
        }
    }
}

/// Writes the subject as `user:ada`.
impl fmt::Display for GuardrailSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind(), self.name())
    }
}

/// The guardrails of a user or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailRecord {
    pub subject: GuardrailSubject,
    /// The guardrails; `None` if they were removed.
    pub limits: Option<Guardrails>,
    /// The version, counted from 1. A removal is a version too.
    pub version: u64,
    pub updated_by: Arc<str>,
    pub updated_at: Timestamp,
}

/// The guardrails of users and groups.
#[async_trait]
pub trait GuardrailRecords: Send + Sync {
    /// Returns the records that were written after a sequence number, in the order of their numbers.
    async fn guardrails_since(&self, sequence: u64) -> Result<Vec<(u64, GuardrailRecord)>, StoreError>;

    /// Writes a record and its audit record, if `sequence` is the number of the newest change. Otherwise returns false.
    async fn write_guardrails(
        &self,
        sequence: u64,
        record: GuardrailRecord,
        entry: AuditEntry,
    ) -> Result<bool, StoreError>;
}
