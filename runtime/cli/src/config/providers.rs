//! The settings of identity providers: `security.oauth`, `security.outgoing`, and the keys of `security.jwt` for an
//! external provider.
//!
//! In: the reader. Out: typed sections. Their addresses are still strings, which `start_rules` and `wiring` check. Not
//! here: the requests to providers (`terrane-identity`).

use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_identity::SignatureAlgorithm;

use super::place::Place;
use super::reader::{Secret, Section, WithPlace};
use super::security::{ClaimNames, JwtConfig, ScopeRoleNames, claims, scope_roles};

/// The algorithms of tokens whose issuer names none.
pub(super) const DEFAULT_ALGORITHMS: &[SignatureAlgorithm] = &[SignatureAlgorithm::RS256];

/// The identity providers through which callers sign in.
#[derive(Debug, Clone)]
pub struct OAuthConfig {
    pub place: Option<Place>,
    pub enabled: Option<bool>,
    /// The URL at which browsers reach this server.
    pub public_url: Option<WithPlace<String>>,
    /// The URL of a server that listens on a loopback address; set once the address is known.
    pub default_public_url: Option<String>,
    pub providers: Vec<ProviderConfig>,
}

impl OAuthConfig {
    /// Returns whether callers can sign in through providers. By default, they can if a provider is configured.
    pub fn is_on(&self) -> bool {
        self.enabled.unwrap_or(!self.providers.is_empty())
    }

    /// Returns the URL of this server for browsers: the configured one, or that of the loopback address.
    pub fn public_url(&self) -> Option<&str> {
        self.public_url.as_ref().map(|url| url.value.as_str()).or(self.default_public_url.as_deref())
    }
}

/// The settings of one provider, unchecked.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// The place of the key `name`, or of another key of the provider.
    pub place: Option<Place>,
    pub name: Option<String>,
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    pub token_auth: TokenAuth,
    pub authorize_url: Option<String>,
    pub token_url: Option<String>,
    pub userinfo_url: Option<String>,
    pub issuer: Option<String>,
    pub jwks_url: Option<String>,
    /// The algorithms of ID tokens, if the provider has its own.
    pub algorithms: Option<Vec<SignatureAlgorithm>>,
    pub scopes: Option<Vec<String>>,
    pub claims: ClaimNames,
    pub scope_roles: ScopeRoleNames,
    pub has_bare_user_ids: bool,
}

/// The issuer of a provider's ID tokens, and the keys that sign them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenIdConfig<'c> {
    pub issuer: &'c str,
    pub jwks_url: &'c str,
    pub algorithms: &'c [SignatureAlgorithm],
}

impl ProviderConfig {
    /// Returns the issuer, keys and algorithms of the provider's ID tokens: the provider's own, or those of
    /// `security.jwt` if the provider uses the issuer there. Returns `None` for other providers.
    pub fn openid<'c>(&'c self, jwt: &'c JwtConfig) -> Option<OpenIdConfig<'c>> {
        if let (Some(issuer), Some(jwks_url)) = (&self.issuer, &self.jwks_url) {
            let algorithms = self.algorithms.as_deref().unwrap_or(DEFAULT_ALGORITHMS);
            return Some(OpenIdConfig { issuer, jwks_url, algorithms });
        }
        if !self.uses_external_issuer() {
            return None;
        }
        let (issuer, jwks_url) = (jwt.issuer.as_deref()?, &jwt.external_jwks_url.as_ref()?.value);
        Some(OpenIdConfig { issuer, jwks_url, algorithms: self.algorithms.as_deref().unwrap_or(&jwt.algorithms) })
    }

    /// Returns whether the provider uses the issuer of `security.jwt`: it has no issuer, keys or user-info endpoint.
    pub fn uses_external_issuer(&self) -> bool {
        self.issuer.is_none() && self.jwks_url.is_none() && self.userinfo_url.is_none()
    }
}

/// The method by which this server authenticates to a provider as the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TokenAuth {
    #[default]
    Basic,
    Post,
    None,
}

/// Requests to providers.
#[derive(Debug, Clone)]
pub struct OutgoingConfig {
    /// The operator's own addresses, networks and hosts, to which requests are allowed besides public ones.
    pub allow: Vec<WithPlace<String>>,
    /// The file of certificate authorities besides the public ones, absolute or relative to the project's folder.
    pub ca_path: Option<String>,
}

pub(super) fn oauth(s: &mut Section<'_>, place: Option<Place>) -> OAuthConfig {
    OAuthConfig {
        place,
        enabled: s.boolean("enabled"),
        public_url: s.text_with_place("public_url"),
        default_public_url: None,
        providers: s.sections("providers", provider).unwrap_or_default(),
    }
}

fn provider(s: &mut Section<'_>) -> ProviderConfig {
    const TOKEN_AUTHS: &[(&str, TokenAuth)] =
        &[("basic", TokenAuth::Basic), ("post", TokenAuth::Post), ("none", TokenAuth::None)];
    ProviderConfig {
        place: s.place("name").or_else(|| s.place("client_id")),
        name: s.text("name"),
        client_id: s.text("client_id"),
        client_secret: s.secret("client_secret"),
        token_auth: s.choice("token_auth", TOKEN_AUTHS).unwrap_or_default(),
        authorize_url: s.text("authorize_url"),
        token_url: s.text("token_url"),
        userinfo_url: s.text("userinfo_url"),
        issuer: s.text("issuer"),
        jwks_url: s.text("jwks_url"),
        algorithms: algorithms(s),
        scopes: s.texts("scopes"),
        claims: s.section("claims_mapping", claims),
        scope_roles: s.section("scope_mapping", scope_roles),
        has_bare_user_ids: s.boolean("bare_user_ids").unwrap_or(false),
    }
}

pub(super) fn outgoing(s: &mut Section<'_>) -> OutgoingConfig {
    OutgoingConfig { allow: s.texts_with_places("allow").unwrap_or_default(), ca_path: s.text("ca_path") }
}

/// Reads the signature algorithms. Returns `None` if none is named. Symmetric algorithms are refused, because everybody
/// who can read the provider's published keys could sign tokens with them.
pub(super) fn algorithms(s: &mut Section<'_>) -> Option<Vec<SignatureAlgorithm>> {
    let mut read = Vec::new();
    for WithPlace { value, place } in s.texts_with_places("algorithms").unwrap_or_default() {
        match SignatureAlgorithm::named(&value) {
            Some(algorithm) => read.push(algorithm),
            None => {
                let message = format!("unknown public-key algorithm `{}`", value.chars().take(60).collect::<String>());
                let hint = format!("Expected algorithms: {}.", SignatureAlgorithm::names().join(", "));
                s.report(place.mark(Diagnostic::error(Code::WrongValue, message).hint(hint)));
            }
        }
    }
    (!read.is_empty()).then_some(read)
}
