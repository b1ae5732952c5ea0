//! The current rights of a caller whose work runs later: a job or a monitor.
//!
//! In: the caller as it was verified when the work was stored. Out: the caller with its current rights, or `None` if
//! the account is gone. Rights of keys and users are looked up each time, so that work never runs with more rights than
//! its owner has.

use jiff::Timestamp;
use terrane_compiler::SecurityContext;

use crate::ports::credentials::Credentials;
use crate::ports::jobs::OwnerIdentity;
use crate::ports::store::StoreError;

/// Returns the owner with its current rights; `None` if the key or user is revoked, expired, disabled or deleted. If
/// the account of a caller belongs to another system, its rights stay as they were verified.
///
/// # Errors
/// The state database cannot be read.
pub(crate) async fn current_rights(
    credentials: &dyn Credentials,
    owner: &OwnerIdentity,
    now: Timestamp,
) -> Result<Option<OwnerIdentity>, StoreError> {
    let auth_method = owner.caller.auth_method;
    if let Some(id) = owner.credential.strip_prefix("key:") {
        let key = credentials.key(id).await?;
        let key = key.filter(|key| key.revoked_at.is_none() && key.expires_at.is_none_or(|end| end > now));
        return Ok(key.map(|key| OwnerIdentity {
            caller: SecurityContext { auth_method, ..key.caller },
            scopes: key.scopes,
            tenant: key.tenant,
            credential: owner.credential.clone(),
        }));
    }
    if let Some(id) = owner.credential.strip_prefix("session:") {
        // A session that is not found ended long ago, because only such sessions are deleted.
        let Some(session) = credentials.session(id).await? else { return Ok(None) };
        if session.is_guest {
            return Ok(Some(owner.clone()));
        }
        let user = credentials.user(&session.username).await?;
        return Ok(user.filter(|user| user.disabled_at.is_none()).map(|user| OwnerIdentity {
            caller: SecurityContext { auth_method, ..user.caller },
            scopes: user.scopes,
            tenant: user.tenant,
            credential: owner.credential.clone(),
        }));
    }
    Ok(Some(owner.clone()))
}
