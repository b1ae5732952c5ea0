//! Refusals of queries, with the facts that cases compare.

use std::sync::Arc;

use serde_json::Value;
use terrane_app::query::{QueryRunError, RequestContext};
use terrane_compiler::query::{QueryError, SemanticQuery};
use terrane_wire::{ErrorBody, FieldError, query};

use crate::Subject;

/// The error that a client receives for a refused query, and the names to which it refers.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub body: ErrorBody,
    /// Names and values of the query that the refusal is about, the most specific first.
    pub(crate) subjects: Vec<Arc<str>>,
    /// Known names that resemble the first subject, the nearest first.
    pub(crate) nearest: Vec<Arc<str>>,
    /// The error, if the query itself is the reason.
    pub(crate) error: Option<Box<QueryError>>,
    /// True if a required hook did not answer, so it is unknown whether the query would be refused.
    pub(crate) is_policy_unavailable: bool,
}

impl From<QueryRunError> for Refusal {
    fn from(error: QueryRunError) -> Self {
        let (subjects, nearest) = match &error {
            QueryRunError::Query(error) => {
                (error.subjects().into_iter().map(Arc::from).collect(), error.nearest().to_vec())
            }
            _ => (Vec::new(), Vec::new()),
        };
        let is_policy_unavailable = matches!(error, QueryRunError::PolicyUnavailable);
        let query_error = match &error {
            QueryRunError::Query(error) => Some(Box::new(error.clone())),
            _ => None,
        };
        let body = ErrorBody::for_operator(error);
        Refusal { body, subjects, nearest, error: query_error, is_policy_unavailable }
    }
}

impl From<FieldError> for Refusal {
    /// Converts the error of a body that is not a query.
    fn from(error: FieldError) -> Self {
        Refusal {
            body: error.into(),
            subjects: Vec::new(),
            nearest: Vec::new(),
            error: None,
            is_policy_unavailable: false,
        }
    }
}

/// Reads the query of a case.
pub(crate) fn parse(query: &Value) -> Result<SemanticQuery, FieldError> {
    Ok(query::from_wire(query.to_string().as_bytes())?.query)
}

/// Compiles the query of a case for its caller. Returns the keys of its result.
pub(crate) async fn compile(
    subject: Subject<'_>,
    caller: &RequestContext,
    query: &SemanticQuery,
) -> Result<Vec<Arc<str>>, Refusal> {
    let session = subject.queries.session(caller);
    let compiled = async { session.prepare(query).await?.sql().await }.await.map_err(Refusal::from)?;
    Ok(compiled.columns.into_iter().map(|column| column.key).collect())
}

/// Returns up to eight names, and the number of the remaining ones.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MAX_NAMES: usize = 8;
    let names: Vec<&str> = names.collect();
    let more = match names.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names[..names.len().min(MAX_NAMES)].join(", "))
}

/// Returns the reasons why pre-aggregations cannot answer the query, one for each pre-aggregation.
fn misses(facts: &[Value]) -> Option<String> {
    let misses = facts.iter().filter_map(|fact| fact["misses"].as_array()).flatten();
    let reasons = misses.filter_map(|miss| {
        let message = miss["message"].as_str()?.trim_end_matches('.');
        let reason = miss["reason"].as_str()?;
        Some(match miss["pre_aggregation"].as_str() {
            Some(name) => format!("{name}: {reason}, {message}"),
            None => format!("{reason}: {message}"),
        })
    });
    let reasons: Vec<String> = reasons.collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns the facts of a refusal besides its message, such as available names and the warehouse error.
pub fn hint(error: &ErrorBody) -> Option<String> {
    let hints = error.fields().filter_map(|(key, value)| {
        let text = match value {
            Value::Array(names) if key == "pre_aggregation" => return misses(names),
            Value::Array(names) => listed(names.iter().filter_map(Value::as_str)),
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        if key == "hint" {
            return Some(text.trim_end_matches('.').to_owned());
        }
        // Most messages already contain the value of the detail.
        (!text.is_empty() && !error.message.contains(&text)).then(|| format!("{}: {text}", key.replace('_', " ")))
    });
    let text = hints.collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use terrane_wire::Code;

    use super::*;

    #[test]
    fn hint_of_a_refusal_has_no_key() {
        let body = ErrorBody::new(Code::InvalidQuery, "unknown").detail("hint", "Write it.").detail("field", "a");
        let text = hint(&body).unwrap_or_default();
        assert!(text.contains("Write it") && text.contains("field: a") && !text.contains("hint"), "{text}");
    }
}
