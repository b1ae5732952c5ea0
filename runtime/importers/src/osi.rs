//! Writes a compiled model in the Open Semantic Interchange format.
//!
//! In: a compiled model without errors. Out: one YAML document, and a finding for everything that the format cannot
//! express. The schema of the format is `core-spec/osi-schema.json` of Apache Ossie, version 0.2.0.dev0. Members that
//! queries cannot name are left out. Not here: policies, which the format does not have, and the place of the file.

mod expression;
mod relationship;

use terrane_authoring::names::Taken;
use terrane_authoring::yaml::{Yaml, document};
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::{Cube, Dimension, MeasureKind, Metric, Model, Relation};
use terrane_compiler::snippet::ColumnName;
use terrane_compiler::types::DimensionType;

use crate::finding::{changed, left_out};
use expression::{Place, Printer};

/// The version of the format.
const VERSION: &str = "0.2.0.dev0";

const PRIVATE_CURE: &str = "Write `public: true` if the other tool may show it.";

/// An exported document, and the findings about its model.
#[derive(Debug)]
pub struct Export {
    pub text: String,
    pub findings: Vec<Diagnostic>,
}

/// Exports a model. `warehouse` is the type of the warehouse whose SQL the expressions contain.
pub fn export(model: &Model, warehouse: &str) -> Export {
    let mut writer = Writer { model, dialect: dialect(warehouse), findings: Vec::new() };
    let cubes: Vec<&Cube> = model.cubes.iter().filter(|cube| cube.public).collect();
    writer.report_closed();
    let datasets: Vec<Yaml> = cubes.iter().map(|cube| writer.dataset(cube)).collect();
    let mut relationships: Vec<Yaml> = Vec::new();
    let mut taken = Taken::default();
    // An alias repeats the joins of its cube. These joins start from the rows of the cube, so the alias is skipped.
    for mut yaml in cubes.iter().filter(|cube| cube.alias_of.is_none()).flat_map(|cube| writer.relationships(cube)) {
        // If two cubes join each other over the same columns, both joins are one relationship.
        let is_same = |known: &Yaml| {
            ["from", "to", "from_columns", "to_columns"].iter().all(|key| known.get(key) == yaml.get(key))
        };
        if !relationships.iter().any(is_same) {
            let name = taken.take(yaml.get("name").and_then(Yaml::as_text).unwrap_or_default());
            yaml.set("name", Yaml::Text(name));
            relationships.push(yaml);
        }
    }
    let metrics = writer.metrics(&cubes);
    let mut semantic = Yaml::map([("name", Yaml::text(&*model.project)), ("datasets", Yaml::List(datasets))]);
    for (key, items) in [("relationships", relationships), ("metrics", metrics)] {
        if !items.is_empty() {
            semantic.set(key, Yaml::List(items));
        }
    }
    let yaml = Yaml::map([("version", Yaml::text(VERSION)), ("semantic_model", Yaml::List(vec![semantic]))]);
    Export { text: document("Created by `terrane export osi`.", &yaml), findings: writer.findings }
}

/// Returns the format's name for the SQL dialect of a warehouse.
fn dialect(warehouse: &str) -> &'static str {
    match warehouse {
        "snowflake" => "SNOWFLAKE",
        "bigquery" => "BIGQUERY",
        "spark" | "databricks" => "DATABRICKS",
        _ => "ANSI_SQL",
    }
}

struct Writer<'m> {
    model: &'m Model,
    dialect: &'static str,
    findings: Vec<Diagnostic>,
}

impl<'m> Writer<'m> {
    fn report_closed(&mut self) {
        for cube in self.model.cubes.iter().filter(|cube| !cube.public) {
            let Some(span) = cube.span.clone() else { continue };
            let what = format!("cube `{}` is not exported: queries cannot name it", cube.name);
            self.findings.push(left_out(span, what, PRIVATE_CURE));
        }
        for policy in &self.model.policies {
            let what = format!("policy `{}` is not exported: the format has no access rules", policy.name);
            let cure = "Restrict the rows and columns in the other tool or in the warehouse.";
            let own =
                policy.row_filter_span.clone().or_else(|| policy.mask_spans.first().map(|(_, span)| span.clone()));
            let span = own.or_else(|| self.model.cubes.iter().find_map(|cube| cube.span.clone()));
            self.findings.extend(span.map(|span| left_out(span, what, cure)));
        }
    }

    fn dataset(&mut self, cube: &'m Cube) -> Yaml {
        let mut yaml = Yaml::map([("name", Yaml::text(&*cube.name)), ("source", Yaml::Text(source(&cube.relation)))]);
        if let Some(key) = self.primary_key(cube) {
            yaml.set("primary_key", Yaml::texts(key));
        }
        if let Some(description) = &cube.description {
            yaml.set("description", Yaml::text(&**description));
        }
        let fields: Vec<Yaml> = cube.dimensions.iter().filter_map(|dimension| self.field(cube, dimension)).collect();
        if !fields.is_empty() {
            yaml.set("fields", Yaml::List(fields));
        }
        for segment in &cube.segments {
            let what =
                format!("segment `{}.{}` is not exported: the format has no named conditions", cube.name, segment.name);
            let span = segment.sql_span.clone().or_else(|| cube.span.clone());
            self.findings.extend(span.map(|span| left_out(span, what, "Write it as a boolean dimension.")));
        }
        yaml
    }

    /// Returns the columns of the primary key, or `None` if a part of the key is an expression.
    fn primary_key(&self, cube: &Cube) -> Option<Vec<String>> {
        let keys: Vec<&Dimension> =
            cube.primary_key.iter().filter_map(|index| cube.dimensions.get(*index as usize)).collect();
        let columns: Option<Vec<String>> = keys.iter().map(|key| expression::column(&key.sql, cube.id)).collect();
        columns.filter(|columns| !columns.is_empty())
    }

    fn field(&mut self, cube: &'m Cube, dimension: &'m Dimension) -> Option<Yaml> {
        let presentation = &dimension.presentation;
        if presentation.is_private {
            let what = format!("dimension `{}.{}` is not exported: queries cannot name it", cube.name, dimension.name);
            let span = dimension.span.clone();
            self.findings.extend(span.map(|span| left_out(span, what, PRIVATE_CURE)));
            return None;
        }
        let Some(sql) = (Printer { model: self.model, cube, place: Place::Field }).snippet(&dimension.sql) else {
            let what =
                format!("dimension `{}.{}` is not exported: its expression is too long", cube.name, dimension.name);
            let span = dimension.span.clone();
            self.findings.extend(span.map(|span| left_out(span, what, "Compute it in a model (models/*.sql).")));
            return None;
        };
        let mut yaml = Yaml::map([("name", Yaml::text(&*dimension.name)), ("expression", self.expression(sql))]);
        yaml.set("dimension", Yaml::map([("is_time", Yaml::Boolean(dimension.ty == DimensionType::Time))]));
        if let Some(description) = &presentation.description {
            yaml.set("description", Yaml::text(&**description));
        }
        match dimension.ty {
            DimensionType::String => yaml.set("datatype", Yaml::text("String")),
            DimensionType::Boolean => yaml.set("datatype", Yaml::text("Boolean")),
            // No datatype is written for values of these types, because the warehouse knows their exact types.
            DimensionType::Number | DimensionType::Time | DimensionType::Geo => {}
        }
        set_context(&mut yaml, &presentation.governed.synonyms);
        Some(yaml)
    }

    fn expression(&self, sql: String) -> Yaml {
        let one = Yaml::map([("dialect", Yaml::text(self.dialect)), ("expression", Yaml::Text(sql))]);
        Yaml::map([("dialects", Yaml::List(vec![one]))])
    }

    fn relationships(&mut self, cube: &'m Cube) -> Vec<Yaml> {
        let mut found = Vec::new();
        for join in &cube.joins {
            let target = self.model.cube(join.target);
            if !target.public {
                continue;
            }
            match relationship::relationship(self.model, cube, join) {
                Some(yaml) => found.push(yaml),
                None => {
                    let what = format!(
                        "join `{}` of cube `{}` is not exported: it does not compare columns",
                        target.name, cube.name
                    );
                    let span = join.span.clone();
                    self.findings.extend(span.map(|span| left_out(span, what, "Compare columns by `=` and AND.")));
                }
            }
        }
        found
    }

    /// Returns the measures of all cubes and the metrics of the project.
    fn metrics(&mut self, cubes: &[&'m Cube]) -> Vec<Yaml> {
        let mut taken = Taken::default();
        let mut items = Vec::new();
        for metric in &self.model.metrics {
            taken.take(&metric.name);
            items.extend(self.metric(metric));
        }
        for cube in cubes.iter().filter(|cube| cube.alias_of.is_none()) {
            for measure in &cube.measures {
                if measure.presentation.is_private {
                    let what =
                        format!("measure `{}.{}` is not exported: queries cannot name it", cube.name, measure.name);
                    self.findings.extend(measure.span.clone().map(|span| left_out(span, what, PRIVATE_CURE)));
                    continue;
                }
                let printer = Printer { model: self.model, cube, place: Place::Metric };
                let Some(sql) = printer.measure(measure) else {
                    let what = match measure.kind {
                        MeasureKind::RunningTotal { .. } => "the format has no running totals",
                        MeasureKind::Rolling { .. } => "the format has no rolling windows",
                        MeasureKind::Number(_) => {
                            "it is computed from a measure that is not exported, or it is too long"
                        }
                        MeasureKind::Aggregate(_) => "its aggregation has no name in standard SQL",
                    };
                    let what = format!("measure `{}.{}` is not exported: {what}", cube.name, measure.name);
                    let span = measure.span.clone();
                    self.findings.extend(span.map(|span| left_out(span, what, "Define it in the other tool.")));
                    continue;
                };
                let name = taken.take(&format!("{}_{}", cube.name, measure.name));
                let mut yaml = Yaml::map([("name", Yaml::text(name)), ("expression", self.expression(sql))]);
                if let Some(description) = &measure.presentation.description {
                    yaml.set("description", Yaml::text(&**description));
                }
                set_context(&mut yaml, &measure.presentation.governed.synonyms);
                items.push(yaml);
            }
        }
        items
    }

    fn metric(&mut self, metric: &'m Metric) -> Option<Yaml> {
        let rejected = |reason: &str| format!("metric `{}` is not exported: {reason}", metric.name);
        let cube = self.model.cubes.first()?;
        let printed = Printer { model: self.model, cube, place: Place::Metric }.metric(metric);
        let lost = match (&printed, metric.filters.is_empty()) {
            (Some(_), true) => None,
            (_, false) => Some((
                "it filters its measures, which the format cannot express",
                "Write the conditions as filters of measures.",
            )),
            (None, true) => {
                Some(("it is computed from a measure that is not exported", "Define it in the other tool."))
            }
        };
        if let Some((reason, cure)) = lost {
            let what = rejected(reason);
            self.findings.extend(metric.span.clone().map(|span| left_out(span, what, cure)));
            return None;
        }
        if metric.time_grain.is_some() {
            let what = format!("metric `{}` loses its `time_grain`", metric.name);
            let cure = "Restrict the granularity in the other tool.";
            self.findings.extend(metric.span.clone().map(|span| changed(span, what, cure)));
        }
        let mut yaml = Yaml::map([("name", Yaml::text(&*metric.name)), ("expression", self.expression(printed?))]);
        if let Some(description) = &metric.presentation.description {
            yaml.set("description", Yaml::text(&**description));
        }
        set_context(&mut yaml, &metric.presentation.governed.synonyms);
        Some(yaml)
    }
}

fn set_context(yaml: &mut Yaml, synonyms: &[std::sync::Arc<str>]) {
    if !synonyms.is_empty() {
        let synonyms = Yaml::texts(synonyms.iter().map(|synonym| &**synonym));
        yaml.set("ai_context", Yaml::map([("synonyms", synonyms)]));
    }
}

/// Returns the source of rows: the name of a table, or a query. SQL models become common table expressions of the
/// query.
fn source(relation: &Relation) -> String {
    let with = |models: &[(std::sync::Arc<str>, std::sync::Arc<str>)], query: String| match models {
        [] => query,
        models => {
            let models: Vec<String> = models.iter().map(|(name, sql)| format!("{name} AS ({sql})")).collect();
            format!("WITH {} {query}", models.join(", "))
        }
    };
    match relation {
        Relation::Table(name) => name.printed().iter().map(name_of).collect::<Vec<_>>().join("."),
        Relation::Query { models, sql } if models.is_empty() => sql.to_string(),
        Relation::Query { models, sql } => with(models, format!("SELECT * FROM ({sql}) AS rows_of_cube")),
        Relation::Model { models, name } => with(models, format!("SELECT * FROM {name}")),
    }
}

fn name_of(name: &ColumnName) -> String {
    if name.quoted { terrane_authoring::names::quoted(&name.text) } else { name.text.to_string() }
}
