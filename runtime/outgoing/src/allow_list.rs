//! The operator's list of non-public hosts and networks that requests may go to.
//!
//! In: the entries of `security.outgoing.allow`, each with an optional port. Out: an [`AllowList`], which decides about a
//! host, its address and a port. A listed host may be on this machine or in a private network.
//! [`AddressClass::Forbidden`] addresses stay forbidden.

use std::net::IpAddr;

use crate::address::AddressClass;

/// Listed hosts and networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    /// The host names, in lower case, each with its only port. Without a port, all ports are listed.
    hosts: Vec<(String, Option<u16>)>,
    networks: Vec<(Network, Option<u16>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    base: IpAddr,
    prefix: u8,
}

/// The reason why an entry is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowListError {
    #[error(
        "invalid entry `{entry}`: expected an address, a network such as 10.0.0.0/8, or a host name, each with an optional port"
    )]
    Invalid { entry: String },
    #[error("`{entry}` cannot be listed: it contains link-local, multicast or reserved addresses")]
    Forbidden { entry: String },
    #[error("`{entry}` is larger than a private network")]
    TooWide { entry: String },
}

impl AllowList {
    /// Parses the entries.
    ///
    /// # Errors
    /// [`AllowListError`], for the first entry that is not accepted.
    pub fn parse<'t>(entries: impl IntoIterator<Item = &'t str>) -> Result<Self, AllowListError> {
        let mut list = AllowList::default();
        for entry in entries {
            let (host, port) = with_port(entry);
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            if let Some(network) = network(bare) {
                list.networks.push((check(entry, network)?, port));
            } else if is_host(host) {
                list.hosts.push((host.to_ascii_lowercase(), port));
            } else {
                return Err(AllowListError::Invalid { entry: entry.chars().take(100).collect() });
            }
        }
        Ok(list)
    }

    /// Returns true if a request to this host and port may go to this address. Without a port, the host is a name whose
    /// port [`allows_name`](Self::allows_name) has checked.
    pub(super) fn allows(&self, host: &str, address: IpAddr, port: Option<u16>) -> bool {
        match AddressClass::of(address) {
            AddressClass::Public => true,
            AddressClass::Forbidden => false,
            AddressClass::Private | AddressClass::Loopback => {
                self.contains_host(host) || self.contains_address(address, port)
            }
        }
    }

    /// Returns false if the host name is listed with other ports only.
    pub(super) fn allows_name(&self, host: &str, port: u16) -> bool {
        let mut listed = self.hosts.iter().filter(|(listed, _)| listed.eq_ignore_ascii_case(host)).peekable();
        listed.peek().is_none() || listed.any(|(_, own)| own.is_none_or(|own| own == port))
    }

    /// Returns true if a listed network contains the address. Networks with a port count for this port only.
    pub(super) fn contains_address(&self, address: IpAddr, port: Option<u16>) -> bool {
        let address = address.to_canonical();
        let mut networks = self.networks.iter().filter(|(_, own)| own.is_none() || *own == port);
        networks.any(|(network, _)| network.contains(address))
    }

    /// Returns true if the host is listed by name.
    pub(super) fn contains_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|(listed, _)| listed.eq_ignore_ascii_case(host))
    }
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                u32::from(base).checked_shr(shift).unwrap_or(0) == u32::from(address).checked_shr(shift).unwrap_or(0)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix);
                u128::from(base).checked_shr(shift).unwrap_or(0) == u128::from(address).checked_shr(shift).unwrap_or(0)
            }
            _ => false,
        }
    }
}

/// Splits an entry into a host or network and its port. An IPv6 address with a port is in brackets.
fn with_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse::<u16>() {
            Ok(port) if port > 0 && port.to_string() == entry[host.len() + 1..] => (host, Some(port)),
            _ => (entry, None),
        },
        _ => (entry, None),
    }
}

/// Parses a network such as `10.0.0.0/8`, or a single address.
fn network(text: &str) -> Option<Network> {
    let (base, prefix) = match text.split_once('/') {
        Some((base, prefix)) => (base.parse::<IpAddr>().ok()?, Some(prefix.parse::<u8>().ok()?)),
        None => (text.parse::<IpAddr>().ok()?, None),
    };
    let base = if prefix.is_none() { base.to_canonical() } else { base };
    let bits = if base.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.unwrap_or(bits);
    (prefix <= bits).then_some(Network { base, prefix })
}

fn check(entry: &str, network: Network) -> Result<Network, AllowListError> {
    let entry = || entry.to_owned();
    // The largest ranges that may be listed are 127/8, 10/8 and fc00::/7.
    let widest = if network.base.is_ipv4() { 8 } else { 7 };
    match AddressClass::of(network.base) {
        AddressClass::Forbidden => Err(AllowListError::Forbidden { entry: entry() }),
        _ if network.prefix < widest => Err(AllowListError::TooWide { entry: entry() }),
        _ => Ok(network),
    }
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // A name of digits and dots only is a misspelled address.
    (1..=253).contains(&text.len())
        && text.split('.').all(is_label)
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !text.to_ascii_lowercase().starts_with("0x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_hosts_and_networks_are_allowed_and_no_others() {
        let list = AllowList::parse(["127.0.0.1", "10.0.0.0/8", "idp.internal", "fd12::/16", "[::1]"]).unwrap();
        for (host, address, is_allowed) in [
            ("a.example", "8.8.8.8", true),
            ("a.example", "127.0.0.1", true),
            ("a.example", "127.0.0.2", false),
            ("a.example", "10.9.8.7", true),
            ("a.example", "::ffff:10.9.8.7", true),
            ("a.example", "192.168.0.1", false),
            ("a.example", "fd12::9", true),
            ("a.example", "fd13::9", false),
            ("a.example", "::1", true),
            ("IDP.internal", "192.168.0.1", true),
            ("idp.internal", "127.8.0.1", true),
            ("idp.internal", "169.254.169.254", false),
            ("idp.internal", "64:ff9b::a00:1", false),
            ("x.idp.internal", "192.168.0.1", false),
        ] {
            assert_eq!(list.allows(host, address.parse().unwrap(), None), is_allowed, "{host} {address}");
        }
    }

    #[test]
    fn ports_limit_their_entries() {
        let list = AllowList::parse(["127.0.0.1:8080", "10.0.0.0/8:443", "[::1]:9000", "hook.internal:8443", "any"]);
        let list = list.unwrap();
        for (address, port, is_listed) in [
            ("127.0.0.1", Some(8080), true),
            ("127.0.0.1", Some(8081), false),
            // A name that resolves to the address, for which the port is unknown.
            ("127.0.0.1", None, false),
            ("10.1.2.3", Some(443), true),
            ("10.1.2.3", Some(80), false),
            ("::1", Some(9000), true),
            ("::1", Some(9001), false),
        ] {
            assert_eq!(list.contains_address(address.parse().unwrap(), port), is_listed, "{address} {port:?}");
        }
        assert!(list.allows_name("Hook.internal", 8443) && !list.allows_name("hook.internal", 443));
        assert!(list.allows_name("any", 1) && list.allows_name("other.example", 1));
        assert!(list.allows("hook.internal", "10.9.9.9".parse().unwrap(), None));
        for entry in ["127.0.0.1:0", "127.0.0.1:65536", "host:", "host:+80", "host:080", ":80", "a:b:80"] {
            assert!(matches!(AllowList::parse([entry]), Err(AllowListError::Invalid { .. })), "{entry}");
        }
    }

    #[test]
    fn invalid_allow_list_entries_are_rejected() {
        for entry in ["", "10.0.0.0/33", "a b", "https://idp.internal", "*.internal", "10.1", "0x7f000001", "a..b"] {
            assert!(matches!(AllowList::parse([entry]), Err(AllowListError::Invalid { .. })), "{entry}");
        }
        for entry in ["169.254.169.254", "0.0.0.0/0", "::/0", "fe80::/10", "224.0.0.0/4"] {
            assert!(matches!(AllowList::parse([entry]), Err(AllowListError::Forbidden { .. })), "{entry}");
        }
        assert!(matches!(AllowList::parse(["8.0.0.0/5"]), Err(AllowListError::TooWide { .. })));
    }
}
