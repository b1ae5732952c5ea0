//! Recognizes statements whose result may change although the data does not.
//!
//! In: the text of a statement, including authors' SQL. Out: whether every function in it returns the same values for
//! the same rows, by the functions' names. The text is read word by word, without the grammar of a dialect. If a part
//! is ambiguous, the statement counts as changing. Not here: functions that a database's owner defines, and views that
//! call one.

/// Words that are functions without parentheses in some dialect, or that choose rows at random.
const WORDS: &[&str] = &[
    "current_catalog",
    "current_date",
    "current_localtime",
    "current_localtimestamp",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "reservoir",
    "sample",
    "session_user",
    "sysdate",
    "systimestamp",
    "tablesample",
    "utc_date",
    "utc_time",
    "utc_timestamp",
];

/// Functions whose result changes between two calls, or with the session.
const FUNCTIONS: &[&str] = &[
    "age",
    "changes",
    "clock_timestamp",
    "connection_id",
    "curdate",
    "currval",
    "current_query",
    "current_setting",
    "curtime",
    "found_rows",
    "gen_random_bytes",
    "gen_random_uuid",
    "generateuuidv4",
    "get_current_time",
    "get_current_timestamp",
    "getdate",
    "getutcdate",
    "getvariable",
    "last_insert_id",
    "last_insert_rowid",
    "lastval",
    "newid",
    "nextval",
    "now",
    "now64",
    "pg_backend_pid",
    "pg_sleep",
    "query_id",
    "rand",
    "rand32",
    "rand64",
    "randcanonical",
    "random",
    "random_bytes",
    "random_normal",
    "randn",
    "randomblob",
    "row_count",
    "seq4",
    "seq8",
    "setseed",
    "setval",
    "shuffle",
    "sleep",
    "statement_timestamp",
    "sysdatetime",
    "sysutcdatetime",
    "timeofday",
    "today",
    "total_changes",
    "transaction_timestamp",
    "txid_current",
    "uuid",
    "uuid_generate_v1",
    "uuid_generate_v4",
    "uuid_short",
    "uuid_string",
    "uuidv4",
    "uuidv7",
    "yesterday",
];

/// Functions that return the current time if they have no argument.
const WITHOUT_ARGUMENTS: &[&str] =
    &["date", "datetime", "julianday", "time", "timestamp", "unix_timestamp", "unixepoch"];

/// Strings that some engines read as the current time.
const TEXTS: &[&str] = &["localtime", "now", "today", "tomorrow", "yesterday"];

/// Returns whether a statement gives the same result as long as its data is the same; false if that is uncertain.
pub fn is_deterministic(text: &str) -> bool {
    scan(text, Backslash::InDoubt)
}

/// Returns whether the result of an expression may change although its data does not, whatever a backslash means in the
/// dialect.
pub(crate) fn is_changing(text: &str) -> bool {
    !scan(text, Backslash::Plain) && !scan(text, Backslash::Escape)
}

/// The meaning of a backslash before a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backslash {
    /// A backslash before the quote, which ends the string in some dialects only.
    InDoubt,
    Plain,
    Escape,
}

fn scan(text: &str, backslash: Backslash) -> bool {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match first {
            '\'' => match quoted(rest, '\'', backslash) {
                Some((content, after)) if !is_moving_text(content) => rest = after,
                _ => return false,
            },
            '"' | '`' => match quoted(rest, first, Backslash::InDoubt) {
                Some((content, after)) if !is_moving_call(content, after) => rest = after,
                _ => return false,
            },
            // A string in dollar quotes or a session variable; a positional parameter such as `$1` has a digit.
            '$' if !rest[1..].starts_with(|c: char| c.is_ascii_digit()) => return false,
            '@' if rest[1..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '@')) => return false,
            _ if is_part(first) => {
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                if contains(WORDS, word) || is_moving_call(word, after) {
                    return false;
                }
                rest = after;
            }
            _ => rest = &rest[first.len_utf8()..],
        }
    }
    true
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the content of a quoted string and the text after it; `None` if the end of the string is ambiguous.
fn quoted(text: &str, quote: char, backslash: Backslash) -> Option<(&str, &str)> {
    let content = &text[1..];
    let mut from = 0;
    loop {
        let at = from + content[from..].find(quote)?;
        let (before, after) = (&content[..at], &content[at + 1..]);
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        match backslash {
            Backslash::InDoubt if backslashes > 0 => return None,
            Backslash::Escape if backslashes % 2 == 1 => {
                from = at + 1;
                continue;
            }
            _ => {}
        }
        if !after.starts_with(quote) {
            return Some((before, after));
        }
        from = at + 2;
    }
}

fn is_moving_text(content: &str) -> bool {
    content.len() <= 16 && contains(TEXTS, content.trim())
}

fn is_moving_call(word: &str, after: &str) -> bool {
    let Some(arguments) = after.trim_start().strip_prefix('(') else { return false };
    contains(FUNCTIONS, word) || (contains(WITHOUT_ARGUMENTS, word) && arguments.trim_start().starts_with(')'))
}

fn contains(words: &[&str], word: &str) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_whose_result_changes_are_found() {
        for text in [
            "SELECT random()",
            "SELECT a FROM t WHERE b < NOW ( )",
            "SELECT \"random\"()",
            "SELECT current_date",
            "SELECT x::date - CURRENT_TIMESTAMP AS d",
            "SELECT 'now'::timestamp",
            "SELECT datetime('now', '-1 day')",
            "SELECT date()",
            "SELECT * FROM t TABLESAMPLE BERNOULLI (10)",
            "SELECT * FROM t USING SAMPLE 10",
            "SELECT pg_catalog.now()",
            "SELECT @@hostname",
            "SELECT $$random()$$",
            "SELECT 'it\\' , random()",
        ] {
            assert!(!is_deterministic(text), "{text}");
        }
    }

    #[test]
    fn expression_is_changing_only_under_both_backslash_rules() {
        assert!(is_changing("a > now()"));
        assert!(is_changing("'it\\'s' || random()"));
        for text in ["'back\\' || \"random\"", "x = 'a\\\\' AND y", "'it\\'s random()'"] {
            assert!(!is_changing(text), "{text}");
        }
    }

    #[test]
    fn names_and_strings_like_changing_calls_are_deterministic() {
        for text in [
            "SELECT o.now, \"random\", random_walk(x) FROM o WHERE o.name = 'it''s now' AND p = $1",
            "SELECT count(*) AS \"current_date\" FROM orders AS o WHERE date(o.at) = ?",
            "SELECT 'random()' AS \"today's\"",
            "SELECT date_trunc('month', \"o\".\"created_at\")",
        ] {
            assert!(is_deterministic(text), "{text}");
        }
    }
}
