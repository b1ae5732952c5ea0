//! Compares predicted times with the times that queries took.
//!
//! In: records of the history. Out: percentiles of the q-error, which is the larger of predicted/actual and
//! actual/predicted, and the share of queries within their predicted ninetieth percentile.

use crate::ports::executed_queries::ExecutedQuery;

/// The shortest time that is compared, in seconds. Shorter times count as this one.
const SHORTEST: f64 = 0.000_1;

/// The accuracy of the predictions of some queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictionAccuracy {
    /// The number of queries that had a prediction.
    pub queries: usize,
    /// The median of the q-error; 1 is exact.
    pub median: f64,
    pub p90: f64,
    pub p99: f64,
    /// The share of queries that took at most their predicted ninetieth percentile, 0–1.
    pub covered: f64,
}

impl PredictionAccuracy {
    /// Returns the accuracy of the queries that had a prediction; `None` if none had.
    pub fn of(queries: &[ExecutedQuery]) -> Option<Self> {
        let predicted: Vec<_> = queries.iter().filter_map(|query| Some((query.warehouse, query.predicted?))).collect();
        let mut errors: Vec<f64> = predicted
            .iter()
            .map(|(actual, predicted)| {
                let ratio = predicted.median.as_secs_f64().max(SHORTEST) / actual.as_secs_f64().max(SHORTEST);
                ratio.max(1.0 / ratio)
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        let count = errors.len();
        let at = |percent: usize| errors.get((count * percent / 100).min(count.saturating_sub(1))).copied();
        let covered = predicted.iter().filter(|(actual, predicted)| *actual <= predicted.high).count();
        Some(PredictionAccuracy {
            queries: count,
            median: at(50)?,
            p90: at(90)?,
            p99: at(99)?,
            covered: covered as f64 / count as f64,
        })
    }
}
