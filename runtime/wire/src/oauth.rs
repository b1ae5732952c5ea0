//! Reads the response of an identity provider in the address of the callback (RFC 6749, section 4.1.2).
//!
//! In: a query string. Out: its parameters. Providers add other parameters, which are ignored. A known parameter that
//! occurs twice is rejected.

use terrane_app::security::oauth::Callback;

use crate::fields::{FieldError, Path};

/// The parameters of a callback.
#[derive(Debug, Default)]
pub struct CallbackParameters {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    issuer: Option<String>,
}

impl CallbackParameters {
    /// Reads the query string.
    ///
    /// # Errors
    /// A parameter occurs twice.
    pub fn read(query: &str) -> Result<Self, FieldError> {
        let mut read = CallbackParameters::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let slot = match &*name {
                "state" => &mut read.state,
                "code" => &mut read.code,
                "error" => &mut read.error,
                "iss" => &mut read.issuer,
                _ => continue,
            };
            if slot.replace(value.into_owned()).is_some() {
                // The value is not repeated, since it may be a code.
                return Err(Path::ROOT.field(&name).duplicate());
            }
        }
        Ok(read)
    }

    pub fn with<'a>(&'a self, binding: Option<&'a str>) -> Callback<'a> {
        Callback {
            state: self.state.as_deref(),
            code: self.code.as_deref(),
            error: self.error.as_deref(),
            issuer: self.issuer.as_deref(),
            binding,
        }
    }
}
