//! References in a model's SQL, as this project writes them.
//!
//! In: a text with `{CUBE}`, `{orders.count}`, `${…}` and calls of Cube's own. Out: the same text with our
//! references and names, or why it can't be had. What filters rows by who asks is never left out of a text:
//! without it everybody would see everything.

use std::collections::{HashMap, HashSet};

use terrane_compiler::diagnostic::Diagnostic;

use super::entry::Entry;
use super::finding::changed;
use super::read::Written;
use crate::authoring::names::{Taken, snake};

/// The names of a model and what they are here.
#[derive(Default)]
pub(super) struct Scope {
    cubes: HashMap<String, CubeNames>,
}

#[derive(Default)]
struct CubeNames {
    name: String,
    members: HashMap<String, String>,
    times: HashSet<String>,
    /// What `{orders.sql()}` stands for.
    relation: Option<String>,
}

/// A text in our words, and what is to be said of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) sql: String,
    pub(super) notes: Vec<(String, &'static str)>,
}

/// Why a text has no counterpart, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Untranslatable {
    pub(super) why: String,
    pub(super) cure: &'static str,
}

const MEMBERS: [&str; 4] = ["measures", "dimensions", "segments", "pre_aggregations"];
const GRANULARITIES: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

impl Scope {
    pub(super) fn new(entries: &[Written], findings: &mut Vec<Diagnostic>) -> Self {
        let mut scope = Scope::default();
        let mut taken = Taken::default();
        for written in entries {
            let name = taken.take(&snake(&written.name));
            rename(&written.name, &name, written.span.clone(), findings);
            let mut names = CubeNames { name, ..CubeNames::default() };
            let Some(entry) = Entry::open(&written.node, "") else { continue };
            names.relation = match (entry.word("sql_table"), entry.word("sql")) {
                (Some(table), _) => Some(table),
                (None, Some(sql)) => Some(format!("({})", sql.trim_end_matches(';'))),
                (None, None) => None,
            };
            let mut members = Taken::default();
            for list in MEMBERS {
                for item in entry.list(list) {
                    let Some(member) = Entry::open(item, "") else { continue };
                    let Some(name) = member.text("name") else { continue };
                    // Pre-aggregations share no names with members.
                    let new =
                        if list == "pre_aggregations" { snake(&name.value) } else { members.take(&snake(&name.value)) };
                    rename(&name.value, &new, name.span(), findings);
                    if member.word("type").as_deref() == Some("time") && list == "dimensions" {
                        names.times.insert(name.value.to_string());
                    }
                    names.members.insert(name.value.to_string(), new);
                }
            }
            scope.cubes.entry(written.name.clone()).or_insert(names);
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

    /// `CUBE.count`, `orders.count`, `{CUBE}.count` or `count` in a list of members, seen from a cube.
    pub(super) fn path(&self, own: &str, written: &str) -> String {
        let plain: String = written.chars().filter(|c| !matches!(c, '{' | '}' | '$' | ' ')).collect();
        let parts: Vec<&str> = plain.split('.').collect();
        match parts.as_slice() {
            [member] => self.member(own, member),
            [.., cube, member] if *cube == "CUBE" || *cube == own => self.member(own, member),
            [.., cube, member] => format!("{}.{}", self.cube(cube), self.member(cube, member)),
            [] => String::new(),
        }
    }

    /// The SQL of a member, a filter or a join.
    pub(super) fn snippet(&self, own: &str, text: &str) -> Result<Translated, Untranslatable> {
        self.translate(text, |content| self.reference(own, content))
    }

    /// A cube's `sql` or `sql_table`, in which only relations can be referred to.
    pub(super) fn relation(&self, text: &str) -> Result<Translated, Untranslatable> {
        self.translate(text, |content| {
            let table = content.strip_suffix(".sql()").or_else(|| content.strip_suffix(".sql"));
            if let Some(relation) =
                table.and_then(|cube| self.cubes.get(cube)).and_then(|names| names.relation.as_ref())
            {
                // What it refers to itself would have to be followed, maybe in a circle.
                if !relation.contains('{') {
                    return Ok((relation.clone(), None));
                }
            }
            Err(Untranslatable {
                why: format!("its SQL refers to `{{{content}}}`"),
                cure: "write the table's name, or make a model of the query and refer to it: {{ ref('name') }}",
            })
        })
    }

    fn translate(&self, text: &str, refer: impl Fn(&str) -> Reference) -> Result<Translated, Untranslatable> {
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
            if rest[at..].starts_with("{{") || rest[at..].starts_with("{%") || rest[at..].starts_with("{#") {
                let (jinja, after) = jinja(&rest[at..])?;
                translated.sql.push_str(&jinja);
                translated.notes.push((
                    "reads a variable of the environment".to_owned(),
                    "set it under its name here: it begins with TERRANE_VAR_",
                ));
                rest = after;
                continue;
            }
            let end = closing(&rest[at..]).ok_or_else(|| Untranslatable {
                why: "a brace in its SQL is never closed".to_owned(),
                cure: "close it",
            })?;
            let content = rest[at + 1..at + end].trim();
            match calls(content) {
                Some(Ok((sql, note))) => {
                    translated.sql.push_str(sql);
                    translated.notes.push(note);
                }
                Some(Err(untranslatable)) => return Err(untranslatable),
                // A text may hold braces of its own.
                None if in_text && !is_path(content) => translated.sql.push_str(&rest[at..=at + end]),
                None => {
                    let (sql, note) = refer(content)?;
                    translated.sql.push_str(&sql);
                    translated.notes.extend(note);
                }
            }
            rest = &rest[at + end + 1..];
        }
        translated.sql.push_str(rest);
        Ok(translated)
    }

    /// What stands in one pair of braces.
    fn reference(&self, own: &str, content: &str) -> Reference {
        let parts: Vec<&str> = content.split('.').map(str::trim).collect();
        if !is_path(content) {
            return Err(Untranslatable {
                why: format!("its SQL has `{{{content}}}`, which is no reference"),
                cure: "write {member}, {cube.member} or {cube}.column",
            });
        }
        if let [.., time, granularity] = parts[..]
            && GRANULARITIES.contains(&granularity)
        {
            let owner = if parts.len() > 2 { parts[parts.len() - 3] } else { own };
            let owner = if owner == "CUBE" { own } else { owner };
            if self.cubes.get(owner).is_some_and(|names| names.times.contains(time)) {
                return Err(Untranslatable {
                    why: format!("its SQL reads `{{{content}}}`, a time at a granularity"),
                    cure: "write the warehouse's own function: date_trunc('month', {created_at})",
                });
            }
        }
        Ok(match parts[..] {
            ["CUBE" | "TABLE"] => ("{CUBE}".to_owned(), None),
            [name] if self.cubes.contains_key(name) => (format!("{{{}}}", self.cube(name)), None),
            [name] => (format!("{{{}}}", self.member(own, name)), None),
            ["CUBE" | "TABLE", member] => (format!("{{{}}}", self.member(own, member)), None),
            [cube, member] => (format!("{{{}.{}}}", self.cube(cube), self.member(cube, member)), None),
            [.., cube, member] => {
                let sql = format!("{{{}.{}}}", self.cube(cube), self.member(cube, member));
                let note = format!("goes to `{cube}` by the path {content}, here by the best path that there is");
                (sql, Some((note, "where that is another path, join the cube under another name: `cube:` of a join")))
            }
            [] => (String::new(), None),
        })
    }
}

fn rename(original: &str, name: &str, span: terrane_compiler::diagnostic::Span, findings: &mut Vec<Diagnostic>) {
    if original != name {
        let what = format!("`{original}` is called `{name}` here: names are snake_case");
        findings.push(changed(span, what, "ask for it under the new name"));
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

type Call = Result<(&'static str, (String, &'static str)), Untranslatable>;

/// What one pair of braces becomes, and what is to be said of it.
type Reference = Result<(String, Option<(String, &'static str)>), Untranslatable>;

/// Cube's own calls.
fn calls(content: &str) -> Option<Call> {
    let name = content.split(['.', '(', '[', ' ']).next().unwrap_or_default();
    match name {
        // What Cube writes where nobody filters; whoever does is heeded outside.
        "FILTER_PARAMS" | "FILTER_GROUP" => Some(Ok((
            "1 = 1",
            (
                "had a filter pushed into its SQL, and has `1 = 1` there: filters apply to its rows from outside"
                    .to_owned(),
                "check SQL that groups rows before the filter: there the numbers differ",
            ),
        ))),
        "SECURITY_CONTEXT" | "securityContext" | "USER_CONTEXT" => Some(Err(Untranslatable {
            why: "its SQL depends on who asks".to_owned(),
            cure: "write a policy: `row_filter: \"{cube}.tenant = {{ user.attributes.tenant }}\"` (policies/*.yml), and the SQL without it",
        })),
        "COMPILE_CONTEXT" => Some(Err(Untranslatable {
            why: "its SQL depends on who the model is compiled for".to_owned(),
            cure: "serve one project for each such context, or write a policy (policies/*.yml)",
        })),
        "SQL_UTILS" => Some(Err(Untranslatable {
            why: "its SQL calls SQL_UTILS".to_owned(),
            cure: "write the column alone: zones apply to time dimensions by themselves",
        })),
        _ => None,
    }
}

/// `{{ env_var('NAME') }}` with our name for it; no other template is known without Cube.
fn jinja(text: &str) -> Result<(String, &str), Untranslatable> {
    let unknown =
        || Untranslatable { why: "its SQL is a Jinja template".to_owned(), cure: "write out what the template makes" };
    let inner = text.strip_prefix("{{").ok_or_else(unknown)?;
    let (call, after) = inner.split_once("}}").ok_or_else(unknown)?;
    let argument = call.trim().strip_prefix("env_var(").and_then(|rest| rest.strip_suffix(')')).ok_or_else(unknown)?;
    let quote = argument.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or_else(unknown)?;
    let (name, rest) = argument[1..].split_once(quote).ok_or_else(unknown)?;
    let name = if name.starts_with("TERRANE_VAR_") { name.to_owned() } else { format!("TERRANE_VAR_{name}") };
    Ok((format!("{{{{ env_var('{name}'{rest}) }}}}"), after))
}

/// The byte of the brace that closes the first one; brackets and texts in between are skipped.
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

    fn scope() -> Scope {
        let mut scope = Scope::default();
        let members = [("createdAt", "created_at"), ("count", "count")];
        let orders = CubeNames {
            name: "orders".to_owned(),
            members: members.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
            times: ["createdAt".to_owned()].into(),
            relation: Some("shop.orders".to_owned()),
        };
        scope.cubes.insert("Orders".to_owned(), orders);
        scope.cubes.insert("users".to_owned(), CubeNames { name: "users".to_owned(), ..CubeNames::default() });
        scope
    }

    #[test]
    fn references_get_our_words() {
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
        for (written, ours) in cases {
            assert_eq!(scope().snippet("Orders", written).map(|t| t.sql).as_deref(), Ok(ours), "{written}");
        }
    }

    #[test]
    fn what_has_no_counterpart_is_told() {
        for (written, words) in [
            ("{SECURITY_CONTEXT.tenant.filter('tenant')}", "who asks"),
            ("{COMPILE_CONTEXT.schema}.orders", "compiled for"),
            ("{{ dbt.ref('x') }}", "Jinja"),
            ("{CUBE.createdAt.month}", "granularity"),
            ("{CUBE", "never closed"),
            ("{a + b}", "no reference"),
        ] {
            let why = scope().snippet("Orders", written).expect_err(written).why;
            assert!(why.contains(words), "{written}: {why}");
        }
        let followed = scope().snippet("Orders", "{Orders.users.city}").unwrap();
        assert_eq!((followed.sql.as_str(), followed.notes.len()), ("{users.city}", 1));
    }

    #[test]
    fn relations_are_put_in() {
        assert_eq!(scope().relation("SELECT * FROM {Orders.sql()} o").unwrap().sql, "SELECT * FROM shop.orders o");
        assert!(scope().relation("SELECT {Orders}.x").is_err());
    }
}
