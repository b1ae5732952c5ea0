//! Hashes of secrets, which are stored where the secrets are not.

/// The SHA-256 of a secret.
pub type SecretHash = [u8; 32];
