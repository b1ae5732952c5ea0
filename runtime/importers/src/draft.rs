//! Cubes and metrics under construction, whose parts can still be removed.
//!
//! In: the items that a format's module has translated. Out: the YAML of a project. Not here: the compilation, which
//! decides which parts stay (`validate`).

use terrane_compiler::diagnostic::Span;

use terrane_authoring::yaml::Yaml;

/// The drafts of a project.
#[derive(Debug, Clone, Default)]
pub(crate) struct Drafts {
    pub(crate) cubes: Vec<CubeDraft>,
    pub(crate) metrics: Vec<MetricDraft>,
}

/// A metric. It is removed if it does not compile, or if a member or metric that it needs is missing.
#[derive(Debug, Clone)]
pub(crate) struct MetricDraft {
    /// The name in the model.
    pub(crate) original: String,
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) yaml: Yaml,
    /// The members that the metric needs.
    pub(crate) needs: Vec<Reference>,
    /// The metrics that its expression names.
    pub(crate) metrics: Vec<String>,
}

/// A policy that was made from a rule of the model. If it does not compile, the cube is closed.
#[derive(Debug, Clone)]
pub(crate) struct PolicyDraft {
    pub(crate) span: Span,
    pub(crate) yaml: Yaml,
}

/// A cube, or a view that is written as a cube.
#[derive(Debug, Clone)]
pub(crate) struct CubeDraft {
    /// The name in the model.
    pub(crate) original: String,
    pub(crate) name: String,
    pub(crate) span: Span,
    /// The name of the extended cube in the project.
    pub(crate) extends: Option<String>,
    /// The keys that are written before the lists.
    pub(crate) head: Vec<(String, Yaml)>,
    pub(crate) data_source: Option<String>,
    pub(crate) access: CubeAccess,
    pub(crate) policies: Vec<PolicyDraft>,
    /// The names of members that the model's cube has and the draft lost. The cube may inherit others of these names.
    pub(crate) missing: Vec<String>,
    /// The names of inherited members that are closed because the cube's own members of these names are missing. They
    /// do not count as members of the cube.
    pub(crate) stand_ins: Vec<String>,
    pub(crate) lists: [Vec<Member>; LISTS.len()],
}

/// The callers that may read a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CubeAccess {
    pub(crate) visibility: CubeVisibility,
    /// True if the access depends on the caller in the model. The cube then gets a policy that closes the cube until
    /// the author writes another policy.
    pub(crate) has_policy: bool,
}

/// The visibility of a cube: whether queries may name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CubeVisibility {
    /// The source model does not state the visibility. The cube is public, unless it extends a private cube.
    Unstated,
    Public,
    Private,
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) yaml: Yaml,
    /// The place in the model.
    pub(crate) span: Span,
    /// True if the model masks the member's value for some callers.
    pub(crate) is_masked: bool,
    /// The cubes and members that the member needs.
    pub(crate) needs: Vec<Reference>,
    /// The drill members, each with the text that is written to `drill_members`.
    pub(crate) drills: Vec<(Reference, String)>,
}

/// A cube of the project, or one of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) cube: String,
    pub(crate) member: Option<String>,
}

/// The keys of the lists of a cube, in the order in which they are written.
pub(crate) const LISTS: [&str; 5] = ["joins", "dimensions", "measures", "segments", "pre_aggregations"];
/// The noun for an item of each list in [`LISTS`].
pub(crate) const ITEMS: [&str; 5] = ["join", "dimension", "measure", "segment", "pre-aggregation"];
pub(crate) const JOINS: usize = 0;
pub(crate) const DIMENSIONS: usize = 1;
pub(crate) const MEASURES: usize = 2;
pub(crate) const SEGMENTS: usize = 3;
pub(crate) const PRE_AGGREGATIONS: usize = 4;

impl CubeDraft {
    pub(crate) fn yaml(&self) -> Yaml {
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

    pub(crate) fn file(&self) -> String {
        format!("cubes/{}.yml", self.name)
    }

    /// Returns the path of the file with the cube's policies.
    pub(crate) fn policy_file(&self) -> String {
        format!("policies/{}.yml", self.name)
    }

    /// Returns the dimensions, measures and segments.
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

/// Returns true if the drafts contain the cube or the member. The member may be inherited.
pub(crate) fn contains(drafts: &[CubeDraft], reference: &Reference) -> bool {
    match &reference.member {
        None => drafts.iter().any(|draft| draft.name == reference.cube),
        Some(_) => member(drafts, reference).is_some(),
    }
}

/// Returns the member to which a reference leads. The cube may inherit it.
pub(crate) fn member<'d>(drafts: &'d [CubeDraft], reference: &Reference) -> Option<&'d Member> {
    let name = reference.member.as_ref()?;
    let mut cube = drafts.iter().find(|draft| draft.name == reference.cube);
    // Parents may form a cycle, so the number of steps is limited by the number of cubes.
    for _ in 0..=drafts.len() {
        let draft = cube?;
        if draft.stand_ins.contains(name) {
            return None;
        }
        if let Some(member) = draft.members().find(|known| known.name == *name) {
            return Some(member);
        }
        cube = draft.extends.as_ref().and_then(|parent| drafts.iter().find(|draft| draft.name == *parent));
    }
    None
}

/// Returns the cubes that a cube extends, from the nearest to the farthest.
pub(crate) fn ancestors<'d>(drafts: &'d [CubeDraft], draft: &CubeDraft) -> Vec<&'d CubeDraft> {
    let mut found: Vec<&CubeDraft> = Vec::new();
    let mut extends = draft.extends.as_ref();
    while let Some(parent) = extends.and_then(|name| drafts.iter().find(|known| known.name == *name))
        && parent.name != draft.name
        && !found.iter().any(|known| known.name == parent.name)
    {
        found.push(parent);
        extends = parent.extends.as_ref();
    }
    found
}
