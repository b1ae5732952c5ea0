//! What a route says of itself.

use serde_json::{Map, Value as Json, json};

use super::reference;
use crate::error::Code;

/// One operation.
#[derive(Debug, PartialEq, Eq)]
pub struct Doc {
    /// Unique, `snake_case`: the name of a generated client's function.
    pub id: &'static str,
    pub tag: &'static str,
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    /// The schema of its JSON body.
    pub body: Option<&'static str>,
    pub answers: &'static [Answer],
    /// Besides those that routes of its kind share.
    pub refusals: &'static [Code],
}

impl Doc {
    /// Nothing but one answer in JSON.
    pub(crate) const fn simple(
        id: &'static str,
        tag: &'static str,
        summary: &'static str,
        answers: &'static [Answer],
    ) -> Self {
        Doc { id, tag, summary, parameters: &[], body: None, answers, refusals: &[] }
    }
}

/// An answer that is no refusal.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub description: &'static str,
    /// Media types, with a schema where the body is JSON.
    pub content: &'static [(&'static str, Option<&'static str>)],
}

impl Answer {
    pub(super) fn to_json(&self) -> Json {
        let content: Map<String, Json> = self
            .content
            .iter()
            .map(|(media, schema)| {
                let schema = schema.map_or_else(|| json!({}), |schema| json!({ "schema": reference(schema) }));
                ((*media).to_owned(), schema)
            })
            .collect();
        let mut answer = json!({ "description": self.description });
        if !content.is_empty() {
            answer["content"] = content.into();
        }
        answer
    }
}

/// A part of an address.
#[derive(Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    pub description: &'static str,
    pub kind: ParameterKind,
    /// Else behind the `?`, where it may be left out.
    pub is_in_path: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ParameterKind {
    Text,
    /// At least this.
    Integer(u64),
    /// From this to that.
    Within(u64, u64),
    Flag,
    Timestamp,
    /// May stand several times.
    Members,
}

impl Parameter {
    pub(crate) const fn query(name: &'static str, kind: ParameterKind, description: &'static str) -> Self {
        Parameter { name, description, kind, is_in_path: false }
    }

    pub(crate) const fn path(name: &'static str, description: &'static str) -> Self {
        Parameter { name, description, kind: ParameterKind::Text, is_in_path: true }
    }

    pub(super) fn to_json(&self) -> Json {
        let schema = match self.kind {
            ParameterKind::Text => json!({ "type": "string" }),
            ParameterKind::Integer(minimum) => json!({ "type": "integer", "minimum": minimum }),
            ParameterKind::Within(minimum, maximum) => {
                json!({ "type": "integer", "minimum": minimum, "maximum": maximum })
            }
            ParameterKind::Flag => json!({ "type": "boolean" }),
            ParameterKind::Timestamp => json!({ "type": "string", "format": "date-time" }),
            ParameterKind::Members => json!({ "type": "array", "items": reference("MemberRef") }),
        };
        json!({
            "name": self.name,
            "in": if self.is_in_path { "path" } else { "query" },
            "required": self.is_in_path,
            "description": self.description,
            "schema": schema,
        })
    }
}
