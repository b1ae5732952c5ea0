//! Restores a dump into an empty state, completely or not at all.
//!
//! The restore is one transaction. Others see the rows only after the checksum, the numbers of rows and the audit chain
//! have been verified. A state that already contains rows is not changed; restore into a new database instead.

use std::io::BufRead;

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};
use terrane_app::ports::audit::{AuditEntry, ChainState, Details};
use terrane_app::ports::store::{Store as _, StoreError};

use super::write::count;
use super::{FORMAT, FORMAT_VERSION, TABLES, Table};
use crate::audit::{append_in, verify_in};
use crate::database::Transaction;
use crate::statement::{Bound, INSERTED_ROWS, Statement};
use crate::store::StateStore;

/// The largest size of a line in bytes. A row of a dump is smaller.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// The reason why a restore failed. Nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the dump cannot be read: {0}")]
    Input(#[from] std::io::Error),
    #[error("not a dump of a state database: the first line is not a dump header")]
    NoDump,
    #[error("the dump has format {found}, and this version reads format {FORMAT_VERSION}")]
    Format { found: u64 },
    #[error("the dump has schema version {found}, but this database has version {own}")]
    Schema { found: i64, own: i64 },
    #[error("the state is not empty: table `{table}`, rows: {rows}")]
    NotEmpty { table: &'static str, rows: i64 },
    #[error("line {line}: {what}")]
    InvalidLine { line: u64, what: String },
    #[error("the dump is truncated: its last line is missing")]
    Cut,
    #[error("the dump was changed: its checksum is {found}, and its last line states {said}")]
    Checksum { found: String, said: String },
    #[error("the dump has {found} rows of `{table}`, and its header states {said}")]
    Count { table: &'static str, found: i64, said: i64 },
    #[error("the audit log of the dump is broken at record {sequence}: {why}")]
    Chain { sequence: u64, why: String },
}

/// The numbers of rows that a restore wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub rows: u64,
    /// The number of restored audit records, without the record of the restoration.
    pub audit_records: u64,
}

#[derive(Deserialize)]
struct Header {
    format: String,
    format_version: u64,
    schema_version: i64,
    counts: Map<String, Json>,
}

/// A line after the header.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum DumpLine {
    Row { table: String, row: Map<String, Json> },
    End { sha256: String },
}

/// Reads lines and computes their checksum.
struct Lines<'a> {
    from: &'a mut (dyn BufRead + Send),
    number: u64,
    checksum: Sha256,
}

impl Lines<'_> {
    /// Returns the next line with the checksum of all lines before it, or `None` at the end.
    fn next(&mut self) -> Result<Option<(String, String)>, RestoreError> {
        let mut bytes = Vec::new();
        let limited = &mut std::io::Read::take(&mut *self.from, MAX_LINE_BYTES);
        limited.read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let before = hex::encode(self.checksum.clone().finalize());
        self.checksum.update(&bytes);
        let text = String::from_utf8(bytes).map_err(|_| self.wrong("it is not UTF-8 text"))?;
        Ok(Some((text, before)))
    }

    fn wrong(&self, what: impl Into<String>) -> RestoreError {
        RestoreError::InvalidLine { line: self.number, what: what.into() }
    }
}

/// Rows of one table that are not inserted yet.
#[derive(Default)]
struct Waiting {
    table: Option<&'static Table>,
    rows: Vec<Vec<Bound>>,
}

impl Waiting {
    async fn add(
        &mut self,
        change: &mut Transaction,
        table: &'static Table,
        row: Vec<Bound>,
    ) -> Result<(), StoreError> {
        if self.rows.len() >= INSERTED_ROWS || self.table.is_some_and(|waiting| waiting.name != table.name) {
            self.write(change).await?;
        }
        self.table = Some(table);
        self.rows.push(row);
        Ok(())
    }

    async fn write(&mut self, change: &mut Transaction) -> Result<(), StoreError> {
        let rows = std::mem::take(&mut self.rows);
        match self.table {
            Some(table) if !rows.is_empty() => {
                change.execute(Statement::insert(table.name, table.columns, rows)).await.map(|_| ())
            }
            _ => Ok(()),
        }
    }
}

impl StateStore {
    /// Restores a dump into this empty state. Then records `entry` in the audit log, with the counts as its `after`.
    ///
    /// # Errors
    /// [`RestoreError`]. The state is then unchanged.
    pub async fn restore(&self, from: &mut (dyn BufRead + Send), entry: AuditEntry) -> Result<Restored, RestoreError> {
        let mut lines = Lines { from, number: 0, checksum: Sha256::new() };
        let header = header(&mut lines, self.schema_version().await?)?;
        let mut change = self.database.change().await?;
        for table in &TABLES {
            let rows = count(&mut change, table).await?;
            if rows > 0 {
                return Err(RestoreError::NotEmpty { table: table.name, rows });
            }
        }
        let (rows, sha256) = read_rows(&mut lines, &mut change).await?;
        for table in &TABLES {
            let said = header.counts.get(table.name).and_then(Json::as_i64).unwrap_or(0);
            let found = count(&mut change, table).await?;
            if found != said {
                return Err(RestoreError::Count { table: table.name, found, said });
            }
        }
        let audit_records = match verify_in(&mut change).await? {
            ChainState::Whole { records, .. } => records,
            ChainState::Broken { sequence, why } => {
                return Err(RestoreError::Chain { sequence, why: why.to_string() });
            }
        };
        let after = json!({"rows": rows, "audit_records": audit_records, "sha256": sha256});
        let after = Some(Details::Encoded(after.to_string().into()));
        append_in(&mut change, vec![AuditEntry { after, ..entry }]).await?;
        change.commit().await?;
        Ok(Restored { rows, audit_records })
    }
}

fn header(lines: &mut Lines<'_>, own: i64) -> Result<Header, RestoreError> {
    let (text, _) = lines.next()?.ok_or(RestoreError::NoDump)?;
    let header: Header = serde_json::from_str(&text).map_err(|_| RestoreError::NoDump)?;
    match header {
        Header { format, .. } if format != FORMAT => Err(RestoreError::NoDump),
        Header { format_version, .. } if format_version != FORMAT_VERSION => {
            Err(RestoreError::Format { found: format_version })
        }
        Header { schema_version, .. } if schema_version != own => {
            Err(RestoreError::Schema { found: schema_version, own })
        }
        header => Ok(header),
    }
}

/// Inserts every row. Checks the checksum in the last line, and returns the number of rows and the checksum.
async fn read_rows(lines: &mut Lines<'_>, change: &mut Transaction) -> Result<(u64, String), RestoreError> {
    let (mut waiting, mut rows) = (Waiting::default(), 0);
    loop {
        let (text, found) = lines.next()?.ok_or(RestoreError::Cut)?;
        if !text.ends_with('\n') {
            return Err(RestoreError::Cut);
        }
        let line = serde_json::from_str(&text);
        match line.map_err(|_| lines.wrong("it is neither a row nor the end of a dump"))? {
            DumpLine::Row { table, row } => {
                let known = TABLES.iter().find(|known| known.name == table);
                let table = known.ok_or_else(|| lines.wrong(format!("unknown table `{table}`")))?;
                let row = bound(table, &row).map_err(|what| lines.wrong(what))?;
                waiting.add(change, table, row).await.map_err(|error| lines.wrong(error.message))?;
                rows += 1;
            }
            DumpLine::End { sha256: said } if said != found => return Err(RestoreError::Checksum { found, said }),
            DumpLine::End { sha256 } => {
                waiting.write(change).await.map_err(|error| lines.wrong(error.message))?;
                return match lines.next()? {
                    None => Ok((rows, sha256)),
                    Some(_) => Err(lines.wrong("unexpected content after the last line")),
                };
            }
        }
    }
}

/// Returns the values of a row in the order of the table's columns. Fails if the row has different columns.
fn bound(table: &Table, row: &Map<String, Json>) -> Result<Vec<Bound>, String> {
    if let Some(unknown) = row.keys().find(|key| !table.columns.contains(&key.as_str())) {
        return Err(format!("`{}` has no column `{unknown}`", table.name));
    }
    let value = |column: &str| match (row.get(column), table.is_number(column)) {
        (Some(Json::Null), true) => Ok(Bound::Integer(None)),
        (Some(Json::Null), false) => Ok(Bound::Text(None)),
        (Some(Json::String(text)), false) => Ok(Bound::from(text.as_str())),
        (Some(Json::Number(number)), true) if number.as_i64().is_some() => Ok(Bound::Integer(number.as_i64())),
        (Some(_), _) => Err(format!("`{}.{column}` has a value of another type", table.name)),
        (None, _) => Err(format!("`{}.{column}` is missing", table.name)),
    };
    table.columns.iter().map(|column| value(column)).collect()
}
