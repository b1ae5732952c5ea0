//! The sample tables that every engine contains, and the statements that create them in each engine.
//!
//! Values are defined once, as text, and converted to the literals of each engine. The tables are created again at each
//! start, because `warehouse.init` may run several times on one database.

use super::kind::Kind;

/// The number of rows of one INSERT.
const ROWS: usize = 250;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Integer,
    /// A decimal of 38 digits.
    Huge,
    /// A decimal with 18 digits, two of them after the decimal point.
    Decimal,
    Double,
    Text,
    Boolean,
    Date,
    /// A local time without a time zone.
    Timestamp,
    /// An instant, written in UTC.
    Instant,
    /// A local time. SQLite stores it as a string in the form of the cell; the other engines have a timestamp.
    TimeInText,
}

#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub ty: Type,
}

/// A value as text. `None` is null.
pub type Cell = Option<String>;

#[derive(Debug, Clone)]
pub struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(name: &'static str, columns: &[(&'static str, Type)], rows: Vec<Vec<Cell>>) -> Self {
        let columns = columns.iter().map(|(name, ty)| Column { name, ty: *ty }).collect();
        Table { name, columns, rows }
    }

    /// Returns the statements that create the table.
    pub fn statements(&self, kind: Kind) -> Vec<String> {
        let name = self.name;
        if kind == Kind::Spark {
            return self.spark_statements();
        }
        let columns = self.columns.iter().map(|column| format!("{} {}", column.name, type_name(kind, column.ty)));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let charset = if kind == Kind::MariaDb { " CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci" } else { "" };
        let mut statements =
            vec![format!("DROP TABLE IF EXISTS {name}"), format!("CREATE TABLE {name} ({columns}){charset}")];
        for rows in self.rows.chunks(ROWS) {
            let rows: Vec<String> = rows.iter().map(|row| format!("({})", self.literals(kind, row))).collect();
            statements.push(format!("INSERT INTO {name} VALUES {}", rows.join(", ")));
        }
        statements
    }

    /// Returns a statement that may run in several sessions, as `warehouse.init` does on Spark.
    fn spark_statements(&self) -> Vec<String> {
        let rows: Vec<String> = self.rows.iter().map(|row| format!("({})", self.literals(Kind::Spark, row))).collect();
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        let cast = |column: &Column| format!("CAST({0} AS {1}) AS {0}", column.name, type_name(Kind::Spark, column.ty));
        let columns: Vec<String> = self.columns.iter().map(cast).collect();
        vec![format!(
            "CREATE TABLE IF NOT EXISTS {} USING parquet AS SELECT {} FROM VALUES {} AS listed ({})",
            self.name,
            columns.join(", "),
            rows.join(", "),
            names.join(", ")
        )]
    }

    fn literals(&self, kind: Kind, row: &[Cell]) -> String {
        let literals = row.iter().zip(&self.columns).map(|(cell, column)| literal(kind, column.ty, cell.as_deref()));
        literals.collect::<Vec<_>>().join(", ")
    }
}

fn type_name(kind: Kind, ty: Type) -> &'static str {
    match (ty, kind) {
        (Type::Integer, _) => "BIGINT",
        (Type::Text, Kind::Spark) => "STRING",
        (Type::Timestamp | Type::TimeInText, Kind::Spark) => "TIMESTAMP_NTZ",
        (Type::Instant, Kind::Spark) => "TIMESTAMP",
        (Type::Huge, _) => "DECIMAL(38,0)",
        (Type::Decimal, _) => "DECIMAL(18,2)",
        (Type::Double, kind) if kind.is_postgres() => "DOUBLE PRECISION",
        (Type::Double, _) => "DOUBLE",
        (Type::Text, Kind::MariaDb) => "VARCHAR(200)",
        (Type::Text, _) | (Type::TimeInText, Kind::Sqlite) => "TEXT",
        (Type::Boolean, _) => "BOOLEAN",
        (Type::Date, _) => "DATE",
        (Type::Timestamp | Type::TimeInText, Kind::MariaDb) => "DATETIME(6)",
        (Type::Timestamp, Kind::Sqlite) | (Type::Instant, Kind::Sqlite) => "DATETIME",
        (Type::Timestamp | Type::TimeInText, _) => "TIMESTAMP",
        (Type::Instant, Kind::MariaDb) => "TIMESTAMP(6) NULL",
        (Type::Instant, _) => "TIMESTAMPTZ",
    }
}

fn literal(kind: Kind, ty: Type, cell: Option<&str>) -> String {
    let Some(text) = cell else { return "NULL".to_owned() };
    let quoted = text.replace('\'', "''");
    match ty {
        // Rows of literals have one type for each column, which is the string here; the columns are cast.
        _ if kind == Kind::Spark && is_plain(ty) => format!("'{text}'"),
        _ if is_plain(ty) => text.to_owned(),
        Type::Text if kind == Kind::MariaDb => format!("'{}'", quoted.replace('\\', "\\\\")),
        Type::Text if kind == Kind::Spark => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        Type::Instant if kind == Kind::Spark => format!("'{quoted}+00:00'"),
        Type::Instant if kind == Kind::DuckDb || kind.is_postgres() => format!("'{quoted}+00'"),
        // Times are in ISO 8601, which does not depend on the server's order of day and month.
        _ => format!("'{quoted}'"),
    }
}

/// Returns whether literals of a type have no quotes.
fn is_plain(ty: Type) -> bool {
    matches!(ty, Type::Integer | Type::Huge | Type::Decimal | Type::Double | Type::Boolean)
}

/// Returns two facts of different grain, and tables with values that some engines change.
pub fn small_tables() -> Vec<Table> {
    let rows = |rows: &[&[&str]]| -> Vec<Vec<Cell>> {
        let cell = |text: &&str| (*text != "NULL").then(|| (*text).to_owned());
        rows.iter().map(|row| row.iter().map(cell).collect()).collect()
    };
    vec![
        Table::new(
            "customers",
            &[("id", Type::Integer), ("region", Type::Text), ("credit", Type::Integer)],
            rows(&[
                &["1", "US", "100"],
                &["2", "US", "50"],
                &["3", "EU", "70"],
                &["4", "NULL", "30"],
                &["5", "APAC", "500"],
            ]),
        ),
        Table::new(
            "orders",
            &[("id", Type::Integer), ("customer_id", Type::Integer), ("amount", Type::Integer)],
            rows(&[
                &["1", "1", "10"],
                &["2", "1", "20"],
                &["3", "3", "5"],
                &["4", "4", "7"],
                &["5", "NULL", "9"],
                &["6", "99", "11"],
            ]),
        ),
        Table::new("things", THINGS, rows(THING_ROWS)),
        clicks(),
        // The table has the name that the compiler gives to one of its own subqueries.
        Table::new(
            "steps",
            &[("id", Type::Integer), ("day", Type::Date), ("number", Type::Integer)],
            rows(&[&["1", "2024-03-09", "4"], &["2", "2024-03-11", "8"], &["3", "2024-03-11", "16"]]),
        ),
        Table::new(
            "notes",
            &[("id", Type::Integer), ("written", Type::TimeInText)],
            rows(&[
                &["1", "2024-03-09"],
                &["2", "2024-03-09 00:00:00"],
                &["3", "2024-03-09T15:30:00"],
                &["4", "2024-03-10"],
                &["5", "2024-03-11 23:59:59.500"],
                &["6", "2024-03-12 00:00:00.000"],
                &["7", "NULL"],
            ]),
        ),
    ]
}

/// Returns a table with instants in two columns. The column `zoned` has time zones, and is null in years that some
/// engine does not support. The column `stored` has none.
fn clicks() -> Table {
    let columns = [("id", Type::Integer), ("zoned", Type::Instant), ("stored", Type::Timestamp)];
    let row = |(id, text): (usize, &&str)| -> Vec<Cell> {
        let is_of_all = ("1971".."2037").contains(&&text[..4]);
        vec![Some(id.to_string()), is_of_all.then(|| (*text).to_owned()), Some((*text).to_owned())]
    };
    let mut rows: Vec<Vec<Cell>> = CLICKS.iter().enumerate().map(row).collect();
    rows.push(vec![Some(CLICKS.len().to_string()), None, None]);
    Table::new("clicks", &columns, rows)
}

const THINGS: &[(&str, Type)] = &[
    ("id", Type::Integer),
    ("label", Type::Text),
    ("price", Type::Decimal),
    ("huge", Type::Huge),
    ("size", Type::Integer),
    ("factor", Type::Double),
    ("day", Type::Date),
    ("clock", Type::Timestamp),
    ("moment", Type::Instant),
    ("is_open", Type::Boolean),
];

/// Rows with instants on both sides of Berlin's changes of 2024: 02:00 is missing on 31 March and occurs twice on 27
/// October.
#[rustfmt::skip]
const THING_ROWS: &[&[&str]] = &[
    &["1", "apple", "10.10", "12345678901234567890123456789012345678", "9007199254740993", "0.1", "2024-01-31", "2024-01-31 23:30:00", "2024-01-31 23:30:00", "TRUE"],
    &["2", "Apple", "0.20", "10", "1", "0.2", "2024-02-29", "2024-02-29 00:00:00", "2024-03-31 00:30:00", "FALSE"],
    &["3", "apple ", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"],
    &["4", "O'Brien; DROP TABLE x --", "-0.05", "-1", "-9223372036854775807", "1.0e+100", "2024-12-30", "2024-12-30 12:34:56.789", "2024-03-31 01:00:00", "TRUE"],
    &["5", "größe \"Ω\" \\ 漢字", "99999999999999.99", "NULL", "9223372036854775807", "3.5", "2021-01-03", "2021-01-03 05:00:00", "2024-10-26 22:30:00", "FALSE"],
    &["6", "NULL", "1.00", "NULL", "7", "-2.25", "2020-12-31", "2020-12-31 23:59:59", "2024-10-27 00:30:00", "TRUE"],
    &["7", "100%_done", "2.50", "NULL", "8", "0.5", "2024-03-31", "2024-03-31 02:30:00", "2024-10-27 01:30:00", "NULL"],
    &["8", "", "3.75", "5", "9", "4", "2025-01-01", "1999-12-31 23:59:59.999999", "2024-10-27 22:59:59.5", "TRUE"],
    &["9", "ÄPFEL", "0.00", "0", "0", "0", "1969-12-31", "1969-12-31 23:59:59", "2024-10-27 23:00:00", "FALSE"],
    &["10", "äpfel", "12.34", "1", "2", "1.5", "2024-10-27", "2024-10-27 02:30:00", "2024-10-27 01:59:59", "TRUE"],
];

/// Instants around changes of the clock in 2024: in New York at 2 o'clock on 10 March and 3 November, and on Lord Howe
/// Island, whose clock moves by half an hour, at 2 o'clock on 7 April and 6 October. Further instants are on days of
/// time zones with half hours, and in years with other rules.
const CLICKS: &[&str] = &[
    "2024-03-03 17:00:00",
    "2024-03-09 15:30:00",
    "2024-03-10 04:59:59.999999",
    "2024-03-10 05:00:00",
    "2024-03-10 05:29:59",
    "2024-03-10 05:30:00",
    "2024-03-10 06:30:00",
    "2024-03-10 06:59:59.999999",
    "2024-03-10 07:00:00",
    "2024-03-10 07:45:30.5",
    "2024-03-11 03:59:59",
    "2024-03-11 04:00:00",
    "2024-11-03 03:59:59",
    "2024-11-03 04:00:00",
    "2024-11-03 05:30:00",
    "2024-11-03 05:59:59.5",
    "2024-11-03 06:00:00",
    "2024-11-03 06:30:00",
    "2024-11-03 07:00:00",
    "2024-11-04 04:59:59",
    "2024-11-04 05:00:00",
    "2024-04-06 13:30:00",
    "2024-04-06 14:00:00",
    "2024-04-06 14:45:00",
    "2024-04-06 14:59:59.999999",
    "2024-04-06 15:00:00",
    "2024-04-06 15:15:00",
    "2024-04-06 15:29:59",
    "2024-04-06 15:30:00",
    "2024-04-07 13:29:59",
    "2024-04-07 13:30:00",
    "2024-10-05 14:30:00",
    "2024-10-05 15:29:59",
    "2024-10-05 15:30:00",
    "2024-10-05 15:59:59",
    "2024-10-05 16:00:00",
    "2024-10-06 12:59:59",
    "2024-10-06 13:00:00",
    "2024-12-31 18:29:59",
    "2024-12-31 18:30:00",
    "2025-01-01 04:59:59",
    "2025-01-01 05:00:00",
    "1975-07-01 03:30:00",
    "1967-07-01 03:30:00",
    "1942-02-09 07:00:00",
    "2036-07-01 03:30:00",
    "2045-07-01 03:30:00",
    "2045-12-01 04:30:00",
];
