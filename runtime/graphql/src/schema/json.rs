//! The scalar `JSON`.

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use bytes::Bytes;

/// Any JSON value. Decimals, and integers beyond 2^53, are strings.
pub(crate) struct Json(Value);

#[Scalar(name = "JSON")]
impl ScalarType for Json {
    fn parse(_: Value) -> InputValueResult<Self> {
        Err(InputValueError::custom("no argument is JSON"))
    }

    fn to_value(&self) -> Value {
        self.0.clone()
    }
}

impl Json {
    /// Returns a list from the JSON text of its items, which commas separate.
    pub(crate) fn list(items: Bytes) -> Self {
        let items = if items.is_empty() { Vec::new() } else { vec![Value::Binary(items)] };
        Json(Value::List(items))
    }

    /// Returns the value with this JSON text.
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Json(Value::Binary(text.into()))
    }

    pub(crate) fn object(fields: impl IntoIterator<Item = (String, serde_json::Value)>) -> Self {
        let fields: serde_json::Map<String, serde_json::Value> = fields.into_iter().collect();
        Json::text(serde_json::Value::Object(fields).to_string())
    }
}
