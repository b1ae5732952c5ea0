//! The only way to register a route: with the access that it requires and with its description.
//!
//! In: handlers `async fn(App, Call) -> Result<Response, ApiError>`, which run only for admitted requests. Out: a
//! router, and the list of its routes, with which a test finds routes that no test case covers. Errors are rendered by
//! the protocol of the request.

use std::future::Future;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::{MethodFilter, Router, on};
use terrane_wire::parameters::{KnownParameter, check_parameters};

use super::call::{Call, correlation_id};
use super::error::ApiError;
use super::protocol::protocol_of;
use super::request_log::Matched;
use crate::app::{App, Scope};
use crate::openapi::{Doc, ParameterPlace};

/// The access that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    /// All callers, without credentials.
    Public,
    /// Authenticated callers, whatever their scopes.
    Identified,
    /// Callers that hold the scope.
    Scoped(Scope),
}

impl RouteAccess {
    /// Returns the scope that a caller must hold, if one is required.
    pub(super) fn scope(self) -> Option<Scope> {
        match self {
            RouteAccess::Scoped(scope) => Some(scope),
            RouteAccess::Identified | RouteAccess::Public => None,
        }
    }
}

/// One method of one path.
#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    pub access: RouteAccess,
    /// The description in `/openapi.json`.
    pub doc: &'static Doc,
}

/// The treatment of query parameters that a route does not describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownParameters {
    Rejected,
    Ignored,
}

/// Collects routes and their handlers.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<App>,
    list: Vec<Route>,
}

impl Routes {
    pub(crate) fn get<H, F>(self, path: &'static str, access: RouteAccess, doc: &'static Doc, handler: H) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        self.on(Method::GET, path, access, doc, handler)
    }

    pub(crate) fn post<H, F>(self, path: &'static str, access: RouteAccess, doc: &'static Doc, handler: H) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        self.on(Method::POST, path, access, doc, handler)
    }

    pub(crate) fn on<H, F>(
        self,
        method: Method,
        path: &'static str,
        access: RouteAccess,
        doc: &'static Doc,
        handler: H,
    ) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        self.add(Route { method, path, access, doc }, UnknownParameters::Rejected, handler)
    }

    /// Adds a route.
    ///
    /// # Panics
    /// If HTTP does not define the method, or the path already has a route for it.
    pub(crate) fn add<H, F>(self, route: Route, unknown: UnknownParameters, handler: H) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        self.add_exempting(route, |_| false, unknown, handler)
    }

    /// Adds a route. `is_public` selects the requests of the route that need no credential, such as those for a page,
    /// or those whose credential comes in a later message.
    ///
    /// # Panics
    /// If HTTP does not define the method, or the path already has a route for it.
    pub(crate) fn add_exempting<H, F>(
        mut self,
        route: Route,
        is_public: fn(&Request) -> bool,
        unknown: UnknownParameters,
        handler: H,
    ) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        let (path, access, doc) = (route.path, route.access, route.doc);
        let endpoint = async move |State(app): State<App>, request: Request| {
            Matched::by(&request, path);
            let (correlation_id, protocol) = (correlation_id(&request), protocol_of(&request));
            let access = if is_public(&request) { RouteAccess::Public } else { access };
            let admitted = Call::admit(&app, access, path, request).await.and_then(|call| {
                if unknown == UnknownParameters::Rejected {
                    let known = doc.parameters.iter().filter(|parameter| parameter.place == ParameterPlace::Query);
                    let known =
                        known.map(|parameter| KnownParameter { name: parameter.name, repeats: parameter.repeats });
                    check_parameters(call.query_string(), known)?;
                }
                Ok(call)
            });
            let outcome = match admitted {
                Ok(call) => handler(app.clone(), call).await,
                Err(error) => Err(error),
            };
            outcome.unwrap_or_else(|error| protocol.render(error, &correlation_id))
        };
        let filter = MethodFilter::try_from(route.method.clone()).expect("a method of HTTP");
        self.router = self.router.route(path, on(filter, endpoint));
        self.list.push(route);
        self
    }

    pub(crate) fn into_parts(self) -> (Router<App>, Vec<Route>) {
        (self.router, self.list)
    }
}
