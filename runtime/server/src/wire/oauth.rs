//! What comes back from an identity provider, in the address (RFC 6749, section 4.1.2).
//!
//! Providers add parameters of their own, which are ignored; one of ours that stands twice is refused.

use terrane_app::security::oauth::Callback;

use super::fields::{Misfit, Path};

/// The parameters of a callback.
#[derive(Debug, Default)]
pub(crate) struct CallbackParameters {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    issuer: Option<String>,
}

impl CallbackParameters {
    pub(crate) fn read(query: &str) -> Result<Self, Misfit> {
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
                // Not what stands there: it may be a code.
                return Err(Path::ROOT.field(&name).wrong_word("twice", "given once"));
            }
        }
        Ok(read)
    }

    pub(crate) fn with<'a>(&'a self, binding: Option<&'a str>) -> Callback<'a> {
        Callback {
            state: self.state.as_deref(),
            code: self.code.as_deref(),
            error: self.error.as_deref(),
            issuer: self.issuer.as_deref(),
            binding,
        }
    }
}
