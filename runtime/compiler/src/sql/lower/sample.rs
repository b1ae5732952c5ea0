//! Lowers a sample of a fact's rows, for statistics of profiles.
//!
//! In: a fact with a [`FactSample`]. Out: a select over the sampled rows. An inner select applies the joins, policies
//! and filters, and orders the rows by their keys; the sample is taken from its result, so filtered rows are never part
//! of it. Expressions exist in every dialect, sampling clauses do not: therefore rows are ordered by a hash of their
//! keys. Not here: the choice of the method (`column_statistics`).

use super::{Lowering, Name, OrderBy, OrderItem, Page, Query, ROWS, Select, Source, SqlExpr};
use crate::plan::{Fact, FactSample, SampleMethod};
use crate::sql::dialect_profile::Op;
use crate::types::LogicalType;

/// The function that returns a pseudo-random value for a string. Its name and the number of its arguments.
pub(crate) const SAMPLE_ORDER: (&str, usize) = ("sample_order", 1);
/// The column with the hash of a row's key.
const HASH: Name<'_> = Name::Numbered('h', 0);
/// The column with the position of a row in the order of a sample, from 1.
const POSITION: Name<'_> = Name::Numbered('n', 0);

impl<'a> Lowering<'a> {
    /// Selects `items` over a sample of a fact's rows, which is the derived table [`ROWS`].
    pub(super) fn of_sample(
        &self,
        fact: &'a Fact<'a>,
        sample: &'a FactSample,
        items: Vec<(SqlExpr<'a>, Name<'a>)>,
    ) -> Select<'a> {
        let mut rows = self.rows_with_keys(fact, sample);
        let mut positions = Vec::new();
        match sample.method {
            SampleMethod::Random => self.take_first(fact, sample, &mut rows),
            SampleMethod::Systematic => rows.items.push((self.position(fact, sample, None), POSITION)),
            SampleMethod::Stratified(id) => {
                let stratum = self.expressions.dimension(fact, id);
                rows.items.push((self.position(fact, sample, Some(stratum)), POSITION));
            }
        }
        if sample.method != SampleMethod::Random {
            positions.push(at_equal_distances(sample));
        }
        if self.has_ranks(fact) && !positions.is_empty() {
            // Ranks are those of the sampled rows.
            let columns = rows.items.iter().map(|(_, name)| (SqlExpr::Derived(ROWS, *name), *name)).collect();
            let mut sampled = Select::new(columns, Source::Derived(Box::new(Query::Select(Box::new(rows))), ROWS));
            sampled.filters = positions;
            return self.over_rows(fact, sampled, items);
        }
        let mut select = self.over_rows(fact, rows, items);
        select.filters = positions;
        select
    }

    /// Selects a fact's rows with their groups, keys and arguments of aggregates. If joins repeat the rows, each row
    /// occurs once in each group.
    fn rows_with_keys(&self, fact: &'a Fact<'a>, sample: &'a FactSample) -> Select<'a> {
        let mut columns: Vec<_> = (0..self.plan.groups.len()).map(|index| self.row_group(fact, index)).collect();
        match &fact.distinct {
            Some(key) => {
                if let SampleMethod::Stratified(id) = sample.method {
                    columns.push((self.expressions.dimension(fact, id), Name::Numbered('s', 0)));
                }
                self.fact_rows(fact, columns, Some(key))
            }
            None => {
                let keys = self.key_columns(fact, sample).into_iter().enumerate();
                columns.extend(keys.map(|(index, key)| (key, Name::Numbered('k', index))));
                self.fact_rows(fact, columns, None)
            }
        }
    }

    /// Limits rows to the first ones in the order of the hash of their keys.
    fn take_first(&self, fact: &'a Fact<'a>, sample: &'a FactSample, rows: &mut Select<'a>) {
        let ascending = |by| OrderItem { by, descending: false };
        let is_key = |name: &Name<'_>| matches!(name, Name::Numbered('k', _));
        let keys = rows.items.iter().enumerate().filter(|(_, (_, name))| is_key(name));
        let keys: Vec<_> = keys.map(|(index, _)| ascending(OrderBy::Item(index + 1))).collect();
        rows.items.push((self.key_hash(fact, sample), HASH));
        rows.order = std::iter::once(ascending(OrderBy::Item(rows.items.len()))).chain(keys).collect();
        rows.page = Some(Page { limit: sample.rows, offset: 0 });
    }

    /// Returns the position of each row in the order of the sample's keys, or of a stratum and the hash of the keys.
    fn position(&self, fact: &'a Fact<'a>, sample: &'a FactSample, stratum: Option<SqlExpr<'a>>) -> SqlExpr<'a> {
        let hash = stratum.is_some().then(|| self.key_hash(fact, sample));
        let order = stratum.into_iter().chain(hash).chain(self.key_columns(fact, sample)).collect();
        SqlExpr::RowNumber { partition: Vec::new(), order }
    }

    fn key_columns(&self, fact: &'a Fact<'a>, sample: &'a FactSample) -> Vec<SqlExpr<'a>> {
        sample.keys.iter().map(|id| self.expressions.dimension(fact, *id)).collect()
    }

    /// Returns the hash of a row's key.
    fn key_hash(&self, fact: &'a Fact<'a>, sample: &'a FactSample) -> SqlExpr<'a> {
        let mut parts = Vec::with_capacity(sample.keys.len() * 2);
        for (id, key) in sample.keys.iter().zip(self.key_columns(fact, sample)) {
            if !parts.is_empty() {
                parts.push(SqlExpr::String("/"));
            }
            parts.push(key.cast_from(self.plan.model.dimension(*id).column_type, LogicalType::Text));
        }
        let text = if parts.len() == 1 { parts.remove(0) } else { SqlExpr::op(Op::Concat, parts) };
        SqlExpr::Call { name: SAMPLE_ORDER.0, args: vec![text] }
    }
}

/// Returns the condition that a row is in the sample: the share of the rows up to it, times the size of the sample, has
/// passed the next integer. Of `total` positions, exactly `rows` meet it.
fn at_equal_distances<'a>(sample: &FactSample) -> SqlExpr<'a> {
    let integer = |number: u64| SqlExpr::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let scaled = SqlExpr::op(Op::Mul, vec![SqlExpr::Derived(ROWS, POSITION), integer(sample.rows)]);
    let rest = SqlExpr::op(Op::Modulo, vec![scaled, integer(sample.total)]);
    SqlExpr::op(Op::Lt, vec![rest, integer(sample.rows)])
}
