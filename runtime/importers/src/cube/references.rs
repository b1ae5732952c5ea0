//! Translates references in a model's SQL.
//!
//! In: a string with `{CUBE}`, `{orders.count}`, `${…}` and calls of Cube's own functions. Out: the same text with the
//! project's references and names, or the reason why it has no counterpart. A string that filters rows by the caller is
//! never translated without this filter, because all callers would then see all rows.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use terrane_authoring::names::{Taken, snake};
use terrane_compiler::diagnostic::{Diagnostic, Span};

use super::javascript::CODE;
use super::read::ModelEntry;
use crate::declared::Declared;
use crate::draft::Reference;
use crate::entry::{Entry, is_template};
use crate::finding::changed;

/// The names of a model, and their names in the project.
#[derive(Default)]
pub(super) struct ImportScope {
    cubes: HashMap<String, CubeNames>,
    /// The cubes and members of the model, by their names in the project.
    declared: Declared,
    /// The joins of the model, each as the name of its owner in the project and the name of its target in the model.
    joins: Vec<(String, String)>,
    /// The environment variables without a default value, by their names in the project.
    variables: RefCell<BTreeSet<String>>,
}

#[derive(Default)]
struct CubeNames {
    name: String,
    members: HashMap<String, String>,
    times: HashSet<String>,
    /// The dimensions and segments, by their names in the project.
    row_members: HashSet<String>,
    /// The name of the extended cube in the model.
    extends: Option<String>,
    /// The table or query to which `{orders.sql()}` refers.
    relation: Option<String>,
}

/// A translated string, with notes for the author.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) sql: String,
    pub(super) notes: Vec<Note>,
    pub(super) needs: Vec<Reference>,
}

/// A difference between a string and its translation, and an action.
pub(super) type Note = (String, &'static str);

/// The reason why a string cannot be translated, and an action.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Untranslatable {
    pub(super) reason: String,
    pub(super) cure: &'static str,
}

/// The replacement for one pair of braces.
#[derive(Default)]
struct Replacement {
    sql: String,
    note: Option<Note>,
    needs: Vec<Reference>,
}

const MEMBERS: [&str; 4] = ["measures", "dimensions", "segments", "pre_aggregations"];
const GRANULARITIES: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

impl ImportScope {
    pub(super) fn new(entries: &[ModelEntry], findings: &mut Vec<Diagnostic>) -> Self {
        let mut scope = ImportScope::default();
        let mut taken = Taken::default();
        for item in entries {
            let name = taken.take(&snake(&item.name));
            report_rename(&item.name, &name, item.span.clone(), findings);
            let Some(entry) = Entry::open(&item.node, "") else { continue };
            scope.declared.add_cube(&name);
            let mut names = CubeNames { name, ..CubeNames::default() };
            names.relation = match (entry.word("sql_table"), entry.word("sql")) {
                (Some(table), _) => Some(table),
                (None, Some(sql)) => Some(format!("({})", sql.trim_end_matches(';'))),
                (None, None) => None,
            };
            names.extends = entry.word("extends").map(|parent| parent.trim_matches(['{', '}']).to_owned());
            let targets = entry.list("joins").iter().filter_map(|node| Entry::open(node, "")?.word("name"));
            scope.joins.extend(targets.map(|target| (names.name.clone(), target)));
            let mut members = Taken::default();
            for list in MEMBERS {
                for node in entry.list(list) {
                    let Some(member) = Entry::open(node, "") else { continue };
                    let Some(name) = member.text("name").filter(|name| !is_template(&name.value)) else { continue };
                    if names.members.contains_key(&*name.value) {
                        continue;
                    }
                    // The name of a pre-aggregation may be the same as that of a member.
                    let new =
                        if list == "pre_aggregations" { snake(&name.value) } else { members.take(&snake(&name.value)) };
                    report_rename(&name.value, &new, name.span(), findings);
                    if member.word("type").as_deref() == Some("time") && list == "dimensions" {
                        names.times.insert(name.value.to_string());
                    }
                    scope.declared.add_member(&names.name, &new);
                    if matches!(list, "dimensions" | "segments") {
                        names.row_members.insert(new.clone());
                    }
                    names.members.insert(name.value.to_string(), new);
                }
            }
            scope.cubes.insert(item.name.clone(), names);
        }
        scope
    }

    pub(super) fn cube(&self, original: &str) -> String {
        self.cubes.get(original).map_or_else(|| snake(original), |names| names.name.clone())
    }

    pub(super) fn member(&self, cube: &str, original: &str) -> String {
        let known = self.cubes.get(cube).and_then(|names| names.members.get(original));
        known.cloned().unwrap_or_else(|| snake(original))
    }

    /// Returns true for a reference to a dimension or a segment, which the cube may inherit.
    pub(super) fn is_row_member(&self, reference: &Reference) -> bool {
        let Some(member) = &reference.member else { return false };
        let mut cube = self.cubes.values().find(|names| names.name == reference.cube);
        // Parents may form a cycle, so the number of steps is limited by the number of cubes.
        for _ in 0..=self.cubes.len() {
            let Some(names) = cube else { break };
            if names.row_members.contains(member) {
                return true;
            }
            cube = names.extends.as_ref().and_then(|parent| self.cubes.get(parent));
        }
        false
    }

    /// Returns the declared names, and the joins and the environment variables that the translated SQL uses.
    pub(super) fn into_declared(self) -> Declared {
        let joins = self.joins.iter().map(|(owner, target)| (owner.clone(), self.cube(target))).collect();
        let mut declared = self.declared;
        declared.joins = joins;
        declared.variables = self.variables.into_inner();
        declared
    }

    /// Translates an item of a list of members, such as `CUBE.count`, `orders.count`, `{CUBE}.count` or `count`.
    pub(super) fn path(&self, own: &str, text: &str) -> (Reference, String) {
        let plain: String = text.chars().filter(|c| !matches!(c, '{' | '}' | '$' | ' ')).collect();
        let parts: Vec<&str> = plain.split('.').collect();
        match parts.as_slice() {
            [.., cube, member] if *cube != "CUBE" && *cube != own => {
                let (cube_name, member) = (self.cube(cube), self.member(cube, member));
                let text = format!("{cube_name}.{member}");
                (Reference { cube: cube_name, member: Some(member) }, text)
            }
            [.., member] => {
                let member = self.member(own, member);
                (Reference { cube: self.cube(own), member: Some(member.clone()) }, member)
            }
            [] => (Reference { cube: self.cube(own), member: None }, String::new()),
        }
    }

    /// Translates the SQL of a member, a filter or a join.
    pub(super) fn snippet(&self, own: &str, text: &str) -> Result<Translated, Untranslatable> {
        self.translate(text, |content| self.reference(own, content))
    }

    /// Translates the `sql` or `sql_table` of a cube, which may refer only to tables and queries of other cubes.
    pub(super) fn relation(&self, text: &str) -> Result<Translated, Untranslatable> {
        self.translate(text, |content| {
            let table = content.strip_suffix(".sql()").or_else(|| content.strip_suffix(".sql"));
            if let Some(relation) =
                table.and_then(|cube| self.cubes.get(cube)).and_then(|names| names.relation.as_ref())
            {
                // References in the other cube's SQL are not followed, because they may form a cycle.
                if !relation.contains('{') {
                    return Ok(Replacement { sql: relation.clone(), ..Replacement::default() });
                }
            }
            Err(Untranslatable {
                reason: format!("its SQL refers to `{{{content}}}`"),
                cure: "Write the table's name, or make a model of the query and refer to it: {{ ref('name') }}.",
            })
        })
    }

    fn translate(
        &self,
        text: &str,
        replace: impl Fn(&str) -> Result<Replacement, Untranslatable>,
    ) -> Result<Translated, Untranslatable> {
        let mut translated = Translated::default();
        let mut rest = text;
        let mut in_text = false;
        while let Some(at) = rest.find(['{', '\'']) {
            let is_quote = rest[at..].starts_with('\'');
            let dollar = !is_quote && rest[..at].ends_with('$');
            translated.sql.push_str(&rest[..at - usize::from(dollar)]);
            if is_quote {
                in_text = !in_text;
                translated.sql.push('\'');
                rest = &rest[at + 1..];
                continue;
            }
            if ["{{", "{%", "{#"].iter().any(|tag| rest[at..].starts_with(tag)) {
                let (jinja, after) = self.jinja(&rest[at..])?;
                translated.sql.push_str(&jinja);
                translated.notes.push((
                    "reads an environment variable".to_owned(),
                    "Set the variable under its new name, which begins with TERRANE_VAR_.",
                ));
                rest = after;
                continue;
            }
            let end = closing(&rest[at..]).ok_or_else(|| Untranslatable {
                reason: "a brace in its SQL is not closed".to_owned(),
                cure: "Close the brace.",
            })?;
            let content = rest[at + 1..at + end].trim();
            match calls(content) {
                Some(Ok((sql, note))) => {
                    translated.sql.push_str(sql);
                    translated.notes.push(note);
                }
                Some(Err(untranslatable)) => return Err(untranslatable),
                // In a string literal, braces need not be a reference.
                None if in_text && !is_path(content) => translated.sql.push_str(&rest[at..=at + end]),
                None => {
                    let Replacement { sql, note, needs } = replace(content)?;
                    translated.sql.push_str(&sql);
                    translated.notes.extend(note);
                    translated.needs.extend(needs);
                }
            }
            rest = &rest[at + end + 1..];
        }
        translated.sql.push_str(rest);
        Ok(translated)
    }

    /// Translates the content of one pair of braces.
    fn reference(&self, own: &str, content: &str) -> Result<Replacement, Untranslatable> {
        let parts: Vec<&str> = content.split('.').map(str::trim).collect();
        if !is_path(content) {
            return Err(Untranslatable {
                reason: format!("its SQL contains `{{{content}}}`, which is not a reference"),
                cure: "Write {member}, {cube.member} or {cube}.column.",
            });
        }
        if let [.., time, granularity] = parts[..]
            && GRANULARITIES.contains(&granularity)
        {
            let owner = if parts.len() > 2 { parts[parts.len() - 3] } else { own };
            let owner = if owner == "CUBE" { own } else { owner };
            if self.cubes.get(owner).is_some_and(|names| names.times.contains(time)) {
                return Err(Untranslatable {
                    reason: format!("its SQL reads `{{{content}}}`, a time with a granularity"),
                    cure: "Write the warehouse's function: date_trunc('month', {created_at}).",
                });
            }
        }
        let to_cube = |cube: &str| Reference { cube: self.cube(cube), member: None };
        let to_member =
            |cube: &str, member: &str| Reference { cube: self.cube(cube), member: Some(self.member(cube, member)) };
        let plain = |sql: String, needs: Reference| Replacement { sql, note: None, needs: vec![needs] };
        Ok(match parts[..] {
            ["CUBE" | "TABLE"] => Replacement { sql: "{CUBE}".to_owned(), ..Replacement::default() },
            [name] if self.cubes.contains_key(name) => plain(format!("{{{}}}", self.cube(name)), to_cube(name)),
            [name] | ["CUBE" | "TABLE", name] => plain(format!("{{{}}}", self.member(own, name)), to_member(own, name)),
            [cube, member] => {
                plain(format!("{{{}.{}}}", self.cube(cube), self.member(cube, member)), to_member(cube, member))
            }
            [.., cube, member] => {
                let sql = format!("{{{}.{}}}", self.cube(cube), self.member(cube, member));
                let note = format!("reaches `{cube}` by the path {content}; the project uses the shortest path");
                let cure =
                    "If the model needs this path, join the cube a second time under another name, with `cube:`.";
                Replacement { note: Some((note, cure)), ..plain(sql, to_member(cube, member)) }
            }
            [] => Replacement::default(),
        })
    }

    /// Translates `{{ env_var('NAME') }}`. Other templates need Cube to be rendered.
    fn jinja<'t>(&self, text: &'t str) -> Result<(String, &'t str), Untranslatable> {
        if text.starts_with(CODE) {
            return Err(Untranslatable {
                reason: "its SQL is computed by JavaScript, which is not executed".to_owned(),
                cure: "Write the SQL as a string.",
            });
        }
        let unknown = || Untranslatable {
            reason: "its SQL is a Jinja template".to_owned(),
            cure: "Write the SQL that the template generates.",
        };
        let inner = text.strip_prefix("{{").ok_or_else(unknown)?;
        let (call, after) = inner.split_once("}}").ok_or_else(unknown)?;
        let argument =
            call.trim().strip_prefix("env_var(").and_then(|rest| rest.strip_suffix(')')).ok_or_else(unknown)?;
        let quote = argument.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or_else(unknown)?;
        let (name, rest) = argument[1..].split_once(quote).ok_or_else(unknown)?;
        let name = if name.starts_with("TERRANE_VAR_") { name.to_owned() } else { format!("TERRANE_VAR_{name}") };
        if rest.trim().is_empty() {
            self.variables.borrow_mut().insert(name.clone());
        }
        Ok((format!("{{{{ env_var('{name}'{rest}) }}}}"), after))
    }
}

fn report_rename(original: &str, name: &str, span: Span, findings: &mut Vec<Diagnostic>) {
    if original != name {
        let what = format!("`{original}` is named `{name}` in the project: names are snake_case");
        findings.push(changed(span, what, "Use the new name in queries."));
    }
}

fn is_path(content: &str) -> bool {
    let is_name = |part: &str| {
        let part = part.trim();
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    content.split('.').all(is_name)
}

/// Translates calls of Cube's own functions. Returns `None` for other content.
fn calls(content: &str) -> Option<Result<(&'static str, Note), Untranslatable>> {
    let name = content.split(['.', '(', '[', ' ']).next().unwrap_or_default();
    match name {
        // Cube replaces these calls with `1 = 1` if no filter applies. The project applies filters outside the SQL.
        "FILTER_PARAMS" | "FILTER_GROUP" => Some(Ok((
            "1 = 1",
            (
                "had a filter pushed into its SQL, which is now `1 = 1`: filters apply to the rows that it returns"
                    .to_owned(),
                "Check SQL that groups rows before the filter: its numbers differ.",
            ),
        ))),
        "SECURITY_CONTEXT" | "securityContext" | "USER_CONTEXT" => Some(Err(Untranslatable {
            reason: "its SQL depends on the caller".to_owned(),
            cure: "Write a policy, `row_filter: \"{cube}.tenant = {{ user.attributes.tenant }}\"` (policies/*.yml), and the SQL without it.",
        })),
        "COMPILE_CONTEXT" => Some(Err(Untranslatable {
            reason: "its SQL depends on the context of the compilation".to_owned(),
            cure: "Serve one project for each context, or write a policy (policies/*.yml).",
        })),
        "SQL_UTILS" => Some(Err(Untranslatable {
            reason: "its SQL calls SQL_UTILS".to_owned(),
            cure: "Write only the column: time zones apply to time dimensions automatically.",
        })),
        _ => None,
    }
}

/// Returns the byte offset of the brace that closes the first one. Nested braces and, in calls, strings are skipped.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    let is_call = text.contains('(') && !is_path(text[1..].split('}').next().unwrap_or_default());
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') if is_call => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> ImportScope {
        let mut scope = ImportScope::default();
        let members = [("createdAt", "created_at"), ("count", "count")];
        let orders = CubeNames {
            name: "orders".to_owned(),
            members: members.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
            times: ["createdAt".to_owned()].into(),
            relation: Some("shop.orders".to_owned()),
            ..CubeNames::default()
        };
        scope.cubes.insert("Orders".to_owned(), orders);
        scope.cubes.insert("users".to_owned(), CubeNames { name: "users".to_owned(), ..CubeNames::default() });
        scope
    }

    #[test]
    fn references_are_translated() {
        let cases = [
            ("{CUBE}.amount", "{CUBE}.amount"),
            ("${CUBE}.amount / ${count}", "{CUBE}.amount / {count}"),
            ("{CUBE.createdAt}", "{created_at}"),
            ("{Orders}.user_id = {users}.id", "{orders}.user_id = {users}.id"),
            ("{Orders.createdAt}", "{orders.created_at}"),
            ("{users.city} = 'x{y}z'", "{users.city} = 'x{y}z'"),
            ("data @> '{\"a\": 1}'", "data @> '{\"a\": 1}'"),
            ("{FILTER_PARAMS.Orders.createdAt.filter('created_at')} AND x", "1 = 1 AND x"),
            ("{FILTER_PARAMS.Orders.createdAt.filter(lambda x, y: f'{x} < {y}')}", "1 = 1"),
            ("{{ env_var('SCHEMA', 'raw') }}.t", "{{ env_var('TERRANE_VAR_SCHEMA', 'raw') }}.t"),
        ];
        for (text, translated) in cases {
            assert_eq!(scope().snippet("Orders", text).map(|t| t.sql).as_deref(), Ok(translated), "{text}");
        }
    }

    #[test]
    fn templates_without_a_counterpart_are_reported() {
        for (text, words) in [
            ("{SECURITY_CONTEXT.tenant.filter('tenant')}", "the caller"),
            ("{COMPILE_CONTEXT.schema}.orders", "context of the compilation"),
            ("{{ dbt.ref('x') }}", "Jinja"),
            ("{CUBE.createdAt.month}", "granularity"),
            ("{CUBE", "not closed"),
            ("{a + b}", "not a reference"),
        ] {
            let reason = scope().snippet("Orders", text).expect_err(text).reason;
            assert!(reason.contains(words), "{text}: {reason}");
        }
        let followed = scope().snippet("Orders", "{Orders.users.city}").unwrap();
        assert_eq!((followed.sql.as_str(), followed.notes.len()), ("{users.city}", 1));
    }

    #[test]
    fn relations_are_inserted() {
        assert_eq!(scope().relation("SELECT * FROM {Orders.sql()} o").unwrap().sql, "SELECT * FROM shop.orders o");
        assert!(scope().relation("SELECT {Orders}.x").is_err());
    }

    #[test]
    fn variables_without_a_default_are_collected() {
        let scope = scope();
        scope.snippet("Orders", "{{ env_var('A') }} + {{ env_var('B', '1') }}").unwrap();
        assert_eq!(scope.into_declared().variables.into_iter().collect::<Vec<_>>(), ["TERRANE_VAR_A"]);
    }

    #[test]
    fn references_are_collected() {
        let needs = scope().snippet("Orders", "{CUBE}.a + {count} + {users.city} + {Orders.createdAt}").unwrap().needs;
        let texts: Vec<String> = needs.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["`orders.count`", "`users.city`", "`orders.created_at`"]);
    }
}
