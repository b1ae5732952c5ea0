//! Finds code that decides by the text of a message.
//!
//! In: a source file. Out: each place that searches a message, an error's text or a hint, or compares one with a
//! literal. Not here: types. A message is recognized by the receiver's name, so a message with a different name is not
//! found.

use crate::tokens::{Token, scan, without_tests};

/// The names of variables and methods whose values are messages.
const RECEIVERS: &[&str] = &["message", "detail", "hint", "warehouse_error", "to_string"];

/// The methods that search a string.
const METHODS: &[&str] = &[
    "contains",
    "starts_with",
    "ends_with",
    "find",
    "rfind",
    "split_once",
    "rsplit_once",
    "strip_prefix",
    "strip_suffix",
    "matches",
    "split",
    "rsplit",
    "splitn",
    "rsplitn",
    "split_terminator",
    "split_whitespace",
];

/// Methods without arguments whose result is the same message in another form.
const ADAPTERS: &[&str] = &[
    "as_bytes",
    "as_deref",
    "as_ref",
    "as_str",
    "clone",
    "into_owned",
    "lines",
    "to_ascii_lowercase",
    "to_ascii_uppercase",
    "to_lowercase",
    "to_owned",
    "to_string",
    "to_uppercase",
    "trim",
    "trim_end",
    "trim_start",
    "unwrap_or_default",
];

/// One place that reads a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageRead {
    pub line: usize,
    /// The receiver's name and the method, for example `message.contains`.
    pub pattern: String,
}

/// Returns all places of a source outside its tests that read a message, in order.
pub fn reads(source: &str) -> Vec<MessageRead> {
    let scanned = scan(source);
    let tokens: Vec<_> = without_tests(&scanned)
        .into_iter()
        .filter(|located| !matches!(located.token, Token::Doc(_) | Token::Comment(_)))
        .collect();
    let token = |at: usize| tokens.get(at).map(|located| located.token);
    let mut reads = Vec::new();
    for (at, located) in tokens.iter().enumerate() {
        let Token::Word(receiver) = located.token else { continue };
        if !RECEIVERS.contains(&receiver) {
            continue;
        }
        let is_call = (token(at + 1), token(at + 2)) == (Some(Token::Symbol('(')), Some(Token::Symbol(')')));
        let mut behind = if is_call { at + 3 } else { at + 1 };
        while let (
            Some(Token::Symbol('.')),
            Some(Token::Word(method)),
            Some(Token::Symbol('(')),
            Some(Token::Symbol(')')),
        ) = (token(behind), token(behind + 1), token(behind + 2), token(behind + 3))
            && ADAPTERS.contains(&method)
        {
            behind += 4;
        }
        let pattern = match (token(behind), token(behind + 1), token(behind + 2)) {
            (Some(Token::Symbol('.')), Some(Token::Word(method)), Some(Token::Symbol('(')))
                if METHODS.contains(&method) =>
            {
                format!("{receiver}.{method}")
            }
            (Some(Token::Symbol('=' | '!')), Some(Token::Symbol('=')), Some(Token::Text(_))) => {
                format!("{receiver} ==")
            }
            _ => continue,
        };
        reads.push(MessageRead { line: located.line, pattern });
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(source: &str) -> Vec<String> {
        reads(source).into_iter().map(|read| format!("{}: {}", read.line, read.pattern)).collect()
    }

    #[test]
    fn search_in_a_message_is_found() {
        assert_eq!(patterns("if error.message.contains(\"x\") {}"), ["1: message.contains"]);
        assert_eq!(patterns("error.message().starts_with(\"x\")"), ["1: message.starts_with"]);
        assert_eq!(patterns("error\n  .to_string()\n  .find(\"x\")"), ["2: to_string.find"]);
        assert_eq!(patterns("let (a, b) = message.split_once(\": \")?;"), ["1: message.split_once"]);
    }

    #[test]
    fn search_behind_other_calls_is_found() {
        assert_eq!(patterns("error.message().to_lowercase().contains(\"x\")"), ["1: message.contains"]);
        assert_eq!(patterns("message.split(\"x\").next()"), ["1: message.split"]);
        assert_eq!(patterns("error.to_string().trim().starts_with(\"x\")"), ["1: to_string.starts_with"]);
        assert!(patterns("error.message().len().contains(\"x\")").is_empty());
    }

    #[test]
    fn comparison_with_a_literal_is_found() {
        assert_eq!(patterns("if message == \"x\" {}\nif a.hint != \"y\" {}"), ["1: message ==", "2: hint =="]);
        assert!(patterns("if message == other {}").is_empty());
    }

    #[test]
    fn tests_comments_and_other_uses_have_no_finding() {
        assert!(patterns("// message.contains(x)\nprint(error.message);\nmessage.push_str(\"x\");").is_empty());
        assert!(patterns("#[cfg(test)]\nmod tests { fn f() { e.to_string().contains(\"x\"); } }").is_empty());
        assert!(patterns("messages.contains(\"x\"); message_ids.contains(&1);").is_empty());
    }
}
