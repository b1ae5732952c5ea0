//! `terrane explain`: explains the SQL of a query.
//!
//! In: a project and a query. Out: members, joins, policies and the SQL; on request the plans and reasons too. Not
//! here: the compilation (compiler), and running the query.

use std::path::PathBuf;

use serde_json::{Map, Value as Json};
use terrane_terminal::{TerminalText, Tree};

use super::query::{query_text, refused, refused_query};
use super::{load_for_queries, print};
use crate::failure::Failure;
use crate::project::Project;
use crate::sql_text::indented;
use crate::wiring::CommandDuration;
use crate::{caller, wire};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane explain . '{\"measures\": [\"orders.revenue\"], \"dimensions\": [\"customers.region\"]}'
  terrane explain . @question.json --full
  terrane explain . @question.json --json | jq .warehouse_plan

The output shows the meaning of each key, the joins and the reasons for them, the policies, and the SQL with its
values. With --full it also shows why pre-aggregations are not used, the plan, and the plan of the warehouse. The
query is not run. Without --as the caller is the operator, who has no id, roles, groups or attributes.")]
pub struct ExplainArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The query as JSON; `@FILE` reads a file, `-` standard input
    pub query: String,
    /// Explain it for this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Show everything: unused pre-aggregations, the plan, and the plan of the warehouse
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// Print the response of POST /api/v1/query/explain
    #[arg(long)]
    pub json: bool,
}

/// Explains the query.
///
/// # Errors
/// The project has errors, or the query is refused.
pub async fn run(arguments: &ExplainArguments, project: Project) -> Result<(), Failure> {
    let text = query_text(&arguments.query)?;
    let query = wire::parse(&text).map_err(|error| refused(error.into()))?;
    let caller = caller::read(arguments.caller.as_deref())?;
    let engine = load_for_queries(&project, CommandDuration::Short).await?;
    let body = wire::explain(&engine, &caller, &query, arguments.full || arguments.json).await;
    let body = body.map_err(|error| refused_query(error, &text))?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&body).map_err(|error| Failure::new(error.to_string()))?;
        print(&format!("{text}\n"));
    } else {
        print(&format!("{}\n{}", tree(&body, arguments.full), sql(&body)));
    }
    Ok(())
}

fn tree(body: &Map<String, Json>, is_full: bool) -> Tree {
    let items = |key: &str| body.get(key).and_then(Json::as_array).cloned().unwrap_or_default();
    let mut top = Tree::new("query");
    top.push(Tree::with("members", items("members").iter().map(member)));
    for fact in items("facts") {
        let joins = fact["joins"].as_array().cloned().unwrap_or_default();
        let misses = if is_full { misses(&fact["pre_aggregation"]) } else { Vec::new() };
        let lines = joins.iter().map(join).chain(served_by(&fact["pre_aggregation"])).chain(misses);
        top.push(Tree::with(format!("{} {}", word(&fact["role"]), word(&fact["cube"])), lines));
    }
    let policies = items("policies");
    if !policies.is_empty() {
        top.push(Tree::with("policies", policies.iter().map(|name| Tree::new(word(name)))));
    }
    if is_full {
        top.push(Tree::with("plan", items("plan").iter().map(|line| Tree::new(word(line)))));
        top.push(Tree::with("warehouse", warehouse(body).into_iter()));
    }
    top
}

/// Returns the SQL in a form that can be copied, with the values of its parameters as comments.
fn sql(body: &Map<String, Json>) -> String {
    let mut text = indented(&TerminalText::lines(&word(body.get("sql").unwrap_or(&Json::Null))));
    let values = body.get("params").and_then(Json::as_array).into_iter().flatten();
    for (index, value) in values.enumerate() {
        text.push_str(&format!("-- value {}: {}\n", index + 1, TerminalText::line(&value.to_string())));
    }
    text
}

fn member(member: &Json) -> Tree {
    let by = member["granularity"].as_str().map(|granularity| format!(" by {granularity}")).unwrap_or_default();
    Tree::new(format!("{} = {} {}{by}", word(&member["key"]), word(&member["kind"]), word(&member["member"])))
}

fn join(join: &Json) -> Tree {
    let others: Vec<&str> =
        join["also_joined_from"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let others = others.join(", ");
    let why = match (word(&join["why"]).as_str(), others.is_empty()) {
        ("fewest_hops", _) => format!("the fewest hops, before {others}"),
        ("declared_first", false) => format!("its place in `joins:`, before {others}"),
        ("declared_first", true) => "its place in `joins:`".to_owned(),
        _ => "the only path".to_owned(),
    };
    let (kind, relationship) = (word(&join["join"]), word(&join["relationship"]));
    let (from, to) = (word(&join["from"]), word(&join["to"]));
    Tree::new(format!("{kind} join {from} → {to}, {relationship}: {why}"))
}

/// Shows the pre-aggregation that serves a fact.
fn served_by(fact: &Json) -> Option<Tree> {
    let served = fact["served_by"].as_object()?;
    let rest = if served["reads_rows"] == true { ", and rows of the cube" } else { "" };
    let (name, built_at) = (word(&served["pre_aggregation"]), word(&served["built_at"]));
    Some(Tree::new(format!("pre-aggregation {name}, as of {built_at}: {} rows{rest}", served["rows"])))
}

/// Shows why pre-aggregations do not serve a fact.
fn misses(fact: &Json) -> Vec<Tree> {
    let mut lines = Vec::new();
    for miss in fact["misses"].as_array().into_iter().flatten() {
        let of = match miss["pre_aggregation"].as_str() {
            Some(name) => format!("pre-aggregation {name} not used"),
            None => "no pre-aggregation".to_owned(),
        };
        let members: Vec<&str> = miss["members"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let members = if members.is_empty() { String::new() } else { format!(" ({})", members.join(", ")) };
        let title = format!("{of}: {}{members}", word(&miss["message"]).trim_end_matches('.'));
        let add = miss["add"].as_str().into_iter().flat_map(str::lines);
        lines.push(Tree::with(title, add.map(|line| Tree::new(format!("Add `{line}`.")))));
    }
    lines
}

fn warehouse(body: &Map<String, Json>) -> Vec<Tree> {
    match body.get("warehouse_plan") {
        None | Some(Json::Null) => vec![Tree::new(word(body.get("warehouse_plan_reason").unwrap_or(&Json::Null)))],
        Some(Json::String(text)) => text.lines().map(Tree::new).collect(),
        Some(plan) => steps(plan),
    }
}

/// Draws a plan whose steps have a name, facts and children. A value of a different shape is shown unchanged.
fn steps(plan: &Json) -> Vec<Tree> {
    match plan {
        Json::Array(plans) => plans.iter().flat_map(steps).collect(),
        Json::Object(step) if step.get("name").is_some_and(Json::is_string) && step.contains_key("children") => {
            let facts = step.get("extra_info").and_then(Json::as_object).into_iter().flatten();
            let facts = facts.map(|(name, fact)| Tree::new(format!("{name}: {}", one_line(fact))));
            vec![Tree::with(word(&step["name"]).trim(), facts.chain(steps(&step["children"])))]
        }
        other => format!("{other:#}").lines().map(Tree::new).collect(),
    }
}

fn one_line(fact: &Json) -> String {
    match fact {
        Json::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Json::Array(facts) => facts.iter().map(one_line).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn word(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
