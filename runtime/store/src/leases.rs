//! Leases: rows that expire by the clock of the database.

use std::time::Duration;

use async_trait::async_trait;
use terrane_app::ports::leases::{Lease, Leases};
use terrane_app::ports::store::StoreError;

use crate::database::Transaction;
use crate::statement::Statement;
use crate::store::StateStore;

#[async_trait]
impl Leases for StateStore {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<Lease>, StoreError> {
        let now = self.database.now();
        let claim = Statement::new("INSERT INTO leases (name, holder, fence, expires_at) VALUES ($1, $2, 1, $3 + ")
            .then(now)
            .then(
                ") ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, fence = leases.fence + 1, \
                 expires_at = excluded.expires_at WHERE leases.expires_at <= ",
            )
            .then(now)
            .then(" RETURNING fence");
        let row = self.database.optional(claim.bind(name).bind(holder).bind(micros(ttl))).await?;
        row.map(|row| {
            let fence = row.integer("fence")?.unsigned_abs();
            Ok(Lease { name: name.into(), holder: holder.into(), fence })
        })
        .transpose()
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        let now = self.database.now();
        let renewal = Statement::new("UPDATE leases SET expires_at = $1 + ").then(now);
        let renewal = renewal.then(" WHERE name = $2 AND fence = $3 AND expires_at > ").then(now);
        let renewal = renewal.bind(micros(ttl)).bind(&*lease.name).bind(lease.fence.cast_signed());
        Ok(self.database.execute(renewal).await? > 0)
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let release = Statement::new("UPDATE leases SET expires_at = 0 WHERE name = $1 AND fence = $2");
        self.database.execute(release.bind(&*lease.name).bind(lease.fence.cast_signed())).await.map(|_| ())
    }
}

/// Returns whether a lease is the newest, in the transaction that depends on it. The holder of an older lease finds a
/// larger fence, and must not change anything.
pub(crate) async fn is_newest(change: &mut Transaction, lease: &Lease) -> Result<bool, StoreError> {
    let found = Statement::new("SELECT fence FROM leases WHERE name = $1 AND fence = $2");
    let found = change.optional(found.bind(&*lease.name).bind(lease.fence.cast_signed())).await?;
    Ok(found.is_some())
}

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 2)
}
