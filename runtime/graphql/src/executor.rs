//! The executor: reads documents and runs operations.
//!
//! In: the use cases and settings, then documents with their callers. Out: responses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_graphql::{IntrospectionMode, Request};
use futures_util::{Stream, StreamExt as _};
use serde_json::{Map, Value as Json};
use terrane_app::limits::quota::QuotaPermit;

use crate::context::{GraphQlContext, GraphQlServices};
use crate::operation::{Operation, OperationKind};
use crate::refusal::Refusal;
use crate::response::Response;
use crate::schema::{self, GraphQlSchema, RequestState};
use crate::settings::GraphQlSettings;
use crate::shape::TypeTable;

/// The most introspection results that are kept. Tools send a few different ones.
const MAX_CACHED: usize = 32;
/// The bytes of a document whose introspection result is kept.
const MAX_CACHED_TEXT: usize = 16 * 1024;
/// The bytes of an introspection result that is kept.
const MAX_CACHED_BODY: usize = 512 * 1024;

/// Executes operations. A clone is the same executor.
#[derive(Clone)]
pub struct GraphQl(Arc<Inner>);

struct Inner {
    services: GraphQlServices,
    settings: GraphQlSettings,
    schema: GraphQlSchema,
    text: String,
    types: TypeTable,
    /// Results of introspection by their document.
    introspection: Mutex<HashMap<(String, Option<String>), Response>>,
}

impl GraphQl {
    pub fn new(services: GraphQlServices, settings: GraphQlSettings) -> Self {
        let schema = schema::build();
        let text = schema::text(&schema);
        let types = TypeTable::new(&text);
        GraphQl(Arc::new(Inner { services, settings, schema, text, types, introspection: Mutex::default() }))
    }

    /// Returns the schema in GraphQL's definition language.
    pub fn schema_text(&self) -> &str {
        &self.0.text
    }

    /// Reads one operation of a document, and checks it against the limits.
    ///
    /// # Errors
    /// The document is not GraphQL, exceeds a limit, or has no such operation. [`Response::refused`] renders it.
    pub fn read(
        &self,
        document: &str,
        operation_name: Option<&str>,
        variables: Map<String, Json>,
    ) -> Result<Operation, Refusal> {
        Operation::read(document, operation_name, variables, &self.0.settings, &self.0.types)
    }

    /// Runs a query or a mutation. Errors are part of the response. Dropping the future cancels the operation.
    pub async fn execute(&self, operation: Operation, context: GraphQlContext) -> Response {
        let inner = &self.0;
        // A result with variables may depend on them.
        let is_cached = operation.shape.is_introspection() && operation.variables.is_empty();
        let key = is_cached.then(|| (operation.text.clone(), operation.name.clone()));
        if let Some(known) = key.as_ref().and_then(|key| self.introspections().get(key).cloned()) {
            return known;
        }
        let correlation_id = Arc::clone(&context.request.correlation_id);
        let Operation { document, text, name, variables, shape, .. } = operation;
        let request = self.request(document, text, name, variables, context);
        let response = Response::new(inner.schema.execute(request).await, &shape, &correlation_id);
        let is_small = |text: &str| text.len() <= MAX_CACHED_TEXT && response.body().len() <= MAX_CACHED_BODY;
        if let Some(key) = key.filter(|(text, _)| is_small(text) && response.codes().is_empty()) {
            let mut known = self.introspections();
            if known.len() >= MAX_CACHED {
                known.clear();
            }
            known.insert(key, response.clone());
        }
        response
    }

    /// Runs a subscription: one response at once, and one for each change. The stream ends when the subscription does;
    /// dropping it ends the subscription. A query or a mutation is one response.
    ///
    /// # Errors
    /// The caller or the server has too many subscriptions. [`Response::refused`] renders it.
    pub fn subscribe(
        &self,
        operation: Operation,
        context: GraphQlContext,
    ) -> Result<impl Stream<Item = Response> + Send + use<>, Refusal> {
        let permit = match operation.kind() {
            OperationKind::Subscription => Some(self.admit(&context)?),
            OperationKind::Query | OperationKind::Mutation => None,
        };
        let correlation_id = Arc::clone(&context.request.correlation_id);
        let Operation { document, text, name, variables, shape, .. } = operation;
        let request = self.request(document, text, name, variables, context);
        let responses = self.0.schema.execute_stream(request);
        Ok(responses.map(move |executed| {
            // The permit ends with the stream.
            let _permit = &permit;
            Response::new(executed, &shape, &correlation_id)
        }))
    }

    fn admit(&self, context: &GraphQlContext) -> Result<QuotaPermit, Refusal> {
        let permit = self.0.services.live.admit(&context.request, &context.credential);
        permit.map_err(|error| Refusal::new(error.into()))
    }

    fn request(
        &self,
        document: async_graphql::parser::types::ExecutableDocument,
        text: String,
        name: Option<String>,
        variables: async_graphql::Variables,
        context: GraphQlContext,
    ) -> Request {
        let state = RequestState::new(self.0.services.clone(), self.0.settings.limits, context);
        let mut request = Request::new(text).variables(variables).data(Arc::new(state));
        request.operation_name = name;
        // Operations that introspect are refused before.
        request.introspection_mode = IntrospectionMode::Enabled;
        request.set_parsed_query(document);
        request
    }

    fn introspections(&self) -> std::sync::MutexGuard<'_, HashMap<(String, Option<String>), Response>> {
        self.0.introspection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
