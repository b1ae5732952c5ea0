//! The channels of alerts that the configuration names.

use std::sync::Arc;

use terrane_app::ports::channels::AlertChannels;
use terrane_app::ports::clock::Clock;
use terrane_app::security::AcknowledgeKey;
use terrane_channels::{ChannelSettings, Channels};

use super::providers::{authorities, failed, outgoing};
use crate::failure::Failure;
use crate::project::Project;

/// Creates the adapter, without a request. `acknowledge_key` signs the links that acknowledge alerts.
///
/// # Errors
/// A channel can never be used.
pub(super) fn channels(
    project: &Project,
    clock: &Arc<dyn Clock>,
    acknowledge_key: Option<AcknowledgeKey>,
) -> Result<Arc<dyn AlertChannels>, Failure> {
    let (config, root) = (&project.config, project.folder.root());
    let settings = &config.anomaly.channels;
    // By default, links in alerts use the URL at which callers sign in.
    let public_url = settings.public_url.clone().or_else(|| config.security.oauth.public_url().map(str::to_owned));
    let settings = ChannelSettings { public_url, acknowledge_key, ..settings.clone() };
    let ca = authorities(config, root)?;
    let channels = Channels::new(
        settings,
        outgoing(config, root)?,
        Arc::clone(clock),
        ca.as_ref().map(|(_, text)| text.as_slice()),
    );
    Ok(Arc::new(channels.map_err(|problem| failed("anomaly.channels", &problem))?))
}
