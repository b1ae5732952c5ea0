//! The fields of the root for profiles.
//!
//! In: arguments. Out: answers of the use cases of the routes below `/api/v1/profiling` that read stored profiles.

use async_graphql::{Context, Object, Result};
use terrane_wire::profile::ProfileParts;

use super::json::Json;
use super::modules::has_profiles;
use super::profile::{self, ProfileChanges, QualityScore};

#[derive(Default)]
pub(crate) struct ProfileFields;

#[Object]
impl ProfileFields {
    /// The newest profile of a cube, as `GET /api/v1/profiling/cubes/{cube_name}/profile` sends it; null if none was
    /// made with the caller's view of the cube.
    #[graphql(visible = "has_profiles")]
    async fn cube_profile(
        &self,
        context: &Context<'_>,
        cube: String,
        #[graphql(desc = "`false`: histograms are empty.", default = true)] include_histograms: bool,
        #[graphql(desc = "`false`: insights are empty.", default = true)] include_insights: bool,
    ) -> Result<Option<Json>> {
        let parts = ProfileParts { histograms: include_histograms, insights: include_insights };
        Ok(profile::newest(context, &cube, parts).await?)
    }

    /// The quality score of the newest profile of a cube; null if none was made with the caller's view of the cube.
    #[graphql(visible = "has_profiles")]
    async fn quality_score(&self, context: &Context<'_>, cube: String) -> Result<Option<QualityScore>> {
        Ok(profile::score(context, &cube).await?)
    }

    /// The differences of the newest profile of a cube from the one before; null without two profiles that were made
    /// with the caller's view of the cube.
    #[graphql(visible = "has_profiles")]
    async fn profile_changes(&self, context: &Context<'_>, cube: String) -> Result<Option<ProfileChanges>> {
        Ok(profile::changes(context, &cube).await?)
    }
}
