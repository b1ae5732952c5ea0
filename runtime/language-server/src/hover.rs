//! Describes the name at a position: title, type, description, SQL, and where it is defined.

use lsp_types::{MarkupKind, Position, Range};
use terrane_compiler::project::{
    CubeDefinition, Definitions, MetricBody, MetricDefinition, SqlText, Text, Wording, dimension_type_word,
    measure_type_word, metric_kind_word,
};

use crate::index::{Scope, Symbol};
use crate::workspace::Workspace;

/// The format of descriptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Markdown,
    PlainText,
}

impl Format {
    /// Returns the name of the format in the protocol.
    pub(crate) fn kind(self) -> MarkupKind {
        match self {
            Format::Markdown => MarkupKind::Markdown,
            Format::PlainText => MarkupKind::PlainText,
        }
    }

    fn bold(self, text: &str) -> String {
        match self {
            Format::Markdown => format!("**{text}**"),
            Format::PlainText => text.to_owned(),
        }
    }

    /// Returns the first lines of a hover text: the title, the name and the kind.
    fn heading(self, name: &str, title: Option<&str>, kind: &str) -> String {
        match (self, title) {
            (_, None) => format!("{} ({kind})", self.bold(name)),
            (Format::Markdown, Some(title)) => format!("**{title}**  \n`{name}` ({kind})"),
            (Format::PlainText, Some(title)) => format!("{title}\n{name} ({kind})"),
        }
    }

    fn sql(self, sql: &str) -> String {
        // The fence must not occur in the SQL.
        let fence = if sql.contains("```") { "~~~~" } else { "```" };
        match self {
            Format::Markdown => format!("{fence}sql\n{sql}\n{fence}"),
            Format::PlainText => sql.to_owned(),
        }
    }
}

/// Returns a description, and the place of the name that it describes.
pub fn hover(workspace: &mut Workspace, path: &str, position: Position, format: Format) -> Option<(String, Range)> {
    let found = workspace.occurrences_at(path, position).into_iter().next()?;
    let range = workspace.range(&found.span);
    let definitions = &workspace.analysis().definitions;
    let text = describe(definitions, &Scope::of(definitions), &found.symbol, format)?;
    Some((text, range))
}

/// Returns the description of a symbol.
pub(crate) fn describe(
    definitions: &Definitions,
    scope: &Scope<'_>,
    symbol: &Symbol,
    format: Format,
) -> Option<String> {
    match symbol {
        Symbol::Cube(name) => scope.cubes.get(&**name).map(|cube| of_cube(cube, None, format)),
        Symbol::Alias(name) => scope.cube(name).map(|cube| of_cube(cube, Some(name), format)),
        Symbol::Member(cube, name) => of_member(scope.cubes.get(&**cube)?, name, format),
        Symbol::Metric(name) => scope.metrics.get(&**name).map(|metric| of_metric(metric, format)),
        Symbol::Model(name) => {
            let model = definitions.models.iter().find(|model| model.name.value == *name)?;
            let heading = format.heading(name, None, &format!("model, {}", model.materialization.as_str()));
            Some(format!("{heading}\n\n{}", defined(&model.name)))
        }
    }
}

/// Returns the parts that all descriptions have.
fn page(heading: String, wording: &Wording, sql: &[&SqlText], place: &Text, format: Format) -> String {
    let mut text = heading;
    if let Some(description) = &wording.description {
        text.push_str(&format!("\n\n{}", description.trim()));
    }
    for sql in sql {
        let source = sql.template.as_ref().unwrap_or(&sql.text).trim();
        text.push_str(&format!("\n\n{}", format.sql(source)));
    }
    if let Some(unit) = &wording.governed.unit {
        text.push_str(&format!("\n\nUnit: {unit}"));
    }
    format!("{text}\n\n{}", defined(place))
}

fn heading(name: &str, kind: &str, wording: &Wording, format: Format) -> String {
    format.heading(name, wording.title.as_deref(), kind)
}

fn defined(place: &Text) -> String {
    format!("Defined in {}", place.span())
}

fn of_cube(cube: &CubeDefinition, alias: Option<&str>, format: Format) -> String {
    let name = alias.unwrap_or(&cube.name.value);
    let kind = match alias {
        Some(_) => format!("another name of cube {}", cube.name.value),
        None => "cube".to_owned(),
    };
    let sql: Vec<&SqlText> = cube.relation.iter().map(|relation| &relation.sql).collect();
    page(heading(name, &kind, &cube.wording, format), &cube.wording, &sql, &cube.name, format)
}

fn of_member(cube: &CubeDefinition, name: &str, format: Format) -> Option<String> {
    let full = format!("{}.{name}", cube.name.value);
    if let Some(measure) = cube.measures.iter().find(|measure| &*measure.name.value == name) {
        let kind = format!("measure, {}", measure_type_word(measure.ty));
        let sql: Vec<&SqlText> = measure.sql.iter().chain(&measure.filters).collect();
        let heading = heading(&full, &kind, &measure.wording, format);
        return Some(page(heading, &measure.wording, &sql, &measure.name, format));
    }
    if let Some(dimension) = cube.dimensions.iter().find(|dimension| &*dimension.name.value == name) {
        let key = if dimension.primary_key { ", primary key" } else { "" };
        let kind = format!("dimension, {}{key}", dimension_type_word(dimension.ty));
        let heading = heading(&full, &kind, &dimension.wording, format);
        return Some(page(heading, &dimension.wording, &[&dimension.sql], &dimension.name, format));
    }
    let segment = cube.segments.iter().find(|segment| &*segment.name.value == name)?;
    let heading = heading(&full, "segment", &segment.wording, format);
    Some(page(heading, &segment.wording, &[&segment.sql], &segment.name, format))
}

fn of_metric(metric: &MetricDefinition, format: Format) -> String {
    let sql: Vec<&SqlText> = match &metric.body {
        MetricBody::Expression(sql) => vec![sql],
        MetricBody::Ratio { numerator, denominator } => vec![numerator, denominator],
    };
    let kind = format!("metric, {}", metric_kind_word(metric.kind));
    let heading = heading(&metric.name.value, &kind, &metric.wording, format);
    page(heading, &metric.wording, &sql, &metric.name, format)
}
