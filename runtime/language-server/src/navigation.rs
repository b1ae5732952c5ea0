//! Definitions, references and symbols.

use std::path::PathBuf;

use lsp_types::{DocumentSymbol, Location, Position, Range, SymbolInformation, SymbolKind};
use terrane_compiler::diagnostic::Span;
use terrane_compiler::project::{CubeDefinition, Text};

use crate::index::Symbol;
use crate::uri::uri_of;
use crate::workspace::Workspace;

/// The largest number of symbols of one answer.
const MAX_SYMBOLS: usize = 500;

fn location(workspace: &Workspace, span: &Span) -> Option<Location> {
    let path: PathBuf = workspace.root().join(&*span.file);
    Some(Location { uri: uri_of(&path)?, range: workspace.range(span) })
}

/// Returns the places that define the name at a position.
pub fn definition(workspace: &mut Workspace, path: &str, position: Position) -> Vec<Location> {
    places(workspace, path, position, |is_definition| is_definition)
}

/// Returns the places that use the name at a position. If `with_definition`, also returns the places that define it.
pub fn references(workspace: &mut Workspace, path: &str, position: Position, with_definition: bool) -> Vec<Location> {
    places(workspace, path, position, |is_definition| with_definition || !is_definition)
}

fn places(
    workspace: &mut Workspace,
    path: &str,
    position: Position,
    is_wanted: impl Fn(bool) -> bool,
) -> Vec<Location> {
    workspace.refresh();
    let Some(found) = workspace.occurrences_at(path, position).into_iter().next() else { return Vec::new() };
    let analysis = workspace.analysis();
    let places = analysis.index.places(&found.symbol).filter(|place| is_wanted(place.is_definition));
    let spans: Vec<Span> = places.map(|place| place.span.clone()).collect();
    spans.iter().filter_map(|span| location(workspace, span)).collect()
}

/// Returns the definitions of a file as a tree.
pub fn document_symbols(workspace: &mut Workspace, path: &str) -> Vec<DocumentSymbol> {
    let definitions = workspace.analysis().definitions.clone();
    let workspace = &*workspace;
    let is_here = |name: &Text| &*name.origin.file.path == path;
    let symbol = |name: &Text, kind, children| symbol(name, workspace.range(&name.span()), kind, children);
    let of_cube = |cube: &CubeDefinition| {
        let measures = cube.measures.iter().map(|measure| symbol(&measure.name, SymbolKind::FUNCTION, None));
        let dimensions = cube.dimensions.iter().map(|dimension| symbol(&dimension.name, SymbolKind::FIELD, None));
        let segments = cube.segments.iter().map(|segment| symbol(&segment.name, SymbolKind::BOOLEAN, None));
        let mut children: Vec<DocumentSymbol> = dimensions.chain(measures).chain(segments).collect();
        children.sort_by_key(|child| (child.range.start.line, child.range.start.character));
        // Editors expect the range of a parent to contain the ranges of its children.
        let mut of_cube = symbol(&cube.name, SymbolKind::CLASS, None);
        of_cube.range.end = children.last().map_or(of_cube.range.end, |last| last.range.end.max(of_cube.range.end));
        of_cube.range.start =
            children.first().map_or(of_cube.range.start, |first| first.range.start.min(of_cube.range.start));
        of_cube.children = Some(children);
        of_cube
    };
    let mut found: Vec<DocumentSymbol> =
        definitions.every_cube().iter().filter(|cube| is_here(&cube.name)).map(of_cube).collect();
    let metrics = definitions.every_metric().iter().map(|metric| (&metric.name, SymbolKind::VARIABLE));
    let policies = definitions.every_policy().iter().map(|policy| (&policy.name, SymbolKind::KEY));
    let sources = definitions.sources.iter().map(|source| (&source.name, SymbolKind::NAMESPACE));
    let models = definitions.models.iter().map(|model| (&model.name, SymbolKind::MODULE));
    let others = metrics.chain(policies).chain(sources).chain(models).filter(|(name, _)| is_here(name));
    found.extend(others.map(|(name, kind)| symbol(name, kind, None)));
    found.sort_by_key(|found| (found.range.start.line, found.range.start.character));
    found
}

#[allow(deprecated, reason = "the protocol's type has a field that is deprecated and required")]
fn symbol(name: &Text, range: Range, kind: SymbolKind, children: Option<Vec<DocumentSymbol>>) -> DocumentSymbol {
    DocumentSymbol {
        name: if name.value.is_empty() { "?".to_owned() } else { name.value.to_string() },
        detail: None,
        kind,
        tags: None,
        deprecated: None,
        range,
        selection_range: range,
        children,
    }
}

/// Returns the definitions of the project whose names contain `query`, ignoring case.
#[allow(deprecated, reason = "the protocol's type has a field that is deprecated and required")]
pub fn workspace_symbols(workspace: &mut Workspace, query: &str) -> Vec<SymbolInformation> {
    let query = query.to_lowercase();
    let occurrences = &workspace.analysis().index.occurrences;
    let found: Vec<(String, Option<String>, SymbolKind, Span)> = occurrences
        .iter()
        .filter(|found| found.is_definition)
        .filter_map(|found| {
            let (name, of, kind) = match &found.symbol {
                Symbol::Cube(name) => (name, None, SymbolKind::CLASS),
                Symbol::Alias(name) => (name, None, SymbolKind::INTERFACE),
                Symbol::Member(cube, name) => (name, Some(cube.to_string()), SymbolKind::FIELD),
                Symbol::Metric(name) => (name, None, SymbolKind::VARIABLE),
                Symbol::Model(name) => (name, None, SymbolKind::MODULE),
            };
            let is_match = name.to_lowercase().contains(&query);
            is_match.then(|| (name.to_string(), of, kind, found.span.clone()))
        })
        .take(MAX_SYMBOLS)
        .collect();
    let symbols = found.into_iter().filter_map(|(name, container_name, kind, span)| {
        let location = location(workspace, &span)?;
        Some(SymbolInformation { name, kind, tags: None, deprecated: None, location, container_name })
    });
    symbols.collect()
}
