//! Query parameters that several lists have.

use terrane_app::monitors::MAX_LISTED;

use crate::fields::{FieldError, Path};

/// The number of records without `limit`.
pub(super) const DEFAULT_LIMIT: u32 = 100;

/// Reads `limit`.
pub(super) fn limit(text: &str, path: &Path<'_>) -> Result<u32, FieldError> {
    let limit = text.parse::<u32>().ok().filter(|limit| (1..=MAX_LISTED).contains(limit));
    limit.ok_or_else(|| path.invalid_value(text, format!("an integer from 1 to {MAX_LISTED}")))
}
