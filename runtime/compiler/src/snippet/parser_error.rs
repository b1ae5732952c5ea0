//! Converts errors of the SQL parser to problems of an author's SQL.
//!
//! In: an error of sqlparser and the tokens that it was parsing. Out: a [`Problem`] at a place of the SQL, with a hint.
//! sqlparser reports the expected word, the found word and the place as one text without a code, so this module reads
//! that text. No other module does.

use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::grammar::{Problem, is_space, is_unseen, offset_of, unseen};
use crate::diagnostic::Code;

/// Returns the problem that an error of the parser reports, at its place. `readable` replaces stand-ins with the
/// author's SQL.
pub(crate) fn explain(
    error: &ParserError,
    text: &str,
    tokens: &[TokenWithSpan],
    readable: impl Fn(&str) -> String,
) -> Problem {
    let message = match error {
        ParserError::RecursionLimitExceeded => {
            return Problem::new(Code::SqlTooDeep, "the SQL is nested too deeply", "Use fewer levels.");
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
    };
    let (message, place) = message.rsplit_once(" at Line: ").unwrap_or((message, ""));
    let place = place
        .split_once(", Column: ")
        .and_then(|(line, column)| Some(Location { line: line.parse().ok()?, column: column.parse().ok()? }));
    let words: Vec<&TokenWithSpan> = tokens.iter().filter(|token| !is_space(token)).collect();
    let at = place.and_then(|place| words.iter().position(|token| token.span.start == place));
    let length = |token: &TokenWithSpan| readable(&token.token.to_string()).chars().count();
    let offset = |token: &TokenWithSpan| offset_of(text, token.span.start);
    let Some((wanted, _)) = message.strip_prefix("Expected: ").and_then(|rest| rest.split_once(", found: ")) else {
        let message = format!("cannot parse SQL: {}", lower_first(&readable(message)));
        let hint = "Check the brackets, quotes and commas, and that the warehouse knows this syntax.";
        let problem = Problem::new(Code::SqlSyntax, message, hint);
        if let Some(token) = at.map(|at| words[at]).filter(|token| is_unseen(token)) {
            return unseen(token, text);
        }
        return match at {
            Some(at) => problem.at(offset(words[at]), length(words[at])),
            None => problem.at(offset_of(text, place.unwrap_or(Location { line: 0, column: 0 })), 1),
        };
    };
    let wanted = readable(wanted);
    let Some(at) = at else {
        // The error is at the end of the SQL: the last word requires another one after it.
        let Some(last) = words.last() else {
            return Problem::new(Code::SqlSyntax, "the SQL is empty", "Write `SELECT …`.");
        };
        let found = readable(&last.token.to_string());
        let message = format!("the SQL ends after `{found}`, where {} must follow", article(&wanted));
        let hint = match wanted.as_str() {
            "END" => "Close the CASE with `END`.".to_owned(),
            _ => format!("Write {} after `{found}`, or remove `{found}`.", article(&wanted)),
        };
        return Problem::new(Code::SqlSyntax, message, hint).at(offset(last), found.chars().count());
    };
    if is_unseen(words[at]) {
        return unseen(words[at], text);
    }
    let found = readable(&words[at].token.to_string());
    let is_rest = wanted.contains("end of statement") || wanted.contains("end of expression");
    if is_rest && let Some(problem) = misspelt_keyword(&words[..at], text) {
        return problem;
    }
    if is_rest || (wanted.contains(',') || wanted == ")") {
        // `lower(a) upper(b)`: the parser reads `upper` as an alias of the first call and stops at the parenthesis.
        let is_call = words[at].token == Token::LParen && at > 0 && matches!(words[at - 1].token, Token::Word(_));
        let first = if is_call { words[at - 1] } else { words[at] };
        let found = readable(&first.token.to_string());
        let message = format!("unexpected `{found}` after a complete expression");
        let hint = if wanted == ")" {
            format!("Close the bracket before `{found}`, or write a comma or an operator there.")
        } else {
            format!("Write a comma or an operator before `{found}`, or remove it.")
        };
        return Problem::new(Code::SqlSyntax, message, hint).at(offset(first), found.chars().count());
    }
    let message = format!("expected {}, found `{found}`", article(&wanted));
    let hint = match found.as_str() {
        "," => "Remove the comma, or write the expression that is missing beside it.".to_owned(),
        _ => format!("Write {} before `{found}`, or remove it.", article(&wanted)),
    };
    Problem::new(Code::SqlSyntax, message, hint).at(offset(words[at]), found.chars().count())
}

/// Returns the problem of a misspelt keyword before the place: the parser took it for a name.
fn misspelt_keyword(before: &[&TokenWithSpan], text: &str) -> Option<Problem> {
    const KEYWORDS: [&str; 14] = [
        "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "JOIN", "LEFT", "INNER", "UNION", "SELECT", "BETWEEN",
        "AND", "ON",
    ];
    before.iter().rev().take(3).find_map(|token| {
        let Token::Word(word) = &token.token else { return None };
        let upper = word.value.to_ascii_uppercase();
        let is_near =
            |keyword: &&&str| keyword.len() > 2 && ***keyword != *upper && strsim::osa_distance(keyword, &upper) == 1;
        let keyword = KEYWORDS.iter().find(is_near)?;
        let problem = Problem::new(
            Code::SqlSyntax,
            format!("`{}` is not a keyword here", word.value),
            format!("Did you mean `{keyword}`?"),
        );
        Some(problem.at(offset_of(text, token.span.start), word.value.chars().count()))
    })
}

fn article(wanted: &str) -> String {
    match wanted {
        "an expression" | "an expression:" => "an expression".to_owned(),
        "identifier" => "a name".to_owned(),
        word if word.starts_with("a ") || word.starts_with("an ") => word.trim_end_matches(':').to_owned(),
        word if word.contains(' ') => word.to_owned(),
        word => format!("`{word}`"),
    }
}

pub(super) fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
