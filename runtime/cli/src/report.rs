//! Draws diagnostics for a person: place, message, the source line with a caret, hint, counts.
//!
//! In: diagnostics and the texts they point into. Out: text for a terminal or a file, or JSON for
//! scripts. Not here: finding problems.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;
use terrane_compiler::diagnostic::{Code, Diagnostic, Severity, Span, Step};
use terrane_compiler::project::SourceTree;

/// Whether escape codes for colours may be written.
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

/// Lines are cut to this many characters around the place.
const SHOWN_WIDTH: usize = 120;

/// By file, line and column; those without a place first. The same problem found twice, by the
/// configuration and by the compiler, is one.
pub fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| (&a.span, b.severity).cmp(&(&b.span, a.severity)));
    let mut seen: Vec<(Code, Span)> = Vec::new();
    diagnostics.retain(|diagnostic| {
        let Some(span) = &diagnostic.span else { return true };
        let key = (diagnostic.code, span.clone());
        let is_new = !seen.iter().rev().take_while(|(_, other)| other == span).any(|known| *known == key);
        seen.push(key);
        is_new
    });
}

/// All diagnostics as text, a blank line between two.
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
        let _ = write!(text, "{}: ", style.paint(BOLD, &printable(&span.to_string())));
    }
    let label = style.paint(colour, &format!("{word}[{}]", diagnostic.code));
    let _ = writeln!(text, "{label}: {}", printable(&diagnostic.full_message()));
    if let Some(span) = &diagnostic.span {
        let source = tree.files.get(&span.file).and_then(|file| file.lines().nth(span.line as usize - 1));
        if let Some(line) = source.filter(|line| !line.trim().is_empty() && !holds_secret(line)) {
            draw_line(&mut text, line, span, colour, style);
        }
    }
    let following = diagnostic.path.iter().skip(1).chain(diagnostic.path.first());
    for (step, next) in diagnostic.path.iter().zip(following) {
        let place = step.span.as_ref().map_or(String::new(), |span| format!(": {span}"));
        let _ = writeln!(text, "  {} → {}{}", printable(&step.name), printable(&next.name), printable(&place));
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(text, "  {} {}", style.paint(CYAN, "hint:"), printable(hint));
    }
    text
}

/// The source line and a caret under the place; a long line is shown around it.
fn draw_line(text: &mut String, line: &str, span: &Span, colour: &str, style: Style) {
    let line = line.strip_prefix('\u{FEFF}').unwrap_or(line);
    let characters: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let at = (span.column as usize - 1).min(characters.len());
    let start = if characters.len() > SHOWN_WIDTH { at.saturating_sub(SHOWN_WIDTH / 3) } else { 0 };
    let end = (start + SHOWN_WIDTH).min(characters.len());
    let shown: String = characters[start..end].iter().collect();
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < characters.len() { "…" } else { "" });
    let number = span.line.to_string();
    let margin = " ".repeat(number.len());
    let length = (span.length as usize).clamp(1, (end - at.min(end)).max(1));
    let marked = &characters[at.min(end)..(at + length).min(end)];
    let carets = "^".repeat(width(marked).max(1));
    let indent = " ".repeat(width(&characters[start..at]) + before.chars().count());
    let _ = writeln!(text, "  {} {before}{shown}{after}", style.paint(CYAN, &format!("{number} |")));
    let _ = writeln!(text, "  {} {indent}{}", style.paint(CYAN, &format!("{margin} |")), style.paint(colour, &carets));
}

/// Columns of a terminal: East Asian characters and pictures take two, marks on other characters none.
fn width(characters: &[char]) -> usize {
    let of_one = |c: &char| match *c as u32 {
        0x0300..=0x036F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    };
    characters.iter().map(of_one).sum()
}

/// Whether a line of the project file has something in it that belongs on no terminal.
fn holds_secret(line: &str) -> bool {
    const WORDS: [&str; 4] = ["secret", "password", "token", "api_key"];
    let line = line.to_ascii_lowercase();
    WORDS.iter().any(|word| line.contains(word)) || (line.contains("://") && line.contains('@'))
}

/// Project text may hold escape codes; a terminal must not obey them.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// `2 errors, 1 warning`.
pub fn counts(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.len() - errors;
    format!("{}, {}", plural(errors, "error"), plural(warnings, "warning"))
}

/// `1 cube`, `2 cubes`.
pub fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// One diagnostic for scripts.
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
    /// The column after the last character that is meant.
    end_column: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<StepJson<'a>>,
}

/// One part of a circle, and where it refers to the next.
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
    fn the_caret_stands_under_the_place() {
        let problem = Diagnostic::error(Code::UnknownKey, "no `nmae`").hint("did you mean `name`?").at(at(2, 5, 4));
        let drawn = draw(&[problem], &tree("cubes:\n  - nmae: x\n"), Style::Plain);
        let expected = "cubes/a.yml:2:5: error[unknown-key]: no `nmae`\n  2 |   - nmae: x\n    |     ^^^^\n  hint: did you mean `name`?\n";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn the_caret_follows_wide_characters_and_tabs() {
        let problem = || Diagnostic::error(Code::SqlSyntax, "y").at(at(1, 4, 1));
        let wide = draw(&[problem()], &tree("電子 x"), Style::Plain);
        assert!(wide.contains("  1 | 電子 x\n    |      ^\n"), "{wide}");
        let tabs = draw(&[problem()], &tree("\t\t x"), Style::Plain);
        assert!(tabs.contains("  1 |    x\n    |    ^\n"), "{tabs}");
    }

    #[test]
    fn places_beyond_the_text_and_escape_codes_do_no_harm() {
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
    fn what_two_stages_found_is_told_once() {
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
