//! Reads definitions from YAML files.
//!
//! In: the paths and contents of YAML files. Out: the entries of their lists as definitions, and all diagnostics. Files
//! are parsed first ([`parse`]). Their cubes, metrics and policies are read in a second step ([`read_entries`]),
//! because Jinja in them may refer to the sources and models of any file. Each step reads every file independently of
//! the others. Not here: rules that span files, such as unique names (`read`).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::definitions::{CubeDefinition, MetricDefinition, PolicyDefinition, SourceDefinition};
use super::fields::Fields;
use super::jinja::{Renderer, TemplateContext};
use super::yaml::{Node, NodeValue};
use super::{EMPTY_FILE, FILE, cubes, fields, list_without_key, metrics, names_in, policies, sources, yaml};
use crate::diagnostic::{Diagnostic, Span};
use crate::parallel;
use crate::text::SourceFile;

/// A parsed file, and the definitions in it that no other file affects.
pub(super) struct ParsedFile {
    /// The content; `None` if the file is empty, cannot be parsed, or is not a mapping.
    document: Option<Document>,
    /// Diagnostics of a file that cannot be parsed, or whose lists cannot be found.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The names that the file may define, if it cannot be parsed or its lists cannot be found.
    pub(super) unread: BTreeSet<Arc<str>>,
    pub(super) sources: List<SourceDefinition>,
    /// True if a cube of the file has a key about access, which belongs in a policy.
    pub(super) has_misplaced_policies: bool,
}

/// The root of a file and its lists: the canonical name of each and the name that the author used.
struct Document {
    root: Node,
    lists: Vec<(&'static str, Arc<str>)>,
}

/// The definitions of one list, and the diagnostics of its entries.
pub(super) struct List<T> {
    pub(super) items: Vec<T>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List { items: Vec::new(), diagnostics: Vec::new() }
    }
}

/// The entries of one file, or of all files, that may contain Jinja.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) cubes: List<CubeDefinition>,
    pub(super) metrics: List<MetricDefinition>,
    pub(super) policies: List<PolicyDefinition>,
    /// The names of entries that cannot be read.
    pub(super) unread: BTreeSet<Arc<str>>,
}

/// Parses files, given as paths and contents.
pub(super) fn parse(files: &[(&Arc<str>, &Arc<str>)]) -> Vec<ParsedFile> {
    parallel::map_with(files, || (), |(), (path, text)| ParsedFile::new(&file_of(path, text)))
}

/// Reads the cubes, metrics and policies of all files, in the order of the files.
pub(super) fn read_entries(files: &[ParsedFile], context: &Arc<TemplateContext>) -> Entries {
    let renderer = || Renderer::new(Arc::clone(context));
    let entries = parallel::map_with(files, renderer, |renderer, file| file.entries(renderer));
    let mut all = Entries::default();
    for file in entries {
        all.cubes.append(file.cubes);
        all.metrics.append(file.metrics);
        all.policies.append(file.policies);
        all.unread.extend(file.unread);
    }
    all
}

/// Returns a source file without a byte order mark, so that columns count from the first character.
pub(super) fn file_of(path: &Arc<str>, text: &Arc<str>) -> Arc<SourceFile> {
    let text = text.strip_prefix('\u{FEFF}').map_or_else(|| Arc::clone(text), Arc::from);
    Arc::new(SourceFile { path: Arc::clone(path), text })
}

impl ParsedFile {
    fn new(file: &Arc<SourceFile>) -> ParsedFile {
        let (mut diagnostics, mut unread, mut sources) = (Vec::new(), BTreeSet::new(), List::default());
        let document = document(file, &mut diagnostics, &mut unread);
        if let Some(document) = &document {
            document.read(
                "sources",
                |_| true,
                &mut unread,
                &mut sources,
                |node, _, diagnostics| sources::source(node, diagnostics),
            );
        }
        let has_misplaced_policies = document.as_ref().is_some_and(|document| policies::is_misplaced(&document.root));
        ParsedFile { document, diagnostics, unread, sources, has_misplaced_policies }
    }

    fn entries(&self, renderer: &Renderer) -> Entries {
        let Entries { mut cubes, mut metrics, mut policies, mut unread } = Entries::default();
        if let Some(document) = &self.document {
            document.read(
                "cubes",
                |cube| cube.is_complete,
                &mut unread,
                &mut cubes,
                |node, unread, diagnostics| cubes::cube(node, renderer, unread, diagnostics),
            );
            document.read(
                "metrics",
                |metric| metric.is_complete,
                &mut unread,
                &mut metrics,
                |node, _, diagnostics| metrics::metric(node, renderer, diagnostics),
            );
            document.read(
                "policies",
                |policy| policy.is_complete,
                &mut unread,
                &mut policies,
                |node, _, diagnostics| policies::policy(node, diagnostics),
            );
        }
        Entries { cubes, metrics, policies, unread }
    }
}

impl<T> List<T> {
    fn append(&mut self, other: List<T>) {
        self.items.extend(other.items);
        self.diagnostics.extend(other.diagnostics);
    }
}

impl Document {
    /// Reads every entry of one of the top-level lists. Adds the names of entries that are incomplete or cannot be read
    /// to `unread`.
    fn read<T>(
        &self,
        list: &'static str,
        is_complete: fn(&T) -> bool,
        unread: &mut BTreeSet<Arc<str>>,
        into: &mut List<T>,
        mut read: impl FnMut(&Node, &mut BTreeSet<Arc<str>>, &mut Vec<Diagnostic>) -> Option<T>,
    ) {
        let NodeValue::Map(map) = &self.root.value else { return };
        let Some((_, key_text)) = self.lists.iter().find(|(name, _)| *name == list) else { return };
        let Some((_, node)) = map.iter().find(|(key, _)| key.text == *key_text) else { return };
        // An empty list may be written without brackets.
        if matches!(node.value, NodeValue::Null) {
            return;
        }
        let NodeValue::List(items) = &node.value else {
            let wrong = fields::wrong_type(&format_args!("`{list}`"), "a list", node);
            into.diagnostics.push(wrong.hint(fields::list_example(node, None)));
            return;
        };
        for item in items {
            let definition = read(item, unread, &mut into.diagnostics);
            cubes::note_unread(definition.as_ref().is_some_and(is_complete), item, unread);
            into.items.extend(definition);
        }
    }
}

fn document(
    file: &Arc<SourceFile>,
    diagnostics: &mut Vec<Diagnostic>,
    unread: &mut BTreeSet<Arc<str>>,
) -> Option<Document> {
    match yaml::parse(file) {
        // The file is empty or contains only comments.
        Ok(Node { value: NodeValue::Null, .. }) => {
            if file.text.trim().is_empty() {
                let message = format!("the file {} is empty", file.path);
                let hint = "Write its definitions, or remove it.";
                let span = Span { file: Arc::clone(&file.path), line: 1, column: 1, length: 1 };
                diagnostics.push(Diagnostic::warning(EMPTY_FILE, message).hint(hint).at(span));
            }
            None
        }
        Ok(root) => {
            if let NodeValue::List(items) = &root.value {
                diagnostics.push(list_without_key(file, &root));
                unread.extend(items.iter().filter_map(cubes::name_of).map(|name| name.value));
                return None;
            }
            let label = format!("the file {}", file.path);
            let lists = Fields::open_as(&root, &FILE, label, diagnostics).map(|fields| fields.keys())?;
            Some(Document { root, lists })
        }
        Err(_) => {
            diagnostics.extend(yaml::syntax_errors(file));
            unread.extend(names_in(&file.text));
            None
        }
    }
}
