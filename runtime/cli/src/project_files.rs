//! Reads the files of a project. Files outside its folder cannot be read.
//!
//! In: the path of a folder. Out: the files of the project as a [`SourceTree`], and a diagnostic for each unusable
//! file. Limits on the number, size and depth of files stop the reading of a wrong folder (`/`, a home folder). Not
//! here: the meaning of the files, and data files, which the warehouse reads.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use terrane_authoring::regular_file;
use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::project::{SourceTree, names_in};
use terrane_compiler::text::nearest::resembling;

use crate::config::{Folders, PROJECT_FILE};
use crate::failure::Failure;

const MAX_ENTRIES: usize = 20_000;
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_TOTAL_BYTES: u64 = 256 * 1024 * 1024;
const MAX_DEPTH: usize = 16;
/// The folders of a project that contain no definitions.
const OTHER_FOLDERS: [&str; 3] = ["data", "plugins", TESTS];
/// Folders and files that a project does not read, because the state database or the settings contain their
/// definitions; each with a hint.
const STORED_ELSEWHERE: [(&str, &str); 3] = [
    ("monitors", "Create monitors with POST /api/v1/anomaly/monitors."),
    ("glossary", "Import terms with `terrane governance import`."),
    (
        "guardrails.yml",
        "Set the limits of `optimization` in service_project.yml, or those of users and groups over the API.",
    ),
];
const TESTS: &str = terrane_expectations::FOLDER;
const ENDINGS: [&str; 3] = ["yml", "yaml", "sql"];

/// An open project folder.
#[derive(Debug)]
pub struct ProjectFolder {
    root: PathBuf,
    dir: Dir,
}

impl ProjectFolder {
    /// Opens a folder that contains the project file. The path may also name the file.
    ///
    /// # Errors
    /// The folder does not exist, or contains no project file.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let folder = if path.ends_with(PROJECT_FILE) && path.is_file() { path.parent().unwrap_or(path) } else { path };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let root = folder.canonicalize().map_err(|error| missing_folder(path, &error))?;
        if !root.is_dir() {
            return Err(Failure::new(format!("{} is a file, not the folder of a project", path.display()))
                .hint(format!("Name the folder that contains {PROJECT_FILE}.")));
        }
        let dir = Dir::open_ambient_dir(&root, ambient_authority()).map_err(|error| missing_folder(path, &error))?;
        if !dir.exists(PROJECT_FILE) {
            let message = format!("{} does not contain {PROJECT_FILE}", path.display());
            return Err(Failure::new(message).hint(where_instead(&root)));
        }
        Ok(ProjectFolder { root, dir })
    }

    /// Returns the absolute path of the folder, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the absolute path of a file inside the project. The file may be missing.
    ///
    /// # Errors
    /// The path leaves the project.
    pub fn inside(&self, path: &str) -> Result<PathBuf, Diagnostic> {
        let relative = Path::new(path);
        let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        // A link may lead out of the project even if the file itself does not exist yet.
        let existing = relative.ancestors().find(|part| self.dir.symlink_metadata(part).is_ok());
        let leaves = existing.is_some_and(|part| self.dir.metadata(part).is_err_and(|error| is_escape(&error)));
        if !is_plain || leaves {
            return Err(outside(path));
        }
        Ok(self.root.join(relative))
    }

    /// Returns the text of the project file.
    ///
    /// # Errors
    /// The file is too large, not UTF-8, or a link out of the folder.
    pub fn settings(&self) -> Result<Arc<str>, Diagnostic> {
        let mut bytes_left = MAX_TOTAL_BYTES;
        read_text(&self.dir, PROJECT_FILE, &mut bytes_left)
    }

    /// Returns the text of a file; `None` if it is missing, too large, not UTF-8, or outside the folder.
    pub fn text(&self, path: &str) -> Option<Arc<str>> {
        let mut bytes_left = MAX_TOTAL_BYTES;
        read_text(&self.dir, path, &mut bytes_left).ok()
    }

    /// Reads the project file and every YAML and SQL file of the project's folders. Unreadable files are reported and
    /// left out.
    pub fn collect(&self, folders: &Folders) -> (SourceTree, Vec<Diagnostic>) {
        let mut walk = Walk::new(&self.dir);
        walk.file(PROJECT_FILE);
        for name in [&folders.sources, &folders.models, &folders.cubes, &folders.metrics, &folders.policies] {
            walk.is_of_models = name == &folders.models;
            walk.start(name);
        }
        walk.misnamed(folders);
        walk.stored_elsewhere(folders);
        (walk.tree, walk.diagnostics)
    }

    /// Returns the possible names in a file that is not UTF-8. References to them are not reported as unknown.
    pub fn names_in(&self, path: &str) -> BTreeSet<Arc<str>> {
        let mut bytes = Vec::new();
        let file = regular_file::open(&self.dir, path);
        let read = file.and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
        if read.is_err() {
            return BTreeSet::new();
        }
        // UTF-16 has a zero beside each letter of a name.
        bytes.retain(|byte| *byte != 0);
        names_in(&String::from_utf8_lossy(&bytes)).collect()
    }

    /// Reads the YAML files of one folder.
    pub fn collect_folder(&self, name: &str) -> (SourceTree, Vec<Diagnostic>) {
        let mut walk = Walk::new(&self.dir);
        walk.start(name);
        (walk.tree, walk.diagnostics)
    }
}

/// The files found so far, and the remaining limits. Paths are relative to the project's folder, so that a link may
/// lead from one of its folders to another.
struct Walk<'a> {
    dir: &'a Dir,
    tree: SourceTree,
    diagnostics: Vec<Diagnostic>,
    bytes_left: u64,
    entries_left: usize,
    /// True if the current folder is the folder of models.
    is_of_models: bool,
    /// The folders that were read, by device and inode.
    seen: HashSet<(u64, u64)>,
}

impl<'a> Walk<'a> {
    fn new(dir: &'a Dir) -> Self {
        Walk {
            dir,
            tree: SourceTree::default(),
            diagnostics: Vec::new(),
            bytes_left: MAX_TOTAL_BYTES,
            entries_left: MAX_ENTRIES,
            is_of_models: false,
            seen: HashSet::new(),
        }
    }

    /// Reads one of the project's folders, if it exists.
    fn start(&mut self, name: &str) {
        let name = name.trim_start_matches("./").trim_end_matches('/');
        let path = if name == "." { "" } else { name };
        match self.dir.metadata(if path.is_empty() { "." } else { path }) {
            Ok(metadata) if metadata.is_dir() => self.folder(path, 0),
            Ok(_) => {
                let message = format!("`{path}` is a file, not a folder");
                self.diagnostics.push(Diagnostic::error(Code::UnreadableFile, message).at(start_of(path)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.diagnostics.push(explain(path, &error)),
        }
    }

    /// Reports folders that are not read although their names resemble the name of a folder that is read. A folder that
    /// may contain policies is an error, because without its policies callers would see protected rows.
    fn misnamed(&mut self, folders: &Folders) {
        let read = [&folders.sources, &folders.models, &folders.cubes, &folders.metrics, &folders.policies];
        let (read, policies) = (read.map(|name| plain(name)), plain(&folders.policies));
        let is_stored = |name: &str| STORED_ELSEWHERE.iter().any(|(stored, _)| *stored == name);
        let names = self.dir.read_dir(".").into_iter().flatten().take(MAX_ENTRIES).flatten();
        let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.') && !is_read(folders, name) && !is_stored(name));
        names.sort_unstable();
        for name in names {
            let known = read.iter().map(String::as_str).chain([TESTS]);
            let Some(meant) = resembling(&name, known) else { continue };
            let is_folder = self.dir.metadata(&name).is_ok_and(|metadata| metadata.is_dir());
            let mut inside = self.dir.read_dir(&name).into_iter().flatten().take(MAX_ENTRIES).flatten();
            if !is_folder || !inside.any(|entry| entry.file_name().to_str().is_some_and(has_known_ending)) {
                continue;
            }
            let message = format!("the folder `{name}` is not read");
            let otherwise =
                if meant == TESTS { String::new() } else { format!(", or name it in `paths` of {PROJECT_FILE}") };
            let hint = format!("Rename it to `{meant}`{otherwise}.");
            let make = if meant == policies { Diagnostic::error } else { Diagnostic::warning };
            self.diagnostics.push(make(Code::FolderNotRead, message).hint(hint).at(start_of(&name)));
        }
    }

    /// Reports definitions that are not a part of a project's files.
    fn stored_elsewhere(&mut self, folders: &Folders) {
        for (name, hint) in STORED_ELSEWHERE.into_iter().filter(|(name, _)| !is_read(folders, name)) {
            let Ok(metadata) = self.dir.metadata(name) else { continue };
            let (what, code) =
                if metadata.is_dir() { ("folder", Code::FolderNotRead) } else { ("file", Code::FileNotRead) };
            let message = format!("the {what} `{name}` is not read");
            self.diagnostics.push(Diagnostic::warning(code, message).hint(hint).at(start_of(name)));
        }
    }

    fn folder(&mut self, path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            let message = format!("`{path}` is nested deeper than {MAX_DEPTH} folders");
            let hint = "Move the files up, or remove a link that leads back.";
            self.diagnostics.push(Diagnostic::error(Code::TooDeep, message).hint(hint).at(start_of(path)));
            return;
        }
        let here = self.dir.metadata(if path.is_empty() { "." } else { path });
        self.seen.extend(here.map(|here| (here.dev(), here.ino())).ok());
        let mut names: Vec<String> = Vec::new();
        let entries = match self.dir.read_dir(if path.is_empty() { "." } else { path }) {
            Ok(entries) => entries,
            Err(error) => return self.diagnostics.push(explain(path, &error)),
        };
        for entry in entries.take(self.entries_left + 1) {
            match entry.map(|entry| entry.file_name().into_string()) {
                Ok(Ok(name)) if name.starts_with('.') => {}
                Ok(Ok(name)) => names.push(name),
                Ok(Err(name)) => {
                    let message = format!("the name `{}` in `{path}` is not UTF-8", name.display());
                    let hint = "Rename the file.";
                    self.diagnostics.push(Diagnostic::error(Code::NotUtf8, message).hint(hint).at(start_of(path)));
                }
                Err(error) => self.diagnostics.push(explain(path, &error)),
            }
        }
        names.sort_unstable();
        for name in names {
            if !self.count_entry(path) {
                return;
            }
            let inner = if path.is_empty() { name } else { format!("{path}/{name}") };
            // `metadata` follows links inside the project, and refuses links out of it.
            match self.dir.metadata(&inner) {
                // The target of a link back into the project has been read already.
                Ok(metadata) if metadata.is_dir() && self.is_link(&inner) && self.has_seen(&metadata) => {}
                Ok(metadata) if metadata.is_dir() => self.folder(&inner, depth + 1),
                Ok(metadata) if metadata.is_file() && has_known_ending(&inner) => self.file(&inner),
                Ok(_) if self.is_of_models && inner.to_ascii_lowercase().ends_with(".sql") => {
                    let message = format!("the file `{inner}` is not read");
                    let hint = "Rename it: files of models end in `.sql`, in lower case.";
                    self.diagnostics
                        .push(Diagnostic::warning(Code::FileNotRead, message).hint(hint).at(start_of(&inner)));
                }
                Ok(_) => {}
                Err(error) => self.diagnostics.push(explain(&inner, &error)),
            }
        }
    }

    fn is_link(&self, path: &str) -> bool {
        self.dir.symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
    }

    fn has_seen(&self, folder: &Metadata) -> bool {
        self.seen.contains(&(folder.dev(), folder.ino()))
    }

    /// Returns false if the folder has too many entries for a project, which is reported once.
    fn count_entry(&mut self, path: &str) -> bool {
        if self.entries_left == 1 {
            let message = format!("the project's folders contain more than {MAX_ENTRIES} files");
            let hint = "Check that this is the right folder.";
            self.diagnostics.push(Diagnostic::error(Code::TooManyFiles, message).hint(hint).at(start_of(path)));
        }
        self.entries_left = self.entries_left.saturating_sub(1);
        self.entries_left > 0
    }

    fn file(&mut self, path: &str) {
        if self.tree.files.contains_key(path) {
            return;
        }
        match read_text(self.dir, path, &mut self.bytes_left) {
            Ok(text) => {
                self.tree.files.insert(path.into(), text);
            }
            Err(diagnostic) => self.diagnostics.push(diagnostic),
        }
    }
}

fn plain(path: &str) -> String {
    path.trim_start_matches("./").trim_end_matches('/').to_owned()
}

/// Returns whether a folder of a project's root contains files that are read, or is known to contain other files.
fn is_read(folders: &Folders, name: &str) -> bool {
    let read = [&folders.sources, &folders.models, &folders.cubes, &folders.metrics, &folders.policies];
    let is_in = |path: &str| path == "." || path.is_empty() || path.split('/').next() == Some(name);
    OTHER_FOLDERS.contains(&name) || read.iter().any(|path| is_in(&plain(path)))
}

fn has_known_ending(name: &str) -> bool {
    let is_known = |ending: &str| ENDINGS.contains(&ending) || ENDINGS[..2].contains(&&*ending.to_ascii_lowercase());
    name.rsplit_once('.').is_some_and(|(_, ending)| is_known(ending))
}

fn read_text(dir: &Dir, path: &str, bytes_left: &mut u64) -> Result<Arc<str>, Diagnostic> {
    let file = regular_file::open(dir, path).map_err(|error| explain(path, &error))?;
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES.min(*bytes_left);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| explain(path, &error))?;
    if bytes.len() as u64 > limit {
        let (message, hint) = if limit == MAX_FILE_BYTES {
            (format!("`{path}` is larger than 4 MiB"), "Split the file.")
        } else {
            ("the project's files are larger than 256 MiB together".to_owned(), "Check that this is the right folder.")
        };
        return Err(Diagnostic::error(Code::FileTooLarge, message).hint(hint).at(start_of(path)));
    }
    *bytes_left -= bytes.len() as u64;
    let not_utf_8 = |message: String, line| {
        let span = Span { file: path.into(), line, column: 1, length: 1 };
        Diagnostic::error(Code::NotUtf8, message).hint("Save the file as UTF-8.").at(span)
    };
    if is_utf_16(&bytes) {
        return Err(not_utf_8(format!("`{path}` is UTF-16 text, not UTF-8"), 1));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
        not_utf_8(format!("`{path}` is not UTF-8 text"), line)
    })?;
    // A byte order mark does not belong to the text.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).into())
}

/// Returns true for text that begins with a byte order mark of UTF-16, or with an ASCII letter beside a zero byte.
fn is_utf_16(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..])
}

fn start_of(path: &str) -> Span {
    Span { file: path.into(), line: 1, column: 1, length: 1 }
}

/// Returns the diagnostic for an unusable path.
fn explain(path: &str, error: &io::Error) -> Diagnostic {
    if is_escape(error) || Path::new(path).is_absolute() {
        return outside(path).at(start_of(path));
    }
    Diagnostic::error(Code::UnreadableFile, format!("`{path}` cannot be read: {error}"))
        .hint("Check that the file exists and that you may read it.")
        .at(start_of(path))
}

/// Returns true if a path leaves the folder. The sandbox reports this as missing permissions without an error number of
/// the operating system.
fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

fn outside(path: &str) -> Diagnostic {
    Diagnostic::error(Code::PathOutside, format!("the path `{path}` leaves the project"))
        .hint("Copy the file or folder into the project, and name the copy.")
}

fn missing_folder(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(format!("folder {} does not exist", path.display()))
            .hint(format!("Name the folder that contains {PROJECT_FILE}, for example `examples/flights`.")),
        _ => Failure::new(format!("{} cannot be opened: {error}", path.display())),
    }
}

/// Returns a hint that names a nearby project.
fn where_instead(root: &Path) -> String {
    if let Some(above) = root.ancestors().skip(1).take(8).find(|folder| folder.join(PROJECT_FILE).is_file()) {
        return format!("Did you mean {}?", above.display());
    }
    let children = root.read_dir().into_iter().flatten().take(1_000).filter_map(Result::ok).map(|entry| entry.path());
    // Hidden folders are not projects.
    let is_shown = |child: &PathBuf| child.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
    let mut below: Vec<PathBuf> =
        children.filter(is_shown).filter(|child| child.join(PROJECT_FILE).is_file()).take(5).collect();
    below.sort();
    match below.first() {
        Some(first) => format!("Did you mean {}?", first.display()),
        None => format!("Create {PROJECT_FILE} there, with the line `name: my_project`."),
    }
}
