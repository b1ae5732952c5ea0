//! The result of an import: files, counts, findings and totals.
//!
//! In: validated drafts, and the findings. Out: an [`ImportReport`]. Not here: the text that users see (cli).

use std::collections::{BTreeMap, BTreeSet};

use terrane_compiler::diagnostic::{self, Code, Diagnostic, Span};
use terrane_compiler::project::SourceTree;

use crate::draft::{DIMENSIONS, Drafts, JOINS, MEASURES, PRE_AGGREGATIONS, SEGMENTS};

/// The result of an import.
#[derive(Debug)]
pub struct ImportReport {
    /// The files of the project, except the project file: the path inside the project and the text of each.
    pub files: Vec<(String, String)>,
    pub counts: Counts,
    pub totals: Totals,
    /// The differences from the model, each at its place in the model's files.
    pub findings: Vec<Diagnostic>,
    /// The model's files that were read. They show the places of findings.
    pub tree: SourceTree,
}

/// The number of imported items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    pub cubes: usize,
    pub measures: usize,
    pub dimensions: usize,
    pub joins: usize,
    pub segments: usize,
    pub pre_aggregations: usize,
    pub metrics: usize,
}

/// The totals of an import: unchanged items, and findings by their kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// The number of imported items without a finding that the item is changed or closed.
    pub unchanged: usize,
    /// The number of findings about items that the project expresses differently.
    pub changed: usize,
    /// The number of findings about items, keys and files that the project does not contain.
    pub lost: usize,
    /// The number of findings about items that are closed until their policies are written.
    pub closed: usize,
}

impl ImportReport {
    /// Sorts the findings by their places, and counts items and findings.
    pub(crate) fn new(
        drafts: &Drafts,
        files: Vec<(String, String)>,
        mut findings: Vec<Diagnostic>,
        tree: SourceTree,
    ) -> Self {
        diagnostic::sort(&mut findings);
        ImportReport { files, counts: counts(drafts), totals: totals(drafts, &findings), findings, tree }
    }
}

fn counts(drafts: &Drafts) -> Counts {
    let of = |list: usize| drafts.cubes.iter().map(|draft| draft.lists[list].len()).sum();
    Counts {
        cubes: drafts.cubes.len(),
        measures: of(MEASURES),
        dimensions: of(DIMENSIONS),
        joins: of(JOINS),
        segments: of(SEGMENTS),
        pre_aggregations: of(PRE_AGGREGATIONS),
        metrics: drafts.metrics.len(),
    }
}

fn totals(drafts: &Drafts, findings: &[Diagnostic]) -> Totals {
    let number = |codes: &[Code]| findings.iter().filter(|finding| codes.contains(&finding.code)).count();
    let items = items(drafts);
    Totals {
        unchanged: items.values().map(|places| places.values().sum::<usize>()).sum::<usize>()
            - affected(&items, findings),
        changed: number(&[Code::Changed]),
        lost: number(&[Code::NotCarriedOver, Code::NotRead]),
        closed: number(&[Code::Closed]),
    }
}

/// The number of imported items at each place of each file.
type Items<'d> = BTreeMap<&'d str, BTreeMap<(u32, u32), usize>>;

fn items(drafts: &Drafts) -> Items<'_> {
    let of_cubes = drafts
        .cubes
        .iter()
        .flat_map(|draft| std::iter::once(&draft.span).chain(draft.lists.iter().flatten().map(|member| &member.span)));
    let mut items = Items::new();
    for span in of_cubes.chain(drafts.metrics.iter().map(|metric| &metric.span)) {
        *items.entry(&span.file).or_default().entry(place(span)).or_default() += 1;
    }
    items
}

fn place(span: &Span) -> (u32, u32) {
    (span.line, span.column)
}

/// Returns the number of items that findings report as changed or closed. A finding concerns the last item that begins
/// at or before its place.
fn affected(items: &Items<'_>, findings: &[Diagnostic]) -> usize {
    let differences = findings.iter().filter(|finding| matches!(finding.code, Code::Changed | Code::Closed));
    let mut affected = BTreeSet::new();
    for span in differences.filter_map(|finding| finding.span.as_ref()) {
        let before = items.get(&*span.file).and_then(|places| places.range(..=place(span)).next_back());
        affected.extend(before.map(|(at, number)| (&*span.file, *at, *number)));
    }
    affected.iter().map(|(.., number)| number).sum()
}
