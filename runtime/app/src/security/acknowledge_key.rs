//! Signs the links by which readers of a message acknowledge an alert.
//!
//! In: the id of an alert and the time of a message. Out: a token with an expiry, signed by a key of this server. The
//! token acknowledges this one alert and nothing else. It contains a mark of the monitor's owner, so it becomes invalid
//! when the owner loses the right to see the alert. Nothing is stored, so any replica with the same key accepts it. Not
//! here: the change of the alert's state (`monitors`).

use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::api_key::{base64url, hash, is_equal};

/// The time for which a link is accepted, in seconds: 7 days.
const LIFETIME_SECONDS: i64 = 7 * 86_400;
const BLOCK_BYTES: usize = 64;
const MARK_BYTES: usize = 16;

/// The key that signs links. All replicas have the same key.
#[derive(Clone)]
pub struct AcknowledgeKey([u8; 32]);

/// The reason why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFault {
    /// The token was signed by another server, or is forged.
    Foreign,
    Expired,
}

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcknowledgeLink {
    pub alert_id: Arc<str>,
    /// The mark of the owner to whom the link was issued; see [`AcknowledgeKey::mark`].
    pub owner: Arc<str>,
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

    /// Returns the token for an alert in a message that was written at a time. `owner` is the digest of the monitor's
    /// owner.
    pub fn token(&self, alert_id: &str, owner: &str, written_at: Timestamp) -> String {
        let expires_at = written_at.as_second().saturating_add(LIFETIME_SECONDS);
        let owner = self.mark(owner);
        format!("{alert_id}.{expires_at}.{owner}.{}", self.signature(alert_id, expires_at, &owner))
    }

    /// Returns the identifier of an owner in tokens. It discloses nothing about the owner.
    pub fn mark(&self, owner: &str) -> String {
        base64url(&self.mac(&format!("owner\0{owner}"))[..MARK_BYTES])
    }

    /// Checks a token and returns its content.
    ///
    /// # Errors
    /// [`LinkFault`].
    pub fn open(&self, token: &str, now: Timestamp) -> Result<AcknowledgeLink, LinkFault> {
        let parts: Vec<&str> = token.splitn(4, '.').collect();
        let [id, written_end, owner, signature] = parts[..] else { return Err(LinkFault::Foreign) };
        let expires_at = written_end.parse::<i64>().map_err(|_| LinkFault::Foreign)?;
        // The hashes are compared, so that the time does not depend on the place where the values differ.
        let is_signed = is_equal(&hash(&self.signature(id, expires_at, owner)), &hash(signature));
        // `+1` and `01` are other spellings of a number that was signed.
        if !is_signed || expires_at.to_string() != written_end {
            return Err(LinkFault::Foreign);
        }
        if expires_at <= now.as_second() {
            return Err(LinkFault::Expired);
        }
        Ok(AcknowledgeLink { alert_id: id.into(), owner: owner.into() })
    }

    fn signature(&self, alert_id: &str, expires_at: i64, owner: &str) -> String {
        base64url(&self.mac(&format!("link\0{alert_id}\0{expires_at}\0{owner}")))
    }

    fn mac(&self, text: &str) -> [u8; 32] {
        let mut block = [0; BLOCK_BYTES];
        block[..self.0.len()].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_bound_to_key_alert_and_owner_for_seven_days() {
        let at = |seconds: i64| Timestamp::from_second(1_700_000_000 + seconds).unwrap();
        let key = AcknowledgeKey::derived_from(b"a secret");
        let token = key.token("a1", "ada", at(0));
        let link = AcknowledgeLink { alert_id: "a1".into(), owner: key.mark("ada").into() };
        assert_eq!(key.open(&token, at(LIFETIME_SECONDS - 1)), Ok(link));
        assert_eq!(key.open(&token, at(LIFETIME_SECONDS)), Err(LinkFault::Expired));
        let (later, plus) = (token.replacen("1700604800", "1800000000", 1), token.replacen(".17", ".+17", 1));
        let of_bob = token.replacen(&key.mark("ada"), &key.mark("bob"), 1);
        assert!(later != token && plus != token && of_bob != token && !token.contains("ada"));
        let another = token.replacen("a1", "a2", 1);
        for forged in ["", "a1", "a1.1", "a1.x.y", "a1.1.x.y", &later, &plus, &of_bob, &another, &format!("{token}A")] {
            assert_eq!(key.open(forged, at(0)), Err(LinkFault::Foreign), "{forged}");
        }
        assert_eq!(AcknowledgeKey::derived_from(b"another").open(&token, at(0)), Err(LinkFault::Foreign));
    }
}
