//! Limits the rate of requests of each caller.
//!
//! In: a caller and its address, before the request is processed. Out: permission, or [`RateExceeded`]. Each limit is a
//! bucket that fills evenly and allows a burst (GCRA). Time comes from the port, so that tests need not wait. Memory is
//! bounded: a limit has at most [`MAX_SUBJECTS`] buckets, and full buckets are removed first. Callers for whom no
//! bucket is free share one bucket. Not here: the number of running queries (`query::limiter`), password guessing
//! (`security`).
//!
//! [`quota`] limits the number of sockets and live queries that a caller has open.

mod buckets;
pub mod quota;

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::SecurityContext;

use crate::ports::clock::Clock;
use crate::security::{AuthMethod, Identity};
pub(crate) use buckets::Limit;
pub use buckets::MAX_SUBJECTS;

/// A limit: requests per second, and the size of a burst after a pause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub requests_per_second: f64,
    pub burst: NonZeroU32,
}

/// The rates that limit requests. A rate of `None` does not limit them.
#[derive(Debug, Clone, Copy, Default)]
pub struct RateSettings {
    /// The rate of an API key, or of a user with all their tokens.
    pub per_key: Option<Rate>,
    /// The rate of a tenant. All callers without a tenant share one rate.
    pub per_tenant: Option<Rate>,
    /// The rate of anonymous callers from one address.
    pub anonymous: Option<Rate>,
    /// The rate of invalid credentials from one address.
    pub failed: Option<Rate>,
}

/// The limit that a request exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateScope {
    Key,
    Tenant,
    Address,
    /// The address has sent too many invalid credentials.
    Failures,
}

impl RateScope {
    pub fn as_str(self) -> &'static str {
        match self {
            RateScope::Key => "key",
            RateScope::Tenant => "tenant",
            RateScope::Address => "address",
            RateScope::Failures => "failures",
        }
    }
}

/// A rejected request, and the time to wait before the next one.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("more than {} requests a second: wait {} s", rate.requests_per_second, wait.as_secs_f64().ceil().max(1.0))]
pub struct RateExceeded {
    pub scope: RateScope,
    pub rate: Rate,
    pub wait: Duration,
}

/// The unit by which requests, sockets and live queries are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    Key(Arc<str>),
    User(Arc<str>),
    Tenant(Arc<str>),
    Address(IpAddr),
}

impl Subject {
    /// Returns the subject under which a caller's requests are counted: the API key; the user, so that all tokens of a
    /// user count together; or the network of an anonymous client. `credential` is the id of the caller's key or
    /// session.
    pub fn of(caller: &SecurityContext, credential: &Arc<str>, client: Option<IpAddr>) -> Self {
        match caller.auth_method {
            AuthMethod::Anonymous => Subject::of_address(client),
            AuthMethod::ApiKey => Subject::Key(Arc::clone(credential)),
            AuthMethod::Jwt | AuthMethod::OAuth | AuthMethod::Operator => Subject::User(Arc::clone(&caller.user_id)),
        }
    }

    /// Returns the network of a client, or one subject for all clients without an address.
    pub fn of_address(client: Option<IpAddr>) -> Self {
        Subject::Address(client.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), network))
    }
}

/// The rate limits of keys, tenants, addresses and failed credentials, with the state of all callers.
pub struct RateLimits {
    per_key: Option<Limit>,
    per_tenant: Option<Limit>,
    anonymous: Option<Limit>,
    failed: Option<Limit>,
}

impl RateLimits {
    pub fn new(settings: &RateSettings, clock: &Arc<dyn Clock>) -> Self {
        let limit = |rate: Option<Rate>, scope| rate.map(|rate| Limit::new(rate, scope, clock.clone()));
        RateLimits {
            per_key: limit(settings.per_key, RateScope::Key),
            per_tenant: limit(settings.per_tenant, RateScope::Tenant),
            anonymous: limit(settings.anonymous, RateScope::Address),
            failed: limit(settings.failed, RateScope::Failures),
        }
    }

    /// Counts one request of an authenticated or anonymous caller.
    ///
    /// # Errors
    /// [`RateExceeded`]
    pub fn admit(&self, identity: &Identity, client: Option<IpAddr>) -> Result<(), RateExceeded> {
        if identity.method() == AuthMethod::Anonymous {
            return self.admit_anonymous(identity, client);
        }
        let subject = Subject::of(&identity.caller, &identity.credential, client);
        self.per_key.as_ref().map_or(Ok(()), |limit| limit.take(subject))?;
        self.admit_tenant(identity)
    }

    fn admit_anonymous(&self, identity: &Identity, client: Option<IpAddr>) -> Result<(), RateExceeded> {
        self.admit_stranger(client)?;
        self.admit_tenant(identity)
    }

    /// Counts one request to a route that needs no identity.
    ///
    /// # Errors
    /// [`RateExceeded`]
    pub fn admit_stranger(&self, client: Option<IpAddr>) -> Result<(), RateExceeded> {
        match (&self.anonymous, client) {
            (Some(limit), Some(client)) => limit.take(Subject::Address(network(client))),
            _ => Ok(()),
        }
    }

    fn admit_tenant(&self, identity: &Identity) -> Result<(), RateExceeded> {
        let Some(limit) = &self.per_tenant else { return Ok(()) };
        limit.take(Subject::Tenant(identity.tenant.clone().unwrap_or_default()))
    }

    /// Checks whether an address may send another credential, which may prove to be invalid. Counts nothing.
    ///
    /// # Errors
    /// [`RateExceeded`]: the address has sent too many invalid credentials.
    pub fn may_fail(&self, client: Option<IpAddr>) -> Result<(), RateExceeded> {
        match (&self.failed, client) {
            (Some(limit), Some(client)) => limit.look(Subject::Address(network(client))),
            _ => Ok(()),
        }
    }

    /// Counts an invalid credential from this address.
    pub fn failed(&self, client: Option<IpAddr>) {
        if let (Some(limit), Some(client)) = (&self.failed, client) {
            // The error is not needed: `may_fail` refuses the next credential.
            let _ = limit.take(Subject::Address(network(client)));
        }
    }
}

/// Returns the network that counts as one client: an IPv4 address, or the /64 network of an IPv6 address.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address => address,
    }
}

#[cfg(test)]
mod tests;
