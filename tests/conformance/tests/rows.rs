//! Tests Arrow columns as JSON: each type, and each form of times.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use arrow::array::types::{Float32Type, Int32Type, IntervalMonthDayNano};
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, Decimal256Array, DictionaryArray,
    FixedSizeListArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, Int64Builder,
    IntervalMonthDayNanoArray, LargeStringArray, ListArray, MapBuilder, NullArray, RecordBatch, StringArray,
    StringBuilder, StringViewArray, StructArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow::datatypes::{DataType, Field, i256};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_compiler::model::DimensionType;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_compiler::types::Granularity;
use terrane_wire::json::{Numbers, write_rows};

fn column(key: &str, format: ColumnFormat) -> ResultColumn {
    ResultColumn { key: key.into(), is_measure: false, ty: DimensionType::Number, format }
}

/// Returns the values of one column as JSON.
fn cells(array: ArrayRef, format: ColumnFormat, numbers: Numbers) -> String {
    let batch = RecordBatch::try_from_iter_with_nullable([("c", array, true)]).unwrap();
    let mut out = Vec::new();
    write_rows(&[column("k", format)], &[batch], numbers, &mut out);
    let text = String::from_utf8(out).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    text.trim_matches(['[', ']']).replace("{\"k\":", "").replace("},", ", ").trim_end_matches('}').to_owned()
}

fn plain(array: impl arrow::array::Array + 'static) -> String {
    cells(Arc::new(array), ColumnFormat::Plain, Numbers::Plain)
}

#[test]
fn integers_of_every_width_keep_their_digits() {
    assert_eq!(plain(Int8Array::from(vec![Some(-128), None])), "-128, null");
    assert_eq!(plain(Int16Array::from(vec![i16::MIN])), "-32768");
    assert_eq!(plain(Int32Array::from(vec![i32::MIN])), "-2147483648");
    assert_eq!(plain(Int64Array::from(vec![i64::MIN, i64::MAX])), "-9223372036854775808, 9223372036854775807");
    assert_eq!(plain(UInt8Array::from(vec![u8::MAX])), "255");
    assert_eq!(plain(UInt16Array::from(vec![u16::MAX])), "65535");
    assert_eq!(plain(UInt32Array::from(vec![u32::MAX])), "4294967295");
    assert_eq!(plain(UInt64Array::from(vec![u64::MAX])), "18446744073709551615");
}

#[test]
fn decimals_keep_their_digits_and_places() {
    let of =
        |values: Vec<i128>, scale| plain(Decimal128Array::from(values).with_precision_and_scale(38, scale).unwrap());
    assert_eq!(of(vec![12345, -5, 0, 100], 2), "123.45, -0.05, 0.00, 1.00");
    assert_eq!(of(vec![7, -7], 0), "7, -7");
    assert_eq!(of(vec![7, -7, 0], -3), "7000, -7000, 0");
    let largest = 10_i128.pow(38) - 1;
    assert_eq!(of(vec![largest, -largest], 38), format!("0.{0}, -0.{0}", "9".repeat(38)));
    let wide = Decimal256Array::from(vec![i256::from_i128(-12345)]).with_precision_and_scale(76, 2).unwrap();
    assert_eq!(plain(wide), "-123.45");
    let thousands = Decimal256Array::from(vec![i256::ZERO, i256::ONE]).with_precision_and_scale(76, -3).unwrap();
    assert_eq!(plain(thousands), "0, 1000");
}

#[test]
fn doubles_are_shortest_and_non_finite_ones_are_null() {
    let doubles = vec![0.1, -0.0, 1.0, 1e21, 1e-7, f64::MAX, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    assert_eq!(
        plain(Float64Array::from(doubles)),
        "0.1, -0.0, 1.0, 1e21, 1e-7, 1.7976931348623157e308, null, null, null"
    );
    assert_eq!(plain(Float32Array::from(vec![0.1, f32::NAN])), "0.1, null");
}

#[test]
fn numbers_become_strings_on_request() {
    let texts = |array: ArrayRef| cells(array, ColumnFormat::Plain, Numbers::Strings);
    assert_eq!(texts(Arc::new(Int64Array::from(vec![Some(1), None]))), "\"1\", null");
    assert_eq!(texts(Arc::new(Float64Array::from(vec![0.5, f64::NAN]))), "\"0.5\", null");
    let cents = Decimal128Array::from(vec![5]).with_precision_and_scale(18, 2).unwrap();
    assert_eq!(texts(Arc::new(cents)), "\"0.05\"");
    assert_eq!(texts(Arc::new(BooleanArray::from(vec![true]))), "true");
}

#[test]
fn strings_are_escaped() {
    let odd = "q\" b\\ n\n r\r t\t c\u{1} d\u{7f} ü 🦀 \u{2028}";
    let expected = "\"q\\\" b\\\\ n\\n r\\r t\\t c\\u0001 d\u{7f} ü 🦀 \u{2028}\"";
    assert_eq!(plain(StringArray::from(vec![odd])), expected);
    assert_eq!(plain(LargeStringArray::from(vec![odd])), expected);
    assert_eq!(plain(StringViewArray::from(vec![odd])), expected);
    let dictionary: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("a")].into_iter().collect();
    assert_eq!(plain(dictionary), "\"a\", null, \"a\"");
}

#[test]
fn keys_are_escaped_and_further_columns_left_out() {
    let batch = RecordBatch::try_from_iter([
        ("a", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        ("b", Arc::new(BooleanArray::from(vec![true, false])) as ArrayRef),
        ("total", Arc::new(Int64Array::from(vec![9, 9])) as ArrayRef),
    ])
    .unwrap();
    let columns = [column("odd \"key\"", ColumnFormat::Plain), column("b", ColumnFormat::Plain)];
    let mut out = Vec::new();
    write_rows(&columns, &[batch.clone(), batch.slice(0, 0), batch.slice(1, 1)], Numbers::Plain, &mut out);
    let expected = r#"[{"odd \"key\"":1,"b":true},{"odd \"key\"":2,"b":false},{"odd \"key\"":2,"b":false}]"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected);

    let mut out = Vec::new();
    write_rows(&columns, &[], Numbers::Plain, &mut out);
    assert_eq!(out, b"[]");
    let mut out = Vec::new();
    write_rows(&[], &[batch], Numbers::Plain, &mut out);
    assert_eq!(out, b"[{},{}]");
}

#[test]
fn nested_and_foreign_types_are_valid_json() {
    assert_eq!(plain(NullArray::new(2)), "null, null");
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
    let batch = RecordBatch::try_from_iter_with_nullable([("c", Arc::new(list) as ArrayRef, true)]).unwrap();
    let mut out = Vec::new();
    write_rows(&[column("k", ColumnFormat::Plain)], &[batch], Numbers::Plain, &mut out);
    assert_eq!(out, br#"[{"k":[1,null]},{"k":null}]"#);

    let fields = StructArray::from(vec![
        (Arc::new(Field::new("a", DataType::Int32, true)), Arc::new(Int32Array::from(vec![1])) as ArrayRef),
        (Arc::new(Field::new("b\"", DataType::Utf8, true)), Arc::new(StringArray::from(vec!["x"])) as ArrayRef),
    ]);
    let batch = RecordBatch::try_from_iter([("c", Arc::new(fields) as ArrayRef)]).unwrap();
    let mut out = Vec::new();
    write_rows(&[column("k", ColumnFormat::Plain)], &[batch], Numbers::Plain, &mut out);
    assert_eq!(out, br#"[{"k":{"a":1,"b\"":"x"}}]"#);

    assert_eq!(plain(Time64MicrosecondArray::from(vec![3_600_000_000])), "\"01:00:00\"");
    let bytes: Vec<&[u8]> = vec![b"\x00\xff~", b"", b"a", b"ab"];
    assert_eq!(plain(BinaryArray::from_vec(bytes)), "\"AP9+\", \"\", \"YQ==\", \"YWI=\"");
    let span = |months, days, nanos| IntervalMonthDayNano::new(months, days, nanos);
    let spans = vec![span(14, -3, 1_500_000_000), span(0, 0, 0), span(0, 0, -1_000), span(0, 1, 0)];
    assert_eq!(plain(IntervalMonthDayNanoArray::from(spans)), "\"P14M-3DT1.5S\", \"PT0S\", \"PT-0.000001S\", \"P1D\"");
    let floats = ListArray::from_iter_primitive::<Float32Type, _, _>([Some(vec![Some(f32::NAN)])]);
    assert_eq!(plain(floats), "[null]");
}

#[test]
fn arrays_of_a_fixed_length_and_maps_are_json() {
    let vectors = [Some(vec![Some(1), None]), None];
    let vectors = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(vectors, 2);
    let mut maps = MapBuilder::new(None, Int64Builder::new(), StringBuilder::new());
    maps.keys().append_value(7);
    maps.values().append_value("x\"");
    maps.append(true).unwrap();
    maps.append(false).unwrap();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("v", Arc::new(vectors) as ArrayRef, true),
        ("m", Arc::new(maps.finish()) as ArrayRef, true),
    ])
    .unwrap();
    let mut out = Vec::new();
    let columns = [column("v", ColumnFormat::Plain), column("m", ColumnFormat::Plain)];
    write_rows(&columns, &[batch], Numbers::Plain, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), r#"[{"v":[1,null],"m":{"7":"x\""}},{"v":null,"m":null}]"#);
}

fn days(text: &str) -> i32 {
    let date: Date = text.parse().unwrap();
    date.since(Date::constant(1970, 1, 1)).unwrap().get_days()
}

fn micros(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

fn date(text: &str, granularity: Granularity) -> String {
    cells(Arc::new(Date32Array::from(vec![days(text)])), ColumnFormat::Date(granularity), Numbers::Plain)
}

#[test]
fn buckets_of_a_day_or_more_have_labels() {
    assert_eq!(date("2024-03-05", Granularity::Day), "\"2024-03-05\"");
    assert_eq!(date("2024-03-01", Granularity::Month), "\"2024-03\"");
    assert_eq!(date("2024-10-01", Granularity::Quarter), "\"2024-Q4\"");
    assert_eq!(date("2024-01-01", Granularity::Year), "\"2024\"");
    assert_eq!(date("0999-01-01", Granularity::Year), "\"0999\"");
    assert_eq!(date("-000044-03-01", Granularity::Month), "\"-0044-03\"");
}

#[test]
fn weeks_follow_iso_8601_at_the_years_ends() {
    assert_eq!(date("2024-12-30", Granularity::Week), "\"2025-W01\"");
    assert_eq!(date("2021-01-03", Granularity::Week), "\"2020-W53\"");
    assert_eq!(date("2020-12-28", Granularity::Week), "\"2020-W53\"");
    assert_eq!(date("2024-01-01", Granularity::Week), "\"2024-W01\"");
    assert_eq!(date("2027-01-01", Granularity::Week), "\"2026-W53\"");
}

#[test]
fn bucket_is_the_same_whatever_unit_it_is_stored_in() {
    let at = micros("2024-05-06T07:08:09Z");
    let arrays: [ArrayRef; 4] = [
        Arc::new(TimestampSecondArray::from(vec![at / 1_000_000])),
        Arc::new(TimestampMillisecondArray::from(vec![at / 1_000])),
        Arc::new(TimestampMicrosecondArray::from(vec![at])),
        Arc::new(TimestampNanosecondArray::from(vec![at * 1_000])),
    ];
    for array in arrays {
        let render = |format| cells(array.clone(), format, Numbers::Plain);
        assert_eq!(render(ColumnFormat::Date(Granularity::Week)), "\"2024-W19\"");
        assert_eq!(render(ColumnFormat::Clock(Granularity::Hour)), "\"2024-05-06T07\"");
        assert_eq!(render(ColumnFormat::Clock(Granularity::Minute)), "\"2024-05-06T07:08\"");
        assert_eq!(render(ColumnFormat::Clock(Granularity::Second)), "\"2024-05-06T07:08:09\"");
    }
    let before = TimestampNanosecondArray::from(vec![-1]);
    assert_eq!(plain(before), "\"1969-12-31T23:59:59.999999\"");
    let midnight = Date64Array::from(vec![i64::from(days("2024-05-06")) * 86_400_000]);
    assert_eq!(plain(midnight), "\"2024-05-06\"");
}

#[test]
fn repeated_hour_in_autumn_has_two_buckets() {
    let hours = TimestampMicrosecondArray::from(vec![
        micros("2013-11-03T04:00:00Z"),
        micros("2013-11-03T05:00:00Z"),
        micros("2013-11-03T06:00:00Z"),
        micros("2013-11-03T07:00:00Z"),
    ])
    .with_timezone("UTC");
    let format = ColumnFormat::InstantBucket(Granularity::Hour, zone("America/New_York"));
    assert_eq!(
        cells(Arc::new(hours), format, Numbers::Plain),
        "\"2013-11-03T00-04:00\", \"2013-11-03T01-04:00\", \"2013-11-03T01-05:00\", \"2013-11-03T02-05:00\""
    );
    // Lord Howe's clock goes back by half an hour, so the bucket of the second one o'clock starts before the change.
    let half = vec![micros("2024-04-06T14:00:00Z"), micros("2024-04-06T14:30:00Z"), micros("2024-04-06T15:30:00Z")];
    let half = TimestampMicrosecondArray::from(half).with_timezone("UTC");
    let format = ColumnFormat::InstantBucket(Granularity::Hour, zone("Australia/Lord_Howe"));
    assert_eq!(
        cells(Arc::new(half), format, Numbers::Plain),
        "\"2024-04-07T01+11:00\", \"2024-04-07T01+10:30\", \"2024-04-07T02+10:30\""
    );
    let quarter_zone = ColumnFormat::InstantBucket(Granularity::Minute, zone("Asia/Kathmandu"));
    let noon = TimestampMicrosecondArray::from(vec![micros("2024-01-01T12:00:00Z")]).with_timezone("UTC");
    assert_eq!(cells(Arc::new(noon), quarter_zone, Numbers::Plain), "\"2024-01-01T17:45+05:45\"");
}

#[test]
fn times_without_granularity_are_iso_8601() {
    let at = vec![micros("2024-05-06T07:08:09.120Z")];
    let instant = Arc::new(TimestampMicrosecondArray::from(at.clone()).with_timezone("UTC"));
    let clock = Arc::new(TimestampMicrosecondArray::from(at));
    let render = |array: &ArrayRef, format| cells(array.clone(), format, Numbers::Plain);
    let (instant, clock): (ArrayRef, ArrayRef) = (instant, clock);
    assert_eq!(render(&instant, ColumnFormat::Instant(TimeZone::UTC)), "\"2024-05-06T07:08:09.12Z\"");
    assert_eq!(render(&instant, ColumnFormat::Instant(zone("UTC"))), "\"2024-05-06T07:08:09.12Z\"");
    assert_eq!(render(&instant, ColumnFormat::Instant(zone("Europe/Berlin"))), "\"2024-05-06T09:08:09.12+02:00\"");
    assert_eq!(render(&instant, ColumnFormat::Plain), "\"2024-05-06T07:08:09.12Z\"");
    assert_eq!(render(&clock, ColumnFormat::WallClock), "\"2024-05-06T07:08:09.12\"");
    assert_eq!(render(&clock, ColumnFormat::Plain), "\"2024-05-06T07:08:09.12\"");
    let dates = Arc::new(Date32Array::from(vec![Some(days("2024-05-06")), None])) as ArrayRef;
    assert_eq!(render(&dates, ColumnFormat::WallClock), "\"2024-05-06\", null");
}

#[test]
fn infinite_times_are_written_as_words() {
    let ends = TimestampMicrosecondArray::from(vec![i64::MAX, i64::MIN]);
    assert_eq!(plain(ends), "\"infinity\", \"-infinity\"");
    assert_eq!(plain(Date32Array::from(vec![i32::MAX, i32::MIN])), "\"infinity\", \"-infinity\"");
}
