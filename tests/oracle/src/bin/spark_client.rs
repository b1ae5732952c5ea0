//! Runs statements through the connector of Spark: `terrane-spark-client URL [CONNECTIONS]`.
//!
//! In: requests on standard input, one JSON object per line, which run at the same time:
//! `{"id", "sql", "seconds", "as": "rows" | "count", "leave_after"}`. Out: one JSON object per request, in the order of
//! their ends: `{"id", "rows"}` with cells as text, `{"id", "count", "batches"}`, or `{"id", "error", "kind"}`, each with
//! its duration in `milliseconds`. After `leave_after` seconds, the client abandons the request. Deliberately absent: the
//! expected rows.
#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool measures its own time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use terrane_app::ports::warehouse::{Statement, Warehouse as _, WarehouseError};
use terrane_warehouse_spark::{SparkSettings, SparkWarehouse, connect};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("usage: terrane-spark-client URL [CONNECTIONS]")?;
    let connections = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let connect_timeout = Duration::from_secs(60);
    let spark = Arc::new(connect(&SparkSettings { url, init: Vec::new(), connections, connect_timeout }).await?);
    let (sender, mut requests) = mpsc::unbounded_channel();
    std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut running = JoinSet::new();
    while let Some(line) = requests.recv().await {
        let request: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        let spark = Arc::clone(&spark);
        running.spawn(async move { println!("{}", answer(&spark, &request).await) });
    }
    while running.join_next().await.is_some() {}
    Ok(())
}

/// Returns the answer to a request.
async fn answer(spark: &SparkWarehouse, request: &Value) -> Value {
    let started = Instant::now();
    let mut answer = match request["leave_after"].as_f64() {
        None => run(spark, request).await,
        Some(seconds) => tokio::select! {
            answer = run(spark, request) => answer,
            () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => json!({"left": true}),
        },
    };
    answer["id"] = request["id"].clone();
    answer["milliseconds"] = json!(started.elapsed().as_millis() as u64);
    answer
}

async fn run(spark: &SparkWarehouse, request: &Value) -> Value {
    let statement = Statement::plain(request["sql"].as_str().unwrap_or_default());
    let limit = Duration::from_secs_f64(request["seconds"].as_f64().unwrap_or(60.0));
    let answer = match request["as"].as_str() {
        Some("count") => counted(spark, statement, limit).await,
        _ => spark.execute(statement, limit).await.map(|found| rows(&found.batches)),
    };
    answer.unwrap_or_else(|error| json!({"error": error.message, "kind": format!("{:?}", error.kind)}))
}

/// Reads all rows of a statement without storing them, and returns their number.
async fn counted(spark: &SparkWarehouse, statement: Statement<'_>, limit: Duration) -> Result<Value, WarehouseError> {
    let mut stream = spark.stream(statement, limit).await?;
    let (mut count, mut batches) = (0, 0);
    while let Some(batch) = stream.next().await {
        (count, batches) = (count + batch?.num_rows(), batches + 1);
    }
    Ok(json!({"count": count, "batches": batches}))
}

/// Returns the rows of batches with their cells as text.
fn rows(batches: &[RecordBatch]) -> Value {
    let rows = batches.iter().flat_map(|batch| {
        let columns: Vec<Vec<Value>> = batch.columns().iter().map(cells).collect();
        (0..batch.num_rows()).map(move |row| columns.iter().map(|column| column[row].clone()).collect::<Value>())
    });
    json!({"rows": rows.collect::<Vec<Value>>()})
}

/// Returns the cells of a column as text. Bytes are UTF-8.
fn cells(column: &ArrayRef) -> Vec<Value> {
    // The formatter does not know zones by name. Instants are in UTC.
    let column = match column.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            &cast(column, &DataType::Timestamp(*unit, None)).unwrap_or(column.clone())
        }
        _ => column,
    };
    let options = FormatOptions::default().with_display_error(true);
    let formatter = ArrayFormatter::try_new(column, &options);
    let cell = |row: usize| match &formatter {
        _ if column.is_null(row) => Value::Null,
        _ if *column.data_type() == DataType::Binary => {
            Value::from(String::from_utf8_lossy(column.as_binary::<i32>().value(row)))
        }
        Ok(formatter) => Value::from(formatter.value(row).to_string()),
        Err(error) => Value::from(error.to_string()),
    };
    (0..column.len()).map(cell).collect()
}
