//! The root of subscriptions: live queries, jobs, pre-aggregations and alerts.
//!
//! In: the state of a request. Out: streams of changed results. The executor admits each subscription, so that their
//! number is limited for each caller and for the server.

use std::sync::Arc;
use std::time::Duration;

use async_graphql::{Context, ID, MergedSubscription, Result, Subscription as SubscriptionObject};
use futures_util::StreamExt as _;
use futures_util::future;
use futures_util::stream::{self, BoxStream, Stream};
use terrane_app::domain::QueryKind;
use terrane_app::live::TICK;
use terrane_wire::preaggregations::PreaggregationStatus;
use terrane_wire::{Audience, ErrorBody};

use super::alert_state::Severity;
use super::inputs::{Question, count};
use super::job::Job;
use super::modules::has_monitors;
use super::monitor::{self, Alert};
use super::preaggregation::PreAggregation;
use super::question::question_field;
use super::request::{RequestParts, RequestState, state};
use super::result::QueryResult;
use crate::failure::Failure;

/// The stream of the items of a subscription.
type Items<T> = BoxStream<'static, Result<T>>;

/// Changes as they happen.
#[derive(Default, MergedSubscription)]
pub(crate) struct Subscription(QueryResultField, States);

question_field! {
    [async_graphql::Subscription]
    /// The rows of a query: at once, and again whenever they have changed. If the warehouse does not report changes,
    /// the query runs every `refreshSeconds`, at least 1.
    QueryResultField.query_result(refresh_seconds: Option<i64>) -> Items<QueryResult> = live_rows
}

#[derive(Default)]
pub(crate) struct States;

#[SubscriptionObject]
impl States {
    /// The state of a pre-aggregation: at once, and again whenever it has changed.
    async fn pre_aggregation_status(
        &self,
        context: &Context<'_>,
        cube: String,
        name: String,
    ) -> Result<Items<PreAggregation>> {
        let parts = Arc::clone(&state(context).parts);
        let request = parts.context.request.clone();
        let audience = Audience::of(request.scopes);
        let states = parts.server()?.preaggregations.follow_status(request, cube, name);
        Ok(changes(states.map(move |status| {
            let status = status.map_err(|error| Failure::from(&error))?;
            Ok(PreAggregation::from(PreaggregationStatus::new(&status, audience)))
        })))
    }

    /// The state of one of the caller's own jobs: at once, and again whenever it has changed, until the job has ended.
    async fn job(&self, context: &Context<'_>, id: ID) -> Result<Items<Job>> {
        let parts = Arc::clone(&state(context).parts);
        parts.server()?;
        Ok(changes(job_states(parts, id)))
    }

    /// Alerts of measures that the caller sees as the monitors' owners do. First the newest 1,000 open alerts, oldest
    /// first. Then each of these alerts, and of the newest 1,000 alerts, whenever it is triggered or changes.
    #[graphql(visible = "has_monitors")]
    async fn alerts(
        &self,
        context: &Context<'_>,
        monitor_id: Option<ID>,
        min_severity: Option<Severity>,
    ) -> Result<Items<Alert>> {
        let parts = Arc::clone(&state(context).parts);
        let alerts = monitor::followed_alerts(parts, monitor_id, min_severity)?;
        Ok(alerts.map(|alert| Ok(alert?)).boxed())
    }
}

async fn live_rows(
    state: &RequestState,
    question: Question,
    refresh_seconds: Option<i64>,
) -> Result<Items<QueryResult>, Failure> {
    let cube = question.cube.clone();
    let query = question.into_query()?;
    let parts = Arc::clone(&state.parts);
    let refresh =
        count("refreshSeconds", refresh_seconds)?.map(|seconds| Duration::from_secs(seconds.min(u32::MAX.into())));
    let answers = parts.services.live.query(query, parts.request(QueryKind::Graphql), refresh);
    let items = answers.map(move |answer| match answer {
        Ok(live) => {
            let parts = parts.over(live.snapshot, live.now);
            Ok(QueryResult::new(live.answer, Arc::new(parts), cube.clone(), false))
        }
        Err(error) => Err(parts.failure(error).into()),
    });
    Ok(items.boxed())
}

/// Returns a stream of the states of a job: one at once, and then one per interval until the job has ended. If the job
/// cannot be read, the error is the last item.
fn job_states(parts: Arc<RequestParts>, id: ID) -> impl Stream<Item = Result<Job, Failure>> + Send {
    stream::unfold(Some((parts, id, Duration::ZERO)), |followed| async move {
        let (parts, id, wait) = followed?;
        tokio::time::sleep(wait).await;
        let job = job(&parts, &id).await;
        let is_open = job.as_ref().is_ok_and(|job| job.state.is_open());
        Some((job.map(|job| Job::from(&job)), is_open.then_some((parts, id, TICK))))
    })
}

async fn job(parts: &RequestParts, id: &ID) -> Result<terrane_app::ports::jobs::Job, Failure> {
    let job = parts.server()?.jobs.job(&parts.context.identity(), id).await;
    job.map_err(|error| ErrorBody::from_job(error, parts.context.request.scopes).into())
}

/// Removes each state that equals the previous one.
fn changes<T>(states: impl Stream<Item = Result<T, Failure>> + Send + 'static) -> Items<T>
where
    T: PartialEq + Clone + Send + 'static,
{
    let mut last = None;
    let changed = states.filter_map(move |state| {
        let item = match state {
            Ok(state) if last.as_ref() == Some(&state) => None,
            Ok(state) => {
                last = Some(state.clone());
                Some(Ok(state))
            }
            Err(error) => Some(Err(error.into())),
        };
        future::ready(item)
    });
    changed.boxed()
}
