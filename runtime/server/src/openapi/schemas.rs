//! The shapes of bodies and answers, by name.
//!
//! Bodies are read field by field in `wire`, so what is known there is held against what is said here by
//! a test. Objects that a client sends are closed, as their readers are; objects that it gets are open,
//! because fields may be added. One file, since it is one table: a shape is added or changed, and nothing else.

use serde_json::{Map, Value as Json, json};
use terrane_app::accounts::MIN_PASSWORD_CHARS;
use terrane_app::ports::plugins::{PluginRole, PluginState};
use terrane_app::security::MAX_PASSWORD_BYTES;
use terrane_compiler::query::{MAX_FILTER_DEPTH, Operator};
use terrane_compiler::types::Granularity;

use super::reference;
use crate::error::Code;

pub(super) fn all() -> Json {
    let rooms = [queries(), answers(), metadata(), sessions(), operations(), projects(), plugins(), errors()];
    Json::Object(rooms.into_iter().flatten().collect())
}

type Schemas = Map<String, Json>;

fn named<const N: usize>(schemas: [(&str, Json); N]) -> Schemas {
    schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// An object that a client sends: nothing else may stand in it.
fn closed<const N: usize>(required: &[&str], properties: [(&str, Json); N]) -> Json {
    let mut schema = object(required, properties);
    schema["additionalProperties"] = false.into();
    schema
}

fn object<const N: usize>(required: &[&str], properties: [(&str, Json); N]) -> Json {
    let properties: Map<String, Json> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn text() -> Json {
    json!({ "type": "string" })
}

fn text_or_null() -> Json {
    json!({ "type": ["string", "null"] })
}

fn flag_or_null() -> Json {
    json!({ "type": ["boolean", "null"] })
}

fn flag() -> Json {
    json!({ "type": "boolean" })
}

fn number() -> Json {
    json!({ "type": "number" })
}

fn count() -> Json {
    json!({ "type": "integer", "minimum": 0 })
}

/// Null is as good as left out.
fn count_or_null() -> Json {
    json!({ "type": ["integer", "null"], "minimum": 0, "maximum": u64::MAX })
}

fn list(items: Json) -> Json {
    json!({ "type": "array", "items": items })
}

fn list_or_null(items: Json) -> Json {
    json!({ "type": ["array", "null"], "items": items })
}

fn words(words: &[&str]) -> Json {
    json!({ "type": "string", "enum": words })
}

fn queries() -> Schemas {
    let members = || list_or_null(reference("MemberRef"));
    let granularities = Granularity::ALL.map(Granularity::as_str);
    let query = [
        ("metrics", members()),
        ("measures", members()),
        ("dimensions", members()),
        ("filters", list_or_null(reference("Filter"))),
        ("order_by", list_or_null(reference("OrderBy"))),
        ("order", list_or_null(reference("OrderBy"))),
        ("limit", count_or_null()),
        ("offset", count_or_null()),
        ("time_range", json!({ "anyOf": [reference("TimeRange"), { "type": "null" }] })),
        ("time_dimensions", list_or_null(reference("TimeDimension"))),
        ("compare_range", json!({ "anyOf": [reference("CompareRange"), { "type": "null" }] })),
        ("fill_gaps", flag_or_null()),
        ("ungrouped", flag_or_null()),
        ("cube", text_or_null()),
        ("segments", members()),
        ("timezone", json!({ "type": ["string", "null"], "examples": ["Europe/Berlin"] })),
        ("total", flag_or_null()),
        ("totals", flag_or_null()),
        ("numbers", json!({ "type": ["string", "null"], "enum": ["string", "number", null] })),
    ];
    let for_sql = closed(&[], query.clone());
    let mut query = closed(&[], query);
    query["example"] = json!({
        "measures": ["orders.count"], "dimensions": ["orders.created_at.month"],
        "filters": [{ "dimension": "orders.status", "operator": "equals", "value": "paid" }], "limit": 100,
    });
    let mut for_sql = for_sql;
    for_sql["properties"]["inline"] = flag_or_null();
    let condition = |name: &str| {
        let mut schema = closed(
            &[name, "operator"],
            [
                (name, reference("MemberRef")),
                ("operator", words(&Operator::ALL.map(Operator::as_str))),
                ("value", reference("Values")),
                ("values", reference("Values")),
            ],
        );
        schema["not"] = json!({ "required": ["value", "values"] });
        schema
    };
    named([
        ("Query", query),
        ("SqlQuery", for_sql),
        (
            "MemberRef",
            json!({
                "type": "string", "pattern": r"^[^.]+(\.[^.]+){0,2}$", "maxLength": 1024,
                "description": "`cube.member`, `cube.time_dimension.granularity`, or a metric",
                "examples": ["orders.count", "orders.created_at.month"],
            }),
        ),
        (
            "Filter",
            json!({
                "description": format!("a condition, or a tree of them, at most {MAX_FILTER_DEPTH} deep"),
                "anyOf": [
                    condition("dimension"),
                    condition("member"),
                    closed(&["and"], [("and", list(reference("Filter")))]),
                    closed(&["or"], [("or", list(reference("Filter")))]),
                    closed(&["not"], [("not", reference("Filter"))]),
                ],
            }),
        ),
        ("Values", json!({ "anyOf": [reference("Value"), { "type": "array", "items": reference("Value") }] })),
        ("Value", json!({ "type": ["string", "number", "boolean", "null"] })),
        (
            "OrderBy",
            closed(
                &["field"],
                [
                    ("field", reference("MemberRef")),
                    ("direction", json!({ "type": ["string", "null"], "enum": ["asc", "desc", null] })),
                ],
            ),
        ),
        ("Granularity", words(&granularities)),
        ("GranularityOrNull", json!({ "anyOf": [reference("Granularity"), { "type": "null" }] })),
        (
            "TimeRange",
            json!({
                "anyOf": [
                    text(),
                    closed(&[], [
                        ("dimension", json!({ "anyOf": [reference("MemberRef"), { "type": "null" }] })),
                        ("start", text_or_null()),
                        ("end", text_or_null()),
                        ("granularity", reference("GranularityOrNull")),
                    ]),
                ],
                "examples": ["last 7 days", { "start": "2024-01-01", "end": "2024-03-31" }],
            }),
        ),
        (
            "TimeDimension",
            closed(
                &["dimension"],
                [
                    ("dimension", reference("MemberRef")),
                    ("granularity", reference("GranularityOrNull")),
                    ("date_range", json!({ "anyOf": [text(), ends(), { "type": "null" }] })),
                ],
            ),
        ),
        (
            "CompareRange",
            json!({ "anyOf": [text(), ends(), closed(&["shift"], [("shift", json!({ "type": "string", "examples": ["1 year"] }))])] }),
        ),
    ])
}

/// A start and an end; one of them may be open.
fn ends() -> Json {
    json!({ "type": "array", "items": { "type": ["string", "null"] }, "minItems": 2, "maxItems": 2 })
}

fn answers() -> Schemas {
    let row =
        || json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "null"] } });
    let meta = object(
        &["total_rows", "returned_rows", "truncated", "warnings", "cached", "cache_key"],
        [
            ("total_rows", json!({ "type": ["integer", "null"], "minimum": 0 })),
            ("returned_rows", count()),
            ("truncated", flag_or_null()),
            ("warnings", list(text())),
            ("totals", row()),
            ("cached", flag()),
            ("cache_key", text()),
            ("cube", text()),
            ("query_time_ms", number()),
        ],
    );
    named([
        (
            "QueryAnswer",
            object(
                &["data", "query", "meta"],
                [
                    ("data", list(row())),
                    ("query", object(&["sql", "duration_ms"], [("sql", text()), ("duration_ms", number())])),
                    ("meta", meta),
                ],
            ),
        ),
        ("Sql", object(&["sql", "params"], [("sql", text()), ("params", list(json!({})))])),
        (
            "Explanation",
            object(
                &["members", "facts", "policies", "plan", "sql", "params", "warehouse_plan", "warehouse_plan_reason"],
                [
                    (
                        "members",
                        list(object(
                            &["key", "kind", "member", "granularity"],
                            [
                                ("key", text()),
                                ("kind", words(&["dimension", "measure", "metric"])),
                                ("member", text()),
                                ("granularity", reference("GranularityOrNull")),
                            ],
                        )),
                    ),
                    (
                        "facts",
                        list(object(
                            &["cube", "role", "joins"],
                            [
                                ("cube", text()),
                                ("role", words(&["fact", "lookup"])),
                                (
                                    "joins",
                                    list(object(
                                        &["from", "to", "relationship", "join", "why", "also_joined_from"],
                                        [
                                            ("from", text()),
                                            ("to", text()),
                                            ("relationship", words(&["many_to_one", "one_to_many", "one_to_one"])),
                                            ("join", words(&["inner", "left"])),
                                            ("why", words(&["only_path", "fewest_hops", "declared_first"])),
                                            ("also_joined_from", list(text())),
                                        ],
                                    )),
                                ),
                            ],
                        )),
                    ),
                    ("policies", list(text())),
                    ("plan", list(text())),
                    ("sql", text()),
                    ("params", list(json!({}))),
                    ("warehouse_plan", json!({})),
                    ("warehouse_plan_reason", text_or_null()),
                ],
            ),
        ),
    ])
}

fn metadata() -> Schemas {
    let presented = |more: &[(&str, Json)], required: &[&str]| {
        let mut schema = object(required, [("name", text()), ("title", text()), ("description", text_or_null())]);
        for (name, field) in more {
            schema["properties"][*name] = field.clone();
        }
        schema
    };
    let measure = presented(
        &[
            ("cube", text()),
            (
                "type",
                words(&[
                    "count",
                    "count_distinct",
                    "count_distinct_approx",
                    "sum",
                    "avg",
                    "min",
                    "max",
                    "number",
                    "running_total",
                ]),
            ),
            ("format", text_or_null()),
            ("drill_members", list(text())),
        ],
        &["name", "cube", "type", "title", "description", "format", "drill_members"],
    );
    let dimension = presented(
        &[
            ("cube", text()),
            ("type", words(&["string", "number", "time", "boolean", "geo"])),
            ("format", text_or_null()),
            ("primary_key", flag()),
            ("granularities", list(reference("Granularity"))),
        ],
        &["name", "cube", "type", "title", "description", "format", "primary_key", "granularities"],
    );
    let metric = presented(
        &[
            ("type", words(&["simple", "ratio", "derived"])),
            ("time_grain", reference("GranularityOrNull")),
            ("format", text_or_null()),
            ("cubes", list(text())),
        ],
        &["name", "type", "title", "description", "time_grain", "format", "cubes"],
    );
    let cube = presented(
        &[
            ("measures", list(reference("Measure"))),
            ("dimensions", list(reference("Dimension"))),
            ("segments", list(text())),
            ("joins", list(text())),
        ],
        &["name", "title", "description", "measures", "dimensions", "segments", "joins"],
    );
    named([
        ("Cube", cube),
        ("Cubes", object(&["cubes"], [("cubes", list(reference("Cube")))])),
        ("Measure", measure),
        ("Metric", metric),
        (
            "Metrics",
            object(
                &["measures", "metrics"],
                [("measures", list(reference("Measure"))), ("metrics", list(reference("Metric")))],
            ),
        ),
        ("Dimension", dimension),
        ("Dimensions", object(&["dimensions"], [("dimensions", list(reference("Dimension")))])),
    ])
}

fn sessions() -> Schemas {
    let tokens = [
        ("access_token", text()),
        ("token_type", words(&["bearer"])),
        ("expires_in", json!({ "type": "integer", "minimum": 0, "description": "seconds" })),
        ("refresh_token", text()),
    ];
    named([
        ("SignIn", closed(&["username", "password"], [("username", text()), ("password", text())])),
        ("RefreshToken", closed(&["refresh_token"], [("refresh_token", text())])),
        ("RevokedTokens", {
            let claim = json!({ "type": "string", "minLength": 1, "maxLength": 256 });
            let mut schema = closed(&[], [("jti", claim.clone()), ("sub", claim)]);
            schema["oneOf"] = json!([{ "required": ["jti"] }, { "required": ["sub"] }]);
            schema
        }),
        ("Tokens", object(&["access_token", "token_type", "expires_in", "refresh_token"], tokens)),
        ("Revoked", object(&["revoked"], [("revoked", flag())])),
        ("NewKey", closed_by(&["name"], accounts_fields(&[("name", short_text()), ("expires", text_or_null())]))),
        ("KeyChange", closed_by(&[], accounts_fields(&[("name", short_text()), ("expires", text_or_null())]))),
        (
            "NewUser",
            closed_by(
                &["username", "password"],
                accounts_fields(&[("username", short_text()), ("password", password())]),
            ),
        ),
        ("UserChange", closed_by(&[], accounts_fields(&[("password", password()), ("disabled", flag())]))),
        ("Key", account(&[("id", text()), ("name", text()), ("expires_at", text_or_null()), ("state", key_state())])),
        (
            "IssuedKey",
            account(&[
                ("id", text()),
                ("name", text()),
                ("expires_at", text_or_null()),
                ("state", key_state()),
                ("key", json!({ "type": "string", "description": "shown this once" })),
            ]),
        ),
        ("User", account(&[("username", text()), ("disabled_at", text_or_null())])),
        ("Keys", object(&["keys"], [("keys", list(reference("Key")))])),
        ("Users", object(&["users"], [("users", list(reference("User")))])),
        (
            "AuditPage",
            object(
                &["records", "next"],
                [
                    ("records", list(reference("AuditRecord"))),
                    ("next", json!({ "type": ["integer", "null"], "description": "the `before` of the next page" })),
                ],
            ),
        ),
        (
            "AuditRecord",
            object(
                &["sequence", "at", "event", "actor", "auth_method", "resource", "count", "hash", "previous"],
                [
                    ("sequence", count()),
                    ("at", json!({ "type": "string", "format": "date-time" })),
                    ("event", text()),
                    ("actor", text()),
                    ("auth_method", text()),
                    ("client_ip", text_or_null()),
                    ("correlation_id", text_or_null()),
                    ("resource", text()),
                    ("reason", text_or_null()),
                    ("before", json!({})),
                    ("after", json!({})),
                    ("count", count()),
                    ("hash", text()),
                    ("previous", text()),
                ],
            ),
        ),
    ])
}

fn short_text() -> Json {
    json!({ "type": "string", "minLength": 1, "maxLength": 256 })
}

fn password() -> Json {
    json!({ "type": "string", "minLength": MIN_PASSWORD_CHARS, "maxLength": MAX_PASSWORD_BYTES })
}

fn key_state() -> Json {
    words(&["good", "expired", "revoked"])
}

/// The fields of a request for an account: its own, and those of its rights.
fn accounts_fields(own: &[(&str, Json)]) -> Schemas {
    let rights = [
        ("scopes", json!({ "type": "array", "items": words(&["read", "write", "admin"]), "minItems": 1 })),
        ("user_id", text_or_null()),
        ("email", text_or_null()),
        ("roles", list(short_text())),
        ("groups", list(short_text())),
        ("attributes", json!({ "type": "object" })),
        ("tenant", text_or_null()),
    ];
    own.iter().cloned().chain(rights).map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// An object of these fields and no others.
fn closed_by(required: &[&str], properties: Schemas) -> Json {
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// An account in an answer: its own fields, and those of its rights.
fn account(own: &[(&str, Json)]) -> Json {
    let shared = [
        ("user_id", text()),
        ("email", text_or_null()),
        ("scopes", list(words(&["read", "write", "admin"]))),
        ("roles", list(text())),
        ("groups", list(text())),
        ("attributes", json!({ "type": "object" })),
        ("tenant", text_or_null()),
        ("created_at", json!({ "type": "string", "format": "date-time" })),
    ];
    let properties: Schemas =
        own.iter().cloned().chain(shared).map(|(name, schema)| (name.to_owned(), schema)).collect();
    let required: Vec<&String> = properties.iter().map(|(name, _)| name).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn operations() -> Schemas {
    let word = || words(&["ok", "error", "draining"]);
    named([
        ("Live", object(&["status"], [("status", words(&["alive"]))])),
        ("Links", object(&["docs", "openapi", "health"], ["docs", "openapi", "health"].map(|name| (name, text())))),
        (
            "Ready",
            object(
                &["status", "checks"],
                [
                    ("status", words(&["ready"])),
                    (
                        "checks",
                        object(
                            &["server", "database", "warehouse", "plugins"],
                            [("server", word()), ("database", word()), ("warehouse", word()), ("plugins", word())],
                        ),
                    ),
                ],
            ),
        ),
        (
            "HealthStatus",
            object(
                &["status", "version", "checks", "uptime_seconds", "project"],
                [
                    ("status", words(&["healthy", "unhealthy"])),
                    ("version", text()),
                    (
                        "checks",
                        object(
                            &["database", "redis", "warehouse", "plugins"],
                            [
                                ("database", word()),
                                ("redis", words(&["ok", "error", "not_checked"])),
                                ("warehouse", word()),
                                ("plugins", word()),
                            ],
                        ),
                    ),
                    ("uptime_seconds", count()),
                    (
                        "project",
                        object(
                            &["status", "loaded_at", "refused_at", "errors"],
                            [
                                ("status", words(&["ok", "partial", "stale"])),
                                ("loaded_at", text()),
                                ("refused_at", text_or_null()),
                                ("errors", count()),
                            ],
                        ),
                    ),
                ],
            ),
        ),
        (
            "OpenApi",
            object(&["openapi", "info", "paths"], [("openapi", text()), ("info", json!({})), ("paths", json!({}))]),
        ),
    ])
}

fn projects() -> Schemas {
    let texts = || list(text());
    let problem = object(
        &["code", "severity", "message"],
        [
            ("code", text()),
            ("severity", words(&["error", "warning"])),
            ("message", text()),
            ("hint", text_or_null()),
            ("file", text_or_null()),
            ("line", count_or_null()),
            ("column", count_or_null()),
            ("length", count_or_null()),
        ],
    );
    let load = [
        ("success", flag()),
        ("project_name", text()),
        ("source_count", count()),
        ("model_count", count()),
        ("cube_count", count()),
        ("metric_count", count()),
        ("graph_nodes", count()),
        ("graph_edges", count()),
        ("errors", texts()),
        ("warnings", texts()),
        ("problems", list(reference("Problem"))),
        ("load_time_ms", number()),
    ];
    let build = object(
        &["status", "materialization", "relation", "rows", "build_time_ms"],
        [
            ("status", words(&["built", "inlined", "failed", "skipped"])),
            ("materialization", words(&["view", "table", "ephemeral"])),
            ("relation", text_or_null()),
            ("rows", count_or_null()),
            ("build_time_ms", number()),
        ],
    );
    let model = object(
        &["name", "unique_id", "compiled_sql", "success", "errors", "compile_time_ms"],
        [
            ("name", text()),
            ("unique_id", text()),
            ("compiled_sql", text()),
            ("success", flag()),
            ("errors", texts()),
            ("warnings", texts()),
            ("compile_time_ms", number()),
            ("build", json!({ "anyOf": [build, { "type": "null" }] })),
        ],
    );
    let cube = object(
        &["name", "cube_id", "measure_count", "dimension_count", "success", "errors"],
        [
            ("name", text()),
            ("cube_id", text()),
            ("measure_count", count()),
            ("dimension_count", count()),
            ("success", flag()),
            ("errors", texts()),
        ],
    );
    let compile = [
        ("success", flag()),
        ("models", list(model)),
        ("cubes", list(cube)),
        ("model_count", count()),
        ("cube_count", count()),
        ("metric_count", count()),
        ("errors", texts()),
        ("warnings", texts()),
        ("problems", list(reference("Problem"))),
        ("compile_time_ms", number()),
    ];
    let kinds = ["source", "source_table", "model", "cube", "measure", "dimension", "metric"];
    let node = object(
        &["unique_id", "node_type", "name", "compiled", "error"],
        [
            ("unique_id", text()),
            ("node_type", words(&kinds)),
            ("name", text()),
            ("compiled", flag()),
            ("error", text_or_null()),
        ],
    );
    let graph = [
        ("success", flag()),
        ("nodes", list(node)),
        ("edges", list(object(&["from", "to"], [("from", text()), ("to", text())]))),
        ("execution_order", texts()),
        ("parallel_batches", list(texts())),
        ("node_count", count()),
        ("edge_count", count()),
    ];
    let path = || {
        ("project_path", json!({ "type": ["string", "null"], "description": "relative to the project that is served" }))
    };
    let lineage_node = object(
        &["id", "name", "type", "cube", "sql", "reason", "place"],
        [
            ("id", text()),
            ("name", text()),
            ("type", text()),
            ("cube", text_or_null()),
            ("sql", text_or_null()),
            ("reason", text_or_null()),
            ("place", text_or_null()),
            ("depth", count()),
            ("read_by", list(text())),
        ],
    );
    let lineage_edge = || {
        object(
            &["source", "target", "relationship"],
            [("source", text()), ("target", text()), ("relationship", text())],
        )
    };
    let lineage = [("nodes", list(reference("LineageNode"))), ("edges", list(lineage_edge()))];
    let impact = [
        ("column_id", text()),
        ("nodes", list(reference("LineageNode"))),
        ("edges", list(lineage_edge())),
        ("affected_count", count()),
        ("affected", json!({ "type": "object" })),
        ("unresolved", list(reference("LineageNode"))),
    ];
    named([
        ("LineageNode", lineage_node),
        ("Lineage", object(&["nodes", "edges"], lineage)),
        ("LineageImpact", closed(&["column_id"], [("column_id", text())])),
        (
            "LineageImpactResult",
            object(&["column_id", "nodes", "edges", "affected_count", "affected", "unresolved"], impact),
        ),
        ("Problem", problem),
        ("ProjectLoad", closed(&[], [path(), ("strict", flag_or_null())])),
        ("ProjectLoadResult", object(&load.each_ref().map(|(name, _)| *name), load)),
        (
            "ProjectCompile",
            closed(
                &[],
                [path(), ("models", list_or_null(text())), ("full", flag_or_null()), ("build", flag_or_null())],
            ),
        ),
        ("CompileResult", object(&compile.each_ref().map(|(name, _)| *name), compile)),
        ("DependencyGraph", object(&graph.each_ref().map(|(name, _)| *name), graph)),
        (
            "CubeRegistration",
            closed(
                &["name", "sql_table"],
                [
                    ("name", text()),
                    ("sql_table", text()),
                    ("title", text_or_null()),
                    ("description", text_or_null()),
                    ("measures", list_or_null(reference("NewMeasure"))),
                    ("dimensions", list_or_null(reference("NewDimension"))),
                ],
            ),
        ),
        (
            "NewMeasure",
            closed(
                &["name", "type"],
                [
                    ("name", text()),
                    ("type", text()),
                    ("sql", text_or_null()),
                    ("title", text_or_null()),
                    ("description", text_or_null()),
                    ("format", text_or_null()),
                ],
            ),
        ),
        (
            "NewDimension",
            closed(
                &["name", "type", "sql"],
                [
                    ("name", text()),
                    ("type", text()),
                    ("sql", text()),
                    ("title", text_or_null()),
                    ("description", text_or_null()),
                    ("format", text_or_null()),
                    ("primary_key", flag_or_null()),
                    ("granularities", list_or_null(text())),
                ],
            ),
        ),
    ])
}

fn plugins() -> Schemas {
    let texts = || json!({ "type": "array", "items": text() });
    let number_or_null = || json!({ "type": ["number", "null"] });
    let roles = PluginRole::ALL.map(PluginRole::as_str);
    let limits = object(
        &["time_ms", "fuel", "memory_bytes"],
        [("time_ms", count()), ("fuel", count()), ("memory_bytes", count())],
    );
    let export = object(
        &["name", "calls", "faults", "refused", "fuel", "p50_ms", "p99_ms", "is_open"],
        [
            ("name", text()),
            ("calls", count()),
            ("faults", count()),
            ("refused", count()),
            ("fuel", count()),
            ("p50_ms", number_or_null()),
            ("p99_ms", number_or_null()),
            ("is_open", flag()),
        ],
    );
    let previous = object(
        &["version", "sha256", "is_draining"],
        [("version", text()), ("sha256", text()), ("is_draining", flag())],
    );
    named([
        (
            "Plugin",
            object(
                &["id", "role", "state", "enforcement", "mode", "is_listed", "limits", "exports"],
                [
                    ("id", text()),
                    ("role", words(&roles)),
                    ("state", words(&PluginState::NAMES)),
                    ("reason", text_or_null()),
                    ("enforcement", words(&["required", "optional"])),
                    ("mode", words(&["protect", "monitor"])),
                    ("is_listed", flag()),
                    ("version", text_or_null()),
                    ("sha256", text_or_null()),
                    ("source", text_or_null()),
                    ("grants", texts()),
                    ("ungranted", texts()),
                    ("limits", limits),
                    ("describe_fuel", json!({ "type": ["integer", "null"], "minimum": 0 })),
                    ("exports", json!({ "type": "array", "items": export })),
                    ("reload_refused", text_or_null()),
                    ("previous", json!({ "oneOf": [{ "type": "null" }, previous] })),
                ],
            ),
        ),
        ("Plugins", object(&["plugins"], [("plugins", json!({ "type": "array", "items": reference("Plugin") }))])),
    ])
}

fn errors() -> Schemas {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    named([
        (
            "Error",
            object(
                &["error"],
                [(
                    "error",
                    object(
                        &["code", "message", "correlation_id"],
                        [
                            ("code", words(&codes)),
                            ("message", text()),
                            ("details", json!({ "type": "object" })),
                            ("correlation_id", text()),
                        ],
                    ),
                )],
            ),
        ),
        ("Detail", object(&["detail"], [("detail", text())])),
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::wire;

    #[test]
    fn bodies_have_the_fields_that_their_readers_know() {
        let schemas = all();
        for (name, known) in wire::BODIES {
            let said: BTreeSet<&str> =
                schemas[name]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(said, known.iter().copied().collect(), "{name}");
        }
    }
}
