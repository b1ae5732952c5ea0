//! The network settings of `server` and `limits`: host names, origins, certificates, limits.
//!
//! In: the reader. Out: typed values; invalid origins, hosts and rates are reported with the reason. Not here: checking
//! that certificate and key match (`wiring`), rules for starting a server (`start_rules`).

use std::net::IpAddr;
use std::num::NonZeroU32;

use ipnet::IpNet;
use terrane_app::limits::{Rate, RateSettings};
use terrane_compiler::diagnostic::{Code, Diagnostic};

use super::place::Place;
use super::reader::{Section, WithPlace};

/// The web pages that may read responses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CorsConfig {
    /// Origins as browsers send them.
    pub origins: Vec<String>,
    /// The place of a `*`, which allows all origins, if there is one.
    pub any: Option<Place>,
}

/// The paths of a certificate and its key, relative to the project's folder or absolute.
#[derive(Debug, Clone)]
pub struct TlsConfig {
    pub cert_path: WithPlace<String>,
    pub key_path: WithPlace<String>,
}

/// The rate limits of callers.
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    pub rates: RateSettings,
    pub max_concurrent_per_tenant: Option<usize>,
    pub max_queued_per_tenant: Option<usize>,
}

/// The default rate of failed credentials per address. A misconfigured dashboard stays below this rate; an attacker who
/// guesses credentials exceeds it.
const FAILED: Rate = Rate { requests_per_second: 10.0, burst: NonZeroU32::new(100).expect("100 is not 0") };
const RATES: std::ops::RangeInclusive<f64> = 0.01..=100_000.0;

pub(super) fn cors(s: &mut Section<'_>) -> CorsConfig {
    let mut config = CorsConfig::default();
    for WithPlace { value, place } in s.texts_with_places("origins").unwrap_or_default() {
        match origin_fault(&value) {
            _ if value == "*" => config.any = Some(place),
            None => config.origins.push(value),
            Some((what, hint)) => {
                let message = format!("`{}` of `server.cors.origins` {what}", shorten(&value));
                s.report(place.mark(Diagnostic::error(Code::WrongValue, message).hint(hint)));
            }
        }
    }
    config
}

/// Returns the fault and a hint for a string that is not an origin as browsers send it (RFC 6454, section 6.1).
fn origin_fault(text: &str) -> Option<(&'static str, String)> {
    let example = || "Write an origin such as https://app.example.org.".to_owned();
    let Some((scheme, rest)) = text.split_once("://") else { return Some(("is not an origin", example())) };
    if text.contains('*') {
        return Some(("contains a `*`", "List each origin separately. `*` alone means all origins.".to_owned()));
    }
    if !matches!(scheme, "http" | "https") {
        return Some(("is neither http nor https", example()));
    }
    if let Some(end) = rest.find(['/', '?', '#']) {
        return Some(("has a path", format!("Write `{scheme}://{}`.", &rest[..end])));
    }
    if rest.chars().any(char::is_uppercase) {
        return Some(("is not in lower case, as browsers send it", format!("Write `{}`.", text.to_lowercase())));
    }
    let default_port = if scheme == "https" { ":443" } else { ":80" };
    if let Some(bare) = rest.strip_suffix(default_port) {
        return Some(("has its scheme's own port, which browsers leave out", format!("Write `{scheme}://{bare}`.")));
    }
    (!is_authority(rest)).then(|| ("is not an origin", example()))
}

fn is_authority(text: &str) -> bool {
    let (name, port) = match text.rfind(':') {
        Some(colon) if !text.ends_with(']') => (&text[..colon], Some(&text[colon + 1..])),
        _ => (text, None),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|number| number > 0));
    is_port && (is_host(name) || is_bracketed(name))
}

fn is_bracketed(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
}

/// Returns true for a host name of letters, digits, `-`, `_` and dots. Names in other scripts are written as `xn--…`.
fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

pub(super) fn allowed_hosts(s: &mut Section<'_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for WithPlace { value, place } in s.texts_with_places("allowed_hosts").unwrap_or_default() {
        if is_host(&value) {
            hosts.push(value.to_ascii_lowercase());
            continue;
        }
        let message = format!("`{}` of `server.allowed_hosts` is not a host name", shorten(&value));
        let hint = "Write the name without scheme, port and path, such as bi.example.org.";
        s.report(place.mark(Diagnostic::error(Code::WrongValue, message).hint(hint)));
    }
    hosts
}

pub(super) fn trusted_proxies(s: &mut Section<'_>) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for WithPlace { value, place } in s.texts_with_places("trusted_proxies").unwrap_or_default() {
        match network(&value) {
            Ok(network) => networks.push(network),
            Err((fault, hint)) => {
                let message = format!("`{}` of `server.trusted_proxies` {fault}", shorten(&value));
                s.report(place.mark(Diagnostic::error(Code::WrongValue, message).hint(hint)));
            }
        }
    }
    networks
}

/// Reads an address or a network (`10.0.0.0/8`). An IPv4 address in IPv6 form means the IPv4 address.
///
/// # Errors
/// Returns the fault, and a hint.
fn network(text: &str) -> Result<IpNet, (&'static str, String)> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_canonical().into());
    }
    let Ok(network) = text.parse::<IpNet>() else {
        let hint = "Write an address like 10.0.0.7 or a network like 10.0.0.0/8.";
        return Err(("is not an address or a network", hint.to_owned()));
    };
    if network.prefix_len() == 0 {
        let hint = "List only the addresses of the proxies.";
        return Err(("trusts every address, so any client could claim the address of another", hint.to_owned()));
    }
    if network.addr() != network.network() {
        return Err(("has bits set after its prefix", format!("Write `{}`.", network.trunc())));
    }
    Ok(network)
}

pub(super) fn tls(s: &mut Section<'_>) -> Option<TlsConfig> {
    let (cert, key) = (s.text_with_place("cert_path"), s.text_with_place("key_path"));
    let lacks = |place: &Place, has: &str, lacks: &str| {
        let message = format!("`server.tls.{has}` is set, and `server.tls.{lacks}` is not");
        place.mark(Diagnostic::error(Code::WrongValue, message).hint("Set both to PEM files."))
    };
    match (cert, key) {
        (Some(cert_path), Some(key_path)) => return Some(TlsConfig { cert_path, key_path }),
        (Some(cert), None) => s.report(lacks(&cert.place, "cert_path", "key_path")),
        (None, Some(key)) => s.report(lacks(&key.place, "key_path", "cert_path")),
        (None, None) => {}
    }
    None
}

pub(super) fn limits(s: &mut Section<'_>) -> LimitsConfig {
    let rates = s.section("rate", |s| RateSettings {
        per_key: rate(s, "per_key", None),
        per_tenant: rate(s, "per_tenant", None),
        anonymous: rate(s, "anonymous", None),
        failed: rate(s, "failed_credentials", Some(FAILED)),
    });
    LimitsConfig {
        rates,
        max_concurrent_per_tenant: s.integer("max_concurrent_per_tenant", 1..=10_000).map(|n| n as usize),
        max_queued_per_tenant: s.integer("max_queued_per_tenant", 0..=1_000_000).map(|n| n as usize),
    }
}

/// Reads `{requests_per_second: 50, burst: 100}`. The default of `burst` is twice the rate. 0 means no limit.
fn rate(s: &mut Section<'_>, key: &'static str, default: Option<Rate>) -> Option<Rate> {
    let Some(place) = s.place(key) else { return default };
    s.section(key, |s| {
        let wanted = "a number from 0.01 to 100000, or 0 for no limit";
        let number = s.number("requests_per_second", wanted, 0..=100_000, |text| {
            text.trim().parse::<f64>().ok().filter(|number| *number == 0.0 || RATES.contains(number))
        });
        let burst = s.integer("burst", 1..=100_000).and_then(|burst| NonZeroU32::new(burst as u32));
        match number {
            None => {
                let message = format!("`limits.rate.{key}` lacks `requests_per_second`");
                let hint = "Write `{requests_per_second: 50, burst: 100}`.";
                if s.place("requests_per_second").is_none() {
                    s.report(place.mark(Diagnostic::error(Code::WrongValue, message).hint(hint)));
                }
                default
            }
            Some(0.0) => None,
            Some(requests_per_second) => {
                let twice = NonZeroU32::new((2.0 * requests_per_second).ceil() as u32).unwrap_or(NonZeroU32::MIN);
                Some(Rate { requests_per_second, burst: burst.unwrap_or(twice) })
            }
        }
    })
}

fn shorten(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Environment, read};

    fn problems(file: &str) -> Vec<String> {
        read(Some(file), &Environment::default()).1.iter().map(Diagnostic::to_string).collect()
    }

    fn config(file: &str) -> Config {
        let (config, problems) = read(Some(file), &Environment::default());
        assert!(problems.is_empty(), "{file}: {problems:?}");
        config
    }

    #[test]
    fn origin_has_the_form_that_browsers_send() {
        let good = "http://localhost:3000, https://app.example.org, \"http://[::1]:8080\", http://127.0.0.1";
        let cors = config(&format!("server: {{cors: {{origins: [{good}]}}}}\n")).server.cors;
        assert_eq!((cors.origins.len(), cors.any), (4, None));
        assert!(config("server: {cors: {origins: [\"*\"]}}\n").server.cors.any.is_some());
        for (text, words) in [
            ("app.example.org", "is not an origin"),
            ("https://app.example.org/", "Write `https://app.example.org`"),
            ("https://app.example.org/a?b", "has a path"),
            ("https://App.example.org", "Write `https://app.example.org`"),
            ("https://app.example.org:443", "Write `https://app.example.org`"),
            ("http://app.example.org:80", "own port"),
            ("https://*.example.org", "contains a `*`"),
            ("ftp://app.example.org", "neither http nor https"),
            ("https://", "is not an origin"),
            ("https://a b", "is not an origin"),
            ("https://a:99999", "is not an origin"),
            ("https://me@a", "is not an origin"),
            ("null", "is not an origin"),
        ] {
            let found = problems(&format!("server: {{cors: {{origins: [\"{text}\"]}}}}\n"));
            assert!(found.len() == 1 && found[0].contains(words), "{text}: {found:?}");
        }
    }

    #[test]
    fn allowed_host_is_a_bare_name() {
        assert_eq!(
            config("server: {allowed_hosts: [BI.example.org, db]}\n").server.allowed_hosts,
            ["bi.example.org", "db"]
        );
        for text in ["https://a", "a:80", "a/b", "", "a..b"] {
            let found = problems(&format!("server: {{allowed_hosts: [\"{text}\"]}}\n"));
            assert!(found.len() == 1 && found[0].contains("is not a host name"), "{text}: {found:?}");
        }
    }

    #[test]
    fn trusted_proxy_is_an_address_or_a_network() {
        let file = "server: {trusted_proxies: [10.0.0.0/8, 192.0.2.1, \"fd00::/8\", \"::ffff:192.0.2.2\"]}\n";
        let networks: Vec<String> = config(file).server.trusted_proxies.iter().map(IpNet::to_string).collect();
        assert_eq!(networks, ["10.0.0.0/8", "192.0.2.1/32", "fd00::/8", "192.0.2.2/32"]);
        assert!(config("name: a\n").server.trusted_proxies.is_empty());
        for (text, words) in [
            ("proxy.example.org", "is not an address"),
            ("10.0.0.0/33", "is not an address"),
            ("10.0.0.7:80", "is not an address"),
            ("", "is not an address"),
            ("10.0.0.7/8", "Write `10.0.0.0/8`."),
            ("0.0.0.0/0", "trusts every address"),
            ("::/0", "trusts every address"),
        ] {
            let found = problems(&format!("server: {{trusted_proxies: [\"{text}\"]}}\n"));
            assert!(found.len() == 1 && found[0].contains(words), "{text}: {found:?}");
        }
    }

    #[test]
    fn tls_needs_both_files() {
        assert!(config("server: {tls: {cert_path: a, key_path: b}}\n").server.tls.is_some());
        for (file, words) in [
            ("server: {tls: {cert_path: a}}\n", "`server.tls.key_path` is not"),
            ("server: {tls: {key_path: a}}\n", "`server.tls.cert_path` is not"),
        ] {
            let found = problems(file);
            assert!(found.len() == 1 && found[0].contains(words), "{file}: {found:?}");
        }
    }

    #[test]
    fn only_failed_credentials_are_limited_by_default() {
        let rates = config("name: a\n").limits.rates;
        assert!(rates.per_key.is_none() && rates.per_tenant.is_none() && rates.anonymous.is_none());
        assert_eq!(rates.failed, Some(FAILED));
        let file = "limits: {rate: {per_key: {requests_per_second: 0.5}, anonymous: {requests_per_second: 5, burst: 7}, \
                    failed_credentials: {requests_per_second: 0}}, max_concurrent_per_tenant: 4}\n";
        let limits = config(file).limits;
        let of = |rate: Option<Rate>| rate.map(|rate| (rate.requests_per_second, rate.burst.get()));
        assert_eq!((of(limits.rates.per_key), of(limits.rates.anonymous)), (Some((0.5, 1)), Some((5.0, 7))));
        assert_eq!((limits.rates.failed, limits.max_concurrent_per_tenant), (None, Some(4)));
        for (rate, words) in [
            ("{burst: 5}", "lacks `requests_per_second`"),
            ("{requests_per_second: -1}", "from 0.01"),
            ("{requests_per_second: nan}", "from 0.01"),
            ("{requests_per_second: 5, burst: 0}", "integer from 1"),
            ("5", "must be a mapping"),
        ] {
            let found = problems(&format!("limits: {{rate: {{per_key: {rate}}}}}\n"));
            assert!(found.iter().any(|problem| problem.contains(words)), "{rate}: {found:?}");
        }
    }
}
