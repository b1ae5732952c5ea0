//! Profiles that are stored, and compared with earlier profiles of the same cube.
//!
//! In: a caller and a cube. Out: the text of a profile. A profile is stored with the fingerprint of the caller's view
//! of the cube: the digest of the statement that counts its columns, after policies and hooks. Another caller gets the
//! profile only if its own statement has the same digest. So a profile never shows rows or columns that its reader may
//! not see. After a change of the cube's SQL or of a policy, stored profiles are not shown; a new one must be made.

use std::sync::Arc;

use jiff::Timestamp;
use terrane_compiler::Access;
use terrane_compiler::query::{DateRange, QueryError};
use terrane_compiler::text::nearest::nearest;

use super::{CubeProfile, ProfileChanges, ProfileConfig, ProfileRequest, ProfileTexts, ProfilingService};
use crate::catalog::Catalog;
use crate::domain::{QueryKind, RequestContext};
use crate::metadata;
use crate::ports::profiles::{ProfileRecords, StoredProfile};
use crate::ports::store::StoreError;
use crate::query::{QueryRunError, QueryService, QuerySession};

/// The range of profiles of all rows.
const WHOLE_CUBE: &str = "";
/// The largest number of stored profiles.
const MAX_STORED: u32 = 2_000;
/// The largest number of names that an error lists.
const MAX_NEAREST: usize = 20;
/// The largest number of characters of a name in an error.
const MAX_NAME: usize = 200;

/// A profile that a job makes.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedProfile {
    pub cube: Arc<str>,
    /// The only dimension to profile; `None` for the whole cube.
    pub dimension: Option<Arc<str>>,
    pub range: Option<DateRange>,
    pub config: ProfileConfig,
}

/// The reason why a profile is missing.
#[derive(Debug, Clone, thiserror::Error)]
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
        let session = self.queries.session(&context);
        let wanted = ProfileRequest { cube: &cube, range, config, dimension: None };
        Ok(self.profile_in(&session, &context, wanted).await?.1)
    }

    /// Profiles a cube in a session, and stores the profile with the fingerprint of the caller's view. Returns both.
    async fn profile_in(
        &self,
        session: &QuerySession<'_>,
        context: &RequestContext,
        wanted: ProfileRequest<'_>,
    ) -> Result<(Arc<str>, Arc<str>), ProfileError> {
        let (cube, range) = (Arc::clone(wanted.cube), wanted.range);
        // One session, so that the same policies apply to the fingerprint and to the profile.
        let fingerprint = self.view_of(session, context, &cube).await?;
        let profile = self.profiling.profile_in(session, context, wanted).await?;
        let range = range.map_or_else(|| WHOLE_CUBE.to_owned(), range_text);
        let before = self.records.profile(&cube, &fingerprint, &range).await?;
        let before = before.and_then(|stored| self.texts.summary(&stored.text));
        let now = self.texts.summary(&self.texts.write(&profile, &range, None));
        let changes = before.zip(now).map(|(before, now)| ProfileChanges::between(&before, &now));
        let text: Arc<str> = self.texts.write(&profile, &range, changes.as_ref()).into();
        let profiled_at = profile.profiled_at;
        let (range, text_of) = (range.into(), Arc::clone(&text));
        let stored = StoredProfile { cube, fingerprint: Arc::clone(&fingerprint), range, profiled_at, text: text_of };
        self.records.store_profile(&stored, MAX_STORED).await?;
        Ok((fingerprint, text))
    }

    /// Computes the profile of a job, as of a time. Returns the fingerprint of the caller's view, and the text.
    ///
    /// # Errors
    /// [`ProfileError`], except [`ProfileError::NotProfiled`].
    pub async fn of_job(
        &self,
        request: &RequestContext,
        requested: &RequestedProfile,
        now: Timestamp,
    ) -> Result<(Arc<str>, Arc<str>), ProfileError> {
        let RequestedProfile { cube, dimension, range, config } = requested;
        let cube = self.cube(request, cube)?;
        let context = request.with_kind(QueryKind::Profile);
        let session = self.queries.session_at(&context, now);
        let Some(dimension) = dimension else {
            let wanted = ProfileRequest { cube: &cube, range: range.as_ref(), config, dimension: None };
            return self.profile_in(&session, &context, wanted).await;
        };
        let fingerprint = self.view_of(&session, &context, &cube).await?;
        let wanted = ProfileRequest { cube: &cube, range: range.as_ref(), config, dimension: Some(dimension) };
        let profile = self.dimension_in(&session, &context, wanted).await?;
        let text = self.texts.dimension(&profile).ok_or_else(|| self.unknown_dimension(request, &cube, dimension))?;
        Ok((fingerprint, text.into()))
    }

    /// Returns the fingerprint of the caller's view of a cube that a job profiles.
    ///
    /// # Errors
    /// [`ProfileError`], except [`ProfileError::NotProfiled`].
    pub async fn view(&self, request: &RequestContext, requested: &RequestedProfile) -> Result<Arc<str>, ProfileError> {
        let cube = self.cube(request, &requested.cube)?;
        let context = request.with_kind(QueryKind::Profile);
        let session = self.queries.session(&context);
        if let Some(dimension) = &requested.dimension {
            let columns = session.profile_columns(&cube, requested.range.as_ref()).await?;
            let name = member_of(&cube, dimension);
            if !columns.iter().any(|column| !column.is_measure && *column.name == *name) {
                return Err(self.unknown_dimension(request, &cube, dimension));
            }
        }
        self.view_of(&session, &context, &cube).await
    }

    /// Returns the text of the newest stored profile of the whole cube, for the caller's view of the cube. Profiles of
    /// ranges are stored only for comparison with the next profile of the same range.
    ///
    /// # Errors
    /// [`ProfileError`]
    pub async fn newest(&self, request: &RequestContext, cube: &str) -> Result<Arc<str>, ProfileError> {
        let cube = self.cube(request, cube)?;
        let context = request.with_kind(QueryKind::Profile);
        let fingerprint = self.view_of(&self.queries.session(&context), &context, &cube).await?;
        match self.records.profile(&cube, &fingerprint, WHOLE_CUBE).await? {
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
        let context = request.with_kind(QueryKind::Profile);
        let session = self.queries.session(&context);
        let wanted = ProfileRequest { cube: &cube, range, config, dimension: Some(dimension) };
        self.dimension_in(&session, &context, wanted).await
    }

    async fn dimension_in(
        &self,
        session: &QuerySession<'_>,
        context: &RequestContext,
        wanted: ProfileRequest<'_>,
    ) -> Result<CubeProfile, ProfileError> {
        let (cube, dimension) = (wanted.cube, wanted.dimension.unwrap_or_default());
        let wanted = ProfileRequest { dimension: Some(member_of(cube, dimension)), ..wanted };
        let profile = self.profiling.profile_in(session, context, wanted).await;
        let profile = profile.map_err(|error| self.of_query(context, cube, error))?;
        match profile.dimension_profiles.is_empty() {
            true => Err(self.unknown_dimension(context, cube, dimension)),
            false => Ok(profile),
        }
    }

    /// Returns the fingerprint of the caller's view of a cube.
    async fn view_of(
        &self,
        session: &QuerySession<'_>,
        context: &RequestContext,
        cube: &Arc<str>,
    ) -> Result<Arc<str>, ProfileError> {
        session.profile_fingerprint(cube).await.map_err(|error| self.of_query(context, cube, error))
    }

    /// Converts the error of a query. If hooks close all members of a cube to the caller, the cube does not exist.
    fn of_query(&self, request: &RequestContext, cube: &Arc<str>, error: QueryRunError) -> ProfileError {
        match error {
            QueryRunError::Query(QueryError::UnknownCube { .. }) => self.unknown_cube(request, cube),
            error => error.into(),
        }
    }

    fn unknown_dimension(&self, request: &RequestContext, cube: &Arc<str>, dimension: &str) -> ProfileError {
        let name = member_of(cube, dimension);
        let snapshot = self.catalog.snapshot();
        let access = Access::of(&snapshot.model, &request.caller);
        let known = metadata::cube(&access, cube).into_iter().flat_map(|cube| metadata::dimensions(&access, cube));
        let nearest = named(name, known.map(|dimension| &*dimension.name));
        let name = name.chars().take(MAX_NAME).collect();
        ProfileError::UnknownDimension { cube: Arc::clone(cube), name, nearest }
    }

    /// Returns the name of a cube that the caller may see. A cube whose members are all closed to the caller does not
    /// exist here.
    fn cube(&self, request: &RequestContext, name: &str) -> Result<Arc<str>, ProfileError> {
        let snapshot = self.catalog.snapshot();
        let access = Access::of(&snapshot.model, &request.caller);
        let cube = metadata::cube(&access, name).filter(|cube| metadata::has_open_members(&access, cube));
        cube.map(|cube| Arc::clone(&cube.name)).ok_or_else(|| self.unknown_cube(request, name))
    }

    fn unknown_cube(&self, request: &RequestContext, name: &str) -> ProfileError {
        let snapshot = self.catalog.snapshot();
        let access = Access::of(&snapshot.model, &request.caller);
        let open = metadata::cubes(&access).filter(|cube| *cube.name != *name);
        let open = open.filter(|cube| metadata::has_open_members(&access, cube));
        let nearest = named(name, open.map(|cube| &*cube.name));
        ProfileError::UnknownCube { name: name.chars().take(MAX_NAME).collect(), nearest }
    }
}

/// Returns the name of a dimension without the name of its cube.
fn member_of<'n>(cube: &str, dimension: &'n str) -> &'n str {
    dimension.strip_prefix(cube).and_then(|rest| rest.strip_prefix('.')).unwrap_or(dimension)
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
