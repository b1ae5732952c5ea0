//! Runs of data tests.
//!
//! In: requested and ended runs. Out: the records. Not here: who may read them (`app::data_tests`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::data_tests::{DataTestRecords, DataTestRun, TestOutcome, TestResult};
use terrane_app::ports::leases::Lease;
use terrane_app::ports::store::StoreError;

use crate::audit::append_in;
use crate::database::Row;
use crate::leases::is_newest;
use crate::row::{maybe_text, maybe_time, micros, odd, text, time};
use crate::statement::Statement;
use crate::store::StateStore;

const WAITING: &str = "SELECT * FROM data_test_runs WHERE ended_at IS NULL ORDER BY created_at, id LIMIT 1";
const WRITE: &str = "\
    INSERT INTO data_test_runs (id, requested_by, created_at, started_at, ended_at, results) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET started_at = excluded.started_at, \
    ended_at = excluded.ended_at, results = excluded.results";

/// The JSON form in which a result is stored.
#[derive(Serialize, Deserialize)]
struct ResultText {
    name: String,
    file: Option<String>,
    line: Option<u32>,
    outcome: String,
    message: Option<String>,
    micros: u64,
}

#[async_trait]
impl DataTestRecords for StateStore {
    async fn data_test_runs(&self, limit: u32) -> Result<Vec<DataTestRun>, StoreError> {
        let newest = Statement::new("SELECT * FROM data_test_runs ORDER BY created_at DESC, id DESC LIMIT $1");
        self.database.all(newest.bind(i64::from(limit))).await?.iter().map(run).collect()
    }

    async fn data_test_run(&self, id: &str) -> Result<Option<DataTestRun>, StoreError> {
        let found = Statement::new("SELECT * FROM data_test_runs WHERE id = $1").bind(id);
        self.database.optional(found).await?.as_ref().map(run).transpose()
    }

    async fn waiting_data_tests(&self) -> Result<Option<DataTestRun>, StoreError> {
        self.database.optional(Statement::new(WAITING)).await?.as_ref().map(run).transpose()
    }

    async fn last_scheduled_data_tests(&self) -> Result<Option<Timestamp>, StoreError> {
        let newest = Statement::new("SELECT max(created_at) AS newest FROM data_test_runs WHERE requested_by IS NULL");
        let row = self.database.optional(newest).await?;
        maybe_time(row.map_or(Ok(None), |row| row.maybe_integer("newest"))?)
    }

    async fn request_data_tests(&self, requested: &DataTestRun, entry: AuditEntry) -> Result<DataTestRun, StoreError> {
        // The write lock prevents another server from adding a waiting run before the insert.
        let mut change = self.database.change().await?;
        if let Some(waiting) = change.optional(Statement::new(WAITING)).await? {
            return run(&waiting);
        }
        change.execute(write(requested)).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(requested.clone())
    }

    async fn write_data_tests(&self, ended: &DataTestRun, most: u32, lease: &Lease) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(false);
        }
        change.execute(write(ended)).await?;
        let oldest = Statement::new(
            "DELETE FROM data_test_runs WHERE ended_at IS NOT NULL AND id NOT IN (SELECT id FROM (SELECT id \
             FROM data_test_runs ORDER BY created_at DESC, id DESC LIMIT $1) AS newest)",
        );
        change.execute(oldest.bind(i64::from(most))).await?;
        change.commit().await?;
        Ok(true)
    }
}

fn write(run: &DataTestRun) -> Statement {
    let results: Vec<ResultText> = run.results.iter().map(ResultText::from).collect();
    Statement::new(WRITE)
        .bind(&*run.id)
        .bind(run.requested_by.as_deref())
        .bind(micros(run.created_at))
        .bind(run.started_at.map(micros))
        .bind(run.ended_at.map(micros))
        .bind(&*serde_json::to_string(&results).unwrap_or_default())
}

fn run(row: &Row) -> Result<DataTestRun, StoreError> {
    let results: Vec<ResultText> = serde_json::from_str(&row.text("results")?).map_err(|_| odd("results of tests"))?;
    Ok(DataTestRun {
        id: text(row, "id")?,
        requested_by: maybe_text(row, "requested_by")?,
        created_at: time(row.integer("created_at")?)?,
        started_at: maybe_time(row.maybe_integer("started_at")?)?,
        ended_at: maybe_time(row.maybe_integer("ended_at")?)?,
        results: results.into_iter().map(ResultText::read).collect::<Result<_, _>>()?,
    })
}

impl From<&TestResult> for ResultText {
    fn from(result: &TestResult) -> Self {
        ResultText {
            name: result.name.to_string(),
            file: result.file.as_deref().map(str::to_owned),
            line: result.line,
            outcome: result.outcome.as_str().to_owned(),
            message: result.message.as_deref().map(str::to_owned),
            micros: u64::try_from(result.duration.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

impl ResultText {
    fn read(self) -> Result<TestResult, StoreError> {
        Ok(TestResult {
            name: self.name.into(),
            file: self.file.map(Arc::from),
            line: self.line,
            outcome: TestOutcome::named(&self.outcome).ok_or_else(|| odd("an outcome of a test"))?,
            message: self.message.map(Arc::from),
            duration: Duration::from_micros(self.micros),
        })
    }
}
