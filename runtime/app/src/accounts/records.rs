//! Details of accounts for audit records and for responses.
//!
//! In: keys, users and revocations. Out: their fields without secrets and hashes.

use jiff::Timestamp;
use terrane_compiler::{Attribute, SecurityContext};

use super::key_state::KeyState;
use crate::ports::audit::{Detail, Details};
use crate::ports::credentials::{ApiKey, User};

/// Returns the fields of a key, with its state at the time `now`.
pub fn key_details(key: &ApiKey, now: Timestamp) -> Details {
    let Caller { user_id, email, roles, groups, attributes } = caller(&key.caller);
    Details::fields([
        ("id", (&*key.id).into()),
        ("name", (&*key.name).into()),
        ("scopes", key.scopes.names().into_iter().collect()),
        ("user_id", user_id),
        ("email", email),
        ("roles", roles),
        ("groups", groups),
        ("attributes", attributes),
        ("tenant", key.tenant.as_deref().into()),
        ("created_at", key.created_at.to_string().into()),
        ("expires_at", key.expires_at.map(|at| at.to_string()).into()),
        ("state", KeyState::at(key, now).as_str().into()),
    ])
}

/// Returns the fields of a user.
pub fn user_details(user: &User) -> Details {
    Details::fields(user_fields(user))
}

/// Returns the fields of a user whose password was changed.
pub(super) fn user_with_password(user: &User) -> Details {
    Details::fields(user_fields(user).into_iter().chain([("password_changed", true.into())]))
}

/// Returns the record of a revocation of tokens.
pub(super) fn revocation(revoked_at: Timestamp) -> Details {
    Details::fields([("revoked_at", revoked_at.to_string().into())])
}

fn user_fields(user: &User) -> [(&'static str, Detail); 10] {
    let Caller { user_id, email, roles, groups, attributes } = caller(&user.caller);
    [
        ("username", (&*user.username).into()),
        ("user_id", user_id),
        ("email", email),
        ("scopes", user.scopes.names().into_iter().collect()),
        ("roles", roles),
        ("groups", groups),
        ("attributes", attributes),
        ("tenant", user.tenant.as_deref().into()),
        ("created_at", user.created_at.to_string().into()),
        ("disabled_at", user.disabled_at.map(|at| at.to_string()).into()),
    ]
}

/// The stored fields of a caller.
struct Caller {
    user_id: Detail,
    email: Detail,
    roles: Detail,
    groups: Detail,
    attributes: Detail,
}

fn caller(caller: &SecurityContext) -> Caller {
    let attributes = caller.attributes.iter().map(|(name, attribute)| {
        let detail = match attribute {
            Attribute::One(value) => Detail::Value(value.clone()),
            Attribute::Many(values) => Detail::List(values.iter().cloned().map(Detail::Value).collect()),
        };
        (name.clone(), detail)
    });
    Caller {
        user_id: (&*caller.user_id).into(),
        email: caller.email.as_deref().into(),
        roles: caller.roles.iter().map(|role| &**role).collect(),
        groups: caller.groups.iter().map(|group| &**group).collect(),
        attributes: Detail::Fields(attributes.collect()),
    }
}
