//! The names in a LookML project, and the names that cubes and members have for them.
//!
//! In: merged views and explores. Out: lookups by the names in the LookML project, and the declared names.

use std::collections::{HashMap, HashSet};

use terrane_authoring::names::{Taken, snake};
use terrane_compiler::diagnostic::{Diagnostic, Span};

use super::fields::Fields;
use super::merge::Merged;
use crate::declared::Declared;
use crate::draft::{CubeDraft, JOINS, Reference};
use crate::finding::changed;

pub(super) struct ProjectScope {
    views: HashMap<String, ViewNames>,
    pub(super) constants: HashMap<String, String>,
    pub(super) settings: Settings,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// True if the project has explores. Without explores, nothing states which views callers may query.
    pub(super) has_explores: bool,
    /// True if the project compares strings without regard to case.
    pub(super) ignores_case: bool,
}

#[derive(Default)]
pub(super) struct ViewNames {
    pub(super) cube: String,
    members: HashMap<String, Field>,
    /// The timeframes of each group of times, by the names of their members.
    timeframes: HashMap<String, Vec<String>>,
    /// The fields of each set.
    sets: HashMap<String, Vec<String>>,
    /// The table or query to which `${view.SQL_TABLE_NAME}` refers.
    pub(super) relation: Option<String>,
    pub(super) key: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Field {
    /// The name of the field's member in the project.
    pub(super) name: String,
    pub(super) kind: FieldKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    String,
    Number,
    YesNo,
    Time,
    Measure,
}

/// A field, and the timeframe with which the name of the reference ends.
pub(super) struct FieldMatch<'s> {
    pub(super) field: &'s Field,
    pub(super) timeframe: Option<&'s str>,
}

/// The deepest nesting of sets.
const MAX_DEPTH: usize = 64;
/// The timeframes, each with its granularity.
pub(super) const TIMEFRAMES: [(&str, &str); 9] = [
    ("second", "second"),
    ("time", "second"),
    ("minute", "minute"),
    ("hour", "hour"),
    ("date", "day"),
    ("week", "week"),
    ("month", "month"),
    ("quarter", "quarter"),
    ("year", "year"),
];

impl ProjectScope {
    pub(super) fn new(
        views: &[Merged],
        constants: HashMap<String, String>,
        settings: Settings,
        findings: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut taken = Taken::default();
        let mut names = HashMap::new();
        for view in views {
            let cube = renamed(&view.name, &mut taken, &view.item.span, findings);
            names.insert(view.name.clone(), ViewNames::new(cube, view, findings));
        }
        ProjectScope { views: names, constants, settings }
    }

    pub(super) fn view(&self, name: &str) -> Option<&ViewNames> {
        self.views.get(name)
    }

    /// Returns true for a reference to a measure.
    pub(super) fn is_measure(&self, reference: &Reference) -> bool {
        let of_cube = self.views.values().filter(|view| view.cube == reference.cube);
        let mut fields = of_cube.flat_map(|view| view.members.values());
        fields.any(|field| field.kind == FieldKind::Measure && Some(&field.name) == reference.member.as_ref())
    }

    /// Returns all declared names, and the joins of the drafts.
    pub(super) fn declared(&self, drafts: &[CubeDraft]) -> Declared {
        let mut declared = Declared::default();
        for view in self.views.values() {
            declared.add_cube(&view.cube);
            view.members.values().for_each(|field| declared.add_member(&view.cube, &field.name));
        }
        for draft in drafts {
            let joins = draft.lists[JOINS].iter().map(|join| (draft.name.clone(), join.name.clone()));
            declared.joins.extend(joins);
        }
        declared
    }

    /// Replaces references such as `@{constant}` with their values. An unknown constant is not replaced.
    pub(super) fn with_constants(&self, text: &str) -> String {
        let mut result = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("@{") {
            result.push_str(before);
            match after.split_once('}').and_then(|(name, after)| Some((self.constants.get(name.trim())?, after))) {
                Some((value, after)) => {
                    result.push_str(value);
                    rest = after;
                }
                None => {
                    result.push_str("@{");
                    rest = after;
                }
            }
        }
        result.push_str(rest);
        result
    }
}

impl ViewNames {
    fn new(cube: String, view: &Merged, findings: &mut Vec<Diagnostic>) -> Self {
        let mut names = ViewNames { cube, ..ViewNames::default() };
        let mut taken = Taken::default();
        for item in view.item.items() {
            let Some(name) = item.name() else { continue };
            let fields = Fields::open(item, "");
            let kind = match item.key.as_str() {
                "dimension" => dimension_kind(fields.text("type")),
                "dimension_group" => FieldKind::Time,
                "measure" => FieldKind::Measure,
                "set" => {
                    let entries = fields.list("fields");
                    names.sets.insert(name.to_owned(), entries.iter().map(|entry| entry.text.clone()).collect());
                    continue;
                }
                _ => continue,
            };
            if fields.is_yes("primary_key") {
                names.key = Some(name.to_owned());
            }
            let member = renamed(name, &mut taken, &item.span, findings);
            if item.key == "dimension_group" {
                let listed: Vec<String> = fields.list("timeframes").iter().map(|entry| entry.text.clone()).collect();
                let all = || TIMEFRAMES.iter().map(|(timeframe, _)| (*timeframe).to_owned()).collect();
                names.timeframes.insert(member.clone(), if listed.is_empty() { all() } else { listed });
            }
            names.members.entry(name.to_owned()).or_insert(Field { name: member, kind });
        }
        names.relation = relation(view);
        names
    }

    /// Returns the field with a name such as `status`, or the time field and the timeframe of a name such as
    /// `created_month`.
    pub(super) fn field<'s>(&'s self, name: &'s str) -> Option<FieldMatch<'s>> {
        if let Some(field) = self.members.get(name) {
            return Some(FieldMatch { field, timeframe: None });
        }
        // Both the field's name and the timeframe may contain underscores, as in `created_day_of_week`, so each is
        // tried.
        let borders = name.match_indices('_').map(|(at, _)| at);
        borders.filter(|at| *at > 0).find_map(|at| {
            let field = self.members.get(&name[..at]).filter(|field| field.kind == FieldKind::Time)?;
            Some(FieldMatch { field, timeframe: Some(&name[at + 1..]) })
        })
    }

    /// Returns the timeframes of a group of times, by the name of its member. Other members have none.
    pub(super) fn timeframes(&self, member: &str) -> &[String] {
        self.timeframes.get(member).map_or(&[], Vec::as_slice)
    }

    /// Returns the fields of a set such as `details*`, or the field itself. In a set, `-x` removes the field `x`.
    pub(super) fn expand(&self, text: &str) -> Vec<String> {
        self.expand_known(text, 0, &mut HashMap::new())
    }

    /// Expands a set. `known` contains the sets that are expanded already, and those that are being expanded.
    fn expand_known<'s>(
        &'s self,
        text: &'s str,
        depth: usize,
        known: &mut HashMap<&'s str, Vec<String>>,
    ) -> Vec<String> {
        let Some(set) = text.strip_suffix('*') else { return vec![text.to_owned()] };
        if let Some(fields) = known.get(set) {
            return fields.clone();
        }
        let Some(fields) = self.sets.get(set).filter(|_| depth < MAX_DEPTH) else { return Vec::new() };
        known.insert(set, Vec::new());
        let mut expanded: Vec<String> = Vec::new();
        let mut unique: HashSet<String> = HashSet::new();
        for field in fields {
            match field.strip_prefix('-') {
                Some(excluded) => {
                    let excluded: HashSet<String> = self.expand_known(excluded, depth + 1, known).into_iter().collect();
                    expanded.retain(|field| !excluded.contains(field));
                    unique.retain(|field| !excluded.contains(field));
                }
                None => {
                    let fields = self.expand_known(field, depth + 1, known);
                    expanded.extend(fields.into_iter().filter(|field| unique.insert(field.clone())));
                }
            }
        }
        known.insert(set, expanded.clone());
        expanded
    }
}

fn dimension_kind(ty: Option<&str>) -> FieldKind {
    match ty {
        Some("number" | "int") => FieldKind::Number,
        Some("yesno") => FieldKind::YesNo,
        Some(ty) if ty == "time" || ty.starts_with("date") => FieldKind::Time,
        _ => FieldKind::String,
    }
}

/// Returns the source of a view's rows: its table, or its query in parentheses.
fn relation(view: &Merged) -> Option<String> {
    let fields = Fields::open(&view.item, "");
    if let Some(table) = fields.text("sql_table_name") {
        return Some(table.to_owned());
    }
    let derived = fields.item("derived_table");
    match derived.map(|item| Fields::open(item, "")) {
        Some(derived) => derived.text("sql").map(|sql| format!("({})", sql.trim_end_matches(';'))),
        None => Some(view.name.clone()),
    }
}

fn renamed(original: &str, taken: &mut Taken, span: &Span, findings: &mut Vec<Diagnostic>) -> String {
    let name = taken.take(&snake(original));
    if original != name {
        let what = format!("`{original}` is named `{name}` in the project: names are unique and in snake_case");
        findings.push(changed(span.clone(), what, "Use the new name in queries."));
    }
    name
}
