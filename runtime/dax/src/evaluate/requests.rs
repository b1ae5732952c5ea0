//! The queries that an evaluation requests: as few as possible.
//!
//! In: the queries whose rows are missing after a round. Out: fewer queries with the same values. A query is left out if
//! another one has its values for finer groups, whose values can be combined. Queries of one table for the same groups
//! and filters become one query with several values.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use terrane_compiler::model::CubeId;
use terrane_compiler::query::{MemberRef, RowFunction, SemanticQuery};

use super::aggregate::fold;
use super::data::{FetchedData, FetchedRows};
use super::source::Item;
use super::{Datum, Evaluator, Result};
use crate::functions::Aggregation;
use crate::place::Place;

/// The largest number of values of one query.
const MAX_VALUES: usize = 50;

/// A query whose rows are missing.
#[derive(Debug)]
pub(super) struct Request {
    query: SemanticQuery,
    /// The table whose rows are aggregated, if the query aggregates the rows of one table.
    fact: Option<CubeId>,
    /// True if values for finer groups can be combined to the values of the query.
    is_additive: bool,
}

impl<'q> Evaluator<'q> {
    /// Records that the rows of a query are missing.
    pub(super) fn request(&self, item: &Item, facts: &[CubeId], query: SemanticQuery) {
        let mut missing = self.missing.borrow_mut();
        if missing.iter().any(|other| other.query == query) {
            return;
        }
        let fact = match (item.value(), facts) {
            (Item::Measure(_) | Item::Computed(_), [fact]) => Some(*fact),
            _ => None,
        };
        missing.push(Request { query, fact, is_additive: self.combination(item).is_some() });
    }

    /// Returns the aggregation that combines the values of `item` for parts of the rows; `None` if they cannot be
    /// combined.
    pub(super) fn combination(&self, item: &Item) -> Option<Aggregation> {
        match item.value() {
            Item::Measure(source) => self.additive(*source),
            Item::Computed(number) => match self.row_aggregates.borrow()[*number].function {
                RowFunction::Sum | RowFunction::Count => Some(Aggregation::Sum),
                RowFunction::Min => Some(Aggregation::Min),
                RowFunction::Max => Some(Aggregation::Max),
                RowFunction::Average | RowFunction::CountDistinct => None,
            },
            _ => None,
        }
    }

    /// Returns the rows of a query, combined from the rows of a fetched query with finer groups.
    pub(super) fn combined_rows(
        &self,
        item: &Item,
        query: &SemanticQuery,
        place: Place,
    ) -> Result<Option<Rc<FetchedRows>>> {
        let Some(aggregation) = self.combination(item) else { return Ok(None) };
        let Some((finer, rows)) = self.data.finer(query) else { return Ok(None) };
        self.steps(rows.rows.len(), place)?;
        let places: Vec<usize> = query.dimensions.iter().filter_map(|one| position(&finer.dimensions, one)).collect();
        let value = finer.dimensions.len();
        let mut groups: HashMap<Vec<Datum>, Vec<Datum>> = HashMap::new();
        for row in &rows.rows {
            let key = places.iter().map(|at| row[*at].clone()).collect();
            groups.entry(key).or_default().extend(row.get(value).cloned());
        }
        let combined = groups.into_iter().map(|(mut key, values)| {
            key.push(fold(aggregation, values.iter(), place)?);
            Ok(key)
        });
        Ok(Some(Rc::new(FetchedRows { rows: combined.collect::<Result<_>>()? })))
    }

    /// Returns the queries to run for the missing rows.
    pub(super) fn requested(&self) -> Vec<SemanticQuery> {
        let all = self.missing.take();
        let is_finer = |other: &Request, one: &Request| is_finer(&other.query, &one.query);
        let is_needed = |one: &&Request| !one.is_additive || !all.iter().any(|other| is_finer(other, one));
        let mut queries: Vec<(Option<CubeId>, SemanticQuery)> = Vec::new();
        for one in all.iter().filter(is_needed) {
            let fits = |(fact, other): &&mut (Option<CubeId>, SemanticQuery)| {
                one.fact.is_some() && *fact == one.fact && self.can_merge(other, &one.query)
            };
            match queries.iter_mut().find(fits) {
                Some((_, merged)) => merge(merged, &one.query),
                None => queries.push((one.fact, one.query.clone())),
            }
        }
        queries.into_iter().map(|(_, query)| query).collect()
    }

    /// Returns whether two queries of one table can be one query. Pre-aggregations may contain the measures of only one
    /// of them, so measures stay alone if the table has pre-aggregations.
    fn can_merge(&self, one: &SemanticQuery, two: &SemanticQuery) -> bool {
        let has_values = !one.values.is_empty() || !two.values.is_empty();
        let cubes = one.values.iter().chain(&two.values).filter_map(MemberRef::cube);
        let mut cubes = cubes.filter_map(|name| self.model.cube_named(name));
        one.dimensions == two.dimensions
            && one.filters == two.filters
            && one.values.len() + one.computed.len() < MAX_VALUES
            && (!has_values || cubes.all(|cube| cube.rollups.is_empty()))
            && one.values.iter().chain(&two.values).all(|value| value.cube().is_some())
    }
}

/// Adds the values of a query to another one.
fn merge(merged: &mut SemanticQuery, query: &SemanticQuery) {
    merged.values.extend(query.values.iter().cloned());
    for one in &query.computed {
        let key: Arc<str> = format!("{} {}", one.key, merged.computed.len()).into();
        merged.computed.push(terrane_compiler::query::RowAggregate { key, ..one.clone() });
    }
}

/// Returns whether a query has the values of another one for finer groups.
fn is_finer(finer: &SemanticQuery, query: &SemanticQuery) -> bool {
    finer.dimensions.len() > query.dimensions.len()
        && finer.values == query.values
        && finer.computed == query.computed
        && finer.filters == query.filters
        && finer.cube == query.cube
        && finer.ungrouped == query.ungrouped
        && query.dimensions.iter().all(|one| finer.dimensions.contains(one))
}

fn position(all: &[MemberRef], one: &MemberRef) -> Option<usize> {
    all.iter().position(|other| other == one)
}

impl FetchedData {
    /// Returns a fetched query that has the values of a query for finer groups: the one with the fewest rows.
    fn finer(&self, query: &SemanticQuery) -> Option<(&SemanticQuery, &Arc<FetchedRows>)> {
        let finer = self.all().filter(|(other, _)| is_finer(other, query));
        finer.min_by_key(|(_, rows)| rows.rows.len())
    }
}
