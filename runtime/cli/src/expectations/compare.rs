//! Compares the rows of a query with the rows expected, and describes the first difference.

use serde_json::{Map, Value};

use super::numbers;
use crate::rows::Rows;

/// As many characters of a row as a message shows.
const SHOWN: usize = 400;

/// `None`: the same columns in the same order and the same rows, in order or in any.
pub fn difference(actual: &Rows, expected: &Rows, is_ordered: bool) -> Option<String> {
    if actual.columns != expected.columns {
        return Some(format!(
            "columns differ\n  expected: {}\n  actual:   {}",
            expected.columns.join(", "),
            actual.columns.join(", ")
        ));
    }
    let is_double: Vec<bool> = actual.is_double.iter().zip(&expected.is_double).map(|(a, b)| *a || *b).collect();
    if is_ordered { in_order(actual, expected, &is_double) } else { in_any_order(actual, expected, &is_double) }
}

/// The columns and rows of an expectation that lists them. Columns without a row to name them are the
/// query's own.
pub(super) fn listed(rows: &[Map<String, Value>], actual: &Rows) -> Rows {
    let columns: Vec<String> = match rows.first() {
        Some(first) => first.keys().cloned().collect(),
        None => actual.columns.clone(),
    };
    let values = |row: &Map<String, Value>| -> Vec<Value> {
        // A key that is missing, or one too many, must not look like a value that is there.
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

fn in_order(actual: &Rows, expected: &Rows, is_double: &[bool]) -> Option<String> {
    let pairs = actual.rows.iter().zip(&expected.rows);
    if let Some((index, (got, wanted))) = pairs.enumerate().find(|(_, (got, wanted))| !same_row(got, wanted, is_double))
    {
        return Some(format!(
            "row {} of {} differs{}\n  expected: {}\n  actual:   {}",
            index + 1,
            expected.rows.len(),
            which(&expected.columns, got, wanted, is_double),
            shown(&expected.columns, wanted),
            shown(&actual.columns, got),
        ));
    }
    count(actual, expected)
}

/// Every expected row must be there as often as it is expected.
fn in_any_order(actual: &Rows, expected: &Rows, is_double: &[bool]) -> Option<String> {
    let mut left: Vec<&Vec<Value>> = actual.rows.iter().collect();
    for wanted in &expected.rows {
        match left.iter().position(|got| same_row(got, wanted, is_double)) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => {
                let nearest = left.iter().max_by_key(|got| common(got, wanted, is_double));
                let nearest =
                    nearest.map_or(String::new(), |got| format!("\n  nearest:  {}", shown(&actual.columns, got)));
                return Some(format!("a row is missing\n  expected: {}{nearest}", shown(&expected.columns, wanted)));
            }
        }
    }
    count(actual, expected)
}

fn count(actual: &Rows, expected: &Rows) -> Option<String> {
    let (got, wanted) = (actual.rows.len(), expected.rows.len());
    if got == wanted {
        return None;
    }
    let extra = match (actual.rows.get(wanted), expected.rows.get(got)) {
        (Some(row), _) => format!("\n  first one too many: {}", shown(&actual.columns, row)),
        (None, Some(row)) => format!("\n  first one missing: {}", shown(&expected.columns, row)),
        (None, None) => String::new(),
    };
    Some(format!("{wanted} rows expected, {got} came{extra}"))
}

fn common(left: &[Value], right: &[Value], is_double: &[bool]) -> usize {
    left.iter().zip(right).zip(is_double).filter(|((a, b), double)| same_value(a, b, **double)).count()
}

fn same_row(left: &[Value], right: &[Value], is_double: &[bool]) -> bool {
    left.len() == right.len() && common(left, right, is_double) == left.len()
}

fn same_value(left: &Value, right: &Value, is_double: bool) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => numbers::same(&a.to_string(), &b.to_string(), is_double),
        _ => left == right,
    }
}

/// ` in a, b`: the columns whose values differ.
fn which(columns: &[String], left: &[Value], right: &[Value], is_double: &[bool]) -> String {
    let values = left.iter().zip(right).zip(is_double);
    let differing: Vec<&str> = columns
        .iter()
        .zip(values)
        .filter(|(_, ((a, b), double))| !same_value(a, b, **double))
        .map(|(name, _)| name.as_str())
        .collect();
    if differing.is_empty() { String::new() } else { format!(" in {}", differing.join(", ")) }
}

fn shown(columns: &[String], row: &[Value]) -> String {
    let named = row.iter().enumerate().map(|(index, value)| match columns.get(index) {
        Some(name) => format!("{name}: {value}"),
        None => value.to_string(),
    });
    let text = named.collect::<Vec<_>>().join(", ");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{{{}…}}", &text[..end]),
        None => format!("{{{text}}}"),
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

    fn check(actual: &[[Value; 2]], expected: &[[Value; 2]], is_ordered: bool) -> Option<String> {
        difference(&rows(actual), &rows(expected), is_ordered)
    }

    #[test]
    fn equal_rows_have_no_difference() {
        let some = [[json!("x"), json!(0.1)], [json!(null), json!(2)]];
        assert_eq!(check(&some, &[[json!("x"), json!(0.100000000000001)], [json!(null), json!(2.0)]], true), None);
        assert_eq!(check(&some, &[some[1].clone(), some[0].clone()], false), None);
    }

    #[test]
    fn the_first_difference_is_described() {
        let text = check(&[[json!("x"), json!(1)]], &[[json!("x"), json!(2)]], true).unwrap();
        assert_eq!(text, "row 1 of 1 differs in b\n  expected: {a: \"x\", b: 2}\n  actual:   {a: \"x\", b: 1}");
        let text = check(&[[json!(1), json!(1)]], &[], true).unwrap();
        assert!(text.starts_with("0 rows expected, 1 came\n  first one too many"), "{text}");
        let twice = [[json!(1), json!(1)], [json!(1), json!(1)]];
        assert!(check(&twice[..1], &twice, false).is_some());
        assert!(check(&[[json!("1"), json!(1)]], &[[json!(1), json!(1)]], true).is_some());
        assert!(check(&[[json!(null), json!(1)]], &[[json!(0), json!(1)]], true).is_some());
    }
}
