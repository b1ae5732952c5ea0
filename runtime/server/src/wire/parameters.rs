//! Query parameters: which names a route knows, and a query in the address (`GET /api/v1/query`).
//!
//! Either `query=<JSON>`, the body of a POST, or `metrics`, `measures` and `dimensions` (each once a
//! name) with what else a query has that is no list of objects. Ranges are words, or JSON as in a
//! body. Not here: `api_key`, a credential; who lets the call in has looked at it.

use serde_json::Value as Json;
use terrane_compiler::query::MemberRef;

use super::body;
use super::fields::{Misfit, Path};
use super::query::{self, QueryRequest};
use super::time;
use crate::openapi::Doc;

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
    "api_key",
];

/// Refuses a query parameter that the route does not document. Every route may be sent a credential.
pub(crate) fn refuse_unknown_parameters(text: &str, doc: &Doc) -> Result<(), Misfit> {
    let known = || doc.parameters.iter().filter(|parameter| !parameter.is_in_path).map(|parameter| parameter.name);
    let mut names = form_urlencoded::parse(text.as_bytes()).map(|(name, _)| name);
    match names.find(|name| name != CREDENTIAL && !known().any(|known| known == name)) {
        Some(name) => Err(Path::ROOT.unknown_parameter(&name, known().collect())),
        None => Ok(()),
    }
}

pub(crate) fn from_parameters(text: &str) -> Result<QueryRequest, Misfit> {
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
            "limit" => target.limit = Some(whole_number(&value, &path)?),
            "offset" => target.offset = whole_number(&value, &path)?,
            "time_range" => target.time_range = Some(time::range(&range(&value, &path)?, &path)?),
            "compare_range" => target.compare = Some(time::compare(&range(&value, &path)?, &path)?),
            "fill_gaps" => target.fill_gaps = flag(&value, &path)?,
            "ungrouped" => target.ungrouped = flag(&value, &path)?,
            "total" => target.skip_total = !flag(&value, &path)?,
            "totals" => target.totals = flag(&value, &path)?,
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

/// One name, or several with commas between them.
fn members(value: &str, path: &Path<'_>, into: &mut Vec<MemberRef>) -> Result<(), Misfit> {
    for name in value.split(',') {
        into.push(query::member(name.trim(), path)?);
    }
    Ok(())
}

fn whole_number(value: &str, path: &Path<'_>) -> Result<u64, Misfit> {
    value.parse().map_err(|_| path.wrong_word(value, "a whole number, 0 or more"))
}

fn flag(value: &str, path: &Path<'_>) -> Result<bool, Misfit> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(path.wrong_word(other, "`true` or `false`")),
    }
}

/// Words stand as they are; an object or a list is JSON.
fn range(value: &str, path: &Path<'_>) -> Result<Json, Misfit> {
    if !value.starts_with(['{', '[']) {
        return Ok(Json::String(value.to_owned()));
    }
    let json = serde_json::from_str(value);
    let json = json.map_err(|_| path.wrong_word(value, "words like `last 7 days`, or JSON as in a body"))?;
    body::check_names(value.as_bytes(), path)?;
    Ok(json)
}
