//! The channels of alerts: `anomaly.channels`.
//!
//! In: the reader. Out: settings of the adapter; problems with their place. A channel with a wrong setting is left out
//! and reported as an error, so the server does not start.

use std::collections::BTreeMap;

use terrane_channels::{
    ChannelSettings, EmailSettings, Encryption, PagerDutySettings, SlackSettings, SmsSettings, WebhookSecret,
    WebhookSettings,
};
use terrane_compiler::diagnostic::{Code, Diagnostic};

use super::Place;
use super::reader::Section;

/// The events API of PagerDuty in the US region.
const PAGERDUTY_URL: &str = "https://events.pagerduty.com/v2/enqueue";

/// One entry of the list.
enum Entry {
    Webhook(WebhookSettings),
    Slack(SlackSettings),
    PagerDuty(PagerDutySettings),
    Email(EmailSettings),
    Sms(SmsSettings),
}

pub(super) fn channels(s: &mut Section<'_>) -> ChannelSettings {
    let mut settings = ChannelSettings { public_url: s.text("public_url"), ..ChannelSettings::default() };
    let entries = s.sections("channels", channel).unwrap_or_default();
    let place = s.place("channels");
    for entry in entries.into_iter().flatten() {
        if let Err(twice) = add(&mut settings, entry) {
            let message = format!("`anomaly.channels` has two channels of {twice}");
            report(s, place.as_ref(), Code::DuplicateKey, &message, "Remove or rename one of them.");
        }
    }
    settings
}

/// Adds a channel. Types with names may have one channel per name; the types `email` and `sms` have no names and may
/// have one channel each. Fails with a description of the channel that already exists.
fn add(settings: &mut ChannelSettings, entry: Entry) -> Result<(), String> {
    let named = |kind: &str, name: &str| format!("the type `{kind}` named `{name}`");
    match entry {
        Entry::Webhook(webhook) if settings.webhooks.iter().any(|known| known.name == webhook.name) => {
            return Err(named("webhook", &webhook.name));
        }
        Entry::Slack(slack) if settings.slack.iter().any(|known| known.name == slack.name) => {
            return Err(named("slack", &slack.name));
        }
        Entry::PagerDuty(service) if settings.pagerduty.iter().any(|known| known.name == service.name) => {
            return Err(named("pagerduty", &service.name));
        }
        Entry::Email(_) if settings.email.is_some() => return Err("the type `email`".to_owned()),
        Entry::Sms(_) if settings.sms.is_some() => return Err("the type `sms`".to_owned()),
        Entry::Webhook(webhook) => settings.webhooks.push(webhook),
        Entry::Slack(slack) => settings.slack.push(slack),
        Entry::PagerDuty(service) => settings.pagerduty.push(service),
        Entry::Email(email) => settings.email = Some(email),
        Entry::Sms(sms) => settings.sms = Some(sms),
    }
    Ok(())
}

/// The types of channels, each with its required keys and its optional keys.
const TYPES: [(&str, &[&str], &[&str]); 5] = [
    ("webhook", &["name", "url"], &["secret", "previous_secret"]),
    ("slack", &["name", "url"], &[]),
    ("pagerduty", &["name", "routing_key"], &["url"]),
    ("email", &["host", "from"], &["port", "encryption", "username", "password", "domains"]),
    ("sms", &["url"], &["token", "from"]),
];

/// The keys that an item sets.
struct Item {
    kind: Option<&'static str>,
    texts: BTreeMap<&'static str, (String, Option<Place>)>,
    encryption: Option<Encryption>,
    port: Option<u16>,
    domains: Option<Vec<String>>,
    is_cleared: bool,
    place: Option<Place>,
}

fn channel(s: &mut Section<'_>) -> Option<Entry> {
    let mut item = item(s);
    let Some(kind) = item.kind else {
        if item.place.is_none() || s.place("type").is_none() {
            item.report(s, Code::MissingField, "a channel of `anomaly.channels` has no `type`", "Add `type`.");
        }
        return None;
    };
    let (_, needed, allowed) = TYPES.iter().find(|(name, ..)| *name == kind)?;
    for key in needed.iter().filter(|key| !item.texts.contains_key(*key)) {
        let message = format!("the {kind} channel of `anomaly.channels` has no `{key}`");
        item.report(s, Code::MissingField, &message, &format!("Add `{key}`."));
    }
    let foreign = item.keys().into_iter().find(|key| !needed.contains(key) && !allowed.contains(key));
    if let Some(key) = foreign {
        let hint = format!("The keys of this channel are {}.", [*needed, *allowed].concat().join(", "));
        item.report(s, Code::UnknownKey, &format!("`{key}` is not a key of a {kind} channel"), &hint);
        return None;
    }
    match kind {
        "webhook" => webhook(s, &mut item),
        "slack" => Some(Entry::Slack(SlackSettings {
            name: item.text("name")?.into(),
            url: item.text("url")?,
            is_cleared: item.is_cleared,
        })),
        "pagerduty" => Some(Entry::PagerDuty(PagerDutySettings {
            name: item.text("name")?.into(),
            routing_key: item.text("routing_key")?,
            url: item.text("url").unwrap_or_else(|| PAGERDUTY_URL.to_owned()),
            is_cleared: item.is_cleared,
        })),
        "email" => email(s, &mut item),
        _ => Some(Entry::Sms(SmsSettings {
            url: item.text("url")?,
            token: item.text("token"),
            from: item.text("from"),
            is_cleared: item.is_cleared,
        })),
    }
}

/// Reads all keys that a channel can have.
fn item(s: &mut Section<'_>) -> Item {
    const ENCRYPTIONS: &[(&str, Encryption)] =
        &[("starttls", Encryption::StartTls), ("tls", Encryption::Tls), ("none", Encryption::None)];
    let kinds = TYPES.map(|(name, ..)| (name, name));
    let kind = s.choice("type", &kinds);
    let mut texts = BTreeMap::new();
    for key in ["name", "host", "username", "from"] {
        if let Some(text) = s.text(key).filter(|text| !text.trim().is_empty()) {
            texts.insert(key, (text, s.place(key)));
        }
    }
    // URLs of receivers contain secrets.
    for key in ["url", "secret", "previous_secret", "routing_key", "password", "token"] {
        if let Some(text) = s.secret(key).filter(|text| !text.expose().trim().is_empty()) {
            texts.insert(key, (text.expose().to_owned(), s.place(key)));
        }
    }
    Item {
        kind,
        texts,
        encryption: s.choice("encryption", ENCRYPTIONS),
        port: s.integer("port", 1..=65_535).and_then(|port| u16::try_from(port).ok()),
        domains: s.texts("domains"),
        is_cleared: s.boolean("cleared").unwrap_or(false),
        place: s.place("type").or_else(|| s.place("name")),
    }
}

impl Item {
    /// Returns the keys that are set, without `type` and `cleared`.
    fn keys(&self) -> Vec<&'static str> {
        let mut keys: Vec<&'static str> = self.texts.keys().copied().collect();
        keys.extend(self.encryption.map(|_| "encryption"));
        keys.extend(self.port.map(|_| "port"));
        keys.extend(self.domains.as_ref().map(|_| "domains"));
        keys
    }

    fn text(&mut self, key: &str) -> Option<String> {
        self.texts.remove(key).map(|(text, _)| text)
    }

    fn report(&self, s: &mut Section<'_>, code: Code, message: &str, hint: &str) {
        report(s, self.place.as_ref(), code, message, hint);
    }
}

fn report(s: &mut Section<'_>, place: Option<&Place>, code: Code, message: &str, hint: &str) {
    let problem = Diagnostic::error(code, message).hint(hint);
    s.report(match place {
        Some(place) => place.mark(problem),
        None => problem,
    });
}

fn webhook(s: &mut Section<'_>, item: &mut Item) -> Option<Entry> {
    let mut secrets = Vec::new();
    for key in ["secret", "previous_secret"] {
        let Some((text, place)) = item.texts.remove(key) else { continue };
        match WebhookSecret::parse(&text) {
            Ok(secret) => secrets.push(secret),
            Err(problem) => {
                let message = format!("`{key}` of a webhook {problem}");
                let hint = "Create one with `echo whsec_$(openssl rand -base64 32)`.";
                report(s, place.as_ref(), Code::WrongValue, &message, hint);
            }
        }
    }
    let (name, url) = (item.text("name")?, item.text("url")?);
    Some(Entry::Webhook(WebhookSettings { name: name.into(), url, secrets, is_cleared: item.is_cleared }))
}

fn email(s: &mut Section<'_>, item: &mut Item) -> Option<Entry> {
    let encryption = item.encryption.unwrap_or(Encryption::StartTls);
    let default_port = match encryption {
        Encryption::StartTls => 587,
        Encryption::Tls => 465,
        Encryption::None => 25,
    };
    let (username, password) = (item.text("username"), item.text("password"));
    if username.is_some() != password.is_some() {
        let message = "an email channel has only one of `username` and `password`";
        item.report(s, Code::MissingField, message, "Write both, or neither.");
    }
    if encryption == Encryption::None && password.is_some() {
        let message = "the password of an email channel would be sent in plain text";
        item.report(s, Code::WrongValue, message, "Write `encryption: starttls` or `encryption: tls`.");
    }
    Some(Entry::Email(EmailSettings {
        host: item.text("host")?,
        port: item.port.unwrap_or(default_port),
        encryption,
        username,
        password,
        from: item.text("from")?,
        domains: item.domains.take().unwrap_or_default(),
        is_cleared: item.is_cleared,
    }))
}
