//! Builds a model from definitions.
//!
//! In: [`Definitions`]. Out: a [`Model`] with every reference resolved, and all diagnostics. The order: names and joins
//! (`assemble`), snippets (`read`), metrics, cycles. Finally, `prune` removes every item that depends on a broken one,
//! so that the remaining items are valid.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use sqlparser::dialect::Dialect;

use super::assemble::{Skeleton, assemble};
use super::cycles::{self, Edge, Item, Items, References};
use super::inherit::{Inherited, Merged, WithoutRelation, merge};
use super::read::read;
use super::scope::{NameScope, Place};
use super::source_text::SourceText;
use super::tables::TableReader;
use super::unread::Unread;
use super::{
    Aggregate, AggregateFunction, Cube, CubeId, DimensionId, DimensionType, Join, Measure, MeasureId, MeasureKind,
    Member, Model, SegmentId, Snippet, SqlPart, along_time, dimension_tests, expansion, join_graph, metrics,
    placeholders, policies, pre_aggregations, prune, relation,
};
use crate::diagnostic::{self, Code, Diagnostic, Severity, Span};
use crate::parallel;
use crate::project::{CubeDefinition, Definitions, MeasureDefinition, Recovered, SqlText};
use crate::snippet::grammar::{Problem, grammar};
use crate::text::nearest::suggest;

/// Builds a model with every reference resolved. Broken items are reported and left out, so that the others stay
/// usable.
///
/// If definitions are incomplete, or cubes have no usable relation, a second model is built, in which placeholders
/// replace the missing parts, and the cubes that could not be read. Only its errors are used, and the model itself is dropped. The errors include those in
/// the readable parts of incomplete definitions. They exclude errors that would only follow from leaving these
/// definitions out.
pub fn build(definitions: &Definitions) -> (Model, Vec<Diagnostic>) {
    let (model, diagnostics) = build_with(definitions, WithoutRelation::Omitted);
    let is_omitted = |cube: &CubeDefinition| model.cube_named(&cube.name.value).is_none();
    let placeholders = placeholders::find(definitions);
    if definitions.recovered.is_none() && !definitions.cubes.iter().any(is_omitted) && placeholders.is_empty() {
        return (model, diagnostics);
    }
    let mut all = definitions.clone();
    if let Some(recovered) = all.recovered.take() {
        let Recovered { cubes, metrics, policies } = *recovered;
        (all.cubes, all.metrics, all.policies) = (cubes, metrics, policies);
    }
    placeholders::add(placeholders, &mut all);
    let (_, mut found) = build_with(&all, WithoutRelation::Substituted);
    // A warning that only the model with placeholders causes is not about the project.
    let is_same = |one: &Diagnostic, other: &Diagnostic| one.code == other.code && one.span == other.span;
    found.retain(|one| one.is_error() || diagnostics.iter().any(|other| is_same(one, other)));
    (model, found)
}

fn build_with(definitions: &Definitions, without_relation: WithoutRelation) -> (Model, Vec<Diagnostic>) {
    let dialect = grammar(&definitions.warehouse);
    let mut diagnostics = Vec::new();
    let (merged, unusable) = merge(definitions, without_relation, &mut diagnostics);
    let skeleton = assemble(definitions, &merged, unusable, without_relation, &*dialect, &mut diagnostics);
    let own_dialect = || grammar(&definitions.warehouse);
    let read_cube = |dialect: &mut Box<dyn Dialect>, cube: &Cube| CubeReader::of(cube, &skeleton, &merged, &**dialect);
    let mut filled = parallel::map_with(&skeleton.model.cubes, own_dialect, read_cube);
    let source_text = SourceText::new(&skeleton, &merged, definitions);
    for cube in &mut filled {
        report(std::mem::take(&mut cube.findings), &mut diagnostics);
    }
    let mut broken = Items::default();
    let Skeleton { mut model, unread, .. } = skeleton;
    for (cube, filled) in model.cubes.iter_mut().zip(filled) {
        filled.into_cube(cube, &mut broken);
    }
    metrics::add(&mut model, definitions, &unread, &*dialect, &mut broken, &mut diagnostics);
    expansion::check_constants(&model, &source_text, &mut broken, &mut diagnostics);
    let edges: Vec<Edge> = model.cubes.iter().flat_map(cycles::of_cube).chain(cycles::of_metrics(&model)).collect();
    let references = References::of(&model, &edges);
    cycles::report(&model, &source_text, &references, &mut broken, &mut diagnostics);
    expansion::check(&model, &references, &mut broken, &mut diagnostics);
    let unread = with_broken(unread, &broken, &model);
    prune::prune(&mut model, broken);
    dimension_tests::add(&mut model, &merged, &unread, &mut diagnostics);
    pre_aggregations::add(&mut model, definitions, &unread, &*dialect, &mut diagnostics);
    let reader = TableReader::new(definitions, &*dialect);
    model.tables = model.cubes.iter().map(|cube| reader.tables(&cube.relation)).collect();
    // The relations as the project defines them decide to which cubes a policy applies. The built tables decide
    // only from where rows are read.
    relation::read_built(&mut model.cubes, definitions, &*dialect);
    model.shared_rows = model.cubes.iter().map(|_| OnceLock::new()).collect();
    policies::add(&mut model, definitions, &unread, &*dialect, &mut diagnostics);
    policies::warn_of_open_facts(&model, &mut diagnostics);
    policies::warn_of_closed_cubes(&model, definitions, &mut diagnostics);
    join_graph::warn_of_ties(&model, &mut diagnostics);
    // After an error, a join may be missing because it is broken itself.
    if !definitions.has_errors && !diagnostics.iter().any(Diagnostic::is_error) {
        metrics::report_unreachable_filters(&model, definitions, &mut diagnostics);
        along_time::warn_without_time(&model, &mut diagnostics);
    }
    let are_none_written = definitions.cubes.is_empty() && definitions.unread.is_empty();
    if are_none_written && definitions.unread_files.is_empty() && !diagnostics.iter().any(Diagnostic::is_error) {
        diagnostics.push(
            Diagnostic::warning(Code::NoCubes, "the project has no cubes")
                .hint("Add a file cubes/<name>.yml with a list `cubes:`.")
                .at(Span { file: "service_project.yml".into(), line: 1, column: 1, length: 1 }),
        );
    }
    diagnostic::sort(&mut diagnostics);
    (model, diagnostics)
}

/// Reports the findings of one cube. Inherited SQL is read once for each cube that inherits it, but its problem is
/// reported once.
fn report(findings: Vec<Finding>, diagnostics: &mut Vec<Diagnostic>) {
    for Finding { diagnostic, is_shared } in findings {
        let is_same = |other: &Diagnostic| other.span == diagnostic.span && other.code == diagnostic.code;
        if !is_shared || !diagnostics.iter().any(is_same) {
            diagnostics.push(diagnostic);
        }
    }
}

/// Adds the names of broken items to the names whose absence is not reported: the broken items were reported already.
fn with_broken(mut unread: Unread, broken: &Items, model: &Model) -> Unread {
    for item in broken {
        unread.insert(match item {
            Item::Join(cube, index) => Arc::clone(&model.cube(model.cube(*cube).joins[*index as usize].target).name),
            Item::Dimension(id) => Arc::clone(&model.dimension(*id).name),
            Item::Measure(id) => Arc::clone(&model.measure(*id).name),
            Item::Segment(id) => Arc::clone(&model.segment(*id).name),
            Item::Metric(id) => Arc::clone(&model.metric(*id).name),
        });
    }
    unread
}

/// Returns a column for an example: the column of a number dimension of the cube.
fn some_column(scope: NameScope<'_>) -> String {
    let dimensions = scope.own().map(|own| own.dimensions.as_slice()).unwrap_or_default();
    let number = dimensions.iter().find(|d| d.ty == DimensionType::Number && !d.primary_key);
    number.map_or("amount".to_owned(), |dimension| dimension.name.to_string())
}

/// A problem of one cube.
struct Finding {
    diagnostic: Diagnostic,
    /// True if the problem may occur in each cube that inherits the SQL; it is reported once.
    is_shared: bool,
}

/// The snippets of one cube, collected before they are written to the model.
struct Filled {
    dimensions: Vec<Snippet>,
    measures: Vec<MeasureKind>,
    segments: Vec<Snippet>,
    joins: Vec<Snippet>,
    findings: Vec<Finding>,
    broken: Items,
}

impl Filled {
    fn into_cube(self, cube: &mut Cube, broken: &mut Items) {
        broken.extend(self.broken);
        for (dimension, sql) in cube.dimensions.iter_mut().zip(self.dimensions) {
            dimension.sql = sql;
        }
        for (measure, kind) in cube.measures.iter_mut().zip(self.measures) {
            measure.kind = kind;
        }
        for (segment, sql) in cube.segments.iter_mut().zip(self.segments) {
            segment.sql = sql;
        }
        for (join, on) in cube.joins.iter_mut().zip(self.joins) {
            join.on = on;
        }
    }
}

/// The reading of one cube.
#[derive(Default)]
struct CubeReader {
    findings: Vec<Finding>,
    broken: Items,
}

impl CubeReader {
    fn of<'d>(cube: &Cube, skeleton: &Skeleton<'d>, merged: &[Merged<'d>], dialect: &dyn Dialect) -> Filled {
        let text = &merged[skeleton.texts[cube.id.0 as usize]];
        let mut reading = CubeReader::default();
        let scope = NameScope {
            model: &skeleton.model,
            cube: Some(cube.id),
            declared_in: &text.definition.name.value,
            place: Place::Dimension,
            unread: &skeleton.unread,
        };
        let dimensions = (0u32..).zip(&text.dimensions).map(|(index, dimension)| {
            let item = Item::Dimension(DimensionId { cube: cube.id, index });
            let scope = NameScope { declared_in: dimension.declared_in, ..scope };
            reading.snippet(&dimension.item.sql, scope, item, dialect)
        });
        let dimensions = dimensions.collect();
        let measures = (0u32..).zip(text.measures.iter().zip(&cube.measures)).map(|(index, (definition, measure))| {
            let id = MeasureId { cube: cube.id, index };
            let scope = NameScope { declared_in: definition.declared_in, ..scope };
            reading.measure(definition.item, measure, scope, id, dialect)
        });
        let measures = measures.collect();
        let segments = (0u32..).zip(&text.segments).map(|(index, segment)| {
            let item = Item::Segment(SegmentId { cube: cube.id, index });
            let scope = NameScope { place: Place::Segment, declared_in: segment.declared_in, ..scope };
            reading.snippet(&segment.item.sql, scope, item, dialect)
        });
        let segments = segments.collect();
        let declared = &skeleton.joins[cube.id.0 as usize];
        let joins = (0u32..).zip(declared.iter().zip(&cube.joins)).map(|(index, (join, model_join))| {
            let item = Item::Join(cube.id, index);
            let scope = NameScope { place: Place::Join(model_join.target), declared_in: join.declared_in, ..scope };
            let on = reading.snippet(&join.item.sql, scope, item, dialect);
            if cube.alias_of.is_none() && !reading.broken.contains(&item) {
                reading.check_join(cube, model_join, &on, &join.item.sql, &skeleton.model);
            }
            on
        });
        let joins = joins.collect();
        if cube.alias_of.is_none() {
            reading.check_marks(cube, text);
        }
        let CubeReader { findings, broken } = reading;
        Filled { dimensions, measures, segments, joins, findings, broken }
    }

    /// Reads the SQL of one item. An alias has the problems of its target, which are reported for the target.
    fn snippet(&mut self, sql: &SqlText, scope: NameScope<'_>, item: Item, dialect: &dyn Dialect) -> Snippet {
        match read(sql, scope, dialect) {
            Ok(snippet) => snippet,
            Err(problems) => {
                self.broken.insert(item);
                if scope.own().is_some_and(|own| own.alias_of.is_none()) {
                    self.add(problems.into_iter().map(|problem| problem.in_text(sql)));
                }
                Snippet::default()
            }
        }
    }

    /// Adds problems that the derived cubes may have as well.
    fn add(&mut self, diagnostics: impl Iterator<Item = Diagnostic>) {
        self.findings.extend(diagnostics.map(|diagnostic| Finding { diagnostic, is_shared: true }));
    }

    fn measure(
        &mut self,
        definition: &MeasureDefinition,
        measure: &Measure,
        scope: NameScope<'_>,
        id: MeasureId,
        dialect: &dyn Dialect,
    ) -> MeasureKind {
        let item = Item::Measure(id);
        let is_own = scope.own().is_some_and(|own| own.alias_of.is_none());
        let needs_sql = !matches!(
            &measure.kind,
            MeasureKind::Aggregate(Aggregate { function: AggregateFunction::Count, .. })
                | MeasureKind::Rolling { aggregate: Aggregate { function: AggregateFunction::Count, .. }, .. }
        );
        if needs_sql && definition.sql.is_none() {
            self.broken.insert(item);
            if is_own {
                let (example, hint) = match measure.kind {
                    MeasureKind::Number(_) => ("\"{revenue} / {count}\"".to_owned(), "Write the expression to compute"),
                    _ => (some_column(scope), "Write the expression to aggregate"),
                };
                let message = format!("measure `{}` has no `sql`", definition.name.value);
                let hint = format!("{hint}, as in `sql: {example}`.");
                self.add(std::iter::once(
                    Diagnostic::error(Code::MissingField, message).hint(hint).at(definition.name.span()),
                ));
            }
            return measure.kind.clone();
        }
        let rows = NameScope { place: Place::Measure, ..scope };
        let filters: Vec<Snippet> =
            definition.filters.iter().map(|filter| self.snippet(filter, rows, item, dialect)).collect();
        let mut argument =
            |place| definition.sql.as_ref().map(|sql| self.snippet(sql, NameScope { place, ..scope }, item, dialect));
        match &measure.kind {
            MeasureKind::Aggregate(aggregate) => {
                let argument = argument(Place::Measure);
                self.check_addable(definition, aggregate.function, argument.as_ref(), scope, item);
                MeasureKind::Aggregate(Aggregate { argument, filters, ..aggregate.clone() })
            }
            MeasureKind::RunningTotal { aggregate, from_all } => {
                let argument = argument(Place::Measure);
                self.check_addable(definition, aggregate.function, argument.as_ref(), scope, item);
                let aggregate = Aggregate { argument, filters, ..aggregate.clone() };
                MeasureKind::RunningTotal { aggregate, from_all: *from_all }
            }
            MeasureKind::Rolling { aggregate, window } => {
                let argument = argument(Place::Measure);
                self.check_addable(definition, aggregate.function, argument.as_ref(), scope, item);
                let aggregate = Aggregate { argument, filters, ..aggregate.clone() };
                MeasureKind::Rolling { aggregate, window: *window }
            }
            MeasureKind::Number(_) => {
                let body = argument(Place::Number).unwrap_or_default();
                MeasureKind::Number(body)
            }
        }
    }

    /// Reports a sum or an average of a time dimension.
    fn check_addable(
        &mut self,
        definition: &MeasureDefinition,
        function: AggregateFunction,
        argument: Option<&Snippet>,
        scope: NameScope<'_>,
        item: Item,
    ) {
        let Some([SqlPart::Dimension(id)]) = argument.map(|argument| argument.parts.as_slice()) else { return };
        let dimension = scope.model.dimension(*id);
        let adds = matches!(function, AggregateFunction::Sum | AggregateFunction::Avg) || function.is_of_distribution();
        if !adds || dimension.ty != DimensionType::Time || !self.broken.insert(item) {
            return;
        }
        let (Some(sql), true) = (&definition.sql, scope.own().is_some_and(|own| own.alias_of.is_none())) else {
            return;
        };
        let name = &definition.name.value;
        let message = format!("measure `{name}` adds up `{}`, which is a time dimension", dimension.name);
        let hint = "Name a number, or use the type `min`, `max`, `count` or `count_distinct`.";
        let problem = Problem::new(Code::MisplacedMember, message, hint).whole();
        self.add(std::iter::once(problem.in_text(sql)));
    }

    /// Warns of a join that does not compare both sides, which is most likely a mistake.
    fn check_join(&mut self, cube: &Cube, join: &Join, on: &Snippet, sql: &SqlText, model: &Model) {
        let mut sides: HashSet<CubeId> = HashSet::new();
        on.for_each(&mut |part| match part {
            SqlPart::Column { cube, .. } => {
                sides.insert(*cube);
            }
            SqlPart::Dimension(id) => {
                sides.insert(id.cube);
            }
            _ => {}
        });
        let target = model.cube(join.target);
        for missing in [cube, target].into_iter().filter(|side| !sides.contains(&side.id)) {
            let message =
                format!("the join of `{}` to `{}` does not refer to `{}`", cube.name, target.name, missing.name);
            let hint =
                format!("Compare a column of each cube, as in `{{{}}}.key = {{{}}}.key`.", cube.name, target.name);
            let problem = Problem::new(Code::OneSidedJoin, message, hint).whole();
            let diagnostic = problem.in_text(sql);
            let diagnostic = Diagnostic { severity: Severity::Warning, ..diagnostic };
            self.findings.push(Finding { diagnostic, is_shared: false });
        }
    }

    /// Reports a cube with to-many joins and without a primary key. Grouping behind a to-many join needs the key to
    /// identify the cube's rows.
    fn check_key(&mut self, cube: &Cube, text: &Merged<'_>) {
        let has_key = text.dimensions.iter().any(|dimension| dimension.item.primary_key);
        let join = text.joins.iter().find(|join| !join.item.relationship.is_to_one());
        let (Some(join), false, false) = (join, has_key, cube.measures.is_empty()) else { return };
        let target = &join.item.name;
        let message = format!(
            "cube `{}` joins many rows of `{1}` and has no primary key, so its measures cannot be grouped by members of `{1}`",
            cube.name, target.value
        );
        let hint = format!("Write `primary_key: true` on the dimension that identifies the rows of `{}`.", cube.name);
        self.add(std::iter::once(Diagnostic::warning(Code::MissingPrimaryKey, message).hint(hint).at(target.span())));
    }

    fn check_marks(&mut self, cube: &Cube, text: &Merged<'_>) {
        let mut marked = text.dimensions.iter().filter_map(|d| Some((d.item, d.item.primary_time.clone()?)));
        if let (Some((first, _)), Some((second, span))) = (marked.next(), marked.next()) {
            let message = format!(
                "cube `{}` has two primary time dimensions, `{}` and `{}`",
                cube.name, first.name.value, second.name.value
            );
            let diagnostic = Diagnostic::error(Code::DuplicatePrimaryTime, message)
                .hint("Keep `primary_time: true` on one of them.")
                .at(span);
            self.findings.push(Finding { diagnostic, is_shared: false });
        }
        self.check_key(cube, text);
        for Inherited { item, .. } in &text.measures {
            for member in &item.drill_members {
                let name = member.value.split('.').next_back().unwrap_or_default();
                let is_own = !member.value.contains('.') || member.value.split('.').next() == Some(&*cube.name);
                let is_known = matches!(cube.member(name), Some(Member::Dimension(_) | Member::Measure(_)));
                if is_own && !is_known {
                    let known = cube.members.keys().map(|name| &**name);
                    let message =
                        format!("unknown drill member `{}`: cube `{}` has no such member", member.value, cube.name);
                    let diagnostic = Diagnostic::error(Code::UnknownDrillMember, message)
                        .hint(suggest(name, "members", known))
                        .at(member.span());
                    self.add(std::iter::once(Diagnostic { severity: Severity::Warning, ..diagnostic }));
                }
            }
        }
    }
}
