//! Reads an author's SQL into a [`Snippet`].
//!
//! In: a [`SqlText`] and its [`NameScope`]. Out: the snippet, or the [`Problem`]s found. An error without problems
//! means that an item that the SQL refers to has been reported already. Braces become stand-ins among the parser's
//! tokens, so strings and comments are never mistaken for references. The tree is walked (`walk`), printed, and split
//! at the stand-ins. Frequent forms with a single name do not need the parser.

use sqlparser::dialect::Dialect;
use sqlparser::keywords::{ALL_KEYWORDS, Keyword};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::scope::{NameScope, Place, Target};
use super::walk::Walk;
use super::{ColumnName, Snippet, SqlPart, UserPart, UserValue};
use crate::diagnostic::Code;
use crate::project::SqlText;
use crate::snippet::calls::read_as_engine;
use crate::snippet::grammar::{Problem, balanced, is_space, is_unseen, offset_of, tokenize, unseen};
use crate::snippet::parser_error::explain;
use crate::snippet::stand_in::{END, REFERENCE};
use crate::text::nearest::likely;

const MAX_SNIPPET_BYTES: usize = 64 * 1024;
/// The largest number of tokens of one expression. A tree is as deep as its longest chain of operators, and the stack
/// is finite.
const MAX_TOKENS: usize = 3_000;
const MAX_DEPTH: usize = 60;

/// One `{…}` of an author's SQL.
pub(super) struct Braces {
    pub(super) target: Target,
    pub(super) source: String,
    pub(super) offset: usize,
}

pub(super) fn read(sql: &SqlText, scope: NameScope<'_>, dialect: &dyn Dialect) -> Result<Snippet, Vec<Problem>> {
    let text = &*sql.text;
    if let Some(outcome) = one_name(text.trim(), scope) {
        return outcome.map_err(|problem| {
            let lead = text.len() - text.trim_start().len();
            problem.map(|problem| problem.at(lead, text.trim().chars().count()).narrowed(text)).into_iter().collect()
        });
    }
    if text.len() > MAX_SNIPPET_BYTES {
        let message = format!("the expression has {} bytes", text.len());
        return Err(vec![Problem::new(Code::SqlTooLong, message, "Move it into the cube's `sql` or a model.")]);
    }
    if let Some(at) = text.find(|c| ('\u{E000}'..='\u{F8FF}').contains(&c)) {
        let problem = Problem::new(Code::SqlSyntax, "this character has no meaning in SQL", "Remove it.");
        return Err(vec![problem.at(at, 1)]);
    }
    if let Some(at) = text.find("${") {
        let rest: String = text[at + 1..].chars().take_while(|c| *c != '}').collect();
        let problem =
            Problem::new(Code::SqlSyntax, "`$` before a brace has no meaning here", format!("Write `{rest}}}`."));
        return Err(vec![problem.at(at, 1)]);
    }
    let tokens = tokenize(text, dialect).map_err(|problem| vec![problem])?;
    check_tokens(&tokens, text).map_err(|problem| vec![problem])?;
    let unbalanced = balanced(&tokens, text).err();
    let (tokens, braces) = match (unbalanced, resolve_braces(tokens, text, scope)) {
        (None, resolved) => resolved?,
        (Some(problem), Ok(_)) => return Err(vec![problem]),
        (Some(problem), Err(others)) => return Err(std::iter::once(problem).chain(others).collect()),
    };
    // Only messages need these tokens, since the parser consumes `tokens`.
    let source_tokens = || -> Result<Vec<TokenWithSpan>, Vec<Problem>> {
        let again = tokenize(text, dialect).map_err(|problem| vec![problem])?;
        Ok(resolve_braces(again, text, scope)?.0)
    };
    let mut parser = Parser::new(dialect).with_recursion_limit(MAX_DEPTH).with_tokens_with_locations(tokens);
    let readable = |message: &str| put_back(message, &braces);
    let mut expr = match parser.parse_expr() {
        Ok(expr) => expr,
        Err(error) => return Err(vec![explain(&error, text, &source_tokens()?, readable)]),
    };
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        let tokens = source_tokens()?;
        if let Some(error) = case_error(&tokens, dialect) {
            return Err(vec![explain(&error, text, &tokens, readable)]);
        }
        let found = readable(&rest.token.to_string());
        let problem = Problem::new(
            Code::SqlSyntax,
            format!("unexpected `{found}` after the end of the expression"),
            if found == "," {
                "Write one expression, and define another member for the second one.".to_owned()
            } else {
                format!("Write an operator such as AND or OR before `{found}`, or remove `{found}`.")
            },
        );
        return Err(vec![problem.at(offset_of(text, rest.span.start), found.chars().count())]);
    }
    read_as_engine(&mut expr, dialect);
    let mut walk = Walk::new(scope, dialect, &braces, text);
    walk.expression(&mut expr);
    walk.finish(&expr)
}

/// Returns the error inside a CASE. The parser reads a broken CASE as a column named `case`.
fn case_error(tokens: &[TokenWithSpan], dialect: &dyn Dialect) -> Option<ParserError> {
    let is_case = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::CASE);
    let cases = tokens.iter().enumerate().rev().filter(|(_, token)| is_case(token)).take(20);
    cases.map(|(at, _)| at).find_map(|at| {
        let rest = tokens[at + 1..].to_vec();
        Parser::new(dialect).with_recursion_limit(MAX_DEPTH).with_tokens_with_locations(rest).parse_case_expr().err()
    })
}

/// Reads `amount`, `{orders}.amount`, `{status}` and `{customers.region}` without the parser.
fn one_name(text: &str, scope: NameScope<'_>) -> Option<Result<Snippet, Option<Problem>>> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let is_column =
        |name: &str| is_name(name) && ALL_KEYWORDS.binary_search(&name.to_ascii_uppercase().as_str()).is_err();
    let single = |part| Ok(Snippet { parts: vec![part], is_atomic: true, is_infallible: true, has_query: false });
    let column =
        |cube, name: &str| single(SqlPart::Column { cube, name: ColumnName { text: name.into(), quoted: false } });
    if is_column(text) {
        let is_bare_allowed = !matches!(scope.place, Place::Number | Place::Metric);
        return scope.cube.filter(|_| is_bare_allowed).map(|cube| column(cube, text));
    }
    let (reference, rest) = text.strip_prefix('{')?.split_once('}')?;
    let rest = match rest {
        "" => None,
        rest => Some(rest.strip_prefix('.').filter(|rest| is_column(rest))?),
    };
    let target = match reference.split_once('.') {
        None if is_name(reference) => scope.name(reference, rest.is_some()),
        Some((cube, member)) if is_name(cube) && is_name(member) && rest.is_none() => scope.member_of(cube, member),
        _ => return None,
    };
    Some(match (target, rest) {
        (Err(problem), _) => Err(problem),
        (Ok(Target::Cube(cube)), Some(name)) if scope.place != Place::Number => column(cube, name),
        (Ok(Target::Part(part)), None) => single(part),
        _ => return None,
    })
}

fn check_tokens(tokens: &[TokenWithSpan], text: &str) -> Result<(), Problem> {
    let mut words = tokens.iter().filter(|token| !is_space(token));
    let Some(first) = words.next() else {
        return Err(Problem::new(Code::SqlEmpty, "the expression is empty", "Write a column or an expression."));
    };
    if words.count() > MAX_TOKENS {
        let message = "the expression is too long";
        return Err(Problem::new(Code::SqlTooLong, message, "Move it into the cube's `sql` or a model."));
    }
    // A word in quotes is a column's name, even if it is a keyword.
    if let Token::Word(word) = &first.token
        && word.quote_style.is_none()
    {
        let word = word.value.to_ascii_uppercase();
        let statements = [
            "SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "DROP", "CREATE", "ALTER", "ATTACH", "COPY", "WHERE", "SET",
        ];
        if statements.contains(&word.as_str()) {
            let message = format!("expected an expression, found the statement `{word}`");
            let hint = match word.as_str() {
                "WHERE" => {
                    let rest = text.trim_start()[word.len()..].trim();
                    format!("Write only the condition: `{rest}`.")
                }
                "SELECT" | "WITH" => {
                    "Write the query in the cube's `sql`, or, if it returns one value, in parentheses: `(SELECT …)`."
                        .to_owned()
                }
                _ => "Write an expression over columns. A project contains no statements.".to_owned(),
            };
            let at = offset_of(text, first.span.start);
            return Err(Problem::new(Code::SqlNotAnExpression, message, hint).at(at, word.len()));
        }
    }
    if let Some(token) = tokens.iter().find(|token| is_unseen(token)) {
        return Err(unseen(token, text));
    }
    match tokens.iter().find(|token| token.token == Token::SemiColon) {
        Some(token) => {
            let problem =
                Problem::new(Code::SqlStatements, "a `;` ends a statement", "Write one expression, without `;`.");
            Err(problem.at(offset_of(text, token.span.start), 1))
        }
        None => Ok(()),
    }
}

/// Replaces `{…}` with stand-ins. Each reference that cannot be resolved is a problem of its own.
fn resolve_braces(
    mut tokens: Vec<TokenWithSpan>,
    text: &str,
    scope: NameScope<'_>,
) -> Result<(Vec<TokenWithSpan>, Vec<Braces>), Vec<Problem>> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut braces: Vec<Braces> = Vec::new();
    let mut problems = Vec::new();
    let mut is_broken = false;
    // For each open parenthesis, true if it encloses the rows of an aggregation, which a `number` measure may contain.
    let mut calls: Vec<bool> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        match &token.token {
            Token::LParen => {
                let before = out.iter().rev().find(|token| !is_space(token));
                let is_aggregate = before.is_some_and(|token| match &token.token {
                    Token::Word(word) => crate::snippet::aggregate::is_aggregate(&word.value) || is_filter_where(word),
                    _ => false,
                });
                calls.push(is_aggregate);
            }
            Token::RParen => {
                calls.pop();
            }
            _ => {}
        }
        if token.token != Token::LBrace {
            if scope.place == Place::Policy
                && let Some(problem) = quoted_value(token, text)
            {
                problems.push(problem);
            }
            // The token is moved, because nothing reads it afterwards.
            out.push(std::mem::replace(&mut tokens[at], TokenWithSpan::wrap(Token::EOF)));
            at += 1;
            continue;
        }
        let offset = offset_of(text, token.span.start);
        if scope.place == Place::Policy && tokens.get(at + 1).is_some_and(|next| next.token == Token::LBrace) {
            match user_value(&tokens[at..], &out, text) {
                Ok((part, source, used)) => {
                    // Authors write `IN {{ … }}` without parentheses, but SQL requires parentheses around a list.
                    let is_bare = last_word(&out).is_some_and(|word| word.eq_ignore_ascii_case("in"));
                    let stand_in = Token::make_word(&format!("{REFERENCE}{}{END}", braces.len()), None);
                    let wrapped = [Token::LParen, stand_in, Token::RParen];
                    let tokens = if is_bare { &wrapped[..] } else { &wrapped[1..2] };
                    out.extend(tokens.iter().map(|t| TokenWithSpan::new(t.clone(), token.span)));
                    braces.push(Braces { target: Target::Part(part), source, offset });
                    at += used;
                    continue;
                }
                Err(problem) => {
                    // The rest of the text may have further mistakes.
                    problems.push(problem);
                    at += closing(&tokens[at..]).unwrap_or(2);
                    continue;
                }
            }
        }
        let close = tokens[at..].iter().position(|token| token.token == Token::RBrace).map(|found| at + found);
        let Some(close) = close else {
            problems.push(
                Problem::new(Code::UnclosedBrace, "unclosed brace", unclosed_hint(&text[offset..])).at(offset, 1),
            );
            break;
        };
        let inside: Vec<&Token> = tokens[at + 1..close].iter().filter(|t| !is_space(t)).map(|t| &t.token).collect();
        let has_column = tokens.get(close + 1).is_some_and(|next| next.token == Token::Period);
        let inner = if calls.contains(&true) { NameScope { place: inner_place(scope.place), ..scope } } else { scope };
        let found = match inside.as_slice() {
            [Token::Word(name)] => inner.name(&name.value, has_column),
            [Token::Word(cube), Token::Period, Token::Word(member)] => inner.member_of(&cube.value, &member.value),
            _ => {
                let hint = "Write `{cube}.column`, `{member}`, `{cube.member}` or `{CUBE}.column`.";
                Err(Some(Problem::new(Code::UnknownReference, "expected a name in the braces", hint)))
            }
        };
        let end = offset_of(text, tokens[close].span.end);
        let source = text.get(offset..end).unwrap_or_default().to_owned();
        match found {
            Ok(target) => {
                let stand_in = format!("{REFERENCE}{}{END}", braces.len());
                out.push(TokenWithSpan::new(Token::make_word(&stand_in, None), token.span));
                braces.push(Braces { target, source, offset });
            }
            Err(problem) => {
                is_broken = true;
                problems.extend(problem.map(|problem| problem.at(offset, source.chars().count()).narrowed(text)));
            }
        }
        at = close + 1;
    }
    if is_broken || !problems.is_empty() { Err(problems) } else { Ok((out, braces)) }
}

/// Returns the number of tokens of `{{ … }}` at the start of `tokens`, if the first `}` is doubled.
fn closing(tokens: &[TokenWithSpan]) -> Option<usize> {
    let close = tokens.iter().position(|token| token.token == Token::RBrace)?;
    let is_doubled = tokens.get(close + 1).is_some_and(|next| next.token == Token::RBrace);
    is_doubled.then_some(close + 2)
}

fn unclosed_hint(rest: &str) -> String {
    let name: String = rest[1..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.')).collect();
    format!("Close it: `{{{}}}`.", if name.is_empty() { "name" } else { &name })
}

/// Returns the last word or operator.
fn last_word(out: &[TokenWithSpan]) -> Option<String> {
    out.iter().rev().find(|token| !is_space(token)).map(|token| token.token.to_string())
}

/// Reports a caller's value that is written in quotes. SQL would read it as a string of these characters.
fn quoted_value(token: &TokenWithSpan, text: &str) -> Option<Problem> {
    if matches!(token.token, Token::Whitespace(_)) {
        return None;
    }
    let source = token.token.to_string();
    let (before, rest) = source.split_once("{{")?;
    let (value, _) = rest.split_once("}}")?;
    if !value.trim().starts_with("user") {
        return None;
    }
    let message = format!("`{{{{{value}}}}}` is in quotes, where it is a string and not the caller's value");
    let hint = match before.chars().count() {
        0 | 1 => "Write it without quotes. The value is bound with the type that it is compared with.",
        _ => "Concatenate it with the string, as in `'EU-' || {{ user.attributes.code }}`.",
    };
    let at = offset_of(text, token.span.start);
    Some(Problem::new(Code::UserValueInQuotes, message, hint).at(at, source.chars().count()))
}

/// Reads `{{ user.attributes.region }}` at the start of `tokens`. Returns the part, its source, and its number of
/// tokens.
fn user_value(
    tokens: &[TokenWithSpan],
    before: &[TokenWithSpan],
    text: &str,
) -> Result<(SqlPart, String, usize), Problem> {
    const HINT: &str = "Write `{{ user.user_id }}`, `{{ user.email }}`, `{{ user.roles }}`, `{{ user.groups }}`, \
                        `{{ user.auth_method }}` or `{{ user.attributes.<name> }}`.";
    let unclosed = || {
        let name: String = text
            .get(offset_of(text, tokens[0].span.start) + 2..)
            .unwrap_or_default()
            .trim()
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
            .collect();
        Problem::new(Code::UnclosedBrace, "unclosed braces", format!("Close them: `{{{{ {name} }}}}`."))
            .at(offset_of(text, tokens[0].span.start), 2)
    };
    let close = tokens.iter().position(|token| token.token == Token::RBrace).ok_or_else(unclosed)?;
    if tokens.get(close + 1).is_none_or(|next| next.token != Token::RBrace) {
        return Err(unclosed());
    }
    let inside: Vec<&TokenWithSpan> = tokens[2..close].iter().filter(|t| !is_space(t)).collect();
    let words: Vec<&str> = inside
        .iter()
        .filter_map(|token| match &token.token {
            Token::Word(word) => Some(word.value.as_str()),
            _ => None,
        })
        .collect();
    let unknown = || {
        let (Some(first), Some(last)) = (inside.first(), inside.last()) else {
            let problem = Problem::new(Code::UnknownReference, "expected a name in the braces", HINT);
            return problem.at(offset_of(text, tokens[0].span.start), 2);
        };
        let (from, to) = (offset_of(text, first.span.start), offset_of(text, last.span.end));
        let source = text.get(from..to).unwrap_or_default();
        let hint = match words.as_slice() {
            [_, "attributes" | "attribute" | "attrs", name] | ["user", name] | [name] => {
                let fixed = ["user_id", "email", "roles", "groups", "auth_method"];
                match likely(name, fixed).filter(|meant| strsim::osa_distance(name, meant) < 3) {
                    Some(meant) => format!("Did you mean `{{{{ user.{meant} }}}}`? {HINT}"),
                    None => format!("Did you mean `{{{{ user.attributes.{name} }}}}`? {HINT}"),
                }
            }
            _ => HINT.to_owned(),
        };
        let message = format!("unknown property of a caller `{source}`");
        Problem::new(Code::UnknownReference, message, hint).at(from, source.chars().count())
    };
    if words.len() * 2 != inside.len() + 1 || !inside.iter().skip(1).step_by(2).all(|t| t.token == Token::Period) {
        return Err(unknown());
    }
    let value = match words.as_slice() {
        ["user", "user_id" | "id"] => UserValue::Id,
        ["user", "email"] => UserValue::Email,
        ["user", "roles"] => UserValue::Roles,
        ["user", "groups"] => UserValue::Groups,
        ["user", "auth_method"] => UserValue::AuthMethod,
        ["user", "attributes", name] => UserValue::Attribute((*name).into()),
        _ => return Err(unknown()),
    };
    let is_in = |token: &TokenWithSpan| token.token.to_string().eq_ignore_ascii_case("in");
    let mut words_before = before.iter().rev().filter(|token| !is_space(token));
    let is_list = match words_before.next() {
        Some(token) if token.token == Token::LParen => words_before.next().is_some_and(is_in),
        token => token.is_some_and(is_in),
    };
    let start = offset_of(text, tokens[0].span.start);
    let end = offset_of(text, tokens[close + 1].span.end);
    Ok((
        SqlPart::User(UserPart { value, is_list, compared: None }),
        text.get(start..end).unwrap_or_default().to_owned(),
        close + 2,
    ))
}

fn inner_place(place: Place) -> Place {
    if place == Place::Number { Place::Measure } else { place }
}

/// Returns whether a word is the FILTER of `FILTER (WHERE …)`.
fn is_filter_where(word: &sqlparser::tokenizer::Word) -> bool {
    word.value.eq_ignore_ascii_case("filter")
}

/// Replaces the stand-ins in a message of the parser with the author's source.
pub(super) fn put_back(message: &str, braces: &[Braces]) -> String {
    let mut text = message.to_owned();
    for (index, reference) in braces.iter().enumerate() {
        text = text.replace(&format!("{REFERENCE}{index}{END}"), &reference.source);
    }
    text
}
