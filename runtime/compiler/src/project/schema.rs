//! JSON Schema, draft 2020-12, of each kind of file, for editors and other programs.
//!
//! In: the tables of keys that the readers use. Out: a [`Schema`], which serde writes as JSON. Editors show its
//! descriptions. Not here: checks that need more than one file, such as whether a cube exists, and the keys of
//! `service_project.yml` that configure the server: see [`Schema::with`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::keys::{Key, Kind, MappingKeys};
use super::{FILE, settings};

/// The dialect of every schema here.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The kinds of files that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `service_project.yml`.
    Project,
    Sources,
    Cubes,
    Metrics,
    Policies,
    /// Any of the lists of sources, cubes, metrics and policies, or several of them, as a YAML file may contain them.
    Definitions,
}

impl FileKind {
    pub const ALL: [FileKind; 6] = [
        FileKind::Project,
        FileKind::Sources,
        FileKind::Cubes,
        FileKind::Metrics,
        FileKind::Policies,
        FileKind::Definitions,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FileKind::Project => "project",
            FileKind::Sources => "sources",
            FileKind::Cubes => "cubes",
            FileKind::Metrics => "metrics",
            FileKind::Policies => "policies",
            FileKind::Definitions => "definitions",
        }
    }
}

/// A JSON Schema. Empty fields are not serialized.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schema {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub dialect: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<&'static str>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Literal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Literal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<Others>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Schema>>,
}

/// A value that a schema lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Literal {
    Text(Cow<'static, str>),
    Number(u64),
    Boolean(bool),
    Null,
}

/// The keys that a mapping may have besides the named ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Others {
    None(False),
    Like(Box<Schema>),
}

/// The schema `false`, which accepts no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct False;

impl Serialize for False {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl Schema {
    /// Adds a key, for sections of `service_project.yml` that other programs read.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, schema: Schema) -> Schema {
        self.properties.insert(key.into(), schema);
        self
    }

    /// Refuses all keys that are not named.
    #[must_use]
    pub fn closed(self) -> Schema {
        Schema { additional_properties: Some(Others::None(False)), ..self }
    }

    /// Adds a description.
    #[must_use]
    pub fn described(self, about: &str) -> Schema {
        Schema { description: Some(about.to_owned()), ..self }
    }

    /// Returns the schema of values of some types.
    pub fn of_types(types: &[&'static str]) -> Schema {
        Schema { types: types.to_vec(), ..Schema::default() }
    }

    pub fn list(items: Schema) -> Schema {
        Schema { items: Some(Box::new(items)), ..Schema::of_types(&["array"]) }
    }

    fn mapping_of(values: Schema) -> Schema {
        Schema { additional_properties: Some(Others::Like(Box::new(values))), ..Schema::of_types(&["object"]) }
    }

    /// Returns the schema of values that at least one of the given schemas accepts.
    pub fn either(schemas: Vec<Schema>) -> Schema {
        Schema { any_of: schemas, ..Schema::default() }
    }
}

/// Returns the schema of a kind of file. The schema of the project's file allows any key besides its own, because the
/// server's settings are there too. [`Schema::with`] adds these, and [`Schema::closed`] then refuses all others.
pub fn schema(kind: FileKind) -> Schema {
    let mut schema = match kind {
        FileKind::Project => Schema { additional_properties: None, ..mapping(&settings::PROJECT) },
        _ => mapping(&FILE),
    };
    if !matches!(kind, FileKind::Project | FileKind::Definitions) {
        schema.properties.retain(|list, _| list == kind.name());
    }
    if kind != FileKind::Project {
        // A file that contains only comments is null, and a list without items may be null.
        schema.types.push("null");
        for list in schema.properties.values_mut() {
            list.types.push("null");
        }
    }
    Schema { dialect: Some(DIALECT), title: Some(format!("Terrane: {}", kind.name())), ..schema }
}

fn mapping(shape: &MappingKeys) -> Schema {
    let keys = shape.keys.iter();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let wanted = |name: &&str| Schema { required: names(&[name]), ..Schema::default() };
    Schema {
        properties: keys.clone().map(|key| (key.name.to_owned(), value(key))).collect(),
        required: keys.filter(|key| key.is_required).map(|key| key.name.to_owned()).collect(),
        any_of: shape.one_of.iter().map(wanted).collect(),
        not: (!shape.apart.is_empty()).then(|| Box::new(Schema { required: names(shape.apart), ..Schema::default() })),
        ..Schema::of_types(&["object"]).described(shape.about).closed()
    }
}

fn value(key: &Key) -> Schema {
    of_kind(&key.kind).described(key.about)
}

fn of_kind(kind: &Kind) -> Schema {
    match kind {
        Kind::Name => {
            Schema { pattern: Some("^[a-z_][a-z0-9_]*$"), max_length: Some(200), ..Schema::of_types(&["string"]) }
        }
        Kind::Text => text(),
        Kind::Boolean => {
            let words = ["yes", "no", "on", "off"].map(|word| Literal::Text(word.into()));
            let values = [Literal::Boolean(true), Literal::Boolean(false)].into_iter().chain(words).collect();
            Schema { values, ..Schema::default() }
        }
        Kind::Word(words) => self::words(&words.words()),
        Kind::Texts => one_or_many(text()),
        Kind::Words(words) => one_or_many(self::words(&words.words())),
        Kind::Mapping(shape) => mapping(shape),
        Kind::List(shape) => Schema::list(mapping(shape)),
        Kind::ListOrNames(shape) => Schema::list(Schema::either(vec![text(), mapping(shape)])),
        Kind::WordsOrMappings(words, shape) => {
            Schema::list(Schema::either(vec![self::words(&words.words()), mapping(shape)]))
        }
        Kind::Values => one_or_many(plain()),
        Kind::ValuesByName => Schema::mapping_of(one_or_many(plain())),
        Kind::WordsByName(words, shape) => {
            let mut word = self::words(&words.words());
            word.values.push(Literal::Null);
            Schema::mapping_of(Schema::either(vec![word, mapping(shape)]))
        }
        Kind::ByName => Schema::of_types(&["object"]),
        Kind::Anything => Schema::default(),
    }
}

/// Returns the schema of a string. Numbers and booleans are allowed and read as strings.
fn text() -> Schema {
    Schema::of_types(&["string", "number", "boolean"])
}

fn plain() -> Schema {
    Schema::of_types(&["string", "number", "boolean", "null"])
}

fn words(words: &[&'static str]) -> Schema {
    Schema { values: words.iter().map(|word| Literal::Text((*word).into())).collect(), ..Schema::default() }
}

fn one_or_many(one: Schema) -> Schema {
    Schema::either(vec![one.clone(), Schema::list(one)])
}
