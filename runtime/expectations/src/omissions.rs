//! Decides which cases a missing definition affects.
//!
//! In: a model, and the definitions that it was built from, of which those with errors were left out. Out: whether a
//! name was left out, and whether a query depends on something that was left out. Such a query may be refused because of
//! an error that was already reported.

use std::collections::BTreeSet;
use std::sync::Arc;

use terrane_compiler::model::{Cube, Model};
use terrane_compiler::project::{CubeDefinition, Definitions};
use terrane_compiler::query::{MemberRef, QueryError, SemanticQuery};

use crate::parts::names;

/// The definitions that a model lacks.
pub(crate) struct Omissions<'m> {
    model: &'m Model,
    definitions: &'m Definitions,
    /// The names of missing cubes, members and metrics, and of entries that could not be read.
    names: BTreeSet<Arc<str>>,
}

impl<'m> Omissions<'m> {
    pub(crate) fn new(model: &'m Model, definitions: &'m Definitions) -> Self {
        let mut names = definitions.unread.clone();
        for cube in definitions.every_cube() {
            match model.cube_named(&cube.name.value) {
                Some(built) => names.extend(members(cube).filter(|name| built.member(name).is_none()).cloned()),
                None => drop(names.insert(Arc::clone(&cube.name.value))),
            }
            let joins = cube.joins.iter().map(|join| &join.name.value);
            names.extend(joins.filter(|name| model.cube_named(name).is_none()).cloned());
        }
        let metrics = definitions.every_metric().iter().map(|metric| &metric.name.value);
        names.extend(metrics.filter(|name| model.metric_named(name).is_none()).cloned());
        Omissions { model, definitions, names }
    }

    /// Returns whether an error may be about a name that was left out.
    pub(crate) fn explain(&self, error: &QueryError) -> bool {
        error.subjects().into_iter().any(|name| self.has(name))
    }

    /// Returns whether a part of a name was left out.
    fn has(&self, name: &str) -> bool {
        name.split('.').any(|part| self.names.contains(part))
    }

    /// Returns whether a query depends on a definition that was left out: on one that it names, or on a part of a cube
    /// that it names or that joins reach.
    pub(crate) fn affect(&self, query: &SemanticQuery) -> bool {
        let members = members_of(query);
        if members.iter().any(|member| self.has(&member.text)) || query.cube.iter().any(|cube| self.has(cube)) {
            return true;
        }
        let mut open: Vec<Arc<str>> = query.cube.iter().cloned().collect();
        for member in members {
            match (member.cube(), self.model.metric_named(member.member())) {
                (Some(cube), _) => open.push(cube.into()),
                (None, Some(metric)) => {
                    let facts = self.model.facts_of_metric(metric);
                    open.extend(facts.into_iter().map(|cube| Arc::clone(&self.model.cube(cube).name)));
                }
                (None, None) => {}
            }
        }
        let mut seen = BTreeSet::new();
        while let Some(cube) = open.pop() {
            if !seen.insert(Arc::clone(&cube)) {
                continue;
            }
            if self.is_incomplete(&cube) {
                return true;
            }
            let definition = self.definitions.every_cube().iter().find(|other| other.name.value == cube);
            let joins = definition.into_iter().flat_map(|cube| &cube.joins);
            open.extend(joins.map(|join| Arc::clone(&join.cube.as_ref().unwrap_or(&join.name).value)));
            let original = self.model.cube_named(&cube).and_then(|alias| alias.alias_of);
            open.extend(original.map(|original| Arc::clone(&self.model.cube(original).name)));
            open.extend(definition.and_then(|cube| cube.extends.as_ref()).map(|name| Arc::clone(&name.value)));
        }
        false
    }

    fn has_join(&self, cube: &Cube, name: &str) -> bool {
        cube.joins.iter().any(|join| *self.model.cube(join.target).name == *name)
    }

    /// Returns whether a cube or a part of it was left out, or the cube is closed because a policy was.
    fn is_incomplete(&self, name: &Arc<str>) -> bool {
        let mut definitions = self.definitions.every_cube().iter().filter(|cube| cube.name.value == *name);
        let is_incomplete = |cube: &CubeDefinition| {
            let Some(built) = self.model.cube_named(name) else { return true };
            !cube.is_complete
                || built.is_guarded
                || members(cube).any(|name| built.member(name).is_none())
                || cube.joins.iter().any(|join| !self.has_join(built, &join.name.value))
                || built.rollups.len() < cube.pre_aggregations.len()
        };
        self.names.contains(name) || definitions.any(is_incomplete)
    }
}

fn members(cube: &CubeDefinition) -> impl Iterator<Item = &Arc<str>> {
    let measures = cube.measures.iter().map(|measure| &measure.name.value);
    let dimensions = cube.dimensions.iter().map(|dimension| &dimension.name.value);
    measures.chain(dimensions).chain(cube.segments.iter().map(|segment| &segment.name.value))
}

fn members_of(query: &SemanticQuery) -> Vec<&MemberRef> {
    let mut members: Vec<&MemberRef> = Vec::new();
    members.extend(query.values.iter().chain(&query.dimensions).chain(&query.segments));
    members.extend(query.time_dimensions.iter().map(|dimension| &dimension.member));
    members.extend(query.time_range.iter().filter_map(|range| range.member.as_ref()));
    members.extend(query.order.iter().map(|order| &order.member));
    members.extend(query.filters.iter().flat_map(names));
    members
}
