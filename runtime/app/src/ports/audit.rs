//! The port to the audit log. It is append-only, and each record is chained to the previous record by its hash.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::types::Value;

use super::store::StoreError;

/// An event without its place in the chain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditEntry {
    pub at: Timestamp,
    /// The event: `authentication_success`, `authentication_failure`, `access_denied`, or a change such as
    /// `key_created`.
    pub event: Arc<str>,
    /// The user id; empty for an anonymous caller.
    pub actor: Arc<str>,
    pub auth_method: Arc<str>,
    pub client_ip: Option<Arc<str>>,
    pub correlation_id: Option<Arc<str>>,
    /// The object of the event, such as `key:0f3c…` or a path.
    pub resource: Arc<str>,
    /// The cause of a denial or a failure.
    pub reason: Option<Arc<str>>,
    /// The object before the event, without secrets; `after` is the object after it.
    pub before: Option<Details>,
    pub after: Option<Details>,
    /// The number of equal events that this record counts.
    pub count: u64,
}

/// The state of an audited object, without secrets.
#[derive(Debug, Clone, PartialEq)]
pub enum Details {
    /// Named values, in order. The store encodes them.
    Fields(Vec<(Arc<str>, Detail)>),
    /// A JSON object as text: details that the store returned, or the definition of a registered cube.
    Encoded(Arc<str>),
}

/// A value of [`Details`].
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    Value(Value),
    List(Vec<Detail>),
    Fields(Vec<(Arc<str>, Detail)>),
}

impl Default for Details {
    fn default() -> Details {
        Details::Fields(Vec::new())
    }
}

impl Details {
    /// Creates details from named values.
    pub fn fields<'n>(fields: impl IntoIterator<Item = (&'n str, Detail)>) -> Details {
        Details::Fields(fields.into_iter().map(|(name, detail)| (name.into(), detail)).collect())
    }

    /// Returns the JSON text of details that the store returned; `None` for details with fields.
    pub fn encoded(&self) -> Option<&str> {
        match self {
            Details::Fields(_) => None,
            Details::Encoded(text) => Some(text),
        }
    }
}

impl From<bool> for Detail {
    fn from(is_true: bool) -> Detail {
        Detail::Value(Value::Boolean(is_true))
    }
}

impl From<usize> for Detail {
    fn from(count: usize) -> Detail {
        Detail::Value(Value::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
    }
}

impl From<&str> for Detail {
    fn from(text: &str) -> Detail {
        Detail::Value(Value::Text(text.into()))
    }
}

impl From<String> for Detail {
    fn from(text: String) -> Detail {
        Detail::Value(Value::Text(text.into()))
    }
}

impl<T: Into<Detail>> From<Option<T>> for Detail {
    fn from(optional: Option<T>) -> Detail {
        optional.map_or(Detail::Value(Value::Null), Into::into)
    }
}

impl<T: Into<Detail>> FromIterator<T> for Detail {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Detail {
        Detail::List(items.into_iter().map(Into::into).collect())
    }
}

/// A record at its place in the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRecord {
    /// The number of the record, counted from 1 without gaps.
    pub sequence: u64,
    pub entry: AuditEntry,
    /// The hexadecimal SHA-256 of this record and, through `previous`, of all records before it.
    pub hash: Arc<str>,
    pub previous: Arc<str>,
}

/// A selection of records, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub event: Option<Arc<str>>,
    pub actor: Option<Arc<str>>,
    pub resource: Option<Arc<str>>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Selects records before this sequence number, for the next page.
    pub before: Option<u64>,
    pub limit: u32,
}

/// The result of a check of the whole chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainState {
    Whole {
        records: u64,
        last_hash: Arc<str>,
    },
    /// The chain is broken. `sequence` is the first record that does not fit; it and all later records are not
    /// trustworthy.
    Broken {
        sequence: u64,
        why: Arc<str>,
    },
}

/// The append-only log of audit records, chained by hashes.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Appends all entries or none. When this returns, the entries are on disk.
    async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError>;
    async fn records(&self, filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError>;
    /// Reads every record and checks the chain.
    async fn verify(&self) -> Result<ChainState, StoreError>;
}
