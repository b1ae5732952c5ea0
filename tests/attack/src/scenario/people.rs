//! A cube over a file of the project, and other files with data that no caller may read.
//!
//! In: a random generator, and the rows of one side. Out: the cube, its files, and the spellings under which writers
//! and project files may try to read them. All values are plain words, because the engine derives the types of a file's
//! columns from its rows. Values of other types could give the two sides different types.

use serde_json::json;
use terrane_oracle_tests::random::Random;
use terrane_oracle_tests::world::{
    Aggregate, Cell, Column, ColumnType, Comparison, Cube, Dimension, DimensionKind, Expr, Function, Measure,
    MeasureKind, Policy, RowPolicy, World,
};

use crate::server::Files;

const NAME: &str = "people";
/// A part of every value in hidden rows and unread files. No answer may contain it.
pub const SECRET: &str = "secretof";
const NAMES: &[&str] = &["alder", "birch", "cedar", "elm", "fir"];
const REGION: usize = 2;

/// The table's name in the project.
pub(super) const TABLE: &str = "\"data/people.csv\"";
/// Other spellings of the file's name, and functions that read the file.
pub(super) const SPELLINGS: &[&str] = &[
    "SELECT * FROM \"data/people.csv\"",
    "SELECT * FROM 'data/people.csv'",
    "SELECT * FROM './data/people.csv'",
    "SELECT * FROM \"./data/people.csv\"",
    "SELECT * FROM 'data/../data/people.csv'",
    "SELECT * FROM 'data//people.csv'",
    "SELECT * FROM 'data/*.csv'",
    "SELECT * FROM 'data/peopl?.csv'",
    "SELECT * FROM read_csv('data/people.csv')",
    "SELECT * FROM read_csv_auto('data/people.csv')",
    "SELECT * FROM read_csv_auto(['data/people.csv'])",
    "SELECT * FROM read_csv('./data/people.csv', header = true)",
    "SELECT * FROM read_csv('data/' || 'people.csv')",
    "SELECT id, name, region, secret, canary_code FROM read_csv('data/p*.csv')",
    "SELECT 1 AS id, content AS name, filename AS region, content AS secret, filename AS canary_code FROM read_text('data/people.csv')",
    "WITH p AS (SELECT * FROM read_csv('data/people.csv')) SELECT * FROM p",
];
/// Spellings that the parser of `sql_table` may accept as the name of a table.
pub(crate) const WRITER_NAMES: &[&str] = &[
    "people.csv",
    "PEOPLE.CSV",
    "people.csv.gz",
    "people.tsv",
    "people.json",
    "people.ndjson",
    "keys.json",
    "data.people.csv",
    "data/people.csv",
    "\"people.csv\"",
    "\"data/people.csv\"",
    "'people.csv'",
    "read_csv('people.csv')",
    "service_project.yml",
];

pub(super) fn is_people(cube: &Cube) -> bool {
    cube.name == NAME
}

/// Adds the cube. It has a row filter, unless its columns are masked.
pub(super) fn add(world: &mut World, random: &mut Random) {
    let text = |name: &str| Column { name: name.to_owned(), ty: ColumnType::Text };
    let columns =
        vec![Column { name: "id".to_owned(), ty: ColumnType::Small }, text("name"), text("region"), text("secret")];
    let dimension = |name: &str, kind, column| Dimension {
        name: name.to_owned(),
        kind,
        sql: Expr::own(column),
        primary_key: column == 0,
        primary_time: false,
        is_utc: None,
    };
    let aggregate = |function, argument| MeasureKind::Aggregate(Aggregate { function, argument, filters: Vec::new() });
    let measure = |name: &str, kind| Measure { name: name.to_owned(), kind };
    world.cubes.push(Cube {
        name: NAME.to_owned(),
        table: "people".to_owned(),
        columns,
        rows: (0..8).map(|id| row(id, random)).collect(),
        dimensions: vec![
            dimension("id", DimensionKind::Number, 0),
            dimension("name", DimensionKind::String, 1),
            dimension("region", DimensionKind::String, REGION),
            dimension("secret", DimensionKind::String, 3),
        ],
        measures: vec![
            measure("people_count", aggregate(Function::Count, None)),
            measure("last_secret", aggregate(Function::Max, Some(Expr::own(3)))),
        ],
        segments: Vec::new(),
        joins: Vec::new(),
        is_query: false,
    });
    let north = Expr::Literal(Cell::Text("north".to_owned()));
    let condition = Expr::Compare(Comparison::Equal, Box::new(Expr::own(REGION)), Box::new(north));
    let row_filter = RowPolicy::Condition(condition);
    world.policies.push(Policy { cube: NAME.to_owned(), row_filter, is_for_others: false });
}

fn row(id: i64, random: &mut Random) -> Vec<Cell> {
    let text = |text: &str| Cell::Text(text.to_owned());
    let is_north = id % 2 == 0;
    let secret = if is_north { text(random.of::<&str>(NAMES)) } else { hidden_cell(3, random) };
    let name = if is_north { text(random.of::<&str>(NAMES)) } else { hidden_cell(1, random) };
    vec![Cell::Int(id), name, text(if is_north { "north" } else { "south" }), secret]
}

/// Generates a random value of a hidden row.
pub(super) fn hidden_cell(column: usize, random: &mut Random) -> Cell {
    match column {
        REGION => Cell::Text((*random.of(&["south", "east"])).to_owned()),
        _ => Cell::Text(format!("{SECRET}-{}", letters(random))),
    }
}

/// Generates a random value that a mask hides.
pub(super) fn masked_cell(random: &mut Random) -> Cell {
    Cell::Text(letters(random))
}

fn letters(random: &mut Random) -> String {
    (0..8).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// Returns the files of one side: the cube's file, and files beside the project file that no cube reads.
pub(super) fn files(people: Option<&Cube>, side: &str) -> Files {
    let mut files = Files::new();
    if let Some(cube) = people {
        files.insert("data/people.csv".to_owned(), table(cube));
    }
    let rows: Vec<[String; 4]> = (0..6)
        .map(|id| {
            let region = if id % 2 == 0 { "north" } else { "south" };
            [id.to_string(), format!("{SECRET}-{side}-name"), region.to_owned(), format!("{SECRET}-{side}-{id}")]
        })
        .collect();
    let lines = |separator: &str| {
        let header = ["id", "name", "region", "secret"].join(separator);
        rows.iter().fold(header, |text, row| text + "\n" + &row.join(separator)) + "\n"
    };
    let object = |row: &[String; 4]| json!({"id": row[0], "name": row[1], "region": row[2], "secret": row[3]});
    let objects: Vec<String> = rows.iter().map(|row| object(row).to_string()).collect();
    files.insert("people.csv".to_owned(), lines(","));
    files.insert("people.csv.gz".to_owned(), lines(","));
    files.insert("people.tsv".to_owned(), lines("\t"));
    files.insert("people.json".to_owned(), format!("[{}]", objects.join(",")));
    files.insert("people.ndjson".to_owned(), objects.join("\n") + "\n");
    let key = json!({"id": 1, "name": "api", "region": "north", "secret": format!("{SECRET}-{side}-key")});
    files.insert("keys.json".to_owned(), key.to_string());
    files
}

fn table(cube: &Cube) -> String {
    let cell = |cell: &Cell| match cell {
        Cell::Int(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
        _ => String::new(),
    };
    let header: Vec<&str> = cube.columns.iter().map(|column| column.name.as_str()).collect();
    cube.rows.iter().fold(header.join(","), |text, row| {
        let cells: Vec<String> = row.iter().map(cell).collect();
        text + "\n" + &cells.join(",")
    }) + "\n"
}
