//! Verifies tokens that a provider signed.
//!
//! In: a token. Out: its claims, if one of the provider's own keys signed it, with a configured algorithm that the key
//! allows. Other fields of the header (`jku`, `x5u`, `jwk`, `x5c`) are not read. Not here: the checks of claims
//! (`checks`).

use jsonwebtoken::{Algorithm, Header};
use terrane_app::ports::tokens::TokenFault;

use crate::checks::{header_of, invalid, is_of_type};
use crate::claims::Claims;
use crate::jwt::signature_only;
use crate::keys::{KeyFault, RemoteKeys, SignatureAlgorithm};

pub(crate) struct SignedTokens {
    keys: RemoteKeys,
    algorithms: Vec<Algorithm>,
    types: &'static [&'static str],
}

impl SignedTokens {
    /// Creates a verifier. `types` are the accepted values of the header `typ`.
    pub(crate) fn new(keys: RemoteKeys, algorithms: &[SignatureAlgorithm], types: &'static [&'static str]) -> Self {
        SignedTokens { keys, algorithms: algorithms.iter().map(|algorithm| algorithm.0).collect(), types }
    }

    pub(crate) async fn claims(&self, token: &str) -> Result<Claims, TokenFault> {
        let Header { alg, kid, .. } = self.header(token)?;
        let key = self.keys.key(kid.as_deref(), alg).await.map_err(|fault| match fault {
            KeyFault::Unknown => invalid("no key of the identity provider matches it"),
            KeyFault::Unavailable => TokenFault::Unavailable,
        })?;
        let decoded = jsonwebtoken::decode::<Claims>(token, &key, &signature_only(alg));
        Ok(decoded.map_err(|_| invalid("the signature is not the issuer's"))?.claims)
    }

    fn header(&self, token: &str) -> Result<Header, TokenFault> {
        let header = header_of(token)?;
        if !self.algorithms.contains(&header.alg) {
            return Err(invalid("it is signed with another algorithm"));
        }
        if !is_of_type(&header, self.types) {
            return Err(invalid("it is a token of another type"));
        }
        Ok(header)
    }
}
