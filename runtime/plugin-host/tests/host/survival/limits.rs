//! Tests that the limits of time, fuel, memory and stack end a guest of any role, and that the fault names the limit.

use terrane_app::ports::plugins::{Blame, Limit};
use terrane_plugin_host::HostLimits;

use super::*;

#[test]
fn limits_apply_to_every_role() {
    for (role, id) in ROLES {
        let guest = |fields: &str, describe: &str| RoleGuest {
            fields: fields.to_owned(),
            describe: describe.to_owned(),
            ..RoleGuest::new(role, id)
        };
        let ok = "(i32.const 2048)";
        for guest in [guest("", ENDLESS), guest("(func $s (loop $again (br $again))) (start $s)", ok)] {
            for (limits, limit) in [(LITTLE_FUEL, Limit::Fuel), (LITTLE_TIME, Limit::Time)] {
                assert_eq!(refusal(&guest, limits), PluginFault::Limit { call: "describe", limit }, "{role}");
            }
        }
        let bomb = "(loop $again (drop (memory.grow (i32.const 16))) (br $again)) unreachable";
        let found = refusal(&guest("", bomb), LITTLE_FUEL);
        assert_eq!(found, PluginFault::Limit { call: "describe", limit: Limit::Memory }, "{role}");
        let deep = "(func $deeper (result i32) (i32.add (i32.const 1) (call $deeper)))";
        let found = refusal(&guest(deep, "(call $deeper)"), LITTLE_FUEL);
        assert_eq!(found, PluginFault::Limit { call: "describe", limit: Limit::Stack }, "{role}");
        let found = refusal(&guest("", "unreachable"), LITTLE_FUEL);
        assert!(matches!(found, PluginFault::Trapped { call: "describe", .. }), "{role}: {found}");
        // The pointer of the id leads outside the memory.
        let wild = "(i32.store (i32.const 2048) (i32.const 0x7fffffff)) (i32.const 2048)";
        assert!(matches!(refusal(&guest("", wild), LITTLE_FUEL), PluginFault::Answer { call: "describe", .. }));
    }
}

#[tokio::test]
async fn limits_apply_to_every_function_of_a_role() {
    let deep = "(func $deeper (result i32) (i32.add (i32.const 1) (call $deeper)))";
    for (role, _) in ROLES {
        for (fields, body, words) in [
            ("", ENDLESS, "reached its limit of fuel in"),
            ("", "(loop $again (drop (memory.grow (i32.const 16))) (br $again)) unreachable", "of memory in"),
            (deep, "(call $deeper)", "of stack in"),
            ("", "unreachable", "trapped in"),
            ("", "(i32.const 2049)", "violates the contract"),
            ("", "(i32.const -8)", "violates the contract"),
        ] {
            let fault = Stage::of_body(role, fields, body).call(INPUT).await.unwrap_err();
            assert!(fault.contains(words) && fault.contains(function_of(role)), "{role}: {words}: {fault}");
        }
    }
}

#[test]
fn exhausted_total_memory_is_not_a_fault_of_the_guest() {
    let guest = RoleGuest::new(PluginRole::Check, "check-test");
    let (_folder, path) = file(&guest.component());
    for (bytes, is_enough) in [(64 * 1024, false), (2 * 64 * 1024, true)] {
        let limits = HostLimits { memory_bytes: bytes, ..HostLimits::default() };
        let host = PluginHost::new(Settings { host: limits, ..settings(&guest, path.clone()) }).unwrap();
        match &host.loaded()[0].state {
            PluginState::Active => assert!(is_enough),
            PluginState::Refused(PluginError::Faulted { fault, .. }) => {
                assert_eq!(fault, &PluginFault::Limit { call: "describe", limit: Limit::HostMemory });
                assert!(!is_enough && fault.blame() == Blame::Host);
            }
            other => panic!("{other:?}"),
        }
    }
}
