//! The rules for identity providers at a start of `serve`.
//!
//! In: `security`. Out: errors with the key, the reason and what to do. URLs are checked without a request;
//! other faults appear when a provider is used, and do not prevent the start.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_identity::BrowserUrl;
use terrane_outgoing::{AllowList, OutgoingClient};

use super::error;
use crate::config::{JwtConfig, OAuthConfig, Place, ProviderConfig, SecurityConfig, TokenAuth};

pub(super) fn refusals(security: &SecurityConfig) -> Vec<Diagnostic> {
    let mut refused = Vec::new();
    let mut entries = Vec::new();
    for entry in &security.outgoing.allow {
        match AllowList::parse([entry.value.as_str()]) {
            Ok(_) => entries.push(entry.value.as_str()),
            Err(problem) => refused.push(entry.place.mark(error(
                format!("`security.outgoing.allow`: {problem}"),
                "List addresses, networks such as 10.0.0.0/8, or names of hosts.",
            ))),
        }
    }
    let allow = AllowList::parse(entries).unwrap_or_default();
    let Ok(outgoing) = OutgoingClient::new(allow, None) else {
        refused.push(error("TLS cannot be used on this machine", "Write an https URL for the identity provider."));
        return refused;
    };
    refused.extend(external(security, &outgoing));
    refused.extend(oauth(security, &outgoing));
    refused
}

/// Checks the settings for tokens of an external provider.
fn external(security: &SecurityConfig, outgoing: &OutgoingClient) -> Vec<Diagnostic> {
    let jwt = &security.jwt;
    let Some(url) = jwt.external_jwks_url.as_ref().filter(|_| jwt.is_external()) else { return Vec::new() };
    let mut refused = Vec::new();
    let mut refuse = |message: String, hint: &str| refused.push(url.place.mark(error(message, hint)));
    if let Err(problem) = outgoing.endpoint(&url.value) {
        refuse(format!("`security.jwt.external_jwks_url`: {problem}"), ASKED_OVER_HTTPS);
    }
    for (key, is_missing) in [("issuer", jwt.issuer.is_none()), ("audience", jwt.audience.is_none())] {
        if is_missing {
            let message = format!("`security.jwt.external_jwks_url` needs `security.jwt.{key}`");
            refuse(message, "Write the values of `iss` and `aud` in the provider's tokens. Other tokens are refused.");
        }
    }
    if jwt.has_own_key() && jwt.issuer.as_deref() == Some(jwt.own_names().0) {
        let message = "`security.jwt.issuer` is also the issuer of this server's own tokens".to_owned();
        refuse(message, "Write another `security.jwt.own_issuer`, so that `iss` distinguishes the tokens.");
    }
    refused
}

/// Returns the URL by which browsers on this machine reach a server that listens on a loopback address.
pub(super) fn default_public_url(host: &str, bound: SocketAddr, is_tls: bool) -> Option<String> {
    let scheme = if is_tls { "https" } else { "http" };
    let is_loopback = bound.ip().to_canonical().is_loopback();
    is_loopback.then(|| match host.eq_ignore_ascii_case("localhost") {
        true => format!("{scheme}://localhost:{}", bound.port()),
        false => format!("{scheme}://{bound}"),
    })
}

/// Refuses identity providers if `public_url` is not set and the server listens on an address that other machines can
/// reach.
pub(super) fn check_public_url(oauth: &OAuthConfig, address: SocketAddr) -> Result<(), Diagnostic> {
    if !oauth.is_on() || oauth.public_url().is_some() || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let hint = "Write the URL at which browsers reach this server, such as https://data.example.com.";
    Err(marked(oauth.place.as_ref(), error("`security.oauth.public_url` is not set", hint)))
}

const ASKED_OVER_HTTPS: &str = "Write an https URL. `security.outgoing.allow` lists private hosts and networks; only a \
                                listed loopback host may use http.";

/// Checks the providers through which callers sign in.
fn oauth(security: &SecurityConfig, outgoing: &OutgoingClient) -> Vec<Diagnostic> {
    let oauth = &security.oauth;
    if !oauth.is_on() {
        return Vec::new();
    }
    let mut refused = Vec::new();
    let mut refuse = |message: String, hint: &str| refused.push(marked(oauth.place.as_ref(), error(message, hint)));
    if oauth.providers.is_empty() {
        refuse("`security.oauth` has no `providers`".to_owned(), "List a provider, or remove `security.oauth`.");
    }
    if !security.jwt.is_signing() {
        let message = "`security.oauth` starts sessions of this server, which cannot sign tokens".to_owned();
        refuse(message, "Set `security.jwt.secret`, or the key files of RS256.");
    }
    if let Some(Err(problem)) = oauth.public_url().map(BrowserUrl::read) {
        let message = format!("`security.oauth.public_url`: {problem}");
        refuse(message, "Write the URL at which browsers reach this server, such as https://data.example.com.");
    }
    let mut names = BTreeSet::new();
    for provider in &oauth.providers {
        let name = provider.name.as_deref().unwrap_or_default();
        let mut found = of_provider(provider, &security.jwt, outgoing);
        if provider.uses_external_issuer()
            && oauth.providers.iter().filter(|other| other.uses_external_issuer()).count() > 1
        {
            let message = "another provider also lacks `issuer` and `jwks_url`".to_owned();
            found.push((message, "Set them. `security.jwt.issuer` is the issuer of one provider."));
        }
        if !names.insert(name) {
            found.push(("another provider has this name".to_owned(), "Give each provider its own name."));
        }
        let place = provider.place.as_ref().or(oauth.place.as_ref());
        refused.extend(together(name, found).map(|diagnostic| marked(place, diagnostic)));
    }
    refused
}

/// Returns one diagnostic with all problems of a provider.
fn together(name: &str, found: Vec<(String, &'static str)>) -> Option<Diagnostic> {
    let (messages, hints): (Vec<String>, Vec<&str>) = found.into_iter().unzip();
    let message = format!("the provider `{name}` of `security.oauth`: {}", messages.join("; "));
    (!messages.is_empty()).then(|| error(message, hints.join("; ")))
}

fn of_provider(provider: &ProviderConfig, jwt: &JwtConfig, outgoing: &OutgoingClient) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    if !provider.name.as_deref().is_some_and(is_name) {
        let message = "`name` must be 1 to 32 of a-z, 0-9, - and _".to_owned();
        found.push((message, "Choose another name; it is part of the path /api/v1/auth/oauth/<name>/login."));
    }
    for (key, value) in [
        ("client_id", &provider.client_id),
        ("authorize_url", &provider.authorize_url),
        ("token_url", &provider.token_url),
    ] {
        if value.as_deref().is_none_or(str::is_empty) {
            found.push((
                format!("`{key}` is not set"),
                "Copy it from the provider, which shows it when a client is registered.",
            ));
        }
    }
    match (&provider.client_secret, provider.token_auth) {
        (None, TokenAuth::Basic | TokenAuth::Post) => {
            let hint = "Set it, or write `token_auth: none` for a public client.";
            found.push(("`client_secret` is not set".to_owned(), hint));
        }
        (Some(_), TokenAuth::None) => {
            let message = "`client_secret` is set, but `token_auth: none` does not send it".to_owned();
            found.push((message, "Remove one of them."));
        }
        _ => {}
    }
    match (&provider.issuer, &provider.jwks_url, &provider.userinfo_url) {
        (Some(_), Some(_), _) | (None, None, Some(_)) => {}
        (None, None, None) if provider.openid(jwt).is_some() => {}
        (None, None, None) => found.push((
            "the user who signs in cannot be identified".to_owned(),
            "Set `issuer` and `jwks_url` for ID tokens (OpenID Connect), or `userinfo_url`, or `issuer` and \
             `external_jwks_url` of `security.jwt`.",
        )),
        _ => found.push((
            "`issuer` and `jwks_url` go together".to_owned(),
            "Copy both from the provider's /.well-known/openid-configuration.",
        )),
    }
    let asked = [
        ("token_url", &provider.token_url),
        ("jwks_url", &provider.jwks_url),
        ("userinfo_url", &provider.userinfo_url),
    ];
    for (key, url) in asked {
        if let Some(Err(problem)) = url.as_deref().filter(|url| !url.is_empty()).map(|url| outgoing.endpoint(url)) {
            found.push((format!("`{key}`: {problem}"), ASKED_OVER_HTTPS));
        }
    }
    if let Some(Err(problem)) = provider.authorize_url.as_deref().filter(|url| !url.is_empty()).map(BrowserUrl::read) {
        found.push((format!("`authorize_url`: {problem}"), "Write the URL to which browsers are redirected."));
    }
    found
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    (1..=32).contains(&name.len()) && name.bytes().all(is_letter)
}

fn marked(place: Option<&Place>, diagnostic: Diagnostic) -> Diagnostic {
    match place {
        Some(place) => place.mark(diagnostic),
        None => diagnostic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Environment};

    fn check(security: &str) -> Vec<String> {
        let file = format!("security: {security}\n");
        let (config, problems) = config::read(Some(&file), &Environment::default());
        assert!(problems.is_empty(), "{problems:?}");
        crate::start_rules::refusals(&config).into_iter().map(|refusal| refusal.to_string()).collect()
    }

    const OAUTH: &str = "name: idp, client_id: c, client_secret: hush-hush, authorize_url: \"https://idp.example/a\", \
                         token_url: \"https://idp.example/t\", issuer: \"https://idp.example\", \
                         jwks_url: \"https://idp.example/k\"";
    const SECRET: &str = "jwt: {secret: 0123456789abcdef0123456789abcdef}";

    #[test]
    fn external_tokens_require_an_issuer_and_an_audience() {
        let names = "issuer: \"https://a.example\", audience: terrane-api";
        assert!(check(&format!("{{jwt: {{external_jwks_url: \"https://a.example/keys\", {names}}}}}")).is_empty());
        for (jwt, words) in [
            ("external_jwks_url: \"https://a.example/keys\", audience: b".to_owned(), "`security.jwt.issuer`"),
            ("external_jwks_url: \"https://a.example/keys\", issuer: b".to_owned(), "`security.jwt.audience`"),
            (format!("external_jwks_url: \"http://a.example/keys\", {names}"), "must be requested over https"),
            (format!("external_jwks_url: \"https://10.0.0.1/keys\", {names}"), "does not list it"),
            (format!("external_jwks_url: \"https://169.254.169.254/keys\", {names}"), "does not list it"),
            (format!("external_jwks_url: keys, {names}"), "invalid URL"),
            (
                format!(
                    "secret: 0123456789abcdef0123456789abcdef, external_jwks_url: \"https://a.example/keys\", \
                     {names}, own_issuer: \"https://a.example\""
                ),
                "own_issuer",
            ),
        ] {
            let refused = check(&format!("{{jwt: {{{jwt}}}}}"));
            assert!(refused.len() == 1 && refused[0].contains(words), "{jwt}: {refused:?}");
        }
        let listed = format!(
            "{{outgoing: {{allow: [127.0.0.1]}}, jwt: {{external_jwks_url: \"http://127.0.0.1:1/k\", {names}}}}}"
        );
        assert!(check(&listed).is_empty());
    }

    #[test]
    fn incomplete_providers_are_rejected() {
        let with = |providers: &str| {
            format!("{{{SECRET}, oauth: {{public_url: \"https://d.example\", providers: [{providers}]}}}}")
        };
        assert!(check(&with(&format!("{{{OAUTH}}}"))).is_empty());
        for (security, words) in [
            (format!("{{{SECRET}, oauth: {{enabled: true, public_url: \"https://d.example\"}}}}"), "no `providers`"),
            (
                format!("{{oauth: {{public_url: \"https://d.example\", providers: [{{{OAUTH}}}]}}}}"),
                "cannot sign tokens",
            ),
            (
                format!("{{{SECRET}, oauth: {{public_url: \"http://d.example\", providers: [{{{OAUTH}}}]}}}}"),
                "expected https",
            ),
            (with(&format!("{{{OAUTH}}}, {{{OAUTH}}}")), "another provider has this name"),
            (with(&format!("{{{}}}", OAUTH.replace("name: idp", "name: \"a/b\""))), "`name` must be"),
            (with(&format!("{{{}}}", OAUTH.replace("client_id: c, ", ""))), "`client_id` is not set"),
            (with(&format!("{{{}}}", OAUTH.replace("client_secret: hush-hush, ", ""))), "`client_secret` is not set"),
            (with(&format!("{{{OAUTH}, token_auth: none}}")), "does not send it"),
            (with(&format!("{{{}}}", OAUTH.replace("https://idp.example/t", "https://127.0.0.1/t"))), "`token_url`"),
            (
                with(&format!("{{{}}}", OAUTH.replace("https://idp.example/a", "http://idp.example/a"))),
                "`authorize_url`",
            ),
            (with(&format!("{{{}}}", OAUTH.replace("jwks_url", "userinfo_url"))), "go together"),
        ] {
            let refused = check(&security);
            assert!(refused.len() == 1 && refused[0].contains(words), "{security}: {refused:?}");
            assert!(!refused[0].contains("hush-hush"), "{refused:?}");
        }
        assert!(check("{oauth: {enabled: false, providers: [{name: half}]}}").is_empty());
    }

    /// The five keys that every provider needs.
    const FIVE: &str = "name: idp, client_id: c, client_secret: hush-hush, authorize_url: \"https://idp.example/a\", \
                        token_url: \"https://idp.example/t\"";

    #[test]
    fn provider_defaults_to_the_external_issuer() {
        let external = "external_jwks_url: \"https://idp.example/keys\", issuer: \"https://idp.example\", \
                        audience: terrane-api";
        let jwt = format!("jwt: {{secret: 0123456789abcdef0123456789abcdef, {external}}}");
        let with = |jwt: &str, providers: &str| format!("{{{jwt}, oauth: {{providers: [{providers}]}}}}");
        assert!(check(&with(&jwt, &format!("{{{FIVE}}}"))).is_empty());
        assert!(
            check(&with(&jwt, &format!("{{{FIVE}}}, {{{}}}", OAUTH.replace("name: idp", "name: other")))).is_empty()
        );
        for (security, words) in [
            (with(SECRET, &format!("{{{FIVE}}}")), "the user who signs in cannot be identified"),
            (with(&jwt, &format!("{{{FIVE}, issuer: \"https://idp.example\"}}")), "go together"),
        ] {
            let refused = check(&security);
            assert!(refused.len() == 1 && refused[0].contains(words), "{security}: {refused:?}");
        }
        let two = with(&jwt, &format!("{{{FIVE}}}, {{{}}}", FIVE.replace("name: idp", "name: other")));
        assert_eq!(check(&two).len(), 2, "one issuer is not that of two providers");
    }

    #[test]
    fn loopback_server_derives_its_url() {
        let bound = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (host, address, is_tls, expected) in [
            ("127.0.0.1", "127.0.0.1:8000", false, Some("http://127.0.0.1:8000")),
            ("127.0.0.1", "127.0.0.1:43210", true, Some("https://127.0.0.1:43210")),
            ("localhost", "127.0.0.1:8000", false, Some("http://localhost:8000")),
            ("LocalHost", "127.0.0.1:8000", false, Some("http://localhost:8000")),
            ("my-machine", "127.0.1.1:8000", false, Some("http://127.0.1.1:8000")),
            ("::1", "[::1]:8000", false, Some("http://[::1]:8000")),
            ("0.0.0.0", "0.0.0.0:8000", false, None),
            ("10.0.0.1", "10.0.0.1:8000", false, None),
        ] {
            let url = default_public_url(host, bound(address), is_tls);
            assert_eq!(url.as_deref(), expected, "{host} {address}");
            assert!(url.is_none_or(|url| BrowserUrl::read(&url).is_ok()), "{host}");
        }
    }

    #[test]
    fn public_server_requires_a_public_url() {
        let address = |oauth: &str, host: &str| {
            let file = format!("security: {{{SECRET}, oauth: {{{oauth}providers: [{{{OAUTH}}}]}}}}\n");
            let (config, problems) = config::read(Some(&file), &Environment::default());
            assert!(problems.is_empty(), "{problems:?}");
            crate::start_rules::address(&config.security, host, 8000).map_err(|problem| problem.to_string())
        };
        assert!(address("", "127.0.0.1").is_ok());
        assert!(address("", "localhost").is_ok());
        assert!(address("public_url: \"https://d.example\", ", "0.0.0.0").is_ok());
        assert!(address("enabled: false, ", "0.0.0.0").is_ok());
        assert!(address("", "0.0.0.0").unwrap_err().contains("public_url"));
    }

    #[test]
    fn forbidden_addresses_cannot_be_allowed() {
        for entry in ["169.254.169.254", "\"0.0.0.0/0\"", "\"https://a.example\""] {
            let refused = check(&format!("{{outgoing: {{allow: [{entry}]}}}}"));
            assert!(refused.len() == 1 && refused[0].contains("security.outgoing.allow"), "{refused:?}");
        }
    }
}
