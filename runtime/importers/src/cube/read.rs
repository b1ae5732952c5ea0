//! Reads the files of a model.
//!
//! In: a folder. Out: the cubes and views of its YAML and JavaScript files as YAML nodes, and a finding for each file
//! that was not read.

use std::path::Path;

use terrane_authoring::AuthoringError;
use terrane_compiler::diagnostic::{Diagnostic, Span};
use terrane_compiler::project::SourceTree;
use terrane_compiler::project::yaml::{self, Node, NodeValue};
use terrane_compiler::text::Origin;

use super::javascript;
use crate::entry::is_template;
use crate::finding::{left_out, unread, unread_at, unread_yaml};
use crate::folder::{FileSelection, ModelFolder, check_without_model};

const FILES: FileSelection = FileSelection {
    is_wanted: |name| {
        ["yml", "yaml", "js", "ts", "py", "jinja"].contains(&name.rsplit_once('.').map_or("", |(_, end)| end))
    },
    skipped: &["node_modules"],
};

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
    let mut folder = ModelFolder::open(dir, &FILES)?;
    let mut documents = Documents { tree: SourceTree::default(), entries: Vec::new(), findings: Vec::new() };
    for path in folder.paths.clone() {
        documents.file(&mut folder, &path);
    }
    documents.tree = folder.tree;
    if documents.entries.is_empty() {
        let hint = "Name the folder that contains the model's .yml or .js files: model/, or schema/.";
        check_without_model(dir, "cube in YAML or JavaScript", hint, &documents.findings)?;
    }
    Ok(documents)
}

impl Documents {
    fn file(&mut self, folder: &mut ModelFolder, path: &str) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "js" | "ts" | "py" if name.starts_with("cube.") => {
                let what = format!("{path} was not read: access rules of its functions are not imported");
                let cure = "Write policies for what `query_rewrite`, `check_auth` and the like restrict.";
                self.findings.push(unread(path, what, cure));
            }
            "js" => self.javascript(folder, path),
            "ts" => {
                let cure = "Write the model as YAML or JavaScript.";
                let what = format!("{path} is a TypeScript program, which is not imported");
                self.findings.push(unread(path, what, cure));
            }
            "py" | "jinja" => {
                let cure = "Write what it generates as YAML.";
                self.findings.push(unread(path, format!("{path} was not read"), cure));
            }
            _ => self.yaml(folder, path),
        }
    }

    fn javascript(&mut self, folder: &mut ModelFolder, path: &str) {
        let Some(file) = folder.read(path, &mut self.findings) else { return };
        match javascript::parse(&file, &mut self.findings) {
            Ok(node) => self.document(&node, path),
            Err(finding) => self.findings.push(*finding),
        }
    }

    fn yaml(&mut self, folder: &mut ModelFolder, path: &str) {
        let Some(file) = folder.read(path, &mut self.findings) else { return };
        if let Some(offset) = template_offset(&file.text) {
            let what = format!("{path} is a Jinja template and was not read");
            let span = Origin::at(&file, offset, 2).span();
            return self.findings.push(unread_at(span, what, "Write what its blocks generate as YAML."));
        }
        match yaml::parse(&file) {
            Ok(node) => self.document(&node, path),
            Err(_) => {
                let errors = yaml::syntax_errors(&file).into_iter();
                self.findings.extend(errors.map(|problem| unread_yaml(path, problem)));
            }
        }
    }

    fn document(&mut self, node: &Node, path: &str) {
        let NodeValue::Map(map) = &node.value else {
            if !matches!(node.value, NodeValue::Null) {
                let cure = "Write a list below `cubes:` or `views:`.";
                self.findings.push(unread(path, format!("{path} is not a model"), cure));
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
            Some(("its name is a Jinja template", "Write the name that the template generates."))
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

/// Returns the byte offset of the first template block that generates lines of YAML.
fn template_offset(text: &str) -> Option<usize> {
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let block = line.trim_start_matches(['-', ' ']);
        if ["{%", "{{", "{#"].iter().any(|open| block.starts_with(open)) {
            return Some(line_start + line.len() - block.len());
        }
        line_start += line.len();
    }
    None
}
