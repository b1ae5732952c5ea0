//! The use of pre-aggregations by the facts of a query.
//!
//! In: the outcome of matching. Out: for each fact the pre-aggregation that serves it, and the misses, nearest first.
//! Only administrators see numbers of rows and the reasons that come from policies. Not here: matching itself.

use schemars::JsonSchema;
use serde::Serialize;
use terrane_compiler::query::{FactMatch, Miss, MissReason, Served};

use crate::schema;

/// The pre-aggregation that serves a fact of a query, or the reasons why none does.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FactPreAggregation<'a> {
    cube: &'a str,
    /// Null if the rows of the cube are read.
    served_by: Option<ServedBy<'a>>,
    /// The pre-aggregations that do not serve it. Those that meet the most conditions come first.
    misses: Vec<PreAggregationMiss<'a>>,
}

/// The tables that are read instead of a cube's rows.
#[derive(Debug, Serialize, JsonSchema)]
struct ServedBy<'a> {
    pre_aggregation: &'a str,
    /// The number of tables; only for callers from whom no rows of the cube are hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<usize>,
    /// The number of rows of the tables; only for callers with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    /// The time at which the oldest of the tables was read from the cube.
    #[schemars(schema_with = "schema::timestamp")]
    built_at: String,
    /// True if the rest of the time range is read from the rows of the cube.
    reads_rows: bool,
}

/// A pre-aggregation that does not serve a fact.
#[derive(Debug, Serialize, JsonSchema)]
struct PreAggregationMiss<'a> {
    /// The pre-aggregation; null if the reason applies to all of the cube.
    pre_aggregation: Option<&'a str>,
    #[schemars(schema_with = "reasons")]
    reason: &'static str,
    message: &'static str,
    /// The members that the reason is about; in explanations and errors only.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    members: &'a [String],
    /// The lines of YAML that the pre-aggregation lacks, or a definition if the cube has none; in explanations and
    /// errors only.
    #[serde(skip_serializing_if = "Option::is_none")]
    add: Option<&'a str>,
}

fn reasons(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let codes: Vec<&str> = MissReason::ALL.iter().map(|reason| reason.as_str()).collect();
    schemars::json_schema!({"type": "string", "enum": codes})
}

impl<'a> FactPreAggregation<'a> {
    /// Converts a match. Misses that policies cause and numbers of rows are included if `is_admin` is true.
    pub(crate) fn new(fact: &'a FactMatch, is_admin: bool) -> Self {
        let misses = fact.misses.iter().filter(|miss| is_admin || miss.reason != MissReason::Policy);
        FactPreAggregation {
            cube: &fact.cube,
            served_by: fact
                .served
                .as_ref()
                .filter(|served| !served.is_hidden)
                .map(|served| served_by(served, is_admin)),
            misses: misses.map(miss).collect(),
        }
    }
}

fn served_by(served: &Served, is_admin: bool) -> ServedBy<'_> {
    ServedBy {
        pre_aggregation: &served.rollup,
        tables: (!served.is_limited).then_some(served.tables),
        rows: is_admin.then_some(served.rows),
        built_at: served.built_at.to_string(),
        reads_rows: served.is_split,
    }
}

fn miss(miss: &Miss) -> PreAggregationMiss<'_> {
    PreAggregationMiss {
        pre_aggregation: miss.rollup.as_deref(),
        reason: miss.reason.as_str(),
        message: miss.reason.sentence(),
        members: &miss.members,
        add: miss.fix.as_deref(),
    }
}
