//! Collects the statistics that requests need, and distributes them over statements.
//!
//! In: requests of the profile and of all checks. Out: statistics of columns, each once: first the statistics that can
//! be computed directly, then the statistics that depend on their results. If a statistic does not fit the type of a
//! column, it is left out and not computed.

use terrane_compiler::column_statistics::Statistic;
use terrane_compiler::query::{Bound, Filter, Test};
use terrane_compiler::types::{LogicalType, Value};

use super::answers::Answers;
use crate::ports::checks::{CheckAggregate, CheckRequest};

/// The largest number of columns in one statement. Every engine accepts this many.
const MAX_COLUMNS: usize = 100;
/// The largest number of bound values in one statement.
const MAX_VALUES: usize = 400;

/// A statistic of a column, or of the rows if the column is `None`.
pub(super) type Wish<C> = (Option<C>, Statistic);

/// Returns the statistics that do not depend on the results of others.
pub(super) fn plain<'r>(answers: &Answers, requests: impl Iterator<Item = &'r CheckRequest>) -> Vec<Wish<usize>> {
    let mut wishes = vec![(None, Statistic::Rows)];
    for request in requests {
        let column = request.column;
        let mut add = |statistic| push(&mut wishes, (Some(column), statistic));
        let (is_number, is_compared) = (answers.is_number(column), answers.is_compared(column));
        match &request.aggregate {
            CheckAggregate::Rows => {}
            CheckAggregate::Where(filter) => push(&mut wishes, (None, Statistic::Where(filter.clone()))),
            CheckAggregate::Nulls => add(Statistic::Values),
            CheckAggregate::Distinct if is_compared => add(Statistic::Distinct),
            CheckAggregate::ApproxDistinct if is_compared => add(Statistic::ApproxDistinct),
            CheckAggregate::Min if is_compared => add(Statistic::Min),
            CheckAggregate::Max if is_compared => add(Statistic::Max),
            CheckAggregate::Mean | CheckAggregate::Deviation | CheckAggregate::Skewness if is_number => {
                add(Statistic::Mean);
            }
            CheckAggregate::Quantiles(fractions) if is_number && answers.has_quantiles() => {
                fractions.iter().for_each(|fraction| add(Statistic::Quantile(*fraction)));
            }
            CheckAggregate::OutsideFences(_) if is_number && answers.has_quantiles() => {
                [0.25, 0.75].into_iter().for_each(|fraction| add(Statistic::Quantile(fraction)));
            }
            CheckAggregate::Histogram(_) if is_number => {
                [Statistic::Min, Statistic::Max, Statistic::Values].into_iter().for_each(&mut add);
            }
            CheckAggregate::Outside(low, high) if is_number => add(outside(*low, *high)),
            _ => {}
        }
    }
    wishes
}

/// Returns the statistics that depend on the results of [`plain`].
pub(super) fn following<'r>(answers: &Answers, requests: impl Iterator<Item = &'r CheckRequest>) -> Vec<Wish<usize>> {
    let mut wishes = Vec::new();
    for request in requests {
        let column = request.column;
        let mut add = |statistic| push(&mut wishes, (Some(column), statistic));
        match &request.aggregate {
            CheckAggregate::Deviation | CheckAggregate::Skewness => {
                if let Some(about) = answers.number(column, &Statistic::Mean) {
                    add(Statistic::Moment { about, power: 2 });
                    add(Statistic::Moment { about, power: 3 });
                }
            }
            CheckAggregate::OutsideFences(k) => {
                if let Some((low, high)) = answers.fences(column, *k) {
                    add(outside(low, high));
                }
            }
            CheckAggregate::Histogram(bins) => {
                answers.inner_edges(column, *bins).into_iter().for_each(|edge| add(below(edge)));
            }
            _ => {}
        }
    }
    wishes
}

/// Returns the dimensions whose most frequent values are requested, each once, with the largest requested number.
pub(super) fn most_frequent<'r>(
    answers: &Answers,
    requests: impl Iterator<Item = &'r CheckRequest>,
) -> Vec<(usize, u32)> {
    let mut wishes: Vec<(usize, u32)> = Vec::new();
    for request in requests {
        let CheckAggregate::Top(count) = request.aggregate else { continue };
        if !answers.is_dimension(request.column) || !answers.is_compared(request.column) {
            continue;
        }
        match wishes.iter_mut().find(|(column, _)| *column == request.column) {
            Some((_, most)) => *most = (*most).max(count),
            None => wishes.push((request.column, count)),
        }
    }
    wishes
}

fn push(wishes: &mut Vec<Wish<usize>>, wish: Wish<usize>) {
    if !wishes.contains(&wish) {
        wishes.push(wish);
    }
}

/// Returns the statistic that counts values below an edge.
pub(super) fn below(edge: f64) -> Statistic {
    let high = Some(Bound { value: Value::Float(edge), inclusive: false });
    Statistic::Passing(Test::Range { low: None, high })
}

/// Returns the statistic that counts values below `low` or above `high`.
pub(super) fn outside(low: f64, high: f64) -> Statistic {
    let bound = |value| Some(Bound { value: Value::Float(value), inclusive: false });
    let (below, above) = (Test::Range { low: None, high: bound(low) }, Test::Range { low: bound(high), high: None });
    Statistic::Passing(Test::AnyOf(vec![below, above]))
}

/// Divides statistics into statements of bounded size.
pub(super) fn split<C>(wishes: Vec<Wish<C>>) -> Vec<Vec<Wish<C>>> {
    let (mut parts, mut values): (Vec<Vec<Wish<C>>>, usize) = (Vec::new(), 0);
    for wish in wishes {
        let own = bound_values(&wish.1);
        match parts.last_mut() {
            Some(part) if part.len() < MAX_COLUMNS && values + own <= MAX_VALUES => {
                part.push(wish);
                values += own;
            }
            _ => {
                parts.push(vec![wish]);
                values = own;
            }
        }
    }
    parts
}

fn bound_values(statistic: &Statistic) -> usize {
    fn of_filter(filter: &Filter) -> usize {
        match filter {
            Filter::Condition { values, .. } => values.len(),
            Filter::And(all) | Filter::Or(all) => all.iter().map(of_filter).sum(),
            Filter::Not(inner) => of_filter(inner),
            Filter::NoRow { .. } => 0,
        }
    }
    match statistic {
        Statistic::Where(filter) => of_filter(filter),
        Statistic::Moment { power, .. } => *power as usize,
        Statistic::Passing(_) => 2,
        _ => 0,
    }
}

/// Returns whether every engine can compare, count and sort values of a type.
pub(super) fn is_compared(ty: LogicalType) -> bool {
    !matches!(ty, LogicalType::Geo | LogicalType::Binary | LogicalType::Unknown)
}

pub(super) fn is_number(ty: LogicalType) -> bool {
    matches!(ty, LogicalType::Integer | LogicalType::Decimal | LogicalType::Float)
}
