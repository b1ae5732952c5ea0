//! The root of mutations: the cache, pre-aggregations and jobs.
//!
//! In: the state of a request. Out: the changes that were made. Each mutation requires the scope of its REST route. The
//! audit log contains each change and each denial.

use async_graphql::{Context, ID, MergedObject, Object, Result, SimpleObject};
use terrane_app::domain::{RequestContext, RequestTarget, Scope};
use terrane_app::jobs::{JobError, Submission};
use terrane_app::preaggregations::RefreshRequest;
use terrane_wire::preaggregations::PreaggregationBuild;
use terrane_wire::query::to_wire;
use terrane_wire::{Audience, ErrorBody};

use super::inputs::Question;
use super::job::Job;
use super::preaggregation::PreAggregationBuild;
use super::question::question_field;
use super::request::{RequestState, state};
use crate::failure::Failure;

/// Changes.
#[derive(Default, MergedObject)]
pub(crate) struct Mutation(Changes, CreateJobField);

/// The cubes whose cached results are no longer used.
#[derive(SimpleObject)]
pub(crate) struct CacheInvalidation {
    /// All cubes if it is null.
    cubes: Option<Vec<String>>,
    /// The tenant of the caller. Results of other tenants are unchanged. Null without tenants.
    tenant: Option<String>,
}

#[derive(Default)]
pub(crate) struct Changes;

#[Object]
impl Changes {
    /// Reports that the data of cubes changed: cached results over them are no longer used.
    async fn invalidate_cache(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Default: all cubes.")] cubes: Option<Vec<String>>,
    ) -> Result<CacheInvalidation> {
        let state = state(context);
        let request = permitted(state, "invalidateCache", Scope::Write).await?;
        let invalidated = state.parts.server()?.invalidations.invalidate(cubes.as_deref(), &request).await;
        invalidated.map_err(|error| Failure::from(&error))?;
        Ok(CacheInvalidation { cubes, tenant: request.tenant.as_deref().map(str::to_owned) })
    }

    /// Builds pre-aggregations now, whether their rows changed or not. Returns the builds that wait.
    async fn refresh_pre_aggregation(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Default: all cubes.")] cube: Option<String>,
        #[graphql(desc = "Default: all pre-aggregations of the cube.")] name: Option<String>,
        #[graphql(
            desc = "A date, time or period in each partition to build, such as `2026-01` or `2026-Q1`. Default: all partitions."
        )]
        partitions: Option<Vec<String>>,
    ) -> Result<Vec<PreAggregationBuild>> {
        let state = state(context);
        let request = permitted(state, "refreshPreAggregation", Scope::Write).await?;
        let wanted = RefreshRequest { cube, name, partitions: partitions.unwrap_or_default() };
        let builds = state.parts.server()?.preaggregations.refresh(&wanted, &request).await;
        let builds = builds.map_err(|error| Failure::from(&error))?;
        let audience = Audience::of(request.scopes);
        Ok(builds.iter().map(|build| PreaggregationBuild::new(build, audience).into()).collect())
    }

    /// Cancels a build that waits or runs. A build that has already ended is not changed.
    async fn cancel_pre_aggregation_build(&self, context: &Context<'_>, id: ID) -> Result<PreAggregationBuild> {
        let state = state(context);
        let request = permitted(state, "cancelPreAggregationBuild", Scope::Write).await?;
        let build = state.parts.server()?.preaggregations.cancel(&id, &request).await;
        let build = build.map_err(|error| Failure::from(&error))?;
        Ok(PreaggregationBuild::new(&build, Audience::of(request.scopes)).into())
    }

    /// Cancels one of the caller's own jobs that has not ended, or deletes the result of one that is complete.
    async fn cancel_job(&self, context: &Context<'_>, id: ID) -> Result<Job> {
        let state = state(context);
        let request = permitted(state, "cancelJob", Scope::Read).await?;
        let identity = state.parts.context.identity();
        let job = state.parts.server()?.jobs.cancel(&identity, &request.origin(), &id).await;
        Ok(Job::from(&job.map_err(|error| job_failure(error, &request))?))
    }
}

question_field! {
    [async_graphql::Object]
    /// Runs a query as a job, for results that take long or are large. Its rows are read over REST.
    CreateJobField.create_job() -> Job = create_job
}

async fn create_job(state: &RequestState, question: Question) -> Result<Job, Failure> {
    let request = permitted(state, "createJob", Scope::Read).await?;
    let query = question.into_query()?;
    let submission = Submission { text: to_wire(&query).into(), query: &query, idempotency_key: None };
    let identity = state.parts.context.identity();
    let job = state.parts.server()?.jobs.submit(&identity, &request, submission).await;
    Ok(Job::from(&job.map_err(|error| job_failure(error, &request))?))
}

/// Returns the request with the mutation as its target, after checking that the caller has the required scope.
async fn permitted(state: &RequestState, name: &'static str, scope: Scope) -> Result<RequestContext, Failure> {
    let request = &state.parts.context.request;
    let target = RequestTarget { action: "mutation", pattern: name, required: Some(scope), ..request.target.clone() };
    let request = RequestContext { target, ..request.clone() };
    state.parts.services.access.require(&request, scope).await?;
    Ok(request)
}

fn job_failure(error: JobError, request: &RequestContext) -> Failure {
    ErrorBody::from_job(error, request.scopes).into()
}
