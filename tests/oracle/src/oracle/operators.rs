//! Operators with values, in two-valued logic: a comparison with null is false.
//!
//! In: an operator and values as sent. Out: a test of one value. A value that does not fit is reported as a problem.

use terrane_compiler::query::{DateRange, Filter, Operator};
use terrane_compiler::types::Value as Sent;

use super::kinds::Kind;
use super::times::Stretch;
use super::{Code, Evaluation, times};
use crate::value::{Number, Value};

/// An operator with values of the member's kind.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    operator: Operator,
    values: Vec<Given>,
}

#[derive(Debug, Clone)]
enum Given {
    Null,
    Plain(Value),
    Time(Stretch),
}

impl Test {
    /// Returns a test that compares a time with a stretch.
    pub(crate) fn along(operator: Operator, stretch: Stretch) -> Test {
        Test { operator, values: vec![Given::Time(stretch)] }
    }

    pub(crate) fn new(evaluation: &Evaluation<'_>, kind: Kind, operator: Operator, values: &[Sent]) -> Option<Test> {
        let invalid_value = || {
            evaluation.refuse(Code::InvalidFilter);
            None
        };
        use Operator::*;
        let is_text = matches!(operator, Contains | NotContains | StartsWith | EndsWith);
        let is_order = matches!(operator, Gt | Gte | Lt | Lte | Between);
        let is_time = matches!(operator, InDateRange | NotInDateRange | BeforeDate | AfterDate);
        let fits = match kind {
            Kind::Text => !is_order && !is_time,
            Kind::Number => !is_text && !is_time,
            Kind::Boolean => !is_text && !is_order && !is_time,
            Kind::Time(_) => !is_text,
        };
        let count = match operator {
            Set | NotSet => values.is_empty(),
            InList | NotInList => true,
            Equals | NotEquals => !values.is_empty(),
            Between => values.len() == 2,
            InDateRange | NotInDateRange => values.len() == 2 || (is_clock(kind) && values.len() == 1),
            _ => values.len() == 1,
        };
        if !fits || !count {
            return invalid_value();
        }
        if let (Between | InDateRange | NotInDateRange, Kind::Time(axis)) = (operator, kind) {
            let text = |value: &Sent| match value {
                Sent::Text(text) => Some(text.clone()),
                _ => None,
            };
            let Some(texts) = values.iter().map(text).collect::<Option<Vec<_>>>() else { return invalid_value() };
            let range = match texts.as_slice() {
                [words] => DateRange::Words(words.clone()),
                [start, end] => DateRange::Between(Some(start.clone()), Some(end.clone())),
                _ => return invalid_value(),
            };
            return match times::range(&range, axis, &evaluation.zone, evaluation.now) {
                Ok(stretch) => Some(Test { operator, values: vec![Given::Time(stretch)] }),
                Err(()) => invalid_value(),
            };
        }
        let takes_null = matches!(operator, Equals | NotEquals | InList | NotInList);
        let given = values.iter().map(|value| match value {
            Sent::Null => takes_null.then_some(Given::Null),
            value => given(evaluation, kind, value),
        });
        match given.collect::<Option<Vec<_>>>() {
            Some(values) => Some(Test { operator, values }),
            None => invalid_value(),
        }
    }

    pub(crate) fn holds(&self, value: &Value) -> bool {
        let is_any = || self.values.iter().any(|given| given.is(value));
        let first = self.values.first();
        let text = |test: fn(&str, &str) -> bool| match (value, first) {
            (Value::Text(value), Some(Given::Plain(Value::Text(wanted)))) => test(value, wanted),
            _ => false,
        };
        let compared = |index: usize| self.values.get(index).and_then(|given| given.compare(value));
        match self.operator {
            Operator::Set => !value.is_null(),
            Operator::NotSet => value.is_null(),
            Operator::Equals | Operator::InList => is_any(),
            Operator::NotEquals | Operator::NotInList => !is_any(),
            Operator::Contains => text(|value, wanted| value.contains(wanted)),
            Operator::NotContains => !text(|value, wanted| value.contains(wanted)),
            Operator::ContainsAnyCase => text(|value, wanted| value.to_lowercase().contains(&wanted.to_lowercase())),
            Operator::StartsWith => text(|value, wanted| value.starts_with(wanted)),
            Operator::EndsWith => text(|value, wanted| value.ends_with(wanted)),
            Operator::Gt | Operator::AfterDate => compared(0).is_some_and(|order| order.is_gt()),
            Operator::Gte => compared(0).is_some_and(|order| order.is_ge()),
            Operator::Lt | Operator::BeforeDate => compared(0).is_some_and(|order| order.is_lt()),
            Operator::Lte => compared(0).is_some_and(|order| order.is_le()),
            Operator::Between if self.values.len() == 2 => {
                compared(0).is_some_and(|order| order.is_ge()) && compared(1).is_some_and(|order| order.is_le())
            }
            Operator::Between | Operator::InDateRange => is_any(),
            Operator::NotInDateRange => !is_any(),
        }
    }
}

impl Test {
    /// Returns whether the test has another result if a double has other last digits.
    pub(crate) fn depends_on_rounding(&self, value: &Value, has_deviation: bool) -> bool {
        self.values.iter().any(|given| match given {
            Given::Plain(given) => given.is_rounded_apart(value, has_deviation),
            Given::Null | Given::Time(_) => false,
        })
    }
}

fn is_clock(kind: Kind) -> bool {
    matches!(kind, Kind::Time(_))
}

impl Given {
    fn is(&self, value: &Value) -> bool {
        match self {
            Given::Null => value.is_null(),
            given => given.compare(value).is_some_and(|order| order.is_eq()),
        }
    }

    /// Compares a value with the stretch: before, within or after it. `None` for null.
    fn compare(&self, value: &Value) -> Option<std::cmp::Ordering> {
        match (self, value) {
            (Given::Null, _) | (_, Value::Null) => None,
            (Given::Plain(given), value) => Some(value.cmp(given)),
            (Given::Time(stretch), value) => value.micros().map(|micros| stretch.compare(micros)),
        }
    }
}

/// Parses a value by the member's kind; `None` if the value does not fit.
fn given(evaluation: &Evaluation<'_>, kind: Kind, value: &Sent) -> Option<Given> {
    let number = |text: &str| {
        Number::parse(text).or_else(|| text.parse().ok().filter(|f: &f64| f.is_finite()).map(Number::Double))
    };
    Some(match (kind, value) {
        (Kind::Text, Sent::Text(text)) => Given::Plain(Value::Text(text.to_string())),
        (Kind::Number, Sent::Integer(value)) => Given::Plain(Value::int(i128::from(*value))),
        (Kind::Number, Sent::Decimal(text) | Sent::Text(text)) => Given::Plain(Value::Number(number(text)?)),
        (Kind::Number, Sent::Float(value)) => Given::Plain(Value::Number(Number::Double(*value))),
        (Kind::Boolean, Sent::Boolean(value)) => Given::Plain(Value::Bool(*value)),
        (Kind::Boolean, Sent::Text(text)) => Given::Plain(Value::Bool(text.parse().ok()?)),
        (Kind::Time(axis), Sent::Text(text)) => Given::Time(times::moment(text, axis, &evaluation.zone).ok()?),
        _ => return None,
    })
}

/// Parses a metric's filter in the form of the project's files.
pub(crate) fn from_json(json: &serde_json::Value) -> Option<Filter> {
    let scalar = |value: &serde_json::Value| match value {
        serde_json::Value::Null => Some(Sent::Null),
        serde_json::Value::Bool(value) => Some(Sent::Boolean(*value)),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(integer) => Some(Sent::Integer(integer)),
            None => Some(Sent::Decimal(number.to_string().into())),
        },
        serde_json::Value::String(text) => Some(Sent::Text(text.as_str().into())),
        _ => None,
    };
    let values = match json.get("value") {
        None => Vec::new(),
        Some(serde_json::Value::Array(items)) => items.iter().map(scalar).collect::<Option<_>>()?,
        Some(one) => vec![scalar(one)?],
    };
    let member = json["member"].as_str()?.parse().ok()?;
    Some(Filter::Condition { member, operator: json["operator"].as_str()?.parse().ok()?, values })
}
