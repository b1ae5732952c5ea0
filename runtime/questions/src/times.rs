//! Interprets the times in a question.
//!
//! In: the words at a place, and the date. Out: a range in the notation of queries, with the number of words. A month
//! without a year is the last one that began. In a range or a comparison, it gets the year of the other month.

use jiff::civil::Date;

use crate::draft::DraftRange;
use crate::language::{Language, Meaning};
use crate::token::{Token, TokenKind};

/// A range of time at a place of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundTime {
    pub(crate) length: usize,
    pub(crate) range: DraftRange,
    /// The year, if the question contains it.
    pub(crate) year: Option<i16>,
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

/// Returns the range of time that the words begin with. `before` is the year of the time that the range is compared
/// with.
pub(crate) fn range(tokens: &[Token], language: &Language, today: Date, before: Option<i16>) -> Option<FoundTime> {
    let stems: Vec<&str> = tokens.iter().map(|token| &*token.stem).collect();
    let words =
        |length: usize, words: String| Some(FoundTime { length, range: DraftRange::Words(words.into()), year: None });
    let between = |length: usize, first: Option<Date>, last: Option<Date>| {
        let text = |date: Date| date.to_string().into();
        Some(FoundTime { length, range: DraftRange::Between(first.map(text), last.map(text)), year: None })
    };
    if let Some((length, meaning)) = language.phrase(&stems) {
        let behind = || moment(&tokens[length..], language);
        match meaning {
            Meaning::Today => return words(length, "today".to_owned()),
            Meaning::Yesterday => return words(length, "yesterday".to_owned()),
            Meaning::This => {
                let (inner, named) = unit_at(&stems[length..], language)?;
                return words(length + inner, format!("this {named}"));
            }
            Meaning::Last => return last(tokens, length, language),
            Meaning::Since | Meaning::From => {
                let (start, inner) = behind()?;
                let at = length + inner;
                if let Some((to, Meaning::To | Meaning::Until)) = language.phrase(&stems[at..])
                    && let Some((end, second)) = moment(&tokens[at + to..], language)
                {
                    let (first, last) = start.until(&end, today)?;
                    return between(at + to + second, Some(first), Some(last));
                }
                if meaning == Meaning::Since {
                    return between(at, Some(start.span(today)?.first), None);
                }
                // Without an end, `from 2013` means the year 2013.
                return words(at, start.span(today)?.words);
            }
            Meaning::Until => {
                let (end, inner) = behind()?;
                return between(length + inner, None, Some(end.span(today)?.last));
            }
            Meaning::Before => {
                let (end, inner) = behind()?;
                return between(length + inner, None, Some(end.span(today)?.first.yesterday().ok()?));
            }
            Meaning::After => {
                let (start, inner) = behind()?;
                return between(length + inner, Some(start.span(today)?.last.tomorrow().ok()?), None);
            }
            Meaning::Between => {
                let (start, inner) = behind()?;
                let at = length + inner;
                let (and, Meaning::And) = language.phrase(&stems[at..])? else { return None };
                let (end, second) = moment(&tokens[at + and..], language)?;
                let (first, last) = start.until(&end, today)?;
                return between(at + and + second, Some(first), Some(last));
            }
            _ => {}
        }
    }
    let (found, length) = moment(tokens, language)?;
    let year = found.year.or(before).or_else(|| compared_year(&tokens[length..], language));
    let range = DraftRange::Words(Moment { year, ..found }.span(today)?.words.into());
    Some(FoundTime { length, range, year: found.year })
}

/// Returns the year of the time after `vs` or `and`, as in `Q2 vs Q1 2013`.
fn compared_year(tokens: &[Token], language: &Language) -> Option<i16> {
    let stems: Vec<&str> = tokens.iter().map(|token| &*token.stem).collect();
    let (length, Meaning::Versus | Meaning::And) = language.phrase(&stems)? else { return None };
    moment(&tokens[length..], language)?.0.year
}

fn last(tokens: &[Token], length: usize, language: &Language) -> Option<FoundTime> {
    let rest = &tokens[length..];
    let stems: Vec<&str> = rest.iter().map(|token| &*token.stem).collect();
    if let Some(TokenKind::Number(count)) = rest.first().map(|token| token.kind)
        && count >= 1.0
        && count.fract() == 0.0
        && count <= 10_000.0
    {
        let (inner, named) = unit_at(&stems[1..], language)?;
        let range = DraftRange::Words(format!("last {count} {named}s").into());
        return Some(FoundTime { length: length + 1 + inner, range, year: None });
    }
    let (inner, named) = unit_at(&stems, language)?;
    let range = DraftRange::Words(format!("last {named}").into());
    Some(FoundTime { length: length + inner, range, year: None })
}

fn unit_at(stems: &[&str], language: &Language) -> Option<(usize, &'static str)> {
    let (length, meaning) = language.phrase(stems)?;
    Some((length, unit(meaning)?))
}

/// A period as the question names it: a year, or a part of a year that may lack its year.
#[derive(Debug, Clone, Copy)]
struct Moment {
    year: Option<i16>,
    part: Part,
}

/// A part of a year.
#[derive(Debug, Clone, Copy)]
enum Part {
    Year,
    Quarter(i8),
    Month(i8),
    Day(i8, i8),
}

/// A stretch of time with its first and last day.
#[derive(Debug)]
struct Span {
    words: String,
    first: Date,
    last: Date,
}

impl Part {
    fn month(self) -> i8 {
        match self {
            Part::Year => 1,
            Part::Quarter(quarter) => (quarter - 1) * 3 + 1,
            Part::Month(month) | Part::Day(month, _) => month,
        }
    }

    /// Returns the days of this part in a year. Returns `None` if the year has no such day.
    fn of(self, year: i16) -> Option<Span> {
        let of_months = |months: i8, words: String| {
            let first = Date::new(year, self.month(), 1).ok()?;
            let last = Date::new(year, self.month() + months - 1, 1).ok()?.last_of_month();
            Some(Span { words, first, last })
        };
        match self {
            Part::Year => of_months(12, year.to_string()),
            Part::Quarter(quarter) => of_months(3, format!("{year}-Q{quarter}")),
            Part::Month(month) => of_months(1, format!("{year}-{month:02}")),
            Part::Day(month, day) => {
                let date = Date::new(year, month, day).ok()?;
                Some(Span { words: date.to_string(), first: date, last: date })
            }
        }
    }
}

impl Moment {
    /// Returns the days of the moment. If it has no year, the last one that began is used.
    fn span(&self, today: Date) -> Option<Span> {
        if let Some(year) = self.year {
            return self.part.of(year);
        }
        let of_this_year = self.part.of(today.year()).filter(|span| span.first <= today);
        of_this_year.or_else(|| self.part.of(today.year() - 1))
    }

    /// Returns the first and the last day of a range. If one moment has no year, it is the nearest to the other moment.
    fn until(&self, end: &Moment, today: Date) -> Option<(Date, Date)> {
        let (start, end) = match (self.year, end.year) {
            (None, Some(year)) => {
                let end = end.part.of(year)?;
                let same_year = self.part.of(year).filter(|start| start.first <= end.last);
                (same_year.or_else(|| self.part.of(year - 1))?, end)
            }
            (Some(_), Some(_)) => (self.span(today)?, end.span(today)?),
            (_, None) => {
                let start = self.span(today)?;
                let year = start.first.year();
                let same_year = end.part.of(year).filter(|end| start.first <= end.last);
                let end = same_year.or_else(|| end.part.of(year + 1))?;
                (start, end)
            }
        };
        Some((start.first, end.last))
    }
}

/// Reads a date, a year, a quarter or a month.
fn moment(tokens: &[Token], language: &Language) -> Option<(Moment, usize)> {
    let first = tokens.first()?;
    if first.kind == TokenKind::Quoted {
        return None;
    }
    let year_at = |at: usize| tokens.get(at).and_then(|token| year(&token.lower));
    let with_year = |part: Part, length: usize| {
        let year = year_at(length);
        (Moment { year, part }, length + usize::from(year.is_some()))
    };
    if let Some(moment) = written(&first.lower) {
        return Some((moment, 1));
    }
    if let Some(quarter) = quarter(&first.lower) {
        return Some(with_year(Part::Quarter(quarter), 1));
    }
    let stems: Vec<&str> = tokens.iter().map(|token| &*token.stem).collect();
    // The day may come before the month: `5 June 2013`.
    if let Some(day) = day(first)
        && let Some((length, Meaning::MonthName(month))) = language.phrase(&stems[1..])
    {
        return Some(with_year(Part::Day(i8::try_from(month).ok()?, day), 1 + length));
    }
    let (length, Meaning::MonthName(month)) = language.phrase(&stems)? else { return None };
    let month = i8::try_from(month).ok()?;
    // The day may come after the month: `June 5`, `June 5 2013`.
    if let Some(day) = tokens.get(length).and_then(day) {
        let comma = usize::from(tokens.get(length + 1).is_some_and(|token| token.kind == TokenKind::Comma));
        let at = length + 1 + comma * usize::from(year_at(length + 1 + comma).is_some());
        return Some(with_year(Part::Day(month, day), at));
    }
    Some(with_year(Part::Month(month), length))
}

/// Parses the number of a day, such as `5` or `5th`.
fn day(token: &Token) -> Option<i8> {
    let is_ending = |ending: &str| matches!(ending, "" | "st" | "nd" | "rd" | "th");
    let digits = token.lower.chars().take_while(char::is_ascii_digit).count();
    let (number, ending) = token.lower.split_at(digits);
    number.parse().ok().filter(|day| (1..=31).contains(day) && is_ending(ending))
}

/// Returns whether a single word is a time.
pub(crate) fn is_word(text: &str) -> bool {
    quarter(text).is_some() || written(text).is_some()
}

fn year(text: &str) -> Option<i16> {
    (text.len() == 4).then(|| text.parse().ok()).flatten().filter(|year| (1900..=2100).contains(year))
}

fn quarter(text: &str) -> Option<i8> {
    match text {
        "q1" => Some(1),
        "q2" => Some(2),
        "q3" => Some(3),
        "q4" => Some(4),
        _ => None,
    }
}

/// Parses a time in digits: `2013`, `2013-Q2`, `2013-02` and `2013-02-08`.
fn written(text: &str) -> Option<Moment> {
    let of = |year: i16, part: Part| Some(Moment { year: Some(year), part });
    if let Some(year) = year(text) {
        return of(year, Part::Year);
    }
    let (head, rest) = text.split_once('-')?;
    let year = year(head)?;
    if let Some(quarter) = quarter(rest) {
        return of(year, Part::Quarter(quarter));
    }
    if rest.len() == 2 {
        let month = rest.parse().ok().filter(|month| (1..=12).contains(month))?;
        return of(year, Part::Month(month));
    }
    let date: Date = text.parse().ok()?;
    of(year, Part::Day(date.month(), date.day()))
}
