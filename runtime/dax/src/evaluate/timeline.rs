//! Values of a measure by date, for filters that allow a range of dates.
//!
//! In: the rows of a query by date. Out: the combined value of a range. A tree of combined values makes a range as cheap
//! as a single date: a running total over many dates needs neither lists of dates nor a step for each date of a range.

use std::collections::HashMap;
use std::rc::Rc;

use terrane_compiler::model::{CubeId, DimensionId};

use super::aggregate::fold;
use super::context::FilterList;
use super::source::Item;
use super::{Datum, Evaluator, Result};
use crate::functions::Aggregation;
use crate::place::Place;

/// The values of a measure in the order of their dates.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The dates, ascending.
    dates: Vec<Datum>,
    /// The values of the dates from the middle to the end. Each node before them combines its two children, which are at
    /// twice its index and at the next one.
    nodes: Vec<Datum>,
}

/// The timelines of a measure, by the values of the pinned columns.
pub(super) type Timelines = HashMap<Vec<Datum>, Timeline>;

impl Timeline {
    /// Creates a timeline of rows with a date and a value. Rows without a date are left out.
    fn new(mut rows: Vec<Vec<Datum>>, aggregation: Aggregation, place: Place) -> Result<Timeline> {
        rows.retain(|row| !row[0].is_blank());
        rows.sort_by(|one, two| one[0].compare(&two[0]));
        let count = rows.len();
        let mut nodes = vec![Datum::Blank; count];
        let mut dates = Vec::with_capacity(count);
        for row in rows {
            let [date, value] = <[Datum; 2]>::try_from(row).unwrap_or([Datum::Blank, Datum::Blank]);
            dates.push(date);
            nodes.push(value);
        }
        for at in (1..count).rev() {
            nodes[at] = fold(aggregation, nodes[2 * at..2 * at + 2].iter(), place)?;
        }
        Ok(Timeline { dates, nodes })
    }

    /// Returns the combined value of the dates from `first` to `last`.
    fn value(&self, first: &Datum, last: &Datum, aggregation: Aggregation, place: Place) -> Result<Datum> {
        let count = self.dates.len();
        let mut low = self.dates.partition_point(|date| date.compare(first).is_lt()) + count;
        let mut high = self.dates.partition_point(|date| date.compare(last).is_le()) + count;
        let mut parts = Vec::new();
        while low < high {
            if low % 2 == 1 {
                parts.push(&self.nodes[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                parts.push(&self.nodes[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        fold(aggregation, parts.into_iter(), place)
    }
}

/// A range of dates of a column, both ends included.
pub(super) struct DateRange<'r> {
    pub column: DimensionId,
    pub first: &'r Datum,
    pub last: &'r Datum,
}

impl<'q> Evaluator<'q> {
    /// Returns the combined value of `item` in a range of dates. `keys` are the pinned columns, and `values` their values.
    pub(super) fn value_in_range(
        &self,
        item: &Item,
        aggregation: Aggregation,
        range: &DateRange<'_>,
        (keys, values): (Vec<DimensionId>, &[Datum]),
        (facts, filters): (&[CubeId], &FilterList),
        place: Place,
    ) -> Result<Datum> {
        let each = Item::Each { column: range.column, of: Box::new(item.clone()) };
        let timelines = self.timelines_of(each, aggregation, keys, facts, filters, place)?;
        let Some(timeline) = timelines.get(values) else { return Ok(Datum::Blank) };
        timeline.value(range.first, range.last, aggregation, place)
    }

    fn timelines_of(
        &self,
        each: Item,
        aggregation: Aggregation,
        keys: Vec<DimensionId>,
        facts: &[CubeId],
        filters: &FilterList,
        place: Place,
    ) -> Result<Rc<Timelines>> {
        let key = (each, keys, filters.id);
        if let Some(found) = self.timelines.borrow().get(&key) {
            return Ok(Rc::clone(found));
        }
        let index = self.index(key.0.clone(), key.1.clone(), facts, filters, place)?;
        let mut timelines = Timelines::new();
        for (values, rows) in index.groups() {
            self.steps(rows.len(), place)?;
            self.hold(3 * rows.len() * size_of::<Datum>(), place)?;
            timelines.insert(values.clone(), Timeline::new(rows.clone(), aggregation, place)?);
        }
        let timelines = Rc::new(timelines);
        self.timelines.borrow_mut().insert(key, Rc::clone(&timelines));
        Ok(timelines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_a_range_is_combined_from_its_dates() {
        for count in 0..12_i64 {
            let row = |at: i64| vec![Datum::DateTime(at), Datum::Integer(1 << at)];
            let rows = (0..count).rev().map(row).chain([vec![Datum::Blank, Datum::Integer(-1)]]).collect();
            let timeline = Timeline::new(rows, Aggregation::Sum, Place::default()).expect("integers add up");
            for (first, last) in (0..13).flat_map(|first| (0..13).map(move |last| (first, last))) {
                let inside: Vec<i64> = (first..=last).filter(|at| *at < count).map(|at| 1 << at).collect();
                let expected =
                    if inside.is_empty() { Datum::Blank } else { Datum::Integer(inside.iter().sum::<i64>()) };
                let (first, last) = (Datum::DateTime(first), Datum::DateTime(last));
                let found = timeline.value(&first, &last, Aggregation::Sum, Place::default());
                assert_eq!(found.expect("integers add up"), expected, "{first:?} to {last:?} of {count}");
            }
        }
    }
}
