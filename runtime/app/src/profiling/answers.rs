//! The warehouse's answers by column and statistic, and the numbers derived from them.
//!
//! In: statistics with the row that answers them. Out: answers to requests: counts, moments, fences, bins. A statistic
//! that was not computed stays empty, and is never estimated.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use terrane_compiler::column_statistics::{Statistic, StatisticsColumn};
use terrane_compiler::types::Value;

use super::statistics::{Wish, below, is_compared, is_number, outside};
use crate::ports::checks::{CheckAggregate, CheckAnswer, CheckRequest};

/// Values, each with the number of rows that have it.
type Frequencies = Vec<(Value, u64)>;

pub(super) struct Answers {
    pub(super) columns: Vec<StatisticsColumn>,
    has_quantiles: bool,
    known: Vec<(Wish<usize>, Value)>,
    /// The frequent values of each column for which they were requested: the column's index, the number of requested
    /// values, and the values that were found.
    top: Vec<(usize, u32, Frequencies)>,
}

impl Answers {
    pub(super) fn new(columns: &[StatisticsColumn], has_quantiles: bool) -> Self {
        Answers { columns: columns.to_vec(), has_quantiles, known: Vec::new(), top: Vec::new() }
    }

    pub(super) fn has_quantiles(&self) -> bool {
        self.has_quantiles
    }

    pub(super) fn is_number(&self, column: usize) -> bool {
        is_number(self.columns[column].ty)
    }

    pub(super) fn is_compared(&self, column: usize) -> bool {
        is_compared(self.columns[column].ty)
    }

    pub(super) fn is_dimension(&self, column: usize) -> bool {
        !self.columns[column].is_measure
    }

    /// Stores the answers to these statistics: one row with a column for each.
    pub(super) fn add(&mut self, wishes: Vec<Wish<usize>>, batches: &[RecordBatch]) {
        let batch = batches.iter().find(|batch| batch.num_rows() > 0);
        for (index, wish) in wishes.into_iter().enumerate() {
            let value =
                batch.and_then(|batch| batch.columns().get(index)).map_or(Value::Null, |column| value(column, 0));
            self.known.push((wish, value));
        }
    }

    /// Stores the most frequent values of a column, each with its number of rows.
    pub(super) fn add_top(&mut self, column: usize, count: u32, batches: &[RecordBatch]) {
        let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
        let found = rows.filter_map(|(batch, row)| {
            let count = natural(&value(batch.columns().get(1)?, row))?;
            Some((value(batch.columns().first()?, row), count))
        });
        self.top.push((column, count, found.collect()));
    }

    fn get(&self, column: Option<usize>, statistic: &Statistic) -> Option<&Value> {
        let found = self.known.iter().find(|((of, known), _)| *of == column && known == statistic);
        found.map(|(_, value)| value).filter(|value| **value != Value::Null)
    }

    pub(super) fn value(&self, column: usize, statistic: &Statistic) -> Option<Value> {
        self.get(Some(column), statistic).cloned()
    }

    pub(super) fn number(&self, column: usize, statistic: &Statistic) -> Option<f64> {
        number(self.get(Some(column), statistic)?)
    }

    pub(super) fn count(&self, column: usize, statistic: &Statistic) -> Option<u64> {
        natural(self.get(Some(column), statistic)?)
    }

    pub(super) fn rows(&self) -> u64 {
        self.get(None, &Statistic::Rows).and_then(natural).unwrap_or(0)
    }

    pub(super) fn nulls(&self, column: usize) -> Option<u64> {
        Some(self.rows().saturating_sub(self.count(column, &Statistic::Values)?))
    }

    /// Returns the standard deviation of the population.
    pub(super) fn deviation(&self, column: usize) -> Option<f64> {
        self.moment(column, 2).map(f64::sqrt)
    }

    /// Returns the third standardised moment; `None` if all values are equal.
    pub(super) fn skewness(&self, column: usize) -> Option<f64> {
        let (second, third) = (self.moment(column, 2)?, self.moment(column, 3)?);
        let skewness = third / second.powf(1.5);
        (second > 0.0 && skewness.is_finite()).then_some(skewness)
    }

    fn moment(&self, column: usize, power: u32) -> Option<f64> {
        let about = self.number(column, &Statistic::Mean)?;
        self.number(column, &Statistic::Moment { about, power })
    }

    pub(super) fn quantile(&self, column: usize, fraction: f64) -> Option<f64> {
        self.number(column, &Statistic::Quantile(fraction))
    }

    /// Returns Q1 − k·IQR and Q3 + k·IQR.
    pub(super) fn fences(&self, column: usize, k: f64) -> Option<(f64, f64)> {
        let (first, third) = (self.quantile(column, 0.25)?, self.quantile(column, 0.75)?);
        let reach = k * (third - first);
        let fences = (first - reach, third + reach);
        (fences.0.is_finite() && fences.1.is_finite()).then_some(fences)
    }

    pub(super) fn outside_fences(&self, column: usize, k: f64) -> Option<u64> {
        let (low, high) = self.fences(column, k)?;
        self.count(column, &outside(low, high))
    }

    /// Returns the edges between bins, ascending; empty if all values are equal.
    pub(super) fn inner_edges(&self, column: usize, bins: u32) -> Vec<f64> {
        let ends = self.number(column, &Statistic::Min).zip(self.number(column, &Statistic::Max));
        let Some((low, high)) = ends.filter(|(low, high)| low < high && self.is_number(column)) else {
            return Vec::new();
        };
        let width = (high - low) / f64::from(bins);
        (1..bins).map(|bin| low + width * f64::from(bin)).filter(|edge| edge.is_finite()).collect()
    }

    /// Returns the edges and counts of bins. The list of edges is longer by one. A value at an edge belongs to the bin
    /// above it; the greatest value belongs to the last bin.
    pub(super) fn histogram(&self, column: usize, bins: u32) -> Option<(Vec<f64>, Vec<u64>)> {
        let (low, high) = (self.number(column, &Statistic::Min)?, self.number(column, &Statistic::Max)?);
        let values = self.count(column, &Statistic::Values)?;
        let inner = self.inner_edges(column, bins);
        let below: Option<Vec<u64>> = inner.iter().map(|edge| self.count(column, &below(*edge))).collect();
        let ends: Vec<u64> = below?.into_iter().chain([values]).collect();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let counts = ends.iter().zip(starts).map(|(end, start)| end.saturating_sub(start)).collect();
        Some((std::iter::once(low).chain(inner).chain([high]).collect(), counts))
    }

    /// Returns the `count` most frequent values.
    pub(super) fn most_frequent(&self, column: usize, count: u32) -> Option<&[(Value, u64)]> {
        let (_, _, values) = self.top.iter().find(|(of, asked, _)| *of == column && *asked >= count)?;
        Some(&values[..values.len().min(count as usize)])
    }

    /// Returns the answer to a request; empty if it was not computed.
    pub(super) fn answer(&self, request: &CheckRequest) -> CheckAnswer {
        let column = request.column;
        let number = |value: Option<f64>| single(value.map(Value::Float));
        let count = |value: Option<u64>| single(value.and_then(|value| i64::try_from(value).ok()).map(Value::Integer));
        match &request.aggregate {
            CheckAggregate::Rows => count(Some(self.rows())),
            CheckAggregate::Nulls => count(self.nulls(column)),
            CheckAggregate::Distinct => count(self.count(column, &Statistic::Distinct)),
            CheckAggregate::ApproxDistinct => count(self.count(column, &Statistic::ApproxDistinct)),
            CheckAggregate::Min => single(self.value(column, &Statistic::Min)),
            CheckAggregate::Max => single(self.value(column, &Statistic::Max)),
            CheckAggregate::Mean => number(self.number(column, &Statistic::Mean)),
            CheckAggregate::Deviation => number(self.deviation(column)),
            CheckAggregate::Skewness => number(self.skewness(column)),
            CheckAggregate::Quantiles(fractions) => {
                let found: Option<Vec<Value>> =
                    fractions.iter().map(|fraction| self.quantile(column, *fraction).map(Value::Float)).collect();
                CheckAnswer { values: found.unwrap_or_default(), counts: Vec::new() }
            }
            CheckAggregate::Histogram(bins) => {
                let (edges, counts) = self.histogram(column, *bins).unwrap_or_default();
                CheckAnswer { values: edges.into_iter().map(Value::Float).collect(), counts }
            }
            CheckAggregate::Top(most) => {
                let (values, counts) = self.most_frequent(column, *most).unwrap_or_default().iter().cloned().unzip();
                CheckAnswer { values, counts }
            }
            CheckAggregate::Where(filter) => count(self.get(None, &Statistic::Where(filter.clone())).and_then(natural)),
            CheckAggregate::Outside(low, high) => count(self.count(column, &outside(*low, *high))),
            CheckAggregate::OutsideFences(k) => count(self.outside_fences(column, *k)),
        }
    }
}

fn single(value: Option<Value>) -> CheckAnswer {
    CheckAnswer { values: value.into_iter().collect(), counts: Vec::new() }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(value) => Some(*value as f64),
        Value::Float(value) => Some(*value).filter(|value| value.is_finite()),
        Value::Decimal(digits) => digits.parse().ok(),
        _ => None,
    }
}

/// Converts a count, which engines return as an integer, a decimal or a double.
fn natural(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(value) => u64::try_from(*value).ok(),
        other => number(other).filter(|value| *value >= 0.0).map(|value| value.round() as u64),
    }
}

/// Converts a cell to a value. A cell of a different type becomes a string, or null.
fn value(column: &ArrayRef, row: usize) -> Value {
    if !column.is_valid(row) {
        return Value::Null;
    }
    let column = column.slice(row, 1);
    let to = |ty: DataType| cast(&column, &ty).ok().filter(|array| array.is_valid(0));
    let found = match column.data_type() {
        DataType::Boolean => column.as_boolean_opt().map(|array| Value::Boolean(array.value(0))),
        ty if ty.is_integer() => {
            to(DataType::Int64).map(|array| Value::Integer(array.as_primitive::<Int64Type>().value(0)))
        }
        ty if ty.is_floating() => {
            to(DataType::Float64).map(|array| Value::Float(array.as_primitive::<Float64Type>().value(0)))
        }
        DataType::Date32 | DataType::Date64 => {
            to(DataType::Date32).map(|array| Value::Date(array.as_primitive::<Date32Type>().value(0)))
        }
        DataType::Timestamp(_, zone) => {
            let is_instant = zone.is_some();
            let array = to(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()));
            let micros = array.map(|array| array.as_primitive::<TimestampMicrosecondType>().value(0));
            micros.map(|micros| if is_instant { Value::TimestampTz(micros) } else { Value::Timestamp(micros) })
        }
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            to(DataType::Utf8).map(|array| Value::Decimal(array.as_string::<i32>().value(0).into()))
        }
        _ => to(DataType::Utf8).map(|array| Value::Text(Arc::from(array.as_string::<i32>().value(0)))),
    };
    found.unwrap_or(Value::Null)
}
