//! Tests tenants and policies on two servers that share a Redis server, compared with a server without a cache.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::path::Path;

use terrane_attack_tests::server::Stage;
use terrane_attack_tests::sharing::run;
use terrane_system_tests::engines::Redis;
use terrane_system_tests::skip;

const SEED: u64 = 20_261_124;
const QUERIES: usize = 100;

#[test]
fn shared_cache_leaks_no_answer_between_callers() {
    if let Some(missing) = Redis::missing() {
        return skip("callers who share a Redis server", &missing.0);
    }
    let redis = Redis::start().unwrap();
    let stage = Stage::new(Path::new(env!("CARGO_BIN_EXE_terrane-attack"))).unwrap();
    let report = run(&stage, QUERIES, SEED, &redis.url()).unwrap();
    assert!(report.faults.is_empty(), "{}", report.faults.join("\n\n"));
    let counts = (report.answers, report.hits, report.shared_hits, report.distinguishing);
    println!("answers, hits, hits on first requests, queries that distinguish callers: {counts:?}");
    // Refusals, CSV, Arrow and explanations never count as hits.
    assert!(report.hits * 6 > report.answers, "few hits: {counts:?}");
    assert!(report.shared_hits > QUERIES / 2, "few results are shared: {counts:?}");
    assert!(report.distinguishing * 5 > QUERIES, "few queries distinguish callers: {counts:?}");
}
