//! The client's address behind trusted proxies.
//!
//! In: the address of the socket's peer, and headers. Out: one address. `Forwarded` is read by RFC 7239,
//! `X-Forwarded-For` in its usual form. Each proxy appends the address of its peer, so both lists are read from the
//! right, and the first address that is not a trusted proxy is the client. Addresses to the left of it are claims of
//! the client. Not here: the scheme and host that proxies report.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::{FORWARDED, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The largest number of proxies in a row that are considered.
const MAX_PROXIES: usize = 32;

/// The networks of proxies whose headers are trusted. If there are none, the peer is the client.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    pub fn new(networks: &[IpNet]) -> Self {
        TrustedProxies(networks.into())
    }

    /// Returns the right-most address that is not that of a trusted proxy. An entry that is not an address
    /// ends the list; the client is then the proxy that wrote this entry. A list longer than [`MAX_PROXIES`] ends there
    /// in the same way.
    ///
    /// A proxy sets one of the two headers and may forward the other as the client sent it. If both are present and
    /// differ, neither is used.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.trust(peer) {
            return peer;
        }
        match (self.by_forwarded(peer, headers), self.by_x_forwarded_for(peer, headers)) {
            (Some(client), None) | (None, Some(client)) => client,
            (Some(one), Some(other)) if one == other => one,
            _ => peer,
        }
    }

    fn trust(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    fn by_forwarded(&self, peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        let lines = headers.get_all(FORWARDED);
        lines.iter().next()?;
        let nodes = lines.iter().rev().flat_map(|line| {
            // In a malformed line it is unknown which proxy wrote which part, so the line counts as one unknown
            // address.
            let nodes = line.to_str().ok().and_then(forwarded_nodes).unwrap_or_else(|| vec![None]);
            nodes.into_iter().rev()
        });
        Some(self.walk(peer, nodes))
    }

    fn by_x_forwarded_for(&self, peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        let lines = headers.get_all(X_FORWARDED_FOR);
        lines.iter().next()?;
        let nodes = lines.iter().rev().flat_map(|line| line.to_str().unwrap_or_default().rsplit(',').map(address));
        Some(self.walk(peer, nodes))
    }

    fn walk(&self, peer: IpAddr, nodes: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut client = peer;
        for node in nodes.take(MAX_PROXIES) {
            let Some(address) = node else { break };
            client = address;
            if !self.trust(client) {
                break;
            }
        }
        client
    }
}

/// Reads an address with or without a port: `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`.
/// Returns `None` for `unknown`, for an obfuscated identifier (`_hidden`), and for everything else.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches([' ', '\t']);
    let found = if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let is_whole = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        IpAddr::V6(address.parse::<Ipv6Addr>().ok().filter(|_| is_whole)?)
    } else if let Ok(address) = text.parse::<IpAddr>() {
        address
    } else {
        let (address, port) = text.split_once(':')?;
        IpAddr::V4(address.parse::<Ipv4Addr>().ok().filter(|_| is_port(port))?)
    };
    Some(found.to_canonical())
}

/// Returns whether a string is a port number or an obfuscated port (RFC 7239, section 6.3).
fn is_port(text: &str) -> bool {
    let is_obfuscated = |rest: &str| !rest.is_empty() && rest.bytes().all(is_token_byte);
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
        || text.strip_prefix('_').is_some_and(is_obfuscated)
}

/// Reads the parameter `for` of each element of one line. Returns `None` if the line violates the grammar of RFC 7239,
/// section 4.
fn forwarded_nodes(line: &str) -> Option<Vec<Option<IpAddr>>> {
    let mut rest = Rest(line);
    let mut nodes = Vec::new();
    loop {
        let (mut node, mut is_empty) = (None, true);
        let end = loop {
            rest.skip_blanks();
            let name = rest.take_while(is_token_byte);
            if !name.is_empty() {
                rest.skip('=')?;
                let value = rest.value()?;
                is_empty = false;
                if name.eq_ignore_ascii_case("for") && node.replace(address(&value)).is_some() {
                    return None;
                }
            }
            rest.skip_blanks();
            match rest.next() {
                Some(';') => {}
                end @ (Some(',') | None) => break end,
                Some(_) => return None,
            }
        };
        // A list may have empty elements (RFC 9110, section 5.6.1.2).
        if !is_empty {
            nodes.push(node.flatten());
        }
        if end.is_none() {
            return Some(nodes);
        }
    }
}

/// The unread rest of a line.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.0.chars();
        let next = chars.next();
        self.0 = chars.as_str();
        next
    }

    fn skip(&mut self, expected: char) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take_while(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let end = self.0.bytes().position(|byte| !fits(byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    /// Reads a token or a quoted string. Addresses with colons and brackets are also read without quotes, which some
    /// proxies omit.
    fn value(&mut self) -> Option<String> {
        if self.skip('"').is_none() {
            let value = self.take_while(|byte| is_token_byte(byte) || b":[]".contains(&byte));
            return (!value.is_empty()).then(|| value.to_owned());
        }
        let mut value = String::new();
        loop {
            match self.next()? {
                '"' => return Some(value),
                '\\' => value.push(self.next()?),
                other => value.push(other),
            }
        }
    }
}

/// Returns whether a byte may be in a token (RFC 9110, section 5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn client(peer: &str, lines: &[(HeaderName, &str)]) -> String {
        let networks = ["10.0.0.0/8", "192.168.1.1/32", "fd00::/8"].map(|network| network.parse().unwrap());
        let mut headers = HeaderMap::new();
        for (name, line) in lines {
            headers.append(name, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        TrustedProxies::new(&networks).client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn headers_of_an_untrusted_peer_are_ignored() {
        for name in [FORWARDED, X_FORWARDED_FOR] {
            let line = if name == FORWARDED { "for=203.0.113.7" } else { "203.0.113.7" };
            assert_eq!(client("198.51.100.1", &[(name.clone(), line)]), "198.51.100.1");
            let nothing = TrustedProxies::default();
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(line))]);
            let peer = "10.0.0.1".parse().unwrap();
            assert_eq!(nothing.client(peer, &headers), peer);
        }
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn right_most_untrusted_address_is_the_client() {
        for (line, expected) in [
            ("203.0.113.7", "203.0.113.7"),
            ("203.0.113.7:4711", "203.0.113.7"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("1.1.1.1, 203.0.113.7, 10.1.2.3,192.168.1.1", "203.0.113.7"),
            ("1.1.1.1,\t203.0.113.7 , fd12::1", "203.0.113.7"),
            // All addresses are trusted, so the client is the left-most one.
            ("10.9.9.9, 10.1.2.3", "10.9.9.9"),
        ] {
            assert_eq!(client("10.0.0.1", &[(X_FORWARDED_FOR, line)]), expected, "{line}");
            assert_eq!(client("::ffff:10.0.0.1", &[(X_FORWARDED_FOR, line)]), expected, "{line}");
        }
        let lines = [(X_FORWARDED_FOR, "1.1.1.1"), (X_FORWARDED_FOR, "203.0.113.7"), (X_FORWARDED_FOR, "10.1.2.3")];
        assert_eq!(client("10.0.0.1", &lines), "203.0.113.7");
    }

    #[test]
    fn entry_without_an_address_ends_the_list() {
        for (line, expected) in [
            ("", "10.0.0.1"),
            ("unknown", "10.0.0.1"),
            ("_hidden", "10.0.0.1"),
            ("203.0.113.7, unknown, 10.1.2.3", "10.1.2.3"),
            ("203.0.113.7,,10.1.2.3", "10.1.2.3"),
            ("203.0.113.7:99999", "10.0.0.1"),
            ("203.0.113.7:", "10.0.0.1"),
            ("203.0.113.7:-1", "10.0.0.1"),
            ("203.0.113.7 evil", "10.0.0.1"),
            ("203.0.113.256", "10.0.0.1"),
            ("0xcb.0.113.7", "10.0.0.1"),
            ("[203.0.113.7]", "10.0.0.1"),
            ("[2001:db8::1", "10.0.0.1"),
            ("[2001:db8::1]x", "10.0.0.1"),
            ("2001:db8::1%eth0", "10.0.0.1"),
            ("203.0.113.\u{e9}", "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &[(X_FORWARDED_FOR, line)]), expected, "{line}");
        }
    }

    #[test]
    fn forwarded_is_read_by_its_grammar() {
        for (line, expected) in [
            ("for=203.0.113.7", "203.0.113.7"),
            ("For=203.0.113.7;proto=https;by=10.0.0.1", "203.0.113.7"),
            ("proto=https ; for=\"203.0.113.7:4711\"", "203.0.113.7"),
            ("for=\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("for=\"[2001:db8::1]:_port\"", "2001:db8::1"),
            ("for=[2001:db8::1]", "2001:db8::1"),
            ("for=\"203.0.113.\\7\"", "203.0.113.7"),
            ("for=1.1.1.1, , for=203.0.113.7;host=\"a,b;c\", for=10.1.2.3", "203.0.113.7"),
            ("for=203.0.113.7, for=unknown, for=10.1.2.3", "10.1.2.3"),
            ("for=203.0.113.7, for=_hidden", "10.0.0.1"),
            ("for=203.0.113.7, proto=https", "10.0.0.1"),
            // Each of these lines may contain a part that the client sent, so it is not used.
            ("for=\", for=203.0.113.7", "10.0.0.1"),
            ("for=1.1.1.1;x=\", for=\"[2001:db8::1]:1\"", "10.0.0.1"),
            ("for=1.1.1.1;for=203.0.113.7", "10.0.0.1"),
            ("for=203.0.113.7 evil", "10.0.0.1"),
            ("for", "10.0.0.1"),
            ("for=", "10.0.0.1"),
            ("=203.0.113.7", "10.0.0.1"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &[(FORWARDED, line)]), expected, "{line}");
        }
        let lines = [(FORWARDED, "for=\"1.1.1.1"), (FORWARDED, "for=203.0.113.7")];
        assert_eq!(client("10.0.0.1", &lines), "203.0.113.7");
    }

    #[test]
    fn headers_that_disagree_are_not_believed() {
        let both = |forwarded, x| client("10.0.0.1", &[(FORWARDED, forwarded), (X_FORWARDED_FOR, x)]);
        assert_eq!(both("for=203.0.113.7", "203.0.113.7"), "203.0.113.7");
        assert_eq!(both("for=203.0.113.7", "1.1.1.1, 203.0.113.7"), "203.0.113.7");
        assert_eq!(both("for=1.1.1.1", "203.0.113.7"), "10.0.0.1");
    }

    #[test]
    fn long_list_is_bounded() {
        let line = format!("203.0.113.7{}", ", 10.1.2.3".repeat(1_000));
        assert_eq!(client("10.0.0.1", &[(X_FORWARDED_FOR, &line)]), "10.1.2.3");
        let line = format!("1.1.1.1, 203.0.113.7{}", ", 10.1.2.3".repeat(MAX_PROXIES - 1));
        assert_eq!(client("10.0.0.1", &[(X_FORWARDED_FOR, &line)]), "203.0.113.7");
    }
}
