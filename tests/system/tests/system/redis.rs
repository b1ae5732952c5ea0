//! Tests the shared tier of the result cache with a real Redis server that is missing, lost, slow, full or emptied,
//! that contains values of another writer, or that serves callers with different rights.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::{Int64Array, RecordBatch};
use jiff::Timestamp;
use serde_json::{Value, json};
use terrane_app::domain::DataVersion;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::result_cache::{CacheKey, EncodedRows, ResultCache as _, StoredResult};
use terrane_app::ports::warehouse::ResultSet;
use terrane_app::query::CacheSecret;
use terrane_cache::{RedisCache, RedisSettings};
use terrane_system_tests::engines::{AUTHORITY, Redis, STRANGER};
use terrane_system_tests::{Program, Scratch, request, request_as};

use crate::{BINARY, program};

/// The time limit of a call to a server that never answers. The cache itself gives up long before.
const HANG: Duration = Duration::from_secs(30);
const KEY: CacheKey = CacheKey([1; 32]);
const OTHER: CacheKey = CacheKey([2; 32]);

/// A clock that advances only if a test moves it.
#[derive(Default)]
struct FakeClock(AtomicU64);

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

struct Tier {
    cache: RedisCache,
    clock: Arc<FakeClock>,
}

fn tier(url: &str, secret: u8) -> Tier {
    tier_trusting(None, url, secret)
}

/// Returns a tier that trusts the certificate authorities of a file instead of the public ones.
fn tier_trusting(authorities: Option<&Path>, url: &str, secret: u8) -> Tier {
    let clock = Arc::new(FakeClock::default());
    let settings = RedisSettings {
        url: url.to_owned(),
        authorities: authorities.map(|path| fs::read(path).unwrap()),
        secret: CacheSecret::new(&[secret; 32]),
        max_entry: 8 * 1024 * 1024,
        stale: Duration::ZERO,
    };
    Tier { cache: RedisCache::new(settings, clock.clone()).unwrap(), clock }
}

impl Tier {
    async fn put(&self, key: CacheKey, rows: i64) {
        let batch = RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from_iter_values(0..rows)) as _)]).unwrap();
        let result = StoredResult {
            rows: ResultSet { schema: batch.schema(), batches: vec![batch] },
            total_rows: Some(7),
            totals: None,
            version: DataVersion::from_bytes([3; 16]),
            as_of: Timestamp::UNIX_EPOCH,
            waited: Duration::ZERO,
            encoded: EncodedRows::default(),
        };
        self.cache.put(key, Arc::new(result), None).await;
    }

    /// Returns the number of rows in the stored result; `None` without a stored result.
    async fn rows(&self, key: CacheKey) -> Option<usize> {
        let found = tokio::time::timeout(HANG, self.cache.get(&key)).await.expect("the cache waits for the server");
        found.map(|result| result.rows.batches.iter().map(RecordBatch::num_rows).sum())
    }

    /// Advances the clock and waits until the circuit breaker is closed and the tier works again.
    async fn recovers(&self) {
        for _ in 0..100 {
            self.clock.0.fetch_add(60, Ordering::Relaxed);
            self.put(KEY, 5).await;
            if self.rows(KEY).await == Some(5) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the tier does not recover: {:?}", self.cache.statistics());
    }
}

fn on_redis<F: Future<Output = ()>>(test: impl FnOnce(Redis) -> F) {
    if let Some(missing) = Redis::missing() {
        return crate::skip("the cases of Redis", &missing.0);
    }
    let redis = Redis::start().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test(redis));
}

#[test]
fn replicas_with_one_secret_share_results() {
    on_redis(|redis| async move {
        let (one, two, stranger) = (tier(&redis.url(), 1), tier(&redis.url(), 1), tier(&redis.url(), 9));
        one.put(KEY, 10_000).await;
        assert_eq!(two.rows(KEY).await, Some(10_000));
        assert_eq!(two.rows(OTHER).await, None);
        assert_eq!(stranger.rows(KEY).await, None, "another secret");
        assert_eq!(stranger.cache.statistics().failures, 1);
        assert!(one.cache.ping().await);
    });
}

#[test]
fn servers_with_tls_are_verified() {
    if let Some(missing) = Redis::missing_tls() {
        return crate::skip("the cases of Redis with TLS", &missing.0);
    }
    let redis = Redis::start_tls().unwrap();
    let (authority, stranger) = (redis.file(AUTHORITY), redis.file(STRANGER));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (one, two) =
            (tier_trusting(Some(&authority), &redis.url(), 1), tier_trusting(Some(&authority), &redis.url(), 1));
        // On a busy machine, a handshake can take longer than the time limit of a call.
        one.recovers().await;
        one.put(OTHER, 10_000).await;
        two.recovers().await;
        assert_eq!(two.rows(OTHER).await, Some(10_000));
        let without_tls = redis.url().replace("rediss://", "redis://");
        let other_host = redis.url().replace("127.0.0.1", "localhost");
        for (name, authorities, url) in [
            ("an authority that signed nothing", Some(&*stranger), &redis.url()),
            ("the public authorities", None, &redis.url()),
            ("no TLS", Some(&*authority), &without_tls),
            ("the certificate of another host", Some(&*authority), &other_host),
        ] {
            let tier = tier_trusting(authorities, url, 1);
            for _ in 0..3 {
                assert_eq!(tier.rows(OTHER).await, None, "{name}");
            }
            assert!(!tier.cache.ping().await, "{name}");
        }
    });
    let unverified = RedisSettings {
        url: format!("{}#insecure", redis.url()),
        authorities: None,
        secret: CacheSecret::new(&[1; 32]),
        max_entry: 1,
        stale: Duration::ZERO,
    };
    let refused = RedisCache::new(unverified, Arc::new(FakeClock::default())).err().unwrap();
    assert!(refused.to_string().contains("#insecure"), "{refused}");
}

#[test]
fn server_verifies_redis_with_configured_authorities() {
    if let Some(missing) = Redis::missing_tls() {
        return crate::skip("the cases of Redis with TLS", &missing.0);
    }
    let redis = Redis::start_tls().unwrap();
    let state = |authority: &str| {
        let settings = format!(
            "name: shop\nwarehouse: {{type: duckdb, init: [\"CREATE TABLE t AS SELECT 1 AS id\"]}}\n\
             security: {{anonymous: {{scopes: [read]}}, outgoing: {{ca_path: {}}}}}\ncache: {{url: \"{}\"}}\n",
            redis.file(authority).display(),
            redis.url()
        );
        let project = Scratch::project().with("service_project.yml", &settings);
        let serve = program("serve", project.path()).arguments(&["--port", "0"]);
        let server = serve.variable("SERVICE_CACHE__ENABLED", "true").serve().unwrap();
        let mut state = Value::Null;
        for _ in 0..20 {
            state = request(server.address, "GET", "/health/status", None).unwrap().json().unwrap()["checks"]["redis"]
                .clone();
            if state == "ok" {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        state
    };
    assert_eq!((state(AUTHORITY), state(STRANGER)), ("ok".into(), "error".into()));
}

#[test]
fn redis_may_start_after_the_server() {
    on_redis(|mut redis| async move {
        redis.kill().unwrap();
        let tier = tier(&redis.url(), 1);
        for _ in 0..5 {
            assert_eq!(tier.rows(KEY).await, None);
        }
        assert!(!tier.cache.ping().await);
        redis.restart().unwrap();
        tier.recovers().await;
    });
}

#[test]
fn lost_redis_causes_only_misses() {
    on_redis(|mut redis| async move {
        let tier = tier(&redis.url(), 1);
        tier.put(KEY, 5).await;
        assert_eq!(tier.rows(KEY).await, Some(5));
        redis.kill().unwrap();
        for _ in 0..5 {
            assert_eq!(tier.rows(KEY).await, None);
            tier.put(KEY, 5).await;
        }
        redis.restart().unwrap();
        tier.recovers().await;
    });
}

#[test]
fn slow_redis_is_not_waited_for() {
    on_redis(|redis| async move {
        let tier = tier(&redis.url(), 1);
        tier.put(KEY, 5).await;
        redis.halt().unwrap();
        for _ in 0..3 {
            assert_eq!(tier.rows(KEY).await, None);
        }
        let calls = tier.cache.statistics().failures;
        for _ in 0..1_000 {
            assert_eq!(tier.rows(KEY).await, None);
        }
        assert_eq!(tier.cache.statistics().failures, calls, "an open breaker calls nothing");
        redis.proceed().unwrap();
        tier.recovers().await;
    });
}

#[test]
fn full_redis_is_still_read() {
    on_redis(|redis| async move {
        let tier = tier(&redis.url(), 1);
        tier.put(KEY, 5).await;
        assert_eq!(redis.send("CONFIG SET maxmemory 1").unwrap(), "+OK");
        for _ in 0..5 {
            tier.put(OTHER, 5).await;
        }
        assert_eq!(tier.cache.statistics().failures, 5);
        assert_eq!((tier.rows(KEY).await, tier.rows(OTHER).await), (Some(5), None));
    });
}

#[test]
fn emptied_redis_causes_only_misses() {
    on_redis(|redis| async move {
        let tier = tier(&redis.url(), 1);
        tier.put(KEY, 5).await;
        assert_eq!(redis.send("FLUSHALL").unwrap(), "+OK");
        assert_eq!(tier.rows(KEY).await, None);
        assert_eq!(tier.cache.statistics().failures, 0);
    });
}

#[test]
fn values_of_another_writer_are_rejected() {
    on_redis(|redis| async move {
        let tier = tier(&redis.url(), 1);
        let name = |key: CacheKey| format!("terrane:result:{}", key.0.map(|byte| format!("{byte:02x}")).concat());
        tier.put(KEY, 5).await;
        assert_eq!(redis.send(&format!("COPY {} {} REPLACE", name(KEY), name(OTHER))).unwrap(), ":1");
        assert_eq!(tier.rows(OTHER).await, None, "the result of another statement");
        assert_eq!(redis.send(&format!("SET {} poison", name(OTHER))).unwrap(), "+OK");
        assert_eq!(tier.rows(OTHER).await, None);
        assert_eq!(redis.send(&format!("SETRANGE {} 40 x", name(KEY))).unwrap().get(..1), Some(":"));
        assert_eq!(tier.rows(KEY).await, None, "a changed byte");
        assert_eq!(redis.send(&format!("LPUSH {} x", name(CacheKey([4; 32])))).unwrap(), ":1");
        assert_eq!(tier.rows(CacheKey([4; 32])).await, None, "not even a value");
        assert_eq!(tier.cache.statistics().failures, 4);
    });
}

const SHOP: &str = "\
cubes:
  - name: orders
    sql_table: orders
    measures: [{name: count, type: count}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
";
const OWN_REGION: &str = "\
policies:
  - {name: own_region, cubes: [orders], row_filter: \"{orders}.region = {{ user.attributes.region }}\"}
";

/// Starts a server without a tier in memory. Returns, for each key, the regions of the answer, and whether they come
/// from Redis.
fn answers(project: &Scratch, url: &str, keys: &[String]) -> Vec<(Value, bool)> {
    let serve = program("serve", project.path()).arguments(&["--port", "0"]).variable("SERVICE_CACHE__URL", url);
    let serve = serve.variable("SERVICE_CACHE__ENABLED", "true").variable("SERVICE_CACHE__MAX_SIZE", "0");
    let server = serve.serve().unwrap();
    let query = json!({"measures": ["orders.count"], "dimensions": ["orders.region"]}).to_string();
    let answers = keys.iter().map(|key| {
        let answer = request_as(server.address, Some(key), "POST", "/api/v1/query", Some(&query)).unwrap();
        let body = answer.json().unwrap();
        (body["data"].clone(), body["meta"]["cached"] == true)
    });
    answers.collect()
}

#[test]
fn shared_redis_separates_tenants_and_policies() {
    if let Some(missing) = Redis::missing() {
        return crate::skip("the cases of Redis", &missing.0);
    }
    let redis = Redis::start().unwrap();
    let settings = "name: shop\nwarehouse: {type: duckdb, path: shop.duckdb}\ncache: {ttl_seconds: 600}\n";
    let project = Scratch::empty().with("service_project.yml", settings).with("cubes/orders.yml", SHOP);
    let project = project.with("policies/regions.yml", OWN_REGION);
    let connection = duckdb::Connection::open(project.path().join("shop.duckdb")).unwrap();
    let rows = "CREATE TABLE orders AS SELECT i AS id, CASE i % 3 WHEN 0 THEN 'EU' ELSE 'US' END AS region \
                FROM range(9) t(i)";
    connection.execute_batch(rows).unwrap();
    drop(connection);
    let key = |name: &str, region: &str, tenant: &str| -> String {
        let attribute = format!("region={region}");
        let arguments = ["--name", name, "--attribute", &attribute, "--tenant", tenant, "--json"];
        let created = Program::new(BINARY, &["auth", "create-key"], project.path()).arguments(&arguments);
        let output = created.run().unwrap();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        serde_json::from_str::<Value>(&output.stdout).unwrap()["key"].as_str().unwrap().to_owned()
    };
    let keys = [key("a", "EU", "north"), key("b", "US", "north"), key("c", "EU", "south")];
    let europe = json!([{"orders.region": "EU", "orders.count": 3}]);
    let america = json!([{"orders.region": "US", "orders.count": 6}]);
    let rows = [europe.clone(), america, europe];
    let expected = |is_cached: bool| rows.iter().map(|rows| (rows.clone(), is_cached)).collect::<Vec<_>>();
    // The first server computes each answer: neither another policy nor another tenant shares a result.
    assert_eq!(answers(&project, &redis.url(), &keys), expected(false));
    // The second one finds all of them in Redis.
    assert_eq!(answers(&project, &redis.url(), &keys), expected(true));
}
