//! Dimensions whose values follow from the time, such as the weekday or the month of a row.
//!
//! In: the slices of a dimension. Out: whether the step lacks values of the history, or has others, only because each
//! time has its own value. Such a dimension would explain every gap, and no slice of it is a cause. A dimension follows
//! from the time if it has only one value on each day, or in each step that is shorter than a day.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use terrane_compiler::query::{DateRange, SemanticQuery, TimeDimension};
use terrane_compiler::types::Granularity;

use super::{MAX_VALUES, Question, Slice};
use crate::anomaly::bucket::Bucket;
use crate::anomaly::{AnomalyError, Unreadable};
use crate::monitors::error::MonitorError;

/// Returns the range before a step, and the granularity, for which values are compared with times. The range has fewer
/// times than [`MAX_VALUES`].
pub(super) fn range(at: Bucket, granularity: Granularity, steps: u32) -> Option<(DateRange, Granularity)> {
    let steps = match granularity {
        Granularity::Quarter => steps.min(10),
        Granularity::Year => steps.min(2),
        _ => steps,
    };
    let times = if granularity.is_sub_day() { granularity } else { Granularity::Day };
    let (first, last) = (at.earlier(steps, granularity)?, at.earlier(1, granularity)?);
    Some((DateRange::Between(Some(first.text()), Some(last.end_text(granularity))), times))
}

/// Returns whether the step has values that the history does not have, or at most half of the history's values.
fn differs(slices: &[Slice]) -> bool {
    let now = slices.iter().filter(|slice| slice.after.is_some_and(|value| value != 0.0)).count();
    let history = slices.iter().filter(|slice| slice.before.is_some_and(|value| value != 0.0)).count();
    history == 0 || now * 2 <= slices.len() || history < slices.len()
}

impl Question<'_> {
    /// Returns whether the values of a dimension follow from the time, and differ between the step and the history.
    pub(super) async fn follows_from_time(&self, dimension: &Arc<str>, slices: &[Slice]) -> Result<bool, MonitorError> {
        if slices.len() < 2 || !differs(slices) {
            return Ok(false);
        }
        let (range, granularity) = &self.calendar;
        let (member, range) = (self.time.clone(), Some(range.clone()));
        let time = TimeDimension { member, granularity: Some(*granularity), range };
        let query = self.query(vec![dimension.parse()?], self.filters.clone(), &self.history);
        let query = SemanticQuery { time_dimensions: vec![time], ..query };
        let answer = self.session.prepare(&query).await?.run().await?;
        if answer.returned_rows >= MAX_VALUES || answer.truncated == Some(true) {
            return Ok(false);
        }
        // The columns are the dimension, the time and the values.
        let mut times = HashSet::new();
        for batch in &answer.batches {
            let column = batch.columns().get(1).and_then(|column| cast(column, &DataType::Utf8).ok());
            let unreadable = || Unreadable { column: 2, found: "another type".to_owned(), wanted: "a time" };
            let column = column.ok_or_else(unreadable).map_err(AnomalyError::from)?;
            let column = column.as_string::<i32>();
            if !(0..column.len()).all(|row| times.insert(column.is_valid(row).then(|| column.value(row).to_owned()))) {
                return Ok(false);
            }
        }
        Ok(!times.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(before: Option<f64>, after: Option<f64>) -> Slice {
        Slice { key: Vec::new(), before, after, moved: 0.0, share: 0.0, support: 0.0 }
    }

    #[test]
    fn slices_differ_if_the_step_has_other_or_few_values() {
        let (both, gone, new) = (slice(Some(3.0), Some(2.0)), slice(Some(3.0), Some(0.0)), slice(Some(0.0), Some(3.0)));
        assert!(!differs(&[both.clone(), both.clone(), gone.clone()]));
        assert!(differs(&[both.clone(), gone.clone()]));
        assert!(differs(&[gone.clone(), new.clone()]));
        assert!(differs(&[both.clone(), both, new]));
    }

    #[test]
    fn ranges_have_few_times() {
        for granularity in Granularity::ALL {
            let at = Bucket::holding("2024-03-20", granularity).unwrap();
            let (range, times) = range(at, granularity, 28).unwrap();
            let DateRange::Between(Some(first), Some(last)) = range else { panic!("{range:?}") };
            let day = |text: &str| -> jiff::civil::Date { text[..10].parse().unwrap() };
            let days = day(&first).until(day(&last)).unwrap().get_days();
            assert!(times != Granularity::Day || days < 1_000, "{granularity:?}: {days}");
        }
    }
}
