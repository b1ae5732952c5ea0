//! Tests sockets of `graphql-transport-ws` on a real server on the loopback interface: the handshake, the close codes
//! of the protocol, credentials that arrive late or expire early, and harmful clients.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value as Json, json};
use terrane_app::accounts::Actor;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{ApiKey, Credentials as _};
use terrane_app::security::api_key::NewKey;
use terrane_app::security::{Authenticator, Scopes};
use terrane_compiler::SecurityContext;
use terrane_conformance_tests::case::{Caller, World};
use terrane_conformance_tests::fakes::FakeBehavior;
use terrane_conformance_tests::security::Security;
use terrane_conformance_tests::socket::{PROBE, Server, receive, send, start, start_app};
use terrane_server::{GraphQlHttpSettings, ServeSettings};
use terrane_store::StateStore;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

/// The time limit of an answer, so that a test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(20);
const CUBES: &str = "{ cubes { name } }";
/// A query that runs a statement in the warehouse.
const ROWS: &str = "{ query(measures: [\"orders.count\"]) { data } }";

struct Client(WebSocketStream<TcpStream>);

/// Sends a handshake. Returns the head of the answer, and the stream after the head.
async fn handshake(address: SocketAddr, path: &str, headers: &[&str]) -> (String, TcpStream) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    );
    for header in headers {
        request += &format!("{header}\r\n");
    }
    stream.write_all((request + "\r\n").as_bytes()).await.unwrap();
    let mut head = Vec::new();
    // The head is read byte by byte, so that no frame after it is lost.
    while !head.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(PATIENCE, stream.read_u8()).await.unwrap();
        head.push(byte.unwrap());
    }
    (String::from_utf8(head).unwrap(), stream)
}

const SUBPROTOCOL: &str = "sec-websocket-protocol: graphql-transport-ws";

impl Client {
    async fn open(address: SocketAddr, headers: &[&str]) -> Client {
        let headers: Vec<&str> = headers.iter().copied().chain([SUBPROTOCOL]).collect();
        let (head, stream) = handshake(address, "/graphql", &headers).await;
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        assert!(head.contains("sec-websocket-protocol: graphql-transport-ws"), "{head}");
        Client(WebSocketStream::from_raw_socket(stream, Role::Client, None).await)
    }

    /// Opens a socket and waits until the server has acknowledged the session.
    async fn acknowledged(address: SocketAddr, headers: &[&str], payload: Json) -> Client {
        let mut client = Client::open(address, headers).await;
        client.send(json!({"type": "connection_init", "payload": payload})).await;
        assert_eq!(client.next().await, json!({"type": "connection_ack"}));
        client
    }

    async fn send(&mut self, message: Json) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn subscribe(&mut self, id: &str, query: &str) {
        self.send(json!({"type": "subscribe", "id": id, "payload": {"query": query}})).await;
    }

    /// Returns the next message, or `{"close": code, "reason": …}`.
    async fn next(&mut self) -> Json {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("an answer in time");
            match message {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return json!({"close": u16::from(frame.code), "reason": frame.reason.as_str()});
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the close code of the next message, which must close the socket.
    async fn closed(&mut self) -> Json {
        let message = self.next().await;
        assert!(message["close"].is_u64(), "{message}");
        message["close"].clone()
    }
}

fn world(graphql: GraphQlHttpSettings) -> World {
    World { graphql, ..World::default() }
}

async fn server(graphql: GraphQlHttpSettings) -> Server {
    start(&world(graphql), ServeSettings::default()).await
}

/// A server with keys.
struct House {
    server: Server,
    store: Arc<StateStore>,
    authenticator: Arc<Authenticator>,
    _folder: tempfile::TempDir,
}

impl House {
    async fn with(graphql: GraphQlHttpSettings) -> House {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let world = World { caller: Caller::Stranger, warehouse: FakeBehavior::Hangs, ..world(graphql) };
        let edge = world.edge_with(Security::of(store.clone(), None));
        let authenticator = edge.app().services.authenticator.clone();
        let server = start_app(edge.app().clone(), ServeSettings::default()).await;
        House { server, store, authenticator, _folder: folder }
    }

    async fn key(&self, seed: u8, scopes: Scopes) -> (Arc<str>, String) {
        let new = NewKey::from_random(&[seed; 40]);
        let key = ApiKey {
            id: new.id.clone(),
            name: "of a test".into(),
            secret_hash: new.hash,
            scopes,
            caller: SecurityContext { user_id: "u1".into(), ..SecurityContext::default() },
            tenant: None,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            expires_at: None,
            revoked_at: None,
        };
        self.store.add_key(&key, AuditEntry::default()).await.unwrap();
        (new.id, new.text)
    }
}

#[tokio::test]
async fn operations_run_concurrently_and_complete() {
    let server = server(GraphQlHttpSettings::default()).await;
    let mut client = Client::acknowledged(server.address, &[], json!({})).await;
    client.subscribe("1", CUBES).await;
    let next = client.next().await;
    assert_eq!((&next["id"], &next["type"]), (&json!("1"), &json!("next")), "{next}");
    assert_eq!(next["payload"]["data"]["cubes"][0]["name"], "orders");
    assert_eq!(client.next().await, json!({"id": "1", "type": "complete"}));
    // An id may be reused after its operation has ended.
    client.subscribe("1", "{ nothing }").await;
    let error = client.next().await;
    assert_eq!((&error["id"], &error["type"]), (&json!("1"), &json!("error")), "{error}");
    assert_eq!(error["payload"][0]["extensions"]["code"], "GRAPHQL_VALIDATION_FAILED");
    client.subscribe("1", "{ cubes {").await;
    assert_eq!(client.next().await["payload"][0]["extensions"]["code"], "GRAPHQL_SYNTAX_ERROR");
    client.send(json!({"type": "ping", "payload": {"at": 1}})).await;
    assert_eq!(client.next().await, json!({"type": "pong", "payload": {"at": 1}}));
    client.subscribe("2", CUBES).await;
    assert_eq!(client.next().await["id"], "2");
}

#[tokio::test]
async fn rules_of_the_protocol_close_the_socket_with_their_codes() {
    let server = server(GraphQlHttpSettings::default()).await;
    let init = || json!({"type": "connection_init"});
    let subscribe = || json!({"type": "subscribe", "id": "1", "payload": {"query": ROWS}});
    for (messages, code) in [
        (vec![subscribe()], 4401),
        (vec![init(), init()], 4429),
        (vec![init(), json!({"type": "start", "id": "1"})], 4400),
        (vec![init(), json!([])], 4400),
        (vec![init(), json!({"type": "subscribe", "id": "1"})], 4400),
    ] {
        let mut client = Client::open(server.address, &[]).await;
        for message in &messages {
            client.send(message.clone()).await;
        }
        let mut last = client.next().await;
        if last["type"] == "connection_ack" {
            last = client.next().await;
        }
        assert_eq!(last["close"], code, "{messages:?}: {last}");
    }
    let mut client = Client::acknowledged(server.address, &[], json!({})).await;
    client.0.send(Message::binary(vec![1, 2])).await.unwrap();
    assert_eq!(client.closed().await, 4400);
}

#[tokio::test]
async fn duplicate_id_closes_the_socket() {
    let world = World { warehouse: FakeBehavior::Hangs, ..World::default() };
    let server = start(&world, ServeSettings::default()).await;
    let mut client = Client::acknowledged(server.address, &[], json!({})).await;
    client.subscribe("1", ROWS).await;
    client.subscribe("1", ROWS).await;
    let close = client.next().await;
    assert_eq!(close, json!({"close": 4409, "reason": "Subscriber for 1 already exists"}));
}

#[tokio::test]
async fn operations_of_a_socket_are_limited() {
    let graphql = GraphQlHttpSettings { max_operations_per_socket: 2, ..GraphQlHttpSettings::default() };
    let world = World { warehouse: FakeBehavior::Hangs, ..world(graphql) };
    let server = start(&world, ServeSettings::default()).await;
    let mut client = Client::acknowledged(server.address, &[], json!({})).await;
    for id in ["1", "2", "3"] {
        client.subscribe(id, ROWS).await;
    }
    let refused = client.next().await;
    assert_eq!((&refused["type"], &refused["id"]), (&json!("error"), &json!("3")), "{refused}");
    assert_eq!(refused["payload"][0]["extensions"]["code"], "RATE_LIMITED");
    client.send(json!({"type": "complete", "id": "1"})).await;
    client.subscribe("4", CUBES).await;
    assert_eq!(client.next().await["id"], "4");
}

#[tokio::test]
async fn socket_without_the_subprotocol_is_closed() {
    let server = server(GraphQlHttpSettings::default()).await;
    for protocols in [None, Some("sec-websocket-protocol: graphql-ws"), Some("sec-websocket-protocol: soap")] {
        let headers: Vec<&str> = protocols.into_iter().collect();
        let (head, stream) = handshake(server.address, "/graphql", &headers).await;
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        let mut client = Client(WebSocketStream::from_raw_socket(stream, Role::Client, None).await);
        assert_eq!(client.closed().await, 4406);
    }
}

#[tokio::test]
async fn socket_that_is_not_opened_in_time_is_closed() {
    let graphql = GraphQlHttpSettings { init_timeout: Duration::from_millis(50), ..GraphQlHttpSettings::default() };
    let server = server(graphql).await;
    let mut silent = Client::open(server.address, &[]).await;
    assert_eq!(silent.closed().await, 4408);
    // A ping does not replace the first message, which opens the session.
    let mut pinging = Client::open(server.address, &[]).await;
    pinging.send(json!({"type": "ping"})).await;
    assert_eq!(pinging.next().await["type"], "pong");
    assert_eq!(pinging.closed().await, 4408);
}

#[tokio::test]
async fn client_that_answers_no_pings_loses_its_socket() {
    let graphql = GraphQlHttpSettings { ping_interval: Duration::from_millis(50), ..GraphQlHttpSettings::default() };
    let server = server(graphql).await;
    // This client reads nothing, so it answers no pings.
    let client = Client::acknowledged(server.address, &[], json!({})).await;
    let mut stream = client.0.into_inner();
    let mut bytes = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
    // The last bytes are the close frame with the code 1001 and this reason.
    assert!(String::from_utf8_lossy(&bytes).ends_with("no response to pings"), "{bytes:?}");
    // A client that reads answers the pings, and its socket stays open.
    let mut reading = Client::acknowledged(server.address, &[], json!({})).await;
    let quiet = tokio::time::timeout(Duration::from_millis(400), reading.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    reading.subscribe("1", CUBES).await;
    assert_eq!(reading.next().await["id"], "1");
}

#[tokio::test]
async fn message_that_is_too_large_closes_the_socket() {
    let server = server(GraphQlHttpSettings::default()).await;
    let mut client = Client::acknowledged(server.address, &[], json!({})).await;
    let large = json!({"type": "ping", "payload": {"x": "x".repeat(300_000)}});
    // The server may close the socket before the client has sent everything.
    let _ = client.0.send(Message::text(large.to_string())).await;
    assert_eq!(client.closed().await, 1009);
}

#[tokio::test]
async fn long_message_before_the_session_is_refused_by_its_header() {
    let server = server(GraphQlHttpSettings::default()).await;
    let mut client = Client::open(server.address, &[]).await;
    // The header announces a masked text frame of 20,000 bytes. None of the bytes follows.
    client.0.get_mut().write_all(&[0x81, 0x80 | 126, 0x4e, 0x20, 0, 0, 0, 0]).await.unwrap();
    assert_eq!(client.closed().await, 1009);
    // After a session is opened, the limit of messages is the limit of request bodies.
    let mut client = Client::acknowledged(server.address, &[], json!({})).await;
    client.send(json!({"type": "ping", "payload": {"x": "x".repeat(20_000)}})).await;
    assert_eq!(client.next().await["type"], "pong");
}

#[tokio::test]
async fn pages_of_other_sites_may_not_open_sockets() {
    let server = server(GraphQlHttpSettings::default()).await;
    let origin = |origin: &str| format!("origin: {origin}");
    for foreign in ["http://evil.example", "null", "http://127.0.0.1:1", "file://"] {
        let (head, _) = handshake(server.address, "/graphql", &[&origin(foreign), SUBPROTOCOL]).await;
        assert!(head.starts_with("HTTP/1.1 403"), "{foreign}: {head}");
    }
    let own = origin(&format!("http://{}", server.address));
    Client::acknowledged(server.address, &[&own], json!({})).await;

    let listed = World { cors: vec!["https://bi.example.org".to_owned()], ..World::default() };
    let server = start(&listed, ServeSettings::default()).await;
    Client::acknowledged(server.address, &["origin: https://bi.example.org"], json!({})).await;
}

#[tokio::test]
async fn invalid_websocket_handshake_is_a_bad_request() {
    let server = server(GraphQlHttpSettings::default()).await;
    for head in [
        "GET /graphql HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n\r\n",
        "GET /graphql HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        "GET /graphql HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 8\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        "GET /graphql HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: short\r\n\r\n",
    ] {
        let mut stream = send(server.address, head.as_bytes()).await;
        let answer = receive(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("INVALID_QUERY"), "{answer}");
    }
    let (head, _) = handshake(server.address, "/graphql?surplus=1", &[SUBPROTOCOL]).await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
}

#[tokio::test]
async fn credentials_come_with_the_handshake_or_with_the_first_message() {
    let house = House::with(GraphQlHttpSettings::default()).await;
    let (_, key) = house.key(1, Scopes::READ).await;
    let (_, powerless) = house.key(2, Scopes::default()).await;
    let address = house.server.address;
    let bearer = format!("authorization: Bearer {key}");

    Client::acknowledged(address, &[&bearer], json!({})).await;
    for payload in [
        json!({"authorization": format!("Bearer {key}")}),
        json!({"Authorization": format!("Bearer {key}")}),
        json!({"api_key": key}),
        json!({"headers": {"authorization": format!("Bearer {key}")}}),
    ] {
        let mut client = Client::acknowledged(address, &[], payload).await;
        client.subscribe("1", CUBES).await;
        assert_eq!(client.next().await["type"], "next");
    }
    let (head, _) = handshake(address, &format!("/graphql?api_key={key}"), &[SUBPROTOCOL]).await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");

    for (headers, payload) in [
        (vec![], json!({})),
        (vec![], json!({"authorization": "Bearer nonsense"})),
        (vec![], json!({"authorization": key})),
        (vec![], json!({"authorization": format!("Bearer {powerless}")})),
        (vec![bearer.as_str()], json!({"authorization": format!("Bearer {key}")})),
    ] {
        let mut client = Client::open(address, &headers).await;
        client.send(json!({"type": "connection_init", "payload": payload})).await;
        assert_eq!(client.closed().await, 4403, "{payload}");
    }
    for (bearer, status) in [("nonsense".to_owned(), "401"), (powerless, "403")] {
        let bearer = format!("authorization: Bearer {bearer}");
        let (head, _) = handshake(address, "/graphql", &[&bearer, SUBPROTOCOL]).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
    }
}

#[tokio::test]
async fn revoked_key_ends_its_socket() {
    let graphql = GraphQlHttpSettings { recheck_interval: Duration::from_millis(50), ..GraphQlHttpSettings::default() };
    let house = House::with(graphql).await;
    let (id, key) = house.key(1, Scopes::READ).await;
    let mut client = Client::acknowledged(house.server.address, &[], json!({"api_key": key})).await;
    client.subscribe("1", &format!("subscription {}", ROWS.replace("query", "queryResult"))).await;
    client.subscribe("2", CUBES).await;
    assert_eq!(client.next().await["id"], "2");
    client.next().await;
    house.authenticator.accounts().revoke_key(&Actor::default(), &id).await.unwrap();
    let error = client.next().await;
    assert_eq!((&error["type"], &error["id"]), (&json!("error"), &json!("1")), "{error}");
    assert_eq!(error["payload"][0]["extensions"]["code"], "UNAUTHORIZED");
    assert_eq!(client.closed().await, 4403);
}

#[tokio::test]
async fn shutdown_completes_operations_and_waits_for_no_socket() {
    let world = World { warehouse: FakeBehavior::Hangs, ..World::default() };
    let server = start(&world, ServeSettings::default()).await;
    let mut client = Client::acknowledged(server.address, &[], json!({})).await;
    let mut idle = Client::acknowledged(server.address, &[], json!({})).await;
    client.subscribe("1", ROWS).await;
    client.send(json!({"type": "ping"})).await;
    assert_eq!(client.next().await["type"], "pong");
    server.stop.send(()).unwrap();
    assert_eq!(client.next().await, json!({"id": "1", "type": "complete"}));
    assert_eq!(client.closed().await, 1001);
    assert_eq!(idle.closed().await, 1001);
    drop((client, idle));
    assert!(tokio::time::timeout(PATIENCE, server.task).await.unwrap().unwrap(), "the server cut something off");
}

#[tokio::test]
async fn sockets_of_an_address_are_limited_until_they_are_open() {
    let graphql = GraphQlHttpSettings { max_opening_sockets_per_address: 2, ..GraphQlHttpSettings::default() };
    let server = server(graphql).await;
    let mut opened = Vec::new();
    for _ in 0..5 {
        opened.push(Client::acknowledged(server.address, &[], json!({})).await);
    }
    let _silent = [Client::open(server.address, &[]).await, Client::open(server.address, &[]).await];
    let (head, _) = handshake(server.address, "/graphql", &[SUBPROTOCOL]).await;
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
}

#[tokio::test]
async fn sockets_of_a_caller_are_limited() {
    let graphql = GraphQlHttpSettings { max_sockets_per_caller: 2, ..GraphQlHttpSettings::default() };
    let house = House::with(graphql).await;
    let (address, (_, key), (_, other)) =
        (house.server.address, house.key(1, Scopes::READ).await, house.key(2, Scopes::READ).await);
    let bearer = format!("authorization: Bearer {key}");
    let _first = Client::acknowledged(address, &[&bearer], json!({})).await;
    let _second = Client::acknowledged(address, &[], json!({"api_key": key})).await;
    // The limit applies to a credential in the handshake and in the first message.
    let (head, _) = handshake(address, "/graphql", &[&bearer, SUBPROTOCOL]).await;
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    let mut late = Client::open(address, &[]).await;
    late.send(json!({"type": "connection_init", "payload": {"api_key": key}})).await;
    assert_eq!(late.closed().await, 1013);
    Client::acknowledged(address, &[], json!({"api_key": other})).await;
}

#[tokio::test]
async fn idle_sockets_are_limited_and_others_are_served() {
    let graphql = GraphQlHttpSettings { max_sockets: 200, ..GraphQlHttpSettings::default() };
    let server = server(graphql).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(Client::acknowledged(server.address, &[], json!({})).await);
    }
    let (head, _) = handshake(server.address, "/graphql", &[SUBPROTOCOL]).await;
    assert!(head.starts_with("HTTP/1.1 503") && head.contains("retry-after"), "{head}");
    let mut probe = send(server.address, PROBE).await;
    assert!(receive(&mut probe).await.starts_with("HTTP/1.1 200"));
    idle.pop();
    // The place is free once the server has seen the end of the other socket.
    for _ in 0..1_000 {
        let (head, _) = handshake(server.address, "/graphql", &[SUBPROTOCOL]).await;
        if head.starts_with("HTTP/1.1 101") {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the place was never free again");
}
