//! DuckDB in this process, with the settings of the server's DuckDB.

use std::path::Path;

use anyhow::{Context as _, Result};
use duckdb::{AccessMode, Config, Connection};

/// An open database file.
pub(super) struct Database {
    connection: Connection,
}

impl Database {
    /// Creates the file with the tables.
    pub(super) fn make(file: &Path, scale: f64, tables: &str) -> Result<()> {
        let connection = Connection::open(file)?;
        connection.execute_batch(&format!("CREATE MACRO scale() AS {scale};\n{tables}")).context("making the tables")
    }

    /// Opens the file for reading only, so that a server can read it at the same time.
    pub(super) fn open(file: &Path) -> Result<Self> {
        let config = Config::default().threads(2)?.access_mode(AccessMode::ReadOnly)?;
        let connection = Connection::open_with_flags(file, config)?;
        connection.execute_batch("SET disabled_optimizers = 'common_subplan'")?;
        Ok(Database { connection })
    }

    /// Creates a new file, and attaches the file of the tables as `tpch` for reading.
    pub(super) fn attach(tables: &Path, file: &Path) -> Result<Self> {
        let connection = Connection::open_with_flags(file, Config::default().threads(2)?)?;
        let tables = tables.display().to_string().replace('\'', "''");
        connection.execute_batch(&format!("ATTACH '{tables}' AS tpch (READ_ONLY)"))?;
        Ok(Database { connection })
    }

    /// Runs statements that return no rows.
    pub(super) fn execute(&self, statements: &str) -> Result<()> {
        Ok(self.connection.execute_batch(statements)?)
    }

    /// Runs a statement and reads all of its rows in Arrow batches.
    pub(super) fn run(&self, sql: &str) -> Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        statement.query_arrow([])?.for_each(drop);
        Ok(())
    }

    /// Runs a statement and returns its rows as text. Null is the empty string.
    pub(super) fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        let mut statement = self.connection.prepare(&format!("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({sql})"))?;
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let width = row.as_ref().column_count();
            let cell = |at| Ok(row.get::<_, Option<String>>(at)?.unwrap_or_default());
            all.push((0..width).map(cell).collect::<Result<Vec<String>>>()?);
        }
        Ok(all)
    }

    /// Returns whether two statements have the same rows. The first one may also have a column `total_rows`.
    pub(super) fn has_same_rows(&self, sql: &str, by_hand: &str) -> Result<bool> {
        let columns = if sql.contains("AS total_rows") { "* EXCLUDE (total_rows)" } else { "*" };
        let [own, other] = [format!("SELECT {columns} FROM ({sql})"), format!("SELECT * FROM ({by_hand})")];
        let differing = format!(
            "SELECT (SELECT count(*) FROM ({own} EXCEPT ALL {other})) + (SELECT count(*) FROM ({other} EXCEPT ALL {own}))"
        );
        let count: i64 = self.connection.query_row(&differing, [], |row| row.get(0))?;
        Ok(count == 0)
    }
}
