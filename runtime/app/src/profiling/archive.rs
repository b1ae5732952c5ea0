//! Profiles that are stored, and compared with earlier profiles of the same cube.
//!
//! In: a caller and a cube. Out: the text of a profile. A profile is stored with the fingerprint of the caller's view
//! of the cube: the digest of the statement that counts its columns, after policies and hooks. Another caller gets the
//! profile only if its own statement has the same digest. So a profile never shows rows or columns that its reader may
//! not see. After a change of the cube's SQL or of a policy, stored profiles are not shown; a new one must be made.

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::query::DateRange;
use terrane_compiler::text::nearest::nearest;

use super::{CubeProfile, ProfileChanges, ProfileConfig, ProfileRequest, ProfilingService};
use crate::catalog::Catalog;
use crate::domain::{QueryKind, RequestContext};
use crate::metadata;
use crate::ports::profiles::{ProfileRecords, ProfileTexts, StoredProfile};
use crate::ports::store::StoreError;
use crate::query::{QueryRunError, QueryService};

/// The largest number of stored profiles.
const MAX_STORED: u32 = 2_000;
/// The largest number of names that an error lists.
const MAX_NEAREST: usize = 20;
/// The largest number of characters of a name in an error.
const MAX_NAME: usize = 200;

/// The reason why a profile is missing.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("unknown cube `{name}`")]
    UnknownCube { name: String, nearest: Vec<String> },
    #[error("cube `{cube}` has no dimension `{name}` with a profile")]
    UnknownDimension { cube: Arc<str>, name: String, nearest: Vec<String> },
    #[error("cube `{cube}` has no stored profile")]
    NotProfiled { cube: Arc<str> },
    #[error(transparent)]
    Query(#[from] QueryRunError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Computes, stores and returns profiles.
pub struct ProfileArchive {
    profiling: Arc<ProfilingService>,
    queries: Arc<QueryService>,
    catalog: Arc<Catalog>,
    records: Arc<dyn ProfileRecords>,
    texts: Arc<dyn ProfileTexts>,
}

impl ProfileArchive {
    pub fn new(
        profiling: Arc<ProfilingService>,
        queries: Arc<QueryService>,
        catalog: Arc<Catalog>,
        records: Arc<dyn ProfileRecords>,
        texts: Arc<dyn ProfileTexts>,
    ) -> Self {
        ProfileArchive { profiling, queries, catalog, records, texts }
    }

    /// Profiles a cube, compares the profile with the last one of the same range, and stores it. Returns its text.
    ///
    /// # Errors
    /// [`ProfileError`], except [`ProfileError::NotProfiled`].
    pub async fn profile(
        &self,
        request: &RequestContext,
        cube: &str,
        range: Option<&DateRange>,
        config: &ProfileConfig,
    ) -> Result<Arc<str>, ProfileError> {
        let cube = self.cube(request, cube)?;
        let context = request.with_kind(QueryKind::Profile);
        // One session is used, so that the same policies apply to the fingerprint and to the profile.
        let session = self.queries.session(&context);
        let fingerprint = session.profile_fingerprint(&cube).await?;
        let wanted = ProfileRequest { cube: &cube, range, config, dimension: None };
        let profile = self.profiling.profile_in(&session, &context, wanted).await?;
        let range = range.map(range_text).unwrap_or_default();
        let before = self.records.profile(&cube, &fingerprint, Some(&range)).await?;
        let before = before.and_then(|stored| self.texts.summary(&stored.text));
        let now = self.texts.summary(&self.texts.write(&profile, &range, None));
        let changes = before.zip(now).map(|(before, now)| ProfileChanges::between(&before, &now));
        let text: Arc<str> = self.texts.write(&profile, &range, changes.as_ref()).into();
        let profiled_at = profile.profiled_at;
        let stored = StoredProfile { cube, fingerprint, range: range.into(), profiled_at, text: Arc::clone(&text) };
        self.records.store_profile(&stored, MAX_STORED).await?;
        Ok(text)
    }

    /// Returns the text of the newest stored profile for the caller's view of a cube.
    ///
    /// # Errors
    /// [`ProfileError`]
    pub async fn newest(&self, request: &RequestContext, cube: &str) -> Result<Arc<str>, ProfileError> {
        let cube = self.cube(request, cube)?;
        let context = request.with_kind(QueryKind::Profile);
        let fingerprint = self.queries.session(&context).profile_fingerprint(&cube).await?;
        match self.records.profile(&cube, &fingerprint, None).await? {
            Some(stored) => Ok(stored.text),
            None => Err(ProfileError::NotProfiled { cube }),
        }
    }

    /// Profiles one dimension. Nothing is stored.
    ///
    /// # Errors
    /// [`ProfileError`], except [`ProfileError::NotProfiled`].
    pub async fn dimension(
        &self,
        request: &RequestContext,
        cube: &str,
        dimension: &str,
        range: Option<&DateRange>,
        config: &ProfileConfig,
    ) -> Result<CubeProfile, ProfileError> {
        let cube = self.cube(request, cube)?;
        let name = dimension.strip_prefix(&*cube).and_then(|rest| rest.strip_prefix('.')).unwrap_or(dimension);
        let context = request.with_kind(QueryKind::Profile);
        let session = self.queries.session(&context);
        let wanted = ProfileRequest { cube: &cube, range, config, dimension: Some(name) };
        let profile = self.profiling.profile_in(&session, &context, wanted).await?;
        if profile.dimension_profiles.is_empty() {
            let snapshot = self.catalog.snapshot();
            let access = Access::of(&snapshot.model, &request.caller);
            let known = metadata::cube(&access, &cube).into_iter().flat_map(|cube| metadata::dimensions(&access, cube));
            let nearest = named(name, known.map(|dimension| &*dimension.name));
            let name = name.chars().take(MAX_NAME).collect();
            return Err(ProfileError::UnknownDimension { cube, name, nearest });
        }
        Ok(profile)
    }

    /// Returns the name of a cube that the caller may see.
    fn cube(&self, request: &RequestContext, name: &str) -> Result<Arc<str>, ProfileError> {
        let snapshot = self.catalog.snapshot();
        let access = Access::of(&snapshot.model, &request.caller);
        if let Some(cube) = metadata::cube(&access, name) {
            return Ok(Arc::clone(&cube.name));
        }
        let nearest = named(name, metadata::cubes(&access).map(|cube| &*cube.name));
        Err(ProfileError::UnknownCube { name: name.chars().take(MAX_NAME).collect(), nearest })
    }
}

fn named<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
    nearest(name, known, MAX_NEAREST).into_iter().map(str::to_owned).collect()
}

fn range_text(range: &DateRange) -> String {
    match range {
        DateRange::Words(words) => words.to_string(),
        DateRange::Between(start, end) => {
            let text = |end: &Option<Arc<str>>| end.as_deref().unwrap_or_default().to_owned();
            format!("{} – {}", text(start), text(end))
        }
    }
}
