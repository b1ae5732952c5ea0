//! Completes what the author types: names in SQL and elsewhere, keys, and words that are valid as values.
//!
//! In: a position. Out: completion items. The kind of place is found lexically ([`context`]), because a file is rarely
//! valid YAML while the author types. Keys and words come from the schema of the file. Names come from the last valid
//! contents of the files.

mod context;

use std::collections::BTreeSet;

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionTextEdit, Documentation, MarkupContent, Position, Range, TextEdit,
};
use terrane_compiler::project::schema::{Literal, Others, Schema};
use terrane_compiler::project::{CubeDefinition, dimension_type_word, measure_type_word};

use crate::hover::{Format, describe};
use crate::index::{Scope, Symbol};
use crate::position;
use crate::workspace::{Analysis, Workspace};
use context::{Context, Place};

/// The largest number of items of one answer.
const MAX_ITEMS: usize = 1_000;

/// Returns the completions at a position. `format` is that of their descriptions.
pub fn complete(workspace: &mut Workspace, path: &str, position: Position, format: Format) -> Vec<CompletionItem> {
    let Some(text) = workspace.text(path).cloned() else { return Vec::new() };
    let offset = position::offset(&text, position);
    let schema = workspace.schema(path);
    let analysis = workspace.analysis();
    let context = match schema {
        Some(_) => Context::at(&text, offset),
        None => Context::in_model(&text, offset),
    };
    let range = Range { start: position::position(&text, context.start), end: position::position(&text, offset) };
    let completer = Completer { analysis, scope: Scope::of(&analysis.definitions), context: &context, format };
    let mut items = match &context.place {
        Place::Braces => completer.in_braces(),
        Place::Jinja => completer.in_jinja(),
        Place::UserValue => user_values(),
        Place::Key { present } => {
            let mut items = completer.keys(schema.as_ref(), present);
            // An item of a list without a colon may also become a value.
            if context.is_item {
                items.extend(completer.values(schema.as_ref()));
            }
            items
        }
        Place::Value => completer.values(schema.as_ref()),
    };
    items.truncate(MAX_ITEMS);
    for item in &mut items {
        let new_text = item.insert_text.take().unwrap_or_else(|| item.label.clone());
        item.text_edit = Some(CompletionTextEdit::Edit(TextEdit { range, new_text }));
    }
    items
}

fn item(label: &str, kind: CompletionItemKind, detail: Option<String>) -> CompletionItem {
    CompletionItem { label: label.to_owned(), kind: Some(kind), detail, ..CompletionItem::default() }
}

fn documentation(value: String, format: Format) -> Documentation {
    Documentation::MarkupContent(MarkupContent { kind: format.kind(), value })
}

/// Returns the schemas that apply at a path of keys; `[]` stands for an item of a list.
fn at_path<'s>(schema: &'s Schema, path: &[String]) -> Vec<&'s Schema> {
    let mut levels = vec![schema];
    for step in path {
        let mut next = Vec::new();
        for level in with_alternatives(&levels) {
            if step == "[]" {
                next.extend(level.items.as_deref());
            } else if let Some(inner) = level.properties.get(step) {
                next.push(inner);
            } else if let Some(Others::Like(inner)) = &level.additional_properties {
                next.push(inner);
            }
        }
        levels = next;
    }
    with_alternatives(&levels)
}

fn with_alternatives<'s>(schemas: &[&'s Schema]) -> Vec<&'s Schema> {
    schemas.iter().flat_map(|schema| std::iter::once(*schema).chain(&schema.any_of)).collect()
}

fn keys(schema: &Schema, path: &[String], present: &BTreeSet<String>, format: Format) -> Vec<CompletionItem> {
    let levels = at_path(schema, path);
    let properties = levels.iter().flat_map(|level| level.properties.iter().map(|found| (*level, found)));
    let missing = properties.filter(|(_, (key, _))| !present.contains(*key));
    let key = |(level, (key, schema)): (&Schema, (&String, &Schema))| {
        let is_required = level.required.contains(key);
        CompletionItem {
            insert_text: Some(format!("{key}: ")),
            sort_text: Some(format!("{}{key}", if is_required { 0 } else { 1 })),
            documentation: schema.description.clone().map(|text| documentation(text, format)),
            ..item(key, CompletionItemKind::PROPERTY, is_required.then(|| "required".to_owned()))
        }
    };
    missing.map(key).collect()
}

fn words(schema: &Schema, path: &[String]) -> Vec<CompletionItem> {
    let mut levels = at_path(schema, path);
    // A single word may be written where a list is expected.
    let items: Vec<&Schema> = levels.iter().filter_map(|level| level.items.as_deref()).collect();
    levels.extend(with_alternatives(&items));
    let mut seen = BTreeSet::new();
    let words = levels.iter().flat_map(|level| &level.values).map(|value| match value {
        Literal::Text(word) => word.to_string(),
        Literal::Number(number) => number.to_string(),
        Literal::Boolean(value) => value.to_string(),
        Literal::Null => "null".to_owned(),
    });
    let words: Vec<String> = words.filter(|word| seen.insert(word.clone())).collect();
    words.iter().map(|word| item(word, CompletionItemKind::ENUM_MEMBER, None)).collect()
}

/// Returns completions for the attributes of a caller that a row filter may use.
fn user_values() -> Vec<CompletionItem> {
    let names = ["user.user_id", "user.email", "user.roles", "user.groups", "user.auth_method", "user.attributes."];
    names.iter().map(|name| item(name, CompletionItemKind::VARIABLE, None)).collect()
}

/// The kinds of members that a place allows.
#[derive(Clone, Copy)]
struct Allowed {
    measures: bool,
    dimensions: bool,
    segments: bool,
}

const MEASURES: Allowed = Allowed { measures: true, dimensions: false, segments: false };
const DIMENSIONS: Allowed = Allowed { measures: false, dimensions: true, segments: false };
const SEGMENTS: Allowed = Allowed { measures: false, dimensions: false, segments: true };
const ANY: Allowed = Allowed { measures: true, dimensions: true, segments: true };

struct Completer<'a> {
    analysis: &'a Analysis,
    scope: Scope<'a>,
    context: &'a Context,
    format: Format,
}

impl<'a> Completer<'a> {
    fn keys(&self, schema: Option<&Schema>, present: &BTreeSet<String>) -> Vec<CompletionItem> {
        let path = &self.context.path;
        let mut items = schema.map(|schema| keys(schema, path, present, self.format)).unwrap_or_default();
        items.extend(self.member_keys());
        items
    }

    fn values(&self, schema: Option<&Schema>) -> Vec<CompletionItem> {
        let mut items = schema.map(|schema| words(schema, &self.context.path)).unwrap_or_default();
        items.extend(self.names());
        items
    }

    /// Returns the description of a symbol.
    fn about(&self, symbol: &Symbol) -> Option<Documentation> {
        let text = describe(&self.analysis.definitions, &self.scope, symbol, self.format)?;
        Some(documentation(text, self.format))
    }

    /// Returns whether a list under this key encloses the place.
    fn is_in(&self, list: &str) -> bool {
        self.context.path.iter().any(|step| step == list)
    }

    /// Returns the innermost key that encloses the place.
    fn key(&self) -> &str {
        self.context.path.iter().rev().find(|step| *step != "[]").map_or("", String::as_str)
    }

    /// Returns the cube that encloses the place.
    fn own(&self) -> Option<&'a CubeDefinition> {
        self.scope.cube(self.context.cube.as_deref()?)
    }

    /// Returns the cubes that the enclosing policy applies to.
    fn of_policy(&self) -> Vec<&'a CubeDefinition> {
        self.context.cubes.iter().filter_map(|name| self.scope.cube(name)).collect()
    }

    fn member(&self, cube: &CubeDefinition, name: &str, label: &str, kind: String) -> CompletionItem {
        let symbol = self.scope.member(&cube.name.value, name);
        let documentation = symbol.and_then(|symbol| self.about(&symbol));
        CompletionItem { documentation, ..item(label, CompletionItemKind::FIELD, Some(kind)) }
    }

    /// Returns the members of a cube, including inherited ones. `prefix` is put before each name.
    fn members(&self, cube: &'a CubeDefinition, prefix: &str, allowed: Allowed) -> Vec<CompletionItem> {
        let mut seen = BTreeSet::new();
        let mut items = Vec::new();
        let mut add = |name: &str, kind: String| {
            if seen.insert(name.to_owned()) {
                items.push(self.member(cube, name, &format!("{prefix}{name}"), kind));
            }
        };
        for cube in self.scope.line(cube) {
            for measure in cube.measures.iter().filter(|_| allowed.measures) {
                add(&measure.name.value, format!("measure, {}", measure_type_word(measure.ty)));
            }
            for dimension in cube.dimensions.iter().filter(|_| allowed.dimensions) {
                add(&dimension.name.value, format!("dimension, {}", dimension_type_word(dimension.ty)));
            }
            for segment in cube.segments.iter().filter(|_| allowed.segments) {
                add(&segment.name.value, "segment".to_owned());
            }
        }
        items
    }

    /// Returns `cube.member` for all cubes, or for one cube if its name and a dot are already typed.
    fn all_members(&self, allowed: Allowed) -> Vec<CompletionItem> {
        let names = match self.context.word.split_once('.') {
            Some((cube, _)) => vec![cube],
            None => self.scope.cube_names(),
        };
        let cubes = names.into_iter().filter_map(|name| Some((name, self.scope.cube(name)?)));
        cubes.flat_map(|(name, cube)| self.members(cube, &format!("{name}."), allowed)).collect()
    }

    fn cubes(&self) -> Vec<CompletionItem> {
        let cube = |name: &str| {
            let documentation = self.scope.cube_symbol(name).and_then(|symbol| self.about(&symbol));
            CompletionItem { documentation, ..item(name, CompletionItemKind::CLASS, Some("cube".to_owned())) }
        };
        self.scope.cube_names().into_iter().map(cube).collect()
    }

    fn metrics(&self) -> Vec<CompletionItem> {
        let mut names: Vec<&str> = self.scope.metrics.keys().copied().collect();
        names.sort_unstable();
        let metric = |name: &str| {
            let documentation = self.about(&Symbol::Metric(name.into()));
            CompletionItem { documentation, ..item(name, CompletionItemKind::VARIABLE, Some("metric".to_owned())) }
        };
        names.into_iter().map(metric).collect()
    }

    /// Completes a reference in `{…}`: the members of the cube, the cube itself, and the cubes it joins.
    fn in_braces(&self) -> Vec<CompletionItem> {
        if self.is_in("metrics") {
            return self.metrics().into_iter().chain(self.all_members(MEASURES)).collect();
        }
        let is_number = self.is_in("measures") && self.context.sibling("type") == Some("number");
        let allowed = if is_number { Allowed { dimensions: true, ..MEASURES } } else { DIMENSIONS };
        if let Some((name, _)) = self.context.word.split_once('.') {
            let cube = if name == "CUBE" { self.own() } else { self.scope.cube(name) };
            return cube.map(|cube| self.members(cube, &format!("{name}."), allowed)).unwrap_or_default();
        }
        let own: Vec<&CubeDefinition> = self.own().into_iter().chain(self.of_policy()).collect();
        let mut items = vec![item("CUBE", CompletionItemKind::KEYWORD, Some("this cube".to_owned()))];
        let mut names: Vec<&str> = Vec::new();
        for cube in own {
            items.extend(self.members(cube, "", allowed));
            names.push(&cube.name.value);
            let line = self.scope.line(cube);
            names.extend(line.iter().flat_map(|cube| cube.joins.iter().map(|join| &*join.name.value)));
        }
        // Cubes that are not joined directly can also be referred to. They are sorted last, because they are rarer.
        let is_near = |found: &CompletionItem| names.contains(&found.label.as_str());
        let (near, far): (Vec<_>, Vec<_>) = self.cubes().into_iter().partition(is_near);
        items.extend(near);
        items.extend(
            far.into_iter().map(|found| CompletionItem { sort_text: Some(format!("~{}", found.label)), ..found }),
        );
        items
    }

    /// Completes `ref('…')` and `source('…')`, and the functions themselves.
    fn in_jinja(&self) -> Vec<CompletionItem> {
        let definitions = &self.analysis.definitions;
        let models = definitions.models.iter().map(|model| {
            let call = format!("ref('{}')", model.name.value);
            item(&call, CompletionItemKind::MODULE, Some("model".to_owned()))
        });
        let tables = definitions.sources.iter().flat_map(|source| {
            source.tables.iter().map(|table| {
                let call = format!("source('{}', '{}')", source.name.value, table.name.value);
                item(&call, CompletionItemKind::STRUCT, table.description.as_deref().map(str::to_owned))
            })
        });
        models.chain(tables).collect()
    }

    /// Completes members as keys of a policy's `mask`.
    fn member_keys(&self) -> Vec<CompletionItem> {
        if self.key() != "mask" {
            return Vec::new();
        }
        let members = self.of_policy().into_iter().flat_map(|cube| self.members(cube, "", DIMENSIONS));
        members.map(|found| CompletionItem { insert_text: Some(format!("{}: ", found.label)), ..found }).collect()
    }

    /// Completes names as values of keys.
    fn names(&self) -> Vec<CompletionItem> {
        let key = self.key();
        if self.is_in("query") {
            return self.in_query(key);
        }
        let own = |allowed| self.own().map(|cube| self.members(cube, "", allowed)).unwrap_or_default();
        match key {
            "extends" => self.cubes(),
            "cube" if self.is_in("joins") => self.cubes(),
            "name" if self.is_in("joins") => self.cubes(),
            "cubes" if self.is_in("policies") => self.cubes(),
            "deny" => self.of_policy().into_iter().flat_map(|cube| self.members(cube, "", ANY)).collect(),
            "expression" | "numerator" | "denominator" => {
                self.metrics().into_iter().chain(self.all_members(MEASURES)).collect()
            }
            "member" => self.all_members(DIMENSIONS),
            "drill_members" => own(Allowed { segments: false, ..ANY }),
            "measures" if self.is_in("pre_aggregations") => own(MEASURES),
            "dimensions" | "time_dimension" | "indexes" if self.is_in("pre_aggregations") => {
                own(DIMENSIONS).into_iter().chain(self.all_members(DIMENSIONS)).collect()
            }
            "segments" if self.is_in("pre_aggregations") => own(SEGMENTS),
            _ => Vec::new(),
        }
    }

    /// Completes names in the query of a test.
    fn in_query(&self, key: &str) -> Vec<CompletionItem> {
        match key {
            "cube" => self.cubes(),
            "measures" | "metrics" => self.metrics().into_iter().chain(self.all_members(MEASURES)).collect(),
            "dimensions" | "dimension" => self.all_members(DIMENSIONS),
            "segments" => self.all_members(SEGMENTS),
            "member" | "field" | "order" => self.metrics().into_iter().chain(self.all_members(ANY)).collect(),
            _ => Vec::new(),
        }
    }
}
