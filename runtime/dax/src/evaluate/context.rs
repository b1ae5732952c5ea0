//! Filter contexts: the allowed combinations of columns, and the values of columns that a row context fixes.
//!
//! In: filters and rows. Out: [`FilterContext`]. A pin is a filter by the value that a column has in the current row.
//! Pins are separate from other filters, so that one query returns the values for all rows.

use std::rc::Rc;

use terrane_compiler::model::{CubeId, DimensionId};
use terrane_compiler::query::Filter;

use super::Datum;
use crate::bound::Relationship;

/// The filters under which an expression is evaluated.
#[derive(Debug, Clone)]
pub(super) struct FilterContext {
    pub filters: Rc<FilterList>,
    pub pins: Rc<[Pin]>,
    /// The joins that filters follow instead of other joins to the same tables.
    pub relationships: Rc<[Relationship]>,
}

impl FilterContext {
    pub(super) fn new(filters: Rc<FilterList>) -> Self {
        FilterContext { filters, pins: Rc::from([]), relationships: Rc::from([]) }
    }

    /// Returns whether two contexts of one evaluation have the same filters.
    pub(super) fn is_same(&self, other: &FilterContext) -> bool {
        self.filters.id == other.filters.id && self.pins == other.pins && self.relationships == other.relationships
    }
}

/// Filters that must all hold.
#[derive(Debug)]
pub(super) struct FilterList {
    /// The number of the list. Within one evaluation, equal lists have the same number.
    pub id: u32,
    pub filters: Vec<Rc<Restriction>>,
}

/// A table whose rows a filter represents. In DAX, such a filter restricts the tables on the one side too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Expansion {
    pub table: CubeId,
    /// False if a part of the filter was removed. The rows of tables on the one side are then unknown.
    pub is_whole: bool,
}

impl Expansion {
    pub(super) fn of(table: CubeId) -> Self {
        Expansion { table, is_whole: true }
    }

    pub(super) fn broken(self) -> Self {
        Expansion { is_whole: false, ..self }
    }
}

/// A column that has one value, which comes from the current row or group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pin {
    pub column: DimensionId,
    pub value: Datum,
    /// The column's table, if the column is a part of that table's key. The key then stands for all columns of the row.
    pub row_of: Option<CubeId>,
    /// The column's table, if the value is from a row of that table.
    pub expansion: Option<Expansion>,
}

/// A filter of one or several columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Restriction {
    pub columns: Vec<DimensionId>,
    /// The table, if the filter allows rows of a table, which it identifies by their key. If only some of the filter's
    /// columns in this table lose their filters, the whole filter stays.
    pub rows_of: Option<CubeId>,
    /// The tables whose rows the filter allows.
    pub expansion: Vec<Expansion>,
    pub allowed: Allowed,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Allowed {
    Condition(Filter),
    /// The allowed combinations of values, sorted and without duplicates. They may depend on the current row.
    Rows(Vec<Vec<Datum>>),
    /// The dates of one column from the first to the last one. They may depend on the current row.
    Dates {
        first: Datum,
        last: Datum,
    },
}

impl Restriction {
    /// Returns a filter of columns.
    pub(super) fn of_columns(columns: Vec<DimensionId>, allowed: Allowed) -> Self {
        Restriction { columns, rows_of: None, expansion: Vec::new(), allowed }
    }

    /// Returns whether the allowed values may depend on the current row, because they are a list or a range.
    pub(super) fn lists_values(&self) -> bool {
        !matches!(self.allowed, Allowed::Condition(_))
    }

    /// Returns whether the filter has one of the columns.
    pub(super) fn overlaps(&self, is_removed: &dyn Fn(DimensionId) -> bool) -> bool {
        self.columns.iter().any(|column| is_removed(*column))
    }

    /// Returns the filter without some of its columns, or `None` if no column is left. Fails if the columns cannot be
    /// separated.
    pub(super) fn without(
        self: &Rc<Self>,
        is_removed: &dyn Fn(DimensionId) -> bool,
    ) -> Result<Option<Rc<Restriction>>, Inseparable> {
        if !self.overlaps(is_removed) {
            return Ok(Some(Rc::clone(self)));
        }
        let is_retained: Vec<bool> = self.columns.iter().map(|column| !is_removed(*column)).collect();
        if !is_retained.contains(&true) {
            return Ok(None);
        }
        match &self.allowed {
            _ if self.rows_of.is_some_and(|cube| self.columns.iter().any(|c| c.cube == cube && !is_removed(*c))) => {
                Ok(Some(Rc::clone(self)))
            }
            // A range of dates has one column, which is not separated.
            Allowed::Condition(_) | Allowed::Dates { .. } => Err(Inseparable),
            Allowed::Rows(rows) => Ok(Some(Rc::new(self.projected(rows, &is_retained)))),
        }
    }

    fn projected(&self, rows: &[Vec<Datum>], is_retained: &[bool]) -> Restriction {
        let columns = self
            .columns
            .iter()
            .zip(is_retained)
            .filter(|(_, retained)| **retained)
            .map(|(column, _)| *column)
            .collect();
        let project = |row: &Vec<Datum>| -> Vec<Datum> {
            row.iter().zip(is_retained).filter(|(_, retained)| **retained).map(|(value, _)| value.clone()).collect()
        };
        let allowed = Allowed::Rows(distinct(rows.iter().map(project).collect()));
        let expansion = self.expansion.iter().map(|one| one.broken()).collect();
        Restriction { columns, rows_of: None, expansion, allowed }
    }

    /// Returns the filter with only the wanted columns, or `None` if it has none of them. Fails if the columns cannot
    /// be separated.
    pub(super) fn only(
        self: &Rc<Self>,
        is_wanted: &dyn Fn(DimensionId) -> bool,
    ) -> Result<Option<Rc<Restriction>>, Inseparable> {
        let is_retained: Vec<bool> = self.columns.iter().map(|column| is_wanted(*column)).collect();
        match (&self.allowed, is_retained.contains(&true), is_retained.contains(&false)) {
            (_, false, _) => Ok(None),
            (_, true, false) => Ok(Some(Rc::clone(self))),
            (Allowed::Rows(rows), true, true) => Ok(Some(Rc::new(self.projected(rows, &is_retained)))),
            (Allowed::Condition(_) | Allowed::Dates { .. }, true, true) => Err(Inseparable),
        }
    }
}

/// The error if a condition over several columns would have to be split.
#[derive(Debug)]
pub(super) struct Inseparable;

/// Sorts rows and removes duplicates.
pub(super) fn distinct(mut rows: Vec<Vec<Datum>>) -> Vec<Vec<Datum>> {
    rows.sort_by(|one, two| compare_rows(one, two));
    rows.dedup();
    rows
}

pub(super) fn compare_rows(one: &[Datum], two: &[Datum]) -> std::cmp::Ordering {
    let mut compared = one.iter().zip(two).map(|(one, two)| one.order(two));
    compared.find(|ordering| ordering.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
}
