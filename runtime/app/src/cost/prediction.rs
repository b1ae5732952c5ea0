//! Predicts the bytes, the time and the cost of a query, without running the query.
//!
//! In: a query. Out: its bytes, its time and its cost, each with a range and a basis. The time comes from the first of
//! these that knows it: earlier runs of the same statement, scaled to the length of the range; a model that is fitted
//! to queries of the warehouse; other queries of the cube. The bytes come from earlier runs if the engine reports them,
//! and otherwise from the stored sizes of the scanned columns. An unknown number is `None`, never zero. If a
//! pre-aggregation answers the query, the prediction has numbers with and without it. If policies hide rows or values
//! from a caller, times come only from the caller's own queries, because times disclose hidden rows, and all numbers
//! are rounded to two digits. Not here: the cache, whose answers cost nothing.

use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::query::SemanticQuery;
use terrane_compiler::sql::StatementShape;

use super::budget_ledger::BudgetLedger;
use super::estimate::{Estimate, PredictionBasis, Range};
use super::execution_log::ExecutionLog;
use super::observations::Fitted;
use super::prices::{CostParts, Prices, Usage};
use super::range_scaling::scaled;
use super::scan_sizes::plan_size;
use crate::catalog::Snapshot;
use crate::domain::RequestContext;
use crate::ports::executed_queries::{ExecutedQueries, ExecutedQuery, HistoryFilter, PlanSize, QueryOwner};
use crate::ports::guardrails::Guardrails;
use crate::ports::store::StoreError;
use crate::ports::warehouse::{ScanSize, SizeBasis};
use crate::query::{PlannedQuery, QueryKind, QueryRunError, QueryService};

/// The maximum number of earlier queries that a prediction uses.
const SAMPLES: u32 = 200;
/// The smallest number of a cube's queries from which the time of another statement is predicted.
const MIN_SAMPLES_OF_CUBE: usize = 5;
/// The time within which the history must answer.
const TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq)]
pub struct StatementPrediction {
    /// The number of queries that the seconds are predicted from.
    pub samples: usize,
    /// Seconds on the warehouse.
    pub seconds: Estimate,
    /// The scanned bytes.
    pub scan_bytes: Estimate,
    /// The cost in the currency of the prices: the sum of the parts that are known.
    pub cost: Estimate,
    pub parts: CostParts,
}

/// The prediction of a query.
#[derive(Debug, Clone)]
pub struct CostPrediction {
    pub planned: PlannedQuery,
    pub statement: StatementPrediction,
    /// The prediction without pre-aggregations; `None` if no pre-aggregation answers the query.
    pub without_tables: Option<StatementPrediction>,
    pub guardrails: Guardrails,
    pub prices: Prices,
    /// True if the history did not respond in time.
    pub is_late: bool,
}

/// The reason why a query has no prediction.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PredictionError {
    /// The query does not compile for the caller.
    #[error(transparent)]
    Query(#[from] QueryRunError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Predicts costs from the history, and from the sizes of what queries read.
pub struct CostPredictor {
    queries: Arc<QueryService>,
    history: Arc<dyn ExecutedQueries>,
    /// The log of this process, whose waiting queries are not in the history yet.
    log: Arc<ExecutionLog>,
    prices: Prices,
    budgets: Option<Arc<BudgetLedger>>,
}

/// A statement to predict, and the caller whose queries count.
struct Predicted<'a> {
    request: &'a RequestContext,
    query_hash: &'a Arc<str>,
    cube: &'a Arc<str>,
    pre_aggregation: Option<&'a Arc<str>>,
    size: PlanSize,
    scan: Option<ScanSize>,
    has_policies: bool,
}

/// Seconds, and further quantities of the same queries.
struct Times {
    samples: usize,
    seconds: Estimate,
    scan_bytes: Estimate,
    egress_bytes: Option<f64>,
}

impl CostPredictor {
    pub fn new(
        queries: Arc<QueryService>,
        history: Arc<dyn ExecutedQueries>,
        log: Arc<ExecutionLog>,
        prices: Prices,
    ) -> Self {
        CostPredictor { queries, history, log, prices, budgets: None }
    }

    /// Returns a predictor whose predictions also have the exceeded budgets of the caller.
    #[must_use]
    pub fn with_budgets(self, budgets: Option<Arc<BudgetLedger>>) -> Self {
        CostPredictor { budgets, ..self }
    }

    /// Predicts a query.
    ///
    /// # Errors
    /// The query does not compile for the caller, or the state database is unavailable.
    pub async fn predict(
        &self,
        request: &RequestContext,
        query: &SemanticQuery,
    ) -> Result<CostPrediction, PredictionError> {
        let context = request.with_kind(QueryKind::Explain);
        let session = self.queries.session(&context);
        let mut planned = session.prepare(query).await?.planned().await?;
        let guardrails = session.guardrails();
        if let Some(budgets) = &self.budgets {
            let owner = QueryOwner { user_id: Arc::clone(&request.caller.user_id), tenant: request.tenant.clone() };
            let estimate = budgets.estimate(&planned.query_hash, &owner);
            planned.exceeded.extend(budgets.exceeded(&owner, &guardrails, estimate).await?);
        }
        let (flushed, scan, scan_of_rows) = tokio::join!(
            tokio::time::timeout(TIMEOUT, self.log.flush()),
            self.scan_size(session.snapshot(), Some(&planned.shape)),
            self.scan_size(session.snapshot(), planned.rows_shape.as_deref()),
        );
        let is_unwritten = flushed.is_err();
        flushed.unwrap_or(Ok(()))?;
        let predicted = Predicted {
            request,
            query_hash: &planned.query_hash,
            cube: &planned.cube,
            pre_aggregation: planned.pre_aggregation.as_ref(),
            size: plan_size(&planned.shape, scan, planned.row_bytes),
            scan,
            has_policies: planned.has_policies,
        };
        let (statement, is_statement_late) = self.statement(&predicted).await?;
        let mut is_late = is_unwritten || is_statement_late;
        let without_tables = match (&planned.rows_hash, &planned.rows_shape) {
            (Some(query_hash), Some(shape)) => {
                let size = plan_size(shape, scan_of_rows, planned.row_bytes);
                let of_rows = Predicted { query_hash, pre_aggregation: None, size, scan: scan_of_rows, ..predicted };
                let (statement, is_late_too) = self.statement(&of_rows).await?;
                is_late |= is_late_too;
                Some(statement)
            }
            _ => None,
        };
        Ok(CostPrediction { planned, statement, without_tables, guardrails, prices: self.prices, is_late })
    }

    async fn scan_size(&self, snapshot: &Snapshot, shape: Option<&StatementShape>) -> Option<ScanSize> {
        self.log.sizes()?.of(snapshot, shape?).await
    }

    /// Returns the prediction of a statement, and whether the history did not respond in time.
    async fn statement(&self, predicted: &Predicted<'_>) -> Result<(StatementPrediction, bool), StoreError> {
        let times = tokio::time::timeout(TIMEOUT, self.times(predicted)).await;
        let is_late = times.is_err();
        let times = times.unwrap_or(Ok(Times::UNKNOWN))?;
        let scan_bytes = times.scan_bytes.or(|| predicted.scan.map_or(Estimate::UNKNOWN, stored));
        let scan_bytes = scan_bytes.rounded_if(predicted.has_policies);
        let seconds = times.seconds.rounded_if(predicted.has_policies);
        let (cost, parts) = self.cost(&seconds, &scan_bytes, times.egress_bytes);
        Ok((StatementPrediction { samples: times.samples, seconds, scan_bytes, cost, parts }, is_late))
    }

    async fn times(&self, predicted: &Predicted<'_>) -> Result<Times, StoreError> {
        let user_id = &predicted.request.caller.user_id;
        // An anonymous caller has no queries of its own.
        if predicted.has_policies && user_id.is_empty() {
            return Ok(Times::UNKNOWN);
        }
        let tenant = predicted.request.tenant.clone();
        let owner = QueryOwner { user_id: Arc::clone(user_id), tenant: tenant.clone() };
        let all = HistoryFilter {
            tenant: Some(tenant.clone()),
            owner: predicted.has_policies.then_some(owner),
            is_computed: true,
            limit: SAMPLES,
            ..HistoryFilter::default()
        };
        let of_statement = HistoryFilter { query_hash: Some(Arc::clone(predicted.query_hash)), ..all.clone() };
        let samples = self.history.executed(&of_statement).await?;
        if !samples.is_empty() {
            return Ok(Times::of_statement(&samples, &predicted.size));
        }
        let fitted = Fitted {
            tenant,
            user_id: predicted.has_policies.then(|| Arc::clone(user_id)),
            has_table: predicted.pre_aggregation.is_some(),
            has_bytes: predicted.size.table_bytes.is_some(),
        };
        if let Some(model) = self.log.observations().fit(&fitted) {
            let seconds = Estimate::new(PredictionBasis::Statistics, model.predict(&predicted.size));
            return Ok(Times { samples: model.queries(), seconds, ..Times::UNKNOWN });
        }
        let of_cube = HistoryFilter { cube: Some(Arc::clone(predicted.cube)), ..all };
        let mut samples = self.history.executed(&of_cube).await?;
        samples.retain(|sample| sample.pre_aggregation.as_ref() == predicted.pre_aggregation);
        match samples.len() >= MIN_SAMPLES_OF_CUBE {
            true => Ok(Times::of_cube(&samples)),
            false => Ok(Times::UNKNOWN),
        }
    }

    /// Returns the cost of the known quantities, and its parts.
    fn cost(&self, seconds: &Estimate, scan_bytes: &Estimate, egress_bytes: Option<f64>) -> (Estimate, CostParts) {
        let usage = Usage { seconds: seconds.median(), scan_bytes: scan_bytes.median(), egress_bytes };
        let parts = self.prices.parts(usage);
        let Some(median) = self.prices.cost(usage) else { return (Estimate::UNKNOWN, parts) };
        let end = |seconds: Option<f64>, scan_bytes: Option<f64>| {
            let parts = self.prices.parts(Usage { seconds, scan_bytes, egress_bytes });
            Some(parts.scan? + parts.compute? + parts.egress?)
        };
        let (low, high) = (end(seconds.low(), scan_bytes.low()), end(seconds.high(), scan_bytes.high()));
        let bases = [self.prices.second.and(Some(seconds)), self.prices.terabyte_scanned.and(Some(scan_bytes))];
        let known = bases.into_iter().flatten().filter(|estimate| estimate.is_known()).map(|estimate| estimate.basis);
        let basis = known.max().unwrap_or(PredictionBasis::Statistics);
        (Estimate::new(basis, Range { low, median, high }), parts)
    }
}

/// Returns the bytes of a scan, as the warehouse knows them.
fn stored(size: ScanSize) -> Estimate {
    let bytes = size.bytes as f64;
    let range = match size.basis {
        SizeBasis::Exact => Range::exactly(bytes),
        SizeBasis::UpperBound => Range::at_most(bytes),
        SizeBasis::Statistics => Range { low: None, median: bytes, high: None },
    };
    Estimate::new(size.basis.into(), range)
}

impl Times {
    const UNKNOWN: Times =
        Times { samples: 0, seconds: Estimate::UNKNOWN, scan_bytes: Estimate::UNKNOWN, egress_bytes: None };

    /// Returns the times of runs of the same statement, as if they had read a range of the same length.
    fn of_statement(samples: &[ExecutedQuery], size: &PlanSize) -> Times {
        let length = |sample: &ExecutedQuery| sample.size.and_then(|size| size.range_seconds);
        let runs: Vec<_> = samples.iter().map(|sample| (sample.warehouse.as_secs_f64(), length(sample))).collect();
        let rows: Vec<f64> = samples.iter().map(|sample| sample.rows as f64).collect();
        let seconds = Range::of(scaled(&runs, size.range_seconds));
        Times {
            samples: samples.len(),
            seconds: Estimate::new(PredictionBasis::History, seconds),
            scan_bytes: reported_bytes(samples, PredictionBasis::History),
            egress_bytes: Some(Range::of(rows).median * size.row_bytes as f64),
        }
    }

    /// Returns the times of other queries of the same cube.
    fn of_cube(samples: &[ExecutedQuery]) -> Times {
        let seconds = Range::of(samples.iter().map(|sample| sample.warehouse.as_secs_f64()).collect());
        Times {
            samples: samples.len(),
            seconds: Estimate::new(PredictionBasis::Statistics, seconds),
            scan_bytes: reported_bytes(samples, PredictionBasis::Statistics),
            egress_bytes: None,
        }
    }
}

/// Returns the bytes that the engine reported for queries, if it did for all of them.
fn reported_bytes(samples: &[ExecutedQuery], basis: PredictionBasis) -> Estimate {
    let bytes: Option<Vec<f64>> = samples.iter().map(|sample| sample.scan_bytes.map(|bytes| bytes as f64)).collect();
    bytes.map_or(Estimate::UNKNOWN, |bytes| Estimate::new(basis, Range::of(bytes)))
}
