//! Summarizes a model in a few lines of text, for snapshots.

use std::fmt::Write as _;

use terrane_compiler::model::{
    Aggregate, Dimension, DimensionType, MeasureKind, Model, Relation, Snippet, SqlPart, TimeKind,
};

pub(crate) fn of(model: &Model) -> String {
    let mut out = format!("project {}\n", model.project);
    for cube in &model.cubes {
        let _ = write!(out, "\ncube {} ({})", cube.name, cube.title);
        if let Some(original) = cube.alias_of {
            let _ = write!(out, " alias of {}", model.cube(original).name);
        }
        if !cube.public {
            out.push_str(" not public");
        }
        let key: Vec<&str> = cube.primary_key.iter().map(|index| &*cube.dimensions[*index as usize].name).collect();
        let time = cube.primary_time.map(|index| &*cube.dimensions[index as usize].name);
        let _ = writeln!(out, "\n  key [{}], time {}", key.join(", "), time.unwrap_or("-"));
        match &cube.relation {
            Relation::Table(parts) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|part| if part.quoted { format!("\"{}\"", part.text) } else { part.text.to_string() })
                    .collect();
                let _ = writeln!(out, "  rows of {}", parts.join("."));
            }
            Relation::Query { models, sql: rows } | Relation::Model { models, name: rows } => {
                for (name, sql) in models {
                    let _ = writeln!(out, "  with {name}: {}", one_line(sql));
                }
                let _ = writeln!(out, "  rows of ({})", one_line(rows));
            }
        }
        if let Some(refresh) = &cube.refresh {
            let query = refresh.query.as_ref().map(|query| one_line(&query.text));
            let _ = writeln!(out, "  refresh every {:?}, query {}", refresh.every, query.as_deref().unwrap_or("-"));
        }
        for dimension in &cube.dimensions {
            let _ =
                writeln!(out, "  dimension {} {}: {}", dimension.name, kind(dimension), snippet(model, &dimension.sql));
        }
        for measure in &cube.measures {
            let body = match &measure.kind {
                MeasureKind::Aggregate(one) => aggregate(model, one),
                MeasureKind::Number(body) => format!("number {}", snippet(model, body)),
                MeasureKind::RunningTotal { aggregate: one, from_all } => {
                    format!("running total{} of {}", if *from_all { " from all" } else { "" }, aggregate(model, one))
                }
                MeasureKind::Rolling { aggregate: one, window } => format!(
                    "{} rolling from {} before to {} after the {}",
                    aggregate(model, one),
                    window.trailing,
                    window.leading,
                    window.offset.as_str()
                ),
            };
            let _ = writeln!(out, "  measure {}: {body}", measure.name);
        }
        for segment in &cube.segments {
            let _ = writeln!(out, "  segment {}: {}", segment.name, snippet(model, &segment.sql));
        }
        for join in &cube.joins {
            let always = if join.always { " always" } else { "" };
            let target = &model.cube(join.target).name;
            let _ = writeln!(out, "  join {target} {:?}{always}: {}", join.relationship, snippet(model, &join.on));
        }
    }
    for metric in &model.metrics {
        let _ = write!(out, "\nmetric {} {:?}: {}", metric.name, metric.kind, snippet(model, &metric.body));
        if let Some(grain) = metric.time_grain {
            let _ = write!(out, ", not finer than {grain}");
        }
        for filter in &metric.filters {
            let _ = write!(out, ", where {} {} {:?}", filter.member, filter.operator, filter.values);
        }
    }
    out.push('\n');
    out
}

fn one_line(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kind(dimension: &Dimension) -> String {
    let word = match dimension.ty {
        DimensionType::String => "string",
        DimensionType::Number => "number",
        DimensionType::Boolean => "boolean",
        DimensionType::Geo => "geo",
        DimensionType::Time => "time",
    };
    let zone = match (dimension.ty, dimension.time) {
        (DimensionType::Time, TimeKind::WallClock) => " wall clock",
        _ => "",
    };
    let steps: Vec<&str> = dimension.granularities.iter().map(|granularity| granularity.as_str()).collect();
    let steps = if matches!(steps.len(), 0 | 8) { String::new() } else { format!(" by {}", steps.join(" ")) };
    let hidden = if dimension.presentation.hidden { " hidden" } else { "" };
    format!("{word}{zone}{steps}{hidden}")
}

fn aggregate(model: &Model, aggregate: &Aggregate) -> String {
    let argument = aggregate.argument.as_ref().map_or("rows".to_owned(), |argument| snippet(model, argument));
    let filters: String = aggregate.filters.iter().map(|filter| format!(" where {}", snippet(model, filter))).collect();
    format!("{:?} of {argument}{filters}", aggregate.function)
}

/// Returns a snippet with marks around each part: `<cube.column>`, `[cube.dimension]`, `{measure}`, `⟨metric⟩`, `(a ÷
/// b)`.
fn snippet(model: &Model, snippet: &Snippet) -> String {
    let mut out = if snippet.is_atomic { String::new() } else { "~".to_owned() };
    for part in &snippet.parts {
        match part {
            SqlPart::Text(text) => out.push_str(text),
            SqlPart::Column { cube, name } => {
                let quote = if name.quoted { "\"" } else { "" };
                let _ = write!(out, "<{}.{quote}{}{quote}>", model.cube(*cube).name, name.text);
            }
            SqlPart::Dimension(id) => {
                let _ = write!(out, "[{}.{}]", model.cube(id.cube).name, model.dimension(*id).name);
            }
            SqlPart::User(user) => {
                let _ = write!(out, "«caller's {:?}{}", user.value, if user.is_list { ", a list" } else { "" });
                if let Some(compared) = &user.compared {
                    let _ = write!(out, ", beside {}", self::snippet(model, &compared.sql));
                }
                out.push('»');
            }
            SqlPart::Measure(id) => {
                let _ = write!(out, "{{{}.{}}}", model.cube(id.cube).name, model.measure(*id).name);
            }
            SqlPart::Metric(id) => {
                let _ = write!(out, "⟨{}⟩", model.metric(*id).name);
            }
            SqlPart::Aggregate(one) => {
                let _ = write!(out, "«{}»", aggregate(model, one));
            }
            SqlPart::Divide(left, right) => {
                let _ = write!(out, "({} ÷ {})", self::snippet(model, left), self::snippet(model, right));
            }
        }
    }
    out
}
