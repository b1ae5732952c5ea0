//! Members that fail on hidden rows: casts, divisions and `error()` over codes that have a valid value on visible rows
//! only.
//!
//! In: the cubes of a world. Out: members for the generator of queries, and the SQL that replaces the members' SQL in
//! the project's files. If the program computes one of them for a hidden row, the statement fails.

use serde_json::{Value as Json, json};
use terrane_oracle_tests::world::{
    Aggregate, Cube, Dimension, DimensionKind, Expr, Function, Measure, MeasureKind, Segment,
};

use super::sides::CODE;

const PREFIX: &str = "canary_";
/// The message of the error that a hidden row raises. Callers may see it, because it is part of the members' SQL.
pub(crate) const ERROR: &str = "hidden row";

/// Adds the members with harmless SQL, for the generator of queries. [`write_members`] replaces this SQL with SQL that
/// fails on hidden rows.
pub(super) fn add_members(cube: &mut Cube) {
    let code = Expr::own(cube.columns.len() - 1);
    for (name, kind) in [
        ("canary_cast", DimensionKind::Number),
        ("canary_error", DimensionKind::String),
        ("canary_division", DimensionKind::Number),
        ("canary_day", DimensionKind::Time),
    ] {
        cube.dimensions.push(Dimension {
            name: name.to_owned(),
            kind,
            sql: code.clone(),
            primary_key: false,
            primary_time: false,
            is_utc: (kind == DimensionKind::Time).then_some(false),
        });
    }
    for (name, function) in [
        ("canary_sum", Function::Sum),
        ("canary_max", Function::Max),
        ("canary_distinct", Function::CountDistinct),
        ("canary_filtered", Function::Count),
        ("canary_number", Function::Sum),
    ] {
        let argument = Some(code.clone());
        let kind = MeasureKind::Aggregate(Aggregate { function, argument, filters: Vec::new() });
        cube.measures.push(Measure { name: name.to_owned(), kind });
    }
    cube.segments.push(Segment { name: "canary_segment".to_owned(), sql: Expr::IsNull(Box::new(code)) });
}

/// Writes the SQL that fails on hidden rows into a cube of the project's files.
pub(super) fn write_members(cube: &mut Json) {
    for list in ["dimensions", "measures", "segments"] {
        let members = cube[list].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
        for member in members {
            let name = member["name"].as_str().unwrap_or_default().to_owned();
            if let Some(written) = name.starts_with(PREFIX).then(|| member_of(&name)).flatten() {
                *member = written;
            }
        }
    }
}

fn member_of(name: &str) -> Option<Json> {
    let code = format!("{{CUBE}}.{CODE}");
    let cast = format!("CAST({code} AS INTEGER)");
    let error = format!("CASE WHEN {code} LIKE 'x-%' THEN error('{ERROR}') ELSE {code} END");
    Some(match name {
        "canary_cast" => json!({"name": name, "type": "number", "sql": cast}),
        "canary_error" => json!({"name": name, "type": "string", "sql": error}),
        "canary_division" => json!({"name": name, "type": "number", "sql": format!("100 // {cast}")}),
        "canary_day" => json!({"name": name, "type": "time", "timezone": "none",
            "sql": format!("CAST('2024-01-0' || {code} AS DATE)")}),
        "canary_sum" => json!({"name": name, "type": "sum", "sql": cast}),
        "canary_max" => json!({"name": name, "type": "max", "sql": error}),
        "canary_distinct" => json!({"name": name, "type": "count_distinct", "sql": format!("({cast} + 1)")}),
        "canary_filtered" => json!({"name": name, "type": "count", "filters": [{"sql": format!("{cast} > 1")}]}),
        "canary_number" => json!({"name": name, "type": "number", "sql": format!("SUM({cast}) / COUNT(*)")}),
        "canary_segment" => json!({"name": name, "sql": format!("{cast} >= 2")}),
        _ => return None,
    })
}
