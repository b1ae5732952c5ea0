//! Estimated quantities: a number with a range and a basis.

use crate::ports::warehouse::SizeBasis;

/// The source of a predicted number, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PredictionBasis {
    /// The number is known exactly.
    Exact,
    /// The number cannot be exceeded.
    UpperBound,
    /// The same statement ran before.
    History,
    /// Other queries ran before, or the engine has statistics.
    Statistics,
    /// Nothing is known.
    None,
}

/// A quantity with its tenth and ninetieth percentile. A percentile that is unknown is `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    pub low: Option<f64>,
    pub median: f64,
    pub high: Option<f64>,
}

/// A predicted quantity, or nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub basis: PredictionBasis,
    /// `None` if and only if the basis is `None`.
    pub range: Option<Range>,
}

impl PredictionBasis {
    pub fn as_str(self) -> &'static str {
        match self {
            PredictionBasis::Exact => "exact",
            PredictionBasis::UpperBound => "upper_bound",
            PredictionBasis::History => "history",
            PredictionBasis::Statistics => "statistics",
            PredictionBasis::None => "none",
        }
    }
}

impl From<SizeBasis> for PredictionBasis {
    fn from(basis: SizeBasis) -> Self {
        match basis {
            SizeBasis::Exact => PredictionBasis::Exact,
            SizeBasis::UpperBound => PredictionBasis::UpperBound,
            SizeBasis::Statistics => PredictionBasis::Statistics,
        }
    }
}

impl Estimate {
    pub const UNKNOWN: Estimate = Estimate { basis: PredictionBasis::None, range: None };

    pub fn new(basis: PredictionBasis, range: Range) -> Self {
        Estimate { basis, range: Some(range) }
    }

    pub fn median(&self) -> Option<f64> {
        self.range.map(|range| range.median)
    }

    pub fn low(&self) -> Option<f64> {
        self.range.and_then(|range| range.low)
    }

    pub fn high(&self) -> Option<f64> {
        self.range.and_then(|range| range.high)
    }

    pub fn is_known(&self) -> bool {
        self.range.is_some()
    }

    /// Returns `self` if it is known, and otherwise `other`.
    #[must_use]
    pub fn or(self, other: impl FnOnce() -> Estimate) -> Estimate {
        if self.is_known() { self } else { other() }
    }

    /// Rounds to two significant digits if `is_rounded`. A rounded number is not exact.
    #[must_use]
    pub fn rounded_if(self, is_rounded: bool) -> Estimate {
        if !is_rounded {
            return self;
        }
        let is_sharp = matches!(self.basis, PredictionBasis::Exact | PredictionBasis::UpperBound);
        let basis = if is_sharp { PredictionBasis::Statistics } else { self.basis };
        Estimate { basis, range: self.range.map(|range| range.map(two_digits)) }
    }
}

impl Range {
    /// Returns the percentiles of at least one number. A percentile between two numbers is interpolated.
    pub(super) fn of(mut numbers: Vec<f64>) -> Range {
        numbers.sort_by(f64::total_cmp);
        let at = |share| quantile(&numbers, share);
        Range { low: Some(at(0.1)), median: at(0.5), high: Some(at(0.9)) }
    }

    /// Returns the range of a number without uncertainty.
    pub(super) fn exactly(number: f64) -> Range {
        Range { low: Some(number), median: number, high: Some(number) }
    }

    /// Returns the range of a number that is at most `number`.
    pub(super) fn at_most(number: f64) -> Range {
        Range { low: None, median: number, high: Some(number) }
    }

    pub(super) fn map(self, change: impl Fn(f64) -> f64) -> Range {
        Range { low: self.low.map(&change), median: change(self.median), high: self.high.map(&change) }
    }
}

/// Returns a quantile of sorted numbers, of which there is at least one. A quantile between two numbers is
/// interpolated.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let (below, above, part) = (sorted[below], sorted[above], place - place.floor());
    below + (above - below) * part
}

fn two_digits(number: f64) -> f64 {
    if number <= 0.0 {
        return number;
    }
    let scale = 10_f64.powi(1 - number.log10().floor() as i32);
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_interpolated() {
        let range = Range::of((0..=10).rev().map(f64::from).collect());
        assert_eq!((range.low, range.median, range.high), (Some(1.0), 5.0, Some(9.0)));
        assert_eq!(Range::of(vec![3.0]), Range::exactly(3.0));
        let two = Range::of(vec![0.0, 1.0]);
        assert_eq!((two.low, two.median, two.high), (Some(0.1), 0.5, Some(0.9)));
    }

    #[test]
    fn numbers_are_rounded_to_two_digits() {
        for (number, expected) in [(0.0, 0.0), (1_234.5, 1_200.0), (0.001_26, 0.001_3), (995.0, 1_000.0)] {
            assert!((two_digits(number) - expected).abs() < 1e-9, "{number}");
        }
    }

    #[test]
    fn rounded_numbers_are_not_exact() {
        let exact = Estimate::new(PredictionBasis::Exact, Range::exactly(1_234.0));
        assert_eq!(exact.rounded_if(false), exact);
        let rounded = exact.rounded_if(true);
        assert_eq!((rounded.basis, rounded.median()), (PredictionBasis::Statistics, Some(1_200.0)));
        assert_eq!(Estimate::UNKNOWN.rounded_if(true), Estimate::UNKNOWN);
    }
}
