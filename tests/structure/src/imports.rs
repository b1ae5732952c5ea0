//! The graph of imports between the files of one crate, and its cycles.
//!
//! In: the files of a crate's `src` folder. Out: the imports, each with its line, and the sets of files that import one
//! another in a cycle. An import is a `use` declaration or a path in the code. It leads to the file that declares the
//! item, even through re-exports. Not here: macros, globs of re-exports, and tests, which may import all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::sources::{self, files, read};
use crate::tokens::{Located, Token, scan, without_tests};

/// The largest number of re-exports that are followed for one name.
const MAX_REEXPORTS: usize = 16;

/// An import: one file uses an item of another file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    pub from: String,
    pub to: String,
    pub line: usize,
}

/// The imports between the files of a crate.
#[derive(Default)]
pub struct Graph {
    imports: Vec<Import>,
}

/// A path of modules from the root of the crate.
type ModulePath = Vec<String>;

struct Module {
    file: String,
    declarations: Vec<Declaration>,
    paths: Vec<(usize, Vec<String>)>,
}

/// One name that a `use` declaration brings in.
struct Declaration {
    line: usize,
    path: Vec<String>,
    /// The name in the importing module; `*` for all names of the path.
    name: String,
}

/// The target of a path.
enum Target {
    /// A module. If a `use` declaration imports it, other paths can begin with its name.
    Module(ModulePath),
    /// An item that the module at this path declares.
    Item(ModulePath),
}

impl Graph {
    /// Reads the `src` folder of a crate.
    pub fn of_crate(folder: &Path) -> Self {
        let source = folder.join("src");
        if !source.is_dir() {
            return Self::default();
        }
        let texts = files(&source).into_iter().map(|file| {
            let text = read(&file);
            (file, text)
        });
        Self::of_files(&source, texts.collect())
    }

    fn of_files(source: &Path, texts: Vec<(PathBuf, String)>) -> Self {
        let modules: BTreeMap<ModulePath, Module> =
            texts.iter().filter_map(|(file, text)| Some((module_path(source, file)?, module(file, text)))).collect();
        let mut imports = BTreeSet::new();
        for (path, module) in &modules {
            for (line, target) in targets(&modules, path, module) {
                // A module and the modules in its folder are one unit, so uses between them are not imports.
                if path.starts_with(&target) || target.starts_with(path) {
                    continue;
                }
                if let Some(other) = modules.get(&target) {
                    imports.insert(Import { from: module.file.clone(), to: other.file.clone(), line });
                }
            }
        }
        Self { imports: imports.into_iter().collect() }
    }

    pub fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// Removes the imports from one file to another.
    pub fn remove(&mut self, from: &str, to: &str) {
        self.imports.retain(|import| import.from != from || import.to != to);
    }

    /// Returns the sets of files that reach one another. Each set is sorted, and the largest set comes first.
    pub fn cycles(&self) -> Vec<Vec<String>> {
        let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for import in &self.imports {
            next.entry(&import.from).or_default().insert(&import.to);
            next.entry(&import.to).or_default();
        }
        let reached: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|file| (*file, reachable(&next, file))).collect();
        let mut cycles = BTreeSet::new();
        for (file, beyond) in &reached {
            if beyond.contains(file) {
                let together = beyond.iter().filter(|other| reached[**other].contains(file));
                cycles.insert(together.map(|file| (*file).to_owned()).collect::<Vec<_>>());
            }
        }
        let mut cycles: Vec<_> = cycles.into_iter().collect();
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
        cycles
    }

    /// Returns the graph of modules: each module is one unit with all modules below it, and imports lead between
    /// modules of the same parent. A cycle of files that passes through a module and its own children is a cycle here.
    pub fn of_modules(&self) -> Self {
        let is_test =
            |file: &str| file.ends_with("/tests.rs") || file.ends_with("_tests.rs") || file.contains("/tests/");
        let imports = self.imports.iter().filter(|import| !is_test(&import.from)).filter_map(|import| {
            let (from, to) = siblings(&import.from, &import.to)?;
            Some(Import { from, to, line: 0 })
        });
        let imports: BTreeSet<Import> = imports.collect();
        Self { imports: imports.into_iter().collect() }
    }

    /// Returns the imports between the files of one cycle.
    pub fn within(&self, cycle: &[String]) -> Vec<&Import> {
        self.imports.iter().filter(|import| cycle.contains(&import.from) && cycle.contains(&import.to)).collect()
    }
}

/// Returns the modules of the same parent that contain two files. If one file is the parent of the other, there are
/// none.
fn siblings(from: &str, to: &str) -> Option<(String, String)> {
    let parts = |file: &str| -> Vec<String> {
        let path = file.strip_suffix(".rs").unwrap_or(file);
        path.strip_suffix("/mod").unwrap_or(path).split('/').map(str::to_owned).collect()
    };
    let (from, to) = (parts(from), parts(to));
    let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
    let is_root = |path: &[String]| {
        path.get(shared - 1).is_some_and(|part| part == "src") && ["lib", "main"].contains(&path[shared].as_str())
    };
    if shared == from.len() || shared == to.len() || is_root(&from) || is_root(&to) {
        return None;
    }
    Some((from[..=shared].join("/"), to[..=shared].join("/")))
}

/// Returns all files that a file reaches. The file itself is among them only if it is part of a cycle.
fn reachable<'g>(next: &BTreeMap<&'g str, BTreeSet<&'g str>>, from: &str) -> BTreeSet<&'g str> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = next.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = waiting.pop() {
        if reached.insert(file) {
            waiting.extend(next.get(file).into_iter().flatten().copied());
        }
    }
    reached
}

/// Returns the path of the module in a file; `None` for programs in `src/bin`.
fn module_path(source: &Path, file: &Path) -> Option<ModulePath> {
    let relative = file.strip_prefix(source).ok()?.with_extension("");
    let mut path: ModulePath = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.first().is_some_and(|first| first == "bin") {
        return None;
    }
    let is_root = path.len() == 1 && (path[0] == "lib" || path[0] == "main");
    if is_root || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    Some(path)
}

fn module(file: &Path, text: &str) -> Module {
    let scanned = scan(text);
    let tokens: Vec<_> = without_tests(&scanned)
        .into_iter()
        .filter(|located| !matches!(located.token, Token::Doc(_) | Token::Comment(_) | Token::Text(_)))
        .collect();
    let (mut declarations, mut paths) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].token {
            Token::Word("use") => {
                let mut reader = UseReader { tokens: &tokens, at: at + 1, declarations: Vec::new() };
                reader.tree(&[]);
                at = reader.at;
                declarations.extend(reader.declarations);
            }
            Token::Word(word) => {
                let (end, path) = path_at(&tokens, at, word);
                if path.len() > 1 {
                    paths.push((tokens[at].line, path));
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Module { file: sources::shown(file), declarations, paths }
}

/// Returns the path that begins with the given word, and the index after the path.
fn path_at(tokens: &[Located<'_>], start: usize, first: &str) -> (usize, Vec<String>) {
    let mut path = vec![first.to_owned()];
    let mut at = start + 1;
    while is_separator(tokens, at) {
        let Some(Located { token: Token::Word(word), .. }) = tokens.get(at + 2) else { break };
        path.push((*word).to_owned());
        at += 3;
    }
    (at, path)
}

fn is_separator(tokens: &[Located<'_>], at: usize) -> bool {
    let is_colon = |at: usize| tokens.get(at).is_some_and(|located| located.token == Token::Symbol(':'));
    is_colon(at) && is_colon(at + 1)
}

struct UseReader<'t, 's> {
    tokens: &'t [Located<'s>],
    at: usize,
    declarations: Vec<Declaration>,
}

impl UseReader<'_, '_> {
    /// Parses one tree of a `use` declaration below a prefix, up to its end.
    fn tree(&mut self, prefix: &[String]) {
        let mut path = prefix.to_vec();
        while let Some(located) = self.tokens.get(self.at) {
            let line = located.line;
            match located.token {
                Token::Word("as") => {
                    let alias = self.tokens.get(self.at + 1).map(|located| located.token);
                    self.at += 2;
                    let name = if let Some(Token::Word(alias)) = alias { alias } else { "_" };
                    self.declarations.push(Declaration { line, path, name: name.to_owned() });
                    return;
                }
                Token::Word(word) => {
                    self.at += 1;
                    path.push(word.to_owned());
                    if is_separator(self.tokens, self.at) {
                        self.at += 2;
                    } else if self.tokens.get(self.at).is_none_or(|next| next.token != Token::Word("as")) {
                        self.name(line, path);
                        return;
                    }
                }
                Token::Symbol('*') => {
                    self.at += 1;
                    self.declarations.push(Declaration { line, path, name: "*".to_owned() });
                    return;
                }
                Token::Symbol('{') => {
                    self.at += 1;
                    self.group(&path);
                    return;
                }
                // A leading `::` names another crate.
                Token::Symbol(':') => self.at += 1,
                _ => return,
            }
        }
    }

    fn group(&mut self, path: &[String]) {
        while let Some(located) = self.tokens.get(self.at) {
            match located.token {
                Token::Symbol('}') => {
                    self.at += 1;
                    return;
                }
                Token::Symbol(',') => self.at += 1,
                _ => {
                    let before = self.at;
                    self.tree(path);
                    // A token that cannot begin a tree is skipped, so that the loop ends.
                    self.at = self.at.max(before + 1);
                }
            }
        }
    }

    /// Adds an imported name. `a::{self}` imports `a`.
    fn name(&mut self, line: usize, mut path: Vec<String>) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = path.last().cloned().unwrap_or_default();
        self.declarations.push(Declaration { line, path, name });
    }
}

/// Returns the modules whose items a module uses, each with the line of the use.
fn targets(modules: &BTreeMap<ModulePath, Module>, path: &ModulePath, module: &Module) -> Vec<(usize, ModulePath)> {
    let declared = module.declarations.iter().filter_map(|declaration| {
        let is_glob = declaration.name == "*";
        match resolve(modules, path, &declaration.path, 0)? {
            Target::Item(target) => Some((declaration.line, target)),
            // Importing a module uses none of its items. The paths that begin with the module's name do.
            Target::Module(target) => is_glob.then_some((declaration.line, target)),
        }
    });
    let used = module.paths.iter().filter_map(|(line, segments)| {
        let (Target::Item(target) | Target::Module(target)) = resolve_name(modules, path, segments, 0)?;
        Some((*line, target))
    });
    declared.chain(used).collect()
}

/// Resolves a path of a `use` declaration in the module `at`.
fn resolve(modules: &BTreeMap<ModulePath, Module>, at: &ModulePath, path: &[String], depth: usize) -> Option<Target> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => descend(modules, Vec::new(), rest, depth),
        "self" => descend(modules, at.clone(), rest, depth),
        "super" => {
            let mut parent = at.clone();
            parent.pop()?;
            let above = rest.iter().take_while(|segment| *segment == "super").count();
            parent.truncate(parent.len().checked_sub(above)?);
            descend(modules, parent, &rest[above..], depth)
        }
        _ => modules.contains_key(&child(at, first)).then(|| descend(modules, at.clone(), path, depth)).flatten(),
    }
}

/// Resolves a path in the code. The path may begin with a name that a `use` declaration imported.
fn resolve_name(
    modules: &BTreeMap<ModulePath, Module>,
    at: &ModulePath,
    path: &[String],
    depth: usize,
) -> Option<Target> {
    let (first, rest) = path.split_first()?;
    if matches!(first.as_str(), "crate" | "self" | "super") || modules.contains_key(&child(at, first)) {
        return resolve(modules, at, path, depth);
    }
    let declaration = modules.get(at)?.declarations.iter().find(|declaration| declaration.name == *first)?;
    match resolve(modules, at, &declaration.path, depth)? {
        Target::Module(target) => descend(modules, target, rest, depth),
        // The `use` declaration already counts as the import.
        Target::Item(_) => None,
    }
}

/// Resolves the segments below a module, down to the module that declares the item.
fn descend(
    modules: &BTreeMap<ModulePath, Module>,
    mut at: ModulePath,
    segments: &[String],
    depth: usize,
) -> Option<Target> {
    for (index, segment) in segments.iter().enumerate() {
        let below = child(&at, segment);
        if modules.contains_key(&below) {
            at = below;
            continue;
        }
        let declaration = modules.get(&at)?.declarations.iter().find(|declaration| declaration.name == *segment);
        let Some(declaration) = declaration.filter(|_| depth < MAX_REEXPORTS) else { return Some(Target::Item(at)) };
        return match resolve(modules, &at, &declaration.path, depth + 1)? {
            Target::Module(target) => descend(modules, target, &segments[index + 1..], depth + 1),
            Target::Item(target) => Some(Target::Item(target)),
        };
    }
    Some(Target::Module(at))
}

fn child(path: &ModulePath, segment: &str) -> ModulePath {
    let mut child = path.clone();
    child.push(segment.to_owned());
    child
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let source = Path::new("src");
        Graph::of_files(source, files.iter().map(|(name, text)| (source.join(name), (*text).to_owned())).collect())
    }

    fn edges(graph: &Graph) -> Vec<String> {
        graph.imports().iter().map(|import| format!("{}:{} {}", import.from, import.line, import.to)).collect()
    }

    #[test]
    fn two_files_that_import_each_other_are_a_cycle() {
        let graph = graph(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::a::A; use crate::c::C;"),
            ("c.rs", ""),
        ]);
        assert_eq!(graph.cycles(), [["src/a.rs", "src/b.rs"]]);
        assert_eq!(graph.within(&graph.cycles()[0]).len(), 2);
    }

    #[test]
    fn removed_import_opens_the_cycle() {
        let mut graph = graph(&[("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", "use super::a::A;")]);
        graph.remove("src/b.rs", "src/a.rs");
        assert!(graph.cycles().is_empty());
    }

    #[test]
    fn path_in_the_code_is_an_import() {
        let graph = graph(&[
            ("lib.rs", ""),
            ("a.rs", "use crate::b;\nfn f() { b::g(); }"),
            ("b.rs", "fn g() { crate::a::f(); }"),
        ]);
        assert_eq!(edges(&graph), ["src/a.rs:2 src/b.rs", "src/b.rs:1 src/a.rs"]);
    }

    #[test]
    fn re_exports_are_followed_to_the_declaring_file() {
        let graph = graph(&[
            ("lib.rs", "pub mod m; pub use m::Thing as Other;"),
            ("m/mod.rs", "mod inner; pub use inner::{Thing, deeper::Item};"),
            ("m/inner.rs", "pub mod deeper; pub struct Thing;"),
            ("m/inner/deeper.rs", "pub struct Item;"),
            ("user.rs", "use crate::m::{Item, Thing};\nuse crate::Other;"),
        ]);
        assert_eq!(
            edges(&graph),
            ["src/user.rs:1 src/m/inner.rs", "src/user.rs:2 src/m/inner.rs", "src/user.rs:1 src/m/inner/deeper.rs"]
        );
    }

    #[test]
    fn module_and_its_folder_are_one_unit() {
        let graph = graph(&[("lib.rs", ""), ("a.rs", "mod b; use b::B; pub struct A;"), ("a/b.rs", "use super::A;")]);
        assert!(graph.imports().is_empty());
    }

    #[test]
    fn cycle_through_a_module_and_its_child_is_found() {
        let graph = graph(&[
            ("lib.rs", "use a::A;"),
            ("a.rs", "mod b; pub use b::B; use crate::c::C;"),
            ("a/b.rs", "use crate::a::A; pub struct B;"),
            ("a/d.rs", "use super::b::B;"),
            ("c.rs", "pub struct C;"),
            ("c/e.rs", "use crate::a::d::D;"),
            ("c/tests.rs", "use crate::f::F;"),
            ("f.rs", "use crate::c::C;"),
        ]);
        assert!(graph.cycles().is_empty());
        assert_eq!(graph.of_modules().cycles(), [["src/a", "src/c"]]);
    }

    #[test]
    fn nested_groups_aliases_and_self_are_read() {
        let graph = graph(&[
            ("lib.rs", ""),
            ("a.rs", ""),
            ("b.rs", ""),
            ("user.rs", "use crate::{a::{self, X as Y}, b};\nfn f() { a::g(); b::h::<T>(); }"),
        ]);
        assert_eq!(edges(&graph), ["src/user.rs:1 src/a.rs", "src/user.rs:2 src/a.rs", "src/user.rs:2 src/b.rs"]);
    }

    #[test]
    fn imports_of_tests_and_in_comments_do_not_count() {
        let graph = graph(&[
            ("lib.rs", ""),
            ("a.rs", "// use crate::b::B;\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
            ("b.rs", ""),
        ]);
        assert!(graph.imports().is_empty());
    }

    #[test]
    fn cyclic_re_exports_end() {
        let graph = graph(&[("lib.rs", ""), ("a.rs", "pub use crate::b::X;"), ("b.rs", "pub use crate::a::X;")]);
        assert_eq!(graph.cycles().len(), 1);
    }
}
