//! Audit records as JSON, and the filters of a page of them.

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use terrane_app::ports::audit::{AuditFilter, AuditRecord};

use super::fields::{Misfit, Path};

const KNOWN: &[&str] = &["event", "actor", "resource", "since", "until", "before", "limit"];
const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1_000;

/// `event`, `actor`, `resource`, `since`, `until` (timestamps), `before` (a sequence number), `limit`.
pub(crate) fn filter_from_parameters(query: &str) -> Result<AuditFilter, Misfit> {
    let mut filter = AuditFilter { limit: DEFAULT_LIMIT, ..AuditFilter::default() };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let path = Path::ROOT.field(&name);
        let time = || {
            value.parse::<Timestamp>().map_err(|_| path.wrong_word(&value, "a timestamp, like 2024-01-31T00:00:00Z,"))
        };
        let number = || value.parse::<u64>().map_err(|_| path.wrong_word(&value, "a whole number, 1 or more,"));
        match &*name {
            "event" => filter.event = Some(value.into()),
            "actor" => filter.actor = Some(value.into()),
            "resource" => filter.resource = Some(value.into()),
            "since" => filter.since = Some(time()?),
            "until" => filter.until = Some(time()?),
            "before" => {
                let before = Some(number()?).filter(|before| *before > 0);
                filter.before = Some(before.ok_or_else(|| path.wrong_word(&value, "a whole number, 1 or more,"))?);
            }
            "limit" => {
                let limit = u32::try_from(number()?).ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                filter.limit = limit.ok_or_else(|| path.wrong_word(&value, "a whole number from 1 to 1000"))?;
            }
            // The caller's key.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, KNOWN)),
        }
    }
    Ok(filter)
}

pub(crate) fn record_to_wire(record: &AuditRecord) -> Json {
    let AuditRecord { sequence, entry, hash, previous } = record;
    let object = |text: &Option<std::sync::Arc<str>>| match text {
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| Json::from(&**text)),
        None => Json::Null,
    };
    json!({
        "sequence": sequence,
        "at": entry.at.to_string(),
        "event": &*entry.event,
        "actor": &*entry.actor,
        "auth_method": &*entry.auth_method,
        "client_ip": entry.client_ip.as_deref(),
        "correlation_id": entry.correlation_id.as_deref(),
        "resource": &*entry.resource,
        "reason": entry.reason.as_deref(),
        "before": object(&entry.before),
        "after": object(&entry.after),
        "count": entry.count,
        "hash": &**hash,
        "previous": &**previous,
    })
}
