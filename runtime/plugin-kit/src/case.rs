//! Case files: one call, and the expected answer.
//!
//! In: JSON text with `call`, `args` (by the names of the parameters), `expect` and `tolerance`. Out: a [`Case`] with
//! complete arguments, and the differences of an answer. Two short forms are accepted. `ctx` or parts of it may be
//! omitted. A batch of series may be `{"series": [[1, 2], [3]]}` with `step-ms` (default: a day) and `start-ms`
//! (default: 0, or the end of the history). Not here: the call itself.

use std::path::Path;

use serde_json::{Map, Value, json};
use terrane_plugin_host::test_bench::TestBench;

use crate::error::KitError;
use crate::files::read_text;

/// The default relative tolerance of expected numbers.
const TOLERANCE: f64 = 1e-9;
const DAY_MS: i64 = 86_400_000;
/// The current time in cases without one: 2025-01-01, in milliseconds since 1970-01-01.
const NOW_MS: i64 = 1_735_689_600_000;

/// One call of the contract.
#[derive(Debug, Clone)]
pub struct Case {
    /// The function of the contract to call.
    pub call: String,
    pub arguments: Map<String, Value>,
    pub expected: Option<Value>,
    tolerance: f64,
}

impl Case {
    /// Reads a case file for a component.
    ///
    /// # Errors
    /// The file cannot be read, or is not a case.
    pub fn read(path: &Path, bench: &TestBench) -> Result<Case, KitError> {
        let wrong = |message: String| KitError::Case { path: path.to_owned(), message };
        let value = serde_json::from_str::<Value>(&read_text(path)?).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(fields) = value else { return Err(wrong("it is not a JSON object".to_owned())) };
        const KEYS: [&str; 5] = ["call", "args", "expect", "tolerance", "about"];
        if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(wrong(format!("unknown key `{unknown}`; the keys are {}", KEYS.join(", "))));
        }
        let call = fields.get("call").and_then(Value::as_str);
        let call = call.ok_or_else(|| wrong("`call` must name a function".to_owned()))?.to_owned();
        let mut arguments = match fields.get("args") {
            Some(Value::Object(arguments)) => arguments.clone(),
            None => Map::new(),
            Some(_) => return Err(wrong("`args` must be an object".to_owned())),
        };
        let tolerance = fields.get("tolerance").map_or(Some(TOLERANCE), Value::as_f64);
        let tolerance = tolerance.ok_or_else(|| wrong("`tolerance` must be a number".to_owned()))?;
        complete(&call, &mut arguments, bench).map_err(wrong)?;
        Ok(Case { call, arguments, expected: fields.get("expect").cloned(), tolerance })
    }

    /// Returns the differences between an answer and the expected one.
    pub fn differences(&self, answer: &Value) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(expected) = &self.expected {
            compare(expected, answer, "", self.tolerance, &mut found);
        }
        found
    }
}

/// Adds the parts of the arguments that a case may omit.
pub(crate) fn complete(call: &str, arguments: &mut Map<String, Value>, bench: &TestBench) -> Result<(), String> {
    let name = call.rsplit('#').next().unwrap_or(call);
    let function = bench.facts().exports.iter().find(|export| export.name == name);
    if function.is_some_and(|function| function.signature.starts_with("func(ctx:")) {
        let mut context = context(bench.limits(name).time_ms, bench.config_json());
        match arguments.get("ctx") {
            Some(Value::Object(given)) => context.extend(given.clone()),
            None => {}
            Some(_) => return Err("`args.ctx` must be an object".to_owned()),
        }
        arguments.insert("ctx".to_owned(), Value::Object(context));
    }
    let lengths = match arguments.get_mut("history") {
        Some(history) => expand_series(history, None)?,
        None => None,
    };
    arguments.get_mut("points").map_or(Ok(None), |points| expand_series(points, lengths.as_deref())).map(|_| ())
}

fn context(budget_ms: u64, config_json: &str) -> Map<String, Value> {
    let context = json!({
        "now-unix-ms": NOW_MS, "time-zone": "UTC", "correlation-id": "case", "budget-ms": budget_ms,
        "config-json": config_json, "extra": [],
    });
    match context {
        Value::Object(context) => context,
        _ => Map::new(),
    }
}

/// Expands the short form of a batch, and returns the end of each series in milliseconds.
fn expand_series(batch: &mut Value, ends_ms: Option<&[i64]>) -> Result<Option<Vec<i64>>, String> {
    let Some(series) = batch.get("series") else { return Ok(None) };
    let series = series.as_array().ok_or("`series` must be a list of lists")?.clone();
    let integer = |name: &str| {
        batch.get(name).map_or(Ok(None), |v| v.as_i64().map(Some).ok_or(format!("`{name}` must be an integer")))
    };
    let (step, start) = (integer("step-ms")?.unwrap_or(DAY_MS), integer("start-ms")?);
    let (mut offsets, mut times, mut values, mut ends) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for (at, items) in series.iter().enumerate() {
        let items = items.as_array().ok_or("`series` must be a list of lists")?;
        let begin = start.or_else(|| ends_ms?.get(at).copied()).unwrap_or(0);
        times.extend((0..items.len() as i64).map(|index| begin + index * step));
        values.extend(items.iter().cloned());
        offsets.push(values.len());
        ends.push(begin + items.len() as i64 * step);
    }
    *batch = json!({"offsets": offsets, "timestamps-ms": times, "values": values, "step-ms": step});
    Ok(Some(ends))
}

/// Compares an answer with the expected one. In an object, only the expected fields are compared; in a list, all items.
fn compare(expected: &Value, found: &Value, path: &str, tolerance: f64, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(fields), Value::Object(answer)) => {
            for (name, expected) in fields {
                let place = format!("{path}/{name}");
                match answer.get(name) {
                    Some(found) => compare(expected, found, &place, tolerance, differences),
                    None => differences.push(format!("{place}: the field is missing")),
                }
            }
        }
        (Value::Array(items), Value::Array(answer)) if items.len() == answer.len() => {
            for (at, (expected, found)) in items.iter().zip(answer).enumerate() {
                compare(expected, found, &format!("{path}/{at}"), tolerance, differences);
            }
        }
        (Value::Number(a), Value::Number(b)) if is_near(a.as_f64(), b.as_f64(), tolerance) => {}
        (expected, found) if expected == found => {}
        _ => differences.push(format!("{path}: expected {}, found {}", short(expected), short(found))),
    }
}

fn is_near(a: Option<f64>, b: Option<f64>, tolerance: f64) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    a == b || (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

/// Returns a value as text, shortened to fit into a line.
pub(crate) fn short(value: &Value) -> String {
    const SHOWN: usize = 100;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expected_fields_are_compared() {
        let answer = json!({"ok": {"scores": [0.30000000000000004, "NaN"], "more": 1}});
        let differ = |expected: Value| {
            let mut found = Vec::new();
            compare(&expected, &answer, "", TOLERANCE, &mut found);
            found
        };
        assert!(differ(json!({"ok": {"scores": [0.3, "NaN"]}})).is_empty());
        assert_eq!(
            differ(json!({"ok": {"scores": [0.31, "NaN"]}})),
            ["/ok/scores/0: expected 0.31, found 0.30000000000000004"]
        );
        assert_eq!(differ(json!({"ok": {"scores": [0.3]}})).len(), 1);
        assert_eq!(differ(json!({"err": null})), ["/err: the field is missing"]);
    }

    #[test]
    fn series_are_expanded_and_points_continue_the_history() {
        let mut history = json!({"series": [[1, 2, 3], [4]], "step-ms": 10});
        let ends = expand_series(&mut history, None).unwrap();
        assert_eq!(history["offsets"], json!([0, 3, 4]));
        let mut points = json!({"series": [["NaN"], [5]], "step-ms": 10});
        expand_series(&mut points, ends.as_deref()).unwrap();
        assert_eq!(points["timestamps-ms"], json!([30, 10]));
        assert!(expand_series(&mut json!({"series": [1]}), None).is_err());
    }
}
