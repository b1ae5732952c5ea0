//! Tests requests that are almost correct: the bodies of all cases, with each byte removed or replaced in turn. None
//! may cause an internal error, and every refusal has the documented form.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::Value as Json;
use terrane_conformance_tests::case::{self, Answered, TestRequest, World, ask};

/// The replacements of a byte. `None` removes the byte.
const SPOILERS: [Option<&str>; 7] = [None, Some("\""), Some("["), Some("}"), Some("9e9"), Some("null"), Some("\u{0}")];

fn check(answered: &Answered, body: &str) {
    let status = answered.status.as_u16();
    assert!(status < 500, "{status} for {body}");
    if status >= 400 {
        let error: Json = serde_json::from_slice(&answered.body).unwrap_or_default();
        assert!(error["error"]["code"].is_string() && error["error"]["message"].is_string(), "{error} for {body}");
    }
}

#[tokio::test]
async fn malformed_bodies_cause_no_server_error() {
    let edge = World::default().edge();
    let mut bodies: Vec<String> =
        case::all().into_iter().filter_map(|(_, case)| case.request.json).map(|j| j.to_string()).collect();
    bodies.sort_unstable();
    bodies.dedup();
    for body in bodies {
        for at in (0..body.len()).filter(|at| body.is_char_boundary(*at) && body.is_char_boundary(at + 1)) {
            for spoiler in SPOILERS {
                let spoiled = format!("{}{}{}", &body[..at], spoiler.unwrap_or_default(), &body[at + 1..]);
                let answered = ask(&edge, &asked("/api/v1/query/sql", Some(spoiled.clone()))).await;
                check(&answered, &spoiled);
            }
        }
    }
}

#[tokio::test]
async fn malformed_addresses_cause_no_server_error() {
    let edge = World::default().edge();
    let address = "/api/v1/query?query=%7B%22measures%22%3A%5B%22orders.count%22%5D%7D&limit=1";
    for at in 0..address.len() {
        for spoiler in ["", "%", "&", "=", "%00", "+", "/", "?", "%ff"] {
            let spoiled = format!("{}{spoiler}{}", &address[..at], &address[at + 1..]);
            if spoiled.starts_with('/') {
                check(&ask(&edge, &asked(&spoiled, None)).await, &spoiled);
            }
        }
    }
}

#[tokio::test]
async fn depth_is_refused_at_every_depth() {
    let edge = World::default().edge();
    for depth in [1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1_000, 5_000, 20_000] {
        let bodies = [
            format!("{{\"filters\":[{}{}]}}", "{\"not\":".repeat(depth), "}".repeat(depth)),
            format!("{{\"filters\":[{}{}]}}", "{\"and\":[".repeat(depth), "]}".repeat(depth)),
            format!("{{\"measures\":{}{}}}", "[".repeat(depth), "]".repeat(depth)),
            "[".repeat(depth),
        ];
        for body in bodies {
            let answered = ask(&edge, &asked("/api/v1/query", Some(body.clone()))).await;
            check(&answered, &body[..body.len().min(100)]);
            assert_eq!(answered.status, 400, "depth {depth}");
        }
    }
    // The deepest tree of conditions that is allowed.
    let condition = r#"{"member":"orders.id","operator":"set"}"#;
    for (depth, status) in [(31, 200), (32, 400)] {
        let tree = format!("{}{condition}{}", "{\"not\":".repeat(depth), "}".repeat(depth));
        let body = format!("{{\"measures\":[\"orders.count\"],\"filters\":[{tree}]}}");
        assert_eq!(ask(&edge, &asked("/api/v1/query/sql", Some(body))).await.status, status, "depth {depth}");
    }
}

fn asked(path: &str, text: Option<String>) -> TestRequest {
    TestRequest {
        method: if text.is_some() { "POST" } else { "GET" }.to_owned(),
        path: path.to_owned(),
        headers: Default::default(),
        json: None,
        text,
        size: None,
        stalls: false,
        is_surplus: false,
    }
}
