//! Writes the Python module of a project: a class for each cube with its members as constants, and a class `Metrics`.
//!
//! In: the visible project. Out: the text. A constant is a `Member` of the package `terrane`, which the package's query
//! builder takes; type checkers report attributes that do not exist. Titles and descriptions are strings below the
//! constants, where editors look for them. They are not comments, because comments could contain directives for a type
//! checker.

use crate::identifiers::identifiers;
use crate::text::{escape_point, line, quote};
use crate::visible::{Caption, VisibleCube, VisibleMember, VisibleProject};

/// The name of the class of metrics. No cube's class has this name, because names of cubes have no capitals.
const METRICS: &str = "Metrics";

/// Returns the source text of a Python module with a class for each cube and for the metrics.
pub(crate) fn module(project: &VisibleProject<'_>) -> String {
    let names: Vec<_> = project.cubes.iter().map(|cube| cube.caption.name).collect();
    let cubes = identifiers(&names).into_iter().zip(&project.cubes).map(|(class, cube)| cube_class(&class, cube));
    let classes: Vec<_> = cubes.chain([metrics_class(&project.metrics)]).collect();
    format!("{}\n\n\n{}\n", header(project), classes.join("\n\n\n"))
}

fn header(project: &VisibleProject<'_>) -> String {
    let has_segments = project.cubes.iter().any(|cube| !cube.segments.is_empty());
    let has_members = project.cubes.iter().any(|cube| !cube.measures.is_empty() || !cube.dimensions.is_empty());
    let has_members = has_members || !project.metrics.is_empty();
    let mut text = "# Generated from a Terrane project. Do not edit.\n# ruff: noqa\n# fmt: off\n\
                    \"\"\"Cubes, members and metrics of a project, for queries of the package `terrane`.\"\"\""
        .to_owned();
    let imports: Vec<_> = [(has_members, "Member"), (has_segments, "Segment")]
        .into_iter()
        .filter_map(|(is_used, name)| is_used.then_some(name))
        .collect();
    if !imports.is_empty() {
        text.push_str(&format!("\n\nfrom typing import Final\n\nfrom terrane import {}", imports.join(", ")));
    }
    text
}

/// A constant of a class.
struct Constant<'m> {
    caption: Caption<'m>,
    /// The Python expression that creates the constant.
    value: String,
}

fn cube_class(class: &str, cube: &VisibleCube<'_>) -> String {
    let of = cube.caption.name;
    let segments = cube.segments.iter().map(|segment| {
        let reference = literal(&format!("{of}.{}", segment.name));
        let value = format!("Segment(ref={reference}, name={}, cube={})", literal(segment.name), literal(of));
        Constant { caption: *segment, value }
    });
    let groups = [
        ("Dimensions", members(of, &cube.dimensions)),
        ("Measures", members(of, &cube.measures)),
        ("Segments", segments.collect()),
    ];
    class_of(class, &docstring_of(&cube.caption), groups)
}

fn members<'m>(of: &str, members: &[VisibleMember<'m>]) -> Vec<Constant<'m>> {
    let constant = |VisibleMember { caption, granularities, .. }: &VisibleMember<'m>| {
        let reference = literal(&format!("{of}.{}", caption.name));
        Constant { caption: *caption, value: format!("Member({reference}, {})", tuple(granularities)) }
    };
    members.iter().map(constant).collect()
}

fn metrics_class(metrics: &[Caption<'_>]) -> String {
    let value = |metric: &Caption<'_>| format!("Member({}, ())", literal(metric.name));
    let constants = metrics.iter().map(|metric| Constant { caption: *metric, value: value(metric) });
    class_of(METRICS, "\"\"\"The metrics of the project.\"\"\"", [("", constants.collect())])
}

/// Returns a class with groups of constants. If a group has a heading, a comment with the heading precedes the group.
/// Identifiers are unique in the whole class, not only in their group.
fn class_of<'m, const N: usize>(class: &str, docstring: &str, groups: [(&str, Vec<Constant<'m>>); N]) -> String {
    let names: Vec<_> = groups.iter().flat_map(|(_, group)| group).map(|constant| constant.caption.name).collect();
    let mut identifiers = identifiers(&names).into_iter();
    let mut lines = vec![format!("class {class}:"), format!("    {docstring}")];
    for (heading, group) in groups.iter().filter(|(_, group)| !group.is_empty()) {
        lines.push(String::new());
        if !heading.is_empty() {
            lines.push(format!("    # {heading}"));
        }
        for (constant, identifier) in group.iter().zip(identifiers.by_ref()) {
            lines.push(format!("    {identifier}: Final = {}", constant.value));
            lines.push(format!("    {}", docstring_of(&constant.caption)));
        }
    }
    lines.join("\n")
}

/// Returns a docstring. `>>>` is split, because `doctest` would run the text after it as a test.
fn docstring_of(item: &Caption<'_>) -> String {
    let text = line(item.title, item.description).replace(">>>", ">> >").replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"\"\"{text}\"\"\"")
}

fn literal(text: &str) -> String {
    quote(text, escape_point)
}

fn tuple(names: &[&str]) -> String {
    match names {
        [] => "()".to_owned(),
        [one] => format!("({},)", literal(one)),
        many => format!("({})", many.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ")),
    }
}
