//! Stored profiles of cubes.
//!
//! In: encoded profiles. Out: the newest one. Not here: the rules about who may read which profile (`app::profiling`).

use async_trait::async_trait;
use terrane_app::ports::profiles::{ProfileRecords, StoredProfile};
use terrane_app::ports::store::StoreError;

use crate::database::Row;
use crate::row::{micros, text, time};
use crate::statement::Statement;
use crate::store::StateStore;

#[async_trait]
impl ProfileRecords for StateStore {
    async fn profile(&self, cube: &str, fingerprint: &str, range: &str) -> Result<Option<StoredProfile>, StoreError> {
        let found = Statement::new("SELECT * FROM profiles WHERE cube = ");
        let found = found.and("", cube).and(" AND fingerprint = ", fingerprint).and(" AND time_range = ", range);
        self.database.optional(found).await?.as_ref().map(stored).transpose()
    }

    async fn store_profile(&self, profile: &StoredProfile, most: u32) -> Result<(), StoreError> {
        let mut change = self.database.change().await?;
        let write = Statement::new(
            "INSERT INTO profiles (cube, fingerprint, time_range, profiled_at, body) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (cube, fingerprint, time_range) DO UPDATE SET profiled_at = excluded.profiled_at, \
             body = excluded.body",
        );
        let write = write
            .bind(&*profile.cube)
            .bind(&*profile.fingerprint)
            .bind(&*profile.range)
            .bind(micros(profile.profiled_at))
            .bind(&*profile.text);
        change.execute(write).await?;
        let oldest = Statement::new(
            "DELETE FROM profiles WHERE profiled_at < (SELECT min(profiled_at) FROM (SELECT profiled_at FROM profiles \
             ORDER BY profiled_at DESC LIMIT $1) AS newest)",
        );
        change.execute(oldest.bind(i64::from(most))).await?;
        change.commit().await
    }
}

fn stored(row: &Row) -> Result<StoredProfile, StoreError> {
    Ok(StoredProfile {
        cube: text(row, "cube")?,
        fingerprint: text(row, "fingerprint")?,
        range: text(row, "time_range")?,
        profiled_at: time(row.integer("profiled_at")?)?,
        text: text(row, "body")?,
    })
}
