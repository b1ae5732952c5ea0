//! Translates filters: SQL with references in Jinja braces.
//!
//! In: `{{ Dimension('order__status') }} = 'paid'`. Out: the condition with references of the project, or the reason
//! why it has no counterpart. No template is rendered.

use super::scope::{CubeNames, Place, ProjectScope};
use crate::draft::Reference;

/// A translated condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) needs: Vec<Reference>,
}

/// The reason why a filter has no counterpart, and an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Untranslatable {
    pub(super) reason: String,
    pub(super) cure: &'static str,
}

const JINJA_CURE: &str = "Write the condition with Dimension(), TimeDimension() or Entity() only.";

/// The granularities, from the finest to the coarsest.
pub(super) const GRANULARITIES: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

/// The warehouses with the function `date_trunc('month', time)`.
const WITH_DATE_TRUNC: [&str; 8] =
    ["duckdb", "postgres", "redshift", "snowflake", "spark", "databricks", "trino", "clickhouse"];

/// The warehouses without this function whose casts convert a time to a date.
const WITH_DATES: [&str; 3] = ["bigquery", "mysql", "mariadb"];
/// The granularities to which a time is not truncated.
const FINEST: [&str; 3] = ["nanosecond", "microsecond", "millisecond"];

/// The measure whose rows a filter selects.
#[derive(Clone, Copy)]
pub(super) struct Filtered<'f> {
    pub(super) own: &'f CubeNames,
    /// The time dimension to which `metric_time` refers.
    pub(super) time: Option<&'f str>,
    pub(super) scope: &'f ProjectScope,
}

/// Translates a filter of a measure.
pub(super) fn condition(text: &str, filtered: Filtered<'_>) -> Result<Condition, Untranslatable> {
    let mut condition = Condition { sql: String::new(), needs: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        condition.sql.push_str(&rest[..at]);
        let call = rest[at..].strip_prefix("{{").and_then(|inner| inner.split_once("}}"));
        let (call, after) = call.ok_or_else(|| Untranslatable {
            reason: "its filter contains a brace that is not part of a reference".to_owned(),
            cure: JINJA_CURE,
        })?;
        let (sql, need) = reference(call.trim(), filtered)?;
        condition.sql.push_str(&sql);
        condition.needs.extend(need);
        rest = after;
    }
    condition.sql.push_str(rest);
    let lines = condition.sql.lines().map(str::trim).filter(|line| !line.is_empty());
    condition.sql = lines.collect::<Vec<_>>().join("\n");
    Ok(condition)
}

/// A call in Jinja braces, such as `TimeDimension('order__ordered_at', 'month')`. A method such as `.grain('month')`
/// may follow it.
struct Call<'c> {
    function: &'c str,
    arguments: Vec<&'c str>,
    method: Option<(&'c str, &'c str)>,
}

fn reference(text: &str, filtered: Filtered<'_>) -> Result<(String, Option<Reference>), Untranslatable> {
    let Filtered { own, scope, .. } = filtered;
    let unknown = || Untranslatable { reason: format!("its filter contains `{{{{ {text} }}}}`"), cure: JINJA_CURE };
    let call = call(text).ok_or_else(unknown)?;
    let (name, grain) = match call.arguments.as_slice() {
        [name] => (*name, None),
        [name, grain] if call.function == "TimeDimension" => (*name, Some(*grain)),
        _ => return Err(unknown()),
    };
    match (call.function, call.method) {
        ("Dimension" | "TimeDimension", None) => time(dimension(name, filtered)?, grain, own, scope),
        ("Dimension" | "TimeDimension", Some(("grain", grain))) => {
            time(dimension(name, filtered)?, Some(grain), own, scope)
        }
        ("Dimension" | "TimeDimension", Some(("date_part", part))) if is_name(part) => {
            let Place { reference, path, .. } = dimension(name, filtered)?;
            Ok((format!("EXTRACT({part} FROM {})", braced(&path, &reference, own)), Some(reference)))
        }
        ("Entity", None) => {
            let (links, last) = linked(name, own);
            let reference = scope.entity(own, &links, last).ok_or_else(|| unknown_name("entity", name))?;
            let path = if links.is_empty() { vec![last] } else { links };
            let cube = scope.path(own, &path, &reference.cube).ok_or_else(|| no_path(name))?;
            Ok((braced(&cube, &reference, own), Some(reference)))
        }
        ("Metric", _) => Err(Untranslatable {
            reason: "it filters by a metric".to_owned(),
            cure: "Compute the metric in a model (models/*.sql), and filter by its column.",
        }),
        _ => Err(unknown()),
    }
}

fn unknown_name(kind: &str, name: &str) -> Untranslatable {
    Untranslatable {
        reason: format!("its filter names the {kind} `{name}`, which does not exist or is not imported"),
        cure: "Correct the name, or solve the problems of that semantic model first.",
    }
}

/// Splits a name such as `entity__entity__dimension` into the entities that lead from the cube `own` to another cube, and
/// the last part. Entities that identify the rows of `own` lead nowhere.
fn linked<'n>(name: &'n str, own: &CubeNames) -> (Vec<&'n str>, &'n str) {
    let mut parts: Vec<&str> = name.split("__").collect();
    let last = parts.pop().unwrap_or(name);
    let own_keys = parts.iter().take_while(|entity| own.has_key(entity)).count();
    parts.drain(..own_keys);
    (parts, last)
}

/// Finds a dimension by a name such as `entity__dimension`. Before the dimension, the name may have a path of several
/// entities; the last one identifies the dimension's cube.
fn dimension(name: &str, filtered: Filtered<'_>) -> Result<Place, Untranslatable> {
    let Filtered { own, scope, .. } = filtered;
    let (links, last) = linked(name, own);
    let dimension = if name == "metric_time" { filtered.time.unwrap_or(name) } else { last };
    let place = scope.dimension(own, links.last().copied(), dimension);
    // An entity of several cubes may identify the rows of the cube `own`, and of the dimension's cube.
    let key = name.rsplit("__").nth(1);
    let place = place.or_else(|| scope.dimension(own, key, dimension));
    let place = place.ok_or_else(|| unknown_name("dimension", name))?;
    let path = if links.is_empty() { Vec::from_iter(key) } else { links };
    let path = scope.path(own, &path, &place.reference.cube).ok_or_else(|| no_path(name))?;
    Ok(Place { path, ..place })
}

fn no_path(name: &str) -> Untranslatable {
    Untranslatable {
        reason: format!("its filter reads `{name}` by other entities than the joins of the project do"),
        cure: "Write a join with another name and `cube:` for that entity, and filter by its members.",
    }
}

/// Applies a granularity to a time dimension. Without one, it is the granularity of the dimension itself, because
/// MetricFlow truncates each time to it.
fn time(
    place: Place,
    grain: Option<&str>,
    own: &CubeNames,
    scope: &ProjectScope,
) -> Result<(String, Option<Reference>), Untranslatable> {
    let sql = braced(&place.path, &place.reference, own);
    let own_grain = place.granularity.map(|grain| grain.to_lowercase());
    let own_grain = own_grain.filter(|grain| !FINEST.contains(&grain.as_str()));
    let sql = match grain.map(str::to_lowercase).or(own_grain) {
        None => sql,
        Some(grain)
            if GRANULARITIES.contains(&grain.as_str()) && WITH_DATE_TRUNC.contains(&scope.warehouse.as_str()) =>
        {
            format!("date_trunc('{grain}', {sql})")
        }
        Some(grain) if grain == "day" && WITH_DATES.contains(&scope.warehouse.as_str()) => {
            format!("CAST({sql} AS DATE)")
        }
        Some(grain) => {
            return Err(Untranslatable {
                reason: format!("its filter reads a time by the granularity `{grain}`"),
                cure: "Write the warehouse's function for it as a dimension, and filter by that.",
            });
        }
    };
    Ok((sql, Some(place.reference)))
}

/// Returns a reference in braces. `path` is the name by which the cube `own` reaches the cube of the reference.
fn braced(path: &str, reference: &Reference, own: &CubeNames) -> String {
    let member = reference.member.as_deref().unwrap_or_default();
    if reference.cube == own.name { format!("{{{member}}}") } else { format!("{{{path}.{member}}}") }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Splits a call into its function, its arguments and its method. Arguments must be names in quotes.
fn call(text: &str) -> Option<Call<'_>> {
    let (function, rest) = text.split_once('(')?;
    let (arguments, rest) = rest.split_once(')')?;
    let arguments: Option<Vec<&str>> = arguments.split(',').map(quoted).collect();
    let rest = rest.trim();
    let method = match rest.strip_prefix('.') {
        None if rest.is_empty() => None,
        None => return None,
        Some(method) => {
            let (name, argument) = method.split_once('(')?;
            Some((name.trim(), quoted(argument.strip_suffix(')')?)?))
        }
    };
    Some(Call { function: function.trim(), arguments: arguments?, method })
}

/// Returns the name in the quotes of an argument.
fn quoted(argument: &str) -> Option<&str> {
    let argument = argument.trim();
    let quote = argument.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    argument.strip_prefix(quote)?.strip_suffix(quote).filter(|name| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_split() {
        let parts = |text| call(text).map(|call| (call.function, call.arguments, call.method));
        assert_eq!(parts("Dimension('a__b')"), Some(("Dimension", vec!["a__b"], None)));
        assert_eq!(parts("TimeDimension( \"a\", 'day' )"), Some(("TimeDimension", vec!["a", "day"], None)));
        assert_eq!(parts("Dimension('a').grain('month')"), Some(("Dimension", vec!["a"], Some(("grain", "month")))));
        for text in [
            "Dimension(a)",
            "Dimension('a",
            "Dimension('a b')",
            "Dimension('a') + 1",
            "x",
            "Metric('a', ['b'])",
            "D('a').x",
            "D('')",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
