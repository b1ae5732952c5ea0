//! The root of subscriptions: live queries, jobs and pre-aggregations.
//!
//! In: the state of a request. Out: streams of changed results. The executor admits each subscription, so that callers
//! and the server have a bound of them.

use std::sync::Arc;
use std::time::Duration;

use async_graphql::{Context, ID, MergedSubscription, Result, Subscription as SubscriptionObject};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use terrane_app::domain::QueryKind;
use terrane_app::live::TICK;
use terrane_wire::preaggregations::PreaggregationStatus;
use terrane_wire::{Audience, Code, ErrorBody};

use super::inputs::Question;
use super::job::Job;
use super::preaggregation::PreAggregation;
use super::question::question_field;
use super::request::{RequestParts, RequestState, state};
use super::result::QueryResult;
use crate::failure::Failure;

/// The items of a subscription.
type Items<T> = BoxStream<'static, Result<T>>;

/// Changes as they happen.
#[derive(Default, MergedSubscription)]
pub(crate) struct Subscription(QueryResultField, States);

question_field! {
    [async_graphql::Subscription]
    /// The rows of a query: at once, and again whenever they have changed. If the warehouse does not report changes, the
    /// query runs every `refreshSeconds`, at least 1.
    QueryResultField.query_result(refresh_seconds: Option<u32>) -> Items<QueryResult> = live_rows
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
        parts.server()?;
        Ok(changes(move || {
            let (parts, cube, name) = (Arc::clone(&parts), cube.clone(), name.clone());
            async move { status(&parts, &cube, &name).await.map(|status| (status, false)) }
        }))
    }

    /// The state of one of the caller's own jobs: at once, and again whenever it has changed, until the job has ended.
    async fn job(&self, context: &Context<'_>, id: ID) -> Result<Items<Job>> {
        let parts = Arc::clone(&state(context).parts);
        parts.server()?;
        Ok(changes(move || {
            let (parts, id) = (Arc::clone(&parts), id.clone());
            async move {
                let job = parts.server()?.jobs.job(&parts.context.identity(), &id).await;
                let job =
                    job.map_err(|error| Failure::from(ErrorBody::from_job(error, parts.context.request.scopes)))?;
                Ok((Job::from(&job), !job.state.is_open()))
            }
        }))
    }
}

async fn live_rows(
    state: &RequestState,
    question: Question,
    refresh_seconds: Option<u32>,
) -> Result<Items<QueryResult>, Failure> {
    let cube = question.cube.clone();
    let query = question.into_query()?;
    let parts = Arc::clone(&state.parts);
    let refresh = refresh_seconds.map(|seconds| Duration::from_secs(seconds.into()));
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

async fn status(parts: &RequestParts, cube: &str, name: &str) -> Result<PreAggregation, Failure> {
    let request = &parts.context.request;
    let found = parts.server()?.preaggregations.status(request).await;
    let found = found.map_err(|error| Failure::from(ErrorBody::from_store(&error)))?;
    let status = found.iter().find(|status| &*status.rollup.cube == cube && &*status.rollup.name == name);
    let status = status.ok_or_else(|| {
        Failure::from(ErrorBody::new(Code::NotFound, format!("cube `{cube}` has no pre-aggregation `{name}`")))
    })?;
    Ok(PreaggregationStatus::new(status, Audience::of(request.scopes)).into())
}

/// Returns a state at once, and again whenever it differs from the last one. `read` returns also whether the state is
/// the last. An error is the last item.
fn changes<T, F>(read: impl Fn() -> F + Send + 'static) -> Items<T>
where
    T: PartialEq + Clone + Send + Sync + 'static,
    F: Future<Output = Result<(T, bool), Failure>> + Send,
{
    struct Followed<T, R> {
        read: R,
        last: Option<T>,
        is_over: bool,
    }
    let followed = Followed { read, last: None, is_over: false };
    let items = stream::unfold(followed, |mut followed| async move {
        while !followed.is_over {
            if followed.last.is_some() {
                tokio::time::sleep(TICK).await;
            }
            match (followed.read)().await {
                Ok((state, is_last)) => {
                    followed.is_over = is_last;
                    if followed.last.as_ref() != Some(&state) {
                        followed.last = Some(state.clone());
                        return Some((Ok(state), followed));
                    }
                }
                Err(error) => {
                    followed.is_over = true;
                    return Some((Err(error.into()), followed));
                }
            }
        }
        None
    });
    items.boxed()
}
