//! Reads `tests/*.yml`: a top-level list `tests:`.
//!
//! In: the files of a project's `tests` folder. Out: expectations in the order of the files, and a diagnostic for each
//! part that cannot be read. Such expectations are only checked, and not run. Not here: the values of `sql`, `rows` and
//! `error` (`expected`), malformed queries (`malformed`), and resolving the names of queries (`check`).

use std::sync::Arc;

use serde_json::Value;
use terrane_app::query::RequestContext;
use terrane_compiler::SecurityContext;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::project::yaml::mapping::Mapping;
use terrane_compiler::project::yaml::{self, Node, NodeValue, Plain};
use terrane_compiler::project::{SourceFile, SourceTree};
use terrane_compiler::text::nearest::likely;
use terrane_wire::caller::request_of;

use crate::compare::RowOrder;
use crate::expected::{Expected, expected, problem, row_keys};
use crate::json_of_yaml::json;
use crate::malformed::{ReadableQuery, read_query};

/// The folder of a project for its expectations.
pub const FOLDER: &str = "tests";

/// One case.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// The name; empty if it is missing, which is reported.
    pub name: String,
    pub description: Option<String>,
    pub place: Span,
    /// The caller of the query. It is the operator if the case names no caller, or one that cannot be read.
    pub caller: RequestContext,
    /// The body that a client would send; null if it is missing, which is reported.
    pub query: Value,
    /// The valid part of a query that is expected to have rows.
    pub(crate) readable: Option<ReadableQuery>,
    /// The strings of the query with their places.
    pub(crate) words: Vec<(Arc<str>, Span)>,
    /// The keys of the expected rows, each with its first place.
    pub(crate) row_keys: Vec<(Arc<str>, Span)>,
    pub expected: Expected,
    pub(crate) expected_at: Span,
    pub order: RowOrder,
}

pub(crate) const KEYS: [&str; 8] = ["name", "description", "as", "query", "sql", "rows", "error", "ordered"];

/// Reads the expectations of all files.
pub fn read(tree: &SourceTree) -> (Vec<Expectation>, Vec<Diagnostic>) {
    let mut found: Vec<Expectation> = Vec::new();
    let mut diagnostics = Vec::new();
    for (path, text) in &tree.files {
        if path.ends_with(".sql") {
            continue;
        }
        let file = Arc::new(SourceFile { path: Arc::clone(path), text: Arc::clone(text) });
        let node = match yaml::parse(&file) {
            Ok(node) => node,
            Err(_) => {
                diagnostics.extend(yaml::syntax_errors(&file));
                continue;
            }
        };
        for case in cases(&node, &mut diagnostics) {
            let Some(case) = expectation(case, &mut diagnostics) else { continue };
            let is_same = |other: &Expectation| other.name == case.name && other.place.file == case.place.file;
            if !case.name.is_empty() && found.iter().any(is_same) {
                let message = format!("duplicate case name `{}`", case.name);
                diagnostics.push(problem(message, "Rename one of the cases.").at(case.place.clone()));
            }
            found.push(case);
        }
    }
    (found, diagnostics)
}

/// Returns the items of `tests:`.
fn cases<'n>(node: &'n Node, diagnostics: &mut Vec<Diagnostic>) -> &'n [Node] {
    const HINT: &str = "Write `tests:` and below it `- name: …`.";
    match &node.value {
        NodeValue::Null => return &[],
        NodeValue::Map(map) => {
            let mapping = Mapping::new(map, &"the file", diagnostics);
            mapping.report_unknown_keys(&["tests"], &"the file", diagnostics);
            if let Some(list) = mapping.get("tests") {
                match &list.value {
                    NodeValue::List(items) => return items,
                    NodeValue::Null => return &[],
                    _ => diagnostics.push(problem("`tests` must be a list", HINT).at(list.origin.span())),
                }
            }
        }
        _ => diagnostics.push(problem("the file has no list `tests`", HINT).at(node.origin.span())),
    }
    &[]
}

fn expectation(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<Expectation> {
    let place = node.origin.span();
    let NodeValue::Map(map) = &node.value else {
        diagnostics.push(problem("a case must be a mapping", "Write `- name: …`.").at(place));
        return None;
    };
    let mapping = Mapping::new(map, &"the case", diagnostics);
    mapping.report_unknown_keys(&KEYS, &"the case", diagnostics);
    let field = |name: &str| mapping.get(name);
    let text = |name: &str| mapping.text(name).map(str::to_owned);
    let (name, query) = (text("name"), field("query"));
    let label = label(name.as_deref().unwrap_or_default());
    // A misspelt key has been reported as unknown.
    let is_misspelt = |key: &str| {
        let mut unknown = mapping.entries().filter(|(entry, _)| !KEYS.contains(&&*entry.text));
        unknown.any(|(entry, _)| likely(&entry.text, KEYS) == Some(key))
    };
    let (has_name, has_query) = (name.is_some() || is_misspelt("name"), query.is_some() || is_misspelt("query"));
    let missing = match (has_name, has_query) {
        (true, true) => None,
        (true, false) => Some((format!("{label} has no `query`"), "Add `query: {measures: [...]}`.")),
        (false, true) => Some(("a case has no `name`".to_owned(), "Add a `name`.")),
        (false, false) => Some(("a case needs a `name` and a `query`".to_owned(), "Add both.")),
    };
    diagnostics.extend(missing.map(|(message, hint)| problem(message, hint).at(place.clone())));
    if let Some(ordered) = field("ordered").filter(|node| !is_boolean(node)) {
        let diagnostic = problem(format!("`ordered` of {label} must be true or false"), "Write `ordered: false`.");
        diagnostics.push(diagnostic.at(ordered.origin.span()));
    }
    let expected = expected(&mapping, &label, &place, diagnostics);
    let is_refusal = field("error").is_some() && field("sql").or_else(|| field("rows")).is_none();
    let expected_at =
        ["sql", "rows", "error"].into_iter().find_map(field).map_or_else(|| place.clone(), |node| node.origin.span());
    let readable = query.filter(|_| !is_refusal).and_then(|query| read_query(&label, query, diagnostics));
    let caller = field("as").map_or_else(|| Some(operator()), |node| caller(&label, node, diagnostics));
    // Whether a query is refused may depend on the caller.
    let expected = expected.filter(|expected| caller.is_some() || !matches!(expected, Expected::Error { .. }));
    Some(Expectation {
        name: name.unwrap_or_default(),
        description: text("description"),
        place,
        caller: caller.unwrap_or_else(operator),
        query: query.map_or(Value::Null, json),
        readable,
        words: query.map_or_else(Vec::new, words),
        row_keys: field("rows").map_or_else(Vec::new, row_keys),
        expected: expected.unwrap_or(Expected::Unread),
        expected_at,
        order: if text("ordered").as_deref() == Some("false") { RowOrder::Any } else { RowOrder::Listed },
    })
}

impl Expectation {
    /// Returns the name of the case in messages.
    pub(crate) fn label(&self) -> String {
        label(&self.name)
    }
}

fn label(name: &str) -> String {
    if name.is_empty() { "a case".to_owned() } else { format!("case `{name}`") }
}

fn operator() -> RequestContext {
    RequestContext::operator(SecurityContext::default())
}

/// Reads the caller of a case. Reports an invalid caller.
fn caller(label: &str, node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<RequestContext> {
    const HINT: &str = "Write `as: {user_id: u1, roles: [manager], attributes: {region: EU}}`.";
    let error = match request_of(&json(node)) {
        Ok(caller) => return Some(caller),
        Err(error) => error,
    };
    let message = format!("the caller `as` of {label} cannot be read: {error}");
    diagnostics.push(problem(message, HINT).at(node.origin.span()));
    None
}

/// Returns the strings of a query with their places.
fn words(query: &Node) -> Vec<(Arc<str>, Span)> {
    let mut found = Vec::new();
    let mut open = vec![query];
    while let Some(node) = open.pop() {
        match &node.value {
            NodeValue::Null => {}
            NodeValue::Scalar { text, .. } => found.push((Arc::from(&**text), node.origin.span())),
            NodeValue::List(items) => open.extend(items.iter().rev()),
            NodeValue::Map(map) => open.extend(map.iter().rev().map(|(_, value)| value)),
        }
    }
    found
}

fn is_boolean(node: &Node) -> bool {
    matches!(node.value, NodeValue::Scalar { plain: Plain::Boolean(_), .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> (Vec<Expectation>, Vec<String>) {
        let tree = SourceTree { files: [("tests/a.yml".into(), text.into())].into_iter().collect() };
        let (cases, problems) = read(&tree);
        (cases, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn digits_strings_and_order_are_preserved() {
        let (cases, problems) =
            check("tests:\n  - name: a\n    query: {limit: 2, cube: \"2\"}\n    rows: [{b: 1.10, a: null, c: true}]\n");
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(cases[0].query.to_string(), r#"{"limit":2,"cube":"2"}"#);
        let Expected::Rows(rows) = &cases[0].expected else { panic!("{:?}", cases[0].expected) };
        assert_eq!(serde_json::to_string(rows).unwrap(), r#"[{"b":1.10,"a":null,"c":true}]"#);
    }

    #[test]
    fn problems_have_a_place() {
        let (_, problems) = check("tests:\n  - name: a\n    qurey: {}\n    rows: []\n");
        assert_eq!(problems.len(), 1, "the query is not reported as missing: {problems:?}");
        assert!(problems[0].starts_with("tests/a.yml:3:5: error[unknown-key]"), "{problems:?}");
        assert!(problems[0].contains("Did you mean `query`"), "{problems:?}");
        let (_, problems) = check("tests:\n  - name: a\n    query: {}\n    rows: []\n    sql: SELECT 1\n");
        assert!(problems[0].contains("exactly one"), "{problems:?}");
        let (_, problems) = check("tests:\n  - {name: a, query: {}, rows: []}\n  - {name: a, query: {}, rows: []}\n");
        assert!(problems[0].contains("duplicate case name"), "{problems:?}");
    }

    #[test]
    fn all_problems_of_a_case_are_reported() {
        let (_, problems) = check(
            "tests:\n  - qurey: {}\n    ordered: maybe\n    query: {mesures: []}\n    rows: []\n    error: {code: NO_SUCH}\n",
        );
        let codes: Vec<&str> = problems.iter().filter_map(|problem| problem.split(['[', ']']).nth(1)).collect();
        let wrong = "wrong-expectation";
        assert_eq!(codes, ["unknown-key", wrong, wrong, "unknown-value", wrong, "unknown-key"], "{problems:#?}");
    }

    #[test]
    fn malformed_queries_have_a_place() {
        let problems_of = |query: &str| check(&format!("tests:\n  - name: a\n    rows: []\n    query: {query}\n")).1;
        let problems = problems_of("{mesures: [orders.count]}");
        assert!(problems[0].starts_with("tests/a.yml:4:13: error[unknown-key]"), "{problems:?}");
        assert!(problems[0].contains("Did you mean `measures`"), "{problems:?}");
        let problems = problems_of("{filters: [{member: orders.id, operater: equals, value: 1}]}");
        assert!(problems[0].starts_with("tests/a.yml:4:43: error[unknown-key]"), "{problems:?}");
        assert!(problems[0].contains("Did you mean `operator`"), "{problems:?}");
        let problems = problems_of("{measures: [orders.count], limit: many}");
        assert!(problems[0].starts_with("tests/a.yml:4:46: error[wrong-expectation]"), "{problems:?}");
        let (_, problems) =
            check("tests:\n  - {name: a, query: {mesures: []}, error: {code: INVALID_QUERY, contains: mesures}}\n");
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn reference_lists_every_key() {
        let (_, reference) = include_str!("../../docs/reference/project.md").split_once("## Expectations").unwrap();
        for key in KEYS {
            assert!(reference.contains(&format!("| `{key}` |")), "project.md does not name `{key}`");
        }
    }
}
