//! The rules for starting `serve`.
//!
//! In: the configuration and the requested address. Out: errors that name the key, the reason and the remedy, and
//! warnings. A key that would restrict access is never ignored. Not here: reading keys (`config`).

mod jwt;
mod providers;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use jiff::Timestamp;
use terrane_app::security::Scopes;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::model::Model;
use terrane_compiler::project::Definitions;

use terrane_server::tls::Validity;

use crate::config::{Config, IneffectiveCause, Place, SecurityConfig};

const OPEN: &str = "To let every user of this machine read, write `security: {anonymous: {scopes: [read], roles: []}}` \
                    into service_project.yml.";

/// Returns the problems of the configuration for which the server must not start.
pub fn refusals(config: &Config) -> Vec<Diagnostic> {
    let security = &config.security;
    let mut refused = Vec::new();
    if !security.enabled {
        let message = "`security.enabled: false` would give every caller all rights".to_owned();
        let diagnostic = error(message, format!("Remove it. {OPEN}"));
        refused.push(match &security.enabled_place {
            Some(place) => at(place, diagnostic),
            None => diagnostic,
        });
    }
    match &security.anonymous {
        None if !security.has_credentials() => {
            refused
                .push(error("no caller could read: neither credentials nor `security.anonymous` are configured", OPEN));
        }
        None => {}
        Some(anonymous) => {
            if anonymous.public && !security.has_credentials() {
                let message = "`security.anonymous.public: true` would let every host of the network read";
                let hint = "Remove it. The server then accepts anonymous callers on a loopback address only.";
                refused.push(at(&anonymous.place, error(message, hint)));
            }
            if anonymous.scopes != Scopes::READ {
                let message = "`security.anonymous.scopes` must be [read]";
                refused.push(at(&anonymous.place, error(message, "Write `scopes: [read]`.")));
            }
        }
    }
    refused.extend(jwt::refusals(security));
    refused.extend(telemetry_refusals(config));
    refused.extend(providers::refusals(security));
    refused
}

/// Returns the separate address of the metrics, if one is configured. Callers need no credentials there, and metrics
/// show load and the names of cubes, so the address must be local unless `metrics.public` is set.
///
/// # Errors
/// The host has no address, or other machines can reach its address although `metrics.public` is not set.
pub fn metrics_address(config: &Config) -> Result<Option<SocketAddr>, Diagnostic> {
    let metrics = &config.metrics;
    let Some((host, port)) = metrics.address.as_ref().filter(|_| metrics.enabled) else { return Ok(None) };
    let mark = |diagnostic| match &metrics.address_place {
        Some(place) => at(place, diagnostic),
        None => diagnostic,
    };
    let found = resolve(host, *port).map_err(|problem| {
        let message = format!("`metrics.address`: `{host}` is not an address of this machine: {problem}");
        mark(error(message, "Write `metrics: {address: \"127.0.0.1:9464\"}`."))
    })?;
    let outside = found.iter().find(|address| !address.ip().to_canonical().is_loopback());
    match (outside, found.first()) {
        (Some(outside), _) if !metrics.is_public => {
            let message = format!("`metrics.address` is {outside}, which other hosts can reach without credentials");
            Err(mark(error(message, "Use a loopback address, or set `metrics.public: true` to publish the metrics.")))
        }
        (_, Some(first)) => Ok(Some(*first)),
        (_, None) => {
            Err(mark(error(format!("`metrics.address`: `{host}` resolves to no address"), "Write `127.0.0.1:9464`.")))
        }
    }
}

/// Returns the errors of the metrics' path and the collector of traces.
fn telemetry_refusals(config: &Config) -> Vec<Diagnostic> {
    let mut refused = Vec::new();
    let metrics = &config.metrics;
    let taken = terrane_server::routes().into_iter().find(|route| matches(route.path, &metrics.path));
    if let Some(route) = taken.filter(|_| metrics.enabled) {
        let message = format!("`metrics.path` is {}, which is already the path of {}", metrics.path, route.path);
        let diagnostic = error(message, "Remove the key; the default is /metrics.");
        refused.push(match &metrics.path_place {
            Some(place) => at(place, diagnostic),
            None => diagnostic,
        });
    }
    if let Some(endpoint) = &config.telemetry.otlp_endpoint
        && !["http://", "https://"].iter().any(|scheme| endpoint.expose().trim().starts_with(scheme))
    {
        let message = "`telemetry.otlp_endpoint` is not an http or https URL";
        refused.push(error(message, "Write a URL such as `http://collector:4318`; `/v1/traces` is appended."));
    }
    refused
}

/// Returns whether a path matches a route. `{name}` in the route matches any one segment of the path.
fn matches(route: &str, path: &str) -> bool {
    let mut steps = path.split('/');
    let fits = route.split('/').all(|name| steps.next().is_some_and(|step| name == step || name.starts_with('{')));
    fits && steps.next().is_none()
}

/// Returns the warnings of settings: keys without effect, and answers that any page may read.
pub fn warnings(config: &Config) -> Vec<Diagnostic> {
    let keys = config.unused.iter().map(|setting| setting.place.mark(unused(&format!("`{}`", setting.key))));
    let ineffective = config.ineffective.iter().map(|setting| {
        let (message, hint) = match setting.cause {
            IneffectiveCause::Missing(needed) => (
                format!("`{}` has no effect without `{needed}`", setting.key),
                "Remove the key, or add the setting that it needs.",
            ),
            IneffectiveCause::Overridden(by) => (
                format!("`{}` has no effect beside `{by}`, which has priority", setting.key),
                "Remove one of the keys.",
            ),
        };
        setting.place.mark(Diagnostic::warning(Code::UnusedField, message).hint(hint))
    });
    keys.chain(ineffective).chain(every_origin(config)).collect()
}

/// Returns warnings about keys in the project's definitions that have no effect with this configuration.
pub fn unused_definitions(config: &Config, definitions: &Definitions) -> Vec<Diagnostic> {
    if config.pre_aggregations.is_chosen {
        return Vec::new();
    }
    let cubes = definitions.cubes.iter();
    let keys = cubes.filter_map(|cube| {
        let first = cube.pre_aggregations.first()?;
        let message = format!("`pre_aggregations` of cube `{}` are not built", cube.name.value);
        let warning = Diagnostic::warning(Code::PreaggregationsOff, message);
        Some(warning.hint("Set `pre_aggregations: {enabled: true}` in the project file.").at(first.name.span()))
    });
    keys.collect()
}

fn unused(key: &str) -> Diagnostic {
    Diagnostic::warning(Code::NotYet, format!("{key} has no effect in this version")).hint("Remove the key.")
}

/// Reports answers that any page on the web may read.
fn every_origin(config: &Config) -> Option<Diagnostic> {
    let place = config.server.cors.any.as_ref()?;
    let message = match config.security.anonymous {
        Some(_) => {
            "`server.cors.origins` is \"*\", and callers without a credential may read: \
                    any page that a user of this machine opens can read everything that the user can"
        }
        None => "`server.cors.origins` is \"*\": any page can send requests with a credential that the page knows",
    };
    let diagnostic = Diagnostic::warning(Code::EveryOrigin, message);
    Some(at(place, diagnostic.hint("List the origins of your pages, such as https://app.example.org.")))
}

/// Reports a certificate that clients will refuse. The server starts nevertheless, because a new certificate may
/// follow.
pub fn certificate(validity: Option<Validity>, now: Timestamp) -> Option<Diagnostic> {
    let Validity { from, until } = validity.filter(|validity| !validity.holds_at(now))?;
    let message = format!("the certificate of `server.tls.cert_path` is valid from {from} to {until} only");
    let hint = "Replace the file. The server loads it within a minute, without a restart.";
    Some(Diagnostic::warning(Code::Certificate, message).hint(hint))
}

/// Reports the cubes that are closed to all callers.
pub fn closed_cubes(model: &Model) -> Option<Diagnostic> {
    let closed: Vec<&str> = model.cubes.iter().filter(|cube| cube.is_guarded).map(|cube| &*cube.name).collect();
    let message = format!("closed to all callers: {}", closed.join(", "));
    let hint =
        "Correct the problems that are reported for the policies of these cubes, because a policy could not be read.";
    (!closed.is_empty()).then(|| Diagnostic::warning(Code::ClosedCubes, message).hint(hint))
}

/// Returns the address to listen on. It may be reachable by other machines only if callers need credentials, or if the
/// operator allows anonymous callers explicitly.
///
/// # Errors
/// The host has no address, or other machines can reach it although they are not allowed to.
pub fn address(security: &SecurityConfig, host: &str, port: u16) -> Result<SocketAddr, Diagnostic> {
    let found = resolve(host, port).map_err(|problem| {
        let message = format!("`{host}` is not an address of this machine: {problem}");
        error(message, "Write `server.host: 127.0.0.1`, or remove the key.")
    })?;
    let outside = found.iter().find(|address| !address.ip().to_canonical().is_loopback());
    match (outside, found.first()) {
        (None, Some(first)) => Ok(*first),
        (Some(outside), Some(first)) if security.may_be_reached() => {
            providers::check_public_url(&security.oauth, *outside).map(|()| *first)
        }
        (Some(outside), _) => {
            let message = format!("`{host}` is {}, which other hosts can reach", outside.ip());
            let hint = "Use 127.0.0.1, remove `security.anonymous`, or set its `public: true`. With anonymous callers, \
                        the server listens on a loopback address only.";
            Err(error(message, hint))
        }
        (None, None) => Err(error(format!("`{host}` resolves to no address"), "Write `server.host: 127.0.0.1`.")),
    }
}

/// Returns the URL by which browsers reach a server that listens on a loopback address only.
pub fn default_public_url(host: &str, bound: SocketAddr, is_tls: bool) -> Option<String> {
    providers::default_public_url(host, bound, is_tls)
}

fn resolve(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(ip) => Ok(vec![SocketAddr::new(ip, port)]),
        Err(_) => Ok((bare, port).to_socket_addrs()?.collect()),
    }
}

fn error(message: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::NotServed, message).hint(hint)
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
            ("security: {api_keys: {enabled: false}}\n", "neither credentials nor"),
            ("security: {api_keys: {enabled: false}, anonymous: {scopes: [read], public: true}}\n", "public: true"),
            ("security: {anonymous: {scopes: [read, admin]}}\n", "must be [read]"),
            ("security: {anonymous: {scopes: []}}\n", "must be [read]"),
            ("security: {enabled: false, anonymous: {scopes: [read]}}\n", "security.enabled: false"),
            ("security: {jwt: {secret: x}}\n", "fewer than 32 bytes"),
            ("security: {jwt: {secret: x, algorithm: RS256, public_key_path: k}}\n", "needs the algorithm HS256"),
            ("security: {jwt: {public_key_path: k}}\n", "HS256 needs `security.jwt.secret`"),
            ("security: {jwt: {private_key_path: k, algorithm: RS256}}\n", "public_key_path"),
        ] {
            let refused = check(file);
            assert!(refused.len() == 1 && refused[0].contains(words), "{file}: {refused:?}");
        }
    }

    #[test]
    fn invalid_metrics_and_traces_are_rejected() {
        let metrics = |keys: &str| format!("{ANONYMOUS}metrics: {{enabled: true, {keys}}}\n");
        for (file, words) in [
            (metrics("path: /health/live"), "already the path of /health/live"),
            (metrics("path: /api/v1/query/meta/cubes/metrics"), "{cube_name}"),
            (format!("{ANONYMOUS}telemetry: {{otlp_endpoint: \"collector:4318\"}}\n"), "is not an http or https URL"),
        ] {
            let refused = check(&file);
            assert!(refused.len() == 1 && refused[0].contains(words), "{file}: {refused:?}");
        }
        for file in [
            metrics("path: /internal/metrics"),
            format!("{ANONYMOUS}metrics: {{path: /health/live}}\n"),
            format!("{ANONYMOUS}telemetry: {{otlp_endpoint: \"http://collector:4318\"}}\n"),
        ] {
            assert_eq!(check(&file), Vec::<String>::new(), "{file}");
        }
        let address = |keys: &str| metrics_address(&config::read(Some(&metrics(keys)), &Environment::default()).0);
        assert_eq!(address("path: /m").unwrap(), None);
        assert_eq!(address("address: \"127.0.0.1:9464\"").unwrap().map(|address| address.port()), Some(9464));
        assert!(address("address: \"[::1]:0\"").unwrap().is_some());
        for outside in ["0.0.0.0:9464", "[::]:1", "192.168.0.1:9464", "no such host:1"] {
            assert!(address(&format!("address: \"{outside}\"")).is_err(), "{outside}");
        }
        assert!(address("public: true, address: \"0.0.0.0:9464\"").unwrap().is_some());
    }

    #[test]
    fn certificate_outside_its_validity_is_warned_of() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let validity = Validity { from: time("2026-01-01T00:00:00Z"), until: time("2026-03-31T23:59:59Z") };
        for (now, is_good) in [
            ("2025-12-31T23:59:59Z", false),
            ("2026-01-01T00:00:00Z", true),
            ("2026-03-31T23:59:59Z", true),
            ("2026-04-01T00:00:00Z", false),
        ] {
            let warning = certificate(Some(validity), time(now));
            assert_eq!(warning.is_none(), is_good, "{now}");
            assert!(warning.is_none_or(|warning| !warning.is_error() && warning.to_string().contains("2026-03-31")));
        }
        assert!(certificate(None, time("2026-01-01T00:00:00Z")).is_none());
    }

    #[test]
    fn each_key_without_effect_is_one_warning() {
        let found = |file: &str, variables: &[(&str, &str)]| {
            let (config, problems) = config::read(
                Some(file),
                &variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            );
            assert!(problems.is_empty(), "{problems:?}");
            let warned = warnings(&config).into_iter().map(|warning| {
                assert_eq!((warning.code, warning.is_error()), (Code::NotYet, false));
                let key = warning.message.split('`').nth(1).unwrap().to_owned();
                (key, warning.span.map_or((0, 0), |span| (span.line, span.column)))
            });
            warned.collect::<Vec<_>>()
        };
        let at = |key: &str, line, column| (key.to_owned(), (line, column));
        assert_eq!(found("optimization: {cache_ttl_seconds: 1}\n", &[]), [at("optimization.cache_ttl_seconds", 1, 15)]);
        let lines = "cache:\n  enabled: true\n  ttl_seconds: 60\noptimization:\n  cache_ttl_seconds: 8\n";
        assert_eq!(found(lines, &[]), [at("optimization.cache_ttl_seconds", 5, 3)]);
        let variable = [("SERVICE_OPTIMIZATION__CACHE_TTL_SECONDS", "1")];
        assert_eq!(found("name: a\n", &variable), [at("optimization.cache_ttl_seconds", 0, 0)]);
    }

    #[test]
    fn wildcard_origin_is_warned_of_more_with_anonymous_access() {
        let warned = |file: &str| {
            let (config, _) = config::read(Some(file), &Environment::default());
            warnings(&config).iter().map(Diagnostic::to_string).collect::<String>()
        };
        let any = "server: {cors: {origins: [\"*\"]}}\n";
        assert!(warned(&format!("{any}{ANONYMOUS}")).contains("any page that a user of this machine opens"));
        assert!(warned(any).contains("any page can send requests with a credential"));
        assert!(warned("server: {cors: {origins: [\"https://a.b\"]}}\n").is_empty());
    }

    #[test]
    fn anonymous_access_requires_a_loopback_address() {
        let security = |file| config::read(Some(file), &Environment::default()).0.security;
        let open = security(ANONYMOUS);
        for host in ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "::ffff:127.0.0.1"] {
            assert!(address(&open, host, 80).is_ok(), "{host}");
        }
        for host in ["0.0.0.0", "::", "192.168.0.1", "::ffff:10.0.0.1", "no such host", ""] {
            assert!(address(&open, host, 80).is_err(), "{host}");
        }
        for file in ["name: a\n", "security: {anonymous: {scopes: [read], public: true}}\n"] {
            assert!(address(&security(file), "0.0.0.0", 80).is_ok(), "{file}");
        }
        assert!(address(&security("security: {api_keys: {enabled: false}}\n"), "0.0.0.0", 80).is_err());
    }
}
