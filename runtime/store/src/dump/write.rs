//! Writes a dump page by page, in one transaction that reads.

use std::io::Write;

use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};
use terrane_app::ports::store::{Store as _, StoreError};

use super::{FORMAT, FORMAT_VERSION, PAGE, TABLES, Table};
use crate::database::{Row, Transaction};
use crate::statement::{Bound, Statement};
use crate::store::StateStore;

/// The reason why a dump failed.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the dump cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

/// Writes lines and computes their checksum.
struct Lines<'a> {
    to: &'a mut dyn Write,
    checksum: Sha256,
}

impl Lines<'_> {
    fn write(&mut self, line: &Json) -> Result<(), std::io::Error> {
        let line = format!("{line}\n");
        self.checksum.update(line.as_bytes());
        self.to.write_all(line.as_bytes())
    }
}

impl StateStore {
    /// Writes a snapshot of the state. Returns the number of rows.
    ///
    /// # Errors
    /// [`DumpError`]. The output then lacks the last line and cannot be restored.
    pub async fn dump(&self, to: &mut (dyn Write + Send), made_at: Timestamp) -> Result<u64, DumpError> {
        let schema_version = self.schema_version().await?;
        let mut transaction = self.database.read().await?;
        let mut counts = Map::new();
        for table in &TABLES {
            counts.insert(table.name.to_owned(), count(&mut transaction, table).await?.into());
        }
        let mut lines = Lines { to, checksum: Sha256::new() };
        lines.write(&json!({
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "schema_version": schema_version,
            "made_at": made_at.to_string(),
            "counts": counts,
        }))?;
        let mut rows = 0;
        for table in &TABLES {
            rows += write_table(&mut transaction, table, &mut lines).await?;
        }
        transaction.rollback().await?;
        let checksum = hex::encode(lines.checksum.finalize());
        writeln!(lines.to, "{}", json!({"sha256": checksum}))?;
        lines.to.flush()?;
        Ok(rows)
    }
}

pub(super) async fn count(transaction: &mut Transaction, table: &Table) -> Result<i64, StoreError> {
    let counted = transaction.optional(Statement::new("SELECT count(*) AS rows FROM ").then(table.name)).await?;
    counted.map_or(Ok(0), |row| row.integer("rows"))
}

async fn write_table(transaction: &mut Transaction, table: &Table, lines: &mut Lines<'_>) -> Result<u64, DumpError> {
    let key = table.columns[0];
    let (mut last, mut written): (Option<Bound>, u64) = (None, 0);
    loop {
        let mut page = Statement::new("SELECT * FROM ").then(table.name);
        if let Some(last) = last.take() {
            page = page.then(" WHERE ").then(key).and(" > ", last);
        }
        let page = page.then(" ORDER BY ").then(key).and(" LIMIT ", PAGE as i64);
        let rows = transaction.all(page).await?;
        for row in &rows {
            lines.write(&json!({"table": table.name, "row": values(row, table)?}))?;
            written += 1;
        }
        let Some(row) = rows.last().filter(|_| rows.len() == PAGE) else { return Ok(written) };
        last = Some(if table.is_number(key) { row.integer(key)?.into() } else { (&*row.text(key)?).into() });
    }
}

fn values(row: &Row, table: &Table) -> Result<Map<String, Json>, StoreError> {
    let value = |column: &str| -> Result<Json, StoreError> {
        Ok(if table.is_number(column) { row.maybe_integer(column)?.into() } else { row.maybe_text(column)?.into() })
    };
    table.columns.iter().map(|column| Ok(((*column).to_owned(), value(column)?))).collect()
}
