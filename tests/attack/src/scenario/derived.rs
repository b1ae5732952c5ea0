//! Cubes over the data of a protected cube: over the same table, over queries or models, or with renamed columns.
//!
//! In: a world. Out: cubes for the generator of queries, and the relations in their files. Each cube must show the
//! same rows as the protected cube, or nothing.

use serde_json::{Value as Json, json};
use terrane_oracle_tests::random::Random;
use terrane_oracle_tests::world::{
    Aggregate, Cell, Column, ColumnType, Cube, Dimension, DimensionKind, Expr, Function, Measure, MeasureKind, World,
};

use super::people;
use crate::server::Files;

/// Clauses by which DuckDB reads a table `{t}`. `{n}` is the table's name as a string, for names that are plain words;
/// `{b}` is the table's name without its schema.
const SPELLINGS: &[&str] = &[
    "FROM {t}",
    "TABLE {t}",
    "SELECT * FROM {n}",
    "SELECT * FROM ONLY {t}",
    "SELECT * FROM query_table({n})",
    "SELECT * FROM query_table([{n}])",
    "SELECT * FROM query('FROM ' || {n})",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM ' || {n}))",
    "WITH RECURSIVE w AS (SELECT * FROM {t}) SELECT * FROM w",
    "WITH RECURSIVE {b} AS (SELECT * FROM {t}) SELECT * FROM {b}",
    "WITH w AS (WITH {b} AS (SELECT 1) SELECT * FROM {b}) SELECT s.* FROM w, {t} AS s",
    "SELECT unnest(s) FROM {t} AS s",
    "SELECT s.* FROM (SELECT unnest(list(t)) AS s FROM {t} AS t)",
    "SELECT * FROM {t} TABLESAMPLE 100%",
    "SELECT COLUMNS(*) FROM {t}",
    "SELECT * FROM (SELECT 1) AS s, LATERAL (SELECT * FROM {t}) AS l",
    "SELECT * FROM {t} INTERSECT ALL SELECT * FROM {t}",
    "SELECT * FROM {t} ORDER BY ALL",
];

/// A cube over the data of another cube.
pub(super) struct Derived {
    pub(super) cube: Cube,
    /// The name of the cube whose data this cube reads.
    pub(super) origin: String,
    /// The part of the cube's file that defines its rows: an object with the key `sql`, `sql_table` or `extends`.
    pub(super) relation: Json,
    /// The model that the cube reads, if it reads one.
    pub(super) files: Files,
}

/// Generates up to three derived cubes. `table` returns the name of a cube's table as SQL.
pub(super) fn derived_cubes(world: &World, random: &mut Random, table: impl Fn(&Cube) -> String) -> Vec<Derived> {
    let count = random.below(4);
    let mut all: Vec<Derived> = (0..count)
        .filter_map(|number| {
            let origin = random.of(&world.cubes);
            (!people::is_people(origin)).then(|| derived_cube(origin, &table(origin), number, random))
        })
        .collect();
    let people = world.cubes.iter().find(|cube| people::is_people(cube));
    if let Some(origin) = people.filter(|_| random.chance(70)) {
        let spelling = *random.of(people::SPELLINGS);
        let cube = shape(origin, "people_again", "again_", random);
        let relation = json!({"sql": spelling});
        all.push(Derived { cube, origin: origin.name.clone(), relation, files: Files::new() });
    }
    all
}

fn derived_cube(origin: &Cube, table: &str, number: usize, random: &mut Random) -> Derived {
    let name = format!("derived{number}");
    let model = format!("model{number}");
    // If the relation renames columns, the members have the new names too.
    let renamed = renamed_columns(origin);
    let all: Vec<String> = origin
        .columns
        .iter()
        .zip(&renamed)
        .map(|(old, new)| format!("{} AS {}", quoted(&old.name), quoted(new)))
        .collect();
    let all = all.join(", ");
    let mut files = Files::new();
    let mut with_model = |text: String| {
        files.insert(format!("models/{model}.sql"), text);
        json!({"sql": format!("SELECT * FROM {{{{ ref('{model}') }}}}")})
    };
    let (is_renamed, relation) = match random.below(14) {
        0 => (false, json!({"sql_table": table})),
        1 => (false, json!({"sql": format!("SELECT * FROM {table}")})),
        2 => (true, json!({"sql": format!("SELECT {all} FROM {table}")})),
        3 => (true, json!({"sql": format!("WITH w AS (SELECT {all} FROM {table} AS t) SELECT * FROM w")})),
        4 => (true, json!({"sql": format!("SELECT DISTINCT {all} FROM (SELECT * FROM {table}) AS s")})),
        5 => (true, json!({"sql": format!("SELECT {all} FROM {table} UNION ALL SELECT {all} FROM {table}")})),
        6 => (true, with_model(format!("SELECT {all} FROM {table}"))),
        7 => (false, with_model(format!("{{{{ config(materialized='table') }}}}\nSELECT * FROM {table}"))),
        8 => (false, json!({"extends": origin.name})),
        _ => {
            let text = format!("'{}'", origin.table);
            let bare = quoted(&origin.table);
            let is_word = table == bare && origin.table.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let spellings: Vec<&str> =
                SPELLINGS.iter().filter(|spelling| is_word || !spelling.contains("{n}")).copied().collect();
            let spelling = *random.of(&spellings);
            let sql = spelling.replace("{t}", table).replace("{n}", &text).replace("{b}", &bare);
            (false, json!({"sql": sql}))
        }
    };
    let mut cube = shape(origin, &name, &format!("d{number}_"), random);
    if is_renamed {
        for (column, new) in cube.columns.iter_mut().zip(renamed) {
            column.name = new;
        }
    }
    Derived { cube, origin: origin.name.clone(), relation, files }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns new names for all columns except the first and the last, which policies on all cubes name.
fn renamed_columns(origin: &Cube) -> Vec<String> {
    let last = origin.columns.len() - 1;
    let rename = |(index, column): (usize, &Column)| match index {
        index if index == 0 || index == last => column.name.clone(),
        index => format!("other{index}"),
    };
    origin.columns.iter().enumerate().map(rename).collect()
}

/// Returns a cube with a dimension for each column under a different name, and with one or two measures.
fn shape(origin: &Cube, name: &str, prefix: &str, random: &mut Random) -> Cube {
    let kind = |ty| match ty {
        ColumnType::Text => DimensionKind::String,
        ColumnType::Boolean => DimensionKind::Boolean,
        ColumnType::Date | ColumnType::Timestamp | ColumnType::TimestampTz => DimensionKind::Time,
        _ => DimensionKind::Number,
    };
    let dimensions = origin.columns.iter().enumerate().map(|(index, column)| Dimension {
        name: format!("{prefix}{index}"),
        kind: kind(column.ty),
        sql: Expr::own(index),
        primary_key: index == 0,
        primary_time: false,
        is_utc: None,
    });
    let measure = |function, argument, name: &str| Measure {
        name: format!("{prefix}{name}"),
        kind: MeasureKind::Aggregate(Aggregate { function, argument, filters: Vec::new() }),
    };
    let column = random.below(origin.columns.len());
    Cube {
        name: name.to_owned(),
        table: name.to_owned(),
        columns: origin.columns.clone(),
        rows: Vec::new(),
        dimensions: dimensions.collect(),
        measures: vec![
            measure(Function::Count, None, "count"),
            measure(Function::Max, Some(Expr::own(column)), "max"),
            measure(Function::CountDistinct, Some(Expr::own(column)), "distinct"),
        ],
        segments: Vec::new(),
        joins: Vec::new(),
        is_query: false,
    }
}

/// Returns the cube with rows, from which filters take their values.
pub(super) fn with_rows(derived: &Cube, rows: &[Vec<Cell>]) -> Cube {
    Cube { rows: rows.to_vec(), ..derived.clone() }
}
