//! Vectors of the governance role: anonymous callers, callers with many roles, unusual names, and every surface,
//! transition and kind of change.

use serde_json::{Value, json};
use terrane_plugin_host::test_bench::TestBench;

use super::{ConformanceOutcome, answer_of, arena_problems, is_code, list, text};

pub(super) const ON_QUERY: &str = "on-query";

const SURFACES: [&str; 7] = ["rest", "graphql", "dax", "xmla", "async-job", "sql-only", "internal"];
const STEPS: [&str; 6] = ["submit", "certify", "reject", "deprecate", "archive", "restore"];

pub(super) fn run(bench: &TestBench) -> Vec<ConformanceOutcome> {
    let mut outcomes = Vec::new();
    for (name, who) in callers() {
        for (what, query) in queries() {
            let found = answer_of(bench, ON_QUERY, json!({"who": who, "query": query}));
            outcomes.push(ConformanceOutcome::of_answer(format!("{ON_QUERY}: {name}, {what}"), found, |found| {
                problems(found, &query)
            }));
        }
    }
    let (_, who) = callers().swap_remove(1);
    for step in STEPS {
        let arguments = json!({"who": who, "item": artifact(""), "step": step, "notes": "as agreed"});
        let found = answer_of(bench, "on-certify", arguments);
        outcomes.push(ConformanceOutcome::of_answer(format!("on-certify: {step}"), found, finding_problems));
    }
    for (name, before, after) in [
        ("new", None, Some(artifact("x"))),
        ("changed", Some(artifact("x")), Some(artifact("\u{202e}'"))),
        ("removed", Some(artifact("x")), None),
        ("neither", None, None),
    ] {
        let found = answer_of(bench, "on-metadata-change", json!({"who": who, "before": before, "after": after}));
        outcomes.push(ConformanceOutcome::of_answer(format!("on-metadata-change: {name}"), found, finding_problems));
    }
    outcomes
}

fn callers() -> Vec<(&'static str, Value)> {
    let many: Vec<String> = (0..200).map(|at| format!("role-{at}")).collect();
    let odd = "'; DROP TABLE orders; -- \u{1f986}\u{202e}\n{{ user.id }}";
    vec![
        ("anonymous", json!({"user-id": "", "tenant": "", "auth-method": "anonymous"})),
        (
            "many roles",
            json!({
                "user-id": "ann", "email": "ann@example.com", "tenant": "acme", "auth-method": "jwt", "roles": many,
                "groups": many, "scopes": ["read"],
                "attributes": [["level", "3"], ["region", "\"EMEA\""], ["regions", "[\"EMEA\", \"APAC\"]"]],
            }),
        ),
        (
            "odd names",
            json!({
                "user-id": odd, "tenant": odd, "auth-method": "oauth", "roles": [odd, ""], "groups": [odd],
                "attributes": [["region", "no json"], ["regions", "{\"a\": null}"], ["", "null"]],
            }),
        ),
    ]
}

fn queries() -> Vec<(&'static str, Value)> {
    let member = |cube: &str, name: &str, used_as: &str| {
        json!({
            "cube": cube, "member": name, "ty": "text", "is-measure": false, "used-as": used_as, "tags": ["pii"],
            "pii": true, "classification": "internal",
        })
    };
    let mut queries = vec![("without cubes", json!({"surface": "rest", "cubes": []}))];
    let twenty: Vec<Value> = (0..20).map(|at| member("orders", &format!("m{at}"), "selected")).collect();
    queries.push(("20 members", json!({"surface": "rest", "cubes": ["orders"], "members": twenty, "limit": 100})));
    let odd = [member("a\"b", "c'd;--", "filtered"), member("a\"b", "", "joined")];
    queries
        .push(("odd members", json!({"surface": "rest", "cubes": ["a\"b"], "members": odd, "estimated-cost": 1e300})));
    for surface in SURFACES {
        queries.push((surface, json!({"surface": surface, "cubes": ["orders", "customers"], "members": []})));
    }
    queries
}

fn problems(verdict: &Value, query: &Value) -> Vec<String> {
    let decision = &verdict["decision"];
    if let Some(denial) = decision.get("deny") {
        return code_problems("the denial", text(denial, "code"), text(denial, "public-message"));
    }
    let Some(obligations) = decision.get("permit") else { return Vec::new() };
    let reads = |cube: &str| list(query, "cubes").iter().any(|known| known.as_str() == Some(cube));
    let mut problems = Vec::new();
    for filter in list(obligations, "row-filters") {
        let cube = text(filter, "cube");
        if !reads(cube) {
            problems.push(format!("a row filter names the cube `{cube}`, which the query does not read"));
        }
        let roots = list(&filter["predicate"], "roots").len();
        if roots != 1 {
            problems.push(format!("a row filter of `{cube}` has {roots} roots, not one"));
        }
        problems.extend(arena_problems(&filter["predicate"]));
    }
    for mask in list(obligations, "masks").iter().filter(|mask| !reads(text(mask, "cube"))) {
        problems.push(format!("a mask names the cube `{}`, which the query does not read", text(mask, "cube")));
    }
    problems
}

fn finding_problems(findings: &Value) -> Vec<String> {
    let findings = findings.as_array().map_or(&[][..], Vec::as_slice);
    findings
        .iter()
        .flat_map(|finding| code_problems("a finding", text(finding, "rule"), text(finding, "message")))
        .collect()
}

fn code_problems(what: &str, code: &str, message: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !is_code(code) {
        problems.push(format!("`{code}` of {what} is not a code: [a-z][a-z0-9_]*, at most 64"));
    }
    if message.len() > 1_024 {
        problems.push(format!("the message of {what} is longer than 1 KiB"));
    }
    problems
}

fn artifact(owner: &str) -> Value {
    json!({
        "kind": "measure", "id": "orders.revenue", "owner": owner, "tags": ["finance"], "pii": false,
        "certification": "draft", "version": 1,
        "body-json": "{\"name\": \"revenue\", \"title\": \"Revenue\", \"description\": \"What was paid\"}",
    })
}
