//! Writes the request of a question.
//!
//! In: a question with its members and the replies that were refused. Out: the body of a chat request, with the JSON
//! schema of the reply. Strings of the project are values of a JSON object, which is separate from the instructions.

use serde::Serialize;
use serde_json::{Value as Json, json};
use terrane_app::ports::language_model::{ModelQuestion, OfferedKind, OfferedMember, Prompt};
use terrane_compiler::types::{DimensionType, Granularity, Operator};

use super::ModelServerSettings;

/// The instructions of the model. They are the same for all questions.
const INSTRUCTIONS: &str = include_str!("instructions.txt");

/// The question as the model gets it.
#[derive(Serialize)]
struct QuestionText<'a> {
    question: &'a str,
    language: &'a str,
    today: String,
    members: Vec<MemberText<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<ValueText<'a>>,
}

#[derive(Serialize)]
struct MemberText<'a> {
    name: &'a str,
    kind: &'static str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    synonyms: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
}

#[derive(Serialize)]
struct ValueText<'a> {
    dimension: &'a str,
    value: &'a str,
}

/// Writes the body of a request.
pub(super) fn write(question: &ModelQuestion, settings: &ModelServerSettings) -> Prompt {
    let mut messages = vec![message("system", INSTRUCTIONS), message("user", &text(question))];
    for refused in &question.refused {
        messages.push(message("assistant", &refused.text));
        messages.push(message("user", &format!("The reply was refused: {}. Reply again.", refused.reason)));
    }
    let mut body = json!({
        "model": &*settings.model,
        "messages": messages,
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": "query", "strict": true, "schema": schema(&question.members) },
        },
    });
    if settings.is_reasoning {
        body["max_completion_tokens"] = settings.max_tokens.into();
    } else {
        body["max_tokens"] = settings.max_tokens.into();
        body["temperature"] = 0.into();
    }
    Prompt { body: body.to_string().into() }
}

fn message(role: &str, content: &str) -> Json {
    json!({ "role": role, "content": content })
}

fn text(question: &ModelQuestion) -> String {
    let values = question.values.iter().map(|found| ValueText { dimension: &found.member, value: &found.value });
    let text = QuestionText {
        question: &question.text,
        language: &question.language,
        today: question.today.to_string(),
        members: question.members.iter().map(MemberText::from).collect(),
        values: values.collect(),
    };
    // Serializing strings and lists of strings cannot fail.
    serde_json::to_string(&text).unwrap_or_default()
}

impl<'a> From<&'a OfferedMember> for MemberText<'a> {
    fn from(member: &'a OfferedMember) -> Self {
        MemberText {
            name: &member.name,
            kind: kind(member.kind),
            title: &member.title,
            description: member.description.as_deref(),
            synonyms: member.synonyms.iter().map(|synonym| &**synonym).collect(),
            unit: member.unit.as_deref(),
        }
    }
}

fn kind(kind: OfferedKind) -> &'static str {
    match kind {
        OfferedKind::Measure => "measure",
        OfferedKind::Metric => "metric",
        OfferedKind::Segment => "segment",
        OfferedKind::Dimension(DimensionType::Time) => "time dimension",
        OfferedKind::Dimension(DimensionType::Number) => "dimension of numbers",
        OfferedKind::Dimension(DimensionType::Boolean) => "dimension of true and false",
        OfferedKind::Dimension(DimensionType::String | DimensionType::Geo) => "dimension",
    }
}

/// Returns the JSON schema of a reply. Strict schemas require all keys, so a key without a value is null or empty.
fn schema(members: &[OfferedMember]) -> Json {
    let names = |is_wanted: fn(OfferedKind) -> bool| {
        let found: Vec<&str> =
            members.iter().filter(|member| is_wanted(member.kind)).map(|member| &*member.name).collect();
        // JSON Schema forbids an empty `enum`.
        if found.is_empty() { json!({ "type": "string" }) } else { json!({ "type": "string", "enum": found }) }
    };
    let is_value = |kind| matches!(kind, OfferedKind::Measure | OfferedKind::Metric);
    let is_time = |kind| kind == OfferedKind::Dimension(DimensionType::Time);
    let is_group = |kind| matches!(kind, OfferedKind::Dimension(ty) if ty != DimensionType::Time);
    let is_filtered = |kind| !matches!(kind, OfferedKind::Segment);
    let steps: Vec<&str> = Granularity::ALL.into_iter().map(Granularity::as_str).collect();
    let operators: Vec<&str> = Operator::ALL.into_iter().map(Operator::as_str).collect();
    let time = object(json!({
        "dimension": names(is_time),
        "granularity": nullable(json!({ "type": "string", "enum": steps })),
        "date_range": nullable(json!({ "anyOf": [text_schema(), list(text_schema())] })),
    }));
    let filter = object(json!({
        "member": names(is_filtered),
        "operator": { "type": "string", "enum": operators },
        "values": list(json!({ "type": ["string", "number", "boolean"] })),
    }));
    let order = object(json!({
        "field": names(is_filtered),
        "direction": { "type": "string", "enum": ["asc", "desc"] },
    }));
    let query = object(json!({
        "measures": list(names(is_value)),
        "dimensions": list(names(is_group)),
        "time_dimensions": list(time),
        "filters": list(filter),
        "segments": list(names(|kind| kind == OfferedKind::Segment)),
        "order_by": list(order),
        "limit": nullable(json!({ "type": "integer" })),
        "compare_range": nullable(object(json!({ "shift": text_schema() }))),
        "totals": { "type": "boolean" },
    }));
    let any = names(|_| true);
    object(json!({
        "query": nullable(query),
        "words": list(object(json!({ "text": text_schema(), "member": any }))),
        "clarification": nullable(object(json!({
            "message": text_schema(),
            "choices": list(names(|kind| matches!(kind, OfferedKind::Measure | OfferedKind::Metric | OfferedKind::Dimension(_)))),
        }))),
    }))
}

fn object(properties: Json) -> Json {
    let keys: Vec<&String> = properties.as_object().map(|of| of.keys().collect()).unwrap_or_default();
    json!({ "type": "object", "additionalProperties": false, "required": keys, "properties": properties })
}

fn nullable(schema: Json) -> Json {
    json!({ "anyOf": [{ "type": "null" }, schema] })
}

fn list(items: Json) -> Json {
    json!({ "type": "array", "items": items })
}

fn text_schema() -> Json {
    json!({ "type": "string" })
}
