//! Cubes under construction, whose members can still be removed.

use terrane_compiler::diagnostic::Span;

use super::Counts;
use crate::yaml::Yaml;

/// A cube, or a view as a cube.
#[derive(Debug, Clone)]
pub(super) struct CubeDraft {
    /// The name in the model.
    pub(super) original: String,
    pub(super) name: String,
    pub(super) span: Span,
    /// The parent's name in the project.
    pub(super) extends: Option<String>,
    /// The keys before the lists.
    pub(super) head: Vec<(String, Yaml)>,
    pub(super) data_source: Option<String>,
    pub(super) access: CubeAccess,
    pub(super) lists: [Vec<Member>; LISTS.len()],
}

/// The callers that may read a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CubeAccess {
    pub(super) visibility: CubeVisibility,
    /// The model restricts rows or members by the caller. A policy closes the cube until the author writes one.
    pub(super) has_policy: bool,
}

/// The answer to the question whether queries may name a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CubeVisibility {
    /// The model says nothing: public, unless the cube extends a private one.
    Unstated,
    Public,
    Private,
}

#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) yaml: Yaml,
    /// The place in the model.
    pub(super) span: Span,
    /// The model masks its value for some callers.
    pub(super) is_masked: bool,
    /// The cubes and members without which it can't be computed.
    pub(super) needs: Vec<Reference>,
    /// Its drill members, each with its source text.
    pub(super) drills: Vec<(Reference, String)>,
}

/// A cube of the project, or one of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) cube: String,
    pub(super) member: Option<String>,
}

/// The lists of a cube, in the order in which they are written.
pub(super) const LISTS: [&str; 5] = ["joins", "dimensions", "measures", "segments", "pre_aggregations"];
/// The noun for an item of each list.
pub(super) const ITEMS: [&str; 5] = ["join", "dimension", "measure", "segment", "pre-aggregation"];
pub(super) const JOINS: usize = 0;
pub(super) const DIMENSIONS: usize = 1;
pub(super) const MEASURES: usize = 2;
pub(super) const SEGMENTS: usize = 3;
pub(super) const PRE_AGGREGATIONS: usize = 4;

impl CubeDraft {
    pub(super) fn yaml(&self) -> Yaml {
        let mut yaml = Yaml::Map(self.head.clone());
        if self.access.visibility == CubeVisibility::Private {
            yaml.set("public", Yaml::Boolean(false));
        }
        for (key, members) in LISTS.iter().zip(&self.lists) {
            if !members.is_empty() {
                yaml.set(key, Yaml::List(members.iter().map(Member::yaml).collect()));
            }
        }
        yaml
    }

    pub(super) fn file(&self) -> String {
        format!("cubes/{}.yml", self.name)
    }

    /// Dimensions, measures and segments.
    fn members(&self) -> impl Iterator<Item = &Member> {
        [DIMENSIONS, MEASURES, SEGMENTS].into_iter().flat_map(|list| &self.lists[list])
    }
}

impl Member {
    fn yaml(&self) -> Yaml {
        let mut yaml = self.yaml.clone();
        if !self.drills.is_empty() {
            yaml.set("drill_members", Yaml::texts(self.drills.iter().map(|(_, text)| text.as_str())));
        }
        yaml
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.member {
            Some(member) => write!(f, "`{}.{member}`", self.cube),
            None => write!(f, "cube `{}`", self.cube),
        }
    }
}

/// Returns true if the drafts contain the cube or member, also if the member is inherited.
pub(super) fn contains(drafts: &[CubeDraft], reference: &Reference) -> bool {
    match &reference.member {
        None => drafts.iter().any(|draft| draft.name == reference.cube),
        Some(_) => member(drafts, reference).is_some(),
    }
}

/// Returns the member that a reference names, of the cube or of one that it extends.
pub(super) fn member<'d>(drafts: &'d [CubeDraft], reference: &Reference) -> Option<&'d Member> {
    let name = reference.member.as_ref()?;
    let mut cube = drafts.iter().find(|draft| draft.name == reference.cube);
    // As many steps as there are cubes: parents may form a cycle.
    for _ in 0..=drafts.len() {
        let draft = cube?;
        if let Some(member) = draft.members().find(|known| known.name == *name) {
            return Some(member);
        }
        cube = draft.extends.as_ref().and_then(|parent| drafts.iter().find(|draft| draft.name == *parent));
    }
    None
}

pub(super) fn counts(drafts: &[CubeDraft]) -> Counts {
    let of = |list: usize| drafts.iter().map(|draft| draft.lists[list].len()).sum();
    Counts {
        cubes: drafts.len(),
        measures: of(MEASURES),
        dimensions: of(DIMENSIONS),
        joins: of(JOINS),
        segments: of(SEGMENTS),
        pre_aggregations: of(PRE_AGGREGATIONS),
    }
}
