//! What every handler works with: the use cases, the ports it may ask for their health, and who an
//! anonymous caller is.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane_app::catalog::Catalog;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::plugins::Plugins;
use terrane_app::ports::store::Store;
use terrane_app::ports::warehouse::Warehouse;
use terrane_app::query::QueryService;
use terrane_compiler::SecurityContext;

/// The use cases and ports that the wiring made.
#[derive(Clone)]
pub struct Ports {
    pub queries: Arc<QueryService>,
    pub catalog: Arc<Catalog>,
    pub warehouse: Arc<dyn Warehouse>,
    pub store: Arc<dyn Store>,
    pub plugins: Arc<dyn Plugins>,
    pub clock: Arc<dyn Clock>,
}

/// What the operator set for HTTP.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Shown in the health status.
    pub version: Arc<str>,
    pub body_limit_bytes: usize,
    /// How long a request's body may take to arrive.
    pub body_timeout: Duration,
    /// `None`: every route that demands a scope answers 401.
    pub anonymous: Option<Anonymous>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        HttpSettings {
            version: env!("CARGO_PKG_VERSION").into(),
            body_limit_bytes: 256 * 1024,
            body_timeout: Duration::from_secs(30),
            anonymous: None,
        }
    }
}

/// The caller without credentials.
#[derive(Debug, Clone, Default)]
pub struct Anonymous {
    pub caller: SecurityContext,
    pub scopes: Scopes,
}

/// What a caller may do; routes demand one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Query data, read metadata.
    Read,
    /// Modify definitions, run models.
    Write,
    /// Everything, including security.
    Admin,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        }
    }
}

/// A set of scopes. `admin` holds the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes {
    pub read: bool,
    pub write: bool,
    pub admin: bool,
}

impl Scopes {
    pub const READ: Scopes = Scopes { read: true, write: false, admin: false };

    pub fn hold(self, scope: Scope) -> bool {
        self.admin
            || match scope {
                Scope::Read => self.read,
                Scope::Write => self.write,
                Scope::Admin => false,
            }
    }
}

/// The state of the server; a clone is the same server.
#[derive(Clone)]
pub struct App(Arc<State>);

/// Behind [`App`].
pub struct State {
    pub ports: Ports,
    pub settings: HttpSettings,
    /// As the clock's `elapsed` said then.
    started: Duration,
    draining: AtomicBool,
}

impl App {
    /// The server counts as started now.
    pub fn new(ports: Ports, settings: HttpSettings) -> Self {
        let started = ports.clock.elapsed();
        App(Arc::new(State { ports, settings, started, draining: AtomicBool::new(false) }))
    }

    pub fn uptime(&self) -> Duration {
        self.ports.clock.elapsed().saturating_sub(self.started)
    }

    /// From now on the server says that it isn't ready, so that no new work is sent to it.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

impl Deref for App {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}
