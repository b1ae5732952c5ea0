//! Filters: conditions and trees of conditions.
//!
//! In: JSON. Out: a [`query::Filter`], at most [`MAX_FILTER_DEPTH`] deep, or a [`FieldError`].

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value as Json, json};
use terrane_compiler::query::{self, MAX_FILTER_DEPTH, Operator, QueryError};
use terrane_compiler::types::Value;

use crate::fields::{FieldError, Fields, Path};
use crate::query::{Member, member};
use crate::{number, schema};

/// A condition, or a tree of conditions, at most 32 deep.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum Filter {
    Dimension(Condition),
    Member(MemberCondition),
    And(AndFilter),
    Or(OrFilter),
    Not(NotFilter),
}

/// A condition on a member.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("not" = json!({ "required": ["value", "values"] })))]
pub struct Condition {
    pub dimension: Member,
    pub operator: OperatorName,
    pub value: Option<FilterValues>,
    pub values: Option<FilterValues>,
}

/// A condition, with `member` for `dimension`.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("not" = json!({ "required": ["value", "values"] })))]
pub struct MemberCondition {
    pub member: Member,
    pub operator: OperatorName,
    pub value: Option<FilterValues>,
    pub values: Option<FilterValues>,
}

/// All of the filters hold.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AndFilter {
    pub and: Vec<Filter>,
}

/// One of the filters holds.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OrFilter {
    pub or: Vec<Filter>,
}

/// The filter does not hold.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NotFilter {
    pub not: Box<Filter>,
}

/// One value or a list of values.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Values", untagged)]
pub enum FilterValues {
    One(Scalar),
    Several(Vec<Scalar>),
}

/// A string, a number, a boolean or null.
#[derive(Debug)]
pub struct Scalar;

impl JsonSchema for Scalar {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean", "null"] })
    }
}

/// The name of an operator.
#[derive(Debug)]
pub struct OperatorName;

impl JsonSchema for OperatorName {
    fn schema_name() -> Cow<'static, str> {
        "Operator".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::words(&Operator::ALL.map(Operator::as_str))
    }
}

const FILTER: &str = "a filter like {\"dimension\": …, \"operator\": …, \"value\": …}";
const CONDITION: &[&str] = &["dimension", "member", "operator", "value", "values", "and", "or", "not"];

pub(crate) fn from_wire(value: &Json, path: &Path<'_>) -> Result<query::Filter, FieldError> {
    read(value, path, 1)
}

fn read(value: &Json, path: &Path<'_>, depth: usize) -> Result<query::Filter, FieldError> {
    if depth > MAX_FILTER_DEPTH {
        return Err(path.rejected(QueryError::TooDeep { limit: MAX_FILTER_DEPTH }));
    }
    let fields = Fields::new(value, path, FILTER, CONDITION)?;
    let tree = ["and", "or", "not"].into_iter().find(|word| fields.get_or_null(word).is_some());
    let Some(word) = tree else { return condition(&fields, path) };
    if let Some(other) = CONDITION.iter().copied().find(|other| *other != word && fields.get_or_null(other).is_some()) {
        return Err(path.both([word, other]));
    }
    let inner = |item: &Json, path: &Path<'_>| read(item, path, depth + 1);
    Ok(match word {
        "and" => query::Filter::And(branches(&fields, path, "and", inner)?),
        "or" => query::Filter::Or(branches(&fields, path, "or", inner)?),
        _ => {
            let value = fields.get_or_null("not").unwrap_or(&Json::Null);
            query::Filter::Not(Box::new(inner(value, &path.field("not"))?))
        }
    })
}

fn branches(
    fields: &Fields<'_>,
    path: &Path<'_>,
    word: &'static str,
    read: impl Fn(&Json, &Path<'_>) -> Result<query::Filter, FieldError>,
) -> Result<Vec<query::Filter>, FieldError> {
    match fields.get(word) {
        None => Err(path.field(word).invalid_type(&Json::Null, "a list of filters")),
        Some(_) => fields.list(word, "a list of filters", read),
    }
}

fn condition(fields: &Fields<'_>, path: &Path<'_>) -> Result<query::Filter, FieldError> {
    let name = match (fields.get("dimension"), fields.get("member")) {
        (Some(_), Some(_)) => return Err(path.both(["dimension", "member"])),
        (None, Some(_)) => "member",
        _ => "dimension",
    };
    let text = fields.required_string(name, "a member, like \"orders.status\",")?;
    let member = member(text, &path.field(name))?;
    let word = fields.required_string("operator", "an operator, like \"equals\",")?;
    let operator: Operator = word.parse().map_err(|error| path.field("operator").rejected(error))?;
    let (name, value) = match (fields.get_or_null("value"), fields.get_or_null("values")) {
        (Some(_), Some(_)) => return Err(path.both(["value", "values"])),
        (Some(value), None) => ("value", Some(value)),
        (None, value) => ("values", value),
    };
    let values = match (value, operator) {
        // Clients that send every field send null for a missing value.
        (None | Some(Json::Null), Operator::Set | Operator::NotSet) => Vec::new(),
        (None, _) => Vec::new(),
        (Some(value), Operator::Between) if !are_scalars(value) => {
            let value = value.to_string().chars().take(100).collect();
            let error = QueryError::ValueDoesNotFit { member: member.text, value, expected: "a list of two bounds" };
            return Err(path.field(name).rejected(error));
        }
        (Some(value), _) => values(value, &path.field(name))?,
    };
    Ok(query::Filter::Condition { member, operator, values })
}

/// Returns whether a value contains neither objects nor nested lists.
fn are_scalars(value: &Json) -> bool {
    let is_scalar = |value: &Json| !value.is_object() && !value.is_array();
    match value {
        Json::Array(items) => items.iter().all(is_scalar),
        one => is_scalar(one),
    }
}

fn values(value: &Json, path: &Path<'_>) -> Result<Vec<Value>, FieldError> {
    match value {
        Json::Array(items) => items.iter().enumerate().map(|(index, item)| scalar(item, &path.item(index))).collect(),
        one => Ok(vec![scalar(one, path)?]),
    }
}

pub(crate) fn scalar(value: &Json, path: &Path<'_>) -> Result<Value, FieldError> {
    Ok(match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Boolean(*value),
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Number(number) => match number::from_wire(number) {
            Some(value) => value,
            None => return Err(path.invalid_value(&number.to_string(), "a number that a double can hold")),
        },
        other => return Err(path.invalid_type(other, "a string, a number, true, false, null, or a list of these")),
    })
}
