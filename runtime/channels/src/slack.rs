//! Messages for incoming webhooks of Slack: blocks, and a line for notifications.

use serde_json::{Value as Json, json};
use terrane_app::ports::channels::AlertMessage;

use crate::text::{Texts, title};

/// The largest numbers of characters of a header block and of a section, by Slack's limits.
const MAX_HEADER: usize = 150;
const MAX_SECTION: usize = 3_000;

/// Returns the JSON text of a message.
pub(super) fn body(texts: &Texts, message: &AlertMessage, is_cleared: bool) -> String {
    let title = title(message);
    let header: String = title.chars().take(MAX_HEADER).collect();
    let mut blocks = vec![json!({"type": "header", "text": {"type": "plain_text", "text": header, "emoji": false}})];
    let lines: Vec<String> = texts.lines(message, is_cleared).iter().map(|line| escaped(line)).collect();
    blocks.extend(sections(&lines));
    json!({"text": escaped(&title), "blocks": blocks}).to_string()
}

/// Joins lines to sections within Slack's limit. A single line above the limit is cut.
fn sections(lines: &[String]) -> Vec<Json> {
    let mut texts: Vec<String> = Vec::new();
    for line in lines {
        let line: String = line.chars().take(MAX_SECTION).collect();
        match texts.last_mut() {
            Some(text) if text.chars().count() + line.chars().count() < MAX_SECTION => {
                text.push('\n');
                text.push_str(&line);
            }
            _ => texts.push(line),
        }
    }
    texts
        .iter()
        .map(|text| json!({"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": true}}))
        .collect()
}

/// Escapes the characters that mark links and mentions in Slack.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
