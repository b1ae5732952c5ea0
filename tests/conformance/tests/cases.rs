//! Runs the case files, and reports routes and error codes without a case.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeSet;

use terrane_conformance_tests::case::{self, Case};
use terrane_server::{Route, RouteAccess};
use terrane_wire::Code;

fn runtime() -> tokio::runtime::Runtime {
    // Time is paused: a task that only waits for time continues at once.
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

#[test]
fn every_case_returns_its_expected_response() {
    let mut failures = Vec::new();
    let mut names = BTreeSet::new();
    for (file, case) in case::all() {
        assert!(names.insert((file.clone(), case.name.clone())), "{file}: two cases are called {:?}", case.name);
        let differences = runtime().block_on(case.run());
        failures.extend(differences.into_iter().map(|difference| format!("{file}: {}: {difference}", case.name)));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn every_route_has_a_case() {
    let cases = case::all();
    let lacks = |route: &&terrane_server::Route| {
        !cases.iter().any(|(_, case)| {
            case.request.method == route.method.as_str() && case.response.status < 400 && is_on(case, route.path)
        })
    };
    // Other tests call these routes: `auth` over a store with accounts, `jobs` over a table of jobs, `dax` with
    // sessions, `governed` and `cost` over governance records and guardrails that change. The system tests create
    // profiles of real rows, and run monitors and data tests over them.
    let elsewhere = [
        "/api/v1/auth/",
        "/api/v1/audit",
        "/api/v1/query/async",
        "/api/v1/dax/sessions/{id}",
        "/api/v1/governance/",
        "/api/v1/optimization/guardrails/",
        "/api/v1/profiling/",
        "/api/v1/anomaly/",
        "/api/v1/data-tests/runs/",
    ];
    let is_here = |route: &&terrane_server::Route| !elsewhere.iter().any(|path| route.path.starts_with(path));
    let routes = terrane_server::routes();
    let without: Vec<String> =
        routes.iter().filter(is_here).filter(lacks).map(|route| format!("{} {}", route.method, route.path)).collect();
    assert!(without.is_empty(), "no case is answered well by {without:?}");
}

#[test]
fn every_code_has_a_case() {
    let cases = case::all();
    let lacks = |code: &&Code| {
        !cases.iter().any(|(_, case)| {
            error(&case.response.json)["code"] == code.as_str() && case.response.status == code.status()
        })
    };
    // Other tests cause these errors: `auth` with credentials, `jobs` with results, and `governed` with versions.
    let is_here = |code: &&Code| {
        !matches!(
            code,
            Code::TokenExpired
                | Code::InvalidToken
                | Code::RateLimited
                | Code::StateUnavailable
                | Code::Gone
                | Code::PreconditionFailed
                | Code::PreconditionRequired
                | Code::ResultsUnavailable
        )
    };
    let without: Vec<&str> = Code::ALL.iter().filter(is_here).filter(lacks).map(|code| code.as_str()).collect();
    assert!(without.is_empty(), "no case ends with {without:?}");
}

/// Returns the object with the code and the details of an error, in the form of REST or of GraphQL.
fn error(body: &serde_json::Value) -> &serde_json::Value {
    if body["errors"].is_array() { &body["errors"][0]["extensions"] } else { &body["error"] }
}

fn asked(route: &Route) -> case::TestRequest {
    case::TestRequest {
        method: route.method.to_string(),
        path: route
            .path
            .replace("{cube_name}", "orders")
            .replace("{type}", "measure")
            .replace("{term_id}", "t1")
            .replace("{user_id}", "ada")
            .replace("{role}", "analyst")
            .replace("/page/{file}", "/page/page.css")
            .replace("{file}", "index.css")
            .replace("{provider}", "idp")
            .replace("{name}", "ada")
            .replace("{id}", "policy-region"),
        headers: Default::default(),
        json: None,
        text: None,
        size: None,
        stalls: false,
        is_surplus: false,
    }
}

/// Sends a request with an invalid field to every route for which `change` returns true, and checks that the error
/// names the field.
fn assert_all_refuse(field: &str, change: impl Fn(&Route, &mut case::TestRequest) -> bool) {
    use terrane_conformance_tests::case::{Caller, World, ask};
    for route in terrane_server::routes() {
        let mut asked = asked(&route);
        if matches!(route.access, RouteAccess::Identified) || !change(&route, &mut asked) {
            continue;
        }
        let edge = World { caller: Caller::Admin, ..World::default() }.edge();
        let answered = runtime().block_on(ask(&edge, &asked));
        let body: serde_json::Value = serde_json::from_slice(&answered.body).unwrap();
        let error = error(&body);
        let found = (answered.status.as_u16(), error["code"].as_str(), error["details"]["field"].as_str());
        assert_eq!(found, (400, Some("INVALID_QUERY"), Some(field)), "{} {}: {body}", route.method, route.path);
    }
}

#[test]
fn unknown_query_parameter_is_refused_on_every_route() {
    assert_all_refuse("surplus_field", |route, asked| {
        asked.path.push_str("?surplus_field=1");
        // Identity providers and connection strings may send unknown parameters.
        !route.path.ends_with("/callback") && !route.path.ends_with("/xmla")
    });
}

#[test]
fn duplicate_json_key_is_refused_on_every_route_with_a_body() {
    assert_all_refuse("twice", |route, asked| {
        asked.text = Some("{\"twice\": 1, \"once\": 1, \"twice\": 1}".to_owned());
        route.doc.body.is_some()
    });
}

#[test]
fn scoped_routes_reject_anonymous_and_unprivileged_callers() {
    use terrane_conformance_tests::case::{Caller, World, ask};
    for route in terrane_server::routes() {
        let asked = asked(&route);
        for (caller, refusal) in [(Caller::Stranger, 401), (Caller::Powerless, 403)] {
            let edge = World { caller, ..World::default() }.edge();
            let status = runtime().block_on(ask(&edge, &asked)).status.as_u16();
            match route.access {
                // These routes refuse the empty body.
                RouteAccess::Public if route.method == "POST" => assert_eq!(status, 400, "{}", route.path),
                // The provider is unknown.
                RouteAccess::Public if route.path.contains("{provider}") => assert_eq!(status, 404, "{}", route.path),
                // The token of the link is missing.
                RouteAccess::Public if route.path.ends_with("/anomaly/acknowledge") => assert_eq!(status, 400),
                // The root redirects to the start page.
                RouteAccess::Public if route.path == "/" => assert_eq!(status, 307),
                RouteAccess::Public => assert_eq!(status, 200, "{} {} as {caller:?}", route.method, route.path),
                RouteAccess::Identified => assert_eq!(status, 401, "{} {} as {caller:?}", route.method, route.path),
                // XMLA reports a missing right as a fault with the status 200.
                RouteAccess::Scoped(_) if route.path.ends_with("/xmla") && refusal == 403 => assert_eq!(status, 200),
                RouteAccess::Scoped(_) => assert_eq!(status, refusal, "{} {} as {caller:?}", route.method, route.path),
            }
        }
    }
}

/// Returns whether a case calls a route. `{name}` in a route is one segment of a path.
fn is_on(case: &Case, route: &str) -> bool {
    let path = case.request.path.split('?').next().unwrap_or_default();
    let (path, route): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), route.split('/').collect());
    path.len() == route.len() && path.iter().zip(&route).all(|(step, name)| step == name || name.starts_with('{'))
}
