//! Explains how a query becomes SQL.
//!
//! In: the inputs of `compile`. Out: an [`Explanation`]: the member of each key, the joins of each fact and the reason
//! for each path, the plan, the statement, and the statement that asks the warehouse for its own plan. Cubes that are
//! not public are named only if the SQL names them too. Not here: running statements, and the form in which the
//! explanation is shown.

use std::sync::Arc;

use crate::access::Authorized;
use crate::environment::Environment;
use crate::explain::explain_plan;
use crate::model::{CubeId, Model, Relationship};
use crate::plan::{Fact, PlannedJoin, Protection, plan, secure};
use crate::query::{FactMatch, GroupBy, QueryError, ResolvedQuery, SemanticQuery, ValueId};
use crate::resolve::resolve;
use crate::rollup::{RollupRequest, match_rollups};
use crate::sql::dialect_profile::DialectProfile;
use crate::sql::{Parameters, lower, print, print_explain};
use crate::types::{Granularity, Value};

/// The stages of a query's compilation.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The members, in the order of the result's columns.
    pub members: Vec<ExplainedMember>,
    pub facts: Vec<ExplainedFact>,
    /// The policies that restrict the query for this caller.
    pub policies: Vec<Arc<str>>,
    /// The plan as text, as [`explain_plan`] returns it.
    pub plan: String,
    pub statement: Printed,
    /// The statement that asks the warehouse for its plan without running the query. `None` if the warehouse cannot
    /// explain statements.
    pub explain_statement: Option<Printed>,
}

/// A SQL statement and its bound values.
#[derive(Debug, Clone)]
pub struct Printed {
    pub text: String,
    pub params: Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    Dimension,
    Measure,
    Metric,
}

/// The member behind a key of the result.
#[derive(Debug, Clone)]
pub struct ExplainedMember {
    pub key: Arc<str>,
    pub kind: MemberKind,
    /// The name, such as `orders.status`, or the name of a metric without a cube.
    pub member: String,
    pub granularity: Option<Granularity>,
}

/// A cube whose rows are aggregated separately.
#[derive(Debug, Clone)]
pub struct ExplainedFact {
    pub cube: Arc<str>,
    /// True if the fact's groups are groups of the result; false if it is only looked up, for a filter or an order.
    pub is_selected: bool,
    pub joins: Vec<ExplainedJoin>,
    /// The pre-aggregation that the fact reads, and the reasons against the other pre-aggregations.
    pub rollups: FactMatch,
}

#[derive(Debug, Clone)]
pub struct ExplainedJoin {
    pub from: Arc<str>,
    pub to: Arc<str>,
    pub relationship: Relationship,
    /// True if each row has a joined row, so that the join is an inner join.
    pub is_inner: bool,
    pub why: PathReason,
}

/// The reason why a path of joins was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathReason {
    /// The cubes are connected by one path only.
    OnlyPath,
    /// Other paths have more joins. `others` are the cubes from which these paths join the target.
    FewestHops { others: Vec<Arc<str>> },
    /// Other paths have the same number of joins and come later in `joins:`.
    DeclaredFirst { others: Vec<Arc<str>> },
}

/// Explains a query to a caller.
///
/// # Errors
/// Returns the same errors as [`crate::compile`].
pub fn explain(
    profile: &DialectProfile,
    query: &SemanticQuery,
    authorized: &Authorized<'_>,
    environment: &Environment,
) -> Result<Explanation, QueryError> {
    let (model, access) = (authorized.model(), authorized.access());
    let mut resolved = resolve(&access, query, environment)?;
    resolved.limit = authorized.limit(resolved.limit, resolved.offset);
    let members = members(model, &resolved);
    let secured = secure(plan(model, resolved)?, &access)?;
    let request = RollupRequest { mode: query.pre_aggregations, max_staleness: query.max_staleness, explains: true };
    let (secured, matches) = match_rollups(secured, &access, profile, environment, request)?;
    let lowered = lower(&secured, profile);
    let (text, params) = print(&lowered, profile, Parameters::Bound)?;
    let explain_statement = print_explain(&lowered, profile)?.map(|(text, params)| Printed { text, params });
    Ok(Explanation {
        members,
        facts: secured
            .plan()
            .facts
            .iter()
            .zip(matches)
            .map(|(fact, rollups)| ExplainedFact { rollups, ..explained_fact(model, secured.protection(), fact) })
            .collect(),
        policies: access.policies_of(secured.plan().cubes()),
        plan: explain_plan(secured.plan()),
        statement: Printed { text, params },
        explain_statement,
    })
}

fn members(model: &Model, query: &ResolvedQuery) -> Vec<ExplainedMember> {
    let groups = query.groups.iter().map(|group| ExplainedMember {
        key: group.key.clone(),
        kind: MemberKind::Dimension,
        member: match group.by {
            GroupBy::Dimension(id) => format!("{}.{}", model.cube(id.cube).name, model.dimension(id).name),
            GroupBy::MetricTime => "metric_time".to_owned(),
        },
        granularity: group.granularity,
    });
    let values = query.values.iter().map(|selected| {
        let (kind, member) = match selected.value {
            ValueId::Measure(id) => {
                (MemberKind::Measure, format!("{}.{}", model.cube(id.cube).name, model.measure(id).name))
            }
            ValueId::Metric(id) => (MemberKind::Metric, model.metric(id).name.to_string()),
        };
        ExplainedMember { key: selected.key.clone(), kind, member, granularity: None }
    });
    groups.chain(values).collect()
}

fn explained_fact(model: &Model, protection: &Protection<'_>, fact: &Fact<'_>) -> ExplainedFact {
    let name = |node| model.cube(fact.tree.cube_of(node)).name.clone();
    let joins = fact.tree.joins.iter().enumerate().map(|(index, planned)| ExplainedJoin {
        from: name(planned.from),
        to: name(index + 1),
        relationship: planned.join.relationship,
        is_inner: protection.is_always_joined(&fact.tree, index + 1),
        why: why(model, fact.tree.cube, planned, fact.tree.cube_of(planned.from)),
    });
    let rollups = FactMatch { cube: name(0), served: None, misses: Vec::new(), is_hidden: false };
    ExplainedFact { cube: name(0), is_selected: fact.is_selected, joins: joins.collect(), rollups }
}

/// Compares the used join with the other joins that end at the same cube.
fn why(model: &Model, fact: CubeId, taken: &PlannedJoin<'_>, taken_from: CubeId) -> PathReason {
    let paths = model.join_paths(fact);
    let depth = |cube: CubeId| paths.any_hop(cube).map_or(0, |hop| hop.depth);
    let mut others = Vec::new();
    let mut is_tie = false;
    for from in std::iter::once(fact).chain(paths.all()).map(|id| model.cube(id)) {
        let leads_there = |join: &crate::model::Join| {
            let is_as_good = join.relationship.is_to_one() == taken.join.relationship.is_to_one();
            join.target == taken.join.target && is_as_good && !std::ptr::eq(join, taken.join)
        };
        if from.joins.iter().any(leads_there) {
            is_tie |= depth(from.id) == depth(taken_from);
            others.extend(from.public.then(|| from.name.clone()));
        }
    }
    match (is_tie, others.is_empty()) {
        (true, _) => PathReason::DeclaredFirst { others },
        (false, false) => PathReason::FewestHops { others },
        (false, true) => PathReason::OnlyPath,
    }
}
