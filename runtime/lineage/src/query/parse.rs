//! Parses SQL to a syntax tree, within limits.
//!
//! In: SQL of any length. Out: one query, or the reason why its lineage is not computed. Parsing and dropping a tree
//! are recursive, so tokens and levels are counted before parsing. Not here: messages about invalid SQL;
//! `model::relation` reports them.

use sqlparser::ast::{Query, Statement};
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::arena::Reason;
use terrane_compiler::snippet::calls::read_as_engine;
use terrane_compiler::snippet::{is_space, tokenize};

const MAX_BYTES: usize = 256 * 1024;
const MAX_TOKENS: usize = 4_000;
/// The deepest nesting of brackets, and of chained joins whose conditions all follow the last join.
const MAX_LEVELS: usize = 40;
const MAX_RECURSION: usize = 60;

pub(super) fn query(text: &str, dialect: &dyn Dialect) -> Result<Box<Query>, Reason> {
    let mut parser = parser(text, dialect)?;
    match parser.parse_statement().map_err(|error| reason(&error))? {
        Statement::Query(mut query) if parser.peek_token_ref().token == Token::EOF => {
            read_as_engine(&mut *query, dialect);
            Ok(query)
        }
        _ => Err(Reason::NotFollowed("a statement other than a query")),
    }
}

fn parser<'d>(text: &str, dialect: &'d dyn Dialect) -> Result<Parser<'d>, Reason> {
    if text.len() > MAX_BYTES {
        return Err(Reason::TooLarge);
    }
    let tokens = tokenize(text, dialect).map_err(|problem| Reason::NotParsed(problem.message))?;
    let last = tokens.iter().rposition(|token| !is_space(token) && token.token != Token::SemiColon);
    let tokens = &tokens[..last.map_or(0, |last| last + 1)];
    let nests_joins = !dialect.supports_left_associative_joins_without_parens();
    if tokens.iter().filter(|token| !is_space(token)).count() > MAX_TOKENS || levels(tokens, nests_joins) > MAX_LEVELS {
        return Err(Reason::TooLarge);
    }
    Ok(Parser::new(dialect).with_recursion_limit(MAX_RECURSION).with_tokens_with_locations(tokens.to_vec()))
}

/// Returns the nesting depth that the parser may reach: brackets, and in some grammars chains such as
/// `a JOIN b JOIN c … ON … ON …`.
fn levels(tokens: &[TokenWithSpan], nests_joins: bool) -> usize {
    let (mut open, mut joins, mut most) = (0usize, 0usize, 0usize);
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => open += 1,
            Token::RParen | Token::RBracket | Token::RBrace => open = open.saturating_sub(1),
            Token::Word(word) => match word.keyword {
                Keyword::JOIN => joins += 1,
                Keyword::CROSS | Keyword::NATURAL => joins = joins.saturating_sub(1),
                Keyword::ON | Keyword::USING | Keyword::SELECT => joins = 0,
                _ => {}
            },
            _ => {}
        }
        most = most.max(open).max(if nests_joins { joins } else { 0 });
    }
    most
}

fn reason(error: &ParserError) -> Reason {
    match error {
        ParserError::RecursionLimitExceeded => Reason::TooLarge,
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
            let message = message.rsplit_once(" at Line: ").map_or(message.as_str(), |(message, _)| message);
            Reason::NotParsed(message.to_owned())
        }
    }
}
