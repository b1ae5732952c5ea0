//! The meanings of phrases that do not name members, and the lists of single words.

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
    /// An order by names that names no member, such as `alphabetically`.
    Alphabetical,
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
    /// A word such as `off` that changes the meaning of the words around it.
    Particle,
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

/// Lists of single words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WordList {
    /// Words that link the words of a name, such as `of`.
    Links,
    /// Words before the unit of an answer, such as `in`.
    UnitWords,
    /// Words after the end of the order that comes first, as in `worst first`.
    First,
    /// Words that join alternatives.
    Or,
    /// Words between a measure and the rows that it is about, such as `of`.
    Possession,
    /// Words for a missing value, such as `without`.
    Lack,
    /// Nouns that add nothing to a value before them, such as `goods`.
    Things,
    /// Nouns that add nothing to the name of a dimension before them, such as `address`.
    NameNouns,
    /// Adjectives that are redundant beside a verb of creation, such as `new` in `new customers registered`.
    New,
    /// Comparisons of an age, such as `over` in `customers over 65`.
    AgeComparisons,
    /// The words for an age in the names of members.
    AgeNames,
    /// The endings of participles.
    Participles,
    /// Words before the subject of a question, such as `did`. The verb follows the subject.
    Auxiliaries,
    /// Verbs before an origin, such as `leave`.
    FromVerbs,
    /// Verbs before a destination, such as `reach`.
    ToVerbs,
    /// Words before the larger one of two compared numbers, such as `more` in `more orders in May than in April`.
    Openers,
    /// Words between the two sides of a comparison, such as `than`.
    Than,
    /// Words for groups that also introduce the last day of a range, as in `by 1 June`.
    End,
    /// Words for groups that also mean `after` before a time, as the German `nach` does.
    After,
    /// Words for an origin that also mean `since` before a time, as the German `ab` does.
    Since,
    /// Words behind the first day of an open range, as in `from June on`.
    Onward,
    /// Words for groups that also introduce a whole range of time, as in `across 2013`.
    Span,
    /// Words directly behind a verb that change its meaning, such as `off`.
    Particles,
    /// Verbs with a particle that is also a preposition, such as `came in`.
    PhrasalVerbs,
    /// Particles of a verb that end the question, as the German `an` in `kamen in JFK an`.
    LastParticles,
    /// Verbs with a particle that adds nothing, such as `ended up`.
    PlainParticles,
    /// Words that exclude what follows after a word for all things, such as `but`, and the words for all things.
    But,
    All,
    /// Words for single groups, such as `each`.
    Each,
    /// Words that exclude groups with other rows, such as `only` in `which airlines fly only from JFK`.
    Only,
    /// Pronouns behind the name that they are about, such as `who`.
    Relatives,
    /// Words that ask for persons, such as `who`.
    Persons,
    /// Words that rank by the sum of the number behind them, such as `most`.
    Amounts,
    /// Verbs that state that something happens, such as `occurred`.
    Occurrences,
    /// Words that ask for a time, such as `when`.
    AskedTimes,
    /// Words before examples, such as `like`.
    Examples,
    /// Verbs for states, such as `located`. They are no events of another cube.
    States,
    /// Words before something that is present, such as `with a`.
    Presence,
    /// Verbs for events that often have a time dimension of their own, such as `shipped`.
    DatedVerbs,
    /// Words that describe rows when they follow `is`, such as `full`, and words that do so only at the end of a
    /// question, such as `on`.
    Predicates,
    Prepositions,
    /// Words for an owner, such as `their`.
    Possessives,
    /// Words at the start of a question for what a verb yields, as in `what did customers spend`.
    Objects,
    /// Words before the second of two excluded things, such as `nor`, and the words before the first one.
    Nor,
    Neither,
    /// Words before a word for a share, such as the first one of `as a share of`.
    As,
    /// The stems of words for a share in the names of measures, such as `rate`.
    ShareNouns,
    /// Words that introduce a value, such as `called`.
    Naming,
    /// Words before a condition, such as `where`.
    Conditions,
    /// Words before a group that also divide a sum by a number of things, such as `per`.
    Per,
    /// Words and prefixes that mark a value as a lack, as in `not insured` and `uninsured`.
    LackOfValue,
    LackPrefixes,
}
