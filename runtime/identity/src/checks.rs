//! Requirements on every token, independent of its issuer.
//!
//! In: the header and the claims of a token. Out: a [`TokenFault`] that names the requirement that the token violates
//! (RFC 8725, RFC 9068). `iss` and `aud` must be present and ours; times are checked against the given clock. Not here:
//! signatures (`jwt`, `signed`).

use jiff::Timestamp;
use jsonwebtoken::Header;
use serde_json::Value as Json;
use terrane_app::ports::tokens::TokenFault;
use terrane_app::security::CLOCK_TOLERANCE;

use crate::claims::Claims;

/// The largest size of a token in bytes. Longer tokens are refused without being parsed.
pub(crate) const MAX_TOKEN_BYTES: usize = 16 * 1_024;
/// The accepted difference between this clock and the issuer's.
const LEEWAY_SECONDS: i64 = CLOCK_TOLERANCE.as_secs() as i64;

/// The required claims of one issuer.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) issuer: String,
    pub(crate) audience: String,
    pub(crate) verify_exp: bool,
    pub(crate) verify_iat: bool,
}

pub(crate) fn invalid(why: &'static str) -> TokenFault {
    TokenFault::Invalid { why }
}

/// Returns the header of a token. Fails if the token is too long, or requires an extension that this server lacks.
pub(crate) fn header_of(token: &str) -> Result<Header, TokenFault> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(invalid("it is too long"));
    }
    if token.bytes().filter(|byte| *byte == b'.').count() != 2 {
        return Err(invalid("it is neither an API key (`trn_…`) nor an access token"));
    }
    let header = jsonwebtoken::decode_header(token)
        .map_err(|_| invalid("it is neither an API key (`trn_…`) nor an access token"))?;
    // No extension that `crit` could name is supported, among them unencoded payloads (RFC 7797).
    if header.crit.is_some() || header.extras.inner().contains_key("b64") {
        return Err(invalid("it requires extensions that this server does not support"));
    }
    if header.enc.is_some() || header.zip.is_some() {
        return Err(invalid("it is encrypted or compressed"));
    }
    if header.cty.is_some() {
        return Err(invalid("it contains another token"));
    }
    Ok(header)
}

/// Returns true if the header `typ` is absent or is one of `types` (RFC 8725, section 3.11).
pub(crate) fn is_of_type(header: &Header, types: &[&str]) -> bool {
    header.typ.as_deref().is_none_or(|typ| {
        let typ = typ.strip_prefix("application/").unwrap_or(typ);
        types.iter().any(|known| known.eq_ignore_ascii_case(typ))
    })
}

impl Expected {
    pub(crate) fn check(&self, claims: &Claims, now: Timestamp) -> Result<(), TokenFault> {
        if claims.get("iss").and_then(Json::as_str) != Some(&*self.issuer) {
            return Err(invalid("it was issued by another issuer"));
        }
        if !names_audience(claims, &self.audience) {
            return Err(invalid("it was issued for another audience"));
        }
        Times::read(claims)?.check(self.verify_exp, self.verify_iat, now)
    }
}

/// Returns true if `aud` is this audience or contains it.
pub(crate) fn names_audience(claims: &Claims, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Json::String(one)) => one == audience,
        Some(Json::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
        _ => false,
    }
}

/// The times of a token, in seconds since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) expires: Option<i64>,
    pub(crate) issued: Option<i64>,
    starts: Option<i64>,
}

impl Times {
    /// Reads the times of a token.
    ///
    /// # Errors
    /// A time is not a number.
    pub(crate) fn read(claims: &Claims) -> Result<Self, TokenFault> {
        let time = |name| seconds(claims.get(name)).map_err(invalid);
        Ok(Times { expires: time("exp")?, issued: time("iat")?, starts: time("nbf")? })
    }

    /// Checks the times of a token.
    ///
    /// # Errors
    /// The token has expired, is not valid yet, or was issued in the future.
    pub(crate) fn check(self, verify_exp: bool, verify_iat: bool, now: Timestamp) -> Result<(), TokenFault> {
        let now = now.as_second();
        if verify_exp {
            let expires = self.expires.ok_or_else(|| invalid("it has no expiry"))?;
            if expires.saturating_add(LEEWAY_SECONDS) <= now {
                let at = Timestamp::from_second(expires).unwrap_or(Timestamp::MIN);
                return Err(TokenFault::Expired { at });
            }
        }
        let latest = now.saturating_add(LEEWAY_SECONDS);
        if self.starts.is_some_and(|start| start > latest) {
            return Err(invalid("it is not valid yet"));
        }
        if verify_iat && self.issued.is_some_and(|issued| issued > latest) {
            return Err(invalid("it was issued in the future"));
        }
        Ok(())
    }

    /// Returns true if the token expires at most this many seconds after it was issued. A token without the time of
    /// issue must expire within this many seconds from now, plus the accepted clock difference.
    pub(crate) fn is_short_lived(self, max_age_seconds: i64, now: Timestamp) -> bool {
        let start = self.issued.unwrap_or_else(|| now.as_second().saturating_add(LEEWAY_SECONDS));
        self.expires.is_some_and(|expires| expires.saturating_sub(start) <= max_age_seconds)
    }
}

/// Reads a NumericDate: seconds as a JSON number, which may have a fraction.
fn seconds(claim: Option<&Json>) -> Result<Option<i64>, &'static str> {
    let Some(claim) = claim else { return Ok(None) };
    let number = claim.as_number().ok_or("a time is not a number")?;
    let seconds = match (number.as_i64(), number.as_f64()) {
        (Some(seconds), _) => seconds,
        // The conversion saturates: a time before or after the calendar becomes the earliest or latest one.
        (None, Some(seconds)) if seconds.is_finite() => seconds as i64,
        _ => return Err("a time is not a number"),
    };
    Ok(Some(seconds))
}
