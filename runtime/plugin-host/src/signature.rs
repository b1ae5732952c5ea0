//! Detached signatures of components: ed25519 (RFC 8032) over the 32 bytes of a file's SHA-256.
//!
//! In: keys, files and signatures, as bytes or hexadecimal text. Out: a signature, or the key that made a signature.
//! The signature of a component `X.wasm` is in the file `X.wasm.sig` beside it: one line of 128 hexadecimal digits. Not
//! here: the keys that an operator trusts (`factory`), and the place of a secret key (the command line).

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest as _, Sha256};

const SEED_BYTES: usize = 32;
const PUBLIC_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;

/// The extension that is appended to a component's file name.
pub const EXTENSION: &str = "sig";

/// The reason why a string is not a key or a signature, or why a signature is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("must be {digits} hexadecimal digits")]
    Hexadecimal { digits: usize },
    #[error("is not an ed25519 key")]
    Key,
    /// The key is weak: anyone can create signatures that it accepts.
    #[error("is a weak key, for which anyone can forge signatures")]
    Weak,
    /// None of the trusted keys signed this content. The field is the number of trusted keys.
    #[error("was made with an untrusted key (trusted: {keys}), or for another file")]
    Mismatch { keys: usize },
    #[error("the system provides no random bytes")]
    Randomness,
}

/// A key that verifies signatures. Its text form is 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; PUBLIC_BYTES]);

/// A key that signs. Its text form is its seed of 32 bytes in hexadecimal.
pub struct SecretKey {
    seed: [u8; SEED_BYTES],
    pair: Ed25519KeyPair,
}

/// A signature. Its text form is 128 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; SIGNATURE_BYTES]);

impl SecretKey {
    /// Creates a key from the system's random bytes.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn generate() -> Result<SecretKey, SignatureError> {
        let mut seed = [0; SEED_BYTES];
        getrandom::fill(&mut seed).map_err(|_| SignatureError::Randomness)?;
        SecretKey::from_seed(seed)
    }

    fn from_seed(seed: [u8; SEED_BYTES]) -> Result<SecretKey, SignatureError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| SignatureError::Key)?;
        Ok(SecretKey { seed, pair })
    }

    /// Returns the text form of the secret. Callers must write it only to a file that only its owner can read.
    pub fn expose(&self) -> String {
        hexadecimal(&self.seed)
    }

    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; PUBLIC_BYTES];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey(bytes)
    }

    /// Signs the digest of a file's content.
    pub fn sign(&self, file: &[u8]) -> Signature {
        let mut bytes = [0; SIGNATURE_BYTES];
        bytes.copy_from_slice(self.pair.sign(&Sha256::digest(file)).as_ref());
        Signature(bytes)
    }
}

impl Signature {
    /// Returns the trusted key that made this signature of the file.
    ///
    /// # Errors
    /// [`SignatureError::Mismatch`].
    pub fn verify(&self, file: &[u8], trusted: &[PublicKey]) -> Result<PublicKey, SignatureError> {
        let digest = Sha256::digest(file);
        let signed =
            |key: &&PublicKey| UnparsedPublicKey::new(&ED25519, key.0.as_slice()).verify(&digest, &self.0).is_ok();
        trusted.iter().find(signed).copied().ok_or(SignatureError::Mismatch { keys: trusted.len() })
    }
}

impl FromStr for PublicKey {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        let key: [u8; PUBLIC_BYTES] = bytes(text)?;
        if is_weak(key) { Err(SignatureError::Weak) } else { Ok(PublicKey(key)) }
    }
}

impl FromStr for SecretKey {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        SecretKey::from_seed(bytes(text)?)
    }
}

impl FromStr for Signature {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        bytes(text).map(Signature)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The points of small order without their sign bit, as hexadecimal text. The list includes encodings that are not
/// reduced, because the verifying library accepts them as keys.
const WEAK: [&str; 7] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

fn is_weak(mut key: [u8; PUBLIC_BYTES]) -> bool {
    key[PUBLIC_BYTES - 1] &= 0x7f;
    WEAK.contains(&hexadecimal(&key).as_str())
}

/// Returns bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

fn bytes<const N: usize>(text: &str) -> Result<[u8; N], SignatureError> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text.trim(), &mut bytes).map_err(|_| SignatureError::Hexadecimal { digits: 2 * N })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_vector_of_rfc_8032_has_its_public_key() {
        let secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let key: SecretKey = secret.parse().unwrap();
        assert_eq!((key.expose().as_str(), key.public().to_string().as_str()), (secret, public));
        assert_eq!(format!("{key:?}"), "***");
    }

    #[test]
    fn signature_is_valid_only_for_its_content_and_key() {
        let (ours, other) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
        let written = format!("{}\n", ours.sign(b"content"));
        let signature: Signature = written.parse().unwrap();
        let trusted = [other.public(), ours.public()];
        assert_eq!(signature.verify(b"content", &trusted), Ok(ours.public()));
        let refused = SignatureError::Mismatch { keys: 2 };
        assert_eq!(signature.verify(b"Content", &trusted), Err(refused));
        for trusted in [&[][..], &[other.public()]] {
            let refused = SignatureError::Mismatch { keys: trusted.len() };
            assert_eq!(signature.verify(b"content", trusted), Err(refused));
        }
        let mut changed = signature;
        changed.0[63] ^= 1;
        assert!(changed.verify(b"content", &trusted).is_err());
    }

    #[test]
    fn signature_covers_the_digest() {
        let key: SecretKey = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60".parse().unwrap();
        let digest = Sha256::digest(b"");
        assert_eq!(key.sign(b"").0, key.pair.sign(&digest).as_ref());
    }

    #[test]
    fn malformed_keys_and_signatures_are_rejected() {
        for text in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"ä".repeat(32)] {
            assert_eq!(text.parse::<PublicKey>(), Err(SignatureError::Hexadecimal { digits: 64 }), "{text}");
            assert!(text.parse::<SecretKey>().is_err(), "{text}");
        }
        for weak in WEAK {
            assert_eq!(weak.parse::<PublicKey>(), Err(SignatureError::Weak), "{weak}");
        }
        let other_sign = format!("01{}80", "0".repeat(60));
        assert_eq!(other_sign.parse::<PublicKey>(), Err(SignatureError::Weak));
        assert_eq!("00".parse::<Signature>(), Err(SignatureError::Hexadecimal { digits: 128 }));
    }
}
