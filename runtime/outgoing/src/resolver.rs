//! Resolution of host names to allowed addresses.
//!
//! In: a host name, once per connection, and once before a URL is stored. Out: its allowed addresses. The client connects
//! to one of these addresses without a second DNS lookup, which could return another address (DNS rebinding).

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::allow_list::AllowList;

/// The only host name for which http is allowed. Only its loopback addresses are accepted.
pub(super) const LOCALHOST: &str = "localhost";
/// The largest number of addresses that are used for one host name. Further addresses are ignored.
const MAX_ADDRESSES: usize = 32;

/// Resolves host names.
#[async_trait]
pub(super) trait Lookup: Send + Sync {
    async fn addresses(&self, name: &str) -> io::Result<Vec<SocketAddr>>;
}

/// The resolver of this machine.
pub(super) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        // The client replaces port 0 with the port of the URL.
        Ok(tokio::net::lookup_host((name, 0)).await?.take(MAX_ADDRESSES).collect())
    }
}

/// The error for a name without an allowed address.
#[derive(Debug, thiserror::Error)]
#[error("no address of this name is allowed")]
pub(super) struct NotAllowed;

/// A resolver that returns allowed addresses only.
#[derive(Clone)]
pub(super) struct CheckedResolver {
    allow_list: Arc<AllowList>,
    lookup: Arc<dyn Lookup>,
}

impl CheckedResolver {
    pub(super) fn new(allow_list: Arc<AllowList>, lookup: Arc<dyn Lookup>) -> Self {
        CheckedResolver { allow_list, lookup }
    }

    /// Returns the allowed addresses of a host name.
    ///
    /// # Errors
    /// The lookup fails, or [`NotAllowed`].
    pub(super) async fn allowed(&self, name: &str) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
        let mut found = self.lookup.addresses(name).await?;
        found.truncate(MAX_ADDRESSES);
        found.retain(|address| {
            let ip = address.ip();
            self.allow_list.allows(name, ip, None) && (name != LOCALHOST || ip.to_canonical().is_loopback())
        });
        if found.is_empty() { Err(NotAllowed.into()) } else { Ok(found) }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let found = resolver.allowed(name.as_str()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
