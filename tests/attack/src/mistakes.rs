//! Queries that are almost correct: misspelled names, values of the wrong type, members that are hidden.
//!
//! In: a query of the oracle's generator. Out: the query with one mistake. A refusal must disclose as little as an
//! answer.

use serde_json::{Value as Json, json};
use terrane_oracle_tests::random::Random;
use terrane_oracle_tests::world::{Cube, World};

const OPERATORS: &[&str] = &[
    "equals",
    "notEquals",
    "contains",
    "notContains",
    "startsWith",
    "endsWith",
    "gt",
    "gte",
    "lt",
    "lte",
    "between",
    "inList",
    "notInList",
    "set",
    "notSet",
    "inDateRange",
    "notInDateRange",
    "beforeDate",
    "afterDate",
    "like",
];

/// Adds one mistake to the body of a query.
pub(crate) fn spoil(body: &mut Json, world: &World, random: &mut Random) {
    let cube = random.of(&world.cubes);
    match random.below(9) {
        0 => rename(body, random),
        1 => add_filter(body, &some_member(cube, random), wrong_value(random), random),
        2 => add_filter(body, &near(&some_member(cube, random), random), json!(1), random),
        3 => body["order_by"] = json!([{"field": some_member(cube, random), "direction": "desc"}]),
        4 => body["dimensions"] = json!([some_member(cube, random)]),
        5 => body["segments"] = json!([near(&some_member(cube, random), random)]),
        6 => body[random.of(&["dimension", "limits", "where", "having"])] = json!([]),
        7 => {
            *body = json!({"cube": cube.name, "dimensions": [last_part(&some_member(cube, random))], "limit": 3});
        }
        _ => body[*random.of(&["limit", "offset", "timezone", "totals", "filters"])] = wrong_value(random),
    }
}

/// Returns the body of a new query over one random cube: some dimensions with ungrouped or grouped rows, or some
/// dimensions with up to two measures.
pub(crate) fn whole_cube(world: &World, random: &mut Random) -> Json {
    let cube = random.of(&world.cubes);
    let count = 1 + random.below(4);
    let names: Vec<String> = cube.dimensions.iter().map(|own| format!("{}.{}", cube.name, own.name)).collect();
    let dimensions = random.some(&names, count);
    if random.chance(50) {
        return json!({"dimensions": dimensions, "ungrouped": random.chance(60), "limit": 20});
    }
    let measures: Vec<String> = cube.measures.iter().map(|own| format!("{}.{}", cube.name, own.name)).collect();
    json!({"measures": random.some(&measures, 2), "dimensions": dimensions, "totals": random.chance(30)})
}

fn some_member(cube: &Cube, random: &mut Random) -> String {
    let dimensions = cube.dimensions.iter().map(|own| &own.name);
    let measures = cube.measures.iter().map(|own| &own.name);
    let segments = cube.segments.iter().map(|own| &own.name);
    let columns = cube.columns.iter().map(|own| &own.name);
    let all: Vec<&String> = dimensions.chain(measures).chain(segments).chain(columns).collect();
    format!("{}.{}", cube.name, random.of(&all))
}

fn last_part(member: &str) -> String {
    member.split_once('.').map_or(member, |(_, name)| name).to_owned()
}

/// Returns the name with one letter changed.
fn near(name: &str, random: &mut Random) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    match random.below(3) {
        0 => letters.push('s'),
        1 if letters.len() > 2 => {
            letters.pop();
        }
        _ => letters.insert(random.below(letters.len() + 1), 'x'),
    }
    letters.into_iter().collect()
}

fn rename(body: &mut Json, random: &mut Random) {
    for field in ["measures", "dimensions", "metrics", "segments"] {
        let names = body.get_mut(field).and_then(Json::as_array_mut);
        for name in names.into_iter().flatten() {
            if let Json::String(text) = name {
                *text = near(text, random);
                return;
            }
        }
    }
}

fn add_filter(body: &mut Json, member: &str, value: Json, random: &mut Random) {
    let filter = json!({"member": member, "operator": random.of(OPERATORS), "value": value});
    match body.get_mut("filters").and_then(Json::as_array_mut) {
        Some(filters) => filters.push(filter),
        None => body["filters"] = json!([filter]),
    }
}

fn wrong_value(random: &mut Random) -> Json {
    random
        .of(&[
            json!("x"),
            json!(1.5),
            json!(-1),
            json!(true),
            json!(null),
            json!(["a", 1]),
            json!({"a": 1}),
            json!("1 or so"),
            json!("9999-99-99"),
            json!(f64::MAX),
        ])
        .clone()
}
