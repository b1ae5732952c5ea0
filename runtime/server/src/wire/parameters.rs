//! `GET /api/v1/query`: the same query in the address.
//!
//! Either `query=<JSON>`, the body of a POST, or `metrics`, `measures` and `dimensions` (each once a
//! name) with `limit` and `offset`. `api_key` is a credential and no part of the query.

use terrane_compiler::query::MemberRef;

use super::fields::{Misfit, Path};
use super::query::{self, QueryRequest};

const KNOWN: &[&str] =
    &["query", "metrics", "measures", "dimensions", "segments", "limit", "offset", "cube", "timezone", "api_key"];

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
