//! Reads joins, segments and pre-aggregations, and the keys that members of all kinds have.

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::refresh_interval;
use terrane_compiler::project::yaml::{Node, NodeValue};

use super::references::{ImportScope, Untranslatable};
use crate::draft::{Member, Reference};
use crate::entry::{Entry, Visibility, is_template, yaml_of};
use crate::finding::{changed, closed, left_out};
use crate::measure_sql::report_other_cubes;

/// The context for reading the members of one cube.
pub(super) struct MemberReader<'r> {
    /// The cube's name in the model.
    pub(super) cube: &'r str,
    pub(super) scope: &'r ImportScope,
    pub(super) findings: &'r mut Vec<Diagnostic>,
    /// The references that were collected so far for the member that is being read.
    needs: Vec<Reference>,
}

impl<'r> MemberReader<'r> {
    pub(super) fn new(cube: &'r str, scope: &'r ImportScope, findings: &'r mut Vec<Diagnostic>) -> Self {
        MemberReader { cube, scope, findings, needs: Vec::new() }
    }

    /// Opens an item of one of the cube's lists, and returns it with its name in the model.
    pub(super) fn open<'n>(&mut self, node: &'n Node, kind: &str) -> Option<(Entry<'n>, String)> {
        self.needs.clear();
        let Some(name) = Entry::open(node, "").and_then(|entry| entry.word("name")) else {
            let what = format!("a {kind} of cube `{}` has no name", self.cube);
            self.findings.push(left_out(node.origin.span(), what, "Add a `name`."));
            return None;
        };
        let mut entry = Entry::open(node, format!("{kind} `{name}` of cube `{}`", self.cube))?;
        entry.span = entry.text("name").map_or(entry.span, |name| name.span());
        if is_template(&name) {
            self.reject(&entry, "its name is a Jinja template", "Write the name that the template generates.");
            return None;
        }
        Some((entry, name))
    }

    /// Finishes a member: reports the keys that were not read, and adds the collected references.
    pub(super) fn member(&mut self, name: String, yaml: Yaml, entry: Entry<'_>) -> Member {
        let span = entry.span.clone();
        let is_masked = entry.has("mask");
        entry.finish(self.findings);
        Member { name, yaml, span, is_masked, needs: std::mem::take(&mut self.needs), drills: Vec::new() }
    }

    /// Removes and returns the references that were collected so far.
    pub(super) fn take_needs(&mut self) -> Vec<Reference> {
        std::mem::take(&mut self.needs)
    }

    /// Reports that an item is not imported.
    pub(super) fn reject(&mut self, entry: &Entry<'_>, reason: &str, cure: &str) {
        let what = format!("{} is not imported: {reason}", entry.what);
        self.findings.push(left_out(entry.span.clone(), what, cure));
    }

    /// Translates the SQL under a key. If that is not possible, adds a finding with the reason and returns `None`; the
    /// item is then left out.
    pub(super) fn sql(&mut self, entry: &Entry<'_>, key: &str) -> Option<String> {
        let Some(text) = entry.text(key) else {
            self.reject(entry, &format!("it has no `{key}`"), "Write its expression.");
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
                self.needs.extend(translated.needs);
                Some(translated.sql.trim().to_owned())
            }
            Err(Untranslatable { reason, cure }) => {
                self.reject(entry, &reason, cure);
                None
            }
        }
    }

    /// Reports a number that combines measures of several cubes. In Cube, the joins of the query decide which rows of
    /// the other cubes are aggregated.
    pub(super) fn report_other_cubes(&mut self, entry: &Entry<'_>) {
        let measures = self.needs.iter().filter(|need| need.member.is_some() && !self.scope.is_row_member(need));
        let own = self.scope.cube(self.cube);
        report_other_cubes(&entry.what, &own, measures, entry.span_of("sql"), self.findings);
    }

    /// Reads the title, the description, the format, the visibility and `meta` of a member.
    pub(super) fn wording(&mut self, entry: &Entry<'_>, yaml: &mut Yaml) {
        for key in ["title", "description"] {
            if let Some(text) = entry.word(key) {
                yaml.set(key, Yaml::Text(text));
            }
        }
        if let Some(format) = format(entry, self.findings) {
            yaml.set("format", Yaml::Text(format));
        }
        self.visibility(entry, yaml);
        if let Some(meta) = entry.node("meta") {
            yaml.set("meta", yaml_of(meta));
        }
    }

    /// Closes a member that is private in the model, or may be private for some callers.
    pub(super) fn visibility(&mut self, entry: &Entry<'_>, yaml: &mut Yaml) {
        let visibility = entry.visibility();
        if visibility == Visibility::Unknown {
            let what = format!("{} is closed: its `public` is neither true nor false", entry.what);
            let cure =
                "Write `public: true` in the project if all callers may see it; else write a policy (policies/*.yml).";
            self.findings.push(closed(entry.visibility_span(), what, cure));
        }
        let is_masked = entry.has("mask");
        if is_masked && visibility != Visibility::Unknown {
            let what = format!("{} is closed: the model masks it for some callers", entry.what);
            let cure = "Write a policy with `mask` for these callers (policies/*.yml), then remove `public: false`.";
            self.findings.push(closed(entry.span_of("mask"), what, cure));
        }
        if is_masked || visibility != Visibility::Public {
            yaml.set("public", Yaml::Boolean(false));
        }
    }
}

/// Returns the format of a member. The value of `percent` is a percentage in the model, and a fraction in a project.
pub(super) fn format(entry: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> Option<String> {
    let word = entry.word("format");
    let (reason, cure) = match &word {
        Some(word) if word == "percent" => {
            ("a percentage in the model, and a fraction in a project", "Divide by 100 and write `format: percent`.")
        }
        None if entry.has("format") => ("not a word", "Describe it in `meta` for clients."),
        _ => return word,
    };
    let what = format!("`format` of {} is not imported: it is {reason}", entry.what);
    findings.push(left_out(entry.span_of("format"), what, cure));
    None
}

/// Reports a key that must be true or false and has another value, such as a template.
pub(super) fn report_unknown_flag(entry: &Entry<'_>, key: &str, findings: &mut Vec<Diagnostic>) {
    let words = ["true", "yes", "on", "false", "no", "off"];
    if entry.has(key) && !entry.word(key).is_some_and(|word| words.contains(&word.to_lowercase().as_str())) {
        let what = format!("`{key}` of {} is not imported: it is neither true nor false", entry.what);
        findings.push(left_out(entry.span_of(key), what, "Write `true` or `false`."));
    }
}

/// Returns true for a key that is true, or whose value is unknown.
pub(super) fn may_be_true(entry: &Entry<'_>, key: &str) -> bool {
    let words = ["false", "no", "off"];
    entry.has(key) && !entry.word(key).is_some_and(|word| words.contains(&word.to_lowercase().as_str()))
}

/// Reads joins, which must be a list. The mapping by name that older models have is reported.
pub(super) fn joins(entry: &Entry<'_>, reader: &mut MemberReader<'_>) -> Vec<Member> {
    if entry.node("joins").is_some_and(|node| !matches!(node.value, NodeValue::List(_))) {
        let what = format!("`joins` of cube `{}` are not imported: expected a list", reader.cube);
        reader.findings.push(left_out(entry.span_of("joins"), what, "Write `- name: …` for each."));
    }
    entry.list("joins").iter().filter_map(|node| join(node, reader)).collect()
}

fn join(node: &Node, reader: &mut MemberReader<'_>) -> Option<Member> {
    let (entry, name) = reader.open(node, "join")?;
    let relationship = match entry.word("relationship").as_deref() {
        Some("many_to_one" | "belongs_to" | "belongsTo" | "manyToOne") => "many_to_one",
        Some("one_to_many" | "has_many" | "hasMany" | "oneToMany") => "one_to_many",
        Some("one_to_one" | "has_one" | "hasOne" | "oneToOne") => "one_to_one",
        other => {
            let reason = match other {
                Some(word) => format!("unknown relationship `{word}`"),
                None => "it has no `relationship`".to_owned(),
            };
            reader.reject(&entry, &reason, "Write many_to_one, one_to_many or one_to_one.");
            return None;
        }
    };
    let sql = reader.sql(&entry, "sql")?;
    let target = reader.scope.cube(&name);
    reader.needs.push(Reference { cube: target.clone(), member: None });
    let yaml = Yaml::map([
        ("name", Yaml::text(&*target)),
        ("relationship", Yaml::text(relationship)),
        ("sql", Yaml::Text(sql)),
    ]);
    Some(reader.member(target, yaml, entry))
}

pub(super) fn segment(node: &Node, reader: &mut MemberReader<'_>) -> Option<Member> {
    let (entry, original) = reader.open(node, "segment")?;
    let name = reader.scope.member(reader.cube, &original);
    let sql = reader.sql(&entry, "sql")?;
    let mut yaml = Yaml::map([("name", Yaml::text(&*name)), ("sql", Yaml::Text(sql))]);
    reader.wording(&entry, &mut yaml);
    Some(reader.member(name, yaml, entry))
}

pub(super) fn pre_aggregation(node: &Node, reader: &mut MemberReader<'_>) -> Option<Member> {
    const GRANULARITIES: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    let (entry, original) = reader.open(node, "pre-aggregation")?;
    let name = reader.scope.member(reader.cube, &original);
    match entry.word("type").as_deref() {
        None | Some("rollup") => {}
        Some(other) => {
            let cure = "Keep it as a table of the warehouse, or write a rollup of measures and dimensions.";
            reader.reject(&entry, &format!("its type is `{other}`"), cure);
            return None;
        }
    }
    let mut yaml = Yaml::map([("name", Yaml::text(&*name))]);
    for key in ["measures", "dimensions"] {
        let paths: Vec<_> = members(&entry, key).iter().map(|m| reader.scope.path(reader.cube, m)).collect();
        if !paths.is_empty() {
            yaml.set(key, Yaml::texts(paths.iter().map(|(_, text)| text.as_str())));
            reader.needs.extend(paths.into_iter().map(|(reference, _)| reference));
        }
    }
    if let Some(time) = entry.word("time_dimension") {
        let (reference, text) = reader.scope.path(reader.cube, &time);
        yaml.set("time_dimension", Yaml::Text(text));
        reader.needs.push(reference);
    }
    for key in ["granularity", "partition_granularity"] {
        match entry.word(key) {
            Some(word) if GRANULARITIES.contains(&word.as_str()) => yaml.set(key, Yaml::Text(word)),
            Some(word) => {
                let what = format!("{}: unknown granularity `{word}`", entry.what);
                let cure = "Write second, minute, hour, day, week, month, quarter or year.";
                reader.findings.push(left_out(entry.span_of(key), what, cure));
            }
            None => {}
        }
    }
    if let Some(key) =
        entry.node("refresh_key").and_then(|node| Entry::open(node, format!("`refresh_key` of {}", entry.what)))
    {
        const CURE: &str = "Write `refresh: {every: 1 hour}`.";
        match key.word("every").filter(|every| refresh_interval(every).is_some()) {
            Some(every) => yaml.set("refresh", Yaml::map([("every", Yaml::Text(every))])),
            None => {
                let what = format!("{} is not imported", key.what);
                reader.findings.push(left_out(key.span.clone(), what, CURE));
            }
        }
        key.drop_key("sql", CURE, reader.findings);
        key.finish(reader.findings);
    }
    let cure = "Write the keys of the project that do the same: segments, indexes, build_range, refresh.";
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
        entry.drop_key(key, cure, reader.findings);
    }
    Some(reader.member(name, yaml, entry))
}

/// Returns the strings of a list, or a single string.
pub(super) fn members(entry: &Entry<'_>, key: &str) -> Vec<String> {
    let one = entry.word(key).into_iter();
    let text = |node: &Node| match yaml_of(node) {
        Yaml::Text(text) => Some(text),
        // YAML parses `- {CUBE}.count` as a mapping.
        _ => None,
    };
    one.chain(entry.list(key).iter().filter_map(text)).collect()
}
