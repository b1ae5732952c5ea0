//! Tests of the formats, and of channels that may not be used.

use jiff::Timestamp;
use serde_json::Value as Json;
use terrane_app::ports::channels::{MessageAlert, MessageKind, MessageSubject};
use terrane_app::ports::monitors::AlertState;
use terrane_app::ports::severity::FindingSeverity;
use terrane_compiler::types::Granularity;
use terrane_outgoing::AllowList;

use terrane_app::domain::SeriesValue;

use super::*;

fn message(kind: MessageKind, monitor: &str) -> AlertMessage {
    let day = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
    AlertMessage {
        id: "m1".into(),
        kind,
        at: "2024-01-03T06:00:00Z".parse().unwrap(),
        subject: MessageSubject {
            monitor_id: "mon".into(),
            monitor: monitor.into(),
            value: SeriesValue::Measure { cube: "flights".into(), measure: "count".into() },
            granularity: Granularity::Day,
            owner: "o".into(),
        },
        alerts: vec![MessageAlert {
            id: "a1".into(),
            state: AlertState::Triggered,
            severity: FindingSeverity::High,
            series: vec![("origin".into(), Some("JFK".into()))],
            first_step_ms: day("2024-01-01T00:00:00Z"),
            last_step_ms: day("2024-01-02T00:00:00Z"),
            value: Some(12.5),
            expected: Some(300.0),
        }],
        more: 0,
    }
}

fn texts() -> Texts {
    let acknowledge_key = Some(AcknowledgeKey::derived_from(b"tests"));
    Texts { public_url: Some("https://terrane.example/".to_owned()), acknowledge_key }
}

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

#[test]
fn numbers_and_slices_go_to_cleared_channels_only() {
    let message = message(MessageKind::Triggered, "Daily flights");
    let service = |is_cleared| PagerDutySettings {
        name: "oncall".into(),
        routing_key: "key".to_owned(),
        url: String::new(),
        is_cleared,
    };
    let sms = |is_cleared| SmsSettings { url: String::new(), token: None, from: None, is_cleared };
    for is_cleared in [false, true] {
        for text in [
            webhook::body(&texts(), &message, is_cleared),
            slack::body(&texts(), &message, is_cleared),
            pagerduty::body(&texts(), &message, &service(is_cleared)).unwrap(),
            sms::body(&texts(), &message, &sms(is_cleared), "+4930123456"),
        ] {
            for hidden in ["JFK", "12.5", "300"] {
                assert_eq!(text.contains(hidden), is_cleared, "{hidden} in {text}");
            }
            assert!(text.contains("https://terrane.example/api/v1/anomaly/alerts/a1"), "{text}");
        }
    }
}

#[test]
fn webhooks_describe_the_monitor_and_its_alerts() {
    let body = json(&webhook::body(&texts(), &message(MessageKind::Resolved, "Daily flights"), false));
    assert_eq!(body["type"], "alert.resolved");
    assert_eq!(body["data"]["monitor"]["measure_name"], "count");
    assert_eq!(body["data"]["alerts"][0]["last_step"], "2024-01-02");
    assert_eq!(body["data"]["severity"], "HIGH");
}

#[test]
fn open_alerts_have_a_link_that_acknowledges_them() {
    let mut message = message(MessageKind::Triggered, "Daily flights");
    let token = AcknowledgeKey::derived_from(b"tests").token("a1", "o", message.at);
    let link = format!("https://terrane.example/api/v1/anomaly/acknowledge?token={token}");
    let service =
        PagerDutySettings { name: "x".into(), routing_key: "r".to_owned(), url: String::new(), is_cleared: false };
    let bodies = |message: &AlertMessage| {
        let event = pagerduty::body(&texts(), message, &service).unwrap();
        [webhook::body(&texts(), message, false), slack::body(&texts(), message, false), event]
    };
    for body in bodies(&message) {
        assert!(body.contains(&link), "{body}");
    }
    assert_eq!(json(&bodies(&message)[0])["data"]["alerts"][0]["acknowledge_link"], link);
    message.alerts[0].state = AlertState::Acknowledged;
    for body in bodies(&message) {
        assert!(!body.contains("acknowledge?token"), "{body}");
    }
}

#[test]
fn mentions_and_links_of_names_are_escaped_for_slack() {
    let body = json(&slack::body(&texts(), &message(MessageKind::Triggered, "<!channel> & <https://x|y>"), true));
    let text = body["text"].as_str().unwrap();
    assert!(text.contains("&lt;!channel&gt; &amp; &lt;https://x|y&gt;"), "{text}");
    assert!(body["blocks"][0]["text"]["text"].as_str().unwrap().chars().count() <= 150);
    assert_eq!(body["blocks"][1]["type"], "section");
}

#[test]
fn incidents_of_pagerduty_have_the_id_of_the_alert() {
    let service =
        PagerDutySettings { name: "x".into(), routing_key: "r".to_owned(), url: String::new(), is_cleared: false };
    for (kind, action) in [
        (MessageKind::Triggered, "trigger"),
        (MessageKind::Raised, "trigger"),
        (MessageKind::Escalated, "trigger"),
        (MessageKind::Acknowledged, "acknowledge"),
        (MessageKind::Resolved, "resolve"),
    ] {
        let event = json(&pagerduty::body(&texts(), &message(kind, "Daily flights"), &service).unwrap());
        assert_eq!((&event["event_action"], &event["dedup_key"]), (&action.into(), &"a1".into()));
        assert_eq!(event["payload"]["severity"], "error");
        assert_eq!(event["routing_key"], "r");
    }
}

/// A clock that does not move.
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

fn channels(allow: &[&str], settings: ChannelSettings) -> Channels {
    let allow = AllowList::parse(allow.iter().copied()).unwrap();
    Channels::new(settings, OutgoingClient::new(allow, None).unwrap(), Arc::new(Stopped), None).unwrap()
}

fn check(channels: &Channels, kind: ChannelType, target: &str) -> Result<(), ChannelError> {
    channels.check(&Channel { kind, target: target.into() })
}

#[test]
fn webhooks_to_private_networks_are_rejected() {
    let channels = channels(&["127.0.0.1"], ChannelSettings::default());
    assert_eq!(check(&channels, ChannelType::Webhook, "https://hooks.example/x"), Ok(()));
    assert_eq!(check(&channels, ChannelType::Webhook, "http://127.0.0.1:1/x"), Ok(()));
    for target in [
        "http://hooks.example/x",
        "https://127.0.0.2/",
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[fd00:ec2::254]/",
        "https://2130706434/",
        "https://0x7f000002/",
        "https://0177.0.0.2/",
        "https://user:password@hooks.example/",
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
    ] {
        let checked = check(&channels, ChannelType::Webhook, target);
        assert!(matches!(checked, Err(ChannelError::Target { .. })), "{target}: {checked:?}");
    }
}

#[tokio::test]
async fn names_of_private_addresses_are_rejected() {
    let webhook = |target: &str| Channel { kind: ChannelType::Webhook, target: target.into() };
    let channels = |allow: &[&str]| channels(allow, ChannelSettings::default());
    let (closed, open) = (channels(&[]), channels(&["localhost"]));
    let local = webhook("https://localhost/x");
    assert_eq!(closed.check(&local), Ok(()), "the name is not looked up");
    let refused = closed.check_address(&local).await;
    assert!(matches!(refused, Err(ChannelError::Target { .. })), "{refused:?}");
    assert_eq!(open.check_address(&local).await, Ok(()));
    // A name that does not exist may exist when a message is sent.
    assert_eq!(closed.check_address(&webhook("https://nothing.invalid/x")).await, Ok(()));
    assert!(closed.check_address(&webhook("https://10.0.0.1/")).await.is_err());
}

#[test]
fn names_and_addresses_are_checked() {
    let slack = SlackSettings {
        name: "data-alerts".into(),
        url: "https://hooks.slack.example/x".to_owned(),
        is_cleared: false,
    };
    let email = EmailSettings {
        host: "mail.example".to_owned(),
        port: 587,
        encryption: Encryption::StartTls,
        username: None,
        password: None,
        from: "Alerts <alerts@example.com>".to_owned(),
        domains: vec!["example.com".to_owned()],
        is_cleared: false,
    };
    let sms = SmsSettings { url: "https://sms.example/send".to_owned(), token: None, from: None, is_cleared: false };
    let settings =
        ChannelSettings { slack: vec![slack], email: Some(email), sms: Some(sms), ..ChannelSettings::default() };
    let channels = channels(&[], settings);
    for (kind, target) in [
        (ChannelType::Slack, "data-alerts"),
        (ChannelType::Slack, "#data-alerts"),
        (ChannelType::Email, "ops@example.com"),
        (ChannelType::Sms, "+4930123456"),
    ] {
        assert_eq!(check(&channels, kind, target), Ok(()), "{target}");
    }
    let unknown = check(&channels, ChannelType::Slack, "other");
    assert!(matches!(unknown, Err(ChannelError::UnknownName { known, .. }) if known == ["data-alerts".into()]));
    let missing = check(&channels, ChannelType::PagerDuty, "oncall");
    assert_eq!(missing, Err(ChannelError::NotConfigured { kind: ChannelType::PagerDuty }));
    for (kind, target) in [
        (ChannelType::Email, "ops"),
        (ChannelType::Email, "ops@other.example"),
        (ChannelType::Email, "ops@example.com\r\nBcc: all@example.com"),
        (ChannelType::Sms, "030123456"),
        (ChannelType::Sms, "+49"),
        (ChannelType::Sms, "+4930123456x"),
    ] {
        assert!(matches!(check(&channels, kind, target), Err(ChannelError::Target { .. })), "{target:?}");
    }
}
