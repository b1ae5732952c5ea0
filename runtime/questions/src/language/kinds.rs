//! The meanings of phrases that do not name members.

use crate::draft::Aggregation;

/// The meanings of phrases that do not name members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Meaning {
    Group,
    And,
    Top,
    Bottom,
    Best,
    Worst,
    /// An adjective that ranks by a quality, such as `fastest`: its index in the superlatives of the language.
    Superlative(u16),
    /// A word for an aggregation, such as `average`.
    Aggregate(Aggregation),
    Ascending,
    Descending,
    Sort,
    Rank,
    /// A verb before the groups and the measure of a ranking, as in `rank products by revenue`.
    RankThings,
    More,
    AtLeast,
    Less,
    AtMost,
    Between,
    Equals,
    Not,
    /// A word before the second of two excluded things, such as `nor`.
    Nor,
    Contains,
    StartsWith,
    EndsWith,
    Missing,
    Since,
    Until,
    /// A word behind a length of time that is counted back from now, as in `two weeks ago`.
    Ago,
    /// A word before a time that may be the start of a range, its end, or the whole time: `as of`.
    AsOf,
    Before,
    After,
    From,
    To,
    Last,
    This,
    Today,
    Yesterday,
    Versus,
    /// A word such as `worse than`, which compares two periods.
    Comparative,
    Compare,
    PreviousPeriod,
    /// A comparison of periods of a unit with the ones before, such as `year over year`.
    Over(&'static str),
    /// A comparison with the last year, such as `vs last year`.
    VersusLastYear,
    Share,
    Which,
    HowMany,
    /// `how much`: a measure follows, and rows are not counted.
    HowMuch,
    /// `how did`: a measure follows.
    How,
    /// A verb such as `change`, which needs a step of time or a comparison.
    Change,
    /// A question for a quality, such as `how old`: its index in the superlatives of the language.
    Quality(u16),
    /// A word for the period before another one: `the previous month`. Without a comparison, it means the last one.
    Previous,
    /// A season, which has no fixed months.
    Season,
    Weekday,
    /// A calculation that only a measure of the project can make, such as `cumulative`.
    Calculation,
    /// A word that holds a sentence together, such as `the`.
    Ignore,
    /// A verb that adds nothing to the members around it, such as `have` and `go`.
    Verb,
    Percent,
    Half,
    /// A day with a name, such as Christmas Day: its index in the named days of the language.
    NamedDay(u16),
    /// A part of the day: its first and last hour.
    PartOfDay(u8, u8),
    Am,
    Pm,
    OClock,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Daily,
    Weekly,
    Monthly,
    Quarterly,
    Yearly,
    Hourly,
    OverTime,
    MonthName(u8),
}
