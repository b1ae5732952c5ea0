//! Scores one value against a sample: its distance, and the bounds of ordinary values.
//!
//! In: a kind, a sample of history, a sensitivity. Out: a [`Baseline`], which scores each point. The rules are
//! described in the crate's documentation. Not here: series and seasons.

use crate::statistics::{mean_and_deviation, median, median_deviation, quantile, sort};

/// The median absolute deviation of a normal distribution, in units of its standard deviation.
pub(crate) const MAD_SCALE: f64 = 0.6745;

/// The rules for a single sample. The kind `seasonal` has its own module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    ZScore,
    Iqr,
    Mad,
}

/// The range of ordinary values that a rule derives from a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Baseline {
    /// The center: the mean or the median.
    pub(crate) expected: f64,
    /// The points from which distances are measured down and up: the quartiles for the IQR rule, else the center.
    edges: (f64, f64),
    /// The unit of distance. If it is zero, every value other than the expected one has the greatest distance.
    unit: f64,
    sensitivity: f64,
}

/// The score of one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) score: f64,
    /// The distance with its sign: negative below the expected value. NaN if the sample has no spread.
    pub(crate) raw: f64,
    pub(crate) is_anomalous: bool,
}

impl Baseline {
    /// Returns the baseline of a sample; `None` for an empty sample.
    pub(crate) fn of(rule: Rule, history: &[f64], sensitivity: f64) -> Option<Baseline> {
        let (expected, edges, unit) = match rule {
            Rule::ZScore => {
                let (mean, deviation) = mean_and_deviation(history)?;
                (mean, (mean, mean), deviation)
            }
            Rule::Iqr => {
                let mut sorted = history.to_vec();
                sort(&mut sorted);
                let (first, third) = (quantile(&sorted, 0.25)?, quantile(&sorted, 0.75)?);
                (quantile(&sorted, 0.5)?, (first, third), third - first)
            }
            Rule::Mad => {
                let median = median(&mut history.to_vec())?;
                (median, (median, median), median_deviation(history, median)? / MAD_SCALE)
            }
        };
        Some(Baseline { expected, edges, unit, sensitivity })
    }

    /// Returns the baseline of a given center and unit.
    pub(crate) fn around(expected: f64, unit: f64, sensitivity: f64) -> Baseline {
        Baseline { expected, edges: (expected, expected), unit, sensitivity }
    }

    /// Returns the bounds outside which a value is anomalous.
    pub(crate) fn bounds(&self) -> (f64, f64) {
        let reach = self.sensitivity * self.unit;
        (self.edges.0 - reach, self.edges.1 + reach)
    }

    /// Returns `score = clamp(|raw| / (2 · sensitivity), 0, 1)`. The value is anomalous if `|raw|` exceeds the
    /// sensitivity, which is a score above 0.5. Without spread, a value equal to the center scores 0, any other 1.
    pub(crate) fn score(&self, value: f64) -> Verdict {
        let distance = if value < self.edges.0 {
            value - self.edges.0
        } else if value > self.edges.1 {
            value - self.edges.1
        } else {
            0.0
        };
        if distance == 0.0 {
            return Verdict { score: 0.0, raw: 0.0, is_anomalous: false };
        }
        if self.unit <= 0.0 {
            return Verdict { score: 1.0, raw: f64::NAN, is_anomalous: true };
        }
        // A distance may overflow even if the values do not.
        let raw = (distance / self.unit).clamp(f64::MIN, f64::MAX);
        let score = (raw.abs() / (2.0 * self.sensitivity)).clamp(0.0, 1.0);
        Verdict { score, raw, is_anomalous: raw.abs() > self.sensitivity }
    }
}
