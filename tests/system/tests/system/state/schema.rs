//! Tests opening a state database: several processes at once create one schema, restarts find it, and a newer schema
//! is not changed.

use futures_util::future::join_all;
use terrane_app::ports::store::Store as _;
use terrane_store::{OpenError, StateStore};
use terrane_system_tests::Scratch;
use terrane_system_tests::engines::{AUTHORITY, Engine, Kind, STRANGER};

use super::{Place, on_both};
use crate::engines::skip;

#[test]
fn concurrent_servers_migrate_once() {
    on_both(|place| async move {
        let opened = join_all((0..6).map(|_| StateStore::open(&place.url, place.folder.path()))).await;
        for store in opened {
            let store = store.unwrap();
            assert_eq!(store.schema_version().await.unwrap(), 27);
            store.ping().await.unwrap();
            store.record_start("0.1.0", "2025-01-01T00:00:00Z").await.unwrap();
        }
        assert_eq!(place.open().await.schema_version().await.unwrap(), 27);
    });
}

#[test]
fn servers_on_one_database_share_a_secret() {
    on_both(|place| async move {
        let stores = [place.open().await, place.open().await, place.open().await];
        let secrets = stores.iter().zip(1_u8..).map(|(store, byte)| store.server_secret("a", [byte; 32]));
        let secrets: Vec<[u8; 32]> = join_all(secrets).await.into_iter().map(Result::unwrap).collect();
        assert!(secrets.iter().all(|secret| *secret == secrets[0]), "{secrets:?}");
        assert_eq!(stores[0].server_secret("a", [9; 32]).await.unwrap(), secrets[0]);
        assert_eq!(stores[0].server_secret("b", [9; 32]).await.unwrap(), [9; 32]);
    });
}

#[test]
fn newer_database_is_rejected_and_unchanged() {
    on_both(|place| async move {
        drop(place.open().await);
        let later = match place.engine {
            None => {
                "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                     VALUES (9999, 'later', TRUE, x'00', 0)"
            }
            Some(_) => {
                "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                        VALUES (9999, 'later', TRUE, '', 0)"
            }
        };
        place.run(later).await.unwrap();
        place.run("DROP TABLE leases").await.unwrap();
        let error = StateStore::open(&place.url, place.folder.path()).await.unwrap_err();
        assert!(matches!(error, OpenError::Newer { version: 9999, .. }), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(place.run("SELECT 1 FROM leases").await.is_err(), "nothing was made again");
    });
}

fn error_text(url: &str, folder: &Scratch) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(StateStore::open(url, folder.path())).unwrap_err().to_string()
}

#[test]
fn invalid_state_database_is_named_without_its_password() {
    let folder = Scratch::empty().with("state.db", "not a database, but long enough to look like one");
    assert!(error_text("sqlite://state.db", &folder).contains("state.db"));
    for url in ["postgres://me:hidden@127.0.0.1:1/x", "postgres://me:hidden@no-such-host.invalid/x"] {
        let text = error_text(url, &folder);
        assert!(text.contains("cannot open the state database postgres://") && !text.contains("hidden"), "{text}");
    }
    let Some(Place { engine: Some(engine), .. }) = Place::postgres() else { return };
    let port = engine.server.as_ref().unwrap().port;
    let text = error_text(&format!("postgres://terrane:hidden@127.0.0.1:{port}/missing"), &folder);
    assert!(text.contains("\"missing\" does not exist") && !text.contains("hidden"), "{text}");
    let text = error_text(&format!("postgres://terrane:hidden@127.0.0.1:{port}/state?sslmode=require"), &folder);
    assert!(text.contains("TLS") && !text.contains("hidden"), "{text}");
}

#[test]
fn certificate_is_verified_as_the_url_requires() {
    let engine = match Engine::start_with_certificate().unwrap() {
        Ok(engine) => engine,
        Err(missing) => return skip(Kind::Postgres, &missing),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let url = engine.make_database("state").unwrap();
    let file = |name: &str| engine.file(name).unwrap().display().to_string();
    let folder = Scratch::empty();
    let open = |parameters: &str| {
        let url = format!("{url}?{parameters}");
        runtime.block_on(StateStore::open(&url, folder.path())).map_err(|error| error.to_string())
    };
    open(&format!("sslmode=verify-full&sslrootcert={}", file(AUTHORITY))).unwrap();
    for parameters in ["sslmode=verify-full", &format!("sslmode=verify-full&sslrootcert={}", file(STRANGER))] {
        let text = open(parameters).unwrap_err();
        assert!(text.contains("certificate") && !text.contains("secret"), "{parameters}: {text}");
    }
}
