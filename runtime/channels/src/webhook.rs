//! Webhooks: JSON with the signatures of Standard Webhooks (version 1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Value as Json, json};
use sha2::Sha256;
use terrane_app::ports::channels::{AlertMessage, MessageAlert};

use crate::text::{Texts, severity, step};

const PREFIX: &str = "whsec_";
/// The shortest and the longest secret, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that signs messages.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

/// The reason why a secret cannot sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be `whsec_` and the base64 of 24 to 64 random bytes")]
pub struct SecretError;

impl WebhookSecret {
    /// Reads `whsec_` and base64.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let bytes = STANDARD.decode(text.trim().strip_prefix(PREFIX).ok_or(SecretError)?).map_err(|_| SecretError)?;
        if LENGTHS.contains(&bytes.len()) { Ok(WebhookSecret(bytes)) } else { Err(SecretError) }
    }
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Returns the JSON text of a message.
pub(super) fn body(texts: &Texts, message: &AlertMessage, is_cleared: bool) -> String {
    let subject = &message.subject;
    json!({
        "type": format!("alert.{}", message.kind.as_str()),
        "timestamp": message.at.to_string(),
        "data": {
            "monitor": {
                "id": &*subject.monitor_id,
                "name": &*subject.monitor,
                "cube_name": subject.value.cube().map(|name| &**name),
                "measure_name": subject.value.measure().map(|name| &**name),
                "metric_name": subject.value.metric().map(|name| &**name),
            },
            "severity": severity(message).as_str(),
            "alerts": message.alerts.iter().map(|alert| self::alert(texts, message, alert, is_cleared)).collect::<Vec<_>>(),
            "more": message.more,
        },
    })
    .to_string()
}

fn alert(texts: &Texts, message: &AlertMessage, alert: &MessageAlert, is_cleared: bool) -> Json {
    let granularity = message.subject.granularity;
    let mut fields = Map::new();
    fields.insert("id".to_owned(), (*alert.id).into());
    fields.insert("status".to_owned(), alert.state.as_str().into());
    fields.insert("severity".to_owned(), alert.severity.as_str().into());
    fields.insert("first_step".to_owned(), step(alert.first_step_ms, granularity).into());
    fields.insert("last_step".to_owned(), step(alert.last_step_ms, granularity).into());
    fields.insert("link".to_owned(), texts.link(alert).into());
    fields.insert("acknowledge_link".to_owned(), texts.acknowledge_link(message, alert).into());
    if is_cleared {
        fields.extend(numbers(alert));
    }
    fields.into()
}

/// Returns the fields of an alert for receivers that are cleared for numbers.
pub(super) fn numbers(alert: &MessageAlert) -> Map<String, Json> {
    let dimensions: Map<String, Json> =
        alert.series.iter().map(|(name, value)| (name.to_string(), value.as_deref().into())).collect();
    Map::from_iter([
        ("dimensions".to_owned(), dimensions.into()),
        ("value".to_owned(), alert.value.into()),
        ("expected".to_owned(), alert.expected.into()),
    ])
}

/// Returns the headers of an attempt at a time, in seconds since 1970-01-01T00:00:00Z.
pub(super) fn headers(id: &str, at: i64, body: &str, secrets: &[WebhookSecret]) -> Vec<(&'static str, String)> {
    let mut headers = vec![("webhook-id", id.to_owned()), ("webhook-timestamp", at.to_string())];
    let signatures: Vec<String> = secrets.iter().filter_map(|secret| signature(id, at, body, secret)).collect();
    if !signatures.is_empty() {
        headers.push(("webhook-signature", signatures.join(" ")));
    }
    headers
}

fn signature(id: &str, at: i64, body: &str, secret: &WebhookSecret) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).ok()?;
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    /// The example of the published specification.
    #[test]
    fn signatures_are_those_of_the_specification() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let headers = headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#, &[secret]);
        assert_eq!(headers[2], ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned()));
    }

    #[test]
    fn secrets_have_a_prefix_and_enough_bytes() {
        for text in ["", "secret", "whsec_", "whsec_AAAA", "whsec_*", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert_eq!(WebhookSecret::parse(text), Err(SecretError), "{text}");
        }
    }
}
