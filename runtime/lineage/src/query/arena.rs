//! The tables, columns and unresolved places of one query, each with a number.
//!
//! In: names in the order in which they are found. Out: numbers, by which origins refer to the columns. Not here:
//! scopes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use sqlparser::tokenizer::Location;

use super::relation::Name;
use terrane_compiler::snippet::ColumnName;

/// A table or a model that a query reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TableName {
    /// The name of a known table, or else the name in the SQL in lower case.
    Table(Arc<str>),
    Model(Arc<str>),
}

#[derive(Debug, Clone)]
pub(crate) struct ColumnOf {
    pub(crate) table: u32,
    pub(crate) name: Name,
    /// True if only the warehouse reported the column, and the project does not declare it.
    pub(crate) is_inspected: bool,
}

/// The reason that the origin of a value is unknown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The SQL exceeds the limits of parsing: tokens, or nesting of brackets.
    TooLarge,
    /// The parser cannot read the SQL, although the warehouse may.
    NotParsed(String),
    /// Syntax that is parsed, but whose lineage is not computed.
    NotFollowed(&'static str),
    /// No relation in scope has the column.
    UnknownColumn(Arc<str>),
    /// Several relations in scope have the column, or may have it.
    Ambiguous(Arc<str>),
    /// A star over a table with unknown columns.
    Star(Arc<str>),
    /// Columns are matched by position or by name, and the columns of one side are unknown.
    Positions(&'static str),
    /// The queries of a set operation have different numbers of columns.
    Count { left: usize, right: usize },
    /// A table function, whose columns only the warehouse can determine.
    TableFunction(Arc<str>),
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::TooLarge => f.write_str("the SQL is too large for lineage"),
            Reason::NotParsed(why) => write!(f, "cannot parse the SQL: {why}"),
            Reason::NotFollowed(what) => write!(f, "lineage of {what} is not supported"),
            Reason::UnknownColumn(name) => write!(f, "no relation in scope has a known column `{name}`"),
            Reason::Ambiguous(name) => write!(f, "several relations in scope may have the column `{name}`"),
            Reason::Star(of) => write!(f, "the columns of `{of}` are unknown"),
            Reason::Positions(what) => write!(f, "{what} combines unknown columns"),
            Reason::Count { left, right } => write!(f, "a query of {left} columns is combined with one of {right}"),
            Reason::TableFunction(name) => write!(f, "the columns of `{name}(…)` are unknown"),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) reason: Reason,
    /// The line and column in the SQL. The line is 0 for a reason without a place.
    pub(crate) at: Location,
    /// The length in characters.
    pub(crate) length: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Arena {
    pub(crate) tables: Vec<TableName>,
    pub(crate) columns: Vec<ColumnOf>,
    pub(crate) unresolved: Vec<Place>,
    /// The tables whose columns are not all known, by number, each with the name in its first occurrence.
    pub(crate) incomplete: BTreeMap<u32, Vec<ColumnName>>,
    /// The columns that the SQL names. A star names no column.
    pub(crate) named: HashSet<u32>,
    table_numbers: HashMap<TableName, u32>,
    column_numbers: HashMap<(u32, Arc<str>), u32>,
    unresolved_numbers: HashMap<(Reason, Location), u32>,
}

impl Arena {
    pub(crate) fn table(&mut self, name: TableName) -> u32 {
        let next = self.tables.len() as u32;
        *self.table_numbers.entry(name).or_insert_with_key(|name| {
            self.tables.push(name.clone());
            next
        })
    }

    pub(crate) fn column(&mut self, table: u32, name: Name) -> u32 {
        self.column_of(table, name, false)
    }

    pub(crate) fn column_of(&mut self, table: u32, name: Name, is_inspected: bool) -> u32 {
        let next = self.columns.len() as u32;
        *self.column_numbers.entry((table, Arc::clone(&name.key))).or_insert_with(|| {
            self.columns.push(ColumnOf { table, name, is_inspected });
            next
        })
    }

    /// Starts another query. Its unresolved places get new numbers, even at positions of an earlier query.
    pub(crate) fn next_text(&mut self) {
        self.unresolved_numbers.clear();
    }

    pub(crate) fn unresolved(&mut self, reason: Reason, at: Location, length: usize) -> u32 {
        let next = self.unresolved.len() as u32;
        *self.unresolved_numbers.entry((reason, at)).or_insert_with_key(|(reason, at)| {
            self.unresolved.push(Place { reason: reason.clone(), at: *at, length });
            next
        })
    }
}
