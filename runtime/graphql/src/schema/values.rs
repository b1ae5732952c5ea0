//! The values of a dimension.
//!
//! In: a dimension, a search and a limit. Out: the values and their frequency, as a query of the caller returns them
//! (`terrane_app::dimension_values`).

use std::sync::Arc;

use arrow::array::RecordBatch;
use async_graphql::SimpleObject;
use terrane_app::dimension_values::{ValuesRequest, row_counts};
use terrane_app::query::Answer;
use terrane_wire::json::{Numbers, write_lists};

use super::request::RequestState;
use crate::failure::Failure;

/// A value of a dimension.
#[derive(Debug, PartialEq, Eq, SimpleObject)]
pub(crate) struct DimensionValue {
    /// The value as a filter takes it; null for rows without one.
    value: Option<String>,
    /// The value for display.
    label: String,
    /// The number of rows, as the cube's own count measure gives it; null if the cube has none.
    count: Option<i64>,
}

/// The label of the value null.
const NO_VALUE: &str = "(none)";

/// Returns the values of a dimension.
///
/// # Errors
/// Returns the errors of a query that the caller runs.
pub(crate) async fn of(state: &RequestState, request: ValuesRequest<'_>) -> Result<Vec<DimensionValue>, Failure> {
    let query = request.query(&state.parts.access())?;
    let (answer, _) = state.run(query).await?;
    Ok(values(&answer))
}

fn values(answer: &Arc<Answer>) -> Vec<DimensionValue> {
    let mut found = Vec::new();
    for batch in &answer.batches {
        let counts = row_counts(answer, batch);
        for (row, value) in texts(answer, batch).into_iter().enumerate() {
            let label = value.clone().unwrap_or_else(|| NO_VALUE.to_owned());
            let count = counts.as_ref().and_then(|counts| counts.get(row).copied().flatten());
            found.push(DimensionValue { value, label, count });
        }
    }
    found
}

/// Returns the values of the first column in the form in which REST writes them.
fn texts(answer: &Answer, batch: &RecordBatch) -> Vec<Option<String>> {
    let mut out = vec![b'['];
    write_lists(answer.columns.get(..1).unwrap_or_default(), std::slice::from_ref(batch), Numbers::Plain, &mut out);
    out.push(b']');
    let rows: Vec<(serde_json::Value,)> = serde_json::from_slice(&out).unwrap_or_default();
    let text = |(value,): (serde_json::Value,)| match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    rows.into_iter().map(text).collect()
}
