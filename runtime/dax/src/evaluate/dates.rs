//! Time functions: tables of dates that depend on the dates in the filter context.
//!
//! In: a column of dates. Out: the values of the column that are in a period of time, regardless of its filters.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, ToSpan as _};
use terrane_compiler::model::DimensionId;
use terrane_compiler::query::Filter;
use terrane_compiler::types::Operator;

use super::context::{Allowed, FilterContext, Restriction, distinct};
use super::environment::Environment;
use super::operators::{to_number, to_text};
use super::rows::Rows;
use super::walk::{Need, Node};
use super::{Datum, Evaluator, Result, invalid_value, not_supported};
use crate::bound::{Scalar, Table, TableKind};
use crate::functions::Operation;
use crate::place::Place;

/// The dates of a function of time.
#[derive(Debug, Default)]
struct FoundDates {
    dates: Vec<DateTime>,
    /// True if they are all dates of their column from the first to the last one.
    is_period: bool,
}

/// The largest number of days from the start of a year to one of its days.
const LONGEST_YEAR: i32 = 367;

impl<'q> Evaluator<'q> {
    pub(super) fn dates(&self, table: &'q Table, environment: &Environment) -> Result<Rc<Rows>> {
        self.dates_found(table, environment).map(|found| rows_of(table, found.dates))
    }

    fn dates_found(&self, table: &'q Table, environment: &Environment) -> Result<FoundDates> {
        let TableKind::Dates { function, column, dates, arguments, words } = &table.kind else {
            return Err(not_supported("a table of dates", table.place));
        };
        let place = table.place;
        if function.operation == Operation::DatesBetween {
            let dates = self.dates_between(*column, arguments, environment, place)?;
            let is_period = !dates.is_empty();
            return Ok(FoundDates { dates, is_period });
        }
        let argument = |at: usize| match arguments.get(at) {
            Some(Some(scalar)) => self.scalar(scalar, environment),
            _ => Ok(Datum::Blank),
        };
        let moved = match function.operation {
            Operation::SamePeriodLastYear => (-1).years(),
            Operation::DateAdd => {
                let number = to_number(&argument(0)?, place)?.trunc() as i64;
                span(number, words.first().copied(), place)?
            }
            _ => Span::new(),
        };
        let current = match dates {
            Some(table) => self.table(table, environment, &Need::All).map(|rows| moments_of(&rows)),
            // A column of dates stands for CALCULATETABLE(DISTINCT(column)), which turns the current rows into filters.
            None => {
                let inner = self.transitioned(environment, place)?;
                self.moments(*column, &inner.context, place)
            }
        };
        let (all, current): (Vec<DateTime>, Vec<DateTime>) = if self.is_filtered(*column, dates.is_some(), environment)
        {
            // The filters bound the dates, so that only a part of the column is read.
            let current: Vec<DateTime> = current?;
            let Some((from, to)) = reach(function.operation, moved, &current) else { return Ok(FoundDates::default()) };
            let filters = self.range(*column, Some(from), Some(to), place)?;
            (self.moments(*column, &FilterContext::new(self.filter_list(filters)), place)?, current)
        } else {
            let all = self.moments(*column, &FilterContext::new(self.filter_list(Vec::new())), place);
            (all?, current?)
        };
        let found: Vec<DateTime> = match function.operation {
            Operation::DatesYtd => {
                let end = to_text(&argument(0)?, place)?;
                let year_end = if end.is_empty() { (12, 31) } else { year_end(&end, place)? };
                let Some(last) = current.iter().max() else { return Ok(FoundDates::default()) };
                let start = start_of_year(last.date(), year_end);
                all.iter().copied().filter(|date| date.date() >= start && date <= last).collect()
            }
            Operation::PreviousYear => {
                let end = to_text(&argument(0)?, place)?;
                let year_end = if end.is_empty() { (12, 31) } else { year_end(&end, place)? };
                let Some(first) = current.iter().min() else { return Ok(FoundDates::default()) };
                let this_year = start_of_year(first.date(), year_end);
                let before = this_year.yesterday().map(|last| start_of_year(last, year_end)).unwrap_or(this_year);
                all.iter().copied().filter(|date| (before..this_year).contains(&date.date())).collect()
            }
            Operation::SamePeriodLastYear | Operation::DateAdd => shifted(&all, &current, moved),
            _ => return Err(not_supported(function.name, place)),
        };
        let is_period = found.iter().min().zip(found.iter().max()).is_some_and(|(first, last)| {
            all.iter().filter(|date| (first..=last).contains(date)).count() == found.len()
        });
        Ok(FoundDates { dates: found, is_period })
    }

    /// Converts a table of dates to a filter. If the dates are the same for all rows, it is a condition, so that queries
    /// under it have its bounds on time. Returns `None` if the dates of the caller are masked.
    pub(super) fn condition_of_dates(
        &self,
        table: &'q Table,
        environment: &Environment,
    ) -> Result<Option<Restriction>> {
        let TableKind::Dates { function, column, arguments, .. } = &table.kind else { return Ok(None) };
        let (column, place) = (*column, table.place);
        if self.access.mask(column).is_some() {
            return Ok(None);
        }
        if function.operation == Operation::DatesBetween && self.is_fixed(arguments, environment) {
            let (start, end) = self.ends(arguments, environment)?;
            if let Some(range) = self.range(column, start, end, place)?.first() {
                return Ok(Some((**range).clone()));
            }
        }
        if let Some((first, last)) = self.period(table, environment)? {
            return self.restriction_to(column, first, last, environment, place).map(Some);
        }
        let FoundDates { dates, is_period } = self.dates_found(table, environment)?;
        if let (true, Some(first), Some(last)) = (is_period, dates.iter().min(), dates.iter().max()) {
            return self.restriction_to(column, *first, *last, environment, place).map(Some);
        }
        let dates = distinct(dates.into_iter().map(|date| vec![Datum::of_moment(date)]).collect());
        let allowed = match depends_on_row(environment) {
            true => Allowed::Rows(dates),
            false => Allowed::Condition(self.one_of(&[column], &dates, place)?),
        };
        Ok(Some(Restriction::of_columns(vec![column], allowed)))
    }

    /// Returns the first and the last date of a function whose dates are all dates of the column in a period: DATESYTD or
    /// PREVIOUSYEAR. The last date is before the first one if there are no dates. Returns `None` for other functions.
    fn period(&self, table: &'q Table, environment: &Environment) -> Result<Option<(DateTime, DateTime)>> {
        let TableKind::Dates { function, column, dates, arguments, .. } = &table.kind else { return Ok(None) };
        let (operation, place) = (function.operation, table.place);
        if !matches!(operation, Operation::DatesYtd | Operation::PreviousYear) {
            return Ok(None);
        }
        let end = match arguments.first() {
            Some(Some(scalar)) => self.text(scalar, environment)?,
            _ => String::new(),
        };
        let year_end = if end.is_empty() { (12, 31) } else { year_end(&end, place)? };
        let current = match dates {
            Some(table) => {
                let rows = self.table(table, environment, &Need::All)?;
                moments_of(&rows)
            }
            None => self.moments(*column, &self.transitioned(environment, place)?.context, place)?,
        };
        let midnight = |date: Date| date.to_datetime(Time::midnight());
        let period = match operation {
            Operation::DatesYtd => {
                current.iter().max().map(|last| (midnight(start_of_year(last.date(), year_end)), *last))
            }
            _ => current.iter().min().map(|first| {
                let this_year = start_of_year(first.date(), year_end);
                let before = this_year.yesterday().map(|last| start_of_year(last, year_end)).unwrap_or(this_year);
                // Times have microseconds.
                (midnight(before), midnight(this_year).saturating_sub(1.microsecond()))
            }),
        };
        Ok(Some(period.unwrap_or((DateTime::MAX, DateTime::MIN))))
    }

    /// Returns the filter that a column has a date from the first to the last one. If the ends may depend on the current
    /// row, the filter is a range, so that no query of its own is needed for each row.
    fn restriction_to(
        &self,
        column: DimensionId,
        first: DateTime,
        last: DateTime,
        environment: &Environment,
        place: Place,
    ) -> Result<Restriction> {
        let allowed = match (first > last, depends_on_row(environment)) {
            (true, _) => Allowed::Rows(Vec::new()),
            (false, true) => Allowed::Dates { first: Datum::of_moment(first), last: Datum::of_moment(last) },
            (false, false) => {
                let bound = |operator, moment| self.test(column, operator, vec![Datum::of_moment(moment)], place);
                Allowed::Condition(Filter::And(vec![bound(Operator::Gte, first)?, bound(Operator::Lte, last)?]))
            }
        };
        Ok(Restriction::of_columns(vec![column], allowed))
    }

    /// Returns the ends of a range of DATESBETWEEN.
    fn ends(
        &self,
        arguments: &'q [Option<Scalar>],
        environment: &Environment,
    ) -> Result<(Option<DateTime>, Option<DateTime>)> {
        let bound = |argument: Option<&'q Option<Scalar>>| -> Result<Option<DateTime>> {
            let Some(Some(scalar)) = argument else { return Ok(None) };
            let value = self.scalar(scalar, environment)?;
            Ok(if value.is_blank() { None } else { value.moment() })
        };
        let (start, end) = (bound(arguments.first()), bound(arguments.get(1)));
        Ok((start?, end?))
    }

    /// Returns the dates of a column in a range. If the range is the same for all rows, only its dates are read, so that
    /// the query has the same bounds on time.
    fn dates_between(
        &self,
        column: DimensionId,
        arguments: &'q [Option<Scalar>],
        environment: &Environment,
        place: Place,
    ) -> Result<Vec<DateTime>> {
        let (start, end) = self.ends(arguments, environment)?;
        let is_read_in_range = self.is_fixed(arguments, environment) && self.access.mask(column).is_none();
        let filters = if is_read_in_range { self.range(column, start, end, place)? } else { Vec::new() };
        let all = self.moments(column, &FilterContext::new(self.filter_list(filters)), place)?;
        Ok(all.into_iter().filter(|moment| is_between(*moment, start, end)).collect())
    }

    /// Returns whether filters that are the same for all rows restrict a column of dates. `has_dates` is true if the
    /// dates come from a table.
    fn is_filtered(&self, column: DimensionId, has_dates: bool, environment: &Environment) -> bool {
        let context = &environment.context;
        !has_dates
            && !environment.has_rows()
            && context.pins.is_empty()
            && context.filters.filters.iter().any(|filter| filter.overlaps(&|other| other == column))
            && self.access.mask(column).is_none()
    }

    /// Returns whether arguments have the same values for all rows.
    fn is_fixed(&self, arguments: &'q [Option<Scalar>], environment: &Environment) -> bool {
        let outside = environment.frames.len() as u32;
        let is_constant = |scalar: &'q Scalar| {
            let scan = self.scan(Node::Scalar(scalar), outside);
            !scan.is_open && !scan.has_aggregates
        };
        let has_rows = environment.has_rows() || !environment.context.pins.is_empty();
        !has_rows || arguments.iter().flatten().all(is_constant)
    }

    /// Returns the filter that a column is in a range. An end without a time of day includes its whole day.
    fn range(
        &self,
        column: DimensionId,
        start: Option<DateTime>,
        end: Option<DateTime>,
        place: Place,
    ) -> Result<Vec<Rc<Restriction>>> {
        let test = |operator, moment| self.test(column, operator, vec![Datum::of_moment(moment)], place);
        let day_after = end.filter(|end| end.time() == Time::midnight()).and_then(|end| end.tomorrow().ok());
        let end = match day_after {
            Some(next) => Some((Operator::Lt, next)),
            None => end.map(|end| (Operator::Lte, end)),
        };
        let bounds = start.map(|start| (Operator::Gte, start)).into_iter().chain(end);
        let bounds = bounds.map(|(operator, moment)| test(operator, moment)).collect::<Result<Vec<_>>>()?;
        if bounds.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![Rc::new(Restriction::of_columns(vec![column], Allowed::Condition(Filter::And(bounds))))])
    }

    /// Returns the dates of a column in a filter context, without BLANK.
    fn moments(&self, column: DimensionId, context: &FilterContext, place: Place) -> Result<Vec<DateTime>> {
        let values = self.distinct_of(column.cube, &[column], context, place)?;
        Ok(values.iter().filter(|row| !row[0].is_blank()).filter_map(|row| row[0].moment()).collect())
    }
}

/// Returns the ends of a range that contains the current dates and all dates that a function returns for them; `None` if
/// there are no current dates.
fn reach(function: Operation, moved: Span, current: &[DateTime]) -> Option<(DateTime, DateTime)> {
    let (first, last) = (current.iter().min()?.date(), current.iter().max()?.date());
    let (from, to) = match function {
        Operation::DatesYtd => (first.saturating_sub(LONGEST_YEAR.days()), last),
        Operation::PreviousYear => (first.saturating_sub((2 * LONGEST_YEAR).days()), last),
        _ => {
            let (from, to) = (first.min(first.saturating_add(moved)), last.max(last.saturating_add(moved)));
            // A month may be moved to a longer one.
            (from.saturating_sub(31.days()), to.saturating_add(31.days()))
        }
    };
    Some((from.to_datetime(Time::midnight()), to.to_datetime(Time::midnight())))
}

/// Returns whether filters may differ from row to row.
fn depends_on_row(environment: &Environment) -> bool {
    environment.has_rows() || !environment.context.pins.is_empty()
}

/// Returns the dates of a table with one column, without BLANK.
fn moments_of(rows: &Rows) -> Vec<DateTime> {
    rows.rows.iter().filter_map(|row| row[0].moment().filter(|_| !row[0].is_blank())).collect()
}

fn rows_of(table: &Table, dates: Vec<DateTime>) -> Rc<Rows> {
    let rows = dates.into_iter().map(|date| Rc::from([Datum::of_moment(date)])).collect();
    Rc::new(Rows::new(&table.columns, rows))
}

fn span(number: i64, unit: Option<&str>, place: Place) -> Result<Span> {
    let span = Span::new();
    let span = match unit {
        Some("DAY") => span.try_days(number),
        Some("MONTH") => span.try_months(number),
        Some("QUARTER") => span.try_months(number.saturating_mul(3)),
        _ => span.try_years(number),
    };
    span.map_err(|_| invalid_value("interval out of range", place))
}

/// Returns whether a moment is in a range. An end without a time of day includes its whole day.
fn is_between(moment: DateTime, start: Option<DateTime>, end: Option<DateTime>) -> bool {
    let is_before_end =
        |end: DateTime| moment <= end || (end.time() == Time::midnight() && moment.date() == end.date());
    start.is_none_or(|start| moment >= start) && end.is_none_or(is_before_end)
}

/// Moves dates by a span, and returns the resulting dates that `all` contains. A complete month is moved to a complete
/// month, and a complete day to a complete day.
fn shifted(all: &[DateTime], current: &[DateTime], span: Span) -> Vec<DateTime> {
    let moves_months = span.get_months() != 0 || span.get_years() != 0;
    let (in_column, chosen) = (by_day(all), by_day(current));
    let mut moments: HashSet<DateTime> = HashSet::new();
    let mut days: HashSet<Date> = HashSet::new();
    for (date, times) in &chosen {
        let Ok(moved) = date.checked_add(span) else { continue };
        // If a complete month is moved to a longer one, the days after the moved last day are added.
        let ends_month = *date == date.last_of_month() && chosen.contains_key(&date.first_of_month());
        let last = if moves_months && ends_month { moved.last_of_month() } else { moved };
        let targets = moved.series(1.day()).take_while(|day| *day <= last);
        match in_column.get(date) {
            Some(all) if all.len() == times.len() => days.extend(targets),
            _ => moments.extend(targets.flat_map(|day| times.iter().map(move |time| day.to_datetime(*time)))),
        }
    }
    all.iter().copied().filter(|moment| days.contains(&moment.date()) || moments.contains(moment)).collect()
}

/// Returns the different times of each day.
fn by_day(moments: &[DateTime]) -> HashMap<Date, HashSet<Time>> {
    let mut days: HashMap<Date, HashSet<Time>> = HashMap::new();
    for moment in moments {
        days.entry(moment.date()).or_default().insert(moment.time());
    }
    days
}

/// Parses the last day of a year: `6-30`, `6/30` or `2024-06-30`.
fn year_end(text: &str, place: Place) -> Result<(i8, i8)> {
    let parts: Vec<i8> = text.split(['-', '/']).filter_map(|part| part.trim().parse().ok()).collect();
    let found = match parts[..] {
        [month, day] => Some((month, day)),
        _ => text.parse::<Date>().ok().map(|date| (date.month(), date.day())),
    };
    let is_valid = |(month, day): &(i8, i8)| Date::new(2024, *month, *day).is_ok();
    found.filter(is_valid).ok_or_else(|| invalid_value("expected the end of the year as \"month-day\"", place))
}

/// Returns the first day of the year that contains a date, if each year ends on the given month and day.
fn start_of_year(date: Date, (month, day): (i8, i8)) -> Date {
    let year = if (date.month(), date.day()) > (month, day) { date.year() } else { date.year() - 1 };
    let end = Date::new(year, month, day).or_else(|_| Date::new(year, month, 28));
    end.and_then(Date::tomorrow).unwrap_or(date)
}

#[cfg(test)]
mod tests {
    use jiff::civil::datetime;

    use super::*;

    #[test]
    fn part_of_a_day_keeps_its_times_of_day() {
        let (noon, three) = (datetime(2024, 2, 10, 12, 0, 0, 0), datetime(2024, 2, 10, 15, 0, 0, 0));
        let (same, other) = (datetime(2023, 2, 10, 12, 0, 0, 0), datetime(2023, 2, 10, 9, 0, 0, 0));
        assert_eq!(shifted(&[noon, three, same, other], &[noon], (-1).years()), [same]);
        assert_eq!(shifted(&[noon, three, other], &[noon], (-1).years()), []);
    }

    #[test]
    fn complete_day_is_moved_to_a_complete_day() {
        let (noon, three) = (datetime(2024, 2, 10, 12, 0, 0, 0), datetime(2024, 2, 10, 15, 0, 0, 0));
        let (nine, ten) = (datetime(2023, 2, 10, 9, 0, 0, 0), datetime(2023, 2, 10, 10, 0, 0, 0));
        let next = datetime(2023, 2, 11, 12, 0, 0, 0);
        assert_eq!(shifted(&[noon, three, nine, ten, next], &[noon, three], (-1).years()), [nine, ten]);
    }

    #[test]
    fn complete_month_is_moved_to_a_longer_one() {
        let days = |month, last| (1..=last).map(move |day| datetime(2023, month, day, 8, 30, 0, 0));
        let all: Vec<DateTime> = days(2, 28).chain(days(3, 31)).collect();
        assert_eq!(shifted(&all, &all[..28], 1.month()), all[28..]);
        assert_eq!(shifted(&all, &all[1..28], 1.month()), all[29..56]);
    }

    #[test]
    fn end_without_a_time_includes_its_day() {
        let (morning, next) = (datetime(2023, 1, 31, 8, 0, 0, 0), datetime(2023, 2, 1, 0, 0, 0, 0));
        let (day, early) = (datetime(2023, 1, 31, 0, 0, 0, 0), datetime(2023, 1, 31, 7, 0, 0, 0));
        assert!(is_between(morning, Some(day), Some(day)));
        assert!(!is_between(next, Some(day), Some(day)));
        assert!(!is_between(morning, None, Some(early)));
        assert!(is_between(morning, Some(early), None));
    }
}
