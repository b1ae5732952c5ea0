//! The anomalies of the page.
//!
//! In: cubes, and a caller whose policies apply. Out: for each cube with a primary time dimension, the series of some
//! of its measures with the expected bounds, or a note with the reason why a series is missing. Not here: detectors
//! (components).

use std::sync::Arc;

use terrane_app::anomaly::{AnomalyError, AnomalyRequest, AnomalyRun, Point, ScoredSeries, TRAINING_SIZE};
use terrane_app::domain::SeriesValue;
use terrane_app::metadata;
use terrane_app::query::RequestContext;
use terrane_app::services::Services;
use terrane_compiler::Access;
use terrane_compiler::model::{AggregateFunction, Cube, Measure, MeasureKind};
use terrane_compiler::types::Granularity;
use terrane_pictures::{SeriesPoint, series};
use terrane_wire::ErrorBody;
use terrane_wire::anomaly::time;

use super::contents::{Contents, Missing, Row, Series, formatted};

const MAX_MEASURES: usize = 24;
const MAX_OF_CUBE: usize = 3;
/// The largest number of points in a picture, the newest ones.
const MAX_POINTS: usize = 400;
const MAX_ROWS: usize = 20;
/// The lengths of history in steps. They are tried in this order until the data has a step after the history.
const TRAINING_SIZES: [u32; 3] = [TRAINING_SIZE, 30, 10];

/// The detector and the step of all series.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) detector: Arc<str>,
    pub(super) granularity: Granularity,
}

/// Adds the series of the cubes.
pub(super) async fn add(
    contents: &mut Contents,
    engine: &Services,
    caller: &RequestContext,
    access: &Access<'_>,
    cubes: &[Arc<str>],
    settings: &Settings,
) {
    let cubes = cubes.iter().filter_map(|name| metadata::cube(access, name));
    let in_time = cubes.filter(|cube| has_step(cube, settings.granularity));
    let all: Vec<(&Cube, &Measure)> = in_time.flat_map(|cube| additive(access, cube)).collect();
    if all.len() > MAX_MEASURES {
        contents.note("anomalies", format!("The first {MAX_MEASURES} of {} measures are shown.", all.len()));
    }
    if all.is_empty() {
        let step = settings.granularity;
        let text = format!("No cube has counts or sums and a primary time dimension with the granularity {step}.");
        contents.note("anomalies", text);
    }
    let mut missing = Missing::default();
    for (cube, measure) in all.into_iter().take(MAX_MEASURES) {
        let name = format!("{}.{}", cube.name, measure.name);
        match evaluated(engine, caller, request(cube, measure, settings)).await {
            Ok(run) => add_series(contents, &mut missing, (&name, measure), &run),
            Err(error) => missing.add(name, message(error)),
        }
    }
    missing.note(contents, "anomalies", "series");
}

/// Finds anomalies. If the data has no step after the history, tries again with a shorter history.
async fn evaluated(
    engine: &Services,
    caller: &RequestContext,
    mut request: AnomalyRequest,
) -> Result<AnomalyRun, AnomalyError> {
    for size in TRAINING_SIZES {
        request.training_size = size;
        match engine.anomalies.run(caller, &request).await {
            Err(AnomalyError::NothingToEvaluate { .. }) => {}
            outcome => return outcome,
        }
    }
    Err(AnomalyError::NothingToEvaluate { training_size: request.training_size })
}

/// Returns whether the primary time dimension has the granularity.
fn has_step(cube: &Cube, granularity: Granularity) -> bool {
    let dimension = cube.primary_time.and_then(|place| cube.dimensions.get(place as usize));
    dimension.is_some_and(|dimension| dimension.granularities.contains(&granularity))
}

/// Returns the first counts and sums of a cube.
fn additive<'m>(access: &Access<'m>, cube: &'m Cube) -> Vec<(&'m Cube, &'m Measure)> {
    let is_additive = |measure: &&Measure| match &measure.kind {
        MeasureKind::Aggregate(aggregate) => {
            matches!(aggregate.function, AggregateFunction::Count | AggregateFunction::Sum)
        }
        MeasureKind::Number(_) | MeasureKind::RunningTotal { .. } | MeasureKind::Rolling { .. } => false,
    };
    let measures = metadata::measures(access, cube).filter(is_additive).take(MAX_OF_CUBE);
    measures.map(|measure| (cube, measure)).collect()
}

fn request(cube: &Cube, measure: &Measure, settings: &Settings) -> AnomalyRequest {
    AnomalyRequest {
        value: SeriesValue::Measure { cube: Arc::clone(&cube.name), measure: Arc::clone(&measure.name) },
        detector: Arc::clone(&settings.detector),
        sensitivity: None,
        training_size: TRAINING_SIZE,
        granularity: settings.granularity,
        time_dimension: None,
        dimensions: Vec::new(),
        from: None,
        to: None,
        seasonality: None,
    }
}

fn message(error: AnomalyError) -> String {
    match error {
        AnomalyError::Run(error) => ErrorBody::for_operator(error).message,
        error => error.to_string(),
    }
}

fn add_series(contents: &mut Contents, missing: &mut Missing, (name, measure): (&str, &Measure), run: &AnomalyRun) {
    let Some(ScoredSeries { points, history, .. }) = run.series.first().filter(|series| !series.points.is_empty())
    else {
        let least = run.detector.min_points;
        let reason = format!("the history is shorter than the {least} values that the detector needs.");
        return missing.add(name.to_owned(), reason);
    };
    let drawn = &points[points.len().saturating_sub(MAX_POINTS)..];
    let point = |point: &Point| SeriesPoint {
        time: time(point.at_ms, run.granularity),
        value: point.value,
        expected: point.expected,
        lower: point.lower_bound,
        upper: point.upper_bound,
        is_anomalous: point.is_anomalous,
    };
    let drawn: Vec<SeriesPoint> = drawn.iter().map(point).collect();
    let found: Vec<&Point> = points.iter().filter(|point| point.is_anomalous).collect();
    let newest = found.iter().rev().take(MAX_ROWS).rev();
    let incomplete = points.iter().find(|point| !point.is_complete);
    let incomplete = incomplete.map(|point| format!("; incomplete from {}", time(point.at_ms, run.granularity)));
    let incomplete = incomplete.unwrap_or_default();
    let format = measure.presentation.format.as_deref();
    contents.anomalies.push(Series {
        measure: name.to_owned(),
        title: measure.presentation.title.to_string(),
        detector: format!("{}, {history} steps of history{incomplete}", run.detector.kind),
        found: found.len(),
        points: points.len(),
        svg: series(&format!("{name} by {}", run.granularity), &drawn),
        rows: newest.map(|point| row(point, run.granularity, format)).collect(),
    });
}

fn row(point: &Point, granularity: Granularity, format: Option<&str>) -> Row {
    let number = |value| formatted(format, value);
    Row {
        time: format!("{}{}", time(point.at_ms, granularity), if point.is_complete { "" } else { " (incomplete)" }),
        value: number(point.value),
        expected: number(point.expected),
        lower: number(point.lower_bound),
        upper: number(point.upper_bound),
        severity: point.severity.as_str(),
    }
}
