//! Renames a member, metric, cube or alias in all files.
//!
//! In: a position and a new name. Out: the edits of each file, or the reason for a refusal. The edited project is
//! compiled before the edits are returned: it must have no errors, and each use of the old name must have become a use
//! of the new one. Edits are places in the files that were analyzed, so a file that has changed since is a refusal.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use lsp_types::{Position, Range, TextEdit};
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceTree;

use crate::index::{Index, Scope, Symbol, declares};
use crate::position;
use crate::workspace::{Analysis, Workspace};

/// The reason why a name cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    NoName,
    /// A SQL model has the name of its file, so it cannot be renamed.
    NameOfFile,
    InvalidName {
        name: String,
    },
    Reserved {
        name: String,
    },
    Taken {
        name: String,
    },
    /// The name is written differently at a place, for example with an escape.
    WrittenDifferently {
        place: String,
    },
    /// A file on disk has changed since it was analyzed.
    FileChanged {
        path: String,
    },
    /// The project has errors before the change.
    HasErrors {
        first: String,
    },
    /// The project would have errors after the change.
    WouldBreak {
        first: String,
    },
    /// After the change, some references would refer to a different definition.
    WouldChangeMeaning {
        name: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoName => write!(f, "no name of the project at this position"),
            Refusal::NameOfFile => write!(f, "a model has the name of its file: rename the file"),
            Refusal::InvalidName { name } => {
                write!(f, "`{name}` is not snake_case: use lower-case letters, digits and `_`, at most 200 characters")
            }
            Refusal::Reserved { name } => write!(f, "`{name}` is reserved"),
            Refusal::Taken { name } => write!(f, "the name `{name}` is already used"),
            Refusal::WrittenDifferently { place } => write!(f, "the name is written differently in {place}"),
            Refusal::FileChanged { path } => {
                write!(f, "`{path}` has changed on disk during the rename; repeat the rename")
            }
            Refusal::HasErrors { first } => write!(f, "the project has errors; solve them first: {first}"),
            Refusal::WouldBreak { first } => write!(f, "the project would have errors: {first}"),
            Refusal::WouldChangeMeaning { name } => write!(f, "references to `{name}` would change their meaning"),
        }
    }
}

/// Returns the place of the name at a position, and the name.
///
/// # Errors
/// The position is not at a name that can be changed.
pub fn prepare_rename(workspace: &mut Workspace, path: &str, position: Position) -> Result<(Range, String), Refusal> {
    let found = workspace.occurrences_at(path, position).into_iter().next().ok_or(Refusal::NoName)?;
    if matches!(found.symbol, Symbol::Model(_)) {
        return Err(Refusal::NameOfFile);
    }
    Ok((workspace.range(&found.span), name_of(&found.symbol).to_owned()))
}

/// Returns the edits of each file that rename the definition at a position. Reads the files on disk before the analysis,
/// and compares them again before it returns their edits.
///
/// # Errors
/// The new name is invalid or taken, the project has errors before or after the change, or a file changes on disk.
pub fn rename(
    workspace: &mut Workspace,
    path: &str,
    position: Position,
    new_name: &str,
) -> Result<BTreeMap<Arc<str>, Vec<TextEdit>>, Refusal> {
    workspace.refresh();
    prepare_rename(workspace, path, position)?;
    let symbol = workspace.occurrences_at(path, position).into_iter().next().ok_or(Refusal::NoName)?.symbol;
    check_name(new_name)?;
    if name_of(&symbol) == new_name {
        return Ok(BTreeMap::new());
    }
    if let Some(error) = workspace.diagnostics().iter().find(|found| found.is_error()) {
        return Err(Refusal::HasErrors { first: error_line(error) });
    }
    let analysis = workspace.analysis();
    if is_taken(analysis, &symbol, new_name) {
        return Err(Refusal::Taken { name: new_name.to_owned() });
    }
    let edits = edits(analysis, &symbol, new_name)?;
    let edited = apply(&analysis.tree, &edits);
    let counts = counts(&analysis.index, &symbol, new_name);
    let (definitions, diagnostics) = workspace.check(&edited);
    if let Some(error) = diagnostics.iter().find(|found| found.is_error()) {
        return Err(Refusal::WouldBreak { first: error_line(error) });
    }
    // Even without errors, a reference may now refer to a different definition with this name.
    let after = Index::of(&definitions, &edited);
    if self::counts(&after, &symbol, name_of(&symbol)) != counts {
        return Err(Refusal::WouldChangeMeaning { name: new_name.to_owned() });
    }
    match edits.keys().find(|path| !workspace.is_current(path)) {
        Some(path) => Err(Refusal::FileChanged { path: path.to_string() }),
        None => Ok(edits),
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let is_valid = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && name.len() <= 200;
    if !is_valid {
        return Err(Refusal::InvalidName { name: name.to_owned() });
    }
    if name == "metric_time" {
        return Err(Refusal::Reserved { name: name.to_owned() });
    }
    Ok(())
}

fn error_line(error: &Diagnostic) -> String {
    match &error.span {
        Some(span) => format!("{span}: {}", error.message),
        None => error.message.clone(),
    }
}

fn name_of(symbol: &Symbol) -> &str {
    match symbol {
        Symbol::Cube(name) | Symbol::Alias(name) | Symbol::Metric(name) | Symbol::Model(name) => name,
        Symbol::Member(_, name) => name,
    }
}

/// Returns true if the new name would collide with an existing one. A member's name must be unique among the members of
/// all cubes that extend its cube or are extended by it.
fn is_taken(analysis: &Analysis, symbol: &Symbol, name: &str) -> bool {
    let scope = Scope::of(&analysis.definitions);
    match symbol {
        Symbol::Member(owner, _) => {
            let lines = scope.cubes.values().map(|cube| scope.line(cube));
            let mut of_owner = lines.filter(|line| line.iter().any(|cube| cube.name.value == *owner));
            of_owner.any(|line| line.iter().any(|cube| declares(cube, name)))
        }
        // Metrics, cubes and aliases must have different names.
        Symbol::Metric(_) => scope.metric(name).is_some() || scope.cube_symbol(name).is_some(),
        Symbol::Cube(_) | Symbol::Alias(_) => scope.cube_symbol(name).is_some() || scope.metric(name).is_some(),
        Symbol::Model(_) => true,
    }
}

fn edits(analysis: &Analysis, symbol: &Symbol, new_name: &str) -> Result<BTreeMap<Arc<str>, Vec<TextEdit>>, Refusal> {
    let mut edits: BTreeMap<Arc<str>, Vec<TextEdit>> = BTreeMap::new();
    for place in analysis.index.places(symbol) {
        let Some(text) = analysis.tree.files.get(&place.span.file) else { continue };
        let range = position::range(text, &place.span);
        let old = &text[position::offset(text, range.start)..position::offset(text, range.end)];
        if old != name_of(symbol) {
            return Err(Refusal::WrittenDifferently { place: place.span.to_string() });
        }
        let edit = TextEdit { range, new_text: new_name.to_owned() };
        edits.entry(Arc::clone(&place.span.file)).or_default().push(edit);
    }
    Ok(edits)
}

/// Applies edits to a tree. Each file is edited from its end to its beginning, so that the places of the remaining
/// edits stay valid.
fn apply(tree: &SourceTree, edits: &BTreeMap<Arc<str>, Vec<TextEdit>>) -> SourceTree {
    let mut tree = tree.clone();
    for (path, edits) in edits {
        let Some(text) = tree.files.get(path) else { continue };
        let mut edited = text.to_string();
        let mut edits: Vec<&TextEdit> = edits.iter().collect();
        edits.sort_by_key(|edit| std::cmp::Reverse(edit.range.start));
        for edit in edits {
            let places = position::offset(&edited, edit.range.start)..position::offset(&edited, edit.range.end);
            edited.replace_range(places, &edit.new_text);
        }
        tree.files.insert(Arc::clone(path), edited.into());
    }
    tree
}

/// Returns the number of occurrences of each symbol, under the name that it has after the change.
fn counts(index: &Index, changed: &Symbol, new_name: &str) -> HashMap<Symbol, usize> {
    let mut counts = HashMap::new();
    for found in &index.occurrences {
        let symbol = match (changed, &found.symbol) {
            (Symbol::Cube(old), Symbol::Member(cube, name)) if old == cube => {
                Symbol::Member(new_name.into(), Arc::clone(name))
            }
            (changed, found) if changed == found => match found {
                Symbol::Cube(_) => Symbol::Cube(new_name.into()),
                Symbol::Alias(_) => Symbol::Alias(new_name.into()),
                Symbol::Metric(_) => Symbol::Metric(new_name.into()),
                Symbol::Model(_) => Symbol::Model(new_name.into()),
                Symbol::Member(cube, _) => Symbol::Member(Arc::clone(cube), new_name.into()),
            },
            (_, found) => found.clone(),
        };
        *counts.entry(symbol).or_insert(0) += 1;
    }
    counts
}
