//! Audit records, and the filters of a page of records.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::ports::audit::{AuditFilter, AuditRecord, Details};
use terrane_json::details;

use crate::fields::{FieldError, Path};
use crate::schema;

const KNOWN: &[&str] = &["event", "actor", "resource", "since", "until", "before", "limit"];
const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1_000;
const TIMESTAMP: &str = "a timestamp, like 2024-01-31T00:00:00Z,";
const POSITIVE: &str = "an integer, 1 or more,";

/// Reads `event`, `actor`, `resource`, `since`, `until` (timestamps), `before` (a sequence number) and `limit`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn filter_from_parameters(query: &str) -> Result<AuditFilter, FieldError> {
    let mut filter = AuditFilter { limit: DEFAULT_LIMIT, ..AuditFilter::default() };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let path = Path::ROOT.field(&name);
        let time = || value.parse::<Timestamp>().map_err(|_| path.invalid_value(&value, TIMESTAMP));
        let number = || value.parse::<u64>().map_err(|_| path.invalid_value(&value, POSITIVE));
        match &*name {
            "event" => filter.event = Some(value.into()),
            "actor" => filter.actor = Some(value.into()),
            "resource" => filter.resource = Some(value.into()),
            "since" => filter.since = Some(time()?),
            "until" => filter.until = Some(time()?),
            "before" => {
                let before = Some(number()?).filter(|before| *before > 0);
                filter.before = Some(before.ok_or_else(|| path.invalid_value(&value, POSITIVE))?);
            }
            "limit" => {
                let limit = u32::try_from(number()?).ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                filter.limit = limit.ok_or_else(|| path.invalid_value(&value, "an integer from 1 to 1000"))?;
            }
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, KNOWN)),
        }
    }
    Ok(filter)
}

/// A page of the audit log, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditPage<'a> {
    records: Vec<Record<'a>>,
    /// The value of `before` for the next page.
    next: Option<u64>,
}

/// One record of the audit log.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditRecord")]
pub struct Record<'a> {
    sequence: u64,
    #[schemars(schema_with = "schema::timestamp")]
    at: String,
    event: &'a str,
    actor: &'a str,
    auth_method: &'a str,
    client_ip: Option<&'a str>,
    correlation_id: Option<&'a str>,
    resource: &'a str,
    reason: Option<&'a str>,
    #[schemars(schema_with = "schema::any")]
    before: Json,
    #[schemars(schema_with = "schema::any")]
    after: Json,
    /// The number of equal events that the record stands for.
    count: u64,
    hash: &'a str,
    previous: &'a str,
}

impl<'a> AuditPage<'a> {
    pub fn new(records: &'a [AuditRecord], limit: u32) -> Self {
        let next = records.last().filter(|last| records.len() == limit as usize && last.sequence > 1);
        AuditPage { records: records.iter().map(Record::from).collect(), next: next.map(|last| last.sequence) }
    }
}

impl<'a> From<&'a AuditRecord> for Record<'a> {
    fn from(AuditRecord { sequence, entry, hash, previous }: &'a AuditRecord) -> Self {
        Record {
            sequence: *sequence,
            at: entry.at.to_string(),
            event: &entry.event,
            actor: &entry.actor,
            auth_method: &entry.auth_method,
            client_ip: entry.client_ip.as_deref(),
            correlation_id: entry.correlation_id.as_deref(),
            resource: &entry.resource,
            reason: entry.reason.as_deref(),
            before: object(entry.before.as_ref()),
            after: object(entry.after.as_ref()),
            count: entry.count,
            hash,
            previous,
        }
    }
}

fn object(details: Option<&Details>) -> Json {
    details.map_or(Json::Null, details::to_json)
}
