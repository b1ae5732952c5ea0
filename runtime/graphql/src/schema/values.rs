//! The values of a dimension.
//!
//! In: a dimension, a search and a limit. Out: values with their frequency, as a query of the caller gives them: under
//! the caller's policies and the limits of queries.

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;
use async_graphql::SimpleObject;
use terrane_app::metadata;
use terrane_app::query::Answer;
use terrane_compiler::model::{AggregateFunction, MeasureKind};
use terrane_compiler::query::{Filter, MemberRef, OrderBy, QueryError, SemanticQuery};
use terrane_compiler::types::{Operator, Value};
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

/// The label of null.
const NO_VALUE: &str = "(none)";

/// Returns the values of a dimension.
///
/// # Errors
/// As a query of the caller.
pub(crate) async fn of(
    state: &RequestState,
    cube: &str,
    dimension: &str,
    limit: u32,
    search: Option<String>,
) -> Result<Vec<DimensionValue>, Failure> {
    let member: MemberRef = format!("{cube}.{dimension}").parse()?;
    let count = count_measure(state, cube)?;
    let search = search.filter(|text| !text.is_empty()).map(|text| Filter::Condition {
        member: member.clone(),
        operator: Operator::ContainsAnyCase,
        values: vec![Value::Text(text.into())],
    });
    let ascending = OrderBy { member: member.clone(), descending: false };
    let frequent = count.iter().map(|count| OrderBy { member: count.clone(), descending: true });
    let query = SemanticQuery {
        order: frequent.chain([ascending]).collect(),
        values: count.into_iter().collect(),
        dimensions: vec![member],
        filters: search.into_iter().collect(),
        limit: Some(limit.into()),
        skip_total: true,
        ..SemanticQuery::default()
    };
    let (answer, _) = state.run(query).await?;
    Ok(values(&answer))
}

/// Returns the measure that counts the rows of a cube, if the caller may see one.
fn count_measure(state: &RequestState, cube: &str) -> Result<Option<MemberRef>, QueryError> {
    let access = state.parts.access();
    let Some(cube) = metadata::cube(&access, cube) else { return Ok(None) };
    let counts = metadata::measures(&access, cube).find(|measure| {
        matches!(&measure.kind, MeasureKind::Aggregate(aggregate)
            if aggregate.function == AggregateFunction::Count
                && aggregate.argument.is_none()
                && aggregate.filters.is_empty())
    });
    counts.map(|measure| format!("{}.{}", cube.name, measure.name).parse()).transpose()
}

fn values(answer: &Arc<Answer>) -> Vec<DimensionValue> {
    let mut found = Vec::new();
    for batch in &answer.batches {
        let counts = answer.columns.get(1).map(|_| integers(batch, 1));
        for (row, value) in texts(answer, batch).into_iter().enumerate() {
            let label = value.clone().unwrap_or_else(|| NO_VALUE.to_owned());
            let count = counts.as_ref().and_then(|counts| counts.get(row).copied().flatten());
            found.push(DimensionValue { value, label, count });
        }
    }
    found
}

/// Returns the values of the first column as REST writes them.
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

fn integers(batch: &RecordBatch, column: usize) -> Vec<Option<i64>> {
    let Some(array) = batch.columns().get(column) else { return Vec::new() };
    let Ok(array) = arrow::compute::cast(array, &arrow::datatypes::DataType::Int64) else { return Vec::new() };
    let integers = array.as_primitive::<Int64Type>();
    (0..integers.len()).map(|row| integers.is_valid(row).then(|| integers.value(row))).collect()
}
