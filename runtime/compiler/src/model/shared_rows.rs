//! Cubes that have rows in common: a cube's aliases, and others over the same table or query.
//!
//! In: a model. Out: a [`SharedRows`] for each cube, computed at first use and then cached. A caller must not evade a
//! hook's obligations on one cube by querying another with the same rows.

use super::{CubeId, Model};

/// The cubes that share rows with a cube that is not an alias. None of the lists contains the cube itself.
#[derive(Debug, Default)]
pub(crate) struct SharedRows {
    /// The aliases of the cube, which are the names that joins give it.
    pub(crate) aliases: Vec<CubeId>,
    /// Other cubes that read, or may read, this cube's table or query.
    pub(crate) readers: Vec<CubeId>,
    /// Other cubes whose table or query this cube reads, or may read.
    pub(crate) protected: Vec<CubeId>,
}

impl SharedRows {
    fn of(model: &Model, id: CubeId) -> SharedRows {
        let tables = |id: CubeId| &model.tables[id.0 as usize];
        let is_read = |of: CubeId, by: CubeId| tables(of).protected().any(|table| tables(by).may_read(table));
        let mut shared_rows = SharedRows::default();
        for cube in model.cubes.iter().filter(|cube| cube.id != id) {
            match cube.alias_of {
                Some(original) if original == id => shared_rows.aliases.push(cube.id),
                Some(_) => {}
                None => {
                    shared_rows.readers.extend(is_read(id, cube.id).then_some(cube.id));
                    shared_rows.protected.extend(is_read(cube.id, id).then_some(cube.id));
                }
            }
        }
        shared_rows
    }
}

impl Model {
    pub(crate) fn shared_rows(&self, id: CubeId) -> &SharedRows {
        self.shared_rows[id.0 as usize].get_or_init(|| SharedRows::of(self, id))
    }

    /// Returns whether a condition on rows of the cube `origin` can be applied to the cube `id`, because both have the
    /// rows of the same table.
    pub(crate) fn has_rows_of(&self, id: CubeId, origin: CubeId) -> bool {
        self.tables[id.0 as usize].are_rows_of(&self.tables[origin.0 as usize])
    }

    /// Returns whether columns that are masked in the cube `origin` have the same names in the cube `id`.
    pub(crate) fn has_columns_of(&self, id: CubeId, origin: CubeId) -> bool {
        self.tables[id.0 as usize].are_columns_of(&self.tables[origin.0 as usize])
    }

    /// Returns whether a cube's rows are those of one table that no model built.
    pub(crate) fn is_one_table(&self, id: CubeId) -> bool {
        self.tables[id.0 as usize].is_one_table()
    }
}
