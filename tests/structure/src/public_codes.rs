//! The public codes of errors and diagnostics, as users see them: `NOT_FOUND`, `unknown-member`.
//!
//! In: the files that declare codes, and sources that match errors to codes. Out: the code of a variant. Not here:
//! types. Variants are recognized by the names of their enumerations. A variant without an unambiguous match has no
//! code.

use std::collections::BTreeMap;

use crate::tokens::{Located, Token, scan, without_tests};

/// Codes by the names of their variants, and errors by their enumerations and variants.
#[derive(Debug, Default)]
pub struct PublicCodes {
    /// The codes of the REST interface.
    interface: BTreeMap<String, String>,
    /// The codes of diagnostics of a project.
    diagnostics: BTreeMap<String, String>,
    errors: BTreeMap<(String, String), Vec<String>>,
    /// The codes of all variants of an enumeration that no other arm names.
    others: BTreeMap<String, String>,
}

/// The two kinds of `Code::…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeKind {
    Interface,
    Diagnostic,
}

impl PublicCodes {
    /// Reads the codes from the two files that declare them.
    pub fn declared(interface: &str, diagnostics: &str) -> PublicCodes {
        let is_interface = |text: &str| text.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let is_diagnostic = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let mut codes = PublicCodes::default();
        for window in tokens(interface).windows(2) {
            if let [Token::Word(name), Token::Text(text)] = window
                && is_interface(text)
            {
                codes.interface.insert((*name).to_owned(), (*text).to_owned());
            }
        }
        for window in tokens(diagnostics).windows(3) {
            if let [Token::Word(name), Token::Symbol('='), Token::Text(text)] = window
                && is_diagnostic(text)
            {
                codes.diagnostics.insert((*name).to_owned(), (*text).to_owned());
            }
        }
        codes
    }

    /// Adds the codes that the arms of a source give to variants of errors.
    pub fn add_matches(&mut self, source: &str) {
        let tokens = tokens(source);
        let mut last = None;
        for arrow in (0..tokens.len().saturating_sub(1)).filter(|at| is_arrow(&tokens, *at)) {
            let pattern = pattern(&tokens, arrow);
            let Some(code) = self.code_in(arm_body(&tokens, arrow + 2)) else { continue };
            let variants = variants(pattern);
            if pattern == [Token::Word("_")] {
                self.others.extend(last.clone().map(|kind| (kind, code.clone())));
            }
            for (kind, variant) in variants {
                last = Some(kind.clone());
                let known = self.errors.entry((kind, variant)).or_default();
                if !known.contains(&code) {
                    known.push(code.clone());
                }
            }
        }
    }

    /// Returns the code of a variant of `Code`.
    pub fn of_code(&self, variant: &str, kind: CodeKind) -> Option<String> {
        match kind {
            CodeKind::Interface => self.interface.get(variant).cloned(),
            CodeKind::Diagnostic => self.diagnostics.get(variant).cloned(),
        }
    }

    /// Returns the codes of a variant of an error. Several codes are separated by commas.
    pub fn of_error(&self, kind: &str, variant: &str) -> Option<String> {
        let known = self.errors.get(&(kind.to_owned(), variant.to_owned()));
        known.map(|codes| codes.join(", ")).or_else(|| self.others.get(kind).cloned())
    }

    fn code_in(&self, body: &[Token<'_>]) -> Option<String> {
        body.windows(4).find_map(|part| match part {
            [Token::Word("Code" | "ErrorCode"), Token::Symbol(':'), Token::Symbol(':'), Token::Word(name)] => {
                self.interface.get(*name).cloned()
            }
            _ => None,
        })
    }
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let scanned = scan(source);
    without_tests(&scanned)
        .into_iter()
        .map(|Located { token, .. }| token)
        .filter(|token| !matches!(token, Token::Doc(_) | Token::Comment(_)))
        .collect()
}

fn is_arrow(tokens: &[Token<'_>], at: usize) -> bool {
    tokens[at] == Token::Symbol('=') && tokens[at + 1] == Token::Symbol('>')
}

/// Returns the pattern before an arrow. A brace belongs to the pattern if it closes the fields of a variant.
fn pattern<'t, 's>(tokens: &'t [Token<'s>], arrow: usize) -> &'t [Token<'s>] {
    let mut depth = 0_usize;
    for at in (0..arrow).rev() {
        match tokens[at] {
            Token::Symbol('}') if depth == 0 && !continues_pattern(tokens.get(at + 1)) => {
                return &tokens[at + 1..arrow];
            }
            Token::Symbol('}' | ')' | ']') => depth += 1,
            Token::Symbol('{' | '(' | '[' | ',' | ';') if depth == 0 => return &tokens[at + 1..arrow],
            Token::Symbol('{' | '(' | '[') => depth -= 1,
            _ => {}
        }
    }
    &tokens[..arrow]
}

fn continues_pattern(next: Option<&Token<'_>>) -> bool {
    matches!(next, Some(Token::Symbol('|' | '=' | ')') | Token::Word("if")))
}

/// Returns the body of an arm that begins at `start`.
fn arm_body<'t, 's>(tokens: &'t [Token<'s>], start: usize) -> &'t [Token<'s>] {
    let mut depth = 0_usize;
    for (offset, token) in tokens[start..].iter().enumerate() {
        match token {
            Token::Symbol('{' | '(' | '[') => depth += 1,
            Token::Symbol('}' | ')' | ']') if depth == 0 => return &tokens[start..start + offset],
            Token::Symbol('}') if depth == 1 && tokens[start] == Token::Symbol('{') => {
                return &tokens[start..start + offset];
            }
            Token::Symbol('}' | ')' | ']') => depth -= 1,
            Token::Symbol(',') if depth == 0 => return &tokens[start..start + offset],
            _ => {}
        }
    }
    &tokens[start..]
}

/// Returns the last `Kind::Variant` of each alternative of a pattern: the inner one of `Outer::A(Inner::B)`.
fn variants(pattern: &[Token<'_>]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for alternative in alternatives(pattern) {
        let mut paths = alternative.windows(4).filter_map(|part| match part {
            [Token::Word(kind), Token::Symbol(':'), Token::Symbol(':'), Token::Word(variant)]
                if kind.ends_with("Error") || kind.ends_with("Fault") || kind.ends_with("Refusal") =>
            {
                Some(((*kind).to_owned(), (*variant).to_owned()))
            }
            _ => None,
        });
        found.extend(paths.next_back());
    }
    found
}

/// Splits a pattern at the bars outside of brackets.
fn alternatives<'t, 's>(pattern: &'t [Token<'s>]) -> Vec<&'t [Token<'s>]> {
    let mut depth = 0_usize;
    pattern
        .split(|token| {
            match token {
                Token::Symbol('{' | '(' | '[') => depth += 1,
                Token::Symbol('}' | ')' | ']') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && *token == Token::Symbol('|')
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERFACE: &str = "codes! { NotFound \"NOT_FOUND\" 404 {}; Conflict \"CONFLICT\" 409 {}; }";
    const DIAGNOSTICS: &str = "codes! { /// The cube is unknown.\n UnknownCube = \"unknown-cube\", }";

    fn codes(source: &str) -> PublicCodes {
        let mut codes = PublicCodes::declared(INTERFACE, DIAGNOSTICS);
        codes.add_matches(source);
        codes
    }

    #[test]
    fn variants_of_code_have_their_text() {
        let codes = codes("");
        assert_eq!(codes.of_code("NotFound", CodeKind::Interface).as_deref(), Some("NOT_FOUND"));
        assert_eq!(codes.of_code("UnknownCube", CodeKind::Diagnostic).as_deref(), Some("unknown-cube"));
        assert_eq!(codes.of_code("UnknownCube", CodeKind::Interface), None);
    }

    #[test]
    fn variants_of_errors_have_the_code_of_their_arm() {
        let codes = codes(
            "match error {
                JobError::Gone { reason } | JobError::Full { .. } => { new(Code::Conflict, reason) }
                JobError::Query(QueryError::Unknown { .. }) => body(Code::NotFound, message).detail(\"a\", 1),
                JobError::Store(error) => from_store(error),
                QueryError::Deep => (1, Code::Conflict),
                _ => Code::NotFound,
            }",
        );
        assert_eq!(codes.of_error("JobError", "Gone").as_deref(), Some("CONFLICT"));
        assert_eq!(codes.of_error("JobError", "Full").as_deref(), Some("CONFLICT"));
        assert_eq!(codes.of_error("QueryError", "Unknown").as_deref(), Some("NOT_FOUND"));
        assert_eq!(codes.of_error("JobError", "Store"), None);
        assert_eq!(codes.of_error("QueryError", "Another").as_deref(), Some("NOT_FOUND"));
    }
}
