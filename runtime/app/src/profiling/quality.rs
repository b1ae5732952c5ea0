//! The quality score of a cube's columns, as one number.
//!
//! In: findings with scores. Out: the mean score of each dimension of quality, and the weighted sum of these means.
//! Dimensions without a score are left out, and the other weights are scaled so that they add up to 1.

use crate::ports::checks::{Finding, QualityDimension};

/// The weights of the dimensions of quality, from the specification.
const WEIGHTS: [(QualityDimension, f64); 5] = [
    (QualityDimension::Completeness, 0.30),
    (QualityDimension::Validity, 0.25),
    (QualityDimension::Uniqueness, 0.20),
    (QualityDimension::Consistency, 0.15),
    (QualityDimension::Accuracy, 0.10),
];

/// Returns the mean score of each quality dimension with a score.
pub(super) fn sides(findings: &[Finding]) -> Vec<(QualityDimension, f64)> {
    let mean = |dimension: QualityDimension| {
        let of_side = findings.iter().filter(|finding| finding.dimension == dimension);
        let scores: Vec<f64> = of_side.filter_map(|finding| finding.score).collect();
        (!scores.is_empty()).then(|| (dimension, scores.iter().sum::<f64>() / scores.len() as f64))
    };
    WEIGHTS.into_iter().filter_map(|(dimension, _)| mean(dimension)).collect()
}

/// Returns the sum of the weights of the dimensions with a score.
pub(super) fn scored_weight(sides: &[(QualityDimension, f64)]) -> f64 {
    sides.iter().map(|(dimension, _)| weight(*dimension)).sum()
}

fn weight(dimension: QualityDimension) -> f64 {
    WEIGHTS.iter().find(|(of, _)| *of == dimension).map_or(0.0, |(_, weight)| *weight)
}

/// Returns the weighted sum of the scores; `None` if no dimension has a score.
pub(super) fn overall(sides: &[(QualityDimension, f64)]) -> Option<f64> {
    let total = scored_weight(sides);
    let sum: f64 = sides.iter().map(|(dimension, score)| weight(*dimension) * score).sum();
    (total > 0.0).then(|| (sum / total).clamp(0.0, 1.0))
}
