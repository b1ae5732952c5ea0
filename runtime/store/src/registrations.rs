//! Registered cubes. Each change and its audit record are one transaction.

use async_trait::async_trait;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::registrations::{Registration, Registrations};
use terrane_app::ports::store::StoreError;
use terrane_compiler::project::RegisteredCube;

use crate::credentials::finish;
use crate::database::Row;
use crate::row::{micros, time};
use crate::statement::Statement;
use crate::store::StateStore;

#[async_trait]
impl Registrations for StateStore {
    async fn registrations(&self) -> Result<Vec<Registration>, StoreError> {
        let rows = Statement::new("SELECT * FROM registered_cubes ORDER BY registered_at, name");
        self.database.all(rows).await?.iter().map(registration).collect()
    }

    async fn register(&self, registration: &Registration, entry: AuditEntry) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        let insert = Statement::new(
            "INSERT INTO registered_cubes (name, entry, registered_by, registered_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT DO NOTHING",
        );
        let insert = insert.bind(&*registration.cube.name).bind(&*registration.cube.entry);
        let insert = insert.bind(&*registration.registered_by).bind(micros(registration.registered_at));
        let inserted = change.execute(insert).await?;
        finish(change, inserted > 0, entry).await
    }

    async fn unregister(&self, name: &str, entry: AuditEntry) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        let delete = Statement::new("DELETE FROM registered_cubes WHERE name = $1").bind(name);
        let deleted = change.execute(delete).await?;
        finish(change, deleted > 0, entry).await
    }
}

fn registration(row: &Row) -> Result<Registration, StoreError> {
    Ok(Registration {
        cube: RegisteredCube::new(&row.text("name")?, &row.text("entry")?),
        registered_by: row.text("registered_by")?.into(),
        registered_at: time(row.integer("registered_at")?)?,
    })
}
