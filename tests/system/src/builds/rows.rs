//! Rows that change while servers build tables from them. Each row contains the number of the last change.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::engines::Engine;

/// The number of rows of the cube.
pub(super) const COUNT: u64 = 300;
/// The file of the rows, which DuckDB reads.
const FILE: &str = "events.csv";
const SCHEMA: &str = "terrane_preaggregations";

/// The place where the rows are stored.
#[derive(Debug)]
pub enum Rows<'a> {
    /// A file of the project, which DuckDB reads.
    File,
    /// A table of a PostgreSQL server.
    Postgres(&'a Engine),
}

impl Rows<'_> {
    pub(super) fn settings(&self) -> &'static str {
        match self {
            Rows::File => {
                "warehouse: {type: duckdb, threads: 1, path: w.duckdb, init: [\"CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS id\"]}\n"
            }
            Rows::Postgres(_) => "",
        }
    }

    pub(super) fn variables(&self) -> Vec<(String, String)> {
        match self {
            Rows::File => Vec::new(),
            Rows::Postgres(engine) => engine.variables(&[], &[]),
        }
    }

    /// Returns the file of a cube whose data counts as changed once a day.
    pub(super) fn cube(&self) -> String {
        let relation = match self {
            Rows::File => "sql: SELECT * FROM read_csv('events.csv')",
            Rows::Postgres(_) => "sql_table: kill_events",
        };
        format!(
            "\
cubes:
  - name: events
    {relation}
    refresh: {{every: 1 day}}
    dimensions:
      - {{name: id, type: number, sql: id, primary_key: true}}
      - {{name: part, type: number, sql: part}}
      - {{name: day, type: time, sql: day}}
    measures:
      - {{name: count, type: count}}
      - {{name: lowest, type: min, sql: version}}
      - {{name: highest, type: max, sql: version}}
    pre_aggregations:
      - name: monthly
        measures: [count, lowest, highest]
        dimensions: [part]
        time_dimension: day
        granularity: month
        partition_granularity: month
"
        )
    }

    /// Creates the rows with the number of change 1.
    pub(super) fn make(&self, project: &Path) -> Result<()> {
        if let Rows::Postgres(engine) = self {
            engine.ask(
                "postgres",
                &format!(
                    "DROP TABLE IF EXISTS kill_events; CREATE TABLE kill_events AS SELECT i AS id, i % 3 AS part, \
                     DATE '2026-01-01' + i % 90 AS day, 1 AS version FROM generate_series(0, {}) AS t(i)",
                    COUNT - 1
                ),
            )?;
        }
        self.change(project, 1)
    }

    /// Writes the number of a change into all rows at once, so that no reader sees two changes.
    pub(super) fn change(&self, project: &Path, version: u64) -> Result<()> {
        match self {
            Rows::File => {
                let months = [(1, 31), (2, 28), (3, 31)];
                let days: Vec<String> = months
                    .iter()
                    .flat_map(|(month, days)| (1..=*days).map(move |day| format!("2026-{month:02}-{day:02}")))
                    .collect();
                let row = |id: u64| {
                    let day = &days[usize::try_from(id).unwrap_or_default() % days.len()];
                    format!("{id},{},{day},{version}\n", id % 3)
                };
                let text: String = (0..COUNT).map(row).collect();
                let new = project.join("events.new");
                fs::write(&new, format!("id,part,day,version\n{text}"))?;
                fs::rename(new, project.join(FILE))?;
            }
            Rows::Postgres(engine) => {
                engine.ask("postgres", &format!("UPDATE kill_events SET version = {version}"))?;
            }
        }
        Ok(())
    }

    /// Returns the names of the tables of pre-aggregations. With DuckDB, no server may be running.
    pub(super) fn tables(&self, project: &Path) -> Result<Vec<String>> {
        match self {
            Rows::File => {
                let connection = duckdb::Connection::open(project.join(".terrane/preaggregations.duckdb"))?;
                let mut statement = connection.prepare("SELECT table_name FROM duckdb_tables()")?;
                let names = statement.query_map([], |row| row.get::<_, String>(0))?;
                Ok(names.collect::<Result<_, _>>()?)
            }
            Rows::Postgres(engine) => {
                let list = format!("SELECT tablename FROM pg_tables WHERE schemaname = '{SCHEMA}'");
                Ok(engine.ask("postgres", &list)?.lines().map(str::to_owned).collect())
            }
        }
    }
}
