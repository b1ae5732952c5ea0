//! Splits a batch into its series, and collects judgements into the contract's columns.
//!
//! In: the contract's columns. Out: slices of them, and a [`Detection`] built point by point. Not here: the rules of
//! detectors.

use super::{Detection, DetectorInfo, Params, SeriesBatch};

/// One series of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Series<'a> {
    /// Milliseconds since 1970-01-01T00:00:00Z, ascending.
    pub timestamps_ms: &'a [i64],
    /// NaN for a missing value.
    pub values: &'a [f64],
}

impl<'a> Series<'a> {
    /// Returns the values that are not missing.
    pub fn known(self) -> impl Iterator<Item = f64> + 'a {
        self.values.iter().copied().filter(|value| !value.is_nan())
    }

    /// Returns the mean and the standard deviation (divided by n) of the values that are not missing; NaN without any.
    pub fn mean_and_deviation(self) -> (f64, f64) {
        let count = self.known().count() as f64;
        let mean = self.known().sum::<f64>() / count;
        let variance = self.known().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        (mean, variance.sqrt())
    }
}

impl SeriesBatch {
    /// Returns every series, in order.
    pub fn series(&self) -> impl ExactSizeIterator<Item = Series<'_>> {
        self.offsets.windows(2).map(|bounds| {
            let range = bounds[0] as usize..bounds[1] as usize;
            Series { timestamps_ms: &self.timestamps_ms[range.clone()], values: &self.values[range] }
        })
    }

    /// Returns a batch for native tests: one value a day from 1970-01-01.
    pub fn for_tests(series: &[&[f64]]) -> SeriesBatch {
        const DAY_MS: i64 = 86_400_000;
        let mut batch =
            SeriesBatch { offsets: vec![0], timestamps_ms: vec![], values: vec![], step_ms: Some(DAY_MS as u64) };
        for values in series {
            batch.timestamps_ms.extend((0..values.len() as i64).map(|day| day * DAY_MS));
            batch.values.extend(*values);
            batch.offsets.push(batch.values.len() as u32);
        }
        batch
    }
}

impl Params {
    /// Returns the monitor's sensitivity, or the detector's default.
    pub fn sensitivity_or(&self, default: f64) -> f64 {
        self.sensitivity.unwrap_or(default)
    }

    /// Returns another setting of the monitor as JSON text.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.extra.iter().find(|(known, _)| known == name).map(|(_, json)| json.as_str())
    }

    /// Returns default parameters, for native tests.
    pub fn for_tests() -> Params {
        Params { sensitivity: None, training_size: 1_000, seasonality: None, extra: vec![] }
    }
}

impl DetectorInfo {
    /// Describes a kind that has neither models nor settings of its own.
    pub fn new(kind: &str, display_name: &str, default_sensitivity: f64, min_points: u32) -> DetectorInfo {
        DetectorInfo {
            kind: kind.to_owned(),
            display_name: display_name.to_owned(),
            default_sensitivity,
            min_points,
            has_model: false,
            settings_schema_json: String::new(),
            extra: vec![],
        }
    }
}

/// The result of evaluating one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The score from 0 to 1.
    pub score: f64,
    pub raw: f64,
    pub expected: f64,
    pub lower_bound: f64,
    pub upper_bound: f64,
    pub anomalous: bool,
}

impl Judgement {
    /// The result for a point without a value, or without enough history.
    pub const NONE: Judgement = Judgement {
        score: 0.0,
        raw: f64::NAN,
        expected: f64::NAN,
        lower_bound: f64::NAN,
        upper_bound: f64::NAN,
        anomalous: false,
    };

    /// Evaluates a value that is anomalous if it differs from `expected` by more than `allowed`. `raw` is the
    /// difference in units of `allowed`. The score is half of `raw`, at most 1. A value at the bound has the score 0.5.
    pub fn within(value: f64, expected: f64, allowed: f64) -> Judgement {
        let distance = (value - expected).abs();
        let anomalous = distance > allowed;
        let raw = if distance == 0.0 { 0.0 } else { distance / allowed };
        Judgement {
            score: (raw / 2.0).min(1.0),
            raw: if raw.is_finite() { raw } else { f64::NAN },
            expected,
            lower_bound: expected - allowed,
            upper_bound: expected + allowed,
            anomalous,
        }
    }
}

impl Detection {
    /// Returns a detection without points, with capacity for `points`.
    pub fn with_capacity(points: usize) -> Detection {
        let column = || Vec::with_capacity(points);
        Detection {
            scores: column(),
            raw: column(),
            expected: column(),
            lower_bound: column(),
            upper_bound: column(),
            anomalous: Vec::with_capacity(points),
        }
    }

    pub fn push(&mut self, judgement: Judgement) {
        self.scores.push(judgement.score);
        self.raw.push(judgement.raw);
        self.expected.push(judgement.expected);
        self.lower_bound.push(judgement.lower_bound);
        self.upper_bound.push(judgement.upper_bound);
        self.anomalous.push(judgement.anomalous);
    }

    /// Calls `learn` once for each series, with its history, then evaluates the points of the series one by one. A
    /// point without a value gets [`Judgement::NONE`].
    ///
    /// ```
    /// use terrane_sdk::detector::{Detection, Judgement, SeriesBatch};
    ///
    /// let history = SeriesBatch::for_tests(&[&[1.0, 3.0, 1.0, 3.0], &[50.0]]);
    /// let points = SeriesBatch::for_tests(&[&[2.5, 9.0], &[f64::NAN]]);
    /// let detection = Detection::of_points(&history, &points, |history| {
    ///     let (mean, deviation) = history.mean_and_deviation();
    ///     move |value| Judgement::within(value, mean, 3.0 * deviation)
    /// });
    /// assert_eq!(detection.anomalous, [false, true, false]);
    /// assert_eq!(detection.upper_bound[1], 5.0);
    /// ```
    pub fn of_points<J: FnMut(f64) -> Judgement>(
        history: &SeriesBatch,
        points: &SeriesBatch,
        mut learn: impl FnMut(Series<'_>) -> J,
    ) -> Detection {
        let mut detection = Detection::with_capacity(points.values.len());
        for (history, points) in history.series().zip(points.series()) {
            let mut rule = learn(history);
            for value in points.values {
                detection.push(if value.is_nan() { Judgement::NONE } else { rule(*value) });
            }
        }
        detection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_zero_makes_every_other_value_anomalous() {
        let judgement = Judgement::within(2.0, 1.0, 0.0);
        assert!(judgement.anomalous && judgement.score == 1.0 && judgement.raw.is_nan());
        let same = Judgement::within(1.0, 1.0, 0.0);
        assert!(!same.anomalous && same.score == 0.0);
    }
}
