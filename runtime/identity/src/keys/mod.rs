//! A provider's keys: what they are (`set`), and how they are had and kept (`remote`).

mod remote;
mod set;

pub(crate) use remote::KeyFault;
pub use remote::{RefreshSettings, RemoteKeys};
pub use set::SignatureAlgorithm;
