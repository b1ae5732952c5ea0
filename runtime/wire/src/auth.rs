//! Bodies of the authentication routes, and their answers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value as Json, json};
use terrane_app::ports::credentials::RevokedTokens;
use terrane_app::security::TokenPair;

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};

/// A sign-in with a password.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SignIn {
    pub username: String,
    pub password: String,
}

/// The refresh token of a session.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RefreshToken {
    pub refresh_token: String,
}

/// The tokens to revoke: the token with a `jti`, or all tokens of a `sub`.
#[derive(Debug)]
pub struct TokensToRevoke;

impl JsonSchema for TokensToRevoke {
    fn schema_name() -> Cow<'static, str> {
        "RevokedTokens".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let claim = json!({ "type": "string", "minLength": 1, "maxLength": 256 });
        json_schema!({
            "description": "The tokens to revoke: the one with this `jti`, or those of a `sub`.",
            "type": "object",
            "additionalProperties": false,
            "properties": { "jti": claim, "sub": claim },
            "oneOf": [{ "required": ["jti"] }, { "required": ["sub"] }],
        })
    }
}

pub(crate) const SIGN_IN: &[&str] = &["username", "password"];
pub(crate) const REFRESH_TOKEN: &[&str] = &["refresh_token"];
pub(crate) const REVOKED_TOKENS: &[&str] = &["jti", "sub"];
const STRING: &str = "a string";

/// Reads `{username, password}`.
///
/// # Errors
/// Names the field that is invalid.
pub fn sign_in_from_wire(body: &[u8]) -> Result<(String, String), FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", SIGN_IN)?;
    let username = fields.required_string("username", STRING)?.to_owned();
    Ok((username, fields.required_string("password", STRING)?.to_owned()))
}

/// Reads `{refresh_token}`.
///
/// # Errors
/// Names the field that is invalid.
pub fn refresh_token_from_wire(body: &[u8]) -> Result<String, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", REFRESH_TOKEN)?;
    Ok(fields.required_string("refresh_token", STRING)?.to_owned())
}

/// Reads `{jti}` or `{sub}`.
///
/// # Errors
/// Names the field that is invalid.
pub fn revoked_tokens_from_wire(body: &[u8]) -> Result<RevokedTokens, FieldError> {
    const CLAIM: &str = "a string of 1 to 256 bytes";
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", REVOKED_TOKENS)?;
    let claim = |name: &'static str| {
        if let Some(null @ Json::Null) = fields.get_or_null(name) {
            return Err(Path::ROOT.field(name).invalid_type(null, CLAIM));
        }
        let claim = fields.string(name, CLAIM)?;
        let is_wrong = |claim: &&str| !(1..=256).contains(&claim.len());
        claim.filter(is_wrong).map_or(Ok(claim), |wrong| Err(Path::ROOT.field(name).invalid_value(wrong, CLAIM)))
    };
    match (claim("jti")?, claim("sub")?) {
        (Some(_), Some(_)) => Err(Path::ROOT.both(["jti", "sub"])),
        (Some(id), None) => Ok(RevokedTokens::Token(id.into())),
        (None, Some(subject)) => Ok(RevokedTokens::Subject(subject.into())),
        (None, None) => Err(Path::ROOT.missing("jti")),
    }
}

/// The tokens of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tokens<'a> {
    access_token: &'a str,
    token_type: TokenType,
    /// The lifetime of the access token in seconds.
    expires_in: u64,
    /// The refresh token, which can be used once.
    refresh_token: &'a str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TokenType {
    Bearer,
}

impl<'a> From<&'a TokenPair> for Tokens<'a> {
    fn from(pair: &'a TokenPair) -> Self {
        Tokens {
            access_token: &pair.access_token,
            token_type: TokenType::Bearer,
            expires_in: pair.expires_in.as_secs(),
            refresh_token: &pair.refresh_token,
        }
    }
}

/// The end of a session or of tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Revoked {
    pub revoked: bool,
}
