//! Finds assertions on the words of a message in tests.
//!
//! In: a source file. Out: each place in a test that searches a message for several words, or compares it with them. Not
//! here: assertions on names, places and numbers in a message, which are data; snapshots, which contain whole messages.

use crate::messages::{MessageRead, reads_of};
use crate::texts::is_sentence;
use crate::tokens::{Located, Token, scan, tests_only};

/// The names of variables and methods whose values are messages in tests.
const RECEIVERS: &[&str] = &["message", "detail", "hint", "stderr", "to_string", "unwrap_err", "error"];

/// Returns the assertions on words in a source, in order. `is_test` is true for a file that contains only tests.
pub fn asserted_words(source: &str, is_test: bool) -> Vec<MessageRead> {
    let scanned = scan(source);
    let tokens = if is_test { scanned } else { tests_only(&scanned) };
    let is_code = |located: &Located<'_>| !matches!(located.token, Token::Doc(_) | Token::Comment(_));
    let tokens: Vec<_> = tokens.into_iter().filter(is_code).collect();
    let found = reads_of(&tokens, RECEIVERS).into_iter().filter(|(_, literal)| literal.is_some_and(has_words));
    let mut found: Vec<MessageRead> = found.map(|(read, _)| read).collect();
    // `error.to_string()` has two names of receivers.
    found.dedup_by_key(|read| read.line);
    found
}

/// Returns whether a literal has several words outside of backticks, which enclose names.
fn has_words(literal: &str) -> bool {
    is_sentence(&literal.split('`').step_by(2).collect::<Vec<_>>().join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<String> {
        asserted_words(source, true).into_iter().map(|read| read.pattern).collect()
    }

    #[test]
    fn words_of_messages_are_found() {
        assert_eq!(found("assert!(error.message.contains(\"is not known\"))"), ["message.contains"]);
        assert_eq!(found("assert_eq!(error.to_string(), \"the key is unknown\")"), ["error =="]);
        assert_eq!(found("assert!(output.stderr.ends_with(\"no such file\"))"), ["stderr.ends_with"]);
        assert_eq!(found("assert_eq!(body[\"message\"], \"the key is unknown\", \"{body}\")"), ["message =="]);
    }

    #[test]
    fn data_and_code_outside_of_tests_have_no_finding() {
        assert!(found("assert!(error.message.contains(\"`orders`\"))").is_empty());
        assert!(found("assert!(error.message.ends_with(\": `orders`, `items`\"))").is_empty());
        assert!(found("assert!(error.message.contains(&name))").is_empty());
        assert!(found("assert_eq!(error.code, Code::NotFound, \"the code of the error\")").is_empty());
        let product = "fn f() { error.message.contains(\"is not known\"); }";
        assert!(asserted_words(product, false).is_empty());
        let test = format!("fn f() {{}} #[cfg(test)] mod tests {{ {product} }}");
        assert_eq!(asserted_words(&test, false).len(), 1);
    }
}
