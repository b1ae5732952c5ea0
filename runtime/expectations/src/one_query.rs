//! Recognizes SQL that is one query.
//!
//! In: the SQL of a case. Out: true if the SQL is one statement that only reads. Strings, quoted names and comments are
//! skipped. Not here: whether the warehouse can read the SQL (`check`).

/// The words that a query begins with.
const BEGINNINGS: [&str; 4] = ["select", "with", "from", "values"];

/// Returns true if the SQL is one query. Other statements are refused, because a test must not change the warehouse.
pub(crate) fn is_one_query(sql: &str) -> bool {
    let Some(words) = words(sql.trim().trim_end_matches(';')) else { return false };
    let has = |word: &str| words.iter().any(|found| found == word);
    let begins = words.first().is_some_and(|first| BEGINNINGS.contains(&first.as_str()));
    // Queries can also write: `SELECT … INTO`, and `DELETE` or `UPDATE` within `WITH`.
    begins && !has("into") && !(has("delete") && has("from") && has("returning")) && !(has("update") && has("set"))
}

/// Returns the words outside quotes and comments, in lower case. Returns `None` if a `;` separates statements.
fn words(sql: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' | '`' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            ';' => return None,
            _ if first.is_alphabetic() => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (found, after) = rest.split_at(length);
        if first.is_alphabetic() {
            words.push(found.to_lowercase());
        }
        rest = after;
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_change_the_warehouse_are_rejected() {
        for sql in [
            "SELECT 1;",
            "select ';' AS \"a;b\" -- ; \n",
            "(SELECT 1) UNION ALL (SELECT 2)",
            "FROM orders",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "/* DROP; */ VALUES (1)",
            "SELECT 'it''s; fine'",
        ] {
            assert!(is_one_query(sql), "{sql}");
        }
        for sql in [
            "",
            ";",
            "selec 1",
            "DELETE FROM orders",
            "SELECT 1; DROP VIEW orders",
            "DROP VIEW orders",
            "COPY orders TO 'file'",
            "SELECT * INTO copy FROM orders",
            "WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone",
            "WITH new AS (UPDATE orders SET amount = 0 RETURNING *) SELECT * FROM new",
        ] {
            assert!(!is_one_query(sql), "{sql}");
        }
    }
}
