//! The names that a model declares, under their names in the project.
//!
//! In: names that each format adds before it makes drafts. Out: lookups by which a finding distinguishes an item that
//! the importer left out from a name that the author misspelled.

use std::collections::{BTreeSet, HashSet};

use crate::draft::Reference;

#[derive(Debug, Default)]
pub(crate) struct Declared {
    items: HashSet<(String, Option<String>)>,
    metrics: HashSet<String>,
    /// The joins, each as the names of its owner and its target.
    pub(crate) joins: Vec<(String, String)>,
    /// The environment variables without a default value that the translated SQL reads.
    pub(crate) variables: BTreeSet<String>,
}

impl Declared {
    pub(crate) fn add_cube(&mut self, cube: &str) {
        self.items.insert((cube.to_owned(), None));
    }

    pub(crate) fn add_member(&mut self, cube: &str, member: &str) {
        self.items.insert((cube.to_owned(), Some(member.to_owned())));
    }

    pub(crate) fn add_metric(&mut self, metric: &str) {
        self.metrics.insert(metric.to_owned());
    }

    /// Returns true if the model has the cube or member. `ancestors` are the cubes that the cube extends, which may
    /// have the member instead.
    pub(crate) fn declares(&self, reference: &Reference, ancestors: &[&str]) -> bool {
        let of_cube = |cube: &str| self.items.contains(&(cube.to_owned(), reference.member.clone()));
        of_cube(&reference.cube) || (reference.member.is_some() && ancestors.iter().any(|cube| of_cube(cube)))
    }

    pub(crate) fn declares_metric(&self, metric: &str) -> bool {
        self.metrics.contains(metric)
    }
}
