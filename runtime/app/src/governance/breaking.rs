//! Breaking changes of certified artifacts: compares the current project with exported records.
//!
//! In: a set of records and a snapshot. Out: a diagnostic for each certified artifact that the project lacks, has under
//! a different name, or defines in another way. Not here: artifacts that are not certified, and whether a certificate
//! is expired, which the compliance report shows.

use std::sync::Arc;

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::model::Member;

use super::definition::{DefinitionFormat, definition_of};
use super::diff::{DiffMark, diff};
use super::transfer::RecordSet;
use crate::catalog::Snapshot;
use crate::ports::governance_records::{ArtifactRef, ArtifactType, Certification, CertificationStatus, Definition};

/// The number of changed lines in one message.
const MAX_LINES: usize = 20;

/// The result of a comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BreakingChanges {
    /// The number of certified artifacts that were compared.
    pub compared: usize,
    pub diagnostics: Vec<Diagnostic>,
}

/// Compares a project with the certified artifacts of a set of records.
pub fn breaking_changes(set: &RecordSet, snapshot: &Snapshot) -> BreakingChanges {
    let is_certified = |record: &&Arc<Certification>| record.status == CertificationStatus::Certified;
    let certified: Vec<&Arc<Certification>> = set.certifications.iter().filter(is_certified).collect();
    let diagnostics = certified.iter().filter_map(|record| breaking_change(record, snapshot)).collect();
    BreakingChanges { compared: certified.len(), diagnostics }
}

fn breaking_change(record: &Certification, snapshot: &Snapshot) -> Option<Diagnostic> {
    let artifact = &record.artifact;
    let (kind, id) = (artifact.kind.as_str(), &artifact.id);
    let certified = record.definition.as_ref();
    let format = certified.map_or(DefinitionFormat::Complete, DefinitionFormat::of);
    let Some(present) = definition_of(snapshot, artifact, format) else {
        let renamed = certified.and_then(|certified| renamed(snapshot, artifact, certified));
        return Some(match renamed {
            Some(new) => renamed_to(snapshot, artifact, &new),
            None => removed(snapshot, artifact),
        });
    };
    let certified = certified.filter(|certified| certified.fingerprint != present.fingerprint)?;
    let lines = changed_lines(&certified.text, &present.text);
    let message = format!("definition of certified {kind} `{id}` changed:\n{lines}");
    let hint = "Restore the definition, or certify the new one and export the records again.";
    Some(at(Diagnostic::error(Code::CertifiedChanged, message).hint(hint), place(snapshot, artifact)))
}

fn renamed_to(snapshot: &Snapshot, old: &ArtifactRef, new: &ArtifactRef) -> Diagnostic {
    let message = format!("certified {} `{}` was renamed to `{}`", old.kind.as_str(), old.id, new.id);
    let hint = format!("Restore the name, or deprecate `{}` before it is renamed.", old.id);
    at(Diagnostic::error(Code::CertifiedRenamed, message).hint(hint), place(snapshot, new))
}

fn removed(snapshot: &Snapshot, artifact: &ArtifactRef) -> Diagnostic {
    let (kind, id) = (artifact.kind.as_str(), &artifact.id);
    let message = format!("certified {kind} `{id}` was removed");
    let hint = format!("Restore the {kind}, or deprecate it before it is removed.");
    let cube = id.split_once('.').map(|(cube, _)| ArtifactRef::new(ArtifactType::Cube, cube));
    let place = cube.and_then(|cube| place(snapshot, &cube));
    at(Diagnostic::error(Code::CertifiedRemoved, message).hint(hint), place)
}

fn at(diagnostic: Diagnostic, place: Option<Span>) -> Diagnostic {
    match place {
        Some(span) => diagnostic.at(span),
        None => diagnostic,
    }
}

/// Returns the changed lines with `-` and `+` before them.
fn changed_lines(before: &str, after: &str) -> String {
    let lines = diff(before, after);
    let more = lines.len().saturating_sub(MAX_LINES);
    let mut shown: Vec<String> = lines
        .iter()
        .take(MAX_LINES)
        .map(|line| match line.mark {
            DiffMark::Removed => format!("  - {}", line.text.trim()),
            DiffMark::Added => format!("  + {}", line.text.trim()),
        })
        .collect();
    if more > 0 {
        shown.push(format!("  and {more} more lines"));
    }
    shown.join("\n")
}

/// Returns the artifact whose definition equals the certified one except for the name; `old` was probably renamed to
/// it.
fn renamed(snapshot: &Snapshot, old: &ArtifactRef, certified: &Definition) -> Option<ArtifactRef> {
    fn without_name(text: &str) -> &str {
        text.split_once('\n').map_or("", |(_, rest)| rest)
    }
    let is_same = |artifact: &ArtifactRef| {
        let new = definition_of(snapshot, artifact, DefinitionFormat::of(certified));
        new.is_some_and(|new| without_name(&new.text) == without_name(&certified.text))
    };
    candidates(snapshot, old).into_iter().find(is_same)
}

/// Returns the artifacts that may be a renamed one: the members of the same cube, or all of the same type.
fn candidates(snapshot: &Snapshot, old: &ArtifactRef) -> Vec<ArtifactRef> {
    let model = &snapshot.model;
    let artifact = |id: &str| ArtifactRef::new(old.kind, id);
    let cube = old.id.split_once('.').and_then(|(cube, _)| model.cube_named(cube));
    let member = |name: &str| cube.map(|cube| artifact(&format!("{}.{name}", cube.name)));
    match old.kind {
        ArtifactType::Cube => model.cubes.iter().map(|cube| artifact(&cube.name)).collect(),
        ArtifactType::Measure => {
            let measures = cube.into_iter().flat_map(|cube| &cube.measures);
            measures.filter_map(|measure| member(&measure.name)).collect()
        }
        ArtifactType::Dimension => {
            let dimensions = cube.into_iter().flat_map(|cube| &cube.dimensions);
            dimensions.filter_map(|dimension| member(&dimension.name)).collect()
        }
        ArtifactType::Metric => model.metrics.iter().map(|metric| artifact(&metric.name)).collect(),
        ArtifactType::Model => snapshot.definitions.models.iter().map(|model| artifact(&model.name.value)).collect(),
    }
}

/// Returns the place of an artifact in the project's files.
fn place(snapshot: &Snapshot, artifact: &ArtifactRef) -> Option<Span> {
    let model = &snapshot.model;
    let member = || {
        let (cube, name) = artifact.id.split_once('.')?;
        model.cube_named(cube)?.member(name)
    };
    match artifact.kind {
        ArtifactType::Cube => model.cube_named(&artifact.id)?.span.clone(),
        ArtifactType::Measure | ArtifactType::Dimension => match member()? {
            Member::Measure(id) => model.measure(id).span.clone(),
            Member::Dimension(id) => model.dimension(id).span.clone(),
            Member::Segment(_) => None,
        },
        ArtifactType::Metric => model.metric(model.metric_named(&artifact.id)?).span.clone(),
        ArtifactType::Model => {
            let mut models = snapshot.definitions.models.iter();
            models.find(|model| model.name.value == artifact.id).map(|model| model.name.span())
        }
    }
}
