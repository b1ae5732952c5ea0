//! Text of resolved queries and plans, for people and for golden tests.
//!
//! In: the result of a stage. Out: indented lines with names instead of ids. The text is never parsed.

use std::fmt::Write;

use crate::model::{Aggregate, CubeId, DimensionId, Model, RollingWindow, Snippet, SqlPart};
use crate::plan::{ArgumentForm, GroupOperand, GroupPredicate, LogicalPlan, PlannedTarget, RowKey, ValueExpr};
use crate::query::{
    Bound, Group, GroupBy, Operand, OrderTarget, Predicate, ResolvedQuery, ResolvedRowCondition, RowValueKind, Test,
    TypedRowValue, ValueId,
};
use crate::types::Value;

/// Returns the text of a resolved query, one line for each part.
pub fn explain_query(model: &Model, query: &ResolvedQuery) -> String {
    let mut lines = Lines::default();
    let names = Names { model };
    for group in &query.groups {
        lines.add(0, format_args!("group {}", names.group(group)));
    }
    for value in &query.values {
        lines.add(0, format_args!("value {} = {}", value.key, names.value(value.value)));
    }
    for one in &query.computed {
        let (function, value, cube) = (one.function, names.row_value(&one.value), &model.cube(one.fact).name);
        lines.add(0, format_args!("value {} = {function:?}({value}) of {cube}", one.key));
    }
    for filter in &query.row_filters {
        lines.add(0, format_args!("rows{} where {}", names.of_fact(filter.fact), names.predicate(&filter.predicate)));
    }
    for range in &query.ranges {
        let on = names.dimension(range.dimension);
        lines.add(0, format_args!("rows{} where {}", names.of_fact(range.fact), test_text(&on, &range.test)));
        if let Some(previous) = &range.previous {
            lines.add(1, format_args!("compared with {}", test_text(&on, previous)));
        }
    }
    for segment in &query.segments {
        let cube = &model.cube(segment.cube).name;
        lines.add(0, format_args!("segment {cube}.{}", model.segment(*segment).name));
    }
    for filter in &query.group_filters {
        lines.add(0, format_args!("groups where {}", names.predicate(filter)));
    }
    for key in &query.order {
        let target = match key.target {
            OrderTarget::Group(index) => query.groups[index].key.to_string(),
            OrderTarget::Selected(index) => query.values[index].key.to_string(),
            OrderTarget::Value(value) => names.value(value),
        };
        lines.add(0, format_args!("order by {target} {}", direction(key.descending)));
    }
    lines.add(0, format_args!("limit {} offset {}", query.limit, query.offset));
    lines.text
}

/// Returns the text of a plan: its facts with their joins and aggregates, then the values computed from them.
pub fn explain_plan(plan: &LogicalPlan<'_>) -> String {
    let names = Names { model: plan.model };
    let mut lines = Lines::default();
    for (index, fact) in plan.facts.iter().enumerate() {
        let role = if fact.is_selected { "fact" } else { "lookup" };
        let period = match (fact.period.is_previous, fact.period.has_history) {
            (false, false) => "",
            (true, false) => ", compared range",
            (false, true) => ", with earlier rows",
            (true, true) => ", compared range with earlier rows",
        };
        let dated = if fact.period.is_dated { ", rows with a time" } else { "" };
        let window = fact.period.window.map(|window| {
            let RollingWindow { trailing, leading, offset } = window;
            format!(", rolling from {trailing} before to {leading} after the {} of each step", offset.as_str())
        });
        let window = window.unwrap_or_default();
        lines.add(0, format_args!("{role} {}{period}{dated}{window}", plan.model.cube(fact.tree.cube).name));
        for (index, planned) in fact.tree.joins.iter().enumerate() {
            let kind = match (planned.join.never_misses(), planned.is_to_many) {
                (true, _) => "inner join",
                (_, true) => "to-many join",
                (_, false) => "join",
            };
            let from = &plan.model.cube(fact.tree.cube_of(planned.from)).name;
            let to = &plan.model.cube(fact.tree.cube_of(index + 1)).name;
            let alias = if *planned.alias == **to { String::new() } else { format!(" as {}", planned.alias) };
            lines.add(1, format_args!("{kind} {from} -> {to}{alias} on {}", names.snippet(&planned.join.on)));
        }
        match &fact.distinct {
            Some(RowKey::PrimaryKey(keys)) => {
                let keys: Vec<String> = keys.iter().map(|id| names.dimension(*id)).collect();
                lines.add(1, format_args!("each row once, by {}", keys.join(", ")));
            }
            Some(RowKey::RowNumber) => lines.add(1, format_args!("each row once, by its number")),
            None => {}
        }
        for (_, segment) in &fact.segments {
            lines.add(1, format_args!("where {}", names.snippet(segment)));
        }
        for filter in &fact.row_filters {
            lines.add(1, format_args!("where {}", names.predicate(filter)));
        }
        for semi_join in &fact.semi_joins {
            let cube = &plan.model.cube(semi_join.tree.cube).name;
            let filters: Vec<String> = semi_join.filters.iter().map(|filter| names.predicate(filter)).collect();
            lines.add(1, format_args!("where some row of {cube} has {}", filters.join(" and ")));
        }
        for (number, planned) in plan.aggregates.iter().enumerate().filter(|(_, a)| a.fact == index) {
            let metrics: Vec<&str> = planned.metrics.iter().map(|id| &*plan.model.metric(*id).name).collect();
            let narrowed = if metrics.is_empty() { String::new() } else { format!(" only {}", metrics.join(", ")) };
            let aggregate = match &planned.shape {
                ArgumentForm::Row(value) => format!("{:?}({})", planned.aggregate.function, names.row_value(value)),
                _ => names.aggregate(planned.aggregate),
            };
            lines.add(1, format_args!("a{number} = {aggregate}{narrowed}"));
        }
    }
    for group in &plan.groups {
        lines.add(0, format_args!("group {}", names.group(group)));
    }
    for value in &plan.values {
        lines.add(0, format_args!("value {} = {}", value.key, value_text(&value.expression)));
    }
    for filter in &plan.group_filters {
        lines.add(0, format_args!("groups where {}", names.group_predicate(plan, filter)));
    }
    for order in &plan.order {
        let target = match &order.target {
            PlannedTarget::Group(index) => plan.groups[*index].key.to_string(),
            PlannedTarget::Value(index) => plan.values[*index].key.to_string(),
            PlannedTarget::Expression(value) => value_text(value),
            PlannedTarget::Dimension(id) => names.dimension(*id),
        };
        lines.add(0, format_args!("order by {target} {}", direction(order.descending)));
    }
    lines.add(0, format_args!("limit {} offset {}", plan.limit, plan.offset));
    lines.text
}

#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    fn add(&mut self, depth: usize, line: std::fmt::Arguments<'_>) {
        // Writing to a String never fails.
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = depth * 2);
    }
}

fn direction(descending: bool) -> &'static str {
    if descending { "descending" } else { "ascending" }
}

struct Names<'m> {
    model: &'m Model,
}

impl Names<'_> {
    fn dimension(&self, id: DimensionId) -> String {
        format!("{}.{}", self.model.cube(id.cube).name, self.model.dimension(id).name)
    }

    fn group(&self, group: &Group) -> String {
        let by = group.granularity.map(|g| format!(" by {g}")).unwrap_or_default();
        let dimension = match group.by {
            GroupBy::Dimension(id) => self.dimension(id),
            GroupBy::MetricTime => "each fact's primary time".to_owned(),
        };
        format!("{} = {dimension}{by}", group.key)
    }

    fn of_fact(&self, fact: Option<CubeId>) -> String {
        fact.map(|cube| format!(" of {}", self.model.cube(cube).name)).unwrap_or_default()
    }

    fn value(&self, value: ValueId) -> String {
        match value {
            ValueId::Measure(id) => {
                format!("measure {}.{}", self.model.cube(id.cube).name, self.model.measure(id).name)
            }
            ValueId::Metric(id) => format!("metric {}", self.model.metric(id).name),
        }
    }

    fn predicate(&self, predicate: &Predicate) -> String {
        let all = |inner: &[Predicate], word: &str| {
            let parts: Vec<String> = inner.iter().map(|p| self.predicate(p)).collect();
            format!("({})", parts.join(word))
        };
        match predicate {
            Predicate::And(inner) => all(inner, " and "),
            Predicate::Or(inner) => all(inner, " or "),
            Predicate::Not(inner) => format!("not {}", self.predicate(inner)),
            Predicate::Test { operand, test } => match *operand {
                Operand::Value(value) => test_text(&self.value(value), test),
                Operand::MetricTime { granularity } => {
                    let by = granularity.map(|g| format!(".{g}")).unwrap_or_default();
                    test_text(&format!("metric_time{by}"), test)
                }
                Operand::Dimension { id, granularity } => {
                    let by = granularity.map(|g| format!(".{g}")).unwrap_or_default();
                    test_text(&format!("{}{by}", self.dimension(id)), test)
                }
            },
        }
    }

    fn group_predicate(&self, plan: &LogicalPlan<'_>, predicate: &GroupPredicate<'_>) -> String {
        let all = |inner: &[GroupPredicate<'_>], word: &str| {
            let parts: Vec<String> = inner.iter().map(|p| self.group_predicate(plan, p)).collect();
            format!("({})", parts.join(word))
        };
        match predicate {
            GroupPredicate::And(inner) => all(inner, " and "),
            GroupPredicate::Or(inner) => all(inner, " or "),
            GroupPredicate::Not(inner) => format!("not {}", self.group_predicate(plan, inner)),
            GroupPredicate::Test { operand, test } => match operand {
                GroupOperand::Group(index) => test_text(&plan.groups[*index].key, test),
                GroupOperand::Value(value) => test_text(&value_text(value), test),
            },
        }
    }

    fn row_value(&self, value: &TypedRowValue) -> String {
        match &value.kind {
            RowValueKind::Dimension(id) => format!("{{{}}}", self.dimension(*id)),
            RowValueKind::Constant(Value::Null) => "null".to_owned(),
            RowValueKind::Constant(value) => literal(value),
            RowValueKind::Arithmetic { operator, left, right } => {
                format!("{operator:?}({}, {})", self.row_value(left), self.row_value(right))
            }
            RowValueKind::Coalesce(first, second) => {
                format!("Coalesce({}, {})", self.row_value(first), self.row_value(second))
            }
            RowValueKind::When { condition, value, otherwise } => {
                let condition = self.row_condition(condition);
                format!("If({condition}, {}, {})", self.row_value(value), self.row_value(otherwise))
            }
        }
    }

    fn row_condition(&self, condition: &ResolvedRowCondition) -> String {
        let all = |inner: &[ResolvedRowCondition], word: &str| {
            let parts: Vec<String> = inner.iter().map(|one| self.row_condition(one)).collect();
            format!("({})", parts.join(word))
        };
        match condition {
            ResolvedRowCondition::Filter(predicate) => self.predicate(predicate),
            ResolvedRowCondition::Compare { comparison, left, right } => {
                format!("{comparison:?}({}, {})", self.row_value(left), self.row_value(right))
            }
            ResolvedRowCondition::IsNull(value) => format!("{} is null", self.row_value(value)),
            ResolvedRowCondition::And(inner) => all(inner, " and "),
            ResolvedRowCondition::Or(inner) => all(inner, " or "),
            ResolvedRowCondition::Not(inner) => format!("not {}", self.row_condition(inner)),
        }
    }

    fn aggregate(&self, aggregate: &Aggregate) -> String {
        let argument = aggregate.argument.as_ref().map_or_else(|| "rows".to_owned(), |a| self.snippet(a));
        let filters: Vec<String> = aggregate.filters.iter().map(|f| self.snippet(f)).collect();
        let narrowed = if filters.is_empty() { String::new() } else { format!(" where {}", filters.join(" and ")) };
        format!("{:?}({argument}){narrowed}", aggregate.function)
    }

    fn snippet(&self, snippet: &Snippet) -> String {
        let mut text = String::new();
        for part in &snippet.parts {
            match part {
                SqlPart::Text(part) => text.push_str(part),
                SqlPart::Column { cube, name } => {
                    let _ = write!(text, "{}.{}", self.model.cube(*cube).name, name.text);
                }
                SqlPart::Dimension(id) => {
                    let _ = write!(text, "{{{}}}", self.dimension(*id));
                }
                SqlPart::User(user) => {
                    let _ = write!(text, "{:?} of the caller", user.value);
                }
                SqlPart::Measure(id) => text.push_str(&self.value(ValueId::Measure(*id))),
                SqlPart::Metric(id) => text.push_str(&self.value(ValueId::Metric(*id))),
                SqlPart::Aggregate(aggregate) => text.push_str(&self.aggregate(aggregate)),
                SqlPart::Divide(left, right) => {
                    let _ = write!(text, "({}) / ({})", self.snippet(left), self.snippet(right));
                }
            }
        }
        text
    }
}

fn value_text(value: &ValueExpr<'_>) -> String {
    match value {
        ValueExpr::Aggregate(index) => format!("a{index}"),
        ValueExpr::Running(index) => format!("running total r{index}"),
        ValueExpr::Text(text) => (*text).to_owned(),
        ValueExpr::Sequence { parts, .. } => parts.iter().map(value_text).collect(),
        ValueExpr::Divide(left, right) => format!("({}) / ({})", value_text(left), value_text(right)),
    }
}

fn test_text(on: &str, test: &Test) -> String {
    let bound = |bound: &Option<Bound>, inclusive: &str, exclusive: &str| {
        bound.as_ref().map(|b| format!("{} {}", if b.inclusive { inclusive } else { exclusive }, literal(&b.value)))
    };
    match test {
        Test::Never => "never".to_owned(),
        Test::IsNull | Test::NoRow => format!("{on} is null"),
        Test::Equals(value) => format!("{on} = {}", literal(value)),
        Test::Match { kind, text } => format!("{on} {kind:?} {}", literal(text)),
        Test::InList { values, or_null } => {
            let values: Vec<String> = values.iter().map(literal).collect();
            format!("{on} in [{}]{}", values.join(", "), if *or_null { " or null" } else { "" })
        }
        Test::Range { low, high } => {
            let ends = [bound(low, ">=", ">"), bound(high, "<=", "<")];
            let ends: Vec<String> = ends.into_iter().flatten().map(|end| format!("{on} {end}")).collect();
            ends.join(" and ")
        }
        Test::AnyOf(tests) => {
            let tests: Vec<String> = tests.iter().map(|t| test_text(on, t)).collect();
            format!("({})", tests.join(" or "))
        }
        Test::Not(inner) => format!("not ({})", test_text(on, inner)),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{text}'"),
        Value::Decimal(digits) => digits.to_string(),
        Value::Integer(integer) => integer.to_string(),
        Value::Date(days) => jiff::civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(*days)).to_string(),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => {
            jiff::Timestamp::from_microsecond(*micros).map_or_else(|_| micros.to_string(), |t| t.to_string())
        }
        other => format!("{other:?}"),
    }
}
