//! `terrane cost history`, `budget` and the commands for guardrails. Each corresponds to a route of the server.
//!
//! In: arguments. Out: the responses of the routes. Changes are made by the operator, and have audit records.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use terrane_app::cost::{GuardrailError, GuardrailService};
use terrane_app::ports::guardrails::GuardrailSubject;
use terrane_app::services::ServerServices;
use terrane_wire::cost::{
    BudgetUsage, EffectiveGuardrails, GuardrailAnswer, QueryHistory, SubjectGuardrails, history_from_parameters,
    limits_from_wire, question_from_wire, usage_from_parameters,
};
use terrane_wire::{ErrorBody, FieldError, QueryForm};

use super::super::module::{
    CallerArguments, Parameters, PlaceArguments, Requester, VersionArguments, body, enabled, failed, print_list,
    print_record, with_services,
};
use super::super::print;
use super::super::query::query_text;
use crate::failure::Failure;
use crate::project::Project;

#[derive(Debug, clap::Args)]
pub struct HistoryArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
    /// List the queries of this user alone
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// List the queries of this statement alone
    #[arg(long, value_name = "HASH")]
    statement: Option<String>,
    /// List queries at or after this time, like 2024-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// List queries before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The `next` of the previous page
    #[arg(long, value_name = "NEXT")]
    before: Option<String>,
    /// The maximum number of queries, 1–1000
    #[arg(long, default_value_t = 100)]
    limit: u32,
    #[command(flatten)]
    caller: CallerArguments,
}

#[derive(Debug, clap::Args)]
pub struct EffectiveArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
    /// Show the limits of this user; the groups of the user are not known
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    #[command(flatten)]
    caller: CallerArguments,
}

#[derive(Debug, clap::Args)]
pub struct CheckArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The query as JSON; `@FILE` reads a file, `-` standard input
    query: String,
    /// Check the query against the guardrails of this user; the groups of the user are not known
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    #[command(flatten)]
    caller: CallerArguments,
    /// Print the response of the route as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub struct BudgetArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
    /// The user; default: the caller
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// `current_day` or `current_month`
    #[arg(long, default_value = "current_month")]
    period: String,
    #[command(flatten)]
    caller: CallerArguments,
}

/// A user or a group.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct SubjectArguments {
    /// The id of a user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The name of a role or a group of callers
    #[arg(long, value_name = "ROLE")]
    group: Option<String>,
}

impl SubjectArguments {
    fn subject(&self) -> GuardrailSubject {
        match (&self.user, &self.group) {
            (Some(user), _) => GuardrailSubject::User(user.as_str().into()),
            (None, group) => GuardrailSubject::Group(group.as_deref().unwrap_or_default().into()),
        }
    }
}

#[derive(Debug, clap::Args)]
pub struct ShowArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
    #[command(flatten)]
    subject: SubjectArguments,
    #[command(flatten)]
    caller: CallerArguments,
}

#[derive(Debug, clap::Args)]
pub struct SetArguments {
    /// The guardrails as JSON or YAML, like the body of the route; `@FILE` reads a file, `-` standard input
    limits: String,
    #[command(flatten)]
    pub place: PlaceArguments,
    #[command(flatten)]
    subject: SubjectArguments,
    #[command(flatten)]
    version: VersionArguments,
}

#[derive(Debug, clap::Args)]
pub struct RemoveArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
    #[command(flatten)]
    subject: SubjectArguments,
    #[command(flatten)]
    version: VersionArguments,
}

fn service(services: &ServerServices) -> Result<&Arc<GuardrailService>, Failure> {
    enabled(services.guardrails.as_ref(), "costs are", "optimization.enabled")
}

fn refused(error: GuardrailError) -> Failure {
    failed(ErrorBody::from(&error))
}

/// Lists executed queries.
///
/// # Errors
/// An argument is invalid, or the caller may not read the queries.
pub(super) async fn history(arguments: &HistoryArguments, project: &Project) -> Result<(), Failure> {
    let HistoryArguments { place, user, statement, since, until, before, limit, caller } = arguments;
    let parameters = Parameters::default()
        .with("user_id", user.as_ref())
        .with("query_hash", statement.as_ref())
        .with("since", since.as_ref())
        .with("until", until.as_ref())
        .with("before", before.as_ref())
        .with("limit", Some(limit));
    let filter = history_from_parameters(&parameters.text()).map_err(failed)?;
    let requester = Requester::new(caller.caller.as_deref())?;
    with_services(project, async |services| {
        let cost = enabled(services.cost.as_ref(), "costs are", "optimization.enabled")?;
        let queries = cost.history(&requester.request, filter).await.map_err(|error| failed(ErrorBody::from(error)))?;
        let columns = [
            ("AT", "/at"),
            ("STATEMENT", "/query_hash"),
            ("CUBE", "/cube"),
            ("USER", "/user_id"),
            ("KIND", "/kind"),
            ("QUERIES", "/queries"),
            ("ROWS", "/rows"),
            ("SECONDS", "/warehouse_seconds"),
            ("COST", "/cost"),
            ("CACHED", "/cached"),
            ("PRE-AGGREGATION", "/pre_aggregation"),
        ];
        print_list(place.json, &QueryHistory::new(&queries, *limit), "queries", &columns);
        Ok(())
    })
    .await
}

/// Shows the limits of a caller's queries.
///
/// # Errors
/// The caller may not read the guardrails of the user.
pub(super) async fn effective(arguments: &EffectiveArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.caller.caller.as_deref())?;
    let user: Option<Arc<str>> = arguments.user.as_deref().map(Into::into);
    with_services(project, async |services| {
        let sources = service(services)?.sources(&requester.request, user.as_ref()).await.map_err(refused)?;
        print_record(arguments.place.json, &EffectiveGuardrails::from(sources.as_slice()));
        Ok(())
    })
    .await
}

/// Checks a query against guardrails.
///
/// # Errors
/// The query is invalid, or the caller may not read the guardrails of the user.
pub(super) async fn check(arguments: &CheckArguments, project: &Project) -> Result<(), Failure> {
    let text = query_text(&arguments.query)?;
    let question = question(&text, arguments.user.as_deref())?;
    let (query, user) = question_from_wire(&question).map_err(failed)?;
    let requester = Requester::new(arguments.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let checked = service(services)?.check(&requester.request, &query, user.as_ref()).await;
        let scopes = requester.request.scopes;
        let checked = checked.map_err(|error| failed(ErrorBody::from_guardrail_check(error, scopes)))?;
        print_record(arguments.json, &GuardrailAnswer::new(&checked, QueryForm::Json));
        Ok(())
    })
    .await
}

/// Returns the body of the route for a query.
fn question(query: &str, user: Option<&str>) -> Result<Vec<u8>, Failure> {
    let query: Json = serde_json::from_str(query).map_err(|error| {
        let failure = Failure::new(format!("the query is not JSON: {error}"));
        failure.hint("Write one, as in '{\"measures\": [\"orders.count\"]}'.")
    })?;
    let mut body = Map::from_iter([("query".to_owned(), query)]);
    body.extend(user.map(|user| ("user_id".to_owned(), user.into())));
    Ok(Json::Object(body).to_string().into_bytes())
}

/// Shows the costs of a user in a period.
///
/// # Errors
/// The period is invalid, or the caller may not read the costs of the user.
pub(super) async fn budget(arguments: &BudgetArguments, project: &Project) -> Result<(), Failure> {
    let parameters = Parameters::default().with("user_id", arguments.user.as_ref());
    let parameters = parameters.with("period", Some(&arguments.period));
    let (user, period) = usage_from_parameters(&parameters.text()).map_err(failed)?;
    let requester = Requester::new(arguments.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let usage = service(services)?.budget_usage(&requester.request, user.as_ref(), period).await;
        print_record(arguments.place.json, &BudgetUsage::from(&usage.map_err(refused)?));
        Ok(())
    })
    .await
}

/// Shows the guardrails of a subject.
///
/// # Errors
/// The subject has no guardrails, or the caller may not read them.
pub(super) async fn show(arguments: &ShowArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let subject = arguments.subject.subject();
        let record = service(services)?.guardrails(&requester.request, &subject).await.map_err(refused)?;
        print_record(arguments.place.json, &SubjectGuardrails::from(&*record));
        Ok(())
    })
    .await
}

/// Replaces the guardrails of a subject.
///
/// # Errors
/// A limit is invalid, or the record has a different version.
pub(super) async fn set(arguments: &SetArguments, project: &Project) -> Result<(), Failure> {
    let limits = limits_from_wire(&body(&arguments.limits)?).map_err(|error: FieldError| failed(error))?;
    let (requester, precondition) = (Requester::new(None)?, arguments.version.precondition());
    with_services(project, async |services| {
        let subject = arguments.subject.subject();
        let record = service(services)?.change(&requester.request, &subject, Some(limits), &precondition).await;
        print_record(arguments.place.json, &SubjectGuardrails::from(&record.map_err(refused)?));
        Ok(())
    })
    .await
}

/// Removes the guardrails of a subject.
///
/// # Errors
/// The subject has no guardrails, or the record has a different version.
pub(super) async fn remove(arguments: &RemoveArguments, project: &Project) -> Result<(), Failure> {
    let (requester, precondition) = (Requester::new(None)?, arguments.version.precondition());
    with_services(project, async |services| {
        let subject = arguments.subject.subject();
        let removed = service(services)?.change(&requester.request, &subject, None, &precondition).await;
        let record = removed.map_err(refused)?;
        if arguments.place.json {
            print_record(true, &SubjectGuardrails::from(&record));
        } else {
            print(&format!("removed the guardrails of {} {}\n", subject.kind(), subject.name()));
        }
        Ok(())
    })
    .await
}
