//! The caller of an operation, and the use cases that resolvers call.

use std::sync::Arc;

use terrane_app::catalog::Catalog;
use terrane_app::cost::{CostPredictor, CostService, GuardrailService};
use terrane_app::domain::{Identity, RequestContext};
use terrane_app::governance::GovernanceService;
use terrane_app::invalidation::InvalidationService;
use terrane_app::jobs::JobService;
use terrane_app::live::LiveService;
use terrane_app::monitors::MonitorService;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::warehouse::Warehouse;
use terrane_app::preaggregations::Preaggregations;
use terrane_app::profiling::ProfileArchive;
use terrane_app::query::QueryService;
use terrane_app::questions::QuestionService;
use terrane_app::search::SearchService;
use terrane_app::security::AccessRecorder;
use terrane_app::services::{ServerServices, Services};

/// The caller of an operation and the facts about the request.
#[derive(Debug, Clone, Default)]
pub struct GraphQlContext {
    /// The admitted request. Its scopes include `read`.
    pub request: RequestContext,
    /// The id of the caller's key or session, which is not a secret.
    pub credential: Arc<str>,
}

impl GraphQlContext {
    /// Returns the identity under which the caller owns jobs.
    pub(crate) fn identity(&self) -> Identity {
        let RequestContext { caller, scopes, tenant, .. } = &self.request;
        Identity {
            caller: caller.clone(),
            scopes: *scopes,
            credential: Arc::clone(&self.credential),
            tenant: tenant.clone(),
        }
    }
}

/// The use cases that resolvers call.
#[derive(Clone)]
pub struct GraphQlServices {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) queries: Arc<QueryService>,
    pub(crate) live: Arc<LiveService>,
    /// The search, or `None` if it is switched off.
    pub(crate) search: Option<Arc<SearchService>>,
    /// The service that interprets questions, or `None` if search is switched off.
    pub(crate) questions: Option<Arc<QuestionService>>,
    pub(crate) warehouse: Arc<dyn Warehouse>,
    pub(crate) access: Arc<AccessRecorder>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The use cases of the server, or `None` on the command line.
    pub(crate) server: Option<ServerUseCases>,
}

/// The use cases that need the state database of a server.
#[derive(Clone)]
pub(crate) struct ServerUseCases {
    pub(crate) invalidations: Arc<InvalidationService>,
    pub(crate) preaggregations: Arc<Preaggregations>,
    pub(crate) jobs: Arc<JobService>,
    /// The governance service, or `None` if the module is switched off.
    pub(crate) governance: Option<Arc<GovernanceService>>,
    /// The service of costs, or `None` if the module is switched off.
    pub(crate) cost: Option<Arc<CostService>>,
    pub(crate) guardrails: Option<Arc<GuardrailService>>,
    pub(crate) predictor: Option<Arc<CostPredictor>>,
    /// The stored profiles, or `None` if profiling is switched off.
    pub(crate) profiles: Option<Arc<ProfileArchive>>,
    /// The monitors, or `None` if they are switched off.
    pub(crate) monitors: Option<Arc<MonitorService>>,
}

impl From<&ServerServices> for GraphQlServices {
    fn from(services: &ServerServices) -> Self {
        let server = ServerUseCases {
            invalidations: Arc::clone(&services.invalidations),
            preaggregations: Arc::clone(&services.preaggregations),
            jobs: Arc::clone(&services.jobs),
            governance: services.governance.clone(),
            cost: services.cost.clone(),
            guardrails: services.guardrails.clone(),
            predictor: services.predictor.clone(),
            profiles: services.profiles.clone(),
            monitors: services.monitors.clone(),
        };
        GraphQlServices {
            catalog: Arc::clone(&services.catalog),
            queries: Arc::clone(&services.queries),
            live: Arc::clone(&services.live),
            search: services.search.clone(),
            questions: services.questions.clone(),
            warehouse: Arc::clone(&services.warehouse),
            access: Arc::clone(&services.access),
            clock: Arc::clone(&services.clock),
            server: Some(server),
        }
    }
}

impl From<&Services> for GraphQlServices {
    fn from(services: &Services) -> Self {
        GraphQlServices {
            catalog: Arc::clone(&services.catalog),
            queries: Arc::clone(&services.queries),
            live: Arc::clone(&services.live),
            search: Some(Arc::clone(&services.search)),
            questions: Some(Arc::new(QuestionService::new(
                Arc::clone(&services.queries),
                Arc::clone(&services.search),
                None,
            ))),
            warehouse: Arc::clone(&services.warehouse),
            access: Arc::clone(&services.access),
            clock: Arc::clone(&services.clock),
            server: None,
        }
    }
}
