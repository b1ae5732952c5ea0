//! Reports of changed data. The write lock ensures that their sequence numbers become visible in order.

use async_trait::async_trait;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::invalidations::{Invalidation, InvalidationScope, Invalidations};
use terrane_app::ports::store::StoreError;

use crate::credentials::finish;
use crate::database::Row;
use crate::statement::Statement;
use crate::store::StateStore;

#[async_trait]
impl Invalidations for StateStore {
    async fn invalidate(&self, scopes: &[InvalidationScope], entry: Option<AuditEntry>) -> Result<(), StoreError> {
        let mut change = self.database.change().await?;
        let newest = Statement::new("SELECT coalesce(max(sequence), 0) AS newest FROM data_versions");
        let newest = change.optional(newest).await?.map_or(Ok(0), |row| row.integer("newest"))?;
        for scope in scopes {
            let update = Statement::new(
                "INSERT INTO data_versions (cube, tenant, sequence) VALUES ($1, $2, $3) \
                 ON CONFLICT (cube, tenant) DO UPDATE SET sequence = excluded.sequence",
            );
            let update = update.bind(scope.cube.as_deref().unwrap_or_default());
            change.execute(update.bind(scope.tenant.as_deref().unwrap_or_default()).bind(newest + 1)).await?;
        }
        match entry {
            Some(entry) => finish(change, true, entry).await.map(|_| ()),
            None => change.commit().await,
        }
    }

    async fn invalidations(&self, after: u64) -> Result<Vec<Invalidation>, StoreError> {
        let newer = Statement::new("SELECT cube, tenant, sequence FROM data_versions WHERE sequence > $1");
        let newer = newer.bind(i64::try_from(after).unwrap_or(i64::MAX));
        self.database.all(newer).await?.iter().map(invalidation).collect()
    }
}

fn invalidation(row: &Row) -> Result<Invalidation, StoreError> {
    let name = |column| Ok(Some(row.text(column)?).filter(|name| !name.is_empty()).map(Into::into));
    let scope = InvalidationScope { cube: name("cube")?, tenant: name("tenant")? };
    Ok(Invalidation { scope, sequence: row.integer("sequence")?.unsigned_abs() })
}
