//! Binds the callback of a sign-in to the browser that began the sign-in.
//!
//! In: a random binding, which only the cookie of the browser has, and the provider's name. Out: the state, the nonce
//! and the PKCE verifier, each an HMAC of the binding under this server's key. Nothing is stored, so any replica with
//! the same key recognizes its state tokens. The provider gets the state only, which is useless without the binding.
//! Not here: the check that a state token is used only once (`oauth`).

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::security::api_key::{base64url, hash, is_equal};

/// The longest time that a sign-in may take, in seconds.
pub(super) const LIFETIME_SECONDS: i64 = 600;
/// The length in base64url of 32 bytes.
const BINDING_LETTERS: usize = 43;
const BLOCK_BYTES: usize = 64;

/// The key that signs state tokens. All replicas have the same key.
#[derive(Clone)]
pub struct StateTokenKey([u8; 32]);

/// The reason why a callback does not belong to a sign-in of this browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateTokenFault {
    /// The token belongs to another provider, browser or server, or is forged.
    Foreign,
    Expired,
}

/// The values that bind one sign-in.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct StateToken {
    pub(super) state: String,
    pub(super) nonce: String,
    pub(super) code_verifier: String,
}

impl StateTokenKey {
    /// Derives the key from a secret with high entropy that the server already has.
    pub fn derived_from(secret: &[u8]) -> Self {
        StateTokenKey(hmac(&Sha256::digest(secret).into(), &[b"terrane: sign-in through a provider"]))
    }

    pub(super) fn state_token(&self, provider: &str, binding: &str, now: Timestamp) -> StateToken {
        self.ticket_until(provider, binding, now.as_second().saturating_add(LIFETIME_SECONDS))
    }

    /// Checks a returned state and returns its state token.
    pub(super) fn open(
        &self,
        provider: &str,
        binding: &str,
        state: &str,
        now: Timestamp,
    ) -> Result<StateToken, StateTokenFault> {
        let expires_at = state.split_once('.').and_then(|(seconds, _)| seconds.parse::<i64>().ok());
        let expires_at = expires_at.filter(|_| binding.len() == BINDING_LETTERS).ok_or(StateTokenFault::Foreign)?;
        let state_token = self.ticket_until(provider, binding, expires_at);
        // The hashes are compared, so that the time does not depend on the place where the values differ.
        if !is_equal(&hash(&state_token.state), &hash(state)) {
            return Err(StateTokenFault::Foreign);
        }
        if expires_at <= now.as_second() { Err(StateTokenFault::Expired) } else { Ok(state_token) }
    }

    fn ticket_until(&self, provider: &str, binding: &str, expires_at: i64) -> StateToken {
        let expires_at = expires_at.to_string();
        let part = |name: &str| {
            let parts = [name, provider, &expires_at, binding].map(str::as_bytes);
            base64url(&hmac(&self.0, &[parts[0], b"\0", parts[1], b"\0", parts[2], b"\0", parts[3]]))
        };
        StateToken {
            state: format!("{expires_at}.{}", part("state")),
            nonce: part("nonce"),
            code_verifier: part("verifier"),
        }
    }
}

impl StateToken {
    /// Returns the code challenge of the method `S256` (RFC 7636, section 4.2).
    pub(super) fn code_challenge(&self) -> String {
        base64url(&Sha256::digest(self.code_verifier.as_bytes()))
    }
}

/// Returns the HMAC-SHA-256 (RFC 2104) of the concatenated parts.
fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = [0; BLOCK_BYTES];
    mac[..key.len()].copy_from_slice(key);
    // RFC 2104, section 2: a key that is shorter than a block is padded with zeros.
    let mut mac = Hmac::<Sha256>::new(&mac.into());
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_token_is_valid_only_for_its_key_provider_and_browser() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let at = |seconds: i64| Timestamp::from_second(1_700_000_000 + seconds).unwrap();
        let key = StateTokenKey::derived_from(b"a secret");
        let (mine, other) = (base64url(&[1; 32]), base64url(&[2; 32]));
        let state_token = key.state_token("idp", &mine, now);
        let open = |provider: &str, binding: &str, state: &str, now| key.open(provider, binding, state, now).err();
        assert!(key.open("idp", &mine, &state_token.state, now).is_ok_and(|opened| opened == state_token));
        assert_eq!(open("idp", &mine, &state_token.state, at(LIFETIME_SECONDS - 1)), None);
        assert_eq!(open("idp", &mine, &state_token.state, at(LIFETIME_SECONDS)), Some(StateTokenFault::Expired));
        let later = state_token.state.replacen("1700000600", "1800000000", 1);
        for (provider, binding, state) in [
            ("other", &*mine, &*state_token.state),
            ("idp", &other, &state_token.state),
            ("idp", "", &state_token.state),
            ("idp", &mine, &later),
            ("idp", &mine, ""),
            ("idp", &mine, "1700000600."),
            ("idp", &mine, &state_token.nonce),
            ("idp", &mine, &format!("1700000600.{}", state_token.nonce)),
            ("idp", &mine, &format!("{} ", state_token.state)),
        ] {
            assert_eq!(open(provider, binding, state, now), Some(StateTokenFault::Foreign), "{provider} {state}");
        }
        assert!(StateTokenKey::derived_from(b"another").open("idp", &mine, &state_token.state, now).is_err());
        assert_eq!((state_token.code_verifier.len(), state_token.code_challenge().len()), (43, 43));
        assert_ne!(state_token.nonce, state_token.code_verifier);
    }
}
