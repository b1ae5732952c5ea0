//! Query parameters: the names that a route accepts, and a query in the URL (`GET /api/v1/query`).
//!
//! In: a query string. Out: a [`QueryRequest`], or a [`FieldError`]. A query is either `query=<JSON>`, the body of a
//! POST, or separate parameters: `metrics`, `measures` and `dimensions`, each of which may be repeated, and the other
//! fields except lists of objects. Ranges are words, or JSON as in a body. Not here: the credential `api_key` (server).

use std::time::Duration;

use serde_json::Value as Json;
use terrane_compiler::query::MemberRef;

use crate::fields::{FieldError, Path};
use crate::query::{self, QueryRequest};
use crate::{body, time};

const CREDENTIAL: &str = "api_key";
const KNOWN: &[&str] = &[
    "query",
    "metrics",
    "measures",
    "dimensions",
    "segments",
    "limit",
    "offset",
    "time_range",
    "compare_range",
    "fill_gaps",
    "ungrouped",
    "cube",
    "timezone",
    "total",
    "totals",
    "cache",
    "max_age",
    "stale",
    "pre_aggregations",
    "api_key",
];

/// A query parameter of a route.
#[derive(Debug, Clone, Copy)]
pub struct KnownParameter {
    pub name: &'static str,
    /// True if a request may contain the parameter several times.
    pub repeats: bool,
}

/// Rejects query parameters other than `known` and the credential, which every route accepts, and parameters that occur
/// twice: programs differ in which of the two values they use.
///
/// # Errors
/// Names the first parameter that is unknown or duplicate.
pub fn check_parameters(text: &str, known: impl Iterator<Item = KnownParameter> + Clone) -> Result<(), FieldError> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, _) in form_urlencoded::parse(text.as_bytes()).filter(|(name, _)| name != CREDENTIAL) {
        let Some(parameter) = known.clone().find(|known| known.name == name) else {
            return Err(Path::ROOT.unknown_parameter(&name, known.map(|known| known.name).collect()));
        };
        if !parameter.repeats && seen.contains(&parameter.name) {
            return Err(Path::ROOT.field(parameter.name).duplicate_parameter());
        }
        seen.push(parameter.name);
    }
    Ok(())
}

/// Reads a query from a query string.
///
/// # Errors
/// Names the parameter or the field that is invalid.
pub fn from_parameters(text: &str) -> Result<QueryRequest, FieldError> {
    let mut request = QueryRequest::default();
    let mut body = None;
    let mut others = false;
    let (mut metrics, mut measures) = (Vec::new(), Vec::new());
    let target = &mut request.query;
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let path = Path::ROOT.field(&name);
        others |= name != "query" && name != "api_key";
        match &*name {
            "query" => body = Some(value.into_owned()),
            "metrics" => members(&value, &path, &mut metrics)?,
            "measures" => members(&value, &path, &mut measures)?,
            "dimensions" => members(&value, &path, &mut target.dimensions)?,
            "segments" => members(&value, &path, &mut target.segments)?,
            "limit" => target.limit = Some(integer(&value, &path)?),
            "offset" => target.offset = integer(&value, &path)?,
            "time_range" => target.time_range = Some(time::range(&range(&value, &path)?, &path)?),
            "compare_range" => target.compare = Some(time::compare(&range(&value, &path)?, &path)?),
            "fill_gaps" => target.fill_gaps = boolean(&value, &path)?,
            "ungrouped" => target.ungrouped = boolean(&value, &path)?,
            "total" => target.skip_total = !boolean(&value, &path)?,
            "totals" => target.totals = boolean(&value, &path)?,
            "cache" => request.cache.bypass = !boolean(&value, &path)?,
            "max_age" => {
                let max_age = Some(Duration::from_secs(integer(&value, &path)?));
                (request.cache.max_age, target.max_staleness) = (max_age, max_age);
            }
            "pre_aggregations" => target.pre_aggregations = query::pre_aggregations(&value, &path)?,
            "stale" => request.cache.stale = Some(Duration::from_secs(integer(&value, &path)?)),
            "cube" => target.cube = Some(value.into()),
            "timezone" => target.timezone = Some(value.into()),
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, KNOWN)),
        }
    }
    match body {
        Some(_) if others => Err(Path::ROOT.both(["query", "metrics"])),
        Some(body) => query::from_wire(body.as_bytes()),
        None => {
            metrics.append(&mut measures);
            target.values = query::distinct(metrics);
            target.dimensions = query::distinct(std::mem::take(&mut target.dimensions));
            target.segments = query::distinct(std::mem::take(&mut target.segments));
            Ok(request)
        }
    }
}

/// Reads one name, or several with commas between them.
fn members(value: &str, path: &Path<'_>, into: &mut Vec<MemberRef>) -> Result<(), FieldError> {
    for name in value.split(',') {
        into.push(query::member(name.trim(), path)?);
    }
    Ok(())
}

fn integer(value: &str, path: &Path<'_>) -> Result<u64, FieldError> {
    value.parse().map_err(|_| path.invalid_value(value, "an integer, 0 or more,"))
}

pub(crate) fn boolean(value: &str, path: &Path<'_>) -> Result<bool, FieldError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(path.invalid_value(other, "`true` or `false`")),
    }
}

/// Reads a phrase unchanged, and an object or a list as JSON.
fn range(value: &str, path: &Path<'_>) -> Result<Json, FieldError> {
    if !value.starts_with(['{', '[']) {
        return Ok(Json::String(value.to_owned()));
    }
    let json = serde_json::from_str(value);
    let json = json.map_err(|_| path.invalid_value(value, "words like `last 7 days`, or JSON as in a body"))?;
    body::check_names(value.as_bytes(), path)?;
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_and_unknown_parameters_are_named() {
        let known = [("limit", false), ("tag", true)].map(|(name, repeats)| KnownParameter { name, repeats });
        let check = |text: &str| {
            let error = check_parameters(text, known.into_iter()).err()?;
            Some(crate::ErrorBody::from(error).message)
        };
        for text in ["", "limit=1", "tag=a&limit=1&tag=b", "api_key=a&api_key=b", "limit=1&api_key=limit"] {
            assert_eq!(check(text), None, "{text}");
        }
        for text in ["limit=1&limit=2", "limit=1&limit=1", "limit&tag=a&%6Cimit=2"] {
            let message = check(text).expect(text);
            assert!(message.contains("`limit`"), "{text}: {message}");
        }
        assert!(check("limit=1&other=1").is_some_and(|message| message.contains("`other`")));
    }
}
