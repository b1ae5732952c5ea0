//! The protocols of a server, put together.

use crate::app::App;
use crate::edge::{Edge, Protocols};
use crate::rest::{self, Rest};

impl Edge {
    /// A server of all protocols.
    pub fn new(app: App) -> Self {
        let router = rest::router(app.settings.metrics).with_state(app.clone());
        Edge::of(app, protocols(), router)
    }

    /// A server that answers scrapes and nothing else, without credentials.
    pub fn of_metrics(app: App) -> Self {
        let router = rest::metrics_router(app.settings.metrics).with_state(app.clone());
        Edge::of(app, protocols(), router)
    }
}

fn protocols() -> Protocols {
    Protocols::new(&[], &Rest)
}
