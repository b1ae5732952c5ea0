//! The text of an API key: `trn_<id>_<secret>`.
//!
//! The id is 16 hexadecimal digits and may be shown. The secret is 43 characters of base64url, which encode 256 random
//! bits. Only the SHA-256 of the secret is stored. A slow hash is not needed, because the secret is random, unlike
//! passwords, which people choose.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::domain::SecretHash;

const PREFIX: &str = "trn_";
const ID_DIGITS: usize = 16;
const SECRET_LETTERS: usize = 43;

/// A key that was just created. Its secret is known only now.
#[derive(Clone)]
pub struct NewKey {
    pub id: Arc<str>,
    pub text: String,
    pub hash: SecretHash,
}

impl NewKey {
    /// Creates a key from 40 unpredictable bytes.
    pub fn from_random(random: &[u8; 40]) -> Self {
        let id = hex::encode(&random[..ID_DIGITS / 2]);
        let secret = base64url(&random[ID_DIGITS / 2..]);
        let hash = hash(&secret);
        NewKey { text: format!("{PREFIX}{id}_{secret}"), id: id.into(), hash }
    }
}

/// Returns the id and the hash of the secret in a key's text; `None` if the text is not a key.
pub fn parse(text: &str) -> Option<(&str, SecretHash)> {
    let rest = text.strip_prefix(PREFIX)?;
    let (id, secret) = rest.split_at_checked(ID_DIGITS)?;
    let secret = secret.strip_prefix('_')?;
    let is_id = id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_secret = secret.len() == SECRET_LETTERS && secret.bytes().all(is_letter);
    (is_id && is_secret).then(|| (id, hash(secret)))
}

/// Returns whether a string has the prefix of keys, whether or not it is a valid key.
pub fn is_key(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Compares two hashes in constant time.
pub fn is_equal(left: &SecretHash, right: &SecretHash) -> bool {
    left.ct_eq(right).into()
}

/// Returns the SHA-256 of a secret with high entropy.
pub fn hash(secret: &str) -> SecretHash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Encodes bytes as base64url (RFC 4648, section 5) without padding.
pub fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_round_trips() {
        let key = NewKey::from_random(&std::array::from_fn(|index| (index as u8).wrapping_mul(7)));
        let (id, hash) = parse(&key.text).expect("a key");
        assert_eq!((id, hash), (&*key.id, key.hash));
        assert_eq!(key.text.len(), 4 + 16 + 1 + 43);
    }

    #[test]
    fn malformed_keys_are_rejected() {
        let key = NewKey::from_random(&[9; 40]).text;
        for text in ["", "trn_", &key[..key.len() - 1], &format!("{key}A"), &key.replace('_', "-"), &key.to_uppercase()]
        {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(parse("trn_0123456789abcd\u{e9}_").is_none());
    }
}
