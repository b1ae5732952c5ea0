//! Cubes in the making: members that can still be taken away.

use terrane_compiler::diagnostic::Span;

use super::Counts;
use crate::authoring::yaml::Yaml;

/// A cube, or a view that has become one.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// As the model calls it.
    pub(super) original: String,
    pub(super) name: String,
    pub(super) span: Span,
    /// What stands before the lists.
    pub(super) head: Vec<(String, Yaml)>,
    pub(super) data_source: Option<String>,
    /// Nobody may read it until its policies are written.
    pub(super) is_closed: bool,
    pub(super) lists: [Vec<Member>; LISTS.len()],
}

#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) yaml: Yaml,
    /// Where it was written.
    pub(super) span: Span,
}

/// The lists of a cube, in the order in which they are written.
pub(super) const LISTS: [&str; 5] = ["joins", "dimensions", "measures", "segments", "pre_aggregations"];
/// What one of their items is called.
pub(super) const ITEMS: [&str; 5] = ["join", "dimension", "measure", "segment", "pre-aggregation"];
pub(super) const JOINS: usize = 0;
pub(super) const DIMENSIONS: usize = 1;
pub(super) const MEASURES: usize = 2;
pub(super) const SEGMENTS: usize = 3;
pub(super) const PRE_AGGREGATIONS: usize = 4;

impl Draft {
    pub(super) fn yaml(&self) -> Yaml {
        let mut yaml = Yaml::Map(self.head.clone());
        for (key, members) in LISTS.iter().zip(&self.lists) {
            if !members.is_empty() {
                yaml.set(key, Yaml::List(members.iter().map(|member| member.yaml.clone()).collect()));
            }
        }
        yaml
    }

    pub(super) fn file(&self) -> String {
        format!("cubes/{}.yml", self.name)
    }
}

pub(super) fn counts(drafts: &[Draft]) -> Counts {
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
