//! The searchable texts of a project, with the index over them.
//!
//! In: a snapshot and the governed records. Out: one entry for each cube, member and metric that metadata can list for
//! some caller. Values that were set at run time replace the values of the files. Owners belong to governance, so
//! entries have none if it is switched off.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use terrane_compiler::Access;
use terrane_compiler::model::{Cube, CubeId, DimensionId, Governed, Member, MetricId, Presentation};
use terrane_search::{Field, Index, IndexBuilder};

use crate::catalog::Snapshot;
use crate::dimension_values::lookup::is_searchable;
use crate::governance::{GovernanceState, GovernedCubes, OwnershipView};
use crate::metadata;
use crate::ports::governance_records::{ArtifactRef, ArtifactType};

/// The artifacts of a snapshot, in the order of the index.
#[derive(Debug)]
pub(super) struct SearchEntries {
    snapshot: Weak<Snapshot>,
    /// The sequence number of the newest change to governed records.
    sequence: u64,
    pub(super) entries: Vec<Entry>,
    pub(super) index: Index,
    /// For each cube, the entries of the cube, of its members, and of metrics over its measures.
    pub(super) by_cube: HashMap<CubeId, Vec<u32>>,
    /// The entries of dimensions whose values are searched.
    pub(super) searchable: Vec<(u32, DimensionId)>,
}

/// An entry of the index.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) text: Arc<ArtifactText>,
    artifact: ArtifactId,
    /// The cube, or the cube of the member.
    pub(super) cube: Option<CubeId>,
    /// The cubes of a metric's measures; empty for other artifacts.
    pub(super) metric_cubes: Vec<CubeId>,
}

/// The searchable texts of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactText {
    pub reference: ArtifactRef,
    /// The name of the member's cube.
    pub cube: Option<Arc<str>>,
    pub title: Arc<str>,
    pub description: Option<Arc<str>>,
    /// The synonyms from the project's files and from linked glossary terms.
    pub synonyms: Vec<Arc<str>>,
    pub tags: Vec<Arc<str>>,
    /// The ids of the users and teams that own the artifact.
    pub owners: Vec<Arc<str>>,
    pub unit: Option<Arc<str>>,
}

/// The id of an artifact in the model. The id of the cube is in the field `cube` of the entry.
#[derive(Debug, Clone, Copy)]
enum ArtifactId {
    Cube,
    Member(Member),
    Metric(MetricId),
}

impl Entry {
    fn new(text: ArtifactText, artifact: ArtifactId, cube: Option<&Cube>) -> Self {
        Entry { text: Arc::new(text), artifact, cube: cube.map(|cube| cube.id), metric_cubes: Vec::new() }
    }

    /// Returns whether metadata lists the artifact for the caller.
    pub(super) fn is_shown(&self, access: &Access<'_>) -> bool {
        let is_cube_shown = || self.cube.is_some_and(|cube| metadata::is_shown(access, access.model().cube(cube)));
        match self.artifact {
            ArtifactId::Cube => is_cube_shown(),
            // Members that are hidden by the project have no entry, so only policies are checked.
            ArtifactId::Member(member) => is_cube_shown() && access.offers(member),
            ArtifactId::Metric(metric) => access.offers_metric(metric),
        }
    }
}

impl SearchEntries {
    /// Builds the index. `state` is `None` if governance is switched off.
    pub(super) fn new(snapshot: &Arc<Snapshot>, state: Option<&GovernanceState>) -> Self {
        let mut entries = entries(snapshot, state);
        // Equal matches stay in this order: metrics, measures, dimensions, cubes; short names first.
        entries.sort_by(|a, b| {
            let order = |entry: &Entry| (place(entry.text.reference.kind), entry.text.reference.id.len());
            order(a).cmp(&order(b)).then_with(|| a.text.reference.id.cmp(&b.text.reference.id))
        });
        let mut builder = IndexBuilder::default();
        let (mut by_cube, mut searchable) = (HashMap::<CubeId, Vec<u32>>::new(), Vec::new());
        for (place, entry) in (0..).zip(&entries) {
            builder.add(texts(&entry.text));
            for cube in entry.cube.iter().chain(&entry.metric_cubes) {
                by_cube.entry(*cube).or_default().push(place);
            }
            if let ArtifactId::Member(Member::Dimension(id)) = entry.artifact
                && is_searchable(snapshot.model.dimension(id))
            {
                searchable.push((place, id));
            }
        }
        let (snapshot, sequence) = (Arc::downgrade(snapshot), state.map_or(0, |state| state.sequence));
        SearchEntries { snapshot, sequence, entries, index: builder.build(), by_cube, searchable }
    }

    /// Returns whether the index was built from this snapshot and these governed records.
    pub(super) fn is_of(&self, snapshot: &Arc<Snapshot>, state: &GovernanceState) -> bool {
        std::ptr::eq(self.snapshot.as_ptr(), Arc::as_ptr(snapshot)) && self.sequence == state.sequence
    }
}

fn place(kind: ArtifactType) -> u8 {
    match kind {
        ArtifactType::Metric => 0,
        ArtifactType::Measure => 1,
        ArtifactType::Dimension => 2,
        ArtifactType::Cube => 3,
        ArtifactType::Model => 4,
    }
}

fn texts(text: &ArtifactText) -> impl Iterator<Item = (Field, &str)> {
    let id = &*text.reference.id;
    let name = text.cube.as_ref().and_then(|cube| id.strip_prefix(&**cube)?.strip_prefix('.')).unwrap_or(id);
    let group = text.cube.iter().map(|cube| (Field::Group, &**cube));
    let synonyms = text.synonyms.iter().map(|text| (Field::Synonym, &**text));
    let tags = text.tags.iter().map(|text| (Field::Tag, &**text));
    let owners = text.owners.iter().map(|owner| (Field::Owner, &**owner));
    let unit = text.unit.iter().map(|unit| (Field::Unit, &**unit));
    let description = text.description.iter().map(|text| (Field::Description, &**text));
    [(Field::Name, name), (Field::Title, &*text.title)]
        .into_iter()
        .chain(synonyms)
        .chain(group)
        .chain(tags)
        .chain(owners)
        .chain(unit)
        .chain(description)
}

fn entries(snapshot: &Snapshot, state: Option<&GovernanceState>) -> Vec<Entry> {
    let model = &snapshot.model;
    let governed_cubes = GovernedCubes::of(&snapshot.definitions);
    let mut entries = Vec::new();
    for cube in model.cubes.iter().filter(|cube| cube.public) {
        let reference = ArtifactRef::new(ArtifactType::Cube, Arc::clone(&cube.name));
        let governed = governed_cubes.governed(model, cube);
        let text = text(reference, &cube.title, cube.description.as_ref(), &governed, state);
        entries.push(Entry::new(text, ArtifactId::Cube, Some(cube)));
        let measures = cube.measures.iter().map(|of| (ArtifactType::Measure, &of.name, &of.presentation));
        let dimensions = cube.dimensions.iter().map(|of| (ArtifactType::Dimension, &of.name, &of.presentation));
        for (kind, name, presentation) in measures.chain(dimensions).filter(|(.., of)| !of.hidden) {
            let Some(member) = cube.member(name) else { continue };
            let id: Arc<str> = format!("{}.{name}", cube.name).into();
            let text = ArtifactText {
                cube: Some(Arc::clone(&cube.name)),
                ..of_presentation(ArtifactRef::new(kind, id), presentation, state)
            };
            entries.push(Entry::new(text, ArtifactId::Member(member), Some(cube)));
        }
    }
    for (id, metric) in (0..).map(MetricId).zip(&model.metrics).filter(|(_, metric)| !metric.presentation.hidden) {
        let reference = ArtifactRef::new(ArtifactType::Metric, Arc::clone(&metric.name));
        let text = of_presentation(reference, &metric.presentation, state);
        let metric_cubes = metadata::cube_ids_of_metric(model, metric);
        entries.push(Entry { metric_cubes, ..Entry::new(text, ArtifactId::Metric(id), None) });
    }
    entries
}

fn of_presentation(
    reference: ArtifactRef,
    presentation: &Presentation,
    state: Option<&GovernanceState>,
) -> ArtifactText {
    text(reference, &presentation.title, presentation.description.as_ref(), &presentation.governed, state)
}

/// Returns the texts of an artifact, in which governed values have replaced the values of the files.
fn text(
    reference: ArtifactRef,
    title: &Arc<str>,
    description: Option<&Arc<str>>,
    governed: &Governed,
    state: Option<&GovernanceState>,
) -> ArtifactText {
    let mut text = ArtifactText {
        reference,
        cube: None,
        title: Arc::clone(title),
        description: description.cloned(),
        synonyms: governed.synonyms.clone(),
        tags: governed.tags.clone(),
        owners: Vec::new(),
        unit: governed.unit.clone(),
    };
    let Some(state) = state else { return text };
    if let Some(set) = state.metadata.get(&text.reference) {
        text.description = set.description.clone().or(text.description);
        text.tags = set.tags.clone().unwrap_or(text.tags);
    }
    for (term, _) in state.terms_of(&text.reference) {
        text.synonyms.push(Arc::clone(&term.name));
        text.synonyms.extend(term.synonyms.iter().cloned());
    }
    let owners = OwnershipView::of(state, &text.reference, governed.owner.as_ref()).owners;
    text.owners = owners.into_iter().map(|owner| owner.owner_id).collect();
    text
}
