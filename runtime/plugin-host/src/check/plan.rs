//! Checks the plan of a check component.
//!
//! In: the contract's plan, untrusted. Out: requests whose indexes, sizes and numbers are in range.

use terrane_app::ports::checks::{CheckAggregate, CheckRequest, ProfiledColumn};
use terrane_app::ports::plugins::PluginFault;
use terrane_compiler::query::Filter;

use super::predicate;
use crate::bindings::check::exports::terrane::profiling::check as wire;
use crate::plugin::Grants;

pub(super) const CALL: &str = "make-plan";

const MAX_REQUESTS: usize = 4_096;
/// The largest average number of requests per column in a plan.
const MAX_REQUESTS_PER_COLUMN: usize = 64;
const MAX_QUANTILES: usize = 100;
const MAX_BINS: u32 = 1_000;
/// The largest sum of bins, quantiles and values over all requests of a plan.
const MAX_NUMBERS: usize = 10_000;
/// The largest sum of nodes and values over the conditions of all requests. A condition that several requests use
/// counts once for each of these requests.
const MAX_TERMS: usize = 65_536;

pub(super) fn fault(message: impl Into<String>) -> PluginFault {
    PluginFault::Answer { call: CALL, message: message.into() }
}

pub(crate) fn checked(
    plan: wire::Plan,
    columns: &[ProfiledColumn],
    grants: Grants,
) -> Result<Vec<CheckRequest>, PluginFault> {
    let most = MAX_REQUESTS.min(columns.len() * MAX_REQUESTS_PER_COLUMN);
    if plan.requests.len() > most {
        return Err(fault(format!(
            "{} requests for {} columns, the limit is {most}",
            plan.requests.len(),
            columns.len()
        )));
    }
    let conditions = predicate::conditions(&plan.predicates, columns)?;
    let mut total = Total::default();
    let requests = plan.requests.into_iter().enumerate();
    requests
        .map(|(index, request)| {
            let column = request.column as usize;
            if column >= columns.len() {
                return Err(fault(format!("request {index} refers to column {column} of {}", columns.len())));
            }
            let aggregate = aggregate(request.agg, &conditions, grants)
                .map_err(|reason| fault(format!("request {index} {reason}")))?;
            total.add(&aggregate)?;
            Ok(CheckRequest { column, aggregate })
        })
        .collect()
}

/// The sums of sizes over the requests of one plan.
#[derive(Default)]
struct Total {
    numbers: usize,
    sandbox: usize,
}

impl Total {
    fn add(&mut self, aggregate: &CheckAggregate) -> Result<(), PluginFault> {
        match aggregate {
            CheckAggregate::Quantiles(fractions) => self.numbers += fractions.len(),
            CheckAggregate::Histogram(count) | CheckAggregate::Top(count) => self.numbers += *count as usize,
            CheckAggregate::Where(condition) => self.sandbox += predicate::size(condition),
            CheckAggregate::Rows
            | CheckAggregate::Nulls
            | CheckAggregate::Distinct
            | CheckAggregate::ApproxDistinct
            | CheckAggregate::Min
            | CheckAggregate::Max
            | CheckAggregate::Mean
            | CheckAggregate::Deviation
            | CheckAggregate::Skewness
            | CheckAggregate::Outside(..)
            | CheckAggregate::OutsideFences(_) => {}
        }
        if self.numbers > MAX_NUMBERS {
            return Err(fault(format!(
                "the bins, quantiles and values of the requests are more than {MAX_NUMBERS} together"
            )));
        }
        if self.sandbox > MAX_TERMS {
            return Err(fault(format!(
                "the conditions of the requests expand to more than {MAX_TERMS} nodes and values together"
            )));
        }
        Ok(())
    }
}

fn aggregate(wish: wire::Aggregate, conditions: &[Filter], grants: Grants) -> Result<CheckAggregate, String> {
    Ok(match wish {
        wire::Aggregate::RowCount => CheckAggregate::Rows,
        wire::Aggregate::NullCount => CheckAggregate::Nulls,
        wire::Aggregate::DistinctCount => CheckAggregate::Distinct,
        wire::Aggregate::ApproxDistinct => CheckAggregate::ApproxDistinct,
        wire::Aggregate::Min => CheckAggregate::Min,
        wire::Aggregate::Max => CheckAggregate::Max,
        wire::Aggregate::Mean => CheckAggregate::Mean,
        wire::Aggregate::Stddev => CheckAggregate::Deviation,
        wire::Aggregate::Skewness => CheckAggregate::Skewness,
        wire::Aggregate::Quantiles(fractions) => CheckAggregate::Quantiles(quantiles(fractions)?),
        wire::Aggregate::Histogram(bins) => CheckAggregate::Histogram(size("bins", bins)?),
        wire::Aggregate::TopK(count) => CheckAggregate::Top(size("values", count)?),
        wire::Aggregate::CountWhere(root) => {
            let condition = conditions.get(root as usize);
            CheckAggregate::Where(
                condition.cloned().ok_or(format!("refers to condition {root}, which does not exist"))?,
            )
        }
        wire::Aggregate::CountOutside((low, high)) if low <= high && low.is_finite() && high.is_finite() => {
            CheckAggregate::Outside(low, high)
        }
        wire::Aggregate::CountOutside((low, high)) => return Err(format!("has the invalid range {low} to {high}")),
        wire::Aggregate::CountOutsideFences(k) if k.is_finite() && k >= 0.0 => CheckAggregate::OutsideFences(k),
        wire::Aggregate::CountOutsideFences(k) => return Err(format!("has fences with the invalid width {k}")),
        wire::Aggregate::Sample(_) if !grants.sample_rows => {
            return Err("requests values of rows without the grant `sample-rows`".to_owned());
        }
        wire::Aggregate::Sample(_) => {
            return Err("requests values of rows, which this host does not provide".to_owned());
        }
    })
}

fn quantiles(fractions: Vec<f64>) -> Result<Vec<f64>, String> {
    let is_ordered = fractions.windows(2).all(|pair| pair[0] < pair[1]);
    let is_inside = fractions.iter().all(|fraction| (0.0..=1.0).contains(fraction));
    if fractions.is_empty() || fractions.len() > MAX_QUANTILES || !is_ordered || !is_inside {
        return Err(format!("has quantiles that are not 1 to {MAX_QUANTILES} ascending fractions from 0 to 1"));
    }
    Ok(fractions)
}

fn size(what: &str, count: u32) -> Result<u32, String> {
    if (1..=MAX_BINS).contains(&count) { Ok(count) } else { Err(format!("has {count} {what}, not 1 to {MAX_BINS}")) }
}

#[cfg(test)]
mod tests;
