//! Reads the entries of `cubes:`.
//!
//! In: the YAML nodes of one list. Out: [`CubeDefinition`]s. Every key is read, whatever is wrong with the others. A
//! member with an error is marked as incomplete; its cube stays. Not here: resolving names, and SQL.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::cube_keys::{
    BUILD_RANGE, CUBE, CUBE_REFRESH, DIMENSION, DIMENSION_TYPES, FILTER, FROM, GRANULARITIES, JOIN, MEASURE,
    MEASURE_TYPES, MeasureWord, PRE_AGGREGATION, REFRESH, RELATIONSHIPS, ROLLUP, SEGMENT, TIME_KINDS,
};
use super::definitions::Governed;
use super::definitions::{
    CubeDefinition, DimensionDefinition, JoinDefinition, MeasureDefinition, MeasureType, PreAggregationDefinition,
    RefreshDefinition, RelationDefinition, SegmentDefinition, Wording,
};
use super::dimension_tests::dimension_tests;
use super::fields::{Fields, choice_of, is_typing_mistake, snake_case};
use super::jinja::Renderer;
use super::rolling_window;
use super::yaml::{Node, NodeValue, Plain};
use crate::diagnostic::{Code, Diagnostic};
use crate::snippet::{AggregateFunction, Fraction, Precision, Spread};
use crate::text::shorten;
use crate::text::{SqlText, Text};
use crate::types::Granularity;
use crate::types::{DimensionType, METRIC_TIME, Relationship, TimeKind};

/// The formats of numbers that clients support.
const FORMATS: [&str; 5] = ["currency", "percent", "percentage", "integer", "decimal"];

/// Reads one cube. The names of members and joins that are incomplete or cannot be read are added to `unread`.
pub(super) fn cube(
    node: &Node,
    renderer: &Renderer,
    unread: &mut BTreeSet<Arc<str>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<CubeDefinition> {
    let mut fields = Fields::open(node, &CUBE, diagnostics)?;
    let (name, is_complete) = fields.name_or_place();
    if !is_complete {
        unread.extend(names_it_may_have(node));
    }
    let wording = wording(&mut fields);
    let extends = fields.text("extends");
    let public = is_public(&mut fields);
    let relation = relation(&mut fields, &name, renderer);
    let refresh = refresh(&mut fields, renderer);
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
        refresh,
        is_complete,
    };
    for list in ["measures", "dimensions", "segments", "joins"] {
        // If the value is a mapping by name instead of a list, `fields.list` reports this mistake below.
        if let Some(node) = fields.nullable(list)
            && let NodeValue::Map(entries) = &node.value
        {
            unread.extend(entries.iter().map(|(key, _)| Arc::from(&*key.text)));
            unread.extend(name_of(node).map(|name| name.value));
        }
    }
    for item in fields.list("measures") {
        let read = measure(item, renderer, fields.diagnostics());
        note_unread(read.as_ref().is_some_and(|read| read.is_complete), item, unread);
        cube.measures.extend(read);
    }
    for item in fields.list("dimensions") {
        let read = dimension(item, renderer, fields.diagnostics());
        note_unread(read.as_ref().is_some_and(|read| read.is_complete), item, unread);
        cube.dimensions.extend(read);
    }
    for item in fields.list("segments") {
        let read = segment(item, renderer, fields.diagnostics());
        note_unread(read.as_ref().is_some_and(|read| read.is_complete), item, unread);
        cube.segments.extend(read);
    }
    for item in fields.list("joins") {
        let read = join(item, renderer, fields.diagnostics());
        let is_known = read.as_ref().is_some_and(|read| read.is_complete || names_cube(read, item));
        note_unread(is_known, item, unread);
        cube.joins.extend(read);
    }
    for item in fields.list("pre_aggregations") {
        let read = pre_aggregation(item, renderer, fields.diagnostics());
        note_unread(read.as_ref().is_some_and(|read| read.is_complete), item, unread);
        cube.pre_aggregations.extend(read);
    }
    Some(cube)
}

/// Returns the names by which other items may refer to a cube whose name cannot be read: the names of the cube's table
/// and of its file.
fn names_it_may_have(node: &Node) -> Vec<Arc<str>> {
    let NodeValue::Map(map) = &node.value else { return Vec::new() };
    let file = node.origin.file.path.rsplit('/').next().and_then(|name| name.split('.').next());
    let table = map.iter().find(|(key, _)| &*key.text == "sql_table").and_then(|(_, value)| match &value.value {
        NodeValue::Scalar { text, .. } => Some(&**text),
        _ => None,
    });
    let mut words = table.unwrap_or_default().split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.rfind(|word| !word.is_empty()).into_iter().chain(file).map(Arc::from).collect()
}

/// Adds the name of an incomplete entry to `unread`, and the name that its author most likely meant.
pub(super) fn note_unread(is_complete: bool, node: &Node, unread: &mut BTreeSet<Arc<str>>) {
    let Some(name) = name_of(node).filter(|_| !is_complete) else { return };
    unread.extend(snake_case(&name.value).map(Arc::from));
    unread.insert(name.value);
}

/// Reads the source of the rows; `None` if the cube inherits it.
fn relation(fields: &mut Fields, name: &Text, renderer: &Renderer) -> Option<RelationDefinition> {
    if let Some(second) = fields.conflicting() {
        let message = format!("cube `{}` has both `sql` and `sql_table`", name.value);
        let hint = "Keep one of them: `sql_table` for a table, `sql` for a query.";
        fields.report(Diagnostic::error(Code::ConflictingFields, message).hint(hint).at(second.span()));
        return None;
    }
    if fields.lacks_all() {
        let message = format!("cube `{}` has no `sql_table` and no `sql`", name.value);
        let hint = format!("Add `{}`, or `{}`.", fields.example("sql_table"), fields.example("sql"));
        fields.report(Diagnostic::error(Code::MissingField, message).hint(hint).at(name.span()));
        return None;
    }
    let is_query = fields.has("sql");
    let text = fields.text(if is_query { "sql" } else { "sql_table" })?;
    renderer.relation(&text, !is_query, fields.diagnostics())
}

pub(super) fn wording(fields: &mut Fields) -> Wording {
    Wording {
        title: fields.words("title"),
        description: fields.words("description"),
        // Cubes have neither `format` nor `hidden`. Segments have no `format`.
        format: if fields.knows("format") { format(fields) } else { None },
        hidden: fields.knows("hidden") && fields.boolean("hidden", false),
        // Cubes store `public` in a field of their own. Metrics do not have the key.
        is_private: fields.knows("hidden") && fields.knows("public") && !is_public(fields),
        governed: governed(fields),
    }
}

/// Reads `format`. Clients may know other formats, so only a likely misspelling of a common format is reported.
fn format(fields: &mut Fields) -> Option<Arc<str>> {
    let format = fields.words("format")?;
    let is_common = FORMATS.contains(&&*format) || has_places(&format);
    let meant = FORMATS.iter().find(|common| !is_common && is_typing_mistake(&format, common));
    if let (Some(meant), Some(node)) = (meant, fields.nullable("format")) {
        let message = format!("unknown format `{format}` of {}", fields.what());
        let problem = Diagnostic::warning(Code::UnknownValue, message).hint(format!("Did you mean `{meant}`?"));
        fields.report(problem.at(node.origin.span()));
    }
    Some(format)
}

/// Returns whether a format is `decimal_0` to `decimal_12`.
fn has_places(format: &str) -> bool {
    let places = format.strip_prefix("decimal_").and_then(|places| places.parse::<u8>().ok());
    places.is_some_and(|places| places <= 12)
}

/// Returns whether queries may name a cube or member. If the value cannot be read, they may not.
fn is_public(fields: &mut Fields) -> bool {
    !fields.has("public") || fields.boolean("public", false)
}

/// Reads the keys of `meta` that governance and search know. Values of other types are left out, because hooks would
/// not understand them. All other keys of `meta` are only for display.
fn governed(fields: &Fields) -> Governed {
    let mut governed = Governed::default();
    let Some(Node { value: NodeValue::Map(meta), .. }) = fields.nullable("meta") else { return governed };
    for (key, value) in meta {
        match (&*key.text, &value.value) {
            ("tags", NodeValue::List(items)) => governed.tags.extend(items.iter().filter_map(scalar)),
            ("tags", NodeValue::Scalar { text, .. }) => governed.tags.push(text.clone()),
            ("synonyms", NodeValue::List(items)) => governed.synonyms.extend(items.iter().filter_map(scalar)),
            ("synonyms", NodeValue::Scalar { text, .. }) => governed.synonyms.push(text.clone()),
            // Every value other than a plain no means yes.
            ("pii", NodeValue::Scalar { text, plain }) => {
                governed.pii = *plain != Plain::Boolean(false) && !matches!(&**text, "no" | "off" | "false");
            }
            ("classification", NodeValue::Scalar { text, .. }) => governed.classification = Some(text.clone()),
            ("owner", NodeValue::Scalar { text, .. }) => governed.owner = Some(text.clone()),
            ("documentation_url", NodeValue::Scalar { text, .. }) => governed.documentation_url = Some(text.clone()),
            ("refresh_frequency", NodeValue::Scalar { text, .. }) => governed.refresh_frequency = Some(text.clone()),
            ("unit", NodeValue::Scalar { text, .. }) => governed.unit = Some(text.clone()),
            ("searchable", NodeValue::Scalar { plain, .. }) => governed.searchable = *plain == Plain::Boolean(true),
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

/// Reads a member's name, and returns whether it can be used. `metric_time` is reserved, because every query can use
/// it.
fn member_name(fields: &mut Fields) -> (Text, bool) {
    let (name, is_usable) = fields.name_or_place();
    if &*name.value != METRIC_TIME {
        return (name, is_usable);
    }
    let message = format!("the name of {} is reserved: in queries it means each measure's own time", fields.what());
    let hint =
        "Choose another name, such as `created_at`, and write `primary_time: true` if it is the cube's primary time.";
    fields.report(Diagnostic::error(Code::ReservedName, message).hint(hint).at(name.span()));
    (name, false)
}

/// Reads the SQL of a key, and renders its Jinja.
fn sql(fields: &mut Fields, key: &'static str, renderer: &Renderer) -> Option<SqlText> {
    let text = fields.text(key)?;
    renderer.snippet(&text, fields.diagnostics())
}

/// Returns the type of a measure if it is another tool's name for a count of the rows that meet a condition.
fn counted_condition(fields: &Fields) -> Option<Arc<str>> {
    const WORDS: [&str; 5] = ["sum_boolean", "sum_bool", "count_if", "countif", "count_where"];
    let NodeValue::Scalar { text, .. } = &fields.nullable("type")?.value else { return None };
    WORDS.contains(&&*text.trim().to_ascii_lowercase()).then(|| Arc::clone(text))
}

/// Reads the type of a measure with the keys that belong to some types only.
fn measure_type(fields: &mut Fields) -> Option<MeasureType> {
    let ty = plain_measure_type(fields);
    let is_sample = fields.boolean("sample", false);
    let is_approximate = fields.boolean("approximate", false);
    use AggregateFunction::{Percentile, StdDev, Variance};
    // Without a type, the keys that the measure may have are unknown.
    let word = ty.map(MeasureWord::Type).or_else(|| fields.likely_choice("type", &MEASURE_TYPES));
    if let Some(word) = word {
        let function = match word {
            MeasureWord::Type(MeasureType::Aggregate(function)) => Some(function),
            MeasureWord::Type(_) | MeasureWord::Percentile => None,
        };
        let has_spread = matches!(function, Some(StdDev(_) | Variance(_)));
        let has_precision = word == MeasureWord::Percentile || matches!(function, Some(Percentile(..)));
        misplaced(fields, "sample", "a stddev or a variance", has_spread);
        misplaced(fields, "approximate", "a median or a percentile", has_precision);
    }
    let function = match ty? {
        MeasureType::Aggregate(function) => Some(function),
        _ => None,
    };
    Some(match function {
        Some(StdDev(_)) if is_sample => MeasureType::Aggregate(StdDev(Spread::Sample)),
        Some(Variance(_)) if is_sample => MeasureType::Aggregate(Variance(Spread::Sample)),
        Some(Percentile(fraction, _)) if is_approximate => {
            MeasureType::Aggregate(Percentile(fraction, Precision::Approximate))
        }
        _ => ty?,
    })
}

/// Reports a key that the type of the measure does not have.
fn misplaced(fields: &mut Fields, key: &'static str, types: &str, is_possible: bool) {
    let Some(origin) = fields.key_origin(key).filter(|_| !is_possible) else { return };
    let message = format!("{} has `{key}`, which is for {types}", fields.what());
    let place = origin.span();
    fields.report(Diagnostic::error(Code::MisplacedField, message).hint("Remove it.").at(place));
}

/// Reads the word of a measure's type, with the fraction of a percentile.
fn plain_measure_type(fields: &mut Fields) -> Option<MeasureType> {
    if let Some(word) = counted_condition(fields) {
        let message = format!("`type` of {} is `{word}`", fields.what());
        let hint = "Write `type: count` and the condition in `filters`, as in `filters: [{sql: \"{CUBE}.is_paid\"}]`.";
        let place = fields.nullable("type")?.origin.span();
        fields.report(Diagnostic::error(Code::UnknownValue, message).hint(hint).at(place));
        return None;
    }
    let word = fields.choice("type", &MEASURE_TYPES)?;
    let written = fields.text("percentile");
    let (code, message, hint, place) = match (word, &written) {
        (MeasureWord::Type(ty), None) => return Some(ty),
        (MeasureWord::Percentile, Some(text)) => match Fraction::parse(&text.value) {
            Some(fraction) => {
                let function = AggregateFunction::Percentile(fraction, Precision::Exact);
                return Some(MeasureType::Aggregate(function));
            }
            None => {
                let message = format!(
                    "`percentile` of {} is `{}`, which is not a number from 0 to 1 with at most six places",
                    fields.what(),
                    text.value
                );
                (Code::WrongValue, message, "Write the share of values below it, such as `0.95`.", text.span())
            }
        },
        (MeasureWord::Percentile, None) => {
            let message = format!("{} has no `percentile`", fields.what());
            let place = fields.key_origin("type")?.span();
            (Code::MissingField, message, "Add the share of values below it, such as `percentile: 0.95`.", place)
        }
        (MeasureWord::Type(_), Some(text)) => {
            let message = format!("{} has `percentile`, which is for the type percentile", fields.what());
            (Code::MisplacedField, message, "Remove it, or write `type: percentile`.", text.span())
        }
    };
    fields.report(Diagnostic::error(code, message).hint(hint).at(place));
    None
}

fn measure(node: &Node, renderer: &Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<MeasureDefinition> {
    let mut fields = Fields::open(node, &MEASURE, diagnostics)?;
    let (name, mut is_complete) = member_name(&mut fields);
    let wording = wording(&mut fields);
    let ty = measure_type(&mut fields);
    let text = sql(&mut fields, "sql", renderer);
    let (filters, are_complete) = filters(&mut fields, renderer);
    is_complete &= ty.is_some() && are_complete && fields.has("sql") == text.is_some();
    let from_all = fields.choice("from", &FROM);
    let is_of_other_type = ty.is_some_and(|ty| ty != MeasureType::RunningTotal);
    if let (Some(origin), true) = (fields.key_origin("from"), is_of_other_type) {
        fields.report(
            Diagnostic::error(
                Code::MisplacedField,
                format!("{} has `from`, which is for a running_total", fields.what()),
            )
            .hint("Remove it, or write `type: running_total`.")
            .at(origin.span()),
        );
    }
    let rolling_window = rolling_window::read(&mut fields, ty);
    is_complete &= fields.has("rolling_window") == rolling_window.is_some();
    let has_filters = ty == Some(MeasureType::Number) && !filters.is_empty();
    if let (Some(origin), true) = (fields.key_origin("filters"), has_filters) {
        let message = format!("number {} has filters, but no rows to filter", fields.what());
        let hint = "Write the filters on the measures that it is computed from.";
        fields.report(Diagnostic::error(Code::MisplacedField, message).hint(hint).at(origin.span()));
        is_complete = false;
    }
    let drill_members = fields.texts("drill_members");
    // Without a type, the names that its SQL may contain are unknown. A count needs no SQL.
    let ty = ty.or_else(|| match fields.likely_choice("type", &MEASURE_TYPES)? {
        MeasureWord::Type(ty) => Some(ty),
        MeasureWord::Percentile => {
            Some(MeasureType::Aggregate(AggregateFunction::Percentile(Fraction::HALF, Precision::Exact)))
        }
    });
    let count = MeasureType::Aggregate(AggregateFunction::Count);
    let (ty, text) = match (ty, text) {
        (Some(ty), text) if text.is_some() || !fields.has("sql") => (ty, text),
        _ => (count, None),
    };
    Some(MeasureDefinition {
        name,
        ty,
        sql: text,
        filters,
        drill_members,
        from_all: from_all.unwrap_or(false),
        rolling_window,
        wording,
        is_complete,
    })
}

fn dimension(node: &Node, renderer: &Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<DimensionDefinition> {
    let mut fields = Fields::open(node, &DIMENSION, diagnostics)?;
    let (name, is_usable) = member_name(&mut fields);
    let wording = wording(&mut fields);
    let ty = fields.choice("type", &DIMENSION_TYPES);
    let primary_key = fields.boolean("primary_key", false);
    let is_primary_time = fields.boolean("primary_time", false);
    let is_partition = fields.boolean("partition", false);
    let timezone = fields.choice("timezone", &TIME_KINDS);
    let has_granularities = fields.has("granularities");
    let mut granularities: Vec<Granularity> = Vec::new();
    for word in fields.texts("granularities") {
        let label = format!("an item of `granularities` of {}", fields.what());
        match choice_of(&word, &label, &GRANULARITIES) {
            Ok(granularity) => granularities.push(granularity),
            Err(diagnostic) => fields.report(diagnostic),
        }
    }
    let tests = dimension_tests(&mut fields);
    let text = sql(&mut fields, "sql", renderer);
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
                    Code::MisplacedField,
                    format!("{} has `{key}`, which is for time dimensions", fields.what()),
                )
                .hint("Remove it, or write `type: time`.")
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
    let is_complete = is_usable && ty.is_some() && text.is_some();
    let ty = ty.or_else(|| fields.likely_choice("type", &DIMENSION_TYPES)).unwrap_or(DimensionType::String);
    Some(DimensionDefinition {
        ty,
        sql: text.unwrap_or_else(|| SqlText::placeholder(&name.origin)),
        name,
        primary_key,
        is_partition,
        primary_time,
        time: timezone.unwrap_or(TimeKind::Utc),
        granularities,
        tests,
        wording,
        is_complete,
    })
}

fn segment(node: &Node, renderer: &Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<SegmentDefinition> {
    let mut fields = Fields::open(node, &SEGMENT, diagnostics)?;
    let (name, is_usable) = member_name(&mut fields);
    let wording = wording(&mut fields);
    let sql = sql(&mut fields, "sql", renderer);
    let is_complete = is_usable && sql.is_some();
    let sql = sql.unwrap_or_else(|| SqlText::placeholder(&name.origin));
    Some(SegmentDefinition { name, sql, wording, is_complete })
}

fn join(node: &Node, renderer: &Renderer, diagnostics: &mut Vec<Diagnostic>) -> Option<JoinDefinition> {
    let mut fields = Fields::open(node, &JOIN, diagnostics)?;
    let (name, is_usable) = fields.name_or_place();
    let cube = fields.text("cube");
    let relationship = relationship(&mut fields);
    let always = fields.boolean("always", false);
    // The value is not used. It is read so that mistakes in it are reported.
    fields.words("description");
    let sql = sql(&mut fields, "sql", renderer);
    let is_complete = is_usable && relationship.is_some() && sql.is_some();
    // This placeholder allows the most references.
    let relationship = relationship.unwrap_or(Relationship::ManyToOne);
    let sql = sql.unwrap_or_else(|| SqlText::placeholder(&name.origin));
    Some(JoinDefinition { name, cube, relationship, sql, always, is_complete })
}

/// Returns whether the name of a join is the name of its target. Such a name does not become unknown if the join is
/// incomplete.
fn names_cube(join: &JoinDefinition, node: &Node) -> bool {
    let NodeValue::Map(entries) = &node.value else { return false };
    let is_alias = entries.iter().any(|(key, _)| &*key.text == "cube");
    !is_alias && name_of(node).is_some_and(|name| name.value == join.name.value)
}

fn relationship(fields: &mut Fields) -> Option<Relationship> {
    if let Some(Node { value: NodeValue::Scalar { text, .. }, origin }) = fields.nullable("relationship")
        && matches!(&**text, "many_to_many" | "manyToMany")
    {
        let message =
            format!("`relationship` of {} is `{text}`, but a join needs one row on at least one side", fields.what());
        let hint =
            "Define a cube over the table between them. Join it one_to_many, and the other cube from it many_to_one.";
        fields.report(Diagnostic::error(Code::UnknownValue, message).hint(hint).at(origin.span()));
        return None;
    }
    fields.choice("relationship", &RELATIONSHIPS)
}

/// Reads conditions on rows. Also returns whether all of them could be read.
fn filters(fields: &mut Fields, renderer: &Renderer) -> (Vec<SqlText>, bool) {
    let mut filters = Vec::new();
    let items = fields.list("filters");
    for item in items {
        let label = format!("filter of {}", fields.what());
        let filter = Fields::open_as(item, &FILTER, label, fields.diagnostics());
        filters.extend(filter.and_then(|mut filter| sql(&mut filter, "sql", renderer)));
    }
    let are_complete = filters.len() == items.len();
    (filters, are_complete)
}

fn pre_aggregation(
    node: &Node,
    renderer: &Renderer,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<PreAggregationDefinition> {
    let mut fields = Fields::open(node, &PRE_AGGREGATION, diagnostics)?;
    let (name, is_usable) = fields.name_or_place();
    // The value is not used. It is read so that mistakes in it are reported.
    fields.words("description");
    fields.choice("type", &ROLLUP);
    let granularity = fields.choice("granularity", &GRANULARITIES);
    let partition_granularity = fields.choice("partition_granularity", &GRANULARITIES);
    let time_dimension = fields.text("time_dimension");
    for key in ["granularity", "partition_granularity", "timezone", "build_range"] {
        if let Some(origin) = fields.key_origin(key).filter(|_| !fields.has("time_dimension")) {
            let message = format!("{} has `{key}` and no `time_dimension`", fields.what());
            let hint = "Name the `time_dimension` that it divides.";
            fields.report(Diagnostic::error(Code::MisplacedField, message).hint(hint).at(origin.span()));
        }
    }
    if let (Some(step), Some(partition)) = (granularity, partition_granularity)
        && partition < step
        && let Some(origin) = fields.key_origin("partition_granularity")
    {
        let (step, partition) = (step.as_str(), partition.as_str());
        let message = format!("{} has partitions of a {partition} for steps of a {step}", fields.what());
        let hint = format!("Write `partition_granularity: {step}`, or a longer one.");
        fields.report(Diagnostic::error(Code::WrongValue, message).hint(hint).at(origin.span()));
    }
    let time_dimension_origin = fields.key_origin("time_dimension").filter(|_| !fields.has("granularity"));
    if let Some(origin) = time_dimension_origin {
        let message = format!("{} has a `time_dimension` and no `granularity`", fields.what());
        let hint = format!("Add `{}`.", fields.example("granularity"));
        fields.report(Diagnostic::error(Code::MissingField, message).hint(hint).at(origin.span()));
    }
    let (filters, are_complete) = filters(&mut fields, renderer);
    let (refresh, update_window, is_incremental) = rollup_refresh(&mut fields, renderer);
    let arrival = fields.text("arrival").and_then(|text| renderer.snippet(&text, fields.diagnostics()));
    Some(PreAggregationDefinition {
        name,
        measures: fields.texts("measures"),
        dimensions: fields.texts("dimensions"),
        segments: fields.texts("segments"),
        filters,
        time_dimension,
        granularity,
        partition_granularity,
        timezone: fields.text("timezone"),
        refresh,
        update_window,
        is_incremental,
        max_staleness: duration(&mut fields, "max_staleness"),
        build_range: build_range(&mut fields),
        arrival,
        indexes: fields.texts("indexes"),
        is_complete: is_usable && are_complete,
    })
}

/// Reads `refresh` of a pre-aggregation: its schedule, the update window, and whether it is incremental.
fn rollup_refresh(fields: &mut Fields, renderer: &Renderer) -> (Option<RefreshDefinition>, Option<Duration>, bool) {
    let label = format!("refresh of {}", fields.what());
    let Some(node) = fields.node("refresh") else { return (None, None, false) };
    let Some(mut refresh) = Fields::open_as(node, &REFRESH, label, fields.diagnostics()) else {
        return (None, None, false);
    };
    let every = duration(&mut refresh, "every");
    let sql = refresh.text("sql").and_then(|text| renderer.relation(&text, false, refresh.diagnostics()));
    let update_window = duration(&mut refresh, "update_window");
    let is_incremental = refresh.boolean("incremental", false);
    let due = (every.is_some() || sql.is_some()).then_some(RefreshDefinition { every, sql });
    (due, update_window, is_incremental)
}

fn build_range(fields: &mut Fields) -> [Option<Text>; 2] {
    let label = format!("build_range of {}", fields.what());
    let Some(node) = fields.node("build_range") else { return [None, None] };
    match Fields::open_as(node, &BUILD_RANGE, label, fields.diagnostics()) {
        Some(mut range) => [range.text("start"), range.text("end")],
        None => [None, None],
    }
}

/// Reads the times at which a cube's rows count as changed.
fn refresh(fields: &mut Fields, renderer: &Renderer) -> Option<RefreshDefinition> {
    let node = fields.node("refresh")?;
    let label = format!("refresh of {}", fields.what());
    let mut refresh = Fields::open_as(node, &CUBE_REFRESH, label, fields.diagnostics())?;
    let every = duration(&mut refresh, "every");
    let sql = refresh.text("sql").and_then(|text| renderer.relation(&text, false, refresh.diagnostics()));
    if !refresh.has("every") && !refresh.has("sql") {
        let message = format!("{} has no `every` and no `sql`", refresh.what());
        let hint = format!("Add `{}`, or `{}`.", refresh.example("every"), refresh.example("sql"));
        let place = refresh.origin().span();
        refresh.report(Diagnostic::error(Code::MissingField, message).hint(hint).at(place));
    }
    (every.is_some() || sql.is_some()).then_some(RefreshDefinition { every, sql })
}

/// Reads a length of time.
fn duration(fields: &mut Fields, key: &str) -> Option<Duration> {
    let text = fields.text(key)?;
    let duration = refresh_interval(&text.value);
    if duration.is_none() {
        let message = format!("`{key}` of {} is `{}`, which is not a duration", fields.what(), shorten(&text.value));
        let hint = "Write an integer and a unit: `10 minutes`, `1 hour`, `1 day`.";
        fields.report(Diagnostic::error(Code::WrongValue, message).hint(hint).at(text.span()));
    }
    duration
}

/// Reads an integer of at least 1 and a unit: `10 minutes`, `1 hour`, `30s`.
pub fn refresh_interval(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "s" | "second" | "seconds" => 1,
        "m" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 604_800,
        _ => return None,
    };
    let count = count.parse::<u64>().ok().filter(|count| *count > 0)?;
    count.checked_mul(seconds).map(Duration::from_secs)
}

/// Returns the name of an entry that could not be read, so that references to it are not reported as unknown.
pub(super) fn name_of(node: &Node) -> Option<Text> {
    let NodeValue::Map(map) = &node.value else { return None };
    let (_, value) = map.iter().find(|(key, _)| &*key.text == "name")?;
    let NodeValue::Scalar { text, .. } = &value.value else { return None };
    Some(Text { value: text.clone(), origin: value.origin.clone() })
}
