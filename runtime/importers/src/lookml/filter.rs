//! Translates filter expressions of LookML: `"paid, -test%"` for strings, `">10"` for numbers, `"yes"` for booleans.
//!
//! In: the reference to a field, its kind, and the expression. Out: a condition in SQL, or `None` if the expression has
//! no counterpart, such as a time relative to now.

use super::scope::FieldKind;

/// Returns the condition of an expression. An empty expression accepts every row.
/// With `ignores_case`, strings are compared without regard to case.
pub(super) fn condition(field: &str, kind: FieldKind, text: &str, ignores_case: bool) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return Some("1 = 1".to_owned());
    }
    match (kind, text.to_uppercase().as_str()) {
        (FieldKind::Measure, _) => None,
        (_, "NULL") => Some(format!("{field} IS NULL")),
        (_, "NOT NULL" | "-NULL") => Some(format!("{field} IS NOT NULL")),
        (FieldKind::YesNo, "YES" | "TRUE") => Some(field.to_owned()),
        (FieldKind::YesNo, "NO" | "FALSE") => Some(format!("NOT COALESCE({field}, FALSE)")),
        (FieldKind::String, _) => string(field, text, ignores_case),
        (FieldKind::Number, _) => number(field, text),
        (FieldKind::YesNo | FieldKind::Time, _) => None,
    }
}

/// Translates words that commas separate. A row must have one of the accepted values, and none of the excluded values.
fn string(field: &str, text: &str, ignores_case: bool) -> Option<String> {
    // `^` escapes a character and `"` quotes a word. Such expressions are not translated, and neither is a backslash,
    // which some warehouses take for an escape in a pattern.
    if text.contains(['^', '"', '\\']) {
        return None;
    }
    let condition = |word: &str| word_condition(field, word, ignores_case);
    let (mut accepted, mut excluded) = (Vec::new(), Vec::new());
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.strip_prefix('-') {
            Some("NULL") => excluded.push(format!("{field} IS NOT NULL")),
            // The comparison is not true for a null.
            Some("EMPTY") => excluded.push(format!("{field} <> ''")),
            // In LookML, a null is not equal to an excluded value, so the row is accepted.
            Some(word) => excluded.push(format!("(NOT ({}) OR {field} IS NULL)", condition(word))),
            None => accepted.push(condition(word)),
        }
    }
    let accepted = (!accepted.is_empty()).then(|| any_of(&accepted));
    let conditions: Vec<String> = accepted.into_iter().chain(excluded).collect();
    (!conditions.is_empty()).then(|| conditions.join(" AND "))
}

fn word_condition(field: &str, word: &str, ignores_case: bool) -> String {
    let (value, compared) = match ignores_case {
        true => (literal(&word.to_lowercase()), format!("LOWER({field})")),
        false => (literal(word), field.to_owned()),
    };
    match word {
        "NULL" => format!("{field} IS NULL"),
        "EMPTY" => format!("({field} IS NULL OR {field} = '')"),
        // `%` matches any characters, and `_` one character.
        word if word.contains(['%', '_']) => format!("{compared} LIKE {value}"),
        _ => format!("{compared} = {value}"),
    }
}

fn literal(word: &str) -> String {
    format!("'{}'", word.replace('\'', "''"))
}

fn any_of(conditions: &[String]) -> String {
    match conditions {
        [one] => one.clone(),
        many => format!("({})", many.join(" OR ")),
    }
}

/// Translates numbers and comparisons that commas separate, or one interval.
fn number(field: &str, text: &str) -> Option<String> {
    if let Some(interval) = interval(field, text) {
        return Some(interval);
    }
    let (mut accepted, mut excluded) = (Vec::new(), Vec::new());
    let mut is_negated = false;
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let upper = word.to_uppercase();
        let excluded_word =
            upper.strip_prefix("NOT ").or_else(|| word.strip_prefix("<>")).or_else(|| word.strip_prefix("!="));
        // A leading NOT also negates the numbers that follow. Other mixtures are not translated.
        let excluded_word = excluded_word.or_else(|| is_negated.then_some(word));
        if excluded_word.is_some() && !accepted.is_empty() {
            return None;
        }
        is_negated |= excluded_word.is_some();
        match (excluded_word, comparison(word)) {
            (Some(word), _) => excluded.push(format!("({field} <> {0} OR {field} IS NULL)", plain(word)?)),
            (None, Some((operator, number))) => accepted.push(format!("{field} {operator} {number}")),
            (None, None) => accepted.push(format!("{field} = {}", plain(word)?)),
        }
    }
    let accepted = (!accepted.is_empty()).then(|| any_of(&accepted));
    let conditions: Vec<String> = accepted.into_iter().chain(excluded).collect();
    (!conditions.is_empty()).then(|| conditions.join(" AND "))
}

fn comparison(word: &str) -> Option<(&'static str, &str)> {
    let (operator, number) = [">=", "<=", ">", "<"].iter().find_map(|op| Some((*op, word.strip_prefix(op)?)))?;
    Some((operator, plain(number)?))
}

/// Translates an interval such as `[1, 5)`, in which one border may be missing.
fn interval(field: &str, text: &str) -> Option<String> {
    let inner = text.strip_prefix(['[', '(']).and_then(|inner| inner.strip_suffix([']', ')']))?;
    let (low, high) = inner.split_once(',')?;
    let border = |operator: &str, number: &str| match number.trim() {
        "" | "inf" | "-inf" => Some(None),
        number => Some(Some(format!("{field} {operator} {}", plain(number)?))),
    };
    let low = border(if text.starts_with('[') { ">=" } else { ">" }, low)?;
    let high = border(if text.ends_with(']') { "<=" } else { "<" }, high)?;
    let borders: Vec<String> = [low, high].into_iter().flatten().collect();
    (!borders.is_empty()).then(|| borders.join(" AND "))
}

/// Returns the text if it is a number in plain notation, without an exponent.
fn plain(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-')) && text.parse::<f64>().is_ok();
    is_number.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_ignored_on_demand() {
        let sql = condition("f", FieldKind::String, "Paid,-Te%,EMPTY", true);
        let expected = "(LOWER(f) = 'paid' OR (f IS NULL OR f = '')) AND (NOT (LOWER(f) LIKE 'te%') OR f IS NULL)";
        assert_eq!(sql.as_deref(), Some(expected));
    }

    #[test]
    fn expressions_become_conditions() {
        use FieldKind::{Number, String, Time, YesNo};
        for (kind, text, sql) in [
            (String, "paid", Some("f = 'paid'")),
            (String, "paid,o'clock", Some("(f = 'paid' OR f = 'o''clock')")),
            (String, "-test%", Some("(NOT (f LIKE 'test%') OR f IS NULL)")),
            (String, "a,-b", Some("f = 'a' AND (NOT (f = 'b') OR f IS NULL)")),
            (String, "-NULL", Some("f IS NOT NULL")),
            (String, "EMPTY", Some("(f IS NULL OR f = '')")),
            (String, "a^,b", None),
            (Number, ">= 10", Some("f >= 10")),
            (Number, "1, 2", Some("(f = 1 OR f = 2)")),
            (Number, "NOT 5", Some("(f <> 5 OR f IS NULL)")),
            (String, "-EMPTY", Some("f <> ''")),
            (String, "_UF", Some("f LIKE '_UF'")),
            (String, "a\\_c", None),
            (
                Number,
                "NOT 66, 99, NOT 4",
                Some("(f <> 66 OR f IS NULL) AND (f <> 99 OR f IS NULL) AND (f <> 4 OR f IS NULL)"),
            ),
            (Number, "NOT >50, 4", None),
            (Number, "1, NOT 2", None),
            (Number, "NOT 2, >5", None),
            (Number, "[1, 5)", Some("f >= 1 AND f < 5")),
            (Number, "(1, inf)", Some("f > 1")),
            (Number, "1; DROP", None),
            (Number, "1 OR 1=1", None),
            (YesNo, "Yes", Some("f")),
            (YesNo, "no", Some("NOT COALESCE(f, FALSE)")),
            (Time, "7 days", None),
            (Time, "NOT NULL", Some("f IS NOT NULL")),
            (String, "", Some("1 = 1")),
        ] {
            assert_eq!(condition("f", kind, text, false).as_deref(), sql, "{text}");
        }
    }
}
