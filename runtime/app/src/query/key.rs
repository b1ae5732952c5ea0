//! Digests of statements: cache keys, and the hashes that name statements in the log.

use sha2::{Digest, Sha256};
use terrane_compiler::sql::CompiledSql;
use terrane_compiler::types::Value;

/// Returns a hex digest of the statement, its values and the warehouse. Policies are part of the SQL and
/// its values, so nothing about the caller is added.
pub(super) fn cache_key(warehouse: &str, sql: &CompiledSql) -> String {
    let mut hash = Sha256::new();
    field(&mut hash, b'w', warehouse.as_bytes());
    field(&mut hash, b's', sql.text.as_bytes());
    for param in &sql.params {
        match param {
            Value::Null => field(&mut hash, b'n', &[]),
            Value::Boolean(value) => field(&mut hash, b'b', &[u8::from(*value)]),
            Value::Integer(value) => field(&mut hash, b'i', &value.to_le_bytes()),
            Value::Float(value) => field(&mut hash, b'f', &value.to_bits().to_le_bytes()),
            Value::Decimal(value) => field(&mut hash, b'd', value.as_bytes()),
            Value::Text(value) => field(&mut hash, b't', value.as_bytes()),
            Value::Date(value) => field(&mut hash, b'D', &value.to_le_bytes()),
            Value::Timestamp(value) => field(&mut hash, b'T', &value.to_le_bytes()),
            Value::TimestampTz(value) => field(&mut hash, b'Z', &value.to_le_bytes()),
        }
    }
    hex::encode(hash.finalize())
}

/// Returns the name of a statement in the log.
pub(super) fn sql_hash(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..8])
}

/// Hashes a field after its kind and length, so that no two sequences of fields hash the same bytes.
fn field(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}
