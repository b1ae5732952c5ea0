//! The operator's list of non-public hosts and networks that requests may go to.
//!
//! In: the entries of `security.outgoing.allow`. Out: an [`AllowList`], which decides about a host and its address. A
//! listed host may be on this machine or in a private network. [`AddressClass::Forbidden`] addresses stay forbidden.

use std::net::IpAddr;

use crate::address::AddressClass;

/// Listed hosts and networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    /// The host names, in lower case.
    hosts: Vec<String>,
    networks: Vec<Network>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    base: IpAddr,
    prefix: u8,
}

/// The reason why an entry is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowListError {
    #[error("invalid entry `{entry}`: expected an address, a network such as 10.0.0.0/8, or a host name")]
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
            let bare = entry.trim_start_matches('[').trim_end_matches(']');
            if let Some(network) = network(bare) {
                list.networks.push(check(entry, network)?);
            } else if is_host(entry) {
                list.hosts.push(entry.to_ascii_lowercase());
            } else {
                return Err(AllowListError::Invalid { entry: entry.chars().take(100).collect() });
            }
        }
        Ok(list)
    }

    /// Returns true if a request to this host may go to this address.
    pub(super) fn allows(&self, host: &str, address: IpAddr) -> bool {
        match AddressClass::of(address) {
            AddressClass::Public => true,
            AddressClass::Forbidden => false,
            AddressClass::Private | AddressClass::Loopback => {
                self.contains_host(host) || self.contains_address(address)
            }
        }
    }

    /// Returns true if a listed network contains the address.
    pub(super) fn contains_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Returns true if the host is listed by name.
    pub(super) fn contains_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|listed| listed.eq_ignore_ascii_case(host))
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
            assert_eq!(list.allows(host, address.parse().unwrap()), is_allowed, "{host} {address}");
        }
    }

    #[test]
    fn entries_that_cannot_be_listed_are_rejected() {
        for entry in ["", "10.0.0.0/33", "a b", "https://idp.internal", "*.internal", "10.1", "0x7f000001", "a..b"] {
            assert!(matches!(AllowList::parse([entry]), Err(AllowListError::Invalid { .. })), "{entry}");
        }
        for entry in ["169.254.169.254", "0.0.0.0/0", "::/0", "fe80::/10", "224.0.0.0/4"] {
            assert!(matches!(AllowList::parse([entry]), Err(AllowListError::Forbidden { .. })), "{entry}");
        }
        assert!(matches!(AllowList::parse(["8.0.0.0/5"]), Err(AllowListError::TooWide { .. })));
    }
}
