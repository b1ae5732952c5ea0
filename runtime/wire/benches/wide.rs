//! Large answers as they are streamed: 100,000 rows of 64 columns (32 integers, 16 short strings, 16 doubles), from
//! Arrow batches in memory to the bytes that go to the socket.
//!
//! Budget, on 2 quiet cores: 400 ms to JSON (about 170 MB), 30 ms to Arrow (about 60 MB). CSV has no budget of its own
//! and should be faster than JSON. Only a few batches and their bytes are in memory at any time.

use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::stream::{self, StreamExt as _};
use terrane_app::query::Piece;
use terrane_compiler::model::DimensionType;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_wire::RowEncoder;
use terrane_wire::json::Numbers;

const ROWS: usize = 100_000;
/// The number of rows of one batch of DuckDB.
const BATCH_ROWS: usize = 2_048;

fn column(index: usize, rows: std::ops::Range<usize>) -> ArrayRef {
    match index {
        0..32 => Arc::new(rows.map(|row| Some((row * (index + 1)) as i64)).collect::<Int64Array>()),
        32..48 => Arc::new(rows.map(|row| Some(format!("text {}", (row + index) % 997))).collect::<StringArray>()),
        _ => Arc::new(rows.map(|row| Some(row as f64 / (index as f64 - 40.5))).collect::<Float64Array>()),
    }
}

fn columns() -> Vec<ResultColumn> {
    let column = |index| ResultColumn {
        key: format!("orders.member_{index:02}").into(),
        is_measure: false,
        ty: if (32..48).contains(&index) { DimensionType::String } else { DimensionType::Number },
        format: ColumnFormat::Plain,
    };
    (0..64).map(column).collect()
}

fn batches() -> Vec<RecordBatch> {
    let batch = |start: usize| {
        let rows = start..(start + BATCH_ROWS).min(ROWS);
        let named = (0..64).map(|index| (format!("c{index}"), column(index, rows.clone()), true));
        RecordBatch::try_from_iter_with_nullable(named).expect("columns of one length")
    };
    (0..ROWS).step_by(BATCH_ROWS).map(batch).collect()
}

/// Reads a body to its end, as a client would.
async fn length(encoder: RowEncoder, batches: &[RecordBatch]) -> usize {
    let end = Piece::End { returned_rows: ROWS as u64, truncated: Some(false), duration: Duration::ZERO };
    let pieces: Vec<_> =
        batches.iter().cloned().map(Piece::Rows).chain([end]).map(Ok::<_, terrane_app::query::QueryRunError>).collect();
    let mut body = pin!(encoder.encode_stream(Vec::new(), stream::iter(pieces).boxed(), |_| Vec::new()));
    let mut length = 0;
    while let Some(part) = body.next().await {
        length += black_box(part.expect("rows that can be written")).len();
    }
    length
}

fn wide(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    let batches = batches();
    let schema = batches[0].schema();
    let mut group = criterion.benchmark_group("wide");
    group.sample_size(20);
    group.bench_function("100000_rows_of_64_to_json", |bencher| {
        bencher.iter(|| runtime.block_on(length(RowEncoder::json(columns(), Numbers::Plain), &batches)));
    });
    group.bench_function("100000_rows_of_64_to_csv", |bencher| {
        bencher.iter(|| runtime.block_on(length(RowEncoder::csv(columns(), Numbers::Plain), &batches)));
    });
    group.bench_function("100000_rows_of_64_to_arrow", |bencher| {
        bencher.iter(|| runtime.block_on(length(RowEncoder::arrow(columns(), &schema, Numbers::Plain), &batches)));
    });
    group.finish();
}

criterion_group!(benches, wide);
criterion_main!(benches);
