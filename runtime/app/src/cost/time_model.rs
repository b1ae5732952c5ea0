//! A log-linear model of the time of queries on the warehouse.
//!
//! In: the sizes and times of queries that ran. Out: the time of another query, with a range. The logarithm of the
//! seconds is a linear function of the logarithms of the bytes and rows of the scanned relations, and of the numbers of
//! groups, facts and joins. The weights are a ridge regression in closed form. The range comes from the errors that the
//! model makes for each query if it is fitted without this query. Not here: the choice of the queries.

use super::estimate::{Range, quantile};
use crate::ports::executed_queries::PlanSize;

/// The smallest number of queries from which the model is fitted.
pub const MIN_QUERIES: usize = 30;
/// The penalty on weights of standardized features, as a number of queries.
const RIDGE: f64 = 1.0;
/// The shortest time that is distinguished, in seconds.
const SHORTEST: f64 = 0.000_1;
/// The longest time that is predicted, in seconds.
const LONGEST: f64 = 86_400.0;
/// The number of features besides the constant.
const FEATURES: usize = 5;
const COLUMNS: usize = FEATURES + 1;

type Row = [f64; COLUMNS];

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeModel {
    means: [f64; FEATURES],
    deviations: [f64; FEATURES],
    weights: Row,
    /// The tenth, fiftieth and ninetieth percentile of the errors, as differences of logarithms.
    errors: [f64; 3],
    queries: usize,
}

impl TimeModel {
    /// Fits the model to queries with their seconds. `None` for fewer than [`MIN_QUERIES`].
    pub fn fit(queries: &[(PlanSize, f64)]) -> Option<TimeModel> {
        if queries.len() < MIN_QUERIES {
            return None;
        }
        let count = queries.len() as f64;
        let features: Vec<[f64; FEATURES]> = queries.iter().map(|(size, _)| features(size)).collect();
        let times: Vec<f64> = queries.iter().map(|(_, seconds)| seconds.max(SHORTEST).ln()).collect();
        let mean = |index: usize| features.iter().map(|row| row[index]).sum::<f64>() / count;
        let means: [f64; FEATURES] = std::array::from_fn(mean);
        let variance =
            |index: usize| features.iter().map(|row| (row[index] - means[index]).powi(2)).sum::<f64>() / count;
        let deviations: [f64; FEATURES] = std::array::from_fn(|index| variance(index).sqrt());
        let mut model =
            TimeModel { means, deviations, weights: [0.0; COLUMNS], errors: [0.0; 3], queries: queries.len() };
        let rows: Vec<Row> = features.iter().map(|features| model.row(features)).collect();
        let inverse = inverse(normal_equations(&rows))?;
        let mut moments = [0.0; COLUMNS];
        for (row, time) in rows.iter().zip(&times) {
            (0..COLUMNS).for_each(|index| moments[index] += row[index] * time);
        }
        model.weights = std::array::from_fn(|index| dot(&inverse[index], &moments));
        let mut errors: Vec<f64> =
            rows.iter().zip(&times).map(|(row, time)| model.error(row, *time, &inverse)).collect();
        errors.sort_by(f64::total_cmp);
        model.errors = [0.1, 0.5, 0.9].map(|share| quantile(&errors, share));
        model.weights.iter().all(|weight| weight.is_finite()).then_some(model)
    }

    /// Returns the number of queries that the model was fitted to.
    pub fn queries(&self) -> usize {
        self.queries
    }

    /// Returns the seconds of a query.
    pub fn predict(&self, size: &PlanSize) -> Range {
        let time = dot(&self.weights, &self.row(&features(size)));
        let seconds = |error: f64| (time + error).exp().clamp(0.0, LONGEST);
        let [low, median, high] = self.errors.map(seconds);
        Range { low: Some(low), median, high: Some(high) }
    }

    /// Returns the error for a query of a model that was fitted without it.
    fn error(&self, row: &Row, time: f64, inverse: &[Row; COLUMNS]) -> f64 {
        let leverage: f64 = (0..COLUMNS).map(|index| row[index] * dot(&inverse[index], row)).sum();
        (time - dot(&self.weights, row)) / (1.0 - leverage).max(0.05)
    }

    /// Returns the constant and the standardized features. A feature that is the same in all queries is zero.
    fn row(&self, features: &[f64; FEATURES]) -> Row {
        std::array::from_fn(|column| match column.checked_sub(1) {
            None => 1.0,
            Some(index) if self.deviations[index] < 1e-9 => 0.0,
            Some(index) => (features[index] - self.means[index]) / self.deviations[index],
        })
    }
}

fn features(size: &PlanSize) -> [f64; FEATURES] {
    let logarithm = |number: Option<u64>| (1.0 + number.unwrap_or(0) as f64).ln();
    [
        logarithm(size.table_bytes),
        logarithm(size.table_rows),
        f64::from(size.groups),
        f64::from(size.facts),
        f64::from(size.joins),
    ]
}

/// Returns the matrix of the normal equations. The constant has no penalty.
fn normal_equations(rows: &[Row]) -> [Row; COLUMNS] {
    let mut matrix = [[0.0; COLUMNS]; COLUMNS];
    for row in rows {
        for (line, own) in matrix.iter_mut().zip(row) {
            line.iter_mut().zip(row).for_each(|(cell, other)| *cell += own * other);
        }
    }
    (1..COLUMNS).for_each(|index| matrix[index][index] += RIDGE);
    matrix
}

/// Returns the inverse of a matrix by Gauss-Jordan elimination with pivots; `None` if it has none.
fn inverse(mut matrix: [Row; COLUMNS]) -> Option<[Row; COLUMNS]> {
    let mut inverse: [Row; COLUMNS] =
        std::array::from_fn(|line| std::array::from_fn(|column| f64::from(line == column)));
    for column in 0..COLUMNS {
        let pivot = (column..COLUMNS).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let divisor = matrix[column][column];
        if divisor.abs() < 1e-12 {
            return None;
        }
        matrix[column].iter_mut().chain(&mut inverse[column]).for_each(|cell| *cell /= divisor);
        let (own, own_inverse) = (matrix[column], inverse[column]);
        for line in (0..COLUMNS).filter(|line| *line != column) {
            let factor = matrix[line][column];
            matrix[line].iter_mut().zip(own).for_each(|(cell, own)| *cell -= factor * own);
            inverse[line].iter_mut().zip(own_inverse).for_each(|(cell, own)| *cell -= factor * own);
        }
    }
    Some(inverse)
}

fn dot(one: &Row, other: &Row) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    fn size(bytes: u64, joins: u32) -> PlanSize {
        PlanSize { table_bytes: Some(bytes), table_rows: Some(bytes / 10), facts: 1, joins, ..PlanSize::default() }
    }

    /// Queries whose seconds are a power of the bytes, times a factor for each join, times a repeating error.
    fn queries(count: u64) -> Vec<(PlanSize, f64)> {
        let query = |number: u64| {
            let (bytes, joins) = (1_000 * (1 + number * number), (number % 3) as u32);
            let error = [0.9, 1.0, 1.1, 1.05, 0.95][(number % 5) as usize];
            (size(bytes, joins), 1e-6 * (bytes as f64).powf(0.8) * 1.5_f64.powi(joins as i32) * error)
        };
        (0..count).map(query).collect()
    }

    #[test]
    fn power_laws_are_learned() {
        let model = TimeModel::fit(&queries(200)).unwrap();
        let expected = 1e-6 * 5e6_f64.powf(0.8) * 1.5;
        let predicted = model.predict(&size(5_000_000, 1));
        let ratio = predicted.median / expected;
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
        let (low, high) = (predicted.low.unwrap(), predicted.high.unwrap());
        assert!(low < predicted.median && predicted.median < high && high < 1.3 * low, "{predicted:?}");
    }

    #[test]
    fn ranges_cover_nine_of_ten_queries() {
        let all = queries(300);
        let (fitted, others): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(index, _)| index % 2 == 0);
        let plain = |all: Vec<(usize, (PlanSize, f64))>| all.into_iter().map(|(_, query)| query).collect::<Vec<_>>();
        let (fitted, others) = (plain(fitted), plain(others));
        let model = TimeModel::fit(&fitted).unwrap();
        let covered = others.iter().filter(|(size, seconds)| *seconds <= model.predict(size).high.unwrap()).count();
        let share = covered as f64 / others.len() as f64;
        assert!((0.75..=1.0).contains(&share), "{share}");
    }

    #[test]
    fn few_queries_and_constant_features_are_handled() {
        assert_eq!(TimeModel::fit(&queries(MIN_QUERIES as u64 - 1)), None);
        let same: Vec<_> = (0..40).map(|_| (size(1_000, 0), 2.0)).collect();
        let predicted = TimeModel::fit(&same).unwrap().predict(&size(1_000_000, 7));
        assert!((predicted.median - 2.0).abs() < 1e-6, "{predicted:?}");
    }
}
