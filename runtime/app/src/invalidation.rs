//! The use case of invalidation: a caller reports that the data of cubes changed.
//!
//! In: names of cubes, and the caller. Out: the scopes whose versions changed, on all replicas within a second, with an
//! audit record. A caller with a tenant changes the versions of that tenant only. Not here: the results that are stored
//! under a version.

use std::collections::BTreeSet;
use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::text::nearest::nearest;

use crate::catalog::Catalog;
use crate::data_versions::DataVersions;
use crate::domain::RequestContext;
use crate::metadata;
use crate::ports::invalidations::InvalidationScope;
use crate::ports::store::StoreError;
use crate::security::AccessRecorder;

/// The largest number of names that an error proposes.
const MAX_NEAREST: usize = 5;

/// The reason why nothing was invalidated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InvalidationError {
    /// The cube is unknown, or policies close it to the caller.
    #[error("cube `{name}` does not exist")]
    UnknownCube { name: String, nearest: Vec<String> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reports changed data.
pub struct InvalidationService {
    catalog: Arc<Catalog>,
    versions: Arc<DataVersions>,
    access: Arc<AccessRecorder>,
}

impl InvalidationService {
    pub fn new(catalog: Arc<Catalog>, versions: Arc<DataVersions>, access: Arc<AccessRecorder>) -> Self {
        InvalidationService { catalog, versions, access }
    }

    /// Reports that the data of some cubes changed; `None` for all cubes.
    ///
    /// # Errors
    /// [`InvalidationError`]; no version changed.
    pub async fn invalidate(
        &self,
        cubes: Option<&[String]>,
        request: &RequestContext,
    ) -> Result<(), InvalidationError> {
        let snapshot = self.catalog.snapshot();
        let access = Access::of(&snapshot.model, &request.caller);
        let tenant = request.tenant.clone();
        let mut scopes = Vec::new();
        let cubes: Option<BTreeSet<&str>> = cubes.map(|cubes| cubes.iter().map(String::as_str).collect());
        for name in cubes.iter().flatten().copied() {
            let cube = metadata::cube(&access, name).ok_or_else(|| {
                let known = metadata::cubes(&access).map(|cube| &*cube.name);
                let nearest = nearest(name, known, MAX_NEAREST).into_iter().map(str::to_owned).collect();
                InvalidationError::UnknownCube { name: name.to_owned(), nearest }
            })?;
            // An alias has the rows of its original cube, so the original cube is reported.
            let cube = cube.alias_of.map_or(cube, |original| snapshot.model.cube(original));
            scopes.push(InvalidationScope { cube: Some(Arc::clone(&cube.name)), tenant: tenant.clone() });
        }
        if cubes.is_none() {
            scopes.push(InvalidationScope { cube: None, tenant: tenant.clone() });
        }
        let resource = match cubes {
            Some(cubes) => format!("cubes:{}", cubes.into_iter().collect::<Vec<_>>().join(",")),
            None => format!("project:{}", snapshot.model.project),
        };
        let mut entry = self.access.entry("cache_invalidated", request, resource);
        entry.reason = tenant.map(|tenant| format!("data of tenant {tenant} changed").into());
        Ok(self.versions.invalidate(&scopes, Some(entry)).await?)
    }
}
