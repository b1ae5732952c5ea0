//! Classification of IP addresses.
//!
//! In: an address. Out: its [`AddressClass`]. An address that embeds another one (IPv4-mapped, NAT64, 6to4, Teredo)
//! could lead anywhere. An IPv4-mapped address is therefore unwrapped, and all others are forbidden. The ranges are
//! those of RFC 6890 and of the IANA registries that continue it. Not here: the operator's list (`allow_list`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressClass {
    /// A machine on the internet.
    Public,
    /// A machine in a private network. It is only allowed if it is listed.
    Private,
    /// An address of this machine. It is only allowed if it is listed.
    Loopback,
    /// An address that is never allowed, even if it is listed: link-local addresses, where clouds serve metadata, and
    /// multicast, unspecified and reserved addresses.
    Forbidden,
}

impl AddressClass {
    pub(super) fn of(address: IpAddr) -> AddressClass {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| of_v6(v6), of_v4),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressClass {
    let octets = address.octets();
    match octets {
        // A cloud's metadata service inside the range of carrier-grade NAT.
        [100, 100, 100, 200] => AddressClass::Forbidden,
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [192, 168, ..] => AddressClass::Private,
        [172, second, ..] if (16..32).contains(&second) => AddressClass::Private,
        // Carrier-grade NAT (RFC 6598).
        [100, second, ..] if (64..128).contains(&second) => AddressClass::Private,
        [0, ..] | [169, 254, ..] => AddressClass::Forbidden,
        // IETF protocol assignments, the relay of 6to4, AS112, documentation.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [192, 31, 196, _] | [192, 52, 193, _] | [192, 175, 48, _] => {
            AddressClass::Forbidden
        }
        [198, 51, 100, _] | [203, 0, 113, _] => AddressClass::Forbidden,
        // Benchmarks.
        [198, 18 | 19, ..] => AddressClass::Forbidden,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => AddressClass::Forbidden,
        _ => AddressClass::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    let segments = address.segments();
    // A cloud's metadata service inside the unique local range.
    if segments == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] {
        return AddressClass::Forbidden;
    }
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // Unique local.
        [first, ..] if first & 0xfe00 == 0xfc00 => AddressClass::Private,
        // 6to4, Teredo, the IETF's other special assignments, and prefixes for documentation.
        [0x2002, ..] | [0x3fff, ..] => AddressClass::Forbidden,
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => AddressClass::Forbidden,
        // Only addresses in 2000::/3 are assigned as global unicast. All others are link-local, site-local, multicast,
        // NAT64, discard, unspecified or unassigned.
        [first, ..] if first & 0xe000 == 0x2000 => AddressClass::Public,
        _ => AddressClass::Forbidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_class_of_their_range() {
        for (class, addresses) in [
            (
                AddressClass::Public,
                &[
                    "8.8.8.8",
                    "1.1.1.1",
                    "172.15.0.1",
                    "172.32.0.1",
                    "100.63.0.1",
                    "100.128.0.1",
                    "192.167.0.1",
                    "11.0.0.1",
                    "2606:4700::1111",
                    "2a00:1450::1",
                    "::ffff:8.8.8.8",
                ][..],
            ),
            (
                AddressClass::Private,
                &[
                    "10.0.0.1",
                    "10.255.255.255",
                    "172.16.0.1",
                    "172.31.255.255",
                    "192.168.1.1",
                    "100.64.0.1",
                    "100.127.255.255",
                    "fc00::1",
                    "fd12:3456::1",
                    "::ffff:10.0.0.1",
                    "::ffff:192.168.0.1",
                ],
            ),
            (AddressClass::Loopback, &["127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"]),
            (
                AddressClass::Forbidden,
                &[
                    "0.0.0.0",
                    "0.1.2.3",
                    "169.254.169.254",
                    "169.254.0.1",
                    "100.100.100.200",
                    "192.0.0.192",
                    "192.0.2.1",
                    "198.18.0.1",
                    "198.51.100.7",
                    "203.0.113.9",
                    "224.0.0.1",
                    "239.255.255.250",
                    "240.0.0.1",
                    "255.255.255.255",
                    "192.88.99.1",
                    "::",
                    "fe80::1",
                    "febf::1",
                    "fec0::1",
                    "ff02::1",
                    "fd00:ec2::254",
                    "64:ff9b::7f00:1",
                    "64:ff9b::a9fe:a9fe",
                    "64:ff9b:1::1",
                    "2002:7f00:1::1",
                    "2002:a00:1::",
                    "2001::1",
                    "2001:db8::1",
                    "3fff::1",
                    "100::1",
                    "::127.0.0.1",
                    "::ffff:169.254.169.254",
                    "::ffff:0.0.0.0",
                    "::ffff:0:127.0.0.1",
                    "5f00::1",
                    "4000::1",
                ],
            ),
        ] {
            for address in addresses {
                assert_eq!(AddressClass::of(address.parse().unwrap()), class, "{address}");
            }
        }
    }
}
