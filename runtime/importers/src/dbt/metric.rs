//! Reads metrics. Their parameters are below `type_params` in the older specification, and beside `type` in the newer
//! one.
//!
//! In: an item of `metrics:`. Out: a metric, or a finding with the reason why it has no counterpart.

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::yaml::{Node, NodeValue};
use terrane_compiler::types::WindowLength;

use super::definition::{
    Accumulation, CumulativeInput, Measure, MeasureInput, Metric, MetricInput, MetricKind, PeriodValue, Wording,
};
use super::legacy::{filters, is_disabled, named, reject, wording};
use super::{legacy, nested};
use crate::entry::{Entry, is_template};
use crate::finding::{changed, left_out};

const FILTER_CURE: &str = "Write it as a string: \"{{ Dimension('order__status') }} = 'paid'\".";

/// Reads a metric of the list at the top level of a file.
pub(super) fn metric(node: &Node, findings: &mut Vec<Diagnostic>) -> Option<Metric> {
    let (entry, name) = named(node, "metric", "", findings)?;
    read(entry, name, findings)
}

/// Reads a metric of a model. A simple metric also defines a measure.
pub(super) fn nested(node: &Node, model: &str, findings: &mut Vec<Diagnostic>) -> (Option<Metric>, Option<Measure>) {
    let of = format!(" of semantic model `{model}`");
    let Some((entry, name)) = named(node, "metric", &of, findings) else { return (None, None) };
    if !entry.has("agg") {
        return (read(entry, name, findings), None);
    }
    if is_disabled(&entry, findings) {
        return (None, None);
    }
    entry.word("type");
    let Some(measure) = nested::measure(&entry, &name, findings) else { return (None, None) };
    let own = MeasureInput { name: name.clone(), filters: Vec::new(), fill_nulls_with: fill(&entry, findings) };
    // The measure without the metric's filter has no counterpart in dbt.
    let measure = Measure { is_private: entry.has("filter"), ..measure };
    let metric = finish(entry, name, MetricKind::Simple(own), measure.wording.clone(), findings);
    (metric, Some(measure))
}

/// Returns the metric that a measure with `create_metric` defines.
pub(super) fn of_measure(measure: &Measure) -> Metric {
    let input = MeasureInput { name: measure.name.clone(), filters: Vec::new(), fill_nulls_with: None };
    Metric {
        name: measure.name.clone(),
        span: measure.span.clone(),
        kind: MetricKind::Simple(input),
        filters: Vec::new(),
        is_hidden: false,
        wording: measure.wording.clone(),
    }
}

fn read(entry: Entry<'_>, name: String, findings: &mut Vec<Diagnostic>) -> Option<Metric> {
    if is_disabled(&entry, findings) {
        return None;
    }
    if entry.has("calculation_method") {
        let cure = "Write it as a metric of a semantic model, as dbt 1.6 and later do.";
        reject(&entry, "it is a metric of dbt 1.5 or earlier", cure, findings);
        return None;
    }
    let parameters =
        entry.node("type_params").and_then(|node| Entry::open(node, format!("`type_params` of {}", entry.what)));
    let kind = kind(&entry, parameters.as_ref().unwrap_or(&entry), findings)?;
    if let Some(parameters) = parameters {
        parameters.finish(findings);
    }
    let wording = wording(&entry, findings);
    finish(entry, name, kind, wording, findings)
}

fn finish(
    entry: Entry<'_>,
    name: String,
    kind: MetricKind,
    wording: Wording,
    findings: &mut Vec<Diagnostic>,
) -> Option<Metric> {
    let Ok(filters) = filters(&entry, "filter") else {
        reject(&entry, "its filter is not a string", FILTER_CURE, findings);
        return None;
    };
    entry.drop_key("time_granularity", "Name the granularity in the query.", findings);
    let is_hidden = entry.boolean("hidden") == Some(true);
    let span = entry.span.clone();
    entry.finish(findings);
    Some(Metric { name, span, kind, filters, is_hidden, wording })
}

/// Reads the keys of a metric that depend on its type.
fn kind(entry: &Entry<'_>, parameters: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> Option<MetricKind> {
    let ty = legacy::kind(entry, "type");
    match ty.as_deref() {
        Some("simple") => Some(MetricKind::Simple(measure_input(entry, parameters, findings)?)),
        Some("ratio") => {
            let numerator = metric_input(entry, parameters.node("numerator"), "numerator", findings)?;
            let denominator = metric_input(entry, parameters.node("denominator"), "denominator", findings)?;
            Some(MetricKind::Ratio(numerator, denominator))
        }
        Some("derived") => derived(entry, parameters, findings),
        Some("cumulative") => cumulative(entry, parameters, findings),
        Some("conversion") => {
            let cure = "Compute the converted rows in a model (models/*.sql), and count them by a measure.";
            reject(entry, "it counts conversions between events", cure, findings);
            None
        }
        _ => {
            reject(entry, "unknown type", "Write simple, ratio, derived or cumulative.", findings);
            None
        }
    }
}

fn measure_input(entry: &Entry<'_>, parameters: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> Option<MeasureInput> {
    let Some(node) = parameters.node("measure") else {
        reject(entry, "it has no `measure`", "Name the measure below `type_params`.", findings);
        return None;
    };
    // Older projects have `fill_nulls_with` beside `measure`, newer ones have it below `measure`.
    let own = fill(parameters, findings);
    if let NodeValue::Scalar { text, .. } = &node.value {
        return Some(MeasureInput { name: text.to_string(), filters: Vec::new(), fill_nulls_with: own });
    }
    let input = Entry::open(node, format!("`measure` of {}", entry.what));
    let name = input.as_ref().and_then(|input| input.word("name"));
    let (Some(input), Some(name)) = (input, name) else {
        reject(entry, "its measure has no name", "Write `measure: revenue`.", findings);
        return None;
    };
    let Ok(filters) = filters(&input, "filter") else {
        reject(entry, "the filter of its measure is not a string", FILTER_CURE, findings);
        return None;
    };
    let fill_nulls_with = fill(&input, findings).or(own);
    input.word("alias");
    input.finish(findings);
    Some(MeasureInput { name, filters, fill_nulls_with })
}

/// Reads `fill_nulls_with`, and reports `join_to_timespine`.
fn fill(entry: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> Option<String> {
    if entry.boolean("join_to_timespine") == Some(true) {
        let what = format!("{} has a value for periods without rows; queries of the project ask for them", entry.what);
        findings.push(changed(entry.span_of("join_to_timespine"), what, "Write `fill_gaps: true` in the query."));
    }
    let word = entry.word("fill_nulls_with")?;
    let is_number = word.parse::<f64>().is_ok_and(f64::is_finite);
    if !is_number {
        let what = format!("`fill_nulls_with` of {} is not imported: it is not a number", entry.what);
        findings.push(left_out(entry.span_of("fill_nulls_with"), what, "Write a number."));
    }
    is_number.then_some(word)
}

/// Reads an input metric of another metric: its name, or a mapping.
fn metric_input(
    entry: &Entry<'_>,
    node: Option<&Node>,
    role: &str,
    findings: &mut Vec<Diagnostic>,
) -> Option<MetricInput> {
    if let Some(Node { value: NodeValue::Scalar { text, .. }, .. }) = node {
        return Some(MetricInput { name: text.to_string(), alias: None, filters: Vec::new() });
    }
    let input = node.and_then(|node| Entry::open(node, format!("`{role}` of {}", entry.what)));
    let name = input.as_ref().and_then(|input| input.word("name"));
    let (Some(input), Some(name)) = (input, name) else {
        reject(entry, &format!("its `{role}` has no name"), "Name a metric.", findings);
        return None;
    };
    for key in ["offset_window", "offset_to_grain"] {
        if input.has(key) {
            let cure = "Query the metric with `compare_range`, which compares two periods.";
            reject(entry, &format!("it reads `{name}` of an earlier time (`{key}`)"), cure, findings);
            return None;
        }
    }
    let Ok(filters) = filters(&input, "filter") else {
        reject(entry, &format!("the filter of its `{role}` is not a string"), FILTER_CURE, findings);
        return None;
    };
    let alias = input.word("alias");
    input.finish(findings);
    Some(MetricInput { name, alias, filters })
}

fn derived(entry: &Entry<'_>, parameters: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> Option<MetricKind> {
    let Some(expr) = parameters.word("expr").filter(|expr| !is_template(expr)) else {
        reject(entry, "it has no `expr`", "Write an expression over its metrics.", findings);
        return None;
    };
    let key = if parameters.has("metrics") { "metrics" } else { "input_metrics" };
    let mut inputs = Vec::new();
    for node in parameters.list(key) {
        inputs.push(metric_input(entry, Some(node), key, findings)?);
    }
    Some(MetricKind::Derived { expr, inputs })
}

/// Reads a cumulative metric. A metric that restarts in each period has no counterpart.
fn cumulative(entry: &Entry<'_>, parameters: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> Option<MetricKind> {
    let inner = parameters.node("cumulative_type_params");
    let inner = inner.and_then(|node| Entry::open(node, format!("`cumulative_type_params` of {}", entry.what)));
    let node = |key: &str| inner.as_ref().and_then(|inner| inner.node(key)).or_else(|| parameters.node(key));
    if node("grain_to_date").is_some() {
        let cure = "Query the metric over the range itself (`time_range`), or compute it in the client.";
        reject(entry, "it restarts in each period (`grain_to_date`)", cure, findings);
        return None;
    }
    let accumulation = match node("window") {
        None => Accumulation::RunningTotal,
        Some(node) => Accumulation::Window(window(entry, node, findings)?),
    };
    let period = inner.as_ref().and_then(|inner| legacy::kind(inner, "period_agg"));
    let period = period.or_else(|| legacy::kind(parameters, "period_agg"));
    let period = match period.as_deref() {
        None | Some("first") => PeriodValue::First,
        Some("last") => PeriodValue::Last,
        Some("average") => PeriodValue::Average,
        Some(other) => {
            let reason = format!("its `period_agg` is `{other}`");
            reject(entry, &reason, "Write first, last or average.", findings);
            return None;
        }
    };
    if let Some(inner) = inner {
        inner.finish(findings);
    }
    let input = match parameters.node("input_metric") {
        Some(node) => CumulativeInput::Metric(metric_input(entry, Some(node), "input_metric", findings)?),
        None => CumulativeInput::Measure(measure_input(entry, parameters, findings)?),
    };
    Some(MetricKind::Cumulative(input, accumulation, period))
}

/// Reads the length of a window: `28 days`, or a mapping with `count` and `granularity`.
fn window(entry: &Entry<'_>, node: &Node, findings: &mut Vec<Diagnostic>) -> Option<WindowLength> {
    let text = match &node.value {
        NodeValue::Scalar { text, .. } => text.to_string(),
        _ => {
            let parts = Entry::open(node, format!("`window` of {}", entry.what));
            let part = |key: &str| parts.as_ref().and_then(|parts| parts.word(key)).unwrap_or_default();
            format!("{} {}", part("count"), part("granularity"))
        }
    };
    let found = WindowLength::parse(&text).ok().filter(|length| *length != WindowLength::Unbounded);
    if found.is_none() {
        let text = text.trim();
        let cure =
            "Declare a measure over the same column with a window, such as `rolling_window: {trailing: 28 day}`.";
        reject(entry, &format!("its window `{text}` is not an integer and a unit"), cure, findings);
    }
    found
}
