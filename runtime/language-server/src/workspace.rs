//! One project with the unsaved content of its files, and the analysis of both.
//!
//! In: the files of a port, and the contents that an editor sends. Out: diagnostics, and an [`Analysis`] for the
//! features. While a file is not valid YAML, the analysis uses the last valid content of the file. So completion works
//! while the author types, and hover works in other files. Other programs may change files that are not open:
//! [`Workspace::refresh`] compares them with the disk. Not here: messages.

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
    /// The files that are open in the editor. They replace the files on disk.
    open: BTreeMap<Arc<str>, OpenFile>,
    /// The last valid text of each file.
    parsed: BTreeMap<Arc<str>, Arc<str>>,
    /// True if files on disk may differ from `disk`.
    is_stale: bool,
    is_outdated: bool,
    is_unpublished: bool,
    analysis: Analysis,
}

/// The content of a file in the editor.
struct OpenFile {
    text: Arc<str>,
    /// The number that the editor gave this content.
    version: Option<i32>,
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
    /// Opens the project of `files` and reads every file from disk.
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
            is_stale: false,
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

    /// Replaces the text of a file with the editor's text. `version` is the editor's number of this text.
    pub fn change(&mut self, path: &Arc<str>, text: &str, version: Option<i32>) {
        self.open.insert(Arc::clone(path), OpenFile { text: text.into(), version });
        self.mark_changed();
    }

    /// Discards the editor's text, so that the text on disk is used again.
    pub fn close(&mut self, path: &str) {
        if self.open.remove(path).is_some() {
            self.mark_stale();
            self.mark_changed();
        }
    }

    /// Records that files were created, changed or deleted on disk. They are read before the next analysis.
    pub fn mark_stale(&mut self) {
        (self.is_stale, self.is_unpublished) = (true, true);
    }

    /// Reads the files on disk. The next analysis uses them if the project has changed. A file outside the project's
    /// folders is only used while it is open.
    pub fn refresh(&mut self) {
        self.is_stale = false;
        let before = self.tree();
        let (mut disk, unreadable) = self.files.read_all();
        // Some programs replace a file by deleting it first. Without the project file, the folders are unknown.
        if !disk.files.contains_key(PROJECT_FILE) {
            disk.files.clone_from(&self.disk.files);
            disk.files.remove(PROJECT_FILE);
        }
        self.disk = disk;
        if unreadable != self.unreadable || self.tree().files != before.files {
            self.unreadable = unreadable;
            self.mark_changed();
        }
    }

    /// Returns true if a file has the content that was analyzed, on disk or in the editor.
    pub(crate) fn is_current(&self, path: &str) -> bool {
        let analyzed = self.analysis.tree.files.get(path);
        match self.open.get(path) {
            Some(open) => analyzed == Some(&open.text),
            None => analyzed.is_some() && analyzed == self.files.read(path).as_ref(),
        }
    }

    /// Returns the editor's number of a file's content; `None` if the file is not open.
    pub(crate) fn version(&self, path: &str) -> Option<i32> {
        self.open.get(path)?.version
    }

    /// Returns the paths of the files that are open in the editor.
    pub(crate) fn open_files(&self) -> impl Iterator<Item = &Arc<str>> {
        self.open.keys()
    }

    /// Returns true if files have changed since diagnostics were last taken.
    pub(crate) fn is_unpublished(&self) -> bool {
        self.is_unpublished
    }

    /// Returns the problems of the files on disk and in the editor, and marks them as published.
    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        self.refresh();
        self.is_unpublished = false;
        self.diagnostics().to_vec()
    }

    fn mark_changed(&mut self) {
        (self.is_outdated, self.is_unpublished) = (true, true);
    }

    /// Returns the current text of a file.
    pub fn text(&self, path: &str) -> Option<&Arc<str>> {
        self.open.get(path).map(|open| &open.text).or_else(|| self.disk.files.get(path))
    }

    /// Returns the current contents of all files.
    pub(crate) fn tree(&self) -> SourceTree {
        let mut tree = self.disk.clone();
        tree.files.extend(self.open.iter().map(|(path, open)| (Arc::clone(path), Arc::clone(&open.text))));
        tree
    }

    /// Returns the problems of the current files.
    pub fn diagnostics(&mut self) -> &[Diagnostic] {
        &self.analysis().diagnostics
    }

    pub(crate) fn analysis(&mut self) -> &Analysis {
        if self.is_stale {
            self.refresh();
        }
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
    let unmarked = || text.strip_prefix(position::BYTE_ORDER_MARK).map_or_else(|| Arc::clone(text), Arc::from);
    let file = || Arc::new(SourceFile { path: Arc::clone(path), text: unmarked() });
    path.ends_with(".sql") || (text.len() <= MAX_FILE_BYTES && yaml::parse(&file()).is_ok())
}
