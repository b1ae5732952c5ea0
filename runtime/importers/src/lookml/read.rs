//! Reads the files of a LookML project.
//!
//! In: its folder. Out: merged views and explores, and the constants of its manifest. A file that cannot be parsed is
//! reported. The views and explores that it names are returned too, because the file may restrict access to them.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use terrane_authoring::AuthoringError;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceTree;

use super::include;
use super::merge::{Merged, merge};
use super::syntax::{self, Item, Value};
use crate::finding::{left_out, unread, unread_at};
use crate::folder::{FileSelection, ModelFolder, check_without_model};

const FILES: FileSelection = FileSelection {
    is_wanted: |name| name.ends_with(".lkml") || name.ends_with(".lookml"),
    skipped: &["node_modules"],
};

/// The keys at the top level of a file that have no meaning in a project.
const WITHOUT_MEANING: [&str; 7] = [
    "connection",
    "project_name",
    "new_lookml_runtime",
    "access_grant",
    "application",
    "visualization",
    "local_dependency",
];

pub(super) struct Project {
    pub(super) tree: SourceTree,
    pub(super) views: Vec<Merged>,
    pub(super) explores: Vec<Merged>,
    pub(super) constants: HashMap<String, String>,
    /// The views and explores that appear in files that could not be parsed.
    pub(super) unread: HashSet<String>,
    /// True if the folder has explores, including those that were not imported.
    pub(super) has_explores: bool,
    /// True if the project compares strings without regard to case.
    pub(super) ignores_case: bool,
    pub(super) findings: Vec<Diagnostic>,
}

#[derive(Default)]
struct Items {
    views: Vec<Item>,
    explores: Vec<Item>,
    constants: HashMap<String, String>,
    unread: HashSet<String>,
    has_explores: bool,
    ignores_case: bool,
    findings: Vec<Diagnostic>,
}

pub(super) fn read(dir: &Path) -> Result<Project, AuthoringError> {
    let mut folder = ModelFolder::open(dir, &FILES)?;
    let mut items = Items::default();
    for path in folder.paths.clone() {
        items.file(&mut folder, &path);
    }
    let Items { views, explores, constants, unread, has_explores, ignores_case, mut findings } = items;
    let views = merge(views, &mut findings);
    if views.is_empty() {
        let hint = "Name the folder of the LookML project, which contains .lkml files.";
        check_without_model(dir, "view in LookML", hint, &findings)?;
    }
    let explores = merge(explores, &mut findings);
    Ok(Project { tree: folder.tree, views, explores, constants, unread, has_explores, ignores_case, findings })
}

impl Items {
    fn file(&mut self, folder: &mut ModelFolder, path: &str) {
        if path.ends_with(".dashboard.lookml") {
            let what = format!("{path} is a dashboard, which is not imported");
            return self.findings.push(unread(path, what, "Build the dashboard in a client."));
        }
        let Some(file) = folder.read(path, &mut self.findings) else {
            // The file may contain explores.
            self.has_explores = true;
            return;
        };
        if path.ends_with(".lookml") && is_yaml(&file.text) {
            self.unread.extend(named(&file.text));
            self.has_explores |= file.text.contains("explore");
            let what = format!("{path} was not read: it is older LookML, in YAML");
            return self.findings.push(unread(path, what, "Convert the project to new LookML in Looker."));
        }
        match syntax::parse(&file) {
            Ok(items) => items.into_iter().for_each(|item| self.item(item, path, &folder.paths)),
            Err(mistakes) => {
                self.findings.extend(mistakes.into_iter().map(|mistake| {
                    let what = format!("{path} was not read: {}", mistake.message);
                    unread_at(mistake.span, what, "Correct the file.")
                }));
                self.unread.extend(named(&file.text));
                self.has_explores |= file.text.contains("explore");
            }
        }
    }

    fn item(&mut self, item: Item, file: &str, paths: &[String]) {
        match item.key.as_str() {
            "include" => self.findings.extend(include::missing(&item, file, paths)),
            "view" => self.views.push(item),
            "explore" => {
                self.has_explores = true;
                self.explores.push(item);
            }
            "case_sensitive" => self.ignores_case |= is_no(&item),
            "constant" => {
                let value = item.items().iter().find(|inner| inner.key == "value");
                if let (Some(name), Some(Value::Text(value))) = (item.name(), value.map(|value| &value.value)) {
                    self.constants.insert(name.to_owned(), value.clone());
                }
            }
            key if WITHOUT_MEANING.contains(&key) => {}
            "datagroup" | "persist_with" | "persist_for" => {
                let what = format!("`{}` is not imported", item.key);
                let cure = "Write `refresh` of the cubes whose rows change.";
                self.findings.push(left_out(item.span, what, cure));
            }
            key => {
                let what = format!("`{key}` is not imported: it has no counterpart");
                self.findings.push(left_out(item.span, what, "Only views, explores and constants are read."));
            }
        }
    }
}

/// Returns whether a file has older LookML, whose first line with content begins an item of a list in YAML.
fn is_yaml(text: &str) -> bool {
    let content = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    content.is_some_and(|line| line.starts_with('-') || line.starts_with("connection: ") && !text.contains('{'))
}

fn is_no(item: &Item) -> bool {
    matches!(&item.value, Value::Text(word) if matches!(word.to_lowercase().as_str(), "no" | "false"))
}

/// Returns the names that follow `view:` and `explore:` in a file that cannot be parsed.
fn named(text: &str) -> impl Iterator<Item = String> {
    let after = |key: &'static str| text.split(key).skip(1);
    after("view:").chain(after("explore:")).filter_map(|rest| {
        let rest = rest.trim_start().trim_start_matches('+').trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_owned())
    })
}
