//! The rows of semantic queries that an evaluation has fetched.
//!
//! In: finished rows. Out: groups of rows by the values of their first columns. One query returns the rows for all rows
//! of a row context, so that the number of queries does not grow with the number of rows.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use terrane_compiler::query::{RowAggregate, SemanticQuery};

use super::Datum;

/// The rows of a semantic query.
#[derive(Debug, Default)]
pub struct FetchedRows {
    pub rows: Vec<Vec<Datum>>,
}

/// The rows of the queries that an evaluation has requested.
#[derive(Debug, Clone, Default)]
pub struct FetchedData {
    queries: Vec<(SemanticQuery, Arc<FetchedRows>)>,
    refused: Vec<RowAggregate>,
}

impl FetchedData {
    /// Adds the rows of a query. If it has several values, each is stored as the rows of a query of its own, as the
    /// evaluation requested them.
    pub fn add(&mut self, query: SemanticQuery, rows: FetchedRows) {
        let singles = singles(&query);
        if singles.len() < 2 {
            self.queries.push((query, Arc::new(rows)));
            return;
        }
        let groups = query.dimensions.len();
        for (at, single) in singles.into_iter().enumerate() {
            let of_row = |row: &Vec<Datum>| row[..groups].iter().chain(row.get(groups + at)).cloned().collect();
            let rows = FetchedRows { rows: rows.rows.iter().map(of_row).collect() };
            self.queries.push((single, Arc::new(rows)));
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&SemanticQuery, &Arc<FetchedRows>)> {
        self.queries.iter().map(|(query, rows)| (query, rows))
    }

    /// Records that the values that a query computes for each row were refused: a policy closes a column to such a use,
    /// or the warehouse cannot compute them. They are then computed from the rows themselves.
    pub fn refuse(&mut self, query: SemanticQuery) {
        self.refused.extend(query.computed);
    }

    pub(super) fn refuses(&self, aggregate: &RowAggregate) -> bool {
        self.refused.contains(aggregate)
    }

    /// Returns the size of all rows in bytes, without their strings.
    pub(super) fn bytes(&self) -> usize {
        let of = |rows: &FetchedRows| rows.rows.len() * rows.rows.first().map_or(0, Vec::len) * size_of::<Datum>();
        self.queries.iter().map(|(_, rows)| of(rows)).sum()
    }

    /// Returns the number of queries that were run, including those that were refused.
    pub fn len(&self) -> usize {
        self.queries.len() + self.refused.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn rows(&self, query: &SemanticQuery) -> Option<&Arc<FetchedRows>> {
        self.queries.iter().find(|(other, _)| other == query).map(|(_, rows)| rows)
    }
}

/// Returns a query for each value of a query, in the order of the values. A query without values stays whole.
pub fn singles(query: &SemanticQuery) -> Vec<SemanticQuery> {
    let without = SemanticQuery { values: Vec::new(), computed: Vec::new(), ..query.clone() };
    let of_values = query.values.iter().map(|value| SemanticQuery { values: vec![value.clone()], ..without.clone() });
    let of_computed = query.computed.iter().map(|one| {
        let one = RowAggregate { key: COMPUTED_KEY.into(), ..one.clone() };
        SemanticQuery { computed: vec![one], ..without.clone() }
    });
    let all: Vec<SemanticQuery> = of_values.chain(of_computed).collect();
    if all.is_empty() { vec![query.clone()] } else { all }
}

/// The key of a computed value, in a query with one value. No member has this name.
pub(super) const COMPUTED_KEY: &str = "value";

/// Rows of a query, grouped by the values of their key columns.
#[derive(Debug)]
pub(super) struct Index {
    by_key: HashMap<Vec<Datum>, Vec<Vec<Datum>>>,
}

impl Index {
    /// Groups rows. `layout` lists the indexes of the columns to take; the first `keys` of them are the key columns.
    pub(super) fn new(rows: &FetchedRows, layout: &[usize], keys: usize) -> Rc<Index> {
        let mut by_key: HashMap<Vec<Datum>, Vec<Vec<Datum>>> = HashMap::new();
        let (key_columns, columns) = layout.split_at(keys);
        let take = |row: &[Datum], columns: &[usize]| -> Vec<Datum> {
            columns.iter().map(|at| row.get(*at).cloned().unwrap_or(Datum::Blank)).collect()
        };
        for row in &rows.rows {
            by_key.entry(take(row, key_columns)).or_default().push(take(row, columns));
        }
        Rc::new(Index { by_key })
    }

    /// Returns the keys, each with its rows without the key columns.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&Vec<Datum>, &Vec<Vec<Datum>>)> {
        self.by_key.iter()
    }

    /// Returns the rows with this key, without the key columns.
    pub(super) fn rows_of(&self, key: &[Datum]) -> &[Vec<Datum>] {
        self.by_key.get(key).map_or(&[], |rows| rows)
    }
}
