//! Signs the links by which readers of a message acknowledge an alert.
//!
//! In: the id of an alert and the time of a message. Out: a token with an expiry, signed by a key of this server. The
//! token acknowledges this one alert and nothing else. Nothing is stored, so any replica with the same key accepts it.
//! Absent: the move of the alert (`monitors`).

use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::api_key::{base64url, hash, is_equal};

/// The time for which a link is accepted, in seconds: 7 days.
const LIFETIME_SECONDS: i64 = 7 * 86_400;
const BLOCK_BYTES: usize = 64;

/// The key that signs links. All replicas have the same key.
#[derive(Clone)]
pub struct AcknowledgeKey([u8; 32]);

/// The reason why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFault {
    /// The token is of another server, or forged.
    Foreign,
    Expired,
}

impl std::fmt::Debug for AcknowledgeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl AcknowledgeKey {
    /// Derives the key from a secret with high entropy that the server already has.
    pub fn derived_from(secret: &[u8]) -> Self {
        let mut derived = Sha256::new();
        derived.update(b"terrane: links that acknowledge alerts");
        derived.update(secret);
        AcknowledgeKey(derived.finalize().into())
    }

    /// Returns the token for an alert in a message that was written at a time.
    pub fn token(&self, alert_id: &str, written_at: Timestamp) -> String {
        let expires_at = written_at.as_second().saturating_add(LIFETIME_SECONDS);
        format!("{alert_id}.{expires_at}.{}", self.signature(alert_id, expires_at))
    }

    /// Checks a token and returns the id of its alert.
    ///
    /// # Errors
    /// [`LinkFault`].
    pub fn open(&self, token: &str, now: Timestamp) -> Result<Arc<str>, LinkFault> {
        let mut parts = token.splitn(3, '.');
        let (Some(id), Some(expires_at), Some(signature)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(LinkFault::Foreign);
        };
        let expires_at = expires_at.parse::<i64>().map_err(|_| LinkFault::Foreign)?;
        // The hashes are compared, so that the time does not depend on the place where the values differ.
        if !is_equal(&hash(&self.signature(id, expires_at)), &hash(signature)) {
            return Err(LinkFault::Foreign);
        }
        if expires_at <= now.as_second() { Err(LinkFault::Expired) } else { Ok(id.into()) }
    }

    fn signature(&self, alert_id: &str, expires_at: i64) -> String {
        let mut block = [0; BLOCK_BYTES];
        block[..self.0.len()].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(format!("{alert_id}\0{expires_at}").as_bytes());
        base64url(&mac.finalize().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_of_one_key_one_alert_and_seven_days() {
        let at = |seconds: i64| Timestamp::from_second(1_700_000_000 + seconds).unwrap();
        let key = AcknowledgeKey::derived_from(b"a secret");
        let token = key.token("a1", at(0));
        assert_eq!(key.open(&token, at(LIFETIME_SECONDS - 1)).as_deref(), Ok("a1"));
        assert_eq!(key.open(&token, at(LIFETIME_SECONDS)), Err(LinkFault::Expired));
        let later = token.replacen("1700604800", "1800000000", 1);
        assert_ne!(later, token);
        for forged in ["", "a1", "a1.1", "a1.x.y", &later, &token.replacen("a1", "a2", 1), &format!("{token}A")] {
            assert_eq!(key.open(forged, at(0)), Err(LinkFault::Foreign), "{forged}");
        }
        assert_eq!(AcknowledgeKey::derived_from(b"another").open(&token, at(0)), Err(LinkFault::Foreign));
    }
}
