//! Names to addresses that were checked.
//!
//! In: the name of a host, once per connection. Out: those of its addresses that may be connected to; the
//! client connects to these and looks nothing up again, so that a second answer can't lead elsewhere.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::allow::Allow;

/// The name that http may be used with; it means this machine and nothing else.
pub(super) const LOCALHOST: &str = "localhost";
/// More answers than these are not looked at.
const MAX_ADDRESSES: usize = 32;

/// Asks for the addresses of a name.
#[async_trait]
pub(super) trait Lookup: Send + Sync {
    async fn addresses(&self, name: &str) -> io::Result<Vec<SocketAddr>>;
}

/// As this machine resolves names.
pub(super) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        // The client puts the port of the URL in.
        Ok(tokio::net::lookup_host((name, 0)).await?.take(MAX_ADDRESSES).collect())
    }
}

/// None of a name's addresses may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("no address of this name may be connected to")]
pub(super) struct NotAllowed;

/// A [`Lookup`] whose answers are checked.
pub(super) struct CheckedResolver {
    allow: Arc<Allow>,
    lookup: Arc<dyn Lookup>,
}

impl CheckedResolver {
    pub(super) fn new(allow: Arc<Allow>, lookup: Arc<dyn Lookup>) -> Self {
        CheckedResolver { allow, lookup }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (allow, lookup) = (self.allow.clone(), self.lookup.clone());
        Box::pin(async move {
            let name = name.as_str();
            let mut found = lookup.addresses(name).await?;
            found.truncate(MAX_ADDRESSES);
            found.retain(|address| {
                let ip = address.ip();
                allow.lets(name, ip) && (name != LOCALHOST || ip.to_canonical().is_loopback())
            });
            if found.is_empty() {
                return Err(NotAllowed.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
