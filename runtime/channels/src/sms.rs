//! Short messages through an HTTP gateway: `{id, to, from, text}` as JSON.

use serde_json::json;
use terrane_app::ports::channels::{AlertMessage, ChannelError};

use crate::SmsSettings;
use crate::text::{Texts, title};

/// The largest number of characters of a message, which is sent as three short messages.
const MAX_TEXT: usize = 450;
/// The digits of a phone number (E.164).
const DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// Checks a phone number.
pub(super) fn check(number: &str) -> Result<(), ChannelError> {
    let digits = number.strip_prefix('+').unwrap_or_default();
    let is_number =
        DIGITS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    match is_number {
        true => Ok(()),
        false => Err(ChannelError::Target { problem: "must be a phone number like +4930123456".to_owned() }),
    }
}

/// Returns the JSON text of a message.
pub(super) fn body(texts: &Texts, message: &AlertMessage, sms: &SmsSettings, to: &str) -> String {
    let mut lines = vec![title(message)];
    lines.extend(texts.lines(message, sms.is_cleared));
    let text: String = lines.join("\n").chars().take(MAX_TEXT).collect();
    json!({"id": &*message.id, "to": to, "from": sms.from, "text": text}).to_string()
}

pub(super) fn headers(sms: &SmsSettings) -> Vec<(&'static str, String)> {
    sms.token.iter().map(|token| ("authorization", format!("Bearer {token}"))).collect()
}
