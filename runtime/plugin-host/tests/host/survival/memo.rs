//! Tests the memo with guests that try to fill it or to read entries of other plugins or tenants.

use terrane_plugin_host::Grants;

use super::*;

const IMPORTS: &str = "(import \"terrane:host/memo@0.1.0\" \"get\" (func $get (param i32 i32 i32)))
    (import \"terrane:host/memo@0.1.0\" \"put\" (func $put (param i32 i32 i32 i32 i32 i32)))
    (data (i32.const 3072) \"note\")";
/// Code that reads the entry of a key of four bytes into the memory at 5120. The byte there is 1 if the entry exists.
const GET: &str = "(call $get (i32.const 3072) (i32.const 4) (i32.const 5120))";
const PUT: &str =
    "(call $put (i32.const 3072) (i32.const 4) (i32.const 3072) (i32.const 4) (i32.const 0) (i32.const 5120))";
const ABSTAIN: &str = "(i32.const 4096)";

fn noting(id: &str, body: &str) -> RoleGuest {
    RoleGuest { fields: IMPORTS.to_owned(), grows: true, ..RoleGuest::new(PluginRole::Governance, id) }
        .with("on-query", body)
}

fn stage(body: &str) -> Stage {
    Stage::of(&noting("policy-test", body), granted)
}

fn granted(settings: &mut Settings) {
    settings.plugins[0].grants = Grants { memo: true, ..Grants::default() };
}

#[tokio::test]
async fn memo_entry_is_visible_only_to_its_tenant() {
    // The guest traps if it finds the entry; otherwise it writes the entry.
    let body = format!("{GET} (if (i32.load8_u (i32.const 5120)) (then unreachable)) {PUT} {ABSTAIN}");
    let stage = stage(&body);
    for tenant in ["acme", "other", "", "ACME", "acme "] {
        assert_eq!(stage.call(CallInput { tenant, ..INPUT }).await, Ok(()), "{tenant}");
        let found = stage.call(CallInput { tenant, user: "bob", ..INPUT }).await.unwrap_err();
        assert!(found.contains("trapped"), "{tenant}: {found}");
    }
}

#[tokio::test]
async fn memo_entries_are_separate_by_component_and_configuration() {
    let body = format!("{GET} (if (i32.load8_u (i32.const 5120)) (then unreachable)) {PUT} {ABSTAIN}");
    let folder = tempfile::tempdir().unwrap();
    // The second guest differs from the first in its id, and the third in its id and its version, so all three files
    // differ.
    let other = noting("policy-other", &body);
    let newer = RoleGuest { version: "1.0.1".to_owned(), ..noting("policy-newer", &body) };
    let stage = Stage::of(&noting("policy-test", &body), |settings| {
        granted(settings);
        for guest in [other, newer] {
            let path = folder.path().join(format!("{}.wasm", guest.id));
            fs::write(&path, guest.component()).unwrap();
            let first = settings.plugins[0].clone();
            settings.plugins.push(PluginSettings { id: guest.id.clone(), source: path, ..first });
        }
    });
    let context = context(INPUT);
    let asking = HookRequest { context: &context, now: Timestamp::UNIX_EPOCH, time_zone: "UTC" };
    let said = stage.hooks.authorize(&asking, &Arc::default()).await;
    assert_eq!(said.len(), 3);
    assert!(said.iter().all(|said| said.answer.is_ok()), "{said:?}");
}

#[tokio::test]
async fn oversized_memo_entries_are_rejected_and_the_call_continues() {
    for (key, value, words) in
        [(100_000, 4, "a key"), (257, 4, "a key"), (4, 65_537, "a value"), (4, 2_000_000, "a value")]
    {
        // The guest traps unless the host refuses the entry.
        let body = format!(
            "(drop (memory.grow (i32.const 64)))
            (call $put (i32.const 131072) (i32.const {key}) (i32.const 131072) (i32.const {value}) (i32.const 0) (i32.const 5120))
            (if (i32.eqz (i32.load8_u (i32.const 5120))) (then unreachable))
            {ABSTAIN}"
        );
        assert_eq!(stage(&body).call(INPUT).await, Ok(()), "{words} of {key} and {value} bytes");
    }
    let beyond = "(call $put (i32.const 3072) (i32.const 4) (i32.const 4096) (i32.const 0x7fffffff) (i32.const 0) (i32.const 5120))";
    let fault = stage(&format!("{beyond} {ABSTAIN}")).call(INPUT).await.unwrap_err();
    assert!(fault.contains("from `on-query`"), "{fault}");
}

#[tokio::test]
async fn endless_memo_writes_end_the_call_and_keep_other_entries() {
    // At millisecond 13, the guest writes entries without end, each under a different key. At other times it checks
    // that its own entry exists, or writes it.
    let body = format!(
        "(local $i i32)
        (if (i64.eq (i64.load (local.get 0)) (i64.const 13)) (then
          (loop $again
            (i32.store (i32.const 3080) (i32.add (i32.const 0x30303030) (i32.or (i32.and (local.get $i) (i32.const 63))
              (i32.shl (i32.and (i32.shr_u (local.get $i) (i32.const 6)) (i32.const 63)) (i32.const 8)))))
            (call $put (i32.const 3080) (i32.const 4) (i32.const 65536) (i32.const 4096) (i32.const 0) (i32.const 5120))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $again))))
        {GET}
        (if (i64.eq (i64.load (local.get 0)) (i64.const 7)) (then
          (if (i32.eqz (i32.load8_u (i32.const 5120))) (then unreachable))))
        {PUT} {ABSTAIN}"
    );
    let stage = Stage::of(&noting("policy-test", &body), |settings| {
        granted(settings);
        settings.plugins[0].limits.fuel = Some(200_000);
    });
    let other = CallInput { tenant: "other", ..INPUT };
    assert_eq!(stage.call(other).await, Ok(()));
    for _ in 0..4 {
        let fault = stage.call(CallInput { now: 13, ..INPUT }).await.unwrap_err();
        assert!(fault.contains("reached its limit of fuel in `on-query`"), "{fault}");
    }
    assert_eq!(stage.call(CallInput { now: 7, ..other }).await, Ok(()), "the note of another tenant is still there");
}
