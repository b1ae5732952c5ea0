//! Removes the parts of drafts that do not compile.
//!
//! In: drafts. Out: the files of a project without errors, and a finding for each removed part. The compiler decides:
//! a part with an error is removed and reported with the compiler's message, and the rest is compiled again. Parts
//! that need something that the importer left out are removed first, and their findings name what they need, so that
//! the compiler's messages are only about the author's own mistakes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::model;
use terrane_compiler::project::yaml::{self, Node, NodeValue};
use terrane_compiler::project::{self, Inputs, SourceFile, SourceTree};

use super::cube_draft::{CubeDraft, ITEMS, JOINS, LISTS, MEASURES, Reference, contains};
use super::finding::{changed, left_out};
use super::references::ImportScope;
use crate::PROJECT_FILE;
use crate::yaml::{Yaml, document};

/// A list of a draft and an index in it.
type Place = (usize, usize);
/// The name of the draft for which a member was written, by the member's place in the model.
type Owners = HashMap<Span, String>;

const GREETING: &str = "Created by `terrane import cube`. Change it as you like.";
/// Values for environment variables without a default, which are set only where the project is used. A string that
/// compiles with one of them is accepted.
const PLACEHOLDERS: [&str; 2] = ["placeholder", "1"];

/// Removes everything that does not compile, and returns the files of the rest.
pub(super) fn validate(
    drafts: &mut Vec<CubeDraft>,
    scope: &ImportScope,
    warehouse: &str,
    findings: &mut Vec<Diagnostic>,
) -> Vec<(String, String)> {
    let owners = owners(drafts);
    let variables = scope.variables();
    loop {
        remove_dependents(drafts, scope, &owners, findings);
        let files = files(drafts);
        let problems = problems(drafts, &files, &variables, warehouse);
        if problems.is_empty() {
            return files;
        }
        for (cube, place, problem) in &problems {
            // The path may have led through a join that was left out.
            let reason = match problem.code == Code::NoJoinPath && lacks_join(drafts, scope) {
                true => Reason::MissingJoin,
                false => Reason::Problem(problem),
            };
            report(&drafts[*cube], *place, &reason, &owners, findings);
        }
        // From the end, so that the indexes stay valid.
        for (cube, place, problem) in problems.into_iter().rev() {
            remove(drafts, cube, place, removal(place, &problem));
        }
    }
}

/// The reason why a part is removed.
enum Reason<'r> {
    Problem(&'r Diagnostic),
    /// The item needs a part that was left out.
    Needs(&'r Reference),
    MissingJoin,
}

impl Reason<'_> {
    fn message(&self) -> String {
        match self {
            Reason::Problem(problem) => problem.message.clone(),
            Reason::Needs(reference) => format!("it needs {reference}, which is not imported"),
            Reason::MissingJoin => "it needs a join that is not imported".to_owned(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Reason::Problem(problem) => problem.hint.clone().unwrap_or_else(|| "Correct it in the model.".to_owned()),
            Reason::Needs(reference) => format!("Solve the problems of {reference} first."),
            Reason::MissingJoin => "Solve the problems of the joins first.".to_owned(),
        }
    }
}

/// Removes everything that needs a part that was left out.
fn remove_dependents(
    drafts: &mut Vec<CubeDraft>,
    scope: &ImportScope,
    owners: &Owners,
    findings: &mut Vec<Diagnostic>,
) {
    loop {
        let mut dependents: Vec<(usize, Option<Place>, Reference)> = Vec::new();
        for (index, draft) in drafts.iter().enumerate() {
            let parent = draft.extends.as_ref().map(|parent| Reference { cube: parent.clone(), member: None });
            if let Some(parent) = parent.filter(|parent| is_left_out(drafts, scope, parent)) {
                dependents.push((index, None, parent));
                continue;
            }
            for (list, members) in draft.lists.iter().enumerate() {
                for (at, member) in members.iter().enumerate() {
                    let missing = member.needs.iter().find(|reference| is_left_out(drafts, scope, reference));
                    dependents.extend(missing.map(|reference| (index, Some((list, at)), reference.clone())));
                }
            }
        }
        if dependents.is_empty() {
            break;
        }
        for (cube, place, reference) in &dependents {
            report(&drafts[*cube], *place, &Reason::Needs(reference), owners, findings);
        }
        for (cube, place, _) in dependents.into_iter().rev() {
            remove(drafts, cube, place, Removal::Whole);
        }
    }
    remove_drills(drafts, scope, findings);
}

/// Removes drill members that were left out. The measures stay.
fn remove_drills(drafts: &mut [CubeDraft], scope: &ImportScope, findings: &mut Vec<Diagnostic>) {
    let known = drafts.to_vec();
    for draft in drafts {
        let original = &draft.original;
        for measure in &mut draft.lists[MEASURES] {
            let (missing, rest): (Vec<_>, Vec<_>) =
                measure.drills.drain(..).partition(|(reference, _)| is_left_out(&known, scope, reference));
            measure.drills = rest;
            for (reference, _) in missing {
                let what = format!(
                    "`drill_members` of measure `{}` of cube `{original}` lose {reference}, which is not imported",
                    measure.name
                );
                let cure = format!("Solve the problems of {reference} first.");
                findings.push(changed(measure.span.clone(), what, cure));
            }
        }
    }
}

/// Returns true for a cube or member that the model has and the drafts don't.
fn is_left_out(drafts: &[CubeDraft], scope: &ImportScope, reference: &Reference) -> bool {
    let mut ancestors: Vec<&str> = Vec::new();
    let mut cube = drafts.iter().find(|draft| draft.name == reference.cube);
    while let Some(parent) = cube.and_then(|draft| draft.extends.as_deref())
        && !ancestors.contains(&parent)
    {
        ancestors.push(parent);
        cube = drafts.iter().find(|draft| draft.name == parent);
    }
    !contains(drafts, reference) && scope.declares(reference, &ancestors)
}

/// Returns true if the model has a join that the drafts don't have.
fn lacks_join(drafts: &[CubeDraft], scope: &ImportScope) -> bool {
    scope.joins().any(|(owner, target)| {
        let draft = drafts.iter().find(|draft| draft.name == owner);
        draft.is_none_or(|draft| !draft.lists[JOINS].iter().any(|join| join.name == target))
    })
}

/// Reports a removed part. A view's copy of a member is removed with the member, which is reported at its own place.
fn report(
    draft: &CubeDraft,
    place: Option<Place>,
    reason: &Reason<'_>,
    owners: &Owners,
    findings: &mut Vec<Diagnostic>,
) {
    let original = &draft.original;
    let Some((list, member)) = place.and_then(|(list, index)| Some((list, draft.lists[list].get(index)?))) else {
        let what = format!("cube `{original}` is not imported: {}", reason.message());
        findings.push(left_out(draft.span.clone(), what, reason.cure()));
        return;
    };
    let is_reported =
        |known: &Diagnostic| known.code == Code::NotCarriedOver && known.span.as_ref() == Some(&member.span);
    let is_copy = owners.get(&member.span).is_some_and(|owner| *owner != draft.name);
    if is_copy && findings.iter().any(is_reported) {
        return;
    }
    let item = format!("{} `{}` of cube `{original}`", ITEMS[list], member.name);
    let is_drill = matches!(reason, Reason::Problem(problem) if removal(place, problem) == Removal::DrillMembers);
    let what = match is_drill {
        true => format!("`drill_members` of {item} are not imported: {}", reason.message()),
        false => format!("{item} is not imported: {}", reason.message()),
    };
    findings.push(left_out(member.span.clone(), what, reason.cure()));
}

/// The part of a member that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    Whole,
    DrillMembers,
}

fn remove(drafts: &mut Vec<CubeDraft>, cube: usize, place: Option<Place>, removal: Removal) {
    match place {
        Some((list, index)) if index < drafts[cube].lists[list].len() => {
            let members = &mut drafts[cube].lists[list];
            match removal {
                Removal::Whole => drop(members.remove(index)),
                Removal::DrillMembers => members[index].drills.clear(),
            }
        }
        _ => {
            drafts.remove(cube);
        }
    }
}

/// Returns the part to remove for a problem: an unknown drill member removes only the drill members.
fn removal(place: Option<Place>, problem: &Diagnostic) -> Removal {
    match place {
        Some((MEASURES, _)) if problem.code == Code::UnknownDrillMember => Removal::DrillMembers,
        _ => Removal::Whole,
    }
}

/// Returns the owner of each member's place. Views follow the cubes from which they copy members.
fn owners(drafts: &[CubeDraft]) -> Owners {
    let mut owners = Owners::new();
    for draft in drafts {
        for member in draft.lists.iter().flatten() {
            owners.entry(member.span.clone()).or_insert_with(|| draft.name.clone());
        }
    }
    owners
}

fn files(drafts: &[CubeDraft]) -> Vec<(String, String)> {
    let cube = |draft: &CubeDraft| {
        let yaml = Yaml::map([("cubes", Yaml::List(vec![draft.yaml()]))]);
        (draft.file(), document(GREETING, &yaml))
    };
    let policy = |draft: &CubeDraft| {
        let description =
            "The model restricts access to this cube. Until the policy is written here, no row is visible.";
        let policy = Yaml::map([
            ("name", Yaml::text(format!("{}_closed", draft.name))),
            ("description", Yaml::text(description)),
            ("cubes", Yaml::texts([&*draft.name])),
            ("row_filter", Yaml::text("1 = 0")),
        ]);
        let yaml = Yaml::map([("policies", Yaml::List(vec![policy]))]);
        (format!("policies/{}.yml", draft.name), document(GREETING, &yaml))
    };
    let policies = drafts.iter().filter(|draft| draft.access.has_policy).map(policy);
    drafts.iter().map(cube).chain(policies).collect()
}

/// A part of a draft with its first problem. `None`: the whole cube.
type PartProblem = (usize, Option<Place>, Diagnostic);

/// Returns the parts of the drafts that don't compile, in order.
///
/// The files are compiled once for each placeholder. In each cube, the problems of the compilation that accepts the
/// cube as a whole count; if both do, those that both find.
fn problems(
    drafts: &[CubeDraft],
    files: &[(String, String)],
    variables: &BTreeSet<String>,
    warehouse: &str,
) -> Vec<PartProblem> {
    let runs = if variables.is_empty() { 1 } else { PLACEHOLDERS.len() };
    let compile = |placeholder: &&str| {
        let environment = variables.iter().map(|name| (name.clone(), (*placeholder).to_owned())).collect();
        by_part(drafts, files, problems_of(files, environment, warehouse))
    };
    let mut found: Vec<BTreeMap<(usize, Option<Place>), Diagnostic>> =
        PLACEHOLDERS[..runs].iter().map(compile).collect();
    let mut first = found.remove(0);
    if let Some(second) = found.pop() {
        for cube in 0..drafts.len() {
            match (first.contains_key(&(cube, None)), second.contains_key(&(cube, None))) {
                (false, false) => first.retain(|part, _| part.0 != cube || second.contains_key(part)),
                (true, false) => {
                    first.retain(|part, _| part.0 != cube);
                    let of_cube = second.iter().filter(|(part, _)| part.0 == cube);
                    first.extend(of_cube.map(|(part, problem)| (*part, problem.clone())));
                }
                (_, true) => {}
            }
        }
    }
    // The whole cube stands for its parts.
    let wholes: BTreeSet<usize> = first.keys().filter(|part| part.1.is_none()).map(|part| part.0).collect();
    first.retain(|part, _| part.1.is_none() || !wholes.contains(&part.0));
    first.into_iter().map(|((cube, place), problem)| (cube, place, problem)).collect()
}

/// Assigns each problem to the part of a draft at its place. Each part has its first problem.
fn by_part(
    drafts: &[CubeDraft],
    files: &[(String, String)],
    problems: Vec<Diagnostic>,
) -> BTreeMap<(usize, Option<Place>), Diagnostic> {
    let mut parts = BTreeMap::new();
    for problem in problems {
        let Some(span) = &problem.span else { continue };
        let Some(cube) = drafts.iter().position(|draft| draft.file() == *span.file) else { continue };
        let text = files.iter().find(|(path, _)| *path == *span.file).map_or("", |(_, text)| text.as_str());
        parts.entry((cube, item_at(text, span))).or_insert(problem);
    }
    parts
}

/// Returns the compiler's errors, and its warnings about drill members, which would appear at every load.
fn problems_of(files: &[(String, String)], env: BTreeMap<String, String>, warehouse: &str) -> Vec<Diagnostic> {
    let texts = files.iter().map(|(path, text)| (Arc::from(path.as_str()), Arc::from(text.as_str())));
    let mut tree = SourceTree { files: texts.collect() };
    tree.files.insert(PROJECT_FILE.into(), "name: imported\n".into());
    let inputs = Inputs { warehouse: warehouse.into(), env, ..Inputs::default() };
    let (definitions, mut problems) = project::read(&tree, &inputs);
    problems.extend(model::build(&definitions).1);
    problems.retain(|problem| problem.is_error() || problem.code == Code::UnknownDrillMember);
    problems
}

/// Returns the item of a cube's lists at a place of its file; `None` for the cube itself.
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
