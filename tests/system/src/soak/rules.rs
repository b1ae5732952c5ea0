//! The rules for a response to any request.
//!
//! In: the received bytes. Out: nothing, or the violated rule. A connection may be closed without a response if no
//! request was complete, which only the caller of this module knows.

use serde_json::Value as Json;

/// Returns the status of a response. Responses to HEAD have no body.
///
/// # Errors
/// Returns a sentence that describes the violated rule.
pub fn check(is_head: bool, answer: &[u8], secrets: &[&str]) -> Result<Option<u16>, String> {
    let text = String::from_utf8_lossy(answer);
    if let Some(secret) = secrets.iter().find(|secret| text.contains(**secret)) {
        return Err(format!("the answer holds a secret ({} bytes long)", secret.len()));
    }
    if answer.is_empty() {
        return Ok(None);
    }
    let status =
        text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|status| status.parse::<u16>().ok());
    let Some(status) = status else { return Err(format!("no HTTP: {}", shown(&text))) };
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    // A server may read the bytes of one attack as two requests, and then answers both.
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let body = length.and_then(|length| rest.get(..length)).unwrap_or(rest);
    let is_json = head.to_ascii_lowercase().contains("content-type: application/json");
    match status {
        // hyper itself answers a head that it cannot parse, with an empty body.
        400 | 414 | 431 if body.is_empty() => Ok(Some(status)),
        200..=399 => Ok(Some(status)),
        _ if is_head && body.is_empty() && status < 500 => Ok(Some(status)),
        500 => Err(format!("500: {}", shown(&text))),
        505.. => Err(format!("{status}: {}", shown(&text))),
        _ if head.contains("content-encoding: ") => Ok(Some(status)),
        _ if !is_json && body.is_empty() => Ok(Some(status)),
        _ => {
            let json: Json = serde_json::from_str(body)
                .map_err(|_| format!("{status} without the error's shape: {}", shown(&text)))?;
            let is_error = json["error"]["code"].is_string() && json["error"]["message"].is_string();
            let graphql = &json["errors"][0];
            let is_graphql = graphql["extensions"]["code"].is_string() && graphql["message"].is_string();
            let has_shape = is_error || is_graphql || json["detail"].is_string();
            if has_shape {
                Ok(Some(status))
            } else {
                Err(format!("{status} without the error's shape: {}", shown(&text)))
            }
        }
    }
}

fn shown(text: &str) -> String {
    text.chars().take(600).collect()
}
