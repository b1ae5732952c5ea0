//! Filters: on rows and on finished groups, in two-valued logic: a comparison with null is false.
//!
//! In: filter trees with values as sent. Out: trees of tests. A filter that does not fit is reported as a problem.

use terrane_compiler::query::{Filter, Operator};
use terrane_compiler::types::{Granularity, Value as Sent};

use super::calc::{Calc, Calculation};
use super::facts::dimension_value;
use super::kinds::{self, Axis, Kind};
use super::names::Named;
use super::operators::Test;
use super::rows::{Tree, Tuple};
use super::times::Stretch;
use super::{Code, Construct, Evaluation, Group, labels, masking};
use crate::value::Value;

/// A condition on the rows of joined cubes.
#[derive(Debug, Clone)]
pub(crate) enum RowFilter {
    Test {
        cube: String,
        dimension: String,
        granularity: Option<Granularity>,
        test: Test,
    },
    And(Vec<RowFilter>),
    Or(Vec<RowFilter>),
    Not(Box<RowFilter>),
    /// A filter on `metric_time`, which is another dimension in each cube.
    OwnTime(Box<Filter>),
    /// A filter whose problem was reported.
    Broken,
}

/// A condition on finished groups.
#[derive(Debug, Clone)]
pub(crate) enum GroupFilter {
    Group(usize, Test),
    Value(Calc, Test),
    And(Vec<GroupFilter>),
    Or(Vec<GroupFilter>),
    Not(Box<GroupFilter>),
    Broken,
}

/// Splits the filters: those without a measure apply to rows, those with a measure to groups.
pub(crate) fn split(evaluation: &Evaluation<'_>) -> (Vec<RowFilter>, Vec<Filter>) {
    let (mut rows, mut on_groups) = (Vec::new(), Vec::new());
    let mut conjuncts: Vec<&Filter> = evaluation.query.filters.iter().collect();
    while let Some(filter) = conjuncts.pop() {
        match filter {
            Filter::And(all) => conjuncts.extend(all),
            filter if has_value(evaluation, filter) => on_groups.push(filter.clone()),
            filter => rows.push(RowFilter::new(evaluation, filter)),
        }
    }
    (rows, on_groups)
}

/// Returns the conditions on rows, as they were sent.
pub(crate) fn on_rows(evaluation: &Evaluation<'_>) -> Vec<Filter> {
    let mut conjuncts: Vec<&Filter> = evaluation.query.filters.iter().collect();
    let mut rows = Vec::new();
    while let Some(filter) = conjuncts.pop() {
        match filter {
            Filter::And(all) => conjuncts.extend(all),
            filter if has_value(evaluation, filter) => {}
            filter => rows.push(filter.clone()),
        }
    }
    rows
}

fn has_value(evaluation: &Evaluation<'_>, filter: &Filter) -> bool {
    mentions(filter, &|named| matches!(named, Named::Measure { .. } | Named::Metric(_)), evaluation)
}

/// Returns whether `is_such` is true for any member in a filter.
pub(crate) fn mentions(filter: &Filter, is_such: &dyn Fn(Named) -> bool, evaluation: &Evaluation<'_>) -> bool {
    match filter {
        Filter::Condition { member, .. } => evaluation.named(member).is_some_and(is_such),
        Filter::And(all) | Filter::Or(all) => all.iter().any(|filter| mentions(filter, is_such, evaluation)),
        Filter::Not(inner) => mentions(inner, is_such, evaluation),
        Filter::NoRow { .. } => false,
    }
}

pub(crate) fn group_tests(
    evaluation: &Evaluation<'_>,
    filters: &[Filter],
    groups: &[Group],
    calculation: &mut Calculation<'_, '_>,
) -> Vec<GroupFilter> {
    filters.iter().map(|filter| GroupFilter::new(evaluation, filter, groups, calculation)).collect()
}

impl RowFilter {
    pub(crate) fn new(evaluation: &Evaluation<'_>, filter: &Filter) -> RowFilter {
        let all = |filters: &[Filter]| filters.iter().map(|filter| RowFilter::new(evaluation, filter)).collect();
        match filter {
            Filter::And(filters) => RowFilter::And(all(filters)),
            Filter::Or(filters) => RowFilter::Or(all(filters)),
            Filter::Not(inner) => RowFilter::Not(Box::new(RowFilter::new(evaluation, inner))),
            // No request can contain this filter.
            Filter::NoRow { .. } => {
                evaluation.refuse(Code::InvalidQuery);
                RowFilter::Broken
            }
            Filter::Condition { member, operator, values } => match evaluation.named(member) {
                Some(Named::Dimension { cube, name }) => {
                    RowFilter::condition(evaluation, (cube, name), member.granularity, *operator, values)
                }
                Some(Named::MetricTime) => RowFilter::OwnTime(Box::new(filter.clone())),
                Some(_) => {
                    evaluation.refuse(Code::InvalidQuery);
                    RowFilter::Broken
                }
                None => {
                    evaluation.unknown_operand(member);
                    RowFilter::Broken
                }
            },
        }
    }

    fn condition(
        evaluation: &Evaluation<'_>,
        (cube, dimension): (String, String),
        granularity: Option<Granularity>,
        operator: Operator,
        values: &[Sent],
    ) -> RowFilter {
        let kind = kinds::of_dimension(evaluation, &cube, &dimension);
        if granularity.is_some() {
            note_bucket(evaluation, values);
        }
        masking::filtered(evaluation, &cube, &dimension);
        match Test::new(evaluation, kind, operator, values) {
            Some(test) => RowFilter::Test { cube, dimension, granularity, test },
            None => RowFilter::Broken,
        }
    }

    /// Returns a condition on a time without a granularity: `InDateRange` means within the stretch, `Lt` before it.
    pub(crate) fn along(
        evaluation: &Evaluation<'_>,
        cube: &str,
        dimension: &str,
        operator: Operator,
        stretch: Stretch,
    ) -> RowFilter {
        masking::filtered(evaluation, cube, dimension);
        let test = Test::along(operator, stretch);
        RowFilter::Test { cube: cube.to_owned(), dimension: dimension.to_owned(), granularity: None, test }
    }

    /// Returns the filter for one cube, with the primary time of this cube for `metric_time`.
    pub(crate) fn of_fact(&self, evaluation: &Evaluation<'_>, fact: &str) -> RowFilter {
        let all = |filters: &[RowFilter]| filters.iter().map(|filter| filter.of_fact(evaluation, fact)).collect();
        match self {
            RowFilter::And(filters) => RowFilter::And(all(filters)),
            RowFilter::Or(filters) => RowFilter::Or(all(filters)),
            RowFilter::Not(inner) => RowFilter::Not(Box::new(inner.of_fact(evaluation, fact))),
            RowFilter::OwnTime(filter) => match (&**filter, evaluation.primary_time(fact)) {
                (Filter::Condition { member, operator, values }, Some(name)) => {
                    let dimension = (fact.to_owned(), name.to_owned());
                    RowFilter::condition(evaluation, dimension, member.granularity, *operator, values)
                }
                _ => RowFilter::Broken,
            },
            other => other.clone(),
        }
    }

    /// Returns the cubes and names of the dimensions that the filter reads.
    pub(crate) fn dimensions(&self) -> Vec<(String, String)> {
        match self {
            RowFilter::Test { cube, dimension, .. } => vec![(cube.clone(), dimension.clone())],
            RowFilter::And(all) | RowFilter::Or(all) => all.iter().flat_map(RowFilter::dimensions).collect(),
            RowFilter::Not(inner) => inner.dimensions(),
            RowFilter::OwnTime(_) | RowFilter::Broken => Vec::new(),
        }
    }

    pub(crate) fn passes(&self, evaluation: &Evaluation<'_>, tree: &Tree<'_, '_>, tuple: &Tuple) -> bool {
        match self {
            RowFilter::Test { cube, dimension, granularity, test } => {
                let value = dimension_value(evaluation, tree, tuple, cube, dimension);
                match granularity {
                    Some(granularity) => test.holds(&labels::bucket_start(&value, *granularity, &evaluation.zone)),
                    None => test.holds(&value),
                }
            }
            RowFilter::And(all) => all.iter().all(|filter| filter.passes(evaluation, tree, tuple)),
            RowFilter::Or(all) => all.iter().any(|filter| filter.passes(evaluation, tree, tuple)),
            RowFilter::Not(inner) => !inner.passes(evaluation, tree, tuple),
            RowFilter::OwnTime(_) | RowFilter::Broken => false,
        }
    }
}

/// Records two constructs in comparisons with a bucket: a value with an offset, and the last year of the calendar.
fn note_bucket(evaluation: &Evaluation<'_>, values: &[Sent]) {
    let texts = || values.iter().filter_map(|value| if let Sent::Text(text) = value { Some(text) } else { None });
    if texts().any(|text| has_offset(text)) {
        evaluation.uses(Construct::BucketAndInstant);
    }
    if texts().any(|text| text.starts_with("9999")) {
        evaluation.uses(Construct::BucketAndLastDay);
    }
}

fn has_offset(text: &str) -> bool {
    text.get(11..).is_some_and(|clock| clock.contains(['Z', 'z', '+', '-']))
}

/// Returns the kind of a time's bucket. Buckets of a day or more are local times.
fn bucketed(kind: Kind, granularity: Option<Granularity>) -> Kind {
    match (kind, granularity) {
        (Kind::Time(_), Some(granularity)) if granularity >= Granularity::Day => Kind::Time(Axis::Local),
        (kind, _) => kind,
    }
}

impl GroupFilter {
    fn new(
        evaluation: &Evaluation<'_>,
        filter: &Filter,
        groups: &[Group],
        calculation: &mut Calculation<'_, '_>,
    ) -> GroupFilter {
        let mut all = |filters: &[Filter]| {
            filters.iter().map(|filter| GroupFilter::new(evaluation, filter, groups, calculation)).collect()
        };
        match filter {
            Filter::And(filters) => GroupFilter::And(all(filters)),
            Filter::Or(filters) => GroupFilter::Or(all(filters)),
            Filter::Not(inner) => GroupFilter::Not(Box::new(GroupFilter::new(evaluation, inner, groups, calculation))),
            Filter::NoRow { .. } => {
                evaluation.refuse(Code::InvalidQuery);
                GroupFilter::Broken
            }
            Filter::Condition { member, operator, values } => {
                let test = |kind| Test::new(evaluation, kind, *operator, values);
                match evaluation.named(member) {
                    Some(named @ (Named::Dimension { .. } | Named::MetricTime)) => {
                        let kind = match &named {
                            Named::Dimension { cube, name } => kinds::of_dimension(evaluation, cube, name),
                            _ => kind_of_metric_time(evaluation, &calculation.facts()),
                        };
                        if member.granularity.is_some() {
                            note_bucket(evaluation, values);
                        }
                        let same = |g: &Group| g.named() == named && g.granularity == member.granularity;
                        let is_offset = |value: &Sent| matches!(value, Sent::Text(text) if has_offset(text));
                        if bucketed(kind, member.granularity) != kind && values.iter().any(is_offset) {
                            evaluation.leave_open("an instant compared with a grouped day");
                        }
                        let test = test(bucketed(kind, member.granularity));
                        match (groups.iter().position(same), test) {
                            (Some(index), Some(test)) => GroupFilter::Group(index, test),
                            (None, _) => {
                                evaluation.refuse(Code::InvalidQuery);
                                GroupFilter::Broken
                            }
                            (_, None) => GroupFilter::Broken,
                        }
                    }
                    Some(Named::Segment { .. }) => {
                        evaluation.refuse(Code::InvalidQuery);
                        GroupFilter::Broken
                    }
                    Some(named) => match test(kinds::of_value(evaluation, &named)) {
                        Some(test) => GroupFilter::Value(calculation.value(&named), test),
                        None => GroupFilter::Broken,
                    },
                    None => {
                        evaluation.unknown_operand(member);
                        GroupFilter::Broken
                    }
                }
            }
        }
    }

    /// Adds the group-by columns that the filter reads.
    pub(crate) fn groups(&self, found: &mut Vec<usize>) {
        match self {
            GroupFilter::Group(index, _) => found.push(*index),
            GroupFilter::And(all) | GroupFilter::Or(all) => all.iter().for_each(|filter| filter.groups(found)),
            GroupFilter::Not(inner) => inner.groups(found),
            GroupFilter::Value(..) | GroupFilter::Broken => {}
        }
    }

    /// Returns whether a test of a measure depends on the last digits of a double.
    pub(crate) fn depends_on_rounding(&self, aggregates: &[Value], has_deviation: bool) -> bool {
        match self {
            GroupFilter::Value(calc, test) => test.depends_on_rounding(&calc.of(aggregates), has_deviation),
            GroupFilter::And(all) | GroupFilter::Or(all) => {
                all.iter().any(|filter| filter.depends_on_rounding(aggregates, has_deviation))
            }
            GroupFilter::Not(inner) => inner.depends_on_rounding(aggregates, has_deviation),
            GroupFilter::Group(..) | GroupFilter::Broken => false,
        }
    }

    pub(crate) fn passes(&self, key: &[Value], aggregates: &[Value]) -> bool {
        match self {
            GroupFilter::Group(index, test) => test.holds(&key[*index]),
            GroupFilter::Value(calc, test) => test.holds(&calc.of(aggregates)),
            GroupFilter::And(all) => all.iter().all(|filter| filter.passes(key, aggregates)),
            GroupFilter::Or(all) => all.iter().any(|filter| filter.passes(key, aggregates)),
            GroupFilter::Not(inner) => !inner.passes(key, aggregates),
            GroupFilter::Broken => false,
        }
    }
}

/// Returns the kind of `metric_time`, which is the kind of the first fact's primary time.
fn kind_of_metric_time(evaluation: &Evaluation<'_>, facts: &[String]) -> Kind {
    let first = facts.first().and_then(|fact| evaluation.axis_of(fact, evaluation.primary_time(fact)?));
    Kind::Time(first.unwrap_or(Axis::Instant))
}
