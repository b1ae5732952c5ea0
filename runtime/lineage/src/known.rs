//! The known columns of tables.
//!
//! In: the columns that sources declare, and the columns that a warehouse reports. Out: the columns of a table by its
//! name, in order, and whether they are complete. Not here: queries to the warehouse, which the app runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use terrane_compiler::project::{Definitions, SourceDefinition, TableDefinition};

/// The columns of tables by name: `orders`, `raw.orders`, `main.raw.orders`. The case of names is ignored.
#[derive(Debug, Clone, Default)]
pub struct KnownColumns {
    tables: BTreeMap<String, KnownTable>,
    /// For the last part of a name, all full names that end with it.
    by_last: HashMap<String, Vec<String>>,
}

#[derive(Debug, Clone)]
pub(super) struct KnownColumn {
    pub(super) name: Arc<str>,
    /// True if the project declares the column, false if only the warehouse reports it.
    pub(super) is_declared: bool,
}

#[derive(Debug, Clone)]
pub(super) struct KnownTable {
    pub(super) columns: Vec<KnownColumn>,
    /// True if the warehouse reported the columns. Columns that are only declared may be incomplete.
    pub(super) is_complete: bool,
}

impl KnownColumns {
    /// Returns the columns that the project's sources declare. A table may be declared without columns.
    pub fn declared(definitions: &Definitions) -> KnownColumns {
        let mut known = KnownColumns::default();
        for source in &definitions.sources {
            for table in &source.tables {
                let columns = table.columns.iter().map(|column| Arc::clone(&column.name.value));
                let columns = columns.map(|name| KnownColumn { name, is_declared: true }).collect();
                known.put(&table_name(source, table), columns, false);
            }
        }
        known
    }

    /// Sets all columns of a table, in the order of the warehouse. A column that is also declared keeps its declared
    /// spelling.
    pub fn inspected(&mut self, table: &str, columns: Vec<Arc<str>>) {
        let (name, declared) = match self.find(table) {
            Some((name, known)) => (name.to_owned(), known.columns.clone()),
            None => (table.to_owned(), Vec::new()),
        };
        // A declared column stands for a reported one that differs only in case, if the match is unambiguous.
        let found: HashSet<Arc<str>> = columns.iter().map(Arc::clone).collect();
        let mut declared_as: HashMap<String, Vec<Arc<str>>> = HashMap::new();
        for column in declared.into_iter().filter(|column| column.is_declared) {
            declared_as.entry(column.name.to_lowercase()).or_default().push(column.name);
        }
        let columns = columns.into_iter().map(|name| {
            let alike = declared_as.get(&name.to_lowercase()).map(Vec::as_slice).unwrap_or_default();
            match alike {
                _ if alike.contains(&name) => KnownColumn { name, is_declared: true },
                [other] if !found.contains(other) => KnownColumn { name: Arc::clone(other), is_declared: true },
                _ => KnownColumn { name, is_declared: false },
            }
        });
        self.put(&name, columns.collect(), true);
    }

    /// Returns the known table that a name refers to, as a key of [`KnownColumns::declared_tables`].
    pub(crate) fn name_of(&self, table: &str) -> Option<&str> {
        self.find(&table.replace(['"', '`', '[', ']'], "")).map(|(name, _)| name)
    }

    /// Returns the source and the table of each declared table, by its full name in lower case.
    pub(crate) fn declared_tables(definitions: &Definitions) -> HashMap<String, (Arc<str>, Arc<str>)> {
        let mut tables = HashMap::new();
        for source in &definitions.sources {
            for table in &source.tables {
                let name = (Arc::clone(&source.name.value), Arc::clone(&table.name.value));
                tables.entry(table_name(source, table).to_lowercase()).or_insert(name);
            }
        }
        tables
    }

    fn put(&mut self, table: &str, columns: Vec<KnownColumn>, is_complete: bool) {
        let key = table.to_lowercase();
        let last = last_part(&key).to_owned();
        if !self.tables.contains_key(&key) {
            self.by_last.entry(last).or_default().push(key.clone());
        }
        self.tables.insert(key, KnownTable { columns, is_complete });
    }

    /// Returns the table that a name in SQL refers to. An equal name comes first. Otherwise returns the only table
    /// whose name ends with the given name or is an end of it, as with `raw.orders` and `main.raw.orders`.
    pub(super) fn find(&self, table: &str) -> Option<(&str, &KnownTable)> {
        let key = table.to_lowercase();
        if let Some((name, known)) = self.tables.get_key_value(&key) {
            return Some((name, known));
        }
        let alike = self.by_last.get(last_part(&key))?;
        let mut same = alike.iter().filter(|name| ends_with(name, &key) || ends_with(&key, name));
        match (same.next(), same.next()) {
            (Some(name), None) => self.tables.get_key_value(name).map(|(name, known)| (name.as_str(), known)),
            _ => None,
        }
    }
}

/// Returns the full name of a declared table as `database.schema.table`, without quotes.
fn table_name(source: &SourceDefinition, table: &TableDefinition) -> String {
    let parts = [source.database.as_ref(), source.schema.as_ref(), Some(&table.name)];
    let parts: Vec<&str> = parts.into_iter().flatten().map(|part| &*part.value).collect();
    parts.join(".")
}

fn last_part(table: &str) -> &str {
    table.rsplit('.').next().unwrap_or(table)
}

fn ends_with(long: &str, short: &str) -> bool {
    long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'))
}
