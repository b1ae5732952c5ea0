//! Stored profiles of cubes, their quality scores and their differences.
//!
//! In: the JSON text of the stored profile, from the use case. Out: the same JSON, as REST sends it, or parts of it as
//! objects.

use std::sync::Arc;

use async_graphql::{Context, SimpleObject};
use terrane_app::profiling::ProfileError;
use terrane_wire::profile::{self as wire, ProfileParts};
use terrane_wire::{Code, ErrorBody};

use super::json::Json;
use super::request::state;
use crate::failure::Failure;

/// The quality score of the newest profile of a cube.
#[derive(SimpleObject)]
pub(crate) struct QualityScore {
    cube: String,
    profiled_at: String,
    /// The range of time as it was requested; empty for all rows.
    date_range: String,
    /// The weighted sum of the scores, 0–1; null if nothing was scored.
    overall_quality_score: Option<f64>,
    /// The score of each quality dimension.
    quality_scores: Vec<QualityDimension>,
    /// The share of the weights that was scored, 0–1.
    scored_weight: f64,
}

/// The score of a quality dimension.
#[derive(SimpleObject)]
pub(crate) struct QualityDimension {
    /// Such as `completeness`.
    name: String,
    score: f64,
}

/// The differences of a profile from the previous one of the same range.
#[derive(SimpleObject)]
pub(crate) struct ProfileChanges {
    /// The time of the previous profile.
    since: String,
    row_count: CountChange,
    /// The columns that differ.
    columns: Vec<ProfileColumnChange>,
}

/// The differences of a column; null where it did not change.
#[derive(SimpleObject)]
pub(crate) struct ProfileColumnChange {
    name: String,
    /// `added`, `removed` or `changed`.
    kind: String,
    #[graphql(name = "type")]
    ty: Option<TypeChange>,
    null_count: Option<CountChange>,
    distinct_count: Option<CountChange>,
    /// Frequent values that were not frequent before, as text.
    new_values: Vec<String>,
}

/// A number before and now; null if it was not counted.
#[derive(SimpleObject)]
pub(crate) struct CountChange {
    before: Option<f64>,
    now: Option<f64>,
}

/// A type before and now.
#[derive(SimpleObject)]
pub(crate) struct TypeChange {
    before: String,
    now: String,
}

/// Returns parts of the newest profile of a cube that was made with the caller's view of the cube, or `None` if no such
/// profile is stored.
///
/// # Errors
/// Profiling is switched off, or the caller may not see the cube.
pub(crate) async fn newest(context: &Context<'_>, cube: &str, parts: ProfileParts) -> Result<Option<Json>, Failure> {
    let Some(text) = stored(context, cube).await? else { return Ok(None) };
    if parts.histograms && parts.insights {
        return Ok(Some(Json::text(text.as_bytes().to_vec())));
    }
    Ok(Some(Json::text(parts.of(&text).ok_or_else(damaged)?.to_string())))
}

/// Returns the quality score of the newest profile, or `None` if no profile is stored.
///
/// # Errors
/// Profiling is switched off, or the caller may not see the cube.
pub(crate) async fn score(context: &Context<'_>, cube: &str) -> Result<Option<QualityScore>, Failure> {
    let Some(text) = stored(context, cube).await? else { return Ok(None) };
    let score = QualityScore::from(wire::QualityScore::of(&text).ok_or_else(damaged)?);
    let items = score.quality_scores.len();
    state(context).count(context, 1, &|list| (list == "qualityScores").then_some(items))?;
    Ok(Some(score))
}

/// Returns the differences of the newest profile from the previous one, or `None` if fewer than two profiles of the
/// range are stored.
///
/// # Errors
/// Profiling is switched off, or the caller may not see the cube.
pub(crate) async fn changes(context: &Context<'_>, cube: &str) -> Result<Option<ProfileChanges>, Failure> {
    let Some(text) = stored(context, cube).await? else { return Ok(None) };
    let changes = wire::ProfileChanges::of(&text).ok_or_else(damaged)?;
    let Some(changes) = changes.map(ProfileChanges::from) else { return Ok(None) };
    let values = changes.columns.iter().map(|column| column.new_values.len()).sum();
    let items = |list: &str| match list {
        "columns" => Some(changes.columns.len()),
        "newValues" => Some(values),
        _ => None,
    };
    state(context).count(context, 1, &items)?;
    Ok(Some(changes))
}

/// Returns the text of the newest profile.
async fn stored(context: &Context<'_>, cube: &str) -> Result<Option<Arc<str>>, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let off = || ErrorBody::new(Code::NotFound, "profiling is switched off on this server");
    let profiles = state.parts.server()?.profiles.as_ref().ok_or_else(off)?;
    let request = &state.parts.context.request;
    match profiles.newest(request, cube).await {
        Ok(text) => Ok(Some(text)),
        Err(ProfileError::NotProfiled { .. }) => Ok(None),
        Err(error) => Err(ErrorBody::from_profile(error, request.scopes).into()),
    }
}

fn damaged() -> ErrorBody {
    ErrorBody::new(Code::InternalError, "the stored profile cannot be read")
}

impl From<wire::QualityScore> for QualityScore {
    fn from(score: wire::QualityScore) -> Self {
        let dimension = |(name, score)| QualityDimension { name, score };
        QualityScore {
            cube: score.cube_name,
            profiled_at: score.profiled_at,
            date_range: score.date_range,
            overall_quality_score: score.overall_quality_score,
            quality_scores: score.quality_scores.into_iter().map(dimension).collect(),
            scored_weight: score.scored_weight,
        }
    }
}

impl From<wire::ProfileChanges<'_>> for ProfileChanges {
    fn from(changes: wire::ProfileChanges<'_>) -> Self {
        ProfileChanges {
            since: changes.since,
            row_count: changes.row_count.into(),
            columns: changes.columns.into_iter().map(ProfileColumnChange::from).collect(),
        }
    }
}

impl From<wire::ProfileColumnChange<'_>> for ProfileColumnChange {
    fn from(change: wire::ProfileColumnChange<'_>) -> Self {
        let ty = |ty: wire::TypeChange<'_>| TypeChange { before: ty.before.into_owned(), now: ty.now.into_owned() };
        ProfileColumnChange {
            name: change.name.into_owned(),
            kind: change.kind.into_owned(),
            ty: change.r#type.map(ty),
            null_count: change.null_count.map(CountChange::from),
            distinct_count: change.distinct_count.map(CountChange::from),
            new_values: change.new_values.into_iter().map(|value| value.into_owned()).collect(),
        }
    }
}

impl From<wire::CountChange> for CountChange {
    fn from(change: wire::CountChange) -> Self {
        let number = |count: Option<u64>| count.map(|count| count as f64);
        CountChange { before: number(change.before), now: number(change.now) }
    }
}
