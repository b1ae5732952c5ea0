//! Signing in, refreshing and leaving, as JSON (specification, "Authentication endpoints").

use serde_json::{Value as Json, json};
use terrane_app::ports::credentials::RevokedTokens;
use terrane_app::security::TokenPair;

use super::body::parse;
use super::fields::{Fields, Misfit, Path};

pub(super) const SIGN_IN: &[&str] = &["username", "password"];
pub(super) const REFRESH_TOKEN: &[&str] = &["refresh_token"];
pub(super) const REVOKED_TOKENS: &[&str] = &["jti", "sub"];
const TEXT_FITS: &str = "a text";

/// `{username, password}`.
pub(crate) fn sign_in_from_wire(body: &[u8]) -> Result<(String, String), Misfit> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", SIGN_IN)?;
    let username = fields.required_text("username", TEXT_FITS)?.to_owned();
    Ok((username, fields.required_text("password", TEXT_FITS)?.to_owned()))
}

/// `{refresh_token}`.
pub(crate) fn refresh_token_from_wire(body: &[u8]) -> Result<String, Misfit> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", REFRESH_TOKEN)?;
    Ok(fields.required_text("refresh_token", TEXT_FITS)?.to_owned())
}

/// `{jti}` or `{sub}`.
pub(crate) fn revoked_tokens_from_wire(body: &[u8]) -> Result<RevokedTokens, Misfit> {
    const CLAIM_FITS: &str = "a text of 1 to 256 bytes";
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", REVOKED_TOKENS)?;
    let claim = |name: &'static str| {
        if let Some(null @ Json::Null) = fields.get_or_null(name) {
            return Err(Path::ROOT.field(name).wrong_type(null, CLAIM_FITS));
        }
        let claim = fields.text(name, CLAIM_FITS)?;
        let is_wrong = |claim: &&str| !(1..=256).contains(&claim.len());
        claim.filter(is_wrong).map_or(Ok(claim), |wrong| Err(Path::ROOT.field(name).wrong_word(wrong, CLAIM_FITS)))
    };
    match (claim("jti")?, claim("sub")?) {
        (Some(_), Some(_)) => Err(Path::ROOT.both(["jti", "sub"])),
        (Some(id), None) => Ok(RevokedTokens::Token(id.into())),
        (None, Some(subject)) => Ok(RevokedTokens::Subject(subject.into())),
        (None, None) => Err(Path::ROOT.missing("jti")),
    }
}

pub(crate) fn token_pair_to_wire(pair: &TokenPair) -> Json {
    json!({
        "access_token": pair.access_token,
        "token_type": "bearer",
        "expires_in": pair.expires_in.as_secs(),
        "refresh_token": pair.refresh_token,
    })
}
