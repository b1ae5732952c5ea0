//! Converts a check's conditions to filters over the cube's own dimensions.
//!
//! In: the guest's conditions as one flat list of nodes (an arena), which is untrusted, and the columns that were offered to the guest. Out: one filter per root, with the operators
//! of row filters: `and`, `or` and `not` over tests of one column against literals. The compiler checks the type of
//! each literal against its column, as it does for a query. Not here: the rules of arenas (`wire::arena`), and SQL.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use terrane_app::ports::checks::ProfiledColumn;
use terrane_app::ports::plugins::PluginFault;
use terrane_compiler::governance::{HookCondition, TestOperator};
use terrane_compiler::query::{Filter, MemberRef, Operator};
use terrane_compiler::types::Value;

use super::plan::fault;
use crate::bindings::ir::Arena;
use crate::error::shortened;
use crate::wire::arena::{self, Room};

/// Converts the conditions of an arena to filters, in the order of the roots.
pub(super) fn conditions(arena: &Arena, columns: &[ProfiledColumn]) -> Result<Vec<Filter>, PluginFault> {
    let conditions = arena::conditions(arena, Room::of_columns(columns.len())).map_err(fault)?;
    conditions.into_iter().map(|condition| filter(condition, columns).map_err(fault)).collect()
}

/// Returns the size of a filter: the number of its operators, columns and values.
pub(super) fn size(filter: &Filter) -> usize {
    match filter {
        Filter::Condition { values, .. } => 2 + values.len(),
        Filter::And(inner) | Filter::Or(inner) => 1 + inner.iter().map(size).sum::<usize>(),
        Filter::Not(inner) => 1 + size(inner),
        Filter::NoRow { .. } => 1,
    }
}

/// Converts a test or a combination of tests.
fn filter(condition: HookCondition, columns: &[ProfiledColumn]) -> Result<Filter, String> {
    let all = |inner: Vec<HookCondition>| -> Result<Vec<Filter>, String> {
        inner.into_iter().map(|inner| filter(inner, columns)).collect()
    };
    Ok(match condition {
        HookCondition::All(inner) => Filter::And(all(inner)?),
        HookCondition::Any(inner) => Filter::Or(all(inner)?),
        HookCondition::Not(inner) => Filter::Not(Box::new(filter(*inner, columns)?)),
        // An empty AND is true, an empty OR is false.
        HookCondition::Always(true) => Filter::And(Vec::new()),
        HookCondition::Always(false) => Filter::Or(Vec::new()),
        HookCondition::Test { member, operator, values } => Filter::Condition {
            operator: with_arguments(operator, values.len())?,
            values: values.into_iter().map(value).collect(),
            member: column(&member, columns)?,
        },
    })
}

fn with_arguments(operator: TestOperator, values: usize) -> Result<Operator, String> {
    Ok(match (operator, values) {
        (TestOperator::Eq, 1) => Operator::Equals,
        (TestOperator::Ne, 1) => Operator::NotEquals,
        (TestOperator::Lt, 1) => Operator::Lt,
        (TestOperator::Le, 1) => Operator::Lte,
        (TestOperator::Gt, 1) => Operator::Gt,
        (TestOperator::Ge, 1) => Operator::Gte,
        (TestOperator::Between, 2) => Operator::Between,
        (TestOperator::InList, 1..) => Operator::InList,
        (TestOperator::IsNull, 0) => Operator::NotSet,
        (TestOperator::IsNotNull, 0) => Operator::Set,
        (TestOperator::Contains, 1) => Operator::Contains,
        (TestOperator::StartsWith, 1) => Operator::StartsWith,
        (TestOperator::EndsWith, 1) => Operator::EndsWith,
        _ => return Err(format!("`{}` cannot have {values} values", operator.as_str())),
    })
}

/// Finds the dimension with this name, which is written as `member` or `cube.member`.
fn column(name: &str, columns: &[ProfiledColumn]) -> Result<MemberRef, String> {
    let is_it = |column: &&ProfiledColumn| {
        let qualified = name.strip_prefix(&*column.cube).and_then(|rest| rest.strip_prefix('.'));
        !column.is_measure && (&*column.member == name || qualified == Some(&*column.member))
    };
    let column = columns.iter().find(is_it);
    let column = column.ok_or_else(|| format!("`{}` is not one of the columns of the call", shortened(name)))?;
    let member = format!("{}.{}", column.cube, column.member).parse();
    member.map_err(|_| format!("`{}` is not a valid column name", shortened(name)))
}

/// Converts a literal to a value as a query contains it: dates and times become strings.
fn value(value: Value) -> Value {
    match value {
        Value::Date(days) => text(Timestamp::from_second(i64::from(days) * 86_400), |at| at.date().to_string()),
        Value::Timestamp(micros) => text(Timestamp::from_microsecond(micros), |at| at.to_string()),
        other => other,
    }
}

/// Returns a time as a string, or null for a time outside the calendar. `wire::arena` has rejected such times before.
fn text(at: Result<Timestamp, jiff::Error>, write: impl Fn(jiff::civil::DateTime) -> String) -> Value {
    at.map_or(Value::Null, |at| Value::Text(Arc::from(write(TimeZone::UTC.to_datetime(at)))))
}

#[cfg(test)]
mod tests;
