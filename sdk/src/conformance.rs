//! Test cases that show whether a dialect implements the contract's operators.
//!
//! In: a [`Profile`]. Out: a list of [`Case`]s, each a SELECT built from the profile's own templates and literals, with
//! the answer that every warehouse must give. The author provides a function that runs one SELECT and returns its cells
//! as text; this module does not connect to a warehouse.
//!
//! ```no_run
//! use terrane_sdk::conformance;
//! use terrane_sdk::dialect::ProfileBuilder;
//!
//! let profile = ProfileBuilder::ansi("quack").build();
//! let failures = conformance::run(&profile, |sql| my_warehouse(sql));
//! assert!(failures.is_empty(), "{failures:#?}");
//! # fn my_warehouse(_: &str) -> Result<Vec<Vec<Option<String>>>, String> { Ok(Vec::new()) }
//! ```
//!
//! A template that the profile omits has no case; the host decides whether it may be omitted. The warehouse's session
//! must be in UTC.

mod aggregates;
mod expected;
mod literals;
mod names;
mod numbers;
mod rows;
mod text;
mod times;
mod writer;
mod zones;

pub use self::expected::Expected;
use self::writer::{Expr, Writer};
use crate::dialect::Profile;

/// A row of a warehouse's answer, with each cell as text and `None` for null. Booleans may be `true`, `t` or `1`; times
/// `2024-01-31 15:00:00` with or without a fraction, a `T` or a zone `Z`.
pub type Row = Vec<Option<String>>;

/// A SELECT with its expected answer.
#[derive(Debug, Clone)]
pub struct Case {
    /// The group of the case in a report, such as `text search`.
    pub group: &'static str,
    pub name: String,
    pub sql: String,
    /// The expected rows, in this order. Empty if the engine only has to accept the statement.
    pub expected: Vec<Vec<Expected>>,
}

/// A case with a wrong answer.
#[derive(Debug, Clone)]
pub struct Failure {
    pub case: Case,
    /// The warehouse's error, or its rows.
    pub found: String,
}

/// Returns every case of the suite, in a fixed order.
pub fn cases(profile: &Profile) -> Vec<Case> {
    let mut suite = Suite { writer: Writer::new(profile), group: "", cases: Vec::new() };
    rows::cases(&mut suite);
    text::cases(&mut suite);
    numbers::cases(&mut suite);
    aggregates::cases(&mut suite);
    literals::cases(&mut suite);
    names::cases(&mut suite);
    times::cases(&mut suite);
    zones::cases(&mut suite);
    suite.cases
}

/// Returns a string literal as the suite writes it, so that a host can compare the output of its own printer.
pub fn text_literal(profile: &Profile, text: &str) -> String {
    Writer::new(profile).text_literal(text).sql
}

/// Returns a name as the suite writes it: unquoted if that is safe, else quoted.
pub fn name(profile: &Profile, name: &str) -> String {
    Writer::new(profile).name(name)
}

/// Runs every case, and returns the failed ones. `ask` runs one SELECT.
pub fn run(profile: &Profile, mut ask: impl FnMut(&str) -> Result<Vec<Row>, String>) -> Vec<Failure> {
    let judged = cases(profile).into_iter().filter_map(|case| {
        let found = case.compare(&ask(&case.sql)).err()?;
        Some(Failure { case, found })
    });
    judged.collect()
}

impl Case {
    /// Compares a warehouse's answer with the expected one.
    ///
    /// # Errors
    /// Returns the actual answer if it differs.
    pub fn compare(&self, answer: &Result<Vec<Row>, String>) -> Result<(), String> {
        let rows = answer.as_ref().map_err(Clone::clone)?;
        if self.expected.is_empty() {
            return Ok(());
        }
        let fits = |(expected, row): (&Vec<Expected>, &Row)| {
            expected.len() == row.len() && expected.iter().zip(row).all(|(e, cell)| e.matches(cell.as_deref()))
        };
        if rows.len() == self.expected.len() && self.expected.iter().zip(rows).all(fits) {
            return Ok(());
        }
        let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "null".to_owned());
        let rows = rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" | "));
        Err(format!("found {}", rows.collect::<Vec<_>>().join(" ⏎ ")))
    }
}

/// Collects cases.
struct Suite<'p> {
    writer: Writer<'p>,
    group: &'static str,
    cases: Vec<Case>,
}

impl Suite<'_> {
    fn push(&mut self, name: impl Into<String>, sql: String, expected: Vec<Vec<Expected>>) {
        self.cases.push(Case { group: self.group, name: name.into(), sql, expected });
    }

    /// Adds a case of one value, unless the profile has no template for it.
    fn value(&mut self, name: impl Into<String>, expr: Option<Expr>, expected: Expected) {
        if let Some(expr) = expr {
            self.push(name, format!("SELECT {} AS r", expr.sql), vec![vec![expected]]);
        }
    }

    /// Adds a case of one value over the columns `t.x`, `t.y` … of one row. An engine may evaluate an expression of
    /// literals while it parses the statement; columns force it to evaluate at run time.
    fn of_columns(&mut self, name: impl Into<String>, columns: &[Expr], expr: Option<Expr>, expected: Expected) {
        let (Some(expr), table) = (expr, self.writer.table(&[columns])) else { return };
        self.push(name, format!("SELECT {} AS r FROM {table}", expr.sql), vec![vec![expected]]);
    }

    /// Adds a condition over one row's columns. The expected result is true, false or null (`None`).
    fn condition(&mut self, name: impl Into<String>, columns: &[Expr], test: Option<Expr>, expected: Option<bool>) {
        let answer = test.and_then(|test| self.writer.three_valued(&test));
        let word = expected.map_or("null", |truth| if truth { "true" } else { "false" });
        self.of_columns(name, columns, answer, Expected::text(word));
    }
}

#[cfg(test)]
mod tests;
