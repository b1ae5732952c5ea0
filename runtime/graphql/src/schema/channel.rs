//! Configured channels of alerts, and the channels of a monitor.
//!
//! In: records of the use case, which contain no secrets. Out: the fields that REST sends, under names in GraphQL's
//! convention.

use async_graphql::{Context, SimpleObject};
use terrane_wire::anomaly as wire;

use super::monitor::{refused, service};
use super::request::state;
use crate::failure::Failure;

/// A configured channel. Its URL and its credentials are never sent.
#[derive(SimpleObject)]
pub(crate) struct ConfiguredChannel {
    /// `webhook`, `slack`, `pagerduty`, `email`, `sms` or `in_app`.
    #[graphql(name = "type")]
    ty: String,
    /// The target of monitors. Null for `email` and `sms`, whose targets are addresses.
    name: Option<String>,
    /// True if messages contain numbers and the values of dimensions.
    cleared: bool,
    /// The number of failed attempts since the last message that was accepted.
    failures: u32,
    /// The time of the next attempt after a failure.
    resumes_at: Option<String>,
    /// The reason why the receiver refuses all messages.
    disabled: Option<String>,
}

/// Returns the configured channels, each with the state of its deliveries.
///
/// # Errors
/// Monitors are switched off, or the state database is unavailable.
pub(crate) async fn channels(context: &Context<'_>) -> Result<Vec<ConfiguredChannel>, Failure> {
    let state = state(context);
    let parts = &state.parts;
    state.count_items(0)?;
    let seen = service(parts)?.channels().await.map_err(|error| refused(error, parts))?;
    state.count(context, seen.len(), &|_| None)?;
    let channels = wire::Channels::from(seen.as_slice()).channels;
    Ok(channels.into_iter().map(ConfiguredChannel::from).collect())
}

impl From<wire::ConfiguredChannel<'_>> for ConfiguredChannel {
    fn from(channel: wire::ConfiguredChannel<'_>) -> Self {
        ConfiguredChannel {
            ty: channel.r#type.to_owned(),
            name: channel.name.map(str::to_owned),
            cleared: channel.cleared,
            failures: channel.failures,
            resumes_at: channel.resumes_at,
            disabled: channel.disabled.map(str::to_owned),
        }
    }
}
