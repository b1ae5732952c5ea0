//! Details of audit records as JSON objects.
//!
//! In: details. Out: a JSON object with the same fields in the same order. Not here: parsing. The store returns details
//! in their encoded form.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use terrane_app::ports::audit::{Detail, Details};

use crate::caller::value_to_json;

/// Returns the JSON object. Encoded details that are not JSON become a string.
pub fn to_json(details: &Details) -> Json {
    match details {
        Details::Fields(fields) => object(fields),
        Details::Encoded(text) => serde_json::from_str(text).unwrap_or_else(|_| Json::from(&**text)),
    }
}

/// Returns the JSON text to store. Details that are already encoded are unchanged.
pub fn encode(details: &Details) -> Arc<str> {
    match details {
        Details::Fields(fields) => object(fields).to_string().into(),
        Details::Encoded(text) => text.clone(),
    }
}

fn object(fields: &[(Arc<str>, Detail)]) -> Json {
    let fields: Map<String, Json> =
        fields.iter().map(|(name, detail)| (name.to_string(), detail_to_json(detail))).collect();
    Json::Object(fields)
}

fn detail_to_json(detail: &Detail) -> Json {
    match detail {
        Detail::Value(value) => value_to_json(value),
        Detail::List(details) => details.iter().map(detail_to_json).collect(),
        Detail::Fields(fields) => object(fields),
    }
}

#[cfg(test)]
mod tests {
    use terrane_compiler::types::Value;

    use super::*;

    #[test]
    fn fields_keep_their_order_and_digits() {
        let details = Details::fields([
            ("b", "x\"".into()),
            ("a", Detail::Value(Value::Decimal("0.10".into()))),
            ("none", None::<&str>.into()),
            ("names", ["p", "q"].into_iter().collect()),
            ("inner", Detail::Fields(vec![("is_set".into(), true.into()), ("count".into(), 7_usize.into())])),
        ]);
        let text = r#"{"b":"x\"","a":0.10,"none":null,"names":["p","q"],"inner":{"is_set":true,"count":7}}"#;
        assert_eq!(&*encode(&details), text);
        assert_eq!(to_json(&details).to_string(), text);
    }

    #[test]
    fn encoded_details_are_not_encoded_again() {
        let details = Details::Encoded(r#"{ "a" : 1.50 }"#.into());
        assert_eq!(&*encode(&details), r#"{ "a" : 1.50 }"#);
        assert_eq!(to_json(&details).to_string(), r#"{"a":1.50}"#);
        assert_eq!(to_json(&Details::Encoded("not JSON".into())), Json::from("not JSON"));
    }
}
