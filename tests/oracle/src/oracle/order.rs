//! The order of an answer: the caller's keys or the default, then the ties; nulls last (rule 14 and
//! "Order" of the decisions).

use std::cmp::Ordering;

use super::calc::{Calc, Calculation};
use super::names::Named;
use super::{Code, Group, Reading};
use crate::value::Value;
use crate::world::DimensionKind;

pub(crate) struct Row {
    pub(crate) cells: Vec<Value>,
    pub(crate) sort: Vec<Value>,
}

pub(crate) struct Key {
    by: By,
    descending: bool,
}

enum By {
    Group(usize),
    Selected(usize),
    Looked(Calc),
}

impl Key {
    pub(crate) fn value(&self, key: &[Value], values: &[Value], aggregates: &[Value]) -> Value {
        match &self.by {
            By::Group(index) => key[*index].clone(),
            By::Selected(index) => values[*index].clone(),
            By::Looked(calc) => calc.of(aggregates),
        }
    }
}

pub(crate) fn keys(
    reading: &Reading<'_>,
    groups: &[Group],
    values: &[(String, Named)],
    calculation: &mut Calculation<'_, '_>,
) -> Vec<Key> {
    let mut keys = Vec::new();
    for order in &reading.query.order {
        let text = &*order.member.text;
        let by = if let Some(index) = groups.iter().position(|group| group.key == text) {
            By::Group(index)
        } else if let Some(index) = values.iter().position(|(key, _)| key == text) {
            By::Selected(index)
        } else {
            match reading.named(&order.member) {
                Some(named @ (Named::Measure { .. } | Named::Metric(_))) => By::Looked(calculation.value(&named)),
                Some(Named::Dimension { cube, name }) => {
                    let granularity = order.member.granularity;
                    let same = |group: &Group| {
                        group.cube == cube
                            && group.dimension == name
                            && (granularity.is_none() || group.granularity == granularity)
                    };
                    match groups.iter().position(same) {
                        Some(index) => By::Group(index),
                        None => {
                            reading.refuse(Code::InvalidQuery);
                            continue;
                        }
                    }
                }
                Some(Named::Segment { .. }) => {
                    reading.refuse(Code::InvalidQuery);
                    continue;
                }
                None => {
                    reading.unknown(&order.member, Code::InvalidDimension);
                    continue;
                }
            }
        };
        keys.push(Key { by, descending: order.descending });
    }
    if keys.is_empty() {
        let is_time =
            |g: &Group| reading.dimension(&g.cube, &g.dimension).is_some_and(|d| d.kind == DimensionKind::Time);
        if let Some(index) = groups.iter().position(is_time) {
            keys.push(Key { by: By::Group(index), descending: false });
        } else if !values.is_empty() {
            keys.push(Key { by: By::Selected(0), descending: true });
        }
    }
    keys.extend((0..groups.len()).map(|index| Key { by: By::Group(index), descending: false }));
    keys
}

pub(crate) fn sort(rows: &mut [Row], keys: &[Key]) {
    rows.sort_by(|a, b| {
        let pairs = a.sort.iter().zip(&b.sort).zip(keys);
        pairs.map(|((a, b), key)| compare(a, b, key.descending)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
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
