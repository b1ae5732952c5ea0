//! Evaluates RANKX, ALLSELECTED, UNION and the other set functions, and date functions, each by its definition.

use serde_json::{Value as Json, json};

use super::evaluator::{Context, Evaluator, Restriction, Rows, compare};
use super::expression::{Dates, Rank};
use super::star::{Column, DAY, Row, number, value};

impl Evaluator {
    /// Returns the rank of the expression in the current context among its values for the rows of the table.
    pub(super) fn rank(&self, rank: &Rank, context: &Context, current: &[Row]) -> Json {
        let own = number(&self.scalar(&rank.expression, context, current));
        let rows = self.table(&rank.table, context, current);
        let inner = context.in_rows();
        let mut before: Vec<Json> = Vec::new();
        for row in &rows.rows {
            let found = number(&self.scalar(&rank.expression, &inner, &[current, &[rows.current(row)]].concat()));
            let ordering = compare(&found, &own);
            let is_before = if rank.is_ascending { ordering.is_lt() } else { ordering.is_gt() };
            let is_repeated = rank.is_dense && before.iter().any(|other| compare(other, &found).is_eq());
            if is_before && !is_repeated {
                before.push(found);
            }
        }
        json!((before.len() + 1) as f64)
    }

    /// Returns the filter by the days of a function of time. The current rows are filters in the context.
    pub(super) fn dates(&self, dates: Dates, context: &Context) -> Restriction {
        let days = |context: &Context| -> Vec<i64> {
            self.values(&[DAY], context, false).iter().filter_map(|row| day(&row[0])).collect()
        };
        let seen = days(context);
        let is_in = |day: i64| match dates {
            Dates::Between(from, to) => (from..=to).contains(&day),
            Dates::Add(shift) => seen.contains(&(day - shift)),
            // All days are in one year.
            Dates::YearToDate => seen.iter().max().is_some_and(|last| day <= *last),
        };
        let all = self.values(&[DAY], &Context::default(), false);
        let allowed = all.into_iter().filter(|row| day(&row[0]).is_some_and(is_in)).collect();
        Restriction { columns: vec![DAY], allowed }
    }
}

impl Rows {
    /// Combines tables of one column. INTERSECT and EXCEPT keep the duplicates of the first table.
    pub(super) fn combined(mut self, function: &str, other: Rows) -> Rows {
        let column = self.columns[0];
        let is_in_other = |row: &Row| other.rows.iter().any(|found| value(found, column) == value(row, column));
        match function {
            "UNION" => self.rows.extend(other.rows),
            "INTERSECT" => self.rows.retain(is_in_other),
            _ => self.rows.retain(|row| !is_in_other(row)),
        }
        self
    }
}

impl Context {
    /// Returns the context inside an iteration over rows or groups. The outermost iteration stores its filters, which
    /// ALLSELECTED restores.
    pub(super) fn in_rows(&self) -> Context {
        let selected = self.selected.clone().unwrap_or_else(|| self.filters.clone());
        Context { selected: Some(selected), ..self.clone() }
    }

    /// Returns the context in which ALLSELECTED is evaluated as a table.
    pub(super) fn of_selection(&self) -> Context {
        let filters = self.selected.clone().unwrap_or_else(|| self.filters.clone());
        Context { filters, ..Context::default() }
    }

    /// Replaces the filters of a column by those around the outermost rows or groups.
    pub(super) fn restore(&mut self, column: Column) {
        let Some(selected) = self.selected.clone() else { return };
        self.remove(&|other| other == column);
        self.filters.extend(selected.into_iter().filter(|filter| filter.columns.contains(&column)));
    }
}

/// Returns the day of a date in January 2024.
fn day(value: &Json) -> Option<i64> {
    value.as_str()?.get(8..10)?.parse().ok()
}
