//! Tests the circuit breakers of a function that fails repeatedly. The breaker of a caller opens if calls of that
//! caller fail. The breaker for all callers opens once the function fails for most of them.

use terrane_app::ports::plugins::Unavailable;

use super::*;

/// The body of a hook that traps if the call's time is millisecond 13, and abstains otherwise.
const UNLUCKY: &str = "(if (i64.eq (i64.load (local.get 0)) (i64.const 13)) (then unreachable)) (i32.const 4096)";

#[tokio::test]
async fn repeatedly_failing_function_opens_the_breaker() {
    let checks = Stage::of_body(PluginRole::Check, "", "unreachable");
    let wait = |seconds| Unavailable::BreakerOpen { wait: Duration::from_secs(seconds) };
    let ask = async || checks.plan(INPUT).await.unwrap_err();
    for _ in 0..5 {
        assert!(matches!(ask().await, PluginFault::Trapped { call: "make-plan", .. }));
    }
    let calls = checks.host.guest_calls();
    assert_eq!(ask().await, PluginFault::Unavailable { call: "make-plan", reason: wait(1) });
    assert_eq!((checks.host.guest_calls(), checks.state()), (calls, PluginState::Degraded));
    checks.clock.advance(1);
    assert!(matches!(ask().await, PluginFault::Trapped { .. }));
    assert_eq!(ask().await, PluginFault::Unavailable { call: "make-plan", reason: wait(2) });
    let [status] = &checks.host.loaded()[..] else { panic!("one plugin") };
    let [export] = &status.exports[..] else { panic!("one function") };
    assert_eq!((export.calls, export.faults, export.refused, export.is_open), (6, 6, 2, true));
    checks.host.disable("check-test").unwrap();
    let disabled = ask().await;
    assert_eq!(disabled, PluginFault::Disabled);
    // Enabling the plugin resets its breakers.
    checks.host.enable("check-test").unwrap();
    assert!(matches!(ask().await, PluginFault::Trapped { .. }));
}

#[tokio::test]
async fn faults_of_one_caller_open_no_breaker_of_others() {
    let hook = RoleGuest::new(PluginRole::Governance, "policy-test").with("on-query", UNLUCKY);
    let stage = Stage::of(&hook, |settings| settings.plugins[0].is_required = true);
    let eve = CallInput { user: "eve", now: 13, ..INPUT };
    stage.call(INPUT).await.unwrap();
    let mut faults = Vec::new();
    for _ in 0..5 {
        faults.push(stage.call(eve).await.unwrap_err());
    }
    assert_eq!(faults, vec![faults[0].clone(); 5]);
    insta::assert_snapshot!(faults[0], @"trapped in `on-query`: wasm trap: wasm `unreachable` instruction executed");
    // Calls with other input are rejected too, but only for this caller.
    let refused = stage.call(CallInput { now: 0, ..eve }).await.unwrap_err();
    insta::assert_snapshot!(refused, @"was not called for `on-query`: circuit breaker is open; retry in 1000 ms");
    for input in [INPUT, CallInput { user: "eve", tenant: "other", ..INPUT }, CallInput { user: "", ..INPUT }] {
        assert_eq!(stage.call(input).await, Ok(()));
    }
    assert_eq!((stage.state(), stage.host.missing()), (PluginState::Active, Vec::new()));
    // Other callers are answered even if this caller causes faults again and again.
    for _ in 0..10 {
        stage.clock.advance(70);
        for _ in 0..5 {
            let _ = stage.call(eve).await;
        }
        assert_eq!(stage.call(INPUT).await, Ok(()));
        assert_eq!(stage.state(), PluginState::Active);
    }
}

#[tokio::test]
async fn failures_for_most_callers_open_the_breaker_for_all() {
    let stage = Stage::of_body(PluginRole::Governance, "", UNLUCKY);
    stage.call(CallInput { user: "ada", ..INPUT }).await.unwrap();
    for user in ["a", "b", "c", "d", "e"] {
        assert!(stage.call(CallInput { user, now: 13, ..INPUT }).await.unwrap_err().contains("trapped"), "{user}");
    }
    let refused = stage.call(INPUT).await.unwrap_err();
    insta::assert_snapshot!(refused, @"was not called for `on-query`: circuit breaker is open; retry in 1000 ms");
    assert_eq!(stage.state(), PluginState::Degraded);
    stage.clock.advance(1);
    assert_eq!(stage.call(INPUT).await, Ok(()));
    assert_eq!(stage.state(), PluginState::Active);
}

#[tokio::test]
async fn impossible_obligations_count_as_faults_of_the_hook() {
    let hook = RoleGuest::new(PluginRole::Governance, "policy-test").with("on-query", "(i32.const 4096)");
    let stage = Stage::of(&hook, |settings| settings.plugins[0].is_required = true);
    for _ in 0..5 {
        stage.call(INPUT).await.unwrap();
        stage.blame(INPUT, "unknown cube `nowhere`");
    }
    let [status] = &stage.host.loaded()[..] else { panic!("one plugin") };
    let [export] = &status.exports[..] else { panic!("one function") };
    assert_eq!((export.calls, export.faults, export.is_open), (5, 5, true));
    assert_eq!((stage.state(), stage.host.missing()), (PluginState::Degraded, vec!["policy-test".to_owned()]));
    insta::assert_snapshot!(stage.call(INPUT).await.unwrap_err(), @"was not called for `on-query`: circuit breaker is open; retry in 1000 ms");
    // If the answer of a successful probe is rejected afterwards, the breaker opens for a longer time.
    stage.clock.advance(1);
    stage.call(INPUT).await.unwrap();
    stage.blame(INPUT, "unknown cube `nowhere`");
    stage.clock.advance(1);
    insta::assert_snapshot!(stage.call(INPUT).await.unwrap_err(), @"was not called for `on-query`: circuit breaker is open; retry in 1000 ms");
}
