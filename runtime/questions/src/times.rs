//! Reads the times of a question.
//!
//! In: the words at a place, and the date. Out: a range in the words of queries, with the number of words. A month
//! without a year is the last one that began.

use jiff::civil::Date;

use crate::draft::DraftRange;
use crate::language::{Language, Meaning};
use crate::token::{Token, TokenKind};

/// A range of time at a place of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundTime {
    pub(crate) length: usize,
    pub(crate) range: DraftRange,
}

/// Returns the step of time that a meaning groups by.
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

/// Reads a range of time at the start of some words.
pub(crate) fn range(tokens: &[Token], language: &Language, today: Date) -> Option<FoundTime> {
    let stems: Vec<&str> = tokens.iter().map(|token| &*token.stem).collect();
    let words = |length: usize, words: String| Some(FoundTime { length, range: DraftRange::Words(words.into()) });
    if let Some((length, meaning)) = language.phrase(&stems) {
        match meaning {
            Meaning::Today => return words(length, "today".to_owned()),
            Meaning::Yesterday => return words(length, "yesterday".to_owned()),
            Meaning::This => {
                let (inner, named) = unit_at(&stems[length..], language)?;
                return words(length + inner, format!("this {named}"));
            }
            Meaning::Last => return last(tokens, length, language),
            Meaning::Since | Meaning::From => return since(tokens, length, meaning, language, today),
            Meaning::Until => {
                let (end, inner) = moment(&tokens[length..], language, today)?;
                let range = DraftRange::Between(None, Some(end.last.into()));
                return Some(FoundTime { length: length + inner, range });
            }
            Meaning::Before => {
                let (end, inner) = moment(&tokens[length..], language, today)?;
                let last = end.first.parse::<Date>().ok()?.yesterday().ok()?.to_string();
                return Some(FoundTime { length: length + inner, range: DraftRange::Between(None, Some(last.into())) });
            }
            Meaning::After => {
                let (start, inner) = moment(&tokens[length..], language, today)?;
                let first = start.last.parse::<Date>().ok()?.tomorrow().ok()?.to_string();
                return Some(FoundTime {
                    length: length + inner,
                    range: DraftRange::Between(Some(first.into()), None),
                });
            }
            Meaning::Between => {
                let (start, first) = moment(&tokens[length..], language, today)?;
                let at = length + first;
                let rest: Vec<&str> = stems[at..].to_vec();
                let (and, meaning) = language.phrase(&rest)?;
                if meaning != Meaning::And {
                    return None;
                }
                let (end, second) = moment(&tokens[at + and..], language, today)?;
                let range = DraftRange::Between(Some(start.first.into()), Some(end.last.into()));
                return Some(FoundTime { length: at + and + second, range });
            }
            _ => {}
        }
    }
    let (found, length) = moment(tokens, language, today)?;
    words(length, found.words)
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
        return Some(FoundTime { length: length + 1 + inner, range });
    }
    let (inner, named) = unit_at(&stems, language)?;
    Some(FoundTime { length: length + inner, range: DraftRange::Words(format!("last {named}").into()) })
}

/// Reads `since June` and `from March to May`.
fn since(tokens: &[Token], length: usize, meaning: Meaning, language: &Language, today: Date) -> Option<FoundTime> {
    let (start, inner) = moment(&tokens[length..], language, today)?;
    let at = length + inner;
    let stems: Vec<&str> = tokens[at..].iter().map(|token| &*token.stem).collect();
    if let Some((to, Meaning::To | Meaning::Until)) = language.phrase(&stems)
        && let Some((end, second)) = moment(&tokens[at + to..], language, today)
    {
        let range = DraftRange::Between(Some(start.first.into()), Some(end.last.into()));
        return Some(FoundTime { length: at + to + second, range });
    }
    let is_open = meaning == Meaning::Since;
    let range = match is_open {
        true => DraftRange::Between(Some(start.first.into()), None),
        // `from 2013` is the year.
        false => DraftRange::Words(start.words.into()),
    };
    Some(FoundTime { length: at, range })
}

fn unit_at(stems: &[&str], language: &Language) -> Option<(usize, &'static str)> {
    let (length, meaning) = language.phrase(stems)?;
    Some((length, unit(meaning)?))
}

/// A stretch of time with a name.
#[derive(Debug)]
struct Moment {
    words: String,
    first: String,
    last: String,
}

impl Moment {
    fn of_months(year: i16, month: i8, months: i8, words: String) -> Option<Moment> {
        let first = Date::new(year, month, 1).ok()?;
        let last = Date::new(year, month + months - 1, 1).ok()?.last_of_month();
        Some(Moment { words, first: first.to_string(), last: last.to_string() })
    }
}

/// Reads a date, a year, a quarter or a month.
fn moment(tokens: &[Token], language: &Language, today: Date) -> Option<(Moment, usize)> {
    let first = tokens.first()?;
    if first.kind == TokenKind::Quoted {
        return None;
    }
    let year_at = |at: usize| tokens.get(at).and_then(|token| year(&token.lower));
    if let Some(moment) = written(&first.lower) {
        return Some((moment, 1));
    }
    if let Some(quarter) = quarter(&first.lower) {
        let (year, length) = match year_at(1) {
            Some(year) => (year, 2),
            None => (last_year(today, (quarter - 1) * 3 + 1), 1),
        };
        let words = format!("{year}-Q{quarter}");
        return Some((Moment::of_months(year, (quarter - 1) * 3 + 1, 3, words)?, length));
    }
    let stems: Vec<&str> = tokens.iter().map(|token| &*token.stem).collect();
    let (length, Meaning::MonthName(month)) = language.phrase(&stems)? else { return None };
    let month = i8::try_from(month).ok()?;
    // A day: `June 5`, `June 5 2013`.
    if let Some(TokenKind::Number(day)) = tokens.get(length).map(|token| token.kind)
        && (1.0..=31.0).contains(&day)
        && day.fract() == 0.0
        && let Some(year) = year_at(length + 1)
    {
        let date = Date::new(year, month, day as i8).ok()?.to_string();
        return Some((Moment { words: date.clone(), first: date.clone(), last: date }, length + 2));
    }
    let (year, length) = match year_at(length) {
        Some(year) => (year, length + 1),
        None => (last_year(today, month), length),
    };
    Some((Moment::of_months(year, month, 1, format!("{year}-{month:02}"))?, length))
}

/// Returns the last year in which a month began.
fn last_year(today: Date, month: i8) -> i16 {
    if month <= today.month() { today.year() } else { today.year() - 1 }
}

/// Returns whether a word alone is a time.
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

/// Reads `2013`, `2013-Q2`, `2013-02` and `2013-02-08`.
fn written(text: &str) -> Option<Moment> {
    if let Some(year) = year(text) {
        return Moment::of_months(year, 1, 12, text.to_owned());
    }
    let (head, rest) = text.split_once('-')?;
    let year = year(head)?;
    if let Some(quarter) = quarter(rest) {
        return Moment::of_months(year, (quarter - 1) * 3 + 1, 3, format!("{year}-Q{quarter}"));
    }
    if rest.len() == 2 {
        let month = rest.parse().ok().filter(|month| (1..=12).contains(month))?;
        return Moment::of_months(year, month, 1, text.to_owned());
    }
    let date: Date = text.parse().ok()?;
    let date = date.to_string();
    Some(Moment { words: date.clone(), first: date.clone(), last: date })
}
