//! Access tokens of an identity provider, and of several issuers at once.
//!
//! In: a token. Out: who its bearer is. The claim `iss` chooses which issuer's rules a token is held to,
//! and nothing else of them: each issuer has its own keys and its own algorithms, so that a token which
//! claims another's name fails there. What this server signs belongs to a session; what a provider signs
//! belongs to none, and ends with its expiry.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::tokens::{Grant, TokenFault, Tokens, Verified};

use crate::checks::{Expected, MAX_TOKEN_BYTES, invalid};
use crate::claims::{Claims, ClaimsMapping};
use crate::jwt::Jwt;
use crate::keys::{RemoteKeys, SignatureAlgorithm};
use crate::signed::SignedTokens;

/// RFC 9068 names the first; the second is what most providers write.
const TYPES: &[&str] = &["at+jwt", "JWT"];

/// What a provider's tokens are held to.
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
        // Whoever sends such a token must prove that a key is theirs (RFC 7800), which nothing here asks for.
        if claims.contains_key("cnf") {
            return Err(invalid("bound to a key of its holder"));
        }
        let caller = self.mapping.caller(&claims).ok_or_else(|| invalid("no subject"))?;
        let (scopes, tenant) = (self.mapping.scopes(&claims), self.mapping.tenant(&claims));
        Ok(Verified::Caller { caller, scopes, tenant })
    }
}

/// Tokens of this server and of a provider, told apart by `iss`.
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
            return Err(invalid("too long"));
        }
        // Nothing is proven yet: this chooses whose rules come next, and they look again.
        let claims = jsonwebtoken::dangerous::insecure_decode_claims::<Claims>(token);
        let claims = claims.map_err(|_| invalid("not a token"))?;
        if claims.get("iss").and_then(serde_json::Value::as_str) == Some(&*self.external.expected.issuer) {
            self.external.verify(token, now).await
        } else {
            self.own.verify(token, now).await
        }
    }
}
