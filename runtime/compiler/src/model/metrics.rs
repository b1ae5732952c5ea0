//! Builds metrics from their definitions.
//!
//! In: definitions and a model with its cubes. Out: the model's metrics, in file order, and their diagnostics. A ratio
//! is one [`SqlPart::Divide`], whatever its sides consist of.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use sqlparser::dialect::Dialect;

use super::assemble::presentation;
use super::cycles::{Item, Items};
use super::read::read;
use super::scope::{NameScope, Place};
use super::unread::Unread;
use super::{
    CubeId, Dimension, MeasureKind, Member, Metric, MetricFilter, MetricId, MetricKind, Model, Snippet, SqlPart,
    invalid_value,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::{Definitions, MetricBody, MetricDefinition, MetricFilterDefinition, SqlText};
// This import goes against the order of the modules, because metric filters are checked as filters of queries.
use crate::query::{Operator, QueryError};
use crate::resolve::refusal;
use crate::snippet::grammar::Problem;
use crate::snippet::likely_word;
use crate::text::nearest::{in_backticks, suggest};
use crate::types::Value;

/// Adds the metrics to the model.
pub(super) fn add(
    model: &mut Model,
    definitions: &Definitions,
    unread: &Unread,
    dialect: &dyn Dialect,
    broken: &mut Items,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for (index, definition) in (0u32..).zip(&definitions.metrics) {
        let name = Arc::clone(&definition.name.value);
        model.metric_names.insert(Arc::clone(&name), MetricId(index));
        model.metrics.push(Metric {
            presentation: presentation(&name, &definition.wording),
            name,
            kind: definition.kind,
            body: Snippet::default(),
            filters: definition.filters.iter().map(filter).collect(),
            time_grain: definition.time_grain,
            span: Some(definition.name.span()),
        });
    }
    let mut bodies = Vec::with_capacity(definitions.metrics.len());
    for (index, definition) in (0u32..).zip(&definitions.metrics) {
        let scope = NameScope { model, cube: None, declared_in: "", place: Place::Metric, unread };
        let count_before = diagnostics.len();
        for filter in &definition.filters {
            check_filter(filter, scope, diagnostics);
        }
        let body = body(definition, scope, dialect, diagnostics);
        if diagnostics.len() > count_before || body.is_none() {
            broken.insert(Item::Metric(MetricId(index)));
        }
        bodies.push(body.unwrap_or_default());
    }
    for (metric, body) in model.metrics.iter_mut().zip(bodies) {
        metric.body = body;
    }
}

fn filter(definition: &MetricFilterDefinition) -> MetricFilter {
    MetricFilter {
        member: Arc::clone(&definition.member.value),
        operator: Arc::clone(&definition.operator.value),
        values: definition.values.iter().flatten().map(|declared| declared.value.clone()).collect(),
    }
}

fn body(
    definition: &MetricDefinition,
    scope: NameScope<'_>,
    dialect: &dyn Dialect,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Snippet> {
    let mut expression = |sql: &SqlText| match read(sql, scope, dialect) {
        Ok(snippet) => Some(snippet),
        Err(problems) => {
            diagnostics.extend(problems.into_iter().map(|problem| problem.in_text(sql)));
            None
        }
    };
    match &definition.body {
        MetricBody::Ratio { numerator, denominator } => {
            let (numerator, denominator) = (expression(numerator), expression(denominator));
            let divide = SqlPart::Divide(Box::new(numerator?), Box::new(denominator?));
            Some(Snippet { parts: vec![divide], is_atomic: true, is_infallible: false, has_query: false })
        }
        MetricBody::Expression(sql) => {
            let snippet = expression(sql)?;
            let is_one = matches!(snippet.parts.as_slice(), [SqlPart::Measure(_) | SqlPart::Metric(_)]);
            if definition.kind == MetricKind::Simple && !is_one {
                let name = &definition.name.value;
                let problem = Problem::new(
                    Code::NotSimple,
                    format!("metric `{name}` is simple, but its expression is a calculation"),
                    "Write `type: derived`, or name one measure, as in `orders.revenue`.",
                );
                diagnostics.push(problem.whole().in_text(sql));
                return None;
            }
            if !refers_to_values(&snippet) {
                let problem = Problem::new(
                    Code::ConstantMetric,
                    format!("metric `{}` refers to no measure", definition.name.value),
                    "Name a measure, as in `orders.revenue`, or a metric.",
                );
                diagnostics.push(problem.whole().in_text(sql));
                return None;
            }
            Some(snippet)
        }
    }
}

fn refers_to_values(snippet: &Snippet) -> bool {
    let mut found = false;
    snippet.for_each(&mut |part| found |= matches!(part, SqlPart::Measure(_) | SqlPart::Metric(_)));
    found
}

/// Other common spellings of operators, each with the operator that is meant.
const SIGNS: [(&str, &str); 14] = [
    ("=", "equals"),
    ("==", "equals"),
    ("is", "equals"),
    ("eq", "equals"),
    ("!=", "notEquals"),
    ("<>", "notEquals"),
    ("ne", "notEquals"),
    (">", "gt"),
    (">=", "gte"),
    ("<", "lt"),
    ("<=", "lte"),
    ("in", "inList"),
    ("not in", "notInList"),
    ("like", "contains"),
];

/// Checks that the member of a filter exists and that its values fit it.
fn check_filter(filter: &MetricFilterDefinition, scope: NameScope<'_>, diagnostics: &mut Vec<Diagnostic>) {
    let known: Vec<&str> = Operator::ALL.iter().map(|operator| operator.as_str()).collect();
    if !known.contains(&&*filter.operator.value) {
        let sign = SIGNS.iter().find(|(sign, _)| *sign == filter.operator.value.to_lowercase()).map(|(_, word)| *word);
        let hint = match sign.or_else(|| likely_word(&filter.operator.value, known.iter().copied())) {
            Some(best) => format!("Did you mean `{best}`? Available operators: {}.", in_backticks(known)),
            None => format!("Write one of {}.", in_backticks(known)),
        };
        let message = format!("unknown operator `{}`", filter.operator.value);
        diagnostics.push(Diagnostic::error(Code::UnknownOperator, message).hint(hint).at(filter.operator.span()));
    }
    let member = &filter.member.value;
    let problem = match member.split_once('.') {
        None => Some((
            Code::UnknownMember,
            format!("the filter's member `{member}` has no cube"),
            owners(member, scope.model),
        )),
        Some((cube, rest)) => {
            let name = rest.split('.').next().unwrap_or_default();
            match scope.model.cube_named(cube).map(|cube| (cube, cube.member(name))) {
                None if scope.unread.contains(cube) => None,
                None => {
                    let known = scope.model.cubes.iter().map(|cube| &*cube.name);
                    Some((Code::UnknownCube, format!("unknown cube `{cube}`"), suggest(cube, "cubes", known)))
                }
                // The dimension could not be read completely, so its type may be a placeholder.
                Some((of, Some(Member::Dimension(_)))) if scope.unread.may_be_member(of, name) => None,
                Some((of, Some(Member::Dimension(id)))) => {
                    diagnostics.extend(refused(filter, &of.dimensions[id.index as usize]));
                    None
                }
                Some((_, Some(Member::Segment(_)))) => Some((
                    Code::MisplacedMember,
                    format!("`{member}` is a segment; filters of metrics compare dimensions"),
                    "Filter by the dimension that the segment tests.".to_owned(),
                )),
                Some((_, Some(Member::Measure(_)))) => Some((
                    Code::MisplacedMember,
                    format!("`{member}` is a measure; filters of metrics select rows"),
                    "Filter by a dimension.".to_owned(),
                )),
                Some((of, None)) if scope.unread.may_be_member(of, name) => None,
                Some((of, None)) => {
                    let dimensions = of.dimensions.iter().map(|dimension| &*dimension.name);
                    let hint = suggest(name, &format!("dimensions of {cube}"), dimensions);
                    Some((Code::UnknownMember, format!("cube `{cube}` has no member `{name}`"), hint))
                }
            }
        }
    };
    let place = SqlText::plain(&filter.member);
    diagnostics.extend(problem.map(|(code, message, hint)| {
        let problem = Problem::new(code, message, hint).at(0, member.chars().count());
        let is_whole = !member.contains('.');
        if is_whole { problem.in_text(&place) } else { problem.narrowed(member).in_text(&place) }
    }));
}

/// Reports filters on cubes that none of the metric's cubes reaches: every query of the metric would be refused.
pub(super) fn report_unreachable_filters(model: &Model, definitions: &Definitions, diagnostics: &mut Vec<Diagnostic>) {
    let by_name: HashMap<&str, &MetricDefinition> =
        definitions.metrics.iter().map(|metric| (&*metric.name.value, metric)).collect();
    for metric in model.metrics.iter().filter(|metric| !metric.filters.is_empty()) {
        let facts = facts(model, &metric.body);
        let Some(definition) = by_name.get(&*metric.name).filter(|_| !facts.is_empty()) else { continue };
        for filter in &definition.filters {
            let cube = filter.member.value.split('.').next().unwrap_or_default();
            let Some(cube) = model.cube_named(cube) else { continue };
            if facts.iter().any(|fact| *fact == cube.id || model.join_paths(*fact).reaches(cube.id)) {
                continue;
            }
            let of: Vec<String> = facts.iter().map(|fact| format!("`{}`", model.cube(*fact).name)).collect();
            let of = of.join(", ");
            let message =
                format!("metric `{}` is filtered by `{}`, which no join reaches from {of}", metric.name, cube.name);
            let hint = format!("Filter by a dimension of {of} or of a cube that it joins, or add the join.");
            diagnostics.push(Diagnostic::error(Code::NoJoinPath, message).hint(hint).at(filter.member.span()));
        }
    }
}

/// Returns the cubes whose rows a metric aggregates.
pub(super) fn facts(model: &Model, body: &Snippet) -> BTreeSet<CubeId> {
    let (mut facts, mut met) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![body];
    while let Some(snippet) = open.pop() {
        snippet.for_each(&mut |part| match part {
            SqlPart::Measure(id) => {
                facts.insert(id.cube);
                if let MeasureKind::Number(sql) = &model.measure(*id).kind
                    && met.insert((Some(id.cube), id.index))
                {
                    open.push(sql);
                }
            }
            SqlPart::Metric(id) if met.insert((None, id.0)) => open.push(&model.metric(*id).body),
            _ => {}
        });
    }
    facts
}

/// Returns the error that a filter would cause in each query of the metric.
fn refused(filter: &MetricFilterDefinition, dimension: &Dimension) -> Option<Diagnostic> {
    let (member, operator) = (filter.member.value.parse().ok()?, filter.operator.value.parse().ok()?);
    let declared = filter.values.as_ref()?;
    let values: Vec<Value> = declared.iter().map(|declared| declared.value.clone()).collect();
    let (error, at) = refusal(dimension, &member, operator, &values)?;
    let declared = at.and_then(|at| declared.get(at));
    let (code, hint) = match (&error, declared) {
        (QueryError::OperatorNotAllowed { valid_operators, .. }, _) => {
            (Code::OperatorMismatch, format!("Write one of {}.", in_backticks(valid_operators.iter().copied())))
        }
        (QueryError::ValueCount { expected: "no value", .. }, _) => (Code::ValueCount, "Remove `value`.".to_owned()),
        (QueryError::ValueCount { expected, .. }, _) => (Code::ValueCount, format!("Write {expected} as `value`.")),
        (_, Some(declared)) => (Code::ValueMismatch, invalid_value::hint(&declared.value, dimension)),
        (_, None) => return None,
    };
    let span = declared.map_or_else(|| filter.operator.span(), |declared| declared.origin.span());
    Some(Diagnostic::error(code, error.to_string()).hint(hint).at(span))
}

/// Returns the dimensions with this name, qualified by their cubes, for a hint.
fn owners(name: &str, model: &Model) -> String {
    let cubes = model.cubes.iter().filter(|cube| matches!(cube.member(name), Some(Member::Dimension(_))));
    let owners: Vec<String> = cubes.map(|cube| format!("`{}.{name}`", cube.name)).collect();
    if owners.is_empty() { "Write `cube.member`.".to_owned() } else { format!("Write {}.", owners.join(" or ")) }
}
