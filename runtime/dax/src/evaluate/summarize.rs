//! Groups: SUMMARIZECOLUMNS with subtotals, and SUMMARIZE.
//!
//! In: group columns and expressions. Out: one row for each group. Like a row, a group becomes a filter by its values.

use std::rc::Rc;

use terrane_compiler::model::{CubeId, DimensionId};

use super::aggregate::collected_early;
use super::context::{FilterContext, Pin};
use super::environment::Environment;
use super::rows::Rows;
use super::walk::{Need, Node, Scan};
use super::{Datum, Evaluator, Result, collected, not_supported, replaceable};
use crate::bound::{Filter, Group, NamedScalar, Table, TableKind};
use crate::place::Place;

/// The group columns that have values in a row. The row is a subtotal over the other group columns.
type GroupingSet = Vec<DimensionId>;

impl<'q> Evaluator<'q> {
    pub(super) fn summarize_columns(
        &self,
        table: &'q Table,
        groups: &'q [Group],
        filters: &'q [Filter],
        values: &'q [NamedScalar],
        environment: &Environment,
    ) -> Result<Rc<Rows>> {
        let context = self.filtered_context(filters, environment)?;
        let mut base = environment.with_context(context).without_rows();
        base.selected = Some(Rc::clone(&base.context.filters));
        let sets = grouping_sets(groups);
        let rows = collected(sets.iter().map(|set| self.grouped(groups, set, values, &base, table.place)))?;
        Ok(Rc::new(Rows::new(&table.columns, rows.into_iter().flatten().collect())))
    }

    /// Returns the rows for one grouping set, without rows in which every value is BLANK.
    fn grouped(
        &self,
        groups: &'q [Group],
        set: &GroupingSet,
        values: &'q [NamedScalar],
        base: &Environment,
        place: Place,
    ) -> Result<Vec<Rc<[Datum]>>> {
        let combinations = self.combinations(set, values, &base.context, place)?;
        let rows = combinations.into_iter().map(|combination| {
            let inner = base.with_context(pinned(&base.context, set, &combination));
            let found = collected(values.iter().map(|value| self.scalar(&value.expression, &inner)))?;
            if !values.is_empty() && found.iter().all(Datum::is_blank) {
                return Ok(None);
            }
            let shown = shown_groups(groups, set, &combination);
            Ok(Some(shown.into_iter().chain(found).collect::<Rc<[Datum]>>()))
        });
        Ok(collected_early(rows)?.into_iter().flatten().collect())
    }

    /// Returns the combinations of group columns. Columns of one table are combined as they exist in its rows; columns
    /// of different tables are combined in every way.
    /// The BLANK row of a table is a group if rows lack a partner, and also if all values are BLANK in a group without
    /// rows.
    fn combinations(
        &self,
        set: &[DimensionId],
        values: &[NamedScalar],
        context: &FilterContext,
        place: Place,
    ) -> Result<Vec<Vec<Datum>>> {
        let mut cubes = Vec::new();
        set.iter().for_each(|column| {
            if !cubes.contains(&column.cube) {
                cubes.push(column.cube);
            }
        });
        let columns_of = |cube| -> Vec<DimensionId> { set.iter().copied().filter(|id| id.cube == cube).collect() };
        let drops_blank = cubes.iter().all(|cube| self.are_blank_without_rows(values, *cube));
        let tables = collected(cubes.iter().map(|cube| {
            let columns = columns_of(*cube);
            let mut rows = self.values_of(&columns, !drops_blank, context, place)?;
            let blank = vec![Datum::Blank; columns.len()];
            if drops_blank && self.can_lack_partners(*cube) && !rows.contains(&blank) {
                rows.push(blank);
            }
            Ok(rows)
        }))?;
        let count = tables.iter().fold(1_usize, |count, rows| count.saturating_mul(rows.len()));
        self.limited(count, place)?;
        let mut all: Vec<Vec<Datum>> = vec![Vec::new()];
        for rows in &tables {
            all = all.iter().flat_map(|one| rows.iter().map(|two| [&one[..], &two[..]].concat())).collect();
        }
        // The values are ordered by table. The result needs the order of the group columns.
        let by_table: Vec<DimensionId> = cubes.into_iter().flat_map(columns_of).collect();
        let places: Vec<usize> =
            set.iter().filter_map(|column| by_table.iter().position(|other| other == column)).collect();
        Ok(all.into_iter().map(|row| places.iter().map(|at| row[*at].clone()).collect()).collect())
    }

    pub(super) fn summarize(
        &self,
        table: &'q Table,
        of: &'q Table,
        groups: &[DimensionId],
        context: u32,
        values: &'q [NamedScalar],
        environment: &Environment,
    ) -> Result<Rc<Rows>> {
        let place = table.place;
        let of = self.behind_variables(of, environment);
        let combinations = match of.kind {
            TableKind::Model(cube) if !groups.is_empty() => {
                self.distinct_of(cube, groups, &environment.context, place)?
            }
            _ if groups.is_empty() => {
                let suggestion = "Use ROW, or SUMMARIZECOLUMNS with the table as a filter.";
                return Err(replaceable("SUMMARIZE without group columns", suggestion, place));
            }
            _ => self.groups_of(of, groups, !values.is_empty(), environment)?,
        };
        let has_row_filter = match of.kind {
            _ if values.is_empty() => false,
            TableKind::Model(cube) => !self.has_no_other_rows(cube, values, environment),
            _ => true,
        };
        let base = match has_row_filter {
            true => self.context_of_rows(of, values, environment)?,
            false => environment.context.clone(),
        };
        let columns = table.columns[..groups.len()].to_vec().into();
        let grouped = Rows::new(&columns, combinations.into_iter().map(Rc::from).collect());
        let grouped = Rc::new(Rows { seen: has_row_filter.then(|| base.clone()), ..grouped });
        let rows = grouped.rows.iter().map(|row| {
            let inner = environment.with_context(pinned(&base, groups, row));
            let inner = inner.in_row(context, &grouped, row);
            let found = collected(values.iter().map(|value| self.scalar(&value.expression, &inner)))?;
            Ok(row.iter().cloned().chain(found).collect())
        });
        let rows = collected_early(rows)?;
        Ok(Rc::new(Rows::new(&table.columns, rows)))
    }

    /// Returns whether all rows of a table, as a filter, change no value of the groups: the expressions aggregate only
    /// this table, and no filters around the groups are changed inside them.
    fn has_no_other_rows(&self, table: CubeId, values: &'q [NamedScalar], environment: &Environment) -> bool {
        let context = &environment.context;
        let has_filters = !context.pins.is_empty() || !context.filters.filters.is_empty();
        values
            .iter()
            .map(|value| Node::Scalar(&value.expression))
            .all(|value| self.aggregates_only(value, table) && (!has_filters || self.retains_filters(value)))
    }

    /// Returns the context of the groups of a table expression: its rows are a filter, as in CALCULATE.
    fn context_of_rows(
        &self,
        of: &'q Table,
        values: &'q [NamedScalar],
        environment: &Environment,
    ) -> Result<FilterContext> {
        // Without a key, the filter by rows could not stay whole when an expression filters one of its columns.
        let has_key = |table: CubeId| !self.model.cube(table).primary_key.is_empty();
        if !self.table_of_rows(of).is_some_and(has_key) {
            let suggestion = "Use SUMMARIZECOLUMNS with the table as a filter, before the names and expressions.";
            return Err(replaceable("SUMMARIZE of this table with expressions", suggestion, of.place));
        }
        let retains = values.iter().all(|value| self.retains_filters(Node::Scalar(&value.expression)));
        self.filtered_by_rows(of, retains, environment)
    }

    /// Returns the combinations of group columns in the rows of a table expression. The columns may be in tables that
    /// the expression's table reaches on the one side. `is_filter` is true if the rows are also a filter of the groups.
    fn groups_of(
        &self,
        of: &'q Table,
        groups: &[DimensionId],
        is_filter: bool,
        environment: &Environment,
    ) -> Result<Vec<Vec<Datum>>> {
        let own = |id: &DimensionId| of.columns.iter().position(|column| column.lineage == Some(*id));
        let mut scan = Scan { has_transition: is_filter, ..Scan::default() };
        for group in groups {
            match own(group) {
                Some(at) => _ = scan.columns.insert(at as u32),
                None => _ = scan.related.insert(*group),
            }
        }
        let has_related = !scan.related.is_empty();
        let rows = self.table(of, environment, &Need::Only(scan))?;
        if has_related && rows.related.is_empty() {
            return Err(not_supported("SUMMARIZE by columns that the table does not have", of.place));
        }
        let width = rows.columns.len();
        let place_of = |id: &DimensionId| {
            own(id).or_else(|| rows.related.iter().position(|other| other == id).map(|at| width + at))
        };
        let places: Vec<usize> = groups.iter().filter_map(place_of).collect();
        let combinations = rows.rows.iter().map(|row| places.iter().map(|at| row[*at].clone()).collect());
        Ok(super::context::distinct(combinations.collect()))
    }
}

/// Returns a context in which the group columns are pinned to the values of a group.
fn pinned(context: &FilterContext, columns: &[DimensionId], values: &[Datum]) -> FilterContext {
    let outer = context.pins.iter().filter(|pin| !columns.contains(&pin.column)).cloned();
    let own = columns.iter().zip(values);
    let own = own.map(|(column, value)| Pin { column: *column, value: value.clone(), row_of: None, expansion: None });
    FilterContext { pins: outer.chain(own).collect(), ..context.clone() }
}

/// Returns the grouping sets: one with all group columns, and one for each level of subtotals.
fn grouping_sets(groups: &[Group]) -> Vec<GroupingSet> {
    let mut sets: Vec<GroupingSet> = vec![Vec::new()];
    for group in groups {
        let levels: Vec<GroupingSet> = match group {
            Group::Column(id) => vec![vec![*id]],
            Group::Rollup(levels) => {
                let columns = |length: usize| levels[..length].iter().flat_map(|level| level.columns.clone()).collect();
                (0..=levels.len()).rev().map(columns).collect()
            }
        };
        sets = sets.iter().flat_map(|set| levels.iter().map(|level| [&set[..], &level[..]].concat())).collect();
    }
    sets
}

/// Returns the values of the group columns in a result row, and of the columns that mark subtotals. A group column is
/// BLANK in its subtotals.
fn shown_groups(groups: &[Group], set: &[DimensionId], combination: &[Datum]) -> Vec<Datum> {
    let value = |id: &DimensionId| set.iter().position(|other| other == id).map(|at| combination[at].clone());
    let mut shown = Vec::new();
    for group in groups {
        match group {
            Group::Column(id) => shown.extend(value(id)),
            Group::Rollup(levels) => {
                for level in levels {
                    let found: Vec<Option<Datum>> = level.columns.iter().map(value).collect();
                    let is_subtotal = found.contains(&None);
                    shown.extend(found.into_iter().map(|value| value.unwrap_or(Datum::Blank)));
                    shown.push(Datum::Boolean(is_subtotal));
                }
            }
        }
    }
    shown
}
