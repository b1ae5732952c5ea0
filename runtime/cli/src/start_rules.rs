//! What `serve` refuses to start with, and what it starts with but says.
//!
//! In: the configuration and the address asked for. Out: errors that
//! name the key, the reason and what to do, and warnings. There are no credentials yet, so the only
//! caller is anonymous and the only address is this machine's own; a key that would close more than
//! that is never ignored. Not here: reading keys (`config`).

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::Model;

use crate::config::{Config, Place, Scope};

const OPEN: &str = "write `security: {anonymous: {scopes: [read], roles: []}}` into service_project.yml: \
                    anybody on this machine may then read";

/// Everything that stands against serving.
pub fn refusals(config: &Config) -> Vec<Diagnostic> {
    let security = &config.security;
    let mut refused: Vec<Diagnostic> = security
        .refusable
        .iter()
        .map(|found| {
            let message = format!("`security.{}` is set, and this version cannot check credentials yet", found.key);
            let hint = "remove it, and serve with `security.anonymous` on a loopback address only";
            at(&found.place, error(message, hint))
        })
        .collect();
    if !security.enabled {
        let message = "`security.enabled: false` would open everything to everybody".to_owned();
        let diagnostic = error(message, format!("remove it; {OPEN}"));
        refused.push(match &security.enabled_place {
            Some(place) => at(place, diagnostic),
            None => diagnostic,
        });
    }
    match &security.anonymous {
        None => refused.push(error("nobody could read: there are no credentials and no `security.anonymous`", OPEN)),
        Some(anonymous) => {
            if anonymous.public {
                let message = "`security.anonymous.public: true` would let the whole network read";
                let hint = "remove it: without credentials the server listens on a loopback address only";
                refused.push(at(&anonymous.place, error(message, hint)));
            }
            if anonymous.scopes.iter().ne([&Scope::Read]) {
                let message = "`security.anonymous.scopes` must be [read]: nothing else is offered without credentials";
                refused.push(at(&anonymous.place, error(message, "write `scopes: [read]`")));
            }
        }
    }
    refused
}

/// What is set and does nothing yet, without harm.
pub fn warnings(config: &Config) -> Vec<Diagnostic> {
    let set = [
        (config.metrics.enabled, "metrics.enabled", &config.metrics.place),
        (config.cache.enabled, "cache.enabled", &config.cache.place),
        (!config.server.cors_origins.is_empty(), "server.cors.origins", &None),
        (config.optimization.place.is_some(), "optimization", &config.optimization.place),
    ];
    let warned = set.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, key, place)| {
        let message = format!("`{key}` is set, and this version does nothing with it yet");
        let diagnostic = Diagnostic::warning("not-yet", message);
        match place {
            Some(place) => at(place, diagnostic),
            None => diagnostic,
        }
    });
    warned.collect()
}

/// Cubes that nobody will get an answer from.
pub fn closed_cubes(model: &Model) -> Option<Diagnostic> {
    let closed: Vec<&str> = model.cubes.iter().filter(|cube| cube.is_guarded).map(|cube| &*cube.name).collect();
    let message = format!("closed to everybody: {}", closed.join(", "));
    let hint = "a policy that might speak of these cubes could not be read; mend what is reported of it";
    (!closed.is_empty()).then(|| Diagnostic::warning("closed-cubes", message).hint(hint))
}

/// The address to listen on: a loopback address, whatever name it was given by.
///
/// # Errors
/// The host has no address, or one that others can reach.
pub fn address(host: &str, port: u16) -> Result<SocketAddr, Diagnostic> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<SocketAddr> = match bare.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => match (bare, port).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(problem) => {
                let message = format!("`{host}` is not an address of this machine: {problem}");
                return Err(error(message, "write `server.host: 127.0.0.1`, or leave it out"));
            }
        },
    };
    let outside = found.iter().find(|address| !address.ip().to_canonical().is_loopback());
    match (outside, found.first()) {
        (None, Some(first)) => Ok(*first),
        (Some(outside), _) => {
            let message = format!("`{host}` is {}, which others can reach", outside.ip());
            let hint = "without credentials the server listens on a loopback address only: use 127.0.0.1, and a \
                        reverse proxy that asks who is there";
            Err(error(message, hint))
        }
        (None, None) => Err(error(format!("`{host}` has no address"), "write `server.host: 127.0.0.1`")),
    }
}

fn error(message: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
    Diagnostic::error("not-served", message).hint(hint)
}

fn at(place: &Place, diagnostic: Diagnostic) -> Diagnostic {
    place.mark(diagnostic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Environment};

    fn check(file: &str) -> Vec<String> {
        let (config, problems) = config::read(Some(file), &Environment::default());
        assert!(problems.is_empty(), "{problems:?}");
        refusals(&config).into_iter().map(|refusal| refusal.to_string()).collect()
    }

    const ANONYMOUS: &str = "security: {anonymous: {scopes: [read], roles: []}}\n";

    #[test]
    fn only_anonymous_readers_are_served() {
        assert!(check(ANONYMOUS).is_empty());
        for (file, words) in [
            ("name: a\n", "no credentials"),
            ("security: {anonymous: {scopes: [read], public: true}}\n", "public: true"),
            ("security: {anonymous: {scopes: [read, admin]}}\n", "must be [read]"),
            ("security: {anonymous: {scopes: []}}\n", "must be [read]"),
            ("security: {enabled: false, anonymous: {scopes: [read]}}\n", "security.enabled: false"),
            ("security: {jwt: {secret: x}, anonymous: {scopes: [read]}}\n", "`security.jwt`"),
            ("security: {tenant_claim: org, anonymous: {scopes: [read]}}\n", "`security.tenant_claim`"),
        ] {
            let refused = check(file);
            assert!(refused.len() == 1 && refused[0].contains(words), "{file}: {refused:?}");
        }
    }

    #[test]
    fn only_this_machine_is_an_address() {
        for host in ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "::ffff:127.0.0.1"] {
            assert!(address(host, 80).is_ok(), "{host}");
        }
        for host in ["0.0.0.0", "::", "192.168.0.1", "::ffff:10.0.0.1", "no such host", ""] {
            assert!(address(host, 80).is_err(), "{host}");
        }
    }
}
