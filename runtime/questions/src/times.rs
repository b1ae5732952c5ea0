//! Interprets the times in a question.
//!
//! In: the words at a place, and the date. Out: a range in the notation of queries, with the number of words. A month
//! without a year is the last one that began at the date of the newest data, or at today's date if the data is newer or
//! unknown. In a range or a comparison, it gets the year of the other month.

use std::sync::Arc;

use jiff::ToSpan as _;
use jiff::civil::Date;

mod moments;

use self::moments::{Joiner, Moment, Part, Span, abbreviated, days_of_month, moment, written, year_behind};
use crate::draft::DraftRange;
use crate::language::{Language, Meaning, WordList};
use crate::token::{Token, TokenKind};

/// A range of time at a place of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundTime {
    pub(crate) length: usize,
    pub(crate) range: DraftRange,
    /// The first and the last day, if the range does not depend on the time of the query.
    pub(crate) days: Option<(Date, Date)>,
    /// The year, if the question contains it.
    pub(crate) year: Option<i16>,
    /// True if the date of the newest data decided on the year.
    pub(crate) is_dated: bool,
    /// True for a range such as `the previous month`, which follows the time that it is compared with.
    pub(crate) is_previous: bool,
    /// The first and the last period of a range that names both, as in `from May to June`.
    pub(crate) ends: Option<(DraftRange, DraftRange)>,
}

/// Returns the granularity that a word such as `daily` groups by.
pub(crate) fn step(meaning: Meaning) -> Option<&'static str> {
    Some(match meaning {
        Meaning::Daily => "day",
        Meaning::Weekly => "week",
        Meaning::Monthly | Meaning::OverTime => "month",
        Meaning::Quarterly => "quarter",
        Meaning::Yearly => "year",
        Meaning::Hourly => "hour",
        _ => return None,
    })
}

/// Returns the name of a unit of time in queries.
pub(crate) fn unit(meaning: Meaning) -> Option<&'static str> {
    Some(match meaning {
        Meaning::Day => "day",
        Meaning::Week => "week",
        Meaning::Month => "month",
        Meaning::Quarter => "quarter",
        Meaning::Year => "year",
        _ => return None,
    })
}

/// The dates that a time in a question may depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calendar<'c> {
    pub(crate) language: &'c Language,
    /// The date of the newest data, or today.
    pub(crate) newest: Date,
}

/// Returns the range of time that the words begin with. `before` is the year of the time that the range is compared
/// with.
pub(crate) fn range(tokens: &[Token], calendar: Calendar<'_>, before: Option<i16>) -> Option<FoundTime> {
    let language = calendar.language;
    let stems = stems(tokens);
    if let Some((length, meaning)) = language.phrase(&stems) {
        let found = match meaning {
            Meaning::Today => Some(words(length, "today".to_owned())),
            Meaning::Yesterday => Some(words(length, "yesterday".to_owned())),
            Meaning::This => {
                let (inner, named) = unit_at(&stems[length..], language)?;
                Some(words(length + inner, format!("this {named}")))
            }
            Meaning::Last => return last(tokens, length, calendar),
            Meaning::Previous => {
                return last(tokens, length, calendar).map(|found| FoundTime { is_previous: true, ..found });
            }
            Meaning::Since | Meaning::From | Meaning::Between => return two_ended(tokens, length, meaning, calendar),
            Meaning::Until | Meaning::Before | Meaning::After => return one_ended(tokens, length, meaning, calendar),
            Meaning::Group | Meaning::To | Meaning::AtMost => return ambiguous_end(tokens, length, meaning, calendar),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    if let Some(found) = tokens.first().and_then(|token| hour_or_minute(&token.lower)) {
        return Some(found);
    }
    let (found, length) = moment(tokens, language)?;
    // `June to August`
    if let Some((to, Meaning::To | Meaning::Until)) = language.phrase(&stems[length..])
        && let Some((end, inner)) = moment(&tokens[length + to..], language)
    {
        let is_dated = found.year.is_none() && end.year.is_none();
        return Some(FoundTime { is_dated, ..of_ends(length + to + inner, found.until(&end, calendar)?) });
    }
    let year = found.year.or(before).or_else(|| compared_year(&tokens[length..], language));
    let span = Moment { year, ..found }.span(calendar)?;
    Some(FoundTime { year: found.year, is_dated: year.is_none(), ..of_span(length, span) })
}

/// Returns the last period of a unit that ends on or before the day `newest`, in the notation of queries.
pub(crate) fn newest_complete(newest: Date, unit: &str) -> Option<String> {
    let next = newest.tomorrow().ok()?;
    let quarter_of = |month: i8| (month - 1) / 3;
    // The first day of the period that is not complete.
    let first = match unit {
        "year" => Date::new(next.year(), 1, 1).ok()?,
        "quarter" => Date::new(next.year(), 3 * quarter_of(next.month()) + 1, 1).ok()?,
        "month" => next.first_of_month(),
        "week" => next.checked_sub(i64::from(next.weekday().to_monday_zero_offset()).days()).ok()?,
        _ => next,
    };
    let last = first.yesterday().ok()?;
    Some(match unit {
        "year" => last.year().to_string(),
        "quarter" => format!("{}-Q{}", last.year(), quarter_of(last.month()) + 1),
        "month" => format!("{}-{:02}", last.year(), last.month()),
        "week" => {
            let week = last.iso_week_date();
            format!("{}-W{:02}", week.year(), week.week())
        }
        _ => last.to_string(),
    })
}

/// Returns the first day of a range that depends on today, such as `last month` and `last 7 days`; `None` for other
/// ranges.
pub(crate) fn relative_start(words: &str, today: Date) -> Option<Date> {
    let (direction, rest) = match words {
        "today" => return Some(today),
        "yesterday" => return today.yesterday().ok(),
        _ => words.split_once(' ')?,
    };
    let (count, unit) = match rest.split_once(' ') {
        Some((count, unit)) => (count.parse::<i64>().ok()?, unit),
        None => (1, rest),
    };
    let quarter = |month: i8| (month - 1) / 3 * 3 + 1;
    let (current, length) = match unit.strip_suffix('s').unwrap_or(unit) {
        "day" => (today, 1.day()),
        "week" => (today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days()).ok()?, 1.week()),
        "month" => (today.first_of_month(), 1.month()),
        "quarter" => (Date::new(today.year(), quarter(today.month()), 1).ok()?, 3.months()),
        "year" => (today.first_of_year(), 1.year()),
        _ => return None,
    };
    match direction {
        "this" => Some(current),
        "last" => current.checked_sub(length.checked_mul(count).ok()?).ok(),
        _ => None,
    }
}

/// Returns the last day of a range in the notation of queries, such as `2013-Q2`; `None` for ranges that depend on today.
pub(crate) fn last_day(words: &str) -> Option<Date> {
    moments::last_day(&words.to_lowercase())
}

fn stems(tokens: &[Token]) -> Vec<&str> {
    tokens.iter().map(|token| &*token.stem).collect()
}

fn words(length: usize, words: String) -> FoundTime {
    let range = DraftRange::Words(words.into());
    FoundTime { length, range, days: None, year: None, is_dated: false, is_previous: false, ends: None }
}

fn between(length: usize, first: Option<Date>, last: Option<Date>) -> FoundTime {
    let text = |date: Date| date.to_string().into();
    let range = DraftRange::Between(first.map(text), last.map(text));
    let days = first.zip(last);
    FoundTime { length, range, days, year: None, is_dated: false, is_previous: false, ends: None }
}

/// Returns the range from the first day of one span to the last day of another.
fn of_ends(length: usize, (start, end): (Span, Span)) -> FoundTime {
    let whole = between(length, Some(start.first), Some(end.last));
    FoundTime { ends: Some((of_span(0, start).range, of_span(0, end).range)), ..whole }
}

fn of_span(length: usize, span: Span) -> FoundTime {
    let Span { words: named, first, last } = span;
    match named {
        Some(named) => FoundTime { days: Some((first, last)), ..words(length, named) },
        None => between(length, Some(first), Some(last)),
    }
}

/// Reads a time after a word such as `before`, which has one end.
fn one_ended(tokens: &[Token], length: usize, meaning: Meaning, calendar: Calendar<'_>) -> Option<FoundTime> {
    let (moment, inner) = moment(&tokens[length..], calendar.language)?;
    let span = moment.span(calendar)?;
    let (first, last) = match meaning {
        Meaning::Before => (None, Some(span.first.yesterday().ok()?)),
        Meaning::After => (Some(span.last.tomorrow().ok()?), None),
        _ => (None, Some(span.last)),
    };
    Some(FoundTime { is_dated: moment.year.is_none(), ..between(length + inner, first, last) })
}

/// Reads a time after a word that also has another meaning: a day after `by`, `to` and `up to`, which is the end of a
/// range, and a time after the German `nach`. A number of rows, as in `up to 2000`, is not a time.
fn ambiguous_end(tokens: &[Token], length: usize, meaning: Meaning, calendar: Calendar<'_>) -> Option<FoundTime> {
    let language = calendar.language;
    let word = &tokens[0].lower;
    if meaning == Meaning::Group && language.has(WordList::After, word) {
        return one_ended(tokens, length, Meaning::After, calendar);
    }
    let (moment, _) = moment(&tokens[length..], language)?;
    let is_end = match meaning {
        Meaning::Group | Meaning::To => language.has(WordList::End, word) && moment.is_day(),
        // `10 minutes or less in June` and `at most in June` end with other words.
        _ => language.has(WordList::End, word) && !matches!(moment.part, Part::Year),
    };
    if is_end { one_ended(tokens, length, Meaning::Until, calendar) } else { None }
}

/// Reads a time after `since`, `from` or `between`, which may have a second end.
fn two_ended(tokens: &[Token], length: usize, meaning: Meaning, calendar: Calendar<'_>) -> Option<FoundTime> {
    let language = calendar.language;
    if let Some((days, inner)) = days_of_month(&tokens[length..], language, Joiner::Any) {
        let span = days.span(calendar)?;
        let ends =
            Some((DraftRange::Words(span.first.to_string().into()), DraftRange::Words(span.last.to_string().into())));
        let (is_dated, year) = (days.year.is_none(), days.year);
        return Some(FoundTime { is_dated, year, ends, ..of_span(length + inner, span) });
    }
    let (start, inner) = moment(&tokens[length..], language)?;
    let at = length + inner;
    let is_dated = start.year.is_none();
    let is_joined = |joiner| match meaning {
        Meaning::Between => joiner == Meaning::And,
        _ => matches!(joiner, Meaning::To | Meaning::Until),
    };
    if let Some((to, joiner)) = language.phrase(&stems(&tokens[at..]))
        && is_joined(joiner)
        && let Some((end, second)) = moment(&tokens[at + to..], language)
    {
        let is_dated = is_dated && end.year.is_none();
        return Some(FoundTime { is_dated, ..of_ends(at + to + second, start.until(&end, calendar)?) });
    }
    let is_since = meaning == Meaning::Since || language.has(WordList::Since, &tokens[0].lower);
    let onward = usize::from(meaning == Meaning::From && is_onward(&tokens[at..], language));
    match meaning {
        Meaning::Between => None,
        _ if is_since || onward > 0 => {
            Some(FoundTime { is_dated, ..between(at + onward, Some(start.span(calendar)?.first), None) })
        }
        // Without an end, `from 2013` means the year 2013.
        _ => Some(FoundTime { is_dated, ..of_span(at, start.span(calendar)?) }),
    }
}

/// Returns whether the tokens begin with a word that leaves a range open, as in `from June on`. In
/// `from June on route 5`, the word belongs to the words behind it.
fn is_onward(tokens: &[Token], language: &Language) -> bool {
    let Some((first, rest)) = tokens.split_first() else { return false };
    let is_last = rest.first().is_none_or(|next| next.kind == TokenKind::Comma)
        || matches!(language.phrase(&stems(rest)), Some((_, meaning)) if meaning == Meaning::Group || step(meaning).is_some());
    is_last && language.has(WordList::Onward, &first.lower)
}

/// Returns the year of the time after `vs` or `and`, as in `Q2 vs Q1 2013`.
fn compared_year(tokens: &[Token], language: &Language) -> Option<i16> {
    let (length, Meaning::Versus | Meaning::And) = language.phrase(&stems(tokens))? else { return None };
    moment(&tokens[length..], language)?.0.year
}

/// Reads a time after `last`: a number of units, a unit, or the last unit of a year, as in `the last quarter of 2013`.
fn last(tokens: &[Token], length: usize, calendar: Calendar<'_>) -> Option<FoundTime> {
    let rest = &tokens[length..];
    let stems = stems(rest);
    let count = count(rest);
    let at = usize::from(count.is_some());
    let (inner, named) = unit_at(&stems[at..], calendar.language)?;
    let at = at + inner;
    if let Some((year, inner)) = year_behind(&rest[at..], calendar.language)
        && let Some(part) = last_of_year(named, count.unwrap_or(1))
    {
        let moment = Moment { year: Some(year), part };
        return Some(FoundTime { year: Some(year), ..of_span(length + at + inner, moment.span(calendar)?) });
    }
    let range = count.map_or(format!("last {named}"), |count| format!("last {count} {named}s"));
    Some(words(length + at, range))
}

/// Returns the number of units at a place.
fn count(tokens: &[Token]) -> Option<u32> {
    let TokenKind::Number(count) = tokens.first()?.kind else { return None };
    (count >= 1.0 && count.fract() == 0.0 && count <= 10_000.0).then_some(count as u32)
}

/// Returns the last months of a year.
fn last_of_year(unit: &str, count: u32) -> Option<Part> {
    let months = count_of_months(unit, count)?;
    Some(Part::Months(13 - months, months))
}

fn count_of_months(unit: &str, count: u32) -> Option<i8> {
    let months = match unit {
        "month" => count,
        "quarter" => count.checked_mul(3)?,
        _ => return None,
    };
    i8::try_from(months).ok().filter(|months| *months <= 12)
}

fn unit_at(stems: &[&str], language: &Language) -> Option<(usize, &'static str)> {
    let (length, meaning) = language.phrase(stems)?;
    Some((length, unit(meaning)?))
}

/// Returns whether a single word is a time.
pub(crate) fn is_word(text: &str) -> bool {
    abbreviated(text).is_some() || written(text).is_some() || hour_or_minute(text).is_some()
}

/// Parses an hour or a minute, such as `2013-02-08T15` and `2013-02-08T15:30`, or an instant, such as
/// `2013-02-08T15:30:00Z`. The range consists of this time alone.
fn hour_or_minute(text: &str) -> Option<FoundTime> {
    let (day, time) = text.split_once('t')?;
    let date: Date = day.parse().ok().filter(|_| day.len() == 10)?;
    let is_time =
        time.len() >= 2 && time.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'z'));
    let whole: Arc<str> = text.to_uppercase().into();
    let range = DraftRange::Between(Some(Arc::clone(&whole)), Some(whole));
    is_time.then(|| FoundTime { range, year: Some(date.year()), ..words(1, String::new()) })
}
