//! Builders for checks: collects the requests of a plan, finds the answer to a request, and creates findings.
//!
//! In: columns, aggregates, conditions. Out: the contract's [`Plan`] and [`Finding`]. A check has no state between its
//! two phases: the second phase rebuilds the same plan and looks up each answer by its request.

use super::{Aggregate, Answer, Column, Finding, Plan, QualityDimension, Request, Scalar, Severity};
use crate::LogicalType;
use crate::filter::{self, Filter};

/// Collects requests.
///
/// ```
/// use terrane_sdk::check::{Aggregate, Planner};
/// use terrane_sdk::filter::column;
///
/// let mut planner = Planner::default();
/// planner.ask(0, Aggregate::RowCount);
/// planner.ask(0, Aggregate::NullCount);
/// planner.count_where(0, column("age").lt(0));
/// let plan = planner.plan();
/// assert_eq!(plan.requests[2].agg, Aggregate::CountWhere(0));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Planner {
    requests: Vec<Request>,
    conditions: Vec<Filter>,
}

impl Planner {
    /// Requests an aggregate of the column with this index. A repeated request is sent once.
    pub fn ask(&mut self, column: usize, agg: Aggregate) {
        let request = Request { column: column as u32, agg };
        if !self.requests.contains(&request) {
            self.requests.push(request);
        }
    }

    /// Requests the number of rows for which a condition holds.
    pub fn count_where(&mut self, column: usize, condition: Filter) {
        self.conditions.push(condition);
        self.ask(column, Aggregate::CountWhere(self.conditions.len() as u32 - 1));
    }

    pub fn plan(self) -> Plan {
        Plan { requests: self.requests, predicates: filter::arena(&self.conditions) }
    }
}

/// The answers to the requests of a plan.
#[derive(Debug, Clone, Copy)]
pub struct Answers<'a> {
    plan: &'a Plan,
    answers: &'a [Answer],
}

impl<'a> Answers<'a> {
    /// Pairs the plan of phase 1 with its answers.
    pub fn new(plan: &'a Plan, answers: &'a [Answer]) -> Self {
        Answers { plan, answers }
    }

    /// Returns the whole answer to a request; `None` if the plan lacks the request or the request has no answer.
    pub fn get(&self, column: usize, agg: &Aggregate) -> Option<&'a Answer> {
        let is_it = |request: &Request| request.column as usize == column && request.agg == *agg;
        let request = self.plan.requests.iter().position(is_it)?;
        self.answers.iter().find(|answer| answer.request as usize == request)
    }

    /// Returns the answer's only number; `None` if it is null or the warehouse could not compute it.
    pub fn number(&self, column: usize, agg: &Aggregate) -> Option<f64> {
        number(self.get(column, agg)?.values.first()?)
    }
}

/// Returns a scalar as a number; `None` if the scalar is not a number.
pub fn number(scalar: &Scalar) -> Option<f64> {
    match scalar {
        Scalar::Integer(value) => Some(*value as f64),
        Scalar::Float(value) => Some(*value),
        Scalar::Decimal(digits) => digits.parse().ok(),
        _ => None,
    }
}

impl Finding {
    /// Creates a finding about one column, without a score.
    pub fn new(column: usize, dimension: QualityDimension, severity: Severity, code: &str, message: &str) -> Finding {
        Finding {
            column: Some(column as u32),
            dimension,
            severity,
            score: None,
            code: code.to_owned(),
            message: message.to_owned(),
            evidence: vec![],
        }
    }

    /// Sets the score, from 0 to 1. A column without problems has the score 1.
    #[must_use]
    pub fn with_score(mut self, score: f64) -> Finding {
        self.score = Some(score);
        self
    }

    #[must_use]
    pub fn with_evidence(mut self, key: &str, value: &str) -> Finding {
        self.evidence.push((key.to_owned(), value.to_owned()));
        self
    }
}

impl Column {
    /// Returns a dimension of a cube `orders`, for native tests.
    pub fn for_tests(member: &str, ty: LogicalType) -> Column {
        Column {
            cube: "orders".to_owned(),
            member: member.to_owned(),
            ty,
            is_measure: false,
            is_primary_key: false,
            tags: vec![],
            pii: false,
        }
    }
}

impl Answer {
    /// Returns an answer of one number, for native tests.
    pub fn for_tests(request: u32, value: impl Into<Scalar>) -> Answer {
        Answer { request, values: vec![value.into()], counts: vec![] }
    }
}
