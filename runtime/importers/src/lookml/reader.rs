//! Reads the parts that dimensions and measures share.
//!
//! In: a field of a view. Out: its translated SQL, and the member with the keys that all fields have.

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;

use super::fields::Fields;
use super::scope::ProjectScope;
use super::sql::{self, OwnViews, Translated, Untranslatable};
use super::syntax::Item;
use crate::draft::{Member, Reference};
use crate::finding::closed;

/// The context for reading the fields of one view.
pub(super) struct ViewReader<'r> {
    /// The name of the view in the LookML project.
    pub(super) view: &'r str,
    pub(super) scope: &'r ProjectScope,
    pub(super) findings: &'r mut Vec<Diagnostic>,
    /// True if fields without `hidden` are hidden.
    pub(super) is_hidden: bool,
    /// The references that were collected so far for the field that is being read.
    pub(super) needs: Vec<Reference>,
}

impl<'r> ViewReader<'r> {
    /// Opens a field, and returns it with the name of its member. Returns `None` and adds a finding if it is left out.
    pub(super) fn open<'i>(&mut self, item: &'i Item, kind: &str) -> Option<(Fields<'i>, String)> {
        self.needs.clear();
        let name = item.name()?;
        let fields = Fields::open(item, format!("{kind} `{name}` of view `{}`", self.view));
        let member =
            self.scope.view(self.view).and_then(|view| view.field(name)).map(|found| found.field.name.clone())?;
        Some((fields, member))
    }

    /// Translates the SQL of a field. If that is not possible, adds a finding with the reason and returns `None`; the
    /// field is then left out.
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
        let tags = (!tags.is_empty()).then(|| ("tags", Yaml::texts(tags.iter().map(|tag| tag.text.as_str()))));
        let mut meta: Vec<_> = tags.into_iter().collect();
        for key in ["group_label", "group_item_label"] {
            match fields.text(key) {
                Some(label) if label.contains("{{") => fields.drop_key(key, "Write the label.", self.findings),
                Some(label) => meta.push((key, Yaml::text(label))),
                None => {}
            }
        }
        if !meta.is_empty() {
            yaml.set("meta", Yaml::map(meta));
        }
        let span = fields.span.clone();
        fields.finish(self.findings);
        let needs = std::mem::take(&mut self.needs);
        Member { name, yaml, span, is_masked: is_restricted, needs, drills: Vec::new() }
    }
}

/// Returns the name of a format that clients of the project support.
fn format_word(format: &str) -> &str {
    match format {
        "usd" | "usd_0" | "eur" | "eur_0" | "gbp" | "gbp_0" => "currency",
        _ if format.starts_with("percent") => "percent",
        // A backslash before the sign makes it a literal, which does not multiply by 100.
        _ if format.ends_with('%') && !format.ends_with("\\%") => "percent",
        _ if format.contains(['$', '€', '£']) => "currency",
        other => other,
    }
}
