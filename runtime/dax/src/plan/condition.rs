//! Conditions over one row as filters of a semantic query.
//!
//! A comparison in DAX replaces BLANK with the zero of the other side's type. A comparison in a semantic query is false
//! for null, except `notEquals`, which is true whenever `equals` is not. Each filter states how BLANK compares.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::civil::DateTime;
use terrane_compiler::model::DimensionId;
use terrane_compiler::query::{Filter, MemberRef};
use terrane_compiler::types::{Operator as Test, Value};

use super::measures::counts;
use super::shape::{Source, column_ref, value_ref};
use super::{Planner, not_supported};
use crate::bound::{BoundExpression, Scalar, ScalarKind, Table, TableKind};
use crate::evaluate::constant_date;
use crate::functions::Operation;
use crate::place::Place;
use crate::problem::{Problem, ProblemKind};
use crate::tree::Operator;
use crate::types::Type;

/// The row over which a condition is evaluated.
pub(super) struct Row<'r> {
    pub context: u32,
    /// The source of each column, or `None` for a column that no filter can name.
    pub columns: &'r [Option<Source>],
    /// True if conditions may read columns of tables that the row reaches on the one side.
    pub has_related: bool,
}

/// The members that a filter compares.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub columns: Vec<DimensionId>,
    pub has_value: bool,
}

/// A member on one side of a comparison.
struct Member {
    name: MemberRef,
    ty: Type,
    /// True for a count, for which a semantic query returns 0 and DAX returns BLANK.
    is_count: bool,
}

impl Planner<'_> {
    pub(super) fn condition(&self, scalar: &Scalar, row: &Row<'_>, used: &mut Compared) -> Result<Filter, Problem> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.condition_kind(scalar, row, used))
    }

    fn condition_kind(&self, scalar: &Scalar, row: &Row<'_>, used: &mut Compared) -> Result<Filter, Problem> {
        let place = scalar.place;
        let mut all = |scalars: &[Scalar]| {
            scalars.iter().map(|scalar| self.condition(scalar, row, used)).collect::<Result<Vec<Filter>, Problem>>()
        };
        match &scalar.kind {
            ScalarKind::And(scalars) => Ok(Filter::And(all(scalars)?)),
            ScalarKind::Or(scalars) => Ok(any_of(all(scalars)?)),
            ScalarKind::Not(inner) => Ok(Filter::Not(Box::new(self.condition(inner, row, used)?))),
            ScalarKind::Compare { operator, left, right, .. } => {
                let (operator, member, constant) = match (self.constant(left)?, self.constant(right)?) {
                    (None, Some(value)) => (*operator, self.member(left, row, used)?, value),
                    (Some(value), None) => (mirrored(*operator), self.member(right, row, used)?, value),
                    _ => return Err(not_supported("a comparison of two expressions", place)),
                };
                comparison(operator, &member, constant, place)
            }
            ScalarKind::In { values, table } => self.is_in(values, table, row, used),
            ScalarKind::Call { function, arguments, .. } if function.operation == Operation::IsBlank => {
                let Some(Some(value)) = arguments.first() else { return Err(not_supported(function.name, place)) };
                let member = self.member(value, row, used)?;
                // For a count of no rows, a semantic query returns 0.
                Ok(match member.is_count {
                    true => condition(&member, Test::Equals, vec![Value::Integer(0)]),
                    false => condition(&member, Test::NotSet, Vec::new()),
                })
            }
            ScalarKind::Column { .. } | ScalarKind::Related { .. } if scalar.ty == Type::Boolean => {
                let member = self.member(scalar, row, used)?;
                Ok(condition(&member, Test::Equals, vec![Value::Boolean(true)]))
            }
            _ => Err(not_supported("this condition", place)),
        }
    }

    fn member(&self, scalar: &Scalar, row: &Row<'_>, used: &mut Compared) -> Result<Member, Problem> {
        let source = match scalar.kind {
            ScalarKind::Column { context, column } => {
                row.columns.get(column as usize).copied().flatten().filter(|_| context == row.context)
            }
            ScalarKind::Related { context, column } if row.has_related && context == row.context => {
                Some(Source::Group(column))
            }
            _ => return Err(not_supported("a comparison of an expression", scalar.place)),
        };
        let is_count = matches!(source, Some(Source::Value(source)) if counts(self.model, source));
        let name = match source {
            Some(Source::Group(id)) => {
                used.columns.push(id);
                column_ref(self.model, id)
            }
            Some(Source::Value(source)) => {
                used.has_value = true;
                value_ref(self.model, source)
            }
            None => None,
        };
        match name {
            Some(name) => Ok(Member { name, ty: scalar.ty, is_count }),
            None => Err(not_supported("a comparison with this column", scalar.place)),
        }
    }

    /// Returns the value of an expression, if it is known before the query runs.
    pub(super) fn constant(&self, scalar: &Scalar) -> Result<Option<Value>, Problem> {
        Ok(match &scalar.kind {
            ScalarKind::Constant(value) => Some(value.clone()),
            ScalarKind::Parameter(name) => match self.parameters.get(name) {
                Some(value) => Some(value.clone()),
                None => {
                    let kind = ProblemKind::UnknownParameter { name: Arc::clone(name) };
                    return Err(Problem::new(kind, scalar.place));
                }
            },
            ScalarKind::Variable(id) => match &self.query.variables[id.0 as usize].value {
                BoundExpression::Scalar(value) => self.constant(value)?,
                BoundExpression::Table(_) => None,
            },
            ScalarKind::Block { result, .. } => self.constant(result)?,
            ScalarKind::Negate(inner) => self.constant(inner)?.and_then(|value| negated(&value)),
            ScalarKind::Call { function, arguments, .. } if function.operation == Operation::Date => {
                self.date(arguments, scalar.place)?
            }
            _ => None,
        })
    }

    /// Returns the value of a DATE whose arguments are all constants.
    fn date(&self, arguments: &[Option<Scalar>], place: Place) -> Result<Option<Value>, Problem> {
        let mut parts = Vec::with_capacity(arguments.len());
        for argument in arguments.iter().flatten() {
            let Some(value) = self.constant(argument)? else { return Ok(None) };
            parts.push(value);
        }
        Ok(constant_date(&parts, place))
    }

    /// Plans IN, which compares strictly: BLANK equals only BLANK.
    fn is_in(&self, values: &[Scalar], table: &Table, row: &Row<'_>, used: &mut Compared) -> Result<Filter, Problem> {
        let TableKind::Rows(rows) = &table.kind else {
            return Err(not_supported("IN a table that is not written as `{…}`", table.place));
        };
        let members = values.iter().map(|value| self.member(value, row, used)).collect::<Result<Vec<_>, _>>()?;
        if members.iter().any(|member| member.is_count) {
            return Err(not_supported("IN of a count", table.place));
        }
        self.one_of(&members, rows, table.place)
    }

    /// Returns the condition that a column strictly equals a constant.
    pub(super) fn has_value(
        &self,
        column: &Scalar,
        constant: &Scalar,
        row: &Row<'_>,
        used: &mut Compared,
    ) -> Result<Filter, Problem> {
        let member = self.member(column, row, used)?;
        self.one_of(&[member], &[vec![constant.clone()]], constant.place)
    }

    fn one_of(&self, members: &[Member], rows: &[Vec<Scalar>], place: Place) -> Result<Filter, Problem> {
        let constants = |row: &Vec<Scalar>| {
            let value = |(scalar, member): (&Scalar, &Member)| match self.constant(scalar)? {
                Some(value) => fitted(&value, member.ty).ok_or_else(|| not_supported("this value", scalar.place)),
                None => Err(not_supported("IN with values that are not constant", scalar.place)),
            };
            row.iter().zip(members).map(value).collect::<Result<Vec<Value>, Problem>>()
        };
        let rows = rows.iter().map(constants).collect::<Result<Vec<Vec<Value>>, Problem>>()?;
        if let [member] = members {
            let values = rows.into_iter().flatten().collect();
            return Ok(condition(member, Test::InList, values));
        }
        if rows.len() > MAX_TUPLES {
            return Err(not_supported("so many tuples", place));
        }
        let tuple = |row: Vec<Value>| {
            let equal = members.iter().zip(row).map(|(member, value)| condition(member, Test::Equals, vec![value]));
            Filter::And(equal.collect())
        };
        Ok(any_of(rows.into_iter().map(tuple).collect()))
    }

    /// Returns the filter of TREATAS: the columns must have the values of one of the rows.
    pub(super) fn treated_as(
        &self,
        columns: &[DimensionId],
        rows: &[Vec<Scalar>],
        place: Place,
    ) -> Result<Filter, Problem> {
        let member = |id: &DimensionId| {
            let ty = Type::of_dimension(self.model.dimension(*id));
            let name = column_ref(self.model, *id).ok_or_else(|| not_supported("a name with a dot", place))?;
            Ok(Member { name, ty, is_count: false })
        };
        let members = columns.iter().map(member).collect::<Result<Vec<_>, Problem>>()?;
        self.one_of(&members, rows, place)
    }
}

/// The largest number of rows in a filter that lists the values of several columns.
const MAX_TUPLES: usize = 200;

fn condition(member: &Member, operator: Test, values: Vec<Value>) -> Filter {
    Filter::Condition { member: member.name.clone(), operator, values }
}

/// Returns the disjunction of filters. Tests of one member for equality become one list.
fn any_of(filters: Vec<Filter>) -> Filter {
    let mut merged: Vec<Filter> = Vec::with_capacity(filters.len());
    for filter in filters {
        if let Filter::Condition { member, operator: Test::Equals | Test::InList, values } = &filter {
            let is_same = |other: &&mut Filter| matches!(other, Filter::Condition { member: of, operator: Test::InList, .. } if of == member);
            if let Some(Filter::Condition { values: list, .. }) = merged.iter_mut().find(is_same) {
                list.extend(values.iter().cloned());
            } else {
                let (member, values) = (member.clone(), values.clone());
                merged.push(Filter::Condition { member, operator: Test::InList, values });
            }
        } else {
            merged.push(filter);
        }
    }
    match merged.len() {
        1 => merged.remove(0),
        _ => Filter::Or(merged),
    }
}

/// Returns the operator for the same comparison with its sides exchanged.
fn mirrored(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        other => other,
    }
}

fn comparison(operator: Operator, member: &Member, value: Value, place: Place) -> Result<Filter, Problem> {
    let is_blank = value == Value::Null;
    if operator == Operator::StrictEqual {
        if member.is_count {
            return Err(not_supported("a strict comparison of a count", place));
        }
        let value = fitted(&value, member.ty).ok_or_else(|| not_supported("a comparison with this value", place))?;
        return Ok(if is_blank {
            condition(member, Test::NotSet, Vec::new())
        } else {
            condition(member, Test::Equals, vec![value])
        });
    }
    let value = if is_blank { zero(member.ty) } else { fitted(&value, member.ty) };
    let Some(value) = value else { return Err(not_supported("a comparison with this value", place)) };
    let (test, fits): (Test, fn(Ordering) -> bool) = match operator {
        Operator::Equal => (Test::Equals, Ordering::is_eq),
        Operator::NotEqual => (Test::NotEquals, Ordering::is_ne),
        Operator::Less => (Test::Lt, Ordering::is_lt),
        Operator::LessOrEqual => (Test::Lte, Ordering::is_le),
        Operator::Greater => (Test::Gt, Ordering::is_gt),
        _ => (Test::Gte, Ordering::is_ge),
    };
    if !matches!(test, Test::Equals | Test::NotEquals) && matches!(member.ty, Type::Text | Type::Boolean) {
        return Err(not_supported("an order of strings or Booleans", place));
    }
    let blank = zero_compared(&value, member.ty).ok_or_else(|| not_supported("a comparison with this value", place))?;
    let filter = condition(member, test, vec![value]);
    Ok(match (fits(blank), test == Test::NotEquals) {
        (true, false) => Filter::Or(vec![filter, condition(member, Test::NotSet, Vec::new())]),
        (false, true) => Filter::And(vec![filter, condition(member, Test::Set, Vec::new())]),
        _ => filter,
    })
}

/// The date that replaces BLANK in a comparison of dates: day 0.
const BLANK_DATE: DateTime = jiff::civil::datetime(1899, 12, 30, 0, 0, 0, 0);

/// Returns the value that replaces BLANK in a comparison with a member of this type.
fn zero(ty: Type) -> Option<Value> {
    match ty {
        Type::Text => Some(Value::Text("".into())),
        Type::Boolean => Some(Value::Boolean(false)),
        Type::DateTime => Some(Value::Text(BLANK_DATE.to_string().into())),
        Type::Integer | Type::Decimal | Type::Double => Some(Value::Integer(0)),
        Type::Blank | Type::Variant => None,
    }
}

/// Compares the value that replaces BLANK with a value of a filter.
fn zero_compared(value: &Value, ty: Type) -> Option<Ordering> {
    match value {
        Value::Integer(number) => Some(0.cmp(number)),
        Value::Float(number) => 0.0.partial_cmp(number),
        Value::Decimal(digits) => {
            let is_zero = digits.chars().all(|c| matches!(c, '0' | '.' | '-'));
            Some(match (is_zero, digits.starts_with('-')) {
                (true, _) => Ordering::Equal,
                (false, true) => Ordering::Greater,
                (false, false) => Ordering::Less,
            })
        }
        Value::Boolean(value) => Some(false.cmp(value)),
        Value::Text(text) if ty == Type::DateTime => text.parse().ok().map(|date| BLANK_DATE.cmp(&date)),
        Value::Text(text) => Some("".cmp(&**text)),
        _ => None,
    }
}

/// Converts a constant to a value of a filter on a member of this type. Times become text.
fn fitted(value: &Value, ty: Type) -> Option<Value> {
    match (value, ty) {
        (Value::Null, _)
        | (Value::Text(_), Type::Text)
        | (Value::Boolean(_), Type::Boolean)
        | (Value::Integer(_) | Value::Decimal(_) | Value::Float(_), Type::Integer | Type::Decimal | Type::Double) => {
            Some(value.clone())
        }
        (Value::Timestamp(micros), Type::DateTime) => {
            let epoch = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
            let moment = epoch.checked_add(jiff::SignedDuration::from_micros(*micros)).ok()?;
            Some(Value::Text(moment.to_string().into()))
        }
        _ => None,
    }
}

pub(super) fn negated(value: &Value) -> Option<Value> {
    match value {
        Value::Integer(number) => number.checked_neg().map(Value::Integer),
        Value::Float(number) => Some(Value::Float(-number)),
        Value::Decimal(digits) => Some(Value::Decimal(match digits.strip_prefix('-') {
            Some(positive) => positive.into(),
            None => format!("-{digits}").into(),
        })),
        Value::Null => Some(Value::Null),
        _ => None,
    }
}
