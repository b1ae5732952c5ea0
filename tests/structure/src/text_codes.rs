//! The public code that belongs to a literal of a source.
//!
//! In: the tokens of a source, the place of a literal, and the public codes. Out: the code that users see beside the
//! text; `None` if the source does not show one. The nearest evidence decides: the declaration of an error, the
//! statement, a helper function around the text, the arm of a match, the uses of a name for the text, the function, the
//! type of the error.

use std::ops::Range;

use crate::outline::{Outline, statement_end};
use crate::public_codes::{CodeKind, Helpers, PublicCodes, arm_body, is_arrow, pattern};
use crate::tokens::Token;

/// The number of tokens before and after a literal in which its code is searched for.
const WINDOW: usize = 60;

/// The largest number of functions from a literal to the code, through their callers.
const MAX_CALLERS: usize = 3;
/// The largest number of codes of one text. A literal with more codes is a part of many messages.
const MAX_CODES: usize = 4;

/// The source in which codes are searched for.
pub(crate) struct TextCodes<'a, 's> {
    pub(crate) tokens: &'a [Token<'s>],
    pub(crate) outline: &'a Outline<'s>,
    pub(crate) kind: CodeKind,
    pub(crate) codes: &'a PublicCodes,
    pub(crate) helpers: &'a Helpers,
}

impl<'s> TextCodes<'_, 's> {
    /// Returns the code of the text at a token.
    pub(crate) fn code(&self, at: usize) -> Option<String> {
        if attribute(self.tokens, at).is_some() {
            let (error, variant) = declared_variant(self.tokens, at)?;
            return self.codes.of_error(error, variant);
        }
        self.code_at(at, MAX_CALLERS)
    }

    /// Returns the code of the text or call at a token. `callers` is the number of callers that may lead to the code.
    fn code_at(&self, at: usize, callers: usize) -> Option<String> {
        let own = self.near(at).or_else(|| self.by_name(at)).or_else(|| self.around(at));
        own.or_else(|| self.of_callers(at, callers))
    }

    /// Returns the codes of the calls of the function that contains a literal, if the function is called in this source.
    fn of_callers(&self, at: usize, callers: usize) -> Option<String> {
        let callers = callers.checked_sub(1)?;
        let function = self.outline.functions_around(at).find(|function| !function.is_closure)?;
        let is_text = |token: &Token<'_>| matches!(token, Token::Word("String" | "str" | "Cow"));
        if !self.tokens[function.returns.clone()].iter().any(is_text) {
            return None;
        }
        let is_call = |at: &usize| {
            self.tokens[*at] == Token::Word(function.name)
                && self.tokens.get(at + 1) != Some(&Token::Symbol(':'))
                && !matches!(self.tokens[..*at], [.., Token::Word("fn")])
        };
        let calls = (0..self.tokens.len()).filter(is_call).filter(|at| !function.body.contains(at));
        joined(calls.filter_map(|call| self.code_at(call, callers)))
    }

    /// Returns the code of the statement, of a helper function that gets the text, or of the arm.
    fn near(&self, at: usize) -> Option<String> {
        let is_end = |token: &Token<'_>| matches!(token, Token::Symbol(';' | '{' | '}'));
        let behind = self.tokens[at..].iter().take(WINDOW).take_while(|token| !is_end(token)).count();
        let before = self.tokens[..at].iter().rev().take(WINDOW).take_while(|token| !is_end(token)).count();
        let body = arm(self.tokens, at).map_or(0..self.tokens.len(), |(_, body)| body);
        let statement = body.start.max(at - before)..body.end.min(at + behind);
        let named = named(self.tokens, statement).and_then(|code| self.codes.of_code(code, self.kind));
        named.or_else(|| self.of_calls(at)).or_else(|| self.of_pattern(at))
    }

    /// Returns the code of the variant in the pattern of the arm.
    fn of_pattern(&self, at: usize) -> Option<String> {
        match arm_pattern(self.tokens, at)? {
            ("Code" | "ErrorCode", variant) => self.codes.of_code(variant, self.kind),
            (error, variant) => self.codes.of_error(error, variant),
        }
    }

    /// Returns the code of the calls around a literal: of a helper function, or of a function of an error type.
    fn of_calls(&self, at: usize) -> Option<String> {
        calls(self.tokens, at).into_iter().find_map(|call| {
            let of_type = || match self.tokens[..call] {
                [.., Token::Word(error), Token::Symbol(':'), Token::Symbol(':')] => self.codes.of_type(error),
                _ => None,
            };
            self.codes.helper_code(self.tokens, call, self.kind, self.helpers).or_else(of_type)
        })
    }

    /// Returns the code of the uses of a variable or constant that contains a literal.
    fn by_name(&self, at: usize) -> Option<String> {
        if is_in_list(self.tokens, at) {
            return None;
        }
        let (name, end, is_constant) = binding(self.tokens, at)?;
        let scope = if is_constant { 0..self.tokens.len() } else { end..block_end(self.tokens, end) };
        let mut codes = Vec::new();
        for used in scope.filter(|used| self.tokens[*used] == Token::Word(name)) {
            let is_binding = used > 0 && matches!(self.tokens[used - 1], Token::Word("let" | "const" | "static"));
            if is_binding && !is_constant {
                break;
            }
            let of_arm = || if is_constant { None } else { self.of_arm(used) };
            if !is_binding && let Some(code) = self.near(used).or_else(of_arm) {
                codes.push(code);
            }
        }
        joined(codes)
    }

    /// Returns the code of the arm, the function, or the type of the error that contain a literal.
    fn around(&self, at: usize) -> Option<String> {
        self.of_arm(at).or_else(|| self.of_function(at)).or_else(|| {
            let implementation = self.outline.implementation_around(at)?;
            self.codes.of_type(implementation.target)
        })
    }

    /// Returns the only code that the arm around a token names.
    fn of_arm(&self, at: usize) -> Option<String> {
        match &self.codes.codes_in(self.tokens, arm(self.tokens, at)?.1, self.kind, self.helpers)[..] {
            [code] => Some(code.clone()),
            _ => None,
        }
    }

    /// Returns the code of a helper function that contains a token, or of the error type that the function returns.
    fn of_function(&self, at: usize) -> Option<String> {
        let function = self.outline.functions_around(at).find(|function| !function.is_closure)?;
        let of_error = |token: &Token<'_>| match token {
            Token::Word(error) => self.codes.of_type(error),
            _ => None,
        };
        let helper = self.helpers.code(function.name, function.body.start, self.kind);
        helper.or_else(|| self.tokens[function.returns.clone()].iter().find_map(of_error))
    }
}

/// Joins codes, each of which may be a list.
fn joined(codes: impl IntoIterator<Item = String>) -> Option<String> {
    let mut single: Vec<String> =
        codes.into_iter().flat_map(|code| code.split(", ").map(str::to_owned).collect::<Vec<_>>()).collect();
    single.sort();
    single.dedup();
    (1..=MAX_CODES).contains(&single.len()).then(|| single.join(", "))
}

/// Returns the name of the attribute that contains a token.
pub(crate) fn attribute<'s>(tokens: &[Token<'s>], at: usize) -> Option<&'s str> {
    let start = (at.saturating_sub(WINDOW)..at)
        .rev()
        .find(|index| tokens[*index] == Token::Symbol('#') && tokens.get(index + 1) == Some(&Token::Symbol('[')))?;
    let is_closed = tokens[start..at].contains(&Token::Symbol(']'));
    match tokens.get(start + 2) {
        Some(Token::Word(name)) if !is_closed => Some(name),
        _ => None,
    }
}

/// Returns the places of the names of the functions and macros in whose parentheses a token is, the innermost first.
/// The search ends at the statement.
pub(crate) fn calls(tokens: &[Token<'_>], at: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for index in (at.saturating_sub(WINDOW)..at).rev() {
        match tokens[index] {
            Token::Symbol(')' | ']' | '}') => depth += 1,
            Token::Symbol('(') if depth == 0 => {
                let before = if index > 0 && tokens[index - 1] == Token::Symbol('!') { 2 } else { 1 };
                let name = index.checked_sub(before).filter(|name| matches!(tokens[*name], Token::Word(_)));
                found.extend(name);
            }
            Token::Symbol('{' | ';') if depth == 0 => break,
            Token::Symbol('(' | '[' | '{') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

/// Returns the error and the variant that the attribute at `at` describes. The variant of a struct is empty.
fn declared_variant<'s>(tokens: &[Token<'s>], at: usize) -> Option<(&'s str, &'s str)> {
    let end = at + tokens[at..].iter().position(|token| *token == Token::Symbol(']'))?;
    let (offset, variant) = tokens[end..].iter().enumerate().find_map(|(offset, token)| match token {
        Token::Word(name) if name.starts_with(char::is_uppercase) => Some((offset, *name)),
        _ => None,
    })?;
    if tokens[end..end + offset].contains(&Token::Word("struct")) {
        return Some((variant, ""));
    }
    let error = tokens[..at].windows(2).rev().find_map(|part| match part {
        [Token::Word("enum"), Token::Word(name)] => Some(*name),
        _ => None,
    })?;
    Some((error, variant))
}

/// Returns the variant of the first `Code::…` in a range, unless it is an item of a list.
fn named<'s>(tokens: &[Token<'s>], range: Range<usize>) -> Option<&'s str> {
    range.clone().zip(tokens[range].windows(4)).find_map(|(at, part)| match part {
        [Token::Word("Code"), Token::Symbol(':'), Token::Symbol(':'), Token::Word(name)] if !is_in_list(tokens, at) => {
            Some(*name)
        }
        _ => None,
    })
}

/// Returns whether the innermost open bracket before a token is a square bracket.
fn is_in_list(tokens: &[Token<'_>], at: usize) -> bool {
    let mut depth = 0_usize;
    for token in tokens[..at].iter().rev().take(WINDOW) {
        match token {
            Token::Symbol(')' | ']' | '}') => depth += 1,
            Token::Symbol(open @ ('(' | '[' | '{')) if depth == 0 => return *open == '[',
            Token::Symbol('(' | '[' | '{') => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Returns the last `Kind::Variant` in the pattern of the innermost match arm that contains a token.
fn arm_pattern<'s>(tokens: &[Token<'s>], at: usize) -> Option<(&'s str, &'s str)> {
    let (arrow, _) = arm(tokens, at)?;
    pattern(tokens, arrow).windows(4).rev().find_map(|part| match part {
        [Token::Word(error), Token::Symbol(':'), Token::Symbol(':'), Token::Word(name)]
            if name.starts_with(char::is_uppercase) =>
        {
            Some((*error, *name))
        }
        _ => None,
    })
}

/// Returns the arrow and the body of the innermost match arm that contains a token.
fn arm(tokens: &[Token<'_>], at: usize) -> Option<(usize, Range<usize>)> {
    let arrows = (0..at.saturating_sub(1)).rev().filter(|arrow| is_arrow(tokens, *arrow));
    arrows.take(WINDOW).map(|arrow| (arrow, arm_body(tokens, arrow + 2))).find(|(_, body)| body.contains(&at))
}

/// Returns the index of the bracket that closes the block of a statement that ends at `end`.
fn block_end(tokens: &[Token<'_>], end: usize) -> usize {
    let mut at = end;
    while tokens.get(at) == Some(&Token::Symbol(';')) {
        at = statement_end(tokens, at + 1);
    }
    at
}

/// Returns the name of the variable or constant whose value contains a literal, the end of the declaration, and whether it
/// is a constant.
fn binding<'s>(tokens: &[Token<'s>], at: usize) -> Option<(&'s str, usize, bool)> {
    let start = (at.saturating_sub(WINDOW)..at)
        .rev()
        .find(|index| matches!(tokens[*index], Token::Word("let" | "const" | "static")))?;
    let Some(Token::Word(name)) = tokens.get(start + 1) else { return None };
    let equals = start + tokens[start..].iter().position(|token| *token == Token::Symbol('='))?;
    let end = statement_end(tokens, equals);
    let is_closure = tokens.get(equals + 1) == Some(&Token::Symbol('|'));
    (equals < at && at < end && !is_closure).then(|| (*name, end, tokens[start] != Token::Word("let")))
}
