//! The files of a model, found and parsed.
//!
//! In: a folder. Out: its cubes and views as YAML nodes, and a finding for each file that could not be
//! one. The folder is opened so that nothing outside of it is read, and bounded.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::project::yaml::{self, Node, NodeValue};
use terrane_compiler::project::{SourceFile, SourceTree};

use super::finding::{left_out, unread};
use crate::failure::Failure;
use crate::project_files::open_regular;

const MAX_FILES: usize = 5_000;
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_DEPTH: usize = 16;

/// One item of `cubes:` or `views:`.
pub(super) struct Written {
    pub(super) name: String,
    pub(super) is_view: bool,
    pub(super) span: Span,
    pub(super) node: Node,
}

pub(super) struct Documents {
    pub(super) tree: SourceTree,
    pub(super) entries: Vec<Written>,
    pub(super) findings: Vec<Diagnostic>,
}

pub(super) fn read(dir: &Path) -> Result<Documents, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("{} can't be read: {error}", dir.display())).hint("name the folder that holds the model")
    };
    let root = Dir::open_ambient_dir(dir, ambient_authority()).map_err(failed)?;
    let mut paths = Vec::new();
    walk(&root, "", 0, &mut paths).map_err(failed)?;
    paths.sort();
    if paths.len() > MAX_FILES {
        return Err(Failure::new(format!("{} holds more than {MAX_FILES} files", dir.display()))
            .hint("name the folder of the model alone"));
    }
    let mut documents = Documents { tree: SourceTree::default(), entries: Vec::new(), findings: Vec::new() };
    for path in &paths {
        documents.file(&root, path);
    }
    if documents.entries.is_empty() {
        let found: Vec<String> = documents.findings.iter().take(10).map(|finding| format!("\n  {finding}")).collect();
        return Err(Failure::new(format!("{} holds no cube in YAML{}", dir.display(), found.concat()))
            .hint("name the folder that holds the model's .yml files: model/, or schema/"));
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
            // A link that leads nowhere, or out.
            Err(_) => {}
        }
    }
    Ok(())
}

impl Documents {
    fn file(&mut self, root: &Dir, path: &str) {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending {
            "yml" | "yaml" => {}
            "js" | "ts" => {
                let cure = "write it as YAML: what a program makes is not known before it is run";
                return self.findings.push(unread(path, 1, format!("{path} is a program, and was not read"), cure));
            }
            "py" | "jinja" => {
                let cure = "write out what it makes of the model, in YAML";
                return self.findings.push(unread(path, 1, format!("{path} was not read"), cure));
            }
            _ => return,
        }
        let text = match text(root, path) {
            Ok(text) => text,
            Err(why) => {
                return self.findings.push(unread(path, 1, format!("{path} can't be read: {why}"), "check the file"));
            }
        };
        let text: Arc<str> = text.into();
        self.tree.files.insert(path.into(), Arc::clone(&text));
        if let Some(line) = template_line(&text) {
            let what = format!("{path} is a Jinja template, and was not read");
            return self.findings.push(unread(path, line, what, "write out what its blocks make, in YAML"));
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
                self.findings.push(unread(
                    path,
                    1,
                    format!("{path} is no model"),
                    "a model begins with `cubes:` or `views:`",
                ));
            }
            return;
        };
        for (key, value) in map {
            let is_view = &*key.text == "views";
            if !is_view && &*key.text != "cubes" {
                let what = format!("`{}` of {path} is not carried over", key.text);
                self.findings.push(left_out(
                    key.origin.span(),
                    what,
                    "`cubes:` and `views:` are read, and nothing else",
                ));
                continue;
            }
            let items: &[Node] = match &value.value {
                NodeValue::List(items) => items,
                _ => &[],
            };
            for item in items {
                let name = match &item.value {
                    NodeValue::Map(map) => map.iter().find(|(key, _)| &*key.text == "name"),
                    _ => None,
                };
                let Some((_, Node { value: NodeValue::Scalar { text, .. }, origin })) = name else {
                    let what = format!("an item of `{}` has no name", key.text);
                    self.findings.push(left_out(item.origin.span(), what, "give it a `name`"));
                    continue;
                };
                let (name, span) = (text.to_string(), origin.span());
                self.entries.push(Written { name, is_view, span, node: item.clone() });
            }
        }
    }
}

fn text(root: &Dir, path: &str) -> Result<String, String> {
    let file = open_regular(root, path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err("it is larger than 4 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())
}

/// The first line on which a template's block stands for lines of YAML.
fn template_line(text: &str) -> Option<u32> {
    let is_template = |line: &str| {
        let line = line.trim_start_matches(['-', ' ']);
        line.starts_with("{%") || line.starts_with("{{") || line.starts_with("{#")
    };
    text.lines().position(is_template).map(|at| at as u32 + 1)
}
