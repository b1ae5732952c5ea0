//! Operations that were parsed before, by their document, name and variables.
//!
//! In: an operation that was parsed. Out: the same operation for an equal request, which is then neither parsed nor
//! checked against the limits again. The schema and the limits never change, so the result would be the same. The cache
//! is bounded by an estimate of its size in bytes. Not here: results.

use std::hash::{Hash, Hasher};

use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};
use serde_json::{Map, Value as Json};

use crate::operation::Operation;

/// The largest estimated size of the cache, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The largest size of a cached operation's document and variables, in bytes.
const MAX_TEXT: usize = 16 * 1024;
/// The estimated size of a parsed document, in bytes for each byte of its text. Common documents need less.
const PARSED_BYTES: u64 = 16;
/// The number of operations for which the cache reserves space at first.
const USUAL_OPERATIONS: usize = 500;

/// The cache of operations.
pub(crate) struct KnownOperations {
    operations: Cache<OperationKey, Operation, Bytes>,
}

/// A request, as the key of the operation that was parsed from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OperationKey {
    text: Box<str>,
    name: Option<Box<str>>,
    variables: Map<String, Json>,
    /// The total size of the text, the name and the variables, in bytes.
    bytes: usize,
}

/// An [`OperationKey`] that borrows its parts from a request.
#[derive(Hash, PartialEq, Eq)]
struct BorrowedKey<'k> {
    text: &'k str,
    name: Option<&'k str>,
    variables: &'k Map<String, Json>,
}

#[derive(Clone)]
struct Bytes;

impl KnownOperations {
    pub(crate) fn new() -> Self {
        KnownOperations { operations: Cache::with_weighter(USUAL_OPERATIONS, MAX_BYTES, Bytes) }
    }

    /// Returns the operation that was parsed from an equal request.
    pub(crate) fn get(&self, text: &str, name: Option<&str>, variables: &Map<String, Json>) -> Option<Operation> {
        self.operations.get(&BorrowedKey { text, name, variables })
    }

    pub(crate) fn insert(&self, key: OperationKey, operation: Operation) {
        self.operations.insert(key, operation);
    }
}

impl OperationKey {
    /// Returns the key of a request, or `None` if the request is too large for the cache.
    pub(crate) fn new(text: &str, name: Option<&str>, variables: &Map<String, Json>) -> Option<Self> {
        let left = MAX_TEXT.checked_sub(text.len())?.checked_sub(name.map_or(0, str::len))?;
        let left = after_fields(left, variables)?;
        let (text, name, variables) = (text.into(), name.map(Into::into), variables.clone());
        Some(OperationKey { text, name, variables, bytes: MAX_TEXT - left })
    }

    fn borrowed(&self) -> BorrowedKey<'_> {
        BorrowedKey { text: &self.text, name: self.name.as_deref(), variables: &self.variables }
    }
}

fn after_fields(left: usize, fields: &Map<String, Json>) -> Option<usize> {
    fields.iter().try_fold(left, |left, (name, value)| after(left.checked_sub(name.len())?, value))
}

/// Subtracts the size of a value from `left` bytes. Returns `None` if the value is larger.
fn after(left: usize, value: &Json) -> Option<usize> {
    let left = left.checked_sub(size_of::<Json>())?;
    match value {
        Json::String(text) => left.checked_sub(text.len()),
        Json::Array(items) => items.iter().try_fold(left, after),
        Json::Object(fields) => after_fields(left, fields),
        Json::Null | Json::Bool(_) | Json::Number(_) => Some(left),
    }
}

impl Hash for OperationKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.borrowed().hash(state);
    }
}

impl Equivalent<OperationKey> for BorrowedKey<'_> {
    fn equivalent(&self, key: &OperationKey) -> bool {
        *self == key.borrowed()
    }
}

impl Weighter<OperationKey, Operation> for Bytes {
    fn weight(&self, key: &OperationKey, _: &Operation) -> u64 {
        (key.bytes as u64 + 64) * PARSED_BYTES
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_TEXT, OperationKey};

    fn key_of(text: &str, variables: serde_json::Value) -> Option<OperationKey> {
        OperationKey::new(text, None, variables.as_object().expect("an object"))
    }

    #[test]
    fn large_documents_and_variables_have_no_key() {
        let long = "x".repeat(MAX_TEXT);
        assert!(key_of("{ cubes { name } }", json!({"cube": "orders", "limit": 3})).is_some());
        assert_eq!(key_of(&long, json!({"a": 1})), None);
        assert_eq!(key_of("{ cubes { name } }", json!({"names": [{ "in": &long }]})), None);
        let many: Vec<u32> = (0..10_000).collect();
        assert_eq!(key_of("{ cubes { name } }", json!({ "numbers": many })), None);
    }
}
