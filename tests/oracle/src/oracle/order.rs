//! The order of an answer: the caller's keys or the default order, then further columns to break ties. Nulls are last.
//! The order is described in `runtime/docs/reference/query.md`, "Order and page".

use std::cmp::Ordering;

use super::calc::{Calc, Calculation};
use super::names::Named;
use super::{Code, Evaluation, Group};
use crate::value::Value;

pub(crate) struct Row {
    pub(crate) cells: Vec<Value>,
    pub(crate) sort: Vec<Value>,
}

pub(crate) struct Key {
    by: By,
    descending: bool,
    is_explicit: bool,
}

enum By {
    Group(usize),
    Selected(usize),
    Looked(Calc),
}

impl Key {
    /// Returns the index of the group-by column, if the caller requested to order by one.
    pub(crate) fn asked_group(&self) -> Option<usize> {
        match self.by {
            By::Group(index) if self.is_explicit => Some(index),
            _ => None,
        }
    }

    pub(crate) fn value(&self, key: &[Value], values: &[Value], aggregates: &[Value]) -> Value {
        match &self.by {
            By::Group(index) => key[*index].clone(),
            By::Selected(index) => values[*index].clone(),
            By::Looked(calc) => calc.of(aggregates),
        }
    }
}

pub(crate) fn keys(
    evaluation: &Evaluation<'_>,
    groups: &[Group],
    values: &[(String, Named)],
    calculation: &mut Calculation<'_, '_>,
) -> Vec<Key> {
    let mut keys = Vec::new();
    for order in &evaluation.query.order {
        let text = &*order.member.text;
        let by = if let Some(index) = groups.iter().position(|group| group.key == text) {
            By::Group(index)
        } else if let Some(index) = values.iter().position(|(key, _)| key == text) {
            By::Selected(index)
        } else {
            match evaluation.named(&order.member) {
                Some(named @ (Named::Measure { .. } | Named::Metric(_))) => By::Looked(calculation.value(&named)),
                Some(named @ (Named::Dimension { .. } | Named::MetricTime)) => {
                    let granularity = order.member.granularity;
                    let same = |group: &Group| {
                        group.named() == named && (granularity.is_none() || group.granularity == granularity)
                    };
                    match groups.iter().position(same) {
                        Some(index) => By::Group(index),
                        None => {
                            evaluation.refuse(Code::InvalidQuery);
                            continue;
                        }
                    }
                }
                Some(Named::Segment { .. }) => {
                    evaluation.refuse(Code::InvalidQuery);
                    continue;
                }
                None => {
                    evaluation.unknown_operand(&order.member);
                    continue;
                }
            }
        };
        keys.push(Key { by, descending: order.descending, is_explicit: true });
    }
    if keys.is_empty() {
        if let Some(index) = groups.iter().position(|group| evaluation.is_time(group)) {
            keys.push(Key { by: By::Group(index), descending: false, is_explicit: false });
        } else if !values.is_empty() {
            keys.push(Key { by: By::Selected(0), descending: true, is_explicit: false });
        }
    }
    let ties = (0..groups.len()).map(|index| Key { by: By::Group(index), descending: false, is_explicit: false });
    keys.extend(ties);
    keys
}

pub(crate) fn sort(rows: &mut [Row], keys: &[Key]) {
    rows.sort_by(|a, b| {
        let pairs = a.sort.iter().zip(&b.sort).zip(keys);
        pairs.map(|((a, b), key)| compare(a, b, key.descending)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
}

/// Returns whether the order of two neighbors depends on the last digits of a double.
pub(crate) fn depends_on_rounding(rows: &[Row], has_deviation: bool) -> bool {
    rows.windows(2).any(|pair| {
        let mut keys = pair[0].sort.iter().zip(&pair[1].sort).take_while(|(a, b)| a == b || a.is_near(b));
        keys.any(|(a, b)| a.is_rounded_apart(b, has_deviation))
    })
}

fn compare(a: &Value, b: &Value, descending: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if descending => b.cmp(a),
        (false, false) => a.cmp(b),
    }
}
