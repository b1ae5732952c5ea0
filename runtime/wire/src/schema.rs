//! JSON Schemas of the interface's data, as components of an OpenAPI 3.1 document.
//!
//! In: types that derive `JsonSchema`, one at a time. Out: a reference to each type, and all components, including
//! those to which the types refer. A field that is null in an answer is optional in a request. Not here: paths and
//! operations (server).

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value as Json};

use crate::error::{self, Code};

/// A function that adds the schema of a type to the generator, and returns a reference to the schema.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Returns the [`SchemaOf`] of a type.
pub const fn of<T: JsonSchema>() -> SchemaOf {
    |generator| generator.subschema_for::<T>()
}

/// Collects schemas.
#[derive(Debug)]
pub struct Components {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
    errors: Map<String, Json>,
}

impl Default for Components {
    fn default() -> Self {
        Components::new()
    }
}

impl Components {
    pub fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = Cow::Borrowed("/components/schemas");
                settings.meta_schema = None;
            })
        };
        Components {
            requests: settings().for_deserialize().into_generator(),
            answers: settings().for_serialize().into_generator(),
            errors: Map::new(),
        }
    }

    /// Returns the schema of data that a client sends.
    pub fn request(&mut self, schema: SchemaOf) -> Json {
        schema(&mut self.requests).to_value()
    }

    /// Returns the schema of data that a client receives.
    pub fn answer(&mut self, schema: SchemaOf) -> Json {
        schema(&mut self.answers).to_value()
    }

    /// Returns the schema of the body of an error.
    pub fn error(&mut self, code: Code) -> Json {
        error::add_schemas(code, &mut self.answers, &mut self.errors)
    }

    /// Returns the schema of the body `{detail}`.
    pub fn detail_error(&mut self) -> Json {
        self.answer(of::<error::Detail>())
    }

    /// Returns all schemas by their names.
    ///
    /// # Panics
    /// If two schemas have one name.
    pub fn finish(mut self) -> Map<String, Json> {
        let mut schemas: Map<String, Json> = Map::new();
        for (name, schema) in self
            .requests
            .take_definitions(true)
            .into_iter()
            .chain(self.answers.take_definitions(true))
            .chain(self.errors)
        {
            if let Some(other) = schemas.get(&name) {
                assert_eq!(*other, schema, "two schemas are called {name}");
            }
            schemas.insert(name, schema);
        }
        schemas
    }
}

/// Returns the schema of a JSON value of any type.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

pub(crate) fn any_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": {} })
}

pub(crate) fn timestamp(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

pub(crate) fn optional_timestamp(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "format": "date-time" })
}

/// Returns the schema of a string that is one of some words.
pub(crate) fn words(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

/// An integer of 64 bits, 0 or more.
#[derive(Debug)]
pub struct Integer;

impl JsonSchema for Integer {
    fn schema_name() -> Cow<'static, str> {
        "Integer".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
    }
}
