//! Checks the answers of hooks.
//!
//! In: untrusted types of the contract. Out: the port's types, or the rule of the contract that an answer violates.
//! Control characters are removed from strings. Not here: whether a cube or a member exists, which the compiler checks.

use std::sync::Arc;

use terrane_app::ports::governance::{Decision, Denial, GateFinding, Permit};
use terrane_compiler::governance::{HookCondition, HookMask, MemberMask, Obligations, RowFilter};
use terrane_compiler::types::Granularity;

use crate::bindings::common::Granularity as WireGranularity;
use crate::bindings::governance::exports::terrane::governance::hook as wire;
use crate::bindings::ir::Arena;
use crate::log::plain;
use crate::wire::arena::{self, Room};
use crate::wire::names::is_code;
use crate::wire::values::severity;

const MAX_KEY_BYTES: usize = 64;
const MAX_MESSAGE_BYTES: usize = 1_024;
const MAX_REASON_BYTES: usize = 4_096;
const MAX_NAME_BYTES: usize = 512;
const MAX_FIXED_BYTES: usize = 4_096;
const MAX_FILTERS: usize = 256;
const MAX_MASKS: usize = 4_096;
const MAX_WARNINGS: usize = 32;
const MAX_AUDIT: usize = 64;
/// The largest number of bytes of all keys and values in the audit notes of one verdict.
const MAX_AUDIT_BYTES: usize = 4_096;
const MAX_FINDINGS: usize = 1_024;

/// Checks a decision.
///
/// # Errors
/// Returns the violated rule of the contract.
pub(crate) fn decision(decision: wire::Decision) -> Result<Decision, String> {
    Ok(match decision {
        wire::Decision::Abstain => Decision::Abstain,
        wire::Decision::Permit(obligations) => Decision::Permit(permit(obligations)?),
        wire::Decision::Deny(denial) => Decision::Deny(Denial {
            public_message: text("a public message", &denial.public_message, MAX_MESSAGE_BYTES)?,
            audit_reason: text("an audit reason", &denial.audit_reason, MAX_REASON_BYTES)?,
            code: code("a denial's code", denial.code)?.into(),
        }),
    })
}

fn permit(wire: wire::Obligations) -> Result<Permit, String> {
    count("row filters", wire.row_filters.len(), MAX_FILTERS)?;
    count("masks", wire.masks.len(), MAX_MASKS)?;
    count("warnings", wire.warnings.len(), MAX_WARNINGS)?;
    count("audit entries", wire.audit.len(), MAX_AUDIT)?;
    let audit_bytes: usize = wire.audit.iter().map(|(key, value)| key.len() + value.len()).sum();
    if audit_bytes > MAX_AUDIT_BYTES {
        return Err(format!("the audit entries are {audit_bytes} bytes together; at most {MAX_AUDIT_BYTES}"));
    }
    let row_filters = wire.row_filters.iter().map(|filter| {
        let condition = predicate(&filter.predicate);
        let condition =
            condition.map_err(|problem| format!("the row filter of `{}`: {problem}", shown(&filter.cube)))?;
        Ok(RowFilter { cube: name(&filter.cube)?, condition })
    });
    let masks = wire.masks.iter().map(|mask| {
        Ok(MemberMask { cube: name(&mask.cube)?, member: name(&mask.member)?, mask: hook_mask(&mask.mask)? })
    });
    let entry = |(key, value): &(String, String)| {
        let (key, value) =
            (text("an audit key", key, MAX_KEY_BYTES)?, text("an audit value", value, MAX_REASON_BYTES)?);
        Ok((key.to_string(), value.to_string()))
    };
    let warning = |warning: &String| text("a warning", warning, MAX_MESSAGE_BYTES).map(|text| text.to_string());
    Ok(Permit {
        obligations: Obligations {
            row_filters: row_filters.collect::<Result<_, String>>()?,
            masks: masks.collect::<Result<_, String>>()?,
            max_rows: wire.max_rows,
            require_time_filter: wire.require_time_filter,
        },
        warnings: wire.warnings.iter().map(warning).collect::<Result<_, String>>()?,
        audit: wire.audit.iter().map(entry).collect::<Result<_, String>>()?,
    })
}

/// Returns the condition of a row filter, whose arena must have exactly one root.
fn predicate(arena: &Arena) -> Result<HookCondition, String> {
    let roots = arena.roots.len();
    let several = || format!("a predicate has {roots} roots, not one");
    if roots == 1 { arena::conditions(arena, Room::PLAIN)?.pop().ok_or_else(several) } else { Err(several()) }
}

fn hook_mask(mask: &wire::Mask) -> Result<HookMask, String> {
    Ok(match mask {
        wire::Mask::DropColumn => HookMask::DropColumn,
        wire::Mask::Nullify => HookMask::Nullify,
        wire::Mask::Fixed(value) if value.len() > MAX_FIXED_BYTES => {
            return Err(format!("a fixed mask is {} bytes; at most {MAX_FIXED_BYTES}", value.len()));
        }
        wire::Mask::Fixed(value) => HookMask::Fixed(value.as_str().into()),
        wire::Mask::Hash => HookMask::Hash,
        wire::Mask::Partial => HookMask::Partial,
        wire::Mask::TruncateDate(granularity) => HookMask::TruncateDate(match granularity {
            WireGranularity::Second => Granularity::Second,
            WireGranularity::Minute => Granularity::Minute,
            WireGranularity::Hour => Granularity::Hour,
            WireGranularity::Day => Granularity::Day,
            WireGranularity::Week => Granularity::Week,
            WireGranularity::Month => Granularity::Month,
            WireGranularity::Quarter => Granularity::Quarter,
            WireGranularity::Year => Granularity::Year,
        }),
        // The host does not support named masks yet, so the value is hidden.
        wire::Mask::Named(_) => HookMask::Nullify,
    })
}

/// Checks findings.
///
/// # Errors
/// Returns the violated rule of the contract.
pub(crate) fn findings(found: Vec<wire::GateFinding>) -> Result<Vec<GateFinding>, String> {
    count("findings", found.len(), MAX_FINDINGS)?;
    let finding = |found: wire::GateFinding| {
        Ok(GateFinding {
            severity: severity(found.severity),
            message: text("a finding's message", &found.message, MAX_MESSAGE_BYTES)?.to_string(),
            is_blocking: found.blocking,
            rule: code("a finding's rule", found.rule)?,
        })
    };
    found.into_iter().map(finding).collect()
}

fn count(what: &str, found: usize, most: usize) -> Result<(), String> {
    if found > most { Err(format!("there are {found} {what}; at most {most}")) } else { Ok(()) }
}

/// Checks that a code matches `[a-z][a-z0-9_]*`.
fn code(what: &str, code: String) -> Result<String, String> {
    match is_code(&code) {
        true => Ok(code),
        false => Err(format!("{what} is `{}`: lower-case letters, digits and `_`, at most 64", shown(&code))),
    }
}

fn text(what: &str, text: &str, most: usize) -> Result<Arc<str>, String> {
    match text.len() <= most {
        true => Ok(plain(text).into()),
        false => Err(format!("{what} is {} bytes; at most {most}", text.len())),
    }
}

fn name(name: &str) -> Result<Arc<str>, String> {
    match name.len() <= MAX_NAME_BYTES {
        true => Ok(name.into()),
        false => Err(format!("a name is {} bytes; at most {MAX_NAME_BYTES}", name.len())),
    }
}

/// Returns the first 64 characters of a guest's text, for a message.
fn shown(text: &str) -> String {
    plain(&text.chars().take(64).collect::<String>())
}

#[cfg(test)]
mod tests;
