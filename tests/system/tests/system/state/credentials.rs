//! Keys, users and sessions: what is put in comes out, changes happen once, and each leaves its record.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use terrane_app::ports::credentials::{ApiKey, Credentials as _, Rights, Rotation, Session};
use terrane_app::security::Scopes;
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, SecurityContext};

use super::{at, entry, guest_session, key, on_both, records_of, rights, session, token, user};

#[test]
fn keys_come_out_as_they_went_in_and_end_once() {
    on_both(|place| async move {
        let store = place.open().await;
        let attributes: BTreeMap<_, _> = [
            ("region".into(), Attribute::Many(vec![Value::Text("EU".into()), Value::Text("ü\"'".into())])),
            ("level".into(), Attribute::One(Value::Integer(-3))),
            ("share".into(), Attribute::One(Value::Decimal("0.10".into()))),
            ("is_new".into(), Attribute::One(Value::Boolean(true))),
        ]
        .into();
        let caller = SecurityContext {
            user_id: "u1".into(),
            email: Some("a@b.c".into()),
            roles: vec!["r".into()],
            groups: vec!["g".into(), "h".into()],
            attributes,
        };
        let first = ApiKey { caller, ..key("k1") };
        let second = ApiKey { expires_at: None, tenant: None, created_at: at(5), ..key("k2") };
        for key in [&first, &second] {
            store.add_key(key, entry("key_created")).await.unwrap();
        }
        assert_eq!(store.key("k1").await.unwrap(), Some(first.clone()));
        assert_eq!(store.keys().await.unwrap(), [second, first]);
        assert_eq!(store.key("k3").await.unwrap(), None);
        assert!(store.revoke_key("k1", at(9), entry("key_revoked")).await.unwrap());
        assert!(!store.revoke_key("k1", at(10), entry("key_revoked")).await.unwrap());
        assert!(!store.revoke_key("k3", at(10), entry("key_revoked")).await.unwrap());
        assert_eq!(store.key("k1").await.unwrap().unwrap().revoked_at, Some(at(9)));
        assert!(store.add_key(&key("k2"), entry("key_created")).await.is_err(), "an id is one key's");
        assert_eq!(records_of(&store).await, 3, "what changed nothing left no record");
    });
}

#[test]
fn users_are_made_once_and_their_sessions_end_with_them() {
    on_both(|place| async move {
        let store = place.open().await;
        assert!(store.add_user(&user("ada"), entry("user_created")).await.unwrap());
        assert!(!store.add_user(&user("ada"), entry("user_created")).await.unwrap());
        store.begin_session(&session("s1", "ada"), &token(1, "s1"), entry("session_started")).await.unwrap();
        assert_eq!(store.session("s1").await.unwrap(), Some(session("s1", "ada")));
        assert!(store.disable_user("ada", at(3), entry("user_disabled")).await.unwrap());
        assert!(!store.disable_user("ada", at(4), entry("user_disabled")).await.unwrap());
        assert_eq!(store.user("ada").await.unwrap().unwrap().disabled_at, Some(at(3)));
        assert_eq!(store.users().await.unwrap().len(), 1);
        assert_eq!(store.session("s1").await.unwrap().unwrap().ended_at, Some(at(3)));
        assert_eq!(records_of(&store).await, 3);
    });
}

#[test]
fn a_caller_from_a_provider_has_a_session_without_a_user() {
    on_both(|place| async move {
        let store = place.open().await;
        let begun = guest_session("s1", "corp:ada");
        store.begin_session(&begun, &token(1, "s1"), entry("session_started")).await.unwrap();
        assert_eq!(store.session("s1").await.unwrap(), Some(begun.clone()));
        let renewed = Rights { tenant: None, scopes: Scopes::default(), ..begun.rights.clone().unwrap() };
        let Rotation::Rotated(rotated) =
            store.rotate(&[1; 32], &token(2, ""), &renewed, at(1), entry("session_refreshed")).await.unwrap()
        else {
            panic!("the first use of a token")
        };
        assert_eq!(rotated, Session { rights: Some(renewed), ..begun });
        assert_eq!(store.session("s1").await.unwrap(), Some(rotated));
        assert_eq!(store.end_sessions("corp:ada", at(2), entry("sessions_ended")).await.unwrap(), 1);
        assert_eq!(store.end_sessions("corp:ada", at(3), entry("sessions_ended")).await.unwrap(), 0);
        assert_eq!(store.session("s1").await.unwrap().unwrap().ended_at, Some(at(2)));
        assert_eq!(records_of(&store).await, 3, "what changed nothing left no record");
    });
}

#[test]
fn a_refresh_token_is_good_once() {
    on_both(|place| async move {
        let store = place.open().await;
        store.add_user(&user("ada"), entry("user_created")).await.unwrap();
        store.begin_session(&session("s1", "ada"), &token(1, "s1"), entry("session_started")).await.unwrap();
        let rotate = |from: u8, to: u8, second: i64| {
            let store = store.clone();
            let (next, ada) = (token(to, ""), rights("ada"));
            async move { store.rotate(&[from; 32], &next, &ada, at(second), entry("session_refreshed")).await.unwrap() }
        };
        assert!(matches!(rotate(9, 10, 1).await, Rotation::Refused));
        assert!(matches!(rotate(1, 2, 1).await, Rotation::Rotated(_)));
        assert_eq!(store.session_of(&[2; 32]).await.unwrap().unwrap().id, "s1".into());
        assert!(matches!(rotate(2, 3, 101).await, Rotation::Refused), "it had expired");
        assert!(matches!(rotate(1, 4, 2).await, Rotation::Reused(_)));
        assert!(matches!(rotate(2, 5, 2).await, Rotation::Refused), "its session is over");
        assert!(store.session("s1").await.unwrap().unwrap().ended_at.is_some());
        assert_eq!(records_of(&store).await, 4);
    });
}

#[test]
fn of_many_that_use_one_token_at_once_one_gets_the_next() {
    on_both(|place| async move {
        let (here, there) = (place.open().await, place.open().await);
        here.add_user(&user("ada"), entry("user_created")).await.unwrap();
        here.begin_session(&session("s1", "ada"), &token(1, "s1"), entry("session_started")).await.unwrap();
        let tries = (10..26_u8).map(|to| {
            let store = if to % 2 == 0 { here.clone() } else { there.clone() };
            let (next, ada) = (token(to, ""), rights("ada"));
            async move { store.rotate(&[1; 32], &next, &ada, at(1), entry("session_refreshed")).await.unwrap() }
        });
        let outcomes = join_all(tries).await;
        let rotated = outcomes.iter().filter(|outcome| matches!(outcome, Rotation::Rotated(_))).count();
        assert_eq!(rotated, 1, "{outcomes:?}");
        records_of(&here).await;
    });
}

#[test]
fn names_that_a_database_cannot_hold_are_nobodys() {
    on_both(|place| async move {
        let store = place.open().await;
        assert_eq!(store.user("a\0b").await.unwrap(), None);
        store.add_user(&user("a\0b"), entry("user\0created")).await.unwrap();
        assert_eq!(records_of(&store).await, 1, "the chain is over what is kept");
    });
}
