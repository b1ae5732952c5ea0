//! The state of one request: its caller, the project that it sees, and the queries that it runs.
//!
//! In: queries of resolvers. Out: answers. Equal queries of one document are executed once. Different queries run at
//! the same time, each with its own permit, up to the limit of a document.

use std::sync::{Arc, Mutex, PoisonError};

use async_graphql::Context;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use jiff::Timestamp;
use terrane_app::catalog::Snapshot;
use terrane_app::domain::{QueryKind, RequestContext, Surface};
use terrane_app::governance::Badges;
use terrane_app::query::Answer;
use terrane_compiler::Access;
use terrane_compiler::query::{Filter, SemanticQuery};
use terrane_wire::{ErrorBody, QueryForm};

use super::item_count::{self, ItemCount};
use crate::context::{GraphQlContext, GraphQlServices, ServerUseCases};
use crate::failure::Failure;
use crate::limits::Exceeded;
use crate::settings::Limits;

type Execution = Shared<BoxFuture<'static, Result<Arc<Answer>, Failure>>>;

/// The state of one request.
pub(crate) struct RequestState {
    pub(crate) parts: Arc<RequestParts>,
    limits: Limits,
    items: ItemCount,
    /// The executions so far. They do not refer to this state, so they end if the request is dropped.
    executions: Mutex<Vec<(SemanticQuery, Execution)>>,
    warnings: Mutex<Vec<FieldWarning>>,
}

/// A warning about the result of a root field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldWarning {
    /// The name or the alias of the field.
    pub(crate) field: String,
    pub(crate) message: String,
}

/// The parts of a request that its queries need.
pub(crate) struct RequestParts {
    pub(crate) services: GraphQlServices,
    pub(crate) context: GraphQlContext,
    /// The version of the project that all fields see.
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) now: Timestamp,
}

impl RequestState {
    pub(crate) fn new(services: GraphQlServices, limits: Limits, context: GraphQlContext) -> Self {
        let (snapshot, now) = (services.catalog.snapshot(), services.clock.now());
        let parts = Arc::new(RequestParts { services, context, snapshot, now });
        RequestState {
            parts,
            limits,
            items: ItemCount::new(limits.items),
            executions: Mutex::default(),
            warnings: Mutex::default(),
        }
    }

    /// Counts the fields in a list that the current field returns, including those of the lists below it. `lists` takes
    /// the name of a list, and returns the total number of items in all lists of this name below the field.
    ///
    /// # Errors
    /// The document resolves too many fields.
    pub(crate) fn count(
        &self,
        context: &Context<'_>,
        items: usize,
        lists: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<(), Failure> {
        self.count_items(item_count::of_list(context, items, lists))
    }

    /// Adds warnings about a root field, which the response contains as `extensions.warnings`.
    pub(crate) fn warn(&self, context: &Context<'_>, messages: &[String]) {
        let field = context.item.node.response_key().node.as_str();
        let warnings =
            messages.iter().map(|message| FieldWarning { field: field.to_owned(), message: message.clone() });
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    /// Returns the warnings of all fields, in the order of the fields' names.
    pub(crate) fn warnings(&self) -> Vec<FieldWarning> {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Fields are resolved in any order.
        warnings.sort_by(|one, other| one.field.cmp(&other.field));
        warnings
    }

    /// Counts items. A call with 0 items fails only if the document has resolved too many items before.
    pub(crate) fn count_items(&self, items: u64) -> Result<(), Failure> {
        self.items.add(items).map_err(|exceeded| ErrorBody::from(exceeded).into())
    }

    /// Returns the answer of a query, and whether another field of the document has requested it before. Equal queries
    /// share one execution.
    pub(crate) async fn run(&self, mut query: SemanticQuery) -> Result<(Arc<Answer>, bool), Failure> {
        // If every member names its cube, `query.cube` has no effect. It is removed, so that equal queries from the
        // fields of different cubes share one execution.
        if !uses_cube(&query) {
            query.cube = None;
        }
        let (execution, is_repeated) = self.execution(query)?;
        Ok((execution.await?, is_repeated))
    }

    fn execution(&self, query: SemanticQuery) -> Result<(Execution, bool), Failure> {
        let mut executions = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = executions.iter().find(|(known, _)| *known == query) {
            return Ok((known.clone(), true));
        }
        if executions.len() >= self.limits.executions {
            return Err(ErrorBody::from(Exceeded::new("executions", self.limits.executions, None)).into());
        }
        let parts = Arc::clone(&self.parts);
        let asked = query.clone();
        let execution = async move { parts.run(&asked).await.map(Arc::new) }.boxed().shared();
        executions.push((query, execution.clone()));
        Ok((execution, false))
    }
}

impl RequestParts {
    /// Returns the parts of the same request with another snapshot, for a subscription whose answer has changed.
    pub(crate) fn over(&self, snapshot: Arc<Snapshot>, now: Timestamp) -> Self {
        RequestParts { services: self.services.clone(), context: self.context.clone(), snapshot, now }
    }

    /// Returns the request for queries of a kind.
    pub(crate) fn request(&self, kind: QueryKind) -> RequestContext {
        self.context.request.with_kind(kind)
    }

    /// Returns the request for a statement that is not executed.
    pub(crate) fn statement_request(&self, kind: QueryKind) -> RequestContext {
        RequestContext { surface: Surface::SqlOnly, ..self.request(kind) }
    }

    async fn run(&self, query: &SemanticQuery) -> Result<Answer, Failure> {
        let request = self.request(QueryKind::Graphql);
        let session = self.services.queries.session_over(&request, Arc::clone(&self.snapshot), self.now);
        let answer = async { session.prepare(query).await?.run().await }.await;
        answer.map_err(|error| self.failure(error))
    }

    /// Converts the error of a query to the form that the caller may see.
    pub(crate) fn failure(&self, error: terrane_app::query::QueryRunError) -> Failure {
        ErrorBody::from_run_in(QueryForm::Graphql, error, self.context.request.scopes).into()
    }

    /// Returns the caller's access to the model.
    pub(crate) fn access(&self) -> Access<'_> {
        Access::of(&self.snapshot.model, &self.context.request.caller)
    }

    /// Returns the certifications of the artifacts that the caller may see, or nothing without governance.
    pub(crate) async fn badges(&self) -> Badges {
        match self.services.server.as_ref().and_then(|server| server.governance.as_ref()) {
            Some(governance) => governance.badges(&self.snapshot, &self.context.request).await,
            None => Badges::default(),
        }
    }

    /// Returns the use cases of a server.
    ///
    /// # Errors
    /// The command line runs the operation, without a server.
    pub(crate) fn server(&self) -> Result<&ServerUseCases, Failure> {
        let missing = || ErrorBody::new(terrane_wire::Code::Conflict, "this field needs a running server").into();
        self.services.server.as_ref().ok_or_else(missing)
    }
}

/// Returns the state of the current request, which the executor adds to every request.
pub(crate) fn state<'c>(context: &Context<'c>) -> &'c RequestState {
    context.data_unchecked::<Arc<RequestState>>()
}

/// Returns whether at least one member of a query is written without its cube.
fn uses_cube(query: &SemanticQuery) -> bool {
    fn in_filter(filter: &Filter) -> bool {
        match filter {
            Filter::Condition { member, .. } => member.cube().is_none(),
            Filter::And(all) | Filter::Or(all) => all.iter().any(in_filter),
            Filter::Not(inner) => in_filter(inner),
            Filter::NoRow { .. } => false,
        }
    }
    let lists = query.values.iter().chain(&query.dimensions).chain(&query.segments);
    let times = query.time_dimensions.iter().map(|time| &time.member);
    let range = query.time_range.iter().filter_map(|range| range.member.as_ref());
    let order = query.order.iter().map(|order| &order.member);
    lists.chain(times).chain(range).chain(order).any(|member| member.cube().is_none())
        || query.filters.iter().any(in_filter)
}
