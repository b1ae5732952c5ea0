//! The invalidation of cached results.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};

/// The cubes whose data changed.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CacheInvalidation {
    /// All cubes if it is absent.
    pub cubes: Option<Vec<String>>,
}

/// The cubes whose cached results are no longer used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CacheInvalidated {
    /// All cubes if it is null.
    pub cubes: Option<Vec<String>>,
    /// The tenant of the caller. Results of other tenants are unchanged. Null without tenants.
    pub tenant: Option<String>,
}

pub(crate) const INVALIDATION: &[&str] = &["cubes"];
const CUBES: &str = "a list of cubes, like [\"orders\"],";

/// Reads the body of an invalidation, which may be empty.
///
/// # Errors
/// Names the field that is invalid.
pub fn invalidation_from_wire(body: &[u8]) -> Result<Option<Vec<String>>, FieldError> {
    if body.is_empty() {
        return Ok(None);
    }
    let value = parse(body)?;
    let fields = Fields::new(&value, &Path::ROOT, "an object like {\"cubes\": [\"orders\"]}", INVALIDATION)?;
    match fields.get("cubes") {
        None => Ok(None),
        Some(_) => fields.list("cubes", CUBES, name).map(Some),
    }
}

fn name(value: &Json, path: &Path<'_>) -> Result<String, FieldError> {
    match value {
        Json::String(text) => Ok(text.clone()),
        other => Err(path.invalid_type(other, "a cube's name")),
    }
}
