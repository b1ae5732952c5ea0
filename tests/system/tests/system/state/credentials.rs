//! Tests keys, users and sessions: stored values are read back, changes happen once, and each has an audit record.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{ApiKey, Credentials as _, Rights, Rotation, Session, User};
use terrane_app::security::Scopes;
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, SecurityContext};

use super::{at, entry, guest_session, key, on_both, records_of, rights, session, token, user};

#[test]
fn keys_round_trip_and_are_revoked_once() {
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
            ..SecurityContext::default()
        };
        let first = ApiKey { caller, ..key("k1") };
        let second = ApiKey { expires_at: None, tenant: None, created_at: at(5), ..key("k2") };
        for key in [&first, &second] {
            store.add_key(key, entry("key_created")).await.unwrap();
        }
        assert_eq!(store.key("k1").await.unwrap(), Some(first.clone()));
        assert_eq!(store.keys().await.unwrap(), [second, first]);
        assert_eq!(store.key("k3").await.unwrap(), None);
        let revoked = ApiKey { revoked_at: Some(at(9)), ..store.key("k1").await.unwrap().unwrap() };
        let before = ApiKey { revoked_at: None, ..revoked.clone() };
        assert!(store.replace_key(&before, &revoked, entry("key_revoked")).await.unwrap());
        let again = ApiKey { revoked_at: Some(at(10)), ..revoked.clone() };
        assert!(!store.replace_key(&before, &again, entry("key_revoked")).await.unwrap(), "it was replaced before");
        assert!(!store.replace_key(&key("k3"), &again, entry("key_revoked")).await.unwrap());
        assert_eq!(store.key("k1").await.unwrap(), Some(revoked));
        assert!(store.add_key(&key("k2"), entry("key_created")).await.is_err(), "an id is one key's");
        assert_eq!(records_of(&store).await, 3, "what changed nothing left no record");
    });
}

#[test]
fn users_are_unique_and_their_sessions_end_with_them() {
    on_both(|place| async move {
        let store = place.open().await;
        assert!(store.add_user(&user("ada"), entry("user_created")).await.unwrap());
        assert!(!store.add_user(&user("ada"), entry("user_created")).await.unwrap());
        store.begin_session(&session("s1", "ada"), &token(1, "s1"), None, entry("session_started")).await.unwrap();
        assert_eq!(store.session("s1").await.unwrap(), Some(session("s1", "ada")));
        let disabled = User { disabled_at: Some(at(3)), ..user("ada") };
        let entry_at_3 = AuditEntry { at: at(3), ..entry("user_disabled") };
        assert_eq!(store.replace_user(&user("ada"), &disabled, entry_at_3).await.unwrap(), Some(1));
        assert_eq!(store.replace_user(&user("ada"), &disabled, entry("user_disabled")).await.unwrap(), None);
        assert_eq!(store.user("ada").await.unwrap(), Some(disabled));
        assert_eq!(store.users().await.unwrap().len(), 1);
        assert_eq!(store.session("s1").await.unwrap().unwrap().ended_at, Some(at(3)));
        assert_eq!(records_of(&store).await, 3);
    });
}

#[test]
fn every_field_of_an_account_is_replaced() {
    on_both(|place| async move {
        let store = place.open().await;
        store.add_user(&user("ada"), entry("user_created")).await.unwrap();
        store.add_key(&key("k1"), entry("key_created")).await.unwrap();
        store.begin_session(&session("s1", "bob"), &token(1, "s1"), None, entry("session_started")).await.unwrap();
        let caller = SecurityContext {
            user_id: "u2".into(),
            email: Some("a@b.example".into()),
            roles: vec!["boss".into()],
            ..SecurityContext::default()
        };
        let scopes = Scopes { write: true, ..Scopes::default() };
        let after = User {
            password_hash: "$argon2id$other".into(),
            scopes,
            caller: caller.clone(),
            tenant: Some("south".into()),
            ..user("ada")
        };
        assert_eq!(store.replace_user(&user("ada"), &after, entry("user_changed")).await.unwrap(), Some(0));
        assert_eq!(store.user("ada").await.unwrap(), Some(after));
        assert_eq!(store.session("s1").await.unwrap().unwrap().ended_at, None, "another user's session");
        let expires_at = Some(at(500));
        let after = ApiKey { name: "other".into(), scopes, caller, tenant: None, expires_at, ..key("k1") };
        assert!(store.replace_key(&key("k1"), &after, entry("key_changed")).await.unwrap());
        assert_eq!(store.key("k1").await.unwrap(), Some(after));
        assert_eq!(records_of(&store).await, 5);
    });
}

#[test]
fn session_requires_the_stored_state_of_its_user() {
    on_both(|place| async move {
        let store = place.open().await;
        store.add_user(&user("ada"), entry("user_created")).await.unwrap();
        let begin = async |id: &str, byte: u8, holder: &User| {
            let (session, token) = (session(id, "ada"), token(byte, id));
            store.begin_session(&session, &token, Some(holder), entry("session_started")).await.unwrap()
        };
        assert!(begin("s1", 1, &user("ada")).await);
        let changed = User { password_hash: "$argon2id$other".into(), ..user("ada") };
        assert_eq!(store.replace_user(&user("ada"), &changed, entry("user_changed")).await.unwrap(), Some(1));
        assert!(!begin("s2", 2, &user("ada")).await, "the password changed after it was verified");
        assert!(!begin("s3", 3, &user("bob")).await);
        assert!(begin("s4", 4, &changed).await);
        assert_eq!(store.session("s2").await.unwrap(), None);
        assert_eq!(records_of(&store).await, 4, "a session that did not begin left no record");
    });
}

#[test]
fn one_of_many_concurrent_changes_of_a_user_succeeds() {
    on_both(|place| async move {
        let (here, there) = (place.open().await, place.open().await);
        here.add_user(&user("ada"), entry("user_created")).await.unwrap();
        let changes = (0..12).map(|number| {
            let store = if number % 2 == 0 { here.clone() } else { there.clone() };
            let after = User { tenant: Some(format!("t{number}").into()), ..user("ada") };
            async move { store.replace_user(&user("ada"), &after, entry("user_changed")).await.unwrap().is_some() }
        });
        let made = join_all(changes).await.into_iter().filter(|is_made| *is_made).count();
        assert_eq!(made, 1);
        assert_eq!(records_of(&here).await, 2);
    });
}

#[test]
fn caller_from_a_provider_has_a_session_without_a_user() {
    on_both(|place| async move {
        let store = place.open().await;
        let begun = guest_session("s1", "corp:ada");
        store.begin_session(&begun, &token(1, "s1"), None, entry("session_started")).await.unwrap();
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
fn refresh_token_is_valid_once() {
    on_both(|place| async move {
        let store = place.open().await;
        store.add_user(&user("ada"), entry("user_created")).await.unwrap();
        store.begin_session(&session("s1", "ada"), &token(1, "s1"), None, entry("session_started")).await.unwrap();
        let rotate = |from: u8, to: u8, second: i64| {
            let store = store.clone();
            let (next, ada) = (token(to, ""), rights("ada"));
            async move { store.rotate(&[from; 32], &next, &ada, at(second), entry("session_refreshed")).await.unwrap() }
        };
        assert!(matches!(rotate(9, 10, 1).await, Rotation::Refused));
        assert!(matches!(rotate(1, 2, 1).await, Rotation::Rotated(_)));
        assert_eq!(&*store.session_of(&[2; 32]).await.unwrap().unwrap().id, "s1");
        assert!(matches!(rotate(2, 3, 101).await, Rotation::Refused), "it had expired");
        assert!(matches!(rotate(1, 4, 2).await, Rotation::Reused(_)));
        assert!(matches!(rotate(2, 5, 2).await, Rotation::Refused), "its session is over");
        assert!(store.session("s1").await.unwrap().unwrap().ended_at.is_some());
        assert_eq!(records_of(&store).await, 4);
    });
}

#[test]
fn one_of_many_concurrent_refreshes_succeeds() {
    on_both(|place| async move {
        let (here, there) = (place.open().await, place.open().await);
        here.add_user(&user("ada"), entry("user_created")).await.unwrap();
        here.begin_session(&session("s1", "ada"), &token(1, "s1"), None, entry("session_started")).await.unwrap();
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
fn names_that_a_database_cannot_store_match_no_user() {
    on_both(|place| async move {
        let store = place.open().await;
        assert_eq!(store.user("a\0b").await.unwrap(), None);
        store.add_user(&user("a\0b"), entry("user\0created")).await.unwrap();
        assert_eq!(records_of(&store).await, 1, "the chain is over what is kept");
    });
}
