//! The warehouse of the cluster: the flights in PostgreSQL, in the DuckDB of each replica, or in a Spark Connect server.
//!
//! In: a kind of warehouse. Out: a copy of the example project with its settings, and the server of the warehouse. The
//! rows in PostgreSQL are loaded from the Parquet files through the program's DuckDB. Not here: other projects.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::services::Postgres;
use crate::context::Context;
use crate::process::{Process, free_port, output, wait_until};
use crate::python;

const PROJECT: &str = "examples/flights";
const TABLES: [&str; 5] = ["airlines", "airports", "planes", "flights", "weather"];
const SCHEMA: &str = include_str!("flights.sql");
const SPARK_LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// A second PostgreSQL server; pre-aggregations are built in it.
    Postgres,
    /// The embedded DuckDB of each replica, over the Parquet files of the example.
    Duckdb,
    /// Sail, a server of Spark Connect from a Python package, over the same files.
    Spark,
}

/// The program of the replicas.
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// The folders of components, besides those that the program searches.
    pub(super) components: Vec<PathBuf>,
}

pub(super) struct Warehouse {
    pub(super) kind: Kind,
    /// The folder of the project, which all replicas serve.
    pub(super) project: PathBuf,
    pub(super) postgres: Option<Postgres>,
    /// The folders of components, besides those that the program searches.
    components: Vec<PathBuf>,
    _spark: Option<Process>,
}

impl Warehouse {
    pub(super) fn start(context: &Context, kind: Kind, program: &Program, folder: &Path) -> Result<Self> {
        let project = folder.join("project");
        copy(&context.root.join(PROJECT), &project)?;
        let data = project.join("data");
        let components = program.components.clone();
        let mut warehouse = Warehouse { kind, project, postgres: None, components, _spark: None };
        let settings = match kind {
            Kind::Duckdb => json!({"type": "duckdb", "threads": 1, "init": views(&data)}),
            Kind::Postgres => warehouse.load_into_postgres(program, folder)?,
            Kind::Spark => {
                let (spark, url) = start_spark(context, folder)?;
                warehouse._spark = Some(spark);
                json!({"type": "spark", "url": url, "init": spark_tables(&data)})
            }
        };
        warehouse.configure(&settings)?;
        Ok(warehouse)
    }

    /// Starts a PostgreSQL server with the rows of the example, and returns the settings of the warehouse.
    fn load_into_postgres(&mut self, program: &Program, folder: &Path) -> Result<Value> {
        let (rows, data) = (folder.join("rows"), self.project.join("data"));
        fs::create_dir(&rows)?;
        // DuckDB writes the rows as CSV when the program starts.
        let init: Vec<String> = views(&data).into_iter().chain(TABLES.map(|table| export(table, &rows))).collect();
        self.configure(&json!({"type": "duckdb", "init": init}))?;
        self.export_rows(&program.path)?;
        let postgres = load(&folder.join("warehouse"), &rows)?;
        let settings = json!({"type": "postgres", "url": postgres.url()});
        self.postgres = Some(postgres);
        Ok(settings)
    }

    /// Returns whether the replicas build pre-aggregations. With DuckDB they do not, because only one process at a time
    /// can open the file of the tables.
    pub(super) fn has_preaggregations(&self) -> bool {
        self.kind == Kind::Postgres
    }

    fn configure(&self, warehouse: &Value) -> Result<()> {
        let plugins = json!({"paths": self.components});
        let settings = json!({"name": "flights", "version": "1.0", "warehouse": warehouse, "plugins": plugins});
        // JSON is YAML.
        fs::write(self.project.join("service_project.yml"), format!("{settings:#}\n"))?;
        Ok(())
    }

    fn export_rows(&self, program: &Path) -> Result<()> {
        let mut command = Command::new(program);
        output(command.arg("query").arg(&self.project).arg(r#"{"measures":["planes.count"]}"#)).map(drop)
    }
}

/// Returns statements for the views of the example over its Parquet files.
fn views(data: &Path) -> Vec<String> {
    let view = |table: &str| {
        format!(
            "CREATE VIEW raw.{table} AS SELECT * FROM read_parquet('{}')",
            data.join(table).with_extension("parquet").display()
        )
    };
    [String::from("CREATE SCHEMA raw")].into_iter().chain(TABLES.map(view)).collect()
}

fn export(table: &str, rows: &Path) -> String {
    format!("COPY (FROM raw.{table}) TO '{}' (HEADER)", rows.join(table).with_extension("csv").display())
}

/// Creates a PostgreSQL server with the rows of the example.
fn load(folder: &Path, rows: &Path) -> Result<Postgres> {
    let postgres = Postgres::start(folder)?;
    postgres.query(SCHEMA)?;
    for table in TABLES {
        let file = rows.join(table).with_extension("csv");
        postgres.query(&format!("\\copy raw.{table} FROM '{}' (FORMAT csv, HEADER)", file.display()))?;
    }
    postgres.query("ANALYZE")?;
    fs::remove_dir_all(rows)?;
    Ok(postgres)
}

fn start_spark(context: &Context, folder: &Path) -> Result<(Process, String)> {
    let requirements = context.root.join("xtask/spark-server/requirements.txt");
    let python = python::environment(context, &context.target()?.join("tools/spark-server"), &requirements, "pysail")?;
    let port = free_port()?;
    let mut command = Command::new(python.with_file_name("sail"));
    command.args(["spark", "server", "--ip", "127.0.0.1", "--port", &port.to_string()]).current_dir(folder);
    let mut process = Process::start(command, &folder.join("spark.log"))?;
    wait_until("Spark Connect accepts connections", SPARK_LIMIT, || {
        process.ensure_runs()?;
        Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
    })?;
    Ok((process, format!("sc://127.0.0.1:{port}")))
}

/// Returns statements for external tables over the Parquet files, which run in each session.
fn spark_tables(data: &Path) -> Vec<String> {
    let table = |table: &str| {
        let file = data.join(table).with_extension("parquet");
        format!("CREATE TABLE IF NOT EXISTS raw.{table} USING parquet LOCATION '{}'", file.display())
    };
    [String::from("CREATE SCHEMA IF NOT EXISTS raw")].into_iter().chain(TABLES.map(table)).collect()
}

/// Copies a folder, without hidden files.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if name.to_string_lossy().starts_with('.') {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
