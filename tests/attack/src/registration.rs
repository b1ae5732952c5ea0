//! Registrations of cubes over protected tables by a writer without `admin`.
//!
//! In: the names that may lead to protected rows, and their columns. Out: the registration, then the requests that
//! would read the cube, then the deletion of the cube. Most registrations are refused. If one is accepted, its cube
//! must show the same rows as the cubes of the table.

use serde_json::{Value as Json, json};
use terrane_oracle_tests::random::Random;

use crate::caller::Caller;
use crate::http::Request;
use crate::scenario::{Scenario, Target};

const PATH: &str = "/api/v1/query/meta/cubes";
/// Expressions over a column `{c}` and the cube's own name `{t}`; `{o}` is a member of another cube.
const EXPRESSIONS: &[&str] = &[
    "{c}",
    "{c}",
    "{c}",
    "{CUBE}.{c}",
    "{t}.{c}",
    "lower({c})",
    "concat({c}, '')",
    "coalesce({c}, {c})",
    "({c} || '')",
    "CASE WHEN {c} IS NULL THEN 'none' ELSE 'some' END",
    "substring({c}, 1, 1)",
    "CAST({c} AS VARCHAR)",
    "TRY_CAST({c} AS VARCHAR)",
    "CAST(canary_code AS INTEGER)",
    "1 / CAST(canary_code AS INTEGER)",
    "'north'",
    "1",
    "NULL",
    "{o}",
    "{t}",
    "CAST({t} AS VARCHAR)",
    "concat({t})",
    "row({c})",
    "struct_pack(a := {c})",
    "[{c}]",
    "hash({c})",
    "rowid",
    "error('refused')",
    "getenv('HOME')",
    "current_setting('home_directory')",
    "read_text('keys.json')",
    "(SELECT max({c}) FROM {t})",
    "EXISTS (SELECT 1 FROM {t} WHERE {c} IS NOT NULL)",
    "first({c}) OVER ()",
    "COLUMNS(*)",
    "{c}.{c}",
    "\"{c}\"",
    "e'{c}'",
    "CAST((CASE WHEN canary_code LIKE 'x%' THEN 'x' ELSE '1' END) AS INTEGER)",
];
const AGGREGATES: &[(&str, Option<&str>)] = &[
    ("count", None),
    ("count", Some("{c}")),
    ("max", Some("{c}")),
    ("min", Some("{c}")),
    ("count_distinct", Some("{c}")),
    ("sum", Some("CAST(canary_code AS INTEGER)")),
    ("max", Some("CASE WHEN CAST(canary_code AS INTEGER) > 1 THEN 2 ELSE 1 END")),
    ("number", Some("COUNT(*) / COUNT({c})")),
    ("number", Some("max({c})")),
    ("number", Some("count(DISTINCT {c})")),
    ("number", Some("string_agg({c})")),
    ("number", Some("{o}")),
];
const TYPES: &[&str] = &["string", "string", "string", "number", "boolean", "time"];

/// Returns the requests of one attempt: the first one registers the cube, the last one deletes it.
pub fn requests(scenario: &Scenario, name: &str, random: &mut Random) -> Vec<Request> {
    let target = random.of(&scenario.targets);
    let other = random.of(&scenario.seen.cubes);
    let other = other.dimensions.first().map(|own| format!("{{{}.{}}}", other.name, own.name)).unwrap_or_default();
    let cube = cube(target, name, &other, random);
    let names = |list: &str| -> Vec<String> {
        let members = cube[list].as_array().into_iter().flatten();
        members.filter_map(|member| Some(format!("{name}.{}", member["name"].as_str()?))).collect()
    };
    let (dimensions, measures) = (names("dimensions"), names("measures"));
    let mut requests = vec![Request::post(Caller::Writer, PATH, cube.to_string())];
    let caller = *random.of(&[Caller::Reader, Caller::Writer]);
    let mut ask = |body: Json| requests.push(Request::post(caller, "/api/v1/query", body.to_string()));
    ask(json!({"dimensions": dimensions, "ungrouped": true}));
    ask(json!({"measures": measures}));
    if !dimensions.is_empty() {
        let one = random.of(&dimensions);
        ask(json!({"measures": measures, "dimensions": [one]}));
        let filter = json!({"member": one, "operator": random.of(&["set", "notSet"])});
        ask(json!({"measures": measures, "filters": [filter]}));
    }
    requests.push(Request::get(caller, &format!("{PATH}/{name}")));
    let delete = Request::get(Caller::Writer, &format!("{PATH}/{name}"));
    requests.push(Request { method: "DELETE".to_owned(), ..delete });
    requests
}

fn cube(target: &Target, name: &str, other: &str, random: &mut Random) -> Json {
    let (count, most) = (random.below(4), random.below(3));
    let table = target.name.rsplit('.').next().unwrap_or_default();
    let write = |sql: &str, random: &mut Random| {
        let column = random.of(&target.columns);
        let is_plain = column.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let column = if is_plain { column.clone() } else { format!("\"{}\"", column.replace('"', "\"\"")) };
        sql.replace("{c}", &column).replace("{t}", table).replace("{o}", other)
    };
    let dimensions: Vec<Json> = (0..count)
        .map(|index| {
            // Half of the expressions are plain columns, so that some attempts pass the checks of expressions.
            let sql = if random.chance(50) { "{c}" } else { *random.of(EXPRESSIONS) };
            // A member may have the name of a column to which a policy refers.
            let column = random.of(&target.columns).clone();
            let shadows = random.chance(30) && column.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            let own = if shadows { column } else { format!("r{index}") };
            json!({"name": own, "type": random.of(TYPES), "sql": write(sql, random)})
        })
        .collect();
    let mut measures = vec![json!({"name": "rows", "type": "count"})];
    for index in 0..most {
        let (kind, sql) = *random.of(AGGREGATES);
        let mut measure = json!({"name": format!("m{index}"), "type": kind});
        if let Some(sql) = sql {
            measure["sql"] = json!(write(sql, random));
        }
        measures.push(measure);
    }
    json!({"name": name, "sql_table": target.name, "dimensions": dimensions, "measures": measures})
}
