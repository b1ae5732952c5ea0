//! The usable public keys of a provider (RFC 7517).
//!
//! In: the bytes of a JWK set, authenticated only by the connection. Out: a [`KeySet`] of at most [`MAX_KEYS`] keys of
//! the kinds below. Other keys are left out. Symmetric keys are always left out, so that no public text can become a
//! secret. Two keys with one `kid` are both left out. Certificates and URLs of a key (`x5c`, `x5u`) are not read.

use std::collections::BTreeSet;
use std::sync::Arc;

use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value as Json};

const MAX_KEYS: usize = 64;
const MAX_KID_BYTES: usize = 256;
/// The allowed sizes of RSA keys (RFC 7518, section 3.3). Keys above the upper bound cost time without a benefit.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;

/// An algorithm by which a provider may sign tokens. Symmetric algorithms are not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureAlgorithm(pub(crate) Algorithm);

const ALGORITHMS: &[(&str, Algorithm, Kind)] = &[
    ("RS256", Algorithm::RS256, Kind::Rsa),
    ("RS384", Algorithm::RS384, Kind::Rsa),
    ("RS512", Algorithm::RS512, Kind::Rsa),
    ("PS256", Algorithm::PS256, Kind::Rsa),
    ("PS384", Algorithm::PS384, Kind::Rsa),
    ("PS512", Algorithm::PS512, Kind::Rsa),
    ("ES256", Algorithm::ES256, Kind::P256),
    ("ES384", Algorithm::ES384, Kind::P384),
    ("EdDSA", Algorithm::EdDSA, Kind::Ed25519),
];

impl SignatureAlgorithm {
    pub const RS256: SignatureAlgorithm = SignatureAlgorithm(Algorithm::RS256);

    /// Returns the algorithm with this name; `None` if it is not an algorithm of public keys.
    pub fn named(name: &str) -> Option<Self> {
        let found = ALGORITHMS.iter().find(|(known, ..)| *known == name);
        found.map(|(_, algorithm, _)| SignatureAlgorithm(*algorithm))
    }

    pub fn names() -> Vec<&'static str> {
        ALGORITHMS.iter().map(|(name, ..)| *name).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// The reason why a document has no usable keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeySetError {
    #[error("expected a JSON object with a list `keys`")]
    NoSet,
    #[error("it has more than {MAX_KEYS} keys")]
    TooMany,
    #[error("none of its {found} keys can be used")]
    NoneUsable { found: usize },
}

/// The result of looking up a token's key.
pub(crate) enum KeyMatch {
    Key(Arc<DecodingKey>),
    /// The key cannot verify tokens with this algorithm, or several keys could.
    Unfit,
    Missing,
}

/// Keys by their ids.
#[derive(Default)]
pub(crate) struct KeySet(Vec<Key>);

struct Key {
    kid: Option<String>,
    kind: Kind,
    /// The only algorithm that the key may be used with, if the key names one.
    algorithm: Option<Algorithm>,
    decoding: Arc<DecodingKey>,
}

impl KeySet {
    /// Reads a key set.
    ///
    /// # Errors
    /// [`KeySetError`]: the document is invalid, has too many keys, or has no usable key.
    pub(crate) fn read(document: &[u8]) -> Result<Self, KeySetError> {
        let json: Json = serde_json::from_slice(document).map_err(|_| KeySetError::NoSet)?;
        let found = json.get("keys").and_then(Json::as_array).ok_or(KeySetError::NoSet)?;
        if found.len() > MAX_KEYS {
            return Err(KeySetError::TooMany);
        }
        let twice = repeated(found);
        let is_once = |key: &Key| key.kid.as_ref().is_none_or(|kid| !twice.contains(kid.as_str()));
        let keys: Vec<Key> =
            found.iter().filter_map(|json| read_key(json.as_object()?)).filter(|key| is_once(key)).collect();
        if keys.is_empty() { Err(KeySetError::NoneUsable { found: found.len() }) } else { Ok(KeySet(keys)) }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Finds the key of a token. A token without `kid` uses the only key for its algorithm, if there is exactly one.
    pub(crate) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> KeyMatch {
        let fitting = |key: &&Key| key.fits(algorithm);
        match kid {
            Some(kid) => match self.0.iter().find(|key| key.kid.as_deref() == Some(kid)) {
                Some(key) if key.fits(algorithm) => KeyMatch::Key(key.decoding.clone()),
                Some(_) => KeyMatch::Unfit,
                None => KeyMatch::Missing,
            },
            None => {
                let mut fits = self.0.iter().filter(fitting);
                match (fits.next(), fits.next()) {
                    (Some(only), None) => KeyMatch::Key(only.decoding.clone()),
                    (Some(_), Some(_)) => KeyMatch::Unfit,
                    (None, _) => KeyMatch::Missing,
                }
            }
        }
    }
}

impl Key {
    fn fits(&self, algorithm: Algorithm) -> bool {
        let is_kind = ALGORITHMS.iter().any(|(_, known, kind)| *known == algorithm && *kind == self.kind);
        is_kind && self.algorithm.is_none_or(|only| only == algorithm)
    }
}

/// Returns the ids that occur more than once in the document, including on keys that cannot be used.
fn repeated(keys: &[Json]) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    keys.iter().filter_map(|key| key.get("kid")?.as_str()).filter(|kid| !seen.insert(*kid)).collect()
}

/// Reads a key. Returns `None` if the key has an unsupported kind, is not for signatures, is too weak, or includes its
/// private part.
fn read_key(json: &Map<String, Json>) -> Option<Key> {
    let text = |name: &str| json.get(name).and_then(Json::as_str);
    if json.contains_key("d") || json.get("use").is_some_and(|of| of.as_str() != Some("sig")) {
        return None;
    }
    if let Some(operations) = json.get("key_ops")
        && !operations.as_array()?.iter().any(|operation| operation.as_str() == Some("verify"))
    {
        return None;
    }
    let kid = match json.get("kid") {
        Some(kid) => Some(kid.as_str().filter(|kid| kid.len() <= MAX_KID_BYTES)?.to_owned()),
        None => None,
    };
    let algorithm = match json.get("alg") {
        Some(name) => Some(SignatureAlgorithm::named(name.as_str()?)?.0),
        None => None,
    };
    let (kind, decoding) = match (text("kty")?, text("crv")) {
        ("RSA", _) => (Kind::Rsa, rsa(text("n")?, text("e")?)?),
        ("EC", Some("P-256")) => (Kind::P256, elliptic(text("x")?, text("y")?, 32)?),
        ("EC", Some("P-384")) => (Kind::P384, elliptic(text("x")?, text("y")?, 48)?),
        ("OKP", Some("Ed25519")) => (Kind::Ed25519, DecodingKey::from_ed_components(text("x")?).ok()?),
        _ => return None,
    };
    Some(Key { kid, kind, algorithm, decoding: Arc::new(decoding) })
}

fn rsa(modulus: &str, exponent: &str) -> Option<DecodingKey> {
    let key = DecodingKey::from_rsa_components(modulus, exponent).ok()?;
    let jsonwebtoken::DecodingKeyKind::RsaModulusExponent { n, e } = key.kind() else { return None };
    let is_odd_and_small = e.len() <= 4 && e.last().is_some_and(|last| last % 2 == 1) && **e != [1];
    (RSA_BITS.contains(&bits(n)) && is_odd_and_small).then_some(key)
}

fn bits(number: &[u8]) -> usize {
    let number = &number[number.iter().take_while(|byte| **byte == 0).count()..];
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

/// Reads a key on an elliptic curve. Both coordinates must have the curve's length (RFC 7518, section 6.2.1.2).
fn elliptic(x: &str, y: &str, bytes: usize) -> Option<DecodingKey> {
    let letters = (bytes * 4).div_ceil(3);
    let fits = |text: &str| text.len() == letters;
    (fits(x) && fits(y)).then(|| DecodingKey::from_ec_components(x, y).ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a number with this many bytes, as base64url.
    fn number(bytes: usize) -> String {
        terrane_app::security::api_key::base64url(&vec![0xff; bytes])
    }

    fn rsa_key(change: Json) -> Json {
        let mut key = json!({"kty": "RSA", "kid": "a", "n": number(256), "e": "AQAB"});
        for (name, value) in change.as_object().unwrap() {
            key[name] = value.clone();
        }
        key
    }

    fn read(keys: Json) -> Result<KeySet, KeySetError> {
        KeySet::read(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn untrusted_keys_are_ignored() {
        for change in [
            json!({"kty": "oct", "k": "c2VjcmV0"}),
            json!({"kty": "rsa"}),
            json!({"n": number(255)}),
            json!({"n": number(1_025)}),
            json!({"n": format!("AAAA{}", number(252))}),
            json!({"n": "!!"}),
            json!({"e": "AQ"}),
            json!({"e": "AAAA"}),
            json!({"e": number(8)}),
            json!({"use": "enc"}),
            json!({"use": 1}),
            json!({"key_ops": ["encrypt"]}),
            json!({"alg": "HS256"}),
            json!({"alg": "none"}),
            json!({"alg": "RSA-OAEP"}),
            json!({"d": "AQAB"}),
            json!({"kid": 7}),
            json!({"kid": "k".repeat(MAX_KID_BYTES + 1)}),
            json!({"kty": "EC", "crv": "P-256", "x": number(31), "y": number(32)}),
            json!({"kty": "EC", "crv": "secp256k1", "x": number(32), "y": number(32)}),
            json!({"kty": "OKP", "crv": "X25519", "x": number(32)}),
        ] {
            let found = read(json!([rsa_key(change.clone())]));
            assert_eq!(found.err(), Some(KeySetError::NoneUsable { found: 1 }), "{change}");
        }
        assert!(read(json!([rsa_key(json!({"use": "sig", "key_ops": ["verify"], "alg": "RS256"}))])).is_ok());
    }

    #[test]
    fn key_is_used_only_for_its_declared_algorithm() {
        let set = read(json!([
            rsa_key(json!({"alg": "PS256"})),
            rsa_key(json!({"kid": "b"})),
            rsa_key(json!({"kid": "twice"})),
            rsa_key(json!({"kid": "twice"})),
            {"kty": "EC", "crv": "P-256", "kid": "c", "x": number(32), "y": number(32)},
            "no key",
        ]))
        .unwrap();
        let found = |kid, algorithm| match set.find(kid, algorithm) {
            KeyMatch::Key(_) => "key",
            KeyMatch::Unfit => "unfit",
            KeyMatch::Missing => "missing",
        };
        for (kid, algorithm, expected) in [
            (Some("a"), Algorithm::PS256, "key"),
            (Some("a"), Algorithm::RS256, "unfit"),
            (Some("b"), Algorithm::RS256, "key"),
            (Some("b"), Algorithm::ES256, "unfit"),
            (Some("b"), Algorithm::HS256, "unfit"),
            (Some("c"), Algorithm::ES256, "key"),
            (Some("c"), Algorithm::ES384, "unfit"),
            (Some("twice"), Algorithm::RS256, "missing"),
            (Some("../a"), Algorithm::RS256, "missing"),
            (None, Algorithm::ES256, "key"),
            (None, Algorithm::RS256, "key"),
            (None, Algorithm::PS256, "unfit"),
            (None, Algorithm::EdDSA, "missing"),
        ] {
            assert_eq!(found(kid, algorithm), expected, "{kid:?} {algorithm:?}");
        }
    }

    #[test]
    fn documents_without_keys_are_rejected() {
        for text in ["", "{}", "[]", r#"{"keys": {}}"#, "<html>", "{\"keys\": [", &"[".repeat(60_000)] {
            assert_eq!(KeySet::read(text.as_bytes()).err(), Some(KeySetError::NoSet));
        }
        let many: Vec<Json> = (0..=MAX_KEYS).map(|number| rsa_key(json!({"kid": number.to_string()}))).collect();
        assert_eq!(read(many.into()).err(), Some(KeySetError::TooMany));
        assert_eq!(read(json!([])).err(), Some(KeySetError::NoneUsable { found: 0 }));
    }
}
