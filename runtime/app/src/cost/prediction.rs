//! Predicts the time and the cost of a query, without running the query.
//!
//! In: a query. Out: its time and its cost with a range, and the source of the numbers: the same statement ran before,
//! other queries of its cube ran before, or nothing is known. An unknown number is `None`, never zero. If a
//! pre-aggregation answers the query, the prediction has numbers with and without it. If policies hide rows or values
//! from a caller, the numbers come only from the caller's own queries, and are rounded to two digits, because times
//! disclose hidden rows. Not here: the cache, whose answers cost nothing.

use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::query::SemanticQuery;

use super::budget_ledger::BudgetLedger;
use super::execution_log::ExecutionLog;
use super::prices::Prices;
use crate::domain::RequestContext;
use crate::ports::executed_queries::{ExecutedQueries, ExecutedQuery, HistoryFilter, QueryOwner};
use crate::ports::guardrails::Guardrails;
use crate::ports::store::StoreError;
use crate::query::{PlannedQuery, QueryKind, QueryRunError, QueryService};

/// The maximum number of earlier queries that a prediction uses.
const SAMPLES: u32 = 200;
/// The smallest number of a cube's queries from which the time of another statement is predicted.
const MIN_SAMPLES_OF_CUBE: usize = 5;
/// The time within which the history must answer.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The source of predicted numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PredictionBasis {
    /// The same statement ran before.
    History,
    /// Other queries of the cube ran before.
    Statistics,
    /// No query of the cube ran before.
    None,
}

/// A quantity with its tenth and ninetieth percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StatementPrediction {
    pub basis: PredictionBasis,
    /// The number of queries that the prediction is made from.
    pub samples: usize,
    /// Seconds on the warehouse.
    pub seconds: Option<Range>,
    /// The scanned bytes; `None` if the warehouse does not report them.
    pub scan_bytes: Option<Range>,
    /// The cost in the currency of the prices; `None` without prices.
    pub cost: Option<Range>,
}

/// The prediction of a query.
#[derive(Debug, Clone)]
pub struct CostPrediction {
    pub planned: PlannedQuery,
    pub statement: StatementPrediction,
    /// The prediction without pre-aggregations; `None` if no pre-aggregation answers the query.
    pub without_tables: Option<StatementPrediction>,
    pub guardrails: Guardrails,
    pub has_price: bool,
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

/// Predicts costs from the history.
pub struct CostPredictor {
    queries: Arc<QueryService>,
    history: Arc<dyn ExecutedQueries>,
    /// The log of this process, whose waiting queries are not in the history yet.
    log: Option<Arc<ExecutionLog>>,
    prices: Prices,
    budgets: Option<Arc<BudgetLedger>>,
}

impl CostPredictor {
    pub fn new(
        queries: Arc<QueryService>,
        history: Arc<dyn ExecutedQueries>,
        log: Option<Arc<ExecutionLog>>,
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
        let predicted = tokio::time::timeout(TIMEOUT, self.statements(request, &planned)).await;
        let is_late = predicted.is_err();
        let (statement, without_tables) = match predicted {
            Ok(predicted) => predicted?,
            Err(_) => (StatementPrediction::unknown(), None),
        };
        let has_price = self.prices.second.is_some();
        Ok(CostPrediction { planned, statement, without_tables, guardrails, has_price, is_late })
    }

    async fn statements(
        &self,
        request: &RequestContext,
        planned: &PlannedQuery,
    ) -> Result<(StatementPrediction, Option<StatementPrediction>), StoreError> {
        if let Some(log) = &self.log {
            log.flush().await?;
        }
        let table = planned.pre_aggregation.as_ref();
        let statement = self.statement(request, planned, &planned.query_hash, table).await?;
        let without_tables = match &planned.rows_hash {
            Some(hash) => Some(self.statement(request, planned, hash, None).await?),
            None => None,
        };
        Ok((statement, without_tables))
    }

    async fn statement(
        &self,
        request: &RequestContext,
        planned: &PlannedQuery,
        query_hash: &Arc<str>,
        pre_aggregation: Option<&Arc<str>>,
    ) -> Result<StatementPrediction, StoreError> {
        let user_id = &request.caller.user_id;
        let owner = QueryOwner { user_id: Arc::clone(user_id), tenant: request.tenant.clone() };
        let all = HistoryFilter {
            tenant: Some(request.tenant.clone()),
            owner: planned.has_policies.then_some(owner),
            is_computed: true,
            limit: SAMPLES,
            ..HistoryFilter::default()
        };
        // An anonymous caller has no queries of its own.
        if planned.has_policies && user_id.is_empty() {
            return Ok(StatementPrediction::unknown());
        }
        let of_statement = HistoryFilter { query_hash: Some(Arc::clone(query_hash)), ..all.clone() };
        let samples = self.history.executed(&of_statement).await?;
        if !samples.is_empty() {
            return Ok(self.prediction_of(PredictionBasis::History, &samples, planned.has_policies));
        }
        let of_cube = HistoryFilter { cube: Some(Arc::clone(&planned.cube)), ..all };
        let mut samples = self.history.executed(&of_cube).await?;
        samples.retain(|sample| sample.pre_aggregation.as_ref() == pre_aggregation);
        match samples.len() >= MIN_SAMPLES_OF_CUBE {
            true => Ok(self.prediction_of(PredictionBasis::Statistics, &samples, planned.has_policies)),
            false => Ok(StatementPrediction::unknown()),
        }
    }

    fn prediction_of(
        &self,
        basis: PredictionBasis,
        samples: &[ExecutedQuery],
        is_rounded: bool,
    ) -> StatementPrediction {
        let range = |numbers: Vec<f64>| {
            let range = Range::of(numbers);
            if is_rounded { range.rounded() } else { range }
        };
        let seconds = range(samples.iter().map(|sample| sample.warehouse.as_secs_f64()).collect());
        let bytes: Option<Vec<f64>> =
            samples.iter().map(|sample| sample.scan_bytes.map(|bytes| bytes as f64)).collect();
        StatementPrediction {
            basis,
            samples: samples.len(),
            seconds: Some(seconds),
            scan_bytes: bytes.map(range),
            cost: self.prices.second.map(|price| seconds.times(price)),
        }
    }
}

impl StatementPrediction {
    fn unknown() -> Self {
        let basis = PredictionBasis::None;
        StatementPrediction { basis, samples: 0, seconds: None, scan_bytes: None, cost: None }
    }
}

impl PredictionBasis {
    pub fn as_str(self) -> &'static str {
        match self {
            PredictionBasis::History => "history",
            PredictionBasis::Statistics => "statistics",
            PredictionBasis::None => "none",
        }
    }
}

impl Range {
    /// Returns the percentiles of at least one number. A percentile between two numbers is interpolated.
    fn of(mut numbers: Vec<f64>) -> Range {
        numbers.sort_by(f64::total_cmp);
        let quantile = |share: f64| {
            let place = share * (numbers.len().saturating_sub(1)) as f64;
            let (below, above) = (place.floor() as usize, place.ceil() as usize);
            let (below, above, part) = (numbers[below], numbers[above], place - place.floor());
            below + (above - below) * part
        };
        Range { low: quantile(0.1), median: quantile(0.5), high: quantile(0.9) }
    }

    fn map(self, change: impl Fn(f64) -> f64) -> Range {
        Range { low: change(self.low), median: change(self.median), high: change(self.high) }
    }

    fn times(self, factor: f64) -> Range {
        self.map(|number| number * factor)
    }

    /// Rounds to two significant digits.
    fn rounded(self) -> Range {
        self.map(|number| {
            if number <= 0.0 {
                return number;
            }
            let scale = 10_f64.powi(1 - number.log10().floor() as i32);
            (number * scale).round() / scale
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_interpolated() {
        let range = Range::of((0..=10).rev().map(f64::from).collect());
        assert_eq!((range.low, range.median, range.high), (1.0, 5.0, 9.0));
        let one = Range::of(vec![3.0]);
        assert_eq!((one.low, one.median, one.high), (3.0, 3.0, 3.0));
        let two = Range::of(vec![0.0, 1.0]);
        assert_eq!((two.low, two.median, two.high), (0.1, 0.5, 0.9));
    }

    #[test]
    fn numbers_are_rounded_to_two_digits() {
        let range = Range { low: 0.0, median: 1_234.5, high: 0.001_26 }.rounded();
        assert!(range.low == 0.0 && (range.median - 1_200.0).abs() < 1e-9 && (range.high - 0.001_3).abs() < 1e-12);
    }
}
