//! Tests dumps from one engine to the other and back, and dumps that must not be restored.

use terrane_app::ports::audit::{AuditLog as _, ChainState};
use terrane_app::ports::credentials::Credentials as _;
use terrane_store::{RestoreError, StateStore};

use super::{Place, at, entry, guest_session, key, on_both, records_of, rights, session, token, user};

/// Adds a user, two keys, two sessions, one of them with a used token, and many records.
async fn fill(store: &StateStore) {
    store.add_user(&user("ädä"), entry("user_created")).await.unwrap();
    for id in ["k1", "k2"] {
        store.add_key(&key(id), entry("key_created")).await.unwrap();
    }
    store.begin_session(&session("s1", "ädä"), &token(1, "s1"), None, entry("session_started")).await.unwrap();
    store
        .begin_session(&guest_session("s2", "corp:bob"), &token(3, "s2"), None, entry("session_started"))
        .await
        .unwrap();
    store.rotate(&[1; 32], &token(2, ""), &rights("ädä"), at(1), entry("session_refreshed")).await.unwrap();
    store.append((0..1_100).map(|_| entry("access_denied")).collect()).await.unwrap();
}

async fn dump(store: &StateStore) -> Vec<u8> {
    let mut bytes = Vec::new();
    let rows = store.dump(&mut bytes, at(0)).await.unwrap();
    assert_eq!(rows, 1 + 2 + 2 + 3 + 1_106);
    bytes
}

async fn restore(store: &StateStore, mut bytes: &[u8]) -> Result<u64, RestoreError> {
    store.restore(&mut bytes, entry("state_restored")).await.map(|restored| restored.rows)
}

#[test]
fn dump_of_either_engine_is_restored_in_both() {
    on_both(|place| async move {
        let store = place.open().await;
        fill(&store).await;
        let bytes = dump(&store).await;
        let mut others = vec![Place::sqlite()];
        if let Some(engine) = &place.engine {
            let url = engine.make_database("other").unwrap();
            others.push(Place { url, folder: terrane_system_tests::Scratch::empty(), engine: None });
        }
        for other in others {
            let restored = other.open().await;
            assert_eq!(restore(&restored, &bytes).await.unwrap(), 1_114);
            assert_eq!(restored.key("k1").await.unwrap(), store.key("k1").await.unwrap());
            assert_eq!(restored.users().await.unwrap(), store.users().await.unwrap());
            assert_eq!(restored.session_of(&[2; 32]).await.unwrap(), store.session_of(&[2; 32]).await.unwrap());
            assert_eq!(restored.session("s1").await.unwrap(), Some(session("s1", "ädä")));
            assert_eq!(restored.session("s2").await.unwrap(), Some(guest_session("s2", "corp:bob")));
            let whole = restored.verify().await.unwrap();
            assert!(matches!(whole, ChainState::Whole { records: 1_107, .. }), "{whole:?}");
            // The audit log continues after the last restored record.
            restored.append(vec![entry("a")]).await.unwrap();
            assert_eq!(records_of(&restored).await, 1_108);
            let again = restore(&restored, &bytes).await.unwrap_err();
            assert!(matches!(again, RestoreError::NotEmpty { table: "users", .. }), "{again}");
        }
    });
}

/// Replaces the checksum of a changed dump with a valid one, as a forger would.
fn sealed(text: &str) -> Vec<u8> {
    use std::io::Write as _;
    let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
    let mut child = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{body}").unwrap();
    let output = child.wait_with_output().unwrap();
    let sum = String::from_utf8(output.stdout).unwrap();
    format!("{body}\n{{\"sha256\":\"{}\"}}\n", &sum[..64]).into_bytes()
}

#[test]
fn incomplete_dump_is_not_restored() {
    on_both(|place| async move {
        let source = Place::sqlite();
        let full = source.open().await;
        fill(&full).await;
        let text = String::from_utf8(dump(&full).await).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let without = |number: usize| {
            let rest = lines.iter().enumerate().filter(|(index, _)| *index != number).map(|(_, line)| *line);
            rest.collect::<Vec<_>>().join("\n") + "\n"
        };
        let last_record = lines.len() - 2;
        let count = text.replace("\"api_keys\":2", "\"api_keys\":3");
        for (bytes, words) in [
            (Vec::new(), "not a dump"),
            (b"{}\n".to_vec(), "not a dump"),
            (b"\xff\xfe\n".to_vec(), "line 1: it is not UTF-8"),
            (text.replace("\"format_version\":1", "\"format_version\":2").into_bytes(), "format 2"),
            (text.replace("\"schema_version\":27", "\"schema_version\":3").into_bytes(), "schema version 3"),
            (text.as_bytes()[..text.len() / 2].to_vec(), "is truncated"),
            (text.as_bytes()[..text.len() - 1].to_vec(), "is truncated"),
            (without(lines.len() - 1).into_bytes(), "is truncated"),
            (without(2).into_bytes(), "checksum"),
            (text.replace("access_denied", "access_danced").into_bytes(), "checksum"),
            (format!("{text}{{}}\n").into_bytes(), "unexpected content after the last line"),
            (sealed(&count), "2 rows of `api_keys`, and its header states 3"),
            (sealed(&text.replace("access_denied", "access_danced")), "broken at record 7"),
            (
                sealed(&without(last_record - 1).replace("\"audit_log\":1106", "\"audit_log\":1105")),
                "broken at record 1105",
            ),
            (sealed(&text.replace("\"table\":\"users\"", "\"table\":\"usres\"")), "unknown table `usres`"),
            (sealed(&text.replace("\"password_hash\"", "\"password\"")), "no column `password`"),
            (sealed(&text.replace("\"tenant\":null,", "")), "`users.tenant` is missing"),
            (sealed(&text.replace("\"tenant\":null", "\"tenant\":7")), "value of another type"),
        ] {
            let store = place.open().await;
            let error = restore(&store, &bytes).await.unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
            assert_eq!(records_of(&store).await, 0, "{words}");
            assert!(store.users().await.unwrap().is_empty(), "{words}");
        }
        assert_eq!(restore(&place.open().await, text.as_bytes()).await.unwrap(), 1_114);
    });
}
