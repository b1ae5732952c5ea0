//! `terrane anomaly channels`, `test-channel` and `replay-delivery`. Each corresponds to a route of the server.
//!
//! In: a channel, or the id of a delivery. Out: channels, the result of a test message, or the delivery.

use terrane_wire::anomaly as wire;

use super::super::module::{
    PlaceArguments, ReadArguments, Requester, body_of, failed, print_list, print_record, with_services,
};
use super::monitors::{ShowArguments, refused, service};
use crate::failure::Failure;
use crate::project::Project;

#[derive(Debug, clap::Args)]
pub struct ListArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
}

#[derive(Debug, clap::Args)]
pub struct TestArguments {
    /// The type of the channel, such as `webhook`, `slack` or `email`
    #[arg(value_name = "TYPE")]
    kind: String,
    /// The name of a configured channel, or a target that the type accepts
    target: String,
    #[command(flatten)]
    pub read: ReadArguments,
}

/// Lists the configured channels.
///
/// # Errors
/// The state database cannot be read.
pub(super) async fn list(arguments: &ListArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(None)?;
    with_services(project, async |services| {
        let channels = service(services)?.channels().await.map_err(|error| refused(error, &requester))?;
        let columns = [
            ("TYPE", "/type"),
            ("NAME", "/name"),
            ("CLEARED", "/cleared"),
            ("FAILURES", "/failures"),
            ("RESUMES", "/resumes_at"),
            ("DISABLED", "/disabled"),
        ];
        print_list(arguments.place.json, &wire::Channels::from(channels.as_slice()), "channels", &columns);
        Ok(())
    })
    .await
}

/// Sends a test message.
///
/// # Errors
/// The channel cannot be used, or the receiver did not accept the message.
pub(super) async fn test(arguments: &TestArguments, project: &Project) -> Result<(), Failure> {
    let body = body_of([("type", Some(arguments.kind.clone())), ("target", Some(arguments.target.clone()))]);
    let channel = wire::channel_from_wire(&body).map_err(failed)?;
    let requester = Requester::new(arguments.read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let tested = service(services)?.test_channel(&requester.request, &channel).await;
        let message = tested.map_err(|error| refused(error, &requester))?;
        let result = wire::ChannelTest { delivered: message.is_none(), message };
        print_record(arguments.read.place.json, &result);
        match result.delivered {
            true => Ok(()),
            false => Err(Failure::new("the receiver did not accept the test message")),
        }
    })
    .await
}

/// Schedules a failed delivery to be sent again by a server.
///
/// # Errors
/// The delivery does not exist for the caller, or has not failed.
pub(super) async fn replay(arguments: &ShowArguments, project: &Project) -> Result<(), Failure> {
    let requester = Requester::new(arguments.read.caller.caller.as_deref())?;
    with_services(project, async |services| {
        let Requester { request, identity } = &requester;
        let delivery = service(services)?.replay(identity, request, &arguments.id).await;
        let delivery = delivery.map_err(|error| refused(error, &requester))?;
        print_record(arguments.read.place.json, &wire::Delivery::from(&delivery));
        Ok(())
    })
    .await
}
