//! Aggregates of values, iterators and ranks.
//!
//! In: values of rows. Out: one value. BLANKs are skipped where DAX skips them. An aggregate of no values is BLANK.

use std::collections::HashSet;
use std::rc::Rc;

use super::environment::Environment;
use super::operators::{add, compare_as_zero, divide, multiply};
use super::rows::{Rows, compare_keys};
use super::walk::{Need, Node, Scan};
use super::{Datum, Evaluator, Result, collected, invalid_value, not_supported};
use crate::bound::{Iteration, Scalar};
use crate::functions::{Aggregation, Operation};
use crate::place::Place;

/// The values that RANKX compares, in ascending order. BLANK is replaced by 0, or by `""` among strings.
pub(super) struct Ranked {
    all: Vec<Datum>,
    /// The same values without duplicates.
    distinct: Vec<Datum>,
}

/// Computes an aggregate of values.
pub(super) fn fold<'d>(
    aggregation: Aggregation,
    values: impl Iterator<Item = &'d Datum> + Clone,
    place: Place,
) -> Result<Datum> {
    let present = values.clone().filter(|value| !value.is_blank());
    Ok(match aggregation {
        Aggregation::Sum => sum(present, place)?,
        Aggregation::Average => {
            let count = present.clone().count();
            match count {
                0 => Datum::Blank,
                count => divide(&sum(present, place)?, &Datum::Integer(count as i64), place)?,
            }
        }
        Aggregation::Min => present.min_by(|one, two| one.compare(two)).cloned().unwrap_or(Datum::Blank),
        Aggregation::Max => present.max_by(|one, two| one.compare(two)).cloned().unwrap_or(Datum::Blank),
        Aggregation::Count | Aggregation::CountA => count(present.count()),
        Aggregation::CountBlank => count(values.filter(|value| value.is_blank()).count()),
        Aggregation::DistinctCount => count(values.collect::<HashSet<_>>().len()),
        Aggregation::DistinctCountNoBlank => count(present.collect::<HashSet<_>>().len()),
    })
}

/// Computes an aggregate of values, each with the number of rows that have it.
pub(super) fn fold_counted(aggregation: Aggregation, rows: &[Vec<Datum>], place: Place) -> Result<Datum> {
    let (blank, present): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row[0].is_blank());
    let product = |row: &&Vec<Datum>| match &row[0] {
        // A string is refused by the sum.
        text @ Datum::Text(_) => Ok(text.clone()),
        value => multiply(value, &row[1], place),
    };
    let total = || -> Result<Datum> { sum(present.iter().map(product).collect::<Result<Vec<_>>>()?.iter(), place) };
    let count = |rows: &[&Vec<Datum>]| sum(rows.iter().map(|row| &row[1]), place);
    match aggregation {
        Aggregation::Sum => total(),
        Aggregation::Average => divide(&total()?, &count(&present)?, place),
        Aggregation::CountBlank => count(&blank),
        Aggregation::Count | Aggregation::CountA => count(&present),
        _ => fold(aggregation, rows.iter().map(|row| &row[0]), place),
    }
}

/// Returns a number of rows as a value: BLANK if there are none.
pub(super) fn count(rows: usize) -> Datum {
    if rows == 0 { Datum::Blank } else { Datum::Integer(rows as i64) }
}

fn sum<'d>(values: impl Iterator<Item = &'d Datum>, place: Place) -> Result<Datum> {
    let mut total = Datum::Blank;
    for value in values {
        if let Datum::Text(text) = value {
            return Err(invalid_value(format!("cannot add the string \"{text}\""), place));
        }
        total = add(&total, value, place)?;
    }
    Ok(total)
}

impl<'q> Evaluator<'q> {
    pub(super) fn iterate(&self, iteration: &'q Iteration, environment: &Environment, place: Place) -> Result<Datum> {
        match iteration.function.operation {
            Operation::Iterate(aggregation) => {
                if let Some(value) = self.computed_iterator(iteration, environment, place)? {
                    return Ok(value);
                }
                let values = self.values_for_rows(iteration, environment)?;
                fold(aggregation, values.iter().map(|(value, _)| value), place)
            }
            Operation::RankX => self.rank(iteration, environment, place),
            Operation::ConcatenateX => self.concatenated(iteration, environment),
            _ => Err(not_supported(iteration.function.name, place)),
        }
    }

    /// Evaluates the expression of an iterator for each row, and the keys of its order.
    fn values_for_rows(&self, iteration: &'q Iteration, environment: &Environment) -> Result<Vec<(Datum, Vec<Datum>)>> {
        let Iteration { table, context, expression, order, .. } = iteration;
        let scalars = std::iter::once(expression).chain(order.iter().map(|key| &key.expression));
        let need = Need::Only(self.scan_all(scalars, *context));
        let rows = self.table(table, environment, &need)?;
        let values = rows.rows.iter().map(|row| {
            let inner = environment.in_row(*context, &rows, row);
            let value = self.scalar(expression, &inner)?;
            let keys = collected(order.iter().map(|key| self.scalar(&key.expression, &inner)))?;
            Ok((value, keys))
        });
        collected_early(values)
    }

    fn concatenated(&self, iteration: &'q Iteration, environment: &Environment) -> Result<Datum> {
        let mut values = self.values_for_rows(iteration, environment)?;
        values.sort_by(|(_, one), (_, two)| compare_keys(one, two, &iteration.order));
        let delimiter = match iteration.arguments.first() {
            Some(Some(delimiter)) => self.text(delimiter, environment)?,
            _ => String::new(),
        };
        let place = iteration.expression.place;
        let texts = values.iter().map(|(value, _)| super::operators::to_text(value, place));
        let texts = texts.collect::<Result<Vec<String>>>()?;
        let length = texts.iter().map(|text| text.len() + delimiter.len()).sum();
        self.string_of(length, place)?;
        Ok(if texts.is_empty() { Datum::Blank } else { Datum::Text(texts.join(&delimiter).into()) })
    }

    fn rank(&self, iteration: &'q Iteration, environment: &Environment, place: Place) -> Result<Datum> {
        let value = match iteration.arguments.first() {
            Some(Some(value)) => self.scalar(value, environment),
            _ => {
                let current = self.current_row(iteration, environment, place)?;
                self.scalar(&iteration.expression, &current)
            }
        };
        let values = self.rank_values(iteration, environment);
        let (value, values) = (value?, values?);
        let [direction, ties] = iteration.words[..] else { return Err(not_supported("RANKX", place)) };
        let ranked = self.ranked(&values, place)?;
        let sorted = if ties == "DENSE" { &ranked.distinct } else { &ranked.all };
        let smaller = sorted.partition_point(|other| compare_as_zero(other, &value).is_lt());
        let rank = match direction {
            "DESC" => sorted.len() - sorted.partition_point(|other| compare_as_zero(other, &value).is_le()),
            _ => smaller,
        };
        Ok(Datum::Integer(rank as i64 + 1))
    }

    /// Returns the values of RANKX in order. The values of a cached table are sorted only once.
    fn ranked(&self, values: &Rc<Rows>, place: Place) -> Result<Rc<Ranked>> {
        let address = Rc::as_ptr(values) as usize;
        if let Some((_, ranked)) = self.ranks.borrow().get(&address) {
            return Ok(Rc::clone(ranked));
        }
        self.steps(values.rows.len(), place)?;
        let is_text = |value: &Datum| matches!(value, Datum::Text(_));
        let has_text = values.rows.iter().any(|row| is_text(&row[0]));
        let zero = if has_text { Datum::Text("".into()) } else { Datum::Integer(0) };
        let present = |value: &Datum| if value.is_blank() { zero.clone() } else { value.clone() };
        let mut all: Vec<Datum> = values.rows.iter().map(|row| present(&row[0])).collect();
        all.sort_by(Datum::compare);
        let mut distinct = all.clone();
        distinct.dedup_by(|one, two| one.compare(two).is_eq());
        let ranked = Rc::new(Ranked { all, distinct });
        if Rc::strong_count(values) > 1 {
            self.hold(2 * values.rows.len() * size_of::<Datum>(), place)?;
            self.ranks.borrow_mut().insert(address, (Rc::clone(values), Rc::clone(&ranked)));
        }
        Ok(ranked)
    }

    /// Returns the environment in which RANKX evaluates the value to rank. The innermost row context around RANKX
    /// replaces the iterated row.
    fn current_row(&self, iteration: &'q Iteration, environment: &Environment, place: Place) -> Result<Environment> {
        let Some(frame) = environment.visible_frames().last() else { return Ok(environment.clone()) };
        let reads_columns = !self.scan(Node::Scalar(&iteration.expression), iteration.context).columns.is_empty();
        if reads_columns && frame.table.columns != iteration.table.columns {
            return Err(not_supported("RANKX of a column in the rows of another table", place));
        }
        Ok(environment.in_row(iteration.context, &frame.table, &frame.row))
    }

    /// Evaluates the expression of RANKX for all rows. The result is cached if it does not depend on the current row.
    fn rank_values(&self, iteration: &'q Iteration, environment: &Environment) -> Result<Rc<Rows>> {
        let depends = |scalar: &'q Scalar| {
            let scan = self.scan(Node::Scalar(scalar), iteration.context);
            scan.is_open
        };
        let table = self.scan(Node::Table(&iteration.table), iteration.context);
        let is_fixed = !table.is_open && !depends(&iteration.expression) && !self.sees_rows(&table, environment);
        let make = || {
            let values = self.values_for_rows(iteration, environment)?;
            let rows = values.into_iter().map(|(value, _)| Rc::from([value])).collect();
            Ok(Rc::new(Rows::new(&iteration.table.columns, rows)))
        };
        let is_fixed = is_fixed && !self.scan(Node::Scalar(&iteration.expression), iteration.context).has_transition;
        if is_fixed {
            self.remembered(std::ptr::from_ref(iteration) as usize, environment, &Need::All, make)
        } else {
            make()
        }
    }

    /// Returns whether the scanned expression turns current rows into filters.
    pub(super) fn sees_rows(&self, scan: &Scan, environment: &Environment) -> bool {
        scan.has_transition && environment.has_rows()
    }
}

/// Collects the values of rows. It stops after 64 rows whose data is missing: the queries that these rows request
/// return the data of all rows.
pub(super) fn collected_early<T>(values: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut misses = 0;
    let mut all = Vec::new();
    for value in values {
        match value {
            Err(super::Halt::Missing) if misses < 64 => misses += 1,
            value => all.push(value?),
        }
    }
    if misses > 0 { Err(super::Halt::Missing) } else { Ok(all) }
}
