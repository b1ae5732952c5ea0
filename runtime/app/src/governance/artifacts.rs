//! The artifacts that a caller may see. Their values come from the project's files, or were set at run time.
//!
//! In: a snapshot, the caller and the governed records. Out: views of artifacts. An artifact that metadata does not
//! list for the caller has no view. A value that was set at run time replaces the value of the files, and each value
//! names its origin. Not here: changes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use terrane_compiler::model::{Cube, Governed, Member, Model, Presentation};
use terrane_compiler::project::{CubeDefinition, Definitions};
use terrane_compiler::text::nearest::nearest;
use terrane_compiler::{Access, SecurityContext};

use super::certification::CertificationView;
use super::error::GovernanceError;
use super::ownership::OwnershipView;
use super::service::{DefinitionCache, GovernanceSettings};
use super::state::GovernanceState;
use crate::catalog::Snapshot;
use crate::domain::{RequestContext, Scope};
use crate::metadata;
use crate::ports::governance_records::{ArtifactRef, ArtifactType, Relationship, Term};

/// The largest number of ids that an error proposes.
const MAX_NEAREST: usize = 5;

/// The source of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// The default: neither the files nor a request set the value.
    #[default]
    Default,
    /// The project's files.
    File,
    /// A request.
    Api,
}

impl Origin {
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::File => "file",
            Origin::Api => "api",
        }
    }
}

/// A value with its source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Sourced<Option<T>> {
    fn of(set: Option<T>, file: Option<T>) -> Self {
        match (set, file) {
            (Some(value), _) => Sourced { value: Some(value), origin: Origin::Api },
            (None, Some(value)) => Sourced { value: Some(value), origin: Origin::File },
            (None, None) => Sourced { value: None, origin: Origin::Default },
        }
    }
}

/// An artifact with its governed values.
#[derive(Debug, Clone)]
pub struct ArtifactView {
    pub artifact: ArtifactRef,
    pub title: Arc<str>,
    pub description: Sourced<Option<Arc<str>>>,
    pub tags: Sourced<Vec<Arc<str>>>,
    pub documentation_url: Sourced<Option<Arc<str>>>,
    pub refresh_frequency: Sourced<Option<Arc<str>>>,
    pub data_classification: Sourced<Option<Arc<str>>>,
    pub pii_flag: Sourced<bool>,
    /// The version of the metadata; 0 if no metadata was set at run time.
    pub version: u64,
    pub updated_by: Option<Arc<str>>,
    pub updated_at: Option<Timestamp>,
    pub owners: OwnershipView,
    pub certification: CertificationView,
    /// The glossary terms with a link to the artifact.
    pub terms: Vec<(Arc<Term>, Relationship)>,
}

/// The values of the project's files.
#[derive(Debug, Clone, Default)]
pub(super) struct FileValues {
    pub(super) title: Arc<str>,
    pub(super) description: Option<Arc<str>>,
    pub(super) governed: Governed,
}

/// The definitions of cubes by name, from which their governed values are read.
pub(crate) struct GovernedCubes<'a>(HashMap<&'a str, &'a CubeDefinition>);

impl<'a> GovernedCubes<'a> {
    pub(crate) fn of(definitions: &'a Definitions) -> Self {
        GovernedCubes(definitions.cubes.iter().map(|of| (&*of.name.value, of)).collect())
    }

    /// Returns the governed values of a cube. If it has none of its own, returns the values of the nearest cube with
    /// governed values among the cubes that it extends.
    pub(crate) fn governed(&self, model: &Model, cube: &Cube) -> Governed {
        let original = cube.alias_of.map_or(cube, |id| model.cube(id));
        let line = self.0.get(&*original.name).map(|own| own.line(|name| self.0.get(name).copied()));
        let mut values = line.into_iter().flatten().map(|of| &of.wording.governed);
        values.find(|governed| **governed != Governed::default()).cloned().unwrap_or_default()
    }
}

/// The part of the project that one caller may see at one time.
pub(crate) struct Sight<'a> {
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) access: Access<'a>,
    pub(super) caller: &'a SecurityContext,
    pub(super) settings: &'a GovernanceSettings,
    pub(super) now: Timestamp,
    pub(super) definitions: &'a DefinitionCache,
    /// True if the caller has `admin`.
    pub(super) is_admin: bool,
    cubes: OnceLock<GovernedCubes<'a>>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(
        snapshot: &'a Arc<Snapshot>,
        request: &'a RequestContext,
        settings: &'a GovernanceSettings,
        now: Timestamp,
        definitions: &'a DefinitionCache,
    ) -> Self {
        Sight {
            snapshot,
            access: Access::of(&snapshot.model, &request.caller),
            caller: &request.caller,
            settings,
            now,
            definitions,
            is_admin: request.scopes.hold(Scope::Admin),
            cubes: OnceLock::new(),
        }
    }

    /// Returns whether the caller may review every artifact, because it has `admin` or a reviewer role.
    pub(super) fn has_reviewer_role(&self) -> bool {
        self.is_admin || self.caller.roles.iter().any(|role| self.settings.reviewer_roles.contains(role))
    }

    /// Returns whether policies hide nothing from the caller. Such a caller may see whole definitions and changes.
    pub(super) fn sees_everything(&self) -> bool {
        self.access.sees_everything()
    }

    /// Returns whether the project has an artifact, whether or not the caller may see it.
    pub(super) fn exists(&self, artifact: &ArtifactRef) -> bool {
        let model = &self.snapshot.model;
        let member = || {
            let (cube, name) = artifact.id.split_once('.')?;
            model.cube_named(cube)?.member(name)
        };
        match artifact.kind {
            ArtifactType::Cube => model.cube_named(&artifact.id).is_some(),
            ArtifactType::Measure => matches!(member(), Some(Member::Measure(_))),
            ArtifactType::Dimension => matches!(member(), Some(Member::Dimension(_))),
            ArtifactType::Metric => model.metric_named(&artifact.id).is_some(),
            ArtifactType::Model => self.model_named(&artifact.id),
        }
    }

    fn model_named(&self, name: &str) -> bool {
        self.snapshot.definitions.models.iter().any(|model| &*model.name.value == name)
    }

    /// Returns whether the caller may see an artifact of the project.
    pub(super) fn sees(&self, artifact: &ArtifactRef) -> bool {
        self.file_values(artifact).is_some()
    }

    /// Returns whether policies hide a `cube.member` from the caller. It is unknown who may see a member that the project
    /// no longer has, so such a member counts as hidden.
    pub(super) fn hides_member(&self, id: &str) -> bool {
        let member = id.split_once('.').and_then(|(cube, name)| self.snapshot.model.cube_named(cube)?.member(name));
        member.is_none_or(|member| !self.access.offers(member))
    }

    /// Returns whether the caller may see the records of an artifact. Policies cannot refer to an artifact that the
    /// project no longer has. Its records are therefore visible only to callers with `admin` and to callers from whom
    /// policies hide nothing.
    pub(super) fn sees_records_of(&self, artifact: &ArtifactRef) -> bool {
        self.sees(artifact) || (self.is_orphan(artifact) && (self.is_admin || self.sees_everything()))
    }

    /// Returns whether the project lacks the artifact.
    pub(super) fn is_orphan(&self, artifact: &ArtifactRef) -> bool {
        !self.exists(artifact)
    }

    /// Checks that an artifact exists for the caller.
    pub(super) fn require(&self, field: &'static str, artifact: &ArtifactRef) -> Result<(), GovernanceError> {
        if self.sees(artifact) { Ok(()) } else { Err(self.unknown(field, artifact)) }
    }

    pub(super) fn unknown(&self, field: &'static str, artifact: &ArtifactRef) -> GovernanceError {
        let known = self.artifacts_of(artifact.kind);
        let nearest = nearest(&artifact.id, known.iter().map(|(id, _)| &**id), MAX_NEAREST);
        let nearest = nearest.into_iter().map(str::to_owned).collect();
        let id: String = artifact.id.chars().take(200).collect();
        GovernanceError::UnknownArtifact { field, artifact: ArtifactRef::new(artifact.kind, id), nearest }
    }

    /// Returns the values of the files; `None` if the artifact does not exist for the caller.
    pub(super) fn file_values(&self, artifact: &ArtifactRef) -> Option<FileValues> {
        let model = &self.snapshot.model;
        let member = || {
            let (cube, name) = artifact.id.split_once('.')?;
            Some((metadata::cube(&self.access, cube)?, name))
        };
        match artifact.kind {
            ArtifactType::Cube => metadata::cube(&self.access, &artifact.id).map(|cube| self.of_cube(cube)),
            ArtifactType::Measure => {
                let (cube, name) = member()?;
                let Some(Member::Measure(id)) = cube.member(name) else { return None };
                let presentation = &model.measure(id).presentation;
                self.offers(Member::Measure(id), presentation).then(|| of_member(presentation))
            }
            ArtifactType::Dimension => {
                let (cube, name) = member()?;
                let Some(Member::Dimension(id)) = cube.member(name) else { return None };
                let presentation = &model.dimension(id).presentation;
                self.offers(Member::Dimension(id), presentation).then(|| of_member(presentation))
            }
            ArtifactType::Metric => {
                let id = model.metric_named(&artifact.id)?;
                let presentation = &model.metric(id).presentation;
                let is_offered = !presentation.hidden && self.access.offers_metric(id);
                is_offered.then(|| of_member(presentation))
            }
            ArtifactType::Model => self.model_named(&artifact.id).then(|| of_model(&artifact.id)),
        }
    }

    fn offers(&self, member: Member, presentation: &Presentation) -> bool {
        !presentation.hidden && self.access.offers(member)
    }

    fn of_cube(&self, cube: &Cube) -> FileValues {
        let cubes = self.cubes.get_or_init(|| GovernedCubes::of(&self.snapshot.definitions));
        let governed = cubes.governed(&self.snapshot.model, cube);
        FileValues { title: cube.title.clone(), description: cube.description.clone(), governed }
    }

    /// Returns the ids and the values of all artifacts of a type that the caller may see.
    pub(super) fn artifacts_of(&self, kind: ArtifactType) -> Vec<(Arc<str>, FileValues)> {
        let access = &self.access;
        let qualified = |cube: &Cube, name: &str| -> Arc<str> { format!("{}.{name}", cube.name).into() };
        match kind {
            ArtifactType::Cube => metadata::cubes(access).map(|cube| (cube.name.clone(), self.of_cube(cube))).collect(),
            ArtifactType::Measure => metadata::cubes(access)
                .flat_map(|cube| metadata::measures(access, cube).map(move |measure| (cube, measure)))
                .map(|(cube, measure)| (qualified(cube, &measure.name), of_member(&measure.presentation)))
                .collect(),
            ArtifactType::Dimension => metadata::cubes(access)
                .flat_map(|cube| metadata::dimensions(access, cube).map(move |dimension| (cube, dimension)))
                .map(|(cube, dimension)| (qualified(cube, &dimension.name), of_member(&dimension.presentation)))
                .collect(),
            ArtifactType::Metric => {
                metadata::metrics(access).map(|metric| (metric.name.clone(), of_member(&metric.presentation))).collect()
            }
            ArtifactType::Model => {
                let models = self.snapshot.definitions.models.iter().map(|model| model.name.value.clone());
                models.map(|name| (name.clone(), of_model(&name))).collect()
            }
        }
    }

    /// Returns the view of an artifact with the values of its files.
    pub(super) fn view(&self, state: &GovernanceState, artifact: &ArtifactRef, file: &FileValues) -> ArtifactView {
        let set = state.metadata.get(artifact);
        let text = |set: Option<&Arc<str>>, file: &Option<Arc<str>>| Sourced::of(set.cloned(), file.clone());
        let governed = &file.governed;
        let tags = match set.and_then(|set| set.tags.clone()) {
            Some(value) => Sourced { value, origin: Origin::Api },
            None if governed.tags.is_empty() => Sourced::default(),
            None => Sourced { value: governed.tags.clone(), origin: Origin::File },
        };
        let pii_flag = match set.and_then(|set| set.pii_flag) {
            Some(value) => Sourced { value, origin: Origin::Api },
            None if governed.pii => Sourced { value: true, origin: Origin::File },
            None => Sourced::default(),
        };
        ArtifactView {
            artifact: artifact.clone(),
            title: file.title.clone(),
            description: text(set.and_then(|set| set.description.as_ref()), &file.description),
            tags,
            documentation_url: text(set.and_then(|set| set.documentation_url.as_ref()), &governed.documentation_url),
            refresh_frequency: text(set.and_then(|set| set.refresh_frequency.as_ref()), &governed.refresh_frequency),
            data_classification: text(set.and_then(|set| set.data_classification.as_ref()), &governed.classification),
            pii_flag,
            version: set.map_or(0, |set| set.version),
            updated_by: set.map(|set| set.updated_by.clone()),
            updated_at: set.map(|set| set.updated_at),
            owners: OwnershipView::of(state, artifact, governed.owner.as_ref()),
            certification: CertificationView::of(self, state, artifact),
            terms: state.terms_of(artifact).map(|(term, relationship)| (term.clone(), relationship)).collect(),
        }
    }

    /// Returns the view of an artifact; `None` if it does not exist for the caller.
    pub(crate) fn find(&self, state: &GovernanceState, artifact: &ArtifactRef) -> Option<ArtifactView> {
        self.file_values(artifact).map(|file| self.view(state, artifact, &file))
    }
}

fn of_member(presentation: &Presentation) -> FileValues {
    FileValues {
        title: presentation.title.clone(),
        description: presentation.description.clone(),
        governed: presentation.governed.clone(),
    }
}

fn of_model(name: &str) -> FileValues {
    FileValues { title: name.into(), ..FileValues::default() }
}
