//! What the sandbox has to survive, in every role and over many calls: each hostile guest ends as a typed
//! fault, failing functions are let alone, and the host neither dies nor grows.
//!
//! `cargo xtask soak` runs the hostile returns a million times; here is a sample of them.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod guests;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use guests::role::RoleGuest;
use tempfile::TempDir;
use terrane_app::ports::calls::CallFacts;
use terrane_app::ports::checks::{CheckCall, Checks as _};
use terrane_app::ports::detectors::{DetectorParams, Detectors as _, SeriesBatch};
use terrane_app::ports::plugins::{
    Blame, Limit, PluginError, PluginFault, PluginRole, PluginState, Plugins as _, Unavailable,
};
use terrane_plugin_host::manifest::AskedLimits;
use terrane_plugin_host::{
    CallLimits, ComponentChecks, ComponentDetectors, Elapsed, HostLimits, PluginHost, PluginSettings, SearchPath,
    Settings,
};

const ENDLESS: &str = "(loop $again (br $again)) unreachable";
const ROLES: [(PluginRole, &str); 3] = [
    (PluginRole::Detector, "detector-test"),
    (PluginRole::Check, "check-test"),
    (PluginRole::Governance, "policy-test"),
];
const LITTLE_FUEL: CallLimits = CallLimits { fuel: 2_000_000, time_ms: 600_000 };
const LITTLE_TIME: CallLimits = CallLimits { fuel: u64::MAX >> 1, time_ms: 20 };

fn file(guest: &RoleGuest) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("component.wasm");
    fs::write(&path, guest.component()).unwrap();
    (folder, path)
}

fn settings(guest: &RoleGuest, path: PathBuf) -> Settings {
    let plugin = PluginSettings::new(guest.id.clone(), guest.role, path);
    Settings { plugins: vec![plugin], ..Settings::new(SearchPath::default()) }
}

/// Why the guest is refused when it is loaded.
fn refusal(guest: &RoleGuest, describe: CallLimits) -> PluginFault {
    let (_folder, path) = file(guest);
    let host = PluginHost::new(Settings { describe, ..settings(guest, path) }).unwrap();
    match &host.loaded()[0].state {
        PluginState::Refused(PluginError::Faulted { fault, .. }) => fault.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_role_is_a_way_around_the_limits() {
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
        // The id's pointer leads nowhere.
        let wild = "(i32.store (i32.const 2048) (i32.const 0x7fffffff)) (i32.const 2048)";
        assert!(matches!(refusal(&guest("", wild), LITTLE_FUEL), PluginFault::Answer { call: "describe", .. }));
    }
}

#[test]
fn the_memory_of_all_guests_together_is_bounded_and_is_not_the_guests_fault() {
    let guest = RoleGuest::new(PluginRole::Check, "check-test");
    let (_folder, path) = file(&guest);
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

fn call(now_unix_ms: i64) -> CheckCall {
    let facts = CallFacts { now_unix_ms, time_zone: "UTC".into(), correlation_id: "c".into(), tenant: None };
    CheckCall { facts, profile_config_json: "{}".into() }
}

/// A clock that stands still until it is told.
#[derive(Clone, Default)]
struct Still(Arc<Mutex<Duration>>);

impl Still {
    fn advance(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
    }

    fn elapsed(&self) -> Elapsed {
        let time = Arc::clone(&self.0);
        Elapsed::new(move || *time.lock().unwrap())
    }
}

struct Checks {
    _folder: TempDir,
    clock: Still,
    host: Arc<PluginHost>,
    checks: ComponentChecks,
}

impl Checks {
    fn new(make_plan: &str, limits: AskedLimits) -> Checks {
        let guest = RoleGuest::new(PluginRole::Check, "check-test").with("make-plan", make_plan);
        let (folder, path) = file(&guest);
        let clock = Still::default();
        let mut settings = Settings { clock: clock.elapsed(), ..settings(&guest, path) };
        settings.plugins[0].limits = limits;
        let host = Arc::new(PluginHost::new(settings).unwrap());
        assert_eq!(host.loaded()[0].state, PluginState::Active);
        Checks { _folder: folder, clock, checks: ComponentChecks::new(Arc::clone(&host)), host }
    }

    async fn ask(&self) -> PluginFault {
        let mut plans = self.checks.plans(&call(0), Vec::new().into()).await;
        plans.remove(0).unwrap_err().fault
    }
}

#[tokio::test]
async fn a_function_that_keeps_failing_is_let_alone_and_then_quarantined() {
    let checks = Checks::new("unreachable", AskedLimits::default());
    let wait = |seconds| Unavailable::BreakerOpen { wait: Duration::from_secs(seconds) };
    for _ in 0..5 {
        assert!(matches!(checks.ask().await, PluginFault::Trapped { call: "make-plan", .. }));
    }
    let calls = checks.host.guest_calls();
    assert_eq!(checks.ask().await, PluginFault::Unavailable { call: "make-plan", reason: wait(1) });
    assert_eq!((checks.host.guest_calls(), &checks.host.loaded()[0].state), (calls, &PluginState::Degraded));
    checks.clock.advance(1);
    assert!(matches!(checks.ask().await, PluginFault::Trapped { .. }));
    assert_eq!(checks.ask().await, PluginFault::Unavailable { call: "make-plan", reason: wait(2) });
    let [status] = &checks.host.loaded()[..] else { panic!("one plugin") };
    let [export] = &status.exports[..] else { panic!("one function") };
    assert_eq!((export.calls, export.faults, export.refused, export.is_open), (6, 6, 2, true));
    checks.host.disable("check-test").unwrap();
    let disabled = checks.ask().await;
    assert!(matches!(disabled, PluginFault::Unavailable { reason: Unavailable::Disabled, .. }), "{disabled}");
    // Enabled, it gets another chance.
    checks.host.enable("check-test").unwrap();
    assert!(matches!(checks.ask().await, PluginFault::Trapped { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_callers_at_once_each_get_their_fault() {
    let checks = Arc::new(Checks::new(ENDLESS, AskedLimits { fuel: Some(100_000), ..AskedLimits::default() }));
    let asking: Vec<_> = (0..200)
        .map(|_| {
            let checks = Arc::clone(&checks);
            tokio::spawn(async move { checks.ask().await })
        })
        .collect();
    let (mut limited, mut refused) = (0, 0);
    for asked in asking {
        match asked.await.unwrap() {
            PluginFault::Limit { call: "make-plan", limit: Limit::Fuel } => limited += 1,
            PluginFault::Unavailable { reason: Unavailable::BreakerOpen { .. }, .. } => refused += 1,
            other => panic!("{other}"),
        }
    }
    // Those that had begun when the fifth failed ended too.
    assert!((5..=16).contains(&limited) && limited + refused == 200, "{limited}, {refused}");
}

/// Fills an answer with numbers of a seed: small ones, pointers into itself, and any. `seed` leaves an i64.
fn random_answer(seed: &str) -> String {
    format!(
        "(local $s i64) (local $i i32) (local $w i32)
        (local.set $s (i64.or (i64.mul {seed} (i64.const 0x9E3779B97F4A7C15)) (i64.const 1)))
        (loop $again
          (local.set $s (i64.xor (local.get $s) (i64.shl (local.get $s) (i64.const 13))))
          (local.set $s (i64.xor (local.get $s) (i64.shr_u (local.get $s) (i64.const 7))))
          (local.set $s (i64.xor (local.get $s) (i64.shl (local.get $s) (i64.const 17))))
          (local.set $w (i32.wrap_i64 (i64.shr_u (local.get $s) (i64.const 20))))
          (i32.store (i32.add (i32.const 16384) (local.get $i))
            (if (result i32) (i32.and (local.get $w) (i32.const 1))
              (then (i32.and (i32.shr_u (local.get $w) (i32.const 8)) (i32.const 15)))
              (else (if (result i32) (i32.and (local.get $w) (i32.const 2))
                (then (i32.add (i32.const 16384) (i32.and (i32.shr_u (local.get $w) (i32.const 8)) (i32.const 1016))))
                (else (local.get $w))))))
          (local.set $i (i32.add (local.get $i) (i32.const 4)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 1024))))
        (i32.store (i32.const 16384) (i32.and (local.get $w) (i32.const 1)))
        (i32.const 16384)"
    )
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// How many calls are made: what the soak asks for, else a sample.
fn calls_wanted() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "who runs a test says how long")]
    let wanted = std::env::var("TERRANE_SOAK_CALLS").ok();
    wanted.map_or(10_000, |calls| calls.parse().unwrap())
}

#[tokio::test]
async fn hostile_returns_neither_end_the_host_nor_make_it_grow() {
    const MOST_GROWTH_BYTES: u64 = 32 * 1024 * 1024;
    let check = RoleGuest::new(PluginRole::Check, "check-test").with("make-plan", &random_answer("(local.get 0)"));
    let detector = RoleGuest::new(PluginRole::Detector, "detector-test")
        .with("detect", &random_answer("(i64.load (local.get 0))"));
    let ((_one, check_path), (_two, detector_path)) = (file(&check), file(&detector));
    // Each call is far from the one before, so that no breaker keeps the next one away.
    let now = AtomicU64::new(0);
    let clock = Elapsed::new(move || Duration::from_secs(1_000 * now.fetch_add(1, Ordering::Relaxed)));
    let mut settings = Settings { clock, ..settings(&check, check_path) };
    settings.plugins.push(PluginSettings::new("detector-test", PluginRole::Detector, detector_path));
    let host = Arc::new(PluginHost::new(settings).unwrap());
    let (checks, detectors) = (ComponentChecks::new(Arc::clone(&host)), ComponentDetectors::new(Arc::clone(&host)));
    let mut points = SeriesBatch::new(None);
    points.push((0..4).map(|at| (at, 1.0)));
    let (history, params) = (Arc::new(points.clone()), DetectorParams::default());
    let points = Arc::new(points);

    let wanted = calls_wanted();
    let (mut answered, mut faults, mut settled) = (0_u64, 0_u64, 0);
    for seed in 0..wanted / 2 {
        let asked = call(i64::try_from(seed).unwrap());
        let planned = checks.plans(&asked, Vec::new().into()).await.remove(0);
        let (history, points) = (Arc::clone(&history), Arc::clone(&points));
        let detected = detectors.detect(&asked.facts, "probe", Vec::new(), history, points, &params).await;
        for is_answer in [planned.is_ok(), detected.is_ok()] {
            answered += u64::from(is_answer);
            faults += u64::from(!is_answer);
        }
        if seed == wanted / 20 {
            settled = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(settled);
    println!("{answered} answers, {faults} faults, {grown} bytes of growth after the first tenth");
    assert!(faults > wanted / 10, "random bytes are seldom an answer");
    assert!(grown < MOST_GROWTH_BYTES, "{grown} bytes");
    assert!(host.guest_calls() >= wanted / 2 * 2);
    assert!(host.loaded().iter().all(|plugin| plugin.state != PluginState::Quarantined));
}
