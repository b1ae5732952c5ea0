//! Channels of alerts: the adapter that formats messages and sends them.
//!
//! In: the channels that the operator configured, and messages. Out: requests through `outgoing`, which checks each
//! address, and mails to the configured SMTP server. By default a message is short: measure, severity, steps and a
//! link. Numbers and the values of dimensions are added for channels that are cleared for them. Secrets come from the
//! configuration alone. Not here: retries and the order of messages (`app::monitors`).

mod email;
mod http;
mod pagerduty;
mod slack;
mod sms;
mod text;
mod webhook;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use terrane_app::ports::channels::{
    AlertChannels, AlertMessage, Channel, ChannelError, ChannelType, ConfiguredChannel, SendError,
};
use terrane_app::ports::clock::Clock;
use terrane_app::security::AcknowledgeKey;
use terrane_outgoing::OutgoingClient;

pub use email::{EmailSettings, Encryption};
pub use webhook::{SecretError, WebhookSecret};

use email::Mailer;
use http::Sender;
use text::Texts;

/// The channels of a configuration.
#[derive(Debug, Clone, Default)]
pub struct ChannelSettings {
    pub webhooks: Vec<WebhookSettings>,
    pub slack: Vec<SlackSettings>,
    pub pagerduty: Vec<PagerDutySettings>,
    pub email: Option<EmailSettings>,
    pub sms: Option<SmsSettings>,
    /// The address at which readers reach this server. Links begin with it; if it is `None`, links are paths.
    pub public_url: Option<String>,
    /// The key of links that acknowledge alerts; `None` for messages without these links.
    pub acknowledge_key: Option<AcknowledgeKey>,
}

/// A named receiver of signed JSON.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    pub name: Arc<str>,
    pub url: String,
    /// The secrets that sign a message; during a rotation, the new one comes first. If empty, messages are not signed.
    pub secrets: Vec<WebhookSecret>,
    pub is_cleared: bool,
}

/// An incoming webhook of Slack.
#[derive(Clone)]
pub struct SlackSettings {
    pub name: Arc<str>,
    /// The URL of the webhook, which contains a secret.
    pub url: String,
    pub is_cleared: bool,
}

/// A service of PagerDuty.
#[derive(Clone)]
pub struct PagerDutySettings {
    pub name: Arc<str>,
    pub routing_key: String,
    /// The address of the events API, version 2.
    pub url: String,
    pub is_cleared: bool,
}

/// A gateway that sends short messages.
#[derive(Clone)]
pub struct SmsSettings {
    pub url: String,
    pub token: Option<String>,
    pub from: Option<String>,
    pub is_cleared: bool,
}

impl std::fmt::Debug for SlackSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlackSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PagerDutySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PagerDutySettings").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SmsSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SmsSettings").field("from", &self.from).finish_non_exhaustive()
    }
}

/// The channels of a server.
pub struct Channels {
    settings: ChannelSettings,
    mailer: Option<Mailer>,
    sender: Sender,
    texts: Texts,
}

/// The reason why a configured channel cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{channel}: {problem}")]
pub struct ChannelsError {
    pub channel: String,
    pub problem: String,
}

impl Channels {
    /// Checks the configured channels without a request. `ca_pem` contains authorities to trust in addition to the
    /// public ones.
    ///
    /// # Errors
    /// Returns the problem of the first channel that can never be used.
    pub fn new(
        settings: ChannelSettings,
        outgoing: OutgoingClient,
        clock: Arc<dyn Clock>,
        ca_pem: Option<&[u8]>,
    ) -> Result<Self, ChannelsError> {
        let failed = |channel: &str, problem: &dyn std::fmt::Display| ChannelsError {
            channel: channel.to_owned(),
            problem: problem.to_string(),
        };
        let named = settings.webhooks.iter().map(|webhook| (format!("webhook `{}`", webhook.name), &webhook.url));
        let named = named.chain(settings.slack.iter().map(|slack| (format!("slack `{}`", slack.name), &slack.url)));
        let pagerduty = settings.pagerduty.iter();
        let named = named.chain(pagerduty.map(|service| (format!("pagerduty `{}`", service.name), &service.url)));
        for (name, url) in named.chain(settings.sms.iter().map(|sms| ("sms".to_owned(), &sms.url))) {
            outgoing.endpoint(url).map_err(|problem| failed(&name, &problem))?;
        }
        let mailer = settings.email.clone().map(|email| Mailer::new(email, ca_pem)).transpose();
        let mailer = mailer.map_err(|problem| failed("email", &problem))?;
        let texts =
            Texts { public_url: settings.public_url.clone(), acknowledge_key: settings.acknowledge_key.clone() };
        Ok(Channels { settings, mailer, sender: Sender { outgoing, clock }, texts })
    }

    fn webhook(&self, name: &str) -> Option<&WebhookSettings> {
        self.settings.webhooks.iter().find(|webhook| &*webhook.name == name)
    }

    /// Finds a channel of Slack. The name may begin with `#`, as in Slack.
    fn slack(&self, name: &str) -> Option<&SlackSettings> {
        let name = name.strip_prefix('#').unwrap_or(name);
        self.settings.slack.iter().find(|slack| slack.name.strip_prefix('#').unwrap_or(&slack.name) == name)
    }

    fn pagerduty(&self, name: &str) -> Option<&PagerDutySettings> {
        self.settings.pagerduty.iter().find(|service| &*service.name == name)
    }

    fn check_webhook(&self, target: &str) -> Result<(), ChannelError> {
        if target.contains("://") {
            return self.sender.check(target);
        }
        self.webhook(target).map(|_| ()).ok_or_else(|| self.unknown(ChannelType::Webhook, target))
    }

    fn unknown(&self, kind: ChannelType, name: &str) -> ChannelError {
        let known: Vec<Arc<str>> = self
            .configured()
            .into_iter()
            .filter(|channel| channel.kind == kind)
            .filter_map(|channel| channel.name)
            .collect();
        match known.is_empty() {
            true => ChannelError::NotConfigured { kind },
            false => ChannelError::UnknownName { kind, name: name.chars().take(100).collect::<String>().into(), known },
        }
    }
}

#[async_trait]
impl AlertChannels for Channels {
    fn configured(&self) -> Vec<ConfiguredChannel> {
        let settings = &self.settings;
        let channel =
            |kind, name: Option<&Arc<str>>, is_cleared| ConfiguredChannel { kind, name: name.cloned(), is_cleared };
        let webhooks = settings.webhooks.iter().map(|w| channel(ChannelType::Webhook, Some(&w.name), w.is_cleared));
        let slack = settings.slack.iter().map(|s| channel(ChannelType::Slack, Some(&s.name), s.is_cleared));
        let pagerduty = settings.pagerduty.iter().map(|p| channel(ChannelType::PagerDuty, Some(&p.name), p.is_cleared));
        let email = settings.email.iter().map(|email| channel(ChannelType::Email, None, email.is_cleared));
        let sms = settings.sms.iter().map(|sms| channel(ChannelType::Sms, None, sms.is_cleared));
        webhooks.chain(slack).chain(pagerduty).chain(email).chain(sms).collect()
    }

    fn check(&self, channel: &Channel) -> Result<(), ChannelError> {
        let (kind, target) = (channel.kind, &*channel.target);
        let not_configured = || ChannelError::NotConfigured { kind };
        match kind {
            ChannelType::InApp => Ok(()),
            ChannelType::Webhook => self.check_webhook(target),
            ChannelType::Slack => self.slack(target).map(|_| ()).ok_or_else(|| self.unknown(kind, target)),
            ChannelType::PagerDuty => self.pagerduty(target).map(|_| ()).ok_or_else(|| self.unknown(kind, target)),
            ChannelType::Email => self.mailer.as_ref().ok_or_else(not_configured)?.check(target),
            ChannelType::Sms => {
                self.settings.sms.as_ref().ok_or_else(not_configured)?;
                sms::check(target)
            }
        }
    }

    async fn check_address(&self, channel: &Channel) -> Result<(), ChannelError> {
        self.check(channel)?;
        match channel.kind {
            ChannelType::Webhook if channel.target.contains("://") => self.sender.check_address(&channel.target).await,
            _ => Ok(()),
        }
    }

    async fn send(&self, channel: &Channel, message: &AlertMessage) -> Result<(), SendError> {
        // The configuration may have changed since the channel was stored.
        self.check(channel).map_err(|error| SendError::Disabled { reason: error.to_string() })?;
        let target = &*channel.target;
        match channel.kind {
            ChannelType::InApp => Ok(()),
            ChannelType::Webhook => {
                let named = self.webhook(target);
                let url = named.map_or(target, |webhook| &webhook.url);
                let secrets = named.map_or(&[][..], |webhook| &webhook.secrets);
                let at = self.sender.clock.now().as_second();
                let body = webhook::body(&self.texts, message, named.is_some_and(|webhook| webhook.is_cleared));
                self.sender.post(url, body, |body| webhook::headers(&message.id, at, body, secrets)).await
            }
            ChannelType::Slack => {
                let Some(slack) = self.slack(target) else { return Ok(()) };
                let body = slack::body(&self.texts, message, slack.is_cleared);
                self.sender.post(&slack.url, body, |_| Vec::new()).await
            }
            ChannelType::PagerDuty => {
                let Some(service) = self.pagerduty(target) else { return Ok(()) };
                let Some(body) = pagerduty::body(&self.texts, message, service) else { return Ok(()) };
                self.sender.post(&service.url, body, |_| Vec::new()).await
            }
            ChannelType::Email => match &self.mailer {
                Some(mailer) => mailer.send(target, &self.texts, message).await,
                None => Ok(()),
            },
            ChannelType::Sms => {
                let Some(sms) = &self.settings.sms else { return Ok(()) };
                let body = sms::body(&self.texts, message, sms, target);
                self.sender.post(&sms.url, body, |_| sms::headers(sms)).await
            }
        }
    }
}
