//! The keys of `security`: who may read, and how callers prove who they are.
//!
//! In: the reader. Out: a [`SecurityConfig`]. Keys of credentials that this version can't check yet are
//! read for their shape and kept with their place, because ignoring one would open what it closes:
//! `start_rules` refuses them. Not here: whether a key fits (`wiring`), and policies.

use std::collections::BTreeSet;

use terrane_compiler::diagnostic::Diagnostic;

use super::reader::{Place, Secret, Section};

#[derive(Debug, Clone)]
pub struct SecurityConfig {
    pub enabled: bool,
    /// Where `enabled` is set, if it is.
    pub enabled_place: Option<Place>,
    pub anonymous: Option<Anonymous>,
    pub api_keys: bool,
    pub jwt: JwtConfig,
    pub tenant_claim: Option<String>,
    /// What is set and not yet obeyed.
    pub refusable: Vec<Refusable>,
}

/// Access tokens.
#[derive(Debug, Clone)]
pub struct JwtConfig {
    pub place: Option<Place>,
    pub enabled: Option<bool>,
    pub secret: Option<Secret>,
    pub algorithm: Option<JwtAlgorithm>,
    pub access_seconds: u64,
    pub refresh_seconds: u64,
    pub issuer: String,
    pub audience: String,
    /// From the project's folder, or absolute.
    pub private_key_path: Option<String>,
    pub public_key_path: Option<String>,
    pub verify_exp: bool,
    pub verify_iat: bool,
    pub claims: ClaimNames,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwtAlgorithm {
    Hs256,
    Rs256,
}

/// Which claim says what; `None` is the claim of that name.
#[derive(Debug, Clone, Default)]
pub struct ClaimNames {
    pub user_id: Option<String>,
    pub email: Option<String>,
    pub roles: Option<String>,
    pub groups: Option<String>,
    pub attributes: Option<String>,
    pub scopes: Option<String>,
}

impl JwtConfig {
    /// Tokens are accepted only where something can check them.
    pub fn is_on(&self) -> bool {
        let has_key = self.secret.is_some() || self.private_key_path.is_some() || self.public_key_path.is_some();
        has_key && self.enabled != Some(false)
    }
}

/// Callers without credentials.
#[derive(Debug, Clone)]
pub struct Anonymous {
    pub scopes: BTreeSet<Scope>,
    pub roles: Vec<String>,
    /// Also on addresses that others can reach.
    pub public: bool,
    pub place: Place,
}

impl SecurityConfig {
    /// Whether a caller can prove who they are.
    pub fn has_credentials(&self) -> bool {
        self.api_keys || self.jwt.is_on()
    }

    /// Whether the server may listen where others reach it.
    pub fn may_be_reached(&self) -> bool {
        self.has_credentials() && self.anonymous.as_ref().is_none_or(|anonymous| anonymous.public)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Read,
    Write,
    Admin,
}

/// A key that would change who may read, and that nothing obeys yet.
#[derive(Debug, Clone)]
pub struct Refusable {
    pub key: &'static str,
    pub place: Place,
}

/// 100 years.
const MAX_LIFETIME_SECONDS: u64 = 3_155_760_000;
const SCOPES: &[(&str, Scope)] = &[("read", Scope::Read), ("write", Scope::Write), ("admin", Scope::Admin)];

pub(super) fn read(s: &mut Section<'_>) -> SecurityConfig {
    let enabled_place = s.place("enabled");
    let enabled = s.boolean("enabled").unwrap_or(true);
    let place = if s.is_none("anonymous") { None } else { s.place("anonymous") };
    let anonymous = place.map(|place| s.section("anonymous", |s| anonymous(s, place)));
    let mut refusable = Vec::new();
    refusable.extend(s.place("oauth").map(|place| Refusable { key: "oauth", place }));
    let jwt_place = s.place("jwt");
    let jwt = s.section("jwt", |s| {
        refusable.extend(s.place("external_jwks_url").map(|place| Refusable { key: "jwt.external_jwks_url", place }));
        jwt(s, jwt_place)
    });
    s.section("oauth", oauth);
    let api_keys = s.section("api_keys", |s| s.boolean("enabled")).unwrap_or(true);
    let tenant_claim = s.text("tenant_claim");
    SecurityConfig { enabled, enabled_place, anonymous, api_keys, jwt, tenant_claim, refusable }
}

fn anonymous(s: &mut Section<'_>, place: Place) -> Anonymous {
    let mut scopes = BTreeSet::new();
    for word in s.texts("scopes").unwrap_or_else(|| vec!["read".to_owned()]) {
        match SCOPES.iter().find(|(known, _)| *known == word) {
            Some((_, scope)) => {
                scopes.insert(*scope);
            }
            None => s.report(
                place.mark(
                    Diagnostic::error("wrong-value", format!("`{word}` is not a scope"))
                        .hint("the scopes are read, write and admin"),
                ),
            ),
        }
    }
    Anonymous {
        scopes,
        roles: s.texts("roles").unwrap_or_default(),
        public: s.boolean("public").unwrap_or(false),
        place,
    }
}

fn jwt(s: &mut Section<'_>, place: Option<Place>) -> JwtConfig {
    const ALGORITHMS: &[(&str, JwtAlgorithm)] = &[("HS256", JwtAlgorithm::Hs256), ("RS256", JwtAlgorithm::Rs256)];
    let secret = s.secret("secret");
    let algorithm = s.choice("algorithm", ALGORITHMS);
    let access_seconds = s.integer("access_token_expiry", 1..=MAX_LIFETIME_SECONDS).unwrap_or(3_600);
    let refresh_seconds = s.integer("refresh_token_expiry", 1..=MAX_LIFETIME_SECONDS).unwrap_or(604_800);
    let issuer = s.text("issuer").unwrap_or_else(|| "terrane".to_owned());
    let audience = s.text("audience").unwrap_or_else(|| "terrane".to_owned());
    let private_key_path = s.text("private_key_path");
    let public_key_path = s.text("public_key_path");
    let enabled = s.boolean("enabled");
    let verify_exp = s.boolean("verify_exp").unwrap_or(true);
    let verify_iat = s.boolean("verify_iat").unwrap_or(true);
    let claims = s.section("claims", claims);
    // Of tokens of an external issuer, which this version refuses.
    s.section("claims_mapping", claims_of_others);
    s.text("external_jwks_url");
    JwtConfig {
        place,
        enabled,
        secret,
        algorithm,
        access_seconds,
        refresh_seconds,
        issuer,
        audience,
        private_key_path,
        public_key_path,
        verify_exp,
        verify_iat,
        claims,
    }
}

fn claims(s: &mut Section<'_>) -> ClaimNames {
    ClaimNames {
        user_id: s.text("user_id"),
        email: s.text("email"),
        roles: s.text("roles"),
        groups: s.text("groups"),
        attributes: s.text("attributes"),
        scopes: s.text("scopes"),
    }
}

fn claims_of_others(s: &mut Section<'_>) {
    claims(s);
}

/// Shape only.
fn oauth(s: &mut Section<'_>) {
    s.boolean("enabled");
    s.sections("providers", |s| {
        for key in ["name", "client_id", "authorize_url", "token_url"] {
            s.text(key);
        }
        s.secret("client_secret");
    });
}
