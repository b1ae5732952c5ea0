//! The TypeScript module of a project: one interface `Project`, for `Client<Project>` of `@terrane/client`.
//!
//! In: the visible project. Out: the text, which is equal to that of `generateProject` in
//! `sdk/typescript/src/codegen.ts` for the same project. Names are always quoted; the module has no imports.

use crate::text::{escape_units, line, quote};
use crate::visible::{Caption, ValueType, VisibleCube, VisibleMember, VisibleProject};

const HEADER: &str = "\
// Generated from a Terrane project. Do not edit.
// The types of a project, for `Client<Project>` of `@terrane/client`.

";

/// Returns the source text of a TypeScript module with the types of all cubes and metrics.
pub(crate) fn module(project: &VisibleProject<'_>) -> String {
    let cubes =
        project.cubes.iter().flat_map(|cube| documented(&cube.caption, block(&name(&cube.caption), members(cube))));
    let metrics = project.metrics.iter().flat_map(|metric| property(metric, ValueType::Number));
    let body = [block("cubes", cubes.collect()), block("metrics", metrics.collect())].concat();
    let lines = [vec!["export interface Project {".to_owned()], indented(body), vec!["}".to_owned()]].concat();
    format!("{HEADER}{}\n", lines.join("\n"))
}

fn members(cube: &VisibleCube<'_>) -> Vec<String> {
    let properties = |members: &[VisibleMember<'_>]| {
        members.iter().flat_map(|member| property(&member.caption, member.value)).collect::<Vec<_>>()
    };
    let times = cube.dimensions.iter().filter(|dimension| !dimension.granularities.is_empty());
    let granularities = times.map(|time| format!("{}: {};", name(&time.caption), union(&time.granularities)));
    let segments: Vec<_> = cube.segments.iter().map(|segment| segment.name).collect();
    [
        block("measures", properties(&cube.measures)),
        block("dimensions", properties(&cube.dimensions)),
        block("granularities", granularities.collect()),
        vec![format!("segments: {};", union(&segments))],
    ]
    .concat()
}

fn property(item: &Caption<'_>, value: ValueType) -> Vec<String> {
    let value = match value {
        ValueType::Count => "number",
        ValueType::Number => "number | null",
        ValueType::String => "string | null",
        ValueType::Boolean => "boolean | null",
        ValueType::Any => "string | number | boolean | null",
    };
    documented(item, vec![format!("{}: {value};", name(item))])
}

/// Puts a comment with the title and the description before lines, if there are any. `*/` and `@` are escaped in the
/// comment, so that the text can neither end it nor direct the compiler.
fn documented(item: &Caption<'_>, lines: Vec<String>) -> Vec<String> {
    let text = line(item.title, item.description).replace("*/", "* /").replace('@', "\\@");
    let comment = (!text.is_empty()).then(|| format!("/** {text} */"));
    comment.into_iter().chain(lines).collect()
}

fn block(name: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return vec![format!("{name}: {{}};")];
    }
    [vec![format!("{name}: {{")], indented(lines), vec!["};".to_owned()]].concat()
}

fn indented(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

fn name(item: &Caption<'_>) -> String {
    quote(item.name, escape_units)
}

fn union(names: &[&str]) -> String {
    if names.is_empty() {
        return "never".to_owned();
    }
    names.iter().map(|name| quote(name, escape_units)).collect::<Vec<_>>().join(" | ")
}
