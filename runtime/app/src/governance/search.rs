//! Search among the artifacts that the caller may see, and the catalogue of all of them.

use std::sync::Arc;

use super::artifacts::{ArtifactView, FileValues, Sight};
use super::certification::CertificationView;
use super::error::GovernanceError;
use super::ownership::OwnershipView;
use super::service::GovernanceService;
use super::state::GovernanceState;
use crate::domain::RequestContext;
use crate::ports::governance_records::{ArtifactRef, ArtifactType, CertificationStatus};

/// A selection of artifacts.
#[derive(Debug, Clone, Default)]
pub struct ArtifactQuery {
    /// The words to find. Each must occur in the id, the title, the description, the tags, or the names and synonyms of
    /// linked terms. Without words, all artifacts match.
    pub text: String,
    /// The tags that the artifact must have, ignoring case.
    pub tags: Vec<String>,
    pub status: Option<CertificationStatus>,
    pub artifact_type: Option<ArtifactType>,
    /// Selects this cube and its members.
    pub cube: Option<String>,
    /// Selects the artifacts of this owner, in any role.
    pub owner_id: Option<String>,
    pub order: ArtifactOrder,
    pub limit: usize,
    pub offset: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ArtifactOrder {
    /// Best match first, and certified artifacts before others.
    #[default]
    Match,
    /// By type, then by id.
    Artifact,
}

/// A page of artifacts.
#[derive(Debug, Clone, Default)]
pub struct ArtifactsFound {
    pub artifacts: Vec<ArtifactView>,
    /// The number of artifacts on all pages.
    pub total: usize,
}

/// An artifact that matches, with its rank.
struct Match {
    rank: u8,
    is_uncertified: bool,
    artifact: ArtifactRef,
    file: FileValues,
}

impl GovernanceService {
    /// Returns the artifacts that match a query.
    ///
    /// # Errors
    /// [`GovernanceError::Store`].
    pub async fn search_artifacts(
        &self,
        query: &ArtifactQuery,
        request: &RequestContext,
    ) -> Result<ArtifactsFound, GovernanceError> {
        self.read(request, |sight, state| Ok(search(sight, state, query))).await
    }
}

fn search(sight: &Sight<'_>, state: &GovernanceState, query: &ArtifactQuery) -> ArtifactsFound {
    let words: Vec<String> = query.text.split_whitespace().map(str::to_lowercase).collect();
    let tags: Vec<String> = query.tags.iter().map(|tag| tag.trim().to_lowercase()).collect();
    let mut found = Vec::new();
    let kinds = ArtifactType::ALL.into_iter().filter(|kind| query.artifact_type.is_none_or(|wanted| wanted == *kind));
    for kind in kinds {
        for (id, file) in sight.artifacts_of(kind) {
            let artifact = ArtifactRef { kind, id };
            let is_selected = is_of_cube(&artifact, query.cube.as_deref())
                && has_owner(state, &artifact, &file, query.owner_id.as_deref())
                && has_tags(state, &artifact, &file, &tags);
            if !is_selected {
                continue;
            }
            let Some(rank) = rank(state, &artifact, &file, &words) else { continue };
            // An artifact without a record is a draft, so its view need not be computed.
            let is_recorded = state.certifications.contains_key(&artifact);
            let view = is_recorded.then(|| CertificationView::of(sight, state, &artifact));
            let status = view.as_ref().map_or(CertificationStatus::Draft, |view| view.status);
            if query.status.is_none_or(|wanted| wanted == status) {
                let is_uncertified = !view.is_some_and(|view| view.is_certified());
                found.push(Match { rank, is_uncertified, artifact, file });
            }
        }
    }
    match query.order {
        ArtifactOrder::Match => {
            found.sort_by(|a, b| (a.rank, a.is_uncertified, &a.artifact).cmp(&(b.rank, b.is_uncertified, &b.artifact)));
        }
        ArtifactOrder::Artifact => found.sort_by(|a, b| a.artifact.cmp(&b.artifact)),
    }
    let page = found.iter().skip(query.offset).take(query.limit);
    let artifacts = page.map(|found| sight.view(state, &found.artifact, &found.file)).collect();
    ArtifactsFound { artifacts, total: found.len() }
}

/// Returns whether an artifact is the cube or one of its members; true if no cube is given.
fn is_of_cube(artifact: &ArtifactRef, cube: Option<&str>) -> bool {
    let Some(cube) = cube else { return true };
    match artifact.kind {
        ArtifactType::Cube => *artifact.id == *cube,
        ArtifactType::Measure | ArtifactType::Dimension => {
            artifact.id.split_once('.').is_some_and(|(of, _)| of == cube)
        }
        ArtifactType::Metric | ArtifactType::Model => false,
    }
}

/// Returns whether an artifact has the given owner in any role; true if no owner is given.
fn has_owner(state: &GovernanceState, artifact: &ArtifactRef, file: &FileValues, owner_id: Option<&str>) -> bool {
    let Some(owner_id) = owner_id else { return true };
    let view = OwnershipView::of(state, artifact, file.governed.owner.as_ref());
    view.owners.iter().any(|owner| *owner.owner_id == *owner_id)
}

fn tags_of<'a>(state: &'a GovernanceState, artifact: &ArtifactRef, file: &'a FileValues) -> &'a [Arc<str>] {
    let set = state.metadata.get(artifact).and_then(|set| set.tags.as_deref());
    set.unwrap_or(&file.governed.tags)
}

fn has_tags(state: &GovernanceState, artifact: &ArtifactRef, file: &FileValues, wanted: &[String]) -> bool {
    let tags = || tags_of(state, artifact, file).iter();
    wanted.iter().all(|wanted| tags().any(|tag| tag.to_lowercase() == *wanted))
}

/// Returns the rank of an artifact in a search, 0 for the best match; `None` if the words do not match it.
fn rank(state: &GovernanceState, artifact: &ArtifactRef, file: &FileValues, words: &[String]) -> Option<u8> {
    if words.is_empty() {
        return Some(0);
    }
    let whole = words.join(" ");
    let id = artifact.id.to_lowercase();
    let title = file.title.to_lowercase();
    let name = id.rsplit('.').next().unwrap_or_default();
    if id == whole || name == whole || title == whole {
        return Some(0);
    }
    if name.starts_with(&whole) || title.starts_with(&whole) {
        return Some(1);
    }
    let terms = state.terms_of(artifact).flat_map(|(term, _)| [&term.name].into_iter().chain(&term.synonyms));
    let terms: Vec<String> = terms.map(|text| text.to_lowercase()).collect();
    if terms.contains(&whole) {
        return Some(1);
    }
    let is_in_names = |word: &String| {
        id.contains(word.as_str()) || title.contains(word.as_str()) || terms.iter().any(|term| term.contains(word))
    };
    if words.iter().all(is_in_names) {
        return Some(2);
    }
    let set = state.metadata.get(artifact).and_then(|set| set.description.as_deref());
    let description = set.or(file.description.as_deref()).unwrap_or_default().to_lowercase();
    let tags: Vec<String> = tags_of(state, artifact, file).iter().map(|tag| tag.to_lowercase()).collect();
    let is_anywhere = |word: &String| {
        is_in_names(word) || description.contains(word.as_str()) || tags.iter().any(|tag| tag.contains(word))
    };
    words.iter().all(is_anywhere).then_some(3)
}
