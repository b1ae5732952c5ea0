//! Calls of aggregate functions in an author's SQL.
//!
//! In: a function call of the tree. Out: a hidden [`Aggregate`] over the current cube if the expression is a `number`
//! measure, otherwise an error. Not here: aggregations by a measure's `type` (`build`).

use crate::diagnostic::Code;
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart,
};

use super::grammar::Problem;
use super::{AggregateFunction, Fraction, Precision, Spread};

/// The parts of a hidden aggregate, before its argument is read.
pub(crate) struct Call {
    pub(crate) function: AggregateFunction,
    pub(crate) argument: Option<Expr>,
    pub(crate) filter: Option<Expr>,
}

/// The aggregate functions of the supported warehouses.
const AGGREGATES: &[&str] = &[
    "any_value",
    "approx_count_distinct",
    "approx_quantile",
    "arbitrary",
    "arg_max",
    "arg_min",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "count_if",
    "countif",
    "covar_pop",
    "covar_samp",
    "entropy",
    "every",
    "group_concat",
    "histogram",
    "json_agg",
    "json_group_array",
    "json_object_agg",
    "jsonb_agg",
    "kurtosis",
    "listagg",
    "mad",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "product",
    "quantile",
    "quantile_cont",
    "quantile_disc",
    "skewness",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "sum_if",
    "sumif",
    "total",
    "var_pop",
    "var_samp",
    "variance",
];

pub fn is_aggregate(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    AGGREGATES.binary_search(&lower.as_str()).is_ok()
}

/// Returns the name of a called function; `None` if it is qualified.
pub(crate) fn name(function: &Function) -> Option<&str> {
    match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => Some(&ident.value),
        _ => None,
    }
}

/// Splits a call into its parts. The problem names the part that a `number` measure does not support.
pub(crate) fn call(function: &mut Function) -> Result<Call, Problem> {
    let name = name(function).unwrap_or_default().to_ascii_uppercase();
    let unsupported = |what: &str| {
        let hint = "Use SUM, COUNT, COUNT(DISTINCT …), APPROX_COUNT_DISTINCT, AVG, MIN, MAX, MEDIAN, STDDEV_POP, STDDEV_SAMP, VAR_POP \
             or VAR_SAMP with one argument.";
        Problem::new(Code::UnsupportedAggregate, format!("{what} cannot be used in a number measure"), hint)
    };
    if function.over.is_some() {
        return Err(unsupported(&format!("the window over {name}")));
    }
    if matches!(name.as_str(), "PERCENTILE_CONT" | "PERCENTILE_DISC" | "QUANTILE_CONT" | "QUANTILE") {
        let hint =
            "Write a measure with `type: percentile` and `percentile: 0.95`, and use it in the number as `{measure}`.";
        let message = format!("{name} cannot be used in a number measure");
        return Err(Problem::new(Code::UnsupportedAggregate, message, hint));
    }
    if !function.within_group.is_empty() || function.null_treatment.is_some() {
        return Err(unsupported(&format!("{name} with an order")));
    }
    let FunctionArguments::List(list) = &mut function.args else {
        return Err(unsupported(&format!("{name} without brackets")));
    };
    let is_distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
    let aggregate = match (name.as_str(), is_distinct) {
        ("COUNT", false) => AggregateFunction::Count,
        ("COUNT", true) => AggregateFunction::CountDistinct,
        ("APPROX_COUNT_DISTINCT", false) => AggregateFunction::CountDistinctApprox,
        ("SUM", false) => AggregateFunction::Sum,
        ("AVG" | "MEAN", false) => AggregateFunction::Avg,
        ("MIN", _) => AggregateFunction::Min,
        ("MAX", _) => AggregateFunction::Max,
        ("MEDIAN", false) => AggregateFunction::Percentile(Fraction::HALF, Precision::Exact),
        ("STDDEV_POP", false) => AggregateFunction::StdDev(Spread::Population),
        ("STDDEV_SAMP", false) => AggregateFunction::StdDev(Spread::Sample),
        ("VAR_POP", false) => AggregateFunction::Variance(Spread::Population),
        ("VAR_SAMP", false) => AggregateFunction::Variance(Spread::Sample),
        (name, true) => return Err(unsupported(&format!("{name}(DISTINCT …)"))),
        (name, false) => return Err(unsupported(name)),
    };
    if !list.clauses.is_empty() {
        return Err(unsupported(&format!("{name} with an order or a limit")));
    }
    let argument = match list.args.as_mut_slice() {
        [] | [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if aggregate == AggregateFunction::Count => None,
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => {
            Some(std::mem::replace(argument, Expr::Tuple(Vec::new())))
        }
        _ => return Err(unsupported(&format!("{name} with such arguments"))),
    };
    Ok(Call { function: aggregate, argument, filter: function.filter.take().map(|filter| *filter) })
}

#[cfg(test)]
mod tests {
    #[test]
    fn aggregates_are_sorted() {
        assert!(super::AGGREGATES.is_sorted());
    }
}
