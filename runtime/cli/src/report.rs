//! Draws diagnostics: one line with place and message, the source line with carets, and the hint.
//!
//! In: diagnostics and the files that they point to. Out: text for a terminal or a file, or JSON for scripts. Not here:
//! finding problems.

use std::borrow::Cow;
use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;
use terrane_compiler::diagnostic::{Code, Diagnostic, Severity, Span, Step};
use terrane_compiler::project::SourceTree;
use terrane_terminal::TerminalText;
pub use terrane_terminal::plural;

/// The style of text output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Coloured,
}

impl Style {
    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        match self {
            Style::Plain => text.to_owned(),
            Style::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const CYAN: &str = "36";
const BOLD: &str = "1";

/// The width to which source lines are cut.
const SHOWN_WIDTH: usize = 120;

/// Sorts by file, line and column; diagnostics without a place come first. Of a problem that both the configuration and
/// the compiler report, one diagnostic remains. Settings without effect that share a place are separate problems.
pub fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| (&a.span, b.severity).cmp(&(&b.span, a.severity)));
    let mut seen: Vec<(Code, Span, Option<String>)> = Vec::new();
    diagnostics.retain(|diagnostic| {
        let Some(span) = &diagnostic.span else { return true };
        let setting = (diagnostic.code == Code::NotYet).then(|| diagnostic.full_message().into_owned());
        let key = (diagnostic.code, span.clone(), setting);
        let is_new = !seen.iter().rev().take_while(|(_, other, _)| other == span).any(|known| *known == key);
        seen.push(key);
        is_new
    });
}

/// Draws all diagnostics, with an empty line between two.
pub fn draw(diagnostics: &[Diagnostic], tree: &SourceTree, style: Style) -> String {
    let drawn: Vec<String> = diagnostics.iter().map(|diagnostic| draw_one(diagnostic, tree, style)).collect();
    drawn.join("\n")
}

fn draw_one(diagnostic: &Diagnostic, tree: &SourceTree, style: Style) -> String {
    let (word, colour) = match diagnostic.severity {
        Severity::Error => ("error", RED),
        Severity::Warning => ("warning", YELLOW),
    };
    let mut text = String::new();
    if let Some(span) = &diagnostic.span {
        let _ = write!(text, "{}: ", style.paint(BOLD, &TerminalText::lines(&span.to_string())));
    }
    let label = style.paint(colour, &format!("{word}[{}]", diagnostic.code));
    let _ = writeln!(text, "{label}: {}", TerminalText::lines(&diagnostic.full_message()));
    if let Some(span) = &diagnostic.span {
        let source = tree.files.get(&span.file).and_then(|file| file.lines().nth(span.line as usize - 1));
        if let Some(line) = source.filter(|line| !line.trim().is_empty() && !holds_secret(line)) {
            draw_line(&mut text, line, span, diagnostic.severity, style);
        }
    }
    let following = diagnostic.path.iter().skip(1).chain(diagnostic.path.first());
    for (step, next) in diagnostic.path.iter().zip(following) {
        let place = step.span.as_ref().map_or(String::new(), |span| format!(": {span}"));
        let _ = writeln!(
            text,
            "  {} → {}{}",
            TerminalText::lines(&step.name),
            TerminalText::lines(&next.name),
            TerminalText::lines(&place)
        );
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(text, "  {} {}", style.paint(CYAN, "hint:"), TerminalText::lines(hint));
    }
    text
}

/// Draws the source line with carets under the place. Long lines are cut to the part around the place.
fn draw_line(text: &mut String, line: &str, span: &Span, severity: Severity, style: Style) {
    let line = line.strip_prefix('\u{FEFF}').unwrap_or(line);
    let offset = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let column = span.column as usize - 1;
    let place = offset(column)..offset(column + span.length.max(1) as usize);
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    let annotation = AnnotationKind::Primary.span(place);
    let snippet = Snippet::source(line).line_start(span.line as usize).annotation(annotation);
    let drawn = renderer.term_width(SHOWN_WIDTH).render(&[Group::with_level(level).element(snippet)]);
    // The first line is an empty margin.
    for line in drawn.lines().skip(1) {
        let _ = writeln!(text, "  {line}");
    }
}

/// Returns true if a line of the project file may contain a secret.
fn holds_secret(line: &str) -> bool {
    const WORDS: [&str; 4] = ["secret", "password", "token", "api_key"];
    let line = line.to_ascii_lowercase();
    WORDS.iter().any(|word| line.contains(word)) || (line.contains("://") && line.contains('@'))
}

/// Returns the numbers of errors and warnings, such as `2 errors, 1 warning`.
pub fn counts(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.len() - errors;
    format!("{}, {}", plural(errors, "error"), plural(warnings, "warning"))
}

/// The JSON output of one diagnostic.
#[derive(Debug, Serialize)]
pub struct DiagnosticJson<'a> {
    code: &'a str,
    severity: &'static str,
    message: Cow<'a, str>,
    hint: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    length: Option<u32>,
    /// The column after the last character of the place.
    end_column: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<StepJson<'a>>,
}

/// One part of a cycle, and the place where it refers to the next.
#[derive(Debug, Serialize)]
struct StepJson<'a> {
    name: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
}

impl<'a> From<&'a Step> for StepJson<'a> {
    fn from(step: &'a Step) -> Self {
        let span = step.span.as_ref();
        StepJson {
            name: &step.name,
            file: span.map(|span| &*span.file),
            line: span.map(|span| span.line),
            column: span.map(|span| span.column),
        }
    }
}

impl<'a> From<&'a Diagnostic> for DiagnosticJson<'a> {
    fn from(diagnostic: &'a Diagnostic) -> Self {
        let span = diagnostic.span.as_ref();
        DiagnosticJson {
            code: diagnostic.code.as_str(),
            severity: match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            message: diagnostic.full_message(),
            hint: diagnostic.full_hint(),
            file: span.map(|span| &*span.file),
            line: span.map(|span| span.line),
            column: span.map(|span| span.column),
            length: span.map(|span| span.length),
            end_column: span.map(|span| span.column + span.length),
            path: diagnostic.path.iter().map(StepJson::from).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> SourceTree {
        SourceTree { files: [("cubes/a.yml".into(), text.into())].into_iter().collect() }
    }

    fn at(line: u32, column: u32, length: u32) -> Span {
        Span { file: "cubes/a.yml".into(), line, column, length }
    }

    #[test]
    fn caret_is_under_the_place() {
        let problem = Diagnostic::error(Code::UnknownKey, "no `nmae`").hint("did you mean `name`?").at(at(2, 5, 4));
        let drawn = draw(&[problem], &tree("cubes:\n  - nmae: x\n"), Style::Plain);
        let expected = "cubes/a.yml:2:5: error[unknown-key]: no `nmae`\n  2 |   - nmae: x\n    |     ^^^^\n  hint: did you mean `name`?\n";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn caret_follows_wide_characters_and_tabs() {
        let problem = || Diagnostic::error(Code::SqlSyntax, "y").at(at(1, 4, 1));
        let wide = draw(&[problem()], &tree("電子 x"), Style::Plain);
        assert!(wide.contains("  1 | 電子 x\n    |      ^\n"), "{wide}");
        let tabs = draw(&[problem()], &tree("\t\t x"), Style::Plain);
        assert!(tabs.contains("  1 |          x\n    |          ^\n"), "{tabs}");
    }

    #[test]
    fn places_beyond_the_text_and_escape_codes_are_harmless() {
        let problem = Diagnostic::warning(Code::SqlSyntax, "a\x1b[2Jb").at(at(1, 900, 50));
        let drawn = draw(&[problem], &tree(&"\x1b".repeat(500)), Style::Plain);
        assert!(!drawn.contains('\x1b'), "{drawn:?}");
        let beyond = draw(&[Diagnostic::error(Code::SqlSyntax, "y").at(at(90, 1, 1))], &tree("a"), Style::Plain);
        assert_eq!(beyond, "cubes/a.yml:90:1: error[sql-syntax]: y\n");
    }

    #[test]
    fn lines_with_secrets_are_not_shown() {
        for line in ["jwt: {secret: abc}", "url: postgres://me:abc@db", "  client_Secret: abc"] {
            let drawn = draw(&[Diagnostic::error(Code::SqlSyntax, "y").at(at(1, 1, 1))], &tree(line), Style::Plain);
            assert!(!drawn.contains("abc"), "{drawn}");
        }
    }

    #[test]
    fn duplicate_diagnostics_are_removed() {
        let once = Diagnostic::error(Code::YamlSyntax, "a").at(at(1, 1, 1));
        let mut all = vec![
            Diagnostic::warning(Code::SqlEmpty, "b"),
            once.clone(),
            once,
            Diagnostic::error(Code::SqlTooDeep, "c").at(at(1, 1, 1)),
        ];
        sort(&mut all);
        assert_eq!(counts(&all), "2 errors, 1 warning");
    }
}
