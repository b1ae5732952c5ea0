//! Creates the adapters of credentials that the configuration names: keys in the state database, and tokens that are
//! verified by a secret, by key files or by an identity provider.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::clock::Clock;
use terrane_app::ports::providers::IdentityProvider;
use terrane_app::ports::tokens::{Randomness as _, Tokens};
use terrane_app::security::SessionSettings;
use terrane_app::security::oauth::{StateTokenKey, Transport};
use terrane_identity::{
    ApplicationSettings, ClaimPath, ClaimsMapping, ExternalTokens, Issuers, Jwt, JwtSettings, OsRandomness, ScopeRoles,
    SigningKey,
};
use terrane_store::StateStore;

use super::providers::Providers;
use crate::config::{ClaimNames, Config, JwtAlgorithm, JwtConfig, ScopeRoleNames};
use crate::failure::Failure;
use crate::project::Project;

/// The ports and settings of credentials.
pub(super) struct Security {
    pub(super) tokens: Option<Arc<dyn Tokens>>,
    pub(super) providers: Vec<Arc<dyn IdentityProvider>>,
    pub(super) state_token_key: StateTokenKey,
    pub(super) transport: Transport,
    pub(super) sessions: SessionSettings,
}

/// Opens keys and providers without sending a request.
///
/// # Errors
/// A key file cannot be read or used, or other users may read it; a provider's settings are invalid; or the state
/// database is unavailable.
pub(super) async fn open(
    project: &Project,
    store: &Arc<StateStore>,
    clock: &Arc<dyn Clock>,
) -> Result<Security, Failure> {
    let (config, root) = (&project.config, project.folder.root());
    let providers = Providers::new(config, root, clock)?;
    let key = config.security.jwt.has_own_key().then(|| key(&config.security.jwt, root)).transpose()?;
    let state_token_key = StateTokenKey::derived_from(&server_secret(store, "sign_ins").await?);
    let proof_key = server_secret(store, "sessions").await?;
    let sessions = SessionSettings {
        access_lifetime: Duration::from_secs(config.security.jwt.access_seconds),
        refresh_lifetime: Duration::from_secs(config.security.jwt.refresh_seconds),
        accepts_keys: config.security.api_keys,
    };
    Ok(Security {
        tokens: tokens(config, key, providers.external()?, proof_key)?,
        transport: providers.transport(),
        providers: providers.sign_ins()?,
        state_token_key,
        sessions,
    })
}

/// Returns whether tokens are accepted, and checks that their keys and providers can be used. Sends no request.
pub(super) fn accepts_tokens(project: &Project, clock: &Arc<dyn Clock>) -> Result<bool, Failure> {
    let (config, root) = (&project.config, project.folder.root());
    let key = config.security.jwt.has_own_key().then(|| key(&config.security.jwt, root)).transpose()?;
    let providers = Providers::new(config, root, clock)?;
    // The last argument is a secret. Any value will do, because this function signs and verifies no token.
    Ok(tokens(config, key, providers.external()?, [0; 32])?.is_some())
}

/// Returns a secret that the servers on this state database share.
pub(super) async fn server_secret(store: &StateStore, name: &'static str) -> Result<[u8; 32], Failure> {
    let mut random = [0; 32];
    OsRandomness.fill(&mut random);
    store.server_secret(name, random).await.map_err(|error| super::unwritable(&error))
}

fn tokens(
    config: &Config,
    key: Option<SigningKey>,
    external: Option<Arc<ExternalTokens>>,
    proof_key: [u8; 32],
) -> Result<Option<Arc<dyn Tokens>>, Failure> {
    let own = key.map(|key| own_tokens(config, key, proof_key)).transpose()?;
    Ok(match (own, external) {
        (Some(own), Some(external)) => Some(Arc::new(Issuers::new(own, external))),
        (Some(own), None) => Some(Arc::new(own)),
        (None, Some(external)) => Some(external),
        (None, None) => None,
    })
}

fn own_tokens(config: &Config, key: SigningKey, proof_key: [u8; 32]) -> Result<Jwt, Failure> {
    let jwt = &config.security.jwt;
    let (issuer, audience) = jwt.own_names();
    // Claims are read from tokens of other signers; this server's own tokens name a session.
    let mapping = mapping(&jwt.claims, &jwt.scope_roles, config.security.tenant_claim.as_deref());
    let settings = JwtSettings {
        key,
        issuer: issuer.to_owned(),
        audience: audience.to_owned(),
        verify_exp: jwt.verify_exp,
        verify_iat: jwt.verify_iat,
        mapping: mapping.clone(),
    };
    let tokens = Jwt::new(settings).map_err(|error| Failure::new(format!("security.jwt: {error}")))?;
    Ok(match jwt.application_tokens {
        true => tokens.with_applications(applications(jwt, mapping), proof_key),
        false => tokens,
    })
}

/// Returns the requirements on tokens of applications. If a provider is configured, the settings `issuer` and
/// `audience` describe the provider's tokens, and tokens of applications name `own_issuer`.
fn applications(jwt: &JwtConfig, mapping: ClaimsMapping) -> ApplicationSettings {
    let own = jwt.own_issuer.clone();
    let (issuer, audience) =
        if jwt.is_external() { (own.clone(), own) } else { (jwt.issuer.clone(), jwt.audience.clone()) };
    ApplicationSettings {
        issuer,
        audience,
        default_audience: jwt.own_names().1.to_owned(),
        max_age_seconds: jwt.max_token_age,
        mapping,
        has_scopes_claim: jwt.claims.scopes.is_some(),
    }
}

fn key(jwt: &JwtConfig, root: &Path) -> Result<SigningKey, Failure> {
    if jwt.algorithm == Some(JwtAlgorithm::Rs256) {
        let private = jwt.private_key_path.as_ref().map(|path| read_key(&root.join(path), true)).transpose()?;
        let public = jwt.public_key_path.as_deref().unwrap_or_default();
        return Ok(SigningKey::Rs256 { private, public: read_key(&root.join(public), false)? });
    }
    let secret = jwt.secret.as_ref().map(|secret| secret.expose().as_bytes().to_vec());
    Ok(SigningKey::Hs256 { secret: secret.unwrap_or_default() })
}

fn read_key(path: &PathBuf, is_private: bool) -> Result<Vec<u8>, Failure> {
    let failed =
        |error: std::io::Error| Failure::new(format!("the key file {} cannot be read: {error}", path.display()));
    #[cfg(unix)]
    if is_private {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            let message = format!("the private key {} can be read by others (mode {:o})", path.display(), mode & 0o777);
            return Err(Failure::new(message).hint(format!("Run chmod 600 {}", path.display())));
        }
    }
    std::fs::read(path).map_err(failed)
}

pub(super) fn mapping(names: &ClaimNames, roles: &ScopeRoleNames, tenant: Option<&str>) -> ClaimsMapping {
    let texts = |all: &[String]| all.iter().map(|text| text.as_str().into()).collect();
    let default = ClaimsMapping::default();
    let path = |name: &Option<String>, default: ClaimPath| name.as_deref().map_or(default, ClaimPath::new);
    ClaimsMapping {
        user_id: path(&names.user_id, default.user_id),
        email: path(&names.email, default.email),
        roles: path(&names.roles, default.roles),
        groups: path(&names.groups, default.groups),
        attributes: path(&names.attributes, default.attributes),
        scopes: names.scopes.as_deref().map_or(default.scopes, |name| vec![ClaimPath::new(name)]),
        tenant: Some(ClaimPath::new(tenant.unwrap_or("tenant"))),
        scope_roles: ScopeRoles { read: texts(&roles.read), write: texts(&roles.write), admin: texts(&roles.admin) },
    }
}
