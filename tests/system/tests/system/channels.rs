//! Tests channels of alerts with real receivers: HTTP servers that answer by a script, and an SMTP server. Messages
//! must have the published formats, keep their order through failures and `kill -9`, and never go to forbidden
//! addresses.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]
#![allow(
    clippy::disallowed_methods,
    reason = "a receiver has a clock of its own, and a longer run is asked for by hand"
)]

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use terrane_system_tests::{Program, Scratch, Server, path, request_as};

use crate::BINARY;
use crate::clients::tool;
use crate::monitors::{BAD_DAY, CUBE, MONITORS, POLICIES, definition, key, rows};
use crate::received::{Received, read_request};

const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";
/// The number of checks for a message. The worker looks for messages every two seconds, and sends at most one message
/// per second to a channel.
const PATIENCE: u32 = 400;

/// A receiver of HTTP requests, which answers by a script.
struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    /// The statuses and further headers of the next answers. After the last one, every answer has the status 200.
    script: Arc<Mutex<VecDeque<(u16, &'static str)>>>,
}

impl Receiver {
    fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (received, script) = (Arc::<Mutex<Vec<Received>>>::default(), Arc::<Mutex<VecDeque<_>>>::default());
        let (requests, answers) = (Arc::clone(&received), Arc::clone(&script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let Some(request) = read_request(&mut BufReader::new(&stream)) else { continue };
                requests.lock().unwrap().push(request);
                let (status, headers) = answers.lock().unwrap().pop_front().unwrap_or((200, ""));
                let _ = write!(stream, "HTTP/1.1 {status} X\r\n{headers}Content-Length: 2\r\n\r\nok");
            }
        });
        Receiver { address, received, script }
    }

    fn answers(&self, answers: &[(u16, &'static str)]) {
        self.script.lock().unwrap().extend(answers);
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until `count` requests have arrived, and returns them.
    fn wait(&self, count: usize) -> Vec<Received> {
        for _ in 0..PATIENCE {
            let received = self.received();
            if received.len() >= count {
                return received;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("{count} requests were expected: {:?}", self.received());
    }
}

/// A project whose server sends messages to receivers.
struct Shop {
    project: Scratch,
    server: Option<Server>,
    keys: BTreeMap<&'static str, String>,
}

impl Shop {
    fn new(receiver: &Receiver, smtp: Option<u16>) -> Shop {
        let base = format!("http://{}", receiver.address);
        let secret = format!("whsec_{}", STANDARD.encode(SECRET));
        let email = smtp.map_or(String::new(), |port| {
            format!("    - {{type: email, host: 127.0.0.1, port: {port}, encryption: none, from: 'Alerts <alerts@example.com>'}}\n")
        });
        let settings = format!(
            "name: shop\nwarehouse: {{type: duckdb}}\ncache: {{enabled: false}}\n\
             security: {{outgoing: {{allow: [127.0.0.1]}}}}\n\
             anomaly:\n  public_url: https://terrane.example\n  channels:\n\
             \x20   - {{type: webhook, name: ops, url: '{base}/webhook', secret: {secret}, cleared: true}}\n\
             \x20   - {{type: slack, name: data-alerts, url: '{base}/slack'}}\n\
             \x20   - {{type: pagerduty, name: oncall, routing_key: R0, url: '{base}/pagerduty'}}\n\
             \x20   - {{type: sms, url: '{base}/sms', token: T0, from: Terrane}}\n{email}"
        );
        let project = Scratch::empty().with("service_project.yml", &settings).with("cubes/orders.yml", CUBE);
        let project = project.with("policies/orders.yml", POLICIES).with("orders.csv", rows().as_str());
        let callers = [("boss", "boss", "-"), ("eu", "seller", "EU"), ("eu2", "seller", "EU")];
        let keys = callers.into_iter().map(|(name, role, region)| (name, key(&project, name, role, region))).collect();
        let mut shop = Shop { project, server: None, keys };
        shop.start();
        shop
    }

    fn start(&mut self) {
        let serve = Program::new(BINARY, &["serve"], self.project.path()).arguments(&["--port", "0"]);
        self.server = Some(serve.serve().unwrap());
    }

    /// Creates a key with `admin`.
    fn admin(&self) -> String {
        let arguments = ["--name", "root", "--scopes", "read,write,admin", "--json"];
        let made =
            Program::new(BINARY, &["auth", "create-key"], self.project.path()).arguments(&arguments).run().unwrap();
        let made: Value = serde_json::from_str(&made.stdout).unwrap_or_else(|_| panic!("{}", made.stderr));
        made["key"].as_str().unwrap().to_owned()
    }

    fn kill(&mut self) {
        self.server.take().unwrap().kill().unwrap();
    }

    fn ask(&self, caller: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(Value::to_string);
        let key = Some(self.keys[caller].as_str());
        let address = self.server.as_ref().unwrap().address;
        let answer = request_as(address, key, method, path, body.as_deref()).unwrap();
        (answer.status, answer.json().unwrap_or_default())
    }

    /// Creates a monitor with channels, and evaluates March. Returns the monitor's id.
    fn monitor(&self, caller: &str, alerts: &Value) -> String {
        let mut monitor = definition();
        monitor["alert_config"] = alerts.clone();
        let (status, made) = self.ask(caller, "POST", MONITORS, Some(&monitor));
        assert_eq!(status, 201, "{made}");
        let id = made["id"].as_str().unwrap().to_owned();
        self.run(caller, &id);
        id
    }

    fn run(&self, caller: &str, id: &str) {
        let range = json!({"from": "2024-03-01", "to": "2024-03-20"});
        let (status, run) = self.ask(caller, "POST", &format!("{MONITORS}/{id}/run"), Some(&range));
        assert_eq!((status, &run["outcome"]), (200, &json!("scored")), "{run}");
    }

    /// Moves the newest alert by a step, such as `resolve`.
    fn move_alert(&self, step: &str) -> String {
        let (_, alerts) = self.ask("boss", "GET", "/api/v1/anomaly/alerts", None);
        let id = alerts["alerts"][0]["id"].as_str().unwrap().to_owned();
        let (status, alert) = self.ask("boss", "POST", &format!("/api/v1/anomaly/alerts/{id}/{step}"), None);
        assert_eq!(status, 200, "{alert}");
        id
    }

    fn deliveries(&self, filter: &str) -> Vec<Value> {
        let (status, list) = self.ask("boss", "GET", &format!("/api/v1/anomaly/deliveries{filter}"), None);
        assert_eq!(status, 200, "{list}");
        list["deliveries"].as_array().unwrap().clone()
    }

    /// Waits until `count` deliveries have a status, and returns them.
    fn wait(&self, status: &str, count: usize) -> Vec<Value> {
        for _ in 0..PATIENCE {
            let found = self.deliveries(&format!("?status={status}"));
            if found.len() >= count {
                return found;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("{count} {status} deliveries were expected: {:?}", self.deliveries(""));
    }
}

fn by_path<'a>(received: &'a [Received], path: &str) -> Vec<&'a Received> {
    received.iter().filter(|request| request.path == path).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Checks that a message has the format of Standard Webhooks.
fn assert_webhook(request: &Received, kind: &str, is_signed: bool) {
    let headers = &request.headers;
    let timestamp: i64 = headers["webhook-timestamp"].parse().unwrap();
    assert!((jiff::Timestamp::now().as_second() - timestamp).abs() < 300);
    assert_eq!(headers.contains_key("webhook-signature"), is_signed);
    if is_signed {
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap();
        mac.update(format!("{}.{timestamp}.{}", headers["webhook-id"], request.text).as_bytes());
        assert_eq!(headers["webhook-signature"], format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())));
    }
    assert_eq!(keys(&request.body), ["data", "timestamp", "type"]);
    assert_eq!(request.body["type"], format!("alert.{kind}"));
    let alert = &request.body["data"]["alerts"][0];
    assert_eq!(alert["first_step"], BAD_DAY);
    // Only the configured channel may receive values. A URL that a caller chose must not receive values.
    assert_eq!(alert.get("value").is_some(), is_signed, "{alert}");
}

/// Checks that a message respects the limits of Slack's blocks.
fn assert_slack(request: &Received) {
    assert_eq!(keys(&request.body), ["blocks", "text"]);
    let blocks = request.body["blocks"].as_array().unwrap();
    assert!(blocks.len() <= 50);
    assert_eq!((&blocks[0]["type"], &blocks[0]["text"]["type"]), (&json!("header"), &json!("plain_text")));
    assert!(blocks[0]["text"]["text"].as_str().unwrap().chars().count() <= 150);
    for section in &blocks[1..] {
        assert_eq!((&section["type"], &section["text"]["type"]), (&json!("section"), &json!("mrkdwn")));
        assert!(section["text"]["text"].as_str().unwrap().chars().count() <= 3_000);
    }
}

/// Checks that an event has the format of PagerDuty's Events API, version 2.
fn assert_pagerduty(request: &Received, action: &str, alert: &str) {
    let known = ["client", "client_url", "dedup_key", "event_action", "images", "links", "payload", "routing_key"];
    assert!(keys(&request.body).iter().all(|key| known.contains(key)), "{}", request.text);
    assert_eq!((&request.body["routing_key"], &request.body["event_action"]), (&json!("R0"), &json!(action)));
    assert_eq!(request.body["dedup_key"], alert);
    let payload = &request.body["payload"];
    for field in ["summary", "source", "severity"] {
        assert!(payload[field].is_string(), "{field}: {payload}");
    }
    assert!(["critical", "error", "warning", "info"].contains(&payload["severity"].as_str().unwrap()));
    assert!(payload["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    let known = ["class", "component", "custom_details", "group", "severity", "source", "summary", "timestamp"];
    assert!(keys(payload).iter().all(|key| known.contains(key)), "{payload}");
}

#[test]
fn messages_reach_channels_in_their_published_formats() {
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, None);
    let own = format!("http://{}/own", receiver.address);
    let channels = json!([
        {"type": "webhook", "target": "ops"}, {"type": "webhook", "target": own}, {"type": "slack", "target": "#data-alerts"},
        {"type": "pagerduty", "target": "oncall"}, {"type": "sms", "target": "+4930123456"}, {"type": "in_app"},
    ]);
    shop.monitor("boss", &json!({"channels": channels}));
    let triggered = receiver.wait(5);
    let acknowledged = shop.move_alert("acknowledge");
    receiver.wait(6);
    let alert = shop.move_alert("resolve");
    let received = receiver.wait(11);
    assert_eq!((triggered.len(), received.len(), &acknowledged), (5, 11, &alert), "{received:?}");

    for (number, kind) in [(0, "triggered"), (1, "resolved")] {
        assert_webhook(by_path(&received, "/webhook")[number], kind, true);
        assert_webhook(by_path(&received, "/own")[number], kind, false);
        assert_slack(by_path(&received, "/slack")[number]);
    }
    for (number, action) in ["trigger", "acknowledge", "resolve"].into_iter().enumerate() {
        assert_pagerduty(by_path(&received, "/pagerduty")[number], action, &alert);
    }
    let sms = by_path(&received, "/sms")[0];
    assert_eq!(sms.headers["authorization"], "Bearer T0");
    assert_eq!((&sms.body["to"], &sms.body["from"]), (&json!("+4930123456"), &json!("Terrane")));
    assert!(
        sms.body["text"].as_str().unwrap().contains(&format!("https://terrane.example/api/v1/anomaly/alerts/{alert}"))
    );

    let delivered = shop.wait("delivered", 11);
    assert_eq!(delivered.len(), 11);
    assert!(shop.deliveries("?status=waiting").is_empty() && shop.deliveries("?status=failed").is_empty());
    let ids = |request: &&Received| request.headers["webhook-id"].clone();
    assert!(delivered.iter().any(|delivery| delivery["id"] == ids(&by_path(&received, "/webhook")[0])));
    // A repeated round sends no message.
    let id = delivered[0]["monitor_id"].as_str().unwrap();
    shop.run("boss", id);
    thread::sleep(Duration::from_secs(3));
    assert_eq!(receiver.received().len(), 11);
}

#[test]
fn links_of_messages_acknowledge_by_a_form_and_never_by_a_get() {
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, None);
    shop.monitor("boss", &json!({"channels": [{"type": "webhook", "target": "ops"}]}));
    let received = receiver.wait(1);
    let alert = &received[0].body["data"]["alerts"][0];
    let link = alert["acknowledge_link"].as_str().unwrap().strip_prefix("https://terrane.example").unwrap();
    // The reader of a message has no credential.
    let address = shop.server.as_ref().unwrap().address;
    let open = |method: &str, link: &str| request_as(address, None, method, link, None).unwrap();
    let state =
        || shop.ask("boss", "GET", &format!("/api/v1/anomaly/alerts/{}", alert["id"].as_str().unwrap()), None).1;
    for _ in 0..2 {
        let page = open("GET", link);
        assert_eq!(page.status, 200);
        assert!(page.body.contains("<form method=\"post\">") && page.body.contains("is triggered"), "{}", page.body);
        assert_eq!(state()["status"], "TRIGGERED", "a GET changes nothing");
    }
    assert_eq!(open("POST", &format!("{link}x")).status, 404);
    assert_eq!(state()["status"], "TRIGGERED");
    let page = open("POST", link);
    assert!(
        page.status == 200 && page.body.contains("is acknowledged") && !page.body.contains("<form"),
        "{}",
        page.body
    );
    let acknowledged = state();
    assert_eq!((&acknowledged["status"], &acknowledged["acknowledged_by"]), (&json!("ACKNOWLEDGED"), &json!("link")));
    assert_eq!(open("POST", link).status, 200, "a repeated step changes nothing");
    assert_eq!(state()["version"], acknowledged["version"]);
    // The record names the owner to whom the link was issued. A wrong token is a denial.
    let audit = |event: &str| {
        let arguments = ["--event", event, "--json"];
        let listed = Program::new(BINARY, &["audit", "list"], shop.project.path()).arguments(&arguments).run().unwrap();
        listed.stdout
    };
    let moved = audit("alert_moved");
    assert!(moved.contains("\"via\":\"link\"") && !moved.contains("\"actor\":\"\""), "{moved}");
    // Its record is written with the next batch, because the caller has no name.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !audit("access_denied").contains("wrong link") {
        assert!(Instant::now() < deadline, "the denial is not recorded: {}", audit("access_denied"));
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the path of the link in the first message.
fn first_link(receiver: &Receiver) -> String {
    let received = receiver.wait(1);
    let link = received[0].body["data"]["alerts"][0]["acknowledge_link"].as_str().unwrap();
    link.strip_prefix("https://terrane.example").unwrap().to_owned()
}

#[test]
fn many_clicks_on_a_link_at_once_show_the_page() {
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, None);
    shop.monitor("boss", &json!({"channels": [{"type": "webhook", "target": "ops"}]}));
    let link = first_link(&receiver);
    let address = shop.server.as_ref().unwrap().address;
    let clicks: Vec<_> = (0..20)
        .map(|_| {
            let link = link.clone();
            thread::spawn(move || request_as(address, None, "POST", &link, None).unwrap())
        })
        .collect();
    for click in clicks {
        let page = click.join().unwrap();
        assert!(page.status == 200 && page.body.contains("is acknowledged"), "{}: {}", page.status, page.body);
    }
}

#[test]
fn links_expire_with_the_rights_of_their_owner() {
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, None);
    let channels = json!({"channels": [{"type": "webhook", "target": "ops"}]});
    let id = shop.monitor("eu", &channels);
    let link = first_link(&receiver);
    let address = shop.server.as_ref().unwrap().address;
    let open = |method: &str| request_as(address, None, method, &link, None).unwrap();
    assert_eq!(open("GET").status, 200);
    // Another caller replaces the monitor.
    let mut replaced = definition();
    replaced["name"] = json!("SECRET takeover");
    let admin = shop.admin();
    let path = format!("{MONITORS}/{id}");
    let answer = request_as(address, Some(&admin), "PUT", &path, Some(&replaced.to_string())).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    for method in ["GET", "POST"] {
        let page = open(method);
        assert!(page.status == 404 && !page.body.contains("SECRET"), "{method}: {}", page.body);
    }
    // The owner's key is revoked.
    shop.monitor("eu2", &channels);
    let of_eu2 = |request: &Received| request.body["data"]["alerts"][0]["acknowledge_link"].as_str().map(str::to_owned);
    let links: Vec<String> = receiver.wait(2).iter().filter_map(of_eu2).collect();
    let link = links.last().unwrap().strip_prefix("https://terrane.example").unwrap();
    assert_eq!(request_as(address, None, "GET", link, None).unwrap().status, 200);
    let key = shop.keys["eu2"].split('_').nth(1).unwrap().to_owned();
    let answer = request_as(address, Some(&admin), "DELETE", &format!("/api/v1/auth/keys/{key}"), None).unwrap();
    assert!(answer.status < 300, "{}", answer.body);
    for method in ["GET", "POST"] {
        assert_eq!(request_as(address, None, method, link, None).unwrap().status, 404, "{method}");
    }
}

#[test]
fn failures_of_chosen_urls_have_one_message() {
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, None);
    receiver.answers(&[(405, "")]);
    let mut messages = Vec::new();
    for target in [format!("http://{}/x", receiver.address), "http://127.0.0.1:1/x".to_owned()] {
        let test = json!({"type": "webhook", "target": target});
        let (status, body) = shop.ask("boss", "POST", "/api/v1/anomaly/channels/test", Some(&test));
        assert_eq!((status, &body["delivered"]), (200, &json!(false)), "{body}");
        messages.push(body["message"].clone());
    }
    assert_eq!(messages[0], messages[1]);
    assert!(messages[0].as_str().unwrap().contains("did not accept"), "{messages:?}");
}

#[test]
fn failed_messages_are_sent_again_in_their_order() {
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, None);
    receiver.answers(&[(503, "Retry-After: 1\r\n")]);
    shop.monitor("boss", &json!({"channels": [{"type": "webhook", "target": "ops"}]}));
    receiver.wait(1);
    let (_, channels) = shop.ask("boss", "GET", "/api/v1/anomaly/channels", None);
    shop.move_alert("resolve");
    let received = receiver.wait(3);
    let kinds: Vec<&str> = received.iter().map(|request| request.body["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["alert.triggered", "alert.triggered", "alert.resolved"]);
    assert_eq!(received[0].headers["webhook-id"], received[1].headers["webhook-id"]);
    assert_eq!(received[0].text, received[1].text, "all attempts send the same text");
    let delivered = shop.wait("delivered", 2);
    assert_eq!((&delivered[1]["attempts"], &delivered[0]["attempts"]), (&json!(2), &json!(1)), "{delivered:?}");
    assert_eq!(channels["channels"].as_array().unwrap().len(), 4, "{channels}");
}

#[test]
fn receivers_that_are_gone_disable_their_channel_until_a_message_is_sent_again() {
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, None);
    receiver.answers(&[(410, "")]);
    let id = shop.monitor("boss", &json!({"channels": [{"type": "webhook", "target": "ops"}]}));
    let failed = shop.wait("failed", 1);
    assert!(failed[0]["last_error"].as_str().unwrap().contains("status 410"), "{failed:?}");
    let (_, channels) = shop.ask("boss", "GET", "/api/v1/anomaly/channels", None);
    assert!(channels["channels"][0]["disabled"].as_str().unwrap().contains("410"), "{channels}");
    // A disabled channel receives no message.
    shop.move_alert("resolve");
    assert!(shop.wait("failed", 2)[0]["last_error"].as_str().unwrap().contains("disabled"));
    assert_eq!(receiver.received().len(), 1);

    let replay =
        |id: &str, caller: &str| shop.ask(caller, "POST", &format!("/api/v1/anomaly/deliveries/{id}/replay"), None);
    let first = failed[0]["id"].as_str().unwrap();
    assert_eq!(replay(first, "eu").0, 404);
    assert_eq!(replay("unknown", "boss").0, 404);
    let (status, again) = replay(first, "boss");
    assert_eq!((status, &again["status"]), (200, &json!("waiting")), "{again}");
    assert_eq!(replay(first, "boss").0, 409);
    let received = receiver.wait(2);
    assert_eq!(received[0].headers["webhook-id"], received[1].headers["webhook-id"]);
    let (_, channels) = shop.ask("boss", "GET", "/api/v1/anomaly/channels", None);
    assert_eq!(channels["channels"][0]["disabled"], Value::Null, "{channels}");
    // Only callers who may change a monitor see its deliveries.
    assert_eq!(shop.ask("eu", "GET", "/api/v1/anomaly/deliveries", None).1, json!({"deliveries": []}));
    assert_eq!(shop.ask("eu", "GET", &format!("/api/v1/anomaly/deliveries?monitor_id={id}"), None).0, 404);
}

#[test]
fn targets_are_shown_to_the_owner_only() {
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, None);
    let own = format!("http://{}/hook?token=hush", receiver.address);
    let alerts = json!({
        "channels": [{"type": "webhook", "target": own}],
        "escalation_rules": [{"after_minutes": 5, "notify": {"type": "slack", "target": "data-alerts"}}],
        "grouping_window_minutes": 10,
    });
    let id = shop.monitor("eu", &alerts);
    let (_, mine) = shop.ask("eu", "GET", &format!("{MONITORS}/{id}"), None);
    assert_eq!(mine["alert_config"]["channels"][0]["target"], own, "{mine}");
    assert_eq!(mine["alert_config"]["escalation_rules"][0]["notify"][0]["target"], "data-alerts");
    for path in [format!("{MONITORS}/{id}"), MONITORS.to_owned()] {
        let (status, seen) = shop.ask("eu2", "GET", &path, None);
        let text = seen.to_string();
        assert!(status == 200 && text.contains(&id) && !text.contains("hush"), "{text}");
    }
}

#[test]
fn channels_that_cannot_be_used_are_refused_with_their_field() {
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, None);
    let refused = |alerts: Value| {
        let mut monitor = definition();
        monitor["alert_config"] = alerts;
        let (status, body) = shop.ask("boss", "POST", MONITORS, Some(&monitor));
        assert_eq!((status, &body["error"]["code"]), (400, &json!("INVALID_QUERY")), "{body}");
        body["error"]["details"]["field"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
    };
    let channel = |kind: &str, target: &str| json!({"channels": [{"type": kind, "target": target}]});
    for (kind, target) in [
        ("webhook", "http://hooks.example/x"),
        ("webhook", "https://10.0.0.1/"),
        ("webhook", "https://169.254.169.254/latest/meta-data"),
        ("webhook", "https://[::ffff:10.0.0.1]/"),
        ("webhook", "https://2130706434/"),
        ("webhook", "https://user:password@hooks.example/"),
        ("webhook", "file:///etc/passwd"),
        ("webhook", "unknown"),
        ("slack", "unknown"),
        ("pagerduty", "unknown"),
        ("email", "ops@example.com"),
        ("sms", "030"),
    ] {
        assert_eq!(refused(channel(kind, target)), "alert_config.channels[0].target", "{kind} {target}");
        let test = json!({"type": kind, "target": target});
        let (status, body) = shop.ask("boss", "POST", "/api/v1/anomaly/channels/test", Some(&test));
        assert_eq!((status, &body["error"]["details"]["field"]), (400, &json!("target")), "{kind} {target}: {body}");
    }
    assert_eq!(refused(json!({"channels": [{"type": "fax", "target": "1"}]})), "alert_config.channels[0].type");
    assert_eq!(refused(json!({"channels": [{"type": "slack"}]})), "alert_config.channels[0]");
    assert_eq!(refused(json!({"grouping_window_minutes": 5000})), "alert_config.grouping_window_minutes");
    let rule = json!({"escalation_rules": [{"after_minutes": 5, "notify": "slack"}]});
    assert_eq!(refused(rule), "alert_config.escalation_rules[0].notify");
    assert!(receiver.received().is_empty());

    // A redirect is not followed, and the test of a channel is in the audit log.
    receiver.answers(&[(302, "Location: http://127.0.0.1:1/inside\r\n")]);
    let test = json!({"type": "webhook", "target": "ops"});
    let (status, body) = shop.ask("boss", "POST", "/api/v1/anomaly/channels/test", Some(&test));
    assert_eq!((status, &body["delivered"]), (200, &json!(false)), "{body}");
    assert!(body["message"].as_str().unwrap().contains("302"), "{body}");
    let (status, body) = shop.ask("boss", "POST", "/api/v1/anomaly/channels/test", Some(&test));
    assert_eq!((status, &body["error"]["code"]), (409, &json!("CONFLICT")), "one test a second: {body}");
    assert_eq!(receiver.received().len(), 1);
}

/// The number of kills. `TERRANE_TEST_KILLS` sets another number.
const KILLS: usize = 2;

#[test]
fn killed_server_loses_no_message() {
    let kills = std::env::var("TERRANE_TEST_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(KILLS);
    let receiver = Receiver::start();
    let mut shop = Shop::new(&receiver, None);
    let mut expected = Vec::new();
    for round in 0..kills {
        // Each kill is at a different moment between the first message, the second one, and the ends of both attempts.
        let before = receiver.received().len();
        shop.monitor("boss", &json!({"channels": [{"type": "webhook", "target": "ops"}]}));
        expected.push(shop.move_alert("resolve"));
        receiver.wait(before + 1);
        thread::sleep(Duration::from_millis((round as u64 * 397) % 1_500));
        shop.kill();
        shop.start();
    }
    shop.wait("delivered", 2 * kills);
    let received = receiver.received();
    for alert in &expected {
        let of_alert = received.iter().filter(|request| request.body["data"]["alerts"][0]["id"] == **alert);
        let mut kinds: Vec<&str> = of_alert.map(|request| request.body["type"].as_str().unwrap()).collect();
        // An attempt is repeated if the server was killed before it stored the result.
        kinds.dedup();
        assert_eq!(kinds, ["alert.triggered", "alert.resolved"], "{alert}");
    }
    assert!(shop.deliveries("?status=failed").is_empty());
}

/// An SMTP server in its own process.
struct Smtp {
    process: Child,
    port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl Smtp {
    fn start() -> Option<Smtp> {
        let python = tool("smtp-server/bin/python")?;
        let script = path("tests/system/clients/smtp.py");
        let mut process = Command::new(python).arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().trim().parse().unwrap();
        let mails = Arc::<Mutex<Vec<Value>>>::default();
        let received = Arc::clone(&mails);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                received.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Some(Smtp { process, port, mails })
    }
}

impl Drop for Smtp {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn mails_reach_an_smtp_server() {
    let Some(smtp) = Smtp::start() else {
        return crate::skip("aiosmtpd", "`cargo xtask setup` installs it with Python's pip");
    };
    let receiver = Receiver::start();
    let shop = Shop::new(&receiver, Some(smtp.port));
    let channels =
        json!([{"type": "email", "target": "ops@example.com"}, {"type": "email", "target": "ops@full.example"}]);
    shop.monitor("boss", &json!({"channels": channels}));
    let delivered = shop.wait("delivered", 1);
    let failed = shop.wait("failed", 1);
    assert!(failed[0]["last_error"].as_str().unwrap().contains("mailbox unavailable"), "{failed:?}");
    let mails = smtp.mails.lock().unwrap().clone();
    let [mail] = &mails[..] else { panic!("{mails:?}") };
    assert_eq!((&mail["to"], &mail["from"]), (&json!(["ops@example.com"]), &json!("alerts@example.com")));
    let id = delivered[0]["id"].as_str().unwrap();
    assert_eq!(mail["headers"]["message-id"], format!("<{id}@example.com>"));
    assert!(mail["headers"]["subject"].as_str().unwrap().contains("orders.count: anomaly"), "{mail}");
    assert!(mail["text"].as_str().unwrap().contains("https://terrane.example/api/v1/anomaly/alerts/"), "{mail}");
}
