//! The executor: parses documents and runs operations.
//!
//! In: the use cases and settings, then documents with their callers. Out: responses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_graphql::{IntrospectionMode, Request, ValidationMode};
use futures_util::{Stream, StreamExt as _};
use serde_json::{Map, Value as Json};
use terrane_app::limits::quota::QuotaPermit;

use crate::context::{GraphQlContext, GraphQlServices};
use crate::introspection::{self, Description};
use crate::known_operations::{KnownOperations, OperationKey};
use crate::operation::{Operation, OperationKind};
use crate::refusal::Refusal;
use crate::response::Response;
use crate::schema::{self, GraphQlSchema, Modules, RequestState};
use crate::settings::GraphQlSettings;
use crate::shape::TypeTable;

/// The largest number of cached introspection results. Tools send only a few different documents.
const MAX_CACHED: usize = 32;
/// The largest size in bytes of a document whose introspection result is cached.
const MAX_CACHED_TEXT: usize = 16 * 1024;
/// The largest size in bytes of an introspection result that is cached.
const MAX_CACHED_BODY: usize = 512 * 1024;

/// An executor of operations. Clones share the same executor.
#[derive(Clone)]
pub struct GraphQl(Arc<Inner>);

struct Inner {
    services: GraphQlServices,
    settings: GraphQlSettings,
    modules: Modules,
    schema: GraphQlSchema,
    /// The schema for operations that are known to follow its rules. It does not check the rules.
    schema_for_valid: GraphQlSchema,
    known: KnownOperations,
    text: String,
    types: TypeTable,
    description: Option<Description>,
    /// The results of introspection, by the document and the name of the operation.
    introspection: Mutex<HashMap<(String, Option<String>), Response>>,
}

impl GraphQl {
    pub fn new(services: GraphQlServices, settings: GraphQlSettings) -> Self {
        let modules = Modules::of(&services);
        let schema = schema::build(ValidationMode::Strict, modules);
        let text = schema::text(&schema, modules);
        GraphQl(Arc::new(Inner {
            services,
            settings,
            modules,
            schema_for_valid: schema::build(ValidationMode::Fast, modules),
            known: KnownOperations::new(),
            types: TypeTable::new(&text),
            description: Description::of(&schema),
            text,
            schema,
            introspection: Mutex::default(),
        }))
    }

    /// Returns the schema in GraphQL's definition language.
    pub fn schema_text(&self) -> &str {
        &self.0.text
    }

    /// Parses one operation of a document, and checks the document against the limits.
    ///
    /// # Errors
    /// The document is not GraphQL, exceeds a limit, or has no such operation. [`Response::refused`] renders the
    /// refusal.
    pub fn read(
        &self,
        document: &str,
        operation_name: Option<&str>,
        variables: Map<String, Json>,
    ) -> Result<Operation, Refusal> {
        let known = &self.0.known;
        if let Some(operation) = known.get(document, operation_name, &variables) {
            return Ok(operation);
        }
        let key = OperationKey::new(document, operation_name, &variables);
        let operation = Operation::read(document, operation_name, variables, &self.0.settings, &self.0.types)?;
        self.check_modules(&operation)?;
        if let Some(key) = key {
            known.insert(key, operation.clone());
        }
        Ok(operation)
    }

    /// Checks that an operation selects no field of a module that is switched off. The library knows all fields.
    fn check_modules(&self, operation: &Operation) -> Result<(), Refusal> {
        let root = operation.kind();
        let fields = operation.parts().shape.fields();
        match fields.iter().find(|field| !self.0.modules.has(root, &field.name)) {
            Some(field) => {
                let message = format!("Unknown field \"{}\" on type \"{}\".", field.name, root.type_name());
                Err(Refusal::invalid(message, "The schema is at `/graphql/schema.graphql`."))
            }
            None => Ok(()),
        }
    }

    /// Runs a query or a mutation. Errors are part of the response. Dropping the future cancels the operation.
    pub async fn execute(&self, operation: Operation, context: GraphQlContext) -> Response {
        // A result may depend on variables, so only operations without variables are cached.
        let parts = operation.parts();
        let is_cached = parts.shape.is_introspection() && parts.variables.is_empty();
        let key = is_cached.then(|| (parts.text.clone(), parts.name.clone()));
        if let Some(known) = key.as_ref().and_then(|key| self.introspections().get(key).cloned()) {
            return known;
        }
        let correlation_id = Arc::clone(&context.request.correlation_id);
        let (request, state) = self.request(&operation, context);
        let response = match self.0.description.as_ref().filter(|_| is_cached) {
            Some(description) => self.introspect(description, request, &operation, &correlation_id).await,
            None => self.run(request, &state, &operation, &correlation_id).await,
        };
        if response.has_data() {
            operation.set_valid();
        }
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

    async fn run(
        &self,
        request: Request,
        state: &RequestState,
        operation: &Operation,
        correlation_id: &str,
    ) -> Response {
        let executed = self.schema_of(operation).execute(request).await;
        Response::new(executed, &operation.parts().shape, &state.warnings(), correlation_id)
    }

    /// Runs an operation that selects only fields of introspection. The library validates it, and resolves only
    /// operations that [`introspection`] does not.
    async fn introspect(
        &self,
        description: &Description,
        request: Request,
        operation: &Operation,
        correlation_id: &str,
    ) -> Response {
        let mut document = operation.parts().document.clone();
        if operation.kind() != OperationKind::Query || !introspection::skip_roots(&mut document) {
            let executed = self.schema_of(operation).execute(request).await;
            return Response::new(executed, &operation.parts().shape, &[], correlation_id);
        }
        let mut validation = request;
        validation.set_parsed_query(document);
        let executed = self.schema_of(operation).execute(validation).await;
        match executed.errors.is_empty() {
            true => Response::with_data(&description.answer(&operation.parts().shape)),
            false => Response::new(executed, &operation.parts().shape, &[], correlation_id),
        }
    }

    /// Runs a subscription. The stream has one response at once, and one for each change. It ends when the subscription
    /// ends; dropping the stream ends the subscription. A query or a mutation is a stream of one response.
    ///
    /// # Errors
    /// The caller or the server has too many subscriptions. [`Response::refused`] renders the refusal.
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
        let (request, state) = self.request(&operation, context);
        let responses = self.schema_of(&operation).execute_stream(request);
        Ok(responses.map(move |executed| {
            // Moving the permit into the closure holds it until the stream is dropped.
            let _permit = &permit;
            Response::new(executed, &operation.parts().shape, &state.warnings(), &correlation_id)
        }))
    }

    fn admit(&self, context: &GraphQlContext) -> Result<QuotaPermit, Refusal> {
        let permit = self.0.services.live.admit(&context.request, &context.credential);
        permit.map_err(|error| Refusal::new(error.into()))
    }

    fn schema_of(&self, operation: &Operation) -> &GraphQlSchema {
        if operation.is_valid() { &self.0.schema_for_valid } else { &self.0.schema }
    }

    fn request(&self, operation: &Operation, context: GraphQlContext) -> (Request, Arc<RequestState>) {
        let parts = operation.parts();
        let state = Arc::new(RequestState::new(self.0.services.clone(), self.0.settings.limits, context));
        // The executor uses the parsed document, so the request needs no text.
        let mut request = Request::new("").variables(parts.variables.clone()).data(Arc::clone(&state));
        request.operation_name = parts.name.clone();
        // If introspection is switched off, operations with introspection fields were refused before.
        request.introspection_mode = IntrospectionMode::Enabled;
        request.set_parsed_query(parts.document.clone());
        (request, state)
    }

    fn introspections(&self) -> std::sync::MutexGuard<'_, HashMap<(String, Option<String>), Response>> {
        self.0.introspection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
