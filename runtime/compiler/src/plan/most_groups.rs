//! An upper bound of the number of groups.
//!
//! In: a plan. Out: a number that no data exceeds, if the query's own conditions set one. If the page is larger than
//! this number, it contains all groups, which then need not be counted. Not here: estimates from statistics of the
//! data.

use super::{Fact, SecuredPlan};
use crate::model::DimensionId;
use crate::query::{Group, Operand, Predicate, Test};
use crate::types::{DimensionType, Granularity, LogicalType, Value};

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

impl SecuredPlan<'_> {
    /// Returns the largest number of groups that the plan can have; `None` if only the data limits it.
    pub(crate) fn most_groups(&self) -> Option<u64> {
        let plan = self.plan();
        if plan.axis.is_some() || plan.ungrouped {
            return None;
        }
        let facts = plan.facts.iter().filter(|fact| fact.is_selected);
        let mut most = 0_u64;
        for fact in facts {
            most = most.saturating_add(self.most_groups_of(fact)?);
        }
        Some(most)
    }

    fn most_groups_of(&self, fact: &Fact<'_>) -> Option<u64> {
        let groups = self.plan().groups.iter().zip(&fact.groups);
        let mut most = 1_u64;
        for (group, id) in groups {
            most = most.saturating_mul(self.most_values(fact, group, *id)?);
        }
        Some(most)
    }

    fn most_values(&self, fact: &Fact<'_>, group: &Group, id: DimensionId) -> Option<u64> {
        // A mask may show more values than the dimension has.
        if self.protection().mask_of(id).is_some() {
            return None;
        }
        let dimension = self.plan().model.dimension(id);
        // A `boolean` over a column of integers has as many values as the column.
        if dimension.ty == DimensionType::Boolean && dimension.column_type == LogicalType::Boolean {
            return Some(3);
        }
        most_of_all(&fact.row_filters, id, group.granularity)
    }
}

/// Returns the largest number of values of a dimension in rows that pass all filters.
fn most_of_all(filters: &[Predicate], id: DimensionId, granularity: Option<Granularity>) -> Option<u64> {
    filters.iter().filter_map(|filter| most_of(filter, id, granularity)).min()
}

fn most_of(filter: &Predicate, id: DimensionId, granularity: Option<Granularity>) -> Option<u64> {
    match filter {
        Predicate::Test { operand: Operand::Dimension { id: tested, .. }, test } if *tested == id => {
            passing(test, granularity)
        }
        Predicate::And(all) => most_of_all(all, id, granularity),
        Predicate::Test { .. } | Predicate::Or(_) | Predicate::Not(_) => None,
    }
}

/// Returns the largest number of values, or buckets of time, that pass a test.
fn passing(test: &Test, granularity: Option<Granularity>) -> Option<u64> {
    match test {
        Test::Never => Some(0),
        Test::IsNull | Test::NoRow | Test::Equals(_) => Some(1),
        Test::InList { values, or_null } => Some(values.len() as u64 + u64::from(*or_null)),
        Test::AnyOf(tests) => {
            let mut sum = 0_u64;
            for test in tests {
                sum = sum.saturating_add(passing(test, granularity)?);
            }
            Some(sum)
        }
        Test::Range { low: Some(low), high: Some(high) } => {
            let span = microseconds(&high.value)?.checked_sub(microseconds(&low.value)?)?;
            // A bucket may be cut off at each end.
            Some(u64::try_from(span.max(0)).ok()? / shortest(granularity?) + 2)
        }
        Test::Range { .. } | Test::Match { .. } | Test::Not(_) => None,
    }
}

/// Returns the microseconds of a time.
fn microseconds(value: &Value) -> Option<i64> {
    match value {
        Value::Date(days) => i64::from(*days).checked_mul(DAY),
        Value::Timestamp(at) | Value::TimestampTz(at) => Some(*at),
        _ => None,
    }
}

/// Returns the shortest possible time between the starts of two buckets of a granularity, in any time zone.
fn shortest(granularity: Granularity) -> u64 {
    let shortest = match granularity {
        Granularity::Second => 500_000,
        Granularity::Minute => HOUR / 120,
        Granularity::Hour => HOUR / 2,
        Granularity::Day => DAY / 2,
        Granularity::Week => 6 * DAY,
        Granularity::Month => 27 * DAY,
        Granularity::Quarter => 89 * DAY,
        Granularity::Year => 364 * DAY,
    };
    shortest.unsigned_abs()
}
