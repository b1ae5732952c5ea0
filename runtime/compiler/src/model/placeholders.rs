//! Adds placeholders for cubes that could not be read.
//!
//! In: all definitions of a project. Out: the same definitions, with a cube for each name that a join or `extends` uses
//! and that a file that could not be parsed may define. The definitions are only checked: the SQL of such a join, and
//! the members of a cube that extends such a cube, may have mistakes of their own. Not here: names of entries in
//! readable files. A cube with an invalid name is checked under that name, and its SQL uses the name that is meant.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::project::{CubeDefinition, Definitions, RelationDefinition, SqlText, Text, Wording};

/// Returns the names that joins and `extends` use for cubes that could not be read, each with one of its places.
pub(super) fn find(definitions: &Definitions) -> Vec<Text> {
    let cubes = definitions.every_cube();
    let joins = || cubes.iter().flat_map(|cube| &cube.joins);
    let aliases = joins().filter(|join| join.cube.is_some()).map(|join| &join.name.value);
    let mut known: BTreeSet<&Arc<str>> = cubes.iter().map(|cube| &cube.name.value).chain(aliases).collect();
    let targets = joins().map(|join| join.cube.as_ref().unwrap_or(&join.name));
    let names = targets.chain(cubes.iter().filter_map(|cube| cube.extends.as_ref()));
    let is_of_file = |name: &Arc<str>| definitions.unread.contains(name) && !definitions.unread_members.contains(name);
    names.filter(|name| is_of_file(&name.value) && known.insert(&name.value)).cloned().collect()
}

/// Adds a cube without members for each name.
pub(super) fn add(names: Vec<Text>, definitions: &mut Definitions) {
    for name in names {
        definitions.placeholders.insert(Arc::clone(&name.value));
        let relation = RelationDefinition {
            sql: SqlText::plain(&name),
            is_table: true,
            refs: Vec::new(),
            sources: Vec::new(),
            catalog_name: None,
        };
        definitions.cubes.push(CubeDefinition {
            name,
            extends: None,
            relation: Some(relation),
            wording: Wording::default(),
            public: false,
            measures: Vec::new(),
            dimensions: Vec::new(),
            segments: Vec::new(),
            joins: Vec::new(),
            pre_aggregations: Vec::new(),
            refresh: None,
            is_complete: false,
        });
    }
}
