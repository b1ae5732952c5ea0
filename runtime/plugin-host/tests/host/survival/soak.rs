//! Tests thousands of calls whose answers are valid, nearly valid or random. `cargo xtask soak` makes a million such
//! calls; this test makes a sample.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_app::ports::checks::ProfiledColumn;
use terrane_compiler::types::LogicalType;

use super::*;
use crate::guests::image::{self, BASE, Image};

const MOST_GROWTH_BYTES: u64 = 32 * 1024 * 1024;
/// The number of calls of one guest. The next guest also has another answer to `describe`.
const CALLS_A_GUEST: u64 = 250;

/// Returns the data of a valid answer, and a function `$answer`. Depending on its seed, `$answer` returns the valid
/// answer, changes one word of it, or overwrites it with small numbers, pointers into itself and random words.
fn hostile(right: &Image) -> String {
    format!(
        "{}
        (func $any (param $w i32) (result i32)
          (if (result i32) (i32.and (local.get $w) (i32.const 1))
            (then (i32.and (i32.shr_u (local.get $w) (i32.const 8)) (i32.const 15)))
            (else (if (result i32) (i32.and (local.get $w) (i32.const 2))
              (then (i32.add (i32.const {BASE}) (i32.and (i32.shr_u (local.get $w) (i32.const 8)) (i32.const 1016))))
              (else (local.get $w))))))
        (func $answer (param $seed i64) (result i32)
          (local $s i64) (local $i i32) (local $kind i32)
          (local.set $s (i64.or (i64.mul (local.get $seed) (i64.const 0x9E3779B97F4A7C15)) (i64.const 1)))
          (loop $again
            (local.set $s (i64.xor (local.get $s) (i64.shl (local.get $s) (i64.const 13))))
            (local.set $s (i64.xor (local.get $s) (i64.shr_u (local.get $s) (i64.const 7))))
            (local.set $s (i64.xor (local.get $s) (i64.shl (local.get $s) (i64.const 17))))
            (if (i32.eqz (local.get $i)) (then
              (local.set $kind (i32.and (i32.wrap_i64 (i64.shr_u (local.get $s) (i64.const 40))) (i32.const 7)))
              (if (i32.lt_u (local.get $kind) (i32.const 2)) (then (return (i32.const {BASE}))))
              (if (i32.lt_u (local.get $kind) (i32.const 5)) (then
                (i32.store
                  (i32.add (i32.const {BASE}) (i32.and (i32.wrap_i64 (i64.shr_u (local.get $s) (i64.const 8))) (i32.const 0x1fc)))
                  (call $any (i32.wrap_i64 (i64.shr_u (local.get $s) (i64.const 20)))))
                (return (i32.const {BASE}))))))
            (i32.store (i32.add (i32.const {BASE}) (local.get $i))
              (call $any (i32.wrap_i64 (i64.shr_u (local.get $s) (i64.const 20)))))
            (local.set $i (i32.add (local.get $i) (i32.const 4)))
            (br_if $again (i32.lt_u (local.get $i) (i32.const 1024))))
          (i32.store (i32.const {BASE}) (i32.and (local.get $kind) (i32.const 1)))
          (i32.const {BASE}))",
        right.data()
    )
}

fn guest(role: PluginRole, id: &str, right: &Image) -> RoleGuest {
    let body = format!("(call $answer {})", now_of(role));
    RoleGuest { fields: hostile(right), ..RoleGuest::new(role, id).with(function_of(role), &body) }
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Returns the number of calls that `cargo xtask soak` requests, or the number of a sample.
fn calls_wanted() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "the caller of the test sets its duration")]
    let wanted = std::env::var("TERRANE_SOAK_CALLS").ok();
    wanted.map_or(10_000, |calls| calls.parse().unwrap())
}

/// The numbers of outcomes, by function and by the words of the fault before the function's name.
#[derive(Default)]
struct CallStatistics(BTreeMap<(&'static str, String), u64>);

impl CallStatistics {
    fn count(&mut self, function: &'static str, fault: Option<String>) {
        let class = fault.map_or_else(
            || "answered".to_owned(),
            |fault| {
                let words =
                    fault.strip_prefix("component `").and_then(|rest| rest.split_once("` ")).map(|(_, rest)| rest);
                words.unwrap_or(&fault).split(['`', ':', '(']).next().unwrap_or_default().trim_end().to_owned()
            },
        );
        *self.0.entry((function, class)).or_default() += 1;
    }

    fn of(&self, function: &str) -> (u64, u64) {
        let of_it = self.0.iter().filter(|((known, _), _)| *known == function);
        let (answered, faults): (Vec<_>, Vec<_>) = of_it.partition(|((_, class), _)| class == "answered");
        let sum = |all: Vec<(&(&str, String), &u64)>| -> u64 { all.into_iter().map(|(_, count)| count).sum() };
        (sum(answered), sum(faults))
    }
}

/// Loads and drops a guest whose `describe` depends on the seed.
fn described(seed: u64, statistics: &mut CallStatistics) {
    let (role, id) = ROLES[seed as usize % ROLES.len()];
    let describe = format!("(call $answer (i64.const {seed}))");
    let guest = RoleGuest { fields: hostile(&image::info(id, "1.0.0")), describe, ..RoleGuest::new(role, id) };
    let (_folder, path) = file(&guest.component());
    let host = PluginHost::new(settings(&guest, path)).unwrap();
    statistics.count(
        "describe",
        match &host.loaded()[0].state {
            PluginState::Active => None,
            PluginState::Refused(PluginError::Faulted { fault, .. }) => Some(fault.to_string()),
            other => panic!("{other:?}"),
        },
    );
}

#[tokio::test]
async fn hostile_return_values_neither_crash_nor_grow_the_host() {
    // The time advances much between calls, so that no call is rejected because of an open breaker.
    let now = Arc::new(AtomicU64::new(0));
    let apart = |settings: &mut Settings| {
        let now = Arc::clone(&now);
        settings.clock = MonotonicClock::new(move || Duration::from_secs(1_000 * now.fetch_add(1, Ordering::Relaxed)));
    };
    let on_the_spot = |settings: &mut Settings| {
        apart(settings);
        settings.plugins[0].limits.time_ms = Some(50);
    };
    let hook = Stage::of(&guest(PluginRole::Governance, "policy-test", &image::verdict()), on_the_spot);
    let check = Stage::of(&guest(PluginRole::Check, "check-test", &image::plan()), apart);
    let detector = Stage::of(&guest(PluginRole::Detector, "detector-test", &image::detection()), apart);
    let column = ProfiledColumn {
        cube: "orders".into(),
        member: "region".into(),
        ty: LogicalType::Text,
        is_measure: false,
        is_primary_key: false,
        tags: Vec::new(),
        pii: false,
    };
    let (facts_of_query, columns): (_, Arc<[_]>) = (Arc::default(), vec![column].into());

    let wanted = calls_wanted();
    let (mut statistics, mut settled) = (CallStatistics::default(), 0);
    for seed in 0..wanted / 3 {
        let input = CallInput { now: i64::try_from(seed).unwrap(), ..INPUT };
        statistics.count("on-query", hook.authorize(input, &facts_of_query).await.err());
        let call = CheckCall { facts: facts(input), profile_config_json: "{}".into() };
        let planned = check.checks.plans(&call, Arc::clone(&columns)).await.remove(0);
        statistics.count("make-plan", planned.err().map(|fault| fault.to_string()));
        statistics.count("detect", detector.detect(input).await.err().map(|fault| fault.to_string()));
        if seed.is_multiple_of(CALLS_A_GUEST) {
            described(seed / CALLS_A_GUEST, &mut statistics);
        }
        if seed == wanted / 30 {
            settled = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(settled);
    for ((function, class), count) in &statistics.0 {
        println!("{function:10} {count:8} {class}");
    }
    println!("{grown} bytes of growth after the first tenth");
    assert!(grown < MOST_GROWTH_BYTES, "{grown} bytes");
    for function in ["on-query", "make-plan", "detect", "describe"] {
        let (answered, faults) = statistics.of(function);
        assert!(answered > 0 && faults > 0, "{function}: {answered} answered, {faults} faults");
        // A quarter of the answers is returned undamaged, and most of the damaged ones are invalid.
        if function != "describe" {
            assert!(answered > wanted / 3 / 10 && faults > wanted / 3 / 10, "{function}: {answered}, {faults}");
        }
    }
    for stage in [&hook, &check, &detector] {
        assert!(stage.host.guest_calls() >= wanted / 3);
        assert_ne!(stage.state(), PluginState::Quarantined);
    }
}
