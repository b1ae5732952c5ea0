//! The definition of an artifact as text, with all definitions that its values are computed from.
//!
//! In: a snapshot and an artifact. Out: the text and its fingerprint. The text has the types, the SQL after Jinja, the
//! filters and the time zones of the artifact and of everything that it reads. An artifact reads the members that it
//! refers to, the joins on the paths to these members, the primary time of its measures' cubes, the cubes of all these,
//! and the models that these cubes read. It has no titles, descriptions or formats, because no value depends on them.
//! It does not depend on the places of definitions in files, on policies, or on which models are built.
//!
//! The second line of a stored definition names its format. Definitions of the first format have no such line, and lack
//! joins, primary times and time zones. A stored definition is compared with the present one in its own format, so that
//! an upgrade does not change the status of a certificate.

mod paths;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use terrane_compiler::model::{
    AggregateFunction, Cube, CubeId, DimensionId, MeasureId, MeasureKind, Member, MetricId, Model, Precision, Spread,
};
use terrane_compiler::project::{
    CubeDefinition, Definitions, DimensionDefinition, JoinDefinition, MeasureType, MetricBody, SqlText,
    measure_type_word,
};
use terrane_compiler::types::{DimensionType, MetricKind, TimeKind, Value};

use crate::catalog::Snapshot;
use crate::ports::governance_records::{ArtifactRef, ArtifactType, Definition};

/// The largest size of a stored text, in bytes. A longer text is cut, but its fingerprint covers the whole text.
const MAX_STORED: usize = 64 * 1_024;

/// The second line of texts in the present format.
const FORMAT_LINE: &str = "  form: 2";

/// The set of items that a definition contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum DefinitionFormat {
    /// Without joins, primary times and time zones.
    WithoutJoins,
    Complete,
}

impl DefinitionFormat {
    /// Returns the format of a stored text.
    pub(super) fn of(definition: &Definition) -> DefinitionFormat {
        if definition.text.lines().nth(1) == Some(FORMAT_LINE) {
            DefinitionFormat::Complete
        } else {
            DefinitionFormat::WithoutJoins
        }
    }
}

/// An item of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    /// A cube with its joins and all its members.
    WholeCube(CubeId),
    /// The rows of a cube, without its members.
    Rows(CubeId),
    /// A join of a cube, by its index.
    Join(CubeId, usize),
    /// The dimension that a range of time without a dimension means.
    PrimaryTime(DimensionId),
    Dimension(DimensionId),
    Measure(MeasureId),
    Metric(MetricId),
    Model(Arc<str>),
}

/// Returns the definition of an artifact in a format; `None` if the project does not have the artifact.
pub(super) fn definition_of(
    snapshot: &Snapshot,
    artifact: &ArtifactRef,
    format: DefinitionFormat,
) -> Option<Definition> {
    let first = item_of(snapshot, artifact)?;
    let (model, definitions) = (&snapshot.model, &snapshot.definitions);
    let walk = Walk { model, definitions, cubes: cubes(definitions), format };
    let (own_name, own_text, mut open) = walk.describe(&first);
    let mut parts: BTreeMap<String, String> = BTreeMap::new();
    while let Some(item) = open.pop() {
        let name = walk.name(&item);
        if name != own_name && !parts.contains_key(&name) {
            let (name, text, below) = walk.describe(&item);
            parts.insert(name, text);
            open.extend(below);
        }
    }
    let format_line = if format == DefinitionFormat::Complete { format!("{FORMAT_LINE}\n") } else { String::new() };
    let mut text = format!("{own_name}\n{format_line}{own_text}");
    for (name, part) in parts {
        text.push_str(&format!("{name}\n{part}"));
    }
    let fingerprint = hex::encode(Sha256::digest(text.as_bytes())).into();
    Some(Definition { text: cut(text).into(), fingerprint })
}

/// Returns the text of a definition without the members whose `cube.member` is hidden. The definition of a cube has its
/// segments in its own part.
pub(super) fn without_members(text: &str, is_hidden: impl Fn(&str) -> bool) -> String {
    let (mut rest, mut is_left_out) = (String::new(), false);
    for line in text.lines() {
        if !line.starts_with(' ') {
            let id = line.strip_prefix("measure ").or_else(|| line.strip_prefix("dimension "));
            is_left_out = id.is_some_and(&is_hidden);
        }
        if !is_left_out {
            rest.push_str(line);
            rest.push('\n');
        }
    }
    rest
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_STORED {
        let end = (0..=MAX_STORED).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n…\n");
    }
    text
}

fn item_of(snapshot: &Snapshot, artifact: &ArtifactRef) -> Option<Item> {
    let model = &snapshot.model;
    let member = || {
        let (cube, name) = artifact.id.split_once('.')?;
        model.cube_named(cube)?.member(name)
    };
    match artifact.kind {
        ArtifactType::Cube => model.cube_named(&artifact.id).map(|cube| Item::WholeCube(cube.id)),
        ArtifactType::Measure => match member()? {
            Member::Measure(id) => Some(Item::Measure(id)),
            _ => None,
        },
        ArtifactType::Dimension => match member()? {
            Member::Dimension(id) => Some(Item::Dimension(id)),
            _ => None,
        },
        ArtifactType::Metric => model.metric_named(&artifact.id).map(Item::Metric),
        ArtifactType::Model => {
            let mut models = snapshot.definitions.models.iter();
            models.find(|of| of.name.value == artifact.id).map(|of| Item::Model(of.name.value.clone()))
        }
    }
}

fn cubes(definitions: &Definitions) -> HashMap<&str, &CubeDefinition> {
    definitions.cubes.iter().map(|cube| (&*cube.name.value, cube)).collect()
}

struct Walk<'s> {
    model: &'s Model,
    definitions: &'s Definitions,
    cubes: HashMap<&'s str, &'s CubeDefinition>,
    format: DefinitionFormat,
}

impl<'s> Walk<'s> {
    fn name(&self, item: &Item) -> String {
        let member = |cube: CubeId, name: &str| format!("{}.{name}", self.model.cube(cube).name);
        match item {
            Item::WholeCube(id) => format!("cube {}", self.model.cube(*id).name),
            Item::Rows(id) => format!("rows of {}", self.model.cube(*id).name),
            Item::Join(id, index) => {
                let cube = self.model.cube(*id);
                format!("join {}.{}", cube.name, self.model.cube(cube.joins[*index].target).name)
            }
            Item::PrimaryTime(id) => format!("primary time of {}", self.model.cube(id.cube).name),
            Item::Dimension(id) => format!("dimension {}", member(id.cube, &self.model.dimension(*id).name)),
            Item::Measure(id) => format!("measure {}", member(id.cube, &self.model.measure(*id).name)),
            Item::Metric(id) => format!("metric {}", self.model.metric(*id).name),
            Item::Model(name) => format!("model {name}"),
        }
    }

    /// Returns the name and the text of an item, and the items that it refers to.
    fn describe(&self, item: &Item) -> (String, String, Vec<Item>) {
        let mut text = Lines::default();
        let mut below = Vec::new();
        match item {
            Item::WholeCube(id) => self.whole_cube(self.model.cube(*id), &mut text, &mut below),
            Item::Rows(id) => self.rows(self.model.cube(*id), &mut text, &mut below),
            Item::Join(id, index) => self.join(self.model.cube(*id), *index, &mut text, &mut below),
            Item::PrimaryTime(id) => self.primary_time(*id, &mut text, &mut below),
            Item::Dimension(id) => self.dimension(*id, &mut text, &mut below),
            Item::Measure(id) => self.measure(*id, &mut text, &mut below),
            Item::Metric(id) => self.metric(*id, &mut text, &mut below),
            Item::Model(name) => {
                if let Some(model) = self.definitions.models.iter().find(|model| model.name.value == *name) {
                    text.sql("sql", &model.sql);
                    below.extend(model.refs.iter().map(|reference| Item::Model(reference.name.clone())));
                }
            }
        }
        (self.name(item), text.0, below)
    }

    /// Returns the definition of a cube, and the definitions of the cubes that it extends. For an alias, returns those
    /// of the original cube.
    fn line(&self, cube: &Cube) -> Vec<&'s CubeDefinition> {
        let original = cube.alias_of.map_or(cube, |id| self.model.cube(id));
        let definition = self.cubes.get(&*original.name);
        definition.map(|own| own.line(|name| self.cubes.get(name).copied())).unwrap_or_default()
    }

    fn whole_cube(&self, cube: &Cube, text: &mut Lines, below: &mut Vec<Item>) {
        for join in self.line(cube).into_iter().flat_map(|of| &of.joins) {
            text.field("join", &join.name.value);
            join_fields(join, "  ", text);
        }
        for segment in self.line(cube).into_iter().flat_map(|of| &of.segments) {
            text.field("segment", &segment.name.value);
            text.sql("  sql", &segment.sql);
        }
        below.push(Item::Rows(cube.id));
        below.extend(self.primary_time_of(cube.id));
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let dimension = |at| Item::Dimension(DimensionId { cube: cube.id, index: index(at) });
        let measure = |at| Item::Measure(MeasureId { cube: cube.id, index: index(at) });
        below.extend((0..cube.dimensions.len()).map(dimension));
        below.extend((0..cube.measures.len()).map(measure));
    }

    fn rows(&self, cube: &Cube, text: &mut Lines, below: &mut Vec<Item>) {
        if let Some(relation) = self.line(cube).into_iter().find_map(|of| of.relation.as_ref()) {
            text.sql(if relation.is_table { "table" } else { "sql" }, &relation.sql);
            below.extend(relation.refs.iter().map(|reference| Item::Model(reference.name.clone())));
        }
    }

    fn dimension(&self, id: DimensionId, text: &mut Lines, below: &mut Vec<Item>) {
        if let Some(own) = self.own_dimension(id) {
            text.field("type", &format!("{:?}", own.ty).to_lowercase());
            text.sql("sql", &own.sql);
            if self.format == DefinitionFormat::Complete {
                time_zone(own, text);
            }
            text.field("primary key", if own.primary_key { "true" } else { "false" });
            let granularities: Vec<&str> = own.granularities.iter().map(|of| of.as_str()).collect();
            text.field("granularities", &granularities.join(", "));
        }
        self.refers(id.cube, &self.model.dimension(id).sql, below);
        below.push(Item::Rows(id.cube));
    }

    fn own_dimension(&self, id: DimensionId) -> Option<&'s DimensionDefinition> {
        let (cube, dimension) = (self.model.cube(id.cube), self.model.dimension(id));
        let mut all = self.line(cube).into_iter().flat_map(|of| &of.dimensions);
        all.find(|own| own.name.value == dimension.name)
    }

    fn measure(&self, id: MeasureId, text: &mut Lines, below: &mut Vec<Item>) {
        let (cube, measure) = (self.model.cube(id.cube), self.model.measure(id));
        let line = self.line(cube);
        let mut all = line.into_iter().flat_map(|of| &of.measures);
        if let Some(own) = all.find(|own| own.name.value == measure.name) {
            text.field("type", measure_type_word(own.ty));
            if let MeasureType::Aggregate(function) = own.ty {
                function_fields(function, text);
            }
            if own.from_all {
                text.field("from", "all");
            }
            if let Some(window) = &own.rolling_window {
                text.field("trailing", &window.trailing.to_string());
                text.field("leading", &window.leading.to_string());
                text.field("offset", window.offset.as_str());
            }
            own.sql.iter().for_each(|sql| text.sql("sql", sql));
            own.filters.iter().for_each(|sql| text.sql("filter", sql));
        }
        match &measure.kind {
            MeasureKind::Number(sql) => self.refers(id.cube, sql, below),
            MeasureKind::Aggregate(aggregate)
            | MeasureKind::RunningTotal { aggregate, .. }
            | MeasureKind::Rolling { aggregate, .. } => {
                self.refers_within(id.cube, aggregate, below);
            }
        }
        below.push(Item::Rows(id.cube));
        below.extend(self.primary_time_of(id.cube));
    }

    fn metric(&self, id: MetricId, text: &mut Lines, below: &mut Vec<Item>) {
        let metric = self.model.metric(id);
        if let Some(own) = self.definitions.metrics.iter().find(|own| own.name.value == metric.name) {
            text.field(
                "type",
                match own.kind {
                    MetricKind::Simple => "simple",
                    MetricKind::Ratio => "ratio",
                    MetricKind::Derived => "derived",
                },
            );
            match &own.body {
                MetricBody::Expression(sql) => text.sql("expression", sql),
                MetricBody::Ratio { numerator, denominator } => {
                    text.sql("numerator", numerator);
                    text.sql("denominator", denominator);
                }
            }
            if let Some(grain) = own.time_grain {
                text.field("time grain", grain.as_str());
            }
            for filter in &own.filters {
                let values = filter.values.iter().flatten().map(|found| value_text(&found.value));
                let values: Vec<String> = values.collect();
                let (member, operator) = (&filter.member.value, &filter.operator.value);
                text.field("filter", &format!("{member} {operator} {}", values.join(", ")));
            }
        }
        self.metric_refers(metric, below);
    }
}

/// The text of an item: one indented line per field, and more lines for SQL of several lines.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn field(&mut self, name: &str, value: &str) {
        self.0.push_str(&format!("  {name}: {value}\n"));
    }

    fn sql(&mut self, name: &str, sql: &SqlText) {
        let mut lines = sql.text.trim().lines().map(str::trim_end);
        match (lines.next(), lines.next()) {
            (first, None) => self.field(name, first.unwrap_or_default()),
            _ => {
                self.0.push_str(&format!("  {name}:\n"));
                for line in sql.text.trim().lines() {
                    self.0.push_str(&format!("    {}\n", line.trim_end()));
                }
            }
        }
    }
}

/// Writes the keys that belong to the type of a measure.
fn function_fields(function: AggregateFunction, text: &mut Lines) {
    match function {
        AggregateFunction::Percentile(fraction, precision) => {
            text.field("percentile", &fraction.to_string());
            if precision == Precision::Approximate {
                text.field("approximate", "true");
            }
        }
        AggregateFunction::StdDev(Spread::Sample) | AggregateFunction::Variance(Spread::Sample) => {
            text.field("sample", "true");
        }
        _ => {}
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Decimal(text) => text.to_string(),
        Value::Text(text) => format!("'{text}'"),
        Value::Date(days) => format!("day {days}"),
        Value::Timestamp(micros) => format!("local time {micros}"),
        Value::TimestampTz(micros) => format!("time {micros}"),
    }
}

fn join_fields(join: &JoinDefinition, indent: &str, text: &mut Lines) {
    text.field(&format!("{indent}cube"), join.cube.as_ref().map_or(&join.name.value, |cube| &cube.value));
    text.field(&format!("{indent}relationship"), &format!("{:?}", join.relationship).to_lowercase());
    text.field(&format!("{indent}always"), if join.always { "true" } else { "false" });
    text.sql(&format!("{indent}on"), &join.sql);
}

fn time_zone(dimension: &DimensionDefinition, text: &mut Lines) {
    if dimension.ty == DimensionType::Time {
        text.field(
            "timezone",
            match dimension.time {
                TimeKind::Utc => "utc",
                TimeKind::WallClock => "none",
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_members_are_left_out_with_all_their_lines() {
        let text = |cost: &str, rows: &str| {
            format!(
                "cube orders\n  join: customers\ndimension orders.tax\n  sql: tax\nmeasure orders.cost\n  sql:\n    {cost}\n\
                 measure orders.count\n  type: count\nrows of orders\n  table: {rows}\n"
            )
        };
        let without = |text: &str| without_members(text, |id| ["orders.cost", "orders.tax"].contains(&id));
        assert_eq!(without(&text("cost", "orders")), without(&text("cost * 2", "orders")));
        assert_ne!(without(&text("cost", "orders")), without(&text("cost", "other")));
        let rest =
            "cube orders\n  join: customers\nmeasure orders.count\n  type: count\nrows of orders\n  table: orders\n";
        assert_eq!(without(&text("cost", "orders")), rest);
    }
}
