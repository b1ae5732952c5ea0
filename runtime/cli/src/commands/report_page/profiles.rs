//! The profiles of the page.
//!
//! In: cubes, and a caller whose policies apply. Out: the profile of each cube with histograms, or a note with the
//! reason why a cube has no profile. Not here: statistics (app).

use std::sync::Arc;

use serde_json::Value as Json;
use terrane_app::metadata;
use terrane_app::profiling::{self, ColumnProfile, CubeProfile, ProfileConfig};
use terrane_app::query::RequestContext;
use terrane_app::services::Services;
use terrane_compiler::Access;
use terrane_compiler::types::Value;
use terrane_pictures::histogram;
use terrane_wire::ErrorBody;
use terrane_wire::profile::{type_name, value_to_wire};

use super::contents::{Column, Contents, Frequent, Insight, Missing, Profile, number};

/// The largest number of characters of a value.
const MAX_CHARS: usize = 40;
const MAX_FREQUENT: usize = 5;
const MAX_COLUMNS: usize = 200;

/// Adds the profiles of the cubes.
pub(super) async fn add(
    contents: &mut Contents,
    engine: &Services,
    caller: &RequestContext,
    access: &Access<'_>,
    cubes: &[Arc<str>],
) {
    let mut missing = Missing::default();
    for cube in cubes {
        match engine.profiling.profile(caller, cube, None, &ProfileConfig::default()).await {
            Ok(found) => {
                let title = metadata::cube(access, cube).map_or("", |cube| &*cube.title);
                add_profile(contents, &found, title);
            }
            Err(error) => missing.add(cube.to_string(), ErrorBody::for_operator(error).message),
        }
    }
    missing.note(contents, "profiles", "profile");
}

fn add_profile(contents: &mut Contents, found: &CubeProfile, title: &str) {
    let columns = found.dimension_profiles.iter().chain(&found.measure_profiles);
    let all = found.dimension_profiles.len() + found.measure_profiles.len();
    if all > MAX_COLUMNS {
        let text = format!("The profile of {} shows the first {MAX_COLUMNS} of {all} columns.", found.cube_name);
        contents.note("profiles", text);
    }
    contents.profiles.push(Profile {
        cube: found.cube_name.to_string(),
        title: title.to_owned(),
        rows: found.row_count,
        score: found.overall_quality_score.map(|score| format!("{score:.3}")),
        columns: columns.take(MAX_COLUMNS).map(column).collect(),
        insights: found.insights.iter().map(insight).collect(),
    });
}

fn column(column: &ColumnProfile) -> Column {
    let count = |count: Option<u64>| count.map_or("–".to_owned(), |count| count.to_string());
    let counts: Vec<u64> = column.histogram.iter().map(|bin| bin.count).collect();
    let ends = column.histogram.first().zip(column.histogram.last());
    let drawn = ends.map(|(first, last)| {
        let (from, to) = (number(Some(first.from)), number(Some(last.to)));
        histogram(&format!("Distribution of {}", column.name), &counts, (&from, &to))
    });
    let top = if drawn.is_none() { &column.top_values[..] } else { &[] };
    let most = top.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let frequent = top.iter().take(MAX_FREQUENT);
    Column {
        name: column.name.to_string(),
        r#type: type_name(column.ty),
        nulls: count(column.null_count),
        distinct: count(column.distinct_count),
        least: shown(column.min.as_ref()),
        most: shown(column.max.as_ref()),
        mean: number(column.mean),
        histogram: drawn.unwrap_or_default(),
        frequent: frequent.map(|(value, count)| Frequent { value: shown(Some(value)), count: *count, most }).collect(),
    }
}

fn insight(insight: &profiling::Insight) -> Insight {
    let level = insight.level();
    let class = match level {
        "CRITICAL" => "critical",
        "WARNING" => "warning",
        _ => "info",
    };
    Insight { level, class, message: insight.message.to_string() }
}

fn shown(value: Option<&Value>) -> String {
    let text = match value.map(value_to_wire) {
        None | Some(Json::Null) => return "–".to_owned(),
        Some(Json::String(text)) => text,
        Some(other) => other.to_string(),
    };
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
