//! What the operator listed: hosts and networks of their own that may be asked.
//!
//! In: the texts of `security.outgoing.allow`. Out: [`Allow`], which answers for a host and an address. A
//! listed host may lie on this machine or in a private network; what [`Reach::Never`] names stays closed.

use std::net::IpAddr;

use super::address::Reach;

/// Hosts and networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow {
    /// In lower case.
    hosts: Vec<String>,
    networks: Vec<Network>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    base: IpAddr,
    prefix: u8,
}

/// Why an entry is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowError {
    #[error("`{entry}` is neither an address, a network like 10.0.0.0/8, nor a host's name")]
    Unreadable { entry: String },
    #[error("`{entry}` cannot be listed: link-local, multicast and reserved addresses are never connected to")]
    Never { entry: String },
    #[error("`{entry}` is wider than a private network: list what is yours")]
    TooWide { entry: String },
}

impl Allow {
    /// # Errors
    /// The first entry that can't be listed.
    pub fn read<'t>(entries: impl IntoIterator<Item = &'t str>) -> Result<Self, AllowError> {
        let mut allow = Allow::default();
        for entry in entries {
            let bare = entry.trim_start_matches('[').trim_end_matches(']');
            if let Some(network) = network(bare) {
                allow.networks.push(check(entry, network)?);
            } else if is_host(entry) {
                allow.hosts.push(entry.to_ascii_lowercase());
            } else {
                return Err(AllowError::Unreadable { entry: entry.chars().take(100).collect() });
            }
        }
        Ok(allow)
    }

    /// Whether this host may be asked at this address.
    pub(super) fn lets(&self, host: &str, address: IpAddr) -> bool {
        match Reach::of(address) {
            Reach::Public => true,
            Reach::Never => false,
            Reach::Private | Reach::Loopback => self.names(host) || self.holds(address),
        }
    }

    /// Whether an address is one of the listed networks'.
    pub(super) fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.holds(address))
    }

    /// Whether a host is listed by its name.
    pub(super) fn names(&self, host: &str) -> bool {
        self.hosts.iter().any(|listed| listed.eq_ignore_ascii_case(host))
    }
}

impl Network {
    fn holds(&self, address: IpAddr) -> bool {
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

/// `10.0.0.0/8`, or one address.
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

fn check(entry: &str, network: Network) -> Result<Network, AllowError> {
    let entry = || entry.to_owned();
    // The narrowest of the ranges that may be listed: 127/8, 10/8, fc00::/7.
    let widest = if network.base.is_ipv4() { 8 } else { 7 };
    match Reach::of(network.base) {
        Reach::Never => Err(AllowError::Never { entry: entry() }),
        _ if network.prefix < widest => Err(AllowError::TooWide { entry: entry() }),
        _ => Ok(network),
    }
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // A name of digits and dots alone is an address that was written wrongly.
    (1..=253).contains(&text.len())
        && text.split('.').all(is_label)
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !text.to_ascii_lowercase().starts_with("0x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_hosts_and_networks_are_let_and_nothing_beside() {
        let allow = Allow::read(["127.0.0.1", "10.0.0.0/8", "idp.internal", "fd12::/16", "[::1]"]).unwrap();
        for (host, address, is_let) in [
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
            assert_eq!(allow.lets(host, address.parse().unwrap()), is_let, "{host} {address}");
        }
    }

    #[test]
    fn what_cannot_be_listed_is_told() {
        for entry in ["", "10.0.0.0/33", "a b", "https://idp.internal", "*.internal", "10.1", "0x7f000001", "a..b"] {
            assert!(matches!(Allow::read([entry]), Err(AllowError::Unreadable { .. })), "{entry}");
        }
        for entry in ["169.254.169.254", "0.0.0.0/0", "::/0", "fe80::/10", "224.0.0.0/4"] {
            assert!(matches!(Allow::read([entry]), Err(AllowError::Never { .. })), "{entry}");
        }
        assert!(matches!(Allow::read(["8.0.0.0/5"]), Err(AllowError::TooWide { .. })));
    }
}
