//! The port to governed records: certifications, glossary terms, owners, and metadata of artifacts.
//!
//! In: changes that were decided on all records up to a sequence number. Out: the records, each with a version, and the
//! history of their changes. Records are never deleted: an archived term stays, and an artifact without owners has an
//! empty list. Not here: the rules of changes (`governance`), and formats.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;

use super::audit::{AuditEntry, Details};
use super::store::StoreError;

/// The types of governed artifacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArtifactType {
    Cube,
    Measure,
    Dimension,
    Metric,
    Model,
}

impl ArtifactType {
    pub const ALL: [ArtifactType; 5] =
        [ArtifactType::Cube, ArtifactType::Measure, ArtifactType::Dimension, ArtifactType::Metric, ArtifactType::Model];

    pub fn as_str(self) -> &'static str {
        match self {
            ArtifactType::Cube => "cube",
            ArtifactType::Measure => "measure",
            ArtifactType::Dimension => "dimension",
            ArtifactType::Metric => "metric",
            ArtifactType::Model => "model",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        ArtifactType::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The type and the id of an artifact, such as a measure and `orders.revenue`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactRef {
    pub kind: ArtifactType,
    pub id: Arc<str>,
}

impl ArtifactRef {
    pub fn new(kind: ArtifactType, id: impl Into<Arc<str>>) -> Self {
        ArtifactRef { kind, id: id.into() }
    }

    /// Parses the format of [`fmt::Display`], such as `measure:orders.revenue`.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, id) = text.split_once(':')?;
        Some(ArtifactRef::new(ArtifactType::named(kind)?, id))
    }
}

/// Writes the reference as `measure:orders.revenue`.
impl fmt::Display for ArtifactRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.id)
    }
}

/// The states of certification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertificationStatus {
    #[default]
    Draft,
    PendingReview,
    Certified,
    Deprecated,
    Archived,
}

impl CertificationStatus {
    pub const ALL: [CertificationStatus; 5] = [
        CertificationStatus::Draft,
        CertificationStatus::PendingReview,
        CertificationStatus::Certified,
        CertificationStatus::Deprecated,
        CertificationStatus::Archived,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            CertificationStatus::Draft => "draft",
            CertificationStatus::PendingReview => "pending_review",
            CertificationStatus::Certified => "certified",
            CertificationStatus::Deprecated => "deprecated",
            CertificationStatus::Archived => "archived",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        CertificationStatus::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// A step of certification, with its actor, its time, and its notes or reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub by: Arc<str>,
    pub at: Timestamp,
    pub notes: Option<Arc<str>>,
}

/// The definition of an artifact, with the definitions that its values are computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The text to display. Long definitions are cut.
    pub text: Arc<str>,
    /// The hexadecimal SHA-256 of the whole text.
    pub fingerprint: Arc<str>,
}

/// The certification of an artifact. An artifact without a record is a draft of version 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certification {
    pub artifact: ArtifactRef,
    pub status: CertificationStatus,
    pub version: u64,
    pub submitted: Option<Step>,
    pub certified: Option<Step>,
    /// The last day of the certificate.
    pub valid_until: Option<Date>,
    /// The definition that was submitted; after certification, the definition that was certified.
    pub definition: Option<Definition>,
    /// The time at which the servers noticed that the definition differs from the certified one.
    pub definition_changed_at: Option<Timestamp>,
    pub rejected: Option<Step>,
    pub deprecated: Option<Step>,
    /// The id of the artifact to use instead, of the same type.
    pub replacement: Option<Arc<str>>,
    /// The day on which a deprecated artifact is to be removed.
    pub sunset_date: Option<Date>,
    pub archived: Option<Step>,
    pub updated_at: Timestamp,
}

/// The states of a glossary term.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TermStatus {
    Draft,
    #[default]
    Approved,
    Archived,
}

impl TermStatus {
    pub const ALL: [TermStatus; 3] = [TermStatus::Draft, TermStatus::Approved, TermStatus::Archived];

    pub fn as_str(self) -> &'static str {
        match self {
            TermStatus::Draft => "draft",
            TermStatus::Approved => "approved",
            TermStatus::Archived => "archived",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        TermStatus::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// The meaning of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relationship {
    Defines,
    RelatesTo,
    SynonymOf,
}

impl Relationship {
    pub const ALL: [Relationship; 3] = [Relationship::Defines, Relationship::RelatesTo, Relationship::SynonymOf];

    pub fn as_str(self) -> &'static str {
        match self {
            Relationship::Defines => "defines",
            Relationship::RelatesTo => "relates_to",
            Relationship::SynonymOf => "synonym_of",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        Relationship::ALL.into_iter().find(|relationship| relationship.as_str() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    Artifact(ArtifactRef),
    /// The id of another term.
    Term(Arc<str>),
}

/// The type of a link's target in requests if the target is a term.
pub const TERM_TYPE: &str = "term";

impl LinkTarget {
    /// Returns the type and the id of the target, as requests and stored links contain them.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            LinkTarget::Artifact(artifact) => (artifact.kind.as_str(), &artifact.id),
            LinkTarget::Term(id) => (TERM_TYPE, id),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermLink {
    pub target: LinkTarget,
    pub relationship: Relationship,
    pub linked_by: Arc<str>,
    pub linked_at: Timestamp,
}

/// A term of the glossary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub definition: Arc<str>,
    pub synonyms: Vec<Arc<str>>,
    pub category: Option<Arc<str>>,
    pub subcategory: Option<Arc<str>>,
    pub examples: Vec<Arc<str>>,
    /// The ids of other terms.
    pub related_terms: Vec<Arc<str>>,
    pub formula: Option<Arc<str>>,
    /// The caller who wrote the formula; `None` if it was imported.
    pub formula_by: Option<Arc<str>>,
    pub owner: Option<Arc<str>>,
    pub status: TermStatus,
    pub links: Vec<TermLink>,
    pub created_by: Arc<str>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub version: u64,
}

impl Term {
    /// Returns the category and the name in lower case. They are unique among the terms that are not archived. Returns
    /// `None` for an archived term.
    pub fn unique_name(&self) -> Option<String> {
        (self.status != TermStatus::Archived).then(|| unique_name(self.category.as_deref(), &self.name))
    }
}

/// Returns the form of a string in which categories and names of terms are compared.
pub fn unique_name(category: Option<&str>, name: &str) -> String {
    format!("{}\n{}", category.unwrap_or_default().trim().to_lowercase(), name.trim().to_lowercase())
}

/// The kinds of owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnerType {
    User,
    Team,
}

impl OwnerType {
    pub const ALL: [OwnerType; 2] = [OwnerType::User, OwnerType::Team];

    pub fn as_str(self) -> &'static str {
        match self {
            OwnerType::User => "user",
            OwnerType::Team => "team",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        OwnerType::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnerRole {
    DataOwner,
    DataSteward,
    TechnicalOwner,
}

impl OwnerRole {
    pub const ALL: [OwnerRole; 3] = [OwnerRole::DataOwner, OwnerRole::DataSteward, OwnerRole::TechnicalOwner];

    pub fn as_str(self) -> &'static str {
        match self {
            OwnerRole::DataOwner => "data_owner",
            OwnerRole::DataSteward => "data_steward",
            OwnerRole::TechnicalOwner => "technical_owner",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        OwnerRole::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// An owner of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub owner_type: OwnerType,
    pub owner_id: Arc<str>,
    pub role: OwnerRole,
    pub assigned_by: Arc<str>,
    pub assigned_at: Timestamp,
}

/// The owners of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    pub artifact: ArtifactRef,
    pub owners: Vec<Owner>,
    pub version: u64,
    pub updated_at: Timestamp,
}

/// Metadata of an artifact that was set at run time. If a field is `None`, the value of the project's files applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactMetadata {
    pub artifact: ArtifactRef,
    pub description: Option<Arc<str>>,
    pub tags: Option<Vec<Arc<str>>>,
    pub documentation_url: Option<Arc<str>>,
    pub refresh_frequency: Option<Arc<str>>,
    pub data_classification: Option<Arc<str>>,
    pub pii_flag: Option<bool>,
    pub version: u64,
    pub updated_by: Arc<str>,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GovernedRecord {
    Certification(Arc<Certification>),
    Term(Arc<Term>),
    Ownership(Arc<Ownership>),
    Metadata(Arc<ArtifactMetadata>),
}

/// The kinds of governed records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    Certification,
    Term,
    Ownership,
    Metadata,
}

impl RecordKind {
    pub const ALL: [RecordKind; 4] =
        [RecordKind::Certification, RecordKind::Term, RecordKind::Ownership, RecordKind::Metadata];

    pub fn as_str(self) -> &'static str {
        match self {
            RecordKind::Certification => "certification",
            RecordKind::Term => "term",
            RecordKind::Ownership => "ownership",
            RecordKind::Metadata => "metadata",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        RecordKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl GovernedRecord {
    pub fn kind(&self) -> RecordKind {
        match self {
            GovernedRecord::Certification(_) => RecordKind::Certification,
            GovernedRecord::Term(_) => RecordKind::Term,
            GovernedRecord::Ownership(_) => RecordKind::Ownership,
            GovernedRecord::Metadata(_) => RecordKind::Metadata,
        }
    }

    pub fn version(&self) -> u64 {
        match self {
            GovernedRecord::Certification(record) => record.version,
            GovernedRecord::Term(record) => record.version,
            GovernedRecord::Ownership(record) => record.version,
            GovernedRecord::Metadata(record) => record.version,
        }
    }

    /// Returns the artifact of the record; `None` for a term.
    pub fn artifact(&self) -> Option<&ArtifactRef> {
        match self {
            GovernedRecord::Certification(record) => Some(&record.artifact),
            GovernedRecord::Term(_) => None,
            GovernedRecord::Ownership(record) => Some(&record.artifact),
            GovernedRecord::Metadata(record) => Some(&record.artifact),
        }
    }

    /// Returns the key of the record, such as `certification:measure:orders.revenue`, or `term:` followed by an id.
    pub fn key(&self) -> String {
        let kind = self.kind().as_str();
        match self {
            GovernedRecord::Term(term) => format!("{kind}:{}", term.id),
            record => format!("{kind}:{}", record.artifact().map(ToString::to_string).unwrap_or_default()),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RecordChange {
    /// The record after the change.
    pub record: GovernedRecord,
    /// The audit record. The entry in the history takes its event, actor, time and details.
    pub entry: AuditEntry,
}

/// One change in the history.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryEntry {
    /// The number of the change, counted from 1 without gaps. It is not shown to callers, because gaps would reveal
    /// hidden records.
    pub sequence: u64,
    pub at: Timestamp,
    pub actor: Arc<str>,
    /// The event of the audit record.
    pub action: Arc<str>,
    pub kind: RecordKind,
    /// The artifact; `None` for a term.
    pub artifact: Option<ArtifactRef>,
    pub term_id: Option<Arc<str>>,
    /// The targets of the links that the change added to a term or removed from it.
    pub linked: Vec<LinkTarget>,
    /// The version after the change.
    pub version: u64,
    pub notes: Option<Arc<str>>,
    pub before: Option<Details>,
    pub after: Option<Details>,
}

impl HistoryEntry {
    /// Returns the record and the version that the change made. No other change has this id.
    pub fn id(&self) -> ChangeId {
        let target = match (&self.artifact, &self.term_id) {
            (Some(artifact), _) => artifact.to_string(),
            (None, id) => id.as_deref().unwrap_or_default().to_owned(),
        };
        ChangeId { key: format!("{}:{target}", self.kind.as_str()).into(), version: self.version }
    }
}

/// The id of a change: the key of its record, and the version after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeId {
    pub key: Arc<str>,
    pub version: u64,
}

impl ChangeId {
    /// Parses the format of [`fmt::Display`].
    pub fn parse(text: &str) -> Option<Self> {
        let (key, version) = text.rsplit_once(':')?;
        Some(ChangeId { key: key.into(), version: version.parse().ok()? })
    }
}

/// Writes the id as `ownership:measure:orders.revenue:2`.
impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.version)
    }
}

/// A selection of the history, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    pub artifact: Option<ArtifactRef>,
    pub term_id: Option<Arc<str>>,
    /// Selects one change.
    pub change: Option<ChangeId>,
    /// Selects entries before this sequence number, for the next page.
    pub before: Option<u64>,
    pub limit: u32,
}

/// The governed records.
#[async_trait]
pub trait GovernanceRecords: Send + Sync {
    /// Returns the records that changed after a sequence number, in the order of their last changes, each with the
    /// number of its last change.
    async fn changed_since(&self, sequence: u64) -> Result<Vec<(u64, GovernedRecord)>, StoreError>;

    /// Writes all changes with their audit records, or none. If `sequence` is not the number of the newest change, the
    /// changes were decided on outdated records: returns false, and writes nothing.
    async fn write(&self, sequence: u64, changes: Vec<RecordChange>) -> Result<bool, StoreError>;

    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryEntry>, StoreError>;
}
