//! Tests that every component of a role must pass: calls that it must survive, and rules that every answer must follow.
//!
//! In: a component on the test bench. Out: a [`ConformanceOutcome`] for each vector. A vector is one call with its
//! arguments. A plugin may decline a call with an error of the contract. A trap, a limit, or an answer that a host
//! would refuse is a failure. Each call is made twice, and the answers must be identical. Not here: the quality of
//! answers.

mod checks;
mod detectors;
mod dialects;
mod hooks;

use serde_json::{Map, Value};
use terrane_app::ports::plugins::PluginRole;
use terrane_plugin_host::plain;
use terrane_plugin_host::test_bench::{CallReport, TestBench};

use crate::case;
use crate::error::call_text;

/// The result of one conformance vector, or of one case of the author.
#[derive(Debug, Clone)]
pub struct ConformanceOutcome {
    pub name: String,
    /// The problems. The vector or case passed if there are none.
    pub problems: Vec<String>,
    /// The lines that the component logged.
    pub log: Vec<String>,
    /// The plugin's reply to a vector that it may decline.
    reply: Option<Reply>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Answered,
    /// The call returned an error that the contract defines.
    Declined,
}

impl ConformanceOutcome {
    pub(crate) fn new(name: impl Into<String>, result: Result<Vec<String>, String>) -> ConformanceOutcome {
        let problems = result.unwrap_or_else(|problem| vec![problem]);
        // The name may contain the name of a kind, which may be any string that the plugin returned.
        ConformanceOutcome { name: plain(&name.into()), problems, log: Vec::new(), reply: None }
    }

    pub(crate) fn with_log(self, log: Vec<String>) -> ConformanceOutcome {
        ConformanceOutcome { log, ..self }
    }

    /// Creates the result of a call. Its problems are those that `check` finds in the answer, or none if the plugin
    /// declined.
    fn of_answer(
        name: impl Into<String>,
        answer: Result<Option<Value>, String>,
        check: impl FnOnce(&Value) -> Vec<String>,
    ) -> ConformanceOutcome {
        let reply = answer.as_ref().ok().map(|answer| if answer.is_some() { Reply::Answered } else { Reply::Declined });
        let problems = answer.map(|answer| answer.as_ref().map_or_else(Vec::new, check));
        ConformanceOutcome { reply, ..ConformanceOutcome::new(name, problems) }
    }

    pub fn is_declined(&self) -> bool {
        self.reply == Some(Reply::Declined)
    }
}

/// Runs all vectors of a role. A component that declines every call of its role's main function follows the contract
/// but is useless, so that is a failure too.
pub fn run(bench: &TestBench, role: PluginRole) -> Vec<ConformanceOutcome> {
    let mut outcomes = match role {
        PluginRole::Detector => detectors::run(bench),
        PluginRole::Check => checks::run(bench),
        PluginRole::Governance => hooks::run(bench),
        PluginRole::Dialect => dialects::run(bench),
    };
    outcomes.extend(declined_always(&outcomes, role));
    outcomes
}

fn declined_always(outcomes: &[ConformanceOutcome], role: PluginRole) -> Option<ConformanceOutcome> {
    let is_main = |name: &str| role != PluginRole::Governance || name.starts_with(hooks::ON_QUERY);
    let replies = outcomes.iter().filter(|outcome| is_main(&outcome.name)).filter_map(|outcome| outcome.reply);
    let (answered, declined): (Vec<Reply>, Vec<Reply>) = replies.partition(|reply| *reply == Reply::Answered);
    let problem = format!("all of {} calls were declined: a plugin must answer some of them", declined.len());
    (answered.is_empty() && !declined.is_empty()).then(|| ConformanceOutcome::new("answers", Err(problem)))
}

/// Makes a call twice and returns the first report.
///
/// # Errors
/// The call ends in a fault, a server would refuse the answer, or the answers differ.
pub(crate) fn call_twice(bench: &TestBench, call: &str, arguments: &Map<String, Value>) -> Result<CallReport, String> {
    let once = || bench.call(call, arguments).map_err(|error| call_text(&error));
    let (first, second) = (once()?, once()?);
    let problem = match &first.refused {
        Some(fault) => format!("a server refuses the answer: the component {fault}"),
        None if first.answer == second.answer => return Ok(first),
        None => format!(
            "two calls with the same input gave two answers: {} and {}",
            case::short(&first.answer),
            case::short(&second.answer)
        ),
    };
    Err(first.log.texts().into_iter().fold(problem, |text, line| format!("{text}\n    {line}")))
}

/// Completes the arguments, makes the call twice, and returns the answer.
fn ask(bench: &TestBench, call: &str, arguments: Value) -> Result<Value, String> {
    let Value::Object(mut arguments) = arguments else { return Err("a vector without arguments".to_owned()) };
    case::complete(call, &mut arguments, bench)?;
    Ok(call_twice(bench, call, &arguments)?.answer)
}

/// Makes a call like [`ask`], and returns the value in `ok`, or `None` if the plugin declined.
fn answer_of(bench: &TestBench, call: &str, arguments: Value) -> Result<Option<Value>, String> {
    Ok(accepted(&ask(bench, call, arguments)?).cloned())
}

/// Returns the value in `ok`, or `None` if the plugin declined.
fn accepted(answer: &Value) -> Option<&Value> {
    answer.get("ok")
}

/// Returns whether the text matches `[a-z][a-z0-9_]*` and has at most 64 bytes.
fn is_code(text: &str) -> bool {
    let is_first = |b: u8| b.is_ascii_lowercase();
    text.len() <= 64
        && text.bytes().next().is_some_and(is_first)
        && text.bytes().all(|b| is_first(b) || b.is_ascii_digit() || b == b'_')
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Returns the problems of an arena: indexes out of range, children that do not precede their parents, more than 512
/// nodes, or a depth of more than 32. The contract sets these limits.
fn arena_problems(arena: &Value) -> Vec<String> {
    let (nodes, args) = (list(arena, "nodes"), list(arena, "args"));
    let mut problems = Vec::new();
    if nodes.len() > 512 {
        problems.push(format!("an arena has {} nodes, at most 512", nodes.len()));
    }
    let mut depths: Vec<usize> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let (first, count) = (index(&node["first"]), index(&node["count"]));
        let children = args.get(first..first.saturating_add(count));
        let slots = match text(node, "op") {
            "column" => Some(list(arena, "columns").len()),
            "literal" => Some(list(arena, "literals").len()),
            _ => None,
        };
        if slots.is_some_and(|slots| index(&node["aux"]) >= slots) {
            problems.push(format!("node {at} of an arena has an index out of range"));
        }
        let of_child = |child: &Value| depths.get(index(child)).copied();
        match children.map(|children| children.iter().map(of_child).collect::<Option<Vec<_>>>()) {
            Some(Some(below)) => depths.push(1 + below.into_iter().max().unwrap_or(0)),
            _ => {
                problems.push(format!("node {at} of an arena has children that do not precede it"));
                depths.push(1);
            }
        }
    }
    if depths.iter().any(|depth| *depth > 32) {
        problems.push("an arena is deeper than 32".to_owned());
    }
    if list(arena, "roots").iter().any(|root| index(root) >= nodes.len()) {
        problems.push("an arena has a root out of range".to_owned());
    }
    problems
}

fn index(value: &Value) -> usize {
    value.as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plugin_that_declines_every_call_fails() {
        let of = |name: &str, answer: Option<Value>| ConformanceOutcome::of_answer(name, Ok(answer), |_| Vec::new());
        let declined = || vec![of("on-query: anonymous", None), of("on-query: many roles", None)];
        let some = |more: ConformanceOutcome| declined().into_iter().chain([more]).collect::<Vec<_>>();
        let failure = declined_always(&declined(), PluginRole::Governance).map(|outcome| outcome.problems.concat());
        assert!(failure.is_some_and(|failure| failure.contains("all of 2 calls")));
        assert!(declined_always(&some(of("on-certify: submit", Some(json!([])))), PluginRole::Governance).is_some());
        assert!(declined_always(&some(of("on-query: odd names", Some(json!({})))), PluginRole::Governance).is_none());
        assert!(declined_always(&[ConformanceOutcome::new("profile", Ok(Vec::new()))], PluginRole::Dialect).is_none());
    }

    #[test]
    fn malformed_arenas_are_reported() {
        let node = |op: &str, first: u32, count: u32, aux: u32| json!({"op": op, "ty": "text", "first": first, "count": count, "aux": aux});
        let arena = |nodes: Value, args: Value| json!({"nodes": nodes, "args": args, "columns": ["a"], "literals": [], "names": [], "roots": [0]});
        assert!(arena_problems(&arena(json!([node("column", 0, 0, 0)]), json!([]))).is_empty());
        assert_eq!(arena_problems(&arena(json!([node("column", 0, 0, 1)]), json!([]))).len(), 1);
        assert_eq!(arena_problems(&arena(json!([node("not", 0, 1, 0)]), json!([0]))).len(), 1);
        assert_eq!(arena_problems(&arena(json!([node("not", 5, 1, 0)]), json!([]))).len(), 1);
        assert_eq!(arena_problems(&arena(json!([]), json!([]))).len(), 1);
    }
}
