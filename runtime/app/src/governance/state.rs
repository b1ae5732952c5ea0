//! All governed records in memory, as of one sequence number.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ports::governance_records::{
    ArtifactMetadata, ArtifactRef, Certification, GovernedRecord, LinkTarget, Ownership, Relationship, Term, TermStatus,
};

/// The governed records after a change. Clones share the records.
#[derive(Debug, Clone, Default)]
pub struct GovernanceState {
    /// The number of the newest change.
    pub sequence: u64,
    pub certifications: BTreeMap<ArtifactRef, Arc<Certification>>,
    /// The glossary terms by id.
    pub terms: BTreeMap<Arc<str>, Arc<Term>>,
    pub ownership: BTreeMap<ArtifactRef, Arc<Ownership>>,
    pub metadata: BTreeMap<ArtifactRef, Arc<ArtifactMetadata>>,
    /// The terms with a link to each artifact, by artifact. Archived terms are left out.
    links: BTreeMap<ArtifactRef, Vec<(Arc<str>, Relationship)>>,
}

impl GovernanceState {
    /// Applies records that changed after this state.
    pub(super) fn apply(&mut self, changed: Vec<(u64, GovernedRecord)>) {
        for (sequence, record) in changed {
            self.sequence = self.sequence.max(sequence);
            match record {
                GovernedRecord::Certification(record) => {
                    self.certifications.insert(record.artifact.clone(), record);
                }
                GovernedRecord::Ownership(record) => {
                    self.ownership.insert(record.artifact.clone(), record);
                }
                GovernedRecord::Metadata(record) => {
                    self.metadata.insert(record.artifact.clone(), record);
                }
                GovernedRecord::Term(term) => self.set_term(term),
            }
        }
    }

    fn set_term(&mut self, term: Arc<Term>) {
        let old = self.terms.insert(term.id.clone(), term.clone());
        for artifact in old.iter().flat_map(|old| artifacts_of(old)) {
            if let Some(linked) = self.links.get_mut(artifact) {
                linked.retain(|(id, _)| *id != term.id);
            }
        }
        if term.status == TermStatus::Archived {
            return;
        }
        for link in &term.links {
            if let LinkTarget::Artifact(artifact) = &link.target {
                let linked = self.links.entry(artifact.clone()).or_default();
                linked.push((term.id.clone(), link.relationship));
            }
        }
    }

    /// Returns the terms with a link to an artifact.
    pub(crate) fn terms_of(&self, artifact: &ArtifactRef) -> impl Iterator<Item = (&Arc<Term>, Relationship)> {
        let linked = self.links.get(artifact).into_iter().flatten();
        linked.filter_map(|(id, relationship)| Some((self.terms.get(id)?, *relationship)))
    }

    /// Returns every artifact that a record names.
    pub(super) fn governed(&self) -> impl Iterator<Item = &ArtifactRef> {
        let records = self.certifications.keys().chain(self.ownership.keys()).chain(self.metadata.keys());
        records.chain(self.linked())
    }

    /// Returns every artifact that a term has a link to.
    pub(super) fn linked(&self) -> impl Iterator<Item = &ArtifactRef> {
        self.links.iter().filter(|(_, terms)| !terms.is_empty()).map(|(artifact, _)| artifact)
    }
}

fn artifacts_of(term: &Term) -> impl Iterator<Item = &ArtifactRef> {
    term.links.iter().filter_map(|link| match &link.target {
        LinkTarget::Artifact(artifact) => Some(artifact),
        LinkTarget::Term(_) => None,
    })
}
