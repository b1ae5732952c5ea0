//! The only way to register a route: it demands to be told who may call it, and what the interface's
//! description says of it.
//!
//! A handler is `async fn(App, Call) -> Result<Response, ApiError>` and runs only after the demand is
//! met. The list of routes is kept, so that a test can find one without a case.

use std::future::Future;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::{MethodFilter, Router, on};

use crate::app::{App, Scope};
use crate::call::Call;
use crate::edge::Matched;
use crate::error::ApiError;
use crate::openapi::Doc;
use crate::wire::parameters::refuse_unknown_parameters;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone, without credentials: the probes.
    Public,
    /// Callers who proved who they are, whatever they may do.
    Identified,
    /// Callers that hold the scope.
    Scoped(Scope),
}

impl Access {
    /// Returns the scope that a caller must hold, if one is required.
    pub(crate) fn scope(self) -> Option<Scope> {
        match self {
            Access::Scoped(scope) => Some(scope),
            Access::Identified | Access::Public => None,
        }
    }
}

/// One method of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    /// What `/openapi.json` says of it.
    pub doc: &'static Doc,
}

/// The treatment of query parameters that a route does not document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnknownParameters {
    Refused,
    Ignored,
}

/// Routes being collected.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<App>,
    list: Vec<Route>,
}

impl Routes {
    pub(crate) fn get<H, F>(self, path: &'static str, access: Access, doc: &'static Doc, handler: H) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        self.add(
            MethodFilter::GET,
            Route { method: Method::GET, path, access, doc },
            UnknownParameters::Refused,
            handler,
        )
    }

    /// As [`Routes::get`], for a caller who may add query parameters of its own.
    pub(crate) fn get_with_any_parameters<H, F>(
        self,
        path: &'static str,
        access: Access,
        doc: &'static Doc,
        handler: H,
    ) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        self.add(
            MethodFilter::GET,
            Route { method: Method::GET, path, access, doc },
            UnknownParameters::Ignored,
            handler,
        )
    }

    pub(crate) fn post<H, F>(self, path: &'static str, access: Access, doc: &'static Doc, handler: H) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        self.add(
            MethodFilter::POST,
            Route { method: Method::POST, path, access, doc },
            UnknownParameters::Refused,
            handler,
        )
    }

    pub(crate) fn delete<H, F>(self, path: &'static str, access: Access, doc: &'static Doc, handler: H) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        self.add(
            MethodFilter::DELETE,
            Route { method: Method::DELETE, path, access, doc },
            UnknownParameters::Refused,
            handler,
        )
    }

    fn add<H, F>(mut self, filter: MethodFilter, route: Route, unknown: UnknownParameters, handler: H) -> Self
    where
        H: Fn(App, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        let (path, access, doc) = (route.path, route.access, route.doc);
        let endpoint = async move |State(app): State<App>, request: Request| {
            Matched::by(&request, path);
            let correlation_id = Call::correlation_id(&request);
            let admitted = Call::admit(&app, access, path, request).await.and_then(|call| {
                if unknown == UnknownParameters::Refused {
                    refuse_unknown_parameters(call.query_string(), doc)?;
                }
                Ok(call)
            });
            let outcome = match admitted {
                Ok(call) => handler(app.clone(), call).await,
                Err(refusal) => Err(refusal),
            };
            outcome.unwrap_or_else(|refusal| refusal.into_response(&correlation_id))
        };
        self.router = self.router.route(path, on(filter, endpoint));
        self.list.push(route);
        self
    }

    pub(crate) fn into_parts(self) -> (Router<App>, Vec<Route>) {
        (self.router, self.list)
    }
}
