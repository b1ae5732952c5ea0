//! Collects the texts that the program shows to users, so that they can be read in one sitting.
//!
//! In: a source file and the public codes. Out: each string literal of several words, with the code that users see
//! beside it. Not here: texts of tests and of broken invariants, SQL, and types. A literal that is not a sentence is not
//! found.

use crate::outline::Outline;
use crate::public_codes::{Helpers, PublicCodes, SourceFile, tokens};
use crate::text_codes::{TextCodes, attribute, calls};
use crate::tokens::Token;

/// A message or label that users see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The public code that the source names near the text, or the class of an error of a client package.
    pub code: Option<String>,
    pub text: String,
}

/// Calls whose texts only developers see, because they state invariants.
const INVARIANTS: [&str; 6] = ["expect", "panic", "unreachable", "assert", "assert_eq", "debug_assert"];
/// Attributes whose texts are not messages. The help of the command line is listed on its own page.
const ATTRIBUTES: [&str; 4] = ["allow", "expect", "arg", "command"];
/// Functions and macros whose literals users see, even if a literal has only one word in lower case.
const MESSAGES: [&str; 11] =
    ["hint", "bail", "anyhow", "context", "println", "eprintln", "print", "print_error", "note", "reject", "problem"];
/// The types whose constructors take messages.
const MESSAGE_TYPES: [&str; 4] = ["ErrorBody", "ApiError", "Failure", "Diagnostic"];

/// Returns all texts of a source outside its tests, in order.
pub fn texts(source: &str, file: SourceFile<'_>, codes: &PublicCodes) -> Vec<Text> {
    let tokens = tokens(source);
    let outline = Outline::of(&tokens);
    let helpers = Helpers::of(&tokens, &outline, file, codes);
    let finder = TextCodes { tokens: &tokens, outline: &outline, kind: file.kind, codes, helpers: &helpers };
    let mut texts = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Text(literal) = token else { continue };
        let text = joined(literal);
        if is_for_people(&tokens, at) && (is_sentence(&text) || (has_word(&text) && is_message(&tokens, at))) {
            texts.push(Text { code: finder.code(at), text });
        }
    }
    texts
}

/// Joins the lines of a literal that is continued with backslashes.
fn joined(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

/// Returns whether a literal has two words in lower case, or is a sentence with a period, and is neither SQL nor code.
pub(crate) fn is_sentence(text: &str) -> bool {
    let text = &text.replace("\\n", " ");
    let is_word = |word: &&str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase() || c == '\'' || c == '-')
    };
    let is_statement =
        ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "DROP ", "WITH ", "SET ", "HTTP/"]
            .iter()
            .any(|start| text.trim_start().starts_with(start));
    (text.split_whitespace().filter(is_word).count() >= 2 || is_imperative(text)) && !is_statement
}

/// Returns whether a literal begins with a capitalized word, has further words, and ends with a period or lists values:
/// `Write 1.`, `Available names: {}`.
fn is_imperative(text: &str) -> bool {
    let text = text.trim();
    let is_complete = text.ends_with('.') || text.contains(": {");
    let Some((first, _)) = text.split_once(' ').filter(|_| is_complete) else { return false };
    let rest = first.strip_prefix(|c: char| c.is_ascii_uppercase());
    rest.is_some_and(|rest| rest.len() > 1 && rest.chars().all(|c| c.is_ascii_lowercase()))
}

/// Returns whether a literal consists of several parts, and one of them is a word of at least two letters outside holes.
fn has_word(text: &str) -> bool {
    if text.split_whitespace().nth(1).is_none() {
        return false;
    }
    let mut is_hole = false;
    let outside = text.split(|c: char| {
        is_hole = (is_hole || c == '{') && c != '}';
        is_hole || !c.is_ascii_alphabetic()
    });
    outside.into_iter().any(|word| word.len() > 1)
}

/// Returns whether a literal is the message of an error, a diagnostic or a command, by the call around it.
fn is_message(tokens: &[Token<'_>], at: usize) -> bool {
    if attribute(tokens, at).is_some() {
        return attribute(tokens, at) == Some("error");
    }
    let name = |call: usize| match tokens[call] {
        Token::Word(name) => name,
        _ => "",
    };
    let mut around = calls(tokens, at).into_iter().skip_while(|call| name(*call) == "format");
    let Some(call) = around.next() else { return false };
    match tokens[..call] {
        [.., Token::Word(ty), Token::Symbol(':'), Token::Symbol(':')] => MESSAGE_TYPES.contains(&ty),
        _ => MESSAGES.contains(&name(call)),
    }
}

fn is_for_people(tokens: &[Token<'_>], at: usize) -> bool {
    if let Some(attribute) = attribute(tokens, at) {
        return !ATTRIBUTES.contains(&attribute);
    }
    if at >= 2 && tokens[at - 1] == Token::Symbol('=') && tokens[at - 2] == Token::Word("reason") {
        return at >= 3 && tokens[at - 3] == Token::Word("let");
    }
    let innermost = calls(tokens, at).first().map(|call| tokens[*call]);
    !matches!(innermost, Some(Token::Word(name)) if INVARIANTS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public_codes::CodeKind;

    fn found(source: &str) -> Vec<(String, String)> {
        let mut codes = PublicCodes::declared("NotFound \"NOT_FOUND\" 404", "NoCubes = \"no-cubes\",");
        codes.add_matches(
            "match error { QueryError::UnknownCube { .. } => new(Code::NotFound, message) }",
            SourceFile { owner: "runtime/wire", kind: CodeKind::Interface },
        );
        texts(source, SourceFile { owner: "runtime/app", kind: CodeKind::Diagnostic }, &codes)
            .into_iter()
            .map(|text| (text.code.unwrap_or_default(), text.text))
            .collect()
    }

    fn one(code: &str, text: &str) -> Vec<(String, String)> {
        vec![(code.to_owned(), text.to_owned())]
    }

    #[test]
    fn messages_have_the_public_code_of_their_statement_or_variant() {
        assert_eq!(
            found("Diagnostic::error(Code::NoCubes, \"the project has no cubes\")"),
            one("no-cubes", "the project has no cubes")
        );
        assert_eq!(
            found("enum QueryError { #[error(\"unknown cube `{name}` here\")]\nUnknownCube { name: String }, }"),
            one("NOT_FOUND", "unknown cube `{name}` here")
        );
        assert_eq!(
            found("match x { QueryError::UnknownCube { name } => format!(\"write the name of {name}\") }"),
            one("NOT_FOUND", "write the name of {name}")
        );
        assert_eq!(found("match x { Problem::Deep { n } => \"this is too deep\" }"), one("", "this is too deep"));
        assert_eq!(found("doc(&[Code::NoCubes], \"the cubes of it\")"), one("", "the cubes of it"));
        assert_eq!(found("let text = \"several words \\\n    on lines\";"), one("", "several words on lines"));
    }

    #[test]
    fn codes_of_helpers_names_and_types_are_found() {
        let helper = "fn no_cubes(text: &str) -> Diagnostic { Diagnostic::error(Code::NoCubes, text) }";
        assert_eq!(
            found(&format!("{helper} fn f() {{ no_cubes(\"no cubes here\") }}")),
            one("no-cubes", "no cubes here")
        );
        let source = "fn f() { let text = \"no cubes here\"; if x { y(); } Diagnostic::error(Code::NoCubes, text) }";
        assert_eq!(found(source), one("no-cubes", "no cubes here"));
        let source = "fn f() { let text = \"a label of it\"; g(text) } fn h(text: &str) { e(Code::NoCubes, text) }";
        assert_eq!(found(source), one("", "a label of it"));
        let source = "const HINT: &str = \"Add a cube.\"; fn f() { Diagnostic::error(Code::NoCubes, m).hint(HINT) }";
        assert_eq!(found(source), one("no-cubes", "Add a cube."));
        let source =
            "match x { Y::Z => { log(1); let m = format!(\"no cubes here\"); g(Code::NoCubes, m) } A::B => d() }";
        assert_eq!(found(source), one("no-cubes", "no cubes here"));
        assert_eq!(
            found("match x { Y::Z => g(Code::NoCubes), A::B => d(\"no cubes here\") }"),
            one("", "no cubes here")
        );
    }

    #[test]
    fn short_messages_are_found() {
        for (source, text) in [
            ("x.hint(\"Write `1`.\")", "Write `1`."),
            ("x.hint(format!(\"Use {y}\"))", "Use {y}"),
            ("#[error(\"invalid URL\")] struct E;", "invalid URL"),
            ("print_error(\"no jobs\\n\")", "no jobs\\n"),
            ("let reason = \"the key expired\";", "the key expired"),
        ] {
            assert_eq!(found(source), one("", text), "{source}");
        }
    }

    #[test]
    fn other_literals_are_left_out() {
        for source in [
            "x.expect(\"the map has the key\")",
            "#[allow(x, reason = \"a tool prints its progress\")]",
            "#[arg(help = \"the help of an argument\")]",
            "tracing::warn!(reason = \"the key expired\")",
            "x.hint(\"word\")",
            "let sql = \"SELECT count(*) from some table\";",
            "let name = \"snake_case\"; let event = \"access denied\".len(); // a comment of words"
                .split(" let event")
                .next()
                .unwrap(),
            "#[cfg(test)] mod tests { fn f() { g(\"text of a test\") } }",
        ] {
            assert_eq!(found(source), [], "{source}");
        }
    }
}
