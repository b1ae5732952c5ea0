//! The keys of `security`: who may read, and how callers prove who they are.
//!
//! In: the reader. Out: a [`SecurityConfig`]. Keys of credentials that this version can't check yet are
//! read for their shape and kept with their place, because ignoring one would open what it closes:
//! `start_rules` refuses them. Not here: tokens, keys and policies.

use std::collections::BTreeSet;

use terrane_compiler::diagnostic::Diagnostic;

use super::reader::{Place, Section};

#[derive(Debug, Clone)]
pub struct SecurityConfig {
    pub enabled: bool,
    /// Where `enabled` is set, if it is.
    pub enabled_place: Option<Place>,
    pub anonymous: Option<Anonymous>,
    pub tenant_claim: Option<String>,
    /// What is set and not yet obeyed.
    pub refusable: Vec<Refusable>,
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

const SCOPES: &[(&str, Scope)] = &[("read", Scope::Read), ("write", Scope::Write), ("admin", Scope::Admin)];

pub(super) fn read(s: &mut Section<'_>) -> SecurityConfig {
    let enabled_place = s.place("enabled");
    let enabled = s.boolean("enabled").unwrap_or(true);
    let anonymous = s.place("anonymous").map(|place| s.section("anonymous", |s| anonymous(s, place)));
    let mut refusable = Vec::new();
    for key in ["jwt", "oauth", "api_keys", "tenant_claim"] {
        refusable.extend(s.place(key).map(|place| Refusable { key, place }));
    }
    s.section("jwt", jwt);
    s.section("oauth", oauth);
    s.section("api_keys", |s| s.boolean("enabled"));
    SecurityConfig { enabled, enabled_place, anonymous, tenant_claim: s.text("tenant_claim"), refusable }
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

/// Shape only.
fn jwt(s: &mut Section<'_>) {
    const ALGORITHMS: &[(&str, ())] = &[("HS256", ()), ("RS256", ())];
    s.secret("secret");
    s.choice("algorithm", ALGORITHMS);
    for key in ["access_token_expiry", "refresh_token_expiry"] {
        s.integer(key, 1..=u64::MAX);
    }
    for key in ["issuer", "audience", "private_key_path", "public_key_path", "external_jwks_url"] {
        s.text(key);
    }
    for key in ["enabled", "verify_exp", "verify_iat"] {
        s.boolean(key);
    }
    for key in ["claims", "claims_mapping"] {
        s.section(key, |s| {
            for claim in ["user_id", "email", "roles", "groups", "attributes"] {
                s.text(claim);
            }
        });
    }
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
