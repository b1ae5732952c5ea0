//! Governance: bodies and parameters of requests, and records as clients see them.
//!
//! In: bodies and query strings; views of the use cases. Out: requests for `app::governance`, or a [`FieldError`];
//! certifications, terms, owners, artifacts and the history as JSON. Not here: rules for texts and moves, which
//! `app::governance` checks; the report (`report`).

pub mod bulk;
pub mod records;
pub mod report;
pub(crate) mod request;
pub mod transfer;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::governance::{
    ArtifactView, ArtifactsFound, Badge, CertificationPage, CertificationView, DefinitionChange, HistoryPage, Origin,
    OwnedArtifact, OwnerView, OwnershipView, TermPage, TermView,
};
use terrane_app::ports::audit::Details;
use terrane_app::ports::governance_records::{
    ArtifactRef, ArtifactType, CertificationStatus, HistoryEntry, LinkTarget, OwnerRole, OwnerType, RecordKind,
    Relationship, Step, TERM_TYPE, TermStatus,
};
use terrane_json::details;

pub use request::{
    ArtifactMetadataPatch, CertificationApproval, CertificationDeprecation, CertificationRejection, CertificationStep,
    CertificationSubmission, DEFAULT_LIMIT, GlossaryLink, GlossaryTermPatch, MAX_LIMIT, NewGlossaryTerm, NewOwner,
    artifact_from_parameters, artifact_of_path, artifact_query_from_parameters, catalog_query_from_parameters,
    certification_filter_from_parameters, history_from_parameters, link_from_parameters, link_from_wire,
    metadata_from_wire, move_from_wire, new_term_from_wire, owner_from_parameters, owner_from_wire,
    owner_of_parameters, term_change_from_wire, term_filter_from_parameters, term_search_from_parameters,
};

use crate::schema;

pub(crate) fn artifact_types(_: &mut SchemaGenerator) -> Schema {
    schema::words(&ArtifactType::ALL.map(ArtifactType::as_str))
}

pub(crate) fn link_types(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<&str> = ArtifactType::ALL.into_iter().map(ArtifactType::as_str).chain([TERM_TYPE]).collect();
    schema::words(&words)
}

pub(crate) fn statuses(_: &mut SchemaGenerator) -> Schema {
    schema::words(&CertificationStatus::ALL.map(CertificationStatus::as_str))
}

pub(crate) fn term_statuses(_: &mut SchemaGenerator) -> Schema {
    schema::words(&TermStatus::ALL.map(TermStatus::as_str))
}

pub(crate) fn relationships(_: &mut SchemaGenerator) -> Schema {
    schema::words(&Relationship::ALL.map(Relationship::as_str))
}

pub(crate) fn owner_types(_: &mut SchemaGenerator) -> Schema {
    schema::words(&OwnerType::ALL.map(OwnerType::as_str))
}

pub(crate) fn owner_roles(_: &mut SchemaGenerator) -> Schema {
    schema::words(&OwnerRole::ALL.map(OwnerRole::as_str))
}

fn origins(_: &mut SchemaGenerator) -> Schema {
    schema::words(&[Origin::Default, Origin::File, Origin::Api].map(Origin::as_str))
}

fn record_kinds(_: &mut SchemaGenerator) -> Schema {
    schema::words(&RecordKind::ALL.map(RecordKind::as_str))
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn texts(texts: &[std::sync::Arc<str>]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// A step of certification.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CertificationNote {
    pub by: String,
    #[schemars(schema_with = "schema::timestamp")]
    pub at: String,
    /// The notes or the reason.
    pub notes: Option<String>,
}

impl CertificationNote {
    fn of(step: Option<&Step>) -> Option<Self> {
        step.map(|step| CertificationNote {
            by: text(&step.by),
            at: step.at.to_string(),
            notes: step.notes.as_deref().map(text),
        })
    }
}

/// A definition that differs from the certified one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangedDefinition {
    /// The time at which the servers noticed it; null until then.
    pub since: Option<String>,
    /// The removed and added lines. Null for callers to whom policies apply.
    pub diff: Option<Vec<DefinitionLine>>,
}

/// A line of a changed definition.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DefinitionLine {
    /// `removed` or `added`.
    pub change: &'static str,
    pub text: String,
}

impl From<&DefinitionChange> for ChangedDefinition {
    fn from(change: &DefinitionChange) -> Self {
        let lines = change.diff.as_ref().map(|lines| {
            lines.iter().map(|line| DefinitionLine { change: line.mark.as_str(), text: line.text.clone() }).collect()
        });
        ChangedDefinition { since: change.since.map(|at| at.to_string()), diff: lines }
    }
}

/// The certification of an artifact. An artifact without a record is a draft of version 0.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Certification {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: &'static str,
    pub artifact_id: String,
    #[schemars(schema_with = "statuses")]
    pub status: &'static str,
    pub version: u64,
    pub submitted_by: Option<String>,
    pub submitted_at: Option<String>,
    pub submission_notes: Option<String>,
    pub certified_by: Option<String>,
    pub certified_at: Option<String>,
    /// The last day of the certificate.
    pub valid_until: Option<String>,
    /// The notes of the certificate.
    pub notes: Option<String>,
    /// True if the last day of the certificate has passed.
    pub expired: bool,
    pub definition_changed: Option<ChangedDefinition>,
    pub rejected: Option<CertificationNote>,
    pub deprecated: Option<CertificationNote>,
    /// The artifact to use instead, of the same type.
    pub replacement: Option<String>,
    pub sunset_date: Option<String>,
    pub archived: Option<CertificationNote>,
    /// The moves of the table of transitions; each has a route.
    pub allowed_moves: Vec<&'static str>,
    /// True if the project has no such artifact now.
    pub orphaned: bool,
}

impl From<&CertificationView> for Certification {
    fn from(view: &CertificationView) -> Self {
        let record = view.record.as_deref();
        let submitted = record.and_then(|record| record.submitted.as_ref());
        let certified = record.and_then(|record| record.certified.as_ref());
        Certification {
            artifact_type: view.artifact.kind.as_str(),
            artifact_id: text(&view.artifact.id),
            status: view.status.as_str(),
            version: view.version,
            submitted_by: submitted.map(|step| text(&step.by)),
            submitted_at: submitted.map(|step| step.at.to_string()),
            submission_notes: submitted.and_then(|step| step.notes.as_deref().map(text)),
            certified_by: certified.map(|step| text(&step.by)),
            certified_at: certified.map(|step| step.at.to_string()),
            valid_until: record.and_then(|record| record.valid_until).map(|day| day.to_string()),
            notes: certified.and_then(|step| step.notes.as_deref().map(text)),
            expired: view.is_expired,
            definition_changed: view.definition_changed.as_ref().map(Into::into),
            rejected: CertificationNote::of(record.and_then(|record| record.rejected.as_ref())),
            deprecated: CertificationNote::of(record.and_then(|record| record.deprecated.as_ref())),
            replacement: record.and_then(|record| record.replacement.as_deref().map(text)),
            sunset_date: record.and_then(|record| record.sunset_date).map(|day| day.to_string()),
            archived: CertificationNote::of(record.and_then(|record| record.archived.as_ref())),
            allowed_moves: view.allowed_moves.iter().map(|transition| transition.as_str()).collect(),
            orphaned: view.is_orphan,
        }
    }
}

/// The certification of an artifact, beside its name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CertificationBadge {
    #[schemars(schema_with = "statuses")]
    pub status: &'static str,
    /// True if the definition differs from the certified one.
    pub definition_changed: bool,
    /// True if the last day of the certificate has passed.
    pub expired: bool,
}

impl From<Badge> for CertificationBadge {
    fn from(badge: Badge) -> Self {
        CertificationBadge {
            status: badge.status.as_str(),
            definition_changed: badge.is_definition_changed,
            expired: badge.is_expired,
        }
    }
}

/// Certifications, by artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Certifications {
    pub certifications: Vec<Certification>,
    /// The number of certifications on all pages.
    pub total: usize,
}

impl From<&CertificationPage> for Certifications {
    fn from(page: &CertificationPage) -> Self {
        let certifications = page.certifications.iter().map(Certification::from).collect();
        Certifications { certifications, total: page.total }
    }
}

/// A link of a term.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TermLink {
    #[schemars(schema_with = "link_types")]
    pub artifact_type: &'static str,
    pub artifact_id: String,
    #[schemars(schema_with = "relationships")]
    pub relationship: &'static str,
    pub linked_by: String,
    #[schemars(schema_with = "schema::timestamp")]
    pub linked_at: String,
}

/// The ids of the artifacts that a term has links to.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct LinkedArtifacts {
    pub measures: Vec<String>,
    pub dimensions: Vec<String>,
    pub metrics: Vec<String>,
    pub cubes: Vec<String>,
    pub models: Vec<String>,
}

/// A term of the glossary.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GlossaryTerm {
    pub id: String,
    pub name: String,
    pub definition: String,
    pub synonyms: Vec<String>,
    pub category: Option<String>,
    pub subcategory: Option<String>,
    pub examples: Vec<String>,
    /// The ids of other terms.
    pub related_terms: Vec<String>,
    pub formula: Option<String>,
    pub owner: Option<String>,
    #[schemars(schema_with = "term_statuses")]
    pub status: &'static str,
    pub linked_artifacts: LinkedArtifacts,
    pub links: Vec<TermLink>,
    pub created_by: String,
    #[schemars(schema_with = "schema::timestamp")]
    pub created_at: String,
    #[schemars(schema_with = "schema::timestamp")]
    pub updated_at: String,
    pub version: u64,
}

impl From<&TermView> for GlossaryTerm {
    fn from(TermView { term, related }: &TermView) -> Self {
        let mut linked = LinkedArtifacts::default();
        for link in &term.links {
            let LinkTarget::Artifact(ArtifactRef { kind, id }) = &link.target else { continue };
            let list = match kind {
                ArtifactType::Measure => &mut linked.measures,
                ArtifactType::Dimension => &mut linked.dimensions,
                ArtifactType::Metric => &mut linked.metrics,
                ArtifactType::Cube => &mut linked.cubes,
                ArtifactType::Model => &mut linked.models,
            };
            if !list.iter().any(|known| **known == **id) {
                list.push(text(id));
            }
        }
        let links = term.links.iter().map(|link| {
            let (artifact_type, artifact_id) = link.target.parts();
            TermLink {
                artifact_type,
                artifact_id: text(artifact_id),
                relationship: link.relationship.as_str(),
                linked_by: text(&link.linked_by),
                linked_at: link.linked_at.to_string(),
            }
        });
        GlossaryTerm {
            id: text(&term.id),
            name: text(&term.name),
            definition: text(&term.definition),
            synonyms: texts(&term.synonyms),
            category: term.category.as_deref().map(text),
            subcategory: term.subcategory.as_deref().map(text),
            examples: texts(&term.examples),
            related_terms: related.iter().map(|(id, _)| text(id)).collect(),
            formula: term.formula.as_deref().map(text),
            owner: term.owner.as_deref().map(text),
            status: term.status.as_str(),
            linked_artifacts: linked,
            links: links.collect(),
            created_by: text(&term.created_by),
            created_at: term.created_at.to_string(),
            updated_at: term.updated_at.to_string(),
            version: term.version,
        }
    }
}

/// Terms of the glossary.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GlossaryTerms {
    pub terms: Vec<GlossaryTerm>,
}

impl From<&[TermView]> for GlossaryTerms {
    fn from(views: &[TermView]) -> Self {
        GlossaryTerms { terms: views.iter().map(GlossaryTerm::from).collect() }
    }
}

/// A page of the terms of the glossary.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GlossaryTermPage {
    pub terms: Vec<GlossaryTerm>,
    /// The number of terms on all pages.
    pub total: usize,
}

impl From<&TermPage> for GlossaryTermPage {
    fn from(page: &TermPage) -> Self {
        GlossaryTermPage { terms: page.terms.iter().map(GlossaryTerm::from).collect(), total: page.total }
    }
}

/// An owner of an artifact.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct OwnerAssignment {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: &'static str,
    pub artifact_id: String,
    #[schemars(schema_with = "owner_types")]
    pub owner_type: &'static str,
    pub owner_id: String,
    #[schemars(schema_with = "owner_roles")]
    pub role: &'static str,
    /// Null for an owner of the project's files.
    pub assigned_by: Option<String>,
    pub assigned_at: Option<String>,
    /// `api`, or `file` for an owner of the project's files.
    #[schemars(schema_with = "origins")]
    pub origin: &'static str,
}

impl OwnerAssignment {
    pub fn new(artifact: &ArtifactRef, owner: &OwnerView) -> Self {
        OwnerAssignment {
            artifact_type: artifact.kind.as_str(),
            artifact_id: text(&artifact.id),
            owner_type: owner.owner_type.as_str(),
            owner_id: text(&owner.owner_id),
            role: owner.role.as_str(),
            assigned_by: owner.assigned_by.as_deref().map(text),
            assigned_at: owner.assigned_at.map(|at| at.to_string()),
            origin: owner.origin.as_str(),
        }
    }
}

/// The owners of an artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactOwners {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: &'static str,
    pub artifact_id: String,
    /// The version of the record; 0 without one.
    pub version: u64,
    pub owners: Vec<OwnerAssignment>,
}

impl ArtifactOwners {
    pub fn new(artifact: &ArtifactRef, view: &OwnershipView) -> Self {
        ArtifactOwners {
            artifact_type: artifact.kind.as_str(),
            artifact_id: text(&artifact.id),
            version: view.version,
            owners: view.owners.iter().map(|owner| OwnerAssignment::new(artifact, owner)).collect(),
        }
    }
}

/// The artifacts of an owner.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OwnedArtifacts {
    pub owner_id: String,
    pub artifacts: Vec<OwnerAssignment>,
}

impl OwnedArtifacts {
    pub fn new(owner_id: &str, owned: &[OwnedArtifact]) -> Self {
        let artifacts = owned.iter().map(|owned| OwnerAssignment::new(&owned.artifact, &owned.owner)).collect();
        OwnedArtifacts { owner_id: text(owner_id), artifacts }
    }
}

/// The source of each value of an artifact.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ArtifactOrigins {
    #[schemars(schema_with = "origins")]
    pub description: &'static str,
    #[schemars(schema_with = "origins")]
    pub tags: &'static str,
    #[schemars(schema_with = "origins")]
    pub documentation_url: &'static str,
    #[schemars(schema_with = "origins")]
    pub refresh_frequency: &'static str,
    #[schemars(schema_with = "origins")]
    pub data_classification: &'static str,
    #[schemars(schema_with = "origins")]
    pub pii_flag: &'static str,
}

/// A term with a link to an artifact.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LinkedTerm {
    pub id: String,
    pub name: String,
    #[schemars(schema_with = "relationships")]
    pub relationship: &'static str,
}

/// An artifact with its governed values.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GovernedArtifact {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: &'static str,
    pub artifact_id: String,
    pub title: String,
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub documentation_url: Option<String>,
    pub refresh_frequency: Option<String>,
    pub data_classification: Option<String>,
    pub pii_flag: bool,
    pub origins: ArtifactOrigins,
    /// The version of the metadata; 0 if none was set.
    pub version: u64,
    pub updated_by: Option<String>,
    pub updated_at: Option<String>,
    pub owners: Vec<OwnerAssignment>,
    pub certification: Certification,
    pub glossary_terms: Vec<LinkedTerm>,
}

impl From<&ArtifactView> for GovernedArtifact {
    fn from(view: &ArtifactView) -> Self {
        let terms = view.terms.iter().map(|(term, relationship)| LinkedTerm {
            id: text(&term.id),
            name: text(&term.name),
            relationship: relationship.as_str(),
        });
        GovernedArtifact {
            artifact_type: view.artifact.kind.as_str(),
            artifact_id: text(&view.artifact.id),
            title: text(&view.title),
            description: view.description.value.as_deref().map(text),
            tags: texts(&view.tags.value),
            documentation_url: view.documentation_url.value.as_deref().map(text),
            refresh_frequency: view.refresh_frequency.value.as_deref().map(text),
            data_classification: view.data_classification.value.as_deref().map(text),
            pii_flag: view.pii_flag.value,
            origins: ArtifactOrigins {
                description: view.description.origin.as_str(),
                tags: view.tags.origin.as_str(),
                documentation_url: view.documentation_url.origin.as_str(),
                refresh_frequency: view.refresh_frequency.origin.as_str(),
                data_classification: view.data_classification.origin.as_str(),
                pii_flag: view.pii_flag.origin.as_str(),
            },
            version: view.version,
            updated_by: view.updated_by.as_deref().map(text),
            updated_at: view.updated_at.map(|at| at.to_string()),
            owners: view.owners.owners.iter().map(|owner| OwnerAssignment::new(&view.artifact, owner)).collect(),
            certification: (&view.certification).into(),
            glossary_terms: terms.collect(),
        }
    }
}

/// A page of artifacts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GovernedArtifacts {
    pub artifacts: Vec<GovernedArtifact>,
    /// The number of artifacts on all pages.
    pub total: usize,
}

impl From<&ArtifactsFound> for GovernedArtifacts {
    fn from(found: &ArtifactsFound) -> Self {
        GovernedArtifacts {
            artifacts: found.artifacts.iter().map(GovernedArtifact::from).collect(),
            total: found.total,
        }
    }
}

/// A change of a governed record.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GovernanceChange {
    /// The record and the version that the change made, such as `ownership:measure:orders.revenue:2`.
    pub id: String,
    #[schemars(schema_with = "schema::timestamp")]
    pub at: String,
    pub actor: String,
    /// The event of the audit record, such as `artifact_certified`.
    pub action: String,
    #[schemars(schema_with = "record_kinds")]
    pub record: &'static str,
    /// Null for a term.
    pub artifact_type: Option<&'static str>,
    pub artifact_id: Option<String>,
    pub term_id: Option<String>,
    /// The version after the change.
    pub version: u64,
    pub notes: Option<String>,
    /// The record before the change. Null for callers to whom policies apply.
    #[schemars(schema_with = "schema::any")]
    pub before: Json,
    /// The record after the change. Null for callers to whom policies apply.
    #[schemars(schema_with = "schema::any")]
    pub after: Json,
}

impl From<&HistoryEntry> for GovernanceChange {
    fn from(entry: &HistoryEntry) -> Self {
        let object = |details: Option<&Details>| details.map_or(Json::Null, details::to_json);
        GovernanceChange {
            id: entry.id().to_string(),
            at: entry.at.to_string(),
            actor: text(&entry.actor),
            action: text(&entry.action),
            record: entry.kind.as_str(),
            artifact_type: entry.artifact.as_ref().map(|artifact| artifact.kind.as_str()),
            artifact_id: entry.artifact.as_ref().map(|artifact| text(&artifact.id)),
            term_id: entry.term_id.as_deref().map(text),
            version: entry.version,
            notes: entry.notes.as_deref().map(text),
            before: object(entry.before.as_ref()),
            after: object(entry.after.as_ref()),
        }
    }
}

/// A page of the history, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GovernanceHistory {
    pub changes: Vec<GovernanceChange>,
    /// The `before` of the next page: the id of the last change of this page.
    pub next: Option<String>,
}

impl From<&HistoryPage> for GovernanceHistory {
    fn from(page: &HistoryPage) -> Self {
        GovernanceHistory {
            changes: page.entries.iter().map(GovernanceChange::from).collect(),
            next: page.next.as_ref().map(ToString::to_string),
        }
    }
}
