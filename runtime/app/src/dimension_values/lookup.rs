//! Lookups among the values of searchable dimensions.
//!
//! In: dimensions that the project marks with `meta.searchable`, and a session of the caller. Out: queries for their
//! values, and the values of an answer. The queries are queries of the caller, so that policies and limits apply; a
//! lookup that is denied finds nothing. Not here: the choice of the values that a search or a question means.

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use terrane_compiler::model::Dimension;
use terrane_compiler::query::{Filter, MemberRef, OrderBy, QueryError, SemanticQuery};
use terrane_compiler::types::{DimensionType, Operator, Value};

use crate::query::{Answer, CacheControl, QueryRunError, QuerySession};

/// The largest number of dimensions whose values one request looks up. A cube that is joined in two roles counts twice:
/// the origin and the destination of a flight, each with a code and a name, are four dimensions.
pub(crate) const MAX_DIMENSIONS: usize = 16;

/// Returns whether the project allows lookups among the values of a dimension.
pub(crate) fn is_searchable(dimension: &Dimension) -> bool {
    dimension.presentation.governed.searchable && dimension.ty == DimensionType::String
}

/// Returns the query for the values of a dimension in their order, at most `limit`. The order is explicit, so that a
/// query over masked values is refused.
pub(crate) fn all(member: &str, limit: u64) -> Result<SemanticQuery, QueryError> {
    let member: MemberRef = member.parse()?;
    Ok(SemanticQuery {
        order: vec![OrderBy { member: member.clone(), descending: false }],
        dimensions: vec![member],
        limit: Some(limit),
        skip_total: true,
        ..SemanticQuery::default()
    })
}

/// Returns the query for the values that contain one of several spellings, ignoring case.
pub(crate) fn containing(member: &str, spellings: &[&str], limit: u64) -> Result<SemanticQuery, QueryError> {
    let query = all(member, limit)?;
    let condition = |spelling: &&str| Filter::Condition {
        member: query.dimensions[0].clone(),
        operator: Operator::ContainsAnyCase,
        values: vec![Value::Text((*spelling).into())],
    };
    let conditions = spellings.iter().map(condition).collect();
    Ok(SemanticQuery { filters: vec![Filter::Or(conditions)], ..query })
}

/// Returns the query for the values that equal one of several spellings.
pub(crate) fn equal(member: &str, spellings: &[&str], limit: u64) -> Result<SemanticQuery, QueryError> {
    let query = all(member, limit)?;
    let condition = Filter::Condition {
        member: query.dimensions[0].clone(),
        operator: Operator::InList,
        values: spellings.iter().map(|spelling| Value::Text((*spelling).into())).collect(),
    };
    Ok(SemanticQuery { filters: vec![condition], ..query })
}

/// Runs a query of the caller. Returns `None` if the caller may not run it.
///
/// # Errors
/// The warehouse does not answer.
pub(crate) async fn run(
    session: &QuerySession<'_>,
    query: &SemanticQuery,
    cache: CacheControl,
) -> Result<Option<Answer>, QueryRunError> {
    match async { session.prepare(query).await?.with_cache(cache).run().await }.await {
        Ok(answer) => Ok(Some(answer)),
        // The dimension may be masked, so that it cannot be filtered or ordered, or a guardrail may forbid the lookup.
        Err(QueryRunError::Query(_) | QueryRunError::Denied(_) | QueryRunError::Guardrail(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the first column as strings.
pub(crate) fn texts(answer: &Answer) -> Vec<Option<Arc<str>>> {
    let columns = answer.batches.iter().filter_map(|batch| cast(batch.columns().first()?, &DataType::Utf8).ok());
    let mut found = Vec::new();
    for column in columns {
        let values = column.as_string::<i32>();
        found.extend((0..values.len()).map(|row| values.is_valid(row).then(|| values.value(row).into())));
    }
    found
}
