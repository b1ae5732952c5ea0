//! The identity that policies are evaluated against.
//!
//! In: claims, read at the edge. Out: an argument of the compiler. Not here: tokens and keys, and the policies that
//! apply to a caller (`access`).

pub(crate) mod attribute_value;
mod auth_method;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use auth_method::AuthMethod;

/// The caller of one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SecurityContext {
    pub user_id: Arc<str>,
    pub email: Option<Arc<str>>,
    pub roles: Vec<Arc<str>>,
    pub groups: Vec<Arc<str>>,
    pub attributes: BTreeMap<Arc<str>, Attribute>,
    pub auth_method: AuthMethod,
}

/// A custom attribute: one value or several.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    One(crate::types::Value),
    Many(Vec<crate::types::Value>),
}

impl Attribute {
    /// Returns all values of the attribute. A value that could not be read is null.
    pub fn values(&self) -> &[crate::types::Value] {
        match self {
            Attribute::One(value) => std::slice::from_ref(value),
            Attribute::Many(values) => values,
        }
    }
}
