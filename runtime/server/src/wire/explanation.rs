//! Explanations: why a query becomes the SQL that it becomes.

use serde_json::{Map, Value as Json, json};
use terrane_compiler::explanation::{
    ExplainedFact, ExplainedJoin, ExplainedMember, Explanation, MemberKind, PathReason,
};
use terrane_compiler::model::Relationship;
use terrane_compiler::types::{Granularity, Value};

use crate::json::write_value;

/// What a caller learns of the warehouse's plan.
pub(crate) enum WarehousePlan {
    /// In the warehouse's own words, which may be JSON.
    Shown(String),
    /// Why not.
    Withheld(&'static str),
}

impl WarehousePlan {
    pub(crate) fn of(plan: Option<String>) -> Self {
        plan.map_or(WarehousePlan::Withheld("this warehouse shows no plans"), WarehousePlan::Shown)
    }

    /// Its estimates are statistics of all rows, whoever may see which.
    pub(crate) fn of_admins() -> Self {
        WarehousePlan::Withheld("the warehouse's plan tells of data: it needs the scope `admin`")
    }
}

/// `{members, facts, policies, plan, sql, params, warehouse_plan, warehouse_plan_reason}`.
pub(crate) fn to_wire(explanation: &Explanation, plan: WarehousePlan) -> Map<String, Json> {
    let (plan, reason) = match plan {
        WarehousePlan::Shown(text) => (serde_json::from_str(&text).unwrap_or(Json::String(text)), Json::Null),
        WarehousePlan::Withheld(reason) => (Json::Null, reason.into()),
    };
    let policies: Vec<&str> = explanation.policies.iter().map(|name| &**name).collect();
    let mut body = Map::new();
    body.insert("members".to_owned(), explanation.members.iter().map(member).collect());
    body.insert("facts".to_owned(), explanation.facts.iter().map(fact).collect());
    body.insert("policies".to_owned(), policies.into());
    body.insert("plan".to_owned(), explanation.plan.lines().map(Json::from).collect());
    body.insert("sql".to_owned(), explanation.statement.text.as_str().into());
    body.insert("params".to_owned(), explanation.statement.params.iter().map(value).collect());
    body.insert("warehouse_plan".to_owned(), plan);
    body.insert("warehouse_plan_reason".to_owned(), reason);
    body
}

fn member(member: &ExplainedMember) -> Json {
    let kind = match member.kind {
        MemberKind::Dimension => "dimension",
        MemberKind::Measure => "measure",
        MemberKind::Metric => "metric",
    };
    let granularity = member.granularity.map(Granularity::as_str);
    json!({ "key": &*member.key, "kind": kind, "member": member.member, "granularity": granularity })
}

fn fact(fact: &ExplainedFact) -> Json {
    let role = if fact.is_selected { "fact" } else { "lookup" };
    json!({ "cube": &*fact.cube, "role": role, "joins": fact.joins.iter().map(join).collect::<Vec<_>>() })
}

fn join(join: &ExplainedJoin) -> Json {
    let relationship = match join.relationship {
        Relationship::ManyToOne => "many_to_one",
        Relationship::OneToMany => "one_to_many",
        Relationship::OneToOne => "one_to_one",
    };
    let (why, others) = match &join.why {
        PathReason::OnlyPath => ("only_path", &[][..]),
        PathReason::FewestHops { others } => ("fewest_hops", &others[..]),
        PathReason::DeclaredFirst { others } => ("declared_first", &others[..]),
    };
    json!({
        "from": &*join.from,
        "to": &*join.to,
        "relationship": relationship,
        "join": if join.is_inner { "inner" } else { "left" },
        "why": why,
        "also_joined_from": others.iter().map(|name| &**name).collect::<Vec<_>>(),
    })
}

/// The writer of values knows how each is told; what it wrote is JSON.
fn value(value: &Value) -> Json {
    let mut text = Vec::new();
    write_value(value, &mut text);
    serde_json::from_slice(&text).unwrap_or_default()
}
