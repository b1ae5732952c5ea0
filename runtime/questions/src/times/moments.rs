//! Periods in the words of a question: a date, a month, a quarter, a year, or a day with a name.
//!
//! In: the words at a place. Out: a period that may lack its year, and the days that it means.

use jiff::civil::{Date, ISOWeekDate, Weekday};

use super::{Calendar, count, count_of_months, stems, unit};
use crate::language::{Language, Meaning, NamedDay};
use crate::token::{Token, TokenKind};

/// A period in the words of a question: a year, or a part of a year that may lack its year.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) year: Option<i16>,
    pub(super) part: Part,
}

/// A part of a year.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Year,
    Quarter(i8),
    Month(i8),
    /// The first month and the number of months.
    Months(i8, i8),
    Day(i8, i8),
    /// The month, and its first and last day.
    Days(i8, i8, i8),
    /// An ISO week.
    Week(i8),
    Named(NamedDay),
}

/// A stretch of time with its first and last day.
#[derive(Debug)]
pub(super) struct Span {
    /// The range in the words of queries, if they can express it.
    pub(super) words: Option<String>,
    pub(super) first: Date,
    pub(super) last: Date,
}

impl Part {
    /// Returns the days of this part in a year. Returns `None` if the year has no such day.
    fn of(self, year: i16) -> Option<Span> {
        let months = |first: i8, count: i8, words: Option<String>| {
            let last = Date::new(year, first + count - 1, 1).ok()?.last_of_month();
            Some(Span { words, first: Date::new(year, first, 1).ok()?, last })
        };
        let day = |date: Date| Some(Span { words: Some(date.to_string()), first: date, last: date });
        match self {
            Part::Year => months(1, 12, Some(year.to_string())),
            Part::Quarter(quarter) => months((quarter - 1) * 3 + 1, 3, Some(format!("{year}-Q{quarter}"))),
            Part::Month(month) => months(month, 1, Some(format!("{year}-{month:02}"))),
            Part::Months(first, count) => months(first, count, None),
            Part::Day(month, number) => day(Date::new(year, month, number).ok()?),
            Part::Days(month, first, last) => {
                let (first, last) = (Date::new(year, month, first).ok()?, Date::new(year, month, last).ok()?);
                Some(Span { words: None, first, last })
            }
            Part::Week(week) => {
                let first = ISOWeekDate::new(year, week, Weekday::Monday).ok()?.date();
                let last = ISOWeekDate::new(year, week, Weekday::Sunday).ok()?.date();
                Some(Span { words: Some(format!("{year}-W{week:02}")), first, last })
            }
            Part::Named(NamedDay::Fixed(month, number)) => day(Date::new(year, month, number).ok()?),
            Part::Named(NamedDay::Weekday(month, nth, weekday)) => {
                let weekday = Weekday::from_monday_one_offset(weekday).ok()?;
                day(Date::new(year, month, 1).ok()?.nth_weekday_of_month(nth, weekday).ok()?)
            }
        }
    }
}

impl Moment {
    /// Returns the days of a part of a year. Without a year, it is the latest such part that has begun.
    pub(super) fn span(&self, calendar: Calendar<'_>) -> Option<Span> {
        if let Some(year) = self.year {
            return self.part.of(year);
        }
        let newest = calendar.newest;
        let of_this_year = self.part.of(newest.year()).filter(|span| span.first <= newest);
        of_this_year.or_else(|| self.part.of(newest.year() - 1))
    }

    /// Returns whether this is a day or a few days, and no longer period.
    pub(super) fn is_day(&self) -> bool {
        matches!(self.part, Part::Day(..) | Part::Days(..) | Part::Named(_))
    }

    /// Returns the first and the last period of a range. If only one end has a year, the year of the other end is the
    /// closest possible one.
    pub(super) fn until(&self, end: &Moment, calendar: Calendar<'_>) -> Option<(Span, Span)> {
        Some(match (self.year, end.year) {
            (None, Some(year)) => {
                let end = end.part.of(year)?;
                let same_year = self.part.of(year).filter(|start| start.first <= end.last);
                (same_year.or_else(|| self.part.of(year - 1))?, end)
            }
            (Some(_), Some(_)) => (self.span(calendar)?, end.span(calendar)?),
            (_, None) => {
                let start = self.span(calendar)?;
                let year = start.first.year();
                let same_year = end.part.of(year).filter(|end| start.first <= end.last);
                let end = same_year.or_else(|| end.part.of(year + 1))?;
                (start, end)
            }
        })
    }
}

/// Reads a date, a year, a part of a year, or a named day. Words such as `the` before it are skipped.
pub(super) fn moment(tokens: &[Token], language: &Language) -> Option<(Moment, usize)> {
    let skipped = fillers(tokens, language);
    let tokens = &tokens[skipped..];
    if let Some((week, length)) = week_of(tokens, language) {
        return Some((week, skipped + length));
    }
    let (part, length) = match part(tokens, language)? {
        (NamedTime::Whole(moment), length) => return Some((moment, skipped + length)),
        (NamedTime::Part(part), length) => (part, length),
    };
    let year = year_behind(&tokens[length..], language);
    Some((Moment { year: year.map(|(year, _)| year), part }, skipped + length + year.map_or(0, |(_, inner)| inner)))
}

/// Reads the week that contains a date, as in `week of 2013-07-01`.
fn week_of(tokens: &[Token], language: &Language) -> Option<(Moment, usize)> {
    let (length, Meaning::Week) = language.phrase(&stems(tokens))? else { return None };
    let is_link = tokens.get(length).is_some_and(|next| language.is_link(&next.lower));
    let (day, inner) = moment(tokens.get(length..).filter(|_| is_link)?, language)?;
    let (Some(year), Part::Day(month, number)) = (day.year, day.part) else { return None };
    let week = Date::new(year, month, number).ok()?.iso_week_date();
    Some((Moment { year: Some(week.year()), part: Part::Week(week.week()) }, length + inner))
}

/// Returns the number of words such as `the` that the tokens begin with.
pub(super) fn fillers(tokens: &[Token], language: &Language) -> usize {
    let mut at = 0;
    while let Some((length, Meaning::Ignore)) = language.phrase(&stems(&tokens[at..])) {
        at += length;
    }
    at
}

/// Returns the year that the tokens begin with, also after words such as `of the year`, and the number of tokens.
pub(super) fn year_behind(tokens: &[Token], language: &Language) -> Option<(i16, usize)> {
    let comma = usize::from(tokens.first().is_some_and(|token| token.kind == TokenKind::Comma));
    let mut at = comma + fillers(&tokens[comma..], language);
    if let Some((length, Meaning::Year)) = language.phrase(&stems(&tokens[at..])) {
        at += length;
    }
    Some((year(&tokens.get(at)?.lower)?, at + 1))
}

/// A period that may lack its year, or that has one.
enum NamedTime {
    Part(Part),
    Whole(Moment),
}

fn part(tokens: &[Token], language: &Language) -> Option<(NamedTime, usize)> {
    let first = tokens.first()?;
    if first.kind == TokenKind::Quoted {
        return None;
    }
    if let Some(moment) = written(&first.lower) {
        return Some((NamedTime::Whole(moment), 1));
    }
    if let Some((days, length)) = days_of_month(tokens, language, Joiner::Adjacent) {
        return Some((NamedTime::Whole(days), length));
    }
    if let Some(part) = abbreviated(&first.lower) {
        return Some((NamedTime::Part(part), 1));
    }
    let found = ordinal(tokens, language).or_else(|| day_of_month(tokens, language));
    if let Some((part, length)) = found {
        return Some((NamedTime::Part(part), length));
    }
    let (length, meaning) = language.phrase(&stems(tokens))?;
    match meaning {
        Meaning::NamedDay(index) => Some((NamedTime::Part(Part::Named(language.named_day(index)?)), length)),
        Meaning::MonthName(month) => Some((NamedTime::Part(Part::Month(i8::try_from(month).ok()?)), length)),
        // `the month of May`, `the year 2013`
        Meaning::Month | Meaning::Year => {
            let at = length + fillers(&tokens[length..], language);
            let (found, inner) = named_period(&tokens[at..], language)?;
            Some((found, at + inner))
        }
        _ => None,
    }
}

/// Reads the name of a month, or a year.
fn named_period(tokens: &[Token], language: &Language) -> Option<(NamedTime, usize)> {
    if let Some(moment) = written(&tokens.first()?.lower) {
        return Some((NamedTime::Whole(moment), 1));
    }
    let (length, Meaning::MonthName(month)) = language.phrase(&stems(tokens))? else { return None };
    Some((NamedTime::Part(Part::Month(i8::try_from(month).ok()?)), length))
}

/// Reads a period with an ordinal: `second quarter`, `first half`, `first three months`, `first week of May`.
fn ordinal(tokens: &[Token], language: &Language) -> Option<(Part, usize)> {
    let number = i8::try_from(language.ordinal(&tokens.first()?.lower)?).ok()?;
    let count = count(&tokens[1..]);
    let at = 1 + usize::from(count.is_some());
    let (length, meaning) = language.phrase(&stems(&tokens[at..]))?;
    let end = at + length;
    match (meaning, count) {
        (Meaning::Half, None) if number <= 2 => {
            Some((Part::Months(6 * number - 5, 6), end + of_the_year(&tokens[end..], language)))
        }
        (Meaning::Quarter, None) => Some((Part::Quarter(number), end + of_the_year(&tokens[end..], language))),
        (Meaning::Month | Meaning::Quarter, Some(count)) if number == 1 => {
            let part = Part::Months(1, count_of_months(unit(meaning)?, count)?);
            Some((part, end + of_the_year(&tokens[end..], language)))
        }
        (Meaning::Week | Meaning::Day, Some(count)) if number == 1 => {
            let days = i8::try_from(if meaning == Meaning::Week { 7 * count.min(5) } else { count }).ok()?;
            let end = end + fillers(&tokens[end..], language);
            let (inner, Meaning::MonthName(month)) = language.phrase(&stems(&tokens[end..]))? else { return None };
            let part = Part::Days(i8::try_from(month).ok()?, 1, days);
            (1..=MAX_FIRST_DAYS).contains(&days).then_some((part, end + inner))
        }
        (Meaning::Week, None) => {
            let end = end + fillers(&tokens[end..], language);
            let (inner, Meaning::MonthName(month)) = language.phrase(&stems(&tokens[end..]))? else { return None };
            Some((Part::Days(i8::try_from(month).ok()?, 7 * number - 6, 7 * number), end + inner))
        }
        _ => None,
    }
}

/// The largest number of days of a range such as `first two weeks of May`. Every month has them.
const MAX_FIRST_DAYS: i8 = 28;

/// Returns the number of words of `of the year`, as in `first half of the year`.
fn of_the_year(tokens: &[Token], language: &Language) -> usize {
    let skipped = fillers(tokens, language);
    match language.phrase(&stems(&tokens[skipped..])) {
        Some((length, meaning)) if skipped > 0 && unit(meaning) == Some("year") => skipped + length,
        _ => 0,
    }
}

/// Reads a day with its month, in either order: `5 June`, `5th of June`, `June 5`.
fn day_of_month(tokens: &[Token], language: &Language) -> Option<(Part, usize)> {
    let month_at = |at: usize| {
        let (length, Meaning::MonthName(month)) = language.phrase(&stems(tokens.get(at..)?))? else { return None };
        Some((i8::try_from(month).ok()?, at + length))
    };
    if let Some(number) = day(tokens.first()?) {
        let (month, end) = month_at(1 + fillers(&tokens[1..], language))?;
        return Some((Part::Day(month, number), end));
    }
    let (month, at) = month_at(0)?;
    let the = fillers(&tokens[at..], language);
    let number = tokens.get(at + the).and_then(day)?;
    Some((Part::Day(month, number), at + the + 1))
}

/// The words that may join two days of a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joiner {
    /// `and` joins two days into a range only if they are consecutive.
    Adjacent,
    /// Any joiner, as after `between` and `from`.
    Any,
}

/// Reads two days of one month: `10 to 20 June`, `8 and 9 February`, `June 10-20`.
pub(super) fn days_of_month(tokens: &[Token], language: &Language, joiner: Joiner) -> Option<(Moment, usize)> {
    let skipped = fillers(tokens, language);
    let tokens = &tokens[skipped..];
    let month_at = |at: usize| {
        let (length, Meaning::MonthName(month)) = language.phrase(&stems(tokens.get(at..)?))? else { return None };
        Some((i8::try_from(month).ok()?, at + length))
    };
    let (month, (first, last), end) = match month_at(0) {
        Some((month, at)) => {
            let (days, length) = two_days(&tokens[at..], language, joiner)?;
            (month, days, at + length)
        }
        None => {
            let (days, length) = two_days(tokens, language, joiner)?;
            let (month, end) = month_at(length + fillers(&tokens[length..], language))?;
            (month, days, end)
        }
    };
    let year = year_behind(&tokens[end..], language);
    let end = end + year.map_or(0, |(_, inner)| inner);
    Some((Moment { year: year.map(|(year, _)| year), part: Part::Days(month, first, last) }, skipped + end))
}

/// Reads two days: `10 to 20`, `8 and 9`, `10-20`.
fn two_days(tokens: &[Token], language: &Language, joiner: Joiner) -> Option<((i8, i8), usize)> {
    let the = fillers(tokens, language);
    let tokens = &tokens[the..];
    let first_token = tokens.first()?;
    if let Some((first, last)) = first_token.lower.split_once('-') {
        return Some(((day_number(first)?, day_number(last)?), the + 1));
    }
    let first = day(first_token)?;
    let (length, joined) = language.phrase(&stems(&tokens[1..]))?;
    let at = 1 + length + fillers(&tokens[1 + length..], language);
    let last = tokens.get(at).and_then(day)?;
    let is_joined = match joined {
        Meaning::To | Meaning::Until => true,
        Meaning::And => joiner == Joiner::Any || last == first + 1,
        _ => false,
    };
    is_joined.then_some(((first, last), the + at + 1))
}

/// Parses the number of a day, such as `5` or `5th`.
fn day(token: &Token) -> Option<i8> {
    if matches!(token.kind, TokenKind::Quoted | TokenKind::Percent(_)) {
        return None;
    }
    day_number(&token.lower)
}

fn day_number(text: &str) -> Option<i8> {
    let is_ending = |ending: &str| matches!(ending, "" | "." | "st" | "nd" | "rd" | "th");
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let (number, ending) = text.split_at(digits);
    number.parse().ok().filter(|day| (1..=31).contains(day) && is_ending(ending))
}

pub(super) fn year(text: &str) -> Option<i16> {
    (text.len() == 4).then(|| text.parse().ok()).flatten().filter(|year| (1900..=2100).contains(year))
}

/// Parses `Q1` to `Q4`, `H1` and `H2`.
pub(super) fn abbreviated(text: &str) -> Option<Part> {
    Some(match text {
        "q1" => Part::Quarter(1),
        "q2" => Part::Quarter(2),
        "q3" => Part::Quarter(3),
        "q4" => Part::Quarter(4),
        "h1" => Part::Months(1, 6),
        "h2" => Part::Months(7, 6),
        _ => return None,
    })
}

/// Returns the last day of a time in digits.
pub(super) fn last_day(text: &str) -> Option<Date> {
    let moment = written(text)?;
    Some(moment.part.of(moment.year?)?.last)
}

/// Parses a time in digits: `2013`, `2013-Q2`, `2013-W09`, `2013-02` and `2013-02-08`.
pub(super) fn written(text: &str) -> Option<Moment> {
    let of = |year: i16, part: Part| Some(Moment { year: Some(year), part });
    if let Some(year) = year(text) {
        return of(year, Part::Year);
    }
    let (head, rest) = text.split_once('-')?;
    let year = year(head)?;
    if let Some(part) = abbreviated(rest) {
        return of(year, part);
    }
    if rest.len() == 2 {
        let month = rest.parse().ok().filter(|month| (1..=12).contains(month))?;
        return of(year, Part::Month(month));
    }
    if let Some(week) = rest.strip_prefix('w').filter(|week| week.len() == 2) {
        return of(year, Part::Week(week.parse().ok()?));
    }
    // Longer texts have a time of day.
    let date: Date = text.parse().ok().filter(|_| text.len() == 10)?;
    of(year, Part::Day(date.month(), date.day()))
}
