//! Requests to receivers, and the meaning of their answers.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::ports::channels::{ChannelError, SendError};
use terrane_app::ports::clock::Clock;
use terrane_outgoing::{Accepted, OutgoingClient, OutgoingError};

/// Sends JSON bodies.
pub(super) struct Sender {
    pub(super) outgoing: OutgoingClient,
    pub(super) clock: Arc<dyn Clock>,
}

impl Sender {
    /// Makes all checks of a URL that need no DNS lookup.
    pub(super) fn check(&self, url: &str) -> Result<(), ChannelError> {
        let checked = self.outgoing.endpoint(url).map(|_| ());
        checked.map_err(|error| ChannelError::Target { problem: error.to_string() })
    }

    /// Checks a URL and the addresses of its host name. A name that cannot be looked up now passes, because each request
    /// checks the addresses again.
    pub(super) async fn check_address(&self, url: &str) -> Result<(), ChannelError> {
        let refused = |error: OutgoingError| ChannelError::Target { problem: error.to_string() };
        let endpoint = self.outgoing.endpoint(url).map_err(refused)?;
        match self.outgoing.look_up(&endpoint).await {
            Err(error @ OutgoingError::NotAllowed { .. }) => Err(refused(error)),
            _ => Ok(()),
        }
    }

    /// Sends a body with headers that may depend on the body. The address is checked again, because the host name may
    /// resolve to another machine now.
    pub(super) async fn post(
        &self,
        url: &str,
        body: String,
        headers: impl FnOnce(&str) -> Vec<(&'static str, String)>,
    ) -> Result<(), SendError> {
        let endpoint = self.outgoing.endpoint(url).map_err(failed)?;
        let headers = headers(&body);
        let accepted = self.outgoing.post_json(&endpoint, body, &headers).await.map_err(failed)?;
        meaning(endpoint.host(), &accepted, self.clock.now())
    }
}

fn failed(error: OutgoingError) -> SendError {
    let reason = error.to_string();
    match error {
        OutgoingError::Unreachable { .. } | OutgoingError::TimedOut { .. } => {
            SendError::Temporary { reason, after: None }
        }
        _ => SendError::Disabled { reason },
    }
}

fn meaning(host: &str, accepted: &Accepted, now: Timestamp) -> Result<(), SendError> {
    let reason = format!("{host} responded with status {}", accepted.status);
    match accepted.status {
        200..=299 => Ok(()),
        // The request came too early or too often, or the receiver has an error.
        408 | 409 | 425 | 429 | 500..=599 => Err(SendError::Temporary {
            reason,
            after: accepted.retry_after.as_deref().and_then(|text| delay(text, now)),
        }),
        // The key is wrong, or the receiver is gone.
        401 | 403 | 404 | 410 => Err(SendError::Disabled { reason }),
        300..=399 => Err(SendError::Refused { reason: format!("{reason}; redirects are not followed") }),
        _ => Err(SendError::Refused { reason }),
    }
}

/// Reads `Retry-After`: seconds, or a date.
fn delay(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
    Duration::try_from(date.timestamp().duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    #[test]
    fn delays_are_seconds_or_dates() {
        let now = "1994-11-06T08:49:30Z".parse().unwrap();
        let delay = |text| delay(text, now);
        assert_eq!(delay("120"), Some(Duration::from_secs(120)));
        assert_eq!(delay("soon"), None);
        assert_eq!(delay("Sun, 06 Nov 1994 08:49:00 GMT"), None, "a date that is over");
        assert_eq!(delay("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
    }

    #[test]
    fn status_decides_about_retries() {
        let answer = |status| {
            meaning("hooks.example", &Accepted { status, retry_after: Some("7".to_owned()) }, Timestamp::UNIX_EPOCH)
        };
        assert_eq!(answer(204), Ok(()));
        for status in [408, 409, 425, 429, 500, 503] {
            let after = Some(Duration::from_secs(7));
            assert!(matches!(answer(status), Err(SendError::Temporary { after: found, .. }) if found == after));
        }
        for status in [401, 403, 404, 410] {
            assert!(matches!(answer(status), Err(SendError::Disabled { .. })), "{status}");
        }
        for status in [301, 307, 400, 413, 422] {
            assert!(matches!(answer(status), Err(SendError::Refused { .. })), "{status}");
        }
    }
}
