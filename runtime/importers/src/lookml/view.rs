//! Makes a cube of each view.
//!
//! In: a merged view. Out: a draft with its dimensions and measures. Not here: joins, and the question whether an explore
//! shows it.

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;

use super::fields::Fields;
use super::merge::Merged;
use super::scope::ProjectScope;
use super::sql::{self, OwnViews, Translated, Untranslatable};
use super::syntax::Item;
use super::{dimension, measure};
use crate::draft::{CubeAccess, CubeDraft, CubeVisibility, Member, Reference};
use crate::finding::{changed, closed, left_out};

/// The context for reading the fields of one view.
pub(super) struct ViewReader<'r> {
    /// The view's name in the project of Looker.
    pub(super) view: &'r str,
    pub(super) scope: &'r ProjectScope,
    pub(super) findings: &'r mut Vec<Diagnostic>,
    /// The fields are hidden unless they state otherwise.
    is_hidden: bool,
    /// The references of the field that is being read.
    pub(super) needs: Vec<Reference>,
}

pub(super) fn cube(view: &Merged, scope: &ProjectScope, findings: &mut Vec<Diagnostic>) -> Option<CubeDraft> {
    let names = scope.view(&view.name)?;
    let fields = Fields::open(&view.item, format!("view `{}`", view.name));
    if fields.text("extension") == Some("required") {
        let cure = "Import a view that extends it, or remove `extension`.";
        fields.reject("it is a template for other views", cure, findings);
        return None;
    }
    let (key, relation) = rows(&view.name, &fields, scope, findings)?;
    let mut head = vec![("name".to_owned(), Yaml::text(&*names.cube)), (key.to_owned(), Yaml::Text(relation))];
    for (key, name) in [("label", "title"), ("description", "description")] {
        head.extend(fields.text(key).map(|text| (name.to_owned(), Yaml::text(text))));
    }
    let has_policy = fields.has("required_access_grants");
    if has_policy {
        let what = format!("{} requires an access grant and is closed to all callers", fields.what);
        let cure = "Write the policy in its file of policies/, in place of `row_filter: \"1 = 0\"`.";
        findings.push(closed(fields.span_of("required_access_grants"), what, cure));
    }
    for key in ["extends", "extends__all", "set", "extension"] {
        fields.all(key).for_each(drop);
    }
    let is_hidden = fields.is_yes("fields_hidden_by_default");
    let mut reader = ViewReader { view: &view.name, scope, findings, is_hidden, needs: Vec::new() };
    let mut dimensions: Vec<Member> =
        fields.all("dimension").flat_map(|item| dimension::dimension(item, &mut reader)).collect();
    dimensions.extend(fields.all("dimension_group").filter_map(|item| dimension::group(item, &mut reader)));
    let measures = fields.all("measure").filter_map(|item| measure::measure(item, &mut reader)).collect();
    for key in ["filter", "parameter"] {
        for item in fields.all(key) {
            let what = format!("{key} `{}` of {} is not imported", item.name().unwrap_or_default(), fields.what);
            let cure = "Filter the query by a dimension, or write a measure for each value.";
            reader.findings.push(left_out(item.span.clone(), what, cure));
        }
    }
    fields.finish(findings);
    Some(CubeDraft {
        original: view.name.clone(),
        name: names.cube.clone(),
        span: view.item.span.clone(),
        extends: None,
        head,
        data_source: None,
        access: CubeAccess { visibility: CubeVisibility::Unstated, has_policy },
        policies: Vec::new(),
        lists: [Vec::new(), dimensions, measures, Vec::new(), Vec::new()],
    })
}

/// Returns the key and the value of the view's rows.
fn rows(
    name: &str,
    fields: &Fields<'_>,
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) -> Option<(&'static str, String)> {
    let derived =
        fields.item("derived_table").map(|item| Fields::open(item, format!("`derived_table` of {}", fields.what)));
    let Some(derived) = derived else {
        let table = fields.text("sql_table_name").unwrap_or(name);
        return relation("sql_table", table, fields, scope, findings);
    };
    let Some(query) = derived.text("sql") else {
        let cure = "Write its query as a model (models/*.sql), and `sql_table: \"{{ ref('name') }}\"`.";
        fields.reject("Looker derives it from an explore or by several statements", cure, findings);
        return None;
    };
    let persisted = ["datagroup_trigger", "persist_for", "sql_trigger_value", "interval_trigger", "materialized_view"];
    if let Some(key) = persisted.into_iter().find(|key| derived.has(key)) {
        let what = format!("{} is a table that Looker stores; in the project it is a query", fields.what);
        let cure = "Write it as a model with `materialization: table`, or a pre-aggregation.";
        findings.push(changed(derived.span_of(key), what, cure));
    }
    derived.finish(findings);
    relation("sql", query, fields, scope, findings)
}

fn relation(
    key: &'static str,
    text: &str,
    fields: &Fields<'_>,
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) -> Option<(&'static str, String)> {
    match sql::relation(text, scope, 0) {
        // A name that refers to a query is a query.
        Ok(sql) if key == "sql_table" && sql.starts_with('(') => {
            Some(("sql", format!("SELECT * FROM {sql} AS rows_of_view")))
        }
        Ok(sql) => Some((key, sql)),
        Err(Untranslatable { reason, cure }) => {
            fields.reject(&reason, cure, findings);
            None
        }
    }
}

impl<'r> ViewReader<'r> {
    /// Opens a field. Returns it with the name of its member. `None`: a finding says why it is left out.
    pub(super) fn open<'i>(&mut self, item: &'i Item, kind: &str) -> Option<(Fields<'i>, String)> {
        self.needs.clear();
        let name = item.name()?;
        let fields = Fields::open(item, format!("{kind} `{name}` of view `{}`", self.view));
        let member =
            self.scope.view(self.view).and_then(|view| view.field(name)).map(|found| found.field.name.clone())?;
        Some((fields, member))
    }

    /// Translates the SQL of a field. `None`: the field is left out, and a finding says why.
    pub(super) fn sql(&mut self, fields: &Fields<'_>, text: &str) -> Option<String> {
        match sql::expression(text, self.view, &OwnViews, self.scope) {
            Ok(Translated { sql, needs, .. }) => {
                self.needs.extend(needs);
                Some(sql)
            }
            Err(Untranslatable { reason, cure }) => {
                fields.reject(&reason, cure, self.findings);
                None
            }
        }
    }

    /// Finishes a field: reads the keys that all fields have, and reports those that were not read.
    pub(super) fn member(&mut self, name: String, mut yaml: Yaml, fields: Fields<'_>) -> Member {
        for (key, target) in [("label", "title"), ("description", "description")] {
            if let Some(text) = fields.text(key) {
                yaml.set(target, Yaml::text(text));
            }
        }
        if let Some(format) = fields.text("value_format_name").or_else(|| fields.text("value_format")) {
            fields.text("value_format");
            yaml.set("format", Yaml::text(format_word(format)));
        }
        if fields.is_yes("hidden") || (self.is_hidden && fields.text("hidden").is_none()) {
            yaml.set("hidden", Yaml::Boolean(true));
        }
        let is_restricted = fields.has("required_access_grants");
        if is_restricted {
            yaml.set("public", Yaml::Boolean(false));
            let what = format!("{} is closed: it requires an access grant", fields.what);
            let cure =
                "Write a policy with `deny` for the other callers (policies/*.yml), then remove `public: false`.";
            self.findings.push(closed(fields.span_of("required_access_grants"), what, cure));
        }
        let tags = fields.list("tags");
        if !tags.is_empty() {
            let tags = Yaml::texts(tags.iter().map(|tag| tag.text.as_str()));
            yaml.set("meta", Yaml::map([("tags", tags)]));
        }
        let span = fields.span.clone();
        fields.finish(self.findings);
        let needs = std::mem::take(&mut self.needs);
        Member { name, yaml, span, is_masked: is_restricted, needs, drills: Vec::new() }
    }
}

/// Returns the word of a format that clients of the project know.
fn format_word(format: &str) -> &str {
    match format {
        "usd" | "usd_0" | "eur" | "eur_0" | "gbp" | "gbp_0" => "currency",
        _ if format.starts_with("percent") || format.ends_with('%') => "percent",
        _ if format.contains(['$', '€', '£']) => "currency",
        other => other,
    }
}
