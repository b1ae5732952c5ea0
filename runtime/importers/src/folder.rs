//! Finds and reads the files of a model.
//!
//! In: a folder. Out: the paths and the contents of the files with the given names. All files are opened relative to
//! the opened folder, so that nothing outside it is read. The number, size and depth of files are bounded.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use terrane_authoring::{AuthoringError, regular_file};
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::project::{SourceFile, SourceTree};

use crate::finding::unread;

const MAX_FILES: usize = 5_000;
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_DEPTH: usize = 16;
/// The number of folder entries after which the search ends with an error.
const MAX_ENTRIES: usize = 200_000;
/// The largest number of findings in the message for a folder without a model.
const MAX_LISTED: usize = 10;

/// The files of a model.
pub(crate) struct ModelFolder {
    root: Dir,
    /// The paths of the wanted files, in order.
    pub(crate) paths: Vec<String>,
    /// The files that were read so far.
    pub(crate) tree: SourceTree,
}

/// The files and folders that a format reads.
pub(crate) struct FileSelection {
    /// Returns true for the name of a file that the format reads, or whose omission it reports.
    pub(crate) is_wanted: fn(&str) -> bool,
    /// The names of folders that are not searched, in addition to those that begin with a dot.
    pub(crate) skipped: &'static [&'static str],
}

impl ModelFolder {
    /// Finds the selected files of a folder.
    ///
    /// # Errors
    /// The folder cannot be read, or contains too many files.
    pub(crate) fn open(dir: &Path, selection: &FileSelection) -> Result<Self, AuthoringError> {
        let failed = |error: std::io::Error| {
            AuthoringError::new(format!("could not read {}: {error}", dir.display()))
                .hint("Name the folder that contains the model.")
        };
        let root = Dir::open_ambient_dir(dir, ambient_authority()).map_err(failed)?;
        let mut search = Search { root: &root, selection, paths: Vec::new(), entries: 0 };
        search.walk("", 0).map_err(failed)?;
        let Search { mut paths, entries, .. } = search;
        if paths.len() > MAX_FILES || entries > MAX_ENTRIES {
            return Err(AuthoringError::new(format!("{} contains more than {MAX_FILES} files", dir.display()))
                .hint("Name the folder that contains only the model."));
        }
        paths.sort();
        Ok(ModelFolder { root, paths, tree: SourceTree::default() })
    }

    /// Reads a file. If that fails, adds a finding with the reason and returns `None`.
    pub(crate) fn read(&mut self, path: &str, findings: &mut Vec<Diagnostic>) -> Option<Arc<SourceFile>> {
        match self.bytes(path, MAX_FILE_BYTES).and_then(utf8) {
            Ok(text) => {
                let text: Arc<str> = text.into();
                self.tree.files.insert(path.into(), Arc::clone(&text));
                Some(Arc::new(SourceFile { path: path.into(), text }))
            }
            Err(reason) => {
                let what = format!("could not read {path}: {reason}");
                findings.push(unread(path, what, "Check the file."));
                None
            }
        }
    }

    /// Reads the bytes of any file below the folder, even if the selection does not contain it.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be read: an error of the operating system, or its size.
    pub(crate) fn bytes(&self, path: &str, most: u64) -> Result<Vec<u8>, String> {
        let file = regular_file::open(&self.root, path).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > most {
            return Err(format!("it is larger than {} MiB", most / (1024 * 1024)));
        }
        Ok(bytes)
    }

    /// Returns true if the folder contains the file.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.root.metadata(path).is_ok_and(|found| found.is_file())
    }
}

/// Checks a folder in which no model was found. If files were not read, for example because of syntax errors, the model
/// may be in these files. The findings are then the result of the import.
///
/// # Errors
/// All files were read. The error lists the first findings.
pub(crate) fn check_without_model(
    dir: &Path,
    what: &str,
    hint: &str,
    findings: &[Diagnostic],
) -> Result<(), AuthoringError> {
    if findings.iter().any(|finding| finding.code == Code::NotRead) {
        return Ok(());
    }
    let findings: String = findings.iter().take(MAX_LISTED).map(|finding| format!("\n  {finding}")).collect();
    Err(AuthoringError::new(format!("{} contains no {what}{findings}", dir.display())).hint(hint))
}

struct Search<'s> {
    root: &'s Dir,
    selection: &'s FileSelection,
    paths: Vec<String>,
    entries: usize,
}

impl Search<'_> {
    fn walk(&mut self, at: &str, depth: usize) -> std::io::Result<()> {
        if depth > MAX_DEPTH {
            return Ok(());
        }
        for entry in self.root.read_dir(if at.is_empty() { "." } else { at })? {
            self.entries += 1;
            if self.paths.len() > MAX_FILES || self.entries > MAX_ENTRIES {
                return Ok(());
            }
            let Ok(name) = entry?.file_name().into_string() else { continue };
            if name.starts_with('.') || self.selection.skipped.contains(&name.as_str()) {
                continue;
            }
            let path = if at.is_empty() { name.clone() } else { format!("{at}/{name}") };
            match self.root.metadata(&path) {
                Ok(found) if found.is_dir() => self.walk(&path, depth + 1)?,
                Ok(_) if (self.selection.is_wanted)(&name) => self.paths.push(path),
                // Files with other names, links to missing files, and links out of the folder are skipped.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }
}

fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}
