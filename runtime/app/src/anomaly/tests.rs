//! Tests of bands, steps and the end of the history. The expected values are computed by hand.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use arrow::array::{Array, ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray, StructArray};

use super::*;

#[test]
fn bands_include_their_lower_end() {
    let cases = [
        (0.0, FindingSeverity::Info),
        (0.199_999, FindingSeverity::Info),
        (0.2, FindingSeverity::Low),
        (0.4, FindingSeverity::Medium),
        (0.6, FindingSeverity::High),
        (0.799_999, FindingSeverity::High),
        (0.8, FindingSeverity::Critical),
        (1.0, FindingSeverity::Critical),
    ];
    for (score, expected) in cases {
        assert_eq!(severity(score), expected, "{score}");
    }
}

#[test]
fn current_and_later_steps_are_removed() {
    let day = 86_400_000;
    let mut all = vec![Series { key: Vec::new(), points: (0..4).map(|index| (index * day, 1.0)).collect() }];
    series::end_before(&mut all, Bucket::holding("1970-01-03T12:00:00", Granularity::Day).unwrap());
    assert_eq!(all[0].points, [(0, 1.0), (day, 1.0)]);
}

#[test]
fn steps_contain_their_moments_and_follow_the_calendar() {
    let cases = [
        (Granularity::Day, "2013-03-10", "2013-03-10T00:00:00", "2013-03-07T00:00:00"),
        // A Sunday belongs to the week that began on Monday.
        (Granularity::Week, "2013-03-10", "2013-03-04T00:00:00", "2013-02-11T00:00:00"),
        (Granularity::Month, "2013-03-31", "2013-03-01T00:00:00", "2012-12-01T00:00:00"),
        (Granularity::Quarter, "2013-12-31", "2013-10-01T00:00:00", "2013-01-01T00:00:00"),
        (Granularity::Year, "2013-12-31", "2013-01-01T00:00:00", "2010-01-01T00:00:00"),
        (Granularity::Hour, "2013-03-10T15:59:59", "2013-03-10T15:00:00", "2013-03-10T12:00:00"),
        (Granularity::Minute, "2013-03-10T00:01:59", "2013-03-10T00:01:00", "2013-03-09T23:58:00"),
    ];
    for (granularity, text, start, earlier) in cases {
        let bucket = Bucket::holding(text, granularity).unwrap();
        assert_eq!(&*bucket.text(), start);
        assert_eq!(&*bucket.earlier(3, granularity).unwrap().text(), earlier);
    }
    assert_eq!(Bucket::holding("1970-01-02", Granularity::Day).unwrap().ms(), 86_400_000);
    for text in ["", "yesterday", "2013-02-30", "2013"] {
        assert_eq!(Bucket::holding(text, Granularity::Day), None, "{text}");
    }
    assert_eq!(Bucket::holding("0001-01-01", Granularity::Year).unwrap().earlier(20_000, Granularity::Year), None);
}

#[test]
fn history_has_earlier_steps_up_to_the_requested_count() {
    let day = 86_400_000;
    let series = Series { key: Vec::new(), points: (0..10).map(|index| (index * day, index as f64)).collect() };
    let from = Bucket::holding("1970-01-08", Granularity::Day);
    let parts = Parts::of(&series, from, 4);
    assert_eq!(parts.history.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [3.0, 4.0, 5.0, 6.0]);
    assert_eq!(parts.points.first(), Some(&(7 * day, 7.0)));
    let parts = Parts::of(&series, None, 4);
    assert_eq!((parts.history.len(), parts.points.len()), (4, 6));
    let parts = Parts::of(&series, None, 100);
    assert_eq!((parts.history.len(), parts.points.len()), (10, 0));
}

#[test]
fn leading_empty_steps_are_dropped_from_history() {
    let series = |values: &[f64]| Series {
        key: Vec::new(),
        points: values.iter().enumerate().map(|(at, value)| (at as i64, *value)).collect(),
    };
    let begun = series::begun(vec![series(&[0.0, f64::NAN, 0.0, 5.0, 0.0]), series(&[0.0, 0.0, 3.0, 0.0, 0.0])]);
    assert_eq!(begun[0].points, [(2, 0.0), (3, 5.0), (4, 0.0)]);
    assert_eq!(begun[1].points, [(2, 3.0), (3, 0.0), (4, 0.0)]);
    let silent = series::begun(vec![series(&[0.0, 0.0])]);
    assert_eq!(silent[0].points.len(), 2);
}

#[test]
fn unreadable_values_are_errors() {
    let batch = |columns: [ArrayRef; 3]| {
        let names = ["region", "day", "revenue"].into_iter();
        vec![RecordBatch::try_from_iter(names.zip(columns)).unwrap()]
    };
    let record = || -> ArrayRef { Arc::new(StructArray::new_empty_fields(1, None)) };
    let (text, day): (ArrayRef, ArrayRef) =
        (Arc::new(StringArray::from(vec!["EU"])), Arc::new(Date32Array::from(vec![1])));
    let number: ArrayRef = Arc::new(Float64Array::from(vec![2.5]));
    let read = series::of_batches(&batch([text.clone(), day.clone(), number.clone()]), 1).unwrap();
    assert_eq!(read, [Series { key: vec![Some("EU".into())], points: vec![(86_400_000, 2.5)] }]);
    let no_time: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    for (columns, column, wanted) in [
        ([record(), day.clone(), number.clone()], 1, "text"),
        ([text.clone(), no_time, number.clone()], 2, "a time"),
        ([text.clone(), day.clone(), record()], 3, "a number"),
    ] {
        let found = columns[column - 1].data_type().to_string();
        let expected = series::Unreadable { column, found, wanted };
        assert_eq!(series::of_batches(&batch(columns), 1), Err(expected));
    }
    let two = batch([text.clone(), day, number])[0].project(&[0, 1]).unwrap();
    assert_eq!(series::of_batches(&[two], 1).unwrap_err().found, "nothing");
}
