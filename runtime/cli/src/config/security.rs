//! The keys of `security`: who may read, and how callers prove who they are.
//!
//! In: the reader. Out: a [`SecurityConfig`]. Not here: identity providers (`providers`), conflicts between settings
//! (`start_rules`), the contents of key files (`wiring`), and policies.

use terrane_compiler::diagnostic::{Code, Diagnostic};

use terrane_app::security::{MAX_APPLICATION_TOKEN_AGE, Scope, Scopes};
use terrane_identity::SignatureAlgorithm;

use super::place::Place;
use super::providers::{self, OAuthConfig, OutgoingConfig};
use super::reader::{Secret, Section, WithPlace};

#[derive(Debug, Clone)]
pub struct SecurityConfig {
    pub enabled: bool,
    /// The place of `enabled`, if it is set.
    pub enabled_place: Option<Place>,
    pub anonymous: Option<Anonymous>,
    pub api_keys: bool,
    pub jwt: JwtConfig,
    pub tenant_claim: Option<String>,
    pub oauth: OAuthConfig,
    pub outgoing: OutgoingConfig,
}

/// Access tokens.
#[derive(Debug, Clone)]
pub struct JwtConfig {
    pub place: Option<Place>,
    pub enabled: Option<bool>,
    pub enabled_place: Option<Place>,
    pub algorithm_place: Option<Place>,
    pub claims_place: Option<Place>,
    pub claims_mapping_place: Option<Place>,
    pub scope_mapping_place: Option<Place>,
    /// True to accept tokens that an application signs with the key of this server. Such tokens have no session.
    pub application_tokens: bool,
    pub application_tokens_place: Option<Place>,
    /// The longest lifetime of such a token, in seconds.
    pub max_token_age: u32,
    pub secret: Option<Secret>,
    pub algorithm: Option<JwtAlgorithm>,
    pub access_seconds: u64,
    pub refresh_seconds: u64,
    /// The issuer of the external provider if one is configured, otherwise the issuer of this server.
    pub issuer: Option<String>,
    pub audience: Option<String>,
    /// The issuer and audience of this server's own tokens, needed if `issuer` and `audience` are those of an external
    /// provider.
    pub own_issuer: Option<String>,
    /// The URL of the keys of an external provider.
    pub external_jwks_url: Option<WithPlace<String>>,
    /// The algorithms of the external provider's tokens.
    pub algorithms: Vec<SignatureAlgorithm>,
    pub jwks_refresh_seconds: u64,
    pub jwks_stale_seconds: u64,
    pub scope_roles: ScopeRoleNames,
    /// The path of the key file, absolute or relative to the project's folder.
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

/// The names of the claims with the user's data. A claim that is `None` has the name of its field.
#[derive(Debug, Clone, Default)]
pub struct ClaimNames {
    pub user_id: Option<String>,
    pub email: Option<String>,
    pub roles: Option<String>,
    pub groups: Option<String>,
    pub attributes: Option<String>,
    pub scopes: Option<String>,
}

/// The roles that imply each scope.
#[derive(Debug, Clone, Default)]
pub struct ScopeRoleNames {
    pub read: Vec<String>,
    pub write: Vec<String>,
    pub admin: Vec<String>,
}

/// The default of `iss` and `aud`.
const DEFAULT_ISSUER: &str = "terrane";

impl JwtConfig {
    /// Returns whether tokens are accepted, which requires a key to verify them.
    pub fn is_on(&self) -> bool {
        self.has_own_key() || self.is_external()
    }

    /// Returns whether tokens that are signed with the key of this server are accepted.
    pub fn has_own_key(&self) -> bool {
        let has_key = self.secret.is_some() || self.private_key_path.is_some() || self.public_key_path.is_some();
        has_key && self.enabled != Some(false)
    }

    /// Returns whether this server signs tokens.
    pub fn is_signing(&self) -> bool {
        self.has_own_key() && (self.secret.is_some() || self.private_key_path.is_some())
    }

    /// Returns whether this server accepts access tokens of other signers, and so reads their claims. Its own tokens
    /// name a session, whose rights are recorded.
    pub fn reads_claims(&self) -> bool {
        self.is_external() || (self.has_own_key() && (self.application_tokens || !self.is_signing()))
    }

    /// Returns whether tokens of an external provider are accepted.
    pub fn is_external(&self) -> bool {
        self.external_jwks_url.is_some() && self.enabled != Some(false)
    }

    /// Returns `iss` and `aud` of this server's own tokens.
    pub fn own_names(&self) -> (&str, &str) {
        let own = self.own_issuer.as_deref();
        if self.is_external() {
            let own = own.unwrap_or(DEFAULT_ISSUER);
            return (own, own);
        }
        (
            own.or(self.issuer.as_deref()).unwrap_or(DEFAULT_ISSUER),
            own.or(self.audience.as_deref()).unwrap_or(DEFAULT_ISSUER),
        )
    }
}

/// Callers without credentials.
#[derive(Debug, Clone)]
pub struct Anonymous {
    pub scopes: Scopes,
    pub roles: Vec<String>,
    /// True if anonymous callers may connect from other machines.
    pub public: bool,
    pub place: Place,
}

impl SecurityConfig {
    /// Returns whether callers can authenticate.
    pub fn has_credentials(&self) -> bool {
        self.api_keys || self.jwt.is_on()
    }

    /// Returns whether the server may listen on addresses that other machines reach.
    pub fn may_be_reached(&self) -> bool {
        self.has_credentials() && self.anonymous.as_ref().is_none_or(|anonymous| anonymous.public)
    }
}

/// The longest lifetime: 100 years.
const MAX_LIFETIME_SECONDS: u64 = 3_155_760_000;

pub(super) fn read(s: &mut Section<'_>) -> SecurityConfig {
    let enabled_place = s.place("enabled");
    let enabled = s.boolean("enabled").unwrap_or(true);
    let place = if s.is_none("anonymous") { None } else { s.place("anonymous") };
    let anonymous = place.map(|place| s.section("anonymous", |s| anonymous(s, place)));
    let jwt_place = s.place("jwt");
    let jwt = s.section("jwt", |s| jwt(s, jwt_place));
    let oauth_place = s.place("oauth");
    let oauth = s.section("oauth", |s| providers::oauth(s, oauth_place));
    let outgoing = s.section("outgoing", providers::outgoing);
    let api_keys = s.section("api_keys", |s| s.boolean("enabled")).unwrap_or(true);
    let tenant_claim = s.text("tenant_claim");
    SecurityConfig { enabled, enabled_place, anonymous, api_keys, jwt, tenant_claim, oauth, outgoing }
}

fn anonymous(s: &mut Section<'_>, place: Place) -> Anonymous {
    let mut scopes = Scopes::default();
    for word in s.texts("scopes").unwrap_or_else(|| vec!["read".to_owned()]) {
        match Scope::named(&word) {
            Some(scope) => scopes = scopes.with(scope),
            None => s.report(
                place.mark(
                    Diagnostic::error(Code::WrongValue, format!("`{word}` is not a scope"))
                        .hint("The scopes are read, write and admin."),
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
    let (enabled_place, algorithm_place) = (s.place("enabled"), s.place("algorithm"));
    let (claims_place, claims_mapping_place) = (s.place("claims"), s.place("claims_mapping"));
    let scope_mapping_place = s.place("scope_mapping");
    let application_tokens_place = s.place("application_tokens");
    let application_tokens = s.boolean("application_tokens").unwrap_or(false);
    let max_token_age = s.integer("max_token_age", 1..=MAX_APPLICATION_TOKEN_AGE.as_secs());
    let max_token_age = max_token_age.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(86_400);
    let secret = s.secret("secret");
    let algorithm = s.choice("algorithm", ALGORITHMS);
    let access_seconds = s.integer("access_token_expiry", 1..=MAX_LIFETIME_SECONDS).unwrap_or(3_600);
    let refresh_seconds = s.integer("refresh_token_expiry", 1..=MAX_LIFETIME_SECONDS).unwrap_or(604_800);
    let (issuer, audience, own_issuer) = (s.text("issuer"), s.text("audience"), s.text("own_issuer"));
    let external_jwks_url = s.text_with_place("external_jwks_url");
    let algorithms = providers::algorithms(s).unwrap_or_else(|| providers::DEFAULT_ALGORITHMS.to_vec());
    let jwks_refresh_seconds = s.integer("jwks_refresh_seconds", 1..=86_400).unwrap_or(300);
    let jwks_stale_seconds = s.integer("jwks_stale_seconds", 0..=604_800).unwrap_or(86_400);
    let scope_roles = s.section("scope_mapping", scope_roles);
    let private_key_path = s.text("private_key_path");
    let public_key_path = s.text("public_key_path");
    let enabled = s.boolean("enabled");
    let verify_exp = s.boolean("verify_exp").unwrap_or(true);
    let verify_iat = s.boolean("verify_iat").unwrap_or(true);
    // Both keys name the same setting.
    let claims = s.section("claims", claims).or(s.section("claims_mapping", self::claims));
    JwtConfig {
        place,
        enabled,
        enabled_place,
        algorithm_place,
        claims_place,
        claims_mapping_place,
        scope_mapping_place,
        application_tokens,
        application_tokens_place,
        max_token_age,
        secret,
        algorithm,
        access_seconds,
        refresh_seconds,
        issuer,
        audience,
        own_issuer,
        external_jwks_url,
        algorithms,
        jwks_refresh_seconds,
        jwks_stale_seconds,
        scope_roles,
        private_key_path,
        public_key_path,
        verify_exp,
        verify_iat,
        claims,
    }
}

pub(super) fn claims(s: &mut Section<'_>) -> ClaimNames {
    ClaimNames {
        user_id: s.text("user_id"),
        email: s.text("email"),
        roles: s.text("roles"),
        groups: s.text("groups"),
        attributes: s.text("attributes"),
        scopes: s.text("scopes"),
    }
}

pub(super) fn scope_roles(s: &mut Section<'_>) -> ScopeRoleNames {
    let mut roles = |scope: &'static str| s.texts(scope).unwrap_or_default();
    ScopeRoleNames { read: roles("read"), write: roles("write"), admin: roles("admin") }
}

impl ClaimNames {
    /// Returns these names, and the names of `other` where a name is missing.
    pub fn or(self, other: ClaimNames) -> ClaimNames {
        ClaimNames {
            user_id: self.user_id.or(other.user_id),
            email: self.email.or(other.email),
            roles: self.roles.or(other.roles),
            groups: self.groups.or(other.groups),
            attributes: self.attributes.or(other.attributes),
            scopes: self.scopes.or(other.scopes),
        }
    }
}
