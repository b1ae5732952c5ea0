//! Describes the name at a position: title, type, description, SQL, and where it is defined.

use lsp_types::{Position, Range};
use terrane_compiler::project::{
    CubeDefinition, Definitions, MetricBody, MetricDefinition, SqlText, Text, Wording, dimension_type_word,
    measure_type_word, metric_kind_word,
};

use crate::index::{Scope, Symbol};
use crate::workspace::Workspace;

/// Returns a description in Markdown, and the place of the name that it describes.
pub fn hover(workspace: &mut Workspace, path: &str, position: Position) -> Option<(String, Range)> {
    let found = workspace.occurrences_at(path, position).into_iter().next()?;
    let range = workspace.range(&found.span);
    let text = describe(&workspace.analysis().definitions, &found.symbol)?;
    Some((text, range))
}

/// Returns the description of a symbol in Markdown.
pub(crate) fn describe(definitions: &Definitions, symbol: &Symbol) -> Option<String> {
    let scope = Scope::of(definitions);
    match symbol {
        Symbol::Cube(name) => scope.cubes.get(&**name).map(|cube| of_cube(cube, None)),
        Symbol::Alias(name) => scope.cube(name).map(|cube| of_cube(cube, Some(name))),
        Symbol::Member(cube, name) => of_member(scope.cubes.get(&**cube)?, name),
        Symbol::Metric(name) => scope.metrics.get(&**name).map(|metric| of_metric(metric)),
        Symbol::Model(name) => {
            let model = definitions.models.iter().find(|model| model.name.value == *name)?;
            Some(format!("**{name}** (model, {})\n\n{}", model.materialization.as_str(), defined(&model.name)))
        }
    }
}

/// Returns the parts that all descriptions have.
fn page(name: &str, kind: &str, wording: &Wording, sql: &[&SqlText], place: &Text) -> String {
    let mut text = match &wording.title {
        Some(title) => format!("**{title}**  \n`{name}` ({kind})"),
        None => format!("**{name}** ({kind})"),
    };
    if let Some(description) = &wording.description {
        text.push_str(&format!("\n\n{}", description.trim()));
    }
    for sql in sql {
        let source = sql.template.as_ref().unwrap_or(&sql.text).trim();
        // The fence must not occur in the SQL.
        let fence = if source.contains("```") { "~~~~" } else { "```" };
        text.push_str(&format!("\n\n{fence}sql\n{source}\n{fence}"));
    }
    if let Some(unit) = &wording.governed.unit {
        text.push_str(&format!("\n\nUnit: {unit}"));
    }
    format!("{text}\n\n{}", defined(place))
}

fn defined(place: &Text) -> String {
    format!("Defined in {}", place.span())
}

fn of_cube(cube: &CubeDefinition, alias: Option<&str>) -> String {
    let name = alias.unwrap_or(&cube.name.value);
    let kind = match alias {
        Some(_) => format!("another name of cube {}", cube.name.value),
        None => "cube".to_owned(),
    };
    let sql: Vec<&SqlText> = cube.relation.iter().map(|relation| &relation.sql).collect();
    page(name, &kind, &cube.wording, &sql, &cube.name)
}

fn of_member(cube: &CubeDefinition, name: &str) -> Option<String> {
    let full = format!("{}.{name}", cube.name.value);
    if let Some(measure) = cube.measures.iter().find(|measure| &*measure.name.value == name) {
        let kind = format!("measure, {}", measure_type_word(measure.ty));
        let sql: Vec<&SqlText> = measure.sql.iter().chain(&measure.filters).collect();
        return Some(page(&full, &kind, &measure.wording, &sql, &measure.name));
    }
    if let Some(dimension) = cube.dimensions.iter().find(|dimension| &*dimension.name.value == name) {
        let key = if dimension.primary_key { ", primary key" } else { "" };
        let kind = format!("dimension, {}{key}", dimension_type_word(dimension.ty));
        return Some(page(&full, &kind, &dimension.wording, &[&dimension.sql], &dimension.name));
    }
    let segment = cube.segments.iter().find(|segment| &*segment.name.value == name)?;
    Some(page(&full, "segment", &segment.wording, &[&segment.sql], &segment.name))
}

fn of_metric(metric: &MetricDefinition) -> String {
    let sql: Vec<&SqlText> = match &metric.body {
        MetricBody::Expression(sql) => vec![sql],
        MetricBody::Ratio { numerator, denominator } => vec![numerator, denominator],
    };
    page(&metric.name.value, &format!("metric, {}", metric_kind_word(metric.kind)), &metric.wording, &sql, &metric.name)
}
