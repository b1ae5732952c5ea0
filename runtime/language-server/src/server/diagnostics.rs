//! Converts the problems of a project to the protocol's diagnostics.

use std::collections::BTreeMap;
use std::sync::Arc;

use lsp_types::{Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Range};
use terrane_compiler::diagnostic::{self, Severity, Span, Step};

use crate::position;
use crate::uri::uri_of;
use crate::workspace::{PROJECT_FILE, Workspace};

/// The largest number of diagnostics of a file. Editors slow down with more.
const MAX_OF_FILE: usize = 500;

/// The lines of files. Each file is split once, although many places refer to it.
struct Lines<'w> {
    workspace: &'w Workspace,
    files: BTreeMap<Arc<str>, Vec<&'w str>>,
}

impl<'w> Lines<'w> {
    fn range(&mut self, span: &Span) -> Range {
        let workspace = self.workspace;
        let lines = self.files.entry(Arc::clone(&span.file)).or_insert_with(|| {
            let text = workspace.text(&span.file).map(|text| &**text).unwrap_or_default();
            position::lines(text).collect()
        });
        position::range_in(lines.get(span.line.saturating_sub(1) as usize).copied().unwrap_or_default(), span)
    }
}

/// Returns the diagnostics of each file. Problems that belong to no file of the project go to the project file.
pub(super) fn by_file(workspace: &Workspace, found: &[diagnostic::Diagnostic]) -> BTreeMap<Arc<str>, Vec<Diagnostic>> {
    let mut lines = Lines { workspace, files: BTreeMap::new() };
    let mut files: BTreeMap<Arc<str>, Vec<Diagnostic>> = BTreeMap::new();
    for diagnostic in found {
        let span = diagnostic.span.as_ref().filter(|span| workspace.text(&span.file).is_some());
        let file = span.map_or_else(|| Arc::from(PROJECT_FILE), |span| Arc::clone(&span.file));
        let of_file = files.entry(file).or_default();
        if of_file.len() < MAX_OF_FILE {
            let range = span.map(|span| lines.range(span)).unwrap_or_default();
            of_file.push(convert(diagnostic, range, &mut lines));
        }
    }
    files
}

fn convert(found: &diagnostic::Diagnostic, range: Range, lines: &mut Lines<'_>) -> Diagnostic {
    let message = match found.full_hint() {
        Some(hint) => format!("{}\nhint: {hint}", found.full_message()),
        None => found.full_message().into_owned(),
    };
    let related: Vec<DiagnosticRelatedInformation> =
        found.path.iter().filter_map(|step| related(step, lines)).collect();
    Diagnostic {
        range,
        severity: Some(match found.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(found.code.as_str().to_owned())),
        source: Some("terrane".to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        ..Diagnostic::default()
    }
}

fn related(step: &Step, lines: &mut Lines<'_>) -> Option<DiagnosticRelatedInformation> {
    let span = step.span.as_ref()?;
    let uri = uri_of(&lines.workspace.root().join(&*span.file))?;
    Some(DiagnosticRelatedInformation {
        location: Location { uri, range: lines.range(span) },
        message: format!("`{}` refers to the next", step.name),
    })
}
