//! Limits the number of sockets.
//!
//! In: clients who open a socket, and callers who open its session. Out: a place, which is released when it is dropped,
//! or an error. Not here: subscriptions (`app::live`), the limit of operations of one socket (`socket::session`), and
//! the rate of requests (`app::limits`).

use std::net::IpAddr;
use std::sync::Arc;

use terrane_app::domain::RequestContext;
use terrane_app::limits::Subject;
use terrane_app::limits::quota::{Quota, QuotaPermit, QuotaSettings};
use terrane_wire::{Code, ErrorBody};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::settings::GraphQlHttpSettings;

/// The places of one server.
pub(crate) struct Places {
    sockets: Arc<Semaphore>,
    /// Sockets without a session, by the client's address.
    opening: Quota,
    max_opening: usize,
    /// Sockets with a session, by the caller.
    opened: Quota,
    max_opened: usize,
}

/// The bound that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Sockets,
    /// The sockets of one address that have no session yet.
    Opening {
        max: usize,
    },
    /// The sockets of one caller.
    Caller {
        max: usize,
    },
}

impl From<Full> for ErrorBody {
    fn from(full: Full) -> Self {
        match full {
            Full::Sockets => ErrorBody::new(Code::Overloaded, "too many open sockets; retry later"),
            Full::Opening { max } => {
                let message = format!("too many sockets of this address without a session; allowed: {max}");
                ErrorBody::new(Code::RateLimited, message)
            }
            Full::Caller { max } => {
                ErrorBody::new(Code::RateLimited, format!("too many sockets of this caller; allowed: {max}"))
            }
        }
    }
}

/// The permits that a socket holds until it is closed.
#[derive(Debug)]
pub(super) struct SocketPlace {
    _socket: OwnedSemaphorePermit,
    /// The permit of a socket without an open session; `None` if the session is open.
    opening: Option<QuotaPermit>,
    /// The permit of an open session; `None` if the caller is unknown.
    opened: Option<QuotaPermit>,
}

impl Places {
    pub(crate) fn new(settings: &GraphQlHttpSettings) -> Self {
        let quota = |per_subject| Quota::new(QuotaSettings { total: settings.max_sockets, per_subject });
        Places {
            sockets: Arc::new(Semaphore::new(settings.max_sockets)),
            opening: quota(settings.max_opening_sockets_per_address),
            max_opening: settings.max_opening_sockets_per_address,
            opened: quota(settings.max_sockets_per_caller),
            max_opened: settings.max_sockets_per_caller,
        }
    }

    /// Returns the place of a socket whose caller may be unknown.
    pub(super) fn socket(&self, client: Option<IpAddr>) -> Result<SocketPlace, Full> {
        let socket = self.sockets.clone().try_acquire_owned().map_err(|_| Full::Sockets)?;
        let opening = self.opening.take(Subject::of_address(client));
        let opening = opening.map_err(|_| Full::Opening { max: self.max_opening })?;
        Ok(SocketPlace { _socket: socket, opening: Some(opening), opened: None })
    }

    /// Counts a socket for its caller, once. `credential` is the id of the caller's key or session.
    pub(super) fn identify(
        &self,
        place: &mut SocketPlace,
        caller: &RequestContext,
        credential: &Arc<str>,
    ) -> Result<(), Full> {
        if place.opened.is_none() {
            let opened = self.opened.take(Subject::of(&caller.caller, credential, caller.client));
            place.opened = Some(opened.map_err(|_| Full::Caller { max: self.max_opened })?);
        }
        Ok(())
    }
}

impl SocketPlace {
    /// Records that the session is open.
    pub(super) fn open(&mut self) {
        self.opening = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn sockets_are_limited_by_address_until_they_are_open_and_by_caller_then() {
        let settings = GraphQlHttpSettings {
            max_sockets: 4,
            max_sockets_per_caller: 2,
            max_opening_sockets_per_address: 1,
            ..GraphQlHttpSettings::default()
        };
        let places = Places::new(&settings);
        let caller = |last| RequestContext { client: address(last), ..RequestContext::default() };
        let opened = |last| {
            let mut place = places.socket(address(last))?;
            places.identify(&mut place, &caller(last), &"".into())?;
            places.identify(&mut place, &caller(last), &"".into())?;
            place.open();
            Ok::<_, Full>(place)
        };
        let first = opened(1).unwrap();
        let _second = opened(1).unwrap();
        assert_eq!(opened(1).unwrap_err(), Full::Caller { max: 2 });
        let opening = places.socket(address(1)).unwrap();
        assert_eq!(places.socket(address(1)).unwrap_err(), Full::Opening { max: 1 });
        let other = opened(2).unwrap();
        assert_eq!(opened(2).unwrap_err(), Full::Sockets);
        drop((first, opening));
        assert!(opened(1).is_ok());
        drop(other);
        assert_eq!(places.sockets.available_permits(), 3);
    }
}
