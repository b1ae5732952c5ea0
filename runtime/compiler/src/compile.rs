//! The whole pipeline in one call: `resolve → plan → secure → match pre-aggregations → lower → print`.

use std::sync::Arc;

use crate::access::{Access, Authorized, AuthorizedAccess};
use crate::environment::Environment;
use crate::plan::{SecuredPlan, plan, secure};
use crate::query::{FactMatch, PreAggregations, QueryError, SemanticQuery};
use crate::resolve::resolve;
use crate::rollup::{RollupRequest, match_rollups};
use crate::sql::dialect_profile::DialectProfile;
use crate::sql::{CompiledSql, Parameters, columns, lower, lower_count, print, refusal, shape_of};

/// Compiles a query for a caller.
///
/// # Errors
/// [`QueryError`]: the query cannot be answered for this caller. There are no other errors.
pub fn compile(
    profile: &DialectProfile,
    query: &SemanticQuery,
    authorized: &Authorized<'_>,
    environment: &Environment,
) -> Result<CompiledSql, QueryError> {
    let access = authorized.access();
    let (secured, most_rows) = secured(query, authorized, &access, environment)?;
    let (secured, rollups) = pre_aggregated(secured, &access, profile, query, environment)?;
    compiled(&secured, profile).map(|sql| CompiledSql { most_rows, rollups, ..sql })
}

/// Compiles a statement for the totals of a query: each measure without dimensions and without conditions on groups.
/// `None` if the query has no measure, or if hooks allow no row.
///
/// # Errors
/// Returns the same errors as [`compile`].
pub fn compile_totals(
    profile: &DialectProfile,
    query: &SemanticQuery,
    authorized: &Authorized<'_>,
    environment: &Environment,
) -> Result<Option<CompiledSql>, QueryError> {
    let access = authorized.access();
    let resolved = resolve(&access, query, environment)?.into_totals();
    // A caller who may see no row may not see a sum of rows either.
    if resolved.values.is_empty() || authorized.limit(u64::MAX, 0) == 0 {
        return Ok(None);
    }
    let secured = secure(plan(authorized.model(), resolved)?, &access)?;
    let (secured, rollups) = pre_aggregated(secured, &access, profile, query, environment)?;
    compiled(&secured, profile).map(|sql| Some(CompiledSql { rollups, ..sql }))
}

pub(crate) fn compiled(secured: &SecuredPlan<'_>, profile: &DialectProfile) -> Result<CompiledSql, QueryError> {
    let lowered = lower(secured, profile);
    let plan = secured.plan();
    let printed = print(&lowered, profile, Parameters::Bound);
    let (text, params) = printed.map_err(|error| refusal(error, plan, profile))?;
    Ok(CompiledSql {
        text,
        params,
        columns: columns(plan),
        total_column: lowered.total_column,
        added_column: lowered.added_column,
        limit: Some(plan.limit),
        offset: plan.offset,
        most_rows: None,
        cubes: secured.cubes(),
        rollups: Vec::new(),
        shape: Arc::new(shape_of(&lowered, secured)),
        warnings: plan.warnings(),
    })
}

/// Compiles the statement that counts a query's groups. It is needed if a page is empty.
///
/// # Errors
/// Returns the same errors as [`compile`].
pub fn compile_count(
    profile: &DialectProfile,
    query: &SemanticQuery,
    authorized: &Authorized<'_>,
    environment: &Environment,
) -> Result<CompiledSql, QueryError> {
    let access = authorized.access();
    let (secured, _) = secured(query, authorized, &access, environment)?;
    let (secured, rollups) = pre_aggregated(secured, &access, profile, query, environment)?;
    let lowered = lower_count(&secured, profile);
    let (text, params) = print(&lowered, profile, Parameters::Bound)?;
    Ok(CompiledSql {
        text,
        params,
        columns: Vec::new(),
        total_column: lowered.total_column,
        added_column: lowered.added_column,
        limit: None,
        offset: 0,
        most_rows: None,
        cubes: secured.cubes(),
        rollups,
        shape: Arc::new(shape_of(&lowered, &secured)),
        warnings: Vec::new(),
    })
}

/// Compiles a query to one statement with the values in its text, for people to read.
///
/// # Errors
/// Returns the same errors as [`compile`].
pub fn compile_inline(
    profile: &DialectProfile,
    query: &SemanticQuery,
    authorized: &Authorized<'_>,
    environment: &Environment,
) -> Result<String, QueryError> {
    let access = authorized.access();
    let (secured, _) = secured(query, authorized, &access, environment)?;
    let (secured, _) = pre_aggregated(secured, &access, profile, query, environment)?;
    let printed = print(&lower(&secured, profile), profile, Parameters::Inline);
    printed.map(|(text, _)| text).map_err(|error| refusal(error, secured.plan(), profile))
}

/// Returns the secured plan, and the limit that hooks set if it is below the requested one.
fn secured<'m>(
    query: &SemanticQuery,
    authorized: &'m Authorized<'m>,
    access: &AuthorizedAccess<'m>,
    environment: &Environment,
) -> Result<(SecuredPlan<'m>, Option<u64>), QueryError> {
    let mut resolved = resolve(access, query, environment)?;
    let most_rows = authorized.most_rows(resolved.limit, resolved.offset);
    resolved.limit = authorized.limit(resolved.limit, resolved.offset);
    Ok((secure(plan(authorized.model(), resolved)?, access)?, most_rows))
}

/// Lets facts read pre-aggregations if the result stays the same. Returns the changed plan and the match of each fact.
fn pre_aggregated<'m>(
    secured: SecuredPlan<'m>,
    access: &Access<'_>,
    profile: &DialectProfile,
    query: &SemanticQuery,
    environment: &Environment,
) -> Result<(SecuredPlan<'m>, Vec<FactMatch>), QueryError> {
    let plan = secured.plan();
    let mut rollups = plan.facts.iter().flat_map(|fact| &plan.model.cube(fact.tree.cube).rollups);
    let is_required = query.pre_aggregations == PreAggregations::Only;
    if !is_required && rollups.clone().next().is_none() {
        return Ok((secured, Vec::new()));
    }
    // The caller gets the same answer as for cubes without rollups.
    let is_hidden = !is_required && !rollups.any(|rollup| access.sees_rollup(rollup));
    let request = RollupRequest { mode: query.pre_aggregations, max_staleness: query.max_staleness, explains: false };
    let (secured, mut matches) = match_rollups(secured, access, profile, environment, request)?;
    matches.iter_mut().for_each(|found| found.is_hidden = is_hidden);
    Ok((secured, matches))
}
