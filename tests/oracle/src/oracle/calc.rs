//! Computes values from finished aggregates.
//!
//! In: measures and metrics. Out: the aggregates that they need, and their values once the aggregates are known.

use terrane_compiler::query::Filter;

use super::facts::{Facts, Windows};
use super::filters::RowFilter;
use super::names::Named;
use super::{Code, Evaluation, operators};
use crate::value::{Number, Value};
use crate::world::{Aggregate, Arithmetic, Formula, Function, MeasureKind, MetricKind, NINTH, Window};

/// A needed aggregate over the rows of one cube, with the filters of the metrics that use it.
pub(crate) struct Wanted<'w> {
    pub(crate) cube: String,
    pub(crate) aggregate: &'w Aggregate,
    pub(crate) filters: Vec<RowFilter>,
}

/// The computation of a value from aggregates.
#[derive(Debug, Clone)]
pub(crate) enum Calc {
    Aggregate(usize),
    Constant(i64),
    Binary(Arithmetic, Box<Calc>, Box<Calc>),
    Divide(Box<Calc>, Box<Calc>),
    Coalesce(Box<Calc>, i64),
    /// An unknown name, whose problem is already recorded.
    Nothing,
}

pub(crate) struct Calculation<'r, 'w> {
    evaluation: &'r Evaluation<'w>,
    pub(crate) wanted: Vec<Wanted<'w>>,
    /// The indexes of the aggregates of running totals.
    pub(crate) running: Vec<usize>,
    /// The indexes of the running totals that include the time before the range.
    pub(crate) with_history: Vec<usize>,
    /// The indexes of the aggregates over rolling windows, each with its window.
    pub(crate) rolling: Vec<(usize, &'w Window)>,
}

impl<'r, 'w> Calculation<'r, 'w> {
    pub(crate) fn new(evaluation: &'r Evaluation<'w>) -> Self {
        Calculation {
            evaluation,
            wanted: Vec::new(),
            running: Vec::new(),
            with_history: Vec::new(),
            rolling: Vec::new(),
        }
    }

    /// Returns the cubes of all aggregates so far, each once.
    pub(crate) fn facts(&self) -> Vec<String> {
        let mut facts: Vec<String> = Vec::new();
        for wanted in &self.wanted {
            if !facts.contains(&wanted.cube) {
                facts.push(wanted.cube.clone());
            }
        }
        facts
    }

    pub(crate) fn value(&mut self, named: &Named) -> Calc {
        self.named(named, &[])
    }

    fn named(&mut self, named: &Named, around: &[RowFilter]) -> Calc {
        match named {
            Named::Measure { cube, name } => self.measure(cube, name, around),
            Named::Metric(name) => self.metric(name, around),
            _ => Calc::Nothing,
        }
    }

    fn measure(&mut self, cube: &str, name: &str, around: &[RowFilter]) -> Calc {
        if self.evaluation.world.is_denied(cube, name) {
            self.depends_on_denied();
        }
        match self.evaluation.world.behind(cube).and_then(|of| of.measure(name)).map(|measure| &measure.kind) {
            Some(MeasureKind::Aggregate(aggregate)) => self.aggregate(cube, aggregate, around),
            Some(MeasureKind::RunningTotal(aggregate)) => {
                let total = self.aggregate(cube, aggregate, around);
                self.running.push(self.wanted.len() - 1);
                total
            }
            Some(MeasureKind::RunningTotalOfAll(aggregate)) => {
                let total = self.aggregate(cube, aggregate, around);
                self.running.push(self.wanted.len() - 1);
                self.with_history.push(self.wanted.len() - 1);
                total
            }
            Some(MeasureKind::Rolling(aggregate, window)) => {
                let value = self.aggregate(cube, aggregate, around);
                self.rolling.push((self.wanted.len() - 1, window));
                value
            }
            Some(MeasureKind::Number(formula)) => self.formula(formula, Some(cube), around),
            None => {
                self.evaluation.refuse(Code::InvalidMeasure);
                Calc::Nothing
            }
        }
    }

    fn metric(&mut self, name: &str, around: &[RowFilter]) -> Calc {
        let Some(metric) = self.evaluation.world.metrics.iter().find(|metric| metric.name == name) else {
            self.evaluation.refuse(Code::InvalidQuery);
            return Calc::Nothing;
        };
        let own = metric.filters.iter().filter_map(operators::from_json).map(|filter| {
            self.note_denied(&filter);
            RowFilter::new(self.evaluation, &filter)
        });
        let around: Vec<RowFilter> = around.iter().cloned().chain(own).collect();
        match &metric.kind {
            MetricKind::Simple(formula) | MetricKind::Derived(formula) => self.formula(formula, None, &around),
            MetricKind::Ratio(numerator, denominator) => Calc::Divide(
                Box::new(self.formula(numerator, None, &around)),
                Box::new(self.formula(denominator, None, &around)),
            ),
        }
    }

    /// Reports denied members in a filter of the query. Filters in the project's files may name them.
    fn note_denied(&self, filter: &Filter) {
        if let Filter::Condition { member, .. } = filter
            && member.cube().is_some_and(|cube| self.evaluation.world.is_denied(cube, member.member()))
        {
            self.depends_on_denied();
        }
    }

    /// Refuses a value that depends on a denied member. The name is unknown, and the error depends on similar names, or
    /// its columns are closed.
    fn depends_on_denied(&self) {
        for code in [Code::InvalidQuery, Code::InvalidMeasure, Code::InvalidDimension, Code::Forbidden] {
            self.evaluation.refuse(code);
        }
    }

    fn aggregate(&mut self, cube: &str, aggregate: &'w Aggregate, around: &[RowFilter]) -> Calc {
        let mut read = aggregate.argument.iter().chain(&aggregate.filters);
        if read.clone().any(|sql| self.evaluation.world.reads_denied(cube, sql)) {
            self.depends_on_denied();
        } else if read.any(|sql| self.evaluation.world.is_covered(cube, sql, true)) {
            self.evaluation.refuse(Code::Forbidden);
        }
        self.wanted.push(Wanted { cube: cube.to_owned(), aggregate, filters: around.to_vec() });
        Calc::Aggregate(self.wanted.len() - 1)
    }

    fn formula(&mut self, formula: &'w Formula, own: Option<&str>, around: &[RowFilter]) -> Calc {
        match formula {
            Formula::Measure { cube, name } => match cube.as_deref().or(own) {
                Some(cube) => self.measure(cube, name, around),
                None => Calc::Nothing,
            },
            Formula::Metric(name) => self.metric(name, around),
            Formula::Aggregate(aggregate) => match own {
                Some(own) => self.aggregate(own, aggregate, around),
                None => Calc::Nothing,
            },
            Formula::Constant(value) => Calc::Constant(*value),
            Formula::Binary(op, left, right) => {
                Calc::Binary(*op, Box::new(self.formula(left, own, around)), Box::new(self.formula(right, own, around)))
            }
            Formula::Divide(left, right) => {
                Calc::Divide(Box::new(self.formula(left, own, around)), Box::new(self.formula(right, own, around)))
            }
            Formula::Coalesce(inner, value) => Calc::Coalesce(Box::new(self.formula(inner, own, around)), *value),
        }
    }

    /// Returns whether a value is computed along the query's time.
    pub(crate) fn runs(&self) -> bool {
        !self.running.is_empty() || !self.rolling.is_empty()
    }

    /// Returns every aggregate in one group. If a cube lacks the group, its aggregates are computed over no rows.
    pub(crate) fn aggregates(&self, key: &[Value], facts: &Facts, history: &Facts, windows: &Windows) -> Vec<Value> {
        let of = |(index, wanted): (usize, &Wanted<'_>)| {
            if self.rolling.iter().any(|(rolling, _)| *rolling == index) {
                let inputs = windows.inputs(index, key);
                return inputs.map_or(Value::Null, |inputs| aggregate(wanted.aggregate.function, inputs));
            }
            let rows = |facts: &'_ Facts| facts.get(&wanted.cube).and_then(|fact| fact.groups.get(key)).cloned();
            let before = rows(history).filter(|_| self.with_history.contains(&index));
            let all = rows(facts).into_iter().chain(before).flatten();
            let inputs = all.filter_map(|row| row.inputs[index].clone());
            aggregate(wanted.aggregate.function, inputs.collect())
        };
        self.wanted.iter().enumerate().map(of).collect()
    }

    /// Returns whether an aggregate is computed from squares, whose sum depends on the order of the rows.
    pub(crate) fn has_deviation(&self) -> bool {
        self.wanted.iter().any(|wanted| wanted.aggregate.function.is_deviation())
    }

    pub(crate) fn is_approximate(&self, calc: &Calc) -> bool {
        match calc {
            Calc::Aggregate(index) => self.wanted[*index].aggregate.function == Function::CountDistinctApprox,
            Calc::Binary(_, left, right) | Calc::Divide(left, right) => {
                self.is_approximate(left) || self.is_approximate(right)
            }
            Calc::Coalesce(inner, _) => self.is_approximate(inner),
            Calc::Constant(_) | Calc::Nothing => false,
        }
    }
}

impl Calc {
    pub(crate) fn of(&self, aggregates: &[Value]) -> Value {
        let number = |calc: &Calc| match calc.of(aggregates) {
            Value::Number(number) => Some(number),
            _ => None,
        };
        match self {
            Calc::Aggregate(index) => aggregates[*index].clone(),
            Calc::Constant(value) => Value::int(i128::from(*value)),
            Calc::Binary(op, left, right) => match (number(left), number(right)) {
                (Some(left), Some(right)) => Value::Number(op.apply(left, right)),
                _ => Value::Null,
            },
            Calc::Divide(left, right) => match (number(left), number(right)) {
                (Some(left), Some(right)) => left.divide(right).map_or(Value::Null, Value::Number),
                _ => Value::Null,
            },
            Calc::Coalesce(inner, value) => match inner.of(aggregates) {
                Value::Null => Value::int(i128::from(*value)),
                value => value,
            },
            Calc::Nothing => Value::Null,
        }
    }
}

/// Aggregates values. `inputs` has one value for each row.
fn aggregate(function: Function, inputs: Vec<Value>) -> Value {
    let mut present: Vec<Value> = inputs.into_iter().filter(|value| !value.is_null()).collect();
    let sum = |values: &[Value]| {
        values.iter().fold(None, |sum: Option<Number>, value| match value {
            Value::Number(number) => Some(sum.map_or(*number, |sum| sum.plus(*number))),
            _ => sum,
        })
    };
    match function {
        Function::Count => Value::int(present.len() as i128),
        Function::CountDistinct | Function::CountDistinctApprox => {
            present.sort();
            present.dedup();
            Value::int(present.len() as i128)
        }
        Function::Sum => sum(&present).map_or(Value::Null, Value::Number),
        Function::Avg => {
            sum(&present).map_or(Value::Null, |sum| Value::Number(Number::Double(sum.as_f64() / present.len() as f64)))
        }
        Function::Min => present.into_iter().min().unwrap_or(Value::Null),
        Function::Max => present.into_iter().max().unwrap_or(Value::Null),
        Function::Median => percentile(&present, 0.5),
        Function::Percentile => percentile(&present, NINTH),
        Function::StdDev => double(variance(&present, 0).map(f64::sqrt)),
        Function::Variance => double(variance(&present, 0)),
        Function::SampleStdDev => double(variance(&present, 1).map(f64::sqrt)),
        Function::SampleVariance => double(variance(&present, 1)),
    }
}

fn doubles(values: &[Value]) -> Vec<f64> {
    let number = |value: &Value| match value {
        Value::Number(number) => Some(number.as_f64()),
        _ => None,
    };
    values.iter().filter_map(number).collect()
}

/// Returns the value at a fraction of the sorted values, interpolated linearly between its two neighbors.
fn percentile(values: &[Value], fraction: f64) -> Value {
    let mut sorted = doubles(values);
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return Value::Null };
    let place = last as f64 * fraction;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Value::Number(Number::Double(below + (above - below) * place.fract()))
}

fn double(value: Option<f64>) -> Value {
    value.map_or(Value::Null, |value| Value::Number(Number::Double(value)))
}

/// Returns the sum of the squared distances from the mean, divided by the number of values less `missing`. `None` if
/// this number is not positive.
fn variance(values: &[Value], missing: usize) -> Option<f64> {
    let values = doubles(values);
    let divisor = values.len().checked_sub(missing).filter(|divisor| *divisor > 0)? as f64;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / divisor)
}
