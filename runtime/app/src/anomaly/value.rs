//! The values of a series: the values of a measure or of a metric.
//!
//! In: names as callers sent them, and the session of a caller. Out: the time axis, and the query by time. A metric
//! that the caller may not see has the same error as an unknown name. Not here: scores.

use std::collections::BTreeSet;
use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionType, MetricId};
use terrane_compiler::query::{PreAggregations, QueryError, SemanticQuery, TimeDimension};
use terrane_compiler::sql::ResultColumn;
use terrane_compiler::types::Granularity;
use terrane_compiler::{Access, unknown_metric};

use super::AnomalyError;
use crate::domain::{SeriesValue, qualified};
use crate::metadata;
use crate::query::{QueryRunError, QuerySession};

/// The time axis of metrics: each measure's own primary time dimension.
const METRIC_TIME: &str = "metric_time";

impl SeriesValue {
    /// Returns the name of the time dimension that the series runs along. `given` is the caller's choice.
    ///
    /// # Errors
    /// The metric is unknown to the caller, or a cube has no primary time dimension.
    pub(crate) async fn time_dimension(
        &self,
        session: &QuerySession<'_>,
        given: Option<&Arc<str>>,
    ) -> Result<Arc<str>, AnomalyError> {
        match (self, given) {
            (SeriesValue::Measure { cube, .. }, Some(name)) => Ok(qualified(cube, name)),
            (SeriesValue::Measure { cube, .. }, None) => time_dimension_of(session, cube).await,
            (SeriesValue::Metric(metric), Some(name)) => {
                visible_metric(session, metric)?;
                Ok(Arc::clone(name))
            }
            (SeriesValue::Metric(metric), None) => {
                let id = visible_metric(session, metric)?;
                check_time_axis(session, id)?;
                Ok(METRIC_TIME.into())
            }
        }
    }

    /// Returns the query of the values by time and dimensions.
    pub(crate) fn query(&self, time: TimeDimension, dimensions: &[Arc<str>]) -> Result<SemanticQuery, QueryError> {
        let dimensions = dimensions.iter().map(|name| self.dimension(name).parse());
        // Buckets finer than a day are instants, so both ends of the range are instants in UTC too.
        let is_instant = time.granularity.is_some_and(Granularity::is_sub_day);
        Ok(SemanticQuery {
            // With a cube, a name without a dot is looked up as a member of that cube first.
            cube: self.cube().cloned(),
            values: vec![self.member().parse()?],
            dimensions: dimensions.collect::<Result<_, QueryError>>()?,
            time_dimensions: vec![time],
            timezone: is_instant.then(|| "UTC".into()),
            ..SemanticQuery::default()
        })
    }

    /// Checks that the values of a result are numbers.
    pub(crate) fn check_numbers(&self, columns: &[ResultColumn]) -> Result<(), AnomalyError> {
        match columns.iter().find(|column| column.is_measure) {
            Some(column) if column.ty != DimensionType::Number => {
                Err(AnomalyError::NotNumbers { value: self.member(), ty: column.ty })
            }
            _ => Ok(()),
        }
    }

    /// Returns the error of a query, without details that the caller may not see. If policies or hooks deny the metric
    /// itself, the caller gets the error of an unknown metric.
    pub(crate) async fn disclosed(&self, session: &QuerySession<'_>, error: QueryRunError) -> QueryRunError {
        let SeriesValue::Metric(metric) = self else { return error };
        if is_closed(&error) && self.is_closed_alone(session).await {
            return unknown(session, metric).into();
        }
        error
    }

    /// Returns whether policies or hooks deny the metric even in a query without dimensions. If they do not, they
    /// denied only a dimension of the failed query.
    async fn is_closed_alone(&self, session: &QuerySession<'_>) -> bool {
        let Ok(member) = METRIC_TIME.parse() else { return false };
        let time = TimeDimension { member, granularity: Some(Granularity::Year), range: None };
        let Ok(query) = self.query(time, &[]) else { return false };
        let query = SemanticQuery { limit: Some(1), pre_aggregations: PreAggregations::Off, ..query };
        let compiled = match session.prepare(&query).await {
            Ok(prepared) => prepared.sql().await,
            Err(error) => Err(error),
        };
        compiled.is_err_and(|error| is_closed(&error))
    }
}

fn is_closed(error: &QueryRunError) -> bool {
    matches!(
        error,
        QueryRunError::Query(QueryError::ClosedCube { .. } | QueryError::Masked { .. } | QueryError::Covered { .. })
    )
}

/// Returns a metric that the caller may see.
///
/// # Errors
/// The metric does not exist, or the project's policies hide the metric or a part of it.
pub(crate) fn visible_metric(session: &QuerySession<'_>, name: &Arc<str>) -> Result<MetricId, AnomalyError> {
    let model = &session.snapshot().model;
    let access = Access::of(model, session.caller());
    let is_open = |id: &MetricId| {
        access.offers_metric(*id) && !model.facts_of_metric(*id).iter().any(|cube| access.is_closed(model.cube(*cube)))
    };
    let found = model.metric_named(name).filter(is_open);
    found.ok_or_else(|| QueryRunError::from(unknown(session, name)).into())
}

fn unknown(session: &QuerySession<'_>, name: &Arc<str>) -> QueryError {
    unknown_metric(&Access::of(&session.snapshot().model, session.caller()), name)
}

/// Checks that each measure of a metric belongs to a cube with a primary time dimension.
fn check_time_axis(session: &QuerySession<'_>, id: MetricId) -> Result<(), AnomalyError> {
    let model = &session.snapshot().model;
    let has_time = |cube: &CubeId| {
        let cube = model.cube(*cube);
        let primary = cube.primary_time.and_then(|primary| cube.dimensions.get(primary as usize));
        primary.is_some_and(|dimension| dimension.ty == DimensionType::Time)
    };
    let missing: BTreeSet<CubeId> = model.facts_of_metric(id).into_iter().filter(|cube| !has_time(cube)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let access = Access::of(model, session.caller());
    let shown = missing.into_iter().map(|cube| model.cube(cube)).filter(|cube| metadata::is_shown(&access, cube));
    let cubes = shown.map(|cube| Arc::clone(&cube.name)).collect();
    Err(AnomalyError::NoTimeAxis { metric: Arc::clone(&model.metric(id).name), cubes })
}

/// Returns the qualified name of a cube's primary time dimension.
pub(crate) async fn time_dimension_of(session: &QuerySession<'_>, cube: &Arc<str>) -> Result<Arc<str>, AnomalyError> {
    let model = &session.snapshot().model;
    let missing = || AnomalyError::NoTimeDimension { cube: Arc::clone(cube) };
    let Some(cube) = model.cube_named(cube).filter(|cube| cube.public) else {
        // The cube is unknown or not public; the query fails with the exact reason.
        let query = SemanticQuery { cube: Some(Arc::clone(cube)), ..SemanticQuery::default() };
        session.prepare(&query).await?.sql().await?;
        return Err(missing());
    };
    let primary = cube.primary_time.and_then(|primary| cube.dimensions.get(primary as usize));
    let primary = primary.filter(|dimension| dimension.ty == DimensionType::Time).ok_or_else(missing)?;
    Ok(qualified(&cube.name, &primary.name))
}
