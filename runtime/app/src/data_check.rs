//! Checks the claims of a project about its keys, joins and dimensions against the warehouse's rows.
//!
//! In: a snapshot and the warehouse. Out: a diagnostic for each claim that rows contradict, with counts and some of the
//! keys, and a warning for each that could not be checked. Statements run one after the other, so that a check puts
//! little load on the warehouse. Not here: the SQL (compiler), drawing diagnostics (cli).

use std::fmt::Write as _;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::model::{CubeId, DimensionId, Model, Relationship};
use terrane_compiler::sql::{Claim, DataCheck, DimensionClaim, UncheckedClaim, data_checks, dimension_tests};

use crate::catalog::Snapshot;
use crate::ports::warehouse::{Statement, Warehouse, WarehouseError, WarehouseErrorKind};

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The number of the check, from 1.
    pub number: usize,
    pub of: usize,
    /// The cube whose claim is being checked.
    pub cube: &'a str,
}

/// The findings of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataReport {
    /// The number of claims that were checked, whatever the result.
    pub checked: usize,
    pub problems: Vec<Diagnostic>,
}

/// The number of characters of a key's text that are shown.
const SHOWN_CHARACTERS: usize = 60;

/// Runs every data check of a model: its keys, joins and tests of dimensions. Each statement must end within `timeout`.
/// Calls `begins` before each check.
pub async fn check(
    snapshot: &Snapshot,
    warehouse: &dyn Warehouse,
    timeout: Duration,
    mut begins: impl FnMut(Progress<'_>),
) -> DataReport {
    let model = &snapshot.model;
    let mut checks = data_checks(model, &snapshot.profile);
    checks.extend(dimension_tests(model, &snapshot.profile).into_iter().map(|(_, check)| check));
    let mut report = DataReport { checked: 0, problems: Vec::new() };
    let of = checks.len();
    for (index, check) in checks.into_iter().enumerate() {
        let check = match check {
            Ok(check) => check,
            Err(unmade) => {
                report.problems.push(unchecked(model, &unmade));
                continue;
            }
        };
        begins(Progress { number: index + 1, of, cube: &model.cube(check.cube).name });
        match run(snapshot, warehouse, timeout, &check).await {
            Ok(problem) => {
                report.checked += 1;
                report.problems.extend(problem);
            }
            Err(unread) => report.problems.push(unread),
        }
    }
    report
}

/// One test of a dimension, such as `orders.status: not_null`.
#[derive(Debug, Clone)]
pub struct DimensionTestRun {
    pub name: String,
    pub span: Option<Span>,
    /// The check with its statement, or a warning with the reason why the statement cannot be created.
    check: Result<DataCheck, Diagnostic>,
}

impl DimensionTestRun {
    /// Returns the tests of all dimensions, in the order of the cubes.
    pub fn all(snapshot: &Snapshot) -> Vec<DimensionTestRun> {
        let model = &snapshot.model;
        let runs = dimension_tests(model, &snapshot.profile).into_iter().map(|(claim, check)| DimensionTestRun {
            name: test_name(model, claim),
            span: check.as_ref().map_or_else(|unmade| unmade.1.clone(), |check| check.span.clone()),
            check: check.map_err(|unmade| unchecked(model, &unmade)),
        });
        runs.collect()
    }

    pub fn sql(&self) -> Option<&str> {
        self.check.as_ref().ok().map(|check| check.text.as_str())
    }

    /// Runs the test. Returns a problem if rows violate it, or if it cannot be checked.
    pub async fn run(&self, snapshot: &Snapshot, warehouse: &dyn Warehouse, timeout: Duration) -> Option<Diagnostic> {
        match &self.check {
            Ok(check) => run(snapshot, warehouse, timeout, check).await.unwrap_or_else(Some),
            Err(unchecked) => Some(unchecked.clone()),
        }
    }
}

fn test_name(model: &Model, claim: DimensionClaim) -> String {
    let name = |id: DimensionId| format!("{}.{}", model.cube(id.cube).name, model.dimension(id).name);
    match claim {
        DimensionClaim::NotNull(id) => format!("{}: not_null", name(id)),
        DimensionClaim::Unique(id) => format!("{}: unique", name(id)),
        DimensionClaim::AcceptedValues(id) => format!("{}: accepted_values", name(id)),
        DimensionClaim::Relationship { from, to } => format!("{}: relationships {}", name(from), name(to)),
    }
}

/// Runs a check. Returns the problem if rows violate the claim.
///
/// # Errors
/// Returns a warning if the rows could not be checked.
async fn run(
    snapshot: &Snapshot,
    warehouse: &dyn Warehouse,
    timeout: Duration,
    check: &DataCheck,
) -> Result<Option<Diagnostic>, Diagnostic> {
    let model = &snapshot.model;
    let statement = Statement { text: &check.text, params: &[], columns: &check.columns };
    match warehouse.execute(statement, timeout).await {
        Ok(rows) => Ok(Offenders::of(check, &rows.batches).map(|found| report_of(model, check, &found))),
        Err(error) => Err(refused(model, check, &error)),
    }
}

/// Returns a warning about a claim whose statement cannot be created.
fn unchecked(model: &Model, (cube, span, error): &UncheckedClaim) -> Diagnostic {
    unread(model, *cube, span.clone(), &error.to_string(), None)
}

/// The rows that contradict a claim.
struct Offenders {
    /// The keys that contradict the claim, as text, each with its number of rows. The statement limits their number.
    keys: Vec<(String, u64)>,
    key_count: u64,
    row_count: u64,
}

impl Offenders {
    /// Returns the rows that contradict the claim; `None` if the claim holds.
    fn of(check: &DataCheck, batches: &[RecordBatch]) -> Option<Self> {
        if check.claim == Claim::IsReadable {
            return None;
        }
        let mut found = Offenders { keys: Vec::new(), key_count: 0, row_count: 0 };
        for batch in batches {
            for row in 0..batch.num_rows() {
                let cell = |column: usize| cell(batch, column, row);
                let count = |column: usize| cell(check.counts_at + column).and_then(|text| number(&text)).unwrap_or(0);
                let names = check.key.iter().enumerate();
                let parts: Vec<String> = names.map(|(at, name)| format!("{name} {}", quoted(cell(at)))).collect();
                found.keys.push((parts.join(", "), count(0)));
                (found.key_count, found.row_count) = (count(1), count(2));
            }
        }
        (!found.keys.is_empty()).then_some(found)
    }

    /// Returns a list such as `: id "7" (2 rows); id "9" (3 rows); and 4 more`; empty without keys.
    fn listed(&self) -> String {
        let keys: Vec<String> = self
            .keys
            .iter()
            .filter(|(key, _)| !key.is_empty())
            .map(|(key, rows)| format!("{key} ({})", plural(*rows, "row")))
            .collect();
        if keys.is_empty() {
            return String::new();
        }
        let mut text = format!(": {}", keys.join("; "));
        let more = self.key_count.saturating_sub(keys.len() as u64);
        if more > 0 {
            let _ = write!(text, "; and {more} more");
        }
        text
    }
}

fn report_of(model: &Model, check: &DataCheck, found: &Offenders) -> Diagnostic {
    let name = |id: CubeId| &*model.cube(id).name;
    let cube = name(check.cube);
    let columns = check.key.join(", ");
    let (keys, rows, listed) = (found.key_count, found.row_count, found.listed());
    let diagnostic = match check.claim {
        Claim::KeyIsThere | Claim::IsReadable => Diagnostic::error(
            Code::NullKey,
            format!("the primary key of `{cube}` is null in {}{listed}", plural(rows, "row")),
        )
        .hint("Choose columns that are never null, or exclude these rows in the cube's `sql`."),
        Claim::KeyIsUnique => Diagnostic::error(
            Code::RepeatedKey,
            format!("the primary key of `{cube}` repeats: {} in {}{listed}", plural(keys, "key"), plural(rows, "row")),
        )
        .hint("Add the columns that distinguish these rows to the primary key, or merge the rows in the cube's `sql`."),
        Claim::TargetIsUnique { target, relationship } => Diagnostic::error(
            Code::RepeatedJoinKey,
            format!(
                "the join of `{cube}` to `{}` is {}, but its {columns} repeats: {} in {}{listed}",
                name(target),
                word(relationship),
                plural(keys, "key"),
                plural(rows, "row")
            ),
        )
        .hint("Join on columns that identify its rows, or declare `relationship: one_to_many`."),
        Claim::FindsAtMostOne { target, relationship } => Diagnostic::error(
            Code::AmbiguousJoin,
            format!(
                "the join of `{cube}` to `{}` is {}, but {} of `{cube}` matched several rows{listed}",
                name(target),
                word(relationship),
                plural(keys, "row")
            ),
        )
        .hint("Write a condition that matches at most one row, or declare `relationship: one_to_many`."),
        Claim::FindsOne { target } => Diagnostic::error(
            Code::JoinFindsNothing,
            format!(
                "the join of `{cube}` to `{}` is `always: true`, but {} of `{cube}` matched no row{listed}",
                name(target),
                plural(rows, "row")
            ),
        )
        .hint("Remove `always: true`. With it, queries lose these rows."),
        Claim::IsFoundOnce { target, relationship } => Diagnostic::warning(
            match relationship {
                Relationship::OneToMany => Code::OneToManyRepeats,
                Relationship::OneToOne | Relationship::ManyToOne => Code::OneToOneRepeats,
            },
            format!(
                "the join of `{cube}` to `{}` is {}, but several rows of `{cube}` match the same row: {} of `{}`{listed}",
                name(target),
                word(relationship),
                plural(keys, "row"),
                name(target),
            ),
        )
        .hint("Declare `relationship: many_to_one`."),
        Claim::Dimension(claim) => broken_test(model, claim, found),
    };
    at(check.span.as_ref(), diagnostic)
}

/// Returns the problem of a dimension's test.
fn broken_test(model: &Model, claim: DimensionClaim, found: &Offenders) -> Diagnostic {
    let name = |id: DimensionId| format!("{}.{}", model.cube(id.cube).name, model.dimension(id).name);
    let values = plural(found.key_count, "value");
    let (rows, listed) = (plural(found.row_count, "row"), found.listed());
    let (code, message, test) = match claim {
        DimensionClaim::NotNull(id) => {
            (Code::NullValue, format!("`{}` is null in {rows}{listed}", name(id)), "not_null")
        }
        DimensionClaim::Unique(id) => {
            (Code::RepeatedValue, format!("`{}` repeats: {values} in {rows}{listed}", name(id)), "unique")
        }
        DimensionClaim::AcceptedValues(id) => {
            let message = format!("`{}` has {values} outside of its `accepted_values`, in {rows}{listed}", name(id));
            (Code::UnexpectedValue, message, "accepted_values")
        }
        DimensionClaim::Relationship { from, to } => {
            let message = format!("`{}` has {values} that `{}` lacks, in {rows}{listed}", name(from), name(to));
            (Code::UnmatchedValue, message, "relationships")
        }
    };
    Diagnostic::error(code, message).hint(format!("Correct these rows, or change the test `{test}`."))
}

fn refused(model: &Model, check: &DataCheck, error: &WarehouseError) -> Diagnostic {
    let hint = match error.kind {
        WarehouseErrorKind::Timeout => "Increase the timeout with SERVICE_QUERY__TIMEOUT.",
        WarehouseErrorKind::Refused => {
            "Check that its table or model can be read, and that each `sql` names columns of it."
        }
        WarehouseErrorKind::Unavailable => "Check that the warehouse is running and can be reached.",
    };
    unread(model, check.cube, check.span.clone(), &error.message, Some(hint))
}

fn unread(model: &Model, cube: CubeId, span: Option<Span>, why: &str, hint: Option<&str>) -> Diagnostic {
    let message = format!("rows of cube `{}` could not be checked", model.cube(cube).name);
    let diagnostic = Diagnostic::warning(Code::DataNotChecked, message).detail(why);
    let diagnostic = match hint {
        Some(hint) => diagnostic.hint(hint),
        None => diagnostic,
    };
    at(span.as_ref(), diagnostic)
}

fn at(span: Option<&Span>, diagnostic: Diagnostic) -> Diagnostic {
    match span {
        Some(span) => diagnostic.at(span.clone()),
        None => diagnostic,
    }
}

fn word(relationship: Relationship) -> &'static str {
    match relationship {
        Relationship::ManyToOne => "many_to_one",
        Relationship::OneToMany => "one_to_many",
        Relationship::OneToOne => "one_to_one",
    }
}

/// Returns the text of a cell; `None` for null, and for types that cannot be printed.
fn cell(batch: &RecordBatch, column: usize, row: usize) -> Option<String> {
    let array = batch.columns().get(column).filter(|array| array.is_valid(row))?;
    let options = FormatOptions::default();
    Some(ArrayFormatter::try_new(array, &options).ok()?.value(row).to_string())
}

/// Parses a count, which engines return as an integer, a decimal or a double.
fn number(text: &str) -> Option<u64> {
    text.split('.').next()?.parse().ok()
}

fn quoted(value: Option<String>) -> String {
    let Some(text) = value else { return "null".to_owned() };
    let is_cut = text.chars().count() > SHOWN_CHARACTERS;
    let shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
    format!("{shown:?}{}", if is_cut { "…" } else { "" })
}

/// Returns `1 row`, `2 rows`.
pub fn plural(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
