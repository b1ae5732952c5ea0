//! Validates a set of records before it is imported.
//!
//! In: the set, and the records of the database. Out: the set with trimmed strings, or every problem with its place.
//! The rules are the same as for changes by callers: lengths of strings, unique names, links to known terms without
//! cycles. Artifacts that the project lacks are accepted, because their records apply again when the artifacts return.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::record_set::{ImportError, ImportProblem, RecordProblem, RecordSet};
use crate::governance::error::GovernanceError;
use crate::governance::glossary::{MAX_LINKS, MAX_TERMS, check_cycle};
use crate::governance::ownership::MAX_OWNERS;
use crate::governance::state::GovernanceState;
use crate::governance::text::{self, TextProblem};
use crate::ports::governance_records::{
    ArtifactMetadata, ArtifactRef, Certification, CertificationStatus, GovernedRecord, LinkTarget, Owner, Ownership,
    RecordKind, Step, Term, TermLink,
};

/// The problems of one record.
struct Findings<'a> {
    problems: &'a mut Vec<ImportProblem>,
    kind: RecordKind,
    index: usize,
}

impl Findings<'_> {
    fn add(&mut self, field: impl Into<String>, problem: impl Into<RecordProblem>) {
        let (kind, index) = (self.kind, self.index);
        self.problems.push(ImportProblem { kind, index, field: field.into(), problem: problem.into() });
    }

    /// Returns the value of `read`. If it is an error, records the problem and returns `otherwise`.
    fn read<T>(&mut self, read: Result<T, GovernanceError>, otherwise: T) -> T {
        match read {
            Ok(value) => value,
            Err(GovernanceError::Invalid { field, problem }) => {
                self.add(field, problem);
                otherwise
            }
            // The functions of `text` report no other error.
            Err(_) => otherwise,
        }
    }

    fn line(&mut self, field: &'static str, text: &Arc<str>) -> Arc<str> {
        self.read(text::line(field, text), text.clone())
    }

    fn optional_line(&mut self, field: &'static str, text: &Option<Arc<str>>) -> Option<Arc<str>> {
        text.as_ref().map(|text| self.line(field, text))
    }

    fn artifact(&mut self, artifact: &ArtifactRef) -> ArtifactRef {
        ArtifactRef { kind: artifact.kind, id: self.line("artifact_id", &artifact.id) }
    }
}

/// Checks a set of records against itself and the stored records, and reports all problems.
pub(super) fn validate(set: &RecordSet, state: &GovernanceState) -> Result<RecordSet, ImportError> {
    let mut problems = Vec::new();
    let mut valid = RecordSet::default();
    let mut seen: HashSet<String> = HashSet::new();
    let mut merged = state.clone();
    let mut add = |findings: &mut Findings<'_>, record: GovernedRecord| {
        if !seen.insert(record.key()) {
            findings.add("", RecordProblem::RepeatedRecord);
        }
        record
    };
    for (index, record) in set.terms.iter().enumerate() {
        let mut findings = Findings { problems: &mut problems, kind: RecordKind::Term, index };
        let record = Arc::new(term(&mut findings, record));
        merged.apply(vec![(0, add(&mut findings, GovernedRecord::Term(record.clone())))]);
        valid.terms.push(record);
    }
    for (index, record) in set.ownership.iter().enumerate() {
        let mut findings = Findings { problems: &mut problems, kind: RecordKind::Ownership, index };
        let record = Arc::new(ownership(&mut findings, record));
        add(&mut findings, GovernedRecord::Ownership(record.clone()));
        valid.ownership.push(record);
    }
    for (index, record) in set.certifications.iter().enumerate() {
        let mut findings = Findings { problems: &mut problems, kind: RecordKind::Certification, index };
        let record = Arc::new(certification(&mut findings, record));
        add(&mut findings, GovernedRecord::Certification(record.clone()));
        valid.certifications.push(record);
    }
    for (index, record) in set.metadata.iter().enumerate() {
        let mut findings = Findings { problems: &mut problems, kind: RecordKind::Metadata, index };
        let record = Arc::new(metadata(&mut findings, record));
        add(&mut findings, GovernedRecord::Metadata(record.clone()));
        valid.metadata.push(record);
    }
    if merged.terms.len() > MAX_TERMS {
        return Err(ImportError::TooManyTerms { max: MAX_TERMS });
    }
    check_terms(&valid.terms, &merged, &mut problems);
    if problems.is_empty() { Ok(valid) } else { Err(ImportError::Invalid(problems)) }
}

fn term(findings: &mut Findings<'_>, term: &Term) -> Term {
    let definition = text::paragraph("definition", &term.definition, text::MAX_TEXT);
    let formula = text::notes("formula", term.formula.as_deref());
    Term {
        id: findings.line("id", &term.id),
        name: findings.line("name", &term.name),
        definition: findings.read(definition, term.definition.clone()),
        synonyms: findings.read(text::lines("synonyms", &term.synonyms), Vec::new()),
        category: findings.optional_line("category", &term.category),
        subcategory: findings.optional_line("subcategory", &term.subcategory),
        examples: findings.read(text::paragraphs("examples", &term.examples), Vec::new()),
        related_terms: findings.read(text::lines("related_terms", &term.related_terms), Vec::new()),
        formula: findings.read(formula, None),
        formula_by: None,
        owner: findings.optional_line("owner", &term.owner),
        links: links(findings, &term.links),
        version: 0,
        ..term.clone()
    }
}

fn links(findings: &mut Findings<'_>, links: &[TermLink]) -> Vec<TermLink> {
    if links.len() > MAX_LINKS {
        findings.add("links", TextProblem::TooMany { max: MAX_LINKS, found: links.len() });
    }
    let mut seen = HashSet::new();
    for (at, link) in links.iter().enumerate() {
        let (kind, id) = link.target.parts();
        if text::line("artifact_id", id).is_err() {
            findings.add(format!("links[{at}].artifact_id"), TextProblem::OneLine { max: text::MAX_LINE });
        }
        if !seen.insert((kind, id, link.relationship.as_str())) {
            findings.add(format!("links[{at}]"), RecordProblem::RepeatedItem);
        }
    }
    links.to_vec()
}

fn ownership(findings: &mut Findings<'_>, record: &Ownership) -> Ownership {
    if record.owners.len() > MAX_OWNERS {
        findings.add("owners", TextProblem::TooMany { max: MAX_OWNERS, found: record.owners.len() });
    }
    let mut seen = HashSet::new();
    for (at, Owner { owner_type, owner_id, role, .. }) in record.owners.iter().enumerate() {
        if text::line("owner_id", owner_id).is_err() {
            findings.add(format!("owners[{at}].owner_id"), TextProblem::OneLine { max: text::MAX_LINE });
        }
        if !seen.insert((owner_type.as_str(), &**owner_id, role.as_str())) {
            findings.add(format!("owners[{at}]"), RecordProblem::RepeatedItem);
        }
    }
    Ownership { artifact: findings.artifact(&record.artifact), version: 0, ..record.clone() }
}

fn certification(findings: &mut Findings<'_>, record: &Certification) -> Certification {
    let mut step = |field: &'static str, step: &Option<Step>| {
        step.as_ref().map(|step| match text::notes("notes", step.notes.as_deref()) {
            Ok(notes) => Step { notes, ..step.clone() },
            Err(GovernanceError::Invalid { problem, .. }) => {
                findings.add(format!("{field}.notes"), problem);
                step.clone()
            }
            Err(_) => step.clone(),
        })
    };
    let checked = Certification {
        submitted: step("submitted", &record.submitted),
        certified: step("certified", &record.certified),
        rejected: step("rejected", &record.rejected),
        deprecated: step("deprecated", &record.deprecated),
        archived: step("archived", &record.archived),
        ..record.clone()
    };
    let needed = match record.status {
        CertificationStatus::Draft => None,
        CertificationStatus::PendingReview => Some(("submitted", &record.submitted)),
        CertificationStatus::Certified => Some(("certified", &record.certified)),
        CertificationStatus::Deprecated => Some(("deprecated", &record.deprecated)),
        CertificationStatus::Archived => Some(("archived", &record.archived)),
    };
    if let Some((field, None)) = needed {
        findings.add(field, RecordProblem::MissingStep { status: record.status });
    }
    if let Some(definition) = &record.definition {
        let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digest(&definition.fingerprint) {
            findings.add("definition.fingerprint", RecordProblem::Fingerprint);
        }
    }
    let replacement = findings.optional_line("replacement", &record.replacement);
    if replacement.as_ref() == Some(&record.artifact.id) {
        findings.add("replacement", TextProblem::SameArtifact);
    }
    Certification { artifact: findings.artifact(&record.artifact), replacement, version: 0, ..checked }
}

fn metadata(findings: &mut Findings<'_>, record: &ArtifactMetadata) -> ArtifactMetadata {
    let description = record.description.as_ref().map(|description| {
        let read = text::paragraph("description", description, text::MAX_TEXT);
        findings.read(read, description.clone())
    });
    let url = record.documentation_url.as_ref();
    let documentation_url = url.map(|url| findings.read(text::address("documentation_url", url), url.clone()));
    ArtifactMetadata {
        artifact: findings.artifact(&record.artifact),
        description,
        tags: record.tags.as_ref().map(|tags| findings.read(text::lines("tags", tags), Vec::new())),
        documentation_url,
        refresh_frequency: findings.optional_line("refresh_frequency", &record.refresh_frequency),
        data_classification: findings.optional_line("data_classification", &record.data_classification),
        version: 0,
        ..record.clone()
    }
}

/// Checks the rules over several terms. `terms` and `merged` have the terms as they would be after the import.
fn check_terms(terms: &[Arc<Term>], merged: &GovernanceState, problems: &mut Vec<ImportProblem>) {
    let mut names: HashMap<String, Vec<&Arc<str>>> = HashMap::new();
    for term in merged.terms.values() {
        if let Some(name) = term.unique_name() {
            names.entry(name).or_default().push(&term.id);
        }
    }
    for (index, term) in terms.iter().enumerate() {
        let mut findings = Findings { problems, kind: RecordKind::Term, index };
        let others = term.unique_name().and_then(|name| names.get(&name));
        if let Some(other) = others.and_then(|ids| ids.iter().find(|id| ***id != term.id)) {
            findings.add("name", RecordProblem::NameTaken { id: Arc::clone(other) });
        }
        for (at, id) in term.related_terms.iter().enumerate() {
            if *id == term.id {
                findings.add(format!("related_terms[{at}]"), TextProblem::SameTerm);
            } else if !merged.terms.contains_key(id) {
                findings.add(format!("related_terms[{at}]"), RecordProblem::UnknownTerm { id: id.clone() });
            }
        }
        for (at, link) in term.links.iter().enumerate() {
            let LinkTarget::Term(id) = &link.target else { continue };
            match merged.terms.get(id) {
                None => findings.add(format!("links[{at}]"), RecordProblem::UnknownTerm { id: id.clone() }),
                Some(target) => {
                    if let Err(GovernanceError::Cycle { names }) = check_cycle(merged, term, target, link.relationship)
                    {
                        findings.add(format!("links[{at}]"), RecordProblem::Cycle { names });
                    }
                }
            }
        }
    }
}
