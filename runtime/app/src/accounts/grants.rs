//! The rights of an account: its scopes, and the caller that policies see.
//!
//! In: the fields of a request. Out: the [`Rights`] that an access token can hold, or a [`FieldProblem`].

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, AuthMethod, SecurityContext};

use super::AccountError;
use super::fields::{FieldProblem, check_scopes, check_text};
use crate::ports::credentials::Rights;
use crate::security::Scopes;

/// The largest size of a caller: its id, email, roles, groups and attributes, as [`caller_bytes`] counts them.
const MAX_CALLER_BYTES: usize = 8 * 1_024;
/// The size that is added to each string for its separators.
const ITEM_BYTES: usize = 8;

/// The rights of a new account.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grants {
    pub scopes: Scopes,
    /// The user id that policies see; `None` for the account's own id.
    pub user_id: Option<Arc<str>>,
    pub email: Option<Arc<str>>,
    pub roles: Vec<Arc<str>>,
    pub groups: Vec<Arc<str>>,
    pub attributes: BTreeMap<Arc<str>, Attribute>,
    pub tenant: Option<Arc<str>>,
}

/// A change of a value that may be absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Change<T> {
    #[default]
    Keep,
    Remove,
    Set(T),
}

impl<T> Change<T> {
    pub(crate) fn apply(self, present: Option<T>) -> Option<T> {
        match self {
            Change::Keep => present,
            Change::Remove => None,
            Change::Set(value) => Some(value),
        }
    }
}

/// A change of rights. `None` leaves a field unchanged. A list or mapping replaces the current list or mapping.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GrantChange {
    pub scopes: Option<Scopes>,
    /// [`Change::Remove`] restores the account's own id.
    pub user_id: Change<Arc<str>>,
    pub email: Change<Arc<str>>,
    pub roles: Option<Vec<Arc<str>>>,
    pub groups: Option<Vec<Arc<str>>>,
    pub attributes: Option<BTreeMap<Arc<str>, Attribute>>,
    pub tenant: Change<Arc<str>>,
}

impl Grants {
    /// Returns the rights. `own_id` is the user id for policies if the grants name none.
    pub(super) fn into_rights(self, own_id: Arc<str>) -> Result<Rights, AccountError> {
        let Grants { scopes, user_id, email, roles, groups, attributes, tenant } = self;
        let user_id = user_id.unwrap_or(own_id);
        let caller = SecurityContext { user_id, email, roles, groups, attributes, auth_method: AuthMethod::default() };
        checked(Rights { scopes, caller, tenant })
    }
}

impl GrantChange {
    pub(super) fn apply(self, present: Rights, own_id: Arc<str>) -> Result<Rights, AccountError> {
        let GrantChange { scopes, user_id, email, roles, groups, attributes, tenant } = self;
        let Rights { scopes: present_scopes, caller, tenant: present_tenant } = present;
        let caller = SecurityContext {
            user_id: user_id.apply(Some(caller.user_id)).unwrap_or(own_id),
            email: email.apply(caller.email),
            roles: roles.unwrap_or(caller.roles),
            groups: groups.unwrap_or(caller.groups),
            attributes: attributes.unwrap_or(caller.attributes),
            auth_method: caller.auth_method,
        };
        let scopes = scopes.unwrap_or(present_scopes);
        checked(Rights { scopes, caller, tenant: tenant.apply(present_tenant) })
    }
}

fn checked(rights: Rights) -> Result<Rights, AccountError> {
    let Rights { scopes, caller, tenant } = &rights;
    check_scopes(*scopes)?;
    check_text("user_id", &caller.user_id)?;
    let optional = [("email", &caller.email), ("tenant", tenant)];
    optional.into_iter().filter_map(|(field, text)| Some((field, text.as_deref()?))).try_for_each(check)?;
    caller.roles.iter().map(|role| ("roles", &**role)).try_for_each(check)?;
    caller.groups.iter().map(|group| ("groups", &**group)).try_for_each(check)?;
    caller.attributes.keys().map(|name| ("attributes", &**name)).try_for_each(check)?;
    if let Some((name, _)) = caller.attributes.iter().find(|(_, values)| values.values().contains(&Value::Null)) {
        return Err(FieldProblem::NullAttribute { name: name.clone() }.of("attributes"));
    }
    let found = caller_bytes(caller);
    if found > MAX_CALLER_BYTES {
        return Err(FieldProblem::TooLarge { found, max: MAX_CALLER_BYTES }.of("attributes"));
    }
    Ok(rights)
}

/// Returns the size of a caller in bytes: its strings and values, each with [`ITEM_BYTES`] for separators.
fn caller_bytes(caller: &SecurityContext) -> usize {
    let text = |text: &Arc<str>| text.len() + ITEM_BYTES;
    let value = |value: &Value| match value {
        Value::Text(text) | Value::Decimal(text) => text.len() + ITEM_BYTES,
        _ => 2 * ITEM_BYTES,
    };
    let attributes = caller
        .attributes
        .iter()
        .flat_map(|(name, attribute)| std::iter::once(text(name)).chain(attribute.values().iter().map(value)));
    let texts = std::iter::once(&caller.user_id).chain(&caller.email).chain(&caller.roles).chain(&caller.groups);
    texts.map(text).chain(attributes).sum()
}

fn check((field, text): (&'static str, &str)) -> Result<(), AccountError> {
    check_text(field, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Arc<str> {
        text.into()
    }

    fn reader() -> Grants {
        Grants {
            scopes: Scopes::READ,
            roles: vec!["analyst".into()],
            email: Some("a@b.example".into()),
            ..Grants::default()
        }
    }

    #[test]
    fn user_id_defaults_to_the_account() {
        assert_eq!(reader().into_rights("ada".into()).unwrap().caller.user_id, text("ada"));
        let other = Grants { user_id: Some("u1".into()), ..reader() };
        assert_eq!(other.into_rights("ada".into()).unwrap().caller.user_id, text("u1"));
    }

    #[test]
    fn change_replaces_only_the_named_fields() {
        let before = reader().into_rights("ada".into()).unwrap();
        let same = GrantChange::default().apply(before.clone(), "ada".into()).unwrap();
        assert_eq!(same, before);
        let change = GrantChange {
            user_id: Change::Set("u1".into()),
            email: Change::Remove,
            roles: Some(Vec::new()),
            tenant: Change::Set("north".into()),
            ..GrantChange::default()
        };
        let after = change.apply(before.clone(), "ada".into()).unwrap();
        assert_eq!((after.scopes, after.tenant.clone()), (Scopes::READ, Some("north".into())));
        let caller = SecurityContext { user_id: "u1".into(), ..SecurityContext::default() };
        assert_eq!(after.caller, caller);
        let back = GrantChange { user_id: Change::Remove, ..GrantChange::default() };
        assert_eq!(back.apply(after, "ada".into()).unwrap().caller.user_id, text("ada"));
    }

    #[test]
    fn rights_that_do_not_fit_in_a_token_are_rejected() {
        let null = BTreeMap::from([(text("a"), Attribute::Many(vec![Value::Integer(1), Value::Null]))]);
        let large = BTreeMap::from([(text("a"), Attribute::One(Value::Text("x".repeat(9_000).into())))]);
        for (grants, field) in [
            (Grants { scopes: Scopes::default(), ..reader() }, "scopes"),
            (Grants { user_id: Some("".into()), ..reader() }, "user_id"),
            (Grants { email: Some("a\nb".into()), ..reader() }, "email"),
            (Grants { tenant: Some("".into()), ..reader() }, "tenant"),
            (Grants { roles: vec!["".into()], ..reader() }, "roles"),
            (Grants { groups: vec!["g".repeat(257).into()], ..reader() }, "groups"),
            (Grants { attributes: null, ..reader() }, "attributes"),
            (Grants { attributes: large, ..reader() }, "attributes"),
            (
                Grants { attributes: BTreeMap::from([(text(""), Attribute::One(Value::Integer(1)))]), ..reader() },
                "attributes",
            ),
        ] {
            let found = grants.clone().into_rights("ada".into());
            assert!(matches!(found, Err(AccountError::Invalid { field: named, .. }) if named == field), "{grants:?}");
        }
    }
}
