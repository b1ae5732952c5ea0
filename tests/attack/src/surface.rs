//! The surfaces of the product to which an attack sends requests.
//!
//! In: a semantic query, or nothing. Out: requests. Each surface is one entry of [`SURFACES`]; every attack uses all
//! entries.

use serde_json::{Map, Value as Json, json};
use terrane_oracle_tests::random::Random;
use terrane_oracle_tests::world::World;

use crate::caller::Caller;
use crate::http::{Request, percent_encoded};

/// An interface through which callers send requests to the server.
pub trait Surface: Sync {
    fn name(&self) -> &'static str;
    /// Returns a request for a query, which is given as a REST body, in one of the forms that the surface offers.
    fn query(&self, random: &mut Random, body: &Json) -> Request;
    /// Returns a request for something other than rows. `paths` are the GET routes in the server's OpenAPI description.
    fn metadata(&self, random: &mut Random, world: &World, paths: &[String]) -> Request;
}

/// All surfaces. A case uses one of them.
pub const SURFACES: &[&dyn Surface] = &[&Rest];

/// The REST interface, `/api/v1`.
pub struct Rest;

const QUERY: &str = "/api/v1/query";
/// Paths whose answers contain the time, the process or the operator's settings, but no rows.
const VOLATILE_PATHS: &[&str] = &[
    "/health/",
    "/api/v1/health",
    "/metrics",
    "/docs",
    "/openapi.json",
    "/oauth/",
    "/auth/keys",
    "/auth/users",
    // Recommendations depend on the times of the caller's own queries.
    "/optimization/recommendations",
];

impl Surface for Rest {
    fn name(&self) -> &'static str {
        "REST"
    }

    fn query(&self, random: &mut Random, body: &Json) -> Request {
        let text = body.to_string();
        let post = |path: &str, text: String| Request::post(Caller::Reader, path, text);
        let accepting = |accept: &str, text: String| Request { accept: Some(accept.to_owned()), ..post(QUERY, text) };
        match random.below(100) {
            0..50 => post(QUERY, text),
            50..59 => accepting("text/csv", text),
            59..66 => accepting("application/vnd.apache.arrow.stream", text),
            66..68 => accepting("text/html", text),
            68..74 => Request::get(Caller::Reader, &format!("{QUERY}?query={}", percent_encoded(&text))),
            74..77 => Request::get(Caller::Reader, &format!("{QUERY}?{}", parameters(body))),
            77..85 => post("/api/v1/query/sql", text),
            85..90 => {
                let mut body = body.clone();
                body["inline"] = json!(true);
                post("/api/v1/query/sql", body.to_string())
            }
            _ => post("/api/v1/query/explain", text),
        }
    }

    fn metadata(&self, random: &mut Random, world: &World, paths: &[String]) -> Request {
        let cube = random.of(&world.cubes);
        let columns: Vec<&str> = cube.columns.iter().map(|column| column.name.as_str()).collect();
        if random.chance(15) {
            let column = format!("{}.{}", cube.table, random.of(&columns));
            let body = json!({"column": column, "column_id": column});
            return Request::post(Caller::Reader, "/api/v1/lineage/impact", body.to_string());
        }
        if random.chance(5) {
            let members = cube.measures.iter().map(|measure| measure.name.as_str()).chain(columns.iter().copied());
            let members: Vec<&str> = members.collect();
            let words = [*random.of(&members), "by", *random.of(&members), "of", *random.of(&columns)];
            let body = json!({"query": words.join(" ")});
            return Request::post(Caller::Reader, "/api/v1/search/nl-query", body.to_string());
        }
        if paths.is_empty() || random.chance(5) {
            return Request::post(Caller::Writer, "/api/v1/unified/compile", "{}".to_owned());
        }
        let members: Vec<&str> = cube.measures.iter().map(|measure| measure.name.as_str()).collect();
        let measure = if members.is_empty() { "count" } else { *random.of(&members) };
        let path = random.of(paths).clone();
        let path = path.replace("{cube_name}", &cube.name).replace("{cube}", &cube.name).replace("{measure}", measure);
        // A profile must be created before it can be read.
        if path.ends_with("/profile") && random.chance(50) {
            return Request::post(Caller::Reader, &path, "{}".to_owned());
        }
        Request::get(Caller::Reader, &path)
    }
}

/// Returns the GET routes of a server's description, except those whose answers differ between any two servers.
pub fn listed_paths(description: &Json) -> Vec<String> {
    let paths = description["paths"].as_object().into_iter().flatten();
    let is_read = |(path, methods): &(&String, &Json)| {
        methods.get("get").is_some() && !VOLATILE_PATHS.iter().any(|part| path.contains(part)) && *path != QUERY
    };
    paths.filter(is_read).map(|(path, _)| path.clone()).collect()
}

/// Returns a query's plain fields as `a=b&c=d`.
fn parameters(body: &Json) -> String {
    let empty = Map::new();
    let fields = body.as_object().unwrap_or(&empty).iter();
    let texts = fields.filter_map(|(name, value)| {
        let value = match value {
            Json::Array(items) => items.iter().map(Json::as_str).collect::<Option<Vec<_>>>()?.join(","),
            Json::String(text) => text.clone(),
            Json::Number(number) => number.to_string(),
            Json::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        Some(format!("{name}={}", percent_encoded(&value)))
    });
    texts.collect::<Vec<_>>().join("&")
}
