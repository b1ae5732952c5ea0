//! The versions of cubes' data: opaque values that change when the rows of a cube may have changed.
//!
//! In: cubes of a snapshot, and a tenant. Out: a [`DataVersion`], the time at which it was read, and the time for which
//! rows that are read now may be reused under it. The version of a cube is a digest of
//!
//! - the reports of changes ([`Invalidations`]): a load of the project, a build, a caller's invalidation;
//! - its `refresh:` key: the result of `sql`, or the number of the period of `every`;
//! - without that key, the warehouse's own version of its data, if the warehouse has one.
//!
//! A cube without a key and without a version of the warehouse may be cached for a limited time only (`ttl`). All
//! replicas that share a state database and a warehouse have the same versions. Read a version before the rows: if the
//! data change in between, the next version differs. Versions are read on demand, at most once per interval and key in
//! a process. While one is being read, other callers that need it wait for its result. Not here: the results that are
//! stored under a version.

mod refresh;
mod reports;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use terrane_compiler::model::{Cube, CubeId, Model};

use crate::domain::DataVersion;
use crate::ports::audit::AuditEntry;
use crate::ports::clock::Clock;
use crate::ports::invalidations::{InvalidationScope, Invalidations};
use crate::ports::store::StoreError;
use crate::ports::warehouse::{EngineVersion, Warehouse, WarehouseError};
use refresh::RefreshReader;
use reports::Reports;

/// The age up to which a version that the warehouse reported is reused.
const ENGINE_INTERVAL: Duration = Duration::from_millis(200);
/// The time after a change during which `ttl` limits results. A file that changed this recently may change again
/// without a new modification time.
const UNSETTLED: Duration = Duration::from_secs(2);

/// A version as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionReading {
    pub version: DataVersion,
    /// The time at which the version was read. Rows that are read afterwards are at least this new.
    pub as_of: Timestamp,
    /// The longest time for which rows may be reused under this version: `None` as long as the version stays the same,
    /// zero for never.
    pub max_age: Option<Duration>,
}

/// The reason why a version is unknown.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VersionError {
    #[error("the refresh query of cube `{cube}` failed: {error}")]
    Refresh { cube: Arc<str>, error: WarehouseError },
    #[error("invalidations cannot be read: {0}")]
    Reports(#[from] StoreError),
}

/// Reads the versions of cubes.
pub struct DataVersions {
    warehouse: Arc<dyn Warehouse>,
    clock: Arc<dyn Clock>,
    /// The time for which rows of cubes without any version may be cached.
    ttl: Duration,
    reports: Arc<Reports>,
    refresh: RefreshReader,
    engine: Mutex<Option<(Duration, Option<EngineVersion>)>>,
}

impl DataVersions {
    /// Creates the reader of versions. `invalidations` is `None` if no other process serves this project.
    pub fn new(
        warehouse: Arc<dyn Warehouse>,
        invalidations: Option<Arc<dyn Invalidations>>,
        clock: Arc<dyn Clock>,
        ttl: Duration,
    ) -> Self {
        DataVersions {
            reports: Arc::new(Reports::new(invalidations, Arc::clone(&clock))),
            refresh: RefreshReader::new(Arc::clone(&warehouse), Arc::clone(&clock)),
            engine: Mutex::new(None),
            warehouse,
            clock,
            ttl,
        }
    }

    /// Returns the version of the data that a statement over these cubes reads.
    ///
    /// # Errors
    /// [`VersionError`]: the version is unknown.
    pub async fn read(
        &self,
        model: &Model,
        cubes: &[CubeId],
        tenant: Option<&Arc<str>>,
    ) -> Result<VersionReading, VersionError> {
        let as_of = self.clock.now();
        self.reports.update().await?;
        let mut hash = Sha256::new();
        let mut max_age: Option<Duration> = None;
        for id in cubes {
            let cube = model.cube(*id);
            let cube = cube.alias_of.map_or(cube, |original| model.cube(original));
            let own = self.source_version(cube, as_of, &mut hash).await?;
            max_age = max_age.into_iter().chain(own).min();
            hash.update(self.reports.newest(&cube.name, tenant).to_le_bytes());
        }
        let mut version = [0; 16];
        version.copy_from_slice(&hash.finalize()[..16]);
        Ok(VersionReading { version: DataVersion::from_bytes(version), as_of, max_age })
    }

    /// Reports that the data of these scopes changed. All replicas see it within a second.
    ///
    /// # Errors
    /// The report could not be recorded; no version changed.
    pub async fn invalidate(&self, scopes: &[InvalidationScope], entry: Option<AuditEntry>) -> Result<(), StoreError> {
        self.reports.invalidate(scopes, entry).await
    }

    /// Reports that the project or all of its data changed. If the report cannot be recorded, the versions change in
    /// this process only.
    pub async fn invalidate_all(&self) {
        self.refresh.forget();
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Err(error) = self.invalidate(&[InvalidationScope::default()], None).await {
            tracing::warn!(event = "invalidation_failed", error_message = %error);
            self.reports.change_locally();
        }
    }

    /// Adds everything that determines the rows of one cube to the hash. Returns the time for which the rows may be
    /// reused.
    async fn source_version(
        &self,
        cube: &Cube,
        now: Timestamp,
        hash: &mut Sha256,
    ) -> Result<Option<Duration>, VersionError> {
        hash.update((cube.name.len() as u64).to_le_bytes());
        hash.update(cube.name.as_bytes());
        let Some(refresh) = &cube.refresh else {
            return Ok(self.engine_version(now, hash));
        };
        match (&refresh.query, refresh.every) {
            (Some(query), every) => {
                let read = self.refresh.read(&query.text, every).await;
                let result = read.map_err(|error| VersionError::Refresh { cube: Arc::clone(&cube.name), error })?;
                hash.update(b"q");
                hash.update(result);
            }
            (None, Some(every)) => {
                let period =
                    now.as_millisecond().div_euclid(i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1));
                hash.update(b"e");
                hash.update(period.to_le_bytes());
            }
            (None, None) => return Ok(self.engine_version(now, hash)),
        }
        Ok(None)
    }

    fn engine_version(&self, now: Timestamp, hash: &mut Sha256) -> Option<Duration> {
        let Some(version) = self.read_engine() else {
            hash.update(b"t");
            return Some(self.ttl);
        };
        hash.update(b"w");
        hash.update(version.digest);
        let age = version.changed_at.map(|changed| Duration::try_from(now.duration_since(changed)).unwrap_or_default());
        age.is_some_and(|age| age < UNSETTLED).then_some(self.ttl)
    }

    fn read_engine(&self) -> Option<EngineVersion> {
        let now = self.clock.elapsed();
        let mut read = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        match &*read {
            Some((at, version)) if now.saturating_sub(*at) < ENGINE_INTERVAL => *version,
            _ => {
                let version = self.warehouse.data_version();
                *read = Some((now, version));
                version
            }
        }
    }
}

/// The newest sequence of each scope.
type Sequences = HashMap<InvalidationScope, u64>;

#[cfg(test)]
mod tests;
