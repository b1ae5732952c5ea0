//! Finds metrics whose values differ in groups without rows.
//!
//! In: a metric over other metrics. Out: the count measures that it reads in groups in which only its other measures have
//! rows. In such a group, a count is 0 in the project and null in dbt, which joins the results of the measures.

use std::collections::{BTreeSet, HashMap};

use terrane_authoring::yaml::Yaml;

use super::definition::{CumulativeInput, MeasureInput, Metric, MetricInput, MetricKind};
use super::scope::ProjectScope;
use crate::draft::{CubeDraft, MEASURES};

const COUNTS: [&str; 3] = ["count", "count_distinct", "count_distinct_approx"];
/// The largest number of measures of a metric that are considered.
const MAX_OPERANDS: usize = 256;
const MAX_DEPTH: usize = 32;

/// A measure that a metric reads.
struct Operand<'m> {
    measure: &'m MeasureInput,
    /// The filters that select its rows.
    filters: BTreeSet<&'m str>,
}

/// The metrics and cubes of a project.
pub(super) struct Known<'k> {
    pub(super) by_name: &'k HashMap<&'k str, &'k Metric>,
    pub(super) cubes: &'k [CubeDraft],
    pub(super) scope: &'k ProjectScope,
}

/// Returns the names of the counts that are 0 in the project where they are null in dbt.
pub(super) fn counts_without_rows(metric: &Metric, known: &Known<'_>) -> BTreeSet<String> {
    let filters: BTreeSet<&str> = metric.filters.iter().map(String::as_str).collect();
    let (mut read, mut others) = (Vec::new(), Vec::new());
    match &metric.kind {
        MetricKind::Simple(_) | MetricKind::Cumulative(..) => return BTreeSet::new(),
        // A quotient by 0 is null, as a quotient by null is.
        MetricKind::Ratio(numerator, denominator) => {
            known.add_input(numerator, &filters, 0, &mut read);
            known.add_input(denominator, &filters, 0, &mut others);
        }
        MetricKind::Derived { inputs, .. } => {
            inputs.iter().for_each(|input| known.add_input(input, &filters, 0, &mut read));
        }
    }
    let rows = |operand: &Operand<'_>| {
        let cube = known.scope.measure(&operand.measure.name).map(|(cube, _)| cube.name.clone());
        (cube, operand.filters.iter().map(|filter| (*filter).to_owned()).collect::<BTreeSet<String>>())
    };
    let all: BTreeSet<_> = read.iter().chain(&others).map(rows).collect();
    if all.len() < 2 {
        // All measures have the same rows, so each group has rows of all of them.
        return BTreeSet::new();
    }
    let is_count =
        |operand: &&Operand<'_>| operand.measure.fill_nulls_with.is_none() && known.is_count(operand.measure);
    read.iter().filter(is_count).map(|operand| operand.measure.name.clone()).collect()
}

impl Known<'_> {
    fn add_input<'m>(
        &'m self,
        input: &'m MetricInput,
        filters: &BTreeSet<&'m str>,
        depth: usize,
        into: &mut Vec<Operand<'m>>,
    ) {
        let Some(metric) = self.by_name.get(input.name.as_str()).filter(|_| depth < MAX_DEPTH) else { return };
        let own = input.filters.iter().chain(&metric.filters).map(String::as_str);
        let filters: BTreeSet<&str> = filters.iter().copied().chain(own).collect();
        let mut add = |measure: &'m MeasureInput| {
            let filters = filters.iter().copied().chain(measure.filters.iter().map(String::as_str)).collect();
            into.push(Operand { measure, filters });
        };
        match &metric.kind {
            MetricKind::Simple(measure) | MetricKind::Cumulative(CumulativeInput::Measure(measure), ..) => add(measure),
            MetricKind::Cumulative(CumulativeInput::Metric(input), ..) => {
                self.add_input(input, &filters, depth + 1, into);
            }
            MetricKind::Ratio(numerator, denominator) => {
                for input in [numerator, denominator] {
                    self.add_within_limit(input, &filters, depth + 1, into);
                }
            }
            MetricKind::Derived { inputs, .. } => {
                inputs.iter().for_each(|input| self.add_within_limit(input, &filters, depth + 1, into));
            }
        }
    }

    fn add_within_limit<'m>(
        &'m self,
        input: &'m MetricInput,
        filters: &BTreeSet<&'m str>,
        depth: usize,
        into: &mut Vec<Operand<'m>>,
    ) {
        if into.len() < MAX_OPERANDS {
            self.add_input(input, filters, depth, into);
        }
    }

    fn is_count(&self, measure: &MeasureInput) -> bool {
        let found = self.scope.measure(&measure.name).and_then(|(cube, name)| {
            let draft = self.cubes.iter().find(|draft| draft.name == cube.name)?;
            draft.lists[MEASURES].iter().find(|member| member.name == name)
        });
        let ty = found.and_then(|member| member.yaml.get("type")).and_then(Yaml::as_text);
        ty.is_some_and(|ty| COUNTS.contains(&ty))
    }
}
