//! Calls of aggregate functions.
//!
//! In: an aggregate of the plan and the expression that it aggregates. Out: the call in the templates that the dialect
//! has. Not here: the argument and the conditions of an aggregate (`expression`).

use super::ast::SqlExpr;
use super::dialect_profile::{DialectProfile, Op};
use crate::model::{Aggregate, AggregateFunction};
use crate::plan::{ArgumentForm, PlannedAggregate};
use crate::snippet::{Precision, Spread};
use crate::types::LogicalType;

/// Named functions of dialects, each with one argument; `percentile_approx` has a share as its second one, and
/// `percentile_of_ranks` has a value, its rank from 1, the number of values, and a share.
const VARIANCE: &str = "var_pop";
const SAMPLE_DEVIATION: &str = "stddev_samp";
const SAMPLE_VARIANCE: &str = "var_samp";
const APPROXIMATE_PERCENTILE: &str = "percentile_approx";
pub(super) const RANKED_PERCENTILE: &str = "percentile_of_ranks";

/// The aggregate templates of a dialect that have a substitute in other dialects.
#[derive(Debug, Clone, Copy)]
pub(super) struct AggregateTemplates {
    has_variance: bool,
    has_percentile: bool,
    has_approximate: bool,
    has_ranked: bool,
}

impl AggregateTemplates {
    pub(super) fn of(profile: &DialectProfile) -> AggregateTemplates {
        AggregateTemplates {
            has_variance: profile.function(VARIANCE, 1, None).is_some(),
            has_percentile: profile.op(Op::Percentile, 2, None).is_some(),
            has_approximate: profile.function(APPROXIMATE_PERCENTILE, 2, None).is_some(),
            has_ranked: profile.function(RANKED_PERCENTILE, 4, None).is_some(),
        }
    }

    /// Returns whether an aggregate is a percentile that the dialect computes from the ranks of its values.
    pub(super) fn needs_ranks(self, planned: &PlannedAggregate<'_>) -> bool {
        let is_approximated = match (&planned.shape, planned.aggregate.function) {
            (ArgumentForm::Quantile { .. }, _) | (_, AggregateFunction::Percentile(_, Precision::Exact)) => false,
            (_, AggregateFunction::Percentile(_, Precision::Approximate)) => self.has_approximate,
            _ => return false,
        };
        self.has_ranked && !self.has_percentile && !is_approximated
    }

    /// Returns a percentile over the columns of a value, its rank and the number of values.
    pub(super) fn of_ranks<'a>(self, planned: &'a PlannedAggregate<'_>, columns: [SqlExpr<'a>; 3]) -> SqlExpr<'a> {
        let share = match (&planned.shape, planned.aggregate.function) {
            (ArgumentForm::Quantile { fraction }, _) => digits(fraction),
            (_, AggregateFunction::Percentile(fraction, _)) => SqlExpr::Fraction(fraction),
            _ => SqlExpr::Null(None),
        };
        SqlExpr::Call { name: RANKED_PERCENTILE, args: columns.into_iter().chain([share]).collect() }
    }

    /// Returns the call of an aggregate function over an argument, or over rows.
    pub(super) fn call<'a>(self, planned: &'a PlannedAggregate<'_>, argument: Option<SqlExpr<'a>>) -> SqlExpr<'a> {
        let aggregate = planned.aggregate;
        let op = op_of(aggregate.function);
        let ty = Some(aggregate.argument_type).filter(|ty| *ty != LogicalType::Unknown);
        if let (ArgumentForm::Quantile { fraction }, Some(argument)) = (&planned.shape, argument.clone()) {
            return SqlExpr::Op { op: Op::Percentile, ty: None, args: vec![argument, digits(fraction)] };
        }
        let args: Vec<SqlExpr<'a>> = argument.into_iter().collect();
        match aggregate.function {
            AggregateFunction::Percentile(fraction, precision) => {
                let args = args.into_iter().chain([SqlExpr::Fraction(fraction)]).collect();
                match precision == Precision::Exact || self.has_percentile {
                    true => SqlExpr::Op { op, ty: None, args },
                    false => SqlExpr::Call { name: APPROXIMATE_PERCENTILE, args },
                }
            }
            AggregateFunction::StdDev(Spread::Population) => SqlExpr::op(op, args),
            AggregateFunction::StdDev(Spread::Sample) => SqlExpr::Call { name: SAMPLE_DEVIATION, args },
            AggregateFunction::Variance(Spread::Sample) => SqlExpr::Call { name: SAMPLE_VARIANCE, args },
            AggregateFunction::Variance(Spread::Population) if self.has_variance => {
                SqlExpr::Call { name: VARIANCE, args }
            }
            AggregateFunction::Variance(Spread::Population) => {
                let deviation = SqlExpr::op(op, args);
                SqlExpr::op(Op::Mul, vec![deviation.clone(), deviation])
            }
            _ => SqlExpr::Op { op, ty, args },
        }
    }
}

/// Returns the share of a quantile, whose text has only digits and a decimal point.
fn digits(fraction: &str) -> SqlExpr<'_> {
    SqlExpr::Sequence { parts: vec![SqlExpr::Text(fraction)], is_atomic: true }
}

/// Returns the operator of an aggregate function.
pub(super) fn op_of(function: AggregateFunction) -> Op {
    match function {
        AggregateFunction::Count => Op::Count,
        AggregateFunction::CountDistinct => Op::CountDistinct,
        AggregateFunction::CountDistinctApprox => Op::ApproxDistinct,
        AggregateFunction::Sum => Op::Sum,
        AggregateFunction::Avg => Op::Avg,
        AggregateFunction::Min => Op::Min,
        AggregateFunction::Max => Op::Max,
        AggregateFunction::Percentile(..) => Op::Percentile,
        AggregateFunction::StdDev(_) | AggregateFunction::Variance(_) => Op::StdDev,
    }
}

/// Returns whether the template of a function is a single call in every dialect, which a FILTER clause may follow.
pub(super) fn is_single_call(function: AggregateFunction) -> bool {
    use AggregateFunction::{Percentile, StdDev, Variance};
    !matches!(function, StdDev(_) | Variance(_) | Percentile(_, Precision::Approximate))
}

/// Returns the name of the template that the dialect lacks for an aggregate; `None` if it can compute the aggregate.
pub(super) fn missing_template(aggregate: &Aggregate, profile: &DialectProfile) -> Option<&'static str> {
    use AggregateFunction::{Count, Percentile, StdDev, Variance};
    let op = op_of(aggregate.function);
    let ty = Some(aggregate.argument_type).filter(|ty| *ty != LogicalType::Unknown);
    let has = |name, arity| profile.function(name, arity, None).is_some();
    let (name, is_present) = match aggregate.function {
        // Every dialect counts rows.
        Count => return None,
        Percentile(_, Precision::Approximate) if has(APPROXIMATE_PERCENTILE, 2) => return None,
        Percentile(..) if has(RANKED_PERCENTILE, 4) => return None,
        Percentile(..) => (op.name(), profile.op(op, 2, None).is_some()),
        StdDev(Spread::Sample) => (SAMPLE_DEVIATION, has(SAMPLE_DEVIATION, 1)),
        Variance(Spread::Sample) => (SAMPLE_VARIANCE, has(SAMPLE_VARIANCE, 1)),
        Variance(Spread::Population) if has(VARIANCE, 1) => return None,
        StdDev(Spread::Population) | Variance(Spread::Population) => (op.name(), profile.op(op, 1, None).is_some()),
        _ => (op.name(), profile.op(op, usize::from(aggregate.argument.is_some()), ty).is_some()),
    };
    (!is_present).then_some(name)
}

/// Returns whether the dialect interpolates percentiles exactly.
pub(crate) fn interpolates_percentiles(profile: &DialectProfile) -> bool {
    profile.op(Op::Percentile, 2, None).is_some() || profile.function(RANKED_PERCENTILE, 4, None).is_some()
}

/// Returns whether the dialect approximates percentiles and cannot compute them exactly.
pub(super) fn approximates_percentiles(profile: &DialectProfile) -> bool {
    !interpolates_percentiles(profile) && profile.function(APPROXIMATE_PERCENTILE, 2, None).is_some()
}
