//! Assembles the use cases from ports and settings. They are assembled only here.
//!
//! In: adapters behind ports, settings, and a loaded project. Out: [`Services`] for a command of the operator, or
//! [`ServerServices`] for a server with a state database. The server, the command line, tests and benchmarks use the
//! same functions. Not here: configuration, and the creation of adapters.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use crate::anomaly::AnomalyService;
use crate::builds::Builds;
use crate::catalog::{Catalog, Snapshot};
use crate::cost::{
    BudgetLedger, CostPorts, CostPredictor, CostService, ExecutionLog, GuardrailPorts, GuardrailService,
    GuardrailTable, HistoryRetention, Prices, ScanSizes,
};
use crate::data_tests::{DataTestPorts, DataTestService, DataTestSettings, DataTestTask, ProjectCases};
use crate::data_versions::DataVersions;
use crate::dax::sessions::DaxSessions;
use crate::dimension_values::lists::ValueLists;
use crate::domain::RequestContext;
use crate::governance::{
    ApprovalService, ArtifactNotes, Badges, GovernanceMaintenance, GovernancePorts, GovernanceService,
    GovernanceSettings,
};
use crate::invalidation::InvalidationService;
use crate::jobs::{JobMaintenance, JobPorts, JobRunner, JobService, JobSettings, JobTexts};
use crate::limits::quota::QuotaSettings;
use crate::live::{self, LiveService};
use crate::maintenance::{Maintenance, MaintenanceSettings};
use crate::monitors::{DeliveryTask, MonitorPorts, MonitorService, MonitorTask};
use crate::ports::audit::AuditLog;
use crate::ports::budgets::Budgets;
use crate::ports::builder::ModelBuilder;
use crate::ports::channels::AlertChannels;
use crate::ports::checks::Checks;
use crate::ports::clock::Clock;
use crate::ports::credentials::Credentials;
use crate::ports::data_tests::DataTestRecords;
use crate::ports::deliveries::DeliveryRecords;
use crate::ports::detectors::Detectors;
use crate::ports::executed_queries::ExecutedQueries;
use crate::ports::governance::Governance;
use crate::ports::governance_records::GovernanceRecords;
use crate::ports::guardrails::GuardrailRecords;
use crate::ports::invalidations::Invalidations;
use crate::ports::jobs::Jobs;
use crate::ports::leases::Leases;
use crate::ports::monitors::MonitorRecords;
use crate::ports::observer::Observer;
use crate::ports::plugins::Plugins;
use crate::ports::profiles::ProfileRecords;
use crate::ports::projects::{ProjectFiles, ProjectTexts};
use crate::ports::providers::IdentityProvider;
use crate::ports::registrations::Registrations;
use crate::ports::results::JobResults;
use crate::ports::retention::Retention;
use crate::ports::store::Store;
use crate::ports::tokens::{Passwords, Randomness, Tokens};
use crate::ports::warehouse::Warehouse;
use crate::preaggregations::{PreaggregationBackend, PreaggregationPorts, PreaggregationSettings, Preaggregations};
use crate::profiling::{ProfileArchive, ProfileTexts, ProfilingService};
use crate::projects::{ProjectPorts, ProjectService};
use crate::query::{LimiterSettings, QueryPorts, QueryService, QuerySettings};
use crate::questions::{ModelBackend, ModelReader, QuestionService};
use crate::search::SearchService;
use crate::security::oauth::{OAuth, StateTokenKey, Transport};
use crate::security::{AccessRecorder, AcknowledgeKey, AuditBuffer, Authenticator, SecurityPorts, SessionSettings};
use crate::worker::{LeaseSettings, Worker};

/// The ports that every process needs.
#[derive(Clone)]
pub struct ServicePorts {
    pub warehouse: Arc<dyn Warehouse>,
    pub builder: Arc<dyn ModelBuilder>,
    pub plugins: Arc<dyn Plugins>,
    pub governance: Arc<dyn Governance>,
    pub detectors: Arc<dyn Detectors>,
    pub checks: Arc<dyn Checks>,
    pub clock: Arc<dyn Clock>,
    pub observer: Arc<dyn Observer>,
}

/// The use cases that answer questions about a project, and the ports that surfaces use directly.
pub struct Services {
    pub catalog: Arc<Catalog>,
    pub queries: Arc<QueryService>,
    pub live: Arc<LiveService>,
    pub versions: Arc<DataVersions>,
    pub anomalies: Arc<AnomalyService>,
    pub profiling: Arc<ProfilingService>,
    pub search: Arc<SearchService>,
    /// The lists of values that searches examine.
    values: Arc<ValueLists>,
    pub access: Arc<AccessRecorder>,
    pub warehouse: Arc<dyn Warehouse>,
    pub builder: Arc<dyn ModelBuilder>,
    pub plugins: Arc<dyn Plugins>,
    pub detectors: Arc<dyn Detectors>,
    pub clock: Arc<dyn Clock>,
}

/// The further ports of a server: those to its state database and its files.
#[derive(Clone)]
pub struct ServerPorts {
    pub store: Arc<dyn Store>,
    pub audit: Arc<dyn AuditLog>,
    pub credentials: Arc<dyn Credentials>,
    pub registrations: Arc<dyn Registrations>,
    pub governance_records: Arc<dyn GovernanceRecords>,
    pub leases: Arc<dyn Leases>,
    pub invalidations: Arc<dyn Invalidations>,
    pub jobs: Arc<dyn Jobs>,
    pub results: Arc<dyn JobResults>,
    pub job_texts: Arc<dyn JobTexts>,
    pub profiles: Arc<dyn ProfileRecords>,
    pub profile_texts: Arc<dyn ProfileTexts>,
    pub monitors: Arc<dyn MonitorRecords>,
    pub data_tests: Arc<dyn DataTestRecords>,
    /// The cases of `tests/*.yml`.
    pub cases: Arc<dyn ProjectCases>,
    pub deliveries: Arc<dyn DeliveryRecords>,
    pub channels: Arc<dyn AlertChannels>,
    pub retention: Arc<dyn Retention>,
    /// The verifier of tokens; `None` if tokens are not accepted.
    pub tokens: Option<Arc<dyn Tokens>>,
    pub passwords: Arc<dyn Passwords>,
    pub randomness: Arc<dyn Randomness>,
    pub files: Arc<dyn ProjectFiles>,
    /// The identity providers that callers may sign in through.
    pub providers: Vec<Arc<dyn IdentityProvider>>,
    /// The backend of pre-aggregations; `None` if they are switched off.
    pub preaggregations: Option<PreaggregationBackend>,
    /// The backend of costs; `None` if costs are switched off.
    pub cost: Option<CostBackend>,
    /// The language model; `None` if the grammar interprets all questions.
    pub language_model: Option<ModelBackend>,
}

/// The ports to the costs of queries.
#[derive(Clone)]
pub struct CostBackend {
    pub history: Arc<dyn ExecutedQueries>,
    pub guardrails: Arc<dyn GuardrailRecords>,
    pub budgets: Arc<dyn Budgets>,
}

/// The operator's settings of the costs of queries.
#[derive(Debug, Clone)]
pub struct CostSettings {
    pub prices: Prices,
    /// The time for which executed queries stay in the history.
    pub history: Duration,
    /// The zone in which days and months of budgets begin.
    pub timezone: TimeZone,
    /// The number of days of history that recommendations are based on.
    pub recommendation_days: u16,
}

/// The parts of cost management that the query path uses. Without them, queries are not recorded, and users have no
/// guardrails or budgets.
#[derive(Clone, Default)]
struct CostHooks {
    executions: Option<Arc<ExecutionLog>>,
    guardrails: Option<Arc<GuardrailTable>>,
    budgets: Option<Arc<BudgetLedger>>,
}

/// The operator's settings of a server.
pub struct ServerSettings {
    pub queries: QuerySettings,
    pub jobs: JobSettings,
    /// The limits on subscriptions.
    pub subscriptions: QuotaSettings,
    pub sessions: SessionSettings,
    /// The key of sign-ins through providers. All replicas share it.
    pub state_token_key: StateTokenKey,
    /// The key of links that acknowledge alerts. All replicas share it.
    pub acknowledge_key: AcknowledgeKey,
    /// The protocol of browsers that connect to the server.
    pub transport: Transport,
    /// The longest time that the build of one model may take.
    pub build_timeout: Duration,
    pub preaggregations: PreaggregationSettings,
    pub cost: CostSettings,
    /// The settings of governance; `None` if governance is switched off.
    pub governance: Option<GovernanceSettings>,
    /// True if search is switched on.
    pub search: bool,
    /// True if profiles of cubes are switched on.
    pub profiling: bool,
    /// True if monitors are switched on.
    pub monitors: bool,
    pub data_tests: DataTestSettings,
    /// The time for which ended records stay in the state database.
    pub retention: Duration,
    pub leases: LeaseSettings,
    /// The id of this process among all replicas.
    pub process_id: Arc<str>,
}

/// The use cases of a server, and the ports that its surfaces use directly.
#[derive(Clone)]
pub struct ServerServices {
    pub catalog: Arc<Catalog>,
    pub queries: Arc<QueryService>,
    pub live: Arc<LiveService>,
    pub versions: Arc<DataVersions>,
    pub invalidations: Arc<InvalidationService>,
    pub anomalies: Arc<AnomalyService>,
    /// The stored profiles; `None` if profiling is switched off.
    pub profiles: Option<Arc<ProfileArchive>>,
    /// The monitors; `None` if they are switched off.
    pub monitors: Option<Arc<MonitorService>>,
    pub data_tests: Arc<DataTestService>,
    pub projects: Arc<ProjectService>,
    /// The governance service; `None` if governance is switched off.
    pub governance: Option<Arc<GovernanceService>>,
    /// The search; `None` if it is switched off.
    pub search: Option<Arc<SearchService>>,
    /// The service for questions in words; `None` if search is switched off.
    pub questions: Option<Arc<QuestionService>>,
    pub preaggregations: Arc<Preaggregations>,
    /// The service of costs; `None` if costs are switched off.
    pub cost: Option<Arc<CostService>>,
    /// The guardrails; `None` if costs are switched off.
    pub guardrails: Option<Arc<GuardrailService>>,
    /// The predictor of costs; `None` if costs are switched off.
    pub predictor: Option<Arc<CostPredictor>>,
    pub jobs: Arc<JobService>,
    pub access: Arc<AccessRecorder>,
    pub authenticator: Arc<Authenticator>,
    pub oauth: Arc<OAuth>,
    pub dax_sessions: Arc<DaxSessions>,
    /// The buffer of frequent audit records.
    pub audit_buffer: Arc<AuditBuffer>,
    pub audit: Arc<dyn AuditLog>,
    pub store: Arc<dyn Store>,
    pub warehouse: Arc<dyn Warehouse>,
    pub plugins: Arc<dyn Plugins>,
    pub clock: Arc<dyn Clock>,
    maintenance: Arc<Maintenance>,
    history_retention: Option<Arc<HistoryRetention>>,
    leases: Arc<dyn Leases>,
    observer: Arc<dyn Observer>,
    process_id: Arc<str>,
    lease_settings: LeaseSettings,
}

impl Services {
    /// Assembles the use cases for a command that the operator of this machine runs. No audit log is open, so decisions
    /// about any other caller fail.
    pub fn for_operator(snapshot: Snapshot, ports: ServicePorts, queries: QuerySettings) -> Self {
        let access = AccessRecorder::for_operator(Arc::clone(&ports.observer), Arc::clone(&ports.clock));
        Services::assemble(snapshot, ports, Arc::new(access), None, CostHooks::default(), queries, live::DEFAULT_QUOTA)
    }

    fn assemble(
        snapshot: Snapshot,
        ports: ServicePorts,
        access: Arc<AccessRecorder>,
        invalidations: Option<Arc<dyn Invalidations>>,
        cost: CostHooks,
        settings: QuerySettings,
        subscriptions: QuotaSettings,
    ) -> Self {
        let ServicePorts { warehouse, builder, plugins, governance, detectors, checks, clock, observer } = ports;
        let catalog = Arc::new(Catalog::new(snapshot));
        let (engine, time) = (Arc::clone(&warehouse), Arc::clone(&clock));
        let versions = Arc::new(DataVersions::new(engine, invalidations, time, settings.cache.ttl));
        let query_ports = QueryPorts {
            catalog: Arc::clone(&catalog),
            warehouse: Arc::clone(&warehouse),
            clock: Arc::clone(&clock),
            governance,
            observer,
            access: Arc::clone(&access),
            versions: Arc::clone(&versions),
            executions: cost.executions,
            guardrails: cost.guardrails,
            budgets: cost.budgets,
        };
        let queries = Arc::new(QueryService::new(query_ports, settings));
        let anomalies = AnomalyService::new(Arc::clone(&queries), Arc::clone(&detectors), Arc::clone(&clock));
        let profiling = ProfilingService::new(Arc::clone(&queries), checks, Arc::clone(&clock));
        let live = LiveService::new(
            Arc::clone(&catalog),
            Arc::clone(&queries),
            Arc::clone(&versions),
            Arc::clone(&clock),
            subscriptions,
        );
        let values = ValueLists::new(Arc::clone(&queries), Arc::clone(&versions), Arc::clone(&clock));
        let values = Arc::new(values);
        let search = SearchService::new(Arc::clone(&catalog), None, Arc::clone(&values), None);
        Services {
            catalog,
            queries,
            search: Arc::new(search),
            values,
            live: Arc::new(live),
            versions,
            anomalies: Arc::new(anomalies),
            profiling: Arc::new(profiling),
            access,
            warehouse,
            builder,
            plugins,
            detectors,
            clock,
        }
    }

    /// Returns a search that uses the records of governance, unless it is switched off, and the history of queries,
    /// unless costs are switched off.
    pub fn recorded_search(
        &self,
        governance: Option<GovernanceService>,
        executions: Option<ExecutionLog>,
    ) -> SearchService {
        let (governance, executions) = (governance.map(Arc::new), executions.map(Arc::new));
        SearchService::new(Arc::clone(&self.catalog), governance, Arc::clone(&self.values), executions)
    }

    /// Returns a service that asks a language model about questions.
    pub fn model_reader(&self, backend: ModelBackend) -> ModelReader {
        ModelReader::new(backend, Arc::clone(&self.access), Arc::clone(&self.clock))
    }

    /// Returns the use case of pre-aggregations for `queries`. Without a `backend`, pre-aggregations are switched off.
    pub fn preaggregations(
        &self,
        backend: Option<PreaggregationBackend>,
        queries: Vec<Arc<QueryService>>,
        invalidations: Arc<dyn Invalidations>,
        randomness: Arc<dyn Randomness>,
        observer: Arc<dyn Observer>,
        settings: PreaggregationSettings,
    ) -> Preaggregations {
        let ports = PreaggregationPorts {
            backend,
            warehouse: Arc::clone(&self.warehouse),
            catalog: Arc::clone(&self.catalog),
            queries,
            invalidations,
            access: Arc::clone(&self.access),
            observer,
            randomness,
            clock: Arc::clone(&self.clock),
        };
        Preaggregations::new(ports, settings)
    }

    /// Returns the use case of building models. Among all processes, a project has one run at a time.
    pub fn builds(
        &self,
        leases: Arc<dyn Leases>,
        audit: Arc<dyn AuditLog>,
        invalidations: Arc<dyn Invalidations>,
        process_id: Arc<str>,
        timeout: Duration,
    ) -> Builds {
        let (builder, clock) = (Arc::clone(&self.builder), Arc::clone(&self.clock));
        Builds { builder, leases, audit, invalidations, clock, holder: process_id, timeout }
    }
}

impl ServerServices {
    /// Assembles the use cases of a server. `texts` is the source text that the snapshot was loaded from.
    pub fn new(
        snapshot: Snapshot,
        texts: ProjectTexts,
        ports: ServicePorts,
        server: ServerPorts,
        settings: ServerSettings,
    ) -> Self {
        let (clock, observer, governance) = (ports.clock.clone(), ports.observer.clone(), ports.governance.clone());
        let timezone = settings.queries.timezone.clone();
        let audit_buffer = Arc::new(AuditBuffer::new(Arc::clone(&server.audit), Arc::clone(&clock)));
        let access = AccessRecorder::new(Arc::clone(&audit_buffer), Arc::clone(&observer), Arc::clone(&clock));
        let invalidations = Some(Arc::clone(&server.invalidations));
        // Jobs have their own permits, so that they never use the permits of interactive queries.
        let permits = settings.jobs.concurrency;
        let limiter =
            LimiterSettings { running: permits, queued: permits, running_per_tenant: None, queued_per_tenant: None };
        let job_queries = QuerySettings {
            timeout: settings.jobs.timeout,
            export_timeout: settings.jobs.timeout,
            limiter,
            ..settings.queries.clone()
        };
        let (queries, subscriptions) = (settings.queries, settings.subscriptions);
        let executions = server.cost.as_ref().map(|cost| {
            let (history, clock) = (Arc::clone(&cost.history), Arc::clone(&clock));
            let sizes = Arc::new(ScanSizes::new(Arc::clone(&ports.warehouse), Arc::clone(&clock)));
            let log = ExecutionLog::new(history, clock, &*server.randomness, settings.cost.prices);
            Arc::new(log.with_sizes(sizes))
        });
        let table = server.cost.as_ref().map(|cost| Arc::new(GuardrailTable::new(Arc::clone(&cost.guardrails))));
        let defaults = queries.guardrails;
        let ledger = server.cost.as_ref().zip(executions.as_ref()).map(|(cost, log)| {
            let (budgets, log, clock) = (Arc::clone(&cost.budgets), Arc::clone(log), Arc::clone(&clock));
            let (timezone, holder) = (settings.cost.timezone.clone(), Arc::clone(&settings.process_id));
            Arc::new(BudgetLedger::new(budgets, log, clock, timezone, holder))
        });
        let hooks = CostHooks { executions: executions.clone(), guardrails: table.clone(), budgets: ledger.clone() };
        let checks = Arc::clone(&ports.checks);
        let services =
            Services::assemble(snapshot, ports, Arc::new(access), invalidations, hooks, queries, subscriptions);
        let job_query_ports = QueryPorts {
            catalog: Arc::clone(&services.catalog),
            warehouse: Arc::clone(&services.warehouse),
            clock: Arc::clone(&clock),
            governance: Arc::clone(&governance),
            observer: Arc::clone(&observer),
            access: Arc::clone(&services.access),
            versions: Arc::clone(&services.versions),
            executions: executions.clone(),
            guardrails: table.clone(),
            budgets: ledger.clone(),
        };
        let job_queries = Arc::new(QueryService::new(job_query_ports, job_queries));
        let archive = |queries: &Arc<QueryService>| {
            let profiling = ProfilingService::new(Arc::clone(queries), Arc::clone(&checks), Arc::clone(&clock));
            let (records, texts) = (Arc::clone(&server.profiles), Arc::clone(&server.profile_texts));
            let (queries, catalog) = (Arc::clone(queries), Arc::clone(&services.catalog));
            Arc::new(ProfileArchive::new(Arc::new(profiling), queries, catalog, records, texts))
        };
        let profiles = settings.profiling.then(|| archive(&services.queries));
        let job_ports = JobPorts {
            profiles: settings.profiling.then(|| archive(&job_queries)),
            jobs: server.jobs,
            results: server.results,
            texts: server.job_texts,
            queries: Arc::clone(&job_queries),
            credentials: Arc::clone(&server.credentials),
            randomness: Arc::clone(&server.randomness),
            clock: Arc::clone(&clock),
        };
        let jobs = Arc::new(JobService::new(job_ports, settings.jobs));
        let governed = settings.governance.map(|governance_settings| {
            let ports = GovernancePorts {
                records: server.governance_records,
                catalog: Arc::clone(&services.catalog),
                access: Arc::clone(&services.access),
                approvals: ApprovalService::new(Arc::clone(&governance), Arc::clone(&clock), &timezone),
                randomness: Arc::clone(&server.randomness),
                clock: Arc::clone(&clock),
            };
            Arc::new(GovernanceService::new(ports, governance_settings))
        });
        let search = settings.search.then(|| {
            let catalog = Arc::clone(&services.catalog);
            let (governed, values) = (governed.clone(), Arc::clone(&services.values));
            Arc::new(SearchService::new(catalog, governed, values, executions.clone()))
        });
        let preaggregations = services.preaggregations(
            server.preaggregations,
            vec![Arc::clone(&services.queries), job_queries],
            Arc::clone(&server.invalidations),
            Arc::clone(&server.randomness),
            Arc::clone(&observer),
            settings.preaggregations,
        );
        let preaggregations = Arc::new(preaggregations);
        let history = server.cost.as_ref().map(|cost| Arc::clone(&cost.history));
        let predictor = history.clone().zip(executions.clone()).map(|(history, log)| {
            let queries = Arc::clone(&services.queries);
            let predictor = CostPredictor::new(queries, history, log, settings.cost.prices);
            Arc::new(predictor.with_budgets(ledger.clone()))
        });
        let cost = executions.zip(history.clone()).map(|(log, history)| {
            let (catalog, access) = (services.catalog.clone(), services.access.clone());
            let (clock, preaggregations) = (Arc::clone(&clock), Some(Arc::clone(&preaggregations)));
            let ports = CostPorts { log, history, catalog, access, clock, preaggregations };
            Arc::new(CostService::new(ports, settings.cost.recommendation_days))
        });
        let guardrails = table.zip(ledger).zip(server.cost).map(|((table, budgets), cost)| {
            let (records, clock) = (cost.guardrails, Arc::clone(&clock));
            let (queries, access) = (Arc::clone(&services.queries), Arc::clone(&services.access));
            Arc::new(GuardrailService::new(
                GuardrailPorts { table, records, queries, access, clock, budgets },
                defaults,
            ))
        });
        let history_retention = history.map(|history| {
            Arc::new(HistoryRetention::new(history, Arc::clone(&clock), settings.cost.history, settings.cost.timezone))
        });
        let monitors = settings.monitors.then(|| {
            let (records, access) = (server.monitors, Arc::clone(&services.access));
            let (anomalies, queries) = (Arc::clone(&services.anomalies), Arc::clone(&services.queries));
            let (credentials, randomness) = (Arc::clone(&server.credentials), Arc::clone(&server.randomness));
            let clock = Arc::clone(&clock);
            let (deliveries, channels) = (server.deliveries, server.channels);
            let ports = MonitorPorts {
                records,
                deliveries,
                channels,
                anomalies,
                queries,
                credentials,
                access,
                randomness,
                clock,
                acknowledge_key: settings.acknowledge_key,
            };
            Arc::new(MonitorService::new(ports))
        });
        let data_tests = DataTestPorts {
            records: server.data_tests,
            cases: server.cases,
            catalog: Arc::clone(&services.catalog),
            queries: Arc::clone(&services.queries),
            warehouse: Arc::clone(&services.warehouse),
            access: Arc::clone(&services.access),
            observer: Arc::clone(&observer),
            randomness: Arc::clone(&server.randomness),
            clock: Arc::clone(&clock),
        };
        let data_tests = DataTestService::new(data_tests, settings.data_tests);
        let dax_sessions = DaxSessions::new(Arc::clone(&clock), Arc::clone(&server.randomness));
        let security = SecurityPorts {
            credentials: server.credentials,
            tokens: server.tokens,
            passwords: server.passwords,
            randomness: server.randomness,
            clock: Arc::clone(&clock),
            access: Arc::clone(&services.access),
        };
        let authenticator = Arc::new(Authenticator::new(security, settings.sessions));
        let oauth =
            OAuth::new(Arc::clone(&authenticator), server.providers, settings.state_token_key, settings.transport);
        let builds = services.builds(
            Arc::clone(&server.leases),
            Arc::clone(&server.audit),
            Arc::clone(&server.invalidations),
            Arc::clone(&settings.process_id),
            settings.build_timeout,
        );
        let project_ports = ProjectPorts {
            files: server.files,
            catalog: Arc::clone(&services.catalog),
            plugins: Arc::clone(&services.plugins),
            warehouse: Arc::clone(&services.warehouse),
            registrations: server.registrations,
            audit: Arc::clone(&server.audit),
            access: Arc::clone(&services.access),
            builds,
            versions: Arc::clone(&services.versions),
            clock: Arc::clone(&clock),
        };
        let approvals = ApprovalService::new(governance, Arc::clone(&clock), &timezone);
        let projects = ProjectService::new(project_ports, approvals, texts);
        let maintenance =
            MaintenanceSettings { retention: settings.retention, access_lifetime: settings.sessions.access_lifetime };
        let (catalog, versions, access) =
            (Arc::clone(&services.catalog), Arc::clone(&services.versions), Arc::clone(&services.access));
        let invalidation = InvalidationService::new(catalog, versions, access);
        let questions = search.as_ref().map(|search| {
            let model = server.language_model.map(|backend| services.model_reader(backend));
            Arc::new(QuestionService::new(Arc::clone(&services.queries), Arc::clone(search), model))
        });
        ServerServices {
            questions,
            projects: Arc::new(projects),
            governance: governed,
            search,
            preaggregations,
            cost,
            guardrails,
            predictor,
            jobs,
            authenticator,
            oauth: Arc::new(oauth),
            dax_sessions: Arc::new(dax_sessions),
            audit_buffer,
            audit: server.audit,
            store: server.store,
            maintenance: Arc::new(Maintenance::new(server.retention, clock, maintenance)),
            history_retention,
            leases: server.leases,
            observer,
            process_id: settings.process_id,
            lease_settings: settings.leases,
            catalog: services.catalog,
            queries: services.queries,
            live: services.live,
            invalidations: Arc::new(invalidation),
            versions: services.versions,
            anomalies: services.anomalies,
            profiles,
            monitors,
            data_tests: Arc::new(data_tests),
            access: services.access,
            warehouse: services.warehouse,
            plugins: services.plugins,
            clock: services.clock,
        }
    }

    /// Returns the certifications of the artifacts that the caller may see; empty if governance is switched off.
    pub async fn badges(&self, snapshot: &Arc<Snapshot>, request: &RequestContext) -> Badges {
        match &self.governance {
            Some(governance) => governance.badges(snapshot, request).await,
            None => Badges::default(),
        }
    }

    /// Returns the notes about certifications and glossary terms that are shown below the descriptions of artifacts.
    /// Returns no notes if governance is switched off.
    pub async fn notes(&self, snapshot: &Arc<Snapshot>, request: &RequestContext) -> ArtifactNotes {
        match &self.governance {
            Some(governance) => governance.notes(snapshot, request).await,
            None => ArtifactNotes::default(),
        }
    }

    /// Returns the runner of the server's jobs.
    pub fn job_runner(&self) -> JobRunner {
        let (jobs, leases) = (Arc::clone(&self.jobs), Arc::clone(&self.leases));
        JobRunner::new(jobs, leases, self.lease_settings, self.process_id.clone())
    }

    /// Returns the worker of the server's background tasks.
    pub fn worker(&self) -> Worker {
        let (leases, clock, observer) = (self.leases.clone(), self.clock.clone(), self.observer.clone());
        let worker = Worker::new(leases, clock, observer, self.process_id.clone(), self.lease_settings)
            .with_task(self.maintenance.clone())
            .with_task(Arc::new(JobMaintenance::new(Arc::clone(&self.jobs))))
            .with_task(Arc::new(DataTestTask::new(Arc::clone(&self.data_tests))));
        let worker = match &self.history_retention {
            Some(retention) => worker.with_task(retention.clone()),
            None => worker,
        };
        let worker = match &self.governance {
            Some(governance) => worker.with_task(Arc::new(GovernanceMaintenance::new(Arc::clone(governance)))),
            None => worker,
        };
        let worker = match &self.monitors {
            Some(monitors) => worker
                .with_task(Arc::new(MonitorTask::new(Arc::clone(monitors))))
                .with_task(Arc::new(DeliveryTask::new(Arc::clone(monitors)))),
            None => worker,
        };
        match self.preaggregations.is_enabled() {
            true => worker.with_task(self.preaggregations.clone()),
            false => worker,
        }
    }
}
