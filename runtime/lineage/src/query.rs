//! The origins of a query's columns.
//!
//! In: SQL, its grammar, known columns. Out: [`QueryColumns`]. A name that does not have exactly one meaning is
//! reported as unresolved, with the reason and the place. Large or deeply nested SQL is refused. Not here: cubes,
//! members, the project.
//!
//! ```text
//! text ──parse──▶ tree ──select · from · star · expression──▶ slots with origins ──▶ QueryColumns
//! ```

mod arena;
mod expression;
mod from;
mod parse;
mod relation;
mod relation_catalog;
mod scope;
mod select;
mod star;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use sqlparser::ast::Ident;
use sqlparser::dialect::Dialect;

use arena::Place;
pub use arena::Reason;
pub(super) use arena::{Arena, TableName};
pub(super) use from::as_relation;
pub use relation::Use;
pub(super) use relation::{ColumnOrigin, ColumnOrigins, Name, Relation, Rest, Slot, Star};
pub(super) use relation_catalog::{RelationCatalog, RelationShape, Seen};
use scope::Analysis;
pub(super) use scope::NOWHERE;

use super::known::KnownColumns;
use super::spelling::Spelling;
use terrane_compiler::snippet::{ColumnName, grammar, offset_of};

/// The columns of a query, and the columns that its rows depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryColumns {
    /// The columns of the result, in order.
    pub outputs: Vec<Output>,
    /// Columns that decide which rows exist or in which order, anywhere in the query.
    pub uses: BTreeSet<(Use, TableColumn)>,
    /// The tables whose rows are read.
    pub tables: BTreeSet<Arc<str>>,
    /// The places on which the rows depend and which could not be resolved.
    pub unresolved: Vec<(Use, Unresolved)>,
    /// True if a query of a `WITH RECURSIVE` reads itself.
    pub is_recursive: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub name: OutputName,
    pub inputs: BTreeSet<TableColumn>,
    pub unresolved: Vec<Unresolved>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputName {
    Named(Arc<str>),
    /// The engine invents a name.
    Unnamed,
    /// The unknown columns of a star.
    Star,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableColumn {
    /// The name of a known table, or else the name in the SQL in lower case, such as `raw.orders`.
    pub table: Arc<str>,
    pub column: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    pub reason: Reason,
    /// The range of bytes in the SQL. If `None`, the reason applies to the whole query.
    pub at: Option<Range<usize>>,
}

/// Returns the columns of one query with their origins. `warehouse` is the name of the grammar, such as `duckdb`.
pub fn columns_of(sql: &str, warehouse: &str, known: &KnownColumns) -> QueryColumns {
    let catalog = RelationCatalog { known, models: Default::default(), spelling: Spelling::of(warehouse) };
    let mut arena = Arena::default();
    let read = read(sql, warehouse, &*grammar(warehouse), &catalog, &mut arena);
    let shown = Shown { arena: &arena, sql };
    let mut columns = QueryColumns {
        outputs: read.relation.slots.iter().filter_map(|slot| shown.output(slot)).collect(),
        uses: BTreeSet::new(),
        tables: BTreeSet::new(),
        unresolved: Vec::new(),
        is_recursive: read.is_recursive,
    };
    for (usage, origin) in &read.relation.uses {
        match origin {
            ColumnOrigin::Table(table) => {
                columns.tables.insert(shown.table(*table));
            }
            ColumnOrigin::Column(column) => {
                columns.uses.insert((*usage, shown.column(*column)));
            }
            ColumnOrigin::Unresolved(place) => columns.unresolved.push((*usage, shown.unresolved(*place))),
        }
    }
    columns
}

/// The columns of one analyzed query.
pub(super) struct Read {
    pub(super) relation: Relation,
    pub(super) is_recursive: bool,
}

/// Analyzes one query. If it cannot be analyzed, the result is one star with an unresolved origin.
pub(super) fn read(
    sql: &str,
    warehouse: &str,
    dialect: &dyn Dialect,
    catalog: &RelationCatalog<'_>,
    arena: &mut Arena,
) -> Read {
    let reason = match parse::query(sql, dialect) {
        Ok(query) => {
            let mut analysis = Analysis::new(catalog, arena, warehouse);
            match analysis.query(&query) {
                Ok(slots) => {
                    let uses = std::mem::take(&mut analysis.uses);
                    return Read { relation: Relation { slots, uses }, is_recursive: analysis.is_recursive };
                }
                Err(scope::Exhausted) => Reason::TooLarge,
            }
        }
        Err(reason) => reason,
    };
    let place = ColumnOrigin::Unresolved(arena.unresolved(reason, scope::NOWHERE, 1));
    let relation =
        Relation { slots: vec![Slot::star(Rest::Derived([place].into()))], uses: [(Use::Filter, place)].into() };
    Read { relation, is_recursive: false }
}

/// Returns the origins of one column of an analyzed relation.
pub(super) fn column_of(
    slots: &[Slot],
    name: &ColumnName,
    warehouse: &str,
    catalog: &RelationCatalog<'_>,
    arena: &mut Arena,
) -> ColumnOrigins {
    let ident = match name.quoted {
        true => Ident::with_quote('"', name.text.replace('"', "\"\"")),
        false => Ident::new(&*name.text),
    };
    let mut analysis = Analysis::new(catalog, arena, warehouse);
    // This cannot exhaust the limits, because a relation has at most `MAX_SLOTS` columns.
    analysis.member_of(slots, &ident).unwrap_or_default()
}

/// Converts numbers of the arena back to names.
struct Shown<'a> {
    arena: &'a Arena,
    sql: &'a str,
}

impl Shown<'_> {
    fn output(&self, slot: &Slot) -> Option<Output> {
        let (name, origins) = match slot {
            Slot::Column(column) => {
                let name = column.name.as_ref().map(|name| OutputName::Named(Arc::clone(&name.shown)));
                (name.unwrap_or(OutputName::Unnamed), column.origins.clone())
            }
            Slot::Star(Star { of: Rest::Derived(origins), .. }) => (OutputName::Star, origins.clone()),
            Slot::Star(Star { of: Rest::Table(table), .. }) => {
                let unresolved = vec![Unresolved { reason: Reason::Star(self.table(*table)), at: None }];
                return Some(Output { name: OutputName::Star, inputs: BTreeSet::new(), unresolved });
            }
            // A star that stands only for undeclared columns is not reported.
            Slot::Star(Star { of: Rest::Undeclared(_), .. }) => return None,
        };
        let inputs = origins.iter().filter_map(|origin| match origin {
            ColumnOrigin::Column(column) => Some(self.column(*column)),
            _ => None,
        });
        let unresolved = origins.iter().filter_map(|origin| match origin {
            ColumnOrigin::Unresolved(place) => Some(self.unresolved(*place)),
            _ => None,
        });
        Some(Output { name, inputs: inputs.collect(), unresolved: unresolved.collect() })
    }

    fn table(&self, table: u32) -> Arc<str> {
        match &self.arena.tables[table as usize] {
            TableName::Table(name) | TableName::Model(name) => Arc::clone(name),
        }
    }

    fn column(&self, column: u32) -> TableColumn {
        let column = &self.arena.columns[column as usize];
        TableColumn { table: self.table(column.table), column: Arc::clone(&column.name.shown) }
    }

    fn unresolved(&self, place: u32) -> Unresolved {
        let place = &self.arena.unresolved[place as usize];
        Unresolved { reason: place.reason.clone(), at: bytes(place, self.sql) }
    }
}

/// Returns the byte range of a place in the SQL, or `None` for a place without a position.
pub(super) fn bytes(place: &Place, sql: &str) -> Option<Range<usize>> {
    if place.at.line == 0 {
        return None;
    }
    let start = offset_of(sql, place.at);
    let length: usize = sql[start..].chars().take(place.length).map(char::len_utf8).sum();
    Some(start..start + length)
}
