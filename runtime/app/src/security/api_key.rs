//! The text of an API key: `trn_<id>_<secret>`.
//!
//! The id is 16 hexadecimal digits and may be shown; the secret is 43 letters of base64url, 256 random
//! bits. Only the SHA-256 of the secret is kept: a slow hash is for passwords, which people choose.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

const PREFIX: &str = "trn_";
const ID_DIGITS: usize = 16;
const SECRET_LETTERS: usize = 43;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A secret's SHA-256.
pub type SecretHash = [u8; 32];

/// A key that was just made: the only time that its secret is known.
#[derive(Clone)]
pub struct NewKey {
    pub id: Arc<str>,
    pub text: String,
    pub hash: SecretHash,
}

impl NewKey {
    /// `random`: 40 bytes that nobody can guess.
    pub fn from_random(random: &[u8; 40]) -> Self {
        let id: String = random[..ID_DIGITS / 2].iter().map(|byte| format!("{byte:02x}")).collect();
        let secret = base64url(&random[ID_DIGITS / 2..]);
        let hash = hash(&secret);
        NewKey { text: format!("{PREFIX}{id}_{secret}"), id: id.into(), hash }
    }
}

/// The id and the secret's hash of a key's text; `None` for what has not the shape of one.
pub fn parse(text: &str) -> Option<(&str, SecretHash)> {
    let rest = text.strip_prefix(PREFIX)?;
    let (id, secret) = rest.split_at_checked(ID_DIGITS)?;
    let secret = secret.strip_prefix('_')?;
    let is_id = id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let is_secret = secret.len() == SECRET_LETTERS && secret.bytes().all(|byte| LETTERS.contains(&byte));
    (is_id && is_secret).then(|| (id, hash(secret)))
}

/// Whether a text claims to be a key, well-formed or not.
pub fn is_key(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// In a time that doesn't tell where they differ.
pub fn is_equal(left: &SecretHash, right: &SecretHash) -> bool {
    let difference = left.iter().zip(right).fold(0_u8, |all, (left, right)| all | (left ^ right));
    std::hint::black_box(difference) == 0
}

/// The SHA-256 of a secret of high entropy.
pub fn hash(secret: &str) -> SecretHash {
    Sha256::digest(secret.as_bytes()).into()
}

/// RFC 4648, section 5, without padding.
pub fn base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(LETTERS[(group >> (18 - 6 * place)) as usize & 63]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back() {
        let key = NewKey::from_random(&std::array::from_fn(|index| (index as u8).wrapping_mul(7)));
        let (id, hash) = parse(&key.text).expect("a key");
        assert_eq!((id, hash), (&*key.id, key.hash));
        assert_eq!(key.text.len(), 4 + 16 + 1 + 43);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let key = NewKey::from_random(&[9; 40]).text;
        for text in ["", "trn_", &key[..key.len() - 1], &format!("{key}A"), &key.replace('_', "-"), &key.to_uppercase()]
        {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(parse("trn_0123456789abcd\u{e9}_").is_none());
    }

    #[test]
    fn base64_is_the_standards() {
        for (bytes, text) in [(&b""[..], ""), (b"f", "Zg"), (b"fo", "Zm8"), (b"foo", "Zm9v"), (b"\xfb\xff", "-_8")] {
            assert_eq!(base64url(bytes), text);
        }
    }
}
