//! A role's conformance vectors: calls that every component of it must survive, and what must hold of the
//! answers, whatever they say.
//!
//! In: a component on the bench. Out: an [`Outcome`] a vector. A plugin may decline a call by an error of the
//! contract; a trap, a limit, or an answer that a host would refuse is a failure. Each call is made twice, and
//! the answers must be the same, bit for bit. Not here: whether a plugin is any good.

mod checks;
mod detectors;
mod dialects;
mod hooks;

use serde_json::{Map, Value};
use terrane_app::ports::plugins::PluginRole;
use terrane_plugin_host::plain;
use terrane_plugin_host::test_bench::{Called, TestBench};

use super::{call_text, case, with_log};

/// What became of one vector or case.
pub(super) struct Outcome {
    pub(super) name: String,
    /// Empty: it passed.
    pub(super) problems: Vec<String>,
    /// What the component wrote, where that may tell why.
    pub(super) log: Vec<String>,
    /// Whether the plugin answered, or declined by an error of the contract; `None` where that is not the question.
    answered: Option<bool>,
}

impl Outcome {
    pub(super) fn new(name: impl Into<String>, result: Result<Vec<String>, String>) -> Outcome {
        let problems = result.unwrap_or_else(|problem| vec![problem]);
        // A kind may be called anything.
        Outcome { name: plain(&name.into()), problems, log: Vec::new(), answered: None }
    }

    pub(super) fn with_log(self, log: Vec<String>) -> Outcome {
        Outcome { log, ..self }
    }

    /// Of what stood in `ok`, held against `judge`; `None` where the plugin declined.
    fn of_answer(
        name: impl Into<String>,
        answer: Result<Option<Value>, String>,
        judge: impl FnOnce(&Value) -> Vec<String>,
    ) -> Outcome {
        let answered = answer.as_ref().ok().map(Option::is_some);
        let problems = answer.map(|answer| answer.as_ref().map_or_else(Vec::new, judge));
        Outcome { answered, ..Outcome::new(name, problems) }
    }

    pub(super) fn is_declined(&self) -> bool {
        self.answered == Some(false)
    }
}

/// All vectors of a role. Who declines every call of the one function that the role is there for keeps the
/// contract and is of no use to anybody, which is a failure too.
pub(super) fn run(bench: &TestBench, role: PluginRole) -> Vec<Outcome> {
    let mut outcomes = match role {
        PluginRole::Detector => detectors::run(bench),
        PluginRole::Check => checks::run(bench),
        PluginRole::Governance => hooks::run(bench),
        PluginRole::Dialect => dialects::run(bench),
    };
    outcomes.extend(of_no_use(&outcomes, role));
    outcomes
}

fn of_no_use(outcomes: &[Outcome], role: PluginRole) -> Option<Outcome> {
    let is_main = |name: &str| role != PluginRole::Governance || name.starts_with(hooks::ON_QUERY);
    let answered = outcomes.iter().filter(|outcome| is_main(&outcome.name)).filter_map(|outcome| outcome.answered);
    let (answered, declined): (Vec<bool>, Vec<bool>) = answered.partition(|is_answered| *is_answered);
    let problem = format!("all of {} calls were declined: a plugin must answer some of them", declined.len());
    (answered.is_empty() && !declined.is_empty()).then(|| Outcome::new("answers", Err(problem)))
}

/// Makes a call twice.
///
/// # Errors
/// It ended in a fault, a server would refuse the answer, or the answers differ.
pub(super) fn steady(bench: &TestBench, call: &str, arguments: &Map<String, Value>) -> Result<Called, String> {
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
    Err(with_log(problem, &first.log))
}

/// As [`steady`], with what a case may leave out filled in.
fn ask(bench: &TestBench, call: &str, arguments: Value) -> Result<Value, String> {
    let Value::Object(mut arguments) = arguments else { return Err("a vector without arguments".to_owned()) };
    case::complete(call, &mut arguments, bench)?;
    Ok(steady(bench, call, &arguments)?.answer)
}

/// The same, with what stands in `ok`; `None` where the plugin declined.
fn answer_of(bench: &TestBench, call: &str, arguments: Value) -> Result<Option<Value>, String> {
    Ok(accepted(&ask(bench, call, arguments)?).cloned())
}

/// What stands in `ok`; `None` where the plugin declined.
fn accepted(answer: &Value) -> Option<&Value> {
    answer.get("ok")
}

/// `[a-z][a-z0-9_]*`, at most 64 bytes.
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

/// What is wrong with an arena: places that are not there, children behind their parents, more than the
/// contract's 512 nodes and depth of 32.
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
            problems.push(format!("node {at} of an arena names a slot that is not there"));
        }
        let of_child = |child: &Value| depths.get(index(child)).copied();
        match children.map(|children| children.iter().map(of_child).collect::<Option<Vec<_>>>()) {
            Some(Some(below)) => depths.push(1 + below.into_iter().max().unwrap_or(0)),
            _ => {
                problems.push(format!("node {at} of an arena has children that don't come before it"));
                depths.push(1);
            }
        }
    }
    if depths.iter().any(|depth| *depth > 32) {
        problems.push("an arena is deeper than 32".to_owned());
    }
    if list(arena, "roots").iter().any(|root| index(root) >= nodes.len()) {
        problems.push("an arena has a root that is no node".to_owned());
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
    fn who_declines_every_query_is_of_no_use() {
        let of = |name: &str, answer: Option<Value>| Outcome::of_answer(name, Ok(answer), |_| Vec::new());
        let declined = || vec![of("on-query: nobody", None), of("on-query: many roles", None)];
        let some = |more: Outcome| declined().into_iter().chain([more]).collect::<Vec<_>>();
        let failure = of_no_use(&declined(), PluginRole::Governance).map(|outcome| outcome.problems.concat());
        assert!(failure.is_some_and(|failure| failure.contains("all of 2 calls")));
        assert!(of_no_use(&some(of("on-certify: submit", Some(json!([])))), PluginRole::Governance).is_some());
        assert!(of_no_use(&some(of("on-query: odd names", Some(json!({})))), PluginRole::Governance).is_none());
        assert!(of_no_use(&[Outcome::new("profile", Ok(Vec::new()))], PluginRole::Dialect).is_none());
    }

    #[test]
    fn arenas_that_no_host_would_take_are_told() {
        let node = |op: &str, first: u32, count: u32, aux: u32| json!({"op": op, "ty": "text", "first": first, "count": count, "aux": aux});
        let arena = |nodes: Value, args: Value| json!({"nodes": nodes, "args": args, "columns": ["a"], "literals": [], "names": [], "roots": [0]});
        assert!(arena_problems(&arena(json!([node("column", 0, 0, 0)]), json!([]))).is_empty());
        assert_eq!(arena_problems(&arena(json!([node("column", 0, 0, 1)]), json!([]))).len(), 1);
        assert_eq!(arena_problems(&arena(json!([node("not", 0, 1, 0)]), json!([0]))).len(), 1);
        assert_eq!(arena_problems(&arena(json!([node("not", 5, 1, 0)]), json!([]))).len(), 1);
        assert_eq!(arena_problems(&arena(json!([]), json!([]))).len(), 1);
    }
}
