//! A case: a file with a world and one query, which can be run without other files.
//!
//! In: JSON. Out: whether the product and the oracle agree on the query. A difference that the fuzzer found becomes
//! such a file, and stays as a test.

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::rollup::Flaw;
use terrane_wire::ErrorBody;

use crate::compare::difference;
use crate::oracle::{Outcome, Paths, Settings, answer};
use crate::product::Product;
use crate::world::{FileOrder, World, source_tree};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// A description of the difference when it was found.
    pub about: String,
    pub seed: u64,
    pub query: Json,
    pub world: World,
    /// The planted flaw that makes the product return a wrong answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
}

/// Returns the planted flaw with a name.
pub fn flaw_named(name: &str) -> Option<Flaw> {
    Flaw::ALL.into_iter().find(|flaw| format!("{flaw:?}") == name)
}

/// Returns the time and the limits for cases.
pub fn settings() -> Settings {
    // 2024-03-10T12:00Z: an hour is missing in New York on this day.
    let now = jiff::Timestamp::from_second(1_710_072_000).unwrap_or_default();
    Settings { now, default_limit: 1_000, max_limit: 50_000 }
}

/// Parses a query in the form of `POST /api/v1/query`.
///
/// # Errors
/// Returns the code with which REST refuses the query.
pub fn read(query: &Json) -> Result<SemanticQuery, &'static str> {
    // `fill_gaps` is parsed here, because REST has no field for it.
    let mut body = query.clone();
    let fill_gaps = body.as_object_mut().and_then(|body| body.remove("fill_gaps"));
    let query = terrane_wire::query::from_wire(body.to_string().as_bytes());
    let query = query.map_err(|error| ErrorBody::from(error).code.as_str())?.query;
    Ok(SemanticQuery { fill_gaps: fill_gaps == Some(Json::Bool(true)), ..query })
}

impl Case {
    /// Returns the difference between the product and the oracle; `None` if they agree or the semantics leave the
    /// result open.
    ///
    /// # Errors
    /// The world cannot be loaded, or REST refuses the query.
    pub fn difference(&self, product: &Product) -> Result<Option<String>> {
        let query = read(&self.query).map_err(|code| anyhow!("the query is not readable: {code}"))?;
        let served = product.serve(&self.world, &source_tree(&self.world, FileOrder::AsDescribed))?;
        let seen = self.world.seen();
        let paths = Paths::new(&seen);
        let verdict = answer(&seen, &paths, &query, &settings());
        if let Outcome::Open(_) = verdict.outcome {
            return Ok(None);
        }
        Ok(difference(&served.run(&query), &verdict.outcome))
    }

    /// Returns the statement of the query, for a report.
    pub fn sql(&self, product: &Product) -> String {
        let served = product.serve(&self.world, &source_tree(&self.world, FileOrder::AsDescribed));
        match (read(&self.query), served) {
            (Ok(query), Ok(served)) => served.sql(&query),
            (_, Err(error)) => error.to_string(),
            (Err(code), _) => code.to_owned(),
        }
    }
}
