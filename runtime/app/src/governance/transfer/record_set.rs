//! A set of governed records, and the problems that prevent its import.

use std::sync::Arc;

use crate::governance::text::TextProblem;
use crate::ports::governance_records::{
    ArtifactMetadata, Certification, CertificationStatus, Ownership, RecordKind, Term,
};
use crate::ports::store::StoreError;

/// All governed records. Their versions are 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordSet {
    /// The glossary terms, sorted by category, name and id.
    pub terms: Vec<Arc<Term>>,
    /// The ownership records, sorted by artifact. Certifications and metadata are sorted in the same way.
    pub ownership: Vec<Arc<Ownership>>,
    pub certifications: Vec<Arc<Certification>>,
    pub metadata: Vec<Arc<ArtifactMetadata>>,
}

impl RecordSet {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.terms.len() + self.ownership.len() + self.certifications.len() + self.metadata.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A problem of a set of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProblem {
    /// The list that contains the record; `index` is the place of the record in this list.
    pub kind: RecordKind,
    pub index: usize,
    /// The field, such as `name` or `links[2]`; empty for the whole record.
    pub field: String,
    pub problem: RecordProblem,
}

/// The reason why a record cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    #[error(transparent)]
    Text(#[from] TextProblem),
    #[error("the record is repeated")]
    RepeatedRecord,
    #[error("the item is repeated")]
    RepeatedItem,
    #[error("unknown term `{id}`")]
    UnknownTerm { id: Arc<str> },
    #[error("another term has the name: `{id}`")]
    NameTaken { id: Arc<str> },
    #[error("the link closes a cycle: {}", names.join(" → "))]
    Cycle { names: Vec<String> },
    #[error("the status `{}` needs this step", status.as_str())]
    MissingStep { status: CertificationStatus },
    #[error("expected a SHA-256 of 64 hexadecimal digits")]
    Fingerprint,
}

/// The reason why a set of records was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("the records have {} problems", .0.len())]
    Invalid(Vec<ImportProblem>),
    #[error("the limit of {max} terms is reached")]
    TooManyTerms { max: usize },
    #[error("the records were changed by others at the same time")]
    Contended,
    #[error(transparent)]
    Store(#[from] StoreError),
}
