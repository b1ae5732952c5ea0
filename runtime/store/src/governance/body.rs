//! The stored JSON of governed records: times in microseconds, days as `2026-12-31`, and the interface's words.
//!
//! New fields need a default. The names of existing fields never change, because stored records contain them.

use std::sync::Arc;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use terrane_app::ports::governance_records::{
    ArtifactMetadata, ArtifactRef, Certification, CertificationStatus, Definition, GovernedRecord, LinkTarget, Owner,
    OwnerRole, OwnerType, Ownership, RecordKind, Relationship, Step, TERM_TYPE, Term, TermLink, TermStatus,
};
use terrane_app::ports::store::StoreError;

use crate::row::{micros, time};

#[derive(Serialize, Deserialize)]
struct StoredStep {
    by: String,
    at: i64,
    notes: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct StoredDefinition {
    text: String,
    fingerprint: String,
}

#[derive(Serialize, Deserialize)]
struct StoredCertification {
    artifact: String,
    status: String,
    submitted: Option<StoredStep>,
    certified: Option<StoredStep>,
    valid_until: Option<String>,
    definition: Option<StoredDefinition>,
    definition_changed_at: Option<i64>,
    rejected: Option<StoredStep>,
    deprecated: Option<StoredStep>,
    replacement: Option<String>,
    sunset_date: Option<String>,
    archived: Option<StoredStep>,
    updated_at: i64,
}

#[derive(Serialize, Deserialize)]
struct StoredLink {
    artifact_type: String,
    artifact_id: String,
    relationship: String,
    linked_by: String,
    linked_at: i64,
}

#[derive(Serialize, Deserialize)]
struct StoredTerm {
    id: String,
    name: String,
    definition: String,
    synonyms: Vec<String>,
    category: Option<String>,
    subcategory: Option<String>,
    examples: Vec<String>,
    related_terms: Vec<String>,
    formula: Option<String>,
    #[serde(default)]
    formula_by: Option<String>,
    owner: Option<String>,
    status: String,
    links: Vec<StoredLink>,
    created_by: String,
    created_at: i64,
    updated_at: i64,
}

#[derive(Serialize, Deserialize)]
struct StoredOwner {
    owner_type: String,
    owner_id: String,
    role: String,
    assigned_by: String,
    assigned_at: i64,
}

#[derive(Serialize, Deserialize)]
struct StoredOwnership {
    artifact: String,
    owners: Vec<StoredOwner>,
    updated_at: i64,
}

#[derive(Serialize, Deserialize)]
struct StoredMetadata {
    artifact: String,
    description: Option<String>,
    tags: Option<Vec<String>>,
    documentation_url: Option<String>,
    refresh_frequency: Option<String>,
    data_classification: Option<String>,
    pii_flag: Option<bool>,
    updated_by: String,
    updated_at: i64,
}

/// Returns the JSON text of a record.
pub(super) fn encode(record: &GovernedRecord) -> Result<String, StoreError> {
    let encoded = match record {
        GovernedRecord::Certification(record) => serde_json::to_string(&stored_certification(record)),
        GovernedRecord::Term(term) => serde_json::to_string(&stored_term(term)),
        GovernedRecord::Ownership(record) => serde_json::to_string(&StoredOwnership {
            artifact: record.artifact.to_string(),
            owners: record.owners.iter().map(stored_owner).collect(),
            updated_at: micros(record.updated_at),
        }),
        GovernedRecord::Metadata(record) => serde_json::to_string(&StoredMetadata {
            artifact: record.artifact.to_string(),
            description: maybe(&record.description),
            tags: record.tags.as_deref().map(texts),
            documentation_url: maybe(&record.documentation_url),
            refresh_frequency: maybe(&record.refresh_frequency),
            data_classification: maybe(&record.data_classification),
            pii_flag: record.pii_flag,
            updated_by: record.updated_by.to_string(),
            updated_at: micros(record.updated_at),
        }),
    };
    encoded.map_err(|error| StoreError { message: error.to_string() })
}

/// Parses the JSON text of a record. Returns `None` if the text is invalid.
pub(super) fn decode(kind: RecordKind, version: u64, text: &str) -> Option<GovernedRecord> {
    Some(match kind {
        RecordKind::Certification => {
            GovernedRecord::Certification(Arc::new(certification(serde_json::from_str(text).ok()?, version)?))
        }
        RecordKind::Term => GovernedRecord::Term(Arc::new(term(serde_json::from_str(text).ok()?, version)?)),
        RecordKind::Ownership => {
            let stored: StoredOwnership = serde_json::from_str(text).ok()?;
            GovernedRecord::Ownership(Arc::new(Ownership {
                artifact: ArtifactRef::parse(&stored.artifact)?,
                owners: stored.owners.into_iter().map(owner).collect::<Option<_>>()?,
                version,
                updated_at: time(stored.updated_at).ok()?,
            }))
        }
        RecordKind::Metadata => {
            let stored: StoredMetadata = serde_json::from_str(text).ok()?;
            GovernedRecord::Metadata(Arc::new(ArtifactMetadata {
                artifact: ArtifactRef::parse(&stored.artifact)?,
                description: arc(stored.description),
                tags: stored.tags.map(arcs),
                documentation_url: arc(stored.documentation_url),
                refresh_frequency: arc(stored.refresh_frequency),
                data_classification: arc(stored.data_classification),
                pii_flag: stored.pii_flag,
                version,
                updated_by: stored.updated_by.into(),
                updated_at: time(stored.updated_at).ok()?,
            }))
        }
    })
}

fn maybe(text: &Option<Arc<str>>) -> Option<String> {
    text.as_deref().map(str::to_owned)
}

fn texts(texts: &[Arc<str>]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn arc(text: Option<String>) -> Option<Arc<str>> {
    text.map(Into::into)
}

fn arcs(texts: Vec<String>) -> Vec<Arc<str>> {
    texts.into_iter().map(Into::into).collect()
}

fn stored_step(step: &Step) -> StoredStep {
    StoredStep { by: step.by.to_string(), at: micros(step.at), notes: maybe(&step.notes) }
}

/// Reads an optional field. Returns `None` if the field has an invalid value.
fn optional<S, T>(stored: Option<S>, read: impl Fn(S) -> Option<T>) -> Option<Option<T>> {
    match stored {
        None => Some(None),
        Some(stored) => read(stored).map(Some),
    }
}

fn step(stored: StoredStep) -> Option<Step> {
    Some(Step { by: stored.by.into(), at: time(stored.at).ok()?, notes: arc(stored.notes) })
}

fn date(text: String) -> Option<Date> {
    text.parse().ok()
}

fn stored_certification(record: &Certification) -> StoredCertification {
    StoredCertification {
        artifact: record.artifact.to_string(),
        status: record.status.as_str().to_owned(),
        submitted: record.submitted.as_ref().map(stored_step),
        certified: record.certified.as_ref().map(stored_step),
        valid_until: record.valid_until.map(|day| day.to_string()),
        definition: record.definition.as_ref().map(|definition| StoredDefinition {
            text: definition.text.to_string(),
            fingerprint: definition.fingerprint.to_string(),
        }),
        definition_changed_at: record.definition_changed_at.map(micros),
        rejected: record.rejected.as_ref().map(stored_step),
        deprecated: record.deprecated.as_ref().map(stored_step),
        replacement: maybe(&record.replacement),
        sunset_date: record.sunset_date.map(|day| day.to_string()),
        archived: record.archived.as_ref().map(stored_step),
        updated_at: micros(record.updated_at),
    }
}

fn certification(stored: StoredCertification, version: u64) -> Option<Certification> {
    Some(Certification {
        artifact: ArtifactRef::parse(&stored.artifact)?,
        status: CertificationStatus::named(&stored.status)?,
        version,
        submitted: optional(stored.submitted, step)?,
        certified: optional(stored.certified, step)?,
        valid_until: optional(stored.valid_until, date)?,
        definition: stored
            .definition
            .map(|definition| Definition { text: definition.text.into(), fingerprint: definition.fingerprint.into() }),
        definition_changed_at: optional(stored.definition_changed_at, |at| time(at).ok())?,
        rejected: optional(stored.rejected, step)?,
        deprecated: optional(stored.deprecated, step)?,
        replacement: arc(stored.replacement),
        sunset_date: optional(stored.sunset_date, date)?,
        archived: optional(stored.archived, step)?,
        updated_at: time(stored.updated_at).ok()?,
    })
}

fn stored_term(term: &Term) -> StoredTerm {
    let link = |link: &TermLink| {
        let (artifact_type, artifact_id) = link.target.parts();
        StoredLink {
            artifact_type: artifact_type.to_owned(),
            artifact_id: artifact_id.to_owned(),
            relationship: link.relationship.as_str().to_owned(),
            linked_by: link.linked_by.to_string(),
            linked_at: micros(link.linked_at),
        }
    };
    StoredTerm {
        id: term.id.to_string(),
        name: term.name.to_string(),
        definition: term.definition.to_string(),
        synonyms: texts(&term.synonyms),
        category: maybe(&term.category),
        subcategory: maybe(&term.subcategory),
        examples: texts(&term.examples),
        related_terms: texts(&term.related_terms),
        formula: maybe(&term.formula),
        formula_by: maybe(&term.formula_by),
        owner: maybe(&term.owner),
        status: term.status.as_str().to_owned(),
        links: term.links.iter().map(link).collect(),
        created_by: term.created_by.to_string(),
        created_at: micros(term.created_at),
        updated_at: micros(term.updated_at),
    }
}

fn term(stored: StoredTerm, version: u64) -> Option<Term> {
    Some(Term {
        id: stored.id.into(),
        name: stored.name.into(),
        definition: stored.definition.into(),
        synonyms: arcs(stored.synonyms),
        category: arc(stored.category),
        subcategory: arc(stored.subcategory),
        examples: arcs(stored.examples),
        related_terms: arcs(stored.related_terms),
        formula: arc(stored.formula),
        formula_by: arc(stored.formula_by),
        owner: arc(stored.owner),
        status: TermStatus::named(&stored.status)?,
        links: stored.links.into_iter().map(link).collect::<Option<_>>()?,
        created_by: stored.created_by.into(),
        created_at: time(stored.created_at).ok()?,
        updated_at: time(stored.updated_at).ok()?,
        version,
    })
}

fn link(stored: StoredLink) -> Option<TermLink> {
    let target = match &*stored.artifact_type {
        TERM_TYPE => LinkTarget::Term(stored.artifact_id.into()),
        kind => LinkTarget::Artifact(ArtifactRef::parse(&format!("{kind}:{}", stored.artifact_id))?),
    };
    Some(TermLink {
        target,
        relationship: Relationship::named(&stored.relationship)?,
        linked_by: stored.linked_by.into(),
        linked_at: time(stored.linked_at).ok()?,
    })
}

fn stored_owner(owner: &Owner) -> StoredOwner {
    StoredOwner {
        owner_type: owner.owner_type.as_str().to_owned(),
        owner_id: owner.owner_id.to_string(),
        role: owner.role.as_str().to_owned(),
        assigned_by: owner.assigned_by.to_string(),
        assigned_at: micros(owner.assigned_at),
    }
}

fn owner(stored: StoredOwner) -> Option<Owner> {
    Some(Owner {
        owner_type: OwnerType::named(&stored.owner_type)?,
        owner_id: stored.owner_id.into(),
        role: OwnerRole::named(&stored.role)?,
        assigned_by: stored.assigned_by.into(),
        assigned_at: time(stored.assigned_at).ok()?,
    })
}
