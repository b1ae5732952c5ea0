//! Creates metrics, and the filtered measures that they use.
//!
//! In: the metrics of a project, and its cubes. Out: drafts of metrics. A filter of a metric or of one of its inputs
//! becomes a filter of a measure. For this, an input with a filter is replaced by its expression over filtered
//! measures.

use std::collections::HashMap;

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::types::{Granularity, WindowLength};

use super::absent_groups::{Known, counts_without_rows};
use super::cubes::wording;
use super::definition::{Accumulation, CumulativeInput, MeasureInput, Metric, MetricInput, MetricKind, PeriodValue};
use super::filter::{Condition, Filtered, Untranslatable, condition};
use super::scope::ProjectScope;
use crate::draft::{CubeDraft, MEASURES, Member, MetricDraft, Reference};
use crate::finding::{changed, left_out};
use crate::measure_sql::report_division;

/// The largest depth of metrics that are computed from other metrics.
const MAX_DEPTH: usize = 32;
/// The largest length of an expression. It is limited because inputs with filters are repeated in each metric that uses
/// them.
const MAX_CHARACTERS: usize = 20_000;
/// The largest numbers of expressions that one metric and all metrics need. Inputs with filters multiply at each level.
const MAX_STEPS: usize = 256;
const MAX_ALL_STEPS: usize = 50_000;
/// The types of measures that can have a rolling window.
const ROLLING: [&str; 7] = ["count", "count_distinct", "count_distinct_approx", "sum", "avg", "min", "max"];

pub(super) fn metrics(
    metrics: &[Metric],
    cubes: &mut [CubeDraft],
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) -> Vec<MetricDraft> {
    let mut by_name: HashMap<&str, &Metric> = HashMap::new();
    let mut drafts = Vec::new();
    for metric in metrics {
        if by_name.contains_key(metric.name.as_str()) {
            let what = format!("metric `{}` is not imported: its name is not unique", metric.name);
            findings.push(left_out(metric.span.clone(), what, "Rename or remove one of them."));
        } else {
            by_name.insert(&metric.name, metric);
        }
    }
    let mut steps = 0;
    for metric in
        metrics.iter().filter(|metric| by_name.get(metric.name.as_str()).is_some_and(|m| std::ptr::eq(*m, *metric)))
    {
        let known: Vec<usize> = cubes.iter().map(|cube| cube.lists[MEASURES].len()).collect();
        let mut builder = Builder {
            by_name: &by_name,
            cubes,
            scope,
            span: metric.span.clone(),
            owner: &metric.name,
            needs: Vec::new(),
            metrics: Vec::new(),
            last_step: MAX_ALL_STEPS.min(steps + MAX_STEPS),
            steps: &mut steps,
        };
        match builder.metric(metric) {
            Ok(yaml) => {
                let Builder { needs, metrics, .. } = builder;
                report_differences(metric, findings);
                report_absent_groups(metric, &Known { by_name: &by_name, cubes, scope }, findings);
                let name = scope.metric(&metric.name).unwrap_or(&metric.name).to_owned();
                drafts.push(MetricDraft {
                    original: metric.name.clone(),
                    name,
                    span: metric.span.clone(),
                    yaml,
                    needs,
                    metrics,
                });
            }
            Err(Untranslatable { reason, cure }) => {
                // Nothing needs the measures that were added for the metric.
                for (cube, known) in cubes.iter_mut().zip(known) {
                    cube.lists[MEASURES].truncate(known);
                }
                let what = format!("metric `{}` is not imported: {reason}", metric.name);
                findings.push(left_out(metric.span.clone(), what, cure));
            }
        }
    }
    drafts
}

/// Reports divisions, and the differences between a cumulative metric and its counterpart.
fn report_differences(metric: &Metric, findings: &mut Vec<Diagnostic>) {
    let what = format!("metric `{}`", metric.name);
    let (accumulation, period) = match &metric.kind {
        MetricKind::Derived { expr, .. } => return report_division(&what, expr, metric.span.clone(), findings),
        MetricKind::Cumulative(_, accumulation, period) => (*accumulation, *period),
        MetricKind::Simple(_) | MetricKind::Ratio(..) => return,
    };
    let mut differences = vec!["needs a time with a granularity in each query of the project"];
    match period {
        PeriodValue::First => {
            differences.push("has the first value of each period in dbt, and the last in the project")
        }
        PeriodValue::Average => {
            differences.push("has the average value of each period in dbt, and the last in the project");
        }
        PeriodValue::Last => {}
    }
    // dbt counts the window back from the last day, and the project from the end of that day. At the end of a month of
    // another length, the windows begin on different days: up to February 28, dbt counts from January 29, and the
    // project from February 1.
    if let Accumulation::Window(WindowLength::Units { unit, .. }) = accumulation
        && unit >= Granularity::Month
    {
        differences.push("may begin its window up to three days earlier or later at the end of a month");
    }
    let what = format!("{what} {}", differences.join("; it "));
    findings.push(changed(metric.span.clone(), what, "Query it by day if another value is needed."));
}

/// Reports counts that are 0 in groups in which they are null in dbt.
fn report_absent_groups(metric: &Metric, known: &Known<'_>, findings: &mut Vec<Diagnostic>) {
    let counts = counts_without_rows(metric, known);
    if !counts.is_empty() {
        let counts: Vec<String> = counts.iter().map(|name| format!("`{name}`")).collect();
        let what = format!(
            "metric `{}` reads counts that are 0 in groups without their rows, where dbt has null: {}",
            metric.name,
            counts.join(", ")
        );
        let cure = "If such groups must be null, write NULLIF(count, 0) in an expression of the project.";
        findings.push(changed(metric.span.clone(), what, cure));
    }
}

struct Builder<'b> {
    by_name: &'b HashMap<&'b str, &'b Metric>,
    cubes: &'b mut [CubeDraft],
    scope: &'b ProjectScope,
    /// The place and the name of the metric that is being built.
    span: Span,
    owner: &'b str,
    needs: Vec<Reference>,
    metrics: Vec<String>,
    /// The number of expressions that were built, and the number at which the metric is rejected.
    steps: &'b mut usize,
    last_step: usize,
}

/// An expression. Inside another expression it needs parentheses, unless it is a name.
struct Expression {
    text: String,
    is_name: bool,
}

impl Expression {
    fn inner(&self) -> String {
        if self.is_name { self.text.clone() } else { format!("({})", self.text) }
    }
}

impl Builder<'_> {
    fn metric(&mut self, metric: &Metric) -> Result<Yaml, Untranslatable> {
        let name = self.scope.metric(&metric.name).unwrap_or(&metric.name).to_owned();
        let mut yaml = Yaml::map([("name", Yaml::text(name))]);
        match &metric.kind {
            MetricKind::Ratio(numerator, denominator) => {
                yaml.set("type", Yaml::text("ratio"));
                let numerator = self.input(numerator, &metric.filters, 0)?;
                yaml.set("numerator", Yaml::Text(numerator.text));
                let denominator = self.input(denominator, &metric.filters, 0)?;
                yaml.set("denominator", Yaml::Text(denominator.text));
            }
            _ => {
                let expression = self.expression(metric, &[], 0)?;
                yaml.set("type", Yaml::text(if expression.is_name { "simple" } else { "derived" }));
                yaml.set("expression", Yaml::Text(expression.text));
            }
        }
        wording(&metric.wording).into_iter().for_each(|(key, value)| yaml.set(&key, value));
        if metric.is_hidden {
            yaml.set("hidden", Yaml::Boolean(true));
        }
        Ok(yaml)
    }

    /// Returns the expression of a metric over the rows that meet the metric's own filters and `others`.
    fn expression(&mut self, metric: &Metric, others: &[String], depth: usize) -> Result<Expression, Untranslatable> {
        if depth > MAX_DEPTH {
            return Err(Untranslatable {
                reason: "it is computed from itself, or over too many other metrics".to_owned(),
                cure: "Remove the cycle.",
            });
        }
        *self.steps += 1;
        if *self.steps > self.last_step {
            return Err(Untranslatable {
                reason: "its inputs with filters expand to too many expressions".to_owned(),
                cure: "Write the filters as measures of the cubes.",
            });
        }
        let filters: Vec<String> = others.iter().chain(&metric.filters).cloned().collect();
        let expression = match &metric.kind {
            MetricKind::Simple(measure) => self.measure(measure, &filters, None)?,
            MetricKind::Cumulative(CumulativeInput::Measure(measure), accumulation, _) => {
                self.measure(measure, &filters, Some(*accumulation))?
            }
            MetricKind::Cumulative(CumulativeInput::Metric(input), accumulation, _) => {
                self.accumulated(input, &filters, *accumulation)?
            }
            MetricKind::Ratio(numerator, denominator) => {
                let (numerator, denominator) =
                    (self.input(numerator, &filters, depth)?, self.input(denominator, &filters, depth)?);
                Expression { text: format!("{} / {}", numerator.inner(), denominator.inner()), is_name: false }
            }
            MetricKind::Derived { expr, inputs } => {
                let mut operands = HashMap::new();
                for input in inputs {
                    let expression = self.input(input, &filters, depth)?;
                    operands.insert(input.alias.as_ref().unwrap_or(&input.name).as_str(), expression.inner());
                }
                Expression { text: substitute(expr, &operands), is_name: false }
            }
        };
        if expression.text.len() > MAX_CHARACTERS {
            return Err(Untranslatable {
                reason: "its expression with the filters of all its metrics is too long".to_owned(),
                cure: "Write the filters as measures of the cubes.",
            });
        }
        Ok(expression)
    }

    /// Returns the expression of an input. Without filters it is the name of the input metric, and otherwise the
    /// expression of that metric.
    fn input(&mut self, input: &MetricInput, filters: &[String], depth: usize) -> Result<Expression, Untranslatable> {
        let Some(metric) = self.by_name.get(input.name.as_str()).copied() else {
            // The metric is unknown or was left out. `validate` distinguishes these cases in its findings.
            let name = terrane_authoring::names::snake(&input.name);
            self.metrics.push(name.clone());
            return Ok(Expression { text: name, is_name: true });
        };
        if filters.is_empty() && input.filters.is_empty() {
            let name = self.scope.metric(&metric.name).unwrap_or(&metric.name).to_owned();
            self.metrics.push(name.clone());
            return Ok(Expression { text: name, is_name: true });
        }
        let filters: Vec<String> = filters.iter().chain(&input.filters).cloned().collect();
        self.expression(metric, &filters, depth + 1)
    }

    /// Returns the accumulated value of a simple metric.
    fn accumulated(
        &mut self,
        input: &MetricInput,
        filters: &[String],
        accumulation: Accumulation,
    ) -> Result<Expression, Untranslatable> {
        let metric = self.by_name.get(input.name.as_str()).copied();
        let Some(MetricKind::Simple(measure)) = metric.map(|metric| &metric.kind) else {
            return Err(Untranslatable {
                reason: format!("it accumulates `{}`, which is not a simple metric", input.name),
                cure: "Accumulate a sum or a count of one semantic model.",
            });
        };
        let own = metric.map(|metric| metric.filters.as_slice()).unwrap_or_default();
        let filters: Vec<String> = filters.iter().chain(&input.filters).chain(own).cloned().collect();
        self.measure(measure, &filters, Some(accumulation))
    }

    /// Returns the expression for a measure with filters: the name of a measure with these filters in its cube.
    fn measure(
        &mut self,
        input: &MeasureInput,
        filters: &[String],
        accumulation: Option<Accumulation>,
    ) -> Result<Expression, Untranslatable> {
        let (cube, name) = self.scope.measure(&input.name).ok_or_else(|| Untranslatable {
            reason: format!("it needs the measure `{}`, which is not imported", input.name),
            cure: "Solve the problems of the measure first.",
        })?;
        let mut conditions = Vec::new();
        for filter in filters.iter().chain(&input.filters) {
            let time = cube.time_of(&input.name);
            let found = condition(filter, Filtered { own: cube, time, scope: self.scope })?;
            if !conditions.contains(&found) {
                conditions.push(found);
            }
        }
        let reference = Reference { cube: cube.name.clone(), member: Some(name.to_owned()) };
        let reference = match conditions.is_empty() && accumulation.is_none() {
            true => reference,
            false => self.variant(reference, conditions, accumulation)?,
        };
        let text = format!("{}.{}", reference.cube, reference.member.as_deref().unwrap_or_default());
        self.needs.push(reference);
        Ok(match &input.fill_nulls_with {
            Some(number) => Expression { text: format!("COALESCE({text}, {number})"), is_name: false },
            None => Expression { text, is_name: true },
        })
    }

    /// Returns the measure that aggregates as `reference` does over the rows that meet the conditions. If the cube has
    /// no such measure, adds one.
    fn variant(
        &mut self,
        reference: Reference,
        conditions: Vec<Condition>,
        accumulation: Option<Accumulation>,
    ) -> Result<Reference, Untranslatable> {
        let missing = || Untranslatable {
            reason: format!("it needs {reference}, which is not imported"),
            cure: "Solve the problems of the measure first.",
        };
        let draft = self.cubes.iter_mut().find(|draft| draft.name == reference.cube).ok_or_else(missing)?;
        let measures = &draft.lists[MEASURES];
        let measure =
            measures.iter().find(|member| Some(&member.name) == reference.member.as_ref()).ok_or_else(missing)?;
        let (mut yaml, mut needs) = (Yaml::Map(Vec::new()), measure.needs.clone());
        for key in ["type", "sql", "percentile"] {
            measure.yaml.get(key).into_iter().for_each(|value| yaml.set(key, value.clone()));
        }
        match accumulation {
            None => {}
            Some(Accumulation::RunningTotal) => running(&mut yaml, &reference)?,
            Some(Accumulation::Window(length)) => rolling(&mut yaml, length, &reference)?,
        }
        if !conditions.is_empty() {
            let filters = conditions.iter().map(|condition| Yaml::map([("sql", Yaml::text(&*condition.sql))]));
            yaml.set("filters", Yaml::List(filters.collect()));
        }
        needs.extend(conditions.into_iter().flat_map(|condition| condition.needs));
        if let Some(known) = measures.iter().find(|member| is_same(&member.yaml, &yaml)) {
            return Ok(Reference { member: Some(known.name.clone()), ..reference });
        }
        let mut taken = terrane_authoring::names::Taken::default();
        draft.lists.iter().flatten().for_each(|member| drop(taken.take(&member.name)));
        let name = taken.take(&terrane_authoring::names::snake(self.owner));
        let Yaml::Map(entries) = yaml else { return Err(missing()) };
        let named = std::iter::once(("name".to_owned(), Yaml::text(&*name))).chain(entries).collect();
        draft.lists[MEASURES].push(Member {
            name: name.clone(),
            yaml: Yaml::Map(named),
            span: self.span.clone(),
            is_masked: false,
            needs,
            drills: Vec::new(),
        });
        Ok(Reference { member: Some(name), ..reference })
    }
}

/// Changes a sum or a count to a running total.
fn running(yaml: &mut Yaml, reference: &Reference) -> Result<(), Untranslatable> {
    let sql = match (yaml.get("type").and_then(Yaml::as_text), yaml.get("sql").and_then(Yaml::as_text)) {
        (Some("sum"), Some(sql)) => sql.to_owned(),
        // A running count of rows is a running total of the number 1.
        (Some("count"), None) => "1".to_owned(),
        (Some("count"), Some(sql)) => format!("CASE WHEN {sql} IS NOT NULL THEN 1 ELSE 0 END"),
        (ty, _) => {
            return Err(Untranslatable {
                reason: format!("a running total is a sum, and {reference} is `{}`", ty.unwrap_or_default()),
                cure: "Accumulate a sum or a count.",
            });
        }
    };
    yaml.set("type", Yaml::text("running_total"));
    yaml.set("sql", Yaml::Text(sql));
    yaml.set("from", Yaml::text("all"));
    Ok(())
}

/// Adds a rolling window to a measure.
fn rolling(yaml: &mut Yaml, length: WindowLength, reference: &Reference) -> Result<(), Untranslatable> {
    let ty = yaml.get("type").and_then(Yaml::as_text).unwrap_or_default();
    if !ROLLING.contains(&ty) {
        return Err(Untranslatable {
            reason: format!("a window has no `{ty}`, which {reference} is"),
            cure: "Use a count, a sum, an average, a minimum or a maximum.",
        });
    }
    yaml.set("rolling_window", Yaml::map([("trailing", Yaml::text(length.to_string()))]));
    Ok(())
}

/// Returns true if two measures compute the same value.
fn is_same(left: &Yaml, right: &Yaml) -> bool {
    ["type", "sql", "filters", "from", "percentile", "rolling_window"].iter().all(|key| left.get(key) == right.get(key))
}

/// Replaces the operands of an expression. Strings and names of functions do not change.
fn substitute(expr: &str, operands: &HashMap<&str, String>) -> String {
    let mut text = String::new();
    let mut rest = expr;
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '\'' | '"' => rest[1..].find(c).map_or(rest.len(), |at| at + 2),
            c if c.is_ascii_alphabetic() || c == '_' => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            c if c.is_ascii_digit() => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        let is_function = after.trim_start().starts_with('(');
        match operands.get(word).filter(|_| !is_function) {
            Some(operand) => text.push_str(operand),
            None => text.push_str(word),
        }
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_replaced_outside_of_strings() {
        let operands = HashMap::from([("a", "orders.x".to_owned()), ("sum", "(b + c)".to_owned())]);
        let text = substitute("a / NULLIF(a_2, 0) + sum(1) - 'a' * \"a\" + 1a + sum", &operands);
        assert_eq!(text, "orders.x / NULLIF(a_2, 0) + sum(1) - 'a' * \"a\" + 1a + (b + c)");
        assert_eq!(substitute("'open", &operands), "'open");
    }
}
