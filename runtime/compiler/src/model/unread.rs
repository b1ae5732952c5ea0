//! The parts of a project that could not be read.
//!
//! In: names of files and entries with problems. Out: whether the absence of a cube, a member or a join may be the
//! consequence of such a problem, which was reported at its own place. All other absences are mistakes.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::{Cube, CubeId, Model};
use crate::project::Definitions;

#[derive(Debug, Clone, Default)]
pub(super) struct Unread {
    /// Names whose absence from the model is not reported.
    names: BTreeSet<Arc<str>>,
    /// The part of `names` that a cube in a readable file may lack as members. Names from files that could not be
    /// parsed are not included, because all members of a cube are in one file.
    members: BTreeSet<Arc<str>>,
    /// The cubes that extend a cube that could not be read. They may inherit any member.
    partial: HashSet<CubeId>,
    /// The cubes that lack a join to a cube that could not be read, and the partial cubes.
    without_joins: HashSet<CubeId>,
}

impl Unread {
    pub(super) fn of(definitions: &Definitions) -> Self {
        Unread { names: definitions.unread.clone(), members: definitions.unread_members.clone(), ..Unread::default() }
    }

    /// Adds a name whose absence is not reported.
    pub(super) fn insert(&mut self, name: Arc<str>) {
        self.members.insert(Arc::clone(&name));
        self.names.insert(name);
    }

    pub(super) fn add_partial(&mut self, cube: CubeId) {
        self.partial.insert(cube);
        self.without_joins.insert(cube);
    }

    pub(super) fn add_without_join(&mut self, cube: CubeId) {
        self.without_joins.insert(cube);
    }

    /// Returns whether a cube, a metric or another item of this name may exist.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns whether a cube of the model may have a member of this name.
    pub(super) fn may_be_member(&self, cube: &Cube, name: &str) -> bool {
        self.members.contains(name) || self.is_partial(cube)
    }

    /// Returns whether the cube, or the cube of which it is an alias, may inherit members that could not be read.
    pub(super) fn is_partial(&self, cube: &Cube) -> bool {
        self.partial.contains(&cube.alias_of.unwrap_or(cube.id))
    }

    /// Returns whether a join that could not be read may lead from one cube to another.
    pub(super) fn may_join(&self, model: &Model, from: CubeId, to: CubeId) -> bool {
        let lacks_join = |id: &CubeId| self.without_joins.contains(&model.cube(*id).alias_of.unwrap_or(*id));
        if lacks_join(&from) || model.join_paths(from).order.iter().any(lacks_join) {
            return true;
        }
        let mut targets = self.names.iter().filter_map(|name| model.cube_named(name));
        targets.any(|target| model.join_paths(target.id).reaches(to))
    }
}
