//! The host names by which callers without a credential may address the server.
//!
//! A page of any site can make a browser send requests to this machine if the site's name resolves to the machine's
//! address (DNS rebinding). The browser then treats the answers as the site's own. The page cannot change `Host`, which
//! contains the site's name. Callers with a credential are not checked, because such a page has no credential.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::header::HOST;

/// The allowed host names. Addresses and `localhost` are always allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// Any host name is allowed.
    Any,
    /// The allowed host names, in lower case and without a port.
    Listed(Vec<String>),
}

impl Default for Hosts {
    fn default() -> Self {
        Hosts::Listed(Vec::new())
    }
}

impl Hosts {
    /// Returns whether all host names in the request's target and its `Host` headers are allowed. A request without a
    /// host name is allowed, because it is not a browser's.
    pub(crate) fn hold_that_of(&self, request: &Request) -> bool {
        let Hosts::Listed(listed) = self else { return true };
        let of_target = request.uri().authority().map(|authority| Some(authority.as_str()));
        let of_headers = request.headers().get_all(HOST).iter().map(|host| host.to_str().ok());
        of_target.into_iter().chain(of_headers).all(|host| host.is_some_and(|host| is_known(host, listed)))
    }
}

fn is_known(host: &str, listed: &[String]) -> bool {
    let Some(name) = without_port(host) else { return false };
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let is_name = |known: &str| known.eq_ignore_ascii_case(name);
    name.parse::<IpAddr>().is_ok() || is_name("localhost") || listed.iter().any(|known| is_name(known))
}

/// Returns the name without a port, or `None` if the part after the colon is not a port.
fn without_port(host: &str) -> Option<&str> {
    let after_address = host.rfind(']').map_or(0, |bracket| bracket + 1);
    match host[after_address..].find(':') {
        None => Some(host),
        Some(colon) => {
            let (name, port) = host.split_at(after_address + colon);
            port[1..].bytes().all(|digit| digit.is_ascii_digit()).then_some(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn holds(hosts: &Hosts, target: &str, names: &[&str]) -> bool {
        let mut request = Request::builder().uri(target);
        for name in names {
            request = request.header(HOST, *name);
        }
        hosts.hold_that_of(&request.body(Body::empty()).unwrap())
    }

    #[test]
    fn addresses_localhost_and_listed_names_are_known() {
        let hosts = Hosts::Listed(vec!["bi.example.org".to_owned()]);
        for host in
            ["127.0.0.1:8000", "127.0.0.1", "[::1]:8000", "[::1]", "localhost", "LocalHost:80", "BI.example.org:8000"]
        {
            assert!(holds(&hosts, "/a", &[host]), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[::1].evil",
            "[evil]",
            "localhost:80:80",
            "localhost:x",
            "example.org",
            "",
            "a@localhost",
        ] {
            assert!(!holds(&hosts, "/a", &[host]), "{host}");
        }
    }

    #[test]
    fn every_host_name_of_a_request_is_checked() {
        let hosts = Hosts::default();
        assert!(holds(&hosts, "/a", &[]));
        assert!(!holds(&hosts, "/a", &["localhost", "evil.example"]));
        assert!(!holds(&hosts, "http://evil.example/a", &["localhost"]));
        assert!(holds(&hosts, "http://localhost:8000/a", &["localhost:8000"]));
        assert!(holds(&Hosts::Any, "/a", &["evil.example"]));
    }
}
