//! A caller with everything that hooks oblige its query to: what leads to SQL takes this and nothing less.
//!
//! In: a caller; obligations that were checked. Out: an [`Authorized`], and the [`AuthorizedAccess`] that
//! `plan::secure` wants. A caller alone leads nowhere, so no path can forget the hooks.

use std::ops::Deref;

use super::{Access, MergedObligations};
use crate::model::Model;
use crate::security::SecurityContext;

/// One caller's leave to ask one query of one model.
#[derive(Debug)]
pub struct Authorized<'m> {
    model: &'m Model,
    caller: &'m SecurityContext,
    obligations: MergedObligations,
}

/// One caller's view of a model, hooks included.
#[derive(Debug)]
pub struct AuthorizedAccess<'a>(Access<'a>);

impl<'a> Deref for AuthorizedAccess<'a> {
    type Target = Access<'a>;

    fn deref(&self) -> &Access<'a> {
        &self.0
    }
}

impl<'m> Authorized<'m> {
    /// For places that no hook is configured for or that hooks have no say in: tests, benchmarks, a server
    /// without hooks. Whoever serves callers asks the hooks first (`Inspection::authorize`).
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

    /// The rows that the hooks leave, where a page was to reach beyond them.
    pub(crate) fn most_rows(&self, requested: u64, offset: u64) -> Option<u64> {
        self.obligations.max_rows.filter(|most| *most < offset.saturating_add(requested))
    }

    /// As much of a page as the hooks leave: all pages together have no more rows than they allow.
    pub(crate) fn limit(&self, requested: u64, offset: u64) -> u64 {
        self.obligations.max_rows.map_or(requested, |most| requested.min(most.saturating_sub(offset)))
    }
}
