//! The functions and implementations of a source, by the ranges of their tokens.
//!
//! In: tokens without comments and tests. Out: functions, closures with a name, and `impl` blocks, in order. Not here:
//! types and modules.

use std::ops::Range;

use crate::tokens::Token;

/// A function, or a closure that a `let` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'s> {
    pub name: &'s str,
    /// The tokens of the return type; empty for closures and for functions without a value.
    pub returns: Range<usize>,
    pub body: Range<usize>,
    pub is_closure: bool,
}

/// An `impl` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Implementation<'s> {
    /// The name of the implementing type.
    pub target: &'s str,
    /// The argument of the trait `From`.
    pub from: Option<&'s str>,
    pub body: Range<usize>,
}

/// The functions and implementations of a source.
#[derive(Debug, Default)]
pub struct Outline<'s> {
    pub functions: Vec<Function<'s>>,
    pub implementations: Vec<Implementation<'s>>,
}

impl<'s> Outline<'s> {
    pub fn of(tokens: &[Token<'s>]) -> Outline<'s> {
        let mut outline = Outline::default();
        for at in 0..tokens.len() {
            match tokens[at] {
                Token::Word("fn") => outline.functions.extend(function(tokens, at)),
                Token::Word("let") => outline.functions.extend(closure(tokens, at)),
                Token::Word("impl") if starts_item(tokens, at) => {
                    outline.implementations.extend(implementation(tokens, at));
                }
                _ => {}
            }
        }
        outline
    }

    /// Returns the functions and closures that contain a token, the innermost first.
    pub fn functions_around(&self, at: usize) -> impl Iterator<Item = &Function<'s>> {
        self.functions.iter().rev().filter(move |function| function.body.contains(&at))
    }

    /// Returns the implementation that contains a token.
    pub fn implementation_around(&self, at: usize) -> Option<&Implementation<'s>> {
        self.implementations.iter().rev().find(|implementation| implementation.body.contains(&at))
    }
}

/// Returns whether `impl` begins an item, and is not a type such as `impl Iterator`.
fn starts_item(tokens: &[Token<'_>], at: usize) -> bool {
    match at.checked_sub(1).map(|before| tokens[before]) {
        None => true,
        Some(before) => matches!(before, Token::Symbol('}' | '{' | ';' | ']') | Token::Word("unsafe")),
    }
}

fn function<'s>(tokens: &[Token<'s>], at: usize) -> Option<Function<'s>> {
    let Some(Token::Word(name)) = tokens.get(at + 1) else { return None };
    let open = body_start(tokens, at)?;
    let is_arrow = |index: usize| tokens[index..].starts_with(&[Token::Symbol('-'), Token::Symbol('>')]);
    let returns = (at..open).rev().find(|index| is_arrow(*index)).map_or(open..open, |arrow| arrow + 2..open);
    Some(Function { name, returns, body: open..close(tokens, open), is_closure: false })
}

/// Returns the index of the brace that opens the body of a function; `None` for a declaration.
fn body_start(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, token) in tokens[at..].iter().enumerate() {
        match token {
            Token::Symbol('{') if depth == 0 => return Some(at + offset),
            Token::Symbol(';') if depth == 0 => return None,
            Token::Symbol('(' | '[' | '{') => depth += 1,
            Token::Symbol(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

fn closure<'s>(tokens: &[Token<'s>], at: usize) -> Option<Function<'s>> {
    let [Token::Word(name), Token::Symbol('='), rest @ ..] = tokens.get(at + 1..)? else { return None };
    let is_closure = matches!(rest, [Token::Symbol('|'), ..] | [Token::Word("move"), Token::Symbol('|'), ..]);
    let start = at + 3;
    is_closure.then(|| Function { name, returns: start..start, body: start..statement_end(tokens, start), is_closure })
}

fn implementation<'s>(tokens: &[Token<'s>], at: usize) -> Option<Implementation<'s>> {
    let open = tokens[at..].iter().position(|token| *token == Token::Symbol('{'))? + at;
    let head = &tokens[at + 1..open];
    let target = match head.iter().position(|token| *token == Token::Word("for")) {
        Some(end) => first_type(&head[end + 1..])?,
        None => first_type(without_generics(head))?,
    };
    let from = head.windows(2).position(|part| part == [Token::Word("From"), Token::Symbol('<')]);
    let from = from.and_then(|start| first_type(&head[start + 2..]));
    Some(Implementation { target, from, body: open..close(tokens, open) })
}

/// Returns the last part of the path at the beginning of some tokens.
fn first_type<'s>(tokens: &[Token<'s>]) -> Option<&'s str> {
    let mut last = None;
    for token in tokens {
        match token {
            Token::Word(name) if !name.starts_with('\'') && !matches!(*name, "dyn" | "mut") => last = Some(*name),
            Token::Symbol('&' | ':') | Token::Word(_) => {}
            Token::Symbol(_) | Token::Text(_) | Token::Doc(_) | Token::Comment(_) => break,
        }
    }
    last
}

/// Removes the parameters in angle brackets from the beginning of some tokens.
fn without_generics<'t, 's>(tokens: &'t [Token<'s>]) -> &'t [Token<'s>] {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Symbol('<') => depth += 1,
            Token::Symbol('>') => depth = depth.saturating_sub(1),
            _ if depth == 0 => return &tokens[at..],
            _ => {}
        }
    }
    &[]
}

/// Returns the index after the bracket that closes the one at `open`.
pub fn close(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, token) in tokens[open..].iter().enumerate() {
        match token {
            Token::Symbol('{' | '(' | '[') => depth += 1,
            Token::Symbol('}' | ')' | ']') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return open + offset + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Returns the index of the semicolon that ends the statement at `start`, or of the bracket that encloses it.
pub fn statement_end(tokens: &[Token<'_>], start: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, token) in tokens[start..].iter().enumerate() {
        match token {
            Token::Symbol('{' | '(' | '[') => depth += 1,
            Token::Symbol('}' | ')' | ']') if depth == 0 => return start + offset,
            Token::Symbol('}' | ')' | ']') => depth -= 1,
            Token::Symbol(';') if depth == 0 => return start + offset,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::scan;

    fn tokens(source: &str) -> Vec<Token<'_>> {
        scan(source).into_iter().map(|located| located.token).collect()
    }

    #[test]
    fn functions_and_closures_have_their_bodies() {
        let tokens = tokens("fn a(x: [u8; 2]) -> Result<(), E> { let b = |n| n(1); c() } fn d();");
        let outline = Outline::of(&tokens);
        let names: Vec<_> = outline.functions.iter().map(|function| (function.name, function.is_closure)).collect();
        assert_eq!(names, [("a", false), ("b", true)]);
        assert!(tokens[outline.functions[0].returns.clone()].contains(&Token::Word("E")));
        let inside = tokens.iter().position(|token| *token == Token::Word("n")).unwrap();
        let around: Vec<_> = outline.functions_around(inside).map(|function| function.name).collect();
        assert_eq!(around, ["b", "a"]);
    }

    #[test]
    fn implementations_have_their_types() {
        let tokens = tokens("impl<'a, T: X> A<T> { } impl From<&B> for c::C { } fn f(x: impl Y) {}");
        let found: Vec<_> = Outline::of(&tokens).implementations.into_iter().map(|i| (i.target, i.from)).collect();
        assert_eq!(found, [("A", None), ("C", Some("B"))]);
    }
}
