//! The adapters of what proves an identity: signatures, password hashes, random bytes.
//!
//! In: settings that were checked at start. Out: [`Jwt`], [`Argon2Passwords`], [`OsRandomness`]. Not
//! here: sessions and scopes (`app::security`), which say what a proof is good for.

mod claims;
mod jwt;
mod password;
mod randomness;

pub use claims::{ClaimPath, ClaimsMapping};
pub use jwt::{Jwt, JwtError, JwtSettings, MIN_SECRET_BYTES, SigningKey};
pub use password::Argon2Passwords;
pub use randomness::OsRandomness;
