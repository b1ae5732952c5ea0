//! The tables and models that a query may read.
//!
//! In: known columns, and the models that were analyzed before. Out: the slots of a named relation. If a model and a
//! table have the same name, the name refers to the model, because models are inlined under their names.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::arena::{Arena, TableName};
use super::relation::{ColumnOrigin, Name, Rest, Slot, Star};
use crate::known::{KnownColumn, KnownColumns};
use crate::spelling::Spelling;
use terrane_compiler::snippet::ColumnName;

/// The columns of a model that other queries can read.
#[derive(Debug, Clone, Default)]
pub(crate) struct RelationShape {
    pub(crate) outputs: Vec<Seen>,
}

#[derive(Debug, Clone)]
pub(crate) enum Seen {
    Column {
        name: Name,
        /// True if the column came through a star, and only the warehouse lists it.
        is_inspected: bool,
    },
    /// A column without a name, which has only a position.
    Unnamed(Name),
    Star {
        is_undeclared: bool,
        without: BTreeSet<Arc<str>>,
    },
}

#[derive(Debug)]
pub(crate) struct RelationCatalog<'k> {
    pub(crate) known: &'k KnownColumns,
    /// The models by their names in lower case.
    pub(crate) models: HashMap<String, RelationShape>,
    pub(crate) spelling: Spelling,
}

impl RelationCatalog<'_> {
    /// Returns the table or model that a name refers to, and its columns. `written` are the parts of the name.
    pub(crate) fn relation(&self, written: &[ColumnName], arena: &mut Arena) -> (u32, Vec<Slot>) {
        let parts: Vec<&str> = written.iter().map(|part| &*part.text).collect();
        let name = parts.join(".").to_lowercase();
        if let Some(shape) = self.models.get(&name) {
            let table = arena.table(TableName::Model(name.into()));
            return (table, model(shape, table, arena));
        }
        let Some((name, known)) = self.known.find(&name) else {
            let table = arena.table(TableName::Table(name.into()));
            arena.incomplete.entry(table).or_insert_with(|| written.to_vec());
            return (table, vec![Slot::star(Rest::Table(table))]);
        };
        let table = arena.table(TableName::Table(name.into()));
        if !known.is_complete {
            arena.incomplete.entry(table).or_insert_with(|| written.to_vec());
        }
        let mut slots: Vec<Slot> = Vec::with_capacity(known.columns.len() + 1);
        for KnownColumn { name: column, is_declared } in &known.columns {
            let name = Name { key: self.spelling.key_of_known(column), shown: Arc::clone(column) };
            let origin = ColumnOrigin::Column(arena.column_of(table, name.clone(), !is_declared));
            slots.push(Slot::column(name, [origin].into()));
        }
        match (known.is_complete, known.columns.is_empty()) {
            (true, _) => {}
            (false, true) => slots.push(Slot::star(Rest::Table(table))),
            (false, false) => slots.push(Slot::star(Rest::Undeclared(table))),
        }
        if let Some(Slot::Star(star)) = slots.last().cloned() {
            let without = slots.iter().filter_map(|slot| match slot {
                Slot::Column(column) => column.key().cloned(),
                Slot::Star(_) => None,
            });
            let without = without.collect();
            slots.pop();
            slots.push(Slot::Star(Star { without, ..star }));
        }
        (table, slots)
    }
}

fn model(shape: &RelationShape, table: u32, arena: &mut Arena) -> Vec<Slot> {
    let mut column =
        |name: &Name, is_inspected| [ColumnOrigin::Column(arena.column_of(table, name.clone(), is_inspected))].into();
    let slots = shape.outputs.iter().map(|output| match output {
        Seen::Column { name, is_inspected } => Slot::column(name.clone(), column(name, *is_inspected)),
        Seen::Unnamed(name) => Slot::Column(super::relation::Column { name: None, origins: column(name, false) }),
        Seen::Star { is_undeclared, without } => {
            let of = if *is_undeclared { Rest::Undeclared(table) } else { Rest::Table(table) };
            Slot::Star(Star { of, without: without.clone() })
        }
    });
    slots.collect()
}
