//! Finds and parses the files of a model.
//!
//! In: a folder. Out: its cubes and views as YAML nodes, and a finding for each file that was not read. The folder is
//! opened so that nothing outside of it is read. The number, size and depth of files are bounded.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::project::yaml::{self, Node, NodeValue};
use terrane_compiler::project::{SourceFile, SourceTree};

use super::entry::is_template;
use super::finding::{left_out, unread};
use crate::{AuthoringError, regular_file};

const MAX_FILES: usize = 5_000;
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_DEPTH: usize = 16;
/// The number of findings in the message for a folder without a model.
const MAX_LISTED: usize = 10;

/// One item of `cubes:` or `views:`.
pub(super) struct ModelEntry {
    pub(super) name: String,
    pub(super) is_view: bool,
    pub(super) span: Span,
    pub(super) node: Node,
}

pub(super) struct Documents {
    pub(super) tree: SourceTree,
    pub(super) entries: Vec<ModelEntry>,
    pub(super) findings: Vec<Diagnostic>,
}

pub(super) fn read(dir: &Path) -> Result<Documents, AuthoringError> {
    let failed = |error: std::io::Error| {
        AuthoringError::new(format!("could not read {}: {error}", dir.display()))
            .hint("Name the folder that contains the model.")
    };
    let root = Dir::open_ambient_dir(dir, ambient_authority()).map_err(failed)?;
    let mut paths = Vec::new();
    walk(&root, "", 0, &mut paths).map_err(failed)?;
    paths.sort();
    if paths.len() > MAX_FILES {
        return Err(AuthoringError::new(format!("{} contains more than {MAX_FILES} files", dir.display()))
            .hint("Name the folder that contains only the model."));
    }
    let mut documents = Documents { tree: SourceTree::default(), entries: Vec::new(), findings: Vec::new() };
    for path in &paths {
        documents.file(&root, path);
    }
    if documents.entries.is_empty() {
        let findings = documents.findings.iter().take(MAX_LISTED).map(|finding| format!("\n  {finding}"));
        let findings: String = findings.collect();
        return Err(AuthoringError::new(format!("{} contains no cube in YAML{findings}", dir.display()))
            .hint("Name the folder that contains the model's .yml files: model/, or schema/."));
    }
    Ok(documents)
}

fn walk(root: &Dir, at: &str, depth: usize, paths: &mut Vec<String>) -> std::io::Result<()> {
    if depth > MAX_DEPTH || paths.len() > MAX_FILES {
        return Ok(());
    }
    for entry in root.read_dir(if at.is_empty() { "." } else { at })? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        let path = if at.is_empty() { name } else { format!("{at}/{name}") };
        match root.metadata(&path) {
            Ok(found) if found.is_dir() => walk(root, &path, depth + 1, paths)?,
            Ok(_) => paths.push(path),
            // A link to a missing file, or out of the folder.
            Err(_) => {}
        }
    }
    Ok(())
}

impl Documents {
    fn file(&mut self, root: &Dir, path: &str) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "yml" | "yaml" => {}
            "js" | "ts" | "py" if name.starts_with("cube.") => {
                let what = format!("{path} was not read: access rules of its functions are not imported");
                let cure = "Write policies for what `query_rewrite`, `check_auth` and the like restrict.";
                return self.findings.push(unread(path, 1, what, cure));
            }
            "js" | "ts" => {
                let cure = "Write the model as YAML.";
                return self.findings.push(unread(
                    path,
                    1,
                    format!("{path} is a program, which is not imported"),
                    cure,
                ));
            }
            "py" | "jinja" => {
                let cure = "Write what it generates as YAML.";
                return self.findings.push(unread(path, 1, format!("{path} was not read"), cure));
            }
            _ => return,
        }
        let text = match text(root, path) {
            Ok(text) => text,
            Err(reason) => {
                let what = format!("could not read {path}: {reason}");
                return self.findings.push(unread(path, 1, what, "Check the file."));
            }
        };
        let text: Arc<str> = text.into();
        self.tree.files.insert(path.into(), Arc::clone(&text));
        if let Some(line) = template_line(&text) {
            let what = format!("{path} is a Jinja template and was not read");
            return self.findings.push(unread(path, line, what, "Write what its blocks generate as YAML."));
        }
        let file = Arc::new(SourceFile { path: path.into(), text });
        match yaml::parse(&file) {
            Ok(node) => self.document(&node, path),
            Err(problem) => {
                let line = problem.span.as_ref().map_or(1, |span| span.line);
                let what = format!("{path} was not read: {}", problem.message);
                self.findings.push(unread(path, line, what, problem.hint.unwrap_or_default()));
            }
        }
    }

    fn document(&mut self, node: &Node, path: &str) {
        let NodeValue::Map(map) = &node.value else {
            if !matches!(node.value, NodeValue::Null) {
                let cure = "Write a list below `cubes:` or `views:`.";
                self.findings.push(unread(path, 1, format!("{path} is not a model"), cure));
            }
            return;
        };
        for (key, value) in map {
            let is_view = &*key.text == "views";
            if !is_view && &*key.text != "cubes" {
                let what = format!("`{}` of {path} is not imported", key.text);
                self.findings.push(left_out(key.origin.span(), what, "Only `cubes:` and `views:` are read."));
                continue;
            }
            let NodeValue::List(items) = &value.value else {
                if !matches!(value.value, NodeValue::Null) {
                    let what = format!("`{}` of {path} is not imported: expected a list", key.text);
                    self.findings.push(left_out(key.origin.span(), what, "Write `- name: …` for each."));
                }
                continue;
            };
            for item in items {
                self.item(item, &key.text, is_view);
            }
        }
    }

    fn item(&mut self, item: &Node, list: &str, is_view: bool) {
        let name = match &item.value {
            NodeValue::Map(map) => map.iter().find(|(key, _)| &*key.text == "name"),
            _ => None,
        };
        let Some((_, Node { value: NodeValue::Scalar { text, .. }, origin })) = name else {
            let what = format!("an item of `{list}` has no name");
            return self.findings.push(left_out(item.origin.span(), what, "Add a `name`."));
        };
        let (name, span) = (text.to_string(), origin.span());
        let problem = if is_template(&name) {
            Some(("its name is a Jinja template", "Write the name that the template makes."))
        } else if self.entries.iter().any(|known| known.name == name) {
            Some(("another cube or view has this name", "Rename one of them."))
        } else {
            None
        };
        match problem {
            Some((reason, cure)) => {
                let what = format!("`{name}` of `{list}` is not imported: {reason}");
                self.findings.push(left_out(span, what, cure));
            }
            None => self.entries.push(ModelEntry { name, is_view, span, node: item.clone() }),
        }
    }
}

fn text(root: &Dir, path: &str) -> Result<String, String> {
    let file = regular_file::open(root, path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err("it is larger than 4 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// Returns the first line on which a template block stands for lines of YAML.
fn template_line(text: &str) -> Option<u32> {
    let is_template_line = |line: &str| {
        let line = line.trim_start_matches(['-', ' ']);
        line.starts_with("{%") || line.starts_with("{{") || line.starts_with("{#")
    };
    text.lines().position(is_template_line).map(|at| at as u32 + 1)
}
