//! What compiles, and what has to go for the rest to compile.
//!
//! In: drafts. Out: the project's texts, without an error. The compiler is asked; what it objects to is
//! taken away and told in its words, and it is asked again, since others may have stood on that.

use std::collections::HashMap;
use std::sync::Arc;

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::model;
use terrane_compiler::project::yaml::{self, Node, NodeValue};
use terrane_compiler::project::{self, Inputs, SourceFile, SourceTree};

use super::draft::{Draft, ITEMS, LISTS, MEASURES};
use super::finding::{LEFT_OUT, left_out};
use crate::authoring::yaml::{Yaml, document};
use crate::config::PROJECT_FILE;

/// A list of a draft and an index in it.
type Place = (usize, usize);
/// A draft's name by the place of a member.
type Owners = HashMap<Span, String>;

const GREETING: &str = "Made by `terrane import cube`, and yours from now on.";

/// Takes away what does not compile; what is left is written.
pub(super) fn settle(
    drafts: &mut Vec<Draft>,
    warehouse: &str,
    findings: &mut Vec<Diagnostic>,
) -> Vec<(String, String)> {
    let owners = owners(drafts);
    loop {
        let files = files(drafts);
        let problems = problems(&files, warehouse);
        let mut guilty: Vec<(usize, Option<Place>, &Diagnostic)> = Vec::new();
        for problem in &problems {
            let Some(span) = &problem.span else { continue };
            let Some(cube) = drafts.iter().position(|draft| draft.file() == *span.file) else { continue };
            let text = files.iter().find(|(path, _)| *path == *span.file).map_or("", |(_, text)| text.as_str());
            let place = item_at(text, span);
            if !guilty.iter().any(|(known, at, _)| *known == cube && (*at == place || at.is_none())) {
                guilty.push((cube, place, problem));
            }
        }
        if guilty.is_empty() {
            return files;
        }
        guilty.sort_by_key(|(cube, place, _)| (*cube, *place));
        for (cube, place, problem) in &guilty {
            tell(&drafts[*cube], *place, problem, &owners, findings);
        }
        // From the end, so that places stay true.
        for (cube, place, problem) in guilty.into_iter().rev() {
            take_away(drafts, cube, place, problem);
        }
    }
}

/// Says what goes. A view's copy of a member goes with the member, which is told where it was written.
fn tell(draft: &Draft, place: Option<Place>, problem: &Diagnostic, owners: &Owners, findings: &mut Vec<Diagnostic>) {
    let (cure, original) = (problem.hint.clone().unwrap_or_default(), &draft.original);
    let Some((list, member)) = place.and_then(|(list, index)| Some((list, draft.lists[list].get(index)?))) else {
        let what = format!("cube `{original}` is not carried over: {}", problem.message);
        findings.push(left_out(draft.span.clone(), what, cure));
        return;
    };
    let is_copy = owners.get(&member.span).is_some_and(|owner| *owner != draft.name);
    if is_copy && findings.iter().any(|told| told.code == LEFT_OUT && told.span.as_ref() == Some(&member.span)) {
        return;
    }
    let item = format!("{} `{}` of cube `{original}`", ITEMS[list], member.name);
    let what = match is_drill(list, problem) {
        true => format!("`drill_members` of {item} are not carried over: {}", problem.message),
        false => format!("{item} is not carried over: {}", problem.message),
    };
    findings.push(left_out(member.span.clone(), what, cure));
}

fn take_away(drafts: &mut Vec<Draft>, cube: usize, place: Option<Place>, problem: &Diagnostic) {
    match place {
        Some((list, index)) if index < drafts[cube].lists[list].len() => {
            let members = &mut drafts[cube].lists[list];
            if !is_drill(list, problem) {
                members.remove(index);
            } else if let Yaml::Map(entries) = &mut members[index].yaml {
                entries.retain(|(key, _)| key != "drill_members");
            }
        }
        _ => {
            drafts.remove(cube);
        }
    }
}

/// A drill that leads nowhere costs the drills, not the measure.
fn is_drill(list: usize, problem: &Diagnostic) -> bool {
    list == MEASURES && problem.code == Code::UnknownDrillMember
}

/// The cube where each member was written: views come after the cubes that they copy from.
fn owners(drafts: &[Draft]) -> Owners {
    let mut owners = Owners::new();
    for draft in drafts {
        for member in draft.lists.iter().flatten() {
            owners.entry(member.span.clone()).or_insert_with(|| draft.name.clone());
        }
    }
    owners
}

fn files(drafts: &[Draft]) -> Vec<(String, String)> {
    let cube = |draft: &Draft| {
        let yaml = Yaml::map([("cubes", Yaml::List(vec![draft.yaml()]))]);
        (draft.file(), document(GREETING, &yaml))
    };
    let policy = |draft: &Draft| {
        let policy = Yaml::map([
            ("name", Yaml::text(format!("{}_closed", draft.name))),
            ("description", Yaml::text("The model had an access policy. Until it is written here, nobody sees a row.")),
            ("cubes", Yaml::texts([&*draft.name])),
            ("row_filter", Yaml::text("1 = 0")),
        ]);
        let yaml = Yaml::map([("policies", Yaml::List(vec![policy]))]);
        (format!("policies/{}.yml", draft.name), document(GREETING, &yaml))
    };
    let policies = drafts.iter().filter(|draft| draft.is_closed).map(policy);
    drafts.iter().map(cube).chain(policies).collect()
}

/// The compiler's errors, and what it says of drills, which would be warned of at every load.
fn problems(files: &[(String, String)], warehouse: &str) -> Vec<Diagnostic> {
    let texts = files.iter().map(|(path, text)| (Arc::from(path.as_str()), Arc::from(text.as_str())));
    let mut tree = SourceTree { files: texts.collect() };
    tree.files.insert(PROJECT_FILE.into(), "name: imported\n".into());
    let (definitions, mut problems) =
        project::read(&tree, &Inputs { warehouse: warehouse.into(), ..Inputs::default() });
    problems.extend(model::build(&definitions).1);
    // A variable that is not set here is set where the project is used.
    problems.retain(|problem| {
        problem.code != Code::MissingEnvVar && (problem.is_error() || problem.code == Code::UnknownDrillMember)
    });
    problems
}

/// The item of a cube's lists at a place of its file; `None`: the cube itself.
fn item_at(text: &str, span: &Span) -> Option<Place> {
    let file = Arc::new(SourceFile { path: span.file.clone(), text: text.into() });
    let node = yaml::parse(&file).ok()?;
    let cube = match value(&node, "cubes").map(|node| &node.value) {
        Some(NodeValue::List(items)) => items.first()?,
        _ => return None,
    };
    let mut best: Option<((u32, u32), (usize, usize))> = None;
    for (list, key) in LISTS.iter().enumerate() {
        let Some(Node { value: NodeValue::List(items), .. }) = value(cube, key) else { continue };
        for (index, item) in items.iter().enumerate() {
            let start = (item.origin.line, item.origin.column);
            if start <= (span.line, span.column) && best.is_none_or(|(known, _)| known < start) {
                best = Some((start, (list, index)));
            }
        }
    }
    best.map(|(_, place)| place)
}

fn value<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    match &node.value {
        NodeValue::Map(entries) => entries.iter().find(|(name, _)| &*name.text == key).map(|(_, value)| value),
        _ => None,
    }
}
