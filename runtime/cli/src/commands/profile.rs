//! `terrane profile`: statistics and data quality of a cube's columns.
//!
//! In: a project and a cube. Out: a table, or the cube profile as JSON. Not here: computing statistics (app, warehouse)
//! and insights (components).

use std::path::PathBuf;
use std::sync::Arc;

use comfy_table::{Table, presets};
use serde_json::{Map, Value as Json, json};
use terrane_app::profiling::{ColumnProfile, CubeProfile, Insight, ProfileConfig};
use terrane_compiler::query::DateRange;
use terrane_compiler::types::{LogicalType, Value};
use terrane_terminal::TerminalText;

use super::query::{query_text, refused};
use super::{print, tell};
use crate::caller;
use crate::failure::Failure;
use crate::project::Project;
use crate::report::plural;
use crate::wiring::{self, WarehouseUse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane profile examples/flights flights
  terrane profile examples/flights flights --date-range 2013-Q1 --json | jq .overall_quality_score
  terrane profile . orders --config '{\"percentile_list\": [5, 50, 95], \"quality_thresholds\": {\"completeness_warning\": 0.99}}'
  terrane profile . orders --as user.json

The configuration has the fields compute_histograms, histogram_bins, compute_frequencies, top_n_values,
compute_percentiles, percentile_list, detect_insights, insight_sensitivity and quality_thresholds.
runtime/MODULES.md says what is computed and how it is judged.")]
pub struct ProfileArguments {
    /// The project: the folder that holds service_project.yml
    pub dir: PathBuf,
    pub cube: String,
    /// Only rows in this range: `2013-Q1`, `last 7 days`, `from 2013-01-01 to 2013-03-31`
    #[arg(long, value_name = "RANGE")]
    pub date_range: Option<String>,
    /// The statistics to compute, as JSON; `@FILE` reads a file, `-` standard input
    #[arg(long, value_name = "JSON")]
    pub config: Option<String>,
    /// Query as this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Print the whole profile as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Profiles the cube.
///
/// # Errors
/// The project has errors, or the cube, the range or the configuration is invalid.
pub async fn run(arguments: &ProfileArguments, project: Project) -> Result<(), Failure> {
    let config = config(arguments.config.as_deref())?;
    let caller = caller::read(arguments.caller.as_deref())?;
    let (engine, _) = wiring::load(&project, WarehouseUse::Read).await?;
    let range = arguments.date_range.as_ref().map(|words| DateRange::Words(words.as_str().into()));
    let cube: Arc<str> = arguments.cube.as_str().into();
    let profile = engine.profiling.profile(&caller, &cube, range.as_ref(), &config).await;
    let profile = profile.map_err(|error| refused(terrane_server::refuse(error)))?;
    if arguments.json {
        print(&format!("{}\n", profile_json(&profile)));
        return Ok(());
    }
    print(&tables(&profile));
    let score = profile.overall_quality_score.map_or("not scored".to_owned(), |score| format!("quality {score:.3}"));
    let sides = profile.quality_scores.iter().map(|(side, score)| format!("{} {score:.3}", side.as_str()));
    let rows = plural(usize::try_from(profile.row_count).unwrap_or(usize::MAX), "row");
    tell(&format!("{rows}, {score} ({})\n", sides.collect::<Vec<_>>().join(", ")));
    Ok(())
}

fn config(argument: Option<&str>) -> Result<ProfileConfig, Failure> {
    let Some(argument) = argument else { return Ok(ProfileConfig::default()) };
    let text = query_text(argument)?;
    let json: Json = serde_json::from_str(&text).map_err(|error| Failure::new(format!("--config: {error}")))?;
    ProfileConfig::from_json(&json)
        .map_err(|error| Failure::new(format!("--config: {error}")).hint("terrane profile --help lists the fields"))
}

fn tables(profile: &CubeProfile) -> String {
    let columns = profile.dimension_profiles.iter().chain(&profile.measure_profiles);
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
    table.set_header(["column", "type", "nulls", "different", "min", "max", "mean", "deviation", "median", "outliers"]);
    for column in columns {
        let count = |count: Option<u64>| count.map_or("–".to_owned(), |count| count.to_string());
        let number = |number: Option<f64>| number.map_or("–".to_owned(), |number| format!("{number:.3}"));
        let median = column.percentiles.iter().find(|(percentile, _)| *percentile == 50.0).map(|(_, value)| *value);
        table.add_row([
            column.name.to_string(),
            type_name(column.ty).to_owned(),
            count(column.null_count),
            count(column.distinct_count),
            shown(column.min.as_ref()),
            shown(column.max.as_ref()),
            number(column.mean),
            number(column.stddev),
            number(median),
            count(column.outlier_count),
        ]);
    }
    let insights = profile.insights.iter().map(|insight| format!("{:<8} {}\n", insight.level(), insight.message));
    format!("{table}\n{}", insights.collect::<String>())
}

/// Returns a cell of at most 30 characters.
fn shown(value: Option<&Value>) -> String {
    let text = match value.map(value_json) {
        None | Some(Json::Null) => return "–".to_owned(),
        Some(Json::String(text)) => text,
        Some(other) => other.to_string(),
    };
    let text = TerminalText::line(&text).into_string();
    match text.char_indices().nth(30) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn type_name(ty: LogicalType) -> &'static str {
    match ty {
        LogicalType::Text => "text",
        LogicalType::Integer => "integer",
        LogicalType::Decimal => "decimal",
        LogicalType::Float => "float",
        LogicalType::Boolean => "boolean",
        LogicalType::Date => "date",
        LogicalType::Timestamp => "timestamp",
        LogicalType::TimestampTz => "timestamp_tz",
        LogicalType::Geo => "geo",
        LogicalType::Binary => "binary",
        LogicalType::Unknown => "unknown",
    }
}

fn profile_json(profile: &CubeProfile) -> Json {
    let columns = |columns: &[ColumnProfile]| columns.iter().map(column_json).collect::<Vec<_>>();
    let scores = profile.quality_scores.iter().map(|(side, score)| (side.as_str().to_owned(), json!(score)));
    json!({
        "cube_name": &*profile.cube_name,
        "row_count": profile.row_count,
        "profiled_at": profile.profiled_at.to_string(),
        "sample_size": profile.sample_size,
        "dimension_profiles": columns(&profile.dimension_profiles),
        "measure_profiles": columns(&profile.measure_profiles),
        "overall_quality_score": profile.overall_quality_score,
        "quality_scores": scores.collect::<Map<String, Json>>(),
        "insights": profile.insights.iter().map(insight_json).collect::<Vec<_>>(),
    })
}

/// Statistics that were not computed are null or empty lists.
fn column_json(column: &ColumnProfile) -> Json {
    let percentiles = column.percentiles.iter().map(|(percentile, value)| (percentile.to_string(), json!(value)));
    let bins = column.histogram.iter().map(|bin| json!({"from": bin.from, "to": bin.to, "count": bin.count}));
    let top = column.top_values.iter().map(|(value, count)| json!({"value": value_json(value), "count": count}));
    json!({
        "name": &*column.name,
        "title": &*column.title,
        "type": type_name(column.ty),
        "total_count": column.total_count,
        "null_count": column.null_count,
        "completeness": column.completeness(),
        "distinct_count": column.distinct_count,
        "cardinality_ratio": column.cardinality_ratio(),
        "min": column.min.as_ref().map(value_json),
        "max": column.max.as_ref().map(value_json),
        "mean": column.mean,
        "stddev": column.stddev,
        "skewness": column.skewness,
        "percentiles": percentiles.collect::<Map<String, Json>>(),
        "outlier_count": column.outlier_count,
        "histogram": bins.collect::<Vec<_>>(),
        "top_values": top.collect::<Vec<_>>(),
    })
}

fn insight_json(insight: &Insight) -> Json {
    let evidence = insight.evidence.iter().map(|(name, value)| (name.to_string(), json!(&**value)));
    json!({
        "severity": insight.level(),
        "code": &*insight.code,
        "message": &*insight.message,
        "column": insight.column.as_deref(),
        "score": insight.score,
        "component": &*insight.component,
        "evidence": evidence.collect::<Map<String, Json>>(),
    })
}

fn value_json(value: &Value) -> Json {
    let instant = |micros: i64| jiff::Timestamp::from_microsecond(micros).ok();
    let text = |text: Option<String>| text.map_or(Json::Null, Json::String);
    match value {
        Value::Null => Json::Null,
        Value::Boolean(value) => json!(value),
        Value::Integer(value) => json!(value),
        Value::Float(value) => json!(value),
        // With all their digits, as in answers.
        Value::Decimal(digits) => digits.parse::<serde_json::Number>().map_or(json!(&**digits), Json::Number),
        Value::Text(value) => json!(&**value),
        Value::Date(days) => {
            let midnight = instant(i64::from(*days) * 86_400_000_000);
            text(midnight.map(|at| jiff::tz::TimeZone::UTC.to_datetime(at).date().to_string()))
        }
        Value::Timestamp(micros) => {
            text(instant(*micros).map(|at| jiff::tz::TimeZone::UTC.to_datetime(at).to_string()))
        }
        Value::TimestampTz(micros) => text(instant(*micros).map(|at| at.to_string())),
    }
}
