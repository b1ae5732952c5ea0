//! Generates harmful and malformed requests, each from its number.
//!
//! In: a seed, a number, and the credentials of the server under test. Out: the bytes of one connection, and the way in
//! which the client ends it. Not here: the rules for responses (`rules`).

use serde_json::{Value as Json, json};

use super::random::Random;

/// The bytes that are sent on one connection.
#[derive(Debug)]
pub struct Attack {
    /// The kind of the request, for reports.
    pub kind: &'static str,
    pub bytes: Vec<u8>,
    pub ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The client reads to the end.
    Reads,
    /// The client closes its sending side, and reads to the end.
    HangsUp,
    /// The client closes the connection without reading.
    GoesAway,
}

/// The credentials of the attacker.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The credential of a caller with the scope `read`.
    pub reader: String,
    pub admin: String,
    pub token: String,
}

type Make = fn(&mut Random, &Credentials) -> Attack;

const KINDS: &[Make] = &[
    garbage,
    broken_head,
    strange_address,
    strange_headers,
    credentials,
    spoiled_body,
    deep_body,
    odd_query,
    odd_document,
    injection,
    address_query,
    cut_off,
    chunks,
];

pub fn attack(seed: u64, number: u64, credentials: &Credentials) -> Attack {
    let mut random = Random::new(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
    let make = KINDS[random.below(KINDS.len())];
    make(&mut random, credentials)
}

const PATHS: &[&str] = &[
    "/api/v1/query",
    "/api/v1/query/sql",
    "/api/v1/query/explain",
    "/api/v1/query/meta/cubes",
    "/api/v1/query/meta/cubes/flights",
    "/api/v1/query/meta/metrics",
    "/api/v1/query/meta/dimensions",
    "/api/v1/auth/token",
    "/api/v1/auth/refresh",
    "/api/v1/auth/revoke",
    "/api/v1/audit",
    "/health/live",
    "/health/ready",
    "/health/status",
    "/api/v1/health",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/graphql",
    "/xmla",
    "/",
];
const POSTS: &[&str] = &["/api/v1/query", "/api/v1/query/sql", "/api/v1/query/explain"];
const METHODS: &[&str] = &[
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "G\u{c9}T",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
];
/// Strings that have broken programs before.
const TEXTS: &[&str] = &[
    "",
    " ",
    "'",
    "\"",
    "''",
    "\\",
    "';--",
    "' OR 1=1 --",
    "1; DROP TABLE flights; --",
    "\u{0}",
    "\u{202e}abc",
    "\u{feff}",
    "\u{ffff}",
    "\u{1f4a9}",
    "../../../../etc/passwd",
    "{{7*7}}",
    "${jndi:ldap://127.0.0.1/x}",
    "<script>alert(1)</script>",
    "%00",
    "%",
    "_",
    "NaN",
    "Infinity",
    "-0",
    "1e999",
    "9223372036854775808",
    "-9223372036854775809",
    "0x41",
    "0000-00-00",
    "2013-02-30",
    "99999-12-31",
    "-4713-01-01",
    "2013-01-01T25:00:00Z",
    "infinity",
    "last 99999999999 days",
    "last -1 days",
    "2024-Q9",
    "flights.origin",
    "flights..origin",
    "a.b.c.d",
    ".",
    "..",
    "flights.time_hour.fortnight",
    "\u{130}",
    "\u{df}",
    "ﬃ",
    "\r\nX-Injected: 1",
    "read_csv('/etc/passwd')",
    "pg_sleep(10)",
    "(select 1)",
    "{flights.count}",
    "{{ user.email }}",
];

fn text(random: &mut Random) -> String {
    match random.below(8) {
        0 => random.one_of(TEXTS).repeat(1 + random.below(50)),
        1 => "A".repeat(random.below(5_000)),
        2 => String::from_utf8_lossy(&{
            let count = random.below(60);
            random.bytes(count)
        })
        .into_owned(),
        _ => random.one_of(TEXTS).to_owned(),
    }
}

fn request(method: &str, path: &str, headers: &[(&str, String)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if !body.is_empty() || method == "POST" {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

fn json_headers(bearer: &str) -> Vec<(&'static str, String)> {
    vec![("Content-Type", "application/json".to_owned()), ("Authorization", format!("Bearer {bearer}"))]
}

fn post(kind: &'static str, path: &str, bearer: &str, body: &[u8]) -> Attack {
    Attack { kind, bytes: request("POST", path, &json_headers(bearer), body), ending: Ending::Reads }
}

fn garbage(random: &mut Random, _: &Credentials) -> Attack {
    let count = random.below(4_000);
    let mut bytes = random.bytes(count);
    match random.below(5) {
        0 => bytes.splice(0..0, *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").for_each(drop),
        1 => bytes.splice(0..0, *b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").for_each(drop),
        2 => bytes = b"GET / HTTP/0.9\r\n\r\n".to_vec(),
        3 => bytes = vec![b'A'; 100_000],
        _ => {}
    }
    Attack { kind: "garbage", bytes, ending: Ending::HangsUp }
}

fn broken_head(random: &mut Random, credentials: &Credentials) -> Attack {
    let mut bytes = request("POST", random.one_of(POSTS), &json_headers(&credentials.reader), b"{}");
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len());
        match random.below(3) {
            0 => bytes[at] = random.number() as u8,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, random.one_of(&[&b'\n', &b'\r', &0, &b' ', &b':', &0xff]).to_owned()),
        }
    }
    Attack { kind: "broken head", bytes, ending: Ending::HangsUp }
}

fn strange_address(random: &mut Random, credentials: &Credentials) -> Attack {
    let end: String = text(random).chars().filter(|c| !c.is_control() && *c != ' ').take(3_000).collect();
    let end = if random.once_in(2) { percent(&end) } else { end };
    let path = match random.below(4) {
        0 => format!("/api/v1/query/meta/cubes/{end}"),
        1 => format!("{}/{end}", random.one_of(PATHS)),
        2 => format!("{}?{end}", random.one_of(PATHS)),
        _ => format!("/docs/{}{end}", "%2e%2e%2f".repeat(random.below(20))),
    };
    let bytes = request(random.one_of(METHODS), &path, &json_headers(&credentials.reader), b"");
    Attack { kind: "strange address", bytes, ending: Ending::Reads }
}

fn strange_headers(random: &mut Random, credentials: &Credentials) -> Attack {
    let value: String = text(random).chars().filter(|c| !c.is_control()).take(4_000).collect();
    let name = random.one_of(&[
        "Accept",
        "Accept-Encoding",
        "Content-Type",
        "Content-Encoding",
        "Expect",
        "Upgrade",
        "X-Correlation-ID",
        "Origin",
        "Cookie",
        "Range",
        "If-None-Match",
        "traceparent",
        "X-Forwarded-For",
        "User-Agent",
        "Host",
        "Transfer-Encoding",
        "TE",
        "Access-Control-Request-Method",
    ]);
    // With these headers, a server may wait for bytes that the client never sends.
    let waits = ["Content-Encoding", "Expect", "Upgrade", "Transfer-Encoding"].contains(&name);
    let ending = if waits { Ending::HangsUp } else { Ending::Reads };
    let mut headers = json_headers(&credentials.reader);
    for _ in 0..1 + random.below(120) {
        headers.push((name, value.clone()));
    }
    let body = br#"{"measures": ["flights.count"]}"#;
    Attack { kind: "strange headers", bytes: request("POST", random.one_of(PATHS), &headers, body), ending }
}

fn credentials(random: &mut Random, credentials: &Credentials) -> Attack {
    let real = random.one_of(&[&credentials.reader, &credentials.token]).as_str();
    let forged = match random.below(7) {
        0 => flip(random, real),
        1 => real[..random.below(real.len())].to_owned(),
        2 => format!("{real}{real}"),
        3 => "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.".to_owned(),
        4 => format!("{}.{}.{}", "A".repeat(random.below(9_000)), "B".repeat(10), "C".repeat(10)),
        5 => format!("trn_{:016x}_{}", random.number(), "x".repeat(43)),
        _ => text(random).chars().filter(|c| !c.is_control()).collect(),
    };
    let scheme = random.one_of(&["Bearer", "bearer", "Basic", "Negotiate", "Bearer Bearer", "", "Token"]);
    let path = random.one_of(PATHS);
    if random.once_in(4) {
        let body = json!({"username": text(random), "password": text(random), "refresh_token": forged}).to_string();
        let bytes =
            request("POST", "/api/v1/auth/token", &[("Content-Type", "application/json".to_owned())], body.as_bytes());
        return Attack { kind: "credentials", bytes, ending: Ending::Reads };
    }
    let path = if random.once_in(3) { format!("{path}?api_key={}", percent(&forged)) } else { path.to_owned() };
    let bytes = request("GET", &path, &[("Authorization", format!("{scheme} {forged}"))], b"");
    Attack { kind: "credentials", bytes, ending: Ending::Reads }
}

fn spoiled_body(random: &mut Random, credentials: &Credentials) -> Attack {
    let mut body = query(random).to_string().into_bytes();
    for _ in 0..1 + random.below(5) {
        if body.is_empty() {
            break;
        }
        let at = random.below(body.len());
        match random.below(4) {
            0 => body[at] = random.number() as u8,
            1 => body.truncate(at),
            2 => drop(body.remove(at)),
            _ => {
                let again = body[at..].to_vec();
                body.extend(again);
            }
        }
    }
    post("spoiled body", random.one_of(POSTS), &credentials.reader, &body)
}

fn deep_body(random: &mut Random, credentials: &Credentials) -> Attack {
    let depth = [10, 31, 32, 33, 64, 126, 127, 128, 129, 500, 3_000, 12_000][random.below(12)];
    let condition = r#"{"dimension":"flights.origin","operator":"equals","value":"JFK"}"#;
    let body = match random.below(5) {
        0 => format!(
            r#"{{"measures":["flights.count"],"filters":[{}{condition}{}]}}"#,
            r#"{"not":"#.repeat(depth),
            "}".repeat(depth)
        ),
        1 => format!(
            r#"{{"measures":["flights.count"],"filters":[{}{condition}{}]}}"#,
            r#"{"and":["#.repeat(depth),
            "]}".repeat(depth)
        ),
        2 => format!("{}{}", "[".repeat(depth), "]".repeat(depth)),
        3 => format!(r#"{{"measures":{}"#, "[".repeat(depth)),
        _ => format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth)),
    };
    post("deep body", random.one_of(POSTS), &credentials.reader, body.as_bytes())
}

/// Documents that are deep, wide, or invalid. Parsers of documents are recursive.
fn odd_document(random: &mut Random, credentials: &Credentials) -> Attack {
    let depth = [10, 63, 64, 65, 500, 1_800, 3_600, 7_000, 9_000, 40_000][random.below(10)];
    let mut document = match random.below(6) {
        0 => format!("{{ cube(name: {}{}) {{ name }} }}", "[".repeat(depth), "]".repeat(depth)),
        1 => format!("{}name{}", "{ cubes ".repeat(depth), "}".repeat(depth)),
        2 => format!("{{ {} }}", "a: cubes { name } ".repeat(depth)),
        3 => format!("{{ cubes {} {{ name }} }}", "@include(if: true)".repeat(depth)),
        4 => "{ cubes { ...a } } fragment a on Cube { ...b } fragment b on Cube { ...a name }".to_owned(),
        _ => format!("{{ query(measures: [{}]) {{ data query {{ sql }} }} }}", json!(text(random))),
    };
    if random.once_in(4) {
        let at = document.char_indices().map(|(at, _)| at).nth(random.below(document.chars().count())).unwrap_or(0);
        document.insert_str(at, &text(random));
    }
    let body = json!({"query": document, "variables": value(random, 0)});
    post("odd document", "/graphql", &credentials.reader, body.to_string().as_bytes())
}

fn odd_query(random: &mut Random, credentials: &Credentials) -> Attack {
    let mut query = query(random);
    for _ in 0..1 + random.below(3) {
        let field = random.one_of(&[
            "limit",
            "offset",
            "measures",
            "dimensions",
            "filters",
            "time_range",
            "order_by",
            "timezone",
            "compare_range",
            "total",
            "zzz",
            "numbers",
            "segments",
            "fill_gaps",
        ]);
        query[field] = value(random, 0);
    }
    post("odd query", random.one_of(POSTS), &credentials.reader, query.to_string().as_bytes())
}

fn injection(random: &mut Random, credentials: &Credentials) -> Attack {
    let operator =
        random.one_of(&["equals", "contains", "startsWith", "gt", "between", "inList", "set", "notInDateRange"]);
    let values: Vec<String> = (0..random.below(4)).map(|_| text(random)).collect();
    let member = if random.once_in(3) { text(random) } else { random.one_of(MEMBERS).to_owned() };
    let body = json!({
        "measures": ["flights.count"], "dimensions": [random.one_of(MEMBERS)],
        "filters": [{"dimension": member, "operator": operator, "values": values}],
        "timezone": if random.once_in(3) { Json::from(text(random)) } else { Json::Null },
        "time_range": if random.once_in(3) { Json::from(text(random)) } else { Json::Null },
        "order_by": [{"field": if random.once_in(3) { text(random) } else { "flights.count".to_owned() }}],
    });
    post("injection", random.one_of(POSTS), &credentials.reader, body.to_string().as_bytes())
}

fn address_query(random: &mut Random, credentials: &Credentials) -> Attack {
    let mut parameters = vec![format!("measures={}", percent(random.one_of(&["flights.count", "on_time_rate"])))];
    for _ in 0..random.below(12) {
        let name = random.one_of(&[
            "dimensions",
            "limit",
            "offset",
            "time_range",
            "query",
            "cube",
            "timezone",
            "total",
            "totals",
            "zzz",
            "api_key",
        ]);
        parameters.push(format!("{name}={}", percent(&text(random).chars().take(400).collect::<String>())));
    }
    let path = format!("/api/v1/query?{}", parameters.join("&"));
    Attack {
        kind: "address query",
        bytes: request("GET", &path, &json_headers(&credentials.reader), b""),
        ending: Ending::Reads,
    }
}

fn cut_off(random: &mut Random, credentials: &Credentials) -> Attack {
    let whole = post("cut off", random.one_of(POSTS), &credentials.reader, query(random).to_string().as_bytes());
    // The request is sometimes complete, so that the client disconnects before the response.
    let end = if random.once_in(2) { whole.bytes.len() } else { random.below(whole.bytes.len()) };
    let ending = if random.once_in(2) { Ending::GoesAway } else { Ending::HangsUp };
    Attack { bytes: whole.bytes[..end].to_vec(), ending, ..whole }
}

fn chunks(random: &mut Random, credentials: &Credentials) -> Attack {
    let mut bytes = request("POST", random.one_of(POSTS), &json_headers(&credentials.reader), b"");
    let head = String::from_utf8_lossy(&bytes).replace("Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n");
    bytes = head.into_bytes();
    for _ in 0..random.below(40) {
        let size = random.one_of(&["0", "1", "5", "ffffffffffffffff", "-1", "zz", "10000", "5;ext=1"]);
        bytes.extend_from_slice(format!("{size}\r\n{{\"a\":\r\n").as_bytes());
    }
    if random.once_in(10) {
        // The chunks together exceed the limit of a body, which no header announces.
        for _ in 0..40 {
            bytes.extend_from_slice(b"4000\r\n");
            bytes.extend(std::iter::repeat_n(b' ', 0x4000));
            bytes.extend_from_slice(b"\r\n");
        }
    }
    Attack { kind: "chunks", bytes, ending: Ending::HangsUp }
}

const MEMBERS: &[&str] = &[
    "flights.origin",
    "flights.dest",
    "flights.time_hour.month",
    "flights.time_hour.day",
    "flights.time_hour",
    "airlines.name",
    "planes.manufacturer",
    "weather.origin",
    "flights.count",
    "metric_time.month",
];

/// Generates a random query that a client could send.
fn query(random: &mut Random) -> Json {
    let mut query =
        json!({ "measures": ["flights.count"], "dimensions": [random.one_of(MEMBERS)], "limit": random.below(2_000) });
    if random.once_in(3) {
        query["filters"] = json!([{"dimension": "flights.origin", "operator": "equals", "value": "JFK"}]);
    }
    if random.once_in(4) {
        query["order_by"] = json!([{"field": "flights.count", "direction": "desc"}]);
    }
    if random.once_in(5) {
        query["time_range"] = json!({"start": "2013-02-01", "end": "2013-02-28"});
    }
    if random.once_in(6) {
        query["totals"] = true.into();
    }
    query
}

fn value(random: &mut Random, depth: usize) -> Json {
    match random.below(if depth > 3 { 5 } else { 9 }) {
        0 => Json::Null,
        1 => true.into(),
        2 => [i64::MIN, -1, 0, 1, 1 << 53, i64::MAX][random.below(6)].into(),
        3 => json!(1.0e300),
        4 => text(random).into(),
        5 => (0..random.below(6)).map(|_| value(random, depth + 1)).collect(),
        6 => json!({ "dimension": "flights.origin", "operator": "equals", "value": value(random, depth + 1) }),
        7 => json!({ text(random): value(random, depth + 1) }),
        _ => vec![json!("flights.origin"); random.below(3_000)].into(),
    }
}

fn flip(random: &mut Random, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = random.below(bytes.len());
    bytes[at] = b"ABCxyz019_-."[random.below(12)];
    String::from_utf8_lossy(&bytes).into_owned()
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
