//! The authorization of a caller: the caller together with the obligations of all governance hooks. Every function that
//! produces SQL takes an authorization.
//!
//! In: a caller; obligations that were checked. Out: an [`Authorized`], and the [`AuthorizedAccess`] that
//! `plan::secure` takes. No function produces SQL for a caller alone, so no path can omit the hooks.

use std::ops::Deref;

use super::{Access, MergedObligations};
use crate::model::Model;
use crate::security::SecurityContext;

/// The authorization of one caller to run one query of one model.
#[derive(Debug)]
pub struct Authorized<'m> {
    model: &'m Model,
    caller: &'m SecurityContext,
    obligations: MergedObligations,
}

/// One caller's view of a model, including the obligations of hooks.
#[derive(Debug)]
pub struct AuthorizedAccess<'a>(Access<'a>);

impl<'a> Deref for AuthorizedAccess<'a> {
    type Target = Access<'a>;

    fn deref(&self) -> &Access<'a> {
        &self.0
    }
}

impl<'m> Authorized<'m> {
    /// Authorizes a caller without asking governance hooks: for tests, benchmarks and servers without hooks. Code
    /// that serves callers asks the hooks first (`Inspection::authorize`).
    pub fn without_hooks(model: &'m Model, caller: &'m SecurityContext) -> Self {
        Authorized { model, caller, obligations: MergedObligations::default() }
    }

    pub(crate) fn under(model: &'m Model, caller: &'m SecurityContext, obligations: MergedObligations) -> Self {
        Authorized { model, caller, obligations }
    }

    pub fn model(&self) -> &'m Model {
        self.model
    }

    pub fn access(&self) -> AuthorizedAccess<'_> {
        AuthorizedAccess(Access::with_obligations(self.model, self.caller, &self.obligations))
    }

    /// Returns the number of rows that the hooks allow for all pages together, if the requested page would exceed it.
    pub(crate) fn most_rows(&self, requested: u64, offset: u64) -> Option<u64> {
        self.obligations.max_rows.filter(|most| *most < offset.saturating_add(requested))
    }

    /// Returns the limit of a page so that all pages together have no more rows than the hooks allow.
    pub fn limit(&self, requested: u64, offset: u64) -> u64 {
        self.obligations.max_rows.map_or(requested, |most| requested.min(most.saturating_sub(offset)))
    }
}
