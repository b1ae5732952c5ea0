//! The warehouse tables that a cube reads, so that a policy on a table reaches every cube over it.
//!
//! In: relations. Out: table names, folded to lower case. A text that no parser here can read may read
//! anything.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::visit_relations;
use sqlparser::dialect::Dialect;
use sqlparser::parser::Parser;

use super::{CubeId, Relation};

/// What a relation reads.
#[derive(Debug)]
pub(crate) enum Tables {
    /// One table's rows as they are.
    Exactly(String),
    Some(BTreeSet<String>),
    Unknown,
}

impl Tables {
    pub(super) fn of(relation: &Relation, dialect: &dyn Dialect) -> Tables {
        let (models, sql) = match relation {
            Relation::Table(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.text.to_lowercase()).collect();
                return Tables::Exactly(parts.join("."));
            }
            Relation::Query { models, sql } => (models, Some(sql)),
            Relation::Model { models, .. } => (models, None),
        };
        let mut found = BTreeSet::new();
        for text in models.iter().map(|(_, text)| text).chain(sql) {
            match in_text(text, dialect) {
                Some(tables) => found.extend(tables),
                None => return Tables::Unknown,
            }
        }
        models.iter().for_each(|(name, _)| {
            found.remove(&name.to_lowercase());
        });
        Tables::Some(found)
    }

    /// Whether the table is, or may be, read.
    pub(super) fn may_read(&self, table: &str) -> bool {
        match self {
            Tables::Exactly(own) => is_same(own, table),
            Tables::Some(all) => all.iter().any(|own| is_same(own, table)),
            Tables::Unknown => true,
        }
    }

    /// The table that a policy on this relation protects.
    pub(super) fn protected(&self) -> Option<&str> {
        match self {
            Tables::Exactly(table) => Some(table),
            Tables::Some(all) if all.len() == 1 => all.first().map(String::as_str),
            _ => None,
        }
    }
}

/// The cubes by the tables that they read.
pub(super) struct Readers<'t> {
    tables: &'t [Arc<Tables>],
    /// By the last part of a table's name: what is the same has the same.
    by_name: HashMap<&'t str, Vec<CubeId>>,
    /// They may read anything.
    of_anything: Vec<CubeId>,
}

impl<'t> Readers<'t> {
    /// `tables`: those of each cube.
    pub(super) fn of(tables: &'t [Arc<Tables>]) -> Readers<'t> {
        let mut readers = Readers { tables, by_name: HashMap::with_capacity(tables.len()), of_anything: Vec::new() };
        for (id, read) in (0u32..).map(CubeId).zip(tables) {
            match &**read {
                Tables::Exactly(table) => readers.by_name.entry(last_part(table)).or_default().push(id),
                Tables::Some(all) => {
                    for table in all {
                        readers.by_name.entry(last_part(table)).or_default().push(id);
                    }
                }
                Tables::Unknown => readers.of_anything.push(id),
            }
        }
        readers
    }

    /// The cubes that read, or may read, the table whose rows a cube has; it may be among them, also twice.
    pub(super) fn of_rows(&self, cube: CubeId) -> impl Iterator<Item = CubeId> + '_ {
        self.tables[cube.0 as usize].protected().into_iter().flat_map(move |table| {
            let named = self.by_name.get(last_part(table)).into_iter().flatten();
            let named = named.filter(move |reader| self.tables[reader.0 as usize].may_read(table));
            named.chain(&self.of_anything).copied()
        })
    }
}

fn last_part(table: &str) -> &str {
    table.rsplit('.').next().unwrap_or(table)
}

/// `orders` and `raw.orders` may be the same table.
pub(super) fn is_same(a: &str, b: &str) -> bool {
    let ends_with = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'));
    a == b || ends_with(a, b) || ends_with(b, a)
}

fn in_text(text: &str, dialect: &dyn Dialect) -> Option<BTreeSet<String>> {
    let statements = Parser::new(dialect).with_recursion_limit(60).try_with_sql(text).ok()?.parse_statements().ok()?;
    let mut found = BTreeSet::new();
    let _ = visit_relations(&statements, |relation| {
        let name = relation.to_string().to_lowercase();
        found.insert(name.replace(['"', '`', '[', ']'], ""));
        ControlFlow::<()>::Continue(())
    });
    Some(found)
}
