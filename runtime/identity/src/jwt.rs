//! JSON Web Tokens with one algorithm and one key, both fixed at start.
//!
//! The content of a token has no influence on its verification: `alg` must be the configured one; `kid`, `jku`, `x5u`
//! and `crit` are never followed. Not here: requirements on claims (`checks`), and tokens of an identity provider
//! (`external`).
//!
//! If applications sign tokens with the same key, a token of a session carries a proof: a MAC under a key that only the
//! servers on one state database know. A token that names a session without this proof is refused. A token without a
//! session is always a token of an application.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde_json::{Value as Json, json};
use terrane_app::ports::tokens::{Grant, TokenFault, Tokens, Verified};
use terrane_json::caller::attribute_to_json;

use crate::application::ApplicationSettings;
use crate::checks::{Expected, MAX_TOKEN_BYTES, header_of, invalid};
use crate::claims::{Claims, ClaimsMapping};

/// The smallest size of a secret, which must be at least as long as the hash (RFC 7518, section 3.2).
pub const MIN_SECRET_BYTES: usize = 32;

/// The key that signs and verifies tokens.
pub enum SigningKey {
    Hs256 {
        secret: Vec<u8>,
    },
    /// Keys in PEM. Without the private key, tokens are only verified.
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

/// Settings of this server's tokens.
#[derive(Debug)]
pub struct JwtSettings {
    pub key: SigningKey,
    pub issuer: String,
    pub audience: String,
    pub verify_exp: bool,
    pub verify_iat: bool,
    pub mapping: ClaimsMapping,
}

/// The reason why the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JwtError {
    #[error("the secret has {bytes} bytes; HS256 needs at least {MIN_SECRET_BYTES}")]
    ShortSecret { bytes: usize },
    #[error("the {which} key is not an RSA key in PEM: {source}")]
    Key { which: &'static str, source: jsonwebtoken::errors::Error },
    #[error("the private key cannot sign: RSA keys have at least 2048 bits")]
    WeakKey,
    #[error("the public key does not belong to the private key")]
    OtherPair,
}

/// Signs and verifies the tokens of one issuer.
pub struct Jwt {
    encoding: Option<EncodingKey>,
    decoding: DecodingKey,
    algorithm: Algorithm,
    validation: Validation,
    expected: Expected,
    mapping: ClaimsMapping,
    /// The settings for tokens of applications, and the key of the proof that marks tokens of a session.
    applications: Option<(ApplicationSettings, ProofKey)>,
}

/// The key of the MAC that proves that this server signed a token for a session.
struct ProofKey([u8; 32]);

impl ProofKey {
    fn sign(&self, claims: &Json) -> Option<String> {
        let message = proven_claims(claims)?;
        jsonwebtoken::crypto::sign(message.as_bytes(), &EncodingKey::from_secret(&self.0), Algorithm::HS256).ok()
    }

    fn is_proof(&self, claims: &Json, proof: &str) -> bool {
        let key = DecodingKey::from_secret(&self.0);
        let is_it = |message: String| jsonwebtoken::crypto::verify(proof, message.as_bytes(), &key, Algorithm::HS256);
        proven_claims(claims).is_some_and(|message| is_it(message).unwrap_or(false))
    }
}

/// Returns the claims that a proof covers, as one string.
fn proven_claims(claims: &Json) -> Option<String> {
    let all = [SESSION, "sub", "iat", "exp"].map(|name| claims.get(name));
    let [Some(session), Some(subject), Some(issued), Some(expires)] = all else { return None };
    serde_json::to_string(&[session, subject, issued, expires]).ok()
}

/// The claims that only this server writes.
const SESSION: &str = "session_id";
const PROOF: &str = "session_proof";

impl Jwt {
    /// Creates the signer and verifier of tokens.
    ///
    /// # Errors
    /// [`JwtError`]: the key cannot be used.
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
        let validation = signature_only(algorithm);
        if let Some(key) = &encoding {
            // Detects keys that are not a pair when the server starts, instead of at the first sign-in.
            let probe =
                jsonwebtoken::encode(&Header::new(algorithm), &json!({}), key).map_err(|_| JwtError::WeakKey)?;
            jsonwebtoken::decode::<Claims>(&probe, &decoding, &validation).map_err(|_| JwtError::OtherPair)?;
        }
        let JwtSettings { issuer, audience, verify_exp, verify_iat, mapping, .. } = settings;
        let expected = Expected { issuer, audience, verify_exp, verify_iat };
        Ok(Jwt { encoding, decoding, algorithm, validation, expected, mapping, applications: None })
    }

    /// Accepts tokens without a session that applications sign with the same key. `proof_key` is random; the servers on
    /// one state database share it, and no application must know it.
    #[must_use]
    pub fn with_applications(self, applications: ApplicationSettings, proof_key: [u8; 32]) -> Self {
        Jwt { applications: Some((applications, ProofKey(proof_key))), ..self }
    }
}

#[async_trait]
impl Tokens for Jwt {
    fn sign(&self, grant: &Grant) -> Result<String, TokenFault> {
        let key = self.encoding.as_ref().ok_or(TokenFault::NotSigning)?;
        let mut claims = claims_of(grant, &self.expected.issuer, &self.expected.audience);
        if let Some((_, proof_key)) = &self.applications {
            let proof = proof_key.sign(&claims);
            claims[PROOF] = proof.ok_or_else(|| invalid("it could not be signed"))?.into();
        }
        let token = jsonwebtoken::encode(&Header::new(self.algorithm), &claims, key)
            .map_err(|_| invalid("it could not be signed"))?;
        // The server must accept every token that it issues.
        if token.len() > MAX_TOKEN_BYTES {
            Err(invalid("its claims about the caller are too large"))
        } else {
            Ok(token)
        }
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<Verified, TokenFault> {
        let header = header_of(token)?;
        if header.alg != self.algorithm {
            return Err(invalid("it is signed with another algorithm"));
        }
        let decoded = jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation);
        let claims = decoded.map_err(|_| invalid("the signature is not the issuer's"))?.claims;
        if let Some((applications, proof_key)) = &self.applications {
            if !claims.contains_key(SESSION) && !claims.contains_key(PROOF) {
                return applications.verify(token, &header, &claims, now);
            }
            check_proof(proof_key, &claims)?;
        }
        self.expected.check(&claims, now)?;
        if self.encoding.is_some() {
            return session_of(&claims);
        }
        let caller = self.mapping.caller(&claims).ok_or_else(|| invalid("it has no subject"))?;
        Ok(Verified::Caller { scopes: self.mapping.scopes(&claims), tenant: self.mapping.tenant(&claims), caller })
    }
}

/// Refuses a token that names a session, but lacks the proof that this server signed it for the session.
fn check_proof(proof_key: &ProofKey, claims: &Claims) -> Result<(), TokenFault> {
    let proof = claims.get(PROOF).and_then(Json::as_str);
    let claims = Json::Object(claims.clone());
    let is_proven = proof.is_some_and(|proof| proof_key.is_proof(&claims, proof));
    is_proven.then_some(()).ok_or_else(|| invalid("it names a session of this server"))
}

/// Returns the session that a token of this server names. Its other claims are for clients and give no rights.
fn session_of(claims: &Claims) -> Result<Verified, TokenFault> {
    let text = |name| claims.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
    let subject = text("sub").ok_or_else(|| invalid("it has no subject"))?.into();
    let id = text(SESSION).ok_or_else(|| invalid("it has no session"))?.into();
    Ok(Verified::Session { id, subject })
}

/// Returns a validation that checks only the signature. [`Expected`] checks the claims with the server's clock.
pub(crate) fn signature_only(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    validation
}

fn claims_of(grant: &Grant, issuer: &str, audience: &str) -> Json {
    let texts = |all: &[std::sync::Arc<str>]| all.iter().map(|text| Json::from(&**text)).collect::<Json>();
    let attributes = grant.caller.attributes.iter();
    let attributes: serde_json::Map<String, Json> =
        attributes.map(|(name, attribute)| (name.to_string(), attribute_to_json(attribute))).collect();
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
