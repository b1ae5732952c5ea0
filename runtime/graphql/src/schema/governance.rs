//! The use cases of governance, and the bounds of its lists.

use async_graphql::Context;
use terrane_app::governance::GovernanceService;
use terrane_wire::governance::{DEFAULT_LIMIT, MAX_LIMIT};
use terrane_wire::{Code, ErrorBody};

use super::inputs::{checked_limit, count};
use super::request::state;
use crate::failure::Failure;

/// Returns the use cases.
///
/// # Errors
/// Governance is switched off.
pub(super) fn service<'c>(context: &Context<'c>) -> Result<&'c GovernanceService, Failure> {
    let off = || ErrorBody::new(Code::NotFound, "governance is switched off on this server").into();
    state(context).parts.server()?.governance.as_deref().ok_or_else(off)
}

/// Returns the limit and the offset of a page.
///
/// # Errors
/// The limit is out of range.
pub(super) fn page((limit, offset): (Option<i64>, Option<i64>)) -> Result<(usize, usize), Failure> {
    let limit = checked_limit(limit, DEFAULT_LIMIT as u32, MAX_LIMIT as u32)?;
    Ok((limit as usize, count("offset", offset)?.unwrap_or(0) as usize))
}
