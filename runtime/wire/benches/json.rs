//! Measures the encoding of 100,000 rows of 8 columns as JSON, the size of a large report.
//!
//! Budget: 50 ms on a quiet core, which is 60 ns per cell. The answer is about 25 MB, most of it keys. It is the
//! largest answer of one request without an export, so the time must depend on the number of written bytes only.

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jiff::tz::TimeZone;
use terrane_compiler::model::DimensionType;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_compiler::types::Granularity;
use terrane_wire::json::{Numbers, write_rows};

const ROWS: usize = 100_000;
/// The number of rows of one batch of DuckDB.
const BATCH_ROWS: usize = 2_048;

/// Returns eight columns of a query's result; one value in 16 is null.
fn columns(rows: std::ops::Range<usize>) -> Vec<(&'static str, ArrayRef, ColumnFormat)> {
    fn of<T>(rows: std::ops::Range<usize>, value: impl Fn(usize) -> T) -> impl Iterator<Item = Option<T>> {
        rows.map(move |row| (row % 16 != 0).then(|| value(row)))
    }
    let revenue: Decimal128Array = of(rows.clone(), |row| row as i128 * 7_919).collect();
    let revenue = revenue.with_precision_and_scale(18, 2).expect("two places fit");
    let at = |row: usize| 1_357_000_000_000_000 + row as i64 * 61_000_000;
    let instants: TimestampMicrosecondArray = of(rows.clone(), at).collect();
    vec![
        (
            "flights.carrier",
            Arc::new(of(rows.clone(), |row| ["UA", "B6", "EV", "DL"][row % 4]).collect::<StringArray>()),
            ColumnFormat::Plain,
        ),
        (
            "dest_airport.name",
            Arc::new(of(rows.clone(), |row| format!("Airport of Place {}", row % 105)).collect::<StringArray>()),
            ColumnFormat::Plain,
        ),
        (
            "flights.flight_date.month",
            Arc::new(of(rows.clone(), |row| 15_706 + (row % 365) as i32).collect::<Date32Array>()),
            ColumnFormat::Date(Granularity::Month),
        ),
        ("flights.departs_at", Arc::new(instants.with_timezone("UTC")), ColumnFormat::Instant(TimeZone::UTC)),
        (
            "flights.is_cancelled",
            Arc::new(of(rows.clone(), |row| row % 40 == 0).collect::<BooleanArray>()),
            ColumnFormat::Plain,
        ),
        ("flights.count", Arc::new(of(rows.clone(), |row| row as i64).collect::<Int64Array>()), ColumnFormat::Plain),
        (
            "flights.average_delay",
            Arc::new(of(rows, |row| row as f64 / 7.0).collect::<Float64Array>()),
            ColumnFormat::Plain,
        ),
        ("flights.revenue", Arc::new(revenue), ColumnFormat::Plain),
    ]
}

fn json(criterion: &mut Criterion) {
    let head: Vec<ResultColumn> = columns(0..0)
        .into_iter()
        .map(|(key, _, format)| ResultColumn { key: key.into(), is_measure: false, ty: DimensionType::Number, format })
        .collect();
    let batches: Vec<RecordBatch> = (0..ROWS)
        .step_by(BATCH_ROWS)
        .map(|start| {
            let named =
                columns(start..(start + BATCH_ROWS).min(ROWS)).into_iter().map(|(name, array, _)| (name, array, true));
            RecordBatch::try_from_iter_with_nullable(named).expect("columns of one length")
        })
        .collect();
    let mut group = criterion.benchmark_group("json");
    let mut length = Vec::new();
    write_rows(&head, &batches, Numbers::Plain, &mut length);
    group.throughput(Throughput::Bytes(length.len() as u64));
    group.sample_size(20);
    group.bench_function("100000_rows_of_8", |bencher| {
        bencher.iter(|| {
            let mut out = Vec::new();
            write_rows(black_box(&head), black_box(&batches), Numbers::Plain, &mut out);
            out
        });
    });
    group.finish();
}

criterion_group!(benches, json);
criterion_main!(benches);
