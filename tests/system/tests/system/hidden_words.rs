//! Tests that members hidden from a caller have no influence on answers to words: hits, counts and highlights of searches,
//! suggestions, queries and choices of questions, and requests to a language model. Random texts are sent to two
//! projects that differ only in what is hidden from the caller.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::{Value, json};

use crate::hidden_members::Shop;
use crate::language_model::{Model, Reply, reply};

/// Names and values of the caller, and of what is hidden from it.
const VISIBLE: [&str; 9] =
    ["orders", "count", "revenue", "region", "id", "placed at", "mean amount", "EU", "orders.revenue"];
const HIDDEN: [&str; 14] = [
    "cost",
    "tax",
    "margin",
    "paid",
    "cost rate",
    "nested",
    "taxes",
    "taxed",
    "secret",
    "US",
    "orders.cost",
    "costs",
    "cost_rate",
    "orders.tax",
];
/// Words of questions.
const WORDS: [&str; 20] = [
    "by",
    "top 3",
    "without",
    "average",
    "share of",
    "as a share of",
    "and",
    "in 2026",
    "how much",
    "over 5",
    "best",
    "not",
    "vs",
    "per month",
    "which",
    "with no",
    "took off",
    "sorted by",
    "highest",
    "total",
];

/// A generator of pseudorandom numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    /// Returns a word of a list, in one of four cases with a typing mistake.
    fn word(&mut self, words: &[&str]) -> String {
        let mut chars: Vec<char> = words[self.below(words.len())].chars().collect();
        if chars.len() > 2 && self.below(4) == 0 {
            let at = 1 + self.below(chars.len() - 2);
            match self.below(3) {
                0 => chars.swap(at, at + 1),
                1 => {
                    chars.remove(at);
                }
                _ => chars.insert(at, 'o'),
            }
        }
        chars.into_iter().collect()
    }

    /// Returns words with at least one hidden name.
    fn text(&mut self) -> String {
        let mut words = vec![self.word(&HIDDEN)];
        for _ in 0..self.below(4) {
            let list: &[&str] = match self.below(5) {
                0 => &HIDDEN,
                1 | 2 => &WORDS,
                _ => &VISIBLE,
            };
            let at = self.below(words.len() + 1);
            words.insert(at, self.word(list));
        }
        words.join(" ")
    }
}

/// Returns the requests with some words: searches, suggestions and questions.
fn requests(text: &str) -> Vec<(&'static str, Value)> {
    let document = "query($t: String!) { search(query: $t) { type name value matches { field text ranges } } \
                    autocomplete(query: $t) { name value } ask(question: $t) { query clarifications { text choices } } }";
    vec![
        ("/api/v1/search", json!({"query": text, "limit": 50})),
        ("/api/v1/search", json!({"query": text, "types": ["value"]})),
        ("/api/v1/search/autocomplete", json!({"query": text})),
        ("/api/v1/search/autocomplete", json!({"query": text, "context": {"cube_name": "orders"}})),
        ("/api/v1/search/nl-query", json!({"query": text, "run": true})),
        ("/api/v1/search/nl-query", json!({"query": text, "language": "de"})),
        ("/graphql", json!({"query": document, "variables": {"t": text}})),
    ]
}

/// Returns the status and the body of an answer without what differs between equal requests.
fn answer(shop: &Shop, path: &str, body: &Value) -> (u16, Value) {
    let answer = shop.ask("POST", path, body);
    let mut body = answer.json().unwrap();
    without_noise(&mut body);
    (answer.status, body)
}

fn without_noise(value: &mut Value) {
    const NOISE: [&str; 6] = ["correlation_id", "correlationId", "query_id", "cache_key", "as_of", "sql"];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !NOISE.contains(&name.as_str()) && !name.ends_with("_ms"));
            fields.values_mut().for_each(without_noise);
        }
        Value::Array(items) => items.iter_mut().for_each(without_noise),
        _ => {}
    }
}

#[test]
fn hidden_members_have_no_influence_on_answers_to_words() {
    let (with, without) = (Shop::with(true, ""), Shop::with(false, ""));
    let mut random = Random(0x005e_ed0f_c0de);
    for _ in 0..60 {
        let text = random.text();
        for (path, body) in requests(&text) {
            let (own, other) = (answer(&with, path, &body), answer(&without, path, &body));
            assert_eq!(own, other, "{path} {body}");
            assert!(own.0 < 500, "{path} {body}: {}", own.1);
        }
    }
}

#[test]
fn hidden_members_are_in_no_request_to_a_model() {
    let query = json!({"measures": ["orders.revenue"], "dimensions": ["orders.region"], "time_dimensions": [],
        "filters": [], "segments": [], "order_by": [], "limit": null, "compare_range": null, "totals": false});
    let refused = json!({"measures": ["orders.cost"], "dimensions": [], "time_dimensions": [], "filters": [],
        "segments": [], "order_by": [], "limit": null, "compare_range": null, "totals": false});
    let script = || -> Vec<Reply> { vec![reply(&refused), reply(&query)] };
    let models = [script(), script()].map(Model::start);
    let shops = [(true, &models[0]), (false, &models[1])].map(|(has_hidden, model)| {
        let url = format!("http://{}/v1", model.address);
        let settings = "model: small, key: hush, use: always, send_values: true, questions_per_hour: 1000";
        Shop::with(has_hidden, &format!("search: {{llm: {{url: '{url}', {settings}}}}}\n"))
    });
    let mut random = Random(0xfeed_5eed);
    for _ in 0..25 {
        let body = json!({"query": random.text(), "method": "model"});
        let answers = shops.each_ref().map(|shop| answer(shop, "/api/v1/search/nl-query", &body));
        assert_eq!(answers[0], answers[1], "{body}");
    }
    let [own, other] = models.each_ref().map(|model| {
        let requests = model.received();
        requests.into_iter().map(|request| request.body).collect::<Vec<Value>>()
    });
    assert!(own.len() > 20, "{} requests", own.len());
    assert_eq!(own, other);
}
