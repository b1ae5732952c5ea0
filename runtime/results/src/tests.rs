//! Tests results that are written and read back, and missing results.

use arrow::array::{AsArray as _, Int64Array, RecordBatch};
use arrow::datatypes::{Int64Type, SchemaRef};
use futures_util::TryStreamExt as _;
use jiff::tz::TimeZoneDatabase;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_compiler::types::{DimensionType, Granularity};

use super::*;

fn batch(from: i64, rows: i64) -> RecordBatch {
    let numbers = Int64Array::from_iter_values(from..from + rows);
    RecordBatch::try_from_iter([("n", Arc::new(numbers) as _)]).expect("a batch")
}

fn column(format: ColumnFormat) -> ResultColumn {
    ResultColumn { key: "orders.n".into(), is_measure: false, ty: DimensionType::Number, format }
}

fn description(columns: Vec<ResultColumn>) -> ResultDescription {
    let as_of = Some(jiff::Timestamp::from_second(7).expect("a time"));
    ResultDescription { columns, as_of, warnings: vec!["first".to_owned(), "second".to_owned()] }
}

async fn write(folder: &ResultFolder, rows: i64) -> Manifest {
    let schema: SchemaRef = batch(0, 0).schema();
    let mut writer =
        folder.create("a.1", &description(vec![column(ColumnFormat::Plain)]), schema).await.expect("a writer");
    // The size of the batches does not divide the size of the chunks.
    for from in (0..rows).step_by(1_000) {
        writer.write(batch(from, 1_000.min(rows - from))).await.expect("written");
    }
    writer.finish().await.expect("finished")
}

async fn read(folder: &ResultFolder, manifest: &Manifest, offset: u64, limit: u64) -> Vec<i64> {
    let page = folder.page(manifest, offset, limit).await.expect("a page");
    assert_eq!(&*page.description.columns[0].key, "orders.n");
    let batches: Vec<RecordBatch> = page.rows.try_collect().await.expect("rows");
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[tokio::test]
async fn pages_are_the_rows_at_their_offsets() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = ResultFolder::open(place.path(), 0).expect("opened");
    let rows = 20_500;
    let manifest = write(&folder, rows).await;
    assert_eq!(manifest.rows, 20_500);
    for (offset, limit) in
        [(0, 1), (0, 50_000), (8_191, 2), (8_192, 1), (16_383, 4_117), (20_499, 9), (20_500, 9), (u64::MAX, 1), (5, 0)]
    {
        let from = i64::try_from(offset).unwrap_or(rows).min(rows);
        let to = from.saturating_add(i64::try_from(limit).expect("small")).min(rows);
        assert_eq!(read(&folder, &manifest, offset, limit).await, (from..to).collect::<Vec<_>>(), "{offset} {limit}");
    }
    let empty = write(&folder, 0).await;
    assert!(read(&folder, &empty, 0, 10).await.is_empty());
}

#[tokio::test]
async fn unfinished_result_is_invisible_and_removed() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = ResultFolder::open(place.path(), 0).expect("opened");
    let mut writer = folder
        .create("a.1", &description(vec![column(ColumnFormat::Plain)]), batch(0, 0).schema())
        .await
        .expect("a writer");
    writer.write(batch(0, 9_000)).await.expect("written");
    assert_eq!(folder.names().await.expect("names"), ["a.1".into()]);
    let manifest = Manifest { name: "a.1".into(), rows: 9_000, bytes: 1 };
    assert!(folder.page(&manifest, 0, 1).await.is_err());
    drop(writer);
    assert!(folder.names().await.expect("names").is_empty());
}

#[tokio::test]
async fn cut_and_deleted_results_are_errors() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = ResultFolder::open(place.path(), 0).expect("opened");
    let manifest = write(&folder, 10).await;
    let longer = Manifest { bytes: manifest.bytes + 1, ..manifest.clone() };
    assert!(folder.page(&longer, 0, 1).await.is_err());
    folder.remove("a.1").await.expect("removed");
    folder.remove("a.1").await.expect("removed again");
    assert!(folder.page(&manifest, 0, 1).await.is_err());
}

#[tokio::test]
async fn full_disk_is_reported() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = ResultFolder::open(place.path(), u64::MAX).expect("opened");
    let created = folder.create("a.1", &description(vec![column(ColumnFormat::Plain)]), batch(0, 0).schema()).await;
    assert!(matches!(created, Err(ResultsError::DiskFull { .. })));
    assert!(folder.names().await.expect("names").is_empty());
}

#[test]
fn descriptions_round_trip() {
    let berlin = TimeZoneDatabase::bundled().get("Europe/Berlin").expect("a zone");
    for format in [
        ColumnFormat::Plain,
        ColumnFormat::Date(Granularity::Week),
        ColumnFormat::Clock(Granularity::Hour),
        ColumnFormat::InstantBucket(Granularity::Minute, berlin.clone()),
        ColumnFormat::Instant(berlin),
        ColumnFormat::WallClock,
    ] {
        let written = description(vec![column(format)]);
        let schema = columns::with_description(&written, &batch(0, 0).schema());
        let read = columns::description(&schema).expect("a description");
        assert_eq!(format!("{read:?}"), format!("{written:?}"));
    }
}

#[test]
fn result_of_an_older_version_has_no_time_and_no_warnings() {
    let written =
        ResultDescription { as_of: None, warnings: Vec::new(), ..description(vec![column(ColumnFormat::Plain)]) };
    let schema = columns::with_description(&written, &batch(0, 0).schema());
    assert!(schema.metadata().is_empty());
    let read = columns::description(&schema).expect("a description");
    assert_eq!((read.as_of, read.warnings), (None, Vec::new()));
}
