//! Query parameters that several lists have.

use terrane_app::monitors::MAX_LISTED;

use crate::body;
use crate::fields::{FieldError, Fields, Path};

/// The largest number of records in a list if the request has no `limit`.
pub(super) const DEFAULT_LIMIT: u32 = 100;

pub(super) fn limit(text: &str, path: &Path<'_>) -> Result<u32, FieldError> {
    let limit = text.parse::<u32>().ok().filter(|limit| (1..=MAX_LISTED).contains(limit));
    limit.ok_or_else(|| path.invalid_value(text, format!("an integer from 1 to {MAX_LISTED}")))
}

/// Checks the body of a route whose requests have no fields.
///
/// # Errors
/// The body is not JSON, is not an object, or has a field.
pub fn no_fields_from_wire(body: &[u8]) -> Result<(), FieldError> {
    if body.is_empty() {
        return Ok(());
    }
    Fields::new(&body::parse(body)?, &Path::ROOT, "no body, or an empty JSON object", &[]).map(|_| ())
}
