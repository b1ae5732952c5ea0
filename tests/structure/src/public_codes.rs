//! The public codes of errors and diagnostics, as users see them: `NOT_FOUND`, `unknown-member`.
//!
//! In: the files that declare codes, and sources that match errors to codes. Out: the code of a variant or of a type.
//! An error inside another error has the code of the outer one. Not here: types. Errors are recognized by the names of
//! their types. A variant without an unambiguous match has no code.

mod declarations;
mod helpers;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use self::declarations::{inner_types, types_with_messages};
pub use self::helpers::Helpers;
use crate::outline::Outline;
use crate::tokens::{Located, Token, scan, without_tests};

/// Codes by the names of their variants, and errors by their types and variants.
#[derive(Debug, Default)]
pub struct PublicCodes {
    /// The codes of the REST interface.
    interface: BTreeMap<String, String>,
    /// The codes of diagnostics of a project.
    diagnostics: BTreeMap<String, String>,
    errors: BTreeMap<(String, String), Vec<String>>,
    /// The codes of all variants of an enumeration that no other arm names.
    others: BTreeMap<String, String>,
    /// The codes of errors that an implementation of `From` gives to all variants.
    converted: BTreeMap<String, String>,
    /// The variants that contain an error with messages of its own. A struct has the variant ``.
    outer: BTreeMap<String, BTreeSet<(String, String)>>,
    /// The types that declare messages of their own, each with the number of types with its name.
    with_messages: BTreeMap<String, usize>,
    /// The functions of all sources that create errors with one code.
    helpers: Helpers,
}

/// The two kinds of `Code::…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeKind {
    Interface,
    Diagnostic,
}

/// The properties of a source that decide on its codes.
#[derive(Debug, Clone, Copy)]
pub struct SourceFile<'f> {
    /// The folder of its crate.
    pub owner: &'f str,
    /// The kind of `Code::…` in the source.
    pub kind: CodeKind,
}

/// The largest number of errors that contain one another, from a message to the code.
const MAX_DEPTH: usize = 3;

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

    /// Adds the functions of a source that create errors with one code.
    pub fn add_helpers(&mut self, source: &str, file: SourceFile<'_>) {
        let tokens = tokens(source);
        let found = Helpers::of(&tokens, &Outline::of(&tokens), file, self);
        self.helpers.add(found);
    }

    /// Adds the codes that a source gives to errors: in the arms of a match, and in implementations of `From`. Also adds
    /// the errors that other errors contain.
    pub fn add_matches(&mut self, source: &str, file: SourceFile<'_>) {
        let tokens = tokens(source);
        let outline = Outline::of(&tokens);
        let helpers = Helpers::of(&tokens, &outline, file, self);
        self.add_arms(&tokens, &outline, &helpers, file.kind);
        self.add_conversions(&tokens, &outline, &helpers, file.kind);
        for (inner, outer) in inner_types(&tokens) {
            self.outer.entry(inner).or_default().insert(outer);
        }
        for name in types_with_messages(&tokens) {
            *self.with_messages.entry(name).or_default() += 1;
        }
    }

    fn add_arms(&mut self, tokens: &[Token<'_>], outline: &Outline<'_>, helpers: &Helpers, kind: CodeKind) {
        let mut last = None;
        for arrow in (0..tokens.len().saturating_sub(1)).filter(|at| is_arrow(tokens, *at)) {
            let pattern = pattern(tokens, arrow);
            let codes = self.codes_in(tokens, arm_body(tokens, arrow + 2), kind, helpers);
            let Some(first) = codes.first() else { continue };
            if pattern == [Token::Word("_")] {
                self.others.extend(last.clone().map(|error| (error, first.clone())));
            }
            for (mut error, variant) in variants(pattern) {
                if error == "Self" {
                    let Some(implementation) = outline.implementation_around(arrow) else { continue };
                    error = implementation.target.to_owned();
                }
                last = Some(error.clone());
                let known = self.errors.entry((error, variant)).or_default();
                let new: Vec<String> = codes.iter().filter(|code| !known.contains(code)).cloned().collect();
                known.extend(new);
            }
        }
    }

    fn add_conversions(&mut self, tokens: &[Token<'_>], outline: &Outline<'_>, helpers: &Helpers, kind: CodeKind) {
        for implementation in outline.implementations.iter().filter(|found| RESPONSES.contains(&found.target)) {
            let Some(error) = implementation.from else { continue };
            if let [code] = &self.codes_in(tokens, implementation.body.clone(), kind, helpers)[..] {
                self.converted.insert(error.to_owned(), code.clone());
            }
        }
    }

    /// Returns the code of a variant of `Code`. A source may use both kinds; `kind` decides if both have the variant.
    pub fn of_code(&self, variant: &str, kind: CodeKind) -> Option<String> {
        let (own, other) = match kind {
            CodeKind::Interface => (&self.interface, &self.diagnostics),
            CodeKind::Diagnostic => (&self.diagnostics, &self.interface),
        };
        own.get(variant).or_else(|| other.get(variant)).cloned()
    }

    /// Returns the codes of a variant of an error. Several codes are separated by commas.
    pub fn of_error(&self, error: &str, variant: &str) -> Option<String> {
        let codes = self.codes_of(error, variant, MAX_DEPTH);
        (!codes.is_empty()).then(|| codes.join(", "))
    }

    /// Returns the code of all variants of an error.
    pub fn of_type(&self, error: &str) -> Option<String> {
        self.converted.get(error).cloned()
    }

    fn codes_of(&self, error: &str, variant: &str, depth: usize) -> Vec<String> {
        if let Some(codes) = self.errors.get(&(error.to_owned(), variant.to_owned())) {
            return codes.clone();
        }
        if let Some(code) = self.others.get(error).or_else(|| self.converted.get(error)) {
            return vec![code.clone()];
        }
        let is_matched =
            self.errors.range((error.to_owned(), String::new())..).next().is_some_and(|((e, _), _)| e == error);
        let is_inner = depth > 0 && !is_matched && self.with_messages.contains_key(error);
        let outer = self.outer.get(error).filter(|_| is_inner);
        let mut codes: Vec<String> =
            outer.into_iter().flatten().flat_map(|(error, variant)| self.codes_of(error, variant, depth - 1)).collect();
        codes.sort();
        codes.dedup();
        let is_known = self.with_messages.get(error) == Some(&1) || codes.len() == 1;
        if is_known { codes } else { Vec::new() }
    }

    /// Returns the codes that a range of tokens names, itself or by calls of helper functions, in order.
    pub fn codes_in(&self, tokens: &[Token<'_>], range: Range<usize>, kind: CodeKind, local: &Helpers) -> Vec<String> {
        let mut codes = self.named_codes(&tokens[range.clone()], kind);
        for at in range {
            let called = self.helper_code(tokens, at, kind, local);
            codes.extend(called);
        }
        let mut seen = BTreeSet::new();
        codes.retain(|code| seen.insert(code.clone()));
        codes
    }

    /// Returns the codes that some tokens name as `Code::…`, in order.
    pub fn named_codes(&self, tokens: &[Token<'_>], kind: CodeKind) -> Vec<String> {
        let code = |part: &[Token<'_>]| match part {
            [Token::Word("ErrorCode"), Token::Symbol(':'), Token::Symbol(':'), Token::Word(name)] => {
                self.of_code(name, CodeKind::Interface)
            }
            [Token::Word("Code"), Token::Symbol(':'), Token::Symbol(':'), Token::Word(name)] => {
                self.of_code(name, kind)
            }
            _ => None,
        };
        tokens.windows(4).filter_map(code).collect()
    }

    /// Returns the code of the helper function that is called at a token.
    pub fn helper_code(&self, tokens: &[Token<'_>], at: usize, kind: CodeKind, local: &Helpers) -> Option<String> {
        let Token::Word(name) = tokens[at] else { return None };
        let is_call = tokens.get(at + 1) == Some(&Token::Symbol('('));
        let is_definition = at > 0 && tokens[at - 1] == Token::Word("fn");
        if !is_call || is_definition {
            return None;
        }
        let path = match tokens[..at] {
            [.., Token::Word(path), Token::Symbol(':'), Token::Symbol(':')] => Some(path),
            _ => None,
        };
        let is_method = at > 0 && tokens[at - 1] == Token::Symbol('.');
        let of_another = || match path {
            Some(error) if RESPONSES.contains(&error) => self.helpers.code_of_constructor(name, kind),
            _ if is_method => None,
            _ => {
                let is_in_module = path.is_some_and(|path| path.starts_with(char::is_lowercase));
                self.helpers.code_of_import(name, local, is_in_module, kind)
            }
        };
        local.code(name, at, kind).or_else(of_another)
    }
}

/// The types of errors that a client receives.
const RESPONSES: [&str; 2] = ["ErrorBody", "ApiError"];

pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let scanned = scan(source);
    without_tests(&scanned)
        .into_iter()
        .map(|Located { token, .. }| token)
        .filter(|token| !matches!(token, Token::Doc(_) | Token::Comment(_)))
        .collect()
}

pub(crate) fn is_arrow(tokens: &[Token<'_>], at: usize) -> bool {
    tokens[at] == Token::Symbol('=') && tokens[at + 1] == Token::Symbol('>')
}

/// Returns the pattern before an arrow. A brace belongs to the pattern if it closes the fields of a variant.
pub(crate) fn pattern<'t, 's>(tokens: &'t [Token<'s>], arrow: usize) -> &'t [Token<'s>] {
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

/// Returns the range of the body of an arm that begins at `start`.
pub(crate) fn arm_body(tokens: &[Token<'_>], start: usize) -> Range<usize> {
    let mut depth = 0_usize;
    for (offset, token) in tokens[start..].iter().enumerate() {
        match token {
            Token::Symbol('{' | '(' | '[') => depth += 1,
            Token::Symbol('}' | ')' | ']') if depth == 0 => return start..start + offset,
            Token::Symbol('}') if depth == 1 && tokens[start] == Token::Symbol('{') => return start..start + offset,
            Token::Symbol('}' | ')' | ']') => depth -= 1,
            Token::Symbol(',') if depth == 0 => return start..start + offset,
            _ => {}
        }
    }
    start..tokens.len()
}

/// Returns whether the name of a type is that of an error.
fn is_error_type(name: &str) -> bool {
    name == "Self" || ["Error", "Fault", "Refusal", "Problem", "Exceeded", "Full"].iter().any(|end| name.ends_with(end))
}

/// Returns the last `Kind::Variant` of each alternative of a pattern: the inner one of `Outer::A(Inner::B)`.
fn variants(pattern: &[Token<'_>]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for alternative in alternatives(pattern) {
        let mut paths = alternative.windows(4).filter_map(|part| match part {
            [Token::Word(kind), Token::Symbol(':'), Token::Symbol(':'), Token::Word(variant)]
                if is_error_type(kind) && variant.starts_with(char::is_uppercase) =>
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

    const FILE: SourceFile<'static> = SourceFile { owner: "runtime/wire", kind: CodeKind::Interface };

    fn codes(source: &str) -> PublicCodes {
        let mut codes = PublicCodes::declared(INTERFACE, DIAGNOSTICS);
        codes.add_helpers(source, FILE);
        codes.add_matches(source, FILE);
        codes
    }

    #[test]
    fn variants_of_code_have_their_text() {
        let codes = codes("");
        assert_eq!(codes.of_code("NotFound", CodeKind::Interface).as_deref(), Some("NOT_FOUND"));
        assert_eq!(codes.of_code("UnknownCube", CodeKind::Diagnostic).as_deref(), Some("unknown-cube"));
        assert_eq!(codes.of_code("Conflict", CodeKind::Diagnostic).as_deref(), Some("CONFLICT"));
        assert_eq!(codes.of_code("Other", CodeKind::Interface), None);
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

    #[test]
    fn helpers_give_their_code() {
        let codes = codes(
            "impl ErrorBody { fn missing(x: u8) -> Self { ErrorBody::new(Code::NotFound, x) } }
            fn of(error: AError) -> ErrorBody {
                let full = |text: &str| ErrorBody::new(Code::Conflict, text);
                match error {
                    AError::A => full(\"a\"),
                    AError::B => ErrorBody::missing(1),
                    AError::C => other(2),
                }
            }",
        );
        assert_eq!(codes.of_error("AError", "A").as_deref(), Some("CONFLICT"));
        assert_eq!(codes.of_error("AError", "B").as_deref(), Some("NOT_FOUND"));
        assert_eq!(codes.of_error("AError", "C"), None);
    }

    #[test]
    fn inner_errors_have_the_code_of_the_error_around_them() {
        let mut codes = codes("match e { AError::A { .. } => ErrorBody::new(Code::Conflict, 1) }");
        codes.add_matches("enum AError { A { reason: BReason } }", FILE);
        codes.add_matches("enum BReason { #[error(\"x\")] C }", FILE);
        assert_eq!(codes.of_error("BReason", "C").as_deref(), Some("CONFLICT"));
        codes.add_matches(
            "impl From<DError> for ErrorBody { fn from(d: DError) { ErrorBody::new(Code::Conflict, d) } }",
            FILE,
        );
        assert_eq!(codes.of_type("DError").as_deref(), Some("CONFLICT"));
        assert_eq!(codes.of_type("BReason"), None);
    }
}
