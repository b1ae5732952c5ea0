//! Files that have been read, so that a project that is read again reads only what has changed.
//!
//! In: files, and what was made of them before. Out: what is made of them now: of a file with the same text
//! the same definitions, shared. A text with Jinja counts as changed too where something changed that it might
//! ask for: settings, models, sources, environment. What no file holds any more is forgotten. Not here: what
//! files mean together (`read`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::definitions::{CubeDefinition, MetricDefinition, ModelDefinition, PolicyDefinition, SourceDefinition};
use super::jinja::{Renderer, Surroundings};
use super::settings::Settings;
use super::source::{SourceFile, Text};
use super::yaml::{Node, NodeValue};
use super::{
    EMPTY_FILE, FILE, RegisteredCube, SourceTree, cubes, fields, list_without_key, metrics, models, names_in, policies,
    registered, sources, yaml,
};
use crate::diagnostic::{Diagnostic, Span};
use crate::parallel;
use fields::Fields;

/// How much was done, and how much was as it had been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    pub done: usize,
    pub reused: usize,
}

impl Work {
    pub(crate) fn count(&mut self, is_reused: bool) {
        if is_reused {
            self.reused += 1;
        } else {
            self.done += 1;
        }
    }
}

/// What was read of each file, with what that depends on.
#[derive(Debug, Default)]
pub struct KeptFiles {
    around: Arc<Surroundings>,
    definitions: HashMap<Arc<str>, Arc<ReadFile>>,
    models: HashMap<Arc<str>, Arc<ReadModel>>,
    /// By the cube's name.
    registered: HashMap<Arc<str>, Arc<ReadRegistered>>,
    work: Work,
}

/// A YAML file.
#[derive(Debug)]
struct ReadFile {
    outline: Arc<Outline>,
    entries: Entries,
}

/// What needs nothing but the file.
#[derive(Debug)]
pub(super) struct Outline {
    /// As it came, with the mark that some editors begin a file with.
    text: Arc<str>,
    file: Arc<SourceFile>,
    /// It could not be parsed, or its lists could not be found.
    pub(super) told: Vec<Diagnostic>,
    pub(super) unread: BTreeSet<Arc<str>>,
    pub(super) sources: List<SourceDefinition>,
    /// A cube of it has a key that speaks of access, which cubes don't have.
    pub(super) has_misplaced_policies: bool,
}

/// What may need the texts around it.
#[derive(Debug, Default)]
struct Entries {
    cubes: List<CubeDefinition>,
    metrics: List<MetricDefinition>,
    policies: List<PolicyDefinition>,
    unread: BTreeSet<Arc<str>>,
    has_rendered: bool,
}

/// One of a file's lists.
#[derive(Debug)]
pub(super) struct List<T> {
    pub(super) items: Vec<Arc<T>>,
    pub(super) told: Vec<Diagnostic>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List { items: Vec::new(), told: Vec::new() }
    }
}

/// An SQL file.
#[derive(Debug)]
struct ReadModel {
    text: Arc<str>,
    file: Arc<SourceFile>,
    definition: Option<Arc<ModelDefinition>>,
    told: Vec<Diagnostic>,
    has_rendered: bool,
}

/// A cube that was registered.
#[derive(Debug)]
struct ReadRegistered {
    file: Arc<SourceFile>,
    located: Option<Arc<[Arc<str>]>>,
    definition: Option<Arc<CubeDefinition>>,
    told: Vec<Diagnostic>,
    unread: BTreeSet<Arc<str>>,
    has_rendered: bool,
}

/// A file whose outline is known.
pub(super) struct Outlined {
    path: Arc<str>,
    pub(super) outline: Arc<Outline>,
    /// `None` where it was read before.
    document: Option<Document>,
    before: Option<Arc<ReadFile>>,
}

impl Outlined {
    /// What was read of it, if that holds.
    fn known(&self, is_around_same: bool) -> Option<&Arc<ReadFile>> {
        self.before.as_ref().filter(|read| is_around_same || !read.entries.has_rendered)
    }

    fn entries(&self, renderer: &mut Renderer) -> Entries {
        match &self.document {
            Some(document) => entries(document, renderer),
            // It was parsed by an earlier load, which told of it.
            None if self.before.is_some() => document(&self.outline.file, &mut Vec::new(), &mut BTreeSet::new())
                .map_or_else(Entries::default, |document| entries(&document, renderer)),
            None => Entries::default(),
        }
    }
}

/// What the files hold together.
#[derive(Default)]
pub(super) struct Lists {
    pub(super) cubes: Vec<Arc<CubeDefinition>>,
    pub(super) metrics: Vec<Arc<MetricDefinition>>,
    pub(super) policies: Vec<Arc<PolicyDefinition>>,
    /// Something was told of a policy.
    pub(super) has_broken_policies: bool,
}

impl KeptFiles {
    /// How many files were read, and how many had been.
    pub fn work(&self) -> Work {
        self.work
    }

    /// To be read beside texts that may be others than before.
    pub(super) fn around(around: &Arc<Surroundings>) -> KeptFiles {
        KeptFiles { around: Arc::clone(around), ..KeptFiles::default() }
    }

    /// The file of a path, as it was or anew.
    fn known(&self, path: &str, text: &Arc<str>) -> Option<&Arc<ReadFile>> {
        self.definitions.get(path).filter(|read| is_same(&read.outline.text, text))
    }

    /// The outlines of YAML files, as they were or anew.
    pub(super) fn outlines(&self, files: &[(&Arc<str>, &Arc<str>)]) -> Vec<Outlined> {
        type File<'a> = (&'a Arc<str>, &'a Arc<str>, Option<&'a Arc<ReadFile>>);
        let files: Vec<File<'_>> = files.iter().map(|(path, text)| (*path, *text, self.known(path, text))).collect();
        let new = files.iter().filter(|(.., known)| known.is_none()).count();
        let outlined = |(): &mut (), (path, text, known): &File<'_>| {
            let (outline, document) = match *known {
                Some(before) => (Arc::clone(&before.outline), None),
                None => outline(file_of(path, text), text),
            };
            Outlined { path: Arc::clone(path), outline, document, before: known.cloned() }
        };
        parallel::map_with(&files, new, || (), outlined)
    }

    /// Files of models, as they were or anew.
    pub(super) fn sql_file(&self, path: &Arc<str>, text: &Arc<str>) -> Arc<SourceFile> {
        match self.models.get(path).filter(|read| is_same(&read.text, text)) {
            Some(read) => Arc::clone(&read.file),
            None => file_of(path, text),
        }
    }

    /// Renders the models that `before` doesn't know as they are now; also the names of those that can't be.
    pub(super) fn read_models(
        &mut self,
        names: &[Text],
        tree: &SourceTree,
        before: &KeptFiles,
        settings: &Settings,
        renderer: &mut Renderer,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> (Vec<Arc<ModelDefinition>>, Vec<Text>) {
        let is_around_same = self.around.are_same(&before.around);
        let are_settings_same = self.around.settings == before.around.settings;
        let (mut found, mut broken) = (Vec::with_capacity(names.len()), Vec::new());
        for name in names {
            let file = &name.origin.file;
            // Models that say nothing of their materialization take the project's.
            let is_same = |read: &&Arc<ReadModel>| {
                Arc::ptr_eq(&read.file, file) && are_settings_same && (is_around_same || !read.has_rendered)
            };
            let known = before.models.get(&file.path).filter(is_same);
            self.work.count(known.is_some());
            let read = known.cloned().unwrap_or_else(|| {
                let mut told = Vec::new();
                renderer.begin();
                let definition = models::model(name, settings, renderer, &mut told).map(Arc::new);
                let text = tree.files.get(&file.path).unwrap_or(&file.text);
                Arc::new(ReadModel {
                    text: Arc::clone(text),
                    file: Arc::clone(file),
                    definition,
                    told,
                    has_rendered: renderer.has_rendered(),
                })
            });
            diagnostics.extend(read.told.iter().cloned());
            match &read.definition {
                Some(definition) => found.push(Arc::clone(definition)),
                None => broken.push(name.clone()),
            }
            self.models.insert(Arc::clone(&file.path), read);
        }
        (found, broken)
    }

    /// Reads the entries of the files that `before` doesn't know as they are now.
    pub(super) fn read_entries(
        &mut self,
        files: &[Outlined],
        before: &KeptFiles,
        unread: &mut BTreeSet<Arc<str>>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Lists {
        let is_around_same = self.around.are_same(&before.around);
        let around = &self.around;
        let new = files.iter().filter(|file| file.known(is_around_same).is_none()).count();
        let read_one = |renderer: &mut Option<Renderer>, file: &Outlined| {
            file.known(is_around_same).cloned().unwrap_or_else(|| {
                let renderer = renderer.get_or_insert_with(|| Renderer::new(Arc::clone(around)));
                Arc::new(ReadFile { outline: Arc::clone(&file.outline), entries: file.entries(renderer) })
            })
        };
        let read_files = parallel::map_with(files, new, || None, read_one);
        let mut lists = Lists::default();
        for (file, read) in files.iter().zip(&read_files) {
            self.work.count(file.before.as_ref().is_some_and(|before| Arc::ptr_eq(before, read)));
            self.definitions.insert(Arc::clone(&file.path), Arc::clone(read));
        }
        // All cubes are told of before the first metric.
        for read in &read_files {
            lists.cubes.extend(read.entries.cubes.items.iter().cloned());
            diagnostics.extend(read.entries.cubes.told.iter().cloned());
            unread.extend(read.entries.unread.iter().cloned());
        }
        for read in &read_files {
            lists.metrics.extend(read.entries.metrics.items.iter().cloned());
            diagnostics.extend(read.entries.metrics.told.iter().cloned());
        }
        for read in &read_files {
            lists.policies.extend(read.entries.policies.items.iter().cloned());
            diagnostics.extend(read.entries.policies.told.iter().cloned());
            lists.has_broken_policies |= read.entries.policies.told.iter().any(Diagnostic::is_error);
        }
        lists
    }
}

impl KeptFiles {
    /// A cube that was registered, and the names in it that could not be read.
    pub(super) fn read_registered(
        &mut self,
        cube: &RegisteredCube,
        before: &KeptFiles,
        renderer: &mut Renderer,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> (Option<Arc<CubeDefinition>>, BTreeSet<Arc<str>>) {
        let is_same = |read: &&Arc<ReadRegistered>| {
            let is_same = read.file.text == cube.entry && read.located == cube.located;
            is_same && (!read.has_rendered || self.around.are_same(&before.around))
        };
        let known = before.registered.get(&cube.name).filter(is_same);
        self.work.count(known.is_some());
        let read = known.cloned().unwrap_or_else(|| {
            let (mut told, mut unread) = (Vec::new(), BTreeSet::new());
            let file = registered::file_of(cube);
            renderer.begin();
            let mut definition = registered::read(&file, renderer, &mut unread, &mut told);
            if let Some(relation) = definition.as_mut().and_then(|cube| cube.relation.as_mut()) {
                relation.located.clone_from(&cube.located);
            }
            let (definition, located) = (definition.map(Arc::new), cube.located.clone());
            Arc::new(ReadRegistered { file, located, definition, told, unread, has_rendered: renderer.has_rendered() })
        });
        diagnostics.extend(read.told.iter().cloned());
        let found = (read.definition.clone(), read.unread.clone());
        self.registered.insert(Arc::clone(&cube.name), read);
        found
    }
}

/// Texts are shared between loads, so that most are the very same.
fn is_same(a: &Arc<str>, b: &Arc<str>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// Some editors begin a file with a mark that no column should count.
pub(super) fn file_of(path: &Arc<str>, text: &Arc<str>) -> Arc<SourceFile> {
    let text = text.strip_prefix('\u{FEFF}').map_or_else(|| Arc::clone(text), Arc::from);
    Arc::new(SourceFile { path: Arc::clone(path), text })
}

/// A file that could be parsed, and the keys of its lists as they are and as they are written.
type Document = (Node, Vec<(&'static str, Arc<str>)>);

fn outline(file: Arc<SourceFile>, text: &Arc<str>) -> (Arc<Outline>, Option<Document>) {
    let (mut told, mut unread) = (Vec::new(), BTreeSet::new());
    let document = document(&file, &mut told, &mut unread);
    let mut sources = List::default();
    if let Some(document) = &document {
        each(document, "sources", &mut unread, &mut sources, |node, _, told| sources::source(node, told));
    }
    let has_misplaced_policies = document.as_ref().is_some_and(|(document, _)| policies::is_misplaced(document));
    let outline = Outline { text: Arc::clone(text), file, told, unread, sources, has_misplaced_policies };
    (Arc::new(outline), document)
}

fn document(
    file: &Arc<SourceFile>,
    diagnostics: &mut Vec<Diagnostic>,
    unread: &mut BTreeSet<Arc<str>>,
) -> Option<Document> {
    match yaml::parse(file) {
        // An empty file, or one of comments only.
        Ok(Node { value: NodeValue::Null, .. }) => {
            if file.text.trim().is_empty() {
                let message = format!("the file {} is empty", file.path);
                let hint = "write its definitions, or remove it";
                let span = Span { file: Arc::clone(&file.path), line: 1, column: 1, length: 1 };
                diagnostics.push(Diagnostic::warning(EMPTY_FILE, message).hint(hint).at(span));
            }
            None
        }
        Ok(node) => {
            if let NodeValue::List(items) = &node.value {
                diagnostics.push(list_without_key(file, &node));
                unread.extend(items.iter().filter_map(cubes::name_of).map(|name| name.value));
                return None;
            }
            let label = format!("the file {}", file.path);
            let lists = Fields::open_as(&node, &FILE, label, diagnostics).map(|fields| fields.keys())?;
            Some((node, lists))
        }
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            unread.extend(names_in(&file.text));
            None
        }
    }
}

fn entries(document: &Document, renderer: &mut Renderer) -> Entries {
    let mut entries = Entries::default();
    let unread = &mut entries.unread;
    renderer.begin();
    each(document, "cubes", unread, &mut entries.cubes, |node, unread, told| cubes::cube(node, renderer, unread, told));
    each(document, "metrics", unread, &mut entries.metrics, |node, _, told| metrics::metric(node, renderer, told));
    each(document, "policies", unread, &mut entries.policies, |node, _, told| policies::policy(node, told));
    entries.has_rendered = renderer.has_rendered();
    entries
}

/// Every entry of one of the top-level lists; the names of those that could not be read are kept.
fn each<T>(
    (document, lists): &Document,
    list: &'static str,
    unread: &mut BTreeSet<Arc<str>>,
    found: &mut List<T>,
    mut read: impl FnMut(&Node, &mut BTreeSet<Arc<str>>, &mut Vec<Diagnostic>) -> Option<T>,
) {
    let NodeValue::Map(map) = &document.value else { return };
    let Some((_, written)) = lists.iter().find(|(name, _)| *name == list) else { return };
    let Some((_, node)) = map.iter().find(|(key, _)| key.text == *written) else { return };
    // An empty list may be written without brackets.
    if matches!(node.value, NodeValue::Null) {
        return;
    }
    let NodeValue::List(items) = &node.value else {
        let wrong = fields::wrong_type(&format_args!("`{list}`"), "a list", node);
        found.told.push(wrong.hint(fields::list_example(node, None)));
        return;
    };
    for item in items {
        match read(item, unread, &mut found.told) {
            Some(read) => found.items.push(Arc::new(read)),
            None => unread.extend(cubes::name_of(item).map(|name| name.value)),
        }
    }
}
