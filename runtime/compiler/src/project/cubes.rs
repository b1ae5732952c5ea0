//! `cubes:` entries to definitions.
//!
//! In: the YAML nodes of one list. Out: [`CubeDefinition`]s. A broken member is reported and left out;
//! its cube stays. Not here: what a name refers to, and SQL.

use std::sync::Arc;

use super::definitions::{
    CubeDefinition, DimensionDefinition, JoinDefinition, MeasureDefinition, MeasureType, PreAggregationDefinition,
    SegmentDefinition, Wording,
};
use super::fields::{Fields, choice_of};
use super::jinja::Renderer;
use super::source::{SqlText, Text};
use super::yaml::{Node, NodeValue, Plain};
use crate::diagnostic::Diagnostic;
use crate::model::{AggregateFunction, DimensionType, Governed, Relationship, TimeKind};
use crate::types::Granularity;

pub(super) const CUBE: &[&str] = &[
    "name",
    "sql",
    "sql_table",
    "title",
    "description",
    "measures",
    "dimensions",
    "joins",
    "segments",
    "pre_aggregations",
    "extends",
    "public",
    "meta",
];
pub(super) const MEASURE: &[&str] =
    &["name", "type", "sql", "title", "description", "format", "filters", "drill_members", "from", "hidden", "meta"];
pub(super) const DIMENSION: &[&str] = &[
    "name",
    "type",
    "sql",
    "primary_key",
    "title",
    "description",
    "format",
    "hidden",
    "granularities",
    "primary_time",
    "timezone",
    "meta",
];
pub(super) const SEGMENT: &[&str] = &["name", "sql", "title", "description", "hidden", "meta"];
pub(super) const JOIN: &[&str] = &["name", "cube", "relationship", "sql", "always", "description", "meta"];
pub(super) const PRE_AGGREGATION: &[&str] = &[
    "name",
    "measures",
    "dimensions",
    "time_dimension",
    "granularity",
    "partition_granularity",
    "refresh",
    "meta",
    "description",
];

pub(super) const MEASURE_TYPES: &[(&str, MeasureType)] = &[
    ("count", MeasureType::Aggregate(AggregateFunction::Count)),
    ("count_distinct", MeasureType::Aggregate(AggregateFunction::CountDistinct)),
    ("count_distinct_approx", MeasureType::Aggregate(AggregateFunction::CountDistinctApprox)),
    ("sum", MeasureType::Aggregate(AggregateFunction::Sum)),
    ("avg", MeasureType::Aggregate(AggregateFunction::Avg)),
    ("min", MeasureType::Aggregate(AggregateFunction::Min)),
    ("max", MeasureType::Aggregate(AggregateFunction::Max)),
    ("number", MeasureType::Number),
    ("running_total", MeasureType::RunningTotal),
];
const MEASURE_SYNONYMS: &[(&str, &str)] = &[
    ("average", "avg"),
    ("mean", "avg"),
    ("countdistinct", "count_distinct"),
    ("distinct", "count_distinct"),
    ("distinct_count", "count_distinct"),
    ("count_unique", "count_distinct"),
    ("approx_count_distinct", "count_distinct_approx"),
    ("countdistinctapprox", "count_distinct_approx"),
    ("total", "sum"),
    ("minimum", "min"),
    ("maximum", "max"),
    ("ratio", "number"),
    ("calculated", "number"),
    ("expression", "number"),
    ("percent", "number"),
    ("cumulative", "running_total"),
    ("runningtotal", "running_total"),
];
pub(super) const DIMENSION_TYPES: &[(&str, DimensionType)] = &[
    ("string", DimensionType::String),
    ("number", DimensionType::Number),
    ("time", DimensionType::Time),
    ("boolean", DimensionType::Boolean),
    ("geo", DimensionType::Geo),
];
const DIMENSION_SYNONYMS: &[(&str, &str)] = &[
    ("text", "string"),
    ("varchar", "string"),
    ("char", "string"),
    ("categorical", "string"),
    ("int", "number"),
    ("integer", "number"),
    ("bigint", "number"),
    ("float", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("numeric", "number"),
    ("date", "time"),
    ("datetime", "time"),
    ("timestamp", "time"),
    ("bool", "boolean"),
    ("location", "geo"),
];
pub(super) const RELATIONSHIPS: &[(&str, Relationship)] = &[
    ("many_to_one", Relationship::ManyToOne),
    ("one_to_many", Relationship::OneToMany),
    ("one_to_one", Relationship::OneToOne),
];
const RELATIONSHIP_SYNONYMS: &[(&str, &str)] = &[
    ("belongs_to", "many_to_one"),
    ("belongsto", "many_to_one"),
    ("has_many", "one_to_many"),
    ("hasmany", "one_to_many"),
    ("has_one", "one_to_one"),
    ("hasone", "one_to_one"),
];
pub(super) const GRANULARITIES: &[(&str, Granularity)] = &[
    ("second", Granularity::Second),
    ("minute", Granularity::Minute),
    ("hour", Granularity::Hour),
    ("day", Granularity::Day),
    ("week", Granularity::Week),
    ("month", Granularity::Month),
    ("quarter", Granularity::Quarter),
    ("year", Granularity::Year),
];
const GRANULARITY_SYNONYMS: &[(&str, &str)] =
    &[("date", "day"), ("daily", "day"), ("weekly", "week"), ("monthly", "month"), ("yearly", "year")];

pub(super) fn cube(node: &Node, renderer: &mut Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<CubeDefinition> {
    let mut fields = Fields::open(node, "cube", CUBE, diagnostics)?;
    let name = fields.name()?;
    let wording = wording(&mut fields);
    let extends = fields.text("extends");
    let public = fields.boolean("public", true);
    let relation = match (fields.has("sql"), fields.has("sql_table")) {
        (true, true) => {
            let span = fields.key_origin("sql_table").unwrap_or(fields.origin()).span();
            fields.report(
                Diagnostic::error(
                    "conflicting-fields",
                    format!("cube `{}` has both `sql` and `sql_table`", name.value),
                )
                .hint("keep `sql_table` for a plain table, `sql` for a query")
                .at(span),
            );
            None
        }
        (false, false) if extends.is_none() => {
            fields.report(
                Diagnostic::error("missing-field", format!("cube `{}` has no `sql_table` and no `sql`", name.value))
                    .hint("add `sql_table: schema.table`, or `sql: SELECT …`")
                    .at(name.span()),
            );
            None
        }
        (is_query, _) => {
            let text = fields.text(if is_query { "sql" } else { "sql_table" });
            text.and_then(|text| renderer.relation(&text, !is_query, fields.diagnostics()))
        }
    };
    let mut cube = CubeDefinition {
        name,
        extends,
        relation,
        wording,
        public,
        measures: Vec::new(),
        dimensions: Vec::new(),
        segments: Vec::new(),
        joins: Vec::new(),
        pre_aggregations: Vec::new(),
    };
    for item in fields.list("measures") {
        cube.measures.extend(measure(item, renderer, fields.diagnostics()));
    }
    for item in fields.list("dimensions") {
        cube.dimensions.extend(dimension(item, renderer, fields.diagnostics()));
    }
    for item in fields.list("segments") {
        cube.segments.extend(segment(item, renderer, fields.diagnostics()));
    }
    for item in fields.list("joins") {
        cube.joins.extend(join(item, renderer, fields.diagnostics()));
    }
    for item in fields.list("pre_aggregations") {
        cube.pre_aggregations.extend(pre_aggregation(item, fields.diagnostics()));
    }
    Some(cube)
}

pub(super) fn wording(fields: &mut Fields) -> Wording {
    Wording {
        title: fields.words("title"),
        description: fields.words("description"),
        format: fields.words("format"),
        hidden: fields.boolean("hidden", false),
        governed: governed(fields),
    }
}

/// `tags`, `pii` and `classification` of `meta`. The rest of it is for people, and these may be anything
/// too: what hooks don't understand they are not told.
fn governed(fields: &Fields) -> Governed {
    let mut governed = Governed::default();
    let Some(Node { value: NodeValue::Map(meta), .. }) = fields.nullable("meta") else { return governed };
    for (key, value) in meta {
        match (&*key.text, &value.value) {
            ("tags", NodeValue::List(items)) => governed.tags.extend(items.iter().filter_map(scalar)),
            ("tags", NodeValue::Scalar { text, .. }) => governed.tags.push(text.clone()),
            // Who writes anything but a plain no means yes.
            ("pii", NodeValue::Scalar { text, plain }) => {
                governed.pii = *plain != Plain::Boolean(false) && !matches!(&**text, "no" | "off" | "false");
            }
            ("classification", NodeValue::Scalar { text, .. }) => governed.classification = Some(text.clone()),
            _ => {}
        }
    }
    governed
}

fn scalar(node: &Node) -> Option<Arc<str>> {
    match &node.value {
        NodeValue::Scalar { text, .. } => Some(text.clone()),
        _ => None,
    }
}

/// The rendered text of a key.
fn sql(fields: &mut Fields, key: &'static str, renderer: &mut Renderer) -> Option<SqlText> {
    let text = fields.text(key)?;
    renderer.snippet(&text, fields.diagnostics())
}

fn required_sql(fields: &mut Fields, example: &str, renderer: &mut Renderer) -> Option<SqlText> {
    let text = fields.required("sql", example)?;
    renderer.snippet(&text, fields.diagnostics())
}

fn measure(node: &Node, renderer: &mut Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<MeasureDefinition> {
    let mut fields = Fields::open(node, "measure", MEASURE, diagnostics)?;
    let name = fields.name()?;
    let wording = wording(&mut fields);
    fields.required("type", "sum");
    let ty = fields.choice("type", MEASURE_TYPES, MEASURE_SYNONYMS)?;
    let has_sql = fields.has("sql");
    let text = sql(&mut fields, "sql", renderer);
    if has_sql && text.is_none() {
        return None;
    }
    let mut filters = Vec::new();
    for item in fields.list("filters") {
        let label = format!("filter of {}", fields.what());
        let mut filter = Fields::open(item, label, &["sql"], fields.diagnostics())?;
        filters.push(required_sql(&mut filter, "\"{CUBE}.status = 'paid'\"", renderer)?);
    }
    let from_all = fields.choice("from", &[("range", false), ("all", true)], &[]);
    if let (Some(origin), true) = (fields.key_origin("from"), ty != MeasureType::RunningTotal) {
        fields.report(
            Diagnostic::error("misplaced-field", format!("{} has `from`, which is for a running_total", fields.what()))
                .hint("remove it, or write `type: running_total`")
                .at(origin.span()),
        );
    }
    let drill_members = fields.texts("drill_members");
    Some(MeasureDefinition {
        name,
        ty,
        sql: text,
        filters,
        drill_members,
        from_all: from_all.unwrap_or(false),
        wording,
    })
}

fn dimension(node: &Node, renderer: &mut Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<DimensionDefinition> {
    let mut fields = Fields::open(node, "dimension", DIMENSION, diagnostics)?;
    let name = fields.name()?;
    let wording = wording(&mut fields);
    let has_type = fields.has("type");
    if !has_type {
        fields.missing("type", "string");
    }
    let ty = fields.choice("type", DIMENSION_TYPES, DIMENSION_SYNONYMS);
    let primary_key = fields.boolean("primary_key", false);
    let is_primary_time = fields.boolean("primary_time", false);
    let timezone = fields.choice(
        "timezone",
        &[("utc", TimeKind::Utc), ("none", TimeKind::WallClock)],
        &[("local", "none"), ("wall_clock", "none"), ("gmt", "utc"), ("z", "utc")],
    );
    let has_granularities = fields.has("granularities");
    let mut granularities: Vec<Granularity> = Vec::new();
    for word in fields.texts("granularities") {
        match choice_of(&word, &"an item of `granularities`", GRANULARITIES, GRANULARITY_SYNONYMS) {
            Ok(granularity) => granularities.push(granularity),
            Err(diagnostic) => fields.report(diagnostic),
        }
    }
    let text = required_sql(&mut fields, &name.value, renderer);
    let is_time = matches!(ty, Some(DimensionType::Time));
    let mut primary_time = None;
    for key in ["primary_time", "timezone", "granularities"] {
        let Some(origin) = fields.key_origin(key) else { continue };
        if is_time {
            if key == "primary_time" && is_primary_time {
                primary_time = Some(origin.span());
            }
        } else if ty.is_some() {
            fields.report(
                Diagnostic::error(
                    "misplaced-field",
                    format!("{} has `{key}`, which is for time dimensions", fields.what()),
                )
                .hint("remove it, or write `type: time`")
                .at(origin.span()),
            );
        }
    }
    granularities.sort_unstable();
    granularities.dedup();
    if is_time && !has_granularities {
        granularities = Granularity::ALL.to_vec();
    } else if !is_time {
        granularities.clear();
    }
    Some(DimensionDefinition {
        name,
        ty: ty?,
        sql: text?,
        primary_key,
        primary_time,
        time: timezone.unwrap_or(TimeKind::Utc),
        granularities,
        wording,
    })
}

fn segment(node: &Node, renderer: &mut Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<SegmentDefinition> {
    let mut fields = Fields::open(node, "segment", SEGMENT, diagnostics)?;
    let name = fields.name()?;
    let wording = wording(&mut fields);
    let sql = required_sql(&mut fields, "\"{CUBE}.status = 'paid'\"", renderer)?;
    Some(SegmentDefinition { name, sql, wording })
}

fn join(node: &Node, renderer: &mut Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<JoinDefinition> {
    let mut fields = Fields::open(node, "join", JOIN, diagnostics)?;
    let name = fields.name()?;
    let cube = fields.text("cube");
    if !fields.has("relationship") {
        fields.missing("relationship", "many_to_one");
    }
    let relationship = fields.choice("relationship", RELATIONSHIPS, RELATIONSHIP_SYNONYMS);
    let always = fields.boolean("always", false);
    let example = format!("\"{{CUBE}}.{0}_id = {{{0}}}.id\"", name.value);
    let sql = required_sql(&mut fields, &example, renderer);
    Some(JoinDefinition { name, cube, relationship: relationship?, sql: sql?, always })
}

fn pre_aggregation(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<PreAggregationDefinition> {
    let mut fields = Fields::open(node, "pre-aggregation", PRE_AGGREGATION, diagnostics)?;
    let name = fields.name()?;
    let granularity = fields.choice("granularity", GRANULARITIES, GRANULARITY_SYNONYMS);
    let partition_granularity = fields.choice("partition_granularity", GRANULARITIES, GRANULARITY_SYNONYMS);
    let refresh_every = match fields.node("refresh") {
        Some(node) => {
            let label = format!("refresh of {}", fields.what());
            Fields::open(node, label, &["every"], fields.diagnostics()).and_then(|mut refresh| refresh.text("every"))
        }
        None => None,
    };
    Some(PreAggregationDefinition {
        name,
        measures: fields.texts("measures"),
        dimensions: fields.texts("dimensions"),
        time_dimension: fields.text("time_dimension"),
        granularity,
        partition_granularity,
        refresh_every,
    })
}

/// A granularity of a metric's `time_grain`.
pub(super) fn granularity(fields: &mut Fields, key: &str) -> Option<Granularity> {
    fields.choice(key, GRANULARITIES, GRANULARITY_SYNONYMS)
}

/// The name of an entry that could not be read, so that nobody is told it doesn't exist.
pub(super) fn name_of(node: &Node) -> Option<Text> {
    let super::yaml::NodeValue::Map(map) = &node.value else { return None };
    let (_, value) = map.iter().find(|(key, _)| &*key.text == "name")?;
    let super::yaml::NodeValue::Scalar { text, .. } = &value.value else { return None };
    Some(Text { value: text.clone(), origin: value.origin.clone() })
}
