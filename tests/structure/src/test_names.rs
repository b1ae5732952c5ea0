//! The names of tests.
//!
//! In: a source file. Out: the names of its test functions, and the rule that a name violates. A name has a subject, a
//! verb and the expected result: `unknown_metric_is_rejected`. Not here: the meaning of a name, which only a reader can
//! judge.

use crate::sources::list;
use crate::tokens::{Located, Token, scan};

/// The rules for single words, one on each line.
const RULES: &str = include_str!("../language/test_names.txt");

/// The largest number of characters of a name.
const MAX_CHARACTERS: usize = 80;

/// The name of one test function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestName {
    pub line: usize,
    pub name: String,
}

/// Returns the functions of a source with an attribute `#[test]` or `#[….test]`, such as `#[tokio::test]`, in order.
pub fn test_names(source: &str) -> Vec<TestName> {
    let tokens: Vec<_> = scan(source)
        .into_iter()
        .filter(|located| !matches!(located.token, Token::Doc(_) | Token::Comment(_)))
        .collect();
    let mut names = Vec::new();
    let mut is_test = false;
    let mut at = 0;
    while let Some(located) = tokens.get(at) {
        match (located.token, tokens.get(at + 1).map(|next| next.token)) {
            (Token::Symbol('#'), Some(Token::Symbol('['))) => {
                let end = end_of_attribute(&tokens, at + 1);
                is_test |= is_test_attribute(&tokens[at + 2..end]);
                at = end;
            }
            (Token::Word("fn"), Some(Token::Word(name))) => {
                if is_test {
                    names.push(TestName { line: located.line, name: name.to_owned() });
                }
                is_test = false;
            }
            (Token::Symbol('{' | ';'), _) => is_test = false,
            _ => {}
        }
        at += 1;
    }
    names
}

/// Returns the correction of a name that violates a rule; `None` if it follows the rules.
///
/// # Panics
/// A line of the rules has a different form.
pub fn fault(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split('_').collect();
    let padded = format!("{name}_");
    let rule = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["opening", word] => (words[0] == word).then(|| format!("begin with the subject instead of `{word}_`")),
        ["word", word] => words.contains(&word).then(|| format!("name the subject instead of `{word}`")),
        ["phrase", part, better] => padded.contains(part).then(|| format!("write `{better}` instead of `{part}`")),
        _ => panic!("expected `opening`, `word` or `phrase`: {line}"),
    };
    let violated = list(RULES).into_iter().find_map(rule);
    let is_short = words.len() < 2;
    violated
        .or_else(|| is_short.then(|| "state the subject and the expected result".to_owned()))
        .or_else(|| (name.len() > MAX_CHARACTERS).then(|| format!("use at most {MAX_CHARACTERS} characters")))
}

/// Returns the index of the bracket that closes the attribute whose bracket opens at `start`.
fn end_of_attribute(tokens: &[Located<'_>], start: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, located) in tokens[start..].iter().enumerate() {
        match located.token {
            Token::Symbol('[') => depth += 1,
            Token::Symbol(']') if depth == 1 => return start + offset,
            Token::Symbol(']') => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Returns whether the path of an attribute ends with `test`, before its arguments.
fn is_test_attribute(content: &[Located<'_>]) -> bool {
    let path = content.iter().map(|located| located.token);
    let path = path.take_while(|token| matches!(token, Token::Word(_) | Token::Symbol(':')));
    path.last() == Some(Token::Word("test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        test_names(source).into_iter().map(|test| format!("{}: {}", test.line, test.name)).collect()
    }

    #[test]
    fn test_functions_are_found() {
        assert_eq!(names("#[test]\nfn x_is_y() {}\nfn helper() {}"), ["2: x_is_y"]);
        assert_eq!(names("#[tokio::test(start_paused = true)]\nasync fn x_is_y() {}"), ["2: x_is_y"]);
        assert_eq!(names("#[test]\n#[ignore = \"fn a()\"]\npub fn x_is_y() {}"), ["3: x_is_y"]);
        assert_eq!(names("#[cfg(test)]\nmod tests { fn helper() {} }\n#[cfg_attr(test, x)] fn f() {}"), [""; 0]);
        assert_eq!(names("// #[test]\nfn helper() {}\nlet text = \"#[test] fn x() {}\";"), [""; 0]);
    }

    #[test]
    fn names_with_subject_and_result_have_no_fault() {
        for name in ["unknown_metric_is_rejected", "to_many_join_is_rejected", "only_listed_names_pass", "queries_bind"]
        {
            assert_eq!(fault(name), None, "{name}");
        }
    }

    #[test]
    fn clauses_articles_and_vague_words_are_faults() {
        for name in [
            "what_is_over_is_gone",
            "a_key_is_read",
            "the_key_is_read",
            "no_text_is_too_deep",
            "keys_of_ours_are_read",
            "words_are_no_times",
            "limit_is_none",
            "key_can_not_be_read",
            "works",
        ] {
            assert!(fault(name).is_some(), "{name}");
        }
        assert!(fault(&"long_".repeat(20)).is_some());
    }
}
