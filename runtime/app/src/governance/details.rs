//! Details of governed records for audit records and hooks.

use super::artifacts::ArtifactView;
use crate::ports::audit::{Detail, Details};
use crate::ports::governance::Artifact;
use crate::ports::governance_records::{ArtifactMetadata, Certification, Definition, Ownership, Step, Term, TermLink};

fn fields<'n>(fields: impl IntoIterator<Item = (&'n str, Detail)>) -> Detail {
    Detail::Fields(fields.into_iter().map(|(name, detail)| (name.into(), detail)).collect())
}

fn step(step: Option<&Step>) -> Detail {
    let step = step.map(|step| {
        fields([
            ("by", (&*step.by).into()),
            ("at", step.at.to_string().into()),
            ("notes", step.notes.as_deref().into()),
        ])
    });
    step.into()
}

/// Returns the fields of a certification, with the fingerprint of its definition and without its text.
pub(super) fn certification_details(record: &Certification) -> Details {
    Details::fields([
        ("artifact_type", record.artifact.kind.as_str().into()),
        ("artifact_id", (&*record.artifact.id).into()),
        ("status", record.status.as_str().into()),
        ("version", version(record.version)),
        ("submitted", step(record.submitted.as_ref())),
        ("certified", step(record.certified.as_ref())),
        ("valid_until", record.valid_until.map(|day| day.to_string()).into()),
        ("fingerprint", record.definition.as_ref().map(|definition| &*definition.fingerprint).into()),
        ("definition_changed_at", record.definition_changed_at.map(|at| at.to_string()).into()),
        ("rejected", step(record.rejected.as_ref())),
        ("deprecated", step(record.deprecated.as_ref())),
        ("replacement", record.replacement.as_deref().into()),
        ("sunset_date", record.sunset_date.map(|day| day.to_string()).into()),
        ("archived", step(record.archived.as_ref())),
    ])
}

fn version(version: u64) -> Detail {
    usize::try_from(version).unwrap_or(usize::MAX).into()
}

/// Returns the fields of a term.
pub(super) fn term_details(term: &Term) -> Details {
    let texts = |texts: &[std::sync::Arc<str>]| texts.iter().map(|text| &**text).collect::<Detail>();
    let link = |link: &TermLink| {
        let (artifact_type, artifact_id) = link.target.parts();
        fields([
            ("artifact_type", artifact_type.into()),
            ("artifact_id", artifact_id.into()),
            ("relationship", link.relationship.as_str().into()),
        ])
    };
    Details::fields([
        ("id", (&*term.id).into()),
        ("name", (&*term.name).into()),
        ("definition", (&*term.definition).into()),
        ("synonyms", texts(&term.synonyms)),
        ("category", term.category.as_deref().into()),
        ("subcategory", term.subcategory.as_deref().into()),
        ("examples", texts(&term.examples)),
        ("related_terms", texts(&term.related_terms)),
        ("formula", term.formula.as_deref().into()),
        ("owner", term.owner.as_deref().into()),
        ("status", term.status.as_str().into()),
        ("links", Detail::List(term.links.iter().map(link).collect())),
        ("version", version(term.version)),
    ])
}

/// Returns the fields of the owners of an artifact.
pub(super) fn ownership_details(record: &Ownership) -> Details {
    let owners = record.owners.iter().map(|owner| {
        fields([
            ("owner_type", owner.owner_type.as_str().into()),
            ("owner_id", (&*owner.owner_id).into()),
            ("role", owner.role.as_str().into()),
        ])
    });
    Details::fields([
        ("artifact_type", record.artifact.kind.as_str().into()),
        ("artifact_id", (&*record.artifact.id).into()),
        ("owners", Detail::List(owners.collect())),
        ("version", version(record.version)),
    ])
}

/// Returns the fields of metadata that was set at run time.
pub(super) fn metadata_details(record: &ArtifactMetadata) -> Details {
    let tags = record.tags.as_ref().map(|tags| tags.iter().map(|tag| &**tag).collect::<Detail>());
    Details::fields([
        ("artifact_type", record.artifact.kind.as_str().into()),
        ("artifact_id", (&*record.artifact.id).into()),
        ("description", record.description.as_deref().into()),
        ("tags", tags.into()),
        ("documentation_url", record.documentation_url.as_deref().into()),
        ("refresh_frequency", record.refresh_frequency.as_deref().into()),
        ("data_classification", record.data_classification.as_deref().into()),
        ("pii_flag", record.pii_flag.into()),
        ("version", version(record.version)),
    ])
}

/// Returns an artifact as hooks see it.
pub(super) fn artifact_for_hooks(view: &ArtifactView, definition: Option<&Definition>) -> Artifact {
    let name = view.artifact.id.rsplit('.').next().unwrap_or_default();
    let owners = view.owners.owners.iter().map(|owner| {
        fields([
            ("owner_type", owner.owner_type.as_str().into()),
            ("owner_id", (&*owner.owner_id).into()),
            ("role", owner.role.as_str().into()),
        ])
    });
    let owners: Vec<Detail> = owners.collect();
    Artifact {
        kind: view.artifact.kind.as_str().to_owned(),
        id: view.artifact.id.to_string(),
        owner: view.owners.owners.first().map(|owner| owner.owner_id.to_string()),
        tags: view.tags.value.iter().map(ToString::to_string).collect(),
        classification: view.data_classification.value.as_deref().map(str::to_owned),
        pii: view.pii_flag.value,
        certification: view.certification.status.as_str().to_owned(),
        version: view.certification.version,
        body: Details::fields([
            ("name", name.into()),
            ("title", (&*view.title).into()),
            ("description", view.description.value.as_deref().into()),
            ("documentation_url", view.documentation_url.value.as_deref().into()),
            ("refresh_frequency", view.refresh_frequency.value.as_deref().into()),
            ("owners", Detail::List(owners)),
            ("definition", definition.map(|definition| &*definition.text).into()),
        ]),
    }
}
