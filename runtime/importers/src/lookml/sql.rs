//! Translates references in SQL.
//!
//! In: SQL with `${TABLE}`, `${field}` and `${view.field}`. Out: the same text with the project's references, or the
//! reason why it has no counterpart.

use super::scope::{FieldKind, FieldMatch, ProjectScope, ViewNames};
use crate::draft::Reference;

/// The deepest nesting of queries that are inserted into queries.
const MAX_DEPTH: usize = 4;
/// The largest length of a query, including the queries that are inserted into it.
const MAX_CHARACTERS: usize = 200_000;

/// A translated string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) sql: String,
    pub(super) needs: Vec<Reference>,
    /// The views and aliases that the string names.
    pub(super) views: Vec<String>,
}

/// The reason why a string cannot be translated, and an action.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Untranslatable {
    pub(super) reason: String,
    pub(super) cure: &'static str,
}

/// The aliases of an explore, with their views. Outside an explore, the name of a view is its own alias.
pub(super) trait Aliases {
    /// Returns the view of an alias, and the name by which the project refers to it.
    fn resolve<'s>(&self, scope: &'s ProjectScope, alias: &str) -> Option<(&'s ViewNames, String)>;
}

/// The names that SQL inside a view may use: each view has its own name.
pub(super) struct OwnViews;

impl Aliases for OwnViews {
    fn resolve<'s>(&self, scope: &'s ProjectScope, alias: &str) -> Option<(&'s ViewNames, String)> {
        let view = scope.view(alias)?;
        Some((view, view.cube.clone()))
    }
}

/// Translates the SQL of a field of the view `own`, or of a rule of an explore whose base is `own`.
pub(super) fn expression(
    text: &str,
    own: &str,
    aliases: &dyn Aliases,
    scope: &ProjectScope,
) -> Result<Translated, Untranslatable> {
    let text = scope.with_constants(text);
    reject_liquid(&text)?;
    let mut translated = Translated::default();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['{', '}']) {
        let before = rest[..at].strip_suffix('$').filter(|_| rest[at..].starts_with('{'));
        let reference = before.and_then(|before| Some((before, rest[at + 1..].split_once('}')?)));
        let Some((before, (content, after))) = reference else {
            return Err(Untranslatable {
                reason: "its SQL contains a brace that is not part of a reference".to_owned(),
                cure: "Compute the column in a model (models/*.sql).",
            });
        };
        translated.sql.push_str(before);
        insert(content.trim(), own, aliases, scope, &mut translated)?;
        rest = after;
    }
    translated.sql.push_str(rest);
    translated.sql = translated.sql.trim().to_owned();
    Ok(translated)
}

fn insert(
    content: &str,
    own: &str,
    aliases: &dyn Aliases,
    scope: &ProjectScope,
    translated: &mut Translated,
) -> Result<(), Untranslatable> {
    if content == "TABLE" {
        translated.sql.push_str("{CUBE}");
        return Ok(());
    }
    let parts: Vec<&str> = content.split('.').map(str::trim).collect();
    let (alias, name) = match parts.as_slice() {
        [name] => (own, *name),
        [alias, name] if *name != "SQL_TABLE_NAME" => (*alias, *name),
        _ => return Err(unknown(content)),
    };
    let (view, cube) = aliases.resolve(scope, alias).ok_or_else(|| unknown(content))?;
    let found = view.field(name).ok_or_else(|| unknown(content))?;
    let is_own = parts.len() == 1 || alias == own;
    let member = &found.field.name;
    let reference = if is_own { format!("{{{member}}}") } else { format!("{{{cube}.{member}}}") };
    translated.sql.push_str(&with_timeframe(reference, &found, content)?);
    translated
        .needs
        .push(Reference { cube: if is_own { view.cube.clone() } else { cube }, member: Some(member.clone()) });
    if !translated.views.iter().any(|known| known == alias) {
        translated.views.push(alias.to_owned());
    }
    Ok(())
}

/// Applies the timeframe of a reference such as `${created_date}`.
fn with_timeframe(reference: String, found: &FieldMatch<'_>, content: &str) -> Result<String, Untranslatable> {
    match found.timeframe {
        None | Some("raw" | "time") => Ok(reference),
        Some("date") => Ok(format!("CAST({reference} AS DATE)")),
        Some(timeframe) => Err(Untranslatable {
            reason: format!("its SQL reads `${{{content}}}`, a time by {timeframe}"),
            cure: "Write the warehouse's function: date_trunc('month', {created}).",
        }),
    }
}

fn unknown(content: &str) -> Untranslatable {
    Untranslatable {
        reason: format!("its SQL refers to `${{{content}}}`, which does not exist or is not imported"),
        cure: "Correct the reference, or solve the problems of that view first.",
    }
}

fn reject_liquid(text: &str) -> Result<(), Untranslatable> {
    let has_liquid = ["{{", "{%"].iter().any(|tag| text.contains(tag));
    if has_liquid {
        return Err(Untranslatable {
            reason: "its SQL contains Liquid".to_owned(),
            cure: "Write the SQL without it. If it restricts rows by the caller, write a policy (policies/*.yml).",
        });
    }
    if text.contains("@{") {
        return Err(Untranslatable {
            reason: "its SQL contains a constant that the folder does not define".to_owned(),
            cure: "Write its value.",
        });
    }
    Ok(())
}

/// Translates the name of a table, or a query. Both may refer to the tables and queries of other views.
pub(super) fn relation(text: &str, scope: &ProjectScope, depth: usize) -> Result<String, Untranslatable> {
    let text = scope.with_constants(text);
    reject_liquid(&text)?;
    let mut sql = String::new();
    let mut rest = text.as_str();
    let mut in_text = false;
    while let Some(at) = rest.find(['{', '}', '\'']) {
        let is_quote = rest[at..].starts_with('\'');
        let is_reference = rest[at..].starts_with('{') && rest[..at].ends_with('$');
        if is_quote || (in_text && !is_reference) {
            // A brace in a string of the SQL has no meaning.
            in_text ^= is_quote;
            sql.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        }
        let other = || Untranslatable {
            reason: "its SQL contains a brace that is not a view's `SQL_TABLE_NAME`".to_owned(),
            cure: "Write the table's name, or make a model of the query and refer to it: {{ ref('name') }}.",
        };
        let before = rest[..at].strip_suffix('$').filter(|_| rest[at..].starts_with('{')).ok_or_else(other)?;
        let (content, after) = rest[at + 1..].split_once('}').ok_or_else(other)?;
        let view = content.trim().strip_suffix(".SQL_TABLE_NAME").and_then(|view| scope.view(view.trim()));
        let inner = view.and_then(|view| view.relation.as_ref()).filter(|_| depth < MAX_DEPTH).ok_or_else(other)?;
        sql.push_str(before);
        sql.push_str(&relation(inner, scope, depth + 1)?);
        rest = after;
        if sql.len() > MAX_CHARACTERS {
            return Err(other());
        }
    }
    sql.push_str(rest);
    Ok(sql.trim().trim_end_matches(';').trim_end().to_owned())
}

/// Returns true for a field that a condition on rows may use.
pub(super) fn is_row_field(kind: FieldKind) -> bool {
    kind != FieldKind::Measure
}
