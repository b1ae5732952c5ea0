//! Guardrails of users and groups.
//!
//! In: a change that was decided with knowledge of all records up to a sequence number. Out: records in the order of
//! their last changes. A transaction with the write lock compares the sequence number, and writes the record together
//! with its audit record. Not here: the rules of changes (`app::cost`).

use std::time::Duration;

use async_trait::async_trait;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::guardrails::{GuardrailRecord, GuardrailRecords, GuardrailSubject, Guardrails};
use terrane_app::ports::store::StoreError;

use crate::audit::append_in;
use crate::database::Row;
use crate::row::{micros, odd, signed, text, time, unsigned};
use crate::statement::Statement;
use crate::store::StateStore;

const WRITE: &str = "\
    INSERT INTO guardrails (subject, version, sequence, is_removed, max_execution_us, max_rows_returned, \
    require_time_filter, max_cost, daily_budget, monthly_budget, alert_at_percent, updated_by, updated_at, \
    require_partition_filter, max_scan_bytes) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
    ON CONFLICT (subject) DO UPDATE SET version = excluded.version, sequence = excluded.sequence, \
    is_removed = excluded.is_removed, max_execution_us = excluded.max_execution_us, \
    max_rows_returned = excluded.max_rows_returned, require_time_filter = excluded.require_time_filter, \
    max_cost = excluded.max_cost, daily_budget = excluded.daily_budget, \
    monthly_budget = excluded.monthly_budget, alert_at_percent = excluded.alert_at_percent, \
    updated_by = excluded.updated_by, updated_at = excluded.updated_at, \
    require_partition_filter = excluded.require_partition_filter, max_scan_bytes = excluded.max_scan_bytes";

#[async_trait]
impl GuardrailRecords for StateStore {
    async fn guardrails_since(&self, sequence: u64) -> Result<Vec<(u64, GuardrailRecord)>, StoreError> {
        let changed = Statement::new("SELECT * FROM guardrails WHERE sequence > $1 ORDER BY sequence");
        let rows = self.database.all(changed.bind(signed(sequence))).await?;
        rows.iter().map(|row| Ok((unsigned(row, "sequence")?, record(row)?))).collect()
    }

    async fn write_guardrails(
        &self,
        sequence: u64,
        record: GuardrailRecord,
        entry: AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        let newest = Statement::new("SELECT max(sequence) AS newest FROM guardrails");
        let newest = change.optional(newest).await?;
        let newest = newest.map_or(Ok(None), |row| row.maybe_integer("newest"))?.unwrap_or(0);
        if newest != signed(sequence) {
            return Ok(false);
        }
        let limits = record.limits.unwrap_or_default();
        let write = Statement::new(WRITE)
            .bind(&*record.subject.to_string())
            .bind(signed(record.version))
            .bind(newest + 1)
            .bind(i64::from(record.limits.is_none()))
            .bind(limits.max_execution.map(|limit| i64::try_from(limit.as_micros()).unwrap_or(i64::MAX)))
            .bind(limits.max_rows_returned.map(signed))
            .bind(i64::from(limits.require_time_filter))
            .bind(limits.max_cost_micros.map(signed))
            .bind(limits.daily_budget_micros.map(signed))
            .bind(limits.monthly_budget_micros.map(signed))
            .bind(limits.alert_at_percent.map(i64::from))
            .bind(&*record.updated_by)
            .bind(micros(record.updated_at))
            .bind(i64::from(limits.require_partition_filter))
            .bind(limits.max_scan_bytes.map(signed));
        change.execute(write).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(true)
    }
}

fn record(row: &Row) -> Result<GuardrailRecord, StoreError> {
    let maybe_unsigned = |column| row.maybe_integer(column).map(|number| number.map(i64::unsigned_abs));
    let limits = Guardrails {
        max_execution: maybe_unsigned("max_execution_us")?.map(Duration::from_micros),
        max_rows_returned: maybe_unsigned("max_rows_returned")?,
        require_time_filter: row.integer("require_time_filter")? != 0,
        require_partition_filter: row.integer("require_partition_filter")? != 0,
        max_cost_micros: maybe_unsigned("max_cost")?,
        max_scan_bytes: maybe_unsigned("max_scan_bytes")?,
        daily_budget_micros: maybe_unsigned("daily_budget")?,
        monthly_budget_micros: maybe_unsigned("monthly_budget")?,
        alert_at_percent: maybe_unsigned("alert_at_percent")?.and_then(|percent| u8::try_from(percent).ok()),
    };
    Ok(GuardrailRecord {
        subject: GuardrailSubject::parse(&text(row, "subject")?).ok_or_else(|| odd("a subject of guardrails"))?,
        limits: (row.integer("is_removed")? == 0).then_some(limits),
        version: unsigned(row, "version")?,
        updated_by: text(row, "updated_by")?,
        updated_at: time(row.integer("updated_at")?)?,
    })
}
