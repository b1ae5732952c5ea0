//! JSON Web Tokens with one algorithm and one key, both fixed at start.
//!
//! Nothing in a token chooses how it is checked: `alg` must be the one that is set, `kid`, `jku`, `x5u`
//! and `crit` are never followed. `exp`, `iss`, `aud` and `sub` must be there. Times are checked here
//! against the clock that is given, so that a fault says which it is (RFC 8725).

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde_json::{Value as Json, json};
use terrane_app::ports::tokens::{Grant, TokenFault, Tokens, Verified};
use terrane_compiler::Attribute;
use terrane_compiler::types::Value;

use crate::claims::{Claims, ClaimsMapping};

/// RFC 7518, section 3.2: a key at least as long as the hash.
pub const MIN_SECRET_BYTES: usize = 32;
/// Longer tokens are refused unread.
const MAX_TOKEN_BYTES: usize = 16 * 1_024;
/// Between this clock and the issuer's.
const LEEWAY_SECONDS: i64 = 5;

/// What signs, or only checks.
pub enum SigningKey {
    Hs256 {
        secret: Vec<u8>,
    },
    /// PEM texts. Without the private one tokens are only checked.
    Rs256 {
        private: Option<Vec<u8>>,
        public: Vec<u8>,
    },
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SigningKey::Hs256 { .. } => "HS256(***)",
            SigningKey::Rs256 { .. } => "RS256(***)",
        })
    }
}

/// How tokens are made and held to.
#[derive(Debug)]
pub struct JwtSettings {
    pub key: SigningKey,
    pub issuer: String,
    pub audience: String,
    pub verify_exp: bool,
    pub verify_iat: bool,
    pub mapping: ClaimsMapping,
}

/// Why tokens can't be used.
#[derive(Debug, thiserror::Error)]
pub enum JwtError {
    #[error("the secret has {bytes} bytes; HS256 needs at least {MIN_SECRET_BYTES}")]
    ShortSecret { bytes: usize },
    #[error("the {which} key is no RSA key in PEM: {source}")]
    Key { which: &'static str, source: jsonwebtoken::errors::Error },
}

/// Tokens of one issuer.
pub struct Jwt {
    encoding: Option<EncodingKey>,
    decoding: DecodingKey,
    algorithm: Algorithm,
    validation: Validation,
    issuer: String,
    audience: String,
    verify_exp: bool,
    verify_iat: bool,
    mapping: ClaimsMapping,
}

impl Jwt {
    /// # Errors
    /// [`JwtError`]: the key can't be used.
    pub fn new(settings: JwtSettings) -> Result<Self, JwtError> {
        let (encoding, decoding, algorithm) = match &settings.key {
            SigningKey::Hs256 { secret } if secret.len() < MIN_SECRET_BYTES => {
                return Err(JwtError::ShortSecret { bytes: secret.len() });
            }
            SigningKey::Hs256 { secret } => {
                (Some(EncodingKey::from_secret(secret)), DecodingKey::from_secret(secret), Algorithm::HS256)
            }
            SigningKey::Rs256 { private, public } => {
                let wrong = |which| move |source| JwtError::Key { which, source };
                let private = private.as_ref().map(|pem| EncodingKey::from_rsa_pem(pem)).transpose();
                let public = DecodingKey::from_rsa_pem(public).map_err(wrong("public"))?;
                (private.map_err(wrong("private"))?, public, Algorithm::RS256)
            }
        };
        let mut validation = Validation::new(algorithm);
        // Times and claims are checked below, by the clock that is given.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let JwtSettings { issuer, audience, verify_exp, verify_iat, mapping, .. } = settings;
        Ok(Jwt { encoding, decoding, algorithm, validation, issuer, audience, verify_exp, verify_iat, mapping })
    }

    fn check(&self, claims: &Claims, now: Timestamp) -> Result<(), TokenFault> {
        let invalid = |why| TokenFault::Invalid { why };
        if claims.get("iss").and_then(Json::as_str) != Some(&*self.issuer) {
            return Err(invalid("another issuer"));
        }
        let is_for_us = match claims.get("aud") {
            Some(Json::String(one)) => *one == self.audience,
            Some(Json::Array(all)) => all.iter().any(|one| one.as_str() == Some(&*self.audience)),
            _ => false,
        };
        if !is_for_us {
            return Err(invalid("another audience"));
        }
        let now = now.as_second();
        let expires = seconds(claims.get("exp")).map_err(invalid)?;
        if self.verify_exp {
            let expires = expires.ok_or_else(|| invalid("no expiry"))?;
            if expires.saturating_add(LEEWAY_SECONDS) <= now {
                let at = Timestamp::from_second(expires).unwrap_or(Timestamp::MIN);
                return Err(TokenFault::Expired { at });
            }
        }
        let latest = now.saturating_add(LEEWAY_SECONDS);
        if seconds(claims.get("nbf")).map_err(invalid)?.is_some_and(|start| start > latest) {
            return Err(invalid("not good yet"));
        }
        let issued = seconds(claims.get("iat")).map_err(invalid)?;
        if self.verify_iat && issued.is_some_and(|issued| issued > latest) {
            return Err(invalid("issued in the future"));
        }
        Ok(())
    }
}

#[async_trait]
impl Tokens for Jwt {
    fn sign(&self, grant: &Grant) -> Result<String, TokenFault> {
        let key = self.encoding.as_ref().ok_or(TokenFault::NotSigning)?;
        let claims = claims_of(grant, &self.issuer, &self.audience);
        jsonwebtoken::encode(&Header::new(self.algorithm), &claims, key)
            .map_err(|_| TokenFault::Invalid { why: "it could not be signed" })
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<Verified, TokenFault> {
        let invalid = |why| TokenFault::Invalid { why };
        if token.len() > MAX_TOKEN_BYTES {
            return Err(invalid("too long"));
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid("not a token"))?;
        if header.alg != self.algorithm {
            return Err(invalid("another algorithm"));
        }
        let decoded = jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation);
        let claims = decoded.map_err(|_| invalid("the signature is not the issuer's"))?.claims;
        self.check(&claims, now)?;
        let caller = self.mapping.caller(&claims).ok_or_else(|| invalid("no subject"))?;
        // Only what this server signs belongs to a session.
        let session_id = claims.get("session_id").and_then(Json::as_str);
        if self.encoding.is_some() && session_id.is_none() {
            return Err(invalid("no session"));
        }
        Ok(Verified {
            scopes: self.mapping.scopes(&claims),
            tenant: self.mapping.tenant(&claims),
            session_id: session_id.filter(|_| self.encoding.is_some()).map(Into::into),
            caller,
        })
    }
}

/// A NumericDate: seconds, maybe with a fraction, as a JSON number.
fn seconds(claim: Option<&Json>) -> Result<Option<i64>, &'static str> {
    let Some(claim) = claim else { return Ok(None) };
    let number = claim.as_number().ok_or("a time is no number")?;
    let seconds = match (number.as_i64(), number.as_f64()) {
        (Some(seconds), _) => seconds,
        // Saturates, and a time before the calendar is as good as long ago.
        (None, Some(seconds)) if seconds.is_finite() => seconds as i64,
        _ => return Err("a time is no number"),
    };
    Ok(Some(seconds))
}

fn claims_of(grant: &Grant, issuer: &str, audience: &str) -> Json {
    let texts = |all: &[std::sync::Arc<str>]| all.iter().map(|text| Json::from(&**text)).collect::<Json>();
    let attributes: serde_json::Map<String, Json> = grant
        .caller
        .attributes
        .iter()
        .map(|(name, attribute)| {
            let value = match attribute {
                Attribute::One(value) => value_of(value),
                Attribute::Many(values) => values.iter().map(value_of).collect(),
            };
            (name.to_string(), value)
        })
        .collect();
    json!({
        "iss": issuer,
        "aud": audience,
        "sub": &*grant.caller.user_id,
        "email": grant.caller.email.as_deref(),
        "username": &*grant.username,
        "roles": texts(&grant.caller.roles),
        "groups": texts(&grant.caller.groups),
        "attributes": attributes,
        "scope": grant.scopes.names().join(" "),
        "tenant": grant.tenant.as_deref(),
        "iat": grant.issued_at.as_second(),
        "exp": grant.expires_at.as_second(),
        "session_id": &*grant.session_id,
    })
}

fn value_of(value: &Value) -> Json {
    match value {
        Value::Boolean(is_true) => (*is_true).into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Decimal(text) | Value::Text(text) => (**text).into(),
        Value::Null | Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_) => Json::Null,
    }
}
