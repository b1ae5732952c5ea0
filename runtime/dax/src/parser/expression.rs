//! Parses expressions: operands, calls, table constructors, variables, and operators by precedence.
//!
//! Operators are reduced on a stack that the parser manages, so that only brackets and variable blocks recurse.

use super::{Keyword, MAX_NESTING, Parser};
use crate::lexer::{Symbol, TokenKind};
use crate::place::Place;
use crate::problem::{Expected, ProblemKind};
use crate::tree::{Expression, ExpressionKind, Literal, Name, Operator, Precedence, PrefixOperator};

/// An operator whose right operand was not read yet.
enum Waiting {
    Prefix(PrefixOperator, Place),
    Infix(Operator),
}

impl Waiting {
    fn precedence(&self) -> Precedence {
        match self {
            Waiting::Prefix(operator, _) => operator.precedence(),
            Waiting::Infix(operator) => operator.precedence(),
        }
    }
}

impl Parser {
    pub(super) fn expression(&mut self) -> Expression {
        if self.depth > MAX_NESTING || self.prefixes > MAX_NESTING {
            let place = self.place();
            self.stop(ProblemKind::TooDeep { limit: MAX_NESTING }, place);
            return Expression::invalid(place);
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
            if self.keyword() == Some(Keyword::Variable) { self.block() } else { self.operators() }
        })
    }

    fn block(&mut self) -> Expression {
        let start = self.place();
        let mut variables = Vec::new();
        self.depth += 1;
        while self.keyword() == Some(Keyword::Variable) {
            variables.extend(self.variable());
        }
        let result = if self.take_word("RETURN") {
            self.expression()
        } else {
            self.expected(Expected::Return);
            Expression::invalid(self.place())
        };
        self.depth -= 1;
        let place = start.to(self.place_before());
        Expression { kind: ExpressionKind::Block { variables, result: Box::new(result) }, place }
    }

    fn operators(&mut self) -> Expression {
        let (mut operands, mut waiting): (Vec<Expression>, Vec<Waiting>) = (Vec::new(), Vec::new());
        let outer_prefixes = self.prefixes;
        loop {
            while let Some(operator) = self.prefix_operator() {
                waiting.push(Waiting::Prefix(operator, self.place()));
                self.advance();
                self.prefixes += 1;
                if self.prefixes > MAX_NESTING {
                    // At this depth, `expression` reports the nesting and stops.
                    let refused = self.expression();
                    self.prefixes = outer_prefixes;
                    return refused;
                }
            }
            let operand = self.operand();
            operands.push(operand);
            let Some(operator) = self.infix_operator() else { break };
            while waiting.last().is_some_and(|last| last.precedence() >= operator.precedence()) {
                self.reduce(&mut operands, &mut waiting);
            }
            waiting.push(Waiting::Infix(operator));
        }
        while !waiting.is_empty() {
            self.reduce(&mut operands, &mut waiting);
        }
        self.prefixes = outer_prefixes;
        operands.pop().unwrap_or_else(|| Expression::invalid(self.place()))
    }

    fn reduce(&mut self, operands: &mut Vec<Expression>, waiting: &mut Vec<Waiting>) {
        match (waiting.pop(), operands.pop()) {
            (Some(Waiting::Prefix(operator, place)), Some(operand)) => {
                self.prefixes = self.prefixes.saturating_sub(1);
                let place = place.to(operand.place);
                let kind = ExpressionKind::Prefix { operator, operand: Box::new(operand) };
                operands.push(Expression { kind, place });
            }
            (Some(Waiting::Infix(operator)), Some(right)) => {
                if let Some(left) = operands.pop() {
                    operands.push(chained(left, operator, right));
                }
            }
            _ => {}
        }
    }

    fn prefix_operator(&self) -> Option<PrefixOperator> {
        match self.kind() {
            TokenKind::Symbol(Symbol::Minus) => Some(PrefixOperator::Minus),
            TokenKind::Symbol(Symbol::Plus) => Some(PrefixOperator::Plus),
            TokenKind::Symbol(Symbol::Not) => Some(PrefixOperator::Not),
            TokenKind::Identifier(word) if word.eq_ignore_ascii_case("NOT") => Some(PrefixOperator::Not),
            _ => None,
        }
    }

    /// Consumes the current token if it is an infix operator, and returns the operator.
    fn infix_operator(&mut self) -> Option<Operator> {
        let operator = match self.kind() {
            TokenKind::Symbol(symbol) => match symbol {
                Symbol::Caret => Operator::Power,
                Symbol::Star => Operator::Multiply,
                Symbol::Slash => Operator::Divide,
                Symbol::Plus => Operator::Add,
                Symbol::Minus => Operator::Subtract,
                Symbol::Ampersand => Operator::Concatenate,
                Symbol::Equal => Operator::Equal,
                Symbol::StrictEqual => Operator::StrictEqual,
                Symbol::NotEqual => Operator::NotEqual,
                Symbol::Less => Operator::Less,
                Symbol::LessOrEqual => Operator::LessOrEqual,
                Symbol::Greater => Operator::Greater,
                Symbol::GreaterOrEqual => Operator::GreaterOrEqual,
                Symbol::And => Operator::And,
                Symbol::Or => Operator::Or,
                _ => return None,
            },
            TokenKind::Identifier(word) if word.eq_ignore_ascii_case("IN") => Operator::In,
            TokenKind::Identifier(word) => {
                let second_is_operand = !matches!(self.kind_after(1), TokenKind::Symbol(_) | TokenKind::End);
                let is_not_in = word.eq_ignore_ascii_case("NOT")
                    && self.word_after(1).is_some_and(|w| w.eq_ignore_ascii_case("IN"));
                let operator = match &**word {
                    _ if is_not_in => "NOT IN",
                    word if word.eq_ignore_ascii_case("AND") && second_is_operand => "AND",
                    word if word.eq_ignore_ascii_case("OR") && second_is_operand => "OR",
                    _ => return None,
                };
                self.problem(ProblemKind::ForeignOperator { operator }, self.place());
                if is_not_in {
                    self.advance();
                    Operator::In
                } else if operator == "AND" {
                    Operator::And
                } else {
                    Operator::Or
                }
            }
            _ => return None,
        };
        self.advance();
        Some(operator)
    }

    fn operand(&mut self) -> Expression {
        let place = self.place();
        let kind = match self.kind().clone() {
            TokenKind::Number(number) => ExpressionKind::Literal(Literal::Number(number)),
            TokenKind::Text(text) => ExpressionKind::Literal(Literal::Text(text)),
            TokenKind::Date(date) => ExpressionKind::Literal(Literal::Date(date)),
            TokenKind::Parameter(name) => ExpressionKind::Parameter(name),
            TokenKind::Bracketed(text) => {
                self.advance();
                return self.member(None, Name { text, is_quoted: false, place }, place);
            }
            TokenKind::QuotedName(text) => {
                self.advance();
                return self.after_name(Name { text, is_quoted: true, place });
            }
            TokenKind::Symbol(Symbol::OpenParenthesis) => return self.parenthesis(),
            TokenKind::Symbol(Symbol::OpenBrace) => return self.rows(),
            TokenKind::Identifier(text) if self.keyword().is_none() => {
                self.advance();
                return self.after_name(Name { text, is_quoted: false, place });
            }
            TokenKind::Invalid => {
                self.advance();
                return Expression::invalid(place);
            }
            _ => {
                self.expected(Expected::Expression);
                self.pass_unexpected();
                return Expression::invalid(place);
            }
        };
        self.advance();
        Expression { kind, place }
    }

    /// Skips the current token, unless an enclosing part of the query can continue with it.
    fn pass_unexpected(&mut self) {
        let is_awaited = matches!(
            self.kind(),
            TokenKind::End
                | TokenKind::Symbol(Symbol::Comma | Symbol::CloseParenthesis | Symbol::CloseBrace | Symbol::Semicolon)
        );
        if !is_awaited && self.keyword().is_none() {
            self.advance();
        }
    }

    /// Parses the part after a name: a column in brackets, arguments, or nothing.
    fn after_name(&mut self, name: Name) -> Expression {
        let (place, next) = (name.place, self.place());
        match self.kind().clone() {
            TokenKind::Bracketed(text) => {
                self.advance();
                self.member(Some(name), Name { text, is_quoted: false, place: next }, place)
            }
            TokenKind::Symbol(Symbol::OpenParenthesis) if !name.is_quoted => self.call(name),
            _ => {
                let is = |word: &str| !name.is_quoted && name.text.eq_ignore_ascii_case(word);
                let kind = if is("TRUE") || is("FALSE") {
                    ExpressionKind::Literal(Literal::Boolean(is("TRUE")))
                } else {
                    ExpressionKind::Name(name)
                };
                Expression { kind, place }
            }
        }
    }

    fn member(&mut self, table: Option<Name>, name: Name, start: Place) -> Expression {
        let place = start.to(name.place);
        if self.is_symbol(Symbol::Dot) && matches!(self.kind_after(1), TokenKind::Bracketed(_)) {
            self.advance();
            let construct = "variation of a column".into();
            self.problem(ProblemKind::NotSupported { construct }, place.to(self.place()));
            self.advance();
            return Expression::invalid(place);
        }
        Expression { kind: ExpressionKind::Member { table, name }, place }
    }

    fn call(&mut self, function: Name) -> Expression {
        let open = self.place();
        self.advance();
        let start = function.place;
        let mut arguments = Vec::new();
        if !self.take_symbol(Symbol::CloseParenthesis) {
            arguments = self.list(open, Symbol::CloseParenthesis, true);
        }
        let place = start.to(self.place_before());
        Expression { kind: ExpressionKind::Call { function, arguments }, place }
    }

    /// Parses expressions, separated by commas, up to a closing bracket.
    fn list(&mut self, open: Place, close: Symbol, allows_omitted: bool) -> Vec<Expression> {
        let mut items = Vec::new();
        let mut has_semicolons = false;
        self.depth += 1;
        loop {
            let place = self.place();
            let is_separator = self.is_symbol(Symbol::Comma) || self.is_symbol(Symbol::Semicolon) && has_semicolons;
            if allows_omitted && (is_separator || self.is_symbol(close)) {
                items.push(Expression { kind: ExpressionKind::Omitted, place });
            } else {
                let item = self.expression();
                items.push(item);
            }
            if !self.is_symbol(Symbol::Comma) && !self.is_symbol(close) && !self.separates_by_semicolon() {
                self.pass_to_separator(open, close);
            }
            if self.take_symbol(Symbol::Comma) {
                continue;
            }
            if self.separates_by_semicolon() {
                if !has_semicolons {
                    self.problem(ProblemKind::SemicolonInList, self.place());
                }
                has_semicolons = true;
                self.advance();
                continue;
            }
            self.take_symbol(close);
            break;
        }
        self.depth -= 1;
        items
    }

    /// Returns whether the current token is a semicolon that does not end the query, because a part of an expression
    /// follows.
    fn separates_by_semicolon(&self) -> bool {
        let ends_after = match self.kind_after(1) {
            TokenKind::End => true,
            TokenKind::Identifier(_) => self.keyword_after(1).is_some(),
            _ => false,
        };
        self.is_symbol(Symbol::Semicolon) && !ends_after
    }

    /// Reports the current token, which is neither a comma nor the closing bracket, and skips to the next comma or
    /// closing bracket.
    fn pass_to_separator(&mut self, open: Place, close: Symbol) {
        let ends = |parser: &Parser| parser.is_at_end() || parser.keyword().is_some();
        if ends(self) || self.is_symbol(Symbol::Semicolon) {
            if *self.kind() != TokenKind::Invalid {
                self.problem(ProblemKind::UnclosedBracket { close: close.as_str() }, open);
            }
            return;
        }
        let starts_operand = !matches!(self.kind(), TokenKind::Symbol(symbol) if !matches!(symbol,
            Symbol::OpenParenthesis | Symbol::OpenBrace | Symbol::Not));
        self.expected(if starts_operand { Expected::Comma } else { Expected::CommaOrClose(close.as_str()) });
        let mut brackets = 0usize;
        while !ends(self) && *self.kind() != TokenKind::Symbol(Symbol::Semicolon) {
            match self.kind() {
                TokenKind::Symbol(Symbol::OpenParenthesis | Symbol::OpenBrace) => brackets += 1,
                TokenKind::Symbol(Symbol::Comma) if brackets == 0 => return,
                TokenKind::Symbol(Symbol::CloseParenthesis | Symbol::CloseBrace) => match brackets.checked_sub(1) {
                    Some(fewer) => brackets = fewer,
                    None => return,
                },
                _ => {}
            }
            self.advance();
        }
    }

    fn parenthesis(&mut self) -> Expression {
        let open = self.place();
        self.advance();
        let mut values = self.list(open, Symbol::CloseParenthesis, false);
        let place = open.to(self.place_before());
        match (values.len(), values.pop()) {
            // The tree has no node for parentheses, but the place of the expression includes them.
            (1, Some(value)) => Expression { place, ..value },
            (_, last) => {
                values.extend(last);
                Expression { kind: ExpressionKind::Tuple(values), place }
            }
        }
    }

    fn rows(&mut self) -> Expression {
        let open = self.place();
        self.advance();
        let rows = if self.is_symbol(Symbol::CloseBrace) {
            self.expected(Expected::Row);
            self.advance();
            Vec::new()
        } else {
            self.list(open, Symbol::CloseBrace, false)
        };
        let place = open.to(self.place_before());
        Expression { kind: ExpressionKind::Rows(rows), place }
    }
}

/// Adds an operator and its right operand to the chain on the left if the chain has the operator's precedence.
/// Otherwise starts a new chain.
fn chained(left: Expression, operator: Operator, right: Expression) -> Expression {
    let place = left.place.to(right.place);
    let precedence = left.precedence();
    let kind = match left.kind {
        ExpressionKind::Chain { first, mut rest } if precedence == operator.precedence() => {
            rest.push((operator, right));
            ExpressionKind::Chain { first, rest }
        }
        kind => {
            let first = Box::new(Expression { kind, place: left.place });
            ExpressionKind::Chain { first, rest: vec![(operator, right)] }
        }
    };
    Expression { kind, place }
}
