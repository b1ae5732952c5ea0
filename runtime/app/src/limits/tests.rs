//! Tests the rate limits of callers, with a clock that the tests advance.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use terrane_compiler::SecurityContext;

use super::*;

#[derive(Default)]
struct Milliseconds(AtomicU64);

impl Clock for Milliseconds {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl Milliseconds {
    fn pass(&self, milliseconds: u64) {
        self.0.fetch_add(milliseconds, Ordering::Relaxed);
    }
}

fn limits(settings: RateSettings) -> (RateLimits, Arc<Milliseconds>) {
    let clock = Arc::new(Milliseconds::default());
    let port: Arc<dyn Clock> = clock.clone();
    (RateLimits::new(&settings, &port), clock)
}

fn rate(requests_per_second: f64, burst: u32) -> Option<Rate> {
    Some(Rate { requests_per_second, burst: NonZeroU32::new(burst).unwrap() })
}

fn key(id: &str, tenant: Option<&str>) -> Identity {
    let caller = SecurityContext { auth_method: AuthMethod::ApiKey, ..SecurityContext::default() };
    Identity { caller, credential: id.into(), tenant: tenant.map(Into::into), ..Identity::default() }
}

fn address(last: u8) -> Option<IpAddr> {
    Some(IpAddr::from([192, 0, 2, last]))
}

#[test]
fn burst_is_admitted_at_once_and_the_rest_evenly() {
    let (limits, clock) = limits(RateSettings { per_key: rate(10.0, 3), ..RateSettings::default() });
    let (one, other) = (key("a", None), key("b", None));
    assert!((0..3).all(|_| limits.admit(&one, None).is_ok()));
    let exceeded = limits.admit(&one, None).unwrap_err();
    assert_eq!((exceeded.scope, exceeded.rate.burst.get()), (RateScope::Key, 3));
    assert!(exceeded.wait <= Duration::from_millis(100) && !exceeded.wait.is_zero(), "{:?}", exceeded.wait);
    assert!(limits.admit(&other, None).is_ok());
    for _ in 0..5 {
        clock.pass(100);
        assert!(limits.admit(&one, None).is_ok());
        assert!(limits.admit(&one, None).is_err());
    }
    clock.pass(60_000);
    assert!((0..3).all(|_| limits.admit(&one, None).is_ok()), "a pause fills the bucket and no more");
    assert!(limits.admit(&one, None).is_err());
}

#[test]
fn tokens_of_a_user_share_one_limit() {
    let (limits, _) = limits(RateSettings { per_key: rate(1.0, 2), ..RateSettings::default() });
    let token = |session: &str| {
        let caller = crate::security::plain_caller("ada".into());
        let caller = SecurityContext { auth_method: AuthMethod::Jwt, ..caller };
        Identity { caller, credential: session.into(), ..Identity::default() }
    };
    assert!(limits.admit(&token("1"), None).is_ok() && limits.admit(&token("2"), None).is_ok());
    assert!(limits.admit(&token("3"), None).is_err());
    assert!(limits.admit(&key("ada", None), None).is_ok(), "a key of that name is another subject");
}

#[test]
fn tenants_are_limited_separately() {
    let (limits, _) = limits(RateSettings { per_tenant: rate(1.0, 2), ..RateSettings::default() });
    for tenant in [Some("t"), None] {
        assert!(limits.admit(&key("a", tenant), None).is_ok());
        assert!(limits.admit(&key("b", tenant), None).is_ok());
        assert_eq!(limits.admit(&key("c", tenant), None).unwrap_err().scope, RateScope::Tenant);
    }
    assert!(limits.admit(&Identity::default(), address(1)).is_err(), "anonymous callers have no tenant");
    assert!(limits.admit(&key("a", Some("u")), None).is_ok());
}

#[test]
fn anonymous_callers_are_limited_by_network() {
    let (limits, _) = limits(RateSettings { anonymous: rate(1.0, 1), ..RateSettings::default() });
    let anonymous = Identity::default();
    let v6 = |text: &str| Some(text.parse::<IpAddr>().unwrap());
    for (first, second, is_same) in [
        (address(1), address(2), false),
        (address(3), v6("::ffff:192.0.2.3"), true),
        (v6("2001:db8::1"), v6("2001:db8::2:0:0:1"), true),
        (v6("2001:db8:0:1::1"), v6("2001:db8:0:2::1"), false),
    ] {
        assert!(limits.admit(&anonymous, first).is_ok());
        assert_eq!(limits.admit(&anonymous, second).is_err(), is_same, "{first:?} {second:?}");
    }
    assert!(limits.admit_stranger(address(1)).is_err(), "routes for everybody take of the same share");
    assert!(limits.admit(&key("a", None), address(1)).is_ok(), "a caller with an identity is not anonymous");
    assert!((0..9).all(|_| limits.admit(&anonymous, None).is_ok()), "no address, no share");
}

#[test]
fn checking_the_limit_does_not_count_as_a_failure() {
    let (limits, clock) = limits(RateSettings { failed: rate(1.0, 2), ..RateSettings::default() });
    for _ in 0..2 {
        assert!((0..9).all(|_| limits.may_fail(address(1)).is_ok()));
        limits.failed(address(1));
    }
    assert_eq!(limits.may_fail(address(1)).unwrap_err().scope, RateScope::Failures);
    assert!(limits.may_fail(address(2)).is_ok());
    clock.pass(1_000);
    assert!(limits.may_fail(address(1)).is_ok());
}

#[test]
fn forged_addresses_take_bounded_memory_and_no_share_of_others() {
    let (limits, clock) = limits(RateSettings { anonymous: rate(0.001, 1), ..RateSettings::default() });
    let address = |number: u32| Some(IpAddr::from(number.to_be_bytes()));
    assert!(limits.admit_stranger(address(0)).is_ok());
    let mut refused = 0;
    for number in 1..MAX_SUBJECTS as u32 + 1_000 {
        refused += u32::from(limits.admit_stranger(address(number)).is_err());
    }
    let limit = limits.anonymous.as_ref().unwrap();
    assert_eq!(limit.subjects(), MAX_SUBJECTS);
    assert_eq!(refused, 999, "those without a place share one bucket");
    assert!(limits.admit_stranger(address(0)).is_err(), "an old share is still used up");
    clock.pass(3_000_000);
    assert!(limits.admit_stranger(address(7_000_000)).is_ok(), "full buckets make place");
    assert_eq!(limit.subjects(), 1);
}

#[test]
fn default_settings_limit_nothing() {
    let (limits, _) = limits(RateSettings::default());
    assert!((0..10_000).all(|_| limits.admit(&key("a", None), address(1)).is_ok()));
}
