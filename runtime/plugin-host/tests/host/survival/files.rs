//! Tests files that were damaged, and components whose imports the host does not provide, in every role.

use super::*;
use crate::guests::wit_importing;

/// Returns a host whose plugin has these bytes as its file.
fn loaded(guest: &RoleGuest, bytes: &[u8]) -> PluginHost {
    let (_folder, path) = file(bytes);
    PluginHost::new(settings(guest, path)).unwrap()
}

#[test]
fn unknown_import_is_named_and_the_component_is_not_run() {
    for (role, id) in ROLES {
        for (interface, function, signature) in [
            ("wasi:cli/environment@0.2.0", "get-environment: func() -> list<string>;", "(param i32)"),
            ("wasi:filesystem/preopens@0.2.0", "get-directories: func() -> list<string>;", "(param i32)"),
            ("wasi:sockets/instance-network@0.2.0", "instance-network: func() -> u32;", "(result i32)"),
            ("wasi:clocks/wall-clock@0.2.0", "now: func() -> u64;", "(result i64)"),
            ("wasi:random/random@0.2.0", "get-random-u64: func() -> u64;", "(result i64)"),
            // The host has this interface, but the operator did not grant it.
            ("terrane:host/memo@0.1.0", "get: func(key: string) -> option<list<u8>>;", "(param i32 i32 i32)"),
            ("terrane:host/log-and-more@0.1.0", "log: func();", ""),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (name, _) = function.split_once(':').unwrap();
            let fields = format!("(import \"{interface}\" \"{name}\" (func {signature}))");
            let guest = RoleGuest { fields, ..RoleGuest::new(role, id) };
            let wit = wit_importing(folder.path(), guest.world(), interface, function);
            let host = loaded(&RoleGuest::new(role, id), &guest.component_of(&wit));
            assert_eq!(refused(&host), PluginFault::ForeignImport { import: interface.to_owned() }, "{role}");
            assert_eq!(host.guest_calls(), 0);
        }
    }
}

#[test]
fn truncated_files_are_rejected_and_not_run() {
    for (role, id) in ROLES {
        let guest = RoleGuest::new(role, id);
        let good = guest.component();
        for length in [0, 1, 4, 7, 9, 64, good.len() / 3, good.len() / 2, good.len() - 1] {
            let host = loaded(&guest, &good[..length]);
            let fault = refused(&host);
            let is_known = matches!(fault, PluginFault::NotAComponent { .. } | PluginFault::Malformed { .. });
            assert!(is_known, "{role}, {length} bytes: {fault}");
            assert_eq!(host.guest_calls(), 0);
        }
    }
}

#[test]
fn corrupted_files_are_rejected_or_run_within_limits() {
    for (role, id) in ROLES {
        let guest = RoleGuest::new(role, id);
        let good = guest.component();
        let mut number = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..40 {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            let mut changed = good.clone();
            changed[8 + (number >> 8) as usize % (good.len() - 8)] ^= (number & 0xff) as u8 | 1;
            // In every fourth file, random bytes follow the valid header.
            if number.is_multiple_of(4) {
                changed[8..].iter_mut().enumerate().for_each(|(at, byte)| *byte = (number >> (at % 56)) as u8);
            }
            let host = loaded(&guest, &changed);
            let status = host.loaded().remove(0);
            match &status.state {
                PluginState::Active => assert_eq!(status.id.as_deref(), Some(id)),
                PluginState::Refused(PluginError::Faulted { fault, .. }) => {
                    // Any fault of the guest is accepted, but not a fault of the host.
                    assert!(!matches!(fault, PluginFault::Host { .. }), "{role}: {fault}");
                }
                other => panic!("{role}: {other:?}"),
            }
        }
    }
}
