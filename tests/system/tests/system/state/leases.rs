//! Tests leases, and the deletion of expired records by the holder of a lease.

use std::time::Duration;

use futures_util::future::join_all;
use terrane_app::ports::credentials::{ApiKey, Credentials as _, RefreshToken, Session};
use terrane_app::ports::leases::Leases as _;
use terrane_app::ports::retention::{Horizon, Pruned, Retention as _};

use super::{at, entry, key, on_both, records_of, rights, session, token, user};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn lease_has_one_holder_and_fences_only_grow() {
    on_both(|place| async move {
        let stores = [place.open().await, place.open().await];
        let claims = (0..8).map(|number| {
            let store = stores[number % 2].clone();
            async move { store.acquire("prune", &format!("h{number}"), LONG).await.unwrap() }
        });
        let held: Vec<_> = join_all(claims).await.into_iter().flatten().collect();
        assert_eq!(held.len(), 1, "{held:?}");
        let (here, there) = (&stores[0], &stores[1]);
        assert!(there.acquire("another", "h9", LONG).await.unwrap().is_some(), "each name has its own");
        assert!(there.renew(&held[0], SHORT).await.unwrap(), "the holder may renew the lease");
        tokio::time::sleep(SHORT * 2).await;
        assert!(!here.renew(&held[0], LONG).await.unwrap(), "it is over");
        let next = here.acquire("prune", "h1", LONG).await.unwrap().unwrap();
        assert!(next.fence > held[0].fence);
        // A late release by the former holder does not end the lease of the new holder.
        there.release(&held[0]).await.unwrap();
        assert!(there.acquire("prune", "h2", LONG).await.unwrap().is_none());
        here.release(&next).await.unwrap();
        let last = there.acquire("prune", "h2", LONG).await.unwrap().unwrap();
        assert!(last.fence > next.fence);
    });
}

#[test]
fn only_expired_records_are_removed() {
    on_both(|place| async move {
        let store = place.open().await;
        store.add_user(&user("ada"), entry("user_created")).await.unwrap();
        for (id, ended) in [("ended", Some(10)), ("later", Some(60)), ("abandoned", None), ("alive", None)] {
            let byte = id.as_bytes()[1];
            let expires_at = if id == "alive" { at(100) } else { at(20) };
            let token = RefreshToken { expires_at, ..token(byte, id) };
            store.begin_session(&session(id, "ada"), &token, None, entry("session_started")).await.unwrap();
            if let Some(second) = ended {
                store.end_session(id, at(second), entry("session_ended")).await.unwrap();
            }
        }
        let used = Session { id: "used".into(), ..session("used", "ada") };
        store
            .begin_session(&used, &RefreshToken { expires_at: at(30), ..token(1, "used") }, None, entry("a"))
            .await
            .unwrap();
        store.rotate(&[1; 32], &token(2, ""), &rights("ada"), at(25), entry("session_refreshed")).await.unwrap();
        for (id, expires_at) in [("over", Some(at(40))), ("good", Some(at(60))), ("endless", None)] {
            store.add_key(&ApiKey { expires_at, ..key(id) }, entry("key_created")).await.unwrap();
        }
        let revoked = ApiKey { expires_at: None, revoked_at: Some(at(49)), ..key("revoked") };
        let valid = ApiKey { revoked_at: None, ..revoked.clone() };
        store.add_key(&valid, entry("key_created")).await.unwrap();
        assert!(store.replace_key(&valid, &revoked, entry("key_revoked")).await.unwrap());
        let records = records_of(&store).await;

        let horizon = Horizon { ended: at(50), abandoned: at(45) };
        let lease = store.acquire("prune", "h", LONG).await.unwrap().unwrap();
        let pruned = store.prune(&horizon, &lease).await.unwrap().unwrap();
        assert_eq!(pruned, Pruned { sessions: 2, refresh_tokens: 3, api_keys: 2, revocations: 0 });
        for (id, is_there) in [("ended", false), ("later", true), ("abandoned", false), ("alive", true), ("used", true)]
        {
            assert_eq!(store.session(id).await.unwrap().is_some(), is_there, "{id}");
        }
        for (id, is_there) in [("over", false), ("revoked", false), ("good", true), ("endless", true)] {
            assert_eq!(store.key(id).await.unwrap().is_some(), is_there, "{id}");
        }
        assert_eq!(store.prune(&horizon, &lease).await.unwrap(), Some(Pruned::default()));
        assert_eq!(records_of(&store).await, records, "the audit log keeps all");
        // A former holder that does not know that it lost the lease changes nothing.
        store.release(&lease).await.unwrap();
        store.acquire("prune", "another", LONG).await.unwrap().unwrap();
        assert_eq!(store.prune(&Horizon { ended: at(99), abandoned: at(99) }, &lease).await.unwrap(), None);
        assert!(store.key("good").await.unwrap().is_some());
    });
}
