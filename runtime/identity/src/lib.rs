//! Adapters for the proof of identities: signatures, password hashes, random bytes, identity providers.
//!
//! In: settings that were checked at start. Out: [`Jwt`], [`ExternalTokens`], [`Argon2Passwords`], [`OsRandomness`].
//! Not here: sessions and scopes (`app::security`).

mod application;
mod checks;
mod claims;
mod external;
mod jwt;
mod keys;
mod password;
mod provider;
mod randomness;
mod signed;

pub use application::ApplicationSettings;
pub use claims::{ClaimPath, ClaimsMapping, ScopeRoles};
pub use external::{ExternalSettings, ExternalTokens, Issuers};
pub use jwt::{Jwt, JwtError, JwtSettings, MIN_SECRET_BYTES, SigningKey};
pub use keys::{RefreshSettings, RemoteKeys, SignatureAlgorithm};
pub use password::Argon2Passwords;
pub use provider::{BrowserUrl, BrowserUrlError, ClientAuth, OpenIdSettings, Provider, ProviderSettings};
pub use randomness::OsRandomness;
