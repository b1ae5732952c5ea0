//! Tables: those of the model, and functions that return tables.
//!
//! In: a bound table, its environment, and the columns that are needed. Out: the rows of the table.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::rc::Rc;

use terrane_compiler::model::{CubeId, DimensionId};

use super::aggregate::collected_early;
use super::context::{Allowed, Expansion, FilterContext, Restriction};
use super::environment::{Environment, Value};
use super::operators::to_number;
use super::rows::{Rows, compare_keys};
use super::walk::{Need, Node, Scan};
use super::{Datum, Evaluator, Result, collected, not_supported};
use crate::bound::{AllOf, BoundOrder, NamedScalar, Scalar, ScalarKind, Table, TableColumn, TableKind};
use crate::functions::{Function, Operation};

impl<'q> Evaluator<'q> {
    pub(super) fn table(&self, table: &'q Table, environment: &Environment, need: &Need) -> Result<Rc<Rows>> {
        self.step(table.place)?;
        let scan = self.scan(Node::Table(table), environment.frames.len() as u32);
        let make = || self.counted(table, environment, need);
        let rows = if scan.is_open || self.sees_rows(&scan, environment) {
            make()?
        } else {
            self.remembered(std::ptr::from_ref(table) as usize, environment, need, make)?
        };
        self.limited(rows.rows.len(), table.place)?;
        Ok(rows)
    }

    /// Evaluates a table and counts its memory.
    fn counted(&self, table: &'q Table, environment: &Environment, need: &Need) -> Result<Rc<Rows>> {
        let rows = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.table_kind(table, environment, need))?;
        // The memory of shared rows was counted when they were created.
        if rows.charge.is_some() {
            return Ok(rows);
        }
        self.limited(rows.rows.len(), table.place)?;
        self.steps(rows.rows.len(), table.place)?;
        self.charged(rows, table.place)
    }

    fn table_kind(&self, table: &'q Table, environment: &Environment, need: &Need) -> Result<Rc<Rows>> {
        let place = table.place;
        let context = &environment.context;
        match &table.kind {
            TableKind::Model(cube) => self.model_table(*cube, table, context, need),
            TableKind::ModelWithUnmatched(cube) => {
                let rows = self.model_table(*cube, table, context, &Need::All);
                let is_unmatched = self.has_unmatched(*cube, context, place);
                let (rows, is_unmatched) = (rows?, is_unmatched?);
                if !is_unmatched {
                    return Ok(rows);
                }
                let blank: Rc<[Datum]> = table.columns.iter().map(|_| Datum::Blank).collect();
                let all = rows.rows.iter().cloned().chain([blank]).collect();
                Ok(Rc::new(Rows { rows_of: None, ..rows.with_rows(all) }))
            }
            TableKind::Variable(id) => match self.variable(*id, environment)? {
                Value::Table(rows) => Ok(rows),
                Value::Scalar(_) => Err(not_supported("a value as a table", place)),
            },
            TableKind::Block { variables, result } => self.table(result, &self.bound(variables, environment), need),
            TableKind::Values { column, has_unmatched } => {
                let values = self.values_of(&[*column], *has_unmatched, context, place)?;
                Ok(Rc::new(Rows::new(&table.columns, values.into_iter().map(Rc::from).collect())))
            }
            TableKind::DistinctRows(of) => Ok(Rc::new(self.table(of, environment, &Need::All)?.distinct())),
            TableKind::All { function, of } => self.all_rows(function, of, table, environment),
            TableKind::Filter { table: of, context, condition } => {
                self.filtered(of, *context, condition, environment, need)
            }
            TableKind::Calculate { table: of, filters, has_transition } => {
                let inner = self.calculated(Node::Table(of), filters, *has_transition, environment, place)?;
                self.table(of, &inner, need)
            }
            TableKind::SummarizeColumns { groups, filters, values } => {
                self.summarize_columns(table, groups, filters, values, environment)
            }
            TableKind::Summarize { table: of, groups, context, values } => {
                self.summarize(table, of, groups, *context, values, environment)
            }
            TableKind::AddColumns { table: of, context, values } => {
                self.with_columns(table, of, *context, values, environment, need)
            }
            TableKind::SelectColumns { table: of, context, values } => {
                self.only_columns(table, of, *context, values, environment)
            }
            TableKind::TopN { count, table: of, context, order } => {
                self.first_rows(count, of, *context, order, environment, need)
            }
            TableKind::Row(values) => {
                let row = collected(values.iter().map(|value| self.scalar(&value.expression, environment)))?;
                Ok(Rc::new(Rows::new(&table.columns, vec![row.into()])))
            }
            TableKind::Rows(rows) => {
                let row = |row: &'q Vec<Scalar>| {
                    collected(row.iter().map(|value| self.scalar(value, environment))).map(Rc::from)
                };
                Ok(Rc::new(Rows::new(&table.columns, collected(rows.iter().map(row))?)))
            }
            TableKind::Combine { function, tables } => self.combined(function, table, tables, environment),
            TableKind::Generate { table: of, context, row_table } => {
                self.generated(table, of, *context, row_table, environment)
            }
            TableKind::TreatAs { table: of, columns } => self.treated_as(table, of, columns, environment),
            TableKind::Related { table: cube, .. } => {
                let inner = self.transitioned(environment, place)?;
                self.model_table(*cube, table, &inner.context, need)
            }
            TableKind::Dates { .. } => self.dates(table, environment),
            TableKind::Invalid => Err(not_supported("an invalid table", place)),
        }
    }

    // Tables of the model

    /// Returns the rows of a table of the model with the needed columns.
    fn model_table(&self, cube: CubeId, table: &Table, context: &FilterContext, need: &Need) -> Result<Rc<Rows>> {
        let ids: Vec<Option<DimensionId>> = table.columns.iter().map(|column| column.lineage).collect();
        let empty = Rows {
            rows_of: Some(cube),
            expansion: Rc::from([Expansion::of(cube)]),
            seen: Some(context.clone()),
            ..Rows::new(&table.columns, Vec::new())
        };
        let key = self.key_columns(cube, &empty);
        let fetched: Vec<bool> =
            ids.iter().enumerate().map(|(at, id)| id.is_some_and(|id| need.has_column(at, id, &key))).collect();
        let related: Vec<DimensionId> = need.related().into_iter().flatten().copied().collect();
        let own = ids.iter().zip(&fetched).filter(|(_, needed)| **needed).filter_map(|(id, _)| *id);
        let columns: Vec<DimensionId> = own.chain(related.iter().copied()).collect();
        let rows = self.rows_of(cube, &columns, context, table.place)?;
        let spread = |row: Vec<Datum>| -> Rc<[Datum]> {
            let mut values = row.into_iter();
            let mut next = |needed: bool| if needed { values.next() } else { None }.unwrap_or(Datum::Blank);
            let own: Vec<Datum> = fetched.iter().map(|needed| next(*needed)).collect();
            own.into_iter().chain(related.iter().map(|_| next(true)).collect::<Vec<_>>()).collect()
        };
        let rows = rows.into_iter().map(spread).collect();
        Ok(Rc::new(Rows { fetched: Some(fetched.into()), related: related.into(), rows, ..empty }))
    }

    /// Returns whether rows have all needed columns.
    pub(super) fn has_needed(&self, rows: &Rows, need: &Need) -> bool {
        let key = rows.rows_of.map(|cube| self.key_columns(cube, rows)).unwrap_or_default();
        let has_column = |(at, column): (usize, &TableColumn)| {
            rows.has(at as u32) || !column.lineage.is_some_and(|id| need.has_column(at, id, &key))
        };
        rows.columns.iter().enumerate().all(has_column)
            && need.related().into_iter().flatten().all(|id| rows.related.contains(id))
    }

    fn all_rows(
        &self,
        function: &'static Function,
        of: &AllOf,
        table: &Table,
        environment: &Environment,
    ) -> Result<Rc<Rows>> {
        let place = table.place;
        let filters = match function.operation {
            Operation::AllSelected => Rc::clone(environment.selected.as_ref().unwrap_or(&environment.context.filters)),
            _ => self.filter_list(Vec::new()),
        };
        let context = FilterContext::new(filters);
        let columns: Vec<DimensionId> = table.columns.iter().filter_map(|column| column.lineage).collect();
        let rows = match of {
            AllOf::Table(cube) => {
                let rows = self.rows_of(*cube, &columns, &context, place);
                let is_unmatched = self.has_unmatched(*cube, &context, place);
                let (mut rows, is_unmatched) = (rows?, is_unmatched?);
                if is_unmatched {
                    rows.push(vec![Datum::Blank; columns.len()]);
                }
                rows
            }
            AllOf::Columns(_) | AllOf::Except(..) => {
                if columns.iter().any(|column| column.cube != columns[0].cube) {
                    return Err(not_supported("ALL of columns of several tables", place));
                }
                self.values_of(&columns, true, &context, place)?
            }
            AllOf::Everything => return Err(not_supported(function.name, place)),
        };
        let expansion = match of {
            AllOf::Table(cube) => Rc::from([Expansion::of(*cube)]),
            _ => Rc::from([]),
        };
        let rows = rows.into_iter().map(Rc::from).collect();
        Ok(Rc::new(Rows { expansion, ..Rows::new(&table.columns, rows) }))
    }

    // Rows and columns

    /// Evaluates FILTER. Conditions that are the same for all rows become filters of the query that fetches the rows.
    fn filtered(
        &self,
        of: &'q Table,
        context: u32,
        condition: &'q Scalar,
        environment: &Environment,
        need: &Need,
    ) -> Result<Rc<Rows>> {
        let (inner, left) = self.with_fixed_conditions(of, context, condition, environment);
        let scan = self.scan_all(left.iter().copied(), context);
        let rows = self.table(of, &inner, &need.and(&scan))?;
        let matching = self.matching(&rows, context, &left, environment)?;
        Ok(Rc::new(rows.with_rows(matching)))
    }

    /// Splits the condition of FILTER. Returns the environment in which the conditions that are the same for all rows
    /// filter the table, and the other conditions.
    pub(super) fn with_fixed_conditions(
        &self,
        of: &'q Table,
        context: u32,
        condition: &'q Scalar,
        environment: &Environment,
    ) -> (Environment, Vec<&'q Scalar>) {
        let conditions: Vec<&'q Scalar> = match &condition.kind {
            ScalarKind::And(all) => all.iter().collect(),
            _ => vec![condition],
        };
        let is_direct = matches!(of.kind, TableKind::Model(_) | TableKind::Values { has_unmatched: false, .. });
        let columns: Option<Vec<DimensionId>> = of.columns.iter().map(|column| column.lineage).collect();
        let (mut filters, mut left) = (environment.context.filters.filters.clone(), Vec::new());
        for condition in conditions {
            let fixed = columns.as_ref().filter(|_| is_direct);
            match fixed.and_then(|columns| self.fixed_condition(condition, context, columns)) {
                Some(filter) => {
                    let columns = columns.clone().unwrap_or_default();
                    filters.push(Rc::new(Restriction::of_columns(columns, Allowed::Condition(filter))));
                }
                None => left.push(condition),
            }
        }
        let filters = self.filter_list(filters);
        (environment.with_context(FilterContext { filters, ..environment.context.clone() }), left)
    }

    fn with_columns(
        &self,
        table: &'q Table,
        of: &'q Table,
        context: u32,
        values: &'q [NamedScalar],
        environment: &Environment,
        need: &Need,
    ) -> Result<Rc<Rows>> {
        let width = of.columns.len();
        let scan = self.scan_all(values.iter().map(|value| &value.expression), context);
        let inner_need = match need {
            Need::All | Need::AllWith(_) => need.and(&scan),
            Need::Only(own) => {
                let columns = own.columns.iter().copied().filter(|column| (*column as usize) < width).collect();
                Need::Only(Scan { columns, ..own.clone() }).and(&scan)
            }
        };
        let rows = self.table(of, environment, &inner_need)?;
        let extended = rows.rows.iter().map(|row| {
            let inner = environment.in_row(context, &rows, row);
            let added = collected(values.iter().map(|value| self.scalar(&value.expression, &inner)))?;
            Ok(row[..width].iter().cloned().chain(added).chain(row[width..].iter().cloned()).collect())
        });
        let extended = collected_early(extended)?;
        let fetched = rows
            .fetched
            .as_ref()
            .map(|fetched| fetched.iter().copied().chain(values.iter().map(|_| true)).collect::<Vec<bool>>().into());
        Ok(Rc::new(Rows { columns: table.columns.clone(), fetched, ..rows.with_rows(extended) }))
    }

    fn only_columns(
        &self,
        table: &'q Table,
        of: &'q Table,
        context: u32,
        values: &'q [NamedScalar],
        environment: &Environment,
    ) -> Result<Rc<Rows>> {
        let scan = self.scan_all(values.iter().map(|value| &value.expression), context);
        let rows = self.table(of, environment, &Need::Only(scan))?;
        let selected = rows.rows.iter().map(|row| {
            let inner = environment.in_row(context, &rows, row);
            collected(values.iter().map(|value| self.scalar(&value.expression, &inner))).map(Rc::from)
        });
        Ok(Rc::new(Rows::new(&table.columns, collected_early(selected)?)))
    }

    /// Evaluates TOPN: the first rows, including all rows that tie with the last of them.
    fn first_rows(
        &self,
        count: &'q Scalar,
        of: &'q Table,
        context: u32,
        order: &'q [BoundOrder],
        environment: &Environment,
        need: &Need,
    ) -> Result<Rc<Rows>> {
        let wanted = to_number(&self.scalar(count, environment)?, count.place)?.max(0.0) as usize;
        let scan = self.scan_all(order.iter().map(|key| &key.expression), context);
        let rows = self.table(of, environment, &need.and(&scan))?;
        let mut keyed = self.keyed(&rows, context, order, environment)?;
        keyed.sort_by(|(one, _), (two, _)| compare_keys(one, two, order));
        let mut end = wanted.min(keyed.len());
        if let (Some(last), false) = (end.checked_sub(1), order.is_empty()) {
            let ties =
                |other: &&super::rows::KeyedRow| compare_keys(&keyed[last].0, &other.0, order) == Ordering::Equal;
            end += keyed[end..].iter().take_while(ties).count();
        }
        keyed.truncate(end);
        Ok(Rc::new(rows.with_rows(keyed.into_iter().map(|(_, row)| row).collect())))
    }

    // Several tables

    fn combined(
        &self,
        function: &'static Function,
        table: &Table,
        tables: &'q [Table],
        environment: &Environment,
    ) -> Result<Rc<Rows>> {
        let all = collected(tables.iter().map(|table| self.table(table, environment, &Need::All)))?;
        let own = |rows: &Rc<Rows>| -> Vec<Rc<[Datum]>> {
            let width = rows.columns.len();
            rows.rows.iter().map(|row| if row.len() == width { Rc::clone(row) } else { row[..width].into() }).collect()
        };
        let Some((first, others)) = all.split_first() else { return Err(not_supported(function.name, table.place)) };
        let mut rows = own(first);
        for other in others {
            let other = own(other);
            match function.operation {
                Operation::Union => {
                    self.limited(rows.len() + other.len(), table.place)?;
                    rows.extend(other);
                }
                Operation::CrossJoin => {
                    let width = rows.first().map_or(0, |row| row.len()) + other.first().map_or(0, |row| row.len());
                    self.room_for(rows.len().saturating_mul(other.len()), width, table.place)?;
                    let pairs =
                        rows.iter().flat_map(|one| other.iter().map(|two| [&one[..], &two[..]].concat().into()));
                    rows = pairs.collect();
                }
                _ => {
                    let set: HashSet<&[Datum]> = other.iter().map(|row| &row[..]).collect();
                    let keeps = function.operation == Operation::Intersect;
                    rows.retain(|row| set.contains(&row[..]) == keeps);
                }
            }
        }
        // The definition of DAX leaves open whether such rows restrict the tables on the one side.
        let expansion = all.iter().flat_map(|rows| rows.expansion.iter()).map(|one| one.broken()).collect();
        Ok(Rc::new(Rows { expansion, ..Rows::new(&table.columns, rows) }))
    }

    fn generated(
        &self,
        table: &Table,
        of: &'q Table,
        context: u32,
        row_table: &'q Table,
        environment: &Environment,
    ) -> Result<Rc<Rows>> {
        let rows = self.table(of, environment, &Need::All)?;
        let width = rows.columns.len();
        let mut count = 0;
        let mut expansion: Vec<Expansion> = rows.expansion.iter().map(|one| one.broken()).collect();
        let generated = rows.rows.iter().map(|row| {
            let inner = self.table(row_table, &environment.in_row(context, &rows, row), &Need::All)?;
            let inner_width = inner.columns.len();
            count += inner.rows.len();
            for one in inner.expansion.iter().map(|one| one.broken()) {
                if !expansion.contains(&one) {
                    expansion.push(one);
                }
            }
            self.limited(count, table.place)?;
            self.room_for(inner.rows.len(), width + inner_width, table.place)?;
            let pairs = inner.rows.iter().map(|other| [&row[..width], &other[..inner_width]].concat().into());
            Ok(pairs.collect::<Vec<Rc<[Datum]>>>())
        });
        let generated: Vec<Rc<[Datum]>> = collected_early(generated)?.into_iter().flatten().collect();
        Ok(Rc::new(Rows { expansion: expansion.into(), ..Rows::new(&table.columns, generated) }))
    }

    /// Evaluates TREATAS: the rows whose values exist in the given columns of the model.
    fn treated_as(
        &self,
        table: &Table,
        of: &'q Table,
        columns: &[DimensionId],
        environment: &Environment,
    ) -> Result<Rc<Rows>> {
        if columns.iter().any(|column| column.cube != columns[0].cube) {
            return Err(not_supported("TREATAS of columns of several tables outside of a filter", table.place));
        }
        let everywhere = FilterContext::new(self.filter_list(Vec::new()));
        let rows = self.table(of, environment, &Need::All);
        let existing: HashSet<Vec<Datum>> =
            self.values_of(columns, true, &everywhere, table.place)?.into_iter().collect();
        let rows = rows?;
        let width = columns.len();
        let rows = rows.rows.iter().map(|row| row[..width].to_vec()).filter(|row| existing.contains(row));
        Ok(Rc::new(Rows::new(&table.columns, rows.map(Rc::from).collect())))
    }
}
