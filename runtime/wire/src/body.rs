//! Parses a body as JSON and refuses repeated keys.
//!
//! In: bytes within the limit of size. Out: a value with at most 127 levels of nesting, or a [`FieldError`]. If an
//! object repeats a key, this parser could use the last value, and a proxy that inspects bodies the first. A caller
//! could then evade the proxy's check. Not here: the meaning of the fields.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use crate::fields::{FieldError, Path};

/// Parses a body. serde_json itself rejects values nested deeper than 127.
pub(crate) fn parse(body: &[u8]) -> Result<Json, FieldError> {
    let value = serde_json::from_slice(body).map_err(|error| FieldError::syntax(&error))?;
    check_names(body, &Path::ROOT)?;
    Ok(value)
}

/// Rejects duplicate keys in valid JSON.
pub(crate) fn check_names(text: &[u8], path: &Path<'_>) -> Result<(), FieldError> {
    let found = Cell::new(None);
    let names = UniqueNames { path, found: &found };
    // The text is JSON, so only a duplicate key ends the walk.
    let _ = names.deserialize(&mut serde_json::Deserializer::from_slice(text));
    found.into_inner().map_or(Ok(()), Err)
}

/// Walks through JSON and stops at a duplicate key.
#[derive(Clone, Copy)]
struct UniqueNames<'a> {
    path: &'a Path<'a>,
    found: &'a Cell<Option<FieldError>>,
}

impl<'de> DeserializeSeed<'de> for UniqueNames<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueNames<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    /// Reads an object, or a number, which serde_json passes as the only field of an object to preserve its digits.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let path = self.path.field(&name);
            if names.contains(&name) {
                self.found.set(Some(path.duplicate()));
                return Err(A::Error::custom("duplicate key"));
            }
            map.next_value_seed(UniqueNames { path: &path, ..self })?;
            names.insert(name);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items.next_element_seed(UniqueNames { path: &self.path.item(index), ..self })?.is_some() {
            index += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorBody;

    fn error(text: &str) -> Option<ErrorBody> {
        parse(text.as_bytes()).err().map(ErrorBody::from)
    }

    fn message(text: &str) -> Option<String> {
        error(text).map(|error| error.message)
    }

    #[test]
    fn duplicate_key_is_named_with_its_place() {
        for (text, place) in [
            (r#"{"limit": 1, "limit": 1}"#, "`limit`"),
            (r#"{"a": {"b": [0, {"c": 1, "d": 2, "c": 3}]}}"#, "`a.b[1].c`"),
            (r#"{"l\u0069mit": 1, "limit": 2}"#, "`limit`"),
            (r#"[{"a": 1}, {"": 1, "": 2}]"#, "`[1].`"),
        ] {
            assert_eq!(message(text), Some(format!("duplicate key {place}")), "{text}");
        }
    }

    #[test]
    fn other_documents_are_parsed_unchanged() {
        for text in [
            r#"{"a": {"a": [{"a": 1.50}, {"a": -0e1}, 123456789012345678901234567890]}, "b": "a"}"#,
            "null",
            "true",
            "[]",
            "\"a\"",
            "1",
        ] {
            assert_eq!(parse(text.as_bytes()).ok(), serde_json::from_str(text).ok(), "{text}");
        }
        let incomplete = error("{\"a\": 1, \"a\"").expect("an incomplete object is not JSON");
        assert_eq!((incomplete.field("line"), incomplete.field("column")), (Some(&1.into()), Some(&12.into())));
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(message(&deep(127)).is_none());
        assert!(message(&deep(128)).is_some_and(|message| message.contains("127 levels")));
        let deep_and_twice = format!("{}{{\"a\":1,\"a\":2}}{}", "[".repeat(126), "]".repeat(126));
        let place = error(&deep_and_twice).and_then(|error| error.field("field").cloned());
        assert_eq!(place, Some(format!("{}.a", "[0]".repeat(126)).into()));
    }
}
