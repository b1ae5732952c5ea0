//! Joins, segments and pre-aggregations.

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::refresh_interval;
use terrane_compiler::project::yaml::{Node, NodeValue};

use super::draft::Member;
use super::entry::{Entry, yaml_of};
use super::finding::{changed, left_out};
use super::references::{Scope, Untranslatable};
use crate::authoring::yaml::Yaml;

/// What every reader of members needs.
pub(super) struct Reading<'r> {
    /// The cube's name in the model.
    pub(super) cube: &'r str,
    pub(super) scope: &'r Scope,
    pub(super) findings: &'r mut Vec<Diagnostic>,
}

impl Reading<'_> {
    /// An item of one of the cube's lists, with its name in the model and here.
    pub(super) fn open<'n>(&mut self, node: &'n Node, kind: &str) -> Option<(Entry<'n>, String)> {
        let unnamed = || {
            left_out(node.origin.span(), format!("a {kind} of cube `{}` has no name", self.cube), "give it a `name`")
        };
        let Some(name) = Entry::open(node, "").and_then(|entry| entry.word("name")) else {
            self.findings.push(unnamed());
            return None;
        };
        let mut entry = Entry::open(node, format!("{kind} `{name}` of cube `{}`", self.cube))?;
        entry.span = entry.text("name").map_or(entry.span, |name| name.span());
        Some((entry, name))
    }

    pub(super) fn lost(&mut self, entry: &Entry<'_>, why: &str, cure: &str) {
        self.findings.push(left_out(entry.span.clone(), format!("{} is not carried over: {why}", entry.what), cure));
    }

    /// The SQL under a key; `None`: the item can't be had, and that is told.
    pub(super) fn sql(&mut self, entry: &Entry<'_>, key: &str) -> Option<String> {
        let Some(text) = entry.text(key) else {
            self.lost(entry, &format!("it has no `{key}`"), "write the expression that it stands for");
            return None;
        };
        self.expression(entry, &text.value)
    }

    pub(super) fn expression(&mut self, entry: &Entry<'_>, text: &str) -> Option<String> {
        match self.scope.snippet(self.cube, text) {
            Ok(translated) => {
                for (note, cure) in translated.notes {
                    self.findings.push(changed(entry.span_of("sql"), format!("{} {note}", entry.what), cure));
                }
                Some(translated.sql.trim().to_owned())
            }
            Err(Untranslatable { why, cure }) => {
                self.lost(entry, &why, cure);
                None
            }
        }
    }

    /// Title, description, format, visibility and `meta`, which all members have.
    pub(super) fn wording(&mut self, entry: &Entry<'_>, yaml: &mut Yaml) {
        for key in ["title", "description"] {
            if let Some(text) = entry.word(key) {
                yaml.set(key, Yaml::Text(text));
            }
        }
        match (entry.word("format"), entry.has("format")) {
            (Some(format), _) => yaml.set("format", Yaml::Text(format)),
            (None, true) => {
                let what = format!("`format` of {} is not carried over: it is more than a word", entry.what);
                self.findings.push(left_out(entry.span_of("format"), what, "describe it in `meta` for clients"));
            }
            (None, false) => {}
        }
        let is_public = entry.boolean("public").or(entry.boolean("shown"));
        if is_public == Some(false) {
            yaml.set("hidden", Yaml::Boolean(true));
            let what = format!(
                "{} was closed, and is hidden here: not listed, but whoever knows its name can ask for it",
                entry.what
            );
            self.findings.push(changed(
                entry.span.clone(),
                what,
                "close it to callers by a policy: `deny: [name]` (policies/*.yml)",
            ));
        }
        if let Some(meta) = entry.node("meta") {
            yaml.set("meta", yaml_of(meta));
        }
    }
}

/// Joins as a list, or by name as older models have them.
pub(super) fn joins(entry: &Entry<'_>, reading: &mut Reading<'_>) -> Vec<Member> {
    let items = entry.list("joins");
    let is_empty_list =
        entry.node("joins").is_some_and(|node| matches!(&node.value, NodeValue::List(items) if items.is_empty()));
    if items.is_empty() && entry.has("joins") && !is_empty_list {
        let what = format!("`joins` of cube `{}` are not carried over: they are no list", reading.cube);
        reading.findings.push(left_out(entry.span_of("joins"), what, "write `- name: …` for each"));
    }
    items.iter().filter_map(|node| join(node, reading)).collect()
}

fn join(node: &Node, reading: &mut Reading<'_>) -> Option<Member> {
    let (entry, name) = reading.open(node, "join")?;
    let relationship = match entry.word("relationship").as_deref() {
        Some("many_to_one" | "belongs_to" | "belongsTo" | "manyToOne") => "many_to_one",
        Some("one_to_many" | "has_many" | "hasMany" | "oneToMany") => "one_to_many",
        Some("one_to_one" | "has_one" | "hasOne" | "oneToOne") => "one_to_one",
        other => {
            let why = match other {
                Some(word) => format!("its relationship is `{word}`"),
                None => "it has no `relationship`".to_owned(),
            };
            reading.lost(&entry, &why, "write many_to_one, one_to_many or one_to_one");
            return None;
        }
    };
    let sql = reading.sql(&entry, "sql")?;
    let target = reading.scope.cube(&name);
    let yaml = Yaml::map([
        ("name", Yaml::text(&*target)),
        ("relationship", Yaml::text(relationship)),
        ("sql", Yaml::Text(sql)),
    ]);
    let span = entry.span.clone();
    entry.finish(reading.findings);
    Some(Member { name: target, yaml, span })
}

pub(super) fn segment(node: &Node, reading: &mut Reading<'_>) -> Option<Member> {
    let (entry, original) = reading.open(node, "segment")?;
    let name = reading.scope.member(reading.cube, &original);
    let sql = reading.sql(&entry, "sql")?;
    let mut yaml = Yaml::map([("name", Yaml::text(&*name)), ("sql", Yaml::Text(sql))]);
    reading.wording(&entry, &mut yaml);
    let span = entry.span.clone();
    entry.finish(reading.findings);
    Some(Member { name, yaml, span })
}

pub(super) fn pre_aggregation(node: &Node, reading: &mut Reading<'_>) -> Option<Member> {
    const GRANULARITIES: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    let (entry, original) = reading.open(node, "pre-aggregation")?;
    let name = reading.scope.member(reading.cube, &original);
    match entry.word("type").as_deref() {
        None | Some("rollup") => {}
        Some(other) => {
            let why = format!("its type is `{other}`");
            reading.lost(
                &entry,
                &why,
                "keep it as a table of the warehouse, or write a roll-up of measures and dimensions",
            );
            return None;
        }
    }
    let mut yaml = Yaml::map([("name", Yaml::text(&*name))]);
    for key in ["measures", "dimensions"] {
        let members: Vec<String> = members(&entry, key).iter().map(|m| reading.scope.path(reading.cube, m)).collect();
        if !members.is_empty() {
            yaml.set(key, Yaml::texts(members));
        }
    }
    if let Some(time) = entry.word("time_dimension") {
        yaml.set("time_dimension", Yaml::Text(reading.scope.path(reading.cube, &time)));
    }
    for key in ["granularity", "partition_granularity"] {
        match entry.word(key) {
            Some(word) if GRANULARITIES.contains(&word.as_str()) => yaml.set(key, Yaml::Text(word)),
            Some(word) => {
                let what = format!("{}: there is no granularity `{word}` here", entry.what);
                reading.findings.push(left_out(
                    entry.span_of(key),
                    what,
                    "choose second, minute, hour, day, week, month, quarter or year",
                ));
            }
            None => {}
        }
    }
    if let Some(key) =
        entry.node("refresh_key").and_then(|node| Entry::open(node, format!("`refresh_key` of {}", entry.what)))
    {
        match key.word("every").filter(|every| refresh_interval(every).is_some()) {
            Some(every) => yaml.set("refresh", Yaml::map([("every", Yaml::Text(every))])),
            None => reading.findings.push(left_out(
                key.span.clone(),
                format!("{} is not carried over", key.what),
                "write `refresh: {every: 1 hour}`",
            )),
        }
        key.drop_key("sql", "refresh by time: `refresh: {every: 1 hour}`", reading.findings);
        key.finish(reading.findings);
    }
    let cure = "roll-ups are read here, and not built yet: leave it out until they are";
    for key in [
        "indexes",
        "segments",
        "scheduled_refresh",
        "external",
        "build_range_start",
        "build_range_end",
        "allow_non_strict_date_range_match",
        "union_with_source_data",
        "time_dimensions",
        "rollups",
        "unique_key_columns",
        "output_column_types",
    ] {
        entry.drop_key(key, cure, reading.findings);
    }
    let span = entry.span.clone();
    entry.finish(reading.findings);
    Some(Member { name, yaml, span })
}

/// The texts of a list, or a single one.
pub(super) fn members(entry: &Entry<'_>, key: &str) -> Vec<String> {
    let one = entry.word(key).into_iter();
    let text = |node: &Node| match yaml_of(node) {
        Yaml::Text(text) => Some(text),
        // `- {CUBE}.count` reads as a mapping of nothing.
        _ => None,
    };
    one.chain(entry.list(key).iter().filter_map(text)).collect()
}
