//! The items of a question: phrases of the language, members, times, numbers, values and quoted strings.

use jiff::civil::Date;

use crate::draft::{DraftRange, Unit};
use crate::language::{Language, Meaning};
use crate::members::{KnownValue, KnownValues, Vocabulary};

/// A part of a question with one meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// The text as the user wrote it.
    pub(super) text: String,
    pub(super) kind: ItemKind,
    /// True if its last word has an ending, as plurals have.
    pub(super) is_plural: bool,
    /// True if a typing mistake was corrected.
    pub(super) is_corrected: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ItemKind {
    Word(Meaning),
    /// An adjective that ranks; the flag is true if it only orders the rows, as in `fastest first`. If the word is also
    /// the name of members, these are the candidates.
    Superlative(u16, bool, Option<Candidates>),
    Member(Candidates),
    Time(TimeItem),
    /// A granularity. The flag is true if its words contain a word for groups, as in `by month`.
    Step(&'static str, bool),
    Number(f64, Option<Unit>),
    /// Words that are a value of some dimensions, or a part of such values.
    Value(Vec<KnownValue>),
    /// A string in quotation marks.
    Quoted,
    /// A word without a meaning.
    Unknown,
}

/// A range of time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TimeItem {
    pub(super) range: DraftRange,
    /// The first and the last day, if they are known.
    pub(super) days: Option<(Date, Date)>,
    /// True if the date of the newest data decided on the year.
    pub(super) is_dated: bool,
    /// True for a range such as `the previous month`.
    pub(super) is_previous: bool,
    /// The first and the last period of a range that names both.
    pub(super) ends: Option<(DraftRange, DraftRange)>,
}

/// The members that an item may mean.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Candidates {
    pub(super) members: Vec<usize>,
    /// The members that match only by a synonym, not by name or title.
    pub(super) by_synonym: Vec<usize>,
    /// The members whose name in queries matches.
    pub(super) by_name: Vec<usize>,
    /// The certainty: 1 if all words of a phrase match, and less if only some match or a typing mistake was corrected.
    pub(super) certainty: f64,
}

/// The context in which a question is split.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) vocabulary: &'c Vocabulary,
    pub(super) values: &'c KnownValues,
    pub(super) language: &'c Language,
    /// The date of the newest data, or today.
    pub(super) newest: Date,
}
