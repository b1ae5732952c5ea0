//! Charts of numbers as SVG: the bins of a column, and a series with its bounds.
//!
//! In: finite numbers. Out: an SVG element for a page that contains [`STYLE`](crate::STYLE). Not here: the computation
//! of bins, bounds and anomalies.

use std::fmt::Write as _;

use crate::svg::{SvgForm, escape, framed, number};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 120.0;
const BINS_WIDTH: f64 = 200.0;
const BINS_HEIGHT: f64 = 48.0;

#[derive(Debug, Clone, PartialEq)]
pub struct SeriesPoint {
    /// The time as text, for the tooltip and the axis.
    pub time: String,
    pub value: Option<f64>,
    pub expected: Option<f64>,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    pub is_anomalous: bool,
}

/// Draws a histogram: one bar for each count, and below the bars the two ends of the range.
pub fn histogram(title: &str, counts: &[u64], range: (&str, &str)) -> String {
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let width = BINS_WIDTH / counts.len().max(1) as f64;
    let mut body = String::new();
    for (index, count) in counts.iter().enumerate() {
        let height = *count as f64 / most * BINS_HEIGHT;
        let _ = writeln!(
            body,
            "<rect class=\"bin\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{count}</title></rect>",
            number(index as f64 * width),
            number(BINS_HEIGHT - height),
            number((width - 1.0).max(0.5)),
            number(height)
        );
    }
    write_axis(&mut body, BINS_WIDTH, BINS_HEIGHT, range);
    framed(title, (BINS_WIDTH, BINS_HEIGHT + 14.0), &body, SvgForm::Inline)
}

/// Draws a series as a line over the band of its bounds, with a dot for each anomaly. A missing value is a gap.
pub fn series(title: &str, points: &[SeriesPoint]) -> String {
    let all = points.iter().flat_map(|point| [point.value, point.expected, point.lower, point.upper]).flatten();
    let (least, most) =
        all.filter(|value| value.is_finite()).fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
    let plane = Plane { count: points.len(), least, most };
    let mut body = String::new();
    for run in runs(points, |point| point.lower.zip(point.upper)) {
        let lower = run.iter().rev().map(|(at, (lower, _))| plane.point(*at, *lower));
        let band: Vec<String> = run.iter().map(|(at, (_, upper))| plane.point(*at, *upper)).chain(lower).collect();
        let _ = writeln!(body, "<polygon class=\"band\" points=\"{}\"/>", band.join(" "));
    }
    for (class, value) in
        [("expected", (|point| point.expected) as fn(&SeriesPoint) -> _), ("value", |point| point.value)]
    {
        for run in runs(points, value) {
            let line: Vec<String> = run.iter().map(|(at, value)| plane.point(*at, *value)).collect();
            let _ = writeln!(body, "<polyline class=\"{class}\" points=\"{}\"/>", line.join(" "));
        }
    }
    for (at, point) in points.iter().enumerate().filter(|(_, point)| point.is_anomalous) {
        let Some(value) = point.value.filter(|value| value.is_finite()) else { continue };
        let (x, y) = (number(plane.x(at)), number(plane.y(value)));
        let tooltip = escape(&format!("{}: {value}", point.time));
        let _ = writeln!(
            body,
            "<ellipse class=\"alarm\" cx=\"{x}\" cy=\"{y}\" rx=\"3.5\" ry=\"3.5\"><title>{tooltip}</title></ellipse>"
        );
    }
    let end = |point: Option<&SeriesPoint>| point.map_or("", |point| &*point.time).to_owned();
    write_axis(&mut body, WIDTH, HEIGHT, (&end(points.first()), &end(points.last())));
    framed(title, (WIDTH, HEIGHT + 14.0), &body, SvgForm::Inline)
}

fn write_axis(body: &mut String, width: f64, height: f64, (first, last): (&str, &str)) {
    let y = number(height + 12.0);
    let _ = writeln!(body, "<text class=\"axis\" x=\"0\" y=\"{y}\">{}</text>", escape(first));
    let _ = writeln!(
        body,
        "<text class=\"axis\" x=\"{}\" y=\"{y}\" text-anchor=\"end\">{}</text>",
        number(width),
        escape(last)
    );
}

/// The scale that maps a series to coordinates.
struct Plane {
    count: usize,
    least: f64,
    most: f64,
}

impl Plane {
    fn x(&self, at: usize) -> f64 {
        at as f64 / self.count.saturating_sub(1).max(1) as f64 * WIDTH
    }

    fn y(&self, value: f64) -> f64 {
        let share = if self.most > self.least { (value - self.least) / (self.most - self.least) } else { 0.5 };
        HEIGHT - share * HEIGHT
    }

    fn point(&self, at: usize, value: f64) -> String {
        format!("{},{}", number(self.x(at)), number(self.y(value)))
    }
}

/// Returns the runs of adjacent points that have a value, each point with its index.
fn runs<T>(points: &[SeriesPoint], value: impl Fn(&SeriesPoint) -> Option<T>) -> Vec<Vec<(usize, T)>> {
    let mut runs = vec![Vec::new()];
    for (at, point) in points.iter().enumerate() {
        match (value(point), runs.last_mut()) {
            (Some(value), Some(run)) => run.push((at, value)),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(value: Option<f64>, is_anomalous: bool) -> SeriesPoint {
        let (lower, upper) = (Some(0.0), Some(10.0));
        SeriesPoint { time: "2024-01-01".to_owned(), value, expected: Some(5.0), lower, upper, is_anomalous }
    }

    #[test]
    fn gaps_split_the_line_and_anomalies_are_dots() {
        let points =
            [point(Some(5.0), false), point(None, true), point(Some(20.0), true), point(Some(f64::INFINITY), true)];
        let drawn = series("a<b", &points);
        assert_eq!(drawn.matches("<polyline class=\"value\"").count(), 2, "{drawn}");
        assert_eq!((drawn.matches("<ellipse").count(), drawn.matches("<polygon").count()), (1, 1), "{drawn}");
        assert!(drawn.contains("<title>a&lt;b</title>"), "{drawn}");
        assert!(series("", &[]).contains("</svg>"));
    }

    #[test]
    fn bins_are_in_proportion() {
        let drawn = histogram("h", &[1, 4, 0], ("0", "9"));
        let heights: Vec<&str> = drawn.split("height=\"").skip(2).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(heights, ["12", "48", "0"], "{drawn}");
        assert!(histogram("h", &[], ("", "")).contains("</svg>"));
        assert!(!histogram("h", &[0, 0], ("", "")).contains("NaN"));
    }
}
