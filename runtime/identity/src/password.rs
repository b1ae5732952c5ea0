//! Argon2id with the parameters of OWASP's 19 MiB profile.
//!
//! A hash takes 19 MiB and some tens of milliseconds, so at most [`AT_ONCE`] are computed at a time, on
//! threads that answer no requests.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use async_trait::async_trait;
use terrane_app::ports::tokens::Passwords;
use tokio::sync::Semaphore;

const AT_ONCE: usize = 2;
/// The memory of one hash, 19 MiB. The parameters m=19456, t=2 and p=1 are those of OWASP's password storage cheat
/// sheet.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// Password hashes as PHC strings.
#[derive(Debug, Clone)]
pub struct Argon2Passwords {
    turns: Arc<Semaphore>,
    /// The hash of a random password. It is verified if the user is unknown, so that a sign-in takes the same time for
    /// known and unknown users.
    decoy: Arc<str>,
}

impl Default for Argon2Passwords {
    fn default() -> Self {
        let mut random = [0; 16];
        // Without random bytes, the decoy is the hash of a known string. Verifying it takes the same time.
        let _ = getrandom::fill(&mut random);
        let decoy = hash(&hex::encode(random));
        Argon2Passwords { turns: Arc::new(Semaphore::new(AT_ONCE)), decoy }
    }
}

#[async_trait]
impl Passwords for Argon2Passwords {
    async fn hash(&self, password: &str) -> Arc<str> {
        let password = password.to_owned();
        self.slowly(move || hash(&password)).await.unwrap_or_default()
    }

    async fn fits(&self, password: &str, hash: Option<&str>) -> bool {
        let (password, is_known) = (password.to_owned(), hash.is_some());
        let hash: Arc<str> = hash.map_or_else(|| self.decoy.clone(), Into::into);
        let fits = self.slowly(move || {
            PasswordHash::new(&hash).is_ok_and(|hash| argon2().verify_password(password.as_bytes(), &hash).is_ok())
        });
        fits.await.unwrap_or(false) && is_known
    }
}

impl Argon2Passwords {
    async fn slowly<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let _turn = self.turns.acquire().await.ok()?;
        tokio::task::spawn_blocking(work).await.ok()
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash(password: &str) -> Arc<str> {
    // If hashing fails, the hash is empty, and no password matches it.
    argon2().hash_password(password.as_bytes()).map(|hash| hash.to_string().into()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_correct_password_matches() {
        let passwords = Argon2Passwords::default();
        let hash = passwords.hash("open sesame").await;
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(passwords.fits("open sesame", Some(&hash)).await);
        assert!(!passwords.fits("open sesam", Some(&hash)).await);
        assert!(!passwords.fits("open sesame", None).await);
        for broken in ["", "$argon2id$", "plain"] {
            assert!(!passwords.fits("open sesame", Some(broken)).await, "{broken}");
        }
        assert_ne!(passwords.hash("open sesame").await, hash, "each hash has its own salt");
    }
}
