//! Explanations of queries: the decisions that lead to their SQL.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::query::{Explained, PlanOfWarehouse};
use terrane_compiler::explanation::{self, MemberKind, PathReason};
use terrane_compiler::model;
use terrane_compiler::types::Granularity;

use crate::pre_aggregation::FactPreAggregation;
use crate::query::GranularityName;
use crate::{schema, value};

/// The warehouse's plan, or the reason why the caller may not see it.
#[derive(Debug)]
pub enum WarehousePlan {
    /// The warehouse's own plan, which may be JSON.
    Shown(String),
    /// The reason why no plan is shown.
    Withheld(&'static str),
}

impl WarehousePlan {
    pub fn of(plan: Option<String>) -> Self {
        plan.map_or(WarehousePlan::Withheld("this warehouse has no plans"), WarehousePlan::Shown)
    }

    /// Withholds the plan, because its estimates are statistics of all rows, including rows that policies hide.
    pub fn for_admins() -> Self {
        WarehousePlan::Withheld("the warehouse's plan discloses data: scope `admin` is required")
    }
}

impl<'a> From<&'a Explained> for Explanation<'a> {
    fn from(explained: &'a Explained) -> Self {
        let (plan, is_admin) = match &explained.plan {
            PlanOfWarehouse::Shown(plan) => (WarehousePlan::of(plan.clone()), true),
            PlanOfWarehouse::ForAdmins => (WarehousePlan::for_admins(), false),
        };
        Explanation::new(&explained.explanation, plan, is_admin)
    }
}

/// The explanation of a query.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Explanation<'a> {
    members: Vec<ExplainedMember<'a>>,
    facts: Vec<ExplainedFact<'a>>,
    policies: Vec<&'a str>,
    /// The lines of the logical plan.
    plan: Vec<&'a str>,
    sql: &'a str,
    #[schemars(schema_with = "schema::any_list")]
    params: Vec<Json>,
    /// The warehouse's plan: text, JSON, or null.
    #[schemars(schema_with = "schema::any")]
    warehouse_plan: Json,
    /// The reason why `warehouse_plan` is null.
    warehouse_plan_reason: Option<&'static str>,
}

/// A member of a query.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedMember<'a> {
    key: &'a str,
    kind: ExplainedKind,
    member: &'a str,
    #[schemars(with = "Option<GranularityName>")]
    granularity: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ExplainedKind {
    Dimension,
    Measure,
    Metric,
}

/// A cube whose rows are aggregated, or looked up for a filter or an order.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedFact<'a> {
    cube: &'a str,
    role: FactRole,
    joins: Vec<ExplainedJoin<'a>>,
    pre_aggregation: FactPreAggregation<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FactRole {
    Fact,
    Lookup,
}

/// A join, with the reason for its path.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedJoin<'a> {
    from: &'a str,
    to: &'a str,
    relationship: Relationship,
    join: JoinKind,
    why: JoinReason,
    also_joined_from: Vec<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Relationship {
    ManyToOne,
    OneToMany,
    OneToOne,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum JoinKind {
    Inner,
    Left,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum JoinReason {
    OnlyPath,
    FewestHops,
    DeclaredFirst,
}

impl<'a> Explanation<'a> {
    /// Converts an explanation. Misses that policies cause and numbers of rows are included if `is_admin` is true.
    pub fn new(explanation: &'a explanation::Explanation, plan: WarehousePlan, is_admin: bool) -> Self {
        let (warehouse_plan, warehouse_plan_reason) = match plan {
            WarehousePlan::Shown(text) => (serde_json::from_str(&text).unwrap_or(Json::String(text)), None),
            WarehousePlan::Withheld(reason) => (Json::Null, Some(reason)),
        };
        Explanation {
            members: explanation.members.iter().map(member).collect(),
            facts: explanation.facts.iter().map(|explained| fact(explained, is_admin)).collect(),
            policies: explanation.policies.iter().map(|name| &**name).collect(),
            plan: explanation.plan.lines().collect(),
            sql: &explanation.statement.text,
            params: explanation.statement.params.iter().map(value::to_json).collect(),
            warehouse_plan,
            warehouse_plan_reason,
        }
    }
}

fn member(member: &explanation::ExplainedMember) -> ExplainedMember<'_> {
    ExplainedMember {
        key: &member.key,
        kind: match member.kind {
            MemberKind::Dimension => ExplainedKind::Dimension,
            MemberKind::Measure => ExplainedKind::Measure,
            MemberKind::Metric => ExplainedKind::Metric,
        },
        member: &member.member,
        granularity: member.granularity.map(Granularity::as_str),
    }
}

fn fact(fact: &explanation::ExplainedFact, is_admin: bool) -> ExplainedFact<'_> {
    ExplainedFact {
        cube: &fact.cube,
        role: if fact.is_selected { FactRole::Fact } else { FactRole::Lookup },
        joins: fact.joins.iter().map(join).collect(),
        pre_aggregation: FactPreAggregation::new(&fact.rollups, is_admin),
    }
}

fn join(join: &explanation::ExplainedJoin) -> ExplainedJoin<'_> {
    let (why, others) = match &join.why {
        PathReason::OnlyPath => (JoinReason::OnlyPath, &[][..]),
        PathReason::FewestHops { others } => (JoinReason::FewestHops, &others[..]),
        PathReason::DeclaredFirst { others } => (JoinReason::DeclaredFirst, &others[..]),
    };
    ExplainedJoin {
        from: &join.from,
        to: &join.to,
        relationship: match join.relationship {
            model::Relationship::ManyToOne => Relationship::ManyToOne,
            model::Relationship::OneToMany => Relationship::OneToMany,
            model::Relationship::OneToOne => Relationship::OneToOne,
        },
        join: if join.is_inner { JoinKind::Inner } else { JoinKind::Left },
        why,
        also_joined_from: others.iter().map(|name| &**name).collect(),
    }
}
