//! Access tokens of an identity provider, or of several issuers.
//!
//! In: a token. Out: its caller. The claim `iss` only chooses the issuer whose rules apply. Each issuer has its own
//! keys and algorithms, so a token that claims another issuer's name fails. Tokens of this server belong to a
//! session. Tokens of a provider do not belong to a session, and are valid until they expire.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::tokens::{Grant, TokenFault, Tokens, Verified};

use crate::checks::{Expected, MAX_TOKEN_BYTES, invalid};
use crate::claims::{Claims, ClaimsMapping};
use crate::jwt::Jwt;
use crate::keys::{RemoteKeys, SignatureAlgorithm};
use crate::signed::SignedTokens;

/// The accepted values of `typ`. RFC 9068 requires the first; most providers write the second.
const TYPES: &[&str] = &["at+jwt", "JWT"];

/// Requirements on a provider's tokens.
#[derive(Debug, Clone)]
pub struct ExternalSettings {
    pub issuer: String,
    pub audience: String,
    pub algorithms: Vec<SignatureAlgorithm>,
    pub verify_iat: bool,
    pub mapping: ClaimsMapping,
}

/// Tokens of an identity provider.
pub struct ExternalTokens {
    signed: SignedTokens,
    expected: Expected,
    mapping: ClaimsMapping,
}

impl ExternalTokens {
    pub fn new(settings: ExternalSettings, keys: RemoteKeys) -> Self {
        let ExternalSettings { issuer, audience, algorithms, verify_iat, mapping } = settings;
        ExternalTokens {
            signed: SignedTokens::new(keys, &algorithms, TYPES),
            expected: Expected { issuer, audience, verify_exp: true, verify_iat },
            mapping,
        }
    }
}

#[async_trait]
impl Tokens for ExternalTokens {
    fn sign(&self, _: &Grant) -> Result<String, TokenFault> {
        Err(TokenFault::NotSigning)
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<Verified, TokenFault> {
        let claims = self.signed.claims(token).await?;
        self.expected.check(&claims, now)?;
        // A token with `cnf` requires a proof of possession of a key (RFC 7800), which no route accepts.
        if claims.contains_key("cnf") {
            return Err(invalid("it is bound to a key of its holder"));
        }
        let caller = self.mapping.caller(&claims).ok_or_else(|| invalid("it has no subject"))?;
        let (scopes, tenant) = (self.mapping.scopes(&claims), self.mapping.tenant(&claims));
        Ok(Verified::Caller { caller, scopes, tenant })
    }
}

/// Tokens of this server and of a provider, distinguished by `iss`.
pub struct Issuers {
    own: Jwt,
    external: Arc<ExternalTokens>,
}

impl Issuers {
    pub fn new(own: Jwt, external: Arc<ExternalTokens>) -> Self {
        Issuers { own, external }
    }
}

#[async_trait]
impl Tokens for Issuers {
    fn sign(&self, grant: &Grant) -> Result<String, TokenFault> {
        self.own.sign(grant)
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<Verified, TokenFault> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(invalid("it is too long"));
        }
        // The token is not verified yet. The claim `iss` only selects the issuer, which verifies the token.
        let claims = jsonwebtoken::dangerous::insecure_decode_claims::<Claims>(token);
        let claims = claims.map_err(|_| invalid("it is neither an API key (`trn_…`) nor an access token"))?;
        if claims.get("iss").and_then(serde_json::Value::as_str) == Some(&*self.external.expected.issuer) {
            self.external.verify(token, now).await
        } else {
            self.own.verify(token, now).await
        }
    }
}
