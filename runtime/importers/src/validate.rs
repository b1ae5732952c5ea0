//! Removes the parts of drafts that do not compile.
//!
//! In: drafts of cubes and metrics. Out: the files of a project without errors, and a finding for each removed part.
//! The compiler decides: a part with an error is removed and reported with the compiler's message, and the rest is
//! compiled again. Parts that need something that the importer left out are removed first. Their findings name the
//! missing part, so that the compiler's messages are only about mistakes of the author.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::model;
use terrane_compiler::project::yaml::{self, Node, NodeValue};
use terrane_compiler::project::{self, Inputs, SourceFile, SourceTree};

use terrane_authoring::PROJECT_FILE;
use terrane_authoring::yaml::{Yaml, document};

use crate::declared::Declared;
use crate::draft::{CubeDraft, Drafts, ITEMS, JOINS, LISTS, MEASURES, MetricDraft, Reference, contains};
use crate::finding::{changed, closed_by_policy, left_out};
use crate::overrides::close_overridden;

/// The index of a list of a draft, and an index in that list.
type Place = (usize, usize);

/// A part of the drafts that can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A cube, by its index, or one of its members.
    Cube(usize, Option<Place>),
    /// A policy of a cube, by the indexes of the cube and the policy.
    Policy(usize, usize),
    Metric(usize),
}

/// For each place of a member in the model, the name of the draft that declares the member.
type Owners = HashMap<Span, String>;

/// The path of the file with all metrics.
const METRICS_FILE: &str = "metrics/metrics.yml";

/// The parameters of a validation.
pub(crate) struct Validation<'v> {
    pub(crate) declared: &'v Declared,
    pub(crate) warehouse: &'v str,
    /// The name of the command, for the comment at the top of each file.
    pub(crate) command: &'v str,
}
/// Values for environment variables without a default value, which are known only where the project is used. A string
/// is accepted if it compiles with one of these values.
const PLACEHOLDERS: [&str; 2] = ["placeholder", "1"];

/// Removes everything that does not compile, and returns the files of the remaining project.
pub(crate) fn validate(
    drafts: &mut Drafts,
    validation: &Validation<'_>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<(String, String)> {
    let owners = owners(&drafts.cubes);
    let declared = validation.declared;
    loop {
        remove_dependents(drafts, declared, &owners, findings);
        let files = files(drafts, validation.command);
        let problems = problems(drafts, &files, validation);
        if problems.is_empty() {
            return files;
        }
        for (part, problem) in &problems {
            // A missing join path may be the consequence of a join that was left out.
            let reason = match problem.code == Code::NoJoinPath && lacks_join(&drafts.cubes, declared) {
                true => Reason::MissingJoin,
                false => Reason::Problem(problem),
            };
            report(drafts, *part, &reason, &owners, findings);
        }
        // Parts are removed from the end, so that the indexes of earlier parts stay valid.
        for (part, problem) in problems.into_iter().rev() {
            remove(drafts, part, removal(part, &problem));
        }
        close_overridden(&mut drafts.cubes, findings);
    }
}

/// The reason why a part is removed.
enum Reason<'r> {
    Problem(&'r Diagnostic),
    /// The part needs another part, given by its description, that was left out.
    Needs(String),
    MissingJoin,
}

impl Reason<'_> {
    fn message(&self) -> String {
        match self {
            Reason::Problem(problem) => problem.message.clone(),
            Reason::Needs(part) => format!("it needs {part}, which is not imported"),
            Reason::MissingJoin => "it needs a join that is not imported".to_owned(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Reason::Problem(problem) => problem.hint.clone().unwrap_or_else(|| "Correct it in the model.".to_owned()),
            Reason::Needs(part) => format!("Solve the problems of {part} first."),
            Reason::MissingJoin => "Solve the problems of the joins first.".to_owned(),
        }
    }
}

/// Removes everything that needs a part that was left out.
fn remove_dependents(drafts: &mut Drafts, declared: &Declared, owners: &Owners, findings: &mut Vec<Diagnostic>) {
    loop {
        let mut dependents = cube_dependents(&drafts.cubes, declared);
        dependents.extend(metric_dependents(drafts, declared));
        if dependents.is_empty() {
            break;
        }
        for (part, need) in &dependents {
            report(drafts, *part, &Reason::Needs(need.clone()), owners, findings);
        }
        for (part, _) in dependents.into_iter().rev() {
            remove(drafts, part, Removal::Whole);
        }
        close_overridden(&mut drafts.cubes, findings);
    }
    remove_drills(&mut drafts.cubes, declared, findings);
}

/// Returns the cubes and members that need a part that was left out, each with the description of that part.
fn cube_dependents(drafts: &[CubeDraft], declared: &Declared) -> Vec<(Part, String)> {
    let mut dependents = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        let parent = draft.extends.as_ref().map(|parent| Reference { cube: parent.clone(), member: None });
        if let Some(parent) = parent.filter(|parent| is_left_out(drafts, declared, parent)) {
            dependents.push((Part::Cube(index, None), parent.to_string()));
            continue;
        }
        for (list, members) in draft.lists.iter().enumerate() {
            for (at, member) in members.iter().enumerate() {
                let missing = member.needs.iter().find(|reference| is_left_out(drafts, declared, reference));
                dependents
                    .extend(missing.map(|reference| (Part::Cube(index, Some((list, at))), reference.to_string())));
            }
        }
    }
    dependents
}

fn metric_dependents(drafts: &Drafts, declared: &Declared) -> Vec<(Part, String)> {
    let missing = |metric: &MetricDraft| {
        let member = metric.needs.iter().find(|need| is_left_out(&drafts.cubes, declared, need));
        let has = |name: &str| drafts.metrics.iter().any(|known| known.name == name);
        let other = metric.metrics.iter().find(|name| !has(name) && declared.declares_metric(name));
        member.map(ToString::to_string).or_else(|| other.map(|name| format!("metric `{name}`")))
    };
    let metrics = drafts.metrics.iter().enumerate();
    metrics.filter_map(|(index, metric)| Some((Part::Metric(index), missing(metric)?))).collect()
}

/// Removes drill members that were left out. The measures that list them stay.
fn remove_drills(drafts: &mut [CubeDraft], declared: &Declared, findings: &mut Vec<Diagnostic>) {
    let known = drafts.to_vec();
    for draft in drafts {
        let original = &draft.original;
        for measure in &mut draft.lists[MEASURES] {
            let (missing, rest): (Vec<_>, Vec<_>) =
                measure.drills.drain(..).partition(|(reference, _)| is_left_out(&known, declared, reference));
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

/// Returns true for a cube or member that the model contains and the drafts do not.
fn is_left_out(drafts: &[CubeDraft], declared: &Declared, reference: &Reference) -> bool {
    let mut ancestors: Vec<&str> = Vec::new();
    let mut cube = drafts.iter().find(|draft| draft.name == reference.cube);
    while let Some(parent) = cube.and_then(|draft| draft.extends.as_deref())
        && !ancestors.contains(&parent)
    {
        ancestors.push(parent);
        cube = drafts.iter().find(|draft| draft.name == parent);
    }
    !contains(drafts, reference) && declared.declares(reference, &ancestors)
}

/// Returns true if the model contains a join that the drafts do not.
fn lacks_join(drafts: &[CubeDraft], declared: &Declared) -> bool {
    declared.joins.iter().any(|(owner, target)| {
        let draft = drafts.iter().find(|draft| draft.name == *owner);
        draft.is_none_or(|draft| !draft.lists[JOINS].iter().any(|join| join.name == *target))
    })
}

/// Reports a removed part.
fn report(drafts: &Drafts, part: Part, reason: &Reason<'_>, owners: &Owners, findings: &mut Vec<Diagnostic>) {
    match part {
        Part::Cube(cube, place) => report_cube(&drafts.cubes[cube], place, reason, owners, findings),
        Part::Policy(cube, at) => {
            let draft = &drafts.cubes[cube];
            let what = format!(
                "cube `{}` is closed to all callers: its policy does not compile: {}",
                draft.original,
                reason.message()
            );
            findings.push(closed_by_policy(draft.policies[at].span.clone(), what));
        }
        Part::Metric(index) => {
            let metric = &drafts.metrics[index];
            let what = format!("metric `{}` is not imported: {}", metric.original, reason.message());
            findings.push(left_out(metric.span.clone(), what, reason.cure()));
        }
    }
}

/// Reports a removed cube or member. A view's copy of a member is not reported again if the member was reported at the
/// same place.
fn report_cube(
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
    let is_drill = match reason {
        Reason::Problem(problem) => removal(Part::Cube(0, place), problem) == Removal::DrillMembers,
        _ => false,
    };
    let what = match is_drill {
        true => format!("`drill_members` of {item} are not imported: {}", reason.message()),
        false => format!("{item} is not imported: {}", reason.message()),
    };
    findings.push(left_out(member.span.clone(), what, reason.cure()));
}

/// The extent of the removal of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    Whole,
    DrillMembers,
}

/// Removes a part. If the part is a policy, its cube is closed.
fn remove(drafts: &mut Drafts, part: Part, removal: Removal) {
    match part {
        Part::Cube(cube, Some((list, index))) if index < drafts.cubes[cube].lists[list].len() => {
            let draft = &mut drafts.cubes[cube];
            match removal {
                Removal::Whole => lose(draft, list, index),
                Removal::DrillMembers => draft.lists[list][index].drills.clear(),
            }
        }
        Part::Cube(cube, _) => drop(drafts.cubes.remove(cube)),
        Part::Policy(cube, at) => {
            let draft = &mut drafts.cubes[cube];
            draft.policies.remove(at);
            draft.access.has_policy = true;
        }
        Part::Metric(index) => drop(drafts.metrics.remove(index)),
    }
}

/// Removes a member. If the member stands for one that was left out already, the cube is closed.
fn lose(draft: &mut CubeDraft, list: usize, index: usize) {
    let member = draft.lists[list].remove(index);
    if draft.stand_ins.contains(&member.name) {
        draft.access.has_policy = true;
    }
    draft.missing.push(member.name);
}

/// Returns the parts of the draft to remove for a problem. For an unknown drill member, only the drill members are
/// removed.
fn removal(part: Part, problem: &Diagnostic) -> Removal {
    match part {
        Part::Cube(_, Some((MEASURES, _))) if problem.code == Code::UnknownDrillMember => Removal::DrillMembers,
        _ => Removal::Whole,
    }
}

/// Returns the draft that declares the member at each place. The first draft at a place is its owner, because views
/// come after the cubes from which they copy members.
fn owners(drafts: &[CubeDraft]) -> Owners {
    let mut owners = Owners::new();
    for draft in drafts {
        for member in draft.lists.iter().flatten() {
            owners.entry(member.span.clone()).or_insert_with(|| draft.name.clone());
        }
    }
    owners
}

fn files(drafts: &Drafts, command: &str) -> Vec<(String, String)> {
    let greeting = format!("Created by `{command}`. Change it as you like.");
    let list = |key: &str, items: Vec<Yaml>| document(&greeting, &Yaml::map([(key, Yaml::List(items))]));
    let cubes = drafts.cubes.iter().map(|draft| (draft.file(), list("cubes", vec![draft.yaml()])));
    let policies = drafts.cubes.iter().filter(|draft| !draft.policies.is_empty() || draft.access.has_policy);
    let policies = policies.map(|draft| (draft.policy_file(), list("policies", policies_of(draft))));
    let mut files: Vec<_> = cubes.chain(policies).collect();
    if !drafts.metrics.is_empty() {
        let metrics = drafts.metrics.iter().map(|metric| metric.yaml.clone()).collect();
        files.push((METRICS_FILE.to_owned(), list("metrics", metrics)));
    }
    files
}

/// Returns the policies of a cube: those of the model, followed by the one that closes the cube, if there is one.
fn policies_of(draft: &CubeDraft) -> Vec<Yaml> {
    let mut policies: Vec<Yaml> = draft.policies.iter().map(|policy| policy.yaml.clone()).collect();
    if draft.access.has_policy {
        let description =
            "The model restricts access to this cube. Until the policy is written here, no row is visible.";
        policies.push(Yaml::map([
            ("name", Yaml::text(format!("{}_closed", draft.name))),
            ("description", Yaml::text(description)),
            ("cubes", Yaml::texts([&*draft.name])),
            ("row_filter", Yaml::text("1 = 0")),
        ]));
    }
    policies
}

/// A part of the drafts, and its first problem.
type PartProblem = (Part, Diagnostic);

/// Returns the parts of the drafts that do not compile, in order.
///
/// The files are compiled once for each placeholder. A compilation accepts a cube if no problem concerns the cube
/// itself; members and policies of the cube may still have problems. If only one compilation accepts a cube, its
/// problems in the cube are returned; if both accept the cube, the problems that both find; if neither accepts it, the
/// problems of the first compilation.
fn problems(drafts: &Drafts, files: &[(String, String)], validation: &Validation<'_>) -> Vec<PartProblem> {
    let variables = &validation.declared.variables;
    let runs = if variables.is_empty() { 1 } else { PLACEHOLDERS.len() };
    let compile = |placeholder: &&str| {
        let environment = variables.iter().map(|name| (name.clone(), (*placeholder).to_owned())).collect();
        by_part(drafts, files, problems_of(files, environment, validation.warehouse))
    };
    let mut found: Vec<BTreeMap<Part, Diagnostic>> = PLACEHOLDERS[..runs].iter().map(compile).collect();
    let mut first = found.remove(0);
    if let Some(second) = found.pop() {
        for cube in 0..drafts.cubes.len() {
            let whole = Part::Cube(cube, None);
            match (first.contains_key(&whole), second.contains_key(&whole)) {
                (false, false) => first.retain(|part, _| !is_in(*part, cube) || second.contains_key(part)),
                (true, false) => {
                    first.retain(|part, _| !is_in(*part, cube));
                    let of_cube = second.iter().filter(|(part, _)| is_in(**part, cube));
                    first.extend(of_cube.map(|(part, problem)| (*part, problem.clone())));
                }
                (_, true) => {}
            }
        }
    }
    // If a whole cube has a problem, problems of its members and policies are not returned.
    let is_whole = |part: &&Part| matches!(part, Part::Cube(_, None));
    let wholes: BTreeSet<Part> = first.keys().filter(is_whole).copied().collect();
    first.retain(|part, _| match part {
        Part::Cube(cube, Some(_)) | Part::Policy(cube, _) => !wholes.contains(&Part::Cube(*cube, None)),
        // The problem of a metric may be caused by a removed cube, so it is returned only if no whole cube is removed.
        Part::Metric(_) => wholes.is_empty(),
        Part::Cube(_, None) => true,
    });
    // Removing from the end of this order leaves the indexes of earlier parts valid.
    first.into_iter().collect()
}

/// Returns true if a part is the cube, or one of its members or policies.
fn is_in(part: Part, cube: usize) -> bool {
    matches!(part, Part::Cube(of, _) | Part::Policy(of, _) if of == cube)
}

/// Assigns each problem to the part of the drafts at its place. For each part, only the first problem is returned.
fn by_part(drafts: &Drafts, files: &[(String, String)], problems: Vec<Diagnostic>) -> BTreeMap<Part, Diagnostic> {
    let mut parts = BTreeMap::new();
    for problem in problems {
        let Some(span) = &problem.span else { continue };
        let text = files.iter().find(|(path, _)| *path == *span.file).map_or("", |(_, text)| text.as_str());
        let cube = |file: fn(&CubeDraft) -> String| drafts.cubes.iter().position(|draft| file(draft) == *span.file);
        let part = if let Some(cube) = cube(CubeDraft::file) {
            Some(Part::Cube(cube, item_at(text, span)))
        } else if let Some(cube) = cube(CubeDraft::policy_file) {
            let index = index_at(text, "policies", span).filter(|at| *at < drafts.cubes[cube].policies.len());
            index.map(|at| Part::Policy(cube, at))
        } else {
            index_at(text, "metrics", span).filter(|at| *at < drafts.metrics.len()).map(Part::Metric)
        };
        if let Some(part) = part {
            parts.entry(part).or_insert(problem);
        }
    }
    parts
}

/// Returns the index of the item that contains a place, in the list under the key `key` of a document.
fn index_at(text: &str, key: &str, span: &Span) -> Option<usize> {
    let file = Arc::new(SourceFile { path: span.file.clone(), text: text.into() });
    let node = yaml::parse(&file).ok()?;
    let Some(Node { value: NodeValue::List(items), .. }) = value(&node, key) else { return None };
    items.iter().rposition(|item| (item.origin.line, item.origin.column) <= (span.line, span.column))
}

/// Returns the errors of the compiler, and its warnings about drill members, which would otherwise appear at every
/// load.
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

/// Returns the list and the index of the cube's item that contains a place of the cube's file. Returns `None` for a
/// place before all items.
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
