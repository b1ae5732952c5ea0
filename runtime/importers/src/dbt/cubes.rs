//! Creates a cube from each semantic model.
//!
//! In: a semantic model, and the relation and the column types of its dbt model. Out: a draft with a dimension for each
//! of its dimensions and entities, and with its measures. Not here: joins, which need all cubes.

use terrane_authoring::names::column_sql;
use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::{Diagnostic, Span};

use super::definition::{Dimension, Entity, EntityKind, Measure, SemanticModel, Wording};
use super::filter::GRANULARITIES;
use super::relations::{ColumnType, Relations};
use super::scope::{CubeNames, ProjectScope};
use crate::aggregation::measure_type;
use crate::draft::{CubeAccess, CubeDraft, CubeVisibility, Member};
use crate::finding::{changed, left_out};

pub(super) fn cube(
    model: &SemanticModel,
    scope: &ProjectScope,
    relations: &Relations,
    findings: &mut Vec<Diagnostic>,
) -> Option<CubeDraft> {
    let names = scope.cube(&model.name)?;
    let mut reader = CubeReader { model, names, relations, findings, untyped: Vec::new() };
    let mut head =
        vec![("name".to_owned(), Yaml::text(&*names.name)), ("sql_table".to_owned(), Yaml::Text(reader.relation()))];
    head.extend(wording(&model.wording));
    let mut dimensions: Vec<Member> = Vec::new();
    for entity in &model.entities {
        dimensions.extend(reader.entity(entity));
    }
    for dimension in &model.dimensions {
        dimensions.push(reader.dimension(dimension));
    }
    reader.report_unknown_time();
    let measures = model.measures.iter().filter_map(|measure| reader.measure(measure)).collect();
    reader.report_untyped();
    Some(CubeDraft {
        original: model.name.clone(),
        name: names.name.clone(),
        span: model.span.clone(),
        extends: None,
        head,
        data_source: None,
        access: CubeAccess { visibility: CubeVisibility::Unstated, has_policy: false },
        policies: Vec::new(),
        missing: Vec::new(),
        stand_ins: Vec::new(),
        lists: [Vec::new(), dimensions, measures, Vec::new(), Vec::new()],
    })
}

struct CubeReader<'r> {
    model: &'r SemanticModel,
    names: &'r CubeNames,
    relations: &'r Relations,
    findings: &'r mut Vec<Diagnostic>,
    /// The dimensions whose type could not be determined.
    untyped: Vec<String>,
}

impl CubeReader<'_> {
    fn relation(&mut self) -> String {
        let model = &self.model.model;
        if let Some(relation) = self.relations.relation(model) {
            return relation.to_owned();
        }
        let reason = match self.relations.has_manifest {
            true => "the manifest names no relation for it, or several",
            false => "target/manifest.json does not exist",
        };
        let what = format!(
            "semantic model `{}` reads the table `{}`, named after its dbt model: {reason}",
            self.model.name, model.name
        );
        let cure = "Run `dbt parse` and import again, or write `sql_table` with its schema.";
        self.findings.push(changed(self.model.span.clone(), what, cure));
        model.name.clone()
    }

    /// Creates a dimension from an entity, so that queries can group by it. Only a primary entity becomes the primary
    /// key: several rows may have the same value of a natural key.
    fn entity(&mut self, entity: &Entity) -> Option<Member> {
        let name = self.names.entities.get(&entity.name)?.clone();
        let expr = entity.expr.as_deref().unwrap_or(&entity.name);
        let ty = self.column_type(&entity.name, expr);
        let mut yaml = base(&name, type_name(ty), expr);
        if entity.kind == EntityKind::Primary {
            yaml.set("primary_key", Yaml::Boolean(true));
        }
        Some(member(name, yaml, &entity.span, &entity.wording))
    }

    fn dimension(&mut self, dimension: &Dimension) -> Member {
        let name = self.names.dimensions.get(&dimension.name).unwrap_or(&dimension.name).clone();
        let expr = dimension.expr.as_deref().unwrap_or(&dimension.name);
        let ty = if dimension.is_time { Some(ColumnType::Time) } else { self.column_type(&dimension.name, expr) };
        let mut yaml = base(&name, type_name(ty), expr);
        if dimension.is_time {
            self.time(dimension, &mut yaml);
        }
        if dimension.is_partition {
            yaml.set("partition", Yaml::Boolean(true));
        }
        member(name, yaml, &dimension.span, &dimension.wording)
    }

    /// Writes the granularities of a time dimension, and marks it if it is the primary time dimension.
    fn time(&mut self, dimension: &Dimension, yaml: &mut Yaml) {
        let times = self.model.dimensions.iter().filter(|dimension| dimension.is_time).count();
        if times > 1 && self.names.time.as_deref() == Some(dimension.name.as_str()) {
            yaml.set("primary_time", Yaml::Boolean(true));
        }
        let grain = dimension.granularity.as_deref().map(str::to_lowercase);
        match grain.as_deref() {
            None | Some("nanosecond" | "microsecond" | "millisecond" | "second") => {}
            Some(grain) => match GRANULARITIES.iter().position(|known| *known == grain) {
                Some(first) => yaml.set("granularities", Yaml::texts(GRANULARITIES[first..].iter().copied())),
                None => {
                    let what = format!("the granularity `{grain}` of dimension `{}` is not imported", dimension.name);
                    let cure = "Write a dimension with the warehouse's SQL for it.";
                    self.findings.push(left_out(dimension.span.clone(), what, cure));
                }
            },
        }
    }

    fn measure(&mut self, measure: &Measure) -> Option<Member> {
        let name = self.names.measures.get(&measure.name)?.clone();
        let what = format!("measure `{}` of semantic model `{}`", measure.name, self.model.name);
        let expr = measure.expr.as_deref().unwrap_or(&measure.name);
        let aggregation = if measure.aggregation == "sum_boolean" { "sum" } else { &*measure.aggregation };
        let ty = match measure_type(aggregation) {
            Ok(ty) => ty,
            Err(cure) => {
                let what = format!("{what} is not imported: no measure type computes `{}`", measure.aggregation);
                self.findings.push(left_out(measure.span.clone(), what, cure));
                return None;
            }
        };
        let mut yaml = Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text(ty))]);
        match (measure.aggregation.as_str(), expr) {
            // The measure counts every row, so it needs no SQL.
            ("count", "1" | "*") => {}
            ("sum_boolean", expr) => yaml.set("sql", Yaml::Text(format!("CASE WHEN {} THEN 1 ELSE 0 END", sql(expr)))),
            (_, expr) => yaml.set("sql", Yaml::Text(sql(expr))),
        }
        if let Some(percentile) = measure.percentile.as_ref().filter(|_| ty == "percentile") {
            yaml.set("percentile", Yaml::Number(percentile.clone()));
        }
        if measure.is_approximate && matches!(ty, "percentile" | "median") {
            yaml.set("approximate", Yaml::Boolean(true));
        }
        if measure.is_private {
            yaml.set("public", Yaml::Boolean(false));
        }
        let time = measure.agg_time_dimension.as_ref().filter(|time| self.names.time.as_ref() != Some(time));
        if let Some(time) = time {
            let what = format!("{what} is aggregated over `{time}`; in the project, `metric_time` is that of its cube");
            let cure = "Name the time dimension in queries of this measure.";
            self.findings.push(changed(measure.span.clone(), what, cure));
        }
        Some(member(name, yaml, &measure.span, &measure.wording))
    }

    /// Returns the type of an expression that is a column of the dbt model. Other expressions are recorded as untyped.
    fn column_type(&mut self, name: &str, expr: &str) -> Option<ColumnType> {
        let ty = self.relations.column_type(&self.model.model, expr);
        if ty.is_none() {
            self.untyped.push(format!("`{name}`"));
        }
        ty
    }

    /// Reports a default time that is not a time dimension of the model.
    fn report_unknown_time(&mut self) {
        let Some((name, span)) = &self.model.agg_time_dimension else { return };
        let mut times = self.model.dimensions.iter().filter(|dimension| dimension.is_time);
        if times.all(|dimension| dimension.name != *name) {
            let what = format!(
                "`agg_time_dimension` of semantic model `{}` is not imported: `{name}` is not one of its time dimensions",
                self.model.name
            );
            self.findings.push(left_out(span.clone(), what, "Name a dimension of type time."));
        }
    }

    fn report_untyped(&mut self) {
        if self.untyped.is_empty() {
            return;
        }
        let what = format!(
            "dimensions of semantic model `{}` have no known type and become strings: {}",
            self.model.name,
            self.untyped.join(", ")
        );
        let cure =
            "Run `dbt docs generate` and import again, or write `type: number` and `type: boolean` where needed.";
        self.findings.push(changed(self.model.span.clone(), what, cure));
    }
}

fn type_name(ty: Option<ColumnType>) -> &'static str {
    match ty {
        Some(ColumnType::Number) => "number",
        Some(ColumnType::Boolean) => "boolean",
        Some(ColumnType::Time) => "time",
        Some(ColumnType::String) | None => "string",
    }
}

fn base(name: &str, ty: &str, expr: &str) -> Yaml {
    Yaml::map([("name", Yaml::text(name)), ("type", Yaml::text(ty)), ("sql", Yaml::Text(sql(expr)))])
}

fn member(name: String, mut yaml: Yaml, span: &Span, words: &Wording) -> Member {
    wording(words).into_iter().for_each(|(key, value)| yaml.set(&key, value));
    Member { name, yaml, span: span.clone(), is_masked: false, needs: Vec::new(), drills: Vec::new() }
}

/// Returns the keys for display: title, description and `meta`.
pub(super) fn wording(wording: &Wording) -> Vec<(String, Yaml)> {
    let texts = [("title", &wording.label), ("description", &wording.description)];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), Yaml::text(text.clone()?))));
    texts.chain(wording.meta.clone().map(|meta| ("meta".to_owned(), meta))).collect()
}

/// Returns an expression as SQL of the project. A column whose name is a keyword is qualified with `{CUBE}`.
fn sql(expr: &str) -> String {
    if is_column(expr) { column_sql(expr) } else { expr.trim().to_owned() }
}

/// Returns true if an expression is only the unquoted name of a column in lower case.
pub(super) fn is_column(expr: &str) -> bool {
    expr.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && expr.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
