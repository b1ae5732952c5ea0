//! Lines of the series of an anomaly run.
//!
//! In: a run. Out: for each series its name, a line of its newest points, and a mark below each anomalous point.

use terrane_app::anomaly::{AnomalyRun, Point, ScoredSeries};
use terrane_app::domain::SeriesKey;
use terrane_pictures::{Glyphs, sparkline};
use terrane_wire::anomaly::time;

/// The largest number of points of a line.
const MAX_STEPS: usize = 100;
/// The largest number of series that are drawn.
const MAX_SERIES: usize = 20;

/// Draws the series that have points. `name` returns the name of a series.
pub(super) fn of_run(run: &AnomalyRun, glyphs: Glyphs, name: fn(&SeriesKey) -> String) -> String {
    let evaluated: Vec<&ScoredSeries> = run.series.iter().filter(|series| !series.points.is_empty()).collect();
    let drawn = evaluated.iter().take(MAX_SERIES);
    let mut text: String =
        drawn.map(|series| format!("{}: {}", name(&series.dimensions), of_series(series, run, glyphs))).collect();
    if evaluated.len() > MAX_SERIES {
        text.push_str(&format!("{} more series are not drawn\n", evaluated.len() - MAX_SERIES));
    }
    text
}

fn of_series(series: &ScoredSeries, run: &AnomalyRun, glyphs: Glyphs) -> String {
    let points = &series.points[series.points.len().saturating_sub(MAX_STEPS)..];
    let values: Vec<Option<f64>> = points.iter().map(|point| point.value).collect();
    let marks: String = points.iter().map(|point| if point.is_anomalous { '^' } else { ' ' }).collect();
    let end = |point: Option<&Point>| point.map_or(String::new(), |point| time(point.at_ms, run.granularity));
    let (first, last) = (end(points.first()), end(points.last()));
    let line = sparkline(&values, glyphs);
    format!("{first} to {last}\n{line}\n{}\n", marks.trim_end())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use terrane_app::ports::detectors::DetectorKind;
    use terrane_app::ports::severity::FindingSeverity;
    use terrane_compiler::types::Granularity;

    use super::*;

    fn point(day: i64, value: Option<f64>, is_anomalous: bool) -> Point {
        Point {
            at_ms: day * 86_400_000,
            value,
            expected: None,
            lower_bound: None,
            upper_bound: None,
            raw: None,
            score: 0.0,
            severity: FindingSeverity::Info,
            is_anomalous,
            is_complete: true,
        }
    }

    #[test]
    fn anomalies_are_marked_below_the_line() {
        let points = vec![point(0, Some(1.0), false), point(1, None, false), point(2, Some(8.0), true)];
        let series = |points: Vec<Point>| ScoredSeries {
            dimensions: vec![("region".into(), Some("EU".into()))],
            history: 9,
            points,
        };
        let run = AnomalyRun {
            detector: DetectorKind {
                kind: "z_score".into(),
                display_name: "Z-score".into(),
                default_sensitivity: 3.0,
                min_points: 2,
                has_model: false,
                settings_schema_json: "".into(),
                component: "detector-standard".into(),
                version: "1.0.0".into(),
            },
            sensitivity: 3.0,
            granularity: Granularity::Day,
            time_dimension: "orders.created_at".into(),
            as_of: Timestamp::UNIX_EPOCH,
            series: vec![series(points), series(Vec::new())],
        };
        let drawn = |glyphs| of_run(&run, glyphs, |key| key[0].1.as_deref().unwrap_or_default().to_owned());
        assert_eq!(drawn(Glyphs::Blocks), "EU: 1970-01-01 to 1970-01-03\n▁ █\n  ^\n");
        assert_eq!(drawn(Glyphs::Ascii), "EU: 1970-01-01 to 1970-01-03\n_ #\n  ^\n");
    }
}
