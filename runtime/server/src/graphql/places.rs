//! Bounds on sockets and on subscriptions.
//!
//! In: callers who open a socket or start a subscription. Out: a place, which is free again when it is dropped, or an
//! error. Absent on purpose: the bound of one socket (`socket::session`), and the rate of requests (`app::limits`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use terrane_app::domain::{AuthMethod, RequestContext};
use terrane_wire::{Code, ErrorBody};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::settings::GraphQlHttpSettings;

/// The places of one server.
pub(crate) struct Places {
    sockets: Arc<Semaphore>,
    subscriptions: Arc<Semaphore>,
    max_per_caller: usize,
    callers: Arc<Callers>,
}

/// The number of subscriptions of each caller that has some.
#[derive(Default)]
struct Callers(Mutex<HashMap<Box<str>, usize>>);

/// The bound that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Sockets,
    Subscriptions,
    /// The subscriptions of one caller.
    Caller {
        max: usize,
    },
}

impl From<Full> for ErrorBody {
    fn from(full: Full) -> Self {
        match full {
            Full::Sockets => ErrorBody::new(Code::Overloaded, "too many open sockets; retry later"),
            Full::Subscriptions => ErrorBody::new(Code::Overloaded, "too many subscriptions; retry later"),
            Full::Caller { max } => {
                let message = format!("too many subscriptions of this caller; allowed: {max}");
                ErrorBody::new(Code::RateLimited, message)
            }
        }
    }
}

/// The place of a subscription.
#[derive(Debug)]
pub(super) struct SubscriptionPlace {
    _permit: OwnedSemaphorePermit,
    callers: Arc<Callers>,
    caller: Box<str>,
}

impl Places {
    pub(crate) fn new(settings: &GraphQlHttpSettings) -> Self {
        Places {
            sockets: Arc::new(Semaphore::new(settings.max_sockets)),
            subscriptions: Arc::new(Semaphore::new(settings.max_subscriptions)),
            max_per_caller: settings.max_subscriptions_per_caller,
            callers: Arc::default(),
        }
    }

    pub(super) fn socket(&self) -> Result<OwnedSemaphorePermit, Full> {
        self.sockets.clone().try_acquire_owned().map_err(|_| Full::Sockets)
    }

    /// Returns the place of a subscription. `credential` is the id of the caller's key or session.
    pub(super) fn subscription(&self, caller: &RequestContext, credential: &str) -> Result<SubscriptionPlace, Full> {
        self.subscription_of(name(caller, credential))
    }

    fn subscription_of(&self, caller: Box<str>) -> Result<SubscriptionPlace, Full> {
        let permit = self.subscriptions.clone().try_acquire_owned().map_err(|_| Full::Subscriptions)?;
        let mut callers = self.callers.lock();
        let count = callers.entry(caller.clone()).or_default();
        if *count >= self.max_per_caller {
            return Err(Full::Caller { max: self.max_per_caller });
        }
        *count += 1;
        drop(callers);
        Ok(SubscriptionPlace { _permit: permit, callers: self.callers.clone(), caller })
    }
}

impl Callers {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, usize>> {
        // A count is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Callers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callers").finish_non_exhaustive()
    }
}

impl Drop for SubscriptionPlace {
    fn drop(&mut self) {
        let mut callers = self.callers.lock();
        if let Some(count) = callers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                callers.remove(&self.caller);
            }
        }
    }
}

/// Names a caller: by the key, the user with all their tokens, or the address of an anonymous client.
fn name(context: &RequestContext, credential: &str) -> Box<str> {
    match context.caller.auth_method {
        AuthMethod::Anonymous => context.client.map(|client| client.to_string()).unwrap_or_default().into(),
        AuthMethod::ApiKey => credential.into(),
        AuthMethod::Jwt | AuthMethod::OAuth | AuthMethod::Operator => format!("user:{}", context.caller.user_id).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        let settings = GraphQlHttpSettings {
            max_sockets: 1,
            max_subscriptions: 3,
            max_subscriptions_per_caller: 2,
            ..GraphQlHttpSettings::default()
        };
        Places::new(&settings)
    }

    #[test]
    fn subscriptions_are_limited_for_each_caller_and_in_total() {
        let places = places();
        let of = |caller: &str| places.subscription_of(caller.into());
        let (first, second) = (of("a").unwrap(), of("a").unwrap());
        assert_eq!(of("a").unwrap_err(), Full::Caller { max: 2 });
        let other = of("b").unwrap();
        assert_eq!(of("c").unwrap_err(), Full::Subscriptions);
        drop(first);
        let third = of("a").unwrap();
        drop((second, other, third));
        assert!(places.callers.lock().is_empty());
        assert_eq!(places.subscriptions.available_permits(), 3);
    }

    #[test]
    fn sockets_are_limited() {
        let places = places();
        let socket = places.socket().unwrap();
        assert_eq!(places.socket().unwrap_err(), Full::Sockets);
        drop(socket);
        assert!(places.socket().is_ok());
    }
}
