//! An identity provider through which callers sign in.
//!
//! In: settings, a code. Out: the login URL, then the person that the provider vouches for. With an issuer, OpenID
//! Connect is used: the ID token's signature, issuer, audience, nonce and times are verified, and the data of the
//! user-info endpoint must be about the same subject. Without an issuer, the user-info endpoint is trusted. The
//! provider's tokens are used only here. Not here: state and sessions (`app::security::oauth`), and finding a
//! provider's endpoints, which the operator configures.

mod browser_url;
mod token_request;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value as Json;
use terrane_app::ports::providers::{CodeExchange, IdentityProvider, LoginRequest, Person, ProviderFault};
use terrane_app::ports::tokens::TokenFault;
use terrane_outgoing::{Endpoint, OutgoingClient};

use crate::checks::Expected;
use crate::claims::{Claims, ClaimsMapping};
use crate::keys::{RemoteKeys, SignatureAlgorithm};
use crate::signed::SignedTokens;

pub use browser_url::{BrowserUrl, BrowserUrlError};
pub use token_request::ClientAuth;
use token_request::TokenAnswer;

const ID_TOKEN_TYPES: &[&str] = &["JWT"];
const MAX_SUBJECT_BYTES: usize = 255;

/// The operator's settings of a provider.
pub struct ProviderSettings {
    /// The name of the provider in routes, and the prefix of user ids.
    pub name: String,
    pub client_id: String,
    pub client_auth: ClientAuth,
    /// The URL that browsers are redirected to; this server never requests it.
    pub authorize_url: BrowserUrl,
    pub token_endpoint: Endpoint,
    pub userinfo_endpoint: Option<Endpoint>,
    pub openid: Option<OpenIdSettings>,
    /// The URL of this server's callback, as the provider knows it.
    pub redirect_url: String,
    pub scopes: Vec<String>,
    pub mapping: ClaimsMapping,
    /// True if user ids are the provider's subjects, without the prefix `name:`.
    pub has_bare_user_ids: bool,
}

/// Requirements on ID tokens.
pub struct OpenIdSettings {
    pub issuer: String,
    pub keys: RemoteKeys,
    pub algorithms: Vec<SignatureAlgorithm>,
}

/// A provider over HTTP.
pub struct Provider {
    settings: ProviderSettings,
    id_tokens: Option<SignedTokens>,
    outgoing: OutgoingClient,
}

impl Provider {
    pub fn new(settings: ProviderSettings, outgoing: OutgoingClient) -> Self {
        let id_tokens = settings.openid.as_ref();
        let id_tokens =
            id_tokens.map(|openid| SignedTokens::new(openid.keys.clone(), &openid.algorithms, ID_TOKEN_TYPES));
        Provider { settings, id_tokens, outgoing }
    }

    /// Returns the claims of the ID token and of the user-info endpoint. If both have a claim, that of the ID token is
    /// returned.
    async fn claims(&self, answer: &TokenAnswer, nonce: &str, now: Timestamp) -> Result<Claims, ProviderFault> {
        let proven = match (&self.id_tokens, &self.settings.openid) {
            (Some(signed), Some(openid)) => {
                let token = answer.id_token.as_deref().ok_or_else(|| invalid("it has no ID token"))?;
                let claims = signed.claims(token).await.map_err(of_token)?;
                self.check(openid, &claims, nonce, now)?;
                Some(claims)
            }
            _ => None,
        };
        let Some(endpoint) = &self.settings.userinfo_endpoint else {
            return proven.ok_or_else(|| invalid("it does not identify the user"));
        };
        let body = self.outgoing.get(endpoint, Some(&answer.access_token)).await.map_err(|error| {
            tracing::warn!(event = "provider_unavailable", provider = self.name(), error_message = %error);
            ProviderFault::Unavailable
        })?;
        let mut user_info: Claims =
            serde_json::from_slice(&body).map_err(|_| invalid("the user info is not a JSON object"))?;
        if let Some(proven) = proven {
            // OpenID Connect Core, section 5.3.2: user info with another subject may be about another user.
            if user_info.get("sub") != proven.get("sub") {
                return Err(invalid("the user info is about another subject"));
            }
            user_info.extend(proven);
        }
        Ok(user_info)
    }

    fn check(
        &self,
        openid: &OpenIdSettings,
        claims: &Claims,
        nonce: &str,
        now: Timestamp,
    ) -> Result<(), ProviderFault> {
        let expected = Expected {
            issuer: openid.issuer.clone(),
            audience: self.settings.client_id.clone(),
            verify_exp: true,
            verify_iat: true,
        };
        expected.check(claims, now).map_err(of_token)?;
        let text = |name: &str| claims.get(name).and_then(Json::as_str);
        if text("nonce") != Some(nonce) {
            return Err(invalid("the ID token belongs to another sign-in"));
        }
        // OpenID Connect Core, section 3.1.3.7: a token for several audiences must name this client in `azp`.
        let is_for_several = claims.get("aud").and_then(Json::as_array).is_some_and(|all| all.len() > 1);
        let is_ours = text("azp") == Some(&*self.settings.client_id);
        if !is_ours && (is_for_several || claims.contains_key("azp")) {
            return Err(invalid("the ID token was issued for another client"));
        }
        if text("sub").is_none_or(str::is_empty) {
            return Err(invalid("the ID token has no subject"));
        }
        Ok(())
    }

    fn person(&self, claims: &Claims) -> Result<Person, ProviderFault> {
        let ProviderSettings { mapping, name, has_bare_user_ids, .. } = &self.settings;
        let subject = mapping.subject(claims).ok_or_else(|| invalid("it has no subject"))?;
        if subject.len() > MAX_SUBJECT_BYTES || subject.chars().any(char::is_control) {
            return Err(invalid("the subject is too long or has control characters"));
        }
        let user_id = if *has_bare_user_ids { subject.clone() } else { format!("{name}:{subject}") };
        Ok(Person {
            caller: mapping.caller_named(user_id.into(), claims),
            subject: subject.into(),
            scopes: mapping.scopes(claims),
            tenant: mapping.tenant(claims),
        })
    }
}

#[async_trait]
impl IdentityProvider for Provider {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn issuer(&self) -> Option<&str> {
        self.settings.openid.as_ref().map(|openid| &*openid.issuer)
    }

    fn login_url(&self, request: &LoginRequest<'_>) -> String {
        let mut url = self.settings.authorize_url.0.clone();
        let mut pairs = url.query_pairs_mut();
        pairs.append_pair("response_type", "code").append_pair("client_id", &self.settings.client_id);
        pairs.append_pair("redirect_uri", &self.settings.redirect_url);
        if !self.settings.scopes.is_empty() {
            pairs.append_pair("scope", &self.settings.scopes.join(" "));
        }
        pairs.append_pair("state", request.state).append_pair("code_challenge", request.code_challenge);
        pairs.append_pair("code_challenge_method", "S256");
        if self.settings.openid.is_some() {
            pairs.append_pair("nonce", request.nonce);
        }
        drop(pairs);
        url.into()
    }

    async fn exchange(&self, exchange: CodeExchange<'_>, now: Timestamp) -> Result<Person, ProviderFault> {
        let answer = token_request::send(&self.outgoing, &self.settings, &exchange).await?;
        let claims = self.claims(&answer, exchange.nonce, now).await?;
        self.person(&claims)
    }
}

fn invalid(why: &'static str) -> ProviderFault {
    ProviderFault::Invalid { why }
}

fn of_token(fault: TokenFault) -> ProviderFault {
    match fault {
        TokenFault::Expired { .. } => invalid("the ID token has expired"),
        TokenFault::Invalid { why } => invalid(why),
        TokenFault::Unavailable | TokenFault::NotSigning => ProviderFault::Unavailable,
    }
}
