//! Filters: conditions, and trees of them.

use serde_json::Value as Json;
use terrane_compiler::query::{Filter, MAX_FILTER_DEPTH, Operator, QueryError};
use terrane_compiler::types::Value;

use super::fields::{Fields, Misfit, Path};
use super::number;
use super::query::member;

const FITS: &str = "a filter like {\"dimension\": …, \"operator\": …, \"value\": …}";
const CONDITION: &[&str] = &["dimension", "member", "operator", "value", "values", "and", "or", "not"];

pub(super) fn from_wire(value: &Json, path: &Path<'_>) -> Result<Filter, Misfit> {
    read(value, path, 1)
}

fn read(value: &Json, path: &Path<'_>, depth: usize) -> Result<Filter, Misfit> {
    if depth > MAX_FILTER_DEPTH {
        return Err(path.refused(QueryError::TooDeep { limit: MAX_FILTER_DEPTH }));
    }
    let fields = Fields::new(value, path, FITS, CONDITION)?;
    let tree = ["and", "or", "not"].into_iter().find(|word| fields.get_or_null(word).is_some());
    let Some(word) = tree else { return condition(&fields, path) };
    if let Some(other) = CONDITION.iter().copied().find(|other| *other != word && fields.get_or_null(other).is_some()) {
        return Err(path.both([word, other]));
    }
    let inner = |item: &Json, path: &Path<'_>| read(item, path, depth + 1);
    Ok(match word {
        "and" => Filter::And(branches(&fields, path, "and", inner)?),
        "or" => Filter::Or(branches(&fields, path, "or", inner)?),
        _ => {
            let value = fields.get_or_null("not").unwrap_or(&Json::Null);
            Filter::Not(Box::new(inner(value, &path.field("not"))?))
        }
    })
}

fn branches(
    fields: &Fields<'_>,
    path: &Path<'_>,
    word: &'static str,
    read: impl Fn(&Json, &Path<'_>) -> Result<Filter, Misfit>,
) -> Result<Vec<Filter>, Misfit> {
    match fields.get(word) {
        None => Err(path.field(word).wrong_type(&Json::Null, "a list of filters")),
        Some(_) => fields.list(word, "a list of filters", read),
    }
}

fn condition(fields: &Fields<'_>, path: &Path<'_>) -> Result<Filter, Misfit> {
    let name = match (fields.get("dimension"), fields.get("member")) {
        (Some(_), Some(_)) => return Err(path.both(["dimension", "member"])),
        (None, Some(_)) => "member",
        _ => "dimension",
    };
    let text = fields.required_text(name, "a member, like \"orders.status\",")?;
    let member = member(text, &path.field(name))?;
    let word = fields.required_text("operator", "an operator, like \"equals\",")?;
    let operator: Operator = word.parse().map_err(|error| path.field("operator").refused(error))?;
    let (name, value) = match (fields.get_or_null("value"), fields.get_or_null("values")) {
        (Some(_), Some(_)) => return Err(path.both(["value", "values"])),
        (Some(value), None) => ("value", Some(value)),
        (None, value) => ("values", value),
    };
    let values = match (value, operator) {
        // Clients that always send every field send null where there is no value.
        (None | Some(Json::Null), Operator::Set | Operator::NotSet) => Vec::new(),
        (None, _) => Vec::new(),
        (Some(value), _) => values(value, &path.field(name))?,
    };
    Ok(Filter::Condition { member, operator, values })
}

fn values(value: &Json, path: &Path<'_>) -> Result<Vec<Value>, Misfit> {
    match value {
        Json::Array(items) => items.iter().enumerate().map(|(index, item)| scalar(item, &path.item(index))).collect(),
        one => Ok(vec![scalar(one, path)?]),
    }
}

pub(super) fn scalar(value: &Json, path: &Path<'_>) -> Result<Value, Misfit> {
    Ok(match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Boolean(*value),
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Number(number) => match number::from_wire(number) {
            Some(value) => value,
            None => return Err(path.wrong_word(&number.to_string(), "a number that a double can hold")),
        },
        other => return Err(path.wrong_type(other, "a text, a number, true, false, null, or a list of these")),
    })
}
