//! Credentials as the configuration says: keys in the state database, tokens by a secret or key files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::clock::Clock;
use terrane_app::ports::tokens::Tokens;
use terrane_app::security::{Authenticator, Journal, SecurityPorts, SessionSettings};
use terrane_identity::{Argon2Passwords, ClaimPath, ClaimsMapping, Jwt, JwtSettings, OsRandomness, SigningKey};
use terrane_store::StateStore;

use crate::config::{ClaimNames, Config, JwtAlgorithm, JwtConfig};
use crate::failure::Failure;
use crate::project::Project;

/// What finds out who calls, over an open state database.
///
/// # Errors
/// A key file can't be read or used, or others may read it.
pub(super) fn open(
    project: &Project,
    store: &Arc<StateStore>,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<Authenticator>, Arc<Journal>), Failure> {
    let config = &project.config;
    let journal = Arc::new(Journal::new(store.clone(), clock.clone()));
    let ports = SecurityPorts {
        credentials: store.clone(),
        tokens: tokens(config, project.folder.root())?,
        passwords: Arc::new(Argon2Passwords::default()),
        randomness: Arc::new(OsRandomness),
        clock: clock.clone(),
        journal: journal.clone(),
    };
    let settings = SessionSettings {
        access_lifetime: Duration::from_secs(config.security.jwt.access_seconds),
        refresh_lifetime: Duration::from_secs(config.security.jwt.refresh_seconds),
        accepts_keys: config.security.api_keys,
    };
    Ok((Arc::new(Authenticator::new(ports, settings)), journal))
}

pub(super) fn tokens(config: &Config, root: &Path) -> Result<Option<Arc<dyn Tokens>>, Failure> {
    let jwt = &config.security.jwt;
    if !jwt.is_on() {
        return Ok(None);
    }
    let settings = JwtSettings {
        key: key(jwt, root)?,
        issuer: jwt.issuer.clone(),
        audience: jwt.audience.clone(),
        verify_exp: jwt.verify_exp,
        verify_iat: jwt.verify_iat,
        mapping: mapping(&jwt.claims, config.security.tenant_claim.as_deref()),
    };
    let jwt = Jwt::new(settings).map_err(|error| Failure::new(format!("security.jwt: {error}")))?;
    Ok(Some(Arc::new(jwt)))
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
        |error: std::io::Error| Failure::new(format!("the key file {} can't be read: {error}", path.display()));
    #[cfg(unix)]
    if is_private {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            let message = format!("the private key {} can be read by others (mode {:o})", path.display(), mode & 0o777);
            return Err(Failure::new(message).hint(format!("chmod 600 {}", path.display())));
        }
    }
    std::fs::read(path).map_err(failed)
}

fn mapping(names: &ClaimNames, tenant: Option<&str>) -> ClaimsMapping {
    let default = ClaimsMapping::default();
    let path = |name: &Option<String>, default: ClaimPath| name.as_deref().map_or(default, ClaimPath::new);
    ClaimsMapping {
        user_id: path(&names.user_id, default.user_id),
        email: path(&names.email, default.email),
        roles: path(&names.roles, default.roles),
        groups: path(&names.groups, default.groups),
        attributes: path(&names.attributes, default.attributes),
        scopes: path(&names.scopes, default.scopes),
        tenant: Some(ClaimPath::new(tenant.unwrap_or("tenant"))),
    }
}
