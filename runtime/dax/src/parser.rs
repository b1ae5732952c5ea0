//! Parses queries and expressions.
//!
//! In: text. Out: a tree, and every problem of the text in one run. A part that cannot be parsed becomes
//! [`ExpressionKind::Invalid`], and parsing continues after it. Brackets nest at most [`MAX_NESTING`] levels deep.
//! Parsing stops with a problem at a deeper level.

mod expression;

use std::collections::HashSet;
use std::sync::Arc;

use crate::lexer::{Symbol, Token, TokenKind, tokens};
use crate::place::Place;
use crate::problem::{Expected, MAX_PROBLEMS, Problem, ProblemKind};
use crate::tree::{Definition, Evaluation, Expression, ExpressionKind, Name, OrderKey, Query, Variable};

/// The largest number of nested brackets, and of prefix operators before an operand.
pub const MAX_NESTING: usize = 200;

/// A tree, and the problems of its text. If there are no problems, the tree has no invalid nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed<T> {
    pub tree: T,
    pub problems: Vec<Problem>,
}

/// Parses a query: definitions, then at least one `EVALUATE`.
pub fn parse_query(text: &str) -> Parsed<Query> {
    let mut parser = Parser::new(text);
    let tree = parser.query();
    parser.finish(tree)
}

/// Parses one expression.
pub fn parse_expression(text: &str) -> Parsed<Expression> {
    let mut parser = Parser::new(text);
    let tree = parser.expression();
    if !parser.is_at_end() {
        parser.expected(Expected::EndOfExpression);
    }
    parser.finish(tree)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    problems: Vec<Problem>,
    /// The number of brackets and variable blocks that are open.
    depth: usize,
    /// The number of prefix operators whose operands were not read yet.
    prefixes: usize,
    /// True after a problem that causes the rest of the text to be skipped.
    is_stopped: bool,
}

/// The words that begin a part of a query, in upper case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keyword {
    Define,
    Evaluate,
    Measure,
    Variable,
    Return,
    OrderBy,
    StartAt,
    Unsupported(&'static str),
}

impl Parser {
    fn new(text: &str) -> Self {
        let (tokens, problems) = tokens(text);
        let is_stopped = problems.iter().any(|problem| matches!(problem.kind, ProblemKind::TooLong { .. }));
        Parser { tokens, at: 0, problems, depth: 0, prefixes: 0, is_stopped }
    }

    fn finish<T>(mut self, tree: T) -> Parsed<T> {
        self.problems.sort_by_key(|problem| problem.place);
        // Several problems at one place have the first one as their cause.
        let mut seen = HashSet::new();
        self.problems.retain(|problem| seen.insert(problem.place.start));
        Parsed { tree, problems: self.problems }
    }

    // Tokens

    fn kind(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn kind_after(&self, tokens: usize) -> &TokenKind {
        let at = (self.at + tokens).min(self.tokens.len() - 1);
        &self.tokens[at].kind
    }

    fn place(&self) -> Place {
        self.tokens[self.at].place
    }

    /// Returns the place of the previous token.
    fn place_before(&self) -> Place {
        self.tokens[self.at.saturating_sub(1)].place
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn is_at_end(&self) -> bool {
        *self.kind() == TokenKind::End
    }

    fn is_symbol(&self, symbol: Symbol) -> bool {
        *self.kind() == TokenKind::Symbol(symbol)
    }

    fn take_symbol(&mut self, symbol: Symbol) -> bool {
        let is_next = self.is_symbol(symbol);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn word_after(&self, tokens: usize) -> Option<&str> {
        match self.kind_after(tokens) {
            TokenKind::Identifier(name) => Some(name),
            _ => None,
        }
    }

    fn is_word(&self, word: &str) -> bool {
        self.word_after(0).is_some_and(|found| found.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Returns the keyword at this token. Except for EVALUATE, DEFINE and RETURN, a word is a keyword only if the next
    /// token fits; otherwise it is a name.
    fn keyword(&self) -> Option<Keyword> {
        self.keyword_after(0)
    }

    /// Returns the keyword at the token that is this number of tokens after the current one.
    fn keyword_after(&self, tokens: usize) -> Option<Keyword> {
        let word = self.word_after(tokens)?;
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let second_is =
            |name: &str| self.word_after(tokens + 1).is_some_and(|second| second.eq_ignore_ascii_case(name));
        let names_a_table = matches!(self.kind_after(tokens + 1), TokenKind::Identifier(_) | TokenKind::QuotedName(_));
        if is("EVALUATE") {
            Some(Keyword::Evaluate)
        } else if is("DEFINE") {
            Some(Keyword::Define)
        } else if is("RETURN") {
            Some(Keyword::Return)
        } else if is("VAR") && names_a_table {
            Some(Keyword::Variable)
        } else if is("MEASURE") && (names_a_table || matches!(self.kind_after(tokens + 1), TokenKind::Bracketed(_))) {
            Some(Keyword::Measure)
        } else if is("ORDER") && second_is("BY") {
            Some(Keyword::OrderBy)
        } else if is("START") && second_is("AT") {
            Some(Keyword::StartAt)
        } else if names_a_table {
            let unsupported = ["TABLE", "COLUMN", "FUNCTION", "MPARAMETER"];
            unsupported.into_iter().find(|name| is(name)).map(Keyword::Unsupported)
        } else {
            None
        }
    }

    // Problems

    fn problem(&mut self, kind: ProblemKind, place: Place) {
        // After parsing has stopped, parts that seem to be missing are not mistakes of the author.
        if !self.is_stopped && self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { kind, place });
        }
    }

    /// Reports that the current token is not the expected one, unless the lexer has reported the token.
    fn expected(&mut self, expected: Expected) {
        let place = self.place();
        let found: Option<Arc<str>> = match self.kind() {
            TokenKind::Invalid => return,
            TokenKind::End => None,
            kind => Some(described(kind).into()),
        };
        self.problem(ProblemKind::Expected { expected, found }, place);
    }

    /// Reports a problem, and skips the rest of the text.
    fn stop(&mut self, kind: ProblemKind, place: Place) {
        self.problem(kind, place);
        self.is_stopped = true;
        self.at = self.tokens.len() - 1;
    }

    // Queries

    fn query(&mut self) -> Query {
        let mut query = Query::default();
        loop {
            match self.keyword() {
                _ if self.take_symbol(Symbol::Semicolon) => {}
                Some(Keyword::Evaluate) => {
                    let evaluation = self.evaluation();
                    query.evaluations.push(evaluation);
                }
                Some(Keyword::Define) => {
                    if let (false, place) = (query.evaluations.is_empty(), self.place()) {
                        self.problem(ProblemKind::DefineAfterEvaluate, place);
                    }
                    self.advance();
                    self.definitions(&mut query.definitions);
                }
                _ if self.is_at_end() => break,
                _ => {
                    let expected = if query.evaluations.is_empty() { Expected::Query } else { Expected::EndOfQuery };
                    self.expected(expected);
                    self.advance();
                    self.skip(|parser| matches!(parser.keyword(), Some(Keyword::Evaluate | Keyword::Define)));
                }
            }
        }
        if query.evaluations.is_empty() && self.problems.is_empty() {
            self.expected(Expected::Evaluate);
        }
        query
    }

    /// Skips tokens until `is_end` holds outside brackets, or until the text ends.
    fn skip(&mut self, is_end: impl Fn(&Parser) -> bool) {
        while !self.is_at_end() && !is_end(self) {
            self.advance();
        }
    }

    fn definitions(&mut self, definitions: &mut Vec<Definition>) {
        let before = definitions.len();
        let mut unsupported = false;
        loop {
            match self.keyword() {
                Some(Keyword::Measure) => definitions.extend(self.measure()),
                Some(Keyword::Variable) => {
                    if let Some(variable) = self.variable() {
                        definitions.push(Definition::Variable(variable));
                    }
                }
                Some(Keyword::Unsupported(name)) => {
                    unsupported = true;
                    let construct = format!("DEFINE {name}");
                    self.problem(ProblemKind::NotSupported { construct: construct.into() }, self.place());
                    self.advance();
                    self.skip(|parser| {
                        matches!(
                            parser.keyword(),
                            Some(Keyword::Evaluate | Keyword::Measure | Keyword::Unsupported(_) | Keyword::Define)
                        )
                    });
                }
                Some(Keyword::Evaluate | Keyword::Define) => break,
                _ if self.is_at_end() => break,
                _ if self.take_symbol(Symbol::Semicolon) => {}
                _ => {
                    self.expected(Expected::Definition);
                    self.advance();
                    self.skip(|parser| {
                        matches!(
                            parser.keyword(),
                            Some(Keyword::Evaluate | Keyword::Measure | Keyword::Variable | Keyword::Define)
                        )
                    });
                }
            }
        }
        if definitions.len() == before && !unsupported {
            self.expected(Expected::Definition);
        }
    }

    fn measure(&mut self) -> Option<Definition> {
        self.advance();
        let Some(table) = self.name() else {
            self.expected(Expected::MeasureTable);
            // The rest of the definition is still checked.
            self.advance();
            if self.take_symbol(Symbol::Equal) {
                self.expression();
            }
            return None;
        };
        let place = self.place();
        let TokenKind::Bracketed(name) = self.kind().clone() else {
            self.expected(Expected::MeasureName);
            self.skip(|parser| parser.keyword().is_some());
            return None;
        };
        self.advance();
        let name = Name { text: name, is_quoted: false, place };
        let expression = self.value_of_definition();
        Some(Definition::Measure { table, name, expression })
    }

    fn variable(&mut self) -> Option<Variable> {
        self.advance();
        let name = match self.name() {
            Some(name) if !name.is_quoted => name,
            Some(name) => {
                self.problem(ProblemKind::QuotedVariable { name: Arc::clone(&name.text) }, name.place);
                name
            }
            None => {
                self.expected(Expected::VariableName);
                return None;
            }
        };
        let value = self.value_of_definition();
        Some(Variable { name, value })
    }

    fn value_of_definition(&mut self) -> Expression {
        if !self.take_symbol(Symbol::Equal) {
            self.expected(Expected::Equals);
            if self.keyword().is_some() || self.is_at_end() {
                return Expression::invalid(self.place());
            }
        }
        self.expression()
    }

    /// Takes a name of a table or a variable.
    fn name(&mut self) -> Option<Name> {
        let place = self.place();
        let (text, is_quoted) = match self.kind() {
            TokenKind::Identifier(text) => (Arc::clone(text), false),
            TokenKind::QuotedName(text) => (Arc::clone(text), true),
            _ => return None,
        };
        self.advance();
        Some(Name { text, is_quoted, place })
    }

    fn evaluation(&mut self) -> Evaluation {
        let start = self.place();
        self.advance();
        let table = self.expression();
        let place = start.to(self.place_before());
        self.end_of_clause();
        let mut evaluation = Evaluation { table, order: Vec::new(), start_at: Vec::new(), place };
        if self.takes_clause(Keyword::OrderBy, "ORDER", Expected::By) {
            loop {
                let expression = self.expression();
                let descending = self.take_word("DESC");
                if !descending {
                    self.take_word("ASC");
                }
                evaluation.order.push(OrderKey { expression, descending });
                if !self.take_symbol(Symbol::Comma) {
                    break;
                }
            }
            self.end_of_clause();
        }
        let place = self.place();
        if self.takes_clause(Keyword::StartAt, "START", Expected::At) {
            loop {
                let value = self.expression();
                evaluation.start_at.push(value);
                if !self.take_symbol(Symbol::Comma) {
                    break;
                }
            }
            if evaluation.order.is_empty() {
                self.problem(ProblemKind::StartWithoutOrder, place);
            } else if evaluation.start_at.len() > evaluation.order.len() {
                let (values, keys) = (evaluation.start_at.len(), evaluation.order.len());
                self.problem(ProblemKind::TooManyStartValues { values, keys }, place);
            }
            self.end_of_clause();
        }
        evaluation
    }

    /// Takes the two words at the start of a clause. If only the second one is missing, reports this and continues with
    /// the clause. Returns whether a clause starts here.
    fn takes_clause(&mut self, clause: Keyword, first: &str, second: Expected) -> bool {
        if self.keyword() == Some(clause) {
            self.advance();
            self.advance();
            return true;
        }
        let is_incomplete = self.is_word(first);
        if is_incomplete {
            self.advance();
            self.expected(second);
        }
        is_incomplete
    }

    /// Reports tokens between the end of a clause and the next clause.
    fn end_of_clause(&mut self) {
        let is_end = |parser: &Parser| {
            let keyword = parser.keyword();
            let starts = [Keyword::Evaluate, Keyword::Define, Keyword::OrderBy, Keyword::StartAt];
            let is_clause = keyword.is_some_and(|keyword| starts.contains(&keyword));
            is_clause || parser.is_word("ORDER") || parser.is_word("START") || parser.is_symbol(Symbol::Semicolon)
        };
        if !self.is_at_end() && !is_end(self) {
            self.expected(Expected::EndOfQuery);
            self.skip(is_end);
        }
    }
}

/// Returns a token in the form in which messages show it.
fn described(kind: &TokenKind) -> String {
    let short = terrane_compiler::text::shorten;
    match kind {
        TokenKind::Identifier(name) => format!("`{}`", short(name)),
        TokenKind::QuotedName(name) => format!("`'{}'`", short(name)),
        TokenKind::Bracketed(name) => format!("`[{}]`", short(name)),
        TokenKind::Number(_) => "a number".to_owned(),
        TokenKind::Text(_) => "a string".to_owned(),
        TokenKind::Date(_) => "a date".to_owned(),
        TokenKind::Parameter(name) => format!("`@{}`", short(name)),
        TokenKind::Symbol(symbol) => format!("`{}`", symbol.as_str()),
        TokenKind::Invalid | TokenKind::End => "the end of the text".to_owned(),
    }
}

/// Returns the name if the expression is only a name or a keyword without quotes.
pub(crate) fn bare_name(expression: &Expression) -> Option<&Name> {
    match &expression.kind {
        ExpressionKind::Name(name) if !name.is_quoted => Some(name),
        _ => None,
    }
}
