//! One project with the unsaved content of its files, and the analysis of both.
//!
//! In: the files of a port, and the contents that an editor sends. Out: diagnostics, and an [`Analysis`] for the
//! features. While a file is not valid YAML, the analysis uses the last valid content of the file, so that completion
//! and hover work while the author types. Not here: messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{Position, Range};
use terrane_compiler::diagnostic::{self, Diagnostic, Span};
use terrane_compiler::model::build;
use terrane_compiler::project::schema::{FileKind, Schema, schema};
use terrane_compiler::project::{Definitions, SourceFile, SourceTree, read, yaml};

use crate::index::{Index, Occurrence};
use crate::ports::{FileSchemas, ProjectFiles};
use crate::position;

/// The largest file that the compiler reads.
const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// The name of the project file.
pub(crate) const PROJECT_FILE: &str = "service_project.yml";

/// One open project.
pub struct Workspace {
    files: Box<dyn ProjectFiles>,
    root: PathBuf,
    schemas: FileSchemas,
    /// The files on disk.
    disk: SourceTree,
    unreadable: Vec<Diagnostic>,
    /// The contents of files that are open in the editor. They replace the files on disk.
    open: BTreeMap<Arc<str>, Arc<str>>,
    /// The last valid text of each file.
    parsed: BTreeMap<Arc<str>, Arc<str>>,
    is_outdated: bool,
    is_unpublished: bool,
    analysis: Analysis,
}

/// The analysis of the files at one moment.
#[derive(Default)]
pub(crate) struct Analysis {
    pub(crate) definitions: Definitions,
    pub(crate) index: Index,
    /// The files that the definitions and the index were made from.
    pub(crate) tree: SourceTree,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Returns whether a file may belong to a project, by its ending.
pub fn is_watched(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| ["yml", "yaml", "sql"].contains(&&*ending.to_ascii_lowercase()))
}

impl Workspace {
    /// Reads the files of a project.
    pub fn new(files: Box<dyn ProjectFiles>) -> Workspace {
        let (disk, unreadable) = files.read_all();
        let (root, schemas) = (files.root(), files.schemas());
        Workspace {
            files,
            root,
            schemas,
            disk,
            unreadable,
            open: BTreeMap::new(),
            parsed: BTreeMap::new(),
            is_outdated: true,
            is_unpublished: true,
            analysis: Analysis::default(),
        }
    }

    /// Returns the absolute path of the project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the relative path of a file in the project, with forward slashes. Returns `None` for other files.
    pub fn relative(&self, path: &Path) -> Option<Arc<str>> {
        let inside = path.strip_prefix(&self.root).ok()?.to_str()?.replace('\\', "/");
        (is_watched(&inside) && !inside.split('/').any(|part| part == "..")).then(|| inside.into())
    }

    /// Replaces the text of a file with the editor's text.
    pub fn change(&mut self, path: &Arc<str>, text: &str) {
        self.open.insert(Arc::clone(path), text.into());
        self.mark_changed();
    }

    /// Discards the editor's text, so that the text on disk is used again.
    pub fn close(&mut self, path: &str) {
        if self.open.remove(path).is_some() {
            self.mark_changed();
        }
    }

    /// Reloads a file that was created, changed or deleted on disk. A file outside the project's folders is only used
    /// while it is open.
    pub fn reload(&mut self, path: &Arc<str>) {
        match self.files.read(path) {
            Some(text) => self.disk.files.insert(Arc::clone(path), text),
            None => self.disk.files.remove(path),
        };
        self.mark_changed();
    }

    /// Reloads all files after a change of folders.
    pub fn reload_all(&mut self) {
        (self.disk, self.unreadable) = self.files.read_all();
        self.mark_changed();
    }

    /// Returns true if files have changed since diagnostics were last taken.
    pub(crate) fn is_unpublished(&self) -> bool {
        self.is_unpublished
    }

    /// Returns the problems of the current files, and marks them as published.
    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        self.is_unpublished = false;
        self.diagnostics().to_vec()
    }

    fn mark_changed(&mut self) {
        (self.is_outdated, self.is_unpublished) = (true, true);
    }

    /// Returns the current text of a file.
    pub fn text(&self, path: &str) -> Option<&Arc<str>> {
        self.open.get(path).or_else(|| self.disk.files.get(path))
    }

    /// Returns the current contents of all files.
    pub(crate) fn tree(&self) -> SourceTree {
        let mut tree = self.disk.clone();
        tree.files.extend(self.open.iter().map(|(path, text)| (Arc::clone(path), Arc::clone(text))));
        tree
    }

    /// Returns the problems of the current files.
    pub fn diagnostics(&mut self) -> &[Diagnostic] {
        &self.analysis().diagnostics
    }

    pub(crate) fn analysis(&mut self) -> &Analysis {
        if std::mem::replace(&mut self.is_outdated, false) {
            self.analyze();
        }
        &self.analysis
    }

    fn analyze(&mut self) {
        let tree = self.tree();
        let mut fallback = tree.clone();
        for (path, text) in &tree.files {
            if is_yaml(path, text) {
                self.parsed.insert(Arc::clone(path), Arc::clone(text));
            } else if let Some(last) = self.parsed.get(path).or_else(|| self.saved(path)) {
                fallback.files.insert(Arc::clone(path), Arc::clone(last));
            }
        }
        self.parsed.retain(|path, _| tree.files.contains_key(path));
        let (definitions, mut diagnostics) = self.check(&tree);
        diagnostics.extend(self.unreadable.iter().cloned());
        diagnostic::sort(&mut diagnostics);
        let has_fallback = fallback.files != tree.files;
        let definitions = if has_fallback {
            read(&definition_files(&fallback), &self.files.inputs(&fallback)).0
        } else {
            definitions
        };
        let index = Index::of(&definitions, &fallback);
        self.analysis = Analysis { definitions, index, tree: fallback, diagnostics };
    }

    /// Returns the text on disk, if it is YAML.
    fn saved(&self, path: &Arc<str>) -> Option<&Arc<str>> {
        self.disk.files.get(path).filter(|text| is_yaml(path, text))
    }

    /// Returns the definitions and all problems of a tree.
    pub(crate) fn check(&self, tree: &SourceTree) -> (Definitions, Vec<Diagnostic>) {
        let (definitions, mut diagnostics) = read(&definition_files(tree), &self.files.inputs(tree));
        let (model, found) = build(&definitions);
        diagnostics.extend(found);
        diagnostics.extend(self.files.check(tree, &definitions, &model));
        // The compiler and the settings both report a project file that is not YAML. Only one of two equal problems is
        // returned.
        let mut unique: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len());
        for diagnostic in diagnostics {
            if !unique.contains(&diagnostic) {
                unique.push(diagnostic);
            }
        }
        (definitions, unique)
    }

    /// Returns the schema of a file by its path in the project. Returns `None` for SQL files.
    pub(crate) fn schema(&self, path: &str) -> Option<Schema> {
        if path.ends_with(".sql") {
            return None;
        }
        Some(match path {
            PROJECT_FILE => self.schemas.project.clone(),
            path if path.starts_with("tests/") => self.schemas.tests.clone(),
            _ => schema(FileKind::Definitions),
        })
    }

    /// Returns the occurrences at a position, the shortest first. Returns none if the file's current text is not valid
    /// YAML, because the places then belong to an older text.
    pub(crate) fn occurrences_at(&mut self, path: &str, position: Position) -> Vec<Occurrence> {
        let current = self.text(path).cloned();
        let analysis = self.analysis();
        let Some(text) = analysis.tree.files.get(path).filter(|text| Some(*text) == current.as_ref()) else {
            return Vec::new();
        };
        let is_here = |found: &&Occurrence| {
            &*found.span.file == path
                && found.span.line == position.line.saturating_add(1)
                && position::contains(position::range(text, &found.span), position)
        };
        let mut found: Vec<Occurrence> = analysis.index.occurrences.iter().filter(is_here).cloned().collect();
        found.sort_by_key(|found| (found.span.length, found.symbol.clone()));
        found
    }

    /// Returns the range of a span in the files that were last analyzed.
    pub(crate) fn range(&self, span: &Span) -> Range {
        let text = self.analysis.tree.files.get(&span.file).map(|text| &**text).unwrap_or_default();
        position::range(text, span)
    }
}

/// Returns the tree without tests, which the compiler does not read.
fn definition_files(tree: &SourceTree) -> SourceTree {
    let is_of_tests = |path: &str| path.starts_with("tests/");
    let files = tree.files.iter().filter(|(path, _)| !is_of_tests(path));
    SourceTree { files: files.map(|(path, text)| (Arc::clone(path), Arc::clone(text))).collect() }
}

fn is_yaml(path: &Arc<str>, text: &Arc<str>) -> bool {
    let file = || Arc::new(SourceFile { path: Arc::clone(path), text: Arc::clone(text) });
    path.ends_with(".sql") || (text.len() <= MAX_FILE_BYTES && yaml::parse(&file()).is_ok())
}
