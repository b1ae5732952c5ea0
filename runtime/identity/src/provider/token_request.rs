//! The exchange of a code for tokens (RFC 6749, section 4.1.3).
//!
//! In: a code. Out: the tokens, or a fault. Error codes of the standard, such as `invalid_client`, only go to the log,
//! because the operator has to fix their causes.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use terrane_app::ports::providers::{CodeExchange, ProviderFault};
use terrane_outgoing::OutgoingClient;

use super::{ProviderSettings, invalid};

/// The error codes of RFC 6749, section 5.2.
const ERRORS: &[&str] = &[
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
];

/// The client authentication of this server.
#[derive(Clone, PartialEq, Eq)]
pub enum ClientAuth {
    /// The secret is in the `Authorization` header.
    Basic { secret: String },
    /// The secret is in the form.
    Post { secret: String },
    /// A public client has no secret. Only PKCE protects the exchange.
    None,
}

impl fmt::Debug for ClientAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientAuth::Basic { .. } => "Basic(***)",
            ClientAuth::Post { .. } => "Post(***)",
            ClientAuth::None => "None",
        })
    }
}

pub(super) struct TokenAnswer {
    pub(super) access_token: String,
    pub(super) id_token: Option<String>,
}

pub(super) async fn send(
    outgoing: &OutgoingClient,
    settings: &ProviderSettings,
    exchange: &CodeExchange<'_>,
) -> Result<TokenAnswer, ProviderFault> {
    let provider = &*settings.name;
    let (form, authorization) = form(settings, exchange);
    let answer = outgoing.post_form(&settings.token_endpoint, form, authorization.as_deref()).await;
    let answer = answer.map_err(|error| {
        tracing::warn!(event = "provider_unavailable", provider, error_message = %error);
        ProviderFault::Unavailable
    })?;
    let body: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    match answer.status {
        200 => tokens(&body),
        status => Err(refusal(provider, status, &body)),
    }
}

/// Returns the form of the request, and the value of its `Authorization` header if the client uses one.
fn form(settings: &ProviderSettings, exchange: &CodeExchange<'_>) -> (String, Option<String>) {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "authorization_code").append_pair("code", exchange.code);
    form.append_pair("redirect_uri", &settings.redirect_url).append_pair("code_verifier", exchange.code_verifier);
    match &settings.client_auth {
        ClientAuth::Basic { secret } => return (form.finish(), Some(basic(&settings.client_id, secret))),
        ClientAuth::Post { secret } => {
            form.append_pair("client_id", &settings.client_id).append_pair("client_secret", secret);
        }
        ClientAuth::None => {
            form.append_pair("client_id", &settings.client_id);
        }
    }
    (form.finish(), None)
}

fn tokens(body: &Json) -> Result<TokenAnswer, ProviderFault> {
    let text = |name: &str| body.get(name).and_then(Json::as_str).map(str::to_owned);
    // Some providers write errors with status 200.
    if body.get("error").is_some() {
        return Err(ProviderFault::CodeRefused);
    }
    if !text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return Err(invalid("its token is not a bearer token"));
    }
    let access_token = text("access_token").ok_or_else(|| invalid("it has no access token"))?;
    Ok(TokenAnswer { access_token, id_token: text("id_token") })
}

fn refusal(provider: &str, status_code: u16, body: &Json) -> ProviderFault {
    let said = body.get("error").and_then(Json::as_str);
    let error = ERRORS.iter().find(|known| Some(**known) == said).copied().unwrap_or("unknown");
    tracing::warn!(event = "provider_refused", provider, status_code, error_type = error);
    // Only these codes mean that the code was wrong. Other errors are caused by the configuration or the provider.
    if matches!(error, "invalid_grant" | "invalid_request") {
        ProviderFault::CodeRefused
    } else {
        ProviderFault::Unavailable
    }
}

/// Returns Basic credentials. Both parts are form-encoded first (RFC 6749, section 2.3.1).
fn basic(client_id: &str, secret: &str) -> String {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", encode(client_id), encode(secret))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_follow_rfc_6749() {
        // RFC 6749, section 2.3.1.
        assert_eq!(basic("s6BhdRkqt3", "7Fjfp0ZBr1KtDRbnfVdmIw"), "Basic czZCaGRSa3F0Mzo3RmpmcDBaQnIxS3REUmJuZlZkbUl3");
        assert!(!format!("{:?}", ClientAuth::Basic { secret: "hush".to_owned() }).contains("hush"));
    }
}
