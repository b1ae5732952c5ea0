//! Generates names. Names of the warehouse may contain any characters, since they are quoted; names of members are in
//! snake_case.

use std::collections::BTreeSet;

use super::Generator;
use crate::world::World;

/// Names of lower-case letters, digits and `_`, including keywords of SQL and names that the printer generates.
const MEMBERS: &[&str] = &[
    "orders",
    "customers",
    "id",
    "status",
    "amount",
    "region",
    "total",
    "value",
    "select",
    "from",
    "group",
    "order",
    "count",
    "sum",
    "where",
    "null",
    "true",
    "case",
    "end",
    "merged",
    "grouped",
    "g0",
    "a0",
    "g1",
    "a1",
    "total_rows",
    "is_selected",
    "cube",
    "table",
    "user",
    "_",
    "__x",
    "x1",
    "t0",
    "date",
    "time",
    "timestamp",
    "year",
    "month",
    "day",
    "interval",
    "values",
    "union",
    "all",
    "c0",
    "c1",
    "max",
    "min",
    "avg",
    "previous",
    "row",
    "left",
    "join",
];

const COLUMNS: &[&str] = &[
    "id",
    "name",
    "a b",
    "sel\"ect",
    "order",
    "GROUP",
    "größe",
    "名前",
    "x.y",
    "it's",
    "semi;colon",
    "--comment",
    "/*c*/",
    " lead",
    "trail ",
    "per%cent",
    "under_score",
    "back\\slash",
    "😀",
    "null",
    "true",
    "1st",
    "$1",
    "?",
    ":a",
    "@p1",
    "#hash",
    "a,b",
    "(p)",
    "[q]",
    "tab\there",
    "Ünï",
    "é",
    "CASE",
    "end",
    "\"\"",
    "a\"\"b",
    "rowid2",
];

pub(super) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    pub(super) fn new() -> Self {
        Names { taken: BTreeSet::new() }
    }

    /// Returns an unused name of the model.
    pub(super) fn member(&mut self, generator: &mut Generator, plain: &str) -> String {
        let base = if !generator.features.hostile_names || generator.random.chance(50) {
            plain.to_owned()
        } else if generator.random.chance(3) {
            format!("{plain}_{}", "long".repeat(50)).chars().take(196).collect()
        } else {
            (*generator.random.of(MEMBERS)).to_owned()
        };
        self.unique(base, "_")
    }

    /// Returns an unused name of the warehouse. The warehouse ignores the case of names.
    pub(super) fn column(&mut self, generator: &mut Generator, plain: &str) -> String {
        let base = if !generator.features.hostile_names || generator.random.chance(40) {
            plain.to_owned()
        } else if generator.random.chance(3) {
            "wide \"name\" ".repeat(17).chars().take(196).collect()
        } else {
            (*generator.random.of(COLUMNS)).to_owned()
        };
        self.unique(base, " ")
    }

    /// Returns an unused name of a table, without characters of paths or patterns. Policies treat names with such
    /// characters as files, so a policy on one table would also close the cubes over other tables.
    pub(super) fn table(&mut self, generator: &mut Generator, plain: &str) -> String {
        let name = self.column(generator, plain);
        if name.contains(['/', '\\', '*']) { self.unique(plain.to_owned(), " ") } else { name }
    }

    fn unique(&mut self, base: String, joint: &str) -> String {
        let mut name = base.clone();
        let mut number = 2;
        while !self.taken.insert(name.to_lowercase()) {
            name = format!("{base}{joint}{number}");
            number += 1;
        }
        name
    }
}

/// Returns the same world with plain names in the warehouse. Queries use names of the model, so these do not change.
pub fn plain_names(world: &World) -> World {
    let mut plain = world.clone();
    for (index, cube) in plain.cubes.iter_mut().enumerate() {
        cube.table = format!("table{index}");
        for (number, column) in cube.columns.iter_mut().enumerate() {
            column.name = format!("col{number}");
        }
    }
    plain
}
