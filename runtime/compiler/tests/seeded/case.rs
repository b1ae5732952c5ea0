//! Reads the cases and creates their projects.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use terrane_compiler::diagnostic::{self, Diagnostic, Span};
use terrane_compiler::model::build;
use terrane_compiler::project::{Inputs, SourceTree, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    #[serde(skip)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// The line ends of every file. With `windows`, lines end with a carriage return as well.
    #[serde(default)]
    line_ends: Option<LineEnds>,
    /// True if every file begins with a byte order mark.
    #[serde(default)]
    byte_order_mark: bool,
    #[serde(default)]
    edits: Vec<Edit>,
    /// The additional files of the project.
    #[serde(default)]
    files: BTreeMap<String, String>,
    pub(crate) reported: Vec<ExpectedDiagnostic>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum LineEnds {
    Windows,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    /// The text to replace, which occurs once in the file.
    replace: String,
    by: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedDiagnostic {
    pub(crate) code: String,
    #[serde(default)]
    severity: Option<Warning>,
    /// The words that the message must contain.
    pub(crate) cause: Vec<String>,
    /// The words that the hint must contain.
    pub(crate) cure: Vec<String>,
    /// For a cycle, the beginning of the place of each of its references.
    #[serde(default)]
    pub(crate) path: Vec<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Warning {
    Warning,
}

impl ExpectedDiagnostic {
    pub(crate) fn is_warning(&self) -> bool {
        self.severity.is_some()
    }
}

impl Case {
    /// Returns the project with the mistake, and the places of the marks.
    pub(crate) fn tree(&self) -> (SourceTree, Vec<Span>) {
        let mut files: BTreeMap<String, String> =
            base().files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        for edit in &self.edits {
            let text = files.get_mut(&edit.file).unwrap_or_else(|| panic!("{}: no {}", self.name, edit.file));
            assert_eq!(text.matches(&edit.replace).count(), 1, "{}: {:?} stands once", self.name, edit.replace);
            *text = text.replacen(&edit.replace, &edit.by, 1);
        }
        files.extend(self.files.clone());
        let mut tree = SourceTree::default();
        let mut marks = Vec::new();
        for (path, mut text) in files {
            while let Some(open) = text.find('⟦') {
                let close = text.find('⟧').unwrap_or_else(|| panic!("{}: a mark is never closed", self.name));
                let before = &text[..open];
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                let marked = text[open + '⟦'.len_utf8()..close].to_owned();
                marks.push(Span {
                    file: path.as_str().into(),
                    line: before.matches('\n').count() as u32 + 1,
                    column: before[line_start..].chars().count() as u32 + 1,
                    length: (marked.chars().count() as u32).max(1),
                });
                text = format!("{before}{marked}{}", &text[close + '⟧'.len_utf8()..]);
            }
            if self.line_ends.is_some() {
                text = text.replace('\n', "\r\n");
            }
            if self.byte_order_mark {
                text.insert(0, '\u{FEFF}');
            }
            tree.files.insert(path.into(), text.into());
        }
        (tree, marks)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeded")
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

pub(crate) fn areas() -> Vec<String> {
    sorted(&root().join("cases")).iter().map(|path| stem(path)).collect()
}

pub(crate) fn cases(area: &str) -> Vec<Case> {
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let case: Case = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Case { name: stem(path), ..case }
    };
    sorted(&root().join("cases").join(area)).iter().map(read).collect()
}

/// Returns the project without mistakes.
pub(crate) fn base() -> SourceTree {
    fn add(root: &Path, folder: &Path, files: &mut BTreeMap<Arc<str>, Arc<str>>) {
        for path in sorted(folder) {
            if path.is_dir() {
                add(root, &path, files);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
                files.insert(name.into(), fs::read_to_string(&path).unwrap().into());
            }
        }
    }
    let root = root().join("base");
    let mut tree = SourceTree::default();
    add(&root, &root, &mut tree.files);
    tree
}

/// Loads a project and returns all its diagnostics, ordered by place.
pub(crate) fn load(tree: &SourceTree, env: &BTreeMap<String, String>) -> Vec<Diagnostic> {
    let inputs = Inputs { warehouse: "duckdb".into(), env: env.clone(), ..Inputs::default() };
    let (definitions, mut diagnostics) = read(tree, &inputs);
    diagnostics.extend(build(&definitions).1);
    diagnostic::sort(&mut diagnostics);
    diagnostics
}
