//! The keys of a provider: their types (`set`), and the requests and the cache for them (`remote`).

mod remote;
mod set;

pub(crate) use remote::KeyFault;
pub use remote::{RefreshSettings, RemoteKeys};
pub use set::SignatureAlgorithm;
