//! Which addresses this server may connect to.
//!
//! In: an address. Out: its [`Reach`]. An address inside another (IPv4-mapped, NAT64, 6to4, Teredo) could
//! lead anywhere, so only the mapped form is read, and the rest is never connected to. The lists are those
//! of RFC 6890 and the registries that go on from it. Not here: what the operator listed (`allow`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who answers at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Anybody's machine on the internet.
    Public,
    /// A machine of the operator's own network: only where it is listed.
    Private,
    /// This machine: only where it is listed.
    Loopback,
    /// Nothing that an identity provider answers at, listed or not: link-local with the clouds' metadata,
    /// multicast, unspecified, reserved.
    Never,
}

impl Reach {
    pub(super) fn of(address: IpAddr) -> Reach {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| of_v6(v6), of_v4),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Reach {
    let octets = address.octets();
    match octets {
        // A cloud's metadata service inside the shared range.
        [100, 100, 100, 200] => Reach::Never,
        [127, ..] => Reach::Loopback,
        [10, ..] | [192, 168, ..] => Reach::Private,
        [172, second, ..] if (16..32).contains(&second) => Reach::Private,
        // Carrier-grade NAT (RFC 6598).
        [100, second, ..] if (64..128).contains(&second) => Reach::Private,
        [0, ..] | [169, 254, ..] => Reach::Never,
        // IETF protocol assignments, the relay of 6to4, AS112, documentation.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [192, 31, 196, _] | [192, 52, 193, _] | [192, 175, 48, _] => {
            Reach::Never
        }
        [198, 51, 100, _] | [203, 0, 113, _] => Reach::Never,
        // Benchmarks.
        [198, 18 | 19, ..] => Reach::Never,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => Reach::Never,
        _ => Reach::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Reach {
    let segments = address.segments();
    // A cloud's metadata service inside the unique local range.
    if segments == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] {
        return Reach::Never;
    }
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Loopback,
        // Unique local.
        [first, ..] if first & 0xfe00 == 0xfc00 => Reach::Private,
        // 6to4, Teredo and the other assignments of the IETF, documentation.
        [0x2002, ..] | [0x3fff, ..] => Reach::Never,
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => Reach::Never,
        // What is handed out to networks is global unicast; all else is link-local, site-local, multicast,
        // NAT64, discard, unspecified or not assigned.
        [first, ..] if first & 0xe000 == 0x2000 => Reach::Public,
        _ => Reach::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        for (reach, addresses) in [
            (
                Reach::Public,
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
                Reach::Private,
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
            (Reach::Loopback, &["127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"]),
            (
                Reach::Never,
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
                assert_eq!(Reach::of(address.parse().unwrap()), reach, "{address}");
            }
        }
    }
}
