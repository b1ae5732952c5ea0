//! `terrane governance owners`: reads, assigns and removes owners of artifacts.
//!
//! In: an artifact as `TYPE/ID` and an owner. Out: the owners of the artifact, as the routes return them.

use clap::Subcommand;
use terrane_app::governance::OwnershipView;
use terrane_app::ports::governance_records::ArtifactRef;
use terrane_wire::governance::{self as wire, ArtifactOwners, OwnedArtifacts};

use super::super::module::{
    ChangeArguments, Parameters, PlaceArguments, ReadArguments, Requester, failed, print_list, with_services,
};
use super::artifact::ArtifactArgument;
use super::{refused, service};
use crate::failure::Failure;
use crate::project::Project;

#[derive(Debug, Subcommand)]
pub enum OwnerAction {
    /// List the owners of an artifact
    List {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        #[command(flatten)]
        read: ReadArguments,
    },
    /// Assign an owner to an artifact
    Assign {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        /// A user id, or the name of a group
        owner: String,
        #[command(flatten)]
        change: ChangeArguments,
        /// `data_owner`, `data_steward` or `technical_owner`
        #[arg(long)]
        role: String,
        /// `user` or `team`
        #[arg(long, value_name = "TYPE", default_value = "user")]
        owner_type: String,
    },
    /// Remove an owner of an artifact
    Remove {
        /// The artifact as TYPE/ID, like metric/revenue or measure/orders.count
        artifact: ArtifactArgument,
        /// A user id, or the name of a group
        owner: String,
        #[command(flatten)]
        change: ChangeArguments,
        /// The role to remove; default: the only one
        #[arg(long)]
        role: Option<String>,
        /// `user` or `team`; default: both
        #[arg(long, value_name = "TYPE")]
        owner_type: Option<String>,
    },
    /// List the artifacts of an owner
    Owned {
        /// A user id, or the name of a group
        owner: String,
        #[command(flatten)]
        read: ReadArguments,
        /// `user` or `team`; default: both
        #[arg(long, value_name = "TYPE")]
        owner_type: Option<String>,
    },
}

impl OwnerAction {
    pub(super) fn place(&self) -> &PlaceArguments {
        match self {
            OwnerAction::List { read, .. } | OwnerAction::Owned { read, .. } => &read.place,
            OwnerAction::Assign { change, .. } | OwnerAction::Remove { change, .. } => &change.place,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The request is refused.
pub(super) async fn run(action: &OwnerAction, project: &Project) -> Result<(), Failure> {
    match action {
        OwnerAction::List { artifact, read } => {
            let requester = Requester::new(read.caller.caller.as_deref())?;
            let artifact = artifact.reference()?;
            with_services(project, async |services| {
                let view = service(services)?.owners(&artifact, &requester.request).await.map_err(refused)?;
                print_owners(read.place.json, &artifact, &view);
                Ok(())
            })
            .await
        }
        OwnerAction::Assign { artifact, owner, change, role, owner_type } => {
            let (owner, role) = (("owner_id", Some(owner.clone())), ("role", Some(role.clone())));
            let body = artifact.body([owner, role, ("owner_type", Some(owner_type.clone()))]);
            let wanted = wire::owner_from_wire(&body, change.version.precondition()).map_err(failed)?;
            let requester = Requester::new(change.caller.caller.as_deref())?;
            with_services(project, async |services| {
                let view = service(services)?.assign_owner(&wanted, &requester.request).await.map_err(refused)?;
                print_owners(change.place.json, &wanted.artifact, &view);
                Ok(())
            })
            .await
        }
        OwnerAction::Remove { artifact, owner, change, role, owner_type } => {
            let parameters = artifact.parameters().with("owner_id", Some(owner)).with("role", role.as_ref());
            let parameters = parameters.with("owner_type", owner_type.as_ref()).text();
            let wanted = wire::owner_from_parameters(&parameters, change.version.precondition()).map_err(failed)?;
            let requester = Requester::new(change.caller.caller.as_deref())?;
            with_services(project, async |services| {
                let view = service(services)?.remove_owner(&wanted, &requester.request).await.map_err(refused)?;
                print_owners(change.place.json, &wanted.artifact, &view);
                Ok(())
            })
            .await
        }
        OwnerAction::Owned { owner, read, owner_type } => owned(owner, owner_type.as_deref(), read, project).await,
    }
}

fn print_owners(is_json: bool, artifact: &ArtifactRef, view: &OwnershipView) {
    let columns = [
        ("OWNER", "/owner_id"),
        ("TYPE", "/owner_type"),
        ("ROLE", "/role"),
        ("ORIGIN", "/origin"),
        ("BY", "/assigned_by"),
        ("AT", "/assigned_at"),
    ];
    print_list(is_json, &ArtifactOwners::new(artifact, view), "owners", &columns);
}

async fn owned(owner: &str, owner_type: Option<&str>, read: &ReadArguments, project: &Project) -> Result<(), Failure> {
    let parameters = Parameters::default().with("owner_id", Some(owner)).with("owner_type", owner_type);
    let (owner, owner_type) = wire::owner_of_parameters(&parameters.text()).map_err(failed)?;
    let requester = Requester::new(read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let owned = service(services)?.owned_by(&owner, owner_type, &requester.request).await.map_err(refused)?;
        let columns =
            [("TYPE", "/artifact_type"), ("ARTIFACT", "/artifact_id"), ("ROLE", "/role"), ("ORIGIN", "/origin")];
        print_list(read.place.json, &OwnedArtifacts::new(&owner, &owned), "artifacts", &columns);
        Ok(())
    })
    .await
}
