//! `terrane governance certification`: reads and moves certifications.
//!
//! In: an artifact and a move. Out: the certification after it, as the routes return it.

use clap::Subcommand;
use terrane_app::ports::governance::Transition;
use terrane_app::services::ServerServices;
use terrane_wire::governance::{self as wire, Certification, Certifications};

use super::super::module::{
    ChangeArguments, Parameters, PlaceArguments, ReadArguments, Requester, failed, print_list, print_record,
    with_services,
};
use super::artifact::{ArtifactArgument, PageArguments};
use super::{refused, service};
use crate::failure::Failure;
use crate::project::Project;

#[derive(Debug, Subcommand)]
pub enum CertificationAction {
    /// List certifications
    List {
        #[command(flatten)]
        read: ReadArguments,
        /// List certifications with this status: `draft`, `pending_review`, `certified`, `deprecated` or `archived`
        #[arg(long)]
        status: Option<String>,
        /// List artifacts of this type: `cube`, `measure`, `dimension`, `metric` or `model`
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show the certification of an artifact
    Status {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        #[command(flatten)]
        read: ReadArguments,
    },
    /// Submit an artifact for certification
    Submit {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        #[command(flatten)]
        change: ChangeArguments,
        /// A note for the reviewer
        #[arg(long)]
        notes: String,
    },
    /// Certify a submitted artifact
    Certify {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        #[command(flatten)]
        change: ChangeArguments,
        /// A note on the certificate
        #[arg(long)]
        notes: Option<String>,
        /// The last day of the certificate, like 2026-12-31
        #[arg(long, value_name = "DATE")]
        valid_until: Option<String>,
    },
    /// Reject a submitted artifact
    Reject {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        #[command(flatten)]
        change: ChangeArguments,
        /// The reason for the rejection
        #[arg(long)]
        reason: String,
    },
    /// Deprecate a certified artifact
    Deprecate {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        #[command(flatten)]
        change: ChangeArguments,
        /// The reason for the deprecation
        #[arg(long)]
        reason: String,
        /// The id of the artifact to use instead, of the same type
        #[arg(long, value_name = "ID")]
        replacement: Option<String>,
        /// The day on which the artifact will be removed
        #[arg(long, value_name = "DATE")]
        sunset_date: Option<String>,
    },
    /// Archive an artifact
    Archive {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        #[command(flatten)]
        change: ChangeArguments,
        /// A note on the change
        #[arg(long)]
        notes: Option<String>,
    },
    /// Restore an archived artifact as a draft
    Restore {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        #[command(flatten)]
        change: ChangeArguments,
        /// A note on the change
        #[arg(long)]
        notes: Option<String>,
    },
}

impl CertificationAction {
    pub(super) fn place(&self) -> &PlaceArguments {
        match self {
            CertificationAction::List { read, .. } | CertificationAction::Status { read, .. } => &read.place,
            CertificationAction::Submit { change, .. }
            | CertificationAction::Certify { change, .. }
            | CertificationAction::Reject { change, .. }
            | CertificationAction::Deprecate { change, .. }
            | CertificationAction::Archive { change, .. }
            | CertificationAction::Restore { change, .. } => &change.place,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The request is refused.
pub(super) async fn run(action: &CertificationAction, project: &Project) -> Result<(), Failure> {
    let text = |text: &String| Some(text.clone());
    match action {
        CertificationAction::List { read, status, kind, page } => {
            let parameters = Parameters::default().with("status", status.as_ref());
            let parameters = page.of(parameters.with("artifact_type", kind.as_ref()));
            list(read, &parameters, project).await
        }
        CertificationAction::Status { artifact, read } => {
            let requester = Requester::new(read.caller.caller.as_deref())?;
            let artifact = artifact.reference()?;
            with_services(project, async |services| {
                let view = service(services)?.certification(&artifact, &requester.request).await.map_err(refused)?;
                print_record(read.place.json, &Certification::from(&view));
                Ok(())
            })
            .await
        }
        CertificationAction::Submit { artifact, change, notes } => {
            let body = artifact.body([("notes", text(notes))]);
            step(Transition::Submit, &body, change, project).await
        }
        CertificationAction::Certify { artifact, change, notes, valid_until } => {
            let body = artifact.body([("notes", notes.clone()), ("valid_until", valid_until.clone())]);
            step(Transition::Certify, &body, change, project).await
        }
        CertificationAction::Reject { artifact, change, reason } => {
            let body = artifact.body([("reason", text(reason))]);
            step(Transition::Reject, &body, change, project).await
        }
        CertificationAction::Deprecate { artifact, change, reason, replacement, sunset_date } => {
            let (reason, replacement) = (("reason", text(reason)), ("replacement", replacement.clone()));
            let body = artifact.body([reason, replacement, ("sunset_date", sunset_date.clone())]);
            step(Transition::Deprecate, &body, change, project).await
        }
        CertificationAction::Archive { artifact, change, notes } => {
            let body = artifact.body([("notes", notes.clone())]);
            step(Transition::Archive, &body, change, project).await
        }
        CertificationAction::Restore { artifact, change, notes } => {
            let body = artifact.body([("notes", notes.clone())]);
            step(Transition::Restore, &body, change, project).await
        }
    }
}

async fn step(transition: Transition, body: &[u8], change: &ChangeArguments, project: &Project) -> Result<(), Failure> {
    let wanted = wire::move_from_wire(transition, body, change.version.precondition()).map_err(failed)?;
    let requester = Requester::new(change.caller.caller.as_deref())?;
    with_services(project, async |services: &ServerServices| {
        let view = service(services)?.certify(&wanted, &requester.request).await.map_err(refused)?;
        print_record(change.place.json, &Certification::from(&view));
        Ok(())
    })
    .await
}

async fn list(read: &ReadArguments, parameters: &Parameters, project: &Project) -> Result<(), Failure> {
    let (filter, page) = wire::certification_filter_from_parameters(&parameters.text()).map_err(failed)?;
    let requester = Requester::new(read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let found = service(services)?.certifications(&filter, &page, &requester.request).await.map_err(refused)?;
        let columns = [
            ("TYPE", "/artifact_type"),
            ("ARTIFACT", "/artifact_id"),
            ("STATUS", "/status"),
            ("VERSION", "/version"),
            ("CERTIFIED BY", "/certified_by"),
            ("VALID UNTIL", "/valid_until"),
            ("EXPIRED", "/expired"),
            ("CHANGED SINCE", "/definition_changed/since"),
        ];
        print_list(read.place.json, &Certifications::from(&found), "certifications", &columns);
        Ok(())
    })
    .await
}
