//! The adapters for the configured identity providers: those whose tokens are accepted, and those through which callers
//! sign in.
//!
//! In: a configuration that `start_rules` accepts. Out: adapters, which have begun to read the providers' keys. A
//! provider that is unavailable does not prevent the start.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::clock::Clock;
use terrane_app::ports::providers::IdentityProvider;
use terrane_app::security::oauth::Transport;
use terrane_identity::{
    BrowserUrl, ClaimsMapping, ClientAuth, ExternalSettings, ExternalTokens, OpenIdSettings, Provider,
    ProviderSettings, RefreshSettings, RemoteKeys,
};
use terrane_outgoing::{AllowList, Endpoint, OutgoingClient};

use super::security::mapping;
use crate::config::{Config, ProviderConfig, Secret, TokenAuth};
use crate::failure::Failure;

/// Creates the adapters for identity providers, which share one HTTP client.
pub(super) struct Providers<'a> {
    config: &'a Config,
    clock: &'a Arc<dyn Clock>,
    outgoing: OutgoingClient,
}

impl<'a> Providers<'a> {
    /// Creates the HTTP client.
    ///
    /// # Errors
    /// `security.outgoing.ca_path` cannot be read.
    pub(super) fn new(config: &'a Config, root: &Path, clock: &'a Arc<dyn Clock>) -> Result<Self, Failure> {
        Ok(Providers { config, clock, outgoing: outgoing(config, root)? })
    }

    /// Returns the verifier of an external provider's tokens, or `None` if such tokens are not accepted.
    pub(super) fn external(&self) -> Result<Option<Arc<ExternalTokens>>, Failure> {
        let security = &self.config.security;
        let jwt = &security.jwt;
        let Some(url) = jwt.external_jwks_url.as_ref().filter(|_| jwt.is_external()) else { return Ok(None) };
        let settings = ExternalSettings {
            issuer: jwt.issuer.clone().unwrap_or_default(),
            audience: jwt.audience.clone().unwrap_or_default(),
            algorithms: jwt.algorithms.clone(),
            verify_iat: jwt.verify_iat,
            mapping: mapping(&jwt.claims, &jwt.scope_roles, security.tenant_claim.as_deref()),
        };
        let keys = self.keys(self.endpoint("security.jwt.external_jwks_url", &url.value)?);
        Ok(Some(Arc::new(ExternalTokens::new(settings, keys))))
    }

    /// Returns the protocol of browsers that connect to this server.
    pub(super) fn transport(&self) -> Transport {
        let url = self.config.security.oauth.public_url();
        let is_https = url.and_then(|url| BrowserUrl::read(url).ok()).is_none_or(|url| url.is_https());
        if is_https { Transport::Https } else { Transport::Http }
    }

    /// Returns the providers through which callers sign in.
    pub(super) fn sign_ins(&self) -> Result<Vec<Arc<dyn IdentityProvider>>, Failure> {
        let oauth = &self.config.security.oauth;
        if !oauth.is_on() {
            return Ok(Vec::new());
        }
        let public = BrowserUrl::read(oauth.public_url().unwrap_or_default())
            .map_err(|problem| failed("security.oauth.public_url", &problem))?;
        oauth.providers.iter().map(|provider| self.sign_in(provider, &public)).collect()
    }

    fn sign_in(&self, config: &ProviderConfig, public: &BrowserUrl) -> Result<Arc<dyn IdentityProvider>, Failure> {
        let name = config.name.clone().unwrap_or_default();
        let key = |key: &str| format!("the provider `{name}` of `security.oauth`: {key}");
        let endpoint = |of: &str, url: &str| self.endpoint(&key(of), url);
        let secret = config.client_secret.as_ref().map(Secret::expose).unwrap_or_default().to_owned();
        let authorize_url = BrowserUrl::read(config.authorize_url.as_deref().unwrap_or_default());
        let openid = config.openid(&self.config.security.jwt).map(|openid| {
            Ok::<_, Failure>(OpenIdSettings {
                issuer: openid.issuer.to_owned(),
                keys: self.keys(endpoint("jwks_url", openid.jwks_url)?),
                algorithms: openid.algorithms.to_vec(),
            })
        });
        let openid = openid.transpose()?;
        let default_scopes: &[&str] = if openid.is_some() { &["openid", "profile", "email"] } else { &[] };
        let default_scopes = || default_scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let settings = ProviderSettings {
            client_id: config.client_id.clone().unwrap_or_default(),
            client_auth: match config.token_auth {
                TokenAuth::Basic => ClientAuth::Basic { secret },
                TokenAuth::Post => ClientAuth::Post { secret },
                TokenAuth::None => ClientAuth::None,
            },
            authorize_url: authorize_url.map_err(|problem| failed(&key("authorize_url"), &problem))?,
            token_endpoint: endpoint("token_url", config.token_url.as_deref().unwrap_or_default())?,
            userinfo_endpoint: config.userinfo_url.as_deref().map(|url| endpoint("userinfo_url", url)).transpose()?,
            openid,
            redirect_url: public.join(&format!("/api/v1/auth/oauth/{name}/callback")),
            scopes: config.scopes.clone().unwrap_or_else(default_scopes),
            mapping: self.mapping(config),
            has_bare_user_ids: config.has_bare_user_ids,
            name,
        };
        Ok(Arc::new(Provider::new(settings, self.outgoing.clone())))
    }

    /// Returns the provider's own names of claims, or else those of `security.jwt`.
    fn mapping(&self, provider: &ProviderConfig) -> ClaimsMapping {
        let security = &self.config.security;
        let claims = provider.claims.clone().or(security.jwt.claims.clone());
        mapping(&claims, &provider.scope_roles, security.tenant_claim.as_deref())
    }

    fn keys(&self, endpoint: Endpoint) -> RemoteKeys {
        let jwt = &self.config.security.jwt;
        let settings = RefreshSettings {
            fresh: Duration::from_secs(jwt.jwks_refresh_seconds),
            stale: Duration::from_secs(jwt.jwks_stale_seconds),
        };
        let keys = RemoteKeys::new(self.outgoing.clone(), endpoint, self.clock.clone(), settings);
        keys.prefetch();
        keys
    }

    fn endpoint(&self, key: &str, url: &str) -> Result<Endpoint, Failure> {
        self.outgoing.endpoint(url).map_err(|problem| failed(key, &problem))
    }
}

/// Creates the client of all requests to configured addresses.
///
/// # Errors
/// `security.outgoing.allow` is invalid, or `security.outgoing.ca_path` cannot be read.
pub(super) fn outgoing(config: &Config, root: &Path) -> Result<OutgoingClient, Failure> {
    let settings = &config.security.outgoing;
    let ca = authorities(config, root)?;
    let allow = AllowList::parse(settings.allow.iter().map(|entry| entry.value.as_str()));
    let allow = allow.map_err(|problem| failed("security.outgoing.allow", &problem))?;
    let outgoing = OutgoingClient::new(allow, ca.as_ref().map(|(path, text)| (*path, text.as_slice())));
    outgoing.map_err(|problem| failed("security.outgoing", &problem))
}

/// Returns the path and the content of `security.outgoing.ca_path`.
///
/// # Errors
/// The file cannot be read.
pub(super) fn authorities<'a>(config: &'a Config, root: &Path) -> Result<Option<(&'a str, Vec<u8>)>, Failure> {
    let Some(path) = config.security.outgoing.ca_path.as_deref() else { return Ok(None) };
    let text = std::fs::read(root.join(path));
    let text = text.map_err(|problem| failed("security.outgoing.ca_path", &format!("`{path}`: {problem}")))?;
    Ok(Some((path, text)))
}

pub(super) fn failed(key: &str, problem: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("{key}: {problem}"))
}
