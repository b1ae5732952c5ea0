//! `terrane profile` with `--store`, `--newest`, `--quality-score` or `--dimension`. Each option corresponds to a route
//! of the server.
//!
//! In: a cube. Out: the response that the route returns. `--store` compares the new profile with the last stored one of
//! the same view and range of time.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use terrane_app::profiling::{ProfileArchive, ProfileError};
use terrane_app::services::ServerServices;
use terrane_wire::ErrorBody;
use terrane_wire::profile::{DimensionProfile, ProfileParts, QualityScore, profile_request_from_wire};

use super::super::module::{Requester, enabled, failed, print_list, print_record, with_services};
use super::super::query::query_text;
use super::ProfileArguments;
use crate::failure::Failure;
use crate::project::Project;

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct StoredArguments {
    /// Store the profile, and compare it with the stored profile before it
    #[arg(long)]
    store: bool,
    /// Print the newest stored profile of the whole cube, without computing one
    #[arg(long, conflicts_with_all = ["config", "date_range"])]
    newest: bool,
    /// Print the quality score of the newest stored profile
    #[arg(long, conflicts_with_all = ["config", "date_range"])]
    quality_score: bool,
    /// Profile this dimension alone
    #[arg(long, value_name = "DIMENSION")]
    dimension: Option<String>,
}

/// A request of a route.
#[derive(Debug, Clone, Copy)]
pub(super) enum StoredRequest<'a> {
    Store,
    Newest,
    QualityScore,
    Dimension(&'a str),
}

impl StoredArguments {
    pub(super) fn request(&self) -> Option<StoredRequest<'_>> {
        match self {
            StoredArguments { store: true, .. } => Some(StoredRequest::Store),
            StoredArguments { newest: true, .. } => Some(StoredRequest::Newest),
            StoredArguments { quality_score: true, .. } => Some(StoredRequest::QualityScore),
            StoredArguments { dimension, .. } => dimension.as_deref().map(StoredRequest::Dimension),
        }
    }
}

/// Runs the request.
///
/// # Errors
/// The request is refused, or no profile is stored.
pub(super) async fn run(
    request: StoredRequest<'_>,
    arguments: &ProfileArguments,
    project: &Project,
) -> Result<(), Failure> {
    let body = body(arguments)?;
    let requester = Requester::new(arguments.caller.as_deref())?;
    let answer =
        with_services(project, async |services| answer(request, arguments, &body, (services, &requester)).await);
    let answer = answer.await?;
    if arguments.json || matches!(request, StoredRequest::QualityScore) {
        print_record(arguments.json, &answer);
        return Ok(());
    }
    print_columns(&answer);
    Ok(())
}

/// Returns the body of the route.
fn body(arguments: &ProfileArguments) -> Result<Vec<u8>, Failure> {
    let config = arguments.config.as_deref().map(|config| {
        let text = query_text(config)?;
        serde_json::from_str::<Json>(&text).map_err(|error| Failure::new(format!("--config: {error}")))
    });
    let filters = arguments.date_range.as_ref().map(|range| json!({"date_range": range}));
    Ok(json!({"config": config.transpose()?, "filters": filters}).to_string().into_bytes())
}

async fn answer(
    request: StoredRequest<'_>,
    arguments: &ProfileArguments,
    body: &[u8],
    (services, requester): (&ServerServices, &Requester),
) -> Result<Json, Failure> {
    let archive: &Arc<ProfileArchive> = enabled(services.profiles.as_ref(), "profiling is", "profiling.enabled")?;
    let (context, cube) = (&requester.request, arguments.cube.as_str());
    let refused = |error| refused(error, requester);
    let (config, range) = profile_request_from_wire(body).map_err(failed)?;
    let answer = match request {
        StoredRequest::Store => {
            let text = archive.profile(context, cube, range.as_ref(), &config).await.map_err(refused)?;
            serde_json::from_str(&text).ok()
        }
        StoredRequest::Newest => {
            let text = archive.newest(context, cube).await.map_err(refused)?;
            ProfileParts { histograms: true, insights: true }.of(&text)
        }
        StoredRequest::QualityScore => {
            let text = archive.newest(context, cube).await.map_err(refused)?;
            QualityScore::of(&text).and_then(|score| serde_json::to_value(score).ok())
        }
        StoredRequest::Dimension(name) => {
            let profile = archive.dimension(context, cube, name, range.as_ref(), &config).await.map_err(refused)?;
            DimensionProfile::of(&profile).and_then(|profile| serde_json::to_value(profile).ok())
        }
    };
    answer.ok_or_else(|| Failure::new("the stored profile cannot be read"))
}

fn refused(error: ProfileError, requester: &Requester) -> Failure {
    match error {
        ProfileError::NotProfiled { .. } => {
            Failure::new(error.to_string()).hint("Compute one with `terrane profile DIR CUBE --store`.")
        }
        error => failed(ErrorBody::from_profile(error, requester.request.scopes)),
    }
}

/// Prints the columns of a profile, and its changes since the profile before it.
fn print_columns(answer: &Json) {
    const NAMES: [(&str, &str); 7] = [
        ("COLUMN", "/name"),
        ("TYPE", "/type"),
        ("NULLS", "/null_count"),
        ("DISTINCT", "/distinct_count"),
        ("MIN", "/min"),
        ("MAX", "/max"),
        ("MEAN", "/mean"),
    ];
    let lists = ["dimension_profiles", "measure_profiles"].map(|list| answer[list].as_array().cloned());
    let mut columns: Vec<Json> = lists.into_iter().flatten().flatten().collect();
    columns.extend(answer.get("profile").cloned());
    print_list(false, &json!({"columns": columns}), "columns", &NAMES);
    let changes = &answer["changes"];
    print_record(
        false,
        &json!({
            "profiled_at": answer["profiled_at"],
            "row_count": answer["row_count"],
            "overall_quality_score": answer["overall_quality_score"],
            "changes": changes,
        }),
    );
}
