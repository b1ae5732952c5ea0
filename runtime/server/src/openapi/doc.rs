//! The description of a route.

use serde_json::{Map, Value as Json, json};
use terrane_wire::Code;
use terrane_wire::query::Member;
use terrane_wire::schema::{self, Components, SchemaOf};

/// The description of an operation.
#[derive(Debug)]
pub struct Doc {
    /// The unique id in snake_case, which names the function in generated clients.
    pub id: &'static str,
    pub tag: &'static str,
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    pub body: Option<RequestBody>,
    pub answers: &'static [ResponseDoc],
    /// The errors of the route, besides those that routes of its kind share.
    pub errors: &'static [Code],
    /// The errors that are sent in the shape `{detail}`.
    pub detail_errors: &'static [Code],
}

impl Doc {
    /// Describes an operation without parameters, a body and special errors.
    pub(crate) const fn simple(
        id: &'static str,
        tag: &'static str,
        summary: &'static str,
        answers: &'static [ResponseDoc],
    ) -> Self {
        Doc { id, tag, summary, parameters: &[], body: None, answers, errors: &[], detail_errors: &[] }
    }
}

/// A JSON body.
#[derive(Debug, Clone, Copy)]
pub struct RequestBody {
    pub(super) schema: SchemaOf,
    pub(super) is_required: bool,
}

impl RequestBody {
    pub(crate) const fn required(schema: SchemaOf) -> Self {
        RequestBody { schema, is_required: true }
    }

    /// Describes an optional body, whose fields all have defaults.
    pub(crate) const fn optional(schema: SchemaOf) -> Self {
        RequestBody { schema, is_required: false }
    }
}

/// An answer that is not an error.
#[derive(Debug)]
pub struct ResponseDoc {
    pub status: u16,
    pub description: &'static str,
    /// The media types; a generated client takes the first.
    pub content: &'static [Content],
    pub compression: Compression,
}

/// The treatment of an answer when the client accepts a content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Accepted,
    /// The answer contains a secret.
    Never,
}

/// A media type with its schema.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    Json(SchemaOf),
    /// JSON with its own media type.
    JsonAs(&'static str, SchemaOf),
    Text(&'static str),
    Binary(&'static str),
}

impl ResponseDoc {
    pub(super) fn to_json(&self, components: &mut Components) -> Json {
        let content: Map<String, Json> = self
            .content
            .iter()
            .map(|content| {
                let (media, schema) = match content {
                    Content::Json(schema) => ("application/json", components.answer(*schema)),
                    Content::JsonAs(media, schema) => (*media, components.answer(*schema)),
                    Content::Text(media) => (*media, json!({ "type": "string" })),
                    Content::Binary(media) => (*media, json!({ "type": "string", "format": "binary" })),
                };
                (media.to_owned(), json!({ "schema": schema }))
            })
            .collect();
        let mut answer = json!({ "description": self.description });
        if !content.is_empty() {
            answer["content"] = content.into();
        }
        answer
    }
}

/// A parameter of a request, besides its body.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub description: &'static str,
    pub kind: ParameterKind,
    pub place: ParameterPlace,
    /// True if a request may contain the parameter several times.
    pub repeats: bool,
}

/// The part of a request that contains a parameter. Parameters of the path are required; all others are optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterPlace {
    Path,
    Query,
    Header,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ParameterKind {
    String,
    /// An integer with a minimum.
    Integer(u64),
    /// An integer with a minimum and a maximum.
    Within(u64, u64),
    Boolean,
    Timestamp,
    /// Visible ASCII characters, at least one and at most this number.
    Visible(usize),
    /// Members; the parameter can be repeated.
    Members,
}

impl Parameter {
    pub(crate) const fn query(name: &'static str, kind: ParameterKind, description: &'static str) -> Self {
        let repeats = matches!(kind, ParameterKind::Members);
        Parameter { name, description, kind, place: ParameterPlace::Query, repeats }
    }

    pub(crate) const fn header(name: &'static str, kind: ParameterKind, description: &'static str) -> Self {
        Parameter { name, description, kind, place: ParameterPlace::Header, repeats: false }
    }

    pub(crate) const fn path(name: &'static str, description: &'static str) -> Self {
        Parameter { name, description, kind: ParameterKind::String, place: ParameterPlace::Path, repeats: false }
    }

    /// Returns the parameter as one that a request may contain several times.
    pub(crate) const fn repeated(self) -> Self {
        Parameter { repeats: true, ..self }
    }

    pub(super) fn to_json(&self, components: &mut Components) -> Json {
        let schema = match self.kind {
            ParameterKind::String => json!({ "type": "string" }),
            ParameterKind::Integer(minimum) => json!({ "type": "integer", "minimum": minimum }),
            ParameterKind::Within(minimum, maximum) => {
                json!({ "type": "integer", "minimum": minimum, "maximum": maximum })
            }
            ParameterKind::Boolean => json!({ "type": "boolean" }),
            ParameterKind::Visible(most) => {
                json!({ "type": "string", "minLength": 1, "maxLength": most, "pattern": "^[!-~]+$" })
            }
            ParameterKind::Timestamp => json!({ "type": "string", "format": "date-time" }),
            ParameterKind::Members => {
                json!({ "type": "array", "items": components.request(schema::of::<Member>()) })
            }
        };
        json!({
            "name": self.name,
            "in": self.place.as_str(),
            "required": self.place == ParameterPlace::Path,
            "description": self.description,
            "schema": schema,
        })
    }
}

impl ParameterPlace {
    fn as_str(self) -> &'static str {
        match self {
            ParameterPlace::Path => "path",
            ParameterPlace::Query => "query",
            ParameterPlace::Header => "header",
        }
    }
}
