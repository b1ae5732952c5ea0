//! `terrane governance history` and `bulk`: the changes of records, and several changes in one call.
//!
//! In: a filter, or operations. Out: changes or results, as the routes return them.

use terrane_wire::ErrorBody;
use terrane_wire::governance::bulk::{GovernanceBulkResults, operations_from_wire};
use terrane_wire::governance::{GovernanceHistory, history_from_parameters};

use super::super::module::{ReadArguments, Requester, body, failed, print_list, with_services};
use super::artifact::ArtifactArgument;
use super::{refused, service};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::plural;

#[derive(Debug, clap::Args)]
pub struct HistoryArguments {
    #[command(flatten)]
    pub read: ReadArguments,
    /// List the changes of this artifact, like metric/revenue or measure/orders.count
    #[arg(long, value_name = "TYPE/ID")]
    artifact: Option<ArtifactArgument>,
    /// List the changes of the term with this id
    #[arg(long, value_name = "ID")]
    term: Option<String>,
    /// The `next` of the previous page
    #[arg(long, value_name = "NEXT")]
    before: Option<String>,
    /// The maximum number of changes, 1–500
    #[arg(long)]
    limit: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub struct BulkArguments {
    /// The operations as JSON or YAML, like the body of the route; `@FILE` reads a file, `-` standard input
    operations: String,
    #[command(flatten)]
    pub read: ReadArguments,
}

/// Lists changes, newest first.
///
/// # Errors
/// An argument is invalid, or the caller may not see the artifact.
pub(super) async fn history(arguments: &HistoryArguments, project: &Project) -> Result<(), Failure> {
    let HistoryArguments { read, artifact, term, before, limit } = arguments;
    let parameters = artifact.as_ref().map(ArtifactArgument::parameters).unwrap_or_default();
    let parameters = parameters.with("term_id", term.as_ref()).with("before", before.as_ref()).with("limit", *limit);
    let filter = history_from_parameters(&parameters.text()).map_err(failed)?;
    let requester = Requester::new(read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let page = service(services)?.history(&filter, &requester.request).await.map_err(refused)?;
        let columns = [
            ("AT", "/at"),
            ("ACTOR", "/actor"),
            ("ACTION", "/action"),
            ("TYPE", "/artifact_type"),
            ("ARTIFACT", "/artifact_id"),
            ("TERM", "/term_id"),
            ("VERSION", "/version"),
            ("NOTES", "/notes"),
        ];
        print_list(read.place.json, &GovernanceHistory::from(&page), "changes", &columns);
        Ok(())
    })
    .await
}

/// Makes several changes, each like its own route.
///
/// # Errors
/// The operations cannot be read, or at least one of them failed.
pub(super) async fn bulk(arguments: &BulkArguments, project: &Project) -> Result<(), Failure> {
    let operations = operations_from_wire(&body(&arguments.operations)?).map_err(failed)?;
    let requester = Requester::new(arguments.read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let service = service(services)?;
        let mut results = Vec::with_capacity(operations.len());
        for operation in operations {
            results.push(match operation {
                Ok(operation) => {
                    let applied = service.apply(&operation, &requester.request).await;
                    applied.map_err(|error| ErrorBody::from(&error))
                }
                Err(error) => Err(error.into()),
            });
        }
        let results = GovernanceBulkResults::new(results);
        let columns =
            [("OPERATION", "/index"), ("STATUS", "/status"), ("VERSION", "/version"), ("ERROR", "/error/message")];
        print_list(arguments.read.place.json, &results, "results", &columns);
        match results.failed {
            0 => Ok(()),
            failed => Err(Failure::new(format!("{failed} of {} failed", plural(results.results.len(), "operation")))),
        }
    })
    .await
}
