//! The mapping of claims to a caller.
//!
//! In: the claims of a verified token, and the names of the claims to read. Out: a caller and scopes. A claim of
//! another JSON type counts as missing: unreadable roles give no rights. Attributes are strings, numbers, booleans, or
//! lists of them. A deeper value is left out, or is null inside a list. An unverified e-mail address is left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::{AuthMethod, SecurityContext};
use terrane_json::caller::attribute_from_claim;

/// The claims of a verified token.
pub(crate) type Claims = Map<String, Json>;

/// The path of a claim, such as `realm_access.roles`: a top-level claim, or one inside objects. A top-level claim whose
/// name contains the dots takes precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimPath(Arc<str>);

impl ClaimPath {
    pub fn new(path: &str) -> Self {
        ClaimPath(path.into())
    }

    fn find<'c>(&self, claims: &'c Claims) -> Option<&'c Json> {
        if let Some(found) = claims.get(&*self.0) {
            return Some(found);
        }
        let mut parts = self.0.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |inside, part| inside.as_object()?.get(part))
    }

    /// Returns true if the path leads through a claim that is not an object, so the claim cannot be looked up.
    fn is_blocked(&self, claims: &Claims) -> bool {
        let mut parts: Vec<&str> = self.0.split('.').collect();
        parts.pop();
        let mut inside = Some(claims);
        for part in parts {
            match inside.and_then(|inside| inside.get(part)) {
                None | Some(Json::Null) => return false,
                Some(Json::Object(next)) => inside = Some(next),
                Some(_) => return !claims.contains_key(&*self.0),
            }
        }
        false
    }

    /// Returns true if the claim has this shape, or is missing or null. Returns false if the path to it is blocked.
    fn has_shape(&self, claims: &Claims, is_shape: fn(&Json) -> bool) -> bool {
        let found = self.find(claims).filter(|found| !found.is_null());
        found.map_or_else(|| !self.is_blocked(claims), is_shape)
    }
}

/// The names of the claims to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimsMapping {
    pub user_id: ClaimPath,
    pub email: ClaimPath,
    pub roles: ClaimPath,
    pub groups: ClaimPath,
    pub attributes: ClaimPath,
    /// The paths of the claims that may contain scopes. The first one present is used.
    pub scopes: Vec<ClaimPath>,
    pub tenant: Option<ClaimPath>,
    pub scope_roles: ScopeRoles,
}

/// The roles that give their holders a scope, in addition to the scopes of the token itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopeRoles {
    pub read: Vec<Arc<str>>,
    pub write: Vec<Arc<str>>,
    pub admin: Vec<Arc<str>>,
}

impl ScopeRoles {
    fn of<'r>(&'r self, roles: &'r [Arc<str>]) -> impl Iterator<Item = Scope> + 'r {
        let lists = [(Scope::Read, &self.read), (Scope::Write, &self.write), (Scope::Admin, &self.admin)];
        lists.into_iter().filter(|(_, list)| list.iter().any(|role| roles.contains(role))).map(|(scope, _)| scope)
    }
}

impl Default for ClaimsMapping {
    fn default() -> Self {
        ClaimsMapping {
            user_id: ClaimPath::new("sub"),
            email: ClaimPath::new("email"),
            roles: ClaimPath::new("roles"),
            groups: ClaimPath::new("groups"),
            attributes: ClaimPath::new("attributes"),
            scopes: vec![ClaimPath::new("scope"), ClaimPath::new("scp")],
            tenant: None,
            scope_roles: ScopeRoles::default(),
        }
    }
}

impl ClaimsMapping {
    /// Returns the caller that the claims describe; `None` if no claim names the caller.
    pub(crate) fn caller(&self, claims: &Claims) -> Option<SecurityContext> {
        let user_id = self.user_id.find(claims)?.as_str().filter(|text| !text.is_empty())?;
        self.is_proven_name(claims).then(|| self.caller_named(user_id.into(), claims))
    }

    /// Returns the subject of a provider's claims. Some providers use numbers.
    pub(crate) fn subject(&self, claims: &Claims) -> Option<String> {
        if !self.is_proven_name(claims) {
            return None;
        }
        match self.user_id.find(claims)? {
            Json::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Json::Number(number) => number.as_u64().map(|number| number.to_string()),
            _ => None,
        }
    }

    /// Returns false if the user id is the e-mail address and the address is not verified.
    fn is_proven_name(&self, claims: &Claims) -> bool {
        self.user_id != self.email || is_verified(claims)
    }

    pub(crate) fn caller_named(&self, user_id: Arc<str>, claims: &Claims) -> SecurityContext {
        let text = |path: &ClaimPath| path.find(claims).and_then(Json::as_str).filter(|text| !text.is_empty());
        let attributes = self.attributes.find(claims).and_then(Json::as_object);
        let attributes = attributes.into_iter().flatten();
        let attributes =
            attributes.filter_map(|(name, value)| Some((name.as_str().into(), attribute_from_claim(value)?)));
        SecurityContext {
            user_id,
            email: text(&self.email).filter(|_| is_verified(claims)).map(Into::into),
            roles: texts(self.roles.find(claims)),
            groups: texts(self.groups.find(claims)),
            attributes: attributes.collect::<BTreeMap<_, _>>(),
            auth_method: AuthMethod::Jwt,
        }
    }

    /// Returns the scopes that the claims name; `None` if they name none.
    pub(crate) fn scopes(&self, claims: &Claims) -> Option<Scopes> {
        self.scopes_among(claims, &Scope::ALL)
    }

    /// Returns the scopes in the claims that are also in `offered`, and the scopes that the caller's roles give.
    pub(crate) fn scopes_among(&self, claims: &Claims, offered: &[Scope]) -> Option<Scopes> {
        let words = texts(self.scopes.iter().find_map(|path| path.find(claims)));
        let roles = texts(self.roles.find(claims));
        let named = words.iter().flat_map(|words| words.split(' ')).filter_map(Scope::named);
        let named = named.filter(|scope| offered.contains(scope));
        let scopes: Scopes = named.chain(self.scope_roles.of(&roles)).collect();
        (scopes != Scopes::default()).then_some(scopes)
    }

    /// Returns the first mapped claim with an unsupported JSON type. Such a claim would otherwise count as missing, and
    /// a missing role can give more rights than a present one.
    pub(crate) fn unreadable(&self, claims: &Claims) -> Option<&'static str> {
        let text: fn(&Json) -> bool = Json::is_string;
        let checked = [
            (Some(&self.user_id), text, "the user id is not a string"),
            (Some(&self.email), text, "the email is not a string"),
            (Some(&self.roles), is_words, "the roles are not a list of strings"),
            (Some(&self.groups), is_words, "the groups are not a list of strings"),
            (Some(&self.attributes), is_attributes, "the attributes are not an object of values and lists of values"),
            (self.tenant.as_ref(), text, "the tenant is not a string"),
        ];
        let wrong =
            checked.into_iter().find(|(path, is_shape, _)| path.is_some_and(|path| !path.has_shape(claims, *is_shape)));
        let scopes = || self.scopes.iter().any(|path| !path.has_shape(claims, is_words));
        wrong.map(|(_, _, why)| why).or_else(|| scopes().then_some("the scopes are not a list of strings"))
    }

    pub(crate) fn tenant(&self, claims: &Claims) -> Option<Arc<str>> {
        self.tenant.as_ref()?.find(claims)?.as_str().filter(|text| !text.is_empty()).map(Into::into)
    }
}

/// Returns true if `email_verified` is missing or true. Some providers write the boolean as a string.
fn is_verified(claims: &Claims) -> bool {
    match claims.get("email_verified") {
        None | Some(Json::Bool(true)) => true,
        Some(Json::String(text)) => text == "true",
        Some(_) => false,
    }
}

fn is_words(claim: &Json) -> bool {
    claim.is_string() || claim.as_array().is_some_and(|all| all.iter().all(Json::is_string))
}

fn is_attributes(claim: &Json) -> bool {
    let is_scalar = |value: &Json| !value.is_object() && !value.is_array();
    let is_value = |value: &Json| value.as_array().map_or(is_scalar(value), |all| all.iter().all(is_scalar));
    claim.as_object().is_some_and(|all| all.values().all(is_value))
}

/// Reads a list of strings, or one string.
fn texts(claim: Option<&Json>) -> Vec<Arc<str>> {
    match claim {
        Some(Json::String(one)) => vec![one.as_str().into()],
        Some(Json::Array(all)) => all.iter().filter_map(Json::as_str).map(Into::into).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use terrane_compiler::types::Value;

    use super::*;

    fn claims(json: &str) -> Claims {
        serde_json::from_str(json).expect("an object")
    }

    #[test]
    fn nested_claims_are_found() {
        let mapping = ClaimsMapping {
            roles: ClaimPath::new("realm_access.roles"),
            groups: ClaimPath::new("a.b"),
            ..ClaimsMapping::default()
        };
        let claims =
            claims(r#"{"sub": "u", "realm_access": {"roles": ["x", 5, "y"]}, "a.b": "one", "a": {"b": "two"}}"#);
        let caller = mapping.caller(&claims).expect("a caller");
        assert_eq!(caller.roles, ["x".into(), "y".into()]);
        assert_eq!(caller.groups, ["one".into()]);
    }

    #[test]
    fn malformed_roles_and_attributes_are_ignored() {
        let mapping = ClaimsMapping::default();
        let caller = mapping
            .caller(&claims(
                r#"{"sub": "u", "roles": {"admin": true}, "attributes": {"a": [1, {}], "b": {"c": 1}, "d": [1, "x"], "e": null}}"#,
            ))
            .expect("a caller");
        assert!(caller.roles.is_empty());
        assert_eq!(caller.attributes.keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "d"]);
        assert_eq!(caller.attributes["a"].values(), [Value::Integer(1), Value::Null]);
        for unnamed in ["{}", r#"{"sub": ""}"#, r#"{"sub": 5}"#, r#"{"sub": ["u"]}"#] {
            assert!(mapping.caller(&claims(unnamed)).is_none(), "{unnamed}");
        }
    }

    #[test]
    fn unverified_addresses_name_no_caller() {
        let by_address = ClaimsMapping { user_id: ClaimPath::new("email"), ..ClaimsMapping::default() };
        for (verified, is_believed) in
            [("", true), (r#","email_verified":true"#, true), (r#","email_verified":"true""#, true)]
                .into_iter()
                .chain([r#"false"#, r#""false""#, "0", "null"].map(|word| (word, false)))
        {
            let verified = if is_believed { verified.to_owned() } else { format!(r#","email_verified":{verified}"#) };
            let claims = claims(&format!(r#"{{"sub":"u","email":"a@b.c"{verified}}}"#));
            let caller = ClaimsMapping::default().caller(&claims).expect("named by another claim");
            assert_eq!(caller.email.is_some(), is_believed, "{verified}");
            assert_eq!(by_address.caller(&claims).is_some(), is_believed, "{verified}");
            assert_eq!(by_address.subject(&claims).is_some(), is_believed, "{verified}");
        }
    }

    #[test]
    fn large_numbers_keep_their_digits() {
        let caller = ClaimsMapping::default()
            .caller(&claims(r#"{"sub": "u", "attributes": {"id": 18446744073709551615}}"#))
            .expect("a caller");
        assert_eq!(format!("{:?}", caller.attributes["id"]), "One(Decimal(\"18446744073709551615\"))");
    }

    #[test]
    fn unknown_scopes_are_ignored() {
        let scopes = |json| ClaimsMapping::default().scopes(&claims(json)).map(Scopes::names);
        assert_eq!(scopes(r#"{"scope": "openid write read"}"#), Some(vec!["read", "write"]));
        assert_eq!(scopes(r#"{"scope": ["read"]}"#), Some(vec!["read"]));
        assert_eq!(scopes(r#"{"scope": "openid"}"#), None);
        assert_eq!(scopes("{}"), None);
        assert_eq!(scopes(r#"{"scp": "write"}"#), Some(vec!["write"]));
        assert_eq!(scopes(r#"{"scope": "openid", "scp": "admin"}"#), None, "the first that is there counts");
    }

    #[test]
    fn single_string_is_read_as_a_list() {
        let mapping = ClaimsMapping::default();
        let claims = claims(r#"{"sub": "u", "roles": "an analyst, boss", "groups": "staff"}"#);
        assert_eq!(mapping.unreadable(&claims), None);
        let caller = mapping.caller(&claims).unwrap();
        // A string is never split: a name may contain a space or a comma.
        assert_eq!((&caller.roles, &caller.groups), (&vec!["an analyst, boss".into()], &vec!["staff".into()]));
    }

    #[test]
    fn roles_grant_the_mapped_scopes() {
        let scope_roles = ScopeRoles { admin: vec!["boss".into()], ..ScopeRoles::default() };
        let mapping = ClaimsMapping { scope_roles, ..ClaimsMapping::default() };
        let scopes = |json| mapping.scopes(&claims(json)).map(Scopes::names);
        assert_eq!(scopes(r#"{"roles": ["boss"]}"#), Some(vec!["admin"]));
        assert_eq!(scopes(r#"{"roles": ["boss"], "scope": "read"}"#), Some(vec!["read", "admin"]));
        assert_eq!(scopes(r#"{"roles": ["admin", "Boss"]}"#), None);
    }

    #[test]
    fn unverified_addresses_are_left_out() {
        let email = |json| ClaimsMapping::default().caller(&claims(json)).expect("a caller").email;
        assert_eq!(email(r#"{"sub": "u", "email": "a@b.example"}"#).as_deref(), Some("a@b.example"));
        assert_eq!(email(r#"{"sub": "u", "email": "a@b.example", "email_verified": false}"#), None);
    }
}
