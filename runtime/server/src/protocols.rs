//! The list of a server's protocols.

use axum::routing::Router;

use crate::app::{App, ServedRoutes};
use crate::dax::DaxProtocol;
use crate::edge::{Edge, Protocols, Route};
use crate::graphql;
use crate::rest::{self, Rest};
use crate::xmla::{self, XmlaProtocol};

impl Edge {
    /// Creates a server of all protocols.
    pub fn new(app: App) -> Self {
        let router = router(ServedRoutes::of(&app)).with_state(app.clone());
        Edge::of(app, protocols(), router)
    }

    /// Creates a server that has only the route of metrics and needs no credentials.
    pub fn of_metrics(app: App) -> Self {
        let router = rest::metrics_router(app.settings.metrics).with_state(app.clone());
        Edge::of(app, protocols(), router)
    }
}

fn protocols() -> Protocols {
    let [of_responses, of_json] = graphql::PROTOCOLS;
    Protocols::new(&[of_responses, of_json, &XmlaProtocol, &DaxProtocol], &Rest)
}

fn router(served: ServedRoutes) -> Router<App> {
    rest::router(served).merge(graphql::router()).merge(xmla::router())
}

/// Returns every route, except that of metrics, whose path is a setting.
pub fn routes() -> Vec<Route> {
    routes_with(ServedRoutes::ALL)
}

/// Returns the routes of one server.
pub(crate) fn routes_with(served: ServedRoutes) -> Vec<Route> {
    rest::routes_with(served).into_iter().chain(graphql::routes()).chain(xmla::routes()).collect()
}
