//! The interpretation of a question: a draft of a query, or questions back to the caller.

use std::sync::Arc;

use jiff::Span;
use jiff::civil::Date;

use crate::spelling::is_misspelled;
use crate::times;

/// A query by the names of members.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// The measures and metrics.
    pub values: Vec<Arc<str>>,
    pub groups: Vec<DraftGroup>,
    /// The conditions that all hold.
    pub filters: Vec<DraftFilter>,
    /// Lists of conditions. Of each list, at least one holds.
    pub alternatives: Vec<Vec<DraftFilter>>,
    pub segments: Vec<Arc<str>>,
    pub range: Option<DraftRange>,
    /// The first and the last day of an excluded range of time.
    pub excluded: Option<(Arc<str>, Arc<str>)>,
    /// The time dimension that the question names; `None` for the primary time dimension of the cube.
    pub time: Option<Arc<str>>,
    /// The granularity of the grouped time.
    pub granularity: Option<&'static str>,
    pub compare: Option<Comparison>,
    pub order: Option<DraftOrder>,
    pub limit: Option<u64>,
    /// True if each value is also computed without groups, for shares of a total.
    pub totals: bool,
}

/// A dimension to group by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftGroup {
    pub member: Arc<str>,
    pub granularity: Option<&'static str>,
}

/// A condition on a member.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftFilter {
    pub member: Arc<str>,
    /// The name of the operator in queries.
    pub operator: &'static str,
    pub values: Vec<DraftValue>,
}

/// A value of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum DraftValue {
    Text(Arc<str>),
    Number(f64),
    Boolean(bool),
}

/// A range of time that limits the rows, or with which they are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftRange {
    /// Words that a query accepts, such as `last 7 days` or `2024-Q3`.
    Words(Arc<str>),
    /// The first and the last date, both inclusive. `None` is an open end.
    Between(Option<Arc<str>>, Option<Arc<str>>),
}

/// The period that values are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// An interval such as `1 year`.
    Shift(Arc<str>),
    Range(DraftRange),
}

/// The order of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftOrder {
    pub member: Arc<str>,
    pub is_descending: bool,
}

/// The units of numbers. Units of time are converted to one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Minutes,
    Hours,
    Days,
    /// Hundredths, as in `75%`. The number is the fraction: 0.75.
    Percent,
    /// Any other unit, by its name. Numbers with the unit are compared without conversion.
    Named(Arc<str>),
}

/// The aggregate function of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aggregation {
    Count,
    CountDistinct,
    Sum,
    Average,
    Minimum,
    Maximum,
}

/// The desired end of the values of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Desired {
    High,
    Low,
}

impl Unit {
    /// Returns the length of a unit of time in seconds, or `None` for other units.
    pub(crate) fn seconds(&self) -> Option<f64> {
        match self {
            Unit::Seconds => Some(1.0),
            Unit::Minutes => Some(60.0),
            Unit::Hours => Some(3_600.0),
            Unit::Days => Some(86_400.0),
            Unit::Percent | Unit::Named(_) => None,
        }
    }

    /// Returns true if numbers with these two units can be compared.
    pub(crate) fn fits(&self, other: &Unit) -> bool {
        self == other || (self.seconds().is_some() && other.seconds().is_some())
    }
}

/// A part of the question, and its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The text as the user wrote it.
    pub text: String,
    pub meaning: String,
    /// The other members that this part of the question could mean.
    pub alternatives: Vec<Arc<str>>,
}

/// A question to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clarification {
    /// The unclear part of the question. It is empty if the question as a whole is unclear.
    pub text: String,
    pub message: String,
    /// Names of members, or words that replace the unclear part; best first. It is never empty.
    pub choices: Vec<Arc<str>>,
}

/// Words to look up among the values of dimensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lookup {
    /// The spellings of the words.
    pub spellings: Vec<String>,
    /// The spellings of the single words, which are looked up if no value contains the words together.
    pub parts: Vec<String>,
    /// Parts of the single words, to find values despite a typing mistake. They are looked up if no value contains a
    /// whole word. A value that contains a part is accepted only if it also [is spelled
    /// similarly](Self::is_misspelled).
    pub fragments: Vec<String>,
    /// Spellings of a word of the language, such as `AS`, that only a whole value equals.
    pub whole: Vec<String>,
}

impl Lookup {
    /// Returns whether one of the words is a word of a value with a typing mistake.
    pub fn is_misspelled(&self, value: &str) -> bool {
        self.spellings.iter().chain(&self.parts).any(|word| is_misspelled(word, value))
    }
}

/// A question that has been interpreted.
#[derive(Debug, Clone, PartialEq)]
pub struct Interpretation {
    pub draft: Draft,
    pub pieces: Vec<Piece>,
    /// The confidence in the draft from 0 to 1: the mean certainty of its parts, halved if anything is unclear.
    pub confidence: f64,
    /// The questions back to the caller. If there are none, the draft covers the whole question.
    pub clarifications: Vec<Clarification>,
    /// Words without a meaning, which may be values of dimensions.
    pub unknown: Vec<String>,
    /// The words to look up among the values of dimensions.
    pub lookups: Vec<Lookup>,
    /// True if a time has no year, so that the date of the newest data determines the year.
    pub is_dated: bool,
    /// The cube that the question is about.
    pub cube: Option<Arc<str>>,
    /// The cubes that join the cube of the question, if the question has words without a meaning: the words may be
    /// values that only these cubes reach, as the airport in `how many airlines fly to Miami`.
    pub joining: Vec<Arc<str>>,
}

impl Interpretation {
    /// Returns whether the range of time depends on today, as `last month` does.
    pub fn is_relative(&self) -> bool {
        self.relative_range().is_some_and(|words| times::relative_start(words, Date::MAX).is_some())
    }

    /// States in the interpretation that the range of time begins after the newest data, if it does. The rows of such a
    /// query are empty, although the question is clear.
    pub fn note_end_of_data(&mut self, newest: Date, today: Date) {
        let Some(words) = self.relative_range().cloned() else { return };
        if times::relative_start(&words, today).is_none_or(|start| start <= newest) {
            return;
        }
        let meaning = format!("the time {words}");
        let note = format!("{meaning}, but the newest data is of {newest}");
        match self.pieces.iter_mut().find(|piece| piece.meaning == meaning) {
            Some(piece) => piece.meaning = note,
            None => self.pieces.push(Piece { text: words.to_string(), meaning: note, alternatives: Vec::new() }),
        }
    }

    /// Returns whether the values are compared with a time that does not depend on today.
    pub fn compares_dates(&self) -> bool {
        self.compared_end().is_some()
    }

    /// Asks the caller for another time if the values are compared with one before the oldest data. The values of that
    /// time would be empty.
    pub fn check_start_of_data(&mut self, oldest: Date) {
        let Some(end) = self.compared_end().filter(|end| *end < oldest) else { return };
        let Some(range) = &self.draft.range else { return };
        let choice = match range {
            DraftRange::Words(words) => Arc::clone(words),
            DraftRange::Between(..) => oldest.to_string().into(),
        };
        let message = format!("the compared time ends on {end}, but the oldest data is of {oldest}");
        self.clarifications.push(Clarification { text: String::new(), message, choices: vec![choice] });
        self.confidence = (self.confidence * 50.0).round() / 100.0;
    }

    /// Returns the last day of the time that the values are compared with.
    fn compared_end(&self) -> Option<Date> {
        let end = |range: &DraftRange| match range {
            DraftRange::Words(words) => times::last_day(words),
            DraftRange::Between(_, end) => end.as_ref()?.parse().ok(),
        };
        match self.draft.compare.as_ref()? {
            Comparison::Range(range) => end(range),
            Comparison::Shift(interval) => {
                let interval: Span = interval.parse().ok()?;
                end(self.draft.range.as_ref()?)?.checked_sub(interval).ok()
            }
        }
    }

    fn relative_range(&self) -> Option<&Arc<str>> {
        match &self.draft.range {
            Some(DraftRange::Words(words)) => Some(words),
            _ => None,
        }
    }
}
