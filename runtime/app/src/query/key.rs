//! Digests of statements: keys of the cache, and the hashes by which the log names statements.

use std::fmt;
use std::sync::Arc;

use hmac::digest::Update;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use terrane_compiler::sql::CompiledSql;
use terrane_compiler::types::Value;

use crate::ports::result_cache::CacheKey;

/// The format of keys and stored results. Results in a different format have different keys.
const FORMAT: u8 = 1;

/// The secret under which statements are digested. Without a secret, a caller could guess the filter values of other
/// callers, and compare the digests of its guesses with the digest of their statement.
#[derive(Clone)]
pub struct CacheSecret(Hmac<Sha256>);

impl CacheSecret {
    pub fn new(secret: &[u8; 32]) -> Self {
        // A key that has the length of one block is used unchanged.
        let mut block = [0; 64];
        block[..32].copy_from_slice(secret);
        let mut hmac = Hmac::new(&block.into());
        Update::update(&mut hmac, b"terrane: result cache");
        CacheSecret(hmac)
    }

    /// Returns the digest of statements with their values, for a warehouse and a tenant. Policies are part of the SQL
    /// and its values, so the digest needs no further facts about the caller.
    pub(super) fn key<'s>(
        &self,
        warehouse: &str,
        tenant: Option<&str>,
        statements: impl Iterator<Item = &'s CompiledSql>,
        skip_total: bool,
    ) -> CacheKey {
        let mut hash = self.0.clone();
        Update::update(&mut hash, &[FORMAT, u8::from(tenant.is_some()), u8::from(skip_total)]);
        field(&mut hash, b'w', warehouse.as_bytes());
        field(&mut hash, b'c', tenant.unwrap_or_default().as_bytes());
        for sql in statements {
            field(&mut hash, b's', sql.text.as_bytes());
            sql.params.iter().for_each(|param| value(&mut hash, param));
        }
        CacheKey(hash.finalize().into_bytes().into())
    }

    /// Returns the tag for some bytes and a purpose. The tag proves that a server with this secret wrote the bytes for
    /// this purpose.
    pub fn tag(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = self.0.clone();
        field(&mut hash, b'p', purpose);
        parts.iter().for_each(|part| field(&mut hash, b'b', part));
        hash.finalize().into_bytes().into()
    }
}

impl fmt::Debug for CacheSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheSecret(***)")
    }
}

/// Returns a digest of a statement with its values, without a secret.
pub fn statement_digest_of(sql: &CompiledSql) -> Arc<str> {
    let mut hash = Sha256::new();
    field(&mut hash, b's', sql.text.as_bytes());
    sql.params.iter().for_each(|param| value(&mut hash, param));
    hex::encode(hash.finalize()).into()
}

fn value(hash: &mut impl Update, value: &Value) {
    match value {
        Value::Null => field(hash, b'n', &[]),
        Value::Boolean(value) => field(hash, b'b', &[u8::from(*value)]),
        Value::Integer(value) => field(hash, b'i', &value.to_le_bytes()),
        Value::Float(value) => field(hash, b'f', &value.to_bits().to_le_bytes()),
        Value::Decimal(value) => field(hash, b'd', value.as_bytes()),
        Value::Text(value) => field(hash, b't', value.as_bytes()),
        Value::Date(value) => field(hash, b'D', &value.to_le_bytes()),
        Value::Timestamp(value) => field(hash, b'T', &value.to_le_bytes()),
        Value::TimestampTz(value) => field(hash, b'Z', &value.to_le_bytes()),
    }
}

/// Returns the name of a statement in the log.
pub(super) fn sql_hash(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..8])
}

/// Hashes a field after its kind and its length, so that different lists of fields add different bytes.
fn field(hash: &mut impl Update, kind: u8, bytes: &[u8]) {
    hash.update(&[kind]);
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}
