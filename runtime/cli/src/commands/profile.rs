//! `terrane profile`: statistics and data quality of a cube's columns.
//!
//! In: a project and a cube. Out: a table, or the cube profile as JSON. Not here: computing statistics (app, warehouse)
//! and insights (components).

mod stored;

use std::path::PathBuf;
use std::sync::Arc;

use comfy_table::{Table, presets};
use serde_json::Value as Json;
use terrane_app::profiling::{self, ProfileConfig};
use terrane_app::query::QueryRunError;
use terrane_compiler::query::{DateRange, QueryError};
use terrane_compiler::types::Value;
use terrane_pictures::{Glyphs, sparkline};
use terrane_terminal::TerminalText;
use terrane_wire::profile::{CubeProfile, type_name, value_to_wire};
use terrane_wire::{ErrorBody, profile_config};

use super::query::{query_text, refused};
use super::{Terminal, json_line, load_for_queries, print, print_error};
use crate::caller;
use crate::failure::Failure;
use crate::pictures::PlotWhen;
use crate::project::Project;
use crate::report::plural;
use crate::wiring::CommandDuration;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane profile examples/flights flights
  terrane profile examples/flights flights --date-range 2013-Q1 --json | jq .overall_quality_score
  terrane profile . orders --config '{\"percentile_list\": [5, 50, 95], \"quality_thresholds\": {\"completeness_warning\": 0.99}}'
  terrane profile . orders --as user.json
  terrane profile . orders --plot > profile.txt
  terrane profile . orders --store --json | jq .changes
  terrane profile . orders --newest --json
  terrane profile . orders --quality-score
  terrane profile . orders --dimension status --json

The configuration is a JSON object with these fields, all optional:
  compute_histograms, histogram_bins     true, 20: bins of the histograms of numbers
  compute_frequencies, top_n_values      true, 10: the most frequent values of dimensions
  compute_percentiles, percentile_list   true, [25, 50, 75, 90, 95, 99]
  detect_insights, insight_sensitivity   true, 0.8: higher values report weaker insights too
  quality_thresholds                     {\"completeness_warning\": 0.99, …}: bounds of the checks
  sample_size                            all rows: a sample of this many rows; 0 for all
  sampling_strategy, stratify_by         random, systematic or stratified by a dimension
runtime/docs/reference/detectors-and-checks.md describes the statistics and the checks.")]
pub struct ProfileArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The name of the cube
    pub cube: String,
    /// Profile only rows in this range: `2013-Q1`, `last 7 days`, `from 2013-01-01 to 2013-03-31`
    #[arg(long, value_name = "RANGE")]
    pub date_range: Option<String>,
    /// The statistics to compute, as JSON; `@FILE` reads a file, `-` standard input
    #[arg(long, value_name = "JSON")]
    pub config: Option<String>,
    /// Query as this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Show the distribution of each column: the bins of its histogram, or its most frequent values
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_value = "auto",
        default_missing_value = "always"
    )]
    pub plot: PlotWhen,
    /// Print the whole profile as one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub stored: stored::StoredArguments,
}

/// Profiles the cube.
///
/// # Errors
/// The project has errors, or the cube, the range or the configuration is invalid.
pub async fn run(arguments: &ProfileArguments, project: Project, terminal: Terminal) -> Result<(), Failure> {
    if let Some(request) = arguments.stored.request() {
        return stored::run(request, arguments, &project).await;
    }
    let config = config(arguments.config.as_deref())?;
    let caller = caller::read(arguments.caller.as_deref())?;
    let engine = load_for_queries(&project, CommandDuration::Short).await?;
    let range = arguments.date_range.as_ref().map(|words| DateRange::Words(words.as_str().into()));
    let cube: Arc<str> = arguments.cube.as_str().into();
    let profile = engine.profiling.profile(&caller, &cube, range.as_ref(), &config).await;
    let profile = profile.map_err(|error| failure(error, arguments.date_range.as_deref()))?;
    if arguments.json {
        print(&json_line(&CubeProfile::from(&profile)));
        return Ok(());
    }
    print(&tables(&profile, arguments.plot.glyphs(terminal)));
    let score = profile.overall_quality_score.map_or("not scored".to_owned(), |score| format!("quality {score:.3}"));
    let sides = profile.quality_scores.iter().map(|(side, score)| format!("{} {score:.3}", side.as_str()));
    let rows = plural(usize::try_from(profile.row_count).unwrap_or(usize::MAX), "row");
    let rows = if profile.sample.is_some() { format!("{} of {rows}", profile.sample_size) } else { rows };
    let sides = sides.collect::<Vec<_>>().join(", ");
    let sides = if sides.is_empty() { sides } else { format!(" ({sides})") };
    print_error(&format!("{rows}, {score}{sides}\n"));
    Ok(())
}

/// Converts a refusal to a failure. The message of a refused range names the argument `--date-range`.
fn failure(error: QueryRunError, date_range: Option<&str>) -> Failure {
    match (error, date_range) {
        (QueryRunError::Query(QueryError::NoPrimaryTime { cube }), Some(_)) => {
            Failure::new(format!("--date-range needs a primary time dimension, and cube `{cube}` has none"))
                .hint("Set `primary_time: true` on a time dimension of the cube, or omit --date-range.")
        }
        (QueryRunError::Query(QueryError::ValueDoesNotFit { expected, .. }), Some(range)) => {
            let range = TerminalText::line(range);
            Failure::new(format!("--date-range: `{range}` is not a time range")).hint(format!("Write {expected}."))
        }
        (error, _) => refused(ErrorBody::for_operator(error)),
    }
}

fn config(argument: Option<&str>) -> Result<ProfileConfig, Failure> {
    let Some(argument) = argument else { return Ok(ProfileConfig::default()) };
    let text = query_text(argument)?;
    let json: Json = serde_json::from_str(&text).map_err(|error| Failure::new(format!("--config: {error}")))?;
    profile_config::from_json(&json).map_err(|error| {
        let message = ErrorBody::from(error).message;
        Failure::new(format!("--config: {message}")).hint("Run `terrane profile --help` to see the fields.")
    })
}

fn tables(profile: &profiling::CubeProfile, glyphs: Option<Glyphs>) -> String {
    let columns = profile.dimension_profiles.iter().chain(&profile.measure_profiles);
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
    let names = ["column", "type", "nulls", "distinct", "min", "max", "mean", "std dev", "median", "outliers"];
    table.set_header(names.into_iter().chain(glyphs.map(|_| "distribution")));
    for column in columns {
        let count = |count: Option<u64>| count.map_or("–".to_owned(), |count| count.to_string());
        let number = |number: Option<f64>| number.map_or("–".to_owned(), |number| format!("{number:.3}"));
        let median = column.percentiles.iter().find(|(percentile, _)| *percentile == 50.0).map(|(_, value)| *value);
        let cells = [
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
        ];
        table.add_row(cells.into_iter().chain(glyphs.map(|glyphs| distribution(column, glyphs))));
    }
    let insights = profile.insights.iter().map(|insight| format!("{:<8} {}\n", insight.level(), insight.message));
    format!("{table}\n{}", insights.collect::<String>())
}

/// Draws the bins of a column, or the counts of its most frequent values.
fn distribution(column: &profiling::ColumnProfile, glyphs: Glyphs) -> String {
    let bins = column.histogram.iter().map(|bin| bin.count);
    let most_frequent = column.top_values.iter().map(|(_, count)| *count).filter(|_| column.histogram.is_empty());
    // A count of 0 is added, so that the lowest character stands for no rows. The last line cuts off the character of
    // the added count.
    let counts: Vec<Option<f64>> =
        bins.chain(most_frequent).map(|count| Some(count as f64)).chain([Some(0.0)]).collect();
    let line = sparkline(&counts, glyphs);
    line.chars().take(counts.len() - 1).collect()
}

/// Returns a cell of at most 30 characters.
fn shown(value: Option<&Value>) -> String {
    let text = match value.map(value_to_wire) {
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
