//! Compares the rows of a query with the expected rows.

use std::fmt;

use serde_json::{Map, Value};
use terrane_app::data_check::plural;

use crate::Rows;
use crate::numbers;

/// The number of characters of a row that a message shows.
const MAX_SHOWN: usize = 400;

/// The order in which rows are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// Rows must have the expected order.
    Listed,
    /// Rows may have any order.
    Any,
}

/// The first difference between two results.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    Columns {
        expected: Vec<String>,
        actual: Vec<String>,
    },
    /// The values of a row differ from the expected ones. `number` counts from 1; `columns` names the columns that
    /// differ.
    Row {
        number: usize,
        of: usize,
        columns: Vec<String>,
        expected: Row,
        actual: Row,
    },
    /// An expected row is missing. `nearest` is the remaining row that has the most values in common with it.
    MissingRow {
        expected: Row,
        nearest: Option<Row>,
    },
    RowCount {
        expected: usize,
        actual: usize,
        first_extra: Option<Row>,
        first_missing: Option<Row>,
    },
}

/// One row with the names of its columns. A value without a column has no name.
#[derive(Debug, Clone, PartialEq)]
pub struct Row(Vec<(Option<String>, Value)>);

/// Returns the first difference. `None` means that columns and their order are equal, and the rows are equal.
pub fn difference(actual: &Rows, expected: &Rows, order: RowOrder) -> Option<Difference> {
    if actual.columns != expected.columns {
        return Some(Difference::Columns { expected: expected.columns.clone(), actual: actual.columns.clone() });
    }
    let is_double: Vec<bool> = actual.is_double.iter().zip(&expected.is_double).map(|(a, b)| *a || *b).collect();
    match order {
        RowOrder::Listed => in_order(actual, expected, &is_double),
        RowOrder::Any => in_any_order(actual, expected, &is_double),
    }
}

/// Returns the columns and rows that a case lists. If the case lists no rows, the columns are those of the query.
pub(crate) fn listed(rows: &[Map<String, Value>], actual: &Rows) -> Rows {
    let columns: Vec<String> = match rows.first() {
        Some(first) => first.keys().cloned().collect(),
        None => actual.columns.clone(),
    };
    let values = |row: &Map<String, Value>| -> Vec<Value> {
        // A missing or unexpected key becomes a value that no result contains, so that the row differs.
        let extra = row
            .iter()
            .filter(|(key, _)| !columns.contains(key))
            .map(|(key, _)| Value::from(format!("unexpected key {key}")));
        columns
            .iter()
            .map(|key| row.get(key).cloned().unwrap_or_else(|| Value::from("missing key")))
            .chain(extra)
            .collect()
    };
    Rows { is_double: vec![false; columns.len()], rows: rows.iter().map(values).collect(), columns }
}

fn in_order(actual: &Rows, expected: &Rows, is_double: &[bool]) -> Option<Difference> {
    let mut pairs = actual.rows.iter().zip(&expected.rows).enumerate();
    let different = pairs.find(|(_, (got, wanted))| !same_row(got, wanted, is_double));
    match different {
        Some((index, (got, wanted))) => Some(Difference::Row {
            number: index + 1,
            of: expected.rows.len(),
            columns: different_columns(&expected.columns, got, wanted, is_double),
            expected: Row::new(expected, wanted),
            actual: Row::new(actual, got),
        }),
        None => row_count(actual, expected),
    }
}

/// Compares rows regardless of their order. An expected row that is listed twice must occur twice.
fn in_any_order(actual: &Rows, expected: &Rows, is_double: &[bool]) -> Option<Difference> {
    let mut left: Vec<&Vec<Value>> = actual.rows.iter().collect();
    for wanted in &expected.rows {
        match left.iter().position(|got| same_row(got, wanted, is_double)) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => {
                let nearest = left.iter().max_by_key(|got| equal_values(got, wanted, is_double));
                return Some(Difference::MissingRow {
                    expected: Row::new(expected, wanted),
                    nearest: nearest.map(|got| Row::new(actual, got)),
                });
            }
        }
    }
    row_count(actual, expected)
}

fn row_count(actual: &Rows, expected: &Rows) -> Option<Difference> {
    let (got, wanted) = (actual.rows.len(), expected.rows.len());
    (got != wanted).then(|| Difference::RowCount {
        expected: wanted,
        actual: got,
        first_extra: actual.rows.get(wanted).map(|row| Row::new(actual, row)),
        first_missing: expected.rows.get(got).map(|row| Row::new(expected, row)),
    })
}

fn equal_values(left: &[Value], right: &[Value], is_double: &[bool]) -> usize {
    left.iter().zip(right).zip(is_double).filter(|((a, b), double)| same_value(a, b, **double)).count()
}

fn same_row(left: &[Value], right: &[Value], is_double: &[bool]) -> bool {
    left.len() == right.len() && equal_values(left, right, is_double) == left.len()
}

fn same_value(left: &Value, right: &Value, is_double: bool) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => numbers::same(&a.to_string(), &b.to_string(), is_double),
        _ => left == right,
    }
}

fn different_columns(columns: &[String], left: &[Value], right: &[Value], is_double: &[bool]) -> Vec<String> {
    let values = left.iter().zip(right).zip(is_double);
    let different = columns.iter().zip(values).filter(|(_, ((a, b), double))| !same_value(a, b, **double));
    different.map(|(name, _)| name.clone()).collect()
}

impl Row {
    fn new(rows: &Rows, values: &[Value]) -> Self {
        Row(values.iter().enumerate().map(|(index, value)| (rows.columns.get(index).cloned(), value.clone())).collect())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.0.iter().map(|(name, value)| match name {
            Some(name) => format!("{name}: {value}"),
            None => value.to_string(),
        });
        let text = named.collect::<Vec<_>>().join(", ");
        match text.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => write!(f, "{{{}…}}", &text[..end]),
            None => write!(f, "{{{text}}}"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Columns { expected, actual } => {
                write!(f, "columns differ\n  expected: {}\n  actual:   {}", expected.join(", "), actual.join(", "))
            }
            Difference::Row { number, of, columns, expected, actual } => {
                let columns = if columns.is_empty() { String::new() } else { format!(" in {}", columns.join(", ")) };
                write!(f, "row {number} of {of} differs{columns}\n  expected: {expected}\n  actual:   {actual}")
            }
            Difference::MissingRow { expected, nearest } => {
                write!(f, "missing row\n  expected: {expected}")?;
                nearest.as_ref().map_or(Ok(()), |row| write!(f, "\n  nearest:  {row}"))
            }
            Difference::RowCount { expected, actual, first_extra, first_missing } => {
                write!(f, "expected {}, found {actual}", plural(*expected as u64, "row"))?;
                if let Some(row) = first_extra {
                    write!(f, "\n  first extra row: {row}")?;
                }
                first_missing.as_ref().map_or(Ok(()), |row| write!(f, "\n  first missing row: {row}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(values: &[[Value; 2]]) -> Rows {
        Rows {
            columns: vec!["a".to_owned(), "b".to_owned()],
            is_double: vec![false, true],
            rows: values.iter().map(|row| row.to_vec()).collect(),
        }
    }

    fn check(actual: &[[Value; 2]], expected: &[[Value; 2]], order: RowOrder) -> Option<String> {
        difference(&rows(actual), &rows(expected), order).map(|difference| difference.to_string())
    }

    #[test]
    fn equal_rows_have_no_difference() {
        let some = [[json!("x"), json!(0.1)], [json!(null), json!(2)]];
        assert_eq!(
            check(&some, &[[json!("x"), json!(0.100000000000001)], [json!(null), json!(2.0)]], RowOrder::Listed),
            None
        );
        assert_eq!(check(&some, &[some[1].clone(), some[0].clone()], RowOrder::Any), None);
    }

    #[test]
    fn first_difference_is_described() {
        let text = check(&[[json!("x"), json!(1)]], &[[json!("x"), json!(2)]], RowOrder::Listed).unwrap();
        assert_eq!(text, "row 1 of 1 differs in b\n  expected: {a: \"x\", b: 2}\n  actual:   {a: \"x\", b: 1}");
        let text = check(&[[json!(1), json!(1)]], &[], RowOrder::Listed).unwrap();
        assert!(text.starts_with("expected 0 rows, found 1\n  first extra row: "), "{text}");
        let twice = [[json!(1), json!(1)], [json!(1), json!(1)]];
        assert!(check(&twice[..1], &twice, RowOrder::Any).is_some());
        assert!(check(&[[json!("1"), json!(1)]], &[[json!(1), json!(1)]], RowOrder::Listed).is_some());
        assert!(check(&[[json!(null), json!(1)]], &[[json!(0), json!(1)]], RowOrder::Listed).is_some());
    }
}
