//! Tests that each call has a fresh instance: no state of one call reaches the next one. The next call may be by the
//! same caller or by another tenant, or may follow an interrupted call.

use super::*;

/// A function that divides by zero if a global, a table or the memory contains a value of an earlier call. Otherwise it
/// writes a value to each of them.
const ONCE: &str = "(global $used (mut i32) (i32.const 0))
    (table $t 4 funcref)
    (elem declare func $once)
    (func $once
      (if (i32.or (i32.or (global.get $used) (i32.load (i32.const 60000))) (i32.eqz (ref.is_null (table.get $t (i32.const 1)))))
        (then (drop (i32.div_u (i32.const 1) (i32.const 0)))))
      (global.set $used (i32.const 1))
      (i32.store (i32.const 60000) (i32.const 7))
      (table.set $t (i32.const 1) (ref.func $once)))";
/// A result `err` of `unsupported` with an empty message, which every role may return.
const DECLINES: &str = "(i32.store8 (i32.const 4096) (i32.const 1)) (i32.const 4096)";

#[tokio::test]
async fn calls_and_tenants_share_no_state() {
    for (role, _) in ROLES {
        let stage = Stage::of_body(role, ONCE, &format!("(call $once) {DECLINES}"));
        for (user, tenant) in [("ada", "acme"), ("ada", "acme"), ("bob", "acme"), ("ada", "other"), ("", "")] {
            let fault = stage.call(CallInput { user, tenant, now: 0 }).await.unwrap_err();
            assert!(fault.contains("refused `"), "{role}: {fault}");
        }
    }
}

#[tokio::test]
async fn call_after_a_trap_gets_a_fresh_instance() {
    for (role, _) in ROLES {
        // The guest traps after it has written its state.
        let trap = format!("(if (i64.eq {} (i64.const 13)) (then unreachable))", now_of(role));
        let stage = Stage::of_body(role, ONCE, &format!("(call $once) {trap} {DECLINES}"));
        for (now, words) in
            [(13, "`unreachable`"), (0, "refused `"), (13, "`unreachable`"), (13, "`unreachable`"), (0, "refused `")]
        {
            let fault = stage.call(CallInput { now, ..INPUT }).await.unwrap_err();
            assert!(fault.contains(words), "{role}: {fault}");
        }
    }
}

#[tokio::test]
async fn memory_is_cleared_between_tenants() {
    for (role, _) in ROLES {
        // The guest grows its memory to 8 MiB, checks that all of it is zero, and leaves it filled.
        let body = format!(
            "(local $at i32)
            (drop (memory.grow (i32.const 126)))
            (local.set $at (i32.const 131072))
            (loop $look
              (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then unreachable))
              (local.set $at (i32.add (local.get $at) (i32.const 512)))
              (br_if $look (i32.lt_u (local.get $at) (i32.const 8388608))))
            (memory.fill (i32.const 131072) (i32.const 0xaa) (i32.const 8257536))
            {DECLINES}"
        );
        let stage = Stage::of_body(role, "", &body);
        for tenant in ["a", "b", "a", "c"] {
            let fault = stage.call(CallInput { tenant, ..INPUT }).await.unwrap_err();
            assert!(fault.contains("refused `"), "{role}: {fault}");
        }
    }
}
