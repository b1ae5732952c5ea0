//! Tokens that an application signs for its users with a key of this server.
//!
//! In: the claims of a token whose signature and algorithm are checked. Out: the caller, and the claims by
//! which the token is revoked. Every claim must be readable: a claim of the wrong JSON type, a
//! repeated claim, and a token that does not expire soon are refused. Not here: tokens of sessions (`jwt`), and
//! which tokens are revoked (`app::security`).

use std::collections::HashSet;
use std::fmt;

use jiff::Timestamp;
use jsonwebtoken::Header;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use terrane_app::ports::tokens::{TokenFault, TokenId, Verified};
use terrane_app::security::Scope;

use crate::checks::{Times, invalid, is_of_type, names_audience};
use crate::claims::{Claims, ClaimsMapping};

/// The accepted values of the header `typ`. Tokens of other types, such as ID tokens, are refused.
const TYPES: &[&str] = &["JWT", "at+jwt"];

/// The largest length of `jti`, `sub` and the user id, in bytes. A revocation cannot name a longer id.
const MAX_ID_BYTES: usize = 256;

/// Requirements on the tokens of applications.
#[derive(Debug, Clone)]
pub struct ApplicationSettings {
    /// The required issuer; `None` to accept tokens of any issuer, or without one.
    pub issuer: Option<String>,
    /// The audience that `aud` must contain; `None` to accept `default_audience` and tokens without `aud`.
    pub audience: Option<String>,
    /// The audience that `aud` must contain if the token has `aud` and `audience` is `None` (RFC 7519, section 4.1.3).
    pub default_audience: String,
    pub max_age_seconds: u32,
    pub mapping: ClaimsMapping,
    /// True if the operator configured the claim that contains scopes. Otherwise no claim gives the scope `admin`.
    pub has_scopes_claim: bool,
}

impl ApplicationSettings {
    /// Checks a token without a session.
    pub(crate) fn verify(
        &self,
        token: &str,
        header: &Header,
        claims: &Claims,
        now: Timestamp,
    ) -> Result<Verified, TokenFault> {
        if !is_of_type(header, TYPES) {
            return Err(invalid("it is a token of another type"));
        }
        jsonwebtoken::dangerous::insecure_decode_claims::<UniqueNames>(token)
            .map_err(|_| invalid("a claim is repeated"))?;
        self.check(claims, now)?;
        if let Some(why) = self.mapping.unreadable(claims) {
            return Err(invalid(why));
        }
        let caller = self.mapping.caller(claims).ok_or_else(|| invalid("it has no subject"))?;
        if !is_revocable(&caller.user_id) {
            return Err(invalid("the user id is too long or has control characters"));
        }
        let offered: &[Scope] = if self.has_scopes_claim { &Scope::ALL } else { &[Scope::Read, Scope::Write] };
        Ok(Verified::Application {
            caller,
            scopes: self.mapping.scopes_among(claims, offered),
            tenant: self.mapping.tenant(claims),
            id: id_of(claims)?,
        })
    }

    fn check(&self, claims: &Claims, now: Timestamp) -> Result<(), TokenFault> {
        let issuer = claims.get("iss").and_then(Json::as_str);
        if self.issuer.as_deref().is_some_and(|expected| issuer != Some(expected)) {
            return Err(invalid("it was issued by another issuer"));
        }
        let is_for_us = match &self.audience {
            Some(audience) => names_audience(claims, audience),
            None => !claims.contains_key("aud") || names_audience(claims, &self.default_audience),
        };
        if !is_for_us {
            return Err(invalid("it was issued for another audience"));
        }
        let times = Times::read(claims)?;
        times.check(true, true, now)?;
        if !times.is_short_lived(self.max_age_seconds.into(), now) {
            return Err(invalid("its lifetime is longer than `security.jwt.max_token_age`"));
        }
        // A token with `cnf` is valid only with a proof of possession of a key (RFC 7800), which no route accepts.
        if claims.contains_key("cnf") {
            return Err(invalid("it is bound to a key of its holder"));
        }
        Ok(())
    }
}

/// Returns true if a revocation can contain this string.
fn is_revocable(text: &str) -> bool {
    text.len() <= MAX_ID_BYTES && !text.chars().any(char::is_control)
}

fn id_of(claims: &Claims) -> Result<TokenId, TokenFault> {
    let text = |name: &str, why| match claims.get(name) {
        None => Ok(None),
        Some(Json::String(text)) if !is_revocable(text) => {
            Err(invalid("a claim that identifies the token is too long or contains control characters"))
        }
        Some(Json::String(text)) => Ok(Some(text.as_str().into())),
        Some(_) => Err(invalid(why)),
    };
    let issued_at =
        Times::read(claims)?.issued.map(|seconds| Timestamp::from_second(seconds).unwrap_or(Timestamp::MIN));
    Ok(TokenId {
        token: text("jti", "`jti` is not a string")?,
        subject: text("sub", "`sub` is not a string")?,
        issued_at,
    })
}

/// A JSON value in which no object repeats a name, at any depth. Parsers disagree about which of two equal names
/// counts.
struct UniqueNames;

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueNames)
    }
}

impl<'de> Visitor<'de> for UniqueNames {
    type Value = UniqueNames;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repeated names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueNames, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("repeated name"));
            }
            map.next_value::<UniqueNames>()?;
        }
        Ok(UniqueNames)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueNames, A::Error> {
        while items.next_element::<UniqueNames>()?.is_some() {}
        Ok(UniqueNames)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueNames, E> {
        Ok(UniqueNames)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueNames, E> {
        Ok(UniqueNames)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueNames, E> {
        Ok(UniqueNames)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueNames, E> {
        Ok(UniqueNames)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueNames, E> {
        Ok(UniqueNames)
    }

    fn visit_unit<E>(self) -> Result<UniqueNames, E> {
        Ok(UniqueNames)
    }
}
