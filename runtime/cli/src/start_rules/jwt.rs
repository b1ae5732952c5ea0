//! Rules of `security.jwt` that are checked before a server starts.
//!
//! In: `security`. Out: an error for each setting that cannot be obeyed, with the key, the reason and a hint. Not here:
//! identity providers (`providers`), and the contents of key files (`wiring`).

use terrane_compiler::diagnostic::Diagnostic;
use terrane_identity::MIN_SECRET_BYTES;

use super::error;
use crate::config::{JwtAlgorithm, JwtConfig, Place, SecurityConfig};

const KEYS: &str = "Set `security.jwt.secret` (SERVICE_SECURITY__JWT_SECRET), the key files of RS256, or \
                    `security.jwt.external_jwks_url`.";

pub(super) fn refusals(security: &SecurityConfig) -> Vec<Diagnostic> {
    let jwt = &security.jwt;
    let mut refused = key_refusals(jwt);
    if jwt.enabled != Some(false) {
        refused.extend(if jwt.is_on() { unread_mappings(security) } else { without_key(jwt) });
        refused.extend(applications_without_key(jwt));
    }
    refused
}

/// Refuses settings of tokens without a key that could verify tokens.
fn without_key(jwt: &JwtConfig) -> Vec<Diagnostic> {
    let set = [
        ("security.jwt.enabled", jwt.enabled_place.as_ref()),
        ("security.jwt.algorithm", jwt.algorithm_place.as_ref()),
        ("security.jwt.claims", jwt.claims_place.as_ref()),
        ("security.jwt.claims_mapping", jwt.claims_mapping_place.as_ref()),
        ("security.jwt.scope_mapping", jwt.scope_mapping_place.as_ref()),
        ("security.jwt.application_tokens", jwt.application_tokens_place.as_ref().filter(|_| jwt.application_tokens)),
    ];
    let set = set.into_iter().filter_map(|(key, place)| Some((key, place?)));
    set.map(|(key, place)| {
        place.mark(error(format!("`{key}` is set, but no key for verifying tokens is configured"), KEYS))
    })
    .collect()
}

/// Reports that tokens of applications are accepted beside those of a provider, but no key is set for them.
fn applications_without_key(jwt: &JwtConfig) -> Option<Diagnostic> {
    let is_wanted = jwt.application_tokens && jwt.is_external() && !jwt.has_own_key();
    let place = jwt.application_tokens_place.as_ref().filter(|_| is_wanted)?;
    let message =
        "`security.jwt.application_tokens` is set, but no key for verifying tokens of applications is configured";
    Some(place.mark(error(message, "Set `security.jwt.secret`, or `algorithm: RS256` and `public_key_path`.")))
}

/// Reports mappings of claims that have no effect, because no token is read.
fn unread_mappings(security: &SecurityConfig) -> Vec<Diagnostic> {
    let jwt = &security.jwt;
    if jwt.reads_claims() {
        return Vec::new();
    }
    const HINT: &str = "Remove it, or accept tokens that others sign: set `security.jwt.application_tokens: true`, \
                        or `external_jwks_url`.";
    let reads_id_tokens = security.oauth.is_on();
    let set = [
        ("security.jwt.claims", jwt.claims_place.as_ref().filter(|_| !reads_id_tokens)),
        ("security.jwt.claims_mapping", jwt.claims_mapping_place.as_ref().filter(|_| !reads_id_tokens)),
        ("security.jwt.scope_mapping", jwt.scope_mapping_place.as_ref()),
    ];
    let refuse = |(key, place): (&str, Option<&Place>)| {
        let message = format!("`{key}` has no effect: the tokens of this server name a session, which has the rights");
        Some(place?.mark(error(message, HINT)))
    };
    set.into_iter().filter_map(refuse).collect()
}

/// Refuses keys that exclude each other.
fn key_refusals(jwt: &JwtConfig) -> Vec<Diagnostic> {
    let mut refused = Vec::new();
    if jwt.has_own_key() {
        let wrong = |message: String, hint: &str| match &jwt.place {
            Some(place) => place.mark(error(message, hint)),
            None => error(message, hint),
        };
        let is_rs256 = jwt.algorithm == Some(JwtAlgorithm::Rs256);
        match &jwt.secret {
            Some(secret) if !is_rs256 && secret.expose().len() < MIN_SECRET_BYTES => {
                let message = format!("`security.jwt.secret` has fewer than {MIN_SECRET_BYTES} bytes");
                refused.push(wrong(
                    message,
                    "Create a secret with `openssl rand -base64 48`, and set it in SERVICE_SECURITY__JWT_SECRET.",
                ));
            }
            Some(_) if is_rs256 => {
                let message = "`security.jwt.secret` needs the algorithm HS256, but the algorithm is RS256".to_owned();
                refused.push(wrong(message, "Remove it, or write `algorithm: HS256`."));
            }
            None if !is_rs256 => {
                let message = "HS256 needs `security.jwt.secret`, which is not set".to_owned();
                refused.push(wrong(message, "Set it, or write `algorithm: RS256` and set the key files."));
            }
            _ => {}
        }
        if is_rs256 && jwt.public_key_path.is_none() {
            let message = "RS256 needs `security.jwt.public_key_path`, which is not set".to_owned();
            refused
                .push(wrong(message, "Write the public key of `private_key_path` into a PEM file, and name the file."));
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use crate::config::{self, Environment};

    fn check(jwt: &str) -> Vec<String> {
        let (config, problems) = config::read(Some(&format!("security: {jwt}\n")), &Environment::default());
        assert!(problems.is_empty(), "{problems:?}");
        let refused = crate::start_rules::refusals(&config);
        assert!(refused.iter().all(|refusal| refusal.span.is_some() && refusal.hint.is_some()), "{refused:?}");
        refused.into_iter().map(|refusal| refusal.to_string()).collect()
    }

    const SECRET: &str = "secret: 0123456789abcdef0123456789abcdef";
    const EXTERNAL: &str = "external_jwks_url: \"https://a.example/keys\", issuer: \"https://a.example\", audience: b";
    const PROVIDER: &str = "{name: idp, client_id: c, client_secret: hush-hush, authorize_url: \"https://a.example/a\", \
                            token_url: \"https://a.example/t\", userinfo_url: \"https://a.example/u\"}";

    #[test]
    fn token_settings_without_a_key_are_rejected() {
        for (jwt, key) in [
            ("{jwt: {enabled: true}}", "security.jwt.enabled"),
            ("{jwt: {algorithm: HS256}}", "security.jwt.algorithm"),
            ("{jwt: {algorithm: RS256}}", "security.jwt.algorithm"),
            ("{jwt: {claims: {roles: a.b}}}", "security.jwt.claims"),
            ("{jwt: {claims_mapping: {roles: a.b}}}", "security.jwt.claims_mapping"),
            ("{jwt: {scope_mapping: {admin: [a]}}}", "security.jwt.scope_mapping"),
            ("{jwt: {application_tokens: true}}", "security.jwt.application_tokens"),
        ] {
            let refused = check(jwt);
            assert!(refused.len() == 1 && refused[0].contains(&format!("`{key}`")), "{jwt}: {refused:?}");
        }
        for jwt in ["{jwt: {enabled: false, algorithm: RS256, claims: {roles: a}}}", "{jwt: {issuer: a}}"] {
            assert!(check(jwt).is_empty(), "{jwt}");
        }
    }

    #[test]
    fn unused_claim_mappings_are_rejected() {
        for key in ["claims: {roles: a.b}", "claims_mapping: {roles: a.b}", "scope_mapping: {write: [a]}"] {
            let refused = check(&format!("{{jwt: {{{SECRET}, {key}}}}}"));
            assert!(
                refused.len() == 1 && refused[0].contains(&key[..key.find(':').unwrap_or(0)]),
                "{key}: {refused:?}"
            );
            assert!(check(&format!("{{jwt: {{{SECRET}, application_tokens: true, {key}}}}}")).is_empty());
            for jwt in
                [format!("{{{EXTERNAL}, {key}}}"), format!("{{algorithm: RS256, public_key_path: public.pem, {key}}}")]
            {
                assert!(check(&format!("{{jwt: {jwt}}}")).is_empty(), "{jwt}");
            }
        }
        assert_eq!(check(&format!("{{jwt: {{{EXTERNAL}, application_tokens: true}}}}")).len(), 1);
        let with_provider = |key: &str| {
            format!(
                "{{jwt: {{{SECRET}, {key}}}, oauth: {{public_url: \"https://d.example\", providers: [{PROVIDER}]}}}}"
            )
        };
        assert!(check(&with_provider("claims: {roles: a.b}")).is_empty(), "read from the answers of providers");
        assert_eq!(check(&with_provider("scope_mapping: {admin: [a]}")).len(), 1, "a provider has its own");
    }
}
