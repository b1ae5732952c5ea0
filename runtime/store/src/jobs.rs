//! Jobs. A change of a job's row first compares the fence of the job's lease.

use async_trait::async_trait;
use jiff::Timestamp;
use std::sync::Arc;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::jobs::{
    Job, JobEnd, JobFailure, JobKind, JobQuota, JobState, Jobs, Manifest, NewJob, OwnerIdentity, Submitted,
};
use terrane_app::ports::leases::Lease;
use terrane_app::ports::store::StoreError;
use terrane_compiler::SecurityContext;

use crate::audit::append_in;
use crate::credentials::finish;
use crate::database::{Row, Transaction};
use crate::leases::is_newest;
use crate::row::{self, maybe_text, maybe_time, micros, text, time, words};
use crate::statement::Statement;
use crate::store::StateStore;

/// The largest number of rows that one transaction expires or deletes.
const AT_ONCE: i64 = 1_000;

const INSERT: &str = "\
    INSERT INTO jobs (id, owner, tenant, is_tenant, caller, auth_method, scopes, credential, query, now, state, \
    created_at, correlation_id, idempotency_key, request_hash, kind, attempts, cancel_requested) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'pending', $11, $12, $13, $14, $15, 0, 0)";

const INTERRUPTED: &str = "the servers that ran the job stopped twice; submit the query again";

#[async_trait]
impl Jobs for StateStore {
    async fn submit(&self, job: &NewJob, quota: JobQuota, entry: AuditEntry) -> Result<Submitted, StoreError> {
        let identity = &job.owner;
        let (owner, tenant) = account(identity);
        // The write lock prevents other inserts, so the counts stay correct until the insert.
        let mut change = self.database.change().await?;
        if let Some(key) = &job.idempotency_key {
            let known = Statement::new("SELECT * FROM jobs WHERE tenant = $1 AND owner = $2 AND idempotency_key = $3");
            let known = change.optional(known.bind(tenant).bind(owner).bind(&**key)).await?;
            if let Some(row) = known {
                return Ok(Submitted::Known(Box::new(stored(&row)?)));
            }
        }
        let counted = Statement::new("SELECT count(*) AS jobs FROM jobs WHERE state IN ('pending', 'running')");
        if count(&mut change, counted.clone()).await? >= quota.open {
            return Ok(Submitted::Full);
        }
        let counted = counted.and(" AND tenant = ", tenant);
        if let Some(open) = quota.open_per_tenant.filter(|_| identity.tenant.is_some())
            && count(&mut change, counted.clone().then(" AND is_tenant = 1")).await? >= open
        {
            return Ok(Submitted::TenantFull { open });
        }
        let counted = counted.and(" AND owner = ", owner);
        if count(&mut change, counted).await? >= quota.open_per_caller {
            return Ok(Submitted::CallerFull);
        }
        let insert = Statement::new(INSERT).bind(&*job.id).bind(owner).bind(tenant);
        let insert = insert.bind(i64::from(identity.tenant.is_some())).bind(&*row::caller_text(&identity.caller));
        let insert = insert.bind(identity.caller.auth_method.as_str()).bind(&*words(identity.scopes));
        let insert = insert.bind(&*identity.credential).bind(&*job.query).bind(micros(job.now));
        let insert = insert.bind(micros(job.created_at)).bind(job.correlation_id.as_deref());
        let insert = insert.bind(job.idempotency_key.as_deref()).bind(&*job.request_hash);
        change.execute(insert.bind(job.kind.as_str())).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(Submitted::Stored)
    }

    async fn job(&self, id: &str) -> Result<Option<Job>, StoreError> {
        self.database.optional(by_id(id)).await?.as_ref().map(stored).transpose()
    }

    async fn jobs_by_id(&self, ids: &[&str]) -> Result<Vec<Job>, StoreError> {
        let Some((first, others)) = ids.split_first() else { return Ok(Vec::new()) };
        let found = Statement::new("SELECT * FROM jobs WHERE id IN (").and("", *first);
        let found = others.iter().fold(found, |found, id| found.and(", ", *id)).then(")");
        self.database.all(found).await?.iter().map(stored).collect()
    }

    async fn jobs(
        &self,
        owner: Option<&OwnerIdentity>,
        state: Option<JobState>,
        limit: u32,
    ) -> Result<Vec<Job>, StoreError> {
        let mut found = Statement::new("SELECT * FROM jobs WHERE 1 = 1");
        if let Some((owner, tenant)) = owner.map(account) {
            found = found.and(" AND tenant = ", tenant).and(" AND owner = ", owner);
        }
        if let Some(state) = state {
            found = found.and(" AND state = ", state.as_str());
        }
        let found = found.and(" ORDER BY created_at DESC, id LIMIT ", i64::from(limit));
        self.database.all(found).await?.iter().map(stored).collect()
    }

    async fn claimable(&self, limit: u32) -> Result<Vec<Arc<str>>, StoreError> {
        let free = Statement::new(
            "SELECT j.id FROM jobs AS j LEFT JOIN leases AS l ON l.name = 'job:' || j.id \
             WHERE j.state IN ('pending', 'running') AND (l.name IS NULL OR l.expires_at <= ",
        );
        let free =
            free.then(self.database.now()).then(")").and(" ORDER BY j.created_at, j.id LIMIT ", i64::from(limit));
        self.database.all(free).await?.iter().map(|row| text(row, "id")).collect()
    }

    async fn begin(
        &self,
        id: &str,
        lease: &Lease,
        max_attempts: u32,
        at: Timestamp,
    ) -> Result<Option<Job>, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(None);
        }
        let Some(job) = find(&mut change, id).await? else { return Ok(None) };
        if !job.state.is_open() {
            return Ok(None);
        }
        if job.is_cancel_requested {
            write_end(&mut change, id, &JobEnd::Cancelled, at).await?;
        } else if job.attempts >= max_attempts {
            let failure = JobFailure { code: "INTERRUPTED".into(), message: INTERRUPTED.into() };
            write_end(&mut change, id, &JobEnd::Failed(failure), at).await?;
        } else {
            let update = Statement::new(
                "UPDATE jobs SET state = 'running', attempts = attempts + 1, started_at = coalesce(started_at, $1) \
                 WHERE id = $2",
            );
            change.execute(update.bind(micros(at)).bind(id)).await?;
        }
        let begun = find(&mut change, id).await?;
        change.commit().await?;
        Ok(begun)
    }

    async fn report(&self, id: &str, lease: &Lease, progress: Option<u32>) -> Result<Option<bool>, StoreError> {
        let update = Statement::new(
            "UPDATE jobs SET progress = CASE WHEN $1 > coalesce(progress, -1) THEN $1 ELSE progress END \
             WHERE id = $2 AND state = 'running' AND EXISTS \
             (SELECT 1 FROM leases WHERE name = $3 AND fence = $4) RETURNING cancel_requested",
        );
        let update = update.bind(progress.map(i64::from)).bind(id).bind(&*lease.name);
        let row = self.database.optional(update.bind(lease.fence.cast_signed())).await?;
        row.map(|row| row.integer("cancel_requested").map(|requested| requested != 0)).transpose()
    }

    async fn end(&self, id: &str, lease: &Lease, end: &JobEnd, at: Timestamp) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(false);
        }
        let Some(job) = find(&mut change, id).await? else { return Ok(false) };
        if job.state != JobState::Running {
            // A repeated call succeeds, because the answer to the first call may have been lost.
            return Ok(job.state == end.state());
        }
        write_end(&mut change, id, end, at).await?;
        change.commit().await?;
        Ok(true)
    }

    async fn cancel(&self, id: &str, at: Timestamp, entry: AuditEntry) -> Result<Option<Job>, StoreError> {
        let mut change = self.database.change().await?;
        let Some(job) = find(&mut change, id).await? else { return Ok(None) };
        match job.state {
            JobState::Pending => write_end(&mut change, id, &JobEnd::Cancelled, at).await?,
            JobState::Running if !job.is_cancel_requested => {
                let update = Statement::new("UPDATE jobs SET cancel_requested = 1 WHERE id = $1").bind(id);
                change.execute(update).await?;
            }
            JobState::Complete => {
                let update = Statement::new("UPDATE jobs SET state = 'expired', expires_at = $1 WHERE id = $2");
                change.execute(update.bind(micros(at)).bind(id)).await?;
            }
            _ => return Ok(Some(job)),
        }
        let changed = find(&mut change, id).await?;
        finish(change, true, entry).await?;
        Ok(changed)
    }

    async fn expire(&self, now: Timestamp) -> Result<u64, StoreError> {
        let expire = Statement::new(
            "UPDATE jobs SET state = 'expired' WHERE id IN (SELECT id FROM jobs WHERE state = 'complete' \
             AND expires_at <= $1 ORDER BY id LIMIT $2)",
        );
        self.database.execute(expire.bind(micros(now)).bind(AT_ONCE)).await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut change = self.database.change().await?;
        let over = "(SELECT id FROM jobs WHERE state IN ('failed', 'cancelled', 'expired') AND completed_at < $1 \
                    AND coalesce(expires_at, 0) < $1 ORDER BY id LIMIT $2)";
        let leases = Statement::new("DELETE FROM leases WHERE name IN (SELECT 'job:' || id FROM ").then(over);
        let leases = leases.then(" AS over_jobs)");
        change.execute(leases.bind(micros(before)).bind(AT_ONCE)).await?;
        let jobs = Statement::new("DELETE FROM jobs WHERE id IN ").then(over);
        let jobs = change.execute(jobs.bind(micros(before)).bind(AT_ONCE)).await?;
        change.commit().await?;
        Ok(jobs)
    }

    async fn pending(&self) -> Result<u64, StoreError> {
        let pending = Statement::new("SELECT count(*) AS jobs FROM jobs WHERE state = 'pending'");
        let row = self.database.optional(pending).await?;
        row.map_or(Ok(0), |row| row.integer("jobs").map(i64::unsigned_abs))
    }
}

/// Returns the user id and the tenant of an owner; the tenant is empty without tenants.
fn account(owner: &OwnerIdentity) -> (&str, &str) {
    (&owner.caller.user_id, owner.tenant.as_deref().unwrap_or_default())
}

fn by_id(id: &str) -> Statement {
    Statement::new("SELECT * FROM jobs WHERE id = $1").bind(id)
}

async fn find(change: &mut Transaction, id: &str) -> Result<Option<Job>, StoreError> {
    change.optional(by_id(id)).await?.as_ref().map(stored).transpose()
}

async fn count(change: &mut Transaction, statement: Statement) -> Result<u64, StoreError> {
    let row = change.optional(statement).await?;
    row.map_or(Ok(0), |row| row.integer("jobs").map(i64::unsigned_abs))
}

async fn write_end(change: &mut Transaction, id: &str, end: &JobEnd, at: Timestamp) -> Result<(), StoreError> {
    let update = Statement::new("UPDATE jobs SET").and(" state = ", end.state().as_str());
    let update = update.and(", completed_at = ", micros(at));
    let update = match end {
        JobEnd::Complete { fingerprint, manifest, expires_at } => update
            .and(", fingerprint = ", &**fingerprint)
            .and(", result = ", &*manifest.name)
            .and(", result_rows = ", manifest.rows.cast_signed())
            .and(", result_bytes = ", manifest.bytes.cast_signed())
            .and(", expires_at = ", micros(*expires_at))
            .then(", progress = 100"),
        JobEnd::Failed(failure) => {
            update.and(", error_code = ", &*failure.code).and(", error_message = ", &*failure.message)
        }
        JobEnd::Cancelled => update,
    };
    change.execute(update.and(" WHERE id = ", id)).await.map(|_| ())
}

fn stored(row: &Row) -> Result<Job, StoreError> {
    let state = JobState::named(&row.text("state")?).ok_or_else(|| row::odd("a state of a job"))?;
    let caller = SecurityContext {
        auth_method: row::auth_method(&row.text("auth_method")?)?,
        ..row::caller(&row.text("caller")?)?
    };
    let has_tenant = row.integer("is_tenant")? != 0;
    let unsigned = |column| row.maybe_integer(column).map(|number| number.map(i64::unsigned_abs));
    let small = |number: Option<u64>| number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let manifest = match (maybe_text(row, "result")?, unsigned("result_rows")?, unsigned("result_bytes")?) {
        (Some(name), Some(rows), Some(bytes)) => Some(Manifest { name, rows, bytes }),
        _ => None,
    };
    let failure = match (maybe_text(row, "error_code")?, maybe_text(row, "error_message")?) {
        (Some(code), Some(message)) => Some(JobFailure { code, message }),
        _ => None,
    };
    Ok(Job {
        id: text(row, "id")?,
        owner: OwnerIdentity {
            caller,
            scopes: row::scopes(&row.text("scopes")?),
            credential: text(row, "credential")?,
            tenant: Some(text(row, "tenant")?).filter(|_| has_tenant),
        },
        kind: JobKind::named(&row.text("kind")?).ok_or_else(|| row::odd("a kind of a job"))?,
        query: text(row, "query")?,
        now: time(row.integer("now")?)?,
        state,
        created_at: time(row.integer("created_at")?)?,
        started_at: maybe_time(row.maybe_integer("started_at")?)?,
        completed_at: maybe_time(row.maybe_integer("completed_at")?)?,
        expires_at: maybe_time(row.maybe_integer("expires_at")?)?,
        correlation_id: maybe_text(row, "correlation_id")?,
        request_hash: text(row, "request_hash")?,
        attempts: small(unsigned("attempts")?).unwrap_or(0),
        progress: small(unsigned("progress")?),
        is_cancel_requested: row.integer("cancel_requested")? != 0,
        fingerprint: maybe_text(row, "fingerprint")?,
        manifest,
        failure,
    })
}

#[cfg(test)]
mod tests {
    /// Statements that find free jobs contain the prefix of a lease's name, so the prefix must not change.
    #[test]
    fn lease_has_the_name_that_statements_spell() {
        assert_eq!(terrane_app::ports::jobs::lease_name("1"), "job:1");
    }
}
