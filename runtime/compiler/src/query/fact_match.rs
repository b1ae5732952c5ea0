//! The pre-aggregations that serve the facts of a query, and the reasons why others do not.
//!
//! In: the outcome of matching. Out: the codes of the interface in the order in which conditions are checked, a
//! sentence for each, and the lines of YAML that would help. Only administrators may see numbers of rows and the reasons
//! that come from policies. Not here: the check for administrators.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// The pre-aggregation that serves one fact of a query, or the reasons why none serves it.
#[derive(Debug, Clone, PartialEq)]
pub struct FactMatch {
    pub cube: Arc<str>,
    pub served: Option<Served>,
    /// The reasons why other pre-aggregations do not serve the fact; the nearest one is first. If one serves the fact,
    /// the list is empty except in explanations.
    pub misses: Vec<Miss>,
    /// True if no cube of the query has a pre-aggregation that the caller may see. Answers do not contain such a match.
    pub is_hidden: bool,
}

/// The tables that a fact is read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    pub rollup: Arc<str>,
    pub generation: u64,
    pub tables: usize,
    /// The number of rows in the tables.
    pub rows: u64,
    /// The time at which the oldest table was read from the cube.
    pub built_at: Timestamp,
    /// True if some rows are read from the cube.
    pub is_split: bool,
    /// True if the caller may not see the rollup, because it stores a denied member.
    pub is_hidden: bool,
    /// True if the caller may not see the numbers of tables and rows, because they describe rows that are hidden from
    /// the caller.
    pub is_limited: bool,
}

/// A rollup that does not serve a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Miss {
    /// The name of the rollup; `None` if the reason applies to all rollups of the cube.
    pub rollup: Option<Arc<str>>,
    pub reason: MissReason,
    /// The members that the reason is about; only in explanations and rejections.
    pub members: Vec<String>,
    /// The lines of YAML that the rollup lacks to fit, one per key; only in explanations and rejections.
    pub fix: Option<String>,
}

impl FactMatch {
    /// Removes reasons that disclose policies, for callers who are not administrators.
    #[must_use]
    pub fn without_policies(mut self) -> FactMatch {
        self.misses.retain(|miss| miss.reason != MissReason::Policy);
        self.served = self.served.filter(|served| !served.is_hidden);
        self
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.sentence())
    }
}

macro_rules! reasons {
    ($($name:ident $code:literal $sentence:literal,)+) => {
        /// The reason why a pre-aggregation does not serve a fact. Variants are in the order of the checks, so a
        /// greater reason is closer to a match.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum MissReason {
            $(#[doc = $sentence] $name,)+
        }

        impl MissReason {
            pub const ALL: &'static [MissReason] = &[$(MissReason::$name,)+];

            /// Returns the code of the reason in responses.
            pub fn as_str(self) -> &'static str {
                match self { $(MissReason::$name => $code,)+ }
            }

            /// Returns one sentence that explains the reason.
            pub fn sentence(self) -> &'static str {
                match self { $(MissReason::$name => $sentence,)+ }
            }
        }
    };
}

reasons! {
    Off "OFF" "Pre-aggregations are switched off for this query.",
    NoRollup "NO_ROLLUP" "The cube has no pre-aggregation.",
    Disabled "DISABLED" "Pre-aggregations are switched off by `pre_aggregations.enabled`.",
    RollingWindow "ROLLING_WINDOW" "The query aggregates rows over rolling windows, whose ends may lie within stored steps.",
    ToMany "TO_MANY" "The query reads the cube's rows over a join to many rows.",
    NotDeterministic "NOT_DETERMINISTIC" "The pre-aggregation reads an expression whose value changes without its data.",
    OtherPath "OTHER_PATH" "The pre-aggregation stores the member over another join path.",
    DimensionNotStored "DIMENSION_NOT_STORED" "The pre-aggregation does not store the dimension.",
    RawTime "RAW_TIME" "The query reads times that the pre-aggregation stores as steps only.",
    GranularityTooFine "GRANULARITY_TOO_FINE" "The pre-aggregation stores coarser steps of time.",
    GranularityNotNested "GRANULARITY_NOT_NESTED" "The steps of the query are not multiples of the stored steps.",
    FilterNotStored "FILTER_NOT_STORED" "The pre-aggregation does not store a member that the query filters by.",
    SegmentNotStored "SEGMENT_NOT_STORED" "The pre-aggregation does not store the segment.",
    RollupIsFiltered "ROLLUP_IS_FILTERED" "The pre-aggregation stores fewer rows than the query reads.",
    MeasureNotStored "MEASURE_NOT_STORED" "The pre-aggregation does not store the measure.",
    NotAdditive "NOT_ADDITIVE" "The stored values of the measure cannot be merged into coarser groups.",
    SketchUnsupported "SKETCH_UNSUPPORTED" "The warehouse cannot merge approximate counts of distinct values.",
    Policy "POLICY" "A policy needs columns that the pre-aggregation does not store.",
    NotBuilt "NOT_BUILT" "The pre-aggregation is not built.",
    DefinitionChanged "DEFINITION_CHANGED" "The pre-aggregation was built from other definitions.",
    TimeZone "TIME_ZONE" "The stored steps of time are not those of the query's time zone.",
    RangeNotCovered "RANGE_NOT_COVERED" "Rows of the query's time range are in no built partition.",
    RangeNotAligned "RANGE_NOT_ALIGNED" "The ends of the query's time range are not boundaries of stored steps.",
    Stale "STALE" "The stored data is older than the query or the definition allows.",
    MoreExpensive "MORE_EXPENSIVE" "Another pre-aggregation, or the cube itself, answers with less work.",
}
